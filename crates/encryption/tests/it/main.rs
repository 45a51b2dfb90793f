//! What the crate promises, from outside.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    reason = "the numbers in tests are small"
)]

mod allocations;
mod editors;
mod golden;
mod hostile;
mod open_any;
mod opening;
mod round_trip;
mod sample;
mod sealing;
#[cfg(feature = "real-vault")]
mod vault;
