//! Partition logs on one journal: group commit, index, tail cache and recovery.
//!
//! # Layout
//! - [`Storage`] opens a data directory and is the handle to everything; [`Log`] is one partition.
//! - `journal`, `fill`, `files`, `format`: the write path. Appends fill a frame while the one
//!   before it is flushed; `docs/formats.md` draws the bytes.
//! - `durable`, `waiter`, `admission`: who waits for what.
//! - `segment`, `segments`, `sorted`: batches in order of log and offset, and a log's share.
//! - `sort`, `merge`, `upkeep`, `workshop`, `pace`: writing segments from the journal and from each
//!   other, in the background; `clean`: compaction; `paged`: files that are written once.
//! - `tail`, `cache`, `read`, `lookup`: the read path, from memory just flushed or from the disk.
//! - `index`, `producers`, `transactions`, `epochs`: what a log knows of its batches.
//! - `checkpoint`, `scan`, `recovery`, `meta`: opening a directory, and giving space back.
//! - `scrub`: verifying all of it, slowly; `repair`: salvaging what is left.
//! - `disk`: every file operation, behind a trait; `io`: aligned memory, the only unsafe code.
//!
//! # Invariants
//! - The high watermark never passes the durable offset; an [`Lsn`] is durable only after the flush
//!   that covers it.
//! - Offsets are assigned inside the ordered append, after all checks: no holes. Producer state
//!   changes with the batch, in the same frame.
//! - After a failed write or flush nothing is written or acknowledged any more.
//! - Bytes from the disk are verified before they are served or replayed; damage to what was
//!   durable is reported with file and offset, never skipped.
//! - A journal position and a frame's sequence number are never used for two different contents
//!   that could be confused: a frame names its position, its number and the frame before it.
//! - A segment never changes and its number is never used again. Where two of them account for the
//!   same offsets of a log, the one with the higher number counts.
//! - Lock order: a log, then the fill. No lock is held while waiting for the disk, but for the
//!   creation of a file that could not be prepared in time.

mod admission;
mod block_on;
mod cache;
mod checkpoint;
mod clean;
mod disk;
mod durable;
mod epochs;
mod error;
mod files;
mod fill;
mod format;
mod index;
mod io;
mod journal;
mod log;
mod lookup;
mod merge;
mod meta;
mod metrics;
mod options;
mod pace;
mod paged;
mod producers;
mod read;
mod recovery;
mod repair;
mod scan;
mod scrub;
mod segment;
mod segments;
mod signal;
mod sort;
mod sorted;
mod storage;
mod tail;
mod together;
mod topics;
mod transactions;
mod upkeep;
mod waiter;
mod window;
mod workshop;

pub use admission::{Admission, Admissions, Admit};
pub use block_on::block_on;
pub use checkpoint::CheckpointWriter;
pub use clean::{Compacted, Compaction};
pub use disk::{Access, Disk, DiskFile, RealDisk};
pub use durable::{Durable, Lsn, WaitDurable, WaitFailure};
pub use epochs::EpochEnd;
pub use error::{AppendError, Error};
pub use log::{Appended, Log, ProducerState, Trimmed};
pub use lookup::TimestampOffset;
pub use metrics::MetricsSnapshot;
pub use options::{Drive, Durability, Options};
pub use read::{PendingRead, Read, ReadLimits, ReadOutcome};
pub use recovery::Replay;
pub use repair::{Damage, Left, Lost, Orphan, Repair, Report, Salvage};
pub use storage::{Info, Storage};
pub use together::LogMarker;
pub use transactions::{AbortedTransaction, Isolation};
pub use waiter::{Moved, Registration, Waiter};

/// A topic's id, 16 bytes as in Kafka's protocol (KIP-516).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct TopicId(pub [u8; 16]);

/// The partition that a log belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct LogId {
    /// The topic.
    pub topic: TopicId,
    /// The partition.
    pub partition: i32,
}
