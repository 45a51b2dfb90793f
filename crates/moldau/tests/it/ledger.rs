//! Numbered records, what a producer was told about them, and what a reader found.
//!
//! A value is a CRC-32C of what follows (4 bytes), its partition (4 bytes), its number in that
//! partition (8 bytes) and a filling; all numbers big-endian.

use moldau_client::{Delivery, Fetched};
use moldau_records::{Decompressor, crc32c};

/// Shortest value: its fields without a filling.
const VALUE_BYTES_MIN: usize = 16;

/// Most bytes that a batch may unpack to; the tests send far smaller ones.
const BATCH_BYTES_MAX: usize = 16 << 20;

/// Problems kept: the first tell what went wrong, a thousand of one kind tell no more.
const PROBLEMS_MAX: usize = 20;

/// How often a record may stand in its partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Repeats {
    /// Once, as an idempotent producer promises.
    Never,
    /// Again after a retry whose first attempt had been appended unnoticed.
    Allowed,
}

/// What is known of each partition of one topic.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    partitions: Vec<Partition>,
    problems: Vec<String>,
}

#[derive(Debug, Default)]
struct Partition {
    sent: u64,
    acknowledged: Vec<Acknowledged>,
    /// Numbers by offset, from offset 0.
    found: Vec<u64>,
    /// What earlier readers found.
    found_before: Vec<u64>,
}

/// Consecutive records of one batch.
#[derive(Debug)]
struct Acknowledged {
    first: u64,
    count: u64,
    /// `None` if the broker did not say.
    base_offset: Option<i64>,
}

impl Ledger {
    pub(crate) fn new(partition_count: usize) -> Self {
        let partitions = std::iter::repeat_with(Partition::default).take(partition_count);
        Self { partitions: partitions.collect(), problems: Vec::new() }
    }

    /// The number of the next record to a partition.
    pub(crate) fn next(&mut self, partition: usize) -> u64 {
        let sent = &mut self.partitions[partition].sent;
        *sent += 1;
        *sent - 1
    }

    /// Notes what the producer was told of a batch; the tokens are the numbers.
    pub(crate) fn note_delivery(&mut self, delivery: &Delivery<'_>) {
        let (index, tokens) = (delivery.partition, delivery.tokens);
        let Some(first) = tokens.first().copied() else { return };
        let count = tokens.len();
        if let Some(error) = delivery.error {
            self.problem(format!("partition {index}: {count} from {first} not delivered: {error}"));
            return;
        }
        if tokens.windows(2).any(|pair| pair[0] + 1 != pair[1]) {
            self.problem(format!("partition {index}: {count} from {first} are out of order"));
        }
        let acknowledged =
            Acknowledged { first, count: count as u64, base_offset: delivery.base_offset };
        self.partitions[usize::try_from(index).unwrap()].acknowledged.push(acknowledged);
    }

    /// A reader begins at the start of the partitions.
    pub(crate) fn begin_reading(&mut self) {
        for partition in &mut self.partitions {
            let found = std::mem::take(&mut partition.found);
            if found.len() > partition.found_before.len() {
                partition.found_before = found;
            }
        }
    }

    /// Notes records that were read.
    pub(crate) fn note_fetched(&mut self, fetched: &Fetched, decompressor: &mut Decompressor) {
        let partition = fetched.partition;
        let own = u32::try_from(partition).unwrap();
        let mut problems = Vec::new();
        let found = &mut self.partitions[usize::try_from(partition).unwrap()].found;
        let walked = fetched.for_each_record(decompressor, BATCH_BYTES_MAX, |record| {
            if record.offset() != i64::try_from(found.len()).unwrap() {
                let expected = found.len();
                problems.push(format!("{partition}@{}: expected {expected}", record.offset()));
            }
            match number(own, record.value().unwrap_or_default()) {
                Some(number) => found.push(number),
                None => problems.push(format!("{partition}@{}: damaged", record.offset())),
            }
        });
        problems.into_iter().for_each(|problem| self.problem(problem));
        if let Err(error) = walked {
            self.problem(format!("partition {partition} from {}: {error}", fetched.position));
        }
    }

    pub(crate) fn problem(&mut self, problem: String) {
        if self.problems.len() < PROBLEMS_MAX {
            self.problems.push(problem);
        }
    }

    /// Records that were acknowledged.
    pub(crate) fn acknowledged(&self) -> u64 {
        let runs = self.partitions.iter().flat_map(|partition| &partition.acknowledged);
        runs.map(|run| run.count).sum()
    }

    /// Records that were read.
    pub(crate) fn found(&self) -> u64 {
        self.partitions.iter().map(|partition| partition.found.len() as u64).sum()
    }

    /// Compares what was sent, acknowledged and found, and returns all that is wrong. Everything
    /// sent must have been acknowledged.
    pub(crate) fn into_problems(mut self, repeats: Repeats) -> Vec<String> {
        for (index, partition) in std::mem::take(&mut self.partitions).into_iter().enumerate() {
            for problem in partition.problems(repeats) {
                self.problem(format!("partition {index}: {problem}"));
            }
        }
        self.problems
    }
}

