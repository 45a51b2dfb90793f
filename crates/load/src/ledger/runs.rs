//! Sets of sequence numbers with their offsets, as sorted runs.
//!
//! On their way to another machine they are text: base64 of three variable-length numbers for each
//! run, which are how many sequence numbers it leaves out after the one before, how far its offset
//! is from the one that would follow, and its length. Behind them stands, as a run of no
//! length, how many records had no room, if there are any.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use moldau_records::varint::{read_i64, read_u64, write_i64, write_u64};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Runs that one set may hold. An undisturbed stream is one run, and a partition that several
/// producers share breaks at every batch: at 32 bytes each this is 128 MiB, some ten hours of
/// 100 batches per second. Records beyond it are not noted, which the audit reports as lost.
const RUNS_MAX: usize = 4 << 20;

/// `count` consecutive sequence numbers at as many consecutive offsets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Run {
    pub(super) sequence: u64,
    pub(super) offset: u64,
    pub(super) count: u64,
}

impl Run {
    fn end(&self) -> u64 {
        self.sequence.saturating_add(self.count)
    }

    /// Where a run begins that continues this one.
    fn next(&self) -> Self {
        Self { sequence: self.end(), offset: self.offset.saturating_add(self.count), count: 0 }
    }

    fn is_followed_by(&self, next: &Self) -> bool {
        self.end() == next.sequence && self.offset.saturating_add(self.count) == next.offset
    }
}

/// How an inserted run relates to what was there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arrival {
    /// Above everything seen.
    InOrder,
    /// Below something seen, and not seen itself.
    Late,
    /// Seen before, at least in part; nothing is inserted.
    Repeated,
}

/// How two sets meet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Overlap {
    /// Sequence numbers in both.
    pub(super) common: u64,
    /// Those of them that have different offsets.
    pub(super) elsewhere: u64,
}

/// Disjoint runs in the order of their sequence numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Runs {
    runs: Vec<Run>,
    /// Records, those that had no room included.
    count: u64,
    /// Those that had none.
    unnoted: u64,
}

impl Runs {
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// The offset after the last of the set, 0 of an empty one.
    pub(super) fn offset_end(&self) -> u64 {
        self.runs.iter().map(|run| run.next().offset).max().unwrap_or(0)
    }

    #[inline]
    pub(super) fn insert(&mut self, run: Run) -> Arrival {
        match self.runs.last_mut() {
            Some(last) if last.is_followed_by(&run) => {
                last.count += run.count;
                self.count += run.count;
                Arrival::InOrder
            }
            Some(last) if run.sequence < last.end() => self.insert_below_the_end(run),
            _ => {
                self.insert_at(self.runs.len(), run);
                Arrival::InOrder
            }
        }
    }

    fn insert_below_the_end(&mut self, run: Run) -> Arrival {
        let at = self.runs.partition_point(|other| other.sequence <= run.sequence);
        let follows_a_free_place = at
            .checked_sub(1)
            .and_then(|i| self.runs.get(i))
            .is_none_or(|b| b.end() <= run.sequence);
        let precedes_the_next = self.runs.get(at).is_none_or(|next| run.end() <= next.sequence);
        if !(follows_a_free_place && precedes_the_next) {
            return Arrival::Repeated;
        }
        self.insert_at(at, run);
        Arrival::Late
    }

    fn insert_at(&mut self, at: usize, run: Run) {
        if self.runs.len() < RUNS_MAX {
            self.runs.insert(at, run);
        } else {
            self.unnoted += run.count;
        }
        self.count += run.count;
    }

    pub(super) fn overlap(&self, other: &Self) -> Overlap {
        let mut overlap = Overlap::default();
        let mut theirs = other.runs.iter().peekable();
        for mine in &self.runs {
            while let Some(their) = theirs.peek() {
                if their.sequence >= mine.end() {
                    break;
                }
                let from = mine.sequence.max(their.sequence);
                let to = mine.end().min(their.end());
                let common = to.saturating_sub(from);
                overlap.common += common;
                let same_place = mine.offset.wrapping_sub(mine.sequence)
                    == their.offset.wrapping_sub(their.sequence);
                overlap.elsewhere += if same_place { 0 } else { common };
                if their.end() > mine.end() {
                    break;
                }
                theirs.next();
            }
        }
        overlap
    }
}

impl Serialize for Runs {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (mut bytes, mut next) = (Vec::new(), Run { sequence: 0, offset: 0, count: 0 });
        for run in &self.runs {
            write_u64(&mut bytes, run.sequence.wrapping_sub(next.sequence));
            write_i64(&mut bytes, run.offset.wrapping_sub(next.offset).cast_signed());
            write_u64(&mut bytes, run.count);
            next = run.next();
        }
        if self.unnoted > 0 {
            write_u64(&mut bytes, self.unnoted);
            write_i64(&mut bytes, 0);
            write_u64(&mut bytes, 0);
        }
        serializer.serialize_str(&BASE64.encode(bytes))
    }
}

