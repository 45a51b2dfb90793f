//! How far the clock of another machine is off this one's, and how well that is known.
//!
//! What this machine asked at `asked_ns`, the other one received at `received_ns` of its own clock;
//! what it answered at `answered_ns`, came back at `back_ns`. Nothing arrives before it was sent,
//! so the offset of the other clock lies between `answered - back` and `received - asked`, however
//! unequal the ways there and back are. Of many exchanges the least upper and the greatest lower
//! end count: the middle of what is left is the estimate, and half of it the bound of its error.
//!
//! Crystals drift apart, so the offset is found before a run and again after it. As long as they
//! drift one way meanwhile, the error in the run lies between those at its ends.

use serde::{Deserialize, Serialize};

/// How fast two clocks may drift apart: kernels correct a clock by 500 parts in a million at most,
/// and crystals are off by less than 100.
const DRIFT_PER_MILLION_MAX: u64 = 600;

/// A question and its answer, ns. The first and the last are of the asker's clock, the others of
/// the clock that was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// When the question left.
    pub asked_ns: u64,
    /// When it came there.
    pub received_ns: u64,
    /// When the answer left.
    pub answered_ns: u64,
    /// When it came back.
    pub back_ns: u64,
}

impl Exchange {
    /// Time that both were on their way, ns.
    #[must_use]
    pub fn round_trip_ns(&self) -> u64 {
        let away = self.back_ns.saturating_sub(self.asked_ns);
        away.saturating_sub(self.answered_ns.saturating_sub(self.received_ns))
    }
}

/// What the other clock shows beyond this one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offset {
    /// The estimate, ns.
    pub offset_ns: i64,
    /// By how much it may be off, ns.
    pub bound_ns: u64,
    /// The shortest time that a question and its answer were on their way, ns.
    pub round_trip_ns: u64,
}

/// How well the clock of another machine was known throughout a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClockRecord {
    /// By how much its times may be off in the run, ns.
    pub bound_ns: u64,
    /// By how much its offset after the run differs from that before, ns.
    pub drift_ns: i64,
    /// The shortest time that a question and its answer were on their way, ns.
    pub round_trip_ns: u64,
}

impl Offset {
    /// The offset that exchanges leave possible, which follow each other within moments. `None`
    /// without exchanges, and where they contradict each other: a clock was set meanwhile.
    #[must_use]
    pub fn of(exchanges: &[Exchange]) -> Option<Self> {
        let round_trip_ns = exchanges.iter().map(Exchange::round_trip_ns).min()?;
        let high = exchanges.iter().map(|it| difference(it.received_ns, it.asked_ns)).min()?;
        let low = exchanges.iter().map(|it| difference(it.answered_ns, it.back_ns)).max()?;
        let first = exchanges.iter().map(|it| it.asked_ns).min()?;
        let last = exchanges.iter().map(|it| it.back_ns).max()?;
        // Each end may stem from another moment.
        let slack = i128::from(last.saturating_sub(first) * DRIFT_PER_MILLION_MAX / 1_000_000 + 1);
        if low > high + slack {
            return None;
        }
        let half = (high - low).max(0) / 2 + slack;
        Some(Self {
            offset_ns: i64::try_from(i128::midpoint(low, high)).ok()?,
            bound_ns: u64::try_from(half).ok()?,
            round_trip_ns,
        })
    }

    /// A time of this clock as the other one shows it.
    #[must_use]
    pub fn there(&self, here_ns: u64) -> u64 {
        here_ns.saturating_add_signed(self.offset_ns)
    }

    /// How well the other clock was known by this estimate until `after` was found.
    #[must_use]
    pub fn until(&self, after: &Self) -> ClockRecord {
        let drift_ns = after.offset_ns.saturating_sub(self.offset_ns);
        ClockRecord {
            bound_ns: self.bound_ns.max(drift_ns.unsigned_abs().saturating_add(after.bound_ns)),
            drift_ns,
            round_trip_ns: self.round_trip_ns.min(after.round_trip_ns),
        }
    }
}

