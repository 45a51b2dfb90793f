//! The report of the partition experiment: what each part came to, tables that all forms of the
//! report share, and charts over the number of partitions.

mod finding;
mod table;

use super::chart::{Chart, OverLine};
use super::html::{escape, plot};
use crate::metric::Metric;
use crate::partitions::{CurvePoint, PartitionsRecord, fixed_rate_case, full_speed_case};
use crate::result::RunResult;
use finding::findings;
use moldau_measure::numbers::bytes;
use moldau_measure::statistics::float;

/// The answer: what the curve and the making of partitions came to, system by system.
pub(super) fn sentence(result: &RunResult) -> String {
    let findings = findings(result);
    let first: Vec<String> = result
        .arms
        .iter()
        .filter_map(|arm| findings.iter().find(|finding| finding.arm == arm.name))
        .map(|finding| format!("{}: {}", finding.arm, finding.sentence))
        .collect();
    if first.is_empty() { "Nothing was measured.".into() } else { first.join(" ") }
}

/// The sections of the page.
pub(super) fn html(result: &RunResult, charts: &mut Vec<Chart>) -> String {
    let Some(record) = &result.partitions else { return String::new() };
    let mut html =
        String::from("<h2>Findings</h2><div class=\"card table\"><table class=\"words\">");
    for finding in findings(result) {
        let (class, word) = finding.outcome.mark();
        html += &format!(
            "<tr><td class=\"mark {class}\">{word}</td><td>{}</td><td>{}</td><td>{}</td></tr>",
            finding.part.words(),
            escape(&finding.arm),
            escape(&finding.sentence)
        );
    }
    html += "</table></div>";
    html += &curve_charts(result, record, charts);
    html += &growth_charts(result, record, charts);
    for table in table::all(result, record) {
        html += &table.html();
    }
    html
}

/// The lines of the Markdown page.
pub(super) fn markdown(result: &RunResult) -> Vec<String> {
    let Some(record) = &result.partitions else { return Vec::new() };
    let mut lines = vec![String::new(), "## Findings".into(), String::new()];
    lines.extend(["| part | system | | |".into(), "|---|---|---|---|".into()]);
    for finding in findings(result) {
        let (part, (_, word)) = (finding.part.words(), finding.outcome.mark());
        lines.push(format!("| {part} | {} | {word} | {} |", finding.arm, finding.sentence));
    }
    for table in table::all(result, record) {
        lines.extend(table.markdown());
    }
    lines
}

/// The part of the terminal's report.
pub(super) fn text(result: &RunResult) -> String {
    let Some(record) = &result.partitions else { return String::new() };
    let mut text = String::new();
    for finding in findings(result) {
        let (_, word) = finding.outcome.mark();
        let (part, arm) = (finding.part.words(), &finding.arm);
        text += &format!("\n{part}, {arm} ({word}): {}\n", finding.sentence);
    }
    for table in table::all(result, record) {
        text += &table.text();
    }
    text
}

/// A figure of a point that a chart shows.
type Figure<'a> = &'a dyn Fn(&RunResult, &CurvePoint) -> Option<f64>;

fn curve_charts(result: &RunResult, record: &PartitionsRecord, charts: &mut Vec<Chart>) -> String {
    if record.curve.is_empty() {
        return String::new();
    }
    let figures: [(&str, &'static str, bool, Figure<'_>); 8] = [
        ("Throughput at full speed, MB/s", "MB/s", false, &|result, point| {
            of_run(result, &full_speed_case(point.partitions), point, Metric::ProduceThroughput)
        }),
        ("Broker processor time, CPU-ms per MB", "CPU-ms/MB", false, &|result, point| {
            of_run(result, &full_speed_case(point.partitions), point, Metric::BrokerCpu)
        }),
        ("Produce latency at the fixed rate, p50", "ms", true, &|result, point| {
            latency(result, point, Metric::ResponseP50)
        }),
        ("Produce latency at the fixed rate, p99", "ms", true, &|result, point| {
            latency(result, point, Metric::ResponseP99)
        }),
        ("Resident memory under load, MiB", "MiB", true, &|_, point| {
            point.loaded.map(|held| mebibytes(held.resident_bytes))
        }),
        ("Resident memory with the empty topic, MiB", "MiB", true, &|_, point| {
            point.fresh.map(|held| mebibytes(held.resident_bytes))
        }),
        ("Open descriptors under load", "", true, &|_, point| {
            point.loaded.map(|held| float(held.descriptors))
        }),
        ("Memory maps under load", "", true, &|_, point| point.loaded.map(|held| float(held.maps))),
    ];
    let mut html = String::from(
        "<h2>Over the number of partitions</h2><p class=\"about\">One topic, the same batches to \
         each point; both axes of partitions are logarithmic. A line ends where its system failed.\
         </p>",
    );
    for pair in figures.chunks(2) {
        html += "<div class=\"pair\">";
        for (name, unit, is_log, figure) in pair {
            let lines = result.arms.iter().map(|arm| {
                let points = record.curve.iter().filter(|point| point.arm == arm.name);
                let points = points.map(|point| (point.partitions, figure(result, point)));
                (arm.name.clone(), points.collect())
            });
            html += &plot(name, over(unit, *is_log, lines.collect()), charts);
        }
        html += "</div>";
    }
    html
}

fn growth_charts(result: &RunResult, record: &PartitionsRecord, charts: &mut Vec<Chart>) -> String {
    let at_once = result.arms.iter().map(|arm| {
        let made = record.at_once.iter().filter(|created| created.arm == arm.name);
        let time = |created: &crate::partitions::Created| {
            created.creation.map(|creation| float(creation.usable_ns) / 1e6)
        };
        let points = made.map(|created| (created.partitions, time(created)));
        (arm.name.clone(), points.collect())
    });
    let steps = |growths: &[crate::partitions::Growth]| {
        let lines = growths.iter().map(|growth| {
            let steps = growth.steps.iter();
            let points = steps.map(|step| (step.total, Some(float(step.usable_ns) / 1e6)));
            (growth.arm.clone(), points.collect())
        });
        lines.collect::<Vec<_>>()
    };
    let shown = [
        ("Made at once, until usable", at_once.collect()),
        ("Grown: each step until usable, over the partitions there", steps(&record.grown)),
        ("Topics of one partition: each request until usable", steps(&record.topics)),
    ];
    let mut html = String::new();
    for (name, lines) in shown {
        if lines.iter().any(|(_, points): &Line| !points.is_empty()) {
            html += &plot(name, over("ms", true, lines), charts);
        }
    }
    html
}

/// Name of an arm, and its figures by the number of partitions.
type Line = (String, Vec<(u32, Option<f64>)>);

/// A chart over the number of partitions, on a logarithmic axis.
fn over(unit: &'static str, is_log: bool, lines: Vec<Line>) -> Chart {
    let mut counts: Vec<u32> =
        lines.iter().flat_map(|(_, points)| points.iter().map(|(count, _)| *count)).collect();
    counts.sort_unstable();
    counts.dedup();
    let arms = lines.into_iter().map(|(name, points)| {
        let at = |count: &u32| {
            let found = points.iter().find(|(of, _)| of == count);
            // A logarithmic axis has no place for what is not positive.
            found.and_then(|(_, value)| *value).filter(|value| !is_log || *value > 0.0)
        };
        OverLine { name, y: counts.iter().map(at).collect() }
    });
    let arms = arms.collect();
    Chart::Over { unit, is_log, x: counts.iter().map(|count| f64::from(*count)).collect(), arms }
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
    value.map_or_else(|| super::table::NONE.into(), bytes)
}

#[cfg(test)]
mod tests;
