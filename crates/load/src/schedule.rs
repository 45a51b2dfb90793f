//! The open-loop schedule: every operation has an intended time that never moves.
//!
//! A load generator that waits for an answer before it offers the next operation slows down with
//! its target and hides the target's worst moments. Here the intended times follow from the rate
//! alone; an operation that is taken up late keeps its intended time, so that the response time
//! counted from it contains the whole wait.
//!
//! Times are nanoseconds since the start of the run.

use std::collections::VecDeque;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::shape::{Trace, TraceUse};

/// Operations of a producer that may wait for room towards the target. At 100,000 operations per
/// second this is a stall of ten seconds; a target that is further behind cannot sustain the rate.
const BACKLOG_OPERATIONS_MAX: usize = 1_000_000;

/// The same of all producers of a load, at 8 bytes each.
const ALL_BACKLOG_OPERATIONS_MAX: usize = 16_000_000;

/// Operations of one of so many producers that may wait for room towards the target.
#[must_use]
pub fn backlog_operations_max(producers: u16) -> usize {
    BACKLOG_OPERATIONS_MAX.min(ALL_BACKLOG_OPERATIONS_MAX / usize::from(producers.max(1)))
}

const NANOS_PER_SECOND: u64 = 1_000_000_000;

/// How intended times follow one another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Arrivals {
    /// Equal distances.
    #[default]
    Constant,
    /// Independent arrivals with exponential distances, reproducible from the seed.
    Poisson {
        /// Seed of the distances.
        seed: u64,
    },
    /// Groups of operations that are due at once, the groups at equal distances.
    Bursts {
        /// Operations of a group; 0 is taken for 1.
        size: u32,
    },
    /// The instants of a file.
    Trace,
}

/// The intended times of one producer thread: one of `producers` interleaved slices of a schedule.
///
/// Slice `k` of a constant schedule holds the operations `k`, `k + n`, `k + 2n` and so on, so all
/// threads together offer the exact rate with no skew between them. The slices of a Poisson
/// schedule are independent Poisson processes, whose union is one of the whole rate.
#[derive(Debug)]
pub struct Slice {
    spacing: Spacing,
    next_ns: u64,
    end_ns: u64,
}

#[derive(Debug)]
enum Spacing {
    /// Groups of operations at equal distances.
    Even {
        next_index: u64,
        step: u64,
        rate: u64,
        group: u64,
    },
    Poisson {
        random: fastrand::Rng,
        mean_ns: f64,
        elapsed_ns: f64,
    },
    /// Every `step`-th instant of a file.
    Traced {
        trace: Arc<Trace>,
        speed: f64,
        next_index: usize,
        step: usize,
    },
}

impl Spacing {
    fn even(rate: u64, producer: u32, producers: u32, group: u32) -> Self {
        let group = group.max(1).into();
        Self::Even { next_index: producer.into(), step: producers.into(), rate, group }
    }
}

impl Slice {
    /// Slice `producer` of `producers`, at `rate` operations per second in all, from 0 to `end_ns`.
    ///
    /// # Panics
    /// When `rate` is 0 or `producer` is not below `producers`, or for a trace, which is
    /// [`Slice::of_trace`].
    #[must_use]
    pub fn new(arrivals: Arrivals, rate: u64, producer: u32, producers: u32, end_ns: u64) -> Self {
        assert!(rate > 0 && producer < producers, "a slice of a schedule with a rate");
        let spacing = match arrivals {
            Arrivals::Constant => Spacing::even(rate, producer, producers, 1),
            Arrivals::Bursts { size } => Spacing::even(rate, producer, producers, size),
            Arrivals::Poisson { seed } => Spacing::Poisson {
                random: fastrand::Rng::with_seed(seed.wrapping_add(u64::from(producer))),
                mean_ns: f64::from(producers) * 1e9 / rate_as_float(rate),
                elapsed_ns: 0.0,
            },
            Arrivals::Trace => panic!("a trace has instants of its own"),
        };
        Self::of(spacing, end_ns)
    }

