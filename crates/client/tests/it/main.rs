//! Connections to a listener of this process that secures them as a broker does, and transactions
//! and groups against one that writes down what it is asked.

#![expect(clippy::unwrap_used, reason = "a helper that fails fails its test")]

mod fake;
mod groups;
mod metadata;
mod security;
mod server;
mod transactions;
