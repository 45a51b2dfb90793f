//! Finding a record by its timestamp.

use std::sync::Arc;

use bytes::Bytes;
use moldau_records::Decompressor;

use crate::log::LogState;
use crate::{Error, Log, ReadOutcome};

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
    next_offset: i64,
    bytes: usize,
}

impl Log {
    /// The first record with a timestamp of at least `timestamp`, as ListOffsets asks; `None` if
    /// there is none below the high watermark.
    ///
    /// # Errors
    /// As [`crate::PendingRead`].
    pub async fn offset_for_timestamp(
        self: &Arc<Self>,
        timestamp: i64,
    ) -> Result<Option<TimestampOffset>, Error> {
        let mut searched_to = i64::MIN;
        loop {
            // A header may claim a later timestamp than its records have, and a block than those of
            // its batches that belong to the log: then the search goes on behind.
            let found = self.with_state(|state| candidate(state, searched_to, timestamp));
            let Some(found) = found.filter(|found| found.next_offset <= self.high_watermark())
            else {
                return Ok(None);
            };
            let start_offset = self.start_offset();
            let outcome = self.read(found.from.max(start_offset), found.bytes, true)?;
            let read = match outcome {
                ReadOutcome::Ready(read) => read,
                ReadOutcome::Pending(pending) => pending.await?,
            };
            let matching = record_of(&read.batches, |offset, record_timestamp| {
                offset >= start_offset && record_timestamp >= timestamp
            });
            if let Some(found) = matching {
                return Ok(Some(found));
            }
            searched_to = read.next_offset.max(found.from + 1);
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
            // What claimed the largest timestamp may have been deleted from the front of a block.
            let Some(largest) = largest else { return Ok(None) };
            if let Some(found) = self.offset_for_timestamp(largest).await? {
                return Ok(Some(found));
            }
            bound = largest;
        }
    }
}

fn candidate(state: &LogState, searched_to: i64, timestamp: i64) -> Option<Candidate> {
    let from = searched_to.max(state.start_offset);
    let mut pieces = state.sorted.pieces_from(from);
    if let Some(piece) = pieces.find(|piece| piece.max_timestamp >= timestamp) {
        return Some(Candidate {
            from: piece.base_offset.max(from),
            next_offset: piece.next_offset,
            bytes: piece.bytes(),
        });
    }
    let from = from.max(state.sorted_end());
    let found = state.index.first_with_timestamp(timestamp);
    let found = found.filter(|found| found.base_offset >= from).or_else(|| {
        let mut rest = state.index.starting_at(from);
        rest.find(|extent| extent.next_offset > from && extent.max_timestamp >= timestamp)
    })?;
    Some(Candidate { from: found.base_offset, next_offset: found.next_offset, bytes: 0 })
}

fn record_of(
    batches: &[Bytes],
    mut matches: impl FnMut(i64, i64) -> bool,
) -> Option<TimestampOffset> {
    let bytes = batches.concat();
    for view in moldau_records::iter_batches(&bytes).flatten() {
        let mut decompressor = Decompressor::default();
        let Ok(records) = view.records(&mut decompressor, DECOMPRESSED_BYTES_MAX) else { continue };
        for record in records {
            let Ok(record) = record else { break };
            if matches(record.offset(), record.timestamp()) {
                let (offset, timestamp) = (record.offset(), record.timestamp());
                let leader_epoch = view.partition_leader_epoch();
                return Some(TimestampOffset { offset, timestamp, leader_epoch });
            }
        }
    }
    None
}

/// A batch that unpacks to more than this is not searched for a timestamp.
const DECOMPRESSED_BYTES_MAX: usize = 256 << 20;
