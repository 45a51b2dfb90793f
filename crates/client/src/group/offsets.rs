//! Committed offsets: OffsetCommit and OffsetFetch.

use std::collections::HashMap;
use std::sync::Arc;

use moldau_protocol::messages::offset_commit_request::{
    OffsetCommitRequestPartition, OffsetCommitRequestTopic,
};
use moldau_protocol::messages::offset_fetch_request::{
    OffsetFetchRequestGroup, OffsetFetchRequestTopics,
};
use moldau_protocol::messages::{
    OffsetCommitRequest, OffsetCommitResponse, OffsetFetchRequest, OffsetFetchResponse,
};
use moldau_protocol::{ErrorCode, Uuid, VersionRange};

use crate::cluster::{Cluster, CoordinatorOf};
use crate::offsets::TopicPartition;
use crate::{Error, Result};

/// Versions that name topics.
const NAMING_VERSIONS: VersionRange = VersionRange::new(2, 9);

/// The same, and those that give ids of topics instead (KIP-848).
const COMMIT_VERSIONS: VersionRange = VersionRange::new(2, 10);

/// Versions that ask for several groups (KIP-709) and name topics.
const FETCH_VERSIONS: VersionRange = VersionRange::new(8, 9);

/// Where a group goes on in a partition.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct CommittedOffset {
    /// Offset of the next record to read.
    pub offset: i64,
    /// Epoch of the leader that appended the record before it (KIP-320), -1 if unknown.
    pub leader_epoch: i32,
    /// Text of the group's own. The broker limits its length (`offset.metadata.max.bytes`).
    pub metadata: String,
    /// Id of the topic whose records were read, all zero if unknown. A topic that was created since
    /// with the same name does not take the offset. Brokers do not give it back.
    pub topic_id: Uuid,
}

impl CommittedOffset {
    /// The offset alone.
    #[must_use]
    pub fn at(offset: i64) -> Self {
        Self { offset, leader_epoch: -1, metadata: String::new(), topic_id: Uuid::default() }
    }
}

/// Who commits offsets of a group: what the coordinator compares with what it knows of its members.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct GroupMetadata {
    /// Group id.
    pub group: Arc<str>,
    /// Id of the member; empty for one who is none.
    pub member_id: String,
    /// Member epoch, or generation in the classic protocol; -1 for one who is no member.
    pub epoch: i32,
    /// Id of a static member (KIP-345).
    pub instance_id: Option<String>,
}

impl GroupMetadata {
    /// One who is no member. A group takes its offsets while it has no members, and those of its
    /// transactions at any time.
    #[must_use]
    pub fn outside(group: &str) -> Self {
        Self { group: group.into(), member_id: String::new(), epoch: -1, instance_id: None }
    }

    /// The request that commits `offsets`, and the versions that it may have.
    pub(super) fn request<'o>(
        &self,
        offsets: impl Iterator<Item = (&'o TopicPartition, &'o CommittedOffset)>,
    ) -> (OffsetCommitRequest, VersionRange) {
        let mut topics: HashMap<(&str, Uuid), Vec<OffsetCommitRequestPartition>> = HashMap::new();
        for (partition, offset) in offsets {
            let topic = (&*partition.topic, offset.topic_id);
            topics.entry(topic).or_default().push(OffsetCommitRequestPartition {
                partition_index: partition.partition,
                committed_offset: offset.offset,
                committed_leader_epoch: offset.leader_epoch,
                committed_metadata: Some(offset.metadata.clone()),
                ..Default::default()
            });
        }
        let have_ids = topics.keys().all(|(_, id)| !id.is_zero());
        let topic = |((name, topic_id), partitions): ((&str, _), _)| OffsetCommitRequestTopic {
            name: name.to_owned(),
            topic_id,
            partitions,
            ..Default::default()
        };
        let request = OffsetCommitRequest {
            group_id: self.group.to_string(),
            generation_id_or_member_epoch: self.epoch,
            member_id: self.member_id.clone(),
            group_instance_id: self.instance_id.clone(),
            topics: topics.into_iter().map(topic).collect(),
            ..Default::default()
        };
        (request, if have_ids { COMMIT_VERSIONS } else { NAMING_VERSIONS })
    }
}

/// The error code of each partition in the answer to `request`.
pub(super) fn commit_codes(
    request: &OffsetCommitRequest,
    answer: OffsetCommitResponse,
) -> HashMap<TopicPartition, i16> {
    let asked = request.topics.iter().map(|topic| (topic.topic_id, topic.name.as_str()));
    let names: HashMap<Uuid, &str> = asked.collect();
    let mut codes = HashMap::new();
    for topic in answer.topics {
        let name = match topic.name.as_str() {
            "" => names.get(&topic.topic_id).copied().unwrap_or_default(),
            name => name,
        };
        let name: Arc<str> = name.into();
        for partition in topic.partitions {
            let key = TopicPartition { topic: name.clone(), partition: partition.partition_index };
            codes.insert(key, partition.error_code);
        }
    }
    codes
}

/// The first refusal in an answer.
fn check_commit(request: &OffsetCommitRequest, answer: OffsetCommitResponse) -> Result<()> {
    let group = &request.group_id;
    for (TopicPartition { topic, partition }, code) in commit_codes(request, answer) {
        Error::check(code, &format!("commit of {topic}-{partition} by group {group}"), None)?;
    }
    Ok(())
}

