//! What proxies add to the brokers before which they stand, and how far one coefficient carries.

use super::{cases, middle, systems};
use crate::metric::{Metric, compare_one};
use crate::page::Table;
use crate::result::RunResult;
use crate::survey::SurveyRecord;
use moldau_measure::numbers::{number, plain, signed};

/// Figures that a proxy adds to.
const ADDED: [Metric; 5] = [
    Metric::ProduceRecords,
    Metric::ResponseMean,
    Metric::ResponseP99,
    Metric::EndToEndMean,
    Metric::EndToEndP99,
];

/// Each system with a proxy, and the last one before it that has none.
fn pairs(result: &RunResult) -> Vec<(&str, &str)> {
    let has_proxy = |system: &str| {
        let mut runs = result.runs.iter().filter(|run| run.arm == system);
        runs.any(|run| run.processes.iter().any(|usage| usage.role == "proxy"))
    };
    let (mut alone, mut pairs) = (None, Vec::new());
    for system in systems(result) {
        match alone {
            _ if !has_proxy(system) => alone = Some(system),
            Some(alone) => pairs.push((alone, system)),
            None => {}
        }
    }
    pairs
}

/// Every scenario through each proxy beside its broker alone.
pub(super) fn added(result: &RunResult, record: &SurveyRecord) -> Table {
    let pairs = pairs(result);
    let scenarios = record.cells.iter().filter(|cell| cell.from.is_none());
    let rows = scenarios.flat_map(|cell| {
        pairs.iter().map(|(alone, system)| {
            let figures = ADDED.map(|metric| {
                let found =
                    compare_one(&result.runs, &cell.name, alone, system, metric, result.seed);
                let unit = metric.unit();
                let value = |it: Option<f64>| it.map_or(super::NONE.into(), |it| number(it, unit));
                let difference = found.effect.map(|effect| {
                    let it = effect.difference;
                    let ends = [it.interval_95.low, it.interval_95.high];
                    let [low, high] = ends.map(|end| signed(end, unit));
                    format!(" ({} [{low}, {high}])", signed(it.mean, unit))
                });
                format!(
                    "{} -> {}{}",
                    value(found.baseline_median),
                    value(found.arm_median),
                    difference.unwrap_or_default()
                )
            });
            let words = [cell.name.clone(), (*system).into(), (*alone).into()];
            words.into_iter().chain(figures).collect()
        })
    });
    Table::of(
        "What the proxies add",
        "Medians over the rounds, broker alone -> through the proxy, and the mean difference \
         within rounds with its 95 % interval. Times count from the intended one.",
        &[
            "load",
            "system",
            "beside",
            "records/s",
            "publish mean, ms",
            "publish p99, ms",
            "end-to-end mean, ms",
            "end-to-end p99, ms",
        ],
        rows,
    )
}

/// Processor time of every load through a proxy, and what the coefficient of the first says of it.
pub(super) fn coefficients(result: &RunResult) -> Table {
    let rows = pairs(result).into_iter().flat_map(|(_, system)| costs(result, system));
    let rows = rows.map(|Cost { load, system, moved, cpu, predicted }| {
        vec![
            system.into(),
            load.into(),
            plain(moved),
            plain(cpu * moved),
            plain(cpu),
            plain(predicted * moved),
            format!("{:.2}", predicted / cpu),
        ]
    });
    Table::of(
        "One coefficient for all loads",
        "MB/s in and out; millicores of the proxy; millicores for each MB/s, which are CPU-ms/MB, \
         idle included; what a formula of one coefficient, that of the first load, makes of the \
         others, and its share of what was measured. Requests, records and the proxy's idle time \
         cost too: moldau lab cores has a price for each.",
        &["system", "load", "MB/s", "millicores", "for each MB/s", "predicted", "share"],
        rows,
    )
}

struct Cost<'a> {
    load: &'a str,
    system: &'a str,
    /// MB/s in and out.
    moved: f64,
    /// CPU-ms/MB.
    cpu: f64,
    /// The same, by the first load.
    predicted: f64,
}

fn costs<'a>(result: &'a RunResult, system: &'a str) -> Vec<Cost<'a>> {
    let cost = |load: &'a str| {
        let of = |metric| middle(result, load, system, metric);
        let moved = of(Metric::ProduceThroughput)? + of(Metric::ConsumeThroughput).unwrap_or(0.0);
        Some((load, moved, of(Metric::ProxyCpu)?))
    };
    let all: Vec<(&str, f64, f64)> = cases(result).into_iter().filter_map(cost).collect();
    let Some(&(_, _, predicted)) = all.first() else { return Vec::new() };
    let costs = all.into_iter();
    costs.map(|(load, moved, cpu)| Cost { load, system, moved, cpu, predicted }).collect()
}

/// The sizing line of each proxy: its coefficient, and how far that is off.
pub(super) fn sizing(result: &RunResult) -> Vec<String> {
    let line = |(_, system): (&str, &str)| {
        let costs = costs(result, system);
        let first = costs.first()?;
        let others = costs.iter().filter(|cost| cost.load != first.load);
        let shares = others.map(|cost| cost.predicted / cost.cpu);
        let (low, high) = shares.fold(None, |ends: Option<(f64, f64)>, share| {
            let (low, high) = ends.unwrap_or((share, share));
            Some((low.min(share), high.max(share)))
        })?;
        Some(format!(
            "Sizing of {system}: {} millicores for each MB/s in and out at {}; for the other \
             loads that coefficient gives {low:.2} to {high:.2} of what they take, so size by \
             requests and records as well (moldau lab cores).",
            plain(first.cpu),
            first.load,
        ))
    };
    pairs(result).into_iter().filter_map(line).collect()
}
