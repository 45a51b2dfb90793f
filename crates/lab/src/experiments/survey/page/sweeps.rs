//! Sweeps: one setting at three values or more, as a chart with a line for each system, and the law
//! that throughput follows where the setting is a number of something that works at once.

use super::{SCALES, levels, middle, systems};
use crate::metric::Metric;
use crate::page::{Axis, Chart, Scale, Table};
use crate::result::RunResult;
use crate::run_charts::{Drawn, lines, slug};
use crate::survey::SurveyRecord;
use moldau_measure::numbers::Unit;
use moldau_measure::numbers::plain;
use moldau_measure::statistics::scalability::{Coefficient, Point, Scalability};

/// Fewest values that make a line.
const LEVELS_MIN: usize = 3;

/// What is drawn over the setting, as far as systems have it.
const FIGURES: [Metric; 4] =
    [Metric::ProduceRecords, Metric::ResponseP99, Metric::EndToEndP99, Metric::ProxyCpu];

/// Settings whose unit is not their name.
const UNITS: [(&str, &str); 9] = [
    ("records_per_second", "records/s offered"),
    ("records_per_second_each", "records/s offered by each producer"),
    ("outstanding", "records on their way at once"),
    ("record_bytes", "bytes of a record's value"),
    ("topics", "topics"),
    ("partitions", "partitions of each topic"),
    ("producers", "producers of each topic"),
    ("batch_bytes", "bytes of a producer's largest batch"),
    ("linger_us", "linger, us"),
];

/// A scenario at several values of one setting.
struct Sweep<'a> {
    scenario: &'a str,
    key: &'a str,
    /// Values and the loads that have them, rising.
    levels: Vec<(f64, &'a str)>,
}

fn sweeps(record: &SurveyRecord) -> Vec<Sweep<'_>> {
    let mut sweeps: Vec<Sweep<'_>> = Vec::new();
    for scenario in record.cells.iter().filter(|cell| cell.from.is_none()) {
        let others = record.cells.iter().filter(|cell| cell.from.as_ref() == Some(&scenario.name));
        for key in others.flat_map(|cell| &cell.settings).map(|setting| setting.key.as_str()) {
            let is_known = |it: &Sweep<'_>| it.scenario == scenario.name && it.key == key;
            let levels: Vec<(f64, &str)> =
                levels(record, scenario, key).iter().map(|it| (it.value, it.cell)).collect();
            if levels.len() >= LEVELS_MIN && !sweeps.iter().any(is_known) {
                sweeps.push(Sweep { scenario: &scenario.name, key, levels });
            }
        }
    }
    sweeps
}

/// How many times the lowest value the highest is on an axis that is logarithmic.
const LOGARITHMIC_FROM: f64 = 8.0;

/// Every figure over the setting of every sweep.
pub(super) fn charts(result: &RunResult, record: &SurveyRecord) -> Vec<Chart> {
    let sweeps = sweeps(record);
    let all = sweeps.iter().flat_map(|sweep| FIGURES.map(|metric| chart(result, sweep, metric)));
    all.flatten().collect()
}

fn chart(result: &RunResult, sweep: &Sweep<'_>, metric: Metric) -> Option<Chart> {
    let (label, unit) = (metric.label(), metric.unit());
    let (lowest, highest) = (sweep.levels.first()?.0, sweep.levels.last()?.0);
    let is_wide = lowest > 0.0 && highest / lowest >= LOGARITHMIC_FROM;
    let known = UNITS.iter().find(|(key, _)| *key == sweep.key);
    let x = Axis::new(
        known.map_or(sweep.key, |(_, unit)| unit),
        "",
        if is_wide { Scale::Log } else { Scale::Linear },
    );
    let is_latency = unit == Unit::Milliseconds;
    let y = Axis::new(label, unit.symbol(), if is_latency { Scale::Log } else { Scale::Linear });
    let drawn = Drawn {
        id: &slug(&format!("{} {} {label}", sweep.scenario, sweep.key)),
        title: &format!("{}: {label} over {}", sweep.scenario, sweep.key),
        about: "Medians over the rounds.",
        x,
        y,
    };
    lines(result, drawn, |system| {
        let point = |(x, case): &(f64, &str)| Some((*x, middle(result, case, system, metric)?));
        sweep.levels.iter().filter_map(point).collect()
    })
}

/// The universal scalability law of every sweep of something that works at once.
pub(super) fn law(result: &RunResult, record: &SurveyRecord) -> Table {
    let mut rows = Vec::new();
    for sweep in sweeps(record).iter().filter(|sweep| SCALES.contains(&sweep.key)) {
        for system in systems(result) {
            rows.extend(fit(result, sweep, system).map(|law| law_row(sweep, system, &law)));
        }
    }
    Table::of(
        "How throughput scales",
        "The universal scalability law over all rounds, with 95 % intervals: the rate of one \
         alone, the share of the work that only one does at a time, and what each pair costs. \
         Where the load is offered at a rate, a system that keeps up shows no contention: the \
         sweep then did not reach its limit, and no end is seen.",
        &["load", "system", "rate of one, records/s", "contention", "coherence", "most, records/s"],
        rows.into_iter(),
    )
}

fn fit(result: &RunResult, sweep: &Sweep<'_>, system: &str) -> Option<Scalability> {
    let points = sweep.levels.iter().flat_map(|(value, case)| {
        let concurrency = format!("{value:.0}").parse::<u32>().ok();
        let runs = result.runs_of(case, system).filter_map(|run| Metric::ProduceRecords.of(run));
        let point = move |throughput| Some(Point::measured(concurrency?, throughput));
        runs.filter_map(point)
    });
    Scalability::fit(&points.collect::<Vec<Point>>(), result.seed)
}

fn law_row(sweep: &Sweep<'_>, system: &str, law: &Scalability) -> Vec<String> {
    let words = |of: Coefficient, shown: &dyn Fn(f64) -> String| {
        let ends = of.interval_95;
        format!("{} [{}, {}]", shown(of.value), shown(ends.low), shown(ends.high))
    };
    let most = law.throughput_max().map_or("no end seen".into(), plain);
    vec![
        format!("{}, {}", sweep.scenario, sweep.key),
        system.into(),
        words(law.rate, &plain),
        words(law.contention, &|value| format!("{:.1} %", value * 100.0)),
        words(law.coherence, &|value| format!("{:.2} %", value * 100.0)),
        most,
    ]
}
