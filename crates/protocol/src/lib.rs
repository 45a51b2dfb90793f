//! Kafka wire protocol: generated messages, primitives, frames, API keys and error codes.
