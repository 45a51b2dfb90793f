//! Apps against a broker in this process.

mod allocations;
mod apps;
mod failures;
mod guide;
mod layers;
mod matrix;
mod periodic;
mod rebalances;
mod world;