fn difference(one: u64, other: u64) -> i128 {
    i128::from(one) - i128::from(other)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    /// Another clock, that began `ahead_ns` earlier and gains `drift` parts in a billion.
    struct Other {
        ahead_ns: i64,
        drift: i64,
    }

    impl Other {
        fn shows(&self, here_ns: u64) -> u64 {
            let gained = i128::from(here_ns) * i128::from(self.drift) / 1_000_000_000;
            let there = i128::from(here_ns) + i128::from(self.ahead_ns) + gained;
            u64::try_from(there).unwrap()
        }

        fn offset(&self, here_ns: u64) -> i64 {
            i64::try_from(i128::from(self.shows(here_ns)) - i128::from(here_ns)).unwrap()
        }
    }

    /// Exchanges from `at_ns` on over ways of very unequal lengths; also when the last came back.
    fn exchanges(other: &Other, random: &mut fastrand::Rng, at_ns: u64) -> (Vec<Exchange>, u64) {
        let (mut now, mut found) = (at_ns, Vec::new());
        let bases = [random.u64(1_000..2_000_000), random.u64(1_000..2_000_000)];
        for _ in 0..random.usize(1..64) {
            let ways = bases.map(|base| base + random.u64(0..5_000_000));
            let received = now + ways[0];
            let answered = received + random.u64(0..1_000_000);
            found.push(Exchange {
                asked_ns: now,
                received_ns: other.shows(received),
                answered_ns: other.shows(answered),
                back_ns: answered + ways[1],
            });
            now = answered + ways[1];
        }
        (found, now)
    }

    #[test]
    fn the_error_never_exceeds_the_bound_however_unequal_the_ways_are() {
        for seed in 0..2_000 {
            let mut random = fastrand::Rng::with_seed(seed);
            let ahead_ns = random.i64(-3_600..3_600) * 1_000_000_000;
            let other = Other { ahead_ns, drift: random.i64(-500_000..500_000) };
            let start = 3_700 * SECOND + random.u64(0..SECOND);
            let (found, end) = exchanges(&other, &mut random, start);
            let before = Offset::of(&found).unwrap_or_else(|| panic!("seed {seed}"));
            let error = |at, estimate: &Offset| estimate.offset_ns.abs_diff(other.offset(at));
            for at in [start, end] {
                assert!(error(at, &before) <= before.bound_ns, "seed {seed}: {before:?}");
            }
            let later = end + random.u64(1..60) * SECOND;
            let (found, end) = exchanges(&other, &mut random, later);
            let record = before.until(&Offset::of(&found).unwrap());
            for at in [start, start.midpoint(end), end] {
                assert!(error(at, &before) <= record.bound_ns, "seed {seed}: {record:?}");
            }
        }
    }

    #[test]
    fn the_bound_is_half_the_least_round_trip_where_all_ways_are_equal() {
        let exchange = |at: u64, way: u64| Exchange {
            asked_ns: at,
            received_ns: at + way + 500,
            answered_ns: at + way + 500,
            back_ns: at + 2 * way,
        };
        let found = Offset::of(&[exchange(0, 9_000), exchange(20_000, 100)]).unwrap();
        assert_eq!((found.offset_ns, found.round_trip_ns), (500, 200));
        // 600 parts in a million of 20,200 ns are 12 ns.
        assert_eq!(found.bound_ns, 100 + 12 + 1);
        assert_eq!((found.there(1_000), found.there(0)), (1_500, 500));
    }

    #[test]
    fn a_clock_that_was_set_between_two_exchanges_is_not_believed() {
        let exchange = |at: u64, ahead: u64| Exchange {
            asked_ns: at,
            received_ns: at + 100 + ahead,
            answered_ns: at + 100 + ahead,
            back_ns: at + 200,
        };
        assert!(Offset::of(&[exchange(0, 0), exchange(1_000, 50)]).is_some());
        assert_eq!(Offset::of(&[exchange(0, 0), exchange(1_000, 5_000)]), None);
        assert_eq!(Offset::of(&[]), None);
    }

    #[test]
    fn drift_of_a_clock_in_a_run_is_part_of_its_bound() {
        let offset = |offset_ns, bound_ns| Offset { offset_ns, bound_ns, round_trip_ns: 80 };
        let drifted = offset(1_000, 40).until(&offset(700, 50));
        assert_eq!((drifted.bound_ns, drifted.drift_ns), (350, -300));
        assert_eq!(offset(0, 40).until(&offset(0, 10)).bound_ns, 40);
    }
}
