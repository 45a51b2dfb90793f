//! What the frames and checkpoints that are left say: logs, segments, metadata.
//!
//! It is recovery without its refusals. A batch that does not follow the one before leaves a hole,
//! and what a lost frame may have held is remembered by where it lay: whatever is complete up to a
//! later position has not suffered from it.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use moldau_records::BatchView;

use crate::checkpoint::Checkpoint;
use crate::format::{Fields, Kind, POSITION_MAX};
use crate::index::Extent;
use crate::log::{LogState, extent_of};
use crate::scan::{Entry, ReadEntry};
use crate::segment::NUMBER_MAX;
use crate::{LogId, TopicId};

/// A log as far as it is known.
#[derive(Default)]
pub(super) struct SalvagedLog {
    /// Start, producers, transactions and epochs. Its index is empty.
    pub(super) state: LogState,
    /// Entries of the journal before this position are part of the state.
    pub(super) complete_to: u64,
    /// The batches in the journal, by offset, with holes.
    pub(super) extents: Vec<Extent>,
    /// How many of the first of them were only read about.
    pub(super) unread: usize,
    /// Offset after the last that is certain to have been given out.
    pub(super) end: i64,
    /// The same by what damaged batches say.
    pub(super) claimed_end: i64,
    /// Where its log start offset comes from is known.
    pub(super) is_start_known: bool,
}

/// All that is known.
#[derive(Default)]
pub(super) struct Salvaged {
    pub(super) logs: BTreeMap<LogId, SalvagedLog>,
    pub(super) deleted: BTreeSet<TopicId>,
    /// Segments that count, and those that are known to count no more.
    pub(super) segments: BTreeSet<u64>,
    pub(super) removed: BTreeSet<u64>,
    pub(super) next_segment: u64,
    /// Entries of the journal before this position change neither segments nor topics.
    pub(super) position: u64,
    pub(super) metadata_from: u64,
    /// Every log without a known start begins at offset 0.
    pub(super) knows_starts: bool,
    pub(super) metadata: Vec<Vec<u8>>,
    /// Journal positions of frames whose entries are unknown too.
    pub(super) blind: Vec<Range<u64>>,
    /// Entries that changed segments or metadata are lost.
    pub(super) has_lost_entries: bool,
}

impl Salvaged {
    /// Takes up what a checkpoint says, on top of what older ones do.
    pub(super) fn take_checkpoint(&mut self, checkpoint: Checkpoint) {
        for (topic, logs) in checkpoint.logs {
            for (partition, log) in logs {
                let mut state = log.state;
                let index = std::mem::take(&mut state.index);
                let extents: Vec<_> = index.iter().collect();
                let salvaged = SalvagedLog {
                    complete_to: log.complete_to,
                    unread: extents.len(),
                    end: index.end_offset(),
                    extents,
                    is_start_known: true,
                    state,
                    ..SalvagedLog::default()
                };
                self.logs.insert(LogId { topic, partition }, salvaged);
            }
        }
        self.segments.extend(checkpoint.segments);
        self.next_segment = self.next_segment.max(checkpoint.next_segment);
        self.metadata.extend(checkpoint.metadata.into_iter().map(|(_, bytes)| bytes));
    }

