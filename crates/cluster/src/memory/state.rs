//! Topics, logs and objects.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use uuid::Uuid;

use crate::sequencer::{
    BatchEntry, Extent, Find, Found, LogId, ObjectKey, Outcome, Part, Retention, Swap, Topic,
};
use crate::{Answer, Error};

/// All that the sequencer knows.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct State {
    pub(super) topics: BTreeMap<Uuid, Topic>,
    /// Topics whose logs wait for the sweep.
    pub(super) deleted: BTreeSet<Uuid>,
    pub(super) logs: BTreeMap<LogId, Log>,
    pub(super) objects: BTreeMap<ObjectKey, Object>,
    pub(super) commits: u64,
    /// By producer.
    pub(super) fences: BTreeMap<i64, Fence>,
    /// Time since the state was made.
    pub(super) clock: Duration,
    /// Keys of generations below this have expired.
    pub(super) expired_below: u32,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(super) struct Log {
    pub(super) start_offset: i64,
    pub(super) next_offset: i64,
    pub(super) end_bytes: i64,
    pub(super) peak_timestamp: i64,
    pub(super) leader: Option<i32>,
    pub(super) leader_epoch: i32,
    /// By last offset.
    pub(super) extents: BTreeMap<i64, Placed>,
    pub(super) producers: BTreeMap<i64, Producer>,
    pub(super) transactions: Transactions,
}

