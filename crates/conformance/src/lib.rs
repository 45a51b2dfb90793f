//! Real Kafka clients in five languages against the broker and the proxy (development only).
