//! Whether a run sustained its rate.

use serde::{Deserialize, Serialize};

use super::Demand;
use super::search::Outcome;
use crate::punctuality::foreign_share;
use moldau_load::run::{RunRecord, Slot};
use moldau_measure::statistics::slope::Slope;
use moldau_measure::statistics::{Interval, float};

/// Smallest share of the window's intended records that must be acknowledged in it, and of the
/// acknowledged ones that must be delivered. The rest is in flight at its end.
const REACHED_SHARE_MIN: f64 = 0.97;

/// Shares of the machine that the hypervisor and other processes take at most from a trial that
/// counts: they move the ceiling by as much.
const STEAL_SHARE_MAX: f64 = 0.03;
const FOREIGN_SHARE_MAX: f64 = 0.1;

/// A backlog that grows by less does not, however surely: near the ceiling it wanders. It is what a
/// rate of 0.1 % above what can be done makes of it, ms for each second, or where that is less a
/// share of the demanded response time in the window.
const GROWTH_MIN_MS: f64 = 1.0;
const GROWTH_SHARE_MIN: f64 = 0.5;

/// One trial at a rate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Trial {
    /// Records per second that were offered.
    pub rate: f64,
    /// What came of it.
    pub outcome: Outcome,
    /// What was not as demanded.
    pub misses: Vec<Miss>,
    /// 99th percentile of response times, from the intended time, ms.
    pub p99_ms: f64,
    /// How the backlog went over the window; absent where slots were too few.
    pub growth: Option<Growth>,
    /// Share of what was intended in the window that was acknowledged in it.
    pub reached: f64,
    /// Share of a processor that the busiest thread of the generator took.
    pub generator_thread: f64,
    /// Share of the machine that other processes and the hypervisor took.
    pub taken: f64,
}

/// The demand that a rate misses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Miss {
    /// The 99th percentile of response times is too long.
    Response,
    /// The backlog grows.
    Backlog,
    /// Less is acknowledged than was intended.
    Rate,
    /// Operations were never offered, or never answered.
    Unanswered,
    /// Less is delivered than was acknowledged.
    Delivery,
    /// Records were lost or damaged.
    Records,
}

impl Miss {
    /// In tables.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::Response => "p99",
            Self::Backlog => "backlog grows",
            Self::Rate => "rate not reached",
            Self::Unanswered => "no answer",
            Self::Delivery => "consumers behind",
            Self::Records => "records lost",
        }
    }
}

/// How long a record waits, over the time of the window: the median response time of slots.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Growth {
    /// ms by which it grows per second.
    pub ms_per_second: f64,
    /// Its interval at 95 %.
    pub interval_95: Interval,
}

impl Growth {
    /// The slope of slots, see [`Slope`].
    #[must_use]
    pub fn of(series: &[Slot], slot_ms: u64) -> Option<Self> {
        let seconds = float(slot_ms) / 1e3;
        let points: Vec<(f64, f64)> = (0_u32..)
            .zip(series)
            .filter(|(_, slot)| slot.response_p50_ns > 0)
            .map(|(index, slot)| (f64::from(index) * seconds, float(slot.response_p50_ns) / 1e6))
            .collect();
        let slope = Slope::of(&points)?;
        Some(Self { ms_per_second: slope.rise, interval_95: slope.interval_95 })
    }
}