/// The committed offsets of `partitions`, or of all that the group has. Partitions without one
/// are left out. Offsets that an open transaction commits are waited for (KIP-447).
pub(super) async fn committed(
    cluster: &Cluster,
    group: &str,
    partitions: Option<&[TopicPartition]>,
) -> Result<HashMap<TopicPartition, CommittedOffset>> {
    let mut retry = cluster.retry();
    loop {
        match committed_once(cluster, group, partitions).await {
            Err(error) if error.code() == Some(ErrorCode::UnstableOffsetCommit) => {
                retry.wait(error).await?;
            }
            outcome => return outcome,
        }
    }
}

async fn committed_once(
    cluster: &Cluster,
    group: &str,
    partitions: Option<&[TopicPartition]>,
) -> Result<HashMap<TopicPartition, CommittedOffset>> {
    let topics = partitions.map(|partitions| {
        let mut topics: HashMap<&str, Vec<i32>> = HashMap::new();
        for partition in partitions {
            topics.entry(&partition.topic).or_default().push(partition.partition);
        }
        let of = |(name, partition_indexes): (&str, Vec<i32>)| OffsetFetchRequestTopics {
            name: name.to_owned(),
            partition_indexes,
            ..Default::default()
        };
        topics.into_iter().map(of).collect()
    });
    let request = OffsetFetchRequest {
        groups: vec![OffsetFetchRequestGroup {
            group_id: group.to_owned(),
            topics,
            ..Default::default()
        }],
        require_stable: true,
        ..Default::default()
    };
    let code = |answer: &OffsetFetchResponse| answer.groups.first().map_or(0, |g| g.error_code);
    let answer = cluster
        .ask_coordinator(CoordinatorOf::Group(group), &request, FETCH_VERSIONS, code)
        .await?;
    let what = format!("offsets of group {group}");
    Error::check(code(&answer), &what, None)?;
    let mut offsets = HashMap::new();
    for topic in answer.groups.into_iter().flat_map(|group| group.topics) {
        let name: Arc<str> = topic.name.into();
        for partition in topic.partitions {
            Error::check(partition.error_code, &what, None)?;
            if partition.committed_offset >= 0 {
                let key =
                    TopicPartition { topic: name.clone(), partition: partition.partition_index };
                let offset = CommittedOffset {
                    offset: partition.committed_offset,
                    leader_epoch: partition.committed_leader_epoch,
                    metadata: partition.metadata.unwrap_or_default(),
                    topic_id: Uuid::default(),
                };
                offsets.insert(key, offset);
            }
        }
    }
    Ok(offsets)
}

impl Cluster {
    /// All offsets that a consumer group has committed.
    ///
    /// # Errors
    /// The coordinator refuses or does not answer.
    pub async fn committed_offsets(&self, group: &str) -> Result<HashMap<TopicPartition, i64>> {
        let known = committed(self, group, None).await?;
        Ok(known.into_iter().map(|(partition, known)| (partition, known.offset)).collect())
    }

    /// All that a consumer group has committed, with the metadata.
    ///
    /// # Errors
    /// The coordinator refuses or does not answer.
    pub async fn committed(&self, group: &str) -> Result<HashMap<TopicPartition, CommittedOffset>> {
        committed(self, group, None).await
    }

    /// Offsets of `partitions` that a group has committed, with their metadata; partitions without
    /// one are left out. Waits for transactions that commit offsets of them.
    ///
    /// # Errors
    /// The coordinator refuses or does not answer.
    pub async fn committed_of(
        &self,
        group: &str,
        partitions: &[TopicPartition],
    ) -> Result<HashMap<TopicPartition, CommittedOffset>> {
        committed(self, group, Some(partitions)).await
    }

    /// Commits offsets for a group without members, to reset where it goes on.
    ///
    /// # Errors
    /// The group has members, or the coordinator refuses or does not answer.
    pub async fn commit_offsets(
        &self,
        group: &str,
        offsets: &HashMap<TopicPartition, i64>,
    ) -> Result<()> {
        let at = |(partition, offset): (&TopicPartition, &i64)| {
            (partition.clone(), CommittedOffset::at(*offset))
        };
        self.commit(group, &offsets.iter().map(at).collect::<Vec<_>>()).await
    }

    /// Commits offsets with their metadata for a group without members.
    ///
    /// # Errors
    /// As [`commit_offsets`](Self::commit_offsets).
    pub async fn commit(
        &self,
        group: &str,
        offsets: &[(TopicPartition, CommittedOffset)],
    ) -> Result<()> {
        let offsets = offsets.iter().map(|(partition, offset)| (partition, offset));
        let (request, versions) = GroupMetadata::outside(group).request(offsets);
        let code = |answer: &OffsetCommitResponse| {
            let mut parts = answer.topics.iter().flat_map(|topic| &topic.partitions);
            parts.next().map_or(0, |partition| partition.error_code)
        };
        let answer =
            self.ask_coordinator(CoordinatorOf::Group(group), &request, versions, code).await?;
        check_commit(&request, answer)
    }
}
