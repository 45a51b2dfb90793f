//! Appends that belong together: bytes of the owner and markers of several logs in one frame.

use std::collections::BTreeMap;
use std::sync::Arc;

use moldau_records::MarkerBatch;

use crate::files::SpaceFor;
use crate::fill::Unready;
use crate::format::{ENTRY_HEADER_BYTES, Kind};
use crate::journal::{Journal, metadata_header};
use crate::{AppendError, Log, LogId, Lsn};

/// A marker and the log that gets it.
#[derive(Debug, Clone)]
pub struct LogMarker {
    /// The log.
    pub log: Arc<Log>,
    /// The marker.
    pub batch: MarkerBatch,
}

impl Journal {
    /// As [`crate::Storage::append_together`] has it.
    pub(crate) fn append_together(
        &self,
        metadata: &[Vec<u8>],
        markers: &[LogMarker],
        leader_epoch: i32,
    ) -> Result<Lsn, AppendError> {
        // Locks are taken in one order, so that no two of these wait for each other.
        let by_log: BTreeMap<LogId, &LogMarker> =
            markers.iter().map(|marker| (marker.log.id(), marker)).collect();
        assert_eq!(by_log.len(), markers.len(), "a log gets one marker at a time");
        self.with_room(|| self.try_append_together(metadata, &by_log, leader_epoch))
    }

    fn try_append_together(
        &self,
        metadata: &[Vec<u8>],
        by_log: &BTreeMap<LogId, &LogMarker>,
        leader_epoch: i32,
    ) -> Result<Lsn, Unready<AppendError>> {
        let mut locked: Vec<_> =
            by_log.values().map(|marker| (marker, marker.log.lock_for_markers())).collect();
        locked.retain(|(marker, state)| {
            let producer = marker.batch.view().producer_id();
            !state.is_deleted && state.transactions.is_open(producer)
        });
        let markers = locked.iter().map(|(marker, _)| marker.batch.view().bytes().len());
        let payloads = metadata.iter().map(Vec::len).chain(markers);
        let bytes: usize = payloads.map(|payload| payload + ENTRY_HEADER_BYTES).sum();
        let ((), lsn) =
            self.append(bytes.saturating_sub(ENTRY_HEADER_BYTES), SpaceFor::Metadata, |fill| {
                for payload in metadata {
                    let header = metadata_header(Kind::Metadata, LogId::default(), payload);
                    fill.push(&header, payload, &[]);
                }
                for (marker, state) in &mut locked {
                    marker.log.push_marker(state, fill, &marker.batch, leader_epoch);
                }
            })?;
        self.metrics.metadata_entries.add(metadata.len());
        self.metrics.batches.add(locked.len());
        Ok(lsn)
    }
}
