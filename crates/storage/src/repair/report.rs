//! Findings of a repair, in the operator's terms.

use std::ops::Range;
use std::path::PathBuf;

use crate::LogId;

/// What was found in a data directory.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// Everything that is not as it was written.
    pub damage: Vec<Damage>,
    /// The offsets that cannot be read back, by log. In a compacted log some of them may have been
    /// cleaned away before.
    pub lost: Vec<Lost>,
    /// Topics whose own metadata is lost.
    pub orphans: Vec<Orphan>,
    /// Metadata may be lost: topics, configurations, committed offsets or producer ids that were
    /// written shortly before the damage.
    pub is_metadata_uncertain: bool,
    /// Metadata entries that do not follow from those that are left.
    pub metadata_refused: usize,
    /// Logs that stay.
    pub logs: usize,
    /// Bytes of the batches that stay, in logs that have a log start offset below their end.
    pub bytes: u64,
    /// A repair was begun and did not come to its end; what is found is of no use before it has.
    pub is_unfinished: bool,
}

impl Report {
    /// Whether there is nothing to repair.
    pub fn is_sound(&self) -> bool {
        self.damage.is_empty() && self.lost.is_empty() && !self.is_unfinished
    }
}

/// A place where a file is not what was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// The file.
    pub path: PathBuf,
    /// Where the damage begins, in bytes from the start of the file.
    pub offset: u64,
    /// What does not hold.
    pub reason: String,
    /// The offsets that are known to lie in it.
    pub lost: Vec<Lost>,
}

/// Offsets of a log that cannot be read back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lost {
    /// The log.
    pub log: LogId,
    /// Name of its topic, if it is known.
    pub topic: Option<String>,
    /// The offsets.
    pub offsets: Range<i64>,
    /// Whether they are known to have been given out. Otherwise they are skipped because a frame is
    /// lost that the log may have gone on in.
    pub is_certain: bool,
}

/// A topic that has logs and whose own metadata is lost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Orphan {
    /// Its id.
    pub topic: crate::TopicId,
    /// The name under which it is kept.
    pub name: String,
    /// Partitions that it is given: up to the last that holds something.
    pub partitions: i32,
}
