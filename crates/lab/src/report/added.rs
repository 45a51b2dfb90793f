//! What arms add to our proxy without a filter, a row for each: per MB and in latency where a rate
//! is fixed, and per new connection.

use super::grid::Grid;
use super::table::NONE;
use crate::metric::{Effect, Metric, compare_one};
use crate::punctuality::is_scheduled;
use crate::result::{ConnectionsRecord, RunResult};
use moldau_measure::numbers::Unit;
use moldau_measure::numbers::{estimate, number, signed};
use moldau_measure::statistics::{PairedEffect, differences, median, paired_effect};

/// The arm that others are held against.
const PASSTHROUGH: &str = "passthrough";

/// A table for each case at a fixed rate, and one of connections; none without the arm.
pub(super) fn grids(result: &RunResult) -> Vec<Grid> {
    if !result.arms.iter().any(|arm| arm.name == PASSTHROUGH) {
        return Vec::new();
    }
    let is_fixed =
        |case: &&str| result.runs.iter().any(|run| run.case == *case && is_scheduled(run));
    let cases = result.cases().into_iter().filter(is_fixed);
    cases.map(|case| of_case(result, case)).chain([of_connections(result)]).collect()
}

fn of_case(result: &RunResult, case: &str) -> Grid {
    let row = |arm: &str| {
        let runs = result.runs_of(case, arm);
        let figures: Vec<f64> = runs.filter_map(|run| Metric::ProxyCpu.of(run)).collect();
        let cost = mean(&figures, Metric::ProxyCpu.unit(), result.seed)?;
        let effect = |metric| {
            let found = compare_one(&result.runs, case, PASSTHROUGH, arm, metric, result.seed);
            found.effect.filter(|_| arm != PASSTHROUGH)
        };
        let cells = [
            effect(Metric::ProxyCpu).map(|effect| ratio(&effect)),
            effect(Metric::ResponseP50).map(|effect| difference(&effect.difference)),
            effect(Metric::ResponseP99).map(|effect| difference(&effect.difference)),
        ];
        let cells = cells.map(|cell| cell.unwrap_or_else(|| NONE.into()));
        Some([arm.to_string(), cost].into_iter().chain(cells).collect())
    };
    Grid::of(
        &format!("Against {PASSTHROUGH}: {case}"),
        "Processor time of what stands before the broker, per MB produced and consumed: mean over \
         the runs, and the geometric mean of the ratios over the rounds. Publish latency that it \
         adds, from the intended time: mean over the rounds. All with 95 % intervals. What clients \
         need for TLS is in the latency alone.",
        &["arm", "CPU-ms/MB", "of passthrough's", "p50 added, ms", "p99 added, ms"],
        result.arms.iter().filter_map(|arm| row(&arm.name)),
    )
}

fn of_connections(result: &RunResult) -> Grid {
    let of = |arm: &str| -> Vec<&ConnectionsRecord> {
        result.connections.iter().filter(|record| record.arm == arm).collect()
    };
    let baseline = of(PASSTHROUGH);
    let row = |arm: &str| {
        let records = of(arm);
        let figures: Vec<f64> = records.iter().filter_map(|record| cost(record)).collect();
        let cost_of_arm = mean(&figures, Unit::Milliseconds, result.seed)?;
        let pairs: Vec<(f64, f64)> = records
            .iter()
            .filter_map(|record| {
                let other = baseline.iter().find(|other| other.round == record.round)?;
                Some((cost(other)?, cost(record)?))
            })
            .collect();
        let added = paired_effect(&differences(&pairs), result.seed);
        let added = added.filter(|_| arm != PASSTHROUGH).map(|effect| difference(&effect));
        Some(vec![arm.to_string(), cost_of_arm, added.unwrap_or_else(|| NONE.into())])
    };
    Grid::of(
        "A new connection",
        "Processor time of what stands before the broker from the accepted connection to the \
         answer to ApiVersions, which the broker gives, and the end of the connection. They are \
         opened one after the other, and no TLS session of a client is resumed. Means over the \
         rounds with 95 % intervals.",
        &["arm", "CPU-ms", "added to passthrough's"],
        result.arms.iter().filter_map(|arm| row(&arm.name)),
    )
}

