//! Properties of all messages.

mod differential;
mod golden;
mod round_trip;
