//! Errors of the journal, grouped by what the caller can do about them.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::io::Errno;

/// Why storage cannot be opened, read or written.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// Operator: another process holds the data directory.
    #[error("data directory {path} is in use by another process (lock file {path}/lock)")]
    Locked {
        /// The data directory.
        path: PathBuf,
    },
    /// Operator: a file was written by a format version that this program does not know.
    #[error("{path}: unknown format version {found}, this program reads version {known}")]
    UnknownVersion {
        /// The file.
        path: PathBuf,
        /// Version in the file.
        found: u32,
        /// Version that this program reads and writes.
        known: u32,
    },
    /// Operator: the data directory belongs to another node id.
    #[error("{path}: the data directory belongs to node {found}, this process is node {expected}")]
    WrongNode {
        /// The meta file.
        path: PathBuf,
        /// Node id in the file.
        found: i32,
        /// Node id of this process.
        expected: i32,
    },
    /// Operator: there is nothing of ours in the directory.
    #[error("{path} is not a data directory")]
    NotADataDirectory {
        /// The directory.
        path: PathBuf,
    },
    /// Operator: a repair was begun and must be brought to its end first.
    #[error(
        "{path}: a repair was interrupted; `moldau broker repair --apply` brings it to its end"
    )]
    RepairUnfinished {
        /// Files that the repair has written.
        path: PathBuf,
    },
    /// Operator: an option is outside its range.
    #[error("storage option {option}: {reason}")]
    Option {
        /// Name of the option.
        option: &'static str,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// Disk: bytes that were durable cannot be read back as they were written.
    #[error("{path} is damaged at byte {offset}: {reason}")]
    Corrupt {
        /// The damaged file.
        path: PathBuf,
        /// Offset in the file of the first byte of the damaged structure.
        offset: u64,
        /// What does not hold.
        reason: String,
    },
    /// Disk: an operation on a file failed.
    #[error("{operation} {path}: {source}")]
    Io {
        /// What was tried.
        operation: &'static str,
        /// On which file.
        path: PathBuf,
        /// The system's answer.
        source: Arc<io::Error>,
    },
    /// Disk or us: a write or flush of the journal failed, or a thread of storage ended by a panic;
    /// nothing more is written by this process.
    #[error("the journal is stopped: {cause}")]
    Poisoned {
        /// The failure that stopped it.
        cause: Arc<str>,
    },
    /// Us: a defect ended the operation, which has changed nothing.
    #[error("{operation} ended by a {panic}")]
    Defect {
        /// What was tried.
        operation: &'static str,
        /// What went wrong.
        panic: moldau_threads::Panic,
    },
    /// Caller: the storage was closed.
    #[error("the storage is closed")]
    Closed,
    /// Caller: the owner refused a metadata entry during recovery.
    #[error("{path} at byte {offset}: metadata entry refused: {reason}")]
    Replay {
        /// The journal file.
        path: PathBuf,
        /// Offset of the entry in the file.
        offset: u64,
        /// The owner's reason.
        reason: String,
    },
    /// Client: the offset lies outside what the log holds.
    #[error("offset out of range: the log holds {start} to {end}")]
    OffsetOutOfRange {
        /// Log start offset.
        start: i64,
        /// Log end offset.
        end: i64,
    },
    /// Client: the topic was deleted.
    #[error("the topic was deleted")]
    Deleted,
    /// Operator: the disk has no room for another journal file.
    #[error("no space left for the journal")]
    DiskFull,
    /// Operator: the process has no descriptor or memory left for another journal file.
    #[error("no descriptor or memory left for another journal file")]
    Exhausted,
}

impl Error {
    pub(crate) fn io(operation: &'static str, path: &Path, source: io::Error) -> Error {
        Error::Io { operation, path: path.to_path_buf(), source: Arc::new(source) }
    }

    /// Whether a file cannot be what was written. A block that the disk cannot read is no better,
    /// unless it can be read once the system has memory for that.
    pub(crate) fn is_damage(&self) -> bool {
        match self {
            Error::Corrupt { .. } => true,
            Error::Io { operation: "read", .. } => !self.is_exhaustion(),
            _ => false,
        }
    }

