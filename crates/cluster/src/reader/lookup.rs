//! Records by time.

use bytes::Bytes;
use moldau_records::{Decompressor, iter_batches};

use crate::Error;
use crate::sequencer::{Answer, Extent, Find, LogId, Sequencer};
use crate::store::Store;

use super::{EXTENTS_MAX, LOOKUPS_MAX, LOST, Reader};

/// What is looked for by time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lookup {
    /// The first record with at least this timestamp, in ms.
    NotBefore(i64),
    /// As [`Lookup::NotBefore`], below the last stable offset.
    CommittedNotBefore(i64),
    /// The first record with the greatest timestamp (KIP-734).
    Latest,
}

/// Where a record is, and when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimedRecord {
    /// Its offset.
    pub offset: i64,
    /// Its timestamp in ms.
    pub timestamp: i64,
    /// Leader epoch of its batch.
    pub leader_epoch: i32,
}

impl<Q: Sequencer, S: Store> Reader<Q, S> {
    /// Finds a record by time; `None` if there is none.
    ///
    /// # Errors
    /// As [`Reader::read`].
    pub async fn look_up(&self, log: LogId, lookup: Lookup) -> Answer<Option<TimedRecord>> {
        let mut missing = None;
        for _ in 0..LOOKUPS_MAX {
            match self.look_up_once(log, lookup).await {
                // The extents were trimmed or swapped after the lookup.
                Err(Error::ObjectMissing(key)) => missing = Some(key),
                answer => return self.metrics.note(answer),
            }
        }
        let key = missing.expect("a lookup ends, or misses an object");
        self.metrics.note(Err(Error::Damaged { key, reason: LOST }))
    }

    async fn look_up_once(&self, log: LogId, lookup: Lookup) -> Answer<Option<TimedRecord>> {
        let found = self.find(Find { log, offset: 0, extents_max: 0 }).await?;
        let start = found.start_offset;
        match lookup {
            Lookup::Latest => self.latest(log, start).await,
            Lookup::NotBefore(timestamp) => self.not_before(log, timestamp, start, i64::MAX).await,
            Lookup::CommittedNotBefore(timestamp) => {
                self.not_before(log, timestamp, start, found.last_stable_offset).await
            }
        }
    }

    async fn not_before(
        &self,
        log: LogId,
        timestamp: i64,
        start: i64,
        end: i64,
    ) -> Answer<Option<TimedRecord>> {
        let mut extents: Vec<Extent> =
            self.sequencer.find_time(log, timestamp).await?.into_iter().collect();
        // An extent may owe its timestamp to a record below the start offset, or to a header that
        // claims more than its records have: then the search goes on behind.
        while let Some(last) = extents.last().copied() {
            for extent in extents {
                if extent.base_offset >= end {
                    return Ok(None);
                }
                if extent.max_timestamp < timestamp {
                    continue;
                }
                let first = self.first(&extent, |record| {
                    record.offset >= start && record.timestamp >= timestamp
                });
                if let Some(found) = first.await? {
                    return Ok(Some(found).filter(|found| found.offset < end));
                }
            }
            let find = Find { log, offset: last.last_offset + 1, extents_max: EXTENTS_MAX };
            extents = self.find(find).await?.extents;
        }
        Ok(None)
    }

    async fn latest(&self, log: LogId, start: i64) -> Answer<Option<TimedRecord>> {
        let find = Find { log, offset: start, extents_max: 1 };
        let first = self.find(find).await?.extents.pop();
        let cut = first.filter(|extent| extent.base_offset < start);
        let whole = self.sequencer.find_latest(log).await?;
        let mut latest: Option<TimedRecord> = None;
        for extent in [cut, whole].into_iter().flatten() {
            let all = self.first(&extent, |record| {
                let is_later = latest.is_none_or(|latest| record.timestamp > latest.timestamp);
                if record.offset >= start && is_later {
                    latest = Some(record);
                }
                false
            });
            all.await?;
        }
        Ok(latest)
    }

    /// The first record of an extent that the caller takes.
    async fn first(
        &self,
        extent: &Extent,
        takes: impl FnMut(TimedRecord) -> bool,
    ) -> Answer<Option<TimedRecord>> {
        let size = usize::try_from(extent.size).unwrap_or(usize::MAX);
        Ok(first_record(&self.extent(extent, size).await?, takes))
    }
}

/// What cannot be unpacked has no records.
fn first_record(bytes: &Bytes, mut takes: impl FnMut(TimedRecord) -> bool) -> Option<TimedRecord> {
    for batch in iter_batches(bytes).flatten() {
        let mut decompressor = Decompressor::default();
        let Ok(records) = batch.records(&mut decompressor, DECOMPRESSED_BYTES_MAX) else {
            continue;
        };
        for record in records.map_while(Result::ok) {
            let (offset, timestamp) = (record.offset(), record.timestamp());
            let leader_epoch = batch.partition_leader_epoch();
            let found = TimedRecord { offset, timestamp, leader_epoch };
            if takes(found) {
                return Some(found);
            }
        }
    }
    None
}

/// A batch that unpacks to more than this is not searched for a timestamp.
const DECOMPRESSED_BYTES_MAX: usize = 256 << 20;
