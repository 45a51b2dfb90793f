//! What the crate promises, from outside: Kafka's bytes, round trips, hostile bytes, allocations.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    reason = "the numbers in tests are small"
)]

mod allocations;
mod append_check;
mod cleaning;
mod cleaning_model;
mod codecs;
mod golden;
mod hostile;
mod in_place;
mod raw;
mod records_check;
mod rewriting;
mod round_trip;
mod sample;