    /// Slice `producer` of `producers` of a trace, from 0 to `end_ns`: its instants `producer`,
    /// `producer + producers` and so on.
    #[must_use]
    pub fn of_trace(trace: &TraceUse, producer: u32, producers: u32, end_ns: u64) -> Self {
        let index = |number: u32| usize::try_from(number).unwrap_or(usize::MAX);
        let spacing = Spacing::Traced {
            trace: Arc::clone(&trace.content),
            speed: trace.speed,
            next_index: index(producer),
            step: index(producers),
        };
        Self::of(spacing, end_ns)
    }

    fn of(spacing: Spacing, end_ns: u64) -> Self {
        let mut slice = Self { spacing, next_ns: 0, end_ns };
        slice.advance();
        slice
    }

    /// The intended time of the next operation, or `None` at the end of the schedule.
    #[must_use]
    pub fn peek(&self) -> Option<u64> {
        (self.next_ns < self.end_ns).then_some(self.next_ns)
    }

    fn advance(&mut self) {
        self.next_ns = match &mut self.spacing {
            Spacing::Even { next_index, step, rate, group } => {
                let at = constant_intended_ns(*next_index - *next_index % *group, *rate);
                *next_index += *step;
                at
            }
            Spacing::Poisson { random, mean_ns, elapsed_ns } => {
                *elapsed_ns -= (1.0 - random.f64()).ln() * *mean_ns;
                nanoseconds(*elapsed_ns)
            }
            Spacing::Traced { trace, speed, next_index, step } => {
                let instant = trace.instants_ns().get(*next_index);
                *next_index = next_index.saturating_add(*step);
                instant.map_or(u64::MAX, |at| Trace::scaled(*at, *speed))
            }
        };
    }
}

impl Iterator for Slice {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        let at = self.peek()?;
        self.advance();
        Some(at)
    }
}

/// The operations that are due and not yet handed to the target.
///
/// It is bounded: operations that fall due while it is full are counted as shed, and a run with
/// shed operations is unsustained.
#[derive(Debug)]
pub struct LagQueue {
    slice: Slice,
    waiting: VecDeque<u64>,
    waiting_max: usize,
    shed: u64,
}

impl LagQueue {
    /// A queue in front of `slice` that holds at most `waiting_max` operations.
    #[must_use]
    pub fn new(slice: Slice, waiting_max: usize) -> Self {
        Self { slice, waiting: VecDeque::new(), waiting_max, shed: 0 }
    }

    /// Takes up every operation that is due at `now_ns`; `taken` gets the intended times.
    pub fn take_up(&mut self, now_ns: u64, mut taken: impl FnMut(u64)) {
        while let Some(intended_ns) = self.slice.peek().filter(|at| *at <= now_ns) {
            self.slice.advance();
            taken(intended_ns);
            if self.waiting.len() < self.waiting_max {
                self.waiting.push_back(intended_ns);
            } else {
                self.shed += 1;
            }
        }
    }

    /// The intended time of the oldest waiting operation, which leaves the queue.
    pub fn pop(&mut self) -> Option<u64> {
        self.waiting.pop_front()
    }

    /// When the next operation that has not been taken up is due.
    #[must_use]
    pub fn next_due_ns(&self) -> Option<u64> {
        self.slice.peek()
    }

    /// Operations that wait.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Operations that were never offered because the queue was full.
    #[must_use]
    pub fn shed(&self) -> u64 {
        self.shed
    }
}

/// The intended time of operation `index` of a constant schedule, rounded down.
#[must_use]
pub fn constant_intended_ns(index: u64, rate: u64) -> u64 {
    let nanos = u128::from(index) * u128::from(NANOS_PER_SECOND) / u128::from(rate);
    u64::try_from(nanos).unwrap_or(u64::MAX)
}

