//! Offsets by time: ListOffsets, asked of each partition's leader.

use std::collections::HashMap;
use std::sync::Arc;

use moldau_protocol::ErrorCode;
use moldau_protocol::messages::ListOffsetsRequest;
use moldau_protocol::messages::list_offsets_request::{ListOffsetsPartition, ListOffsetsTopic};

use crate::cluster::{Cluster, Purpose};
use crate::{Error, Result};

/// Which offset of a partition is wanted.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum OffsetSpec {
    /// That of the oldest record.
    Earliest,
    /// That of the next record to be appended.
    Latest,
    /// That of the record with the largest timestamp.
    MaxTimestamp,
    /// That of the first record whose timestamp is at or after this, in ms since 1970.
    Timestamp(i64),
}

impl OffsetSpec {
    fn wire(self) -> i64 {
        match self {
            Self::Earliest => -2,
            Self::Latest => -1,
            Self::MaxTimestamp => -3,
            Self::Timestamp(timestamp) => timestamp,
        }
    }
}

/// One partition of one topic.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct TopicPartition {
    /// Topic name.
    pub topic: Arc<str>,
    /// Partition number.
    pub partition: i32,
}

impl TopicPartition {
    /// Names a partition.
    #[must_use]
    pub fn of(topic: &str, partition: i32) -> Self {
        Self { topic: topic.into(), partition }
    }
}

/// What a leader answered.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ListedOffset {
    /// The offset; -1 when no record matches.
    pub offset: i64,
    /// Timestamp of the record, -1 when it does not matter.
    pub timestamp: i64,
    /// Epoch of the leader that appended it, -1 if unknown.
    pub leader_epoch: i32,
}

impl Cluster {
    /// Asks the leaders for offsets. Every partition has its own answer, as there may be some
    /// that cannot be reached; retriable errors are tried again until the operation timeout.
    pub async fn list_offsets(
        &self,
        wanted: &[(TopicPartition, OffsetSpec)],
    ) -> HashMap<TopicPartition, Result<ListedOffset>> {
        let mut answers = HashMap::with_capacity(wanted.len());
        let mut open: Vec<(TopicPartition, OffsetSpec)> = wanted.to_vec();
        let mut retry = self.retry();
        while !open.is_empty() {
            let generation = self.metadata().generation;
            let mut again = Vec::new();
            let mut last = Error::Closed;
            for (partition, spec, answer) in self.list_offsets_once(&open).await {
                match answer {
                    Err(error) if error.is_retriable() => {
                        last = error.clone();
                        again.push((partition.clone(), spec));
                        answers.insert(partition, Err(error));
                    }
                    answer => drop(answers.insert(partition, answer)),
                }
            }
            open = again;
            // Out of time: the last errors stand as the answers.
            if open.is_empty() || retry.pause(last).await.is_err() {
                break;
            }
            if let Err(error) = self.refresh_from(generation).await {
                tracing::debug!(%error, "metadata could not be refreshed");
            }
        }
        answers
    }

    /// Asks once, and waits for no leader that is not known.
    pub(crate) async fn list_offsets_once(
        &self,
        wanted: &[(TopicPartition, OffsetSpec)],
    ) -> Vec<(TopicPartition, OffsetSpec, Result<ListedOffset>)> {
        let mut answers = Vec::with_capacity(wanted.len());
        let mut by_node: HashMap<i32, Vec<(TopicPartition, OffsetSpec)>> = HashMap::new();
        for (partition, spec) in wanted {
            match self.known_leader(&partition.topic, partition.partition).await {
                Ok(leader) => {
                    by_node.entry(leader.node).or_default().push((partition.clone(), *spec));
                }
                Err(error) => answers.push((partition.clone(), *spec, Err(error))),
            }
        }
        for (node, wanted) in by_node {
            let mut known = match self.ask_offsets(node, &wanted).await {
                Ok(known) => known,
                Err(error) => {
                    let failed = wanted.into_iter().map(|(p, s)| (p, s, Err(error.clone())));
                    answers.extend(failed);
                    continue;
                }
            };
            for (partition, spec) in wanted {
                let answer = known.remove(&partition).unwrap_or_else(|| {
                    Err(Error::broker(ErrorCode::UnknownServerError, "ListOffsets", None))
                });
                answers.push((partition, spec, answer));
            }
        }
        answers
    }

    async fn ask_offsets(
        &self,
        node: i32,
        wanted: &[(TopicPartition, OffsetSpec)],
    ) -> Result<HashMap<TopicPartition, Result<ListedOffset>>> {
        let mut topics: HashMap<&str, Vec<ListOffsetsPartition>> = HashMap::new();
        for (partition, spec) in wanted {
            topics.entry(&partition.topic).or_default().push(ListOffsetsPartition {
                partition_index: partition.partition,
                timestamp: spec.wire(),
                ..Default::default()
            });
        }
        let request = ListOffsetsRequest {
            replica_id: -1,
            topics: topics
                .into_iter()
                .map(|(name, partitions)| ListOffsetsTopic {
                    name: name.to_owned(),
                    partitions,
                    ..Default::default()
                })
                .collect(),
            ..Default::default()
        };
        let answer = self.connection(node, Purpose::Data).await?.send(&request).await?;
        let mut offsets = HashMap::with_capacity(wanted.len());
        for topic in answer.topics {
            let name: Arc<str> = topic.name.into();
            for partition in topic.partitions {
                let what = format!("offset of {name}-{}", partition.partition_index);
                let key =
                    TopicPartition { topic: name.clone(), partition: partition.partition_index };
                let answer = Error::check(partition.error_code, &what, None);
                offsets.insert(
                    key,
                    answer.map(|()| ListedOffset {
                        offset: partition.offset,
                        timestamp: partition.timestamp,
                        leader_epoch: partition.leader_epoch,
                    }),
                );
            }
        }
        Ok(offsets)
    }
}
