//! Connections to a listener of this process that secures them as a broker does.

#![expect(clippy::unwrap_used, reason = "a helper that fails fails its test")]

mod security;
mod server;
