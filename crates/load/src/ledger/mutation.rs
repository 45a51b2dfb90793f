//! The ledger's own test: a stream with known faults. The ledger must find every one.

use super::{Audit, DeliveryLedger, SentLedger, audit};
use crate::payload::{Account, Filler, Header, PayloadWriter};
use moldau_measure::Error;

const RUN: u32 = 0x5E1F;
const PARTITIONS: u16 = 3;
const RECORD_BYTES: usize = 100;

/// Records between two faults of the self-test, so that one cannot hide another.
const FAULT_DISTANCE: u64 = 8;

/// Faults put into a stream, and the audit that the ledger made of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Detection {
    /// What a ledger that finds everything reports.
    pub expected: Audit,
    /// What the ledger reported.
    pub found: Audit,
}

impl Detection {
    /// Whether every fault was found and nothing else.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.expected == self.found
    }
}

/// What can happen to a record on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It does not come.
    Loss,
    /// It comes twice.
    Duplicate,
    /// It comes in the place of the next one, and that in its own.
    Swap,
    /// One bit of it is another.
    BitFlip,
    /// It comes in the place of a record of another partition, and that in its own.
    Misroute,
}

impl Fault {
    /// Every kind.
    pub const ALL: [Self; 5] =
        [Self::Loss, Self::Duplicate, Self::Swap, Self::BitFlip, Self::Misroute];

    /// Adds what a ledger that finds everything says of this fault.
    pub fn note(self, expected: &mut Audit) {
        match self {
            Self::Loss => {
                expected.lost += 1;
                expected.offset_gaps += 1;
            }
            Self::Duplicate => {
                expected.duplicated += 1;
                expected.offset_regressions += 1;
            }
            Self::Swap => {
                expected.reordered += 1;
                expected.misplaced += 2;
            }
            Self::BitFlip => {
                expected.damaged += 1;
                expected.lost += 1;
            }
            Self::Misroute => {
                expected.misrouted += 2;
                expected.lost += 2;
            }
        }
    }
}

/// Sends `faults` faults of random kinds through the ledger, in a stream of eight times as many
/// records per partition.
///
/// # Errors
/// None in practice: the records of the self-test hold the header.
pub fn self_test(seed: u64, faults: u64) -> Result<Detection, Error> {
    let mut random = fastrand::Rng::with_seed(seed);
    let writer = PayloadWriter::new(Filler::Random, Account::Clear, seed, RECORD_BYTES)?;
    let mut sent = SentLedger::new(0, PARTITIONS);
    let mut delivered = DeliveryLedger::new(RUN, 1, PARTITIONS);
    let mut expected = Audit::default();
    for _ in 0..faults {
        let mut block = Block::send(&writer, &mut sent);
        let fault = random.choice(Fault::ALL).unwrap_or(Fault::Loss);
        block.damage(fault, &mut random);
        fault.note(&mut expected);
        block.deliver(&mut delivered);
    }
    let found = audit(std::slice::from_ref(&sent), &delivered);
    let records = faults * FAULT_DISTANCE * u64::from(PARTITIONS);
    expected.sent = records;
    expected.acked = records;
    expected.delivered = records - expected.lost;
    Ok(Detection { expected, found })
}

/// The next `FAULT_DISTANCE` records of every partition as they will be delivered.
struct Block {
    entries: Vec<Entry>,
}

struct Entry {
    partition: u16,
    offset: u64,
    value: Vec<u8>,
}

impl Block {
    fn send(writer: &PayloadWriter, sent: &mut SentLedger) -> Self {
        let mut entries = Vec::new();
        for partition in 0..PARTITIONS {
            for _ in 0..FAULT_DISTANCE {
                let sequence = sent.next_sequence(partition);
                sent.sent(partition);
                let mut value = Vec::new();
                let header = Header { run: RUN, producer: 0, partition, sequence, intended_ns: 0 };
                writer.write(header, &mut value);
                sent.acked(partition, sequence, 1, sequence);
                entries.push(Entry { partition, offset: sequence, value });
            }
        }
        Self { entries }
    }

    /// Applies one fault to partition 0 (a misroute also to partition 1), never at its first or
    /// last record.
    fn damage(&mut self, fault: Fault, random: &mut fastrand::Rng) {
        let distance = usize::try_from(FAULT_DISTANCE).unwrap_or(usize::MAX);
        let at = random.usize(1..distance - 2);
        match fault {
            Fault::Loss => {
                self.entries.remove(at);
            }
            Fault::Duplicate => {
                let Entry { partition, offset, ref value } = self.entries[at];
                let value = value.clone();
                self.entries.insert(at + 1, Entry { partition, offset, value });
            }
            Fault::Swap => self.swap_values(at, at + 1),
            Fault::BitFlip => {
                let bit = random.usize(0..RECORD_BYTES * 8);
                if let Some(byte) = self.entries[at].value.get_mut(bit / 8) {
                    *byte ^= 1 << (bit % 8);
                }
            }
            Fault::Misroute => self.swap_values(at, at + distance),
        }
    }

    fn swap_values(&mut self, a: usize, b: usize) {
        let moved = std::mem::take(&mut self.entries[a].value);
        self.entries[a].value = std::mem::replace(&mut self.entries[b].value, moved);
    }

    fn deliver(self, delivered: &mut DeliveryLedger) {
        for entry in self.entries {
            delivered.observe(entry.partition, entry.offset, &entry.value);
        }
    }
}
