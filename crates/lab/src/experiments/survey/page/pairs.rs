//! Pairs of systems that a survey compares, such as one with TLS and one without.

use super::{NONE, ratio, systems};
use crate::metric::Metric;
use crate::page::Table;
use crate::result::RunResult;
use crate::survey::{Cell, Estimate, SurveyRecord, SystemPair};

/// What is compared, and what it is in a sentence.
const FIGURES: [(Metric, &str); 4] = [
    (Metric::ProduceRecords, "records/s"),
    (Metric::BrokerCpu, "processor time of the broker for each MB"),
    (Metric::ResponseP50, "median latency"),
    (Metric::ResponseP99, "99th percentile"),
];

/// The pairs with runs of both systems.
fn measured<'a>(result: &RunResult, record: &'a SurveyRecord) -> Vec<&'a SystemPair> {
    let systems = systems(result);
    record.pairs.iter().filter(|pair| pair.is_among(&systems)).collect()
}

/// The ratios of a pair at a load; `None` where it was not measured on both.
fn ratios(result: &RunResult, pair: &SystemPair, cell: &Cell) -> Option<[Option<Estimate>; 4]> {
    let found =
        FIGURES.map(|(metric, _)| pair.estimate(&result.runs, &cell.name, metric, result.seed));
    found.iter().any(Option::is_some).then_some(found)
}

/// What sets each pair apart at every scenario, figure by figure. At a rate that both keep up with,
/// records per second say nothing.
pub(super) fn answers(result: &RunResult, record: &SurveyRecord) -> Vec<String> {
    let answer = |pair: &SystemPair| {
        let scenarios = record.cells.iter().filter(|cell| cell.from.is_none());
        let parts: Vec<String> = scenarios
            .filter_map(|cell| {
                let found = ratios(result, pair, cell)?;
                let is_rate = found[2].is_some();
                let named = found.into_iter().zip(FIGURES).skip(usize::from(is_rate));
                let words = named
                    .filter(|(found, _)| found.is_some())
                    .map(|(found, (_, what))| format!("{what} x {}", ratio(found)));
                Some(format!("{}, {}", cell.name, words.collect::<Vec<_>>().join(", ")))
            })
            .collect();
        let SystemPair { name, of, over } = pair;
        (!parts.is_empty()).then(|| format!("{name}, {of} against {over}: {}.", parts.join("; ")))
    };
    measured(result, record).into_iter().filter_map(answer).collect()
}

/// Every load of every pair.
pub(super) fn table(result: &RunResult, record: &SurveyRecord) -> Table {
    let rows = measured(result, record).into_iter().flat_map(|pair| {
        record.cells.iter().filter_map(move |cell| {
            let found = ratios(result, pair, cell)?;
            let words = [&pair.name, &pair.of, &pair.over, &cell.name].map(String::clone);
            let ratios = found.map(|it| it.map_or(NONE.into(), |it| ratio(Some(it))));
            Some(words.into_iter().chain(ratios).collect())
        })
    });
    Table::of(
        "Pairs of systems",
        "Ratio of the system to its baseline, within the same round: geometric mean and 95 % \
         interval. Latencies are those of loads at a fixed rate, from the intended time.",
        &["apart in", "system", "against", "load", "records/s", "broker CPU", "p50", "p99"],
        rows,
    )
}
