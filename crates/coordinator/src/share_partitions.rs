//! Share groups' deliveries as a pure state machine (KIP-932): which records of a partition a group
//! has in flight, who holds them, and what became of them. Membership is not its subject.
//!
//! # Layout
//!
//! | module | subject |
//! |---|---|
//! | `partition` | one partition: deliveries, locks, the start offset |
//! | `acknowledge` | what members say of the records they hold |
//! | `record` | what is written durably, and its binary form |
//!
//! # Driving it
//!
//! [`Shares::apply`] all stored records. Afterwards, for a change that must survive, write the
//! [`ShareRecord`] and then apply it. Deliveries ([`Shares::acquire`]) and longer locks
//! ([`Shares::renew`]) are not stored: after a restart the records are available again. When
//! [`Shares::due`] names a partition, locks of it may have ended: [`Shares::expire`].
//!
//! # Invariants
//!
//! - A record has one holder at a time, and is not delivered once it is acknowledged or archived.
//! - A record is delivered at most as often as the settings say.
//! - Replaying the records of all changes gives the same state, but for deliveries under way.
//! - A record that a group with dead letters gives up is archived after it was buried, even where
//!   the log lost it meanwhile.
//! - A partition has at most as many records in flight as the settings say, and two entries for
//!   each.

mod acknowledge;
mod partition;
mod record;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;

use moldau_protocol::{ErrorCode, Uuid};

pub use acknowledge::Acknowledgement;
pub use partition::SharePartition;
pub use record::{Cause, Changes, ShareKey, ShareRecord, StoredRun, StoredState};

/// Partitions of all share groups that have a state: each takes some hundred bytes, and more while
/// records are in flight.
pub const SHARE_PARTITIONS_MAX: usize = 500_000;

/// What a group may do with the records of a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeliverySettings {
    /// How long a member holds records: `share.record.lock.duration.ms`.
    pub lock_duration_ms: i64,
    /// How often a record is delivered: `share.delivery.count.limit`.
    pub deliveries_max: i16,
    /// Records of a partition in flight: `share.partition.max.record.locks`.
    pub locks_max: i64,
    /// Whether rejected and spent records get a dead-letter record before they are archived:
    /// `errors.deadletterqueue.topic.name` is not empty (KIP-1191).
    pub has_dead_letters: bool,
}

impl Default for DeliverySettings {
    fn default() -> Self {
        Self {
            lock_duration_ms: 30_000,
            deliveries_max: 5,
            locks_max: 2_000,
            has_dead_letters: false,
        }
    }
}

impl DeliverySettings {
    /// What becomes of a record that was delivered so often, and is not done with.
    fn released(&self, deliveries: i16) -> StoredState {
        match deliveries < self.deliveries_max {
            true => StoredState::Available,
            false => self.given_up(Cause::Spent),
        }
    }

    /// What becomes of a record that is not delivered again.
    fn given_up(&self, cause: Cause) -> StoredState {
        match self.has_dead_letters {
            true => StoredState::Archiving(cause),
            false => StoredState::Archived,
        }
    }
}

/// What was read of a log.
#[derive(Clone, Copy, Debug)]
pub struct Fetched<'a> {
    /// The offset that was read from.
    pub offset: i64,
    /// The batches in the order of their offsets, the first of which may begin before the offset.
    /// The log has nothing between them.
    pub batches: &'a [FetchedBatch],
}

/// One batch of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FetchedBatch {
    /// The first offset.
    pub first: i64,
    /// The last offset.
    pub last: i64,
    /// False for markers and for what was aborted.
    pub is_delivered: bool,
}

/// How records are chosen (KIP-1206).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AcquireMode {
    /// Batches stay whole, so that a member may get more records than it asks for.
    BatchOptimized,
    /// A member gets no more records than it asks for.
    RecordLimit,
}

/// How much a member wants.
#[derive(Clone, Copy, Debug)]
pub struct AcquireLimits {
    /// How records are chosen.
    pub mode: AcquireMode,
    /// So many records.
    pub records_max: i64,
    /// Records that are listed as one range, if batches allow it.
    pub batch_size: i64,
}

/// Records that a member holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Acquired {
    /// The first offset.
    pub first: i64,
    /// The last offset.
    pub last: i64,
    /// Which delivery this is.
    pub deliveries: i16,
}

/// Neighbouring records that are archived once their dead-letter records are durable (KIP-1191).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeadLetters {
    /// The first offset.
    pub first: i64,
    /// The last offset.
    pub last: i64,
    /// How often they were delivered.
    pub deliveries: i16,
    /// Why they are not delivered again.
    pub cause: Cause,
}

/// What acknowledgements mean, once they are written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Acknowledged {
    /// To be written and applied.
    pub record: Option<ShareRecord>,
    /// Records whose locks begin anew, for [`Shares::renew`].
    pub renewed: Vec<(i64, i64)>,
}

