//! Apps against a broker in this process.

#![expect(
    clippy::unwrap_used,
    clippy::large_futures,
    reason = "a helper that fails fails its test"
)]

mod access;
mod admin;
mod allocations;
mod apps;
mod bad_input;
mod coordinators;
mod crashes;
mod exactly_once;
mod failures;
mod guide;
mod jobs;
mod layers;
mod matrix;
mod memory;
#[cfg(feature = "real-browser")]
mod page;
mod patterns;
mod periodic;
mod readers;
mod rebalances;
mod recurring;
mod refused;
mod registry;
mod registry_tls;
mod retry_topics;
mod scheduled;
mod sealed;
mod share;
mod share_crashes;
mod share_faults;
mod share_matrix;
mod status;
mod testing;
mod topics;
mod world;
