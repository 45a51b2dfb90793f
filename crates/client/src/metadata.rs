//! What is known of a cluster's brokers, topics and leaders: an immutable snapshot.

use std::collections::HashMap;
use std::sync::Arc;

use moldau_protocol::messages::MetadataResponse;
use moldau_protocol::{ErrorCode, Uuid};

use crate::wire::Address;

/// A topic's name and id.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct TopicRef {
    /// The name.
    pub name: Arc<str>,
    /// The id; all zero from brokers older than 2.8.
    pub id: Uuid,
}

/// Leader of a partition.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Leader {
    /// The broker's node id.
    pub node: i32,
    /// The leader's epoch, -1 if unknown.
    pub epoch: i32,
}

/// One partition.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Partition {
    /// Its number.
    pub index: i32,
    /// Its leader, unless there is none at the moment.
    pub leader: Option<Leader>,
    /// Nodes that hold a replica.
    pub replicas: Vec<i32>,
    /// Nodes whose replica is in sync.
    pub in_sync: Vec<i32>,
}

/// One topic.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Topic {
    /// Name and id.
    pub topic: TopicRef,
    /// Whether Kafka uses it itself.
    pub internal: bool,
    /// Partitions, ordered by number.
    pub partitions: Vec<Partition>,
}

impl Topic {
    /// Whether it has this partition.
    #[must_use]
    pub fn has_partition(&self, partition: i32) -> bool {
        // The numbers of a snapshot's partitions are 0, 1, 2, ...
        usize::try_from(partition).is_ok_and(|index| index < self.partitions.len())
    }
}

/// A snapshot of what the cluster said.
#[derive(Clone, Debug, Default)]
pub struct Metadata {
    /// Rises with every snapshot.
    pub generation: u64,
    /// The cluster's id.
    pub cluster_id: Option<String>,
    /// The controller's node id, or that of any broker under KRaft.
    pub controller: Option<i32>,
    /// Addresses by node id.
    pub brokers: HashMap<i32, Address>,
    /// Topics by name, shared between snapshots: one may have a million partitions.
    pub topics: HashMap<Arc<str>, Arc<Topic>>,
    /// Error codes of topics that were asked for and are not in `topics`.
    pub refused: HashMap<Arc<str>, ErrorCode>,
}

impl Metadata {
    /// The leader of a partition, if there is one and its broker is known.
    #[must_use]
    pub fn leader(&self, topic: &str, partition: i32) -> Option<Leader> {
        let index = usize::try_from(partition).ok()?;
        let leader = self.topics.get(topic)?.partitions.get(index)?.leader?;
        self.brokers.contains_key(&leader.node).then_some(leader)
    }

    /// Number of partitions of a topic that exists.
    #[must_use]
    pub fn partition_count(&self, topic: &str) -> Option<usize> {
        self.topics.get(topic).map(|topic| topic.partitions.len())
    }

    /// Takes an answer in. Topics that it does not list are kept.
    pub(crate) fn updated(&self, answer: MetadataResponse) -> Self {
        let mut next = Self {
            generation: self.generation + 1,
            cluster_id: answer.cluster_id,
            controller: (answer.controller_id >= 0).then_some(answer.controller_id),
            brokers: HashMap::new(),
            topics: self.topics.clone(),
            refused: self.refused.clone(),
        };
        for broker in answer.brokers {
            let Ok(port) = u16::try_from(broker.port) else { continue };
            next.brokers.insert(broker.node_id, Address { host: broker.host, port });
        }
        for topic in answer.topics {
            let Some(name) = topic.name.as_deref().map(Arc::<str>::from) else { continue };
            let code = ErrorCode::try_from(topic.error_code);
            if code != Ok(ErrorCode::None) {
                next.topics.remove(&name);
                next.refused.insert(name, code.unwrap_or(ErrorCode::UnknownServerError));
                continue;
            }
            next.refused.remove(&name);
            let mut partitions: Vec<Partition> = topic
                .partitions
                .into_iter()
                .map(|partition| Partition {
                    index: partition.partition_index,
                    leader: (partition.leader_id >= 0).then_some(Leader {
                        node: partition.leader_id,
                        epoch: partition.leader_epoch,
                    }),
                    replicas: partition.replica_nodes,
                    in_sync: partition.isr_nodes,
                })
                .collect();
            partitions.sort_unstable_by_key(|partition| partition.index);
            // Partitions are found by position, so their numbers must be 0, 1, 2, ...
            let numbered = (0_i32..).zip(&partitions).all(|(n, partition)| n == partition.index);
            if numbered {
                let topic_ref = TopicRef { name: name.clone(), id: topic.topic_id };
                let internal = topic.is_internal;
                let topic = Topic { topic: topic_ref, internal, partitions };
                next.topics.insert(name, Arc::new(topic));
            }
        }
        next
    }
}

#[cfg(test)]
mod tests {
    use moldau_protocol::messages::metadata_response::{
        MetadataResponsePartition, MetadataResponseTopic,
    };

    use super::*;

    fn answer(name: &str, partitions: i32) -> MetadataResponse {
        let partition =
            |partition_index| MetadataResponsePartition { partition_index, ..Default::default() };
        let topic = MetadataResponseTopic {
            name: Some(name.to_owned()),
            partitions: (0..partitions).map(partition).collect(),
            ..Default::default()
        };
        MetadataResponse { topics: vec![topic], ..Default::default() }
    }

    #[test]
    fn snapshots_share_the_topics_that_an_answer_does_not_list() {
        let first = Metadata::default().updated(answer("large", 3));
        let second = first.updated(answer("other", 1));
        assert!(Arc::ptr_eq(&first.topics["large"], &second.topics["large"]));
        let has = [-1, 0, 2, 3].map(|partition| second.topics["large"].has_partition(partition));
        assert_eq!(has, [false, true, true, false]);
    }
}
