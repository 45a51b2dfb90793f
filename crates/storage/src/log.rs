//! One partition's log: offsets, producers and epochs over batches that lie in sorted segments and,
//! after them, in the journal.
//!
//! A log's lock is taken before the journal's fill lock, never after, and never while waiting for
//! the disk. The journal thread moves the high watermark without it.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use moldau_records::{BatchView, MarkerBatch, ValidBatch};
use moldau_threads::{Mutex, MutexGuard};

use crate::durable::Lsn;
use crate::epochs::{EpochEnd, LeaderEpochs};
use crate::files::SpaceFor;
use crate::fill::{Fill, TouchedSlot, Unready};
use crate::format::{BATCH_PREFIX_BYTES, EntryHeader, Fields, Kind};
use crate::index::{Extent, Index};
use crate::journal::Journal;
use crate::producers::{Duplicate, Producers};
use crate::segment::Segment;
use crate::sorted::Sorted;
use crate::transactions::Transactions;
use crate::waiter::{Registration, Waiter, Waiters};
use crate::{AppendError, Error, LogId};

/// The log of one partition.
pub struct Log {
    id: LogId,
    journal: Arc<Journal>,
    high_watermark: AtomicI64,
    pub(crate) waiters: Waiters,
    state: Mutex<LogState>,
}

/// What appends and deletions change.
#[derive(Debug, Default)]
pub(crate) struct LogState {
    pub(crate) start_offset: i64,
    /// The batches that lie in sorted segments.
    pub(crate) sorted: Sorted,
    /// The batches after those, which lie in the journal.
    pub(crate) index: Index,
    pub(crate) epochs: LeaderEpochs,
    pub(crate) producers: Producers,
    pub(crate) transactions: Transactions,
    /// Makes everything that was appended to the log durable.
    last_lsn: Lsn,
    noted: TouchedSlot,
    /// First offset that was never cleaned, where the log is compacted.
    pub(crate) dirty_offset: i64,
    pub(crate) is_deleted: bool,
    /// A batch could not be read when it was to be sorted or cleaned: the log stays as it is.
    pub(crate) is_damaged: bool,
}

/// What an append did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Appended {
    /// Offset of the first record.
    pub base_offset: i64,
    /// Offset of the last record.
    pub last_offset: i64,
    /// The records are durable when this is.
    pub lsn: Lsn,
    /// The log held the batch already: the offsets are those of the first time.
    pub is_duplicate: bool,
    /// Log start offset, for the produce response.
    pub start_offset: i64,
}

/// A producer as a log knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProducerState {
    /// Its id.
    pub id: i64,
    /// Its newest epoch.
    pub epoch: i16,
    /// Of its last batch; -1 where its last transaction took it along.
    pub last_sequence: i32,
    /// Of its last batch, in ms since 1970.
    pub last_timestamp: i64,
    /// First offset of its open transaction.
    pub transaction_start: Option<i64>,
}

/// What a deletion of records or an application of retention did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Trimmed {
    /// Log start offset afterwards.
    pub start_offset: i64,
    /// The deletion survives a crash when this is durable.
    pub lsn: Lsn,
}

impl fmt::Debug for Log {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Log").field("id", &self.id).finish_non_exhaustive()
    }
}

impl Log {
    pub(crate) fn new(id: LogId, journal: Arc<Journal>, state: LogState) -> Arc<Log> {
        Arc::new(Log {
            id,
            journal,
            high_watermark: AtomicI64::new(state.index.end_offset()),
            waiters: Waiters::default(),
            state: Mutex::new(state),
        })
    }

    /// Topic and partition.
    pub fn id(&self) -> LogId {
        self.id
    }

    /// Offset of the first record that can be read.
    pub fn start_offset(&self) -> i64 {
        self.state().start_offset
    }

    /// Offset after the last durable record. Nothing at or above it is served.
    pub fn high_watermark(&self) -> i64 {
        self.high_watermark.load(Ordering::Acquire)
    }

