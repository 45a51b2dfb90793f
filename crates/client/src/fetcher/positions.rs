//! Assigned partitions, their positions, and what follows from an answer: no I/O.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::time::Instant;

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

/// A partition that is to be fetched, as of the last look at it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Wanted {
    pub(super) key: Key,
    pub(super) topic: TopicRef,
    pub(super) partition: i32,
    pub(super) position: i64,
    pub(super) leader_epoch: i32,
    pub(super) generation: u64,
}

/// What has changed for the task of a broker since it last looked.
#[derive(Debug, Default)]
pub(super) struct Changes {
    /// Partitions to fetch from now on, or from another position than before.
    pub(super) read: Vec<Wanted>,
    /// Partitions not to fetch any more.
    pub(super) leave: Vec<Key>,
}

/// Changes are kept by broker, so that a look costs as much as has changed, however many
/// partitions are assigned.
#[derive(Debug, Default)]
pub(super) struct Positions {
    assigned: HashMap<Key, Assigned>,
    by_name: HashMap<TopicPartition, Key>,
    next_key: Key,
    next_generation: u64,
    metadata_generation: u64,
    /// Partitions whose position is unknown.
    unresolved: HashSet<Key>,
    leaderless: HashSet<Key>,
    /// Partitions that are left alone until a time.
    postponed: BTreeSet<(Instant, Key)>,
    /// What has changed of each broker's partitions since its task last looked.
    changed: HashMap<i32, HashSet<Key>>,
}

impl Positions {
    pub(super) fn assign(&mut self, topic: TopicRef, partition: i32, start: Start) {
        let name = TopicPartition { topic: topic.name.clone(), partition };
        self.unassign(&name);
        self.next_key += 1;
        self.next_generation += 1;
        let position = match start {
            Start::Offset(offset) => Position::At(offset),
            start => {
                self.unresolved.insert(self.next_key);
                Position::Unknown(start)
            }
        };
        self.by_name.insert(name, self.next_key);
        self.leaderless.insert(self.next_key);
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
        if let Some(key) = self.by_name.get(name) {
            self.give_up(*key);
        }
    }

    pub(super) fn set_paused(&mut self, name: &TopicPartition, paused: bool) {
        if let Some(key) = self.by_name.get(name).copied() {
            self.change(key, |assigned| assigned.paused = paused);
        }
    }

    pub(super) fn is_assigned(&self, name: &TopicPartition) -> bool {
        self.by_name.contains_key(name)
    }

    /// Whether `fetched` is of a partition that has been read without a break since.
    pub(super) fn is_valid(&self, fetched: &Fetched) -> bool {
        let key = self.by_name.get(&fetched.topic_partition());
        let assigned = key.and_then(|key| self.assigned.get(key));
        assigned.is_some_and(|assigned| assigned.generation == fetched.generation)
    }

    /// Takes leaders and ids from the metadata; true if a partition has another leader. A topic
    /// with another id was deleted and created again (KIP-516): its records are others, and are
    /// read from the first on.
    pub(super) fn follow_metadata(&mut self, metadata: &Metadata) -> bool {
        let keys: Vec<Key> = if metadata.generation == self.metadata_generation {
            self.leaderless.iter().copied().collect()
        } else {
            self.assigned.keys().copied().collect()
        };
        self.metadata_generation = metadata.generation;
        let (mut has_changed, mut created_again) = (false, Vec::new());
        for key in keys {
            let Some(assigned) = self.assigned.get_mut(&key) else { continue };
            let leader = metadata.leader(&assigned.topic.name, assigned.partition);
            let topic = metadata.topics.get(&assigned.topic.name);
            let id = topic.map_or(assigned.topic.id, |topic| topic.topic.id);
            if (leader, id) == (assigned.leader, assigned.topic.id) {
                continue;
            }
            if id != assigned.topic.id && !id.is_zero() && !assigned.topic.id.is_zero() {
                let name = Arc::clone(&assigned.topic.name);
                let topic = TopicRef { name, id };
                created_again.push((topic, assigned.partition, assigned.paused));
            }
            has_changed |= leader != assigned.leader;
            for broker in [assigned.leader, leader].into_iter().flatten() {
                self.changed.entry(broker.node).or_default().insert(key);
            }
            (assigned.leader, assigned.topic.id) = (leader, id);
            match leader {
                Some(_) => self.leaderless.remove(&key),
                None => self.leaderless.insert(key),
            };
        }
        if created_again.is_empty() {
            return has_changed;
        }
        for (topic, partition, is_paused) in created_again {
            let name = TopicPartition { topic: Arc::clone(&topic.name), partition };
            self.assign(topic, partition, Start::Earliest);
            self.set_paused(&name, is_paused);
        }
        self.follow_metadata(metadata);
        true
    }

    /// Brokers that lead assigned partitions, or did.
    pub(super) fn leaders(&self) -> impl Iterator<Item = i32> {
        self.changed.keys().copied()
    }

