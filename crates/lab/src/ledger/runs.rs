//! Sets of sequence numbers with their offsets, as sorted runs.

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
#[derive(Clone, Debug, Default)]
pub(super) struct Runs {
    runs: Vec<Run>,
    count: u64,
}

impl Runs {
    pub(super) fn count(&self) -> u64 {
        self.count
    }

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
            self.count += run.count;
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn single(sequence: u64, offset: u64) -> Run {
        Run { sequence, offset, count: 1 }
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
        }
    }
}
