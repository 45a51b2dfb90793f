//! Apps against a broker in this process.

mod admin;
mod allocations;
mod apps;
mod failures;
mod guide;
mod layers;
mod matrix;
#[cfg(feature = "real-browser")]
mod page;
mod periodic;
mod rebalances;
mod recurring;
mod retry_topics;
mod scheduled;
mod sealed;
mod status;
mod testing;
mod topics;
mod world;
