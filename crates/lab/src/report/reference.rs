//! A performance reference page in Markdown: what results say of throughput, latency, processor
//! time and size, each figure with the file that it is from. That of a model of cores is its
//! sentence.

use super::markdown::environment;
use super::sentence;
use super::table::{NONE, offered};
use crate::checks::Verdict;
use crate::figures::{self, Series};
use crate::metric::Metric;
use crate::result::RunResult;
use moldau_measure::numbers::number;
use moldau_measure::statistics::{median, paired_effect};

/// The figures of the page, in its columns.
const COLUMNS: [Metric; 10] = [
    Metric::ProduceThroughput,
    Metric::ConsumeThroughput,
    Metric::ResponseP50,
    Metric::ResponseP99,
    Metric::ServiceP50,
    Metric::ServiceP99,
    Metric::EndToEndP50,
    Metric::EndToEndP99,
    Metric::BrokerCpu,
    Metric::ProxyCpu,
];

/// The page, made of results and the links that lead to their files.
#[must_use]
pub fn reference_page(results: &[(String, RunResult)]) -> String {
    let mut lines = vec!["# Performance reference".to_string(), String::new()];
    lines.push(
        "Made by `moldau lab page` from the results that it links to, and from nothing else. Each \
         figure is a median over runs, with the 95 % interval of their geometric mean where there \
         are three or more. MB are 2^20 bytes of record values."
            .into(),
    );
    for (link, result) in results {
        lines.extend([String::new(), format!("## {}", super::html::title(result)), String::new()]);
        lines.push(format!("{} ([result {}]({link}))", sentence(result), result.id));
        if matches!(result.verdict, Verdict::Ok | Verdict::ObjectiveFailed) {
            lines.extend(figures_of(link, result));
        }
        lines.extend([String::new(), format!("Conditions: {}", environment(result))]);
    }
    lines.push(String::new());
    lines.join("\n")
}

fn figures_of(link: &str, result: &RunResult) -> Vec<String> {
    let all = figures::all(result);
    let mut lines = Vec::new();
    let places = figures::places(result);
    let mut cases: Vec<&str> = Vec::new();
    for (case, _) in &places {
        if !cases.contains(case) {
            cases.push(case);
        }
    }
    for case in cases {
        let of_case: Vec<&Series> = all.iter().filter(|series| series.case == case).collect();
        let has = |metric: Metric| of_case.iter().any(|series| series.metric == metric);
        // From sending only where nothing counts from the intended time.
        let is_lesser = |metric: Metric| {
            matches!(metric, Metric::ServiceP50 | Metric::ServiceP99) && has(Metric::ResponseP50)
        };
        let columns: Vec<Metric> =
            COLUMNS.into_iter().filter(|it| has(*it) && !is_lesser(*it)).collect();
        if columns.is_empty() {
            continue;
        }
        lines.extend([String::new(), format!("### {case}"), String::new()]);
        if let Some(run) = result.runs.iter().find(|run| run.case == case) {
            lines.extend([format!("{}.", offered(run)), String::new()]);
        }
        let names = columns.iter().map(|it| format!("{}, {}", it.label(), it.unit().symbol()));
        lines.push(format!("| | {} |", names.collect::<Vec<_>>().join(" | ")));
        lines.push(format!("|---|{}", "---:|".repeat(columns.len())));
        for (_, arm) in places.iter().filter(|(of, _)| *of == case) {
            let cells = columns.iter().map(|metric| {
                let found = of_case.iter().find(|it| it.arm == *arm && it.metric == *metric);
                found.map_or(NONE.into(), |series| cell(series, link, result.seed))
            });
            lines.push(format!("| {arm} | {} |", cells.collect::<Vec<_>>().join(" | ")));
        }
    }
    lines
}

fn cell(series: &Series, link: &str, seed: u64) -> String {
    let unit = series.metric.unit();
    let figure = number(median(&series.values), unit);
    // A mean of logarithms cannot have an interval that reaches below nothing.
    let logarithms: Vec<f64> = series.values.iter().map(|value| value.ln()).collect();
    match paired_effect(&logarithms, seed).map(|effect| effect.interval_95) {
        Some(interval) => format!(
            "[{figure}]({link}) ({} to {})",
            number(interval.low.exp(), unit),
            number(interval.high.exp(), unit)
        ),
        None => format!("[{figure}]({link})"),
    }
}