    /// Takes up a frame that is whole.
    pub(super) fn take_frame(&mut self, entries: &[Entry<'_>]) {
        for entry in entries {
            self.take(entry);
        }
    }

    /// Takes up the entries of a frame that are whole, and returns the offsets of those that are
    /// not.
    pub(super) fn take_entries(&mut self, entries: &[ReadEntry<'_>]) -> Vec<(LogId, Range<i64>)> {
        let mut lost = Vec::new();
        for read in entries {
            if read.is_whole {
                self.take(&read.entry);
            } else {
                lost.extend(self.lose(&read.entry));
            }
        }
        lost
    }

    /// A stretch of the journal held frames that are wholly unknown.
    pub(super) fn lose_frames(&mut self, positions: Range<u64>) {
        self.has_lost_entries |= positions.end > self.position;
        self.blind.push(positions);
    }

    fn take(&mut self, entry: &Entry<'_>) {
        let (id, position) = (entry.header.log, entry.position);
        match entry.header.kind {
            Kind::Metadata if position >= self.metadata_from => {
                self.metadata.push(entry.payload.to_vec());
            }
            Kind::Metadata => {}
            _ if position < self.position => {}
            Kind::DeleteTopic => {
                self.deleted.insert(id.topic);
                self.logs.retain(|log, _| log.topic != id.topic);
            }
            Kind::Segments => {
                if self.take_segments(entry.payload).is_none() {
                    self.has_lost_entries = true;
                }
            }
            Kind::Batch => self.take_batch(id, entry),
            Kind::LogStart => {
                let log = self.logs.entry(id).or_default();
                let start = Fields(entry.payload).i64().filter(|start| *start >= 0);
                if let Some(start) = start.filter(|_| position >= log.complete_to) {
                    log.state.start_offset = log.state.start_offset.max(start);
                    log.end = log.end.max(start);
                    log.is_start_known = true;
                }
            }
        }
    }

    fn take_batch(&mut self, id: LogId, entry: &Entry<'_>) {
        let log = self.logs.entry(id).or_default();
        if entry.position < log.complete_to {
            return;
        }
        let Ok(batch) = BatchView::parse(entry.payload) else { return };
        let base_offset = batch.base_offset();
        let last_offset = base_offset.checked_add(i64::from(batch.last_offset_delta()));
        let fits = last_offset.is_some_and(|last| last < i64::MAX) && base_offset >= log.end;
        if !fits {
            return;
        }
        log.state.epochs.assign(batch.partition_leader_epoch(), base_offset);
        let state = &mut log.state;
        state.producers.record(&batch, base_offset, &state.transactions);
        state.transactions.note(&batch, base_offset);
        log.extents.push(extent_of(&batch, base_offset, entry.position));
        log.end = batch.next_offset();
        log.is_start_known |= base_offset == 0;
    }

    fn take_segments(&mut self, payload: &[u8]) -> Option<()> {
        let mut fields = Fields(payload);
        for _ in 0..fields.u32()? {
            let number = fields.u64().filter(|number| *number < NUMBER_MAX)?;
            self.segments.insert(number);
            self.next_segment = self.next_segment.max(number + 1);
        }
        while !fields.0.is_empty() {
            let number = fields.u64()?;
            self.segments.remove(&number);
            self.removed.insert(number);
        }
        Some(())
    }

    /// Notes an entry whose payload is damaged, and returns the offsets that it held.
    fn lose(&mut self, entry: &Entry<'_>) -> Option<(LogId, Range<i64>)> {
        let (id, position) = (entry.header.log, entry.position);
        match entry.header.kind {
            Kind::Metadata => self.has_lost_entries |= position >= self.metadata_from,
            Kind::Segments => self.has_lost_entries |= position >= self.position,
            // The log begins earlier than it should.
            Kind::LogStart | Kind::DeleteTopic => {}
            Kind::Batch => {
                let log = self.logs.entry(id).or_default();
                if position < self.position.max(log.complete_to) {
                    return None;
                }
                let base_offset = Fields(&entry.header.batch_prefix).take()?;
                let base_offset = i64::from_be_bytes(base_offset);
                let offsets = claimed_offsets(entry.payload);
                let end = base_offset.checked_add(offsets).filter(|end| *end < i64::MAX)?;
                log.claimed_end = log.claimed_end.max(end);
                log.is_start_known |= base_offset == 0;
                return (base_offset >= log.end).then_some((id, base_offset..end));
            }
        }
        None
    }

    /// Offset after the last that is known to have been given out, and where the log goes on: none
    /// that may have been given out is given out again, so that a consumer that has seen a lost
    /// record does not take another for it.
    pub(super) fn ends_of(&self, log: &SalvagedLog) -> (i64, i64) {
        let seen_to = log.extents.last().map_or(0, |last| last.position).max(log.complete_to);
        let blind = self.blind.iter().filter(|blind| blind.end > seen_to.max(self.position));
        let bytes: u64 = blind.map(|blind| blind.end - blind.start).sum();
        let skipped = i64::try_from(bytes).unwrap_or(i64::MAX).min(OFFSETS_SKIPPED_MAX);
        let end = log.end.max(log.claimed_end).max(log.state.start_offset).min(i64::MAX - 1);
        (end, end.saturating_add(skipped).min(i64::MAX - 1))
    }

    /// A journal position behind everything that is known.
    pub(super) fn end_position(&self) -> u64 {
        let logs = self.logs.values().map(|log| {
            let end = |extent: &Extent| extent.position + u64::from(extent.bytes);
            log.extents.last().map_or(0, end).max(log.complete_to)
        });
        logs.max().unwrap_or(0).max(self.position).max(self.metadata_from).min(POSITION_MAX)
    }
}

/// How many offsets a damaged batch takes: what it says itself if its two counts agree, otherwise
/// one for each of its bytes, which is more than records take.
fn claimed_offsets(payload: &[u8]) -> i64 {
    let field = |at: usize| -> Option<i64> {
        let bytes = payload.get(at..)?.first_chunk()?;
        Some(i64::from(i32::from_be_bytes(*bytes)))
    };
    let by_delta = field(LAST_OFFSET_DELTA).and_then(|delta| delta.checked_add(1));
    match (by_delta, field(RECORDS_COUNT)) {
        (Some(offsets), Some(count)) if offsets == count && count > 0 => offsets,
        _ => i64::try_from(payload.len()).unwrap_or(i64::MAX),
    }
}

/// Where a record batch has its counts.
const LAST_OFFSET_DELTA: usize = 23;
const RECORDS_COUNT: usize = 57;
/// An empty batch, which takes a consumer over the offsets, has an i32 for their number.
const OFFSETS_SKIPPED_MAX: i64 = 1 << 30;
