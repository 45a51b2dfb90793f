//! Kafka client: metadata, producer, fetcher, group membership and administration.
