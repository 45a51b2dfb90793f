//! A performance reference page in Markdown: what results say of throughput, latency, processor
//! time and size, each figure with the file that it is from. That of a model of cores is its
//! sentence.

use crate::checks::Verdict;
use crate::details::shape_in_words;
use crate::figures::{self, Series};
use crate::metric::Metric;
use crate::page::Page;
use crate::result::RunResult;
use crate::run_figures::NONE;
use moldau_load::run::RunRecord;
use moldau_load::workload::Pace;
use moldau_measure::numbers::{bytes, number, plain, thousands};
use moldau_measure::statistics::{float, median, paired_effect};

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

/// The page, made of results, the links that lead to their files, and their own pages.
#[must_use]
pub fn reference_page(results: &[(String, RunResult, Page)]) -> String {
    let mut lines = vec!["# Performance reference".to_string(), String::new()];
    lines.push(
        "Made by `moldau lab page` from the results that it links to, and from nothing else. Each \
         figure is a median over runs, with the 95 % interval of their geometric mean where there \
         are three or more. MB are 2^20 bytes of record values."
            .into(),
    );
    for (link, result, page) in results {
        lines.extend([String::new(), format!("## {}", page.title), String::new()]);
        lines.push(format!("{} ([result {}]({link}))", page.answer.join(" "), result.id));
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

/// What the runs of a case offered, in words.
fn offered(run: &RunRecord) -> String {
    let workload = &run.workload;
    let records = format!(
        "{} B records{}, {} partition{}, batches of {} KB at most",
        workload.record_bytes,
        shape_in_words(&workload.tuning.shape),
        workload.partitions,
        if workload.partitions == 1 { "" } else { "s" },
        workload.batch_bytes / 1024,
    );
    match workload.pace {
        Pace::Scheduled { per_second, .. } => format!(
            "{} records/s at fixed intended times, {records}, linger {} ms, {}, \
             measured for {} s after {} s of warm-up",
            thousands(per_second),
            plain(float(workload.linger_us) / 1e3),
            if workload.consume { "consumed meanwhile" } else { "not consumed" },
            plain(float(workload.window_ms) / 1e3),
            plain(float(workload.warmup_ms) / 1e3),
        ),
        Pace::Closed { outstanding } => {
            format!("{} records on their way at once, {records}", thousands(outstanding.into()))
        }
        Pace::Unpaced => format!("as fast as possible, {records}"),
        Pace::ReadBack => format!("read from start to end, {records}"),
    }
}

/// Where and with what a result was measured.
fn environment(result: &RunResult) -> String {
    let environment = &result.environment;
    let version = &environment.binary_version;
    if result.imported().is_some() {
        return format!("not reported by the tools. Imported by binary {version}.");
    }
    format!(
        "{} processors ({}), {} of memory, Linux {}, {} on {}; generator and systems {}. \
         Binary {version}. Seed {}.",
        environment.processors,
        environment.cpu_model,
        bytes(environment.memory_bytes),
        environment.kernel,
        environment.file_system,
        environment.device,
        environment.co_location(),
        result.seed,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiments::imports::imported_sample;
    use crate::pages::page;
    use crate::sample;

    #[test]
    fn every_figure_of_a_reference_page_leads_to_its_result() {
        let mut refused = sample::result();
        refused.verdict = Verdict::Invalid;
        let results = [
            ("a/result.json".to_owned(), sample::result()),
            ("b/result.json".to_owned(), imported_sample()),
            ("c/result.json".to_owned(), refused),
        ];
        let results = results.map(|(link, result)| {
            let page = page(&result).unwrap();
            (link, result, page)
        });
        let page = reference_page(&results);
        let figures =
            page.lines().filter(|line| line.starts_with("| direct") || line.starts_with("| d "));
        let mut cells = 0;
        for cell in figures.flat_map(|line| line.split(" | ").skip(1)) {
            let is_linked = cell.contains("](a/") || cell.contains("](b/");
            assert!(cell.starts_with('-') || is_linked, "{cell}");
            cells += 1;
        }
        assert!(cells > 8, "{page}");
        for part in [
            "Conditions: not reported by the tools",
            "publish p99, ms",
            "20,000 records/s at fixed intended times",
            "([result 20260131-235959](c/result.json))",
        ] {
            assert!(page.contains(part), "{part} in {page}");
        }
        assert!(!page.contains("](c/result.json) ("), "no figure of a result that does not hold");
    }
}