impl Trial {
    /// What came of a run at a fixed `rate`.
    #[must_use]
    pub fn of(run: &RunRecord, rate: f64, demand: Demand) -> Self {
        let response = run.latency.as_ref().map(|latency| latency.response.summary);
        let p99_ms = response.map_or(f64::INFINITY, |summary| float(summary.p99_ns) / 1e6);
        let growth = Growth::of(&run.series, run.slot_ms);
        let seconds = float(run.window_ns) / 1e9;
        let reached = float(run.produced_records) / float(run.offered.max(1));
        // Each tail reads all of it once more.
        let due = float(run.produced_records.max(1)) * (1.0 + f64::from(run.workload.tails));
        let delivered = float(run.consumed_records) / due;
        let growth_min_ms = GROWTH_MIN_MS.min(GROWTH_SHARE_MIN * demand.p99_ms / seconds);
        let grows = |growth: Option<Growth>| {
            let is_sure = |it: &Growth| it.interval_95.low > 0.0;
            growth.is_some_and(|it| is_sure(&it) && it.ms_per_second >= growth_min_ms)
        };
        let misses: Vec<Miss> = [
            (Miss::Response, p99_ms > demand.p99_ms),
            (Miss::Backlog, grows(growth)),
            (Miss::Rate, reached < REACHED_SHARE_MIN),
            (Miss::Unanswered, run.shed > 0 || run.answered < run.offered),
            (Miss::Delivery, run.workload.consume && delivered < REACHED_SHARE_MIN),
            (Miss::Records, run.audit.faults() > 0),
        ]
        .into_iter()
        .filter_map(|(miss, is_so)| is_so.then_some(miss))
        .collect();
        let (steal, foreign) = (run.host.steal_share(), foreign_share(run).unwrap_or(0.0));
        // Whatever came of it: to leave out only what was missed would favour high rates.
        let is_disturbed = steal >= STEAL_SHARE_MAX || foreign >= FOREIGN_SHARE_MAX;
        let outcome = match (is_disturbed, misses.is_empty()) {
            (true, _) => Outcome::Disturbed,
            (false, true) => Outcome::Sustained,
            (false, false) => Outcome::Missed,
        };
        Self {
            rate,
            outcome,
            misses,
            p99_ms,
            growth,
            reached,
            generator_thread: run.generator_thread_share(),
            taken: steal + foreign,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;
    use moldau_measure::cpu::HostUsage;

    /// Slots of 200 ms whose median response is `ms` at each.
    fn series(ms: impl Iterator<Item = f64>) -> Vec<Slot> {
        let slot = |ms: f64| Slot {
            response_p50_ns: format!("{:.0}", ms * 1e6).parse().unwrap(),
            ..Slot::default()
        };
        ms.map(slot).collect()
    }

    fn growth(ms: impl Iterator<Item = f64>) -> Growth {
        Growth::of(&series(ms), 200).unwrap()
    }

    #[test]
    fn a_growing_backlog_is_distinguished_from_a_wavering_one() {
        let mut random = fastrand::Rng::with_seed(3);
        let grown = growth((0..20).map(|i| 5.0 + f64::from(i) + random.f64()));
        assert!((grown.ms_per_second - 5.0).abs() < 0.5 && grown.interval_95.low > 4.0);
        let level = growth((0..20).map(|_| 5.0 + random.f64()));
        assert!(!level.interval_95.excludes(0.0), "{level:?}");
        // Half a wave has a slope, but neighbours that are alike are few witnesses.
        let wave = growth((0..20).map(|i| 5.0 + (f64::from(i) / 4.0).sin()));
        assert!(!wave.interval_95.excludes(0.0), "{wave:?}");
        assert_eq!(Growth::of(&series([1.0; 4].into_iter()), 200), None);
    }

    #[test]
    fn growth_is_claimed_of_a_level_backlog_about_as_rarely_as_the_level_says() {
        let mut random = fastrand::Rng::with_seed(4);
        let claimed = (0..400).filter(|_| {
            let mut state = 0.0;
            let level = growth((0..20).map(|_| {
                state = 0.5 * state + random.f64() - 0.5;
                10.0 + state
            }));
            level.interval_95.low > 0.0
        });
        let claimed = claimed.count();
        assert!(claimed <= 18, "{claimed} of 400");
    }

    fn run() -> RunRecord {
        let mut run = sample::result().runs.swap_remove(0);
        let own_ticks = run.processes.iter().map(|usage| usage.cpu_ns).sum::<u64>() / 10_000_000;
        run.host = HostUsage { busy_ticks: own_ticks, idle_ticks: 1_000, ..run.host };
        run.series = series([0.7; 20].into_iter());
        run
    }

    fn trial(run: &RunRecord, p99_ms: f64) -> Trial {
        Trial::of(run, 20_000.0, Demand { p99_ms })
    }

    #[test]
    fn a_rate_is_sustained_if_nothing_falls_short() {
        let sustained = trial(&run(), 50.0);
        assert_eq!((sustained.outcome, sustained.misses.len()), (Outcome::Sustained, 0));
        assert!((sustained.reached - 1.0).abs() < 1e-9);
        let slow = trial(&run(), 0.1);
        assert_eq!((slow.outcome, slow.misses), (Outcome::Missed, vec![Miss::Response]));
    }

    #[test]
    fn each_thing_that_falls_short_is_named() {
        let mut short = run();
        short.series = series((0..20).map(|i| 1.0 + f64::from(i)));
        short.produced_records = 100_000;
        short.consumed_records = 90_000;
        short.shed = 1;
        short.audit.lost = 1;
        let found = trial(&short, 50.0);
        let all = [Miss::Backlog, Miss::Rate, Miss::Unanswered, Miss::Delivery, Miss::Records];
        assert_eq!(found.misses, all);
    }

    #[test]
    fn a_backlog_grows_from_a_thousandth_above_the_capacity_on() {
        let misses = |ms_per_second: f64, p99_ms: f64| {
            let mut run = run();
            let rise = ms_per_second * float(run.slot_ms) / 1e3;
            run.series = series((0..20).map(|i| 5.0 + rise * f64::from(i)));
            trial(&run, p99_ms).misses
        };
        assert_eq!(misses(0.9, 50.0), []);
        assert_eq!(misses(1.1, 50.0), [Miss::Backlog]);
        assert_eq!(misses(1.1, 1_000.0), [Miss::Backlog], "however long responses may take");
    }

    #[test]
    fn a_tail_that_reads_makes_up_for_no_consumer_that_does_not() {
        let mut run = run();
        run.workload.tails = 1;
        assert_eq!(trial(&run, 50.0).misses, [Miss::Delivery]);
        run.consumed_records *= 2;
        assert_eq!(trial(&run, 50.0).misses, []);
    }

    #[test]
    fn a_trial_disturbed_by_other_processes_is_undecided() {
        let mut stolen = run();
        stolen.host.steal_ticks = 100;
        assert_eq!(trial(&stolen, 50.0).outcome, Outcome::Disturbed);
        let mut crowded = run();
        crowded.host.busy_ticks += 300;
        assert_eq!(trial(&crowded, 0.1).outcome, Outcome::Disturbed);
    }
}
