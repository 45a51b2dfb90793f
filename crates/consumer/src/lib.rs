//! Framework for Kafka workers: routes, handlers, layers, one offset ledger.
//!
//! | module | what it holds |
//! |---|---|
//! | `ledger` | [`Ledger`]: which records of a partition are done, and what may be committed |
//!
//! Invariants:
//!
//! - A committed offset never passes a record that is not done.
//! - `ledger` has no threads, sockets or clocks.

mod ledger;

pub use ledger::{Commit, Delivery, Ledger, METADATA_BYTES_MAX};
