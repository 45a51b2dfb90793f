//! The report as one HTML file: styles, script, chart library and data inside, no network needed.

use super::ceiling;
use super::chart::{self, Chart};
use super::faults;
use super::grid::Grid;
use super::imported;
use super::partitions;
use super::profiles;
use super::self_test;
use super::sentence;
use super::shapes;
use super::sizing;
use super::soak;
use super::survey;
use super::table::{Contrast, NONE, Row, comparisons, contrasts, offered, runs_counted};
use super::threads;
use super::transactions;
use crate::checks::{Verdict, Weight};
use crate::metric::{Comparison, Metric};
use crate::result::{Experiment, RunResult};
use moldau_load::workload::Pace;
use moldau_measure::Error;
use moldau_measure::numbers::{bytes, number, thousands};
use moldau_measure::statistics::float;

const STYLE: &str = include_str!("../../assets/report.css");
const SCRIPT: &str = include_str!("../../assets/report.js");

/// uPlot 1.6.32, MIT; its licence text lies beside it and is part of the page.
const PLOT_SCRIPT: &str = include_str!("../../assets/uplot/uPlot.iife.min.js");
const PLOT_STYLE: &str = include_str!("../../assets/uplot/uPlot.min.css");
const PLOT_LICENSE: &str = include_str!("../../assets/uplot/LICENSE");

/// The page.
///
/// # Errors
/// [`Error::Document`] when a histogram of the result cannot be read.
pub fn html(result: &RunResult) -> Result<String, Error> {
    let mut charts = Vec::new();
    let mut body = head(result);
    if result.experiment == Experiment::Partitions {
        body += &partitions::html(result, &mut charts);
    } else if result.experiment == Experiment::Ceiling {
        body += &ceiling::html(result);
    } else if result.experiment == Experiment::Cores {
        body += &sizing::html(result);
    } else if let Some(record) = result.survey() {
        body += &survey::html(result, record);
    } else if let Some(record) = result.threads() {
        body += &threads::html(result, record);
    } else if let Some(record) = result.faults() {
        body += &faults::html(result, record, &mut charts);
    } else if let Some(record) = result.soak() {
        body += &soak::html(result, record, &mut charts);
    } else if let Some(record) = &result.self_test {
        body += &self_test::html(result, record, &mut charts);
    } else if result.imported().is_some() {
        body.extend(imported::grids(result).iter().map(Grid::html));
    } else {
        body.extend(super::grids(result).iter().map(Grid::html));
        for (index, case) in result.cases().into_iter().enumerate() {
            body += &case_section(result, case, index == 0, &mut charts)?;
        }
    }
    body.extend(shapes::grid(result).iter().map(Grid::html));
    body.extend(transactions::grid(result).iter().map(Grid::html));
    body += &profiles::html(result);
    body += &checks(result);
    if result.imported().is_none() {
        body += &audit(result);
    }
    body += &environment(result);
    let made = format!(
        "Made by moldau lab from result document {}, format {}.",
        result.id, result.format_version
    );
    Ok(page(title(result), &body, &made, &charts))
}

/// A whole page that needs nothing else.
pub(super) fn page(title: &str, body: &str, made: &str, charts: &[Chart]) -> String {
    let data = serde_json::json!({ "charts": charts }).to_string().replace('<', "\\u003c");
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{title}</title>\n<style>{PLOT_STYLE}\n{STYLE}</style>\n</head>\n<body>\n<main>\n\
         {body}\n<footer>{made} \
         <details><summary>Licence of the chart library uPlot</summary><pre>{license}</pre>\
         </details></footer>\n</main>\n\
         <script type=\"application/json\" id=\"data\">{data}</script>\n\
         <script>{PLOT_SCRIPT}</script>\n<script>{SCRIPT}</script>\n</body>\n</html>\n",
        title = escape(title),
        made = escape(made),
        license = escape(PLOT_LICENSE),
    )
}

/// The question.
pub(super) fn title(result: &RunResult) -> &str {
    match &result.experiment {
        Experiment::Overhead => "What does the proxy cost?",
        Experiment::SideBySide => "Side by side",
        Experiment::Partitions => "What does a number of partitions cost?",
        Experiment::Storage => "What does the broker take off what the disk gives?",
        Experiment::Ceiling => "Which rate is sustained?",
        Experiment::Cores => "How many cores does the proxy need?",
        Experiment::SelfTest(test) => test.question(),
        Experiment::File(file) => &file.question,
        Experiment::Survey(record) => &record.question,
        Experiment::Imported(_) => "What do the outputs of other tools say?",
        Experiment::Threads(record) => &record.question,
        Experiment::Explain(_) => "What limits it?",
        Experiment::Soak(_) => "Does anything grow?",
        Experiment::Faults(_) => "What becomes of records and clients when something breaks?",
    }
}

