//! The proxy between a client and scripted brokers, all on loopback.

#![expect(clippy::unwrap_used, reason = "a helper that fails fails its test")]

mod broken_input;
mod lifecycle;
mod relaying;
mod rewriting;
mod world;