    pub(super) fn lacks_leader(&self) -> bool {
        !self.leaderless.is_empty()
    }

    /// Partitions whose position must be asked for.
    pub(super) fn unknown(&self) -> Vec<(Key, TopicPartition, Start)> {
        let unresolved = self.unresolved.iter();
        let unresolved = unresolved.filter_map(|key| Some((*key, self.assigned.get(key)?)));
        let due = unresolved.filter(|(_, assigned)| assigned.not_before.is_none());
        due.filter_map(|(key, assigned)| match assigned.position {
            Position::Unknown(start) => {
                let topic = assigned.topic.name.clone();
                Some((key, TopicPartition { topic, partition: assigned.partition }, start))
            }
            Position::At(_) => None,
        })
        .collect()
    }

    /// Tries partitions again whose time has come.
    pub(super) fn wake(&mut self, now: Instant) {
        while let Some((until, key)) = self.postponed.first().copied()
            && until <= now
        {
            self.postponed.pop_first();
            self.change(key, |assigned| assigned.not_before = None);
        }
    }

    /// What has changed in what to fetch from `node`.
    pub(super) fn changes(&mut self, node: i32) -> Changes {
        let mut changes = Changes::default();
        for key in self.changed.get_mut(&node).into_iter().flat_map(HashSet::drain) {
            match self.assigned.get(&key).and_then(|assigned| assigned.wanted(key, node)) {
                Some(wanted) => changes.read.push(wanted),
                None => changes.leave.push(key),
            }
        }
        changes
    }

    /// The earliest moment at which a failed partition may be tried again.
    pub(super) fn next_due(&self) -> Option<Instant> {
        self.postponed.first().map(|(until, _)| *until)
    }

    /// Sets the position that the leader named, unless it was set from outside meanwhile.
    pub(super) fn resolve(&mut self, key: Key, offset: i64) {
        if self.unresolved.remove(&key) {
            self.change(key, |assigned| assigned.position = Position::At(offset));
        }
    }

    /// No record has the timestamp that it was to start at.
    pub(super) fn start_at_end(&mut self, key: Key) {
        if self.unresolved.contains(&key) {
            self.change(key, |assigned| assigned.position = Position::Unknown(Start::Latest));
        }
    }

    /// Moves on after an answer to `wanted`; false if the partition was moved meanwhile.
    pub(super) fn advance(&mut self, wanted: &Wanted, next: i64) -> bool {
        let is_there = self.is_at(wanted);
        if is_there {
            self.change(wanted.key, |assigned| assigned.position = Position::At(next));
        }
        is_there
    }

    /// The position of `wanted` lies outside the log: go on at `start`.
    pub(super) fn reset(&mut self, wanted: &Wanted, start: Start) {
        if self.is_at(wanted) {
            self.unresolved.insert(wanted.key);
            self.change(wanted.key, |assigned| assigned.position = Position::Unknown(start));
        }
    }

    /// Leaves a partition alone until `until`.
    pub(super) fn postpone(&mut self, key: Key, until: Instant) {
        let mut before = None;
        self.change(key, |assigned| before = assigned.not_before.replace(until));
        if let Some(before) = before {
            self.postponed.remove(&(before, key));
        }
        if self.assigned.contains_key(&key) {
            self.postponed.insert((until, key));
        }
    }

    /// Stops reading a partition.
    pub(super) fn give_up(&mut self, key: Key) {
        self.change(key, |_| ());
        self.unresolved.remove(&key);
        self.leaderless.remove(&key);
        if let Some(assigned) = self.assigned.remove(&key) {
            if let Some(until) = assigned.not_before {
                self.postponed.remove(&(until, key));
            }
            let topic = assigned.topic.name;
            self.by_name.remove(&TopicPartition { topic, partition: assigned.partition });
        }
    }

    fn is_at(&self, wanted: &Wanted) -> bool {
        let assigned = self.assigned.get(&wanted.key);
        assigned.is_some_and(|assigned| assigned.position == Position::At(wanted.position))
    }

    /// Changes a partition that is assigned; the task of its leader will look at it.
    fn change(&mut self, key: Key, change: impl FnOnce(&mut Assigned)) {
        if let Some(assigned) = self.assigned.get_mut(&key) {
            change(assigned);
            if let Some(leader) = assigned.leader {
                self.changed.entry(leader.node).or_default().insert(key);
            }
        }
    }
}

impl Assigned {
    /// What to fetch from `node`, if that is the leader and nothing stands against it.
    fn wanted(&self, key: Key, node: i32) -> Option<Wanted> {
        let leader = self.leader.filter(|leader| leader.node == node)?;
        let Position::At(position) = self.position else { return None };
        (!self.paused && self.not_before.is_none()).then(|| Wanted {
            key,
            topic: self.topic.clone(),
            partition: self.partition,
            position,
            leader_epoch: leader.epoch,
            generation: self.generation,
        })
    }
}
