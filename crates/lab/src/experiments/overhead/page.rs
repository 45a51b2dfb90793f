//! What a proxy costs, as a page.

use super::added;
use super::loads::{Loads, Offer};
use crate::metric::{Comparison, Metric};
use crate::page::{
    At, Axis, Cell, Chart, Column, Detail, Estimate, Guide, Line, Mark, Page, Plot, Point, Scale,
    Series, Style, Table,
};
use crate::punctuality::cannot_keep_up;
use crate::result::{Arm, RunResult};
use crate::result_page;
use crate::run_charts::{self, Compared, percentiles, slug, usual_course};
use crate::run_figures::{NONE, estimate, middle_of_runs, quantile, runs_of, silence, throughput};
use crate::run_tables;
use crate::sizing::UTILISATION_MAX;
use moldau_load::workload::BYTES_PER_MB;
use moldau_measure::Error;
use moldau_measure::numbers::{bytes, plain, rough};
use moldau_measure::statistics::float;

/// Most latency curves that a chart shows legibly.
const CURVES_MAX: usize = 6;

/// The process whose CPU time is reported.
const FRONT: (Metric, &str) = (Metric::ProxyCpu, "the process between client and broker");

/// The page of a result.
///
/// # Errors
/// [`Error::Document`] when a histogram cannot be read.
pub fn page(result: &RunResult) -> Result<Page, Error> {
    let loads = Loads::of(result);
    let mut page = result_page::blank(result, "What does the proxy cost?");
    if page.standing.has_figures() {
        page.answer = [Some(latency_sentence(result, &loads)), core_sentence(result, &loads)]
            .into_iter()
            .chain([result_page::records(result)])
            .flatten()
            .collect();
    }
    page.table = Some(summary(result, &loads));
    let cases = loads.cases.iter();
    let (shown, other): (Vec<&str>, Vec<&str>) =
        cases.map(String::as_str).partition(|case| loads.is_shown(case));
    page.charts = charts(result, &loads, &shown)?;
    page.details = details(result, &loads, &other)?;
    Ok(page)
}

/// What the first of our proxies, or else the second arm, adds to latency at the lowest rate.
fn latency_sentence(result: &RunResult, loads: &Loads) -> String {
    let (Some(offer), Some(subject)) = (loads.lowest(), subject(result)) else {
        return "No path was compared with another at a fixed rate.".into();
    };
    let (who, at) = (name_in_words(subject), offer.rate_in_words());
    let before = match result.arms.first().map(|arm| arm.name.as_str()) {
        Some("direct") | None => "In front of this broker".to_owned(),
        Some(first) => format!("Compared with {first}"),
    };
    let is_it = |it: &&Comparison| {
        it.metric == Metric::ResponseP50 && it.case == offer.case && it.arm == subject
    };
    let runs = runs_of(result, &offer.case, subject);
    let effect = result.comparisons.iter().find(is_it).and_then(|it| it.effect.as_ref());
    let Some(difference) = effect.map(|effect| &effect.difference) else {
        return match cannot_keep_up(&runs) {
            true => format!("{before} {who} does not keep up with {at}."),
            false => format!(
                "What {who} adds to publish latency at {at} is not known: too few runs have \
                 latencies."
            ),
        };
    };
    if !difference.is_different() {
        let most = rough(difference.equivalence_bound());
        return format!(
            "{before} {who} adds less than {most} ms to the median publish latency at {at}, too \
             little to measure."
        );
    }
    let (verb, preposition) = if difference.mean > 0.0 { ("adds", "to") } else { ("takes", "off") };
    let size = rough(difference.mean.abs());
    format!("{before} {who} {verb} {size} ms {preposition} the median publish latency at {at}.")
}

/// The rates at which each proxy would keep one core busy.
fn core_sentence(result: &RunResult, loads: &Loads) -> Option<String> {
    let offer = loads.highest()?;
    let carried = |arm: &str| Some(rough(per_core(result, offer, arm)?));
    let subject = subject(result)?;
    let first = format!("One core carries {} MB/s through {}", carried(subject)?, pronoun(subject));
    let others = [
        ("encryption", "encrypted"),
        ("kroxylicious", "through Kroxylicious"),
        ("kroxylicious-encryption", "encrypted by Kroxylicious"),
    ];
    let others = others.into_iter().filter(|(arm, _)| *arm != subject);
    let others = others.filter_map(|(arm, words)| Some(format!("{} MB/s {words}", carried(arm)?)));
    let parts: Vec<String> = std::iter::once(first).chain(others).collect();
    Some(format!("{}.", parts.join(", ")))
}

/// The arm that the answer is about.
fn subject(result: &RunResult) -> Option<&str> {
    let ours = ["passthrough", "proxy"];
    let others = || result.arms.iter().skip(1).map(|arm| arm.name.as_str());
    others().find(|arm| ours.contains(arm)).or_else(|| others().next())
}

