//! Committed offsets of one group.

use std::collections::BTreeMap;

use crate::record::{CommittedOffset, TopicOffsets};
use crate::reply::FetchedOffset;

/// Partitions in one record of a snapshot, so that no record grows with the group.
const SNAPSHOT_PARTITIONS_MAX: usize = 1_000;

/// Offsets by topic and partition. A topic without offsets is not kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Offsets {
    topics: BTreeMap<String, BTreeMap<i32, CommittedOffset>>,
    count: usize,
}

impl Offsets {
    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// How many partitions have an offset.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    pub(crate) fn get(&self, topic: &str, partition: i32) -> Option<&CommittedOffset> {
        self.topics.get(topic)?.get(&partition)
    }

    pub(crate) fn insert(&mut self, topic: &str, partition: i32, committed: CommittedOffset) {
        let replaced = match self.topics.get_mut(topic) {
            Some(partitions) => partitions.insert(partition, committed),
            None => {
                let partitions = BTreeMap::from([(partition, committed)]);
                self.topics.insert(topic.to_owned(), partitions);
                None
            }
        };
        self.count += usize::from(replaced.is_none());
    }

    /// Takes over all offsets of `others`.
    pub(crate) fn extend(&mut self, others: Offsets) {
        for (topic, partitions) in others.topics {
            for (partition, committed) in partitions {
                self.insert(&topic, partition, committed);
            }
        }
    }

    pub(crate) fn replay_committed(&mut self, topics: Vec<TopicOffsets>) {
        for TopicOffsets { topic, partitions } in topics {
            for (partition, committed) in partitions {
                self.insert(&topic, partition, committed);
            }
        }
    }

    pub(crate) fn replay_deleted(&mut self, topics: &[(String, Vec<i32>)]) {
        for (topic, partitions) in topics {
            for partition in partitions {
                self.remove(topic, *partition);
            }
        }
    }

    pub(crate) fn remove(&mut self, topic: &str, partition: i32) -> bool {
        let Some(partitions) = self.topics.get_mut(topic) else { return false };
        let removed = partitions.remove(&partition).is_some();
        if partitions.is_empty() {
            self.topics.remove(topic);
        }
        self.count -= usize::from(removed);
        removed
    }

    /// Takes out the offsets for which `expired` holds and names them.
    pub(crate) fn remove_where(
        &mut self,
        mut expired: impl FnMut(&str, &CommittedOffset) -> bool,
    ) -> Vec<(String, Vec<i32>)> {
        let mut removed = Vec::new();
        for (topic, partitions) in &mut self.topics {
            let gone: Vec<i32> = partitions
                .extract_if(.., |_, committed| expired(topic, committed))
                .map(|(partition, _)| partition)
                .collect();
            if !gone.is_empty() {
                self.count -= gone.len();
                removed.push((topic.clone(), gone));
            }
        }
        self.topics.retain(|_, partitions| !partitions.is_empty());
        removed
    }

    /// Takes out the offsets of one topic and names their partitions.
    pub(crate) fn remove_topic(&mut self, topic: &str) {
        self.count -= self.topics.remove(topic).map_or(0, |partitions| partitions.len());
    }

    /// All offsets, as OffsetFetch shows them.
    pub(crate) fn fetch_all(&self) -> Vec<(String, Vec<FetchedOffset>)> {
        let topics = self.topics.iter().map(|(topic, partitions)| {
            let fetched =
                partitions.iter().map(|(partition, committed)| fetched(*partition, committed));
            (topic.clone(), fetched.collect())
        });
        topics.collect()
    }

    /// One offset, as OffsetFetch shows it.
    pub(crate) fn fetch(&self, topic: &str, partition: i32) -> FetchedOffset {
        match self.get(topic, partition) {
            Some(committed) => fetched(partition, committed),
            None => not_committed(partition),
        }
    }

    /// All offsets in pieces that fit a record.
    pub(crate) fn snapshot(&self) -> impl Iterator<Item = TopicOffsets> + '_ {
        self.topics.iter().flat_map(|(topic, partitions)| {
            let mut rest = partitions.iter().peekable();
            std::iter::from_fn(move || {
                rest.peek()?;
                let piece = rest.by_ref().take(SNAPSHOT_PARTITIONS_MAX);
                let partitions =
                    piece.map(|(partition, committed)| (*partition, committed.clone()));
                Some(TopicOffsets { topic: topic.clone(), partitions: partitions.collect() })
            })
        })
    }
}

/// The answer for a partition without a committed offset.
pub(crate) fn not_committed(partition: i32) -> FetchedOffset {
    FetchedOffset { partition, offset: -1, leader_epoch: -1, metadata: String::new() }
}

fn fetched(partition: i32, committed: &CommittedOffset) -> FetchedOffset {
    FetchedOffset {
        partition,
        offset: committed.offset,
        leader_epoch: committed.leader_epoch,
        metadata: committed.metadata.clone(),
    }
}