    /// Whether the system had no descriptor or memory left, as it may have again later.
    pub(crate) fn is_exhaustion(&self) -> bool {
        let Error::Io { source, .. } = self else { return false };
        [Errno::MFILE, Errno::NFILE, Errno::NOMEM]
            .iter()
            .any(|errno| source.raw_os_error() == Some(errno.raw_os_error()))
    }

    pub(crate) fn corrupt(path: &Path, offset: u64, reason: impl Into<String>) -> Error {
        Error::Corrupt { path: path.to_path_buf(), offset, reason: reason.into() }
    }
}

/// Why an append was refused. Nothing was written and no offset was assigned.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AppendError {
    /// Client: larger than a journal entry may be (`Options::entry_bytes_max`).
    #[error("append of {bytes} bytes is over the limit of {limit}")]
    TooLarge {
        /// Bytes of the append.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// Client: the sequence number does not follow the last one (Kafka error 45).
    #[error("out of order sequence number {first_sequence} after {last_sequence}")]
    OutOfOrderSequence {
        /// Last sequence number of the producer in this log, -1 if none.
        last_sequence: i32,
        /// First sequence number of the refused batch.
        first_sequence: i32,
    },
    /// Client: the producer epoch is older than the log's (Kafka error 47).
    #[error("producer epoch {epoch} is older than {current}")]
    InvalidProducerEpoch {
        /// Epoch of the refused batch.
        epoch: i16,
        /// Epoch that the log holds.
        current: i16,
    },
    /// Client: the producer has a transaction open in the log and the batch is not part of it
    /// (Kafka error 48).
    #[error("the producer has an open transaction and the batch is not part of it")]
    InTransaction,
    /// Client, later: the log has as many open and aborted transactions as it can keep.
    #[error("the log has too many open and aborted transactions")]
    TooManyTransactions,
    /// Client, later: the disk has no room for another journal file.
    #[error("no space left for the journal")]
    DiskFull,
    /// Client, later: the process has no descriptor or memory left for another journal file.
    #[error("no descriptor or memory left for another journal file")]
    Exhausted,
    /// Client: the topic was deleted.
    #[error("the topic was deleted")]
    Deleted,
    /// Disk or us: the journal stopped after a failed write or flush, or a panic.
    #[error("the journal is stopped: {0}")]
    Poisoned(Arc<str>),
    /// Others: the cluster that holds the log does not answer. The batch may be appended.
    #[error("the cluster does not answer; the records may have been appended")]
    Away,
    /// Caller: the storage was closed.
    #[error("the storage is closed")]
    Closed,
}

impl From<AppendError> for Error {
    /// For appends made by storage itself, which carry no batch.
    fn from(error: AppendError) -> Error {
        match error {
            AppendError::DiskFull => Error::DiskFull,
            AppendError::Exhausted => Error::Exhausted,
            AppendError::Deleted => Error::Deleted,
            AppendError::Poisoned(cause) => Error::Poisoned { cause },
            AppendError::Away | AppendError::Closed => Error::Closed,
            AppendError::TooLarge { .. } => {
                Error::Option { option: "entry_bytes_max", reason: "an entry is larger" }
            }
            AppendError::OutOfOrderSequence { .. }
            | AppendError::InvalidProducerEpoch { .. }
            | AppendError::InTransaction
            | AppendError::TooManyTransactions => {
                Error::Option { option: "append", reason: "a batch error outside a batch append" }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_read_that_wants_memory_is_no_damage() {
        let read = |errno: Errno| Error::io("read", Path::new("x"), errno.into());
        assert!(read(Errno::IO).is_damage() && !read(Errno::IO).is_exhaustion());
        assert!(read(Errno::NOMEM).is_exhaustion() && !read(Errno::NOMEM).is_damage());
        assert!(!Error::io("open", Path::new("x"), Errno::IO.into()).is_damage());
        assert!(Error::corrupt(Path::new("x"), 0, "y").is_damage());
    }
}
