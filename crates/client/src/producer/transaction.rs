//! Transactions: records of several partitions that readers of committed records get together or
//! not at all (KIP-98).
//!
//! Which partitions take part is said beforehand, so that nothing is sent to one that the
//! coordinator does not know of. The form of KIP-890, in which brokers find out by themselves, is
//! not used: clusters without it take this one as well.

use std::collections::BTreeMap;
use std::sync::Arc;

use moldau_protocol::messages::add_partitions_to_txn_request::AddPartitionsToTxnTopic;
use moldau_protocol::messages::{
    AddPartitionsToTxnRequest, AddPartitionsToTxnResponse, EndTxnRequest,
};
use moldau_protocol::{ErrorCode, Request, VersionRange};

use super::accumulator::Accumulator;
use super::ids::{self, ask};
use super::partition::ProducerId;
use super::plan::Transaction;
use super::{PartitionHandle, Producer, Shared};
use crate::{Error, Result};

/// Versions before KIP-890 made the client's part another one.
const ADD_PARTITIONS_VERSIONS: VersionRange = VersionRange::new(0, 3);
const END_VERSIONS: VersionRange = VersionRange::new(0, 4);

impl Producer {
    /// Begins a transaction over these partitions.
    ///
    /// # Errors
    /// [`Error::NoTransaction`] without a transactional id, or when one is open; what the
    /// coordinator says otherwise, as that another producer has the id.
    pub async fn begin_transaction(&self, partitions: &[PartitionHandle]) -> Result<()> {
        let request = {
            let accumulator = self.shared.lock();
            if accumulator.transaction() != Transaction::Between {
                return Err(Error::NoTransaction);
            }
            let (transactional_id, producer) = self.identity(&accumulator)?;
            AddPartitionsToTxnRequest {
                v3_and_below_transactional_id: transactional_id,
                v3_and_below_producer_id: producer.id,
                v3_and_below_producer_epoch: producer.epoch,
                v3_and_below_topics: by_topic(&accumulator, partitions)?,
                ..Default::default()
            }
        };
        self.ask(&request, ADD_PARTITIONS_VERSIONS, added).await?;
        self.shared.lock().set_transaction(Transaction::Open);
        Ok(())
    }

    /// Waits until every record of the transaction has an outcome, and makes them visible
    /// together.
    ///
    /// # Errors
    /// [`Error::NoTransaction`] when none is open, or a batch of it failed: then it is to be
    /// aborted. After another error its outcome is unknown, and the producer is of no
    /// further use.
    pub async fn commit_transaction(&self) -> Result<()> {
        self.flush().await;
        let state = self.shared.lock().transaction();
        if state == Transaction::Open { self.end(true).await } else { Err(Error::NoTransaction) }
    }

    /// Waits until every record of the transaction has an outcome, and discards them.
    ///
    /// # Errors
    /// As [`commit_transaction`](Self::commit_transaction), but that failed batches are none.
    pub async fn abort_transaction(&self) -> Result<()> {
        self.flush().await;
        let state = self.shared.lock().transaction();
        let is_open = matches!(state, Transaction::Open | Transaction::Failed);
        if is_open { self.end(false).await } else { Err(Error::NoTransaction) }
    }

    async fn end(&self, committed: bool) -> Result<()> {
        let (transactional_id, producer) = self.identity(&self.shared.lock())?;
        let ProducerId { id: producer_id, epoch: producer_epoch } = producer;
        let request = EndTxnRequest {
            transactional_id,
            producer_id,
            producer_epoch,
            committed,
            ..Default::default()
        };
        self.ask(&request, END_VERSIONS, |answer| answer.error_code).await?;
        if self.shared.lock().is_producer_lost() {
            let Shared { cluster, options, .. } = &*self.shared;
            let (id, epoch) = match ids::producer_id(cluster, options, Some(producer)).await {
                // A broker from before KIP-360. That the id is still ours it has just said.
                Err(Error::Encode { .. }) => ids::producer_id(cluster, options, None).await?,
                renewed => renewed?,
            };
            let reports = self.shared.lock().set_producer_id(id, epoch);
            self.shared.deliver(reports);
        }
        self.shared.lock().set_transaction(Transaction::Between);
        Ok(())
    }

    fn identity(&self, accumulator: &Accumulator) -> Result<(String, ProducerId)> {
        let id = self.shared.options.transactional_id.clone();
        id.zip(accumulator.producer_id()).ok_or(Error::NoTransaction)
    }

    async fn ask<R: Request>(
        &self,
        request: &R,
        versions: VersionRange,
        code_of: impl Fn(&R::Response) -> i16,
    ) -> Result<R::Response> {
        let id = self.shared.options.transactional_id.as_deref().ok_or(Error::NoTransaction)?;
        ask(&self.shared.cluster, id, request, versions, code_of).await
    }
}

/// The first reason why a partition was not added, if there is one.
fn added(answer: &AddPartitionsToTxnResponse) -> i16 {
    let topics = answer.results_by_topic_v3_and_below.iter();
    let mut codes = topics
        .flat_map(|topic| &topic.results_by_partition)
        .map(|partition| partition.partition_error_code);
    // What was not attempted says nothing of why.
    let not_attempted = ErrorCode::OperationNotAttempted.code();
    codes.find(|code| *code != 0 && *code != not_attempted).unwrap_or(0)
}

fn by_topic(
    accumulator: &Accumulator,
    partitions: &[PartitionHandle],
) -> Result<Vec<AddPartitionsToTxnTopic>> {
    let mut topics: BTreeMap<&Arc<str>, Vec<i32>> = BTreeMap::new();
    for PartitionHandle(partition) in partitions {
        let (topic, index) = accumulator.place(*partition).ok_or(Error::Closed)?;
        topics.entry(topic).or_default().push(index);
    }
    let topic = |(name, partitions): (&Arc<str>, Vec<i32>)| AddPartitionsToTxnTopic {
        name: name.to_string(),
        partitions,
        ..Default::default()
    };
    Ok(topics.into_iter().map(topic).collect())
}
