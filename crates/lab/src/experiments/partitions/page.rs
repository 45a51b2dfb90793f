//! What a number of partitions costs, as a page: the findings of each part, tables, and charts over
//! the number of partitions.

mod finding;
mod table;

use crate::metric::Metric;
use crate::page::{Axis, Chart, Column, Detail, Page, Scale, Table};
use crate::partitions::{
    Created, CurvePoint, Growth, PartitionsRecord, fixed_rate_case, full_speed_case,
};
use crate::result::RunResult;
use crate::result_page;
use crate::run_charts::{Drawn, lines};
use finding::findings;
use moldau_measure::numbers::bytes;
use moldau_measure::statistics::float;

/// Charts that stand beside the answer.
const SHOWN: usize = 4;

/// The page of the partition experiment.
pub fn page(result: &RunResult) -> Page {
    const TITLE: &str = "What does a number of partitions cost?";
    let mut page = result_page::answered(result, TITLE, sentences(result));
    let Some(record) = &result.partitions else { return page };
    let mut charts = curve_charts(result, record);
    charts.extend(growth_charts(result, record));
    let folded = charts.split_off(charts.len().min(SHOWN));
    page.charts = charts;
    page.details.push(Detail::table(table_of_findings(result)));
    page.details.push(Detail::of("More over partitions", folded, Vec::new()));
    let mut tables = table::all(result, record).into_iter();
    page.table = tables.next().map(|table| Table { title: String::new(), ..table });
    page.details.extend(tables.map(Detail::table));
    page.details.push(result_page::audit(result));
    page.details.retain(|detail| !detail.is_empty());
    page
}

/// The finding of the first measured part, for each system.
fn sentences(result: &RunResult) -> Vec<String> {
    let findings = findings(result);
    let first: Vec<String> = result
        .arms
        .iter()
        .filter_map(|arm| findings.iter().find(|finding| finding.arm == arm.name))
        .map(|finding| format!("{}: {}", finding.arm, finding.sentence))
        .collect();
    if first.is_empty() { vec!["Nothing was measured.".into()] } else { first }
}

fn table_of_findings(result: &RunResult) -> Table {
    let row = |finding: finding::Finding| {
        let (part, word) = (finding.part.words(), finding.outcome.word());
        vec![part.to_owned(), finding.arm, word.to_owned(), finding.sentence]
    };
    Table {
        title: "Findings".into(),
        about: String::new(),
        columns: ["part", "system", "", "found"].map(Column::words).to_vec(),
        rows: findings(result).into_iter().map(row).collect(),
    }
}

/// A figure of a point that a chart shows.
type Figure<'a> = &'a dyn Fn(&CurvePoint) -> Option<f64>;

