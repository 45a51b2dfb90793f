//! Policies that stand in front of any Kafka cluster, each a filter of the proxy.