fn head(result: &RunResult) -> String {
    let (class, word) = match result.verdict {
        Verdict::Ok => ("good", "valid"),
        Verdict::ObjectiveFailed => ("note", "objective missed"),
        Verdict::RecordsLost => ("bad", "records lost"),
        Verdict::Invalid => ("bad", "not valid"),
        Verdict::Environment => ("bad", "did not happen"),
    };
    // Figures that do not hold are not put in the window.
    let holds = matches!(result.verdict, Verdict::Ok | Verdict::ObjectiveFailed);
    let cards = match result.arms.get(1).filter(|_| holds) {
        Some(_) if !has_cards(result) => String::new(),
        Some(_) if has_objectives(result) => objective_cards(result),
        Some(arm) => cards(result, &arm.name),
        None => String::new(),
    };
    format!(
        "<header><p class=\"kicker\">moldau lab, {} UTC, {} s{}</p>\
         <h1>{}<span class=\"badge {class}\">{word}</span></h1>\
         <p class=\"answer\">{}</p></header>{cards}",
        escape(&result.id),
        result.elapsed_ms / 1000,
        if result.quick { ", short form" } else { "" },
        escape(title(result)),
        escape(&sentence(result)),
    )
}

/// Whether two arms stand for the whole experiment, so that cards can tell it.
fn has_cards(result: &RunResult) -> bool {
    let has_tables_alone = super::is_told_by_tables(result);
    !has_tables_alone && result.explained().is_none()
}

/// What is longer is several figures, which are not shown as large as one.
const FIGURE_CHARACTERS_MAX: usize = 24;

fn has_objectives(result: &RunResult) -> bool {
    result.checks.iter().any(|check| check.weight == Weight::Objective)
}

/// What the experiment was to show, and what it found.
fn objective_cards(result: &RunResult) -> String {
    let mut html = String::from("<div class=\"cards\">");
    for check in result.checks.iter().filter(|check| check.weight == Weight::Objective) {
        let class = match (check.passed, check.found.len() > FIGURE_CHARACTERS_MAX) {
            (true, false) => "good",
            (true, true) => "good words",
            (false, false) => "bad",
            (false, true) => "bad words",
        };
        html += &format!(
            "<div class=\"card\"><div class=\"name\">{}</div>\
             <div class=\"value {class}\">{}</div><div class=\"detail\">{}</div></div>",
            escape(&check.name),
            escape(&check.found),
            escape(&check.demanded)
        );
    }
    html + "</div>"
}

/// The figures that matter most, each from the first case that has it.
fn cards(result: &RunResult, arm: &str) -> String {
    const SHOWN: [Metric; 6] = [
        Metric::ResponseP50,
        Metric::ResponseP99,
        Metric::EndToEndP50,
        Metric::ProduceThroughput,
        Metric::ConsumeThroughput,
        Metric::ProxyCpu,
    ];
    let mut html = String::from("<div class=\"cards\">");
    for metric in SHOWN {
        // The throughput of a fixed rate is an input, not an outcome.
        let is_throughput = matches!(metric, Metric::ProduceThroughput | Metric::ConsumeThroughput);
        let found = result.comparisons.iter().find(|comparison| {
            comparison.metric == metric
                && comparison.arm == arm
                && !(is_throughput && is_scheduled(result, &comparison.case))
        });
        if let Some(comparison) = found {
            html += &card(comparison);
        }
    }
    html + "</div>"
}

fn is_scheduled(result: &RunResult, case: &str) -> bool {
    let mut runs = result.runs.iter().filter(|run| run.case == case);
    runs.any(|run| matches!(run.workload.pace, Pace::Scheduled { .. }))
}

