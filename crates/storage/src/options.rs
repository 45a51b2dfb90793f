//! Options of the owner for opening storage.

use std::path::PathBuf;
use std::time::Duration;

use crate::Error;
use crate::format::{ENTRY_HEADER_BYTES, FILE_HEADER_BYTES, FRAME_HEADER_BYTES, round_up};
use crate::io::BLOCK;

/// When an append counts as durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// After `fdatasync`: it survives the loss of power.
    Fsync,
    /// After `write`: it survives the death of the process.
    Os,
}

/// Who drives the journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Drive {
    /// Threads of storage's own: for the journal, for its next file, for upkeep, and for reading.
    Threads,
    /// The caller, by [`crate::Storage::step`]: nothing happens in the background, so that a test
    /// decides the order of everything.
    Stepped,
}

/// How storage is opened. [`Options::new`] gives the defaults.
#[derive(Debug, Clone)]
pub struct Options {
    /// The data directory; created if absent.
    pub data_dir: PathBuf,
    /// Node id, written to the meta file of a new directory and compared with it afterwards.
    pub node_id: i32,
    /// When an append counts as durable. Default: after `fdatasync`.
    pub durability: Durability,
    /// Length of a journal file in bytes, a multiple of 4096. Default 256 MiB.
    pub file_bytes: u64,
    /// Largest append in bytes, one or more batches or a metadata entry. Default 32 MiB, at most
    /// what fits into one file.
    pub entry_bytes_max: usize,
    /// Limit of bytes that are admitted and not yet flushed. Default 64 MiB.
    pub unflushed_bytes_max: usize,
    /// Most recently flushed bytes that are kept in memory for readers. Default 256 MiB.
    pub tail_cache_bytes: usize,
    /// As many are kept at most while readers lag by more than half of that. Default 1 GiB.
    pub tail_cache_bytes_max: usize,
    /// Chunks read back from disk that are kept in memory. Default 64 MiB.
    pub read_cache_bytes: usize,
    /// Free space that appends of data leave on the disk, so that metadata can still be written
    /// when it is full; at least `file_bytes`, as metadata may need a whole file, or zero for none.
    /// Default 256 MiB.
    pub reserve_bytes: u64,
    /// Time that the journal thread waits for more batches before each flush. Default zero: batches
    /// that arrive during one flush form the next. For slow network disks.
    pub commit_delay: Duration,
    /// Bytes a second that sorting, merging, cleaning and checkpoints together read and write while
    /// the journal or cold reads use the disk; zero for no limit of its own. Beside flushes it is
    /// half of what cold reads may use at most. Default 256 MiB.
    pub background_rate: u64,
    /// Bytes a second that are read back to find damage, in passes that begin at least a day apart;
    /// zero for none. Default 4 MiB.
    pub scrub_rate: u64,
    /// Memory for sorting, in bytes, taken meanwhile and for ten seconds more. Default 128 MiB.
    pub sort_memory_bytes: usize,
    /// Memory for the keys of a log that is compacted, in bytes, 24 a key: where they do not fit,
    /// the log is cleaned in several rounds. Default 32 MiB.
    pub clean_memory_bytes: usize,
    /// Who drives the journal. Default: threads.
    pub drive: Drive,
}

impl Options {
    /// The defaults for a data directory.
    pub fn new(data_dir: impl Into<PathBuf>) -> Options {
        Options {
            data_dir: data_dir.into(),
            node_id: 0,
            durability: Durability::Fsync,
            file_bytes: 256 << 20,
            entry_bytes_max: 32 << 20,
            unflushed_bytes_max: 64 << 20,
            tail_cache_bytes: 256 << 20,
            tail_cache_bytes_max: 1 << 30,
            read_cache_bytes: 64 << 20,
            reserve_bytes: 256 << 20,
            commit_delay: Duration::ZERO,
            background_rate: 256 << 20,
            scrub_rate: 4 << 20,
            sort_memory_bytes: 128 << 20,
            clean_memory_bytes: 32 << 20,
            drive: Drive::Threads,
        }
    }

    pub(crate) fn check(&self) -> Result<(), Error> {
        let refuse = |option, reason| Err(Error::Option { option, reason });
        if !self.file_bytes.is_multiple_of(BLOCK as u64) {
            return refuse("file_bytes", "must be a multiple of 4096");
        }
        if self.file_bytes < FILE_BYTES_MIN || self.file_bytes > FILE_BYTES_MAX {
            return refuse("file_bytes", "must lie between 64 KiB and 1 GiB");
        }
        if self.entry_bytes_max == 0 {
            return refuse("entry_bytes_max", "must not be zero");
        }
        Ok(())
    }

    fn file_room(&self) -> usize {
        let file_bytes = usize::try_from(self.file_bytes).expect("checked to be at most 1 GiB");
        file_bytes.saturating_sub(FILE_HEADER_BYTES)
    }

    /// Free space that is kept for metadata.
    pub(crate) fn reserve(&self) -> u64 {
        match self.reserve_bytes {
            0 => 0,
            bytes => bytes.max(self.file_bytes),
        }
    }

    /// Largest payload of an entry in bytes, as asked for and as a file can hold.
    #[must_use]
    pub fn entry_limit(&self) -> usize {
        let overhead = FRAME_HEADER_BYTES + ENTRY_HEADER_BYTES;
        self.entry_bytes_max.min(self.file_room().saturating_sub(overhead))
    }

    /// Length at which a frame takes no further entry.
    pub(crate) fn frame_target(&self) -> usize {
        FRAME_BYTES_TARGET.min(self.file_room() / 2)
    }

    /// Largest frame that can arise.
    pub(crate) fn frame_limit(&self) -> usize {
        let overhead = FRAME_HEADER_BYTES + ENTRY_HEADER_BYTES;
        round_up(self.frame_target().max(self.entry_limit() + overhead))
    }

    /// What is given back at a time of a file that is removed.
    pub(crate) fn removed_piece(&self) -> u64 {
        REMOVED_PIECE_MAX.min(self.file_bytes / 16)
    }

    /// Length of the memory segments that appends are copied into.
    pub(crate) fn segment_bytes(&self) -> usize {
        SEGMENT_BYTES.min(self.file_room() + FILE_HEADER_BYTES)
    }
}

const FILE_BYTES_MIN: u64 = 64 << 10;
/// A frame's length is an u32 and a file may be one frame.
const FILE_BYTES_MAX: u64 = 1 << 30;
/// Long enough that the cost of a flush is small beside that of the write, short enough that what
/// waits behind one write does not wait for long.
const FRAME_BYTES_TARGET: usize = 4 << 20;
/// A flush waits behind one such piece for under a millisecond.
const REMOVED_PIECE_MAX: u64 = 4 << 20;
/// The unit in which memory for appends and the tail cache is taken.
const SEGMENT_BYTES: usize = 2 << 20;
