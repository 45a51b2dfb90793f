//! Committed offsets: OffsetCommit and OffsetFetch.

use std::collections::HashMap;
use std::sync::Arc;

use moldau_protocol::VersionRange;
use moldau_protocol::messages::offset_commit_request::{
    OffsetCommitRequestPartition, OffsetCommitRequestTopic,
};
use moldau_protocol::messages::offset_fetch_request::{
    OffsetFetchRequestGroup, OffsetFetchRequestTopics,
};
use moldau_protocol::messages::{
    OffsetCommitRequest, OffsetCommitResponse, OffsetFetchRequest, OffsetFetchResponse,
};

use crate::cluster::{Cluster, CoordinatorOf};
use crate::offsets::TopicPartition;
use crate::{Error, Result};

/// Versions that name topics; later ones need ids (KIP-848), which a topic may not have.
pub(super) const COMMIT_VERSIONS: VersionRange = VersionRange::new(2, 9);

/// Versions that ask for several groups (KIP-709) and name topics.
const FETCH_VERSIONS: VersionRange = VersionRange::new(8, 9);

pub(super) fn commit_request(
    group: &str,
    member_id: &str,
    generation: i32,
    instance_id: Option<String>,
    offsets: &HashMap<TopicPartition, i64>,
) -> OffsetCommitRequest {
    let mut topics: HashMap<&str, Vec<OffsetCommitRequestPartition>> = HashMap::new();
    for (partition, offset) in offsets {
        topics.entry(&partition.topic).or_default().push(OffsetCommitRequestPartition {
            partition_index: partition.partition,
            committed_offset: *offset,
            committed_metadata: Some(String::new()),
            ..Default::default()
        });
    }
    OffsetCommitRequest {
        group_id: group.to_owned(),
        generation_id_or_member_epoch: generation,
        member_id: member_id.to_owned(),
        group_instance_id: instance_id,
        topics: topics
            .into_iter()
            .map(|(name, partitions)| OffsetCommitRequestTopic {
                name: name.to_owned(),
                partitions,
                ..Default::default()
            })
            .collect(),
        ..Default::default()
    }
}

/// The first refusal in an answer.
pub(super) fn check_commit(group: &str, answer: &OffsetCommitResponse) -> Result<()> {
    for topic in &answer.topics {
        for partition in &topic.partitions {
            if partition.error_code != 0 {
                let (name, index) = (&topic.name, partition.partition_index);
                let what = format!("commit of {name}-{index} by group {group}");
                Error::check(partition.error_code, &what, None)?;
            }
        }
    }
    Ok(())
}

/// The committed offsets of `partitions`, or of all that the group has. Partitions without one
/// are left out.
pub(super) async fn committed(
    cluster: &Cluster,
    group: &str,
    partitions: Option<&[TopicPartition]>,
) -> Result<HashMap<TopicPartition, i64>> {
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
                offsets.insert(key, partition.committed_offset);
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
        committed(self, group, None).await
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
        let request = commit_request(group, "", -1, None, offsets);
        let code = |answer: &OffsetCommitResponse| {
            let mut parts = answer.topics.iter().flat_map(|topic| &topic.partitions);
            parts.next().map_or(0, |partition| partition.error_code)
        };
        let answer = self
            .ask_coordinator(CoordinatorOf::Group(group), &request, COMMIT_VERSIONS, code)
            .await?;
        check_commit(group, &answer)
    }
}