fn card(comparison: &Comparison) -> String {
    let unit = comparison.metric.unit();
    let row = Row::of(comparison);
    let value = comparison.arm_median.map_or(NONE.into(), |value| number(value, unit));
    let class = match row.tendency {
        "worse" => "bad",
        "better" => "good",
        _ => "soft",
    };
    let detail = match (&comparison.effect, comparison.baseline_median) {
        (Some(_), _) => format!(
            "{} {}, <span class=\"{class}\">{} ({})</span>",
            escape(&comparison.baseline),
            row.baseline,
            row.difference,
            row.ratio
        ),
        (None, Some(_)) => format!("{} {}", escape(&comparison.baseline), row.baseline),
        (None, None) => "produced and consumed MB".into(),
    };
    format!(
        "<div class=\"card\"><div class=\"name\">{}, {}</div>\
         <div class=\"value\">{value} <small>{}</small></div>\
         <div class=\"detail\">{detail}</div></div>",
        escape(comparison.metric.label()),
        escape(&comparison.arm),
        escape(unit.symbol()),
    )
}

fn case_section(
    result: &RunResult,
    case: &str,
    is_first: bool,
    charts: &mut Vec<Chart>,
) -> Result<String, Error> {
    let Some(run) = result.runs.iter().find(|run| run.case == case) else {
        return Ok(String::new());
    };
    let mut html =
        format!("<h2>{}</h2><p class=\"about\">{}.</p>", escape(case), escape(&offered(run)));
    html += &tables(result, case);
    if is_first {
        html += "<p class=\"soft\">Publish: from the intended time of an operation, which never \
                 moves, to its acknowledgement. End-to-end: from there to delivery. CPU-ms/MB: \
                 processor time per MB (2^20 bytes of record values) produced and consumed. \
                 Differences are means over pairs of neighbouring runs; intervals are smoothed \
                 bootstrap intervals at 95 %.</p>";
    }
    html += &latency_charts(result, case, charts)?;
    html += &course_and_cpu(result, case, charts);
    Ok(html)
}

/// A table for each two arms that are compared, out of the way if they are many.
fn tables(result: &RunResult, case: &str) -> String {
    let contrasts = contrasts(result, case);
    let tables: String = contrasts.iter().map(|contrast| table(result, case, *contrast)).collect();
    if contrasts.len() < 2 {
        return tables;
    }
    format!("<details><summary>All figures, two arms at a time</summary>{tables}</details>")
}

fn table(result: &RunResult, case: &str, contrast: Contrast<'_>) -> String {
    let Contrast { baseline, arm } = contrast;
    let mut html = format!(
        "<div class=\"card table\"><table><tr><th>median of {}</th><th>{}</th><th>{}</th>\
         <th>difference</th><th>95 % interval</th><th>ratio</th><th>shows</th></tr>",
        runs_counted(result, case, contrast),
        escape(baseline),
        escape(arm),
    );
    for comparison in comparisons(result, case, arm) {
        let row = Row::of(comparison);
        let class = match row.tendency {
            "worse" => " class=\"bad\"",
            "better" => " class=\"good\"",
            _ => "",
        };
        html += &format!(
            "<tr><td>{}</td><td>{}</td><td>{}</td><td{class}>{}</td><td>{}</td><td>{}</td>\
             <td>{}</td></tr>",
            escape(&row.figure),
            row.baseline,
            row.arm,
            row.difference,
            row.interval,
            row.ratio,
            row.shows
        );
    }
    html + "</table></div>"
}

fn latency_charts(
    result: &RunResult,
    case: &str,
    charts: &mut Vec<Chart>,
) -> Result<String, Error> {
    let response = chart::curve(result, case, |latency| &latency.response)?;
    let end_to_end = chart::curve(result, case, |latency| &latency.end_to_end)?;
    let mut html = String::from("<div class=\"pair\">");
    let mut is_empty = true;
    for (name, found) in
        [("Publish latency by percentile", response), ("End-to-end by percentile", end_to_end)]
    {
        if let Some(found) = found {
            is_empty = false;
            html += &plot(name, found, charts);
        }
    }
    Ok(if is_empty { String::new() } else { html + "</div>" })
}

