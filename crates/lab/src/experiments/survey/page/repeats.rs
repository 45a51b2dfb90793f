//! Loads that are there twice: nothing sets them apart, so a method that tells them apart is wrong.
//! Windows of one run, compared as if they were runs, beside runs that are paired over rounds.

use super::{cases, systems};
use crate::metric::Metric;
use crate::page::Table;
use crate::punctuality::has_latencies;
use crate::result::{RunRecord, RunResult, Slot};
use crate::survey::Contrast;
use moldau_measure::statistics::mann_whitney;

/// A figure of a window.
type OfSlot = fn(&Slot) -> u64;

/// The level of both methods.
const LEVEL: f64 = 0.05;

/// How often a method told apart what is the same.
#[derive(Clone, Copy, Default)]
struct Tally {
    compared: u32,
    apart: u32,
}

impl Tally {
    fn of(found: impl Iterator<Item = bool>) -> Self {
        found.fold(Self::default(), |Self { compared, apart }, is_apart| Self {
            compared: compared + 1,
            apart: apart + u32::from(is_apart),
        })
    }

    fn row(self, method: &str, figure: &str) -> Option<Vec<String>> {
        let Self { compared, apart } = self;
        let share = 100.0 * f64::from(apart) / f64::from(compared.max(1));
        let words = [method, figure, &compared.to_string(), &apart.to_string()];
        let words = words.into_iter().map(str::to_string).chain([format!("{share:.0} %")]);
        (compared > 0).then(|| words.collect())
    }
}

/// The figures that windows are compared in: their names, what a window has, and what a run has.
const FIGURES: [(&str, OfSlot, Metric); 2] = [
    ("publish p50", |slot| slot.response_p50_ns, Metric::ResponseP50),
    ("publish p99", |slot| slot.response_p99_ns, Metric::ResponseP99),
];

pub(super) fn table(result: &RunResult) -> Table {
    let twins = twins(result);
    let rows = FIGURES.iter().flat_map(|(figure, of_slot, metric)| {
        let in_round = windows(result, *of_slot, &twins);
        let neighbours = neighbours(result, *of_slot);
        let paired = paired(result, *metric, &twins);
        [
            in_round.row("windows of one run each, Mann-Whitney, in one round", figure),
            neighbours.row("windows of one run each, Mann-Whitney, in neighbouring rounds", figure),
            paired.row("runs, paired over the rounds", figure),
        ]
    });
    Table::of(
        "How often the same is told apart",
        "Loads that are there twice in equal form, and runs of one load in neighbouring rounds, on \
         every system: at the level of 5 %, 5 of 100 comparisons should tell them apart. The \
         windows are the slots of a run's course. They share its luck and follow from one another, \
         so that a test which takes each for a repetition finds differences between any two runs.",
        &["method", "figure", "compared", "told apart", "share"],
        rows.flatten(),
    )
}

/// Pairs of loads that offer the same.
fn twins(result: &RunResult) -> Vec<[&str; 2]> {
    let cases = cases(result);
    let first = |case: &str| result.runs.iter().find(|run| run.case == case);
    let workload = |case: &str| first(case).map(|run| &run.workload);
    let mut twins = Vec::new();
    for (at, case) in cases.iter().enumerate() {
        let earlier = cases.iter().take(at);
        let same = earlier.filter(|it| workload(it).is_some() && workload(it) == workload(case));
        twins.extend(same.map(|it| [*it, *case]));
    }
    twins
}

fn windows(result: &RunResult, of_slot: OfSlot, twins: &[[&str; 2]]) -> Tally {
    let mut found = Vec::new();
    for system in systems(result) {
        for [one, other] in twins {
            for first in result.runs_of(one, system) {
                let mut others = result.runs_of(other, system);
                let second = others.find(|run| run.pair == first.pair);
                found.extend(second.and_then(|second| differ(first, second, of_slot)));
            }
        }
    }
    Tally::of(found.into_iter())
}

fn neighbours(result: &RunResult, of_slot: OfSlot) -> Tally {
    let mut found = Vec::new();
    for system in systems(result) {
        for case in cases(result) {
            for first in result.runs_of(case, system) {
                let mut runs = result.runs_of(case, system);
                let second = runs.find(|run| run.pair == first.pair + 1);
                found.extend(second.and_then(|second| differ(first, second, of_slot)));
            }
        }
    }
    Tally::of(found.into_iter())
}

/// Whether the windows of two runs differ; `None` where they have too few.
fn differ(first: &RunRecord, second: &RunRecord, of_slot: OfSlot) -> Option<bool> {
    if !has_latencies(first) || !has_latencies(second) {
        return None;
    }
    let [first, second] = [first, second].map(|run| {
        // Slots behind the window have no operations.
        let figures = run.series.iter().map(of_slot).filter(|ns| *ns > 0);
        figures.map(moldau_measure::statistics::float).collect::<Vec<f64>>()
    });
    mann_whitney(&first, &second).map(|probability| probability < LEVEL)
}

fn paired(result: &RunResult, metric: Metric, twins: &[[&str; 2]]) -> Tally {
    let mut found = Vec::new();
    for system in systems(result) {
        for [one, other] in twins {
            let contrast = Contrast { of: (*other).into(), over: Some((*one).into()) };
            let ratio = contrast.estimate(&result.runs, system, metric, result.seed);
            found.extend(ratio.and_then(|it| it.interval).map(|it| it.excludes(1.0)));
        }
    }
    Tally::of(found.into_iter())
}
