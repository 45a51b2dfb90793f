//! Assigned partitions, their positions, and what follows from an answer: no I/O.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Instant;

use moldau_protocol::Uuid;

use super::{Fetched, Start};
use crate::metadata::{Leader, Metadata, TopicRef};
use crate::offsets::TopicPartition;

/// Names an assigned partition for as long as it is assigned; never used twice.
pub(super) type Key = u64;

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Position {
    /// To be asked of the leader.
    Unknown(Start),
    At(i64),
}

#[derive(Debug)]
struct Assigned {
    topic: TopicRef,
    partition: i32,
    position: Position,
    leader: Option<Leader>,
    paused: bool,
    /// Nothing is asked before, after a failure.
    not_before: Option<Instant>,
    /// Rises when the position is set from outside, so that older answers are recognised.
    generation: u64,
}

/// A partition that is to be fetched.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Wanted {
    pub(super) key: Key,
    pub(super) topic: TopicRef,
    pub(super) partition: i32,
    pub(super) position: i64,
    pub(super) leader_epoch: i32,
    pub(super) generation: u64,
}

#[derive(Debug, Default)]
pub(super) struct Positions {
    assigned: HashMap<Key, Assigned>,
    by_name: HashMap<TopicPartition, Key>,
    next_key: Key,
    next_generation: u64,
    metadata_generation: u64,
}

impl Positions {
    pub(super) fn assign(&mut self, topic: TopicRef, partition: i32, start: Start) {
        let name = TopicPartition { topic: topic.name.clone(), partition };
        self.unassign(&name);
        self.next_key += 1;
        self.next_generation += 1;
        let position = match start {
            Start::Offset(offset) => Position::At(offset),
            start => Position::Unknown(start),
        };
        self.by_name.insert(name, self.next_key);
        self.assigned.insert(
            self.next_key,
            Assigned {
                topic,
                partition,
                position,
                leader: None,
                paused: false,
                not_before: None,
                generation: self.next_generation,
            },
        );
        self.metadata_generation = 0;
    }

    /// Moves a partition to `start`; whether it is assigned. It gets another key, so that a fetch
    /// session does not go on with the position that it knows.
    pub(super) fn seek(&mut self, name: &TopicPartition, start: Start) -> bool {
        let key = self.by_name.get(name);
        let Some(Assigned { topic, paused, .. }) = key.and_then(|key| self.assigned.get(key))
        else {
            return false;
        };
        let (topic, paused) = (topic.clone(), *paused);
        self.assign(topic, name.partition, start);
        self.set_paused(name, paused);
        true
    }

    pub(super) fn unassign(&mut self, name: &TopicPartition) {
        if let Some(key) = self.by_name.remove(name) {
            self.assigned.remove(&key);
        }
    }

    pub(super) fn set_paused(&mut self, name: &TopicPartition, paused: bool) {
        if let Some(assigned) = self.by_name.get(name).and_then(|key| self.assigned.get_mut(key)) {
            assigned.paused = paused;
        }
    }

    /// Whether `fetched` is of a partition that has been read without a break since.
    pub(super) fn is_valid(&self, fetched: &Fetched) -> bool {
        let key = self.by_name.get(&fetched.topic_partition());
        let assigned = key.and_then(|key| self.assigned.get(key));
        assigned.is_some_and(|assigned| assigned.generation == fetched.generation)
    }

    /// Takes leaders and ids from the metadata; true if a partition has another leader.
    pub(super) fn follow_metadata(&mut self, metadata: &Metadata) -> bool {
        if metadata.generation == self.metadata_generation {
            return false;
        }
        self.metadata_generation = metadata.generation;
        let mut has_changed = false;
        for assigned in self.assigned.values_mut() {
            let leader = metadata.leader(&assigned.topic.name, assigned.partition);
            has_changed |= leader != assigned.leader;
            assigned.leader = leader;
            if let Some(topic) = metadata.topics.get(&assigned.topic.name) {
                assigned.topic.id = topic.topic.id;
            }
        }
        has_changed
    }

    /// Brokers that lead assigned partitions.
    pub(super) fn leaders(&self) -> HashSet<i32> {
        let leaders = self.assigned.values().filter_map(|assigned| assigned.leader);
        leaders.map(|leader| leader.node).collect()
    }

    pub(super) fn lacks_leader(&self) -> bool {
        self.assigned.values().any(|assigned| assigned.leader.is_none())
    }

