//! Finding a record by its timestamp.

use std::sync::Arc;

use bytes::Bytes;
use moldau_records::Decompressor;

use crate::log::LogState;
use crate::{Error, Isolation, Log, ReadOutcome};

/// Answer to a lookup by timestamp.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimestampOffset {
    /// Offset of the record.
    pub offset: i64,
    /// Its timestamp in ms since 1970.
    pub timestamp: i64,
    /// Leader epoch of its batch.
    pub leader_epoch: i32,
}

/// Batches that may hold a record with a timestamp.
struct Candidate {
    from: i64,
    bytes: usize,
}

impl Log {
    /// The first record with a timestamp of at least `timestamp`, as ListOffsets asks; `None` if
    /// there is none that a reader of this isolation is to see.
    ///
    /// # Errors
    /// As [`crate::PendingRead`].
    pub async fn offset_for_timestamp(
        self: &Arc<Self>,
        timestamp: i64,
        isolation: Isolation,
    ) -> Result<Option<TimestampOffset>, Error> {
        let mut first = None;
        self.search(timestamp, isolation, |found| {
            first = Some(found);
            true
        })
        .await?;
        Ok(first)
    }

    /// Gives the records with a timestamp of at least `timestamp` in order of offset, until `take`
    /// says that it is enough.
    async fn search(
        self: &Arc<Self>,
        timestamp: i64,
        isolation: Isolation,
        mut take: impl FnMut(TimestampOffset) -> bool,
    ) -> Result<(), Error> {
        let mut searched_to = i64::MIN;
        loop {
            // A header may claim a later timestamp than its records have, and a block than those of
            // its batches that belong to the log: then the search goes on behind.
            let found = self.with_state(|state| candidate(state, searched_to, timestamp));
            let end = self.end_for(isolation);
            let Some(found) = found.filter(|found| found.from < end) else { return Ok(()) };
            let start_offset = self.start_offset();
            let from = found.from.max(start_offset);
            let outcome = self.read_isolated(from, found.bytes, true, isolation)?;
            let read = match outcome {
                ReadOutcome::Ready(read) => read,
                ReadOutcome::Pending(pending) => pending.await?,
            };
            let is_enough = any_record(&read.batches, |found| {
                found.offset >= start_offset && found.timestamp >= timestamp && take(found)
            });
            // Nothing is read where the rest is not to be seen.
            if is_enough || read.batches.is_empty() {
                return Ok(());
            }
            searched_to = read.next_offset.max(found.from + 1);
        }
    }

    /// Offset after the last record that a reader of this isolation is to see.
    pub fn end_for(&self, isolation: Isolation) -> i64 {
        match isolation {
            Isolation::ReadUncommitted => self.high_watermark(),
            Isolation::ReadCommitted => self.last_stable_offset(),
        }
    }

    /// The first record with the largest timestamp of the log (KIP-734); `None` if the log is
    /// empty.
    ///
    /// # Errors
    /// As [`crate::PendingRead`].
    pub async fn offset_of_max_timestamp(
        self: &Arc<Self>,
    ) -> Result<Option<TimestampOffset>, Error> {
        let high_watermark = self.high_watermark();
        let mut bound = i64::MAX;
        loop {
            let largest = self.with_state(|state| {
                let sorted = state.sorted.max_timestamp(state.start_offset, bound);
                sorted.max(state.index.max_timestamp(high_watermark, bound))
            });
            let (largest, latest_possible) = match (largest, bound) {
                (Some(largest), i64::MAX) => (largest, largest),
                // No record is as late as the claims that were found to be false.
                (Some(largest), _) => (largest, bound - 1),
                (None, i64::MAX | i64::MIN) => return Ok(None),
                // All claims were false: the records are older than any of them.
                (None, _) => (i64::MIN, bound - 1),
            };
            let mut latest: Option<TimestampOffset> = None;
            self.search(largest, Isolation::ReadUncommitted, |found| {
                if latest.is_none_or(|latest| found.timestamp > latest.timestamp) {
                    latest = Some(found);
                }
                found.timestamp >= latest_possible
            })
            .await?;
            // What claimed the largest timestamp may have been deleted or cleaned away.
            if latest.is_some() {
                return Ok(latest);
            }
            bound = largest;
        }
    }
}

fn candidate(state: &LogState, searched_to: i64, timestamp: i64) -> Option<Candidate> {
    let from = searched_to.max(state.start_offset);
    let mut pieces = state.sorted.pieces_from(from);
    if let Some(piece) = pieces.find(|piece| piece.max_timestamp >= timestamp) {
        return Some(Candidate { from: piece.base_offset.max(from), bytes: piece.bytes() });
    }
    let from = from.max(state.sorted_end());
    let found = state.index.first_with_timestamp(timestamp);
    let found = found.filter(|found| found.base_offset >= from).or_else(|| {
        let mut rest = state.index.starting_at(from);
        rest.find(|extent| extent.next_offset > from && extent.max_timestamp >= timestamp)
    })?;
    Some(Candidate { from: found.base_offset, bytes: 0 })
}

/// Whether `is_enough` says so of a record.
fn any_record(batches: &[Bytes], mut is_enough: impl FnMut(TimestampOffset) -> bool) -> bool {
    let bytes = batches.concat();
    for view in moldau_records::iter_batches(&bytes).flatten() {
        let mut decompressor = Decompressor::default();
        let Ok(records) = view.records(&mut decompressor, DECOMPRESSED_BYTES_MAX) else { continue };
        for record in records {
            let Ok(record) = record else { break };
            let (offset, timestamp) = (record.offset(), record.timestamp());
            let leader_epoch = view.partition_leader_epoch();
            if is_enough(TimestampOffset { offset, timestamp, leader_epoch }) {
                return true;
            }
        }
    }
    false
}

/// A batch that unpacks to more than this is not searched for a timestamp.
const DECOMPRESSED_BYTES_MAX: usize = 256 << 20;
