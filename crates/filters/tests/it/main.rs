//! Filters at work in a proxy, between plain sockets and a scripted cluster.

#![expect(clippy::unwrap_used, reason = "a helper that fails fails its test")]

mod allocations;
mod encrypting;
mod filter_any;
mod hostile_records;
mod messages;
mod policies;
mod rules;
mod tenants;
mod world;
