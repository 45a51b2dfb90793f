//! What the logs of a cluster know of transactions, and the markers that end them.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use moldau_cluster::{
    AppendBatch, Error, LogId, Marker, OpenTransaction, Outcome, Part, ProducerBatch, Refusal,
    Sequencer, Store,
};
use moldau_coordinator::transactions::{Outcome as End, Unmarked};
use moldau_protocol::Uuid;
use moldau_records::{Marker as MarkerType, MarkerBatch};

use super::{ANY_EPOCH, Parts};
use crate::logs::{self, OpenTransactions};

/// Open transactions that are listed at a time.
const TRANSACTIONS_PER_LOOK: i64 = 10_000;

/// The sequence of a marker, which has none.
const NO_SEQUENCE: i32 = -1;

impl<Q: Sequencer, S: Store> Parts<Q, S> {
    pub(super) async fn fence(
        self: Arc<Self>,
        producer_id: i64,
        epoch: i16,
    ) -> Result<Vec<(Uuid, i32)>, logs::Error> {
        let open = self.asked(self.sequencer.fence(producer_id, epoch).await)?;
        Ok(open.into_iter().map(partition_of).collect())
    }

    pub(super) async fn open_transactions(
        self: Arc<Self>,
    ) -> Result<OpenTransactions, logs::Error> {
        let mut open: OpenTransactions = BTreeMap::new();
        let mut after: Option<OpenTransaction> = None;
        loop {
            let found = self.sequencer.open_transactions(after, TRANSACTIONS_PER_LOOK).await;
            let found = self.asked(found)?;
            let Some(last) = found.last() else { return Ok(open) };
            after = Some(*last);
            for OpenTransaction { producer_id, log } in found {
                open.entry(producer_id).or_default().push(partition_of(log));
            }
        }
    }

    /// Writes the markers of a decision in one object.
    pub(super) async fn mark(
        self: Arc<Self>,
        unmarked: Unmarked,
        now_ms: i64,
    ) -> Result<(), logs::Error> {
        let Unmarked { decision, outcome, producer, partitions } = unmarked;
        let marker_type = match outcome {
            End::Abort => MarkerType::Abort,
            End::Commit => MarkerType::Commit,
        };
        let batch = MarkerBatch::new(producer.id, producer.epoch, marker_type, now_ms);
        let bytes = Bytes::copy_from_slice(batch.view().bytes());
        let append = |(topic, partition): (Uuid, i32)| AppendBatch {
            log: LogId { topic: uuid::Uuid::from_bytes(topic.into_bytes()), partition },
            leader_epoch: ANY_EPOCH,
            offsets_count: 1,
            max_timestamp: now_ms,
            producer: Some(ProducerBatch {
                id: producer.id,
                epoch: producer.epoch,
                first_sequence: NO_SEQUENCE,
                last_sequence: NO_SEQUENCE,
            }),
            part: Part::Marker(Marker { commits: outcome == End::Commit, decision }),
            bytes: bytes.clone(),
        };
        let appends = partitions.iter().copied().map(append).collect();
        let pending = self.asked(self.writer.append(appends))?;
        let outcomes = self.asked(pending.outcomes().await)?;
        for (outcome, (topic, partition)) in outcomes.iter().zip(&partitions) {
            match outcome {
                Outcome::Appended { .. }
                | Outcome::Duplicate { .. }
                // The topic was deleted.
                | Outcome::Refused(Refusal::UnknownTopicOrPartition) => {}
                // No later marker of the producer can be there before this one.
                Outcome::Refused(refusal) => {
                    tracing::error!(%topic, partition, ?refusal, "a log refused a marker");
                }
            }
        }
        Ok(())
    }

    fn asked<T>(&self, answer: Result<T, Error>) -> Result<T, logs::Error> {
        let answer = self.troubles.note("ask the logs of the cluster about transactions", answer);
        answer.map_err(|_away| logs::Error::Closed)
    }
}

fn partition_of(log: LogId) -> (Uuid, i32) {
    (Uuid::from_bytes(log.topic.into_bytes()), log.partition)
}
