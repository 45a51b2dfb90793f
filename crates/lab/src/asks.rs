//! Questions of a survey beyond its tables: how latency grows with the load, and which codec to
//! take. The answers follow from its runs, compared within rounds.

use crate::metric::Metric;
use crate::punctuality::{cannot_keep_up, is_bunched, is_scheduled, latencies_are_withheld};
use crate::survey::{Cell, CompressionQuestion, Estimate, SurveyRecord};
use moldau_load::run::RunRecord;
use moldau_load::workload::{Codec, Pace};
use moldau_measure::cpu::GENERATOR_ROLE;
use moldau_measure::statistics::float;

/// How far a latency may rise above its lowest before the knee. In a queue with one server and
/// random arrivals that is the load at which rate by delay is highest (Kleinrock, "Power and
/// deterministic rules of thumb for probabilistic problems in computer communications", 1979).
pub const KNEE_TIMES: f64 = 2.0;

/// MB of a GB.
const MEGABYTES_PER_GIGABYTE: f64 = 1_024.0;

/// A rate and what became of the latency there.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Reached {
    /// The 99th percentile, ms; the geometric mean over the rounds.
    Ms(f64),
    /// The system cannot keep up.
    Saturated,
    /// The generator was late, which says nothing of the system.
    Unknown,
}

/// Where latency begins to grow, by places in the list of rates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Knee {
    /// The rate with the lowest latency.
    pub lowest: usize,
    /// The highest rate before `beyond` whose latency lies within [`KNEE_TIMES`] of that.
    pub within: usize,
    /// The first rate whose latency is shown not to, or with which the system does not keep up;
    /// absent where none is.
    pub beyond: Option<usize>,
    /// Whether a rate above `within` and below `beyond` has a latency that may lie on either side.
    pub is_open: bool,
}

impl Knee {
    /// The knee of rising rates. `times` gives the ratio of the latencies at two rates, within
    /// rounds. `None` without any latency.
    #[must_use]
    pub fn of(
        points: &[Reached],
        times: impl Fn(usize, usize) -> Option<Estimate>,
    ) -> Option<Self> {
        let known = points.iter().enumerate().filter_map(|(at, point)| match point {
            Reached::Ms(ms) => Some((at, *ms)),
            Reached::Saturated | Reached::Unknown => None,
        });
        let (lowest, _) = known.min_by(|one, other| one.1.total_cmp(&other.1))?;
        let mut knee = Self { lowest, within: lowest, beyond: None, is_open: false };
        for (at, point) in points.iter().enumerate().skip(lowest + 1) {
            let times = match point {
                Reached::Ms(_) => times(at, lowest),
                Reached::Saturated => {
                    knee.beyond = Some(at);
                    break;
                }
                Reached::Unknown => continue,
            };
            let is_shown = |it: &Estimate| it.interval.is_some_and(|it| it.low > KNEE_TIMES);
            match times {
                Some(times) if times.mean <= KNEE_TIMES => {
                    (knee.within, knee.is_open) = (at, false);
                }
                Some(times) if is_shown(&times) => {
                    knee.beyond = Some(at);
                    break;
                }
                _ => knee.is_open = true,
            }
        }
        Some(knee)
    }
}

/// The loads of a survey at a rate, with it, rising.
#[must_use]
pub fn rates<'a>(record: &'a SurveyRecord, runs: &[RunRecord]) -> Vec<(u64, &'a str)> {
    let rate = |cell: &'a Cell| {
        let run = runs.iter().find(|run| run.case == cell.name && is_scheduled(run))?;
        let Pace::Scheduled { per_second, .. } = run.workload.pace else {
            return None;
        };
        Some((per_second, cell.name.as_str()))
    };
    let mut rates: Vec<(u64, &str)> = record.cells.iter().filter_map(rate).collect();
    rates.sort_unstable();
    rates
}

/// What became of the 99th percentile of publishing in a load on a system.
#[must_use]
pub fn reached(runs: &[RunRecord], case: &str, system: &str, seed: u64) -> Reached {
    let of_case = runs.iter().filter(|run| run.case == case && run.arm == system);
    let of_case: Vec<&RunRecord> = of_case.collect();
    if cannot_keep_up(&of_case) {
        return Reached::Saturated;
    }
    if latencies_are_withheld(&of_case) {
        return Reached::Unknown;
    }
    let found = typical(runs, case, system, seed, |run| Metric::ResponseP99.of(run));
    found.map_or(Reached::Unknown, |found| Reached::Ms(found.mean))
}

/// The mean of a figure over the rounds of a load on a system.
#[must_use]
pub fn estimate(
    runs: &[RunRecord],
    case: &str,
    system: &str,
    seed: u64,
    figure: impl Fn(&RunRecord) -> Option<f64>,
) -> Option<Estimate> {
    Estimate::of(&figures(runs, case, system, figure), seed, |value| value)
}

