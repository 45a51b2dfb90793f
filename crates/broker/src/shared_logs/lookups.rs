//! Records of a cluster's log by their time, and the deletion of records.

use std::sync::Arc;

use moldau_cluster::{Extent, Find, Sequencer, Store};
use moldau_records::{Decompressor, iter_batches};

use super::SharedLog;
use crate::logs::{Error, Lsn, TimeLookup, TimestampOffset, Trimmed};

/// A batch that unpacks to more than this is not searched for a timestamp.
const UNPACKED_BYTES_MAX: usize = 256 << 20;

/// Extents of one step of a search for the largest timestamp.
const EXTENTS_PER_STEP: i64 = 1_000;

impl<Q: Sequencer, S: Store> SharedLog<Q, S> {
    pub(super) async fn look_up(
        &self,
        lookup: TimeLookup,
    ) -> Result<Option<TimestampOffset>, Error> {
        let timestamp = match lookup {
            TimeLookup::NotBefore(timestamp, _) => timestamp,
            TimeLookup::Largest => match self.largest_timestamp().await? {
                Some(largest) => largest,
                None => return Ok(None),
            },
        };
        let mut from = None;
        loop {
            let found = self.parts.sequencer.find_time(self.id, timestamp).await;
            let found = found.map_err(|error| away(&error))?;
            let Some(extent) = found.filter(|extent| from.is_none_or(|at| extent.base_offset > at))
            else {
                return Ok(None);
            };
            if let Some(found) = self.search(&extent, timestamp).await? {
                return Ok(Some(found));
            }
            from = Some(extent.base_offset);
        }
    }

    /// The first record of an extent at or after a time.
    async fn search(
        &self,
        extent: &Extent,
        timestamp: i64,
    ) -> Result<Option<TimestampOffset>, Error> {
        self.refresh().await?;
        let start_offset = self.known.lock().start_offset;
        let from = extent.base_offset.max(start_offset);
        let bytes = usize::try_from(extent.size).unwrap_or(usize::MAX);
        let records = match self.parts.reader.read(self.id, from, bytes).await {
            Ok(records) => records,
            Err(error) => return Err(self.read_error(error).await),
        };
        for view in records.batches.iter().flat_map(|range| iter_batches(range).flatten()) {
            if view.max_timestamp() < timestamp {
                continue;
            }
            let mut decompressor = Decompressor::default();
            let Ok(records) = view.records(&mut decompressor, UNPACKED_BYTES_MAX) else { continue };
            let leader_epoch = view.partition_leader_epoch();
            let mut records = records.map_while(Result::ok);
            let found =
                records.find(|it| it.offset() >= start_offset && it.timestamp() >= timestamp);
            if let Some(record) = found {
                let (offset, timestamp) = (record.offset(), record.timestamp());
                return Ok(Some(TimestampOffset { offset, timestamp, leader_epoch }));
            }
        }
        Ok(None)
    }

    /// The largest timestamp of the log's extents.
    async fn largest_timestamp(&self) -> Result<Option<i64>, Error> {
        self.refresh().await?;
        let (mut offset, end) = {
            let known = self.known.lock();
            (known.start_offset, known.high_watermark)
        };
        let mut largest = None;
        while offset < end {
            let find = Find { log: self.id, offset, extents_max: EXTENTS_PER_STEP };
            let found = self.parts.sequencer.find(&[find]).await.map_err(|error| away(&error))?;
            let Some(found) = found.into_iter().next().flatten() else {
                return Err(Error::Deleted);
            };
            largest = largest.max(found.extents.iter().map(|extent| extent.max_timestamp).max());
            let Some(last) = found.extents.last() else { break };
            offset = last.last_offset + 1;
        }
        Ok(largest)
    }

    pub(super) async fn delete_records(self: Arc<Self>, before: i64) -> Result<Trimmed, Error> {
        match self.parts.sequencer.trim(self.id, before).await {
            Ok(start_offset) => {
                self.refresh().await?;
                Ok(Trimmed { start_offset, lsn: Lsn::default() })
            }
            Err(error) => Err(self.read_error(error).await),
        }
    }
}

fn away(error: &moldau_cluster::Error) -> Error {
    tracing::warn!(%error, "failed to look up records by time");
    Error::Closed
}
