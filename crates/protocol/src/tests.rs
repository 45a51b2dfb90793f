//! Properties of all messages.

mod differential;
mod round_trip;
