//! Extents that give way to one object.

use bytes::Bytes;

use crate::object::ObjectBuilder;
use crate::sequencer::{Answer, Extent, LogId, Sequencer};
use crate::sorter::replace;
use crate::store::Store;

use super::CompactOptions;

/// What stays of an extent.
pub(super) struct Piece {
    pub(super) bytes: Bytes,
    /// Bytes before.
    pub(super) read: usize,
    pub(super) max_timestamp: i64,
    pub(super) is_changed: bool,
}

/// Extents of a log that follow one another, and what stays of them.
pub(super) struct Chunk {
    log: LogId,
    pieces: Vec<(Extent, Piece)>,
    bytes_read: usize,
}

impl Chunk {
    pub(super) fn new(log: LogId) -> Self {
        Self { log, pieces: Vec::new(), bytes_read: 0 }
    }

    pub(super) fn push(&mut self, extent: Extent, piece: Piece) {
        self.bytes_read += piece.read;
        self.pieces.push((extent, piece));
    }

    pub(super) fn bytes_read(&self) -> usize {
        self.bytes_read
    }

    /// Whether it holds extents, but nothing of any stays.
    pub(super) fn is_void(&self) -> bool {
        !self.pieces.is_empty() && self.pieces.iter().all(|(_, piece)| piece.bytes.is_empty())
    }

    /// Replaces the extents, unless all of them stay as they are. Those of which nothing stays
    /// become part of the one before.
    pub(super) async fn swap(
        self,
        sequencer: &impl Sequencer,
        store: &impl Store,
        options: &CompactOptions,
    ) -> Answer<()> {
        let is_changed = self.pieces.iter().any(|(_, piece)| piece.is_changed);
        if !is_changed || self.is_void() {
            return Ok(());
        }
        let log = self.log;
        let sources = self.pieces.iter().map(|(extent, _)| (log, *extent)).collect();
        let (object, targets) = self.join(options.extent_bytes);
        match replace(sequencer, store, (object, sources, targets), options.timeout).await? {
            true => Ok(()),
            false => Err(crate::Error::SourcesChanged),
        }
    }

    fn join(self, extent_bytes: usize) -> (Bytes, Vec<(LogId, Extent)>) {
        let mut builder = ObjectBuilder::default();
        let mut targets: Vec<(LogId, Extent)> = Vec::new();
        // The first piece of each target.
        let mut firsts = Vec::new();
        let mut pushed = 0;
        for (extent, piece) in self.pieces {
            let size = i32::try_from(piece.bytes.len()).expect("an object has less than 2 GiB");
            let last = targets.last_mut().map(|(_, last)| last);
            let last = last.filter(|last| last.leader_epoch == extent.leader_epoch);
            if size == 0 {
                if let Some(last) = last {
                    last.last_offset = extent.last_offset;
                }
                continue;
            }
            builder.push(self.log, piece.bytes);
            pushed += 1;
            let fits = |last: &Extent| {
                usize::try_from(last.size.saturating_add(size)).is_ok_and(|it| it <= extent_bytes)
            };
            match last.filter(|last| fits(last)) {
                Some(last) => {
                    last.last_offset = extent.last_offset;
                    last.size += size;
                    last.max_timestamp = last.max_timestamp.max(piece.max_timestamp);
                }
                None => {
                    let max_timestamp = piece.max_timestamp;
                    targets.push((self.log, Extent { size, max_timestamp, ..extent }));
                    firsts.push(pushed - 1);
                }
            }
        }
        let (object, positions) = builder.finish();
        for ((_, target), first) in targets.iter_mut().zip(firsts) {
            target.position = positions[first];
        }
        (object, targets)
    }
}
