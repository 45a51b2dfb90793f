//! Framework for Kafka workers: routes, handlers, layers, one offset ledger.
//!
//! | module | what it holds |
//! |---|---|
//! | `ledger` | [`Ledger`]: which records of a partition are done, and what may be committed |
//! | `scheduler` | which records of which partition run next |
//!
//! Invariants:
//!
//! - A committed offset never passes a record that is not done, and the ledger alone says what is
//!   done.
//! - A record that fails, or waits, blocks only the records that must follow it.
//! - `ledger` and `scheduler` have no threads, sockets or clocks.

mod ledger;
#[cfg_attr(not(test), expect(dead_code, reason = "a runtime uses it"))]
mod scheduler;

pub use ledger::{Commit, Delivery, Ledger, METADATA_BYTES_MAX};
pub use scheduler::Order;
