//! The cluster's storage against real parts.

mod batches;
mod faults;
mod model;
mod objects;
mod postgres_server;
mod rules;
mod same_answers;
mod simulation;
