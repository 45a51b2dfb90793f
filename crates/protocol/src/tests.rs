//! Properties of all messages.

mod round_trip;
