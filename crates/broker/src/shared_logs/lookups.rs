//! Records of a cluster's log by their time, its producers, and the deletion of records.

use std::sync::Arc;

use moldau_cluster::{Lookup, Sequencer, Store};

use super::SharedLog;
use crate::logs::{Error, Isolation, Lsn, ProducerState, TimeLookup, TimestampOffset, Trimmed};

impl<Q: Sequencer, S: Store> SharedLog<Q, S> {
    pub(super) async fn look_up(
        self: Arc<Self>,
        lookup: TimeLookup,
    ) -> Result<Option<TimestampOffset>, Error> {
        let lookup = match lookup {
            TimeLookup::NotBefore(timestamp, Isolation::ReadUncommitted) => {
                Lookup::NotBefore(timestamp)
            }
            TimeLookup::NotBefore(timestamp, Isolation::ReadCommitted) => {
                Lookup::CommittedNotBefore(timestamp)
            }
            TimeLookup::Largest => Lookup::Latest,
        };
        match self.parts.reader.look_up(self.id, lookup).await {
            Ok(found) => Ok(found.map(|record| TimestampOffset {
                offset: record.offset,
                timestamp: record.timestamp,
                leader_epoch: record.leader_epoch,
            })),
            Err(error) => Err(self.read_error(error).await),
        }
    }

    pub(super) async fn producers(self: Arc<Self>) -> Result<Vec<ProducerState>, Error> {
        match self.parts.sequencer.producers(self.id).await {
            Ok(known) => Ok(known
                .into_iter()
                .map(|known| ProducerState {
                    id: known.id,
                    epoch: known.epoch,
                    last_sequence: known.last_sequence,
                    last_timestamp: known.last_timestamp,
                    transaction_start: known.transaction_start,
                })
                .collect()),
            Err(error) => Err(self.read_error(error).await),
        }
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