fn curve_charts(result: &RunResult, record: &PartitionsRecord) -> Vec<Chart> {
    let at_full_speed = |point: &CurvePoint, metric| {
        of_run(result, &full_speed_case(point.partitions), point, metric)
    };
    let (linear, log) = (Scale::Linear, Scale::Log);
    let figures: [(&str, Axis, Figure<'_>); 8] = [
        ("throughput", Axis::new("throughput at full speed", "MB/s", linear), &|point| {
            at_full_speed(point, Metric::ProduceThroughput)
        }),
        ("p99", Axis::new("publish p99 at the fixed rate", "ms", log), &|point| {
            latency(result, point, Metric::ResponseP99)
        }),
        ("memory", Axis::new("resident memory under load", "MiB", log), &|point| {
            point.loaded.map(|held| mebibytes(held.resident_bytes))
        }),
        ("cpu", Axis::new("broker CPU per MB at full speed", "ms", linear), &|point| {
            at_full_speed(point, Metric::BrokerCpu)
        }),
        ("p50", Axis::new("publish p50 at the fixed rate", "ms", log), &|point| {
            latency(result, point, Metric::ResponseP50)
        }),
        ("memory-empty", Axis::new("resident memory, empty topic", "MiB", log), &|point| {
            point.fresh.map(|held| mebibytes(held.resident_bytes))
        }),
        ("descriptors", Axis::new("open descriptors under load", "", log), &|point| {
            point.loaded.map(|held| float(held.descriptors))
        }),
        ("maps", Axis::new("memory maps under load", "", log), &|point| {
            point.loaded.map(|held| float(held.maps))
        }),
    ];
    let chart = |(id, y, figure): (&str, Axis, Figure<'_>)| {
        let about =
            "One topic, the same batches to each point. A line ends where its system failed.";
        over_partitions(result, id, y, about, |arm| {
            let points = record.curve.iter().filter(|point| point.arm == arm);
            points.filter_map(|point| Some((point.partitions, figure(point)?))).collect()
        })
    };
    figures.into_iter().filter_map(chart).collect()
}

fn growth_charts(result: &RunResult, record: &PartitionsRecord) -> Vec<Chart> {
    let ms = |nanos: u64| float(nanos) / 1e6;
    let at_once = |arm: &str| {
        let made = record.at_once.iter().filter(|created| created.arm == arm);
        let time = |it: &Created| Some((it.partitions, ms(it.creation?.usable_ns)));
        made.filter_map(time).collect()
    };
    let steps = |growths: &[Growth], arm: &str| {
        let steps = growths.iter().filter(|growth| growth.arm == arm).flat_map(|it| &it.steps);
        steps.map(|step| (step.total, ms(step.usable_ns))).collect()
    };
    let y = |name: &str| Axis::new(name, "ms", Scale::Log);
    let each = "Each step until usable, over the partitions that are there.";
    let charts = [
        over_partitions(result, "at-once", y("made at once, until usable"), "", at_once),
        over_partitions(result, "grown", y("each step until usable"), each, |arm| {
            steps(&record.grown, arm)
        }),
        over_partitions(result, "topics", y("each topic until usable"), each, |arm| {
            steps(&record.topics, arm)
        }),
    ];
    charts.into_iter().flatten().collect()
}

/// A chart over the number of partitions, on a logarithmic axis.
fn over_partitions(
    result: &RunResult,
    id: &str,
    y: Axis,
    about: &str,
    points: impl Fn(&str) -> Vec<(u32, f64)>,
) -> Option<Chart> {
    let title = result_page::capital(&y.name);
    let x = Axis::new("partitions", "", Scale::Log);
    // A logarithmic axis has no place for what is not positive.
    let has_place = |value: f64| y.scale != Scale::Log || value > 0.0;
    let points = |arm: &str| {
        let points = points(arm).into_iter().filter(|(_, value)| has_place(*value));
        points.map(|(partitions, value)| (f64::from(partitions), value)).collect()
    };
    lines(result, Drawn { id, title: &title, about, x, y: y.clone() }, points)
}

/// The figure of the run of a point.
fn of_run(result: &RunResult, case: &str, point: &CurvePoint, metric: Metric) -> Option<f64> {
    metric.of(result.runs_of(case, &point.arm).next()?)
}

/// A latency of a point whose generator was in time and whose rate was sustained.
fn latency(result: &RunResult, point: &CurvePoint, metric: Metric) -> Option<f64> {
    if point.is_late || point.is_unsustained {
        return None;
    }
    of_run(result, &fixed_rate_case(point.partitions), point, metric)
}

fn mebibytes(bytes: u64) -> f64 {
    float(bytes) / f64::from(1 << 20)
}

/// A time in the unit that suits it.
fn time(nanos: u64) -> String {
    let ms = float(nanos) / 1e6;
    match ms {
        ms if ms >= 10_000.0 => format!("{:.1} s", ms / 1e3),
        ms if ms >= 1_000.0 => format!("{:.2} s", ms / 1e3),
        ms if ms >= 10.0 => format!("{ms:.0} ms"),
        ms => format!("{ms:.2} ms"),
    }
}

/// Bytes, or what stands where there are none known.
fn size(value: Option<u64>) -> String {
    value.map_or_else(|| crate::run_figures::NONE.into(), bytes)
}

#[cfg(test)]
mod tests;
