//! Kafka record batches, format version 2: view, builder, CRC32C and compression.