    /// Offset that the next record gets.
    pub fn end_offset(&self) -> i64 {
        self.state().index.end_offset()
    }

    /// Bytes of the batches that the log holds.
    pub fn bytes(&self) -> u64 {
        self.state().bytes()
    }

    /// Newest leader epoch in the log.
    pub fn latest_epoch(&self) -> Option<i32> {
        self.state().epochs.latest()
    }

    /// Leader epoch of the record at `offset`.
    pub fn epoch_at(&self, offset: i64) -> Option<i32> {
        self.state().epochs.at(offset)
    }

    /// Where a leader epoch ends, as OffsetForLeaderEpoch asks; the high watermark for the newest.
    pub fn end_of_epoch(&self, leader_epoch: i32) -> EpochEnd {
        self.state().epochs.end_of(leader_epoch, self.high_watermark())
    }

    /// The state. After a panic under its lock, offsets that were or will be returned may be wrong,
    /// so the journal stops.
    fn state(&self) -> MutexGuard<'_, LogState> {
        self.state.lock_whole().unwrap_or_else(|_| {
            let cause = format!("a panic left {:?} half changed", self.id);
            self.journal.poison(&Arc::from(cause.as_str()));
            panic!("{cause}");
        })
    }

    pub(crate) fn journal(&self) -> &Arc<Journal> {
        &self.journal
    }

    /// Runs `look` on the state under the log's lock.
    pub(crate) fn with_state<T>(&self, look: impl FnOnce(&mut LogState) -> T) -> T {
        look(&mut self.state())
    }

    pub(crate) fn advance_high_watermark(&self, end_offset: i64) {
        let before = self.high_watermark.swap(end_offset, Ordering::AcqRel);
        assert!(before <= end_offset, "frames are flushed in the order in which they were filled");
    }

    /// Appends a batch: assigns offsets and the leader epoch, and copies the bytes into the
    /// journal. They are durable when [`Appended::lsn`] is.
    ///
    /// # Errors
    /// See [`AppendError`]. No offset is assigned then.
    pub fn append(
        self: &Arc<Self>,
        batch: &ValidBatch<'_>,
        leader_epoch: i32,
    ) -> Result<Appended, AppendError> {
        self.journal.with_room(|| self.try_append(batch.view(), leader_epoch))
    }

    fn try_append(
        self: &Arc<Self>,
        batch: &BatchView<'_>,
        leader_epoch: i32,
    ) -> Result<Appended, Unready<AppendError>> {
        let bytes = batch.bytes().len();
        let mut state = self.state();
        if state.is_deleted {
            return Err(AppendError::Deleted.into());
        }
        if let Some(duplicate) = state.producers.check(batch)? {
            self.journal.metrics.duplicates.add(1);
            return Ok(state.duplicate(duplicate));
        }
        state.transactions.check(batch)?;
        let state = &mut *state;
        let base_offset = state.index.end_offset();
        let ((), lsn) = self.journal.append(bytes, SpaceFor::Data, |fill| {
            state.push(fill, self.id, batch, leader_epoch);
            fill.touch(self, state.index.end_offset(), &mut state.noted);
        })?;
        state.last_lsn = lsn;
        self.journal.metrics.batches.add(1);
        self.journal.metrics.batch_bytes.add(bytes);
        let last_offset = state.index.end_offset() - 1;
        let start_offset = state.start_offset;
        Ok(Appended { base_offset, last_offset, lsn, is_duplicate: false, start_offset })
    }

    /// Last stable offset: the high watermark, or the first offset of a transaction that is open or
    /// whose end is not durable.
    pub fn last_stable_offset(&self) -> i64 {
        self.state().last_stable_offset(self.high_watermark())
    }

    /// The producers that the log knows, as DescribeProducers shows them.
    pub fn producers(&self) -> Vec<ProducerState> {
        let state = self.state();
        let all = state.producers.all();
        let producers = all.map(|(id, epoch, last_sequence, last_timestamp)| ProducerState {
            id,
            epoch,
            last_sequence,
            last_timestamp,
            transaction_start: state.transactions.first_offset(id),
        });
        producers.collect()
    }

    /// Id and epoch of each producer that has a transaction open in the log.
    pub fn open_transactions(&self) -> Vec<(i64, i16)> {
        let state = self.state();
        let open = state.transactions.open();
        open.map(|id| (id, state.producers.epoch_of(id).unwrap_or(0))).collect()
    }

    /// Locks the log so that it and others end transactions together.
    pub(crate) fn lock_for_markers(&self) -> MutexGuard<'_, LogState> {
        self.state()
    }

    /// Adds a marker to the open frame. The log's lock is held and the frame has room.
    pub(crate) fn push_marker(
        self: &Arc<Self>,
        state: &mut LogState,
        fill: &mut Fill,
        marker: &MarkerBatch,
        leader_epoch: i32,
    ) {
        state.transactions.settle(self.high_watermark());
        state.push(fill, self.id, &marker.view(), leader_epoch);
        fill.touch(self, state.index.end_offset(), &mut state.noted);
        state.last_lsn = Lsn(fill.end());
    }

    /// Registers a waiter that is woken when the high watermark moves, until the registration is
    /// dropped.
    #[must_use]
    pub fn register(self: &Arc<Self>, waiter: &Arc<Waiter>) -> Registration {
        self.waiters.add(waiter);
        Registration { log: Arc::clone(self), waiter: Arc::clone(waiter) }
    }

    /// Moves the log start offset to `before`, or to the high watermark for -1, as DeleteRecords
    /// asks. An offset below the log start changes nothing.
    ///
    /// # Errors
    /// [`Error::OffsetOutOfRange`] above the high watermark, [`Error::Deleted`],
    /// [`Error::DiskFull`], [`Error::Poisoned`].
    pub fn delete_records(&self, before: i64) -> Result<Trimmed, Error> {
        let high_watermark = self.high_watermark();
        let before = if before == -1 { high_watermark } else { before };
        self.journal.with_room(|| {
            let mut state = self.state();
            if before < 0 || before > high_watermark {
                let (start, end) = (state.start_offset, high_watermark);
                return Err(Error::OffsetOutOfRange { start, end }.into());
            }
            self.trim(&mut state, before)
        })
    }

    /// Deletes whole batches from the start of the log: those whose newest record is older than
    /// `retention_ms`, and as many as can go while at least `retention_bytes` remain, as
    /// `retention.ms` and `retention.bytes` ask. Of what is sorted, whole blocks of up to 1 MiB.
    ///
    /// # Errors
    /// As [`Log::delete_records`].
    pub fn apply_retention(
        &self,
        now_ms: i64,
        retention_ms: Option<i64>,
        retention_bytes: Option<u64>,
    ) -> Result<Trimmed, Error> {
        self.journal.with_room(|| self.try_apply_retention(now_ms, retention_ms, retention_bytes))
    }

    fn try_apply_retention(
        &self,
        now_ms: i64,
        retention_ms: Option<i64>,
        retention_bytes: Option<u64>,
    ) -> Result<Trimmed, Unready<Error>> {
        let mut state = self.state();
        // What is not decided yet stays.
        let stable = state.last_stable_offset(self.high_watermark());
        let mut bytes = state.bytes();
        let mut start_offset = state.start_offset;
        for step in state.steps_from(start_offset) {
            let is_old =
                retention_ms.is_some_and(|limit| now_ms.saturating_sub(step.max_timestamp) > limit);
            let rest = bytes.saturating_sub(step.bytes);
            let is_over = retention_bytes.is_some_and(|limit| rest >= limit);
            if !(is_old || is_over) || step.next_offset > stable {
                break;
            }
            bytes = rest;
            start_offset = step.next_offset;
        }
        self.trim(&mut state, start_offset)
    }

    fn trim(&self, state: &mut LogState, start_offset: i64) -> Result<Trimmed, Unready<Error>> {
        if state.is_deleted {
            return Err(Error::Deleted.into());
        }
        if start_offset > state.start_offset {
            let payload = start_offset.to_le_bytes();
            let appended = self.journal.try_append_entry(Kind::LogStart, self.id, &payload);
            let lsn = appended.map_err(Unready::into_error)?;
            state.last_lsn = lsn;
            state.trim_to(start_offset);
            self.journal.upkeep.want();
        }
        Ok(Trimmed { start_offset: state.start_offset, lsn: state.last_lsn })
    }

    /// Forgets idempotent producers whose last batch is older than `expiration_ms`.
    pub fn expire_producers(&self, now_ms: i64, expiration_ms: i64) {
        let state = &mut *self.state();
        state.producers.expire(now_ms, expiration_ms, &state.transactions);
    }

    /// Refuses all further appends and reads.
    pub(crate) fn mark_deleted(&self) {
        let mut state = self.state();
        state.is_deleted = true;
        state.sorted.clear();
        drop(state);
        self.waiters.wake();
    }

    /// Takes up a run of a segment in place of what it was made from.
    pub(crate) fn install(&self, segment: &Arc<Segment>, at: usize) {
        let mut state = self.state();
        if !state.is_deleted {
            state.install(segment, at);
            let start_offset = state.start_offset;
            state.sorted.trim_to(start_offset);
        }
    }
}

