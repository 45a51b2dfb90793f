//! The embedded Kafka broker: one handler per API over the journal.
