//! Giving journal files back.
//!
//! A file whose batches are all deleted still holds metadata and the states of logs. A snapshot
//! writes both anew at the end of the journal; once it is durable, the anchor says that everything
//! before it counts only for its batches, and the files that hold no live batch are retired. A
//! crash before the anchor leaves a snapshot that recovery skips.

use std::sync::Arc;

use crate::format::Kind;
use crate::journal::Journal;
use crate::meta::{Anchor, write_anchor};
use crate::sync::block_on;
use crate::{Drive, Error, Log, LogId, Lsn};

/// Takes the owner's metadata for a snapshot.
///
/// The owner keeps its metadata locked from [`SnapshotWriter::begin`] until its last write: an
/// entry that it appends in between would be replayed in the wrong place, and one that it appends
/// after looking at its metadata and before the beginning would be forgotten.
pub struct SnapshotWriter<'a> {
    journal: &'a Journal,
    begun: Option<u64>,
    unflushed: usize,
}

impl SnapshotWriter<'_> {
    pub(crate) fn new(journal: &Journal) -> SnapshotWriter<'_> {
        SnapshotWriter { journal, begun: None, unflushed: 0 }
    }

    /// Begins the snapshot, which replaces all metadata before this point. The first write and the
    /// end do so too, which is too late for an owner that may have nothing to write.
    ///
    /// # Errors
    /// As [`SnapshotWriter::metadata`].
    pub fn begin(&mut self) -> Result<(), Error> {
        self.position().map(drop)
    }

    /// Writes one entry of the snapshot; it is handed to [`crate::Replay::metadata`] like any
    /// other.
    ///
    /// # Errors
    /// [`Error::DiskFull`], [`Error::Poisoned`], [`Error::Closed`].
    pub fn metadata(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.position()?;
        let lsn = self.journal.append_entry(Kind::SnapshotMetadata, LogId::default(), bytes)?;
        self.throttle(bytes.len(), lsn)
    }

    /// Where the snapshot begins.
    fn position(&mut self) -> Result<u64, Error> {
        if let Some(position) = self.begun {
            return Ok(position);
        }
        let lsn = self.journal.append_entry(Kind::SnapshotBegin, LogId::default(), &[])?;
        Ok(*self.begun.insert(lsn.0))
    }

    fn log(&mut self, log: &Log) -> Result<(), Error> {
        // The entry is appended under the log's lock: batches before it are part of the state,
        // batches after it are not.
        let written = log.with_state(|state| {
            if state.is_deleted {
                return Ok(None);
            }
            let payload = state.encode();
            let lsn = self.journal.append_entry(Kind::LogState, log.id(), &payload)?;
            Ok::<_, Error>(Some((payload.len(), lsn)))
        })?;
        match written {
            Some((bytes, lsn)) => self.throttle(bytes, lsn),
            None => Ok(()),
        }
    }

    /// Bounds what a snapshot adds to the memory of unflushed frames.
    fn throttle(&mut self, bytes: usize, lsn: Lsn) -> Result<(), Error> {
        self.unflushed += bytes;
        if self.unflushed < UNFLUSHED_MAX {
            return Ok(());
        }
        self.unflushed = 0;
        wait(self.journal, lsn)
    }

    /// Adds the logs, makes the snapshot durable and puts it into effect for a journal that starts
    /// with the file at `start`.
    pub(crate) fn finish(mut self, logs: &[Arc<Log>], start: u64) -> Result<(), Error> {
        let snapshot = self.position()?;
        for log in logs {
            self.log(log)?;
        }
        let lsn = self.journal.append_entry(Kind::SnapshotEnd, LogId::default(), &[])?;
        wait(self.journal, lsn)?;
        self.journal.sync()?;
        let files = &self.journal.files;
        write_anchor(files.disk(), files.dir(), Anchor { start, snapshot })?;
        let retired = files.retire_to(start)?;
        self.journal.metrics.files_retired.add(retired);
        Ok(())
    }
}

fn wait(journal: &Journal, lsn: Lsn) -> Result<(), Error> {
    if journal.options.drive == Drive::Stepped {
        while journal.flush_one() {}
    }
    block_on(journal.durable.wait(lsn))
}

/// Small beside what producers may have unflushed.
const UNFLUSHED_MAX: usize = 4 << 20;