fn course_and_cpu(result: &RunResult, case: &str, charts: &mut Vec<Chart>) -> String {
    let (name, course) = if is_scheduled(result, case) {
        let course = chart::course(result, case, "ms", |_, slot| chart::ms(slot.response_p99_ns));
        ("Publish latency over the experiment, p99 of each slot", course)
    } else {
        let course = chart::course(result, case, "MB/s", |run, slot| {
            let records = slot.produced_records.max(slot.consumed_records);
            run.megabytes(records) * 1e3 / float(run.slot_ms.max(1))
        });
        ("Throughput over the experiment", course)
    };
    let mut html = String::from("<div class=\"pair\">");
    html += &course.map_or_else(String::new, |course| plot(name, course, charts));
    if let Some(bars) = chart::cpu_bars(result, case) {
        let name = "Processor time, CPU-ms per MB";
        html += &format!("<div class=\"card\"><h3>{name}</h3>{bars}</div>");
    }
    html += "</div>";
    for Contrast { baseline, arm } in contrasts(result, case) {
        let found: Vec<&Comparison> =
            comparisons(result, case, arm).filter(|c| c.effect.is_some()).collect();
        if !found.is_empty() {
            html += &format!(
                "<div class=\"card\"><h3>{} against {}, in percent, with 95 % intervals</h3>\
                 {}</div>",
                escape(arm),
                escape(baseline),
                chart::intervals(&found)
            );
        }
    }
    html
}

pub(super) fn plot(name: &str, chart: Chart, charts: &mut Vec<Chart>) -> String {
    charts.push(chart);
    format!(
        "<div class=\"card\"><h3>{}</h3><div class=\"plot\" data-chart=\"{}\"></div></div>",
        escape(name),
        charts.len() - 1
    )
}

fn checks(result: &RunResult) -> String {
    let mut html = String::from(
        "<h2>Checks</h2><p class=\"about\">What the laboratory checked about itself. A run that \
         fails one is refused.</p><div class=\"card table\"><table class=\"words\">",
    );
    for check in &result.checks {
        let (class, word) = match (check.passed, check.weight) {
            (true, _) => ("good", "passed"),
            (false, Weight::Note) => ("note", "note"),
            (false, _) => ("bad", "failed"),
        };
        html += &format!(
            "<tr><td class=\"mark {class}\">{word}</td><td>{}</td><td>{}</td>\
             <td class=\"soft\">{}</td></tr>",
            escape(&check.name),
            escape(&check.found),
            escape(&check.demanded)
        );
    }
    html + "</table></div>"
}

fn audit(result: &RunResult) -> String {
    let audit = &result.audit;
    let mut html = String::from(
        "<h2>Records</h2><p class=\"about\">Every record of every run carries its producer, \
         partition, number and checksum; what came back is compared with what was acknowledged.\
         </p><div class=\"cards\">",
    );
    let faults = audit.faults();
    for (name, value, is_fault) in [
        ("sent", audit.sent, false),
        ("acknowledged", audit.acked, false),
        ("read back", audit.delivered, false),
        ("lost", audit.lost, true),
        ("duplicated", audit.duplicated, true),
        ("all faults", faults, true),
    ] {
        let class = match (is_fault, value) {
            (false, _) => "",
            (true, 0) => " good",
            (true, _) => " bad",
        };
        html += &format!(
            "<div class=\"card\"><div class=\"name\">{name}</div>\
             <div class=\"value{class}\">{}</div></div>",
            thousands(value)
        );
    }
    html + "</div>"
}

fn environment(result: &RunResult) -> String {
    let e = &result.environment;
    let files = e.open_files_max.map_or("unlimited".into(), thousands);
    let mut rows: Vec<(&str, String)> = vec![
        ("processors", format!("{} x {}", e.processors, e.cpu_model)),
        ("processor features", e.cpu_flags.join(", ")),
        ("memory", bytes(e.memory_bytes)),
        ("kernel", format!("Linux {}", e.kernel)),
        ("data directory", format!("{} on {}", e.file_system, e.device)),
        ("clock", e.clock_source.clone()),
        ("open files", files),
        ("control group", format!("{} {}", e.cgroup_cpu_max, e.cgroup_memory_max)),
        ("frequency policy", e.frequency_governor.clone()),
        ("binary", e.binary_version.clone()),
        ("seed", result.seed.to_string()),
        ("generator and systems", e.co_location()),
    ];
    for arm in &result.arms {
        rows.push((&arm.name, arm.description.clone()));
    }
    let mut html =
        String::from("<h2>Environment</h2><div class=\"card table\"><table class=\"words\">");
    for (name, value) in rows.iter().filter(|(_, value)| !value.trim().is_empty()) {
        html += &format!(
            "<tr><td class=\"soft\">{}</td><td>{}</td></tr>",
            escape(name),
            escape(value.trim())
        );
    }
    html + "</table></div>"
}

/// Text as HTML text or attribute value.
pub(super) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            other => escaped.push(other),
        }
    }
    escaped
}