fn name_in_words(arm: &str) -> String {
    match arm {
        "passthrough" | "proxy" => "the proxy".into(),
        "encryption" => "the encrypting proxy".into(),
        "relay" => "a bare relay".into(),
        "kroxylicious" => "Kroxylicious".into(),
        "kroxylicious-encryption" => "Kroxylicious with encryption".into(),
        other => format!("the proxy with {other}"),
    }
}

fn pronoun(arm: &str) -> String {
    if matches!(arm, "passthrough" | "proxy") { "it".into() } else { name_in_words(arm) }
}

/// MB/s, each produced and consumed once, that keep one core of what stands before the broker busy.
fn per_core(result: &RunResult, offer: &Offer, arm: &str) -> Option<f64> {
    let runs = runs_of(result, &offer.case, arm);
    let cost = estimate(&runs, Metric::ProxyCpu, result.seed)?.value;
    // A MB that is produced and consumed counts twice in the cost.
    (cost > 0.0).then(|| 1_000.0 / cost / 2.0)
}

/// The small table: a row for each path.
fn summary(result: &RunResult, loads: &Loads) -> Table {
    let (low, high) = (loads.lowest(), loads.highest());
    let full_speed = loads.full_speed();
    let row = |arm: &Arm| {
        let latency = |metric| {
            low.map_or(NONE.into(), |it| quantile(&runs_of(result, &it.case, &arm.name), metric))
        };
        let cost = high.and_then(|it| {
            estimate(&runs_of(result, &it.case, &arm.name), Metric::ProxyCpu, result.seed)
        });
        let carried = high.and_then(|it| per_core(result, it, &arm.name));
        let speed = full_speed.and_then(|case| throughput(&runs_of(result, case, &arm.name)));
        let idle = arm.idle.map(|idle| float(idle.resident_bytes) / BYTES_PER_MB);
        let figure = |value: Option<f64>| value.map_or(NONE.into(), plain);
        vec![
            arm.name.clone(),
            latency(Metric::ResponseP50),
            latency(Metric::ResponseP99),
            figure(cost.map(|it| it.value)),
            carried.map_or(NONE.into(), rough),
            figure(speed),
            idle.map_or(NONE.into(), rough),
        ]
    };
    let table = Table {
        title: String::new(),
        about: about_summary(low, high, full_speed),
        columns: vec![
            Column::words("path"),
            Column::figures("publish p50", "ms"),
            Column::figures("p99", "ms"),
            Column::figures("CPU per MB", "ms"),
            Column::figures("one core", "MB/s"),
            Column::figures("full speed", "MB/s"),
            Column::figures("idle", "MB"),
        ],
        rows: result.arms.iter().map(row).collect(),
    };
    table.without_empty(NONE)
}

fn about_summary(low: Option<&Offer>, high: Option<&Offer>, full_speed: Option<&str>) -> String {
    let mut parts = Vec::new();
    if let Some(low) = low {
        parts.push(format!("Latency at {}.", low.case));
    }
    if let Some(high) = high {
        parts.push(format!(
            "CPU of what stands before the broker at {}, per MB in and out; one core: the rate of \
             produce and consume that keeps one core busy at that cost.",
            high.case
        ));
    }
    if let Some(case) = full_speed {
        parts.push(format!("Full speed: {case}."));
    }
    parts.join(" ")
}

fn charts(result: &RunResult, loads: &Loads, shown: &[&str]) -> Result<Vec<Chart>, Error> {
    let mut charts = Vec::new();
    charts.extend(run_charts::cpu(result, "cpu", shown, FRONT, tone));
    for offer in loads.shown_offers() {
        charts.extend(latency_chart(result, offer)?);
    }
    charts.extend(run_charts::throughput(result, "throughput", &loads.unpaced(), tone));
    charts.extend(cores(result, loads));
    Ok(charts)
}

/// Cores that each path keeps busy over the rate, and where a core has no more headroom.
fn cores(result: &RunResult, loads: &Loads) -> Option<Chart> {
    let (mut series, mut lines) = (Vec::new(), Vec::new());
    for arm in &result.arms {
        let point = |offer: &Offer| {
            let cost = estimate(&runs_of(result, &offer.case, &arm.name), FRONT.0, result.seed)?;
            let x = offer.megabytes_per_second();
            // A MB that is produced and consumed counts twice in the cost.
            let cores = |ms_per_mb: f64| 2.0 * x * ms_per_mb / 1e3;
            let interval = cost.interval.map(|(low, high)| (cores(low), cores(high)));
            Some(Point { x, y: Estimate { value: cores(cost.value), interval } })
        };
        let points: Vec<Point> = loads.shown_offers().filter_map(point).collect();
        let Some(one_core) = loads.highest().and_then(|it| per_core(result, it, &arm.name)) else {
            continue;
        };
        let ends = [(0.0, 0.0), (one_core, 1.0)].map(|(x, y)| Point { x, y: y.into() });
        lines.push(Line { series: series.len(), style: Style::Dashed, points: ends.to_vec() });
        lines.push(Line { series: series.len(), style: Style::Points, points });
        series.push(Series { name: arm.name.clone(), tone: tone(&arm.name) });
    }
    let guide = |name: &str, at: f64| Guide { name: name.into(), at: At::Y(at) };
    (!lines.is_empty()).then(|| Chart {
        id: "cores".into(),
        title: "Cores over the rate".into(),
        about: "Points are measured; dashed lines continue them at the cost of the highest rate. \
                Plan up to the line with headroom: above it a burst of load has to wait."
            .into(),
        series,
        plot: Plot::Lines {
            x: Axis::new("produced and consumed", "MB/s", Scale::Linear),
            y: Axis::new("busy cores", "", Scale::Linear),
            lines,
            guides: vec![guide("70 %: headroom", UTILISATION_MAX), guide("one core", 1.0)],
        },
    })
}