impl<'de> Deserialize<'de> for Runs {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let bytes = BASE64.decode(text).map_err(D::Error::custom)?;
        let (mut rest, mut runs) = (bytes.as_slice(), Self::default());
        let mut next = Run { sequence: 0, offset: 0, count: 0 };
        while !rest.is_empty() {
            let gap = read_u64(&mut rest).map_err(D::Error::custom)?;
            let offset = read_i64(&mut rest).map_err(D::Error::custom)?;
            let count = read_u64(&mut rest).map_err(D::Error::custom)?;
            if (count, offset) == (0, 0) && gap > 0 && rest.is_empty() {
                runs.unnoted = gap;
                runs.count = runs.count.saturating_add(gap);
                break;
            }
            let sequence = next.sequence.checked_add(gap);
            let offset = next.offset.checked_add_signed(offset);
            let run =
                sequence.zip(offset).map(|(sequence, offset)| Run { sequence, offset, count });
            let is_whole = |run: &Run| {
                run.sequence.checked_add(count).is_some() && run.offset.checked_add(count).is_some()
            };
            let run = run.filter(|run| count > 0 && is_whole(run) && runs.runs.len() < RUNS_MAX);
            let run = run.ok_or_else(|| D::Error::custom("no run of records"))?;
            runs.runs.push(run);
            runs.count = runs.count.saturating_add(count);
            next = run.next();
        }
        Ok(runs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn single(sequence: u64, offset: u64) -> Run {
        Run { sequence, offset, count: 1 }
    }

    #[test]
    fn a_run_travels_as_three_numbers() {
        let mut runs = Runs::default();
        for n in 0..300 {
            runs.insert(single(n, n));
        }
        runs.insert(Run { sequence: 302, offset: 310, count: 5 });
        runs.insert(Run { sequence: 307, offset: 305, count: 5 });
        // 00 00 ac02 | 02 14 05 | 00 13 05: offsets are signed, so that twice 10 is 0x14.
        assert_eq!(serde_json::to_string(&runs).unwrap(), r#""AACsAgIUBQATBQ==""#);
    }

    #[test]
    fn text_that_is_no_set_of_runs_is_refused() {
        // Cut short, a run of nothing, a sequence beyond the last, an offset before the first.
        for bytes in [
            vec![0, 0],
            vec![0, 0, 0],
            vec![3, 0, 0, 0, 0, 1],
            vec![255, 255, 255, 255, 255, 255, 255, 255, 255, 1, 0, 1],
            vec![0, 1, 1],
        ] {
            let text = format!("{:?}", BASE64.encode(&bytes));
            assert!(serde_json::from_str::<Runs>(&text).is_err(), "{bytes:?}");
        }
        assert!(serde_json::from_str::<Runs>("\"*\"").is_err());
    }

    #[test]
    fn records_without_room_are_counted_and_in_no_other_set() {
        let mut runs = Runs::default();
        for n in 0..RUNS_MAX as u64 + 3 {
            runs.insert(single(2 * n, n));
        }
        assert_eq!((runs.runs.len(), runs.count()), (RUNS_MAX, RUNS_MAX as u64 + 3));
        assert_eq!(runs.overlap(&runs).common, RUNS_MAX as u64);
        let text = serde_json::to_string(&runs).unwrap();
        assert_eq!(serde_json::from_str::<Runs>(&text).unwrap(), runs);
    }

    #[test]
    fn a_stream_in_order_is_one_run() {
        let mut runs = Runs::default();
        for n in 0..1_000 {
            assert_eq!(runs.insert(single(n, n + 7)), Arrival::InOrder);
        }
        assert_eq!((runs.runs.len(), runs.count()), (1, 1_000));
    }

    proptest! {
        #[test]
        fn runs_agree_with_a_map(
            mine in proptest::collection::vec((0_u64..60, 0_u64..3), 0..80),
            theirs in proptest::collection::vec((0_u64..60, 0_u64..3), 0..80),
        ) {
            let build = |steps: &[(u64, u64)]| {
                let (mut runs, mut model) = (Runs::default(), BTreeMap::new());
                for (sequence, shift) in steps {
                    let expected = if model.contains_key(sequence) {
                        Arrival::Repeated
                    } else if model.last_key_value().is_some_and(|(last, _)| last > sequence) {
                        Arrival::Late
                    } else {
                        Arrival::InOrder
                    };
                    assert_eq!(runs.insert(single(*sequence, sequence + shift)), expected);
                    model.entry(*sequence).or_insert(sequence + shift);
                }
                (runs, model)
            };
            let ((a, map_a), (b, map_b)) = (build(&mine), build(&theirs));
            prop_assert_eq!(a.count(), map_a.len() as u64);
            let common = map_a.keys().filter(|k| map_b.contains_key(k)).count() as u64;
            let elsewhere =
                map_a.iter().filter(|(k, v)| map_b.get(k).is_some_and(|o| o != *v)).count() as u64;
            prop_assert_eq!(a.overlap(&b), Overlap { common, elsewhere });
            let text = serde_json::to_string(&a).unwrap();
            prop_assert_eq!(serde_json::from_str::<Runs>(&text).unwrap(), a);
        }
    }
}