/// An extent with the greatest timestamp and the bytes of the log up to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Placed {
    pub(super) extent: Extent,
    pub(super) peak_timestamp: i64,
    pub(super) end_bytes: i64,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(super) struct Producer {
    pub(super) epoch: i16,
    pub(super) last_timestamp: i64,
    pub(super) appended_at: Duration,
    /// Decision and offset of its last marker that has a decision.
    pub(super) ended: Option<(i64, i64)>,
    /// Of this epoch, oldest first.
    pub(super) marks: Vec<Mark>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(super) struct Fence {
    /// The lowest epoch with which the producer opens transactions.
    pub(super) epoch: i16,
    /// The greatest decision of the producer in the logs that forgot it.
    pub(super) decision: Option<i64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Mark {
    pub(super) first_sequence: i32,
    pub(super) last_sequence: i32,
    pub(super) base_offset: i64,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Object {
    /// Counts commits.
    pub(super) sequence: u64,
    /// Extents that name it; dead without any.
    pub(super) live: usize,
    pub(super) deleted: bool,
    /// None if it was condemned before any commit.
    pub(super) answers: Option<Vec<Outcome>>,
}

/// Transactions of a log that matter to its readers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(super) struct Transactions {
    /// First offset of the open transaction of a producer.
    pub(super) open: BTreeMap<i64, i64>,
    /// By the offset of the marker: producer and first offset.
    pub(super) aborted: BTreeMap<i64, (i64, i64)>,
}

impl Transactions {
    /// Takes up a batch that was appended at an offset.
    pub(super) fn note(&mut self, batch: &BatchEntry, base_offset: i64) {
        let Some(sent) = batch.producer else { return };
        match batch.part {
            Part::Outside => {}
            Part::Inside => {
                self.open.entry(sent.id).or_insert(base_offset);
            }
            Part::Marker(marker) => {
                let opened = self.open.remove(&sent.id);
                if let (Some(first_offset), false) = (opened, marker.commits) {
                    self.aborted.insert(base_offset, (sent.id, first_offset));
                }
            }
        }
    }
}

impl State {
    /// Moves the clock, which stands still otherwise.
    pub fn pass(&mut self, time: Duration) {
        self.clock = self.clock.saturating_add(time);
    }

    /// As [`crate::Sequencer::find`], for one log.
    #[must_use]
    pub fn find(&self, find: &Find) -> Option<Found> {
        if !self.exists(find.log) {
            return None;
        }
        let empty = Log::default();
        let log = self.logs.get(&find.log).unwrap_or(&empty);
        let is_inside = (log.start_offset..log.next_offset).contains(&find.offset);
        let most = usize::try_from(find.extents_max).unwrap_or_default();
        let wanted = if is_inside { most } else { 0 };
        let extents = log.extents.range(find.offset..).take(wanted);
        Some(Found {
            start_offset: log.start_offset,
            high_watermark: log.next_offset,
            last_stable_offset: log.last_stable_offset(),
            has_aborted: {
                let from = find.offset.max(log.start_offset);
                log.transactions.aborted.range(from..).next().is_some()
            },
            leader: log.leader,
            leader_epoch: log.leader_epoch,
            extents: extents.map(|(_, placed)| placed.extent).collect(),
        })
    }

    /// As [`crate::Sequencer::find_time`].
    #[must_use]
    pub fn find_time(&self, id: LogId, timestamp: i64) -> Option<Extent> {
        let log = self.logs.get(&id).filter(|_| self.exists(id))?;
        let mut extents = log.extents.range(log.start_offset..).map(|(_, placed)| placed.extent);
        extents.find(|extent| extent.max_timestamp >= timestamp)
    }

    /// As [`crate::Sequencer::find_latest`].
    #[must_use]
    pub fn find_latest(&self, id: LogId) -> Option<Extent> {
        let log = self.logs.get(&id).filter(|_| self.exists(id))?;
        let extents = log.extents.range(log.start_offset..).map(|(_, placed)| placed.extent);
        let whole = extents.filter(|extent| extent.base_offset >= log.start_offset);
        whole.rev().max_by_key(|extent| extent.max_timestamp)
    }

    /// As [`crate::Sequencer::sizes`], for one log.
    #[must_use]
    pub fn size(&self, id: LogId) -> Option<i64> {
        let of_log = |log: &Log| {
            let (_, first) = log.extents.range(log.start_offset..).next()?;
            Some(log.end_bytes - first.end_bytes + i64::from(first.extent.size))
        };
        self.exists(id).then(|| self.logs.get(&id).and_then(of_log).unwrap_or(0))
    }

    /// As [`crate::Sequencer::trim`].
    ///
    /// # Errors
    /// [`Error::UnknownLog`]; [`Error::OffsetOutOfRange`].
    pub fn trim(&mut self, id: LogId, before: i64) -> Answer<i64> {
        let log = self.log_mut(id).ok_or(Error::UnknownLog)?;
        let start = if before == -1 { log.next_offset } else { before };
        if start < 0 || start > log.next_offset {
            return Err(Error::OffsetOutOfRange(before));
        }
        log.start_offset = log.start_offset.max(start);
        Ok(log.start_offset)
    }

    /// As [`crate::Sequencer::retain`].
    ///
    /// # Errors
    /// [`Error::UnknownLog`].
    pub fn retain(&mut self, id: LogId, keep: Retention) -> Answer<i64> {
        let Some(log) = self.logs.get(&id) else { return Ok(0) };
        let stays = |placed: &Placed| {
            keep.before_timestamp.is_none_or(|before| placed.extent.max_timestamp >= before)
                && keep.bytes.is_none_or(|bytes| log.end_bytes - placed.end_bytes < bytes)
        };
        let mut kept = log.extents.range(log.start_offset..).map(|(_, placed)| placed);
        let start = kept.find(|placed| stays(placed)).map(|placed| placed.extent.base_offset);
        let start = start.unwrap_or(log.next_offset).min(log.last_stable_offset());
        self.trim(id, start)
    }

    /// As [`crate::Sequencer::sweep`]. The order of work is its own.
    pub fn sweep(&mut self, extents_max: usize) -> bool {
        let mut released = Vec::new();
        for (id, log) in &mut self.logs {
            let is_deleted = self.deleted.contains(&id.topic);
            let end = if is_deleted { i64::MAX } else { log.start_offset };
            let room = extents_max.saturating_sub(released.len());
            let gone: Vec<i64> =
                log.extents.range(..end).map(|(last, _)| *last).take(room).collect();
            log.transactions.aborted.retain(|last, _| *last >= end);
            for last in gone {
                released.extend(log.extents.remove(&last).map(|placed| placed.extent.object));
            }
        }
        for key in &released {
            self.release(*key);
        }
        let topics = self.deleted.len();
        if released.is_empty() {
            for topic in std::mem::take(&mut self.deleted) {
                self.logs.retain(|id, _| id.topic != topic);
            }
        }
        !released.is_empty() || topics > 0
    }

    /// As [`crate::Sequencer::unsorted`].
    #[must_use]
    pub fn unsorted(&self, objects_max: usize) -> Vec<(LogId, Extent)> {
        let is_unsorted = |object: &Object| {
            object.live > 0 && object.answers.as_ref().is_some_and(|answers| !answers.is_empty())
        };
        let objects = self.objects.iter().filter(|(_, object)| is_unsorted(object));
        let mut objects: Vec<_> = objects.map(|(key, object)| (object.sequence, *key)).collect();
        objects.sort_unstable();
        objects.truncate(objects_max);
        let of_object = |(_, key)| {
            self.logs.iter().filter(|(id, _)| self.exists(**id)).flat_map(move |(id, log)| {
                let kept = log.extents.range(log.start_offset..).map(|(_, placed)| placed.extent);
                kept.filter(move |extent| extent.object == key).map(|extent| (*id, extent))
            })
        };
        objects.into_iter().flat_map(of_object).collect()
    }

    /// As [`crate::Sequencer::swap`].
    ///
    /// # Errors
    /// [`Error::SourcesChanged`]; [`Error::ObjectDead`].
    pub fn swap(&mut self, swap: &Swap) -> Answer<()> {
        if let Some(object) = self.objects.get(&swap.key) {
            return object.answers.as_ref().map(|_| ()).ok_or(Error::ObjectDead(swap.key));
        }
        self.admit(swap.key)?;
        let source = |id: &LogId, last: i64| {
            let log = self.logs.get(id)?;
            log.extents.get(&last).filter(|_| last >= log.start_offset).copied()
        };
        let is_there = |(id, extent): &(LogId, Extent)| {
            source(id, extent.last_offset)
                .is_some_and(|placed| placed.extent.object == extent.object)
        };
        let covers = |(id, extent): &(LogId, Extent)| {
            swap.sources
                .iter()
                .any(|(log, from)| log == id && from.last_offset == extent.last_offset)
        };
        if !swap.sources.iter().all(is_there) || !swap.targets.iter().all(covers) {
            return Err(Error::SourcesChanged);
        }
        let mut gone = BTreeMap::new();
        for (id, extent) in &swap.sources {
            let log = self.logs.get_mut(id).ok_or(Error::SourcesChanged)?;
            if let Some(placed) = log.extents.remove(&extent.last_offset) {
                gone.insert((*id, extent.last_offset), placed);
            }
        }
        for (id, target) in &swap.targets {
            let placed = gone.get(&(*id, target.last_offset)).ok_or(Error::SourcesChanged)?;
            let extent = Extent { object: swap.key, sorted: true, ..*target };
            let log = self.logs.get_mut(id).ok_or(Error::SourcesChanged)?;
            log.extents.insert(target.last_offset, Placed { extent, ..*placed });
        }
        let (live, answers) = (swap.targets.len(), Some(Vec::new()));
        self.objects.insert(swap.key, Object { sequence: 0, live, deleted: false, answers });
        for (_, extent) in &swap.sources {
            self.release(extent.object);
        }
        Ok(())
    }

    /// As [`crate::Sequencer::create_topic`].
    ///
    /// # Errors
    /// [`Error::TopicExists`].
    pub fn create_topic(&mut self, topic: &Topic) -> Answer<()> {
        let exists = self.topics.get(&topic.id).is_some_and(|other| other.name == topic.name);
        if exists {
            return Ok(());
        }
        let is_taken = self.topics.values().any(|other| other.name == topic.name);
        if is_taken || self.topics.contains_key(&topic.id) || self.deleted.contains(&topic.id) {
            return Err(Error::TopicExists(topic.name.clone()));
        }
        self.topics.insert(topic.id, topic.clone());
        Ok(())
    }

    /// As [`crate::Sequencer::grow_topic`].
    ///
    /// # Errors
    /// [`Error::UnknownLog`].
    pub fn grow_topic(&mut self, id: Uuid, partitions: i32) -> Answer<i32> {
        let topic = self.topics.get_mut(&id).ok_or(Error::UnknownLog)?;
        topic.partitions = topic.partitions.max(partitions);
        Ok(topic.partitions)
    }

    /// As [`crate::Sequencer::delete_topic`].
    ///
    /// # Errors
    /// [`Error::UnknownLog`].
    pub fn delete_topic(&mut self, id: Uuid) -> Answer<()> {
        self.topics.remove(&id).ok_or(Error::UnknownLog)?;
        self.deleted.insert(id);
        Ok(())
    }

    /// As [`crate::Sequencer::topics`].
    #[must_use]
    pub fn topics(&self) -> Vec<Topic> {
        self.topics.values().cloned().collect()
    }

    /// As [`crate::Sequencer::move_logs`].
    pub fn move_logs(&mut self, logs: &[LogId], leader: i32) -> i32 {
        let logs: BTreeSet<LogId> = logs.iter().copied().collect();
        let mut moved = 0;
        for id in logs {
            if let Some(log) = self.log_mut(id) {
                log.leader = Some(leader);
                log.leader_epoch += 1;
                moved += 1;
            }
        }
        moved
    }

    /// The log, made if it is the first use of it; none if there is no such partition.
    pub(super) fn log_mut(&mut self, id: LogId) -> Option<&mut Log> {
        let exists = self.exists(id);
        let made = || Log { peak_timestamp: -1, ..Log::default() };
        exists.then(|| self.logs.entry(id).or_insert_with(made))
    }

    pub(super) fn exists(&self, id: LogId) -> bool {
        let topic = self.topics.get(&id.topic);
        topic.is_some_and(|topic| (0..topic.partitions).contains(&id.partition))
    }

    fn release(&mut self, key: ObjectKey) {
        if let Some(object) = self.objects.get_mut(&key) {
            object.live = object.live.saturating_sub(1);
        }
    }
}
