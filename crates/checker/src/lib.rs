//! Histories of Kafka clients, and the anomalies that they prove.
//!
//! A history holds what each client sent, polled, committed and aborted, with the times on one
//! clock. [`check`] decides from the history alone, so any cluster and any client can be judged.
//! The anomalies are those of Jepsen's workload for Kafka and of Adya's "Weak Consistency"
//! (1999, section 4.2): lost and duplicate records, aborted reads, polls out of order, cycles; and
//! those of a consumer group: lost deliveries and commits.
//!
//! # Layout
//! | module | subject |
//! |---|---|
//! | `history` | operations of clients, and their file |
//! | `anomaly` | kinds of anomalies, and the evidence of one |
//! | `report` | how many of each kind there are, with examples |
//! | `index` | who wrote each value, what each offset holds, which operations took effect |
//! | `writes` | offsets with two values, duplicates, lost and unseen records, order of sends |
//! | `reads` | aborted, premature and unwritten reads |
//! | `polls` | polls that skip records or go back |
//! | `groups` | committed offsets that are lost, go back or pass over records |
//! | `cycles` | cycles of writes and reads between operations |
//!
//! # Invariants
//! - An anomaly is reported only if the history proves it. An operation with an unknown outcome
//!   took effect if a client polled one of its values; otherwise it proves nothing.
//! - Each value is sent once in a history, so a polled value has one writer.
//! - Memory is linear in the history; a report keeps a few examples of each kind.

mod anomaly;
mod cycles;
mod groups;
mod history;
mod index;
mod polls;
mod reads;
mod report;
#[cfg(test)]
mod tests;
mod writes;

pub use anomaly::{Anomaly, Edge, Kind, Relation};
pub use history::{Action, Error, History, Operation, Outcome, Seen, Step};
pub use report::{EXAMPLES_PER_KIND_MAX, Found, Report};

use index::Index;

/// Finds the anomalies of a history.
///
/// # Errors
///
/// [`Error::SentTwice`] if two sends have the same value.
pub fn check(history: &History) -> Result<Report, Error> {
    let index = Index::new(history)?;
    let mut report = Report::default();
    writes::find(&index, &mut report);
    reads::find(&index, &mut report);
    polls::find(&index, &mut report);
    groups::find(&index, &mut report);
    cycles::find(&index, &mut report);
    Ok(report)
}