/// A part of a log that retention deletes as a whole.
pub(crate) struct Step {
    pub(crate) next_offset: i64,
    pub(crate) bytes: u64,
    pub(crate) max_timestamp: i64,
}

impl LogState {
    /// Adds a batch to the open frame and to all that is known of the log.
    fn push(&mut self, fill: &mut Fill, log: LogId, batch: &BatchView<'_>, leader_epoch: i32) {
        let base_offset = self.index.end_offset();
        let (head, tail) = batch
            .bytes()
            .split_first_chunk::<BATCH_PREFIX_BYTES>()
            .expect("a batch is at least its header of 61 bytes");
        let mut head = *head;
        head[..8].copy_from_slice(&base_offset.to_be_bytes());
        head[12..].copy_from_slice(&leader_epoch.to_be_bytes());
        let bytes = u32::try_from(batch.bytes().len()).expect("a batch length is an i32");
        let header = EntryHeader {
            kind: Kind::Batch,
            payload_bytes: bytes,
            log,
            payload_crc: 0,
            batch_prefix: head,
        };
        let position = fill.push(&header, &head, tail);
        self.note(batch, base_offset, leader_epoch, position);
    }

    /// Takes up a batch that lies at `position`, from an append or from recovery.
    pub(crate) fn note(
        &mut self,
        batch: &BatchView<'_>,
        base_offset: i64,
        leader_epoch: i32,
        position: u64,
    ) {
        self.epochs.assign(leader_epoch, base_offset);
        self.producers.record(batch, base_offset, &self.transactions);
        self.transactions.note(batch, base_offset);
        self.index.push(extent_of(batch, base_offset, position));
    }

