//! The ledger of every record: what was sent, acknowledged and delivered, and what went wrong.
//!
//! Each producer numbers its records per partition from 0. The sending side notes which numbers
//! were acknowledged at which offsets ([`SentLedger`]), the reading side which numbers came back
//! at which offsets ([`DeliveryLedger`]). Both keep runs of consecutive numbers at consecutive
//! offsets, so an undisturbed stream costs a few comparisons per record and no memory. [`audit`]
//! compares the two.

#[cfg(test)]
mod damage;
mod mutation;
mod runs;

pub use mutation::Fault;
pub use mutation::{Detection, self_test};

use serde::{Deserialize, Serialize};

use crate::payload::{Damage, Header};
use runs::{Arrival, Run, Runs};

/// What one producer thread knows about its own records.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SentLedger {
    producer: u16,
    lanes: Vec<SentLane>,
}

#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SentLane {
    sent: u64,
    acked: Runs,
    failed: u64,
}

impl SentLedger {
    /// The ledger of `producer`, which sends to partitions `0..partitions`.
    #[must_use]
    pub fn new(producer: u16, partitions: u16) -> Self {
        Self { producer, lanes: (0..partitions).map(|_| SentLane::default()).collect() }
    }

    /// The number of the next record for `partition`.
    ///
    /// # Panics
    /// When the partition is not one of the ledger's.
    #[must_use]
    pub fn next_sequence(&self, partition: u16) -> u64 {
        let lane = self.lanes.get(usize::from(partition));
        lane.expect("the producer keeps to its partitions").sent
    }

    /// The next record for `partition` was handed to the client.
    pub fn sent(&mut self, partition: u16) {
        self.lane(partition).sent += 1;
    }

    /// `count` records from `sequence` were acknowledged, the first at `base_offset`.
    pub fn acked(&mut self, partition: u16, sequence: u64, count: u64, base_offset: u64) {
        self.lane(partition).acked.insert(Run { sequence, offset: base_offset, count });
    }

    /// `count` records were refused with an error that promises that they were not stored.
    pub fn failed(&mut self, partition: u16, count: u64) {
        self.lane(partition).failed += count;
    }

    /// Records acknowledged so far.
    #[must_use]
    pub fn acked_count(&self) -> u64 {
        self.lanes.iter().map(|lane| lane.acked.count()).sum()
    }

    /// The producer.
    pub fn producer(&self) -> u16 {
        self.producer
    }

    /// Records acknowledged so far, by partition.
    pub fn acked_by_partition(&self) -> impl ExactSizeIterator<Item = u64> {
        self.lanes.iter().map(|lane| lane.acked.count())
    }

    /// The offsets after the last record acknowledged so far, by partition.
    pub fn ends_by_partition(&self) -> impl ExactSizeIterator<Item = u64> {
        self.lanes.iter().map(|lane| lane.acked.offset_end())
    }

    fn lane(&mut self, partition: u16) -> &mut SentLane {
        self.lanes.get_mut(usize::from(partition)).expect("the producer keeps to its partitions")
    }
}

/// What came back from the partitions of one topic.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeliveryLedger {
    run: u32,
    producers: u16,
    partitions: Vec<DeliveredPartition>,
    damaged: u64,
    misrouted: u64,
    foreign: u64,
}

#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct DeliveredPartition {
    /// One per producer.
    lanes: Vec<DeliveredLane>,
    next_offset: u64,
    offset_gaps: u64,
    offset_regressions: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct DeliveredLane {
    seen: Runs,
    duplicated: u64,
    reordered: u64,
}

impl DeliveryLedger {
    /// A ledger for the records of run `run` from producers `0..producers`.
    #[must_use]
    pub fn new(run: u32, producers: u16, partitions: u16) -> Self {
        let partition = || DeliveredPartition {
            lanes: vec![DeliveredLane::default(); usize::from(producers)],
            ..DeliveredPartition::default()
        };
        Self {
            run,
            producers,
            partitions: (0..partitions).map(|_| partition()).collect(),
            damaged: 0,
            misrouted: 0,
            foreign: 0,
        }
    }

    /// Notes a record; gives its header back when it is intact and came for the first time.
    pub fn observe(&mut self, partition: u16, offset: u64, value: &[u8]) -> Option<Header> {
        let Some(delivered) = self.partitions.get_mut(usize::from(partition)) else {
            self.misrouted += 1;
            return None;
        };
        delivered.note_offset(offset);
        let header = match Header::read(value) {
            Ok(header) => header,
            Err(Damage::Short | Damage::Checksum) => {
                self.damaged += 1;
                return None;
            }
            Err(Damage::Foreign) => {
                self.foreign += 1;
                return None;
            }
        };
        if header.run != self.run || header.producer >= self.producers {
            self.foreign += 1;
            return None;
        }
        if header.partition != partition {
            self.misrouted += 1;
            return None;
        }
        let lane = delivered.lanes.get_mut(usize::from(header.producer))?;
        match lane.seen.insert(Run { sequence: header.sequence, offset, count: 1 }) {
            Arrival::InOrder => Some(header),
            Arrival::Late => {
                lane.reordered += 1;
                Some(header)
            }
            Arrival::Repeated => {
                lane.duplicated += 1;
                None
            }
        }
    }

    /// Notes a record that cannot have come as it was sent, whatever its value says.
    pub fn note_damaged(&mut self, partition: u16, offset: u64) {
        self.pass(partition, offset);
        self.damaged += 1;
    }

