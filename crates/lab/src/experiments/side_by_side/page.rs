//! Whole systems beside each other, as a page.

use crate::metric::Metric;
use crate::page::{Chart, Column, Detail, Page, Table};
use crate::punctuality::is_scheduled;
use crate::result::{Arm, RunResult};
use crate::result_page;
use crate::run_charts::{self, percentiles, slug, tone, usual_course};
use crate::run_figures::{NONE, estimate, middle, quantile, runs_of, throughput};
use crate::run_tables;
use moldau_measure::Error;
use moldau_measure::numbers::{plain, rough};

/// The process whose CPU time is reported.
const BROKER: (Metric, &str) = (Metric::BrokerCpu, "the broker");

/// The cases of a result by what they show.
struct Cases<'a> {
    /// Produced as fast as it is taken.
    produced: Vec<&'a str>,
    /// Read as fast as it is given.
    read: Vec<&'a str>,
    /// Produced and consumed at a rate.
    fixed: Vec<&'a str>,
}

impl<'a> Cases<'a> {
    fn of(result: &'a RunResult) -> Self {
        let (mut produced, mut read, mut fixed) = (Vec::new(), Vec::new(), Vec::new());
        for case in result.cases() {
            let Some(run) = result.runs.iter().find(|run| run.case == case) else { continue };
            match (is_scheduled(run), run.workload.consume, run.consumed_records > 0) {
                (true, true, _) => fixed.push(case),
                // What is read back later is offered at a rate that all keep up with.
                (true, false, _) => {}
                (false, _, true) => read.push(case),
                (false, _, false) => produced.push(case),
            }
        }
        Self { produced, read, fixed }
    }

    /// All of them without a rate.
    fn unpaced(&self) -> Vec<&'a str> {
        self.produced.iter().chain(&self.read).copied().collect()
    }
}

/// The page of a result.
///
/// # Errors
/// [`Error::Document`] when a histogram cannot be read.
pub fn page(result: &RunResult) -> Result<Page, Error> {
    let cases = Cases::of(result);
    let mut page = result_page::blank(result, "How fast is each system?");
    if page.standing.has_figures() {
        let sentences = [speed(result, &cases), latency(result, &cases)];
        page.answer =
            sentences.into_iter().chain([result_page::records(result)]).flatten().collect();
    }
    page.table = Some(summary(result, &cases));
    let tone = |arm: &str| tone(result, arm);
    let unpaced = cases.unpaced();
    page.charts.extend(run_charts::throughput(result, "throughput", &unpaced, tone));
    let all: Vec<&str> = unpaced.iter().chain(&cases.fixed).copied().collect();
    page.charts.extend(run_charts::cpu(result, "cpu", &all, BROKER, tone));
    for case in &cases.fixed {
        page.charts.extend(percentiles(result, case, tone, |latency| &latency.response)?);
    }
    page.details = details(result, &cases)?;
    Ok(page)
}

/// What each takes in the first case.
fn speed(result: &RunResult, cases: &Cases<'_>) -> Option<String> {
    let case = cases.produced.first()?;
    let of = |arm: &Arm| {
        let runs = runs_of(result, case, &arm.name);
        let cpu = estimate(&runs, BROKER.0, result.seed);
        let cpu =
            cpu.map_or(String::new(), |it| format!(" with {} ms of CPU per MB", rough(it.value)));
        Some(format!("{} takes {} MB/s{cpu}", arm.name, rough(throughput(&runs)?)))
    };
    let parts: Vec<String> = result.arms.iter().filter_map(of).collect();
    (!parts.is_empty()).then(|| format!("{case}: {}.", parts.join(", ")))
}

/// The latency of each at the first fixed rate.
fn latency(result: &RunResult, cases: &Cases<'_>) -> Option<String> {
    let case = cases.fixed.first()?;
    let of = |arm: &Arm| {
        let runs = runs_of(result, case, &arm.name);
        let [p50, p99] = [Metric::ResponseP50, Metric::ResponseP99].map(|metric| {
            crate::run_figures::silence(&runs).map_or_else(|| middle(&runs, metric), |_| None)
        });
        Some(format!("{} ms on {} (p99 {} ms)", rough(p50?), arm.name, rough(p99?)))
    };
    let parts: Vec<String> = result.arms.iter().filter_map(of).collect();
    let run = result.runs.iter().find(|run| run.case == *case)?;
    let rate = plain(middle(&[run], Metric::ProduceThroughput)?);
    (!parts.is_empty())
        .then(|| format!("The median publish latency at {rate} MB/s is {}.", parts.join(", ")))
}