    /// Drops what lies below a start offset.
    pub(crate) fn trim_to(&mut self, start_offset: i64) {
        self.start_offset = start_offset;
        self.sorted.trim_to(start_offset);
        self.index.trim_to(start_offset);
        self.epochs.trim_to(start_offset);
        self.transactions.trim_to(start_offset);
    }

    pub(crate) fn install(&mut self, segment: &Arc<Segment>, at: usize) {
        let end = self.sorted.install(segment, at);
        self.index.trim_to(end);
    }

    pub(crate) fn last_stable_offset(&mut self, high_watermark: i64) -> i64 {
        self.transactions.last_stable_offset(self.start_offset, high_watermark)
    }

    /// First offset that the log's runs and batches account for.
    pub(crate) fn base_offset(&self) -> i64 {
        self.sorted.base_offset().unwrap_or_else(|| {
            self.index.iter().next().map_or(self.start_offset, |first| first.base_offset)
        })
    }

    /// Where the journal's batches begin.
    pub(crate) fn sorted_end(&self) -> i64 {
        self.sorted.end_offset().unwrap_or(0)
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.sorted.bytes_from(self.start_offset) + self.index.bytes()
    }

    pub(crate) fn steps_from(&self, offset: i64) -> impl Iterator<Item = Step> {
        let sorted = self.sorted.pieces_from(offset).map(|piece| Step {
            next_offset: piece.next_offset,
            bytes: piece.bytes() as u64,
            max_timestamp: piece.max_timestamp,
        });
        sorted.chain(self.index.iter().map(|extent| Step {
            next_offset: extent.next_offset,
            bytes: u64::from(extent.bytes),
            max_timestamp: extent.max_timestamp,
        }))
    }

