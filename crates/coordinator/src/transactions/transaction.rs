//! One transactional id: who may use it, and its open transaction.

use std::collections::{BTreeMap, BTreeSet};

use moldau_protocol::Uuid;

use super::record::{Outcome, TransactionChange, TransactionRecord};
use super::{Ending, TransactionState};
use crate::offsets::Offsets;
use crate::producer_ids::ProducerIdentity;
use crate::record::TopicOffsets;

/// Stands for an identity that there is not.
pub(super) const NO_PRODUCER: ProducerIdentity = ProducerIdentity { id: -1, epoch: -1 };

/// From this epoch on a producer gets another id: the largest is reserved for fencing.
const EPOCH_EXHAUSTED: i16 = i16::MAX - 1;

/// Bytes that the end of a transaction takes for one partition: entry header, batch header and the
/// marker, rounded up.
const MARKER_BYTES: usize = 160;

/// Bytes that an offset takes beside its texts, rounded up.
const OFFSET_BYTES: usize = 64;

/// Whether there is no epoch left that the producer's owner may have.
pub(super) fn is_exhausted(producer: ProducerIdentity) -> bool {
    producer.epoch >= EPOCH_EXHAUSTED
}

pub(super) fn next_epoch(producer: ProducerIdentity) -> ProducerIdentity {
    ProducerIdentity { epoch: producer.epoch.saturating_add(1), ..producer }
}

/// What is known of one transactional id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Transaction {
    pub(super) producer: ProducerIdentity,
    /// The identity that `producer` replaced, if its owner asked for that.
    pub(super) previous: ProducerIdentity,
    pub(super) timeout_ms: i32,
    pub(super) phase: Phase,
    /// Counts the decisions whose markers follow them.
    pub(super) decision: i64,
    /// The last one, until its markers are written.
    pub(super) unmarked: Option<Unmarked>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Empty {
        since_ms: i64,
    },
    Ongoing(Ongoing),
    /// `start_ms` is -1 where nothing was begun.
    Complete {
        outcome: Outcome,
        start_ms: i64,
        since_ms: i64,
    },
}

/// An open transaction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Ongoing {
    pub(super) start_ms: i64,
    pub(super) partitions: BTreeSet<(Uuid, i32)>,
    /// By group; empty for a group that was only announced.
    pub(super) groups: BTreeMap<String, Offsets>,
    /// Bytes of all texts in `groups`, and [`OFFSET_BYTES`] for each offset.
    offset_bytes: usize,
}

/// A decided transaction whose markers may be missing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unmarked {
    /// Grows with each decision about a producer.
    pub decision: i64,
    /// How it ended.
    pub outcome: Outcome,
    /// The producer, with the epoch of the markers.
    pub producer: ProducerIdentity,
    /// Those that get a marker.
    pub partitions: BTreeSet<(Uuid, i32)>,
}

impl Transaction {
    pub(super) fn new(producer: ProducerIdentity, timeout_ms: i32, now_ms: i64) -> Self {
        let phase = Phase::Empty { since_ms: now_ms };
        Self { producer, previous: NO_PRODUCER, timeout_ms, phase, decision: 0, unmarked: None }
    }

    pub(super) fn state(&self) -> TransactionState {
        match self.unmarked.as_ref().map(|unmarked| unmarked.outcome) {
            Some(Outcome::Commit) => return TransactionState::PrepareCommit,
            Some(Outcome::Abort) => return TransactionState::PrepareAbort,
            None => {}
        }
        match self.phase {
            Phase::Empty { .. } => TransactionState::Empty,
            Phase::Ongoing(_) => TransactionState::Ongoing,
            Phase::Complete { outcome: Outcome::Commit, .. } => TransactionState::CompleteCommit,
            Phase::Complete { outcome: Outcome::Abort, .. } => TransactionState::CompleteAbort,
        }
    }

    pub(super) fn ongoing(&self) -> Option<&Ongoing> {
        match &self.phase {
            Phase::Ongoing(ongoing) => Some(ongoing),
            Phase::Empty { .. } | Phase::Complete { .. } => None,
        }
    }

    /// When the open transaction began, or the last one; -1 without one.
    pub(super) fn start_ms(&self) -> i64 {
        match self.phase {
            Phase::Ongoing(Ongoing { start_ms, .. }) | Phase::Complete { start_ms, .. } => start_ms,
            Phase::Empty { .. } => -1,
        }
    }