/// The share partitions of a broker.
#[derive(Debug, Default)]
pub struct Shares {
    partitions: BTreeMap<ShareKey, SharePartition>,
    /// When locks of a partition may end.
    checks: BTreeSet<(i64, ShareKey)>,
    /// Partitions that may have records that wait for a dead-letter record.
    burials: BTreeSet<ShareKey>,
}

impl Shares {
    /// A partition that a group has read.
    pub fn get(&self, key: &ShareKey) -> Option<&SharePartition> {
        self.partitions.get(key)
    }

    /// The partitions that a group has read.
    pub fn of_group(&self, group_id: &str) -> impl Iterator<Item = (&ShareKey, &SharePartition)> {
        let first =
            ShareKey { group_id: group_id.into(), topic_id: Uuid::ZERO, partition: i32::MIN };
        let from = self.partitions.range(first..);
        from.take_while(move |(key, _)| *key.group_id == *group_id)
    }

    /// The topics that groups have read.
    pub fn topics(&self) -> BTreeSet<Uuid> {
        let mut topics = BTreeSet::new();
        let mut next = self.partitions.keys().next();
        while let Some(key) = next {
            topics.insert(key.topic_id);
            let last = ShareKey { partition: i32::MAX, ..key.clone() };
            let behind = (Bound::Excluded(last), Bound::Unbounded);
            next = self.partitions.range(behind).next().map(|(key, _)| key);
        }
        topics
    }

    /// Partitions that have a state.
    pub fn len(&self) -> usize {
        self.partitions.len()
    }

    /// Whether no partition has a state.
    pub fn is_empty(&self) -> bool {
        self.partitions.is_empty()
    }

    /// The record that makes a partition begin at an offset, with nothing in flight. `is_initial`
    /// says that the offset is the group's first, and not one that somebody chose.
    pub fn place(&self, key: ShareKey, start: i64, is_initial: bool) -> Option<ShareRecord> {
        let has_room =
            self.partitions.len() < SHARE_PARTITIONS_MAX || self.partitions.contains_key(&key);
        let state = Changes { start: start.max(0), runs: Vec::new() };
        has_room.then_some(ShareRecord::Placed { key, is_initial, state })
    }

    /// Gives a member records of what was read of a partition.
    pub fn acquire(
        &mut self,
        now_ms: i64,
        key: &ShareKey,
        member: &Arc<str>,
        fetched: &Fetched<'_>,
        limits: AcquireLimits,
        settings: &DeliverySettings,
    ) -> Vec<Acquired> {
        let acquired = self.with(key, |it| it.acquire(now_ms, member, fetched, limits, settings));
        // A lower limit of deliveries gives up records here.
        if settings.has_dead_letters && self.dead_letters(key).is_some() {
            self.burials.insert(key.clone());
        }
        acquired.unwrap_or_default()
    }

    /// Decides what a member says of the records it holds: all of it or nothing.
    ///
    /// # Errors
    /// `INVALID_RECORD_STATE` for a record that the member does not hold, `INVALID_REQUEST` for one
    /// that was never delivered, `UNKNOWN_TOPIC_OR_PARTITION` where nothing was.
    pub fn acknowledge(
        &self,
        key: &ShareKey,
        member: &str,
        acknowledgements: &[Acknowledgement],
        settings: &DeliverySettings,
    ) -> Result<Acknowledged, ErrorCode> {
        let partition = self.get(key).ok_or(ErrorCode::UnknownTopicOrPartition)?;
        let decided = acknowledge::decide(partition, member, acknowledgements, settings)?;
        let record = decided.changes.map(|changes| changed(key, changes));
        Ok(Acknowledged { record, renewed: decided.renewed })
    }

    /// Makes locks begin anew.
    pub fn renew(
        &mut self,
        now_ms: i64,
        key: &ShareKey,
        renewed: &[(i64, i64)],
        settings: &DeliverySettings,
    ) {
        if !renewed.is_empty() {
            self.with(key, |partition| partition.renew(now_ms, renewed, settings));
        }
    }

    /// What it means for a partition that a member is gone.
    pub fn release(
        &self,
        key: &ShareKey,
        member: &str,
        settings: &DeliverySettings,
    ) -> Option<ShareRecord> {
        Some(changed(key, self.get(key)?.release(member, settings)?))
    }

    /// When [`Shares::due`] names a partition next.
    pub fn next_deadline(&self) -> Option<i64> {
        self.checks.first().map(|(at_ms, _)| *at_ms)
    }

    /// A partition that is to be looked at.
    pub fn due(&self, now_ms: i64) -> Option<ShareKey> {
        let (at_ms, key) = self.checks.first()?;
        (*at_ms <= now_ms).then(|| key.clone())
    }

