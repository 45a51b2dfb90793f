//! Compaction: of each key of a log only the last record stays (Kafka's `cleanup.policy=compact`).
//!
//! A round maps the keys of the dirty part of a log to their last offsets, as far as the memory
//! goes. Then it writes the log anew up to there without what is superseded, some extents at a
//! time: each swap replaces all of them or none, from low offsets to high ones, so a round that
//! ends early has only removed records that a later one supersedes. Offsets stay what they were.
//! `moldau_records::Cleaner` decides what stays.
//!
//! Only sorted extents below the last stable offset are cleaned. Batches of aborted transactions
//! go, and supersede nothing; the marker of a commit goes when no record of its transaction is
//! left. Markers of aborts stay, as the sequencer names their transactions to consumers. The last
//! batch of a round stays too, if need be without records, so that a log keeps its end.

mod chunk;
mod round;

use std::time::Duration;

use crate::Error;
use crate::sequencer::{Answer, LogId, Sequencer};
use crate::store::Store;

use self::round::Round;

/// When and how a log is compacted: Kafka's topic configuration, and limits.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CompactOptions {
    /// `min.compaction.lag.ms`: younger records stay.
    pub min_lag_ms: i64,
    /// `max.compaction.lag.ms`: a dirty record of this age makes its log due.
    pub max_lag_ms: i64,
    /// `delete.retention.ms`: how long a tombstone stays from its first cleaning on.
    pub delete_retention_ms: i64,
    /// `min.cleanable.dirty.ratio`: share of dirty bytes that makes a log due.
    pub min_dirty_ratio: f64,
    /// Memory for keys. Where it is too little, a log is cleaned in several rounds.
    pub map_bytes: usize,
    /// Bytes that are read for one object, and so about the most that is in memory.
    pub object_bytes: usize,
    /// Extents grow up to this many bytes. A reader reads whole extents.
    pub extent_bytes: usize,
    /// For the PUT and for the swap of each object.
    pub timeout: Duration,
    /// Makes collisions of keys hard to prepare.
    pub seed: u64,
}

/// A log and what is known of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dirty {
    /// The log.
    pub log: LogId,
    /// First offset that was not cleaned before; 0 if that is not known.
    pub offset: i64,
}

/// What became of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compacted {
    /// It is not due.
    Nothing,
    /// It was cleaned.
    Cleaned {
        /// Records that were read.
        records_read: u64,
        /// Those of them that stayed.
        records_retained: u64,
        /// First offset that is dirty.
        dirty_offset: i64,
    },
    /// Another broker was first, or extents were trimmed. What was not replaced is cleaned later.
    Outrun,
}

/// Cleans a log if it is due.
///
/// # Errors
/// [`Error::Damaged`] for an object that does not hold what was written; retriable ones, after
/// which it is unknown whether the last extents were replaced.
pub async fn compact(
    sequencer: &impl Sequencer,
    store: &impl Store,
    dirty: Dirty,
    options: &CompactOptions,
    now_ms: i64,
) -> Answer<Compacted> {
    let cleaned = async {
        match Round::plan(sequencer, dirty, options, now_ms).await? {
            Some(round) => round.run(sequencer, store, options, now_ms).await,
            None => Ok(Compacted::Nothing),
        }
    };
    match cleaned.await {
        // Whoever deletes an object has replaced or trimmed its extents.
        Err(
            Error::ObjectMissing(_)
            | Error::SourcesChanged
            | Error::UnknownLog
            | Error::OffsetOutOfRange(_),
        ) => Ok(Compacted::Outrun),
        answer => answer,
    }
}