    /// When the transaction times out, or the id is forgotten.
    pub(super) fn deadline(&self, expiration_ms: i64) -> i64 {
        if self.unmarked.is_some() {
            return i64::MAX;
        }
        match &self.phase {
            Phase::Ongoing(ongoing) => ongoing.start_ms.saturating_add(self.timeout_ms.into()),
            Phase::Empty { since_ms } | Phase::Complete { since_ms, .. } => {
                since_ms.saturating_add(expiration_ms)
            }
        }
    }

    /// What has to be done for the open transaction to end.
    pub(super) fn ending(&self, producer: ProducerIdentity, outcome: Outcome) -> Ending {
        let ongoing = self.ongoing();
        let partitions = ongoing.into_iter().flat_map(|ongoing| &ongoing.partitions);
        let groups = ongoing.into_iter().flat_map(|ongoing| &ongoing.groups);
        let offsets = groups
            .filter(|_| outcome == Outcome::Commit)
            .flat_map(|(group, offsets)| offsets.snapshot().map(|topic| (group.clone(), topic)));
        let (partitions, offsets) = (partitions.copied().collect(), offsets.collect());
        Ending { producer, outcome, partitions, offsets }
    }

    /// Applies a change; a change of an open transaction begins it if need be.
    pub(super) fn apply(&mut self, time_ms: i64, change: TransactionChange) {
        match change {
            TransactionChange::Initialized { producer, previous, timeout_ms } => {
                self.phase = Phase::Empty { since_ms: time_ms };
                (self.producer, self.previous) = (producer, previous);
                self.timeout_ms = timeout_ms;
            }
            TransactionChange::PartitionsAdded(topics) => {
                let ongoing = self.begin(time_ms);
                for (topic, partitions) in topics {
                    ongoing.partitions.extend(partitions.into_iter().map(|index| (topic, index)));
                }
            }
            TransactionChange::GroupAdded(group_id) => {
                self.begin(time_ms).groups.entry(group_id).or_default();
            }
            TransactionChange::OffsetsPending { group_id, topics } => {
                self.begin(time_ms).add_offsets(group_id, topics);
            }
            TransactionChange::Ended { outcome, producer, previous } => {
                (self.producer, self.previous) = (producer, previous);
                let start_ms = self.start_ms();
                self.phase = Phase::Complete { outcome, start_ms, since_ms: time_ms };
            }
            TransactionChange::Decided { outcome, producer, previous, marker, decision } => {
                let partitions = self.ongoing().map(|ongoing| ongoing.partitions.clone());
                let unmarked = Unmarked {
                    decision,
                    outcome,
                    producer: marker,
                    partitions: partitions.unwrap_or_default(),
                };
                self.apply(time_ms, TransactionChange::Ended { outcome, producer, previous });
                self.decision = decision;
                self.unmarked = Some(unmarked).filter(|it| !it.partitions.is_empty());
            }
            TransactionChange::Marked { decision } => {
                self.unmarked = self.unmarked.take().filter(|it| it.decision != decision);
            }
            TransactionChange::Forgotten => {}
        }
    }

    /// Records that restore the last decision. What stands behind them replaces the rest.
    fn snapshot_of_decision(
        &self,
        record: &dyn Fn(i64, TransactionChange) -> TransactionRecord,
    ) -> Vec<TransactionRecord> {
        if self.decision == 0 {
            return Vec::new();
        }
        let (mut records, mut outcome, mut marker) = (Vec::new(), Outcome::Abort, NO_PRODUCER);
        if let Some(unmarked) = &self.unmarked {
            let topics = by_topic(unmarked.partitions.iter().copied());
            records.push(record(0, TransactionChange::PartitionsAdded(topics)));
            (outcome, marker) = (unmarked.outcome, unmarked.producer);
        }
        let (producer, previous, decision) = (self.producer, self.previous, self.decision);
        let decided = TransactionChange::Decided { outcome, producer, previous, marker, decision };
        records.push(record(0, decided));
        records
    }

    fn begin(&mut self, now_ms: i64) -> &mut Ongoing {
        if !matches!(self.phase, Phase::Ongoing(_)) {
            self.phase = Phase::Ongoing(Ongoing { start_ms: now_ms, ..Ongoing::default() });
        }
        match &mut self.phase {
            Phase::Ongoing(ongoing) => ongoing,
            Phase::Empty { .. } | Phase::Complete { .. } => unreachable!("begun above"),
        }
    }