/// The small table: a row for each system.
fn summary(result: &RunResult, cases: &Cases<'_>) -> Table {
    let figure = |value: Option<f64>| value.map_or(NONE.into(), plain);
    let row = |arm: &Arm| {
        let of = |cases: &[&str]| {
            cases.first().map(|case| runs_of(result, case, &arm.name)).unwrap_or_default()
        };
        let (produced, read, fixed) = (of(&cases.produced), of(&cases.read), of(&cases.fixed));
        let cpu = estimate(&produced, BROKER.0, result.seed).map(|it| it.value);
        vec![
            arm.name.clone(),
            figure(throughput(&produced)),
            figure(cpu),
            figure(throughput(&read)),
            quantile(&fixed, Metric::ResponseP50),
            quantile(&fixed, Metric::ResponseP99),
        ]
    };
    let place = |name: &str, cases: &[&str]| cases.first().map(|case| format!("{name}: {case}."));
    let places = [
        place("Produce", &cases.produced),
        place("Read", &cases.read),
        place("Publish", &cases.fixed),
    ];
    Table {
        title: String::new(),
        about: places.into_iter().flatten().collect::<Vec<_>>().join(" "),
        columns: vec![
            Column::words("system"),
            Column::figures("produce", "MB/s"),
            Column::figures("CPU per MB", "ms"),
            Column::figures("read", "MB/s"),
            Column::figures("publish p50", "ms"),
            Column::figures("p99", "ms"),
        ],
        rows: result.arms.iter().map(row).collect(),
    }
    .without_empty(NONE)
}

fn details(result: &RunResult, cases: &Cases<'_>) -> Result<Vec<Detail>, Error> {
    let tone = |arm: &str| tone(result, arm);
    let mut end_to_end = Vec::new();
    for case in &cases.fixed {
        let found = percentiles(result, case, tone, |latency| &latency.end_to_end)?;
        end_to_end.extend(found.map(|chart| Chart {
            id: format!("end-to-end-{}", slug(case)),
            title: format!("End-to-end latency, {case}"),
            ..chart
        }));
    }
    let all = result.cases();
    let courses = all.iter().filter_map(|case| usual_course(result, case, tone)).collect();
    let mut details = vec![
        Detail::of(
            "Throughput at full speed",
            Vec::new(),
            vec![run_tables::throughputs(result, &cases.unpaced())],
        ),
        Detail::of("Latency by load", end_to_end, vec![run_tables::latency(result, &cases.fixed)]),
        Detail::of(
            "CPU time by load",
            Vec::new(),
            vec![run_tables::cpu(result, &all, BROKER.0, BROKER.1)],
        ),
        result_page::comparisons(result),
        Detail::of("Course of the experiment", courses, Vec::new()),
        result_page::audit(result),
    ];
    details.retain(|detail| !detail.is_empty());
    Ok(details)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    #[test]
    fn the_answer_has_speed_latency_and_records() {
        let page = page(&sample::result()).unwrap();
        assert_eq!(
            page.answer,
            [
                "Produce at full speed: direct takes 250 MB/s with 0.21 ms of CPU per MB, proxy \
                 takes 200 MB/s with 0.26 ms of CPU per MB.",
                "The median publish latency at 19.5 MB/s is 0.75 ms on direct (p99 2.5 ms), 1.0 \
                 ms on proxy (p99 3.3 ms).",
                "All 9.6 million records were read back.",
            ]
        );
    }

    #[test]
    fn systems_are_rows_and_loads_are_charts() {
        let page = page(&sample::result()).unwrap();
        let table = page.table.unwrap();
        assert_eq!((table.rows.len(), table.rows[1][0].as_str()), (2, "proxy"));
        // Nothing was read back at full speed.
        assert!(table.columns.iter().all(|column| column.name != "read"));
        let ids: Vec<&str> = page.charts.iter().map(|chart| chart.id.as_str()).collect();
        assert_eq!(ids, ["throughput", "cpu", "latency-fixed-rate-produced-and-consumed"]);
        assert!(page.details.iter().any(|detail| detail.title == "Every figure"));
    }
}
