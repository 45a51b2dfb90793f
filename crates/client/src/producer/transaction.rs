//! Transactions: records of several partitions that readers of committed records get together or
//! not at all (KIP-98).
//!
//! Where the cluster has finalized level 2 of `transaction.version` (KIP-890), brokers add a
//! partition with its first batch, and each transaction ends with another producer epoch, so that
//! nothing that is late gets into the next one. Elsewhere the coordinator is told which partitions
//! take part before anything is sent to them.

use std::collections::BTreeMap;
use std::sync::Arc;

use moldau_protocol::messages::add_partitions_to_txn_request::AddPartitionsToTxnTopic;
use moldau_protocol::messages::{
    AddPartitionsToTxnRequest, AddPartitionsToTxnResponse, EndTxnRequest,
};
use moldau_protocol::{ApiKey, ErrorCode, Request, VersionRange};

use super::accumulator::Accumulator;
use super::ids::{self, ask};
use super::partition::ProducerId;
use super::plan::{Adding, Extent, Transaction};
use super::{PartitionHandle, Producer, Shared, offsets, request};
use crate::cluster::CoordinatorOf;
use crate::{Error, Result};

impl Producer {
    /// Begins a transaction. Records may be sent to these partitions; where the cluster has level
    /// 2 of `transaction.version`, to any others as well.
    ///
    /// # Errors
    /// [`Error::NoTransaction`] without a transactional id, or when one is open; what the
    /// coordinator says otherwise, as that another producer has the id.
    pub async fn begin_transaction(&self, partitions: &[PartitionHandle]) -> Result<()> {
        if self.shared.lock().transaction() != Transaction::Between {
            return Err(Error::NoTransaction);
        }
        let adding = self.adding().await?;
        let mut extent = Extent::Empty;
        if adding == Adding::Beforehand && !partitions.is_empty() {
            extent = Extent::Begun;
            let request = self.add_partitions(partitions)?;
            self.ask(&request, ADD_PARTITIONS_VERSIONS, added).await?;
        }
        self.shared.lock().begin(adding, extent);
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

    /// How partitions are added, as far as the cluster says at the moment.
    async fn adding(&self) -> Result<Adding> {
        let cluster = &self.shared.cluster;
        let mut retry = cluster.retry();
        let connection = loop {
            match cluster.any_connection().await {
                Ok(connection) => break connection,
                Err(error) => retry.pause(error).await?,
            }
        };
        // What stands between may not let the versions through.
        let serves =
            |api, since| connection.versions_served(api).is_some_and(|(_, latest)| latest >= since);
        let is_implicit = connection.finalized_level(FEATURE) >= IMPLICIT_SINCE
            && serves(ApiKey::Produce, request::ADDED_BEFOREHAND_MAX + 1)
            && serves(ApiKey::TxnOffsetCommit, offsets::IMPLICIT_VERSIONS.min)
            && serves(ApiKey::EndTxn, RENEWING_END_VERSIONS.min);
        Ok(if is_implicit { Adding::Implicit } else { Adding::Beforehand })
    }

    fn add_partitions(&self, partitions: &[PartitionHandle]) -> Result<AddPartitionsToTxnRequest> {
        let accumulator = self.shared.lock();
        let (transactional_id, producer) = self.identity(&accumulator)?;
        Ok(AddPartitionsToTxnRequest {
            v3_and_below_transactional_id: transactional_id,
            v3_and_below_producer_id: producer.id,
            v3_and_below_producer_epoch: producer.epoch,
            v3_and_below_topics: by_topic(&accumulator, partitions)?,
            ..Default::default()
        })
    }

    async fn end(&self, committed: bool) -> Result<()> {
        let (adding, extent) = {
            let accumulator = self.shared.lock();
            (accumulator.adding(), accumulator.extent())
        };
        if extent == Extent::Begun {
            self.end_begun(adding, committed).await?;
        }
        if self.shared.lock().is_producer_lost() {
            self.renew().await?;
        }
        self.shared.lock().set_transaction(Transaction::Between);
        Ok(())
    }

    async fn end_begun(&self, adding: Adding, committed: bool) -> Result<()> {
        let (transactional_id, producer) = self.identity(&self.shared.lock())?;
        let ProducerId { id: producer_id, epoch: producer_epoch } = producer;
        let request = EndTxnRequest {
            transactional_id,
            producer_id,
            producer_epoch,
            committed,
            ..Default::default()
        };
        let versions = match adding {
            Adding::Beforehand => END_VERSIONS,
            Adding::Implicit => RENEWING_END_VERSIONS,
        };
        let answer = self.ask(&request, versions, |answer| answer.error_code).await?;
        if adding == Adding::Implicit {
            let (id, epoch) = (answer.producer_id, answer.producer_epoch);
            let reports = self.shared.lock().set_producer_id(id, epoch);
            self.shared.deliver(reports);
        }
        Ok(())
    }

    /// Gets the next epoch from the coordinator.
    async fn renew(&self) -> Result<()> {
        let (_, producer) = self.identity(&self.shared.lock())?;
        let Shared { cluster, options, .. } = &*self.shared;
        let (id, epoch) = match ids::producer_id(cluster, options, Some(producer)).await {
            // A broker from before KIP-360. That the id is still ours it has just said.
            Err(Error::Encode { .. }) => ids::producer_id(cluster, options, None).await?,
            renewed => renewed?,
        };
        let reports = self.shared.lock().set_producer_id(id, epoch);
        self.shared.deliver(reports);
        Ok(())
    }

    pub(super) fn identity(&self, accumulator: &Accumulator) -> Result<(String, ProducerId)> {
        let id = self.shared.options.transactional_id.clone();
        id.zip(accumulator.producer_id()).ok_or(Error::NoTransaction)
    }

    pub(super) async fn ask<R: Request>(
        &self,
        request: &R,
        versions: VersionRange,
        code_of: impl Fn(&R::Response) -> i16,
    ) -> Result<R::Response> {
        let id = self.shared.options.transactional_id.as_deref().ok_or(Error::NoTransaction)?;
        let of = CoordinatorOf::Transaction(id);
        ask(&self.shared.cluster, of, request, versions, code_of).await
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

/// The feature whose level says how partitions are added, and the level from which on brokers do.
const FEATURE: &str = "transaction.version";
const IMPLICIT_SINCE: i16 = 2;

/// Versions for clients; later ones are for brokers.
const ADD_PARTITIONS_VERSIONS: VersionRange = VersionRange::new(0, 3);
const END_VERSIONS: VersionRange = VersionRange::new(0, 4);

/// Versions that give the producer another epoch.
const RENEWING_END_VERSIONS: VersionRange = VersionRange::new(5, 5);