    /// What it means for a partition that locks ended. Once it is applied, or if it is nothing,
    /// [`Shares::checked`] ends the look.
    pub fn expire(
        &self,
        now_ms: i64,
        key: &ShareKey,
        settings: &DeliverySettings,
    ) -> Option<ShareRecord> {
        Some(changed(key, self.get(key)?.expire(now_ms, settings)?))
    }

    /// A partition was looked at, and is next when the first of its locks ends.
    pub fn checked(&mut self, key: &ShareKey) {
        self.with(key, SharePartition::reschedule);
    }

    /// A partition behind this one, or the first, with records that wait for a dead-letter record.
    pub fn next_burial(&mut self, after: Option<&ShareKey>) -> Option<(ShareKey, DeadLetters)> {
        use std::ops::Bound::{Excluded, Unbounded};
        while let Some(first) = self.burials.first() {
            let behind = after.map_or(Unbounded, Excluded);
            let key = self.burials.range((behind, Unbounded)).next().unwrap_or(first).clone();
            if let Some(letters) = self.dead_letters(&key) {
                return Some((key, letters));
            }
            self.burials.remove(&key);
        }
        None
    }

    /// Whether records may wait for dead-letter records.
    pub fn has_burials(&self) -> bool {
        !self.burials.is_empty()
    }

    /// What it means that records have their dead-letter records, or get none.
    pub fn buried(&self, key: &ShareKey, letters: &DeadLetters) -> Option<ShareRecord> {
        Some(changed(key, self.get(key)?.buried(letters)?))
    }

    /// The log of a partition begins at this offset.
    pub fn log_starts_at(&mut self, key: &ShareKey, offset: i64) {
        self.with(key, |partition| partition.move_start(offset));
    }

    /// Applies a record that is written.
    pub fn apply(&mut self, record: ShareRecord) {
        match record {
            ShareRecord::Placed { key, is_initial, state } => {
                self.remove(&key);
                let mut partition = SharePartition::starting_at(state.start);
                if !is_initial {
                    partition.apply(&state);
                }
                self.note_burials(&key, &state);
                self.partitions.insert(key, partition);
            }
            // Of a partition that is not there, it was written behind the end of the group.
            ShareRecord::Changed { key, changes } => {
                if self.with(&key, |partition| partition.apply(&changes)).is_some() {
                    self.note_burials(&key, &changes);
                }
            }
            ShareRecord::Removed { group_id, topic_id } => {
                let known = self.of_group(&group_id).map(|(key, _)| key.clone());
                let gone = known.filter(|key| topic_id.is_none_or(|id| key.topic_id == id));
                gone.collect::<Vec<_>>().iter().for_each(|key| self.remove(key));
            }
        }
    }

    /// Forgets the partitions of topics that do not exist.
    pub fn retain_topics(&mut self, exists: impl Fn(Uuid) -> bool) {
        let gone = self.partitions.keys().filter(|key| !exists(key.topic_id)).cloned();
        gone.collect::<Vec<_>>().iter().for_each(|key| self.remove(key));
    }

    /// The records that make the same state.
    pub fn snapshot(&self) -> impl Iterator<Item = ShareRecord> {
        self.partitions.iter().map(|(key, partition)| ShareRecord::Placed {
            key: key.clone(),
            is_initial: partition.is_initial(),
            state: partition.stored(),
        })
    }

    fn dead_letters(&self, key: &ShareKey) -> Option<DeadLetters> {
        self.get(key)?.dead_letters()
    }

    fn note_burials(&mut self, key: &ShareKey, changes: &Changes) {
        let mut states = changes.runs.iter().map(|run| run.state);
        if states.any(|state| matches!(state, StoredState::Archiving(_))) {
            self.burials.insert(key.clone());
        }
    }

    fn remove(&mut self, key: &ShareKey) {
        self.burials.remove(key);
        if let Some(partition) = self.partitions.remove(key)
            && let Some(at_ms) = partition.check_at_ms()
        {
            self.checks.remove(&(at_ms, key.clone()));
        }
    }

    fn with<T>(
        &mut self,
        key: &ShareKey,
        step: impl FnOnce(&mut SharePartition) -> T,
    ) -> Option<T> {
        let partition = self.partitions.get_mut(key)?;
        let before = partition.check_at_ms();
        let stepped = step(partition);
        let after = partition.check_at_ms();
        if before != after {
            before.map(|at_ms| self.checks.remove(&(at_ms, key.clone())));
            after.map(|at_ms| self.checks.insert((at_ms, key.clone())));
        }
        Some(stepped)
    }
}

fn changed(key: &ShareKey, changes: Changes) -> ShareRecord {
    ShareRecord::Changed { key: key.clone(), changes }
}
