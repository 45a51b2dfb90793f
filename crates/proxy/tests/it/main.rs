//! The proxy between a client and scripted brokers, all on loopback.

#![expect(clippy::unwrap_used, reason = "a helper that fails fails its test")]

mod broken_input;
#[path = "../../examples/client_id.rs"]
#[expect(dead_code, reason = "the example's own main")]
mod client_id;
mod filtering;
mod gateways;
mod lifecycle;
mod limits;
mod relaying;
mod reloading;
mod rewriting;
mod tls;
mod traces;
mod world;
