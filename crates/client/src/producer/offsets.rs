//! Offsets of a consumer group as part of a transaction: what was read counts as processed if what
//! came of it is committed (KIP-98, KIP-447).

use std::collections::BTreeMap;
use std::sync::Arc;

use moldau_protocol::messages::txn_offset_commit_request::{
    TxnOffsetCommitRequestPartition, TxnOffsetCommitRequestTopic,
};
use moldau_protocol::messages::{
    AddOffsetsToTxnRequest, TxnOffsetCommitRequest, TxnOffsetCommitResponse,
};
use moldau_protocol::{Uuid, VersionRange};

use super::Producer;
use super::ids::ask;
use super::plan::{Adding, Transaction};
use crate::cluster::CoordinatorOf;
use crate::group::{CommittedOffset, GroupMetadata};
use crate::offsets::TopicPartition;
use crate::{Error, Result};

impl Producer {
    /// Makes offsets of a group part of the open transaction: with it they become those of the
    /// group, or they do not. `member` is who read the records, as
    /// [`Committer::group_metadata`](crate::Committer::group_metadata) tells it.
    ///
    /// # Errors
    /// [`Error::NoTransaction`] when none is open, or a batch of it failed. The coordinator of the
    /// group refuses: [`Error::is_left_behind`] tells that others may have read the records. The
    /// coordinator of the transaction refuses, as with `PRODUCER_FENCED` or
    /// `INVALID_PRODUCER_EPOCH` where another producer has the id. After any of them the
    /// transaction can only be aborted.
    pub async fn send_offsets_to_transaction(
        &self,
        member: &GroupMetadata,
        offsets: &[(TopicPartition, CommittedOffset)],
    ) -> Result<()> {
        let sent = self.send_offsets(member, offsets).await;
        if sent.is_err() {
            self.shared.lock().fail_transaction();
        }
        sent
    }

    async fn send_offsets(
        &self,
        member: &GroupMetadata,
        offsets: &[(TopicPartition, CommittedOffset)],
    ) -> Result<()> {
        let (adding, transactional_id, producer) = {
            let mut accumulator = self.shared.lock();
            if accumulator.transaction() != Transaction::Open {
                return Err(Error::NoTransaction);
            }
            if offsets.is_empty() {
                return Ok(());
            }
            accumulator.extend_transaction();
            let (transactional_id, producer) = self.identity(&accumulator)?;
            (accumulator.adding(), transactional_id, producer)
        };
        if adding == Adding::Beforehand {
            let request = AddOffsetsToTxnRequest {
                transactional_id: transactional_id.clone(),
                producer_id: producer.id,
                producer_epoch: producer.epoch,
                group_id: member.group.to_string(),
                ..Default::default()
            };
            self.ask(&request, ADD_VERSIONS, |answer| answer.error_code).await?;
        }
        let have_ids = offsets.iter().all(|(_, offset)| !offset.topic_id.is_zero());
        let versions = match adding {
            Adding::Beforehand => COMMIT_VERSIONS,
            Adding::Implicit if have_ids => IMPLICIT_VERSIONS,
            Adding::Implicit => IMPLICIT_NAMING_VERSIONS,
        };
        let request = TxnOffsetCommitRequest {
            transactional_id,
            group_id: member.group.to_string(),
            producer_id: producer.id,
            producer_epoch: producer.epoch,
            generation_id_or_member_epoch: member.epoch,
            member_id: member.member_id.clone(),
            group_instance_id: member.instance_id.clone(),
            topics: by_topic(offsets),
            ..Default::default()
        };
        let of = CoordinatorOf::Group(&member.group);
        ask(&self.shared.cluster, of, &request, versions, refusal).await?;
        Ok(())
    }
}

/// The first reason why an offset was not taken, if there is one.
fn refusal(answer: &TxnOffsetCommitResponse) -> i16 {
    let partitions = answer.topics.iter().flat_map(|topic| &topic.partitions);
    partitions.map(|partition| partition.error_code).find(|code| *code != 0).unwrap_or(0)
}

fn by_topic(offsets: &[(TopicPartition, CommittedOffset)]) -> Vec<TxnOffsetCommitRequestTopic> {
    let mut topics: BTreeMap<(&Arc<str>, Uuid), Vec<_>> = BTreeMap::new();
    for (partition, offset) in offsets {
        let topic = topics.entry((&partition.topic, offset.topic_id)).or_default();
        topic.push(TxnOffsetCommitRequestPartition {
            partition_index: partition.partition,
            committed_offset: offset.offset,
            committed_leader_epoch: offset.leader_epoch,
            committed_metadata: Some(offset.metadata.clone()),
            ..Default::default()
        });
    }
    let topic = |((name, topic_id), partitions): ((&Arc<str>, _), _)| TxnOffsetCommitRequestTopic {
        name: name.to_string(),
        topic_id,
        partitions,
        ..Default::default()
    };
    topics.into_iter().map(topic).collect()
}

/// Versions before brokers add the group by themselves.
const ADD_VERSIONS: VersionRange = VersionRange::new(0, 3);

/// Versions that say which member commits (KIP-447); without that a member that was put out of the
/// group could not be told apart.
const COMMIT_VERSIONS: VersionRange = VersionRange::new(3, 4);

/// Versions that add the group (KIP-890), and those that give ids of topics instead of names
/// (KIP-1319).
pub(super) const IMPLICIT_VERSIONS: VersionRange = VersionRange::new(5, 6);

/// The former that name topics.
const IMPLICIT_NAMING_VERSIONS: VersionRange = VersionRange::new(5, 5);