    /// Whether every offset from the log start to the log end is accounted for.
    pub(crate) fn is_whole(&self) -> bool {
        let sorted_end = self.sorted.end_offset().unwrap_or(self.start_offset);
        let end = self.index.end_offset();
        let first = self.index.iter().next().map_or(end, |first| first.base_offset);
        self.sorted.is_gapless(self.start_offset)
            && first <= sorted_end.max(self.start_offset)
            && sorted_end <= end
    }

    /// Whether nothing was ever written to the log.
    pub(crate) fn is_pristine(&self) -> bool {
        self.index.end_offset() == 0
    }

    fn duplicate(&self, duplicate: Duplicate) -> Appended {
        Appended {
            base_offset: duplicate.base_offset,
            last_offset: duplicate.last_offset,
            lsn: self.last_lsn,
            is_duplicate: true,
            start_offset: self.start_offset,
        }
    }

    /// Appends to `out` what `checkpoint` says of a log, apart from its name.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.start_offset.to_le_bytes());
        out.extend_from_slice(&self.dirty_offset.to_le_bytes());
        self.index.encode(out);
        self.epochs.encode(out);
        self.producers.encode(out);
        self.transactions.encode(out);
    }

    /// As [`LogState::encode`], of a log with these offsets that has nothing in the journal.
    pub(crate) fn encode_sorted(&self, offsets: Range<i64>, out: &mut Vec<u8>) {
        let (mut index, mut epochs) = (Index::default(), self.epochs.clone());
        index.start_at(offsets.end);
        epochs.trim_to(offsets.start);
        out.extend_from_slice(&offsets.start.to_le_bytes());
        out.extend_from_slice(&self.dirty_offset.to_le_bytes());
        index.encode(out);
        epochs.encode(out);
        self.producers.encode(out);
        self.transactions.encode(out);
    }

    /// Reads what [`LogState::encode`] wrote.
    pub(crate) fn decode(fields: &mut Fields<'_>) -> Option<LogState> {
        let start_offset = fields.i64()?;
        let dirty_offset = fields.i64()?;
        let index = Index::decode(fields)?;
        let epochs = LeaderEpochs::decode(fields)?;
        let producers = Producers::decode(fields)?;
        let transactions = Transactions::decode(fields)?;
        let state = LogState::default();
        let known = LogState { start_offset, dirty_offset, index, epochs, ..state };
        Some(LogState { producers, transactions, ..known })
    }
}

pub(crate) fn extent_of(batch: &BatchView<'_>, base_offset: i64, position: u64) -> Extent {
    Extent {
        base_offset,
        next_offset: base_offset + i64::from(batch.last_offset_delta()) + 1,
        position,
        bytes: u32::try_from(batch.bytes().len()).expect("a batch length is an i32"),
        max_timestamp: batch.max_timestamp(),
    }
}
