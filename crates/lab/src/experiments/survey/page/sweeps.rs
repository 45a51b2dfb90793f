//! Sweeps: one setting at three values or more, as a chart with a line for each system.

use super::middle;
use crate::metric::Metric;
use crate::page::{Axis, Chart, Scale};
use crate::result::RunResult;
use crate::run_charts::{Drawn, lines, slug};
use crate::survey::{Cell, SurveyRecord};
use moldau_measure::numbers::Unit;

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
            let levels = levels(record, scenario, key);
            if levels.len() >= LEVELS_MIN && !sweeps.iter().any(is_known) {
                sweeps.push(Sweep { scenario: &scenario.name, key, levels });
            }
        }
    }
    sweeps
}

/// A scenario and what differs from it in `key` alone, by rising value.
fn levels<'a>(record: &'a SurveyRecord, scenario: &'a Cell, key: &str) -> Vec<(f64, &'a str)> {
    let value = |cell: &Cell| {
        let setting = cell.settings.iter().find(|setting| setting.key == key)?;
        setting.value.parse::<f64>().ok()
    };
    let differs = |cell: &&Cell| {
        cell.from.as_ref() == Some(&scenario.name) && cell.settings.iter().all(|it| it.key == key)
    };
    let others = record.cells.iter().filter(differs);
    let mut all: Vec<(f64, &str)> = std::iter::once(scenario)
        .chain(others)
        .filter_map(|cell| Some((value(cell)?, cell.name.as_str())))
        .collect();
    all.sort_by(|one, other| one.0.total_cmp(&other.0));
    all
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
