//! The cluster's storage against real parts, in all orders of events, and in random lives.

#![expect(clippy::unwrap_used, reason = "what is unexpected ends a test")]

mod batches;
mod bucket;
mod compaction;
mod expiration;
mod faults;
mod frames;
mod measured;
mod model;
mod objects;
mod owner;
mod postgres_server;
mod requests;
mod rules;
mod s3_server;
mod same_answers;
mod securing;
mod simulation;
mod sorting;
mod transactions;
mod waking;
mod whole;