/// Processor time of one connection, ms.
fn cost(record: &ConnectionsRecord) -> Option<f64> {
    let count = f64::from(record.connections);
    (count > 0.0).then(|| milliseconds(record.cpu_ns) / count)
}

/// A mean with its interval, or the median of too few figures; nothing of none.
fn mean(figures: &[f64], unit: Unit, seed: u64) -> Option<String> {
    match paired_effect(figures, seed) {
        Some(effect) => Some(estimate(&effect, unit)),
        None => (!figures.is_empty()).then(|| number(median(figures), unit)),
    }
}

fn ratio(effect: &Effect) -> String {
    let log = &effect.log_ratio;
    let [mean, low, high] = [log.mean, log.interval_95.low, log.interval_95.high]
        .map(|value| number(value.exp(), Unit::Times));
    format!("{mean} x [{low}, {high}]")
}

fn difference(effect: &PairedEffect) -> String {
    let [mean, low, high] = [effect.mean, effect.interval_95.low, effect.interval_95.high]
        .map(|value| signed(value, Unit::Milliseconds));
    format!("{mean} [{low}, {high}]")
}

#[expect(clippy::cast_precision_loss, reason = "processor time stays below 2^53 ns")]
fn milliseconds(nanoseconds: u64) -> f64 {
    nanoseconds as f64 / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::sample;
    use crate::result::Arm;

    /// The sample with a proxy that has a filter, at one and a half times the processor time.
    fn with_filter() -> RunResult {
        let mut result = sample::result();
        let filtered = result.runs.iter().filter(|run| run.arm == "proxy").cloned();
        let filtered: Vec<_> = filtered
            .map(|mut run| {
                run.arm = "mask".into();
                for usage in run.processes.iter_mut().filter(|usage| usage.role == "proxy") {
                    usage.cpu_ns += usage.cpu_ns / 2;
                }
                run
            })
            .collect();
        result
            .runs
            .iter_mut()
            .filter(|r| r.arm == "proxy")
            .for_each(|r| r.arm = PASSTHROUGH.into());
        result.runs.extend(filtered);
        result.arms = ["direct", PASSTHROUGH, "mask"].map(|name| Arm::of(name, "")).to_vec();
        let record = |arm: &str, round, cpu_ns| {
            let connections = 100;
            ConnectionsRecord { arm: arm.into(), round, connections, cpu_ns }
        };
        let rounds = (0..3).flat_map(|round| {
            [record(PASSTHROUGH, round, 20_000_000), record("mask", round, 25_000_000)]
        });
        result.connections = rounds.collect();
        result
    }

    #[test]
    fn arms_stand_beside_the_proxy_without_a_filter() {
        let grids = grids(&with_filter());
        let [fixed, connections] = grids.as_slice() else { panic!("two tables") };
        assert_eq!(fixed.title, format!("Against passthrough: {}", sample::FIXED));
        // 260 ms over 240,000 records of 1 KB in each of six runs, and the same latencies.
        let [own, filtered] = fixed.rows.as_slice() else { panic!("{:?}", fixed.rows) };
        assert_eq!(*own, ["passthrough", "1.11 [1.11, 1.11]", "-", "-", "-"]);
        assert_eq!(
            *filtered,
            [
                "mask",
                "1.66 [1.66, 1.66]",
                "1.50 x [1.50, 1.50]",
                "0.000 [0.000, 0.000]",
                "0.000 [0.000, 0.000]"
            ]
        );
        assert_eq!(
            connections.rows,
            [
                vec!["passthrough", "0.200 [0.200, 0.200]", "-"],
                vec!["mask", "0.250 [0.250, 0.250]", "+0.050 [+0.050, +0.050]"]
            ]
        );
    }

    #[test]
    fn without_the_proxy_there_is_nothing_to_stand_beside() {
        assert!(grids(&sample::result()).is_empty());
        let unasked = RunResult { connections: Vec::new(), ..with_filter() };
        assert!(grids(&unasked).last().is_some_and(|grid| grid.rows.is_empty()));
    }
}