#[expect(clippy::cast_precision_loss, reason = "a rate above 2^53 per second does not exist")]
fn rate_as_float(rate: u64) -> f64 {
    rate as f64
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a sum of positive distances; the cast saturates"
)]
fn nanoseconds(elapsed_ns: f64) -> u64 {
    elapsed_ns as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn constant_times_have_no_drift() {
        let times: Vec<u64> =
            Slice::new(Arrivals::Constant, 3, 0, 1, 2 * NANOS_PER_SECOND).collect();
        assert_eq!(
            times,
            [0, 333_333_333, 666_666_666, 1_000_000_000, 1_333_333_333, 1_666_666_666]
        );
    }

    #[test]
    fn bursts_keep_the_rate_and_come_at_once() {
        let bursts = Arrivals::Bursts { size: 3 };
        let times: Vec<u64> = Slice::new(bursts, 6, 0, 1, NANOS_PER_SECOND).collect();
        assert_eq!(times, [0, 0, 0, 500_000_000, 500_000_000, 500_000_000]);
        let second: Vec<u64> = Slice::new(bursts, 6, 1, 2, NANOS_PER_SECOND).collect();
        assert_eq!(second, [0, 500_000_000, 500_000_000]);
        let single = Slice::new(Arrivals::Bursts { size: 0 }, 6, 0, 1, NANOS_PER_SECOND);
        assert!(single.eq(Slice::new(Arrivals::Constant, 6, 0, 1, NANOS_PER_SECOND)));
    }

    #[test]
    fn poisson_slices_reach_the_whole_rate_and_repeat_with_the_seed() {
        let all = |seed| -> Vec<u64> {
            let mut times: Vec<u64> = (0..4)
                .flat_map(|k| {
                    Slice::new(Arrivals::Poisson { seed }, 10_000, k, 4, 10 * NANOS_PER_SECOND)
                })
                .collect();
            times.sort_unstable();
            times
        };
        let times = all(7);
        assert!((99_000..101_000).contains(&times.len()), "{} arrivals", times.len());
        assert_eq!(times, all(7));
        assert_ne!(times, all(8));
    }

    fn trace(speed: f64) -> TraceUse {
        let content = Trace::parse(b"7\n7.5\n7.5\n8\n9.25\n", 1).unwrap();
        TraceUse { file: "t".into(), bytes: 1, crc32c: 1, speed, content: Arc::new(content) }
    }

    #[test]
    fn a_trace_is_replayed_at_its_speed_until_the_end() {
        let times =
            |speed, end_ns| -> Vec<u64> { Slice::of_trace(&trace(speed), 0, 1, end_ns).collect() };
        let second = NANOS_PER_SECOND;
        let half = second / 2;
        assert_eq!(times(1.0, 3 * second), [0, half, half, second, 2_250_000_000]);
        assert_eq!(times(1.0, second), [0, half, half]);
        assert_eq!(times(2.0, 3 * second), [0, half / 2, half / 2, half, 1_125_000_000]);
        let slices: Vec<Vec<u64>> =
            (0..2).map(|k| Slice::of_trace(&trace(1.0), k, 2, u64::MAX).collect()).collect();
        assert_eq!(slices, [vec![0, half, 2_250_000_000], vec![half, second]]);
    }

    #[test]
    fn a_late_operation_keeps_its_intended_time() {
        let mut queue = LagQueue::new(Slice::new(Arrivals::Constant, 1_000, 0, 1, 5_000_000), 10);
        let mut taken = Vec::new();
        queue.take_up(2_500_000, |intended_ns| taken.push(intended_ns));
        assert_eq!(taken, [0, 1_000_000, 2_000_000]);
        assert_eq!(
            [queue.pop(), queue.pop(), queue.pop(), queue.pop()],
            [Some(0), Some(1_000_000), Some(2_000_000), None]
        );
        assert_eq!(queue.next_due_ns(), Some(3_000_000));
    }

    #[test]
    fn a_full_queue_sheds_and_counts() {
        let mut queue = LagQueue::new(Slice::new(Arrivals::Constant, 1_000, 0, 1, u64::MAX), 3);
        queue.take_up(9_000_000, |_| ());
        assert_eq!((queue.waiting(), queue.shed()), (3, 7));
    }

    proptest! {
        #[test]
        fn slices_together_are_the_whole_schedule(rate in 1_u64..100_000, producers in 1_u32..9) {
            let end = NANOS_PER_SECOND / 10;
            let mut parts: Vec<u64> = (0..producers)
                .flat_map(|k| Slice::new(Arrivals::Constant, rate, k, producers, end))
                .collect();
            parts.sort_unstable();
            let whole: Vec<u64> = Slice::new(Arrivals::Constant, rate, 0, 1, end).collect();
            prop_assert_eq!(parts, whole);
        }
    }
}
