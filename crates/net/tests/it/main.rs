//! Listeners with their security and limits, as broker and proxy use them, all on loopback.

#![expect(clippy::unwrap_used, reason = "a helper that fails fails its test")]

mod authority;
mod hostile;
mod issuer;
mod sasl;
mod tls;
mod world;
