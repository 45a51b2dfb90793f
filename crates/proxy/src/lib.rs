//! The L7 Kafka proxy: virtual clusters, sessions and address rewriting.