/// Latency by percentile; with many arms their median and 99th percentile.
fn latency_chart(result: &RunResult, offer: &Offer) -> Result<Option<Chart>, Error> {
    let title = format!("Publish latency, {}", offer.case);
    let id = format!("latency-{}", slug(&offer.case));
    if result.arms.len() > CURVES_MAX {
        return Ok(quantile_chart(result, offer, &id, &title));
    }
    let found = percentiles(result, &offer.case, tone, |latency| &latency.response)?;
    Ok(found.map(|chart| Chart { id, title, ..chart }))
}

fn quantile_chart(result: &RunResult, offer: &Offer, id: &str, title: &str) -> Option<Chart> {
    let chart = |metric| {
        let compared = Compared {
            id,
            title,
            about: "From the intended time of a record to its acknowledgement: medians over the \
                    runs, and the lowest and the highest run.",
            axis: Axis::new("publish latency", "ms", Scale::Log),
            mark: Mark::Dot,
        };
        run_charts::bars(result, &[&offer.case], compared, tone, |runs| match silence(runs) {
            Some(word) => Cell::Words(word.into()),
            None => middle_of_runs(runs, metric).map_or(Cell::Absent, Cell::Figure),
        })
    };
    let [median, tail] = [Metric::ResponseP50, Metric::ResponseP99].map(chart);
    run_charts::together(median?, tail?, ["median", "99th percentile"])
}

/// The colour of an arm, the same on every page.
fn tone(arm: &str) -> usize {
    match arm {
        "direct" => 0,
        "passthrough" | "proxy" => 1,
        "encryption" => 2,
        "kroxylicious" => 3,
        "kroxylicious-encryption" => 4,
        "relay" => 5,
        _ => 3,
    }
}

fn details(result: &RunResult, loads: &Loads, other: &[&str]) -> Result<Vec<Detail>, Error> {
    let (mut latency, mut end_to_end) = (Vec::new(), Vec::new());
    for offer in &loads.offers {
        if !loads.shown_offers().any(|shown| shown.case == offer.case) {
            latency.extend(latency_chart(result, offer)?);
        }
        if result.arms.len() <= CURVES_MAX {
            let found = percentiles(result, &offer.case, tone, |latency| &latency.end_to_end)?;
            end_to_end.extend(found.map(|chart| Chart {
                id: format!("end-to-end-{}", slug(&offer.case)),
                title: format!("End-to-end latency, {}", offer.case),
                ..chart
            }));
        }
    }
    latency.extend(end_to_end);
    let cases: Vec<&str> = loads.cases.iter().map(String::as_str).collect();
    let cpu = run_charts::cpu(result, "cpu-other", other, FRONT, tone);
    let mut details = vec![
        Detail::of("Latency by load", latency, vec![run_tables::latency(result, &cases)]),
        Detail::of(
            "CPU time by load",
            cpu.into_iter().collect(),
            vec![run_tables::cpu(result, &cases, FRONT.0, FRONT.1)],
        ),
        Detail::of(
            "Throughput at full speed",
            Vec::new(),
            vec![run_tables::throughputs(result, &loads.unpaced())],
        ),
    ];
    details.extend(added::details(result));
    details.push(Detail::of("Memory of an idle path", Vec::new(), vec![memory(result)]));
    details.push(result_page::comparisons(result));
    let courses = cases.iter().filter_map(|case| usual_course(result, case, tone)).collect();
    details.push(Detail::of("Course of the experiment", courses, Vec::new()));
    details.push(result_page::audit(result));
    details.retain(|detail| !detail.is_empty());
    Ok(details)
}

fn memory(result: &RunResult) -> Table {
    let row = |arm: &Arm| {
        let idle = arm.idle?;
        let (resident, own) = (bytes(idle.resident_bytes), bytes(idle.anonymous_bytes));
        Some(vec![arm.name.clone(), resident, own, idle.threads.to_string()])
    };
    Table {
        title: String::new(),
        about: "Some seconds after the start, before anything passed through. Anonymous memory is \
                what no file backs."
            .into(),
        columns: vec![
            Column::words("path"),
            Column::figures("resident", ""),
            Column::figures("anonymous", ""),
            Column::figures("threads", ""),
        ],
        rows: result.arms.iter().filter_map(row).collect(),
    }
}