/// The geometric mean of a figure over the rounds of a load on a system, as suits latencies.
#[must_use]
pub fn typical(
    runs: &[RunRecord],
    case: &str,
    system: &str,
    seed: u64,
    figure: impl Fn(&RunRecord) -> Option<f64>,
) -> Option<Estimate> {
    Estimate::typical(&figures(runs, case, system, figure), seed)
}

fn figures(
    runs: &[RunRecord],
    case: &str,
    system: &str,
    figure: impl Fn(&RunRecord) -> Option<f64>,
) -> Vec<f64> {
    let of_case = runs.iter().filter(|run| run.case == case && run.arm == system);
    of_case.filter_map(figure).collect()
}

/// The ratio of a figure of `case` to that of `over` in the same round.
#[must_use]
pub fn ratio(
    runs: &[RunRecord],
    [case, over]: [&str; 2],
    system: &str,
    seed: u64,
    figure: impl Fn(&RunRecord) -> Option<f64>,
) -> Option<Estimate> {
    let of = |case: &str, round: u32| {
        let is_of = |run: &&RunRecord| run.case == case && run.arm == system && run.pair == round;
        runs.iter().find(is_of).and_then(&figure).filter(|value| *value > 0.0)
    };
    let rounds = 0..runs.iter().map(|run| run.pair + 1).max().unwrap_or(0);
    let logs = rounds.filter_map(|round| Some((of(case, round)? / of(over, round)?).ln()));
    Estimate::of(&logs.collect::<Vec<_>>(), seed, f64::exp)
}

/// Processor time of a role, ms for each MB of values that was produced, in the sizes that they
/// had, and read as often as the load has consumers; `None` where it does not hold.
#[must_use]
pub fn cpu(run: &RunRecord, role: &str) -> Option<f64> {
    let megabytes = run.megabytes(run.produced_records);
    let of_role = run.processes.iter().filter(|usage| usage.role == role).map(|it| it.cpu_ns);
    let cpu_ns = of_role.reduce(|sum, next| sum + next)?;
    (megabytes > 0.0 && !is_bunched(run)).then(|| float(cpu_ns) / 1e6 / megabytes)
}

/// The same of clients and everything else of the run together.
#[must_use]
pub fn cpu_of_all(run: &RunRecord) -> Option<f64> {
    let clients = cpu(run, GENERATOR_ROLE)?;
    let systems: u64 = run
        .processes
        .iter()
        .filter(|usage| usage.role != GENERATOR_ROLE)
        .map(|usage| usage.cpu_ns)
        .sum();
    Some(clients + float(systems) / 1e6 / run.megabytes(run.produced_records))
}

/// Bytes that are sent and stored by bytes of values.
#[must_use]
pub fn stored_share(run: &RunRecord) -> Option<f64> {
    Metric::CompressionRatio.of(run).map(f64::recip)
}

impl CompressionQuestion {
    /// The price of a GB of values in seconds of processor time: the time spent, plus the worth of
    /// the stored bytes.
    #[must_use]
    pub fn price(&self, run: &RunRecord) -> Option<f64> {
        let cpu_s = cpu_of_all(run)? * MEGABYTES_PER_GIGABYTE / 1e3;
        Some(cpu_s + f64::from(self.gigabyte_is_worth_cpu_s) * stored_share(run)?)
    }
}

/// The loads that differ in their codec alone: those at a rate, or those at full speed.
#[must_use]
pub fn codecs<'a>(
    record: &'a SurveyRecord,
    runs: &[RunRecord],
    at_a_rate: bool,
) -> Vec<(Codec, &'a str)> {
    let codec = |cell: &'a Cell| {
        let run = runs.iter().find(|run| run.case == cell.name)?;
        let is_asked = is_scheduled(run) == at_a_rate;
        is_asked.then_some((run.workload.tuning.compression, cell.name.as_str()))
    };
    record.cells.iter().filter_map(codec).collect()
}

/// The load with the lowest figure, where less is better, and the loads that do not differ
/// significantly from it.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice<T> {
    /// The best.
    pub best: T,
    /// Its figure.
    pub found: Estimate,
    /// Those whose ratio to it has an interval that holds 1, or none.
    pub alike: Vec<T>,
}

