//! What paths add to our proxy without a filter: per MB and in latency where a rate is fixed, and
//! per new connection.

use crate::metric::{Effect, Metric, compare_one};
use crate::page::{Column, Detail, Table};
use crate::punctuality::is_scheduled;
use crate::result::{ConnectionsRecord, RunResult};
use moldau_measure::numbers::Unit;
use moldau_measure::numbers::{estimate, number, signed};
use moldau_measure::statistics::{PairedEffect, differences, float, median, paired_effect};

/// The arm that others are compared with.
const PASSTHROUGH: &str = "passthrough";

/// What stands where a figure does not exist.
const NONE: &str = "-";

/// A table for each case at a fixed rate, and one of connections; none without the arm.
pub(super) fn details(result: &RunResult) -> Vec<Detail> {
    if !result.arms.iter().any(|arm| arm.name == PASSTHROUGH) {
        return Vec::new();
    }
    let is_fixed =
        |case: &&str| result.runs.iter().any(|run| run.case == *case && is_scheduled(run));
    let cases = result.cases().into_iter().filter(is_fixed);
    let tables = cases.map(|case| of_case(result, case)).filter(|table| table.rows.len() > 1);
    let compared = Detail {
        title: format!("Compared with {PASSTHROUGH}"),
        text: vec![
            "CPU time of the process between client and broker per MB: mean over the runs, and \
             the geometric mean of the ratios over the rounds. Publish latency that it adds: mean \
             over the rounds. All with 95 % intervals. What clients need for TLS is in the \
             latency alone."
                .into(),
        ],
        charts: Vec::new(),
        tables: tables.collect(),
    };
    let connections = Detail {
        title: "A new connection".into(),
        text: Vec::new(),
        charts: Vec::new(),
        tables: vec![of_connections(result)],
    };
    vec![compared, connections]
}

fn of_case(result: &RunResult, case: &str) -> Table {
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
    Table {
        title: case.to_owned(),
        about: String::new(),
        columns: vec![
            Column::words("path"),
            Column::figures("CPU per MB", "ms"),
            Column::figures("of passthrough's", ""),
            Column::figures("p50 added", "ms"),
            Column::figures("p99 added", "ms"),
        ],
        rows: result.arms.iter().filter_map(|arm| row(&arm.name)).collect(),
    }
}

fn of_connections(result: &RunResult) -> Table {
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
    Table {
        title: String::new(),
        about: "CPU time of the process between client and broker from the accepted connection \
                to the answer to ApiVersions, which the broker gives, and the end of the \
                connection. Connections are opened one after the other, and no TLS session of a \
                client is resumed. Means over the rounds with 95 % intervals."
            .into(),
        columns: vec![
            Column::words("path"),
            Column::figures("CPU", "ms"),
            Column::figures("added to passthrough's", "ms"),
        ],
        rows: result.arms.iter().filter_map(|arm| row(&arm.name)).collect(),
    }
}

/// CPU time of one connection, ms.
fn cost(record: &ConnectionsRecord) -> Option<f64> {
    let count = f64::from(record.connections);
    (count > 0.0).then(|| float(record.cpu_ns) / 1e6 / count)
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