impl Partition {
    fn problems(&self, repeats: Repeats) -> Vec<String> {
        let mut problems = Vec::new();
        let acknowledged: u64 = self.acknowledged.iter().map(|run| run.count).sum();
        if acknowledged != self.sent {
            problems.push(format!("{} sent, {acknowledged} acknowledged", self.sent));
        }
        for run in &self.acknowledged {
            let Some(base) = run.base_offset else { continue };
            let base = usize::try_from(base).unwrap();
            let expected = run.first..run.first + run.count;
            let place = base..base + usize::try_from(run.count).unwrap();
            let stands = self.found.get(place).unwrap_or_default();
            if !expected.clone().eq(stands.iter().copied()) {
                let (from, to) = (stands.first(), stands.last());
                let there = format!("{} there, from {from:?} to {to:?}", stands.len());
                problems.push(format!("{expected:?} acknowledged at {base}; {there}"));
            }
        }
        if !self.found.starts_with(&self.found_before) {
            let (before, found) = (self.found_before.len(), self.found.len());
            problems.push(format!("of {before} read before, not all are among the {found} found"));
        }
        let mut times = vec![0u32; usize::try_from(self.sent).unwrap()];
        let mut strange = 0;
        for number in &self.found {
            match usize::try_from(*number).ok().and_then(|number| times.get_mut(number)) {
                Some(times) => *times += 1,
                None => strange += 1,
            }
        }
        let mut offsets = self.found.iter().enumerate();
        if repeats == Repeats::Never
            && let Some((offset, number)) =
                offsets.find(|(offset, number)| **number != *offset as u64)
        {
            problems.push(format!("number {number} at offset {offset}, the first so misplaced"));
        }
        let lost = times.iter().filter(|times| **times == 0).count();
        let again = times.iter().filter(|times| **times > 1).count();
        if lost > 0 || strange > 0 || (again > 0 && repeats == Repeats::Never) {
            let found = self.found.len();
            problems.push(format!("{found} found: {lost} lost, {again} again, {strange} unsent"));
        }
        problems
    }
}

/// Writes the value of a record, `length` bytes long or as short as it can be.
pub(crate) fn write_value(value: &mut Vec<u8>, partition: u32, number: u64, length: usize) {
    value.clear();
    value.extend_from_slice(&[0; 4]);
    value.extend_from_slice(&partition.to_be_bytes());
    value.extend_from_slice(&number.to_be_bytes());
    let [.., filling] = number.to_be_bytes();
    value.resize(length.max(VALUE_BYTES_MIN), filling);
    let crc = crc32c(&value[4..]);
    value[..4].copy_from_slice(&crc.to_be_bytes());
}

/// The number in a value of this partition; `None` if it is damaged or belongs elsewhere.
pub(crate) fn number(partition: u32, value: &[u8]) -> Option<u64> {
    let (crc, rest) = value.split_first_chunk()?;
    let (own, filled) = rest.split_first_chunk()?;
    let (number, _) = filled.split_first_chunk()?;
    let is_whole = u32::from_be_bytes(*crc) == crc32c(rest);
    (is_whole && u32::from_be_bytes(*own) == partition).then_some(u64::from_be_bytes(*number))
}

mod tests {
    use super::*;

    #[test]
    fn ledger_distinguishes_lost_repeated_misplaced_and_unsent_records() {
        let run = |first, count, base| Acknowledged { first, count, base_offset: Some(base) };
        let partition = |found: &[u64]| Partition {
            sent: 4,
            acknowledged: vec![run(0, 2, 0), run(2, 2, 2)],
            found: found.to_vec(),
            found_before: vec![0, 1],
        };
        let problems = |found: &[u64], repeats| partition(found).problems(repeats).join("; ");
        assert_eq!(problems(&[0, 1, 2, 3], Repeats::Never), "");
        assert_eq!(problems(&[0, 1, 2, 3, 2, 3], Repeats::Allowed), "");
        assert!(problems(&[0, 1, 2, 3, 2, 3], Repeats::Never).contains("0 lost, 2 again"));
        assert!(problems(&[0, 1, 2], Repeats::Allowed).contains("1 lost"));
        assert!(problems(&[0, 1, 1, 2, 3], Repeats::Allowed).contains("2..4 acknowledged at 2"));
        assert!(problems(&[0, 1, 3, 2], Repeats::Never).contains("number 3 at offset 2"));
        assert!(problems(&[1, 0, 2, 3], Repeats::Allowed).contains("2 read before"));
        assert!(problems(&[0, 1, 2, 3, 9], Repeats::Allowed).contains("1 unsent"));
    }

    #[test]
    fn a_damaged_value_has_no_sequence() {
        let mut value = Vec::new();
        write_value(&mut value, 2, 77, 40);
        assert_eq!(number(2, &value), Some(77));
        assert_eq!(number(1, &value), None);
        for at in 0..value.len() {
            let mut damaged = value.clone();
            damaged[at] ^= 0x10;
            assert_eq!(number(2, &damaged), None, "byte {at}");
            assert_eq!(number(2, &value[..at]), None, "the first {at} bytes");
        }
    }
}