/// Chooses among `loads` on a system.
#[must_use]
pub fn choose<T: Copy>(
    runs: &[RunRecord],
    loads: &[(T, &str)],
    system: &str,
    seed: u64,
    figure: impl Fn(&RunRecord) -> Option<f64>,
) -> Option<Choice<T>> {
    let found = loads.iter().enumerate().filter_map(|(at, (load, case))| {
        Some((at, *load, *case, estimate(runs, case, system, seed, &figure)?))
    });
    let all: Vec<(usize, T, &str, Estimate)> = found.collect();
    let best = all.iter().min_by(|one, other| one.3.mean.total_cmp(&other.3.mean))?;
    let alike = all.iter().filter(|it| it.0 != best.0).filter(|it| {
        let ratio = ratio(runs, [it.2, best.2], system, seed, &figure);
        !ratio.and_then(|ratio| ratio.interval).is_some_and(|interval| interval.low > 1.0)
    });
    Some(Choice { best: best.1, found: best.3, alike: alike.map(|it| it.1).collect() })
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::sample;
    use Reached::{Ms, Saturated, Unknown};
    use moldau_load::run::Skew;
    use moldau_measure::statistics::Interval;

    /// Ratios whose interval reaches from half of them to twice them at `wide` places, and from
    /// nine tenths to ten ninths elsewhere.
    fn times(points: &[Reached], wide: &[usize]) -> impl Fn(usize, usize) -> Option<Estimate> {
        move |at, over| {
            let (Ms(ms), Ms(least)) = (points[at], points[over]) else { return None };
            let spread = if wide.contains(&at) { 2.0 } else { 1.0 / 0.9 };
            let mean = ms / least;
            let interval = Some(Interval { low: mean / spread, high: mean * spread });
            Some(Estimate { mean, interval, effect: None })
        }
    }

    fn knee(points: &[Reached], wide: &[usize]) -> Option<Knee> {
        Knee::of(points, times(points, wide))
    }

    #[test]
    fn the_knee_is_the_last_rate_before_latency_doubles() {
        // A slow start is none: the wait of an idle machine to wake up is no queue.
        let points = [Ms(5.0), Ms(2.0), Unknown, Ms(3.9), Ms(4.9), Ms(3.0)];
        let found = Knee { lowest: 1, within: 3, beyond: Some(4), is_open: false };
        assert_eq!(knee(&points, &[]), Some(found));
    }

    #[test]
    fn one_bad_round_is_no_knee() {
        let points = [Ms(2.0), Ms(2.5), Ms(6.0), Ms(3.0), Ms(7.0)];
        let found = Knee { lowest: 0, within: 3, beyond: None, is_open: true };
        assert_eq!(knee(&points, &[2, 4]), Some(found));
        let found = Knee { lowest: 0, within: 3, beyond: Some(4), is_open: false };
        assert_eq!(knee(&points, &[2]), Some(found));
        // Rounds that are too few for an interval show nothing.
        let alone = |_, _| Some(Estimate { mean: 9.0, interval: None, effect: None });
        let found = Knee { lowest: 0, within: 0, beyond: None, is_open: true };
        assert_eq!(Knee::of(&points, alone), Some(found));
    }

    #[test]
    fn a_system_that_cannot_keep_up_is_beyond_its_knee() {
        let found = Knee { lowest: 0, within: 1, beyond: Some(2), is_open: false };
        assert_eq!(knee(&[Ms(1.0), Ms(1.5), Saturated], &[]), Some(found));
        let flat = Knee { lowest: 0, within: 1, beyond: None, is_open: false };
        assert_eq!(knee(&[Ms(1.0), Ms(1.5), Unknown], &[]), Some(flat));
        assert_eq!(knee(&[Unknown, Saturated], &[]), None);
    }

    #[test]
    fn processor_time_and_price_are_of_the_bytes_that_were_sent() {
        let near = |found: Option<f64>, exact: f64| {
            assert!(found.is_some_and(|it| (it / exact - 1.0).abs() < 1e-9), "{found:?} {exact}");
        };
        // 300 ms of the broker and 500 of the clients, for 120,000 records.
        let mut run = sample::result().runs.remove(0);
        near(cpu(&run, "broker"), 300.0 * 1_024.0 / 120_000.0);
        // Lines of half a KB on average, while the load says 1 KB, in half as many stored bytes.
        run.skew = Some(Skew {
            records: 120_000,
            value_bytes: 120_000 * 512,
            largest_partition_records: 30_000,
            partitions: 4,
        });
        run.stored_bytes = 120_000 * 256;
        near(cpu(&run, "broker"), 300.0 * 2_048.0 / 120_000.0);
        near(cpu_of_all(&run), 800.0 * 2_048.0 / 120_000.0);
        near(stored_share(&run), 0.5);
        let asked = CompressionQuestion { gigabyte_is_worth_cpu_s: 1_800 };
        near(asked.price(&run), 0.8 * 1_024.0 * 2_048.0 / 120_000.0 + 900.0);
    }
}