    /// Partitions whose position must be asked for.
    pub(super) fn unknown(&self, now: Instant) -> Vec<(Key, TopicPartition, Start)> {
        let due = self.assigned.iter().filter(|(_, assigned)| assigned.is_due(now));
        due.filter_map(|(key, assigned)| match assigned.position {
            Position::Unknown(start) => {
                let topic = assigned.topic.name.clone();
                Some((*key, TopicPartition { topic, partition: assigned.partition }, start))
            }
            Position::At(_) => None,
        })
        .collect()
    }

    /// What to fetch from `node`.
    pub(super) fn wanted(&self, node: i32, now: Instant) -> Vec<Wanted> {
        let due = self.assigned.iter().filter(|(_, assigned)| assigned.is_due(now));
        due.filter_map(|(key, assigned)| {
            let leader = assigned.leader.filter(|leader| leader.node == node)?;
            let Position::At(position) = assigned.position else { return None };
            (!assigned.paused).then(|| Wanted {
                key: *key,
                topic: assigned.topic.clone(),
                partition: assigned.partition,
                position,
                leader_epoch: leader.epoch,
                generation: assigned.generation,
            })
        })
        .collect()
    }

    /// The earliest moment at which a failed partition may be tried again.
    pub(super) fn next_due(&self, now: Instant) -> Option<Instant> {
        let pauses = self.assigned.values().filter_map(|assigned| assigned.not_before);
        pauses.filter(|pause| *pause > now).min()
    }

    /// Sets the position that the leader named, unless it was set from outside meanwhile.
    pub(super) fn resolve(&mut self, key: Key, offset: i64) {
        if let Some(assigned) = self.assigned.get_mut(&key)
            && matches!(assigned.position, Position::Unknown(_))
        {
            assigned.position = Position::At(offset);
        }
    }

    /// No record has the timestamp that it was to start at.
    pub(super) fn start_at_end(&mut self, key: Key) {
        if let Some(assigned) = self.assigned.get_mut(&key)
            && matches!(assigned.position, Position::Unknown(_))
        {
            assigned.position = Position::Unknown(Start::Latest);
        }
    }

    /// Moves on after an answer to `wanted`; false if the partition was moved meanwhile.
    pub(super) fn advance(&mut self, wanted: &Wanted, next: i64) -> bool {
        match self.assigned.get_mut(&wanted.key) {
            Some(assigned) if assigned.position == Position::At(wanted.position) => {
                assigned.position = Position::At(next);
                true
            }
            _ => false,
        }
    }

    /// The position of `wanted` lies outside the log: go on at `start`.
    pub(super) fn reset(&mut self, wanted: &Wanted, start: Start) {
        if let Some(assigned) = self.assigned.get_mut(&wanted.key)
            && assigned.position == Position::At(wanted.position)
        {
            assigned.position = Position::Unknown(start);
        }
    }

    /// Leaves a partition alone until `until`.
    pub(super) fn postpone(&mut self, key: Key, until: Instant) {
        if let Some(assigned) = self.assigned.get_mut(&key) {
            assigned.not_before = Some(until);
        }
    }

    /// Stops reading a partition that cannot be read.
    pub(super) fn give_up(&mut self, key: Key) {
        if let Some(assigned) = self.assigned.remove(&key) {
            let topic = assigned.topic.name;
            self.by_name.remove(&TopicPartition { topic, partition: assigned.partition });
        }
    }
}

impl Assigned {
    fn is_due(&self, now: Instant) -> bool {
        self.not_before.is_none_or(|pause| pause <= now)
    }
}

/// Finds the asked-for partition that a part of an answer belongs to.
#[derive(Debug, Default)]
pub(super) struct Lookup {
    by_name: HashMap<(Arc<str>, i32), Wanted>,
    by_id: HashMap<(Uuid, i32), Wanted>,
}

impl Lookup {
    pub(super) fn of(wanted: &[Wanted]) -> Self {
        let mut lookup = Self::default();
        for wanted in wanted {
            let (topic, partition) = (&wanted.topic, wanted.partition);
            lookup.by_name.insert((topic.name.clone(), partition), wanted.clone());
            lookup.by_id.insert((topic.id, partition), wanted.clone());
        }
        lookup
    }

    /// By name up to version 12 of Fetch, by id from 13 on (KIP-516).
    pub(super) fn find(&self, name: &str, id: Uuid, partition: i32) -> Option<&Wanted> {
        if name.is_empty() {
            self.by_id.get(&(id, partition))
        } else {
            self.by_name.get(&(name.into(), partition))
        }
    }
}