    /// An offset of a partition holds no record, and is not meant to.
    pub fn pass(&mut self, partition: u16, offset: u64) {
        if let Some(delivered) = self.partitions.get_mut(usize::from(partition)) {
            delivered.note_offset(offset);
        }
    }

    /// Distinct intact records that came back.
    #[must_use]
    pub fn delivered_count(&self) -> u64 {
        self.lanes().map(|lane| lane.seen.count()).sum()
    }

    /// Takes the partitions that another reader of the same records has read, and all that it could
    /// not place. Its ledger has the size of this one, or nothing is taken.
    pub fn take(&mut self, other: Self, is_theirs: impl Fn(u16) -> bool) -> bool {
        let size = |it: &Self| {
            let lanes: Vec<usize> = it.partitions.iter().map(|it| it.lanes.len()).collect();
            (it.run, it.producers, lanes)
        };
        if size(self) != size(&other) {
            return false;
        }
        self.damaged += other.damaged;
        self.misrouted += other.misrouted;
        self.foreign += other.foreign;
        let both = self.partitions.iter_mut().zip(other.partitions);
        for (partition, (mine, theirs)) in (0..).zip(both) {
            if is_theirs(partition) {
                *mine = theirs;
            }
        }
        true
    }

    fn lanes(&self) -> impl Iterator<Item = &DeliveredLane> {
        self.partitions.iter().flat_map(|partition| &partition.lanes)
    }
}

impl DeliveredPartition {
    fn note_offset(&mut self, offset: u64) {
        if offset >= self.next_offset {
            self.offset_gaps += offset - self.next_offset;
            self.next_offset = offset.saturating_add(1);
        } else {
            self.offset_regressions += 1;
        }
    }
}

/// The outcome of comparing what was sent with what came back, in records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Audit {
    /// Handed to the client.
    pub sent: u64,
    /// Acknowledged.
    pub acked: u64,
    /// Refused with a definite error.
    pub failed: u64,
    /// Neither acknowledged nor refused.
    pub unknown: u64,
    /// Distinct intact records read back.
    pub delivered: u64,
    /// Acknowledged and not read back.
    pub lost: u64,
    /// Read back more than once.
    pub duplicated: u64,
    /// Read back after a later record of the same producer and partition.
    pub reordered: u64,
    /// Read back with a wrong checksum or cut short.
    pub damaged: u64,
    /// Read back from a partition that they were not sent to.
    pub misrouted: u64,
    /// Intact records of another run.
    pub foreign: u64,
    /// Read back at another offset than the acknowledgement named.
    pub misplaced: u64,
    /// Offsets that no record was read from.
    pub offset_gaps: u64,
    /// Records whose offset was not above the one before.
    pub offset_regressions: u64,
}

impl Audit {
    /// Whether every acknowledged record came back once, intact, in order and in its place.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.faults() == 0
    }

    /// All faults together.
    #[must_use]
    pub fn faults(&self) -> u64 {
        self.lost
            + self.duplicated
            + self.reordered
            + self.damaged
            + self.misrouted
            + self.foreign
            + self.misplaced
            + self.offset_gaps
            + self.offset_regressions
    }

    /// The sum of two audits of different topics.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            sent: self.sent + other.sent,
            acked: self.acked + other.acked,
            failed: self.failed + other.failed,
            unknown: self.unknown + other.unknown,
            delivered: self.delivered + other.delivered,
            lost: self.lost + other.lost,
            duplicated: self.duplicated + other.duplicated,
            reordered: self.reordered + other.reordered,
            damaged: self.damaged + other.damaged,
            misrouted: self.misrouted + other.misrouted,
            foreign: self.foreign + other.foreign,
            misplaced: self.misplaced + other.misplaced,
            offset_gaps: self.offset_gaps + other.offset_gaps,
            offset_regressions: self.offset_regressions + other.offset_regressions,
        }
    }
}

/// Compares the ledgers of all producers with the ledger of the reader.
#[must_use]
pub fn audit(sent: &[SentLedger], delivered: &DeliveryLedger) -> Audit {
    let mut audit = Audit {
        delivered: delivered.delivered_count(),
        duplicated: delivered.lanes().map(|lane| lane.duplicated).sum(),
        reordered: delivered.lanes().map(|lane| lane.reordered).sum(),
        damaged: delivered.damaged,
        misrouted: delivered.misrouted,
        foreign: delivered.foreign,
        offset_gaps: delivered.partitions.iter().map(|p| p.offset_gaps).sum(),
        offset_regressions: delivered.partitions.iter().map(|p| p.offset_regressions).sum(),
        ..Audit::default()
    };
    let nothing = Runs::default();
    for ledger in sent {
        for (partition, lane) in ledger.lanes.iter().enumerate() {
            let seen = delivered
                .partitions
                .get(partition)
                .and_then(|partition| partition.lanes.get(usize::from(ledger.producer)))
                .map_or(&nothing, |delivered| &delivered.seen);
            let overlap = lane.acked.overlap(seen);
            audit.sent += lane.sent;
            audit.acked += lane.acked.count();
            audit.failed += lane.failed;
            audit.unknown += lane.sent.saturating_sub(lane.acked.count() + lane.failed);
            audit.lost += lane.acked.count() - overlap.common;
            audit.misplaced += overlap.elsewhere;
        }
    }
    audit
}

#[cfg(test)]
mod tests;