    /// Records that restore the id.
    pub(super) fn snapshot(&self, id: &str) -> Vec<TransactionRecord> {
        let record = |time_ms, change| TransactionRecord {
            transactional_id: id.to_owned(),
            time_ms,
            change,
        };
        let (producer, previous) = (self.producer, self.previous);
        let (Phase::Empty { since_ms: time_ms }
        | Phase::Ongoing(Ongoing { start_ms: time_ms, .. })
        | Phase::Complete { since_ms: time_ms, .. }) = self.phase;
        let timeout_ms = self.timeout_ms;
        let change = TransactionChange::Initialized { producer, previous, timeout_ms };
        let mut records = self.snapshot_of_decision(&record);
        records.push(record(time_ms, change));
        match &self.phase {
            Phase::Empty { .. } => {}
            Phase::Complete { outcome, start_ms, .. } => {
                if *start_ms >= 0 {
                    // It begins a transaction, of which only the time is left.
                    let begun = TransactionChange::PartitionsAdded(Vec::new());
                    records.push(record(*start_ms, begun));
                }
                let change = TransactionChange::Ended { outcome: *outcome, producer, previous };
                records.push(record(time_ms, change));
            }
            Phase::Ongoing(ongoing) => {
                if !ongoing.partitions.is_empty() {
                    let topics = by_topic(ongoing.partitions.iter().copied());
                    records.push(record(time_ms, TransactionChange::PartitionsAdded(topics)));
                }
                for (group_id, offsets) in &ongoing.groups {
                    let added = TransactionChange::GroupAdded(group_id.clone());
                    records.push(record(time_ms, added));
                    records.extend(offsets.snapshot().map(|topic| {
                        let (group_id, topics) = (group_id.clone(), vec![topic]);
                        record(time_ms, TransactionChange::OffsetsPending { group_id, topics })
                    }));
                }
            }
        }
        records
    }
}

impl Ongoing {
    /// Offsets that wait for the commit.
    pub(super) fn offsets_count(&self) -> usize {
        self.groups.values().map(Offsets::count).sum()
    }

    /// An upper bound of what the end of the transaction takes in the journal.
    pub(super) fn ending_bytes(&self) -> usize {
        let groups = self.groups.keys().map(|group_id| group_id.len() + OFFSET_BYTES);
        self.partitions.len() * MARKER_BYTES + self.offset_bytes + groups.sum::<usize>()
    }

    fn add_offsets(&mut self, group_id: String, topics: Vec<TopicOffsets>) {
        // A group id stands in each record of its offsets.
        let group_bytes = group_id.len();
        let offsets = self.groups.entry(group_id).or_default();
        for TopicOffsets { topic, partitions } in topics {
            for (partition, committed) in partitions {
                let bytes = |text: &str| OFFSET_BYTES + group_bytes + topic.len() + text.len();
                let before = offsets.get(&topic, partition);
                self.offset_bytes -= before.map_or(0, |before| bytes(&before.metadata));
                self.offset_bytes += bytes(&committed.metadata);
                offsets.insert(&topic, partition, committed);
            }
        }
    }
}

/// Bytes that a change adds to the end of its transaction at most.
pub(super) fn added_ending_bytes(change: &TransactionChange) -> usize {
    match change {
        TransactionChange::PartitionsAdded(topics) => {
            topics.iter().map(|(_, partitions)| partitions.len() * MARKER_BYTES).sum()
        }
        TransactionChange::GroupAdded(group_id) => group_id.len() + OFFSET_BYTES,
        TransactionChange::OffsetsPending { group_id, topics } => {
            let mut bytes = group_id.len() + OFFSET_BYTES;
            for TopicOffsets { topic, partitions } in topics {
                let fixed = OFFSET_BYTES + group_id.len() + topic.len();
                let texts = partitions.iter().map(|(_, committed)| committed.metadata.len());
                bytes += partitions.len() * fixed + texts.sum::<usize>();
            }
            bytes
        }
        TransactionChange::Initialized { .. }
        | TransactionChange::Ended { .. }
        | TransactionChange::Decided { .. }
        | TransactionChange::Marked { .. }
        | TransactionChange::Forgotten => 0,
    }
}

/// Partitions in order, with their topic named once.
pub(super) fn by_topic(partitions: impl Iterator<Item = (Uuid, i32)>) -> Vec<(Uuid, Vec<i32>)> {
    let mut topics: Vec<(Uuid, Vec<i32>)> = Vec::new();
    for (topic, partition) in partitions {
        match topics.last_mut() {
            Some((last, indexes)) if *last == topic => indexes.push(partition),
            _ => topics.push((topic, vec![partition])),
        }
    }
    topics
}
