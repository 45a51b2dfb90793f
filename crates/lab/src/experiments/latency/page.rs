//! How latency grows with the load, as a page.

use crate::asks::{Knee, Reached, rates, ratio, reached, typical};
use crate::checks::THREAD_SHARE_MAX;
use crate::metric::Metric;
use crate::page::{
    Axis, Chart, Column, Detail, Estimate as Figure, Line, Page, Plot, Point, Scale, Series, Style,
    Table,
};
use crate::punctuality::{has_latencies, is_scheduled};
use crate::result::{Arm, RunResult};
use crate::result_page;
use crate::run_charts::{percentiles, tone};
use crate::run_figures::{NONE, middle, runs_of};
use crate::survey::{Estimate, SurveyRecord};
use crate::survey_page;
use moldau_load::run::LatencyRecord;
use moldau_measure::Error;
use moldau_measure::histograms::Summary;
use moldau_measure::numbers::{plain, rough, thousands};
use moldau_measure::statistics::float;

/// Most systems with a sentence about their latency. Tables list all.
const SYSTEMS_TOLD_MAX: usize = 2;

/// The page of a survey that asks for latency.
///
/// # Errors
/// [`Error::Document`] when a histogram cannot be read.
pub fn page(result: &RunResult, record: &SurveyRecord) -> Result<Page, Error> {
    let mut page = result_page::blank(result, &record.question);
    if page.standing.has_figures() {
        let arms = result.arms.iter();
        let told = arms.filter_map(|arm| sentence(result, record, &arm.name));
        page.answer = told.take(SYSTEMS_TOLD_MAX).chain(result_page::records(result)).collect();
    }
    page.table = Some(summary(result, record));
    let quantiles =
        [("p99", "99th percentile", Metric::ResponseP99), ("p50", "median", Metric::ResponseP50)];
    for (id, name, metric) in quantiles {
        page.charts.extend(over_load(result, record, (id, name), metric));
    }
    let highest = rates(record, &result.runs)
        .into_iter()
        .rev()
        .find(|(_, case)| result.arms.iter().all(|arm| has_known(result, case, &arm.name)));
    let mut folded = Vec::new();
    for (_, case) in rates(record, &result.runs) {
        let found =
            percentiles(result, case, |arm| tone(result, arm), |latency| &latency.response)?;
        match highest {
            Some((_, shown)) if shown == case => page.charts.extend(found),
            _ => folded.extend(found),
        }
    }
    let tables = result.arms.iter().map(|arm| rates_table(result, record, &arm.name)).collect();
    page.details = vec![
        Detail::of("Every rate", folded, tables),
        survey_page::question(record),
        result_page::audit(result),
    ];
    page.details.retain(|detail| !detail.is_empty());
    Ok(page)
}

fn has_known(result: &RunResult, case: &str, arm: &str) -> bool {
    matches!(reached(&result.runs, case, arm, result.seed), Reached::Ms(_))
}

/// Where latency is lowest on a system, up to where it stays near that, and what is beyond.
fn sentence(result: &RunResult, record: &SurveyRecord, system: &str) -> Option<String> {
    let rates = rates(record, &result.runs);
    let points: Vec<Reached> =
        rates.iter().map(|(_, case)| reached(&result.runs, case, system, result.seed)).collect();
    let times = |place: usize, over: usize| {
        let cases = [rates.get(place)?.1, rates.get(over)?.1];
        ratio(&result.runs, cases, system, result.seed, |run| Metric::ResponseP99.of(run))
    };
    let knee = Knee::of(&points, times)?;
    let (lowest, case) = *rates.get(knee.lowest)?;
    let (within, _) = *rates.get(knee.within)?;
    let p99 = of(result, case, system, Metric::ResponseP99)?;
    let share = full_speed(result, record, system).map_or_else(String::new, |full| {
        format!(", {:.0} % of full speed", float(within) / full * 1e2)
    });
    let mut text = format!(
        "On {system} 99 % of the records are acknowledged within {} ms at {} records/s, and within \
         twice that up to {} records/s{share}",
        rough(p99.mean),
        thousands(lowest),
        thousands(within),
    );
    let beyond = knee.beyond.and_then(|place| Some((rates.get(place)?, points.get(place)?)));
    text += &match beyond {
        Some(((rate, case), Reached::Ms(_))) => {
            let p99 = of(result, case, system, Metric::ResponseP99)?;
            format!("; it takes {} ms at {}", rough(p99.mean), thousands(*rate))
        }
        Some(((rate, case), _)) => {
            let whose = busy_generator(result, case, system);
            format!("; it does not keep up with {}{whose}", thousands(*rate))
        }
        None if knee.is_open => "; above that the rounds differ too much to tell".into(),
        None => String::new(),
    };
    Some(text + ".")
}

/// A note if the generator may be what does not keep up.
fn busy_generator(result: &RunResult, case: &str, system: &str) -> String {
    let runs = runs_of(result, case, system);
    let busiest = runs.iter().map(|run| run.generator_thread_share()).fold(0.0, f64::max);
    if busiest < THREAD_SHARE_MAX {
        return String::new();
    }
    let share = busiest * 1e2;
    format!(", which may be the generator's limit: its thread took {share:.0} % of a processor")
}

/// A latency over the rounds.
fn of(result: &RunResult, case: &str, system: &str, metric: Metric) -> Option<Estimate> {
    typical(&result.runs, case, system, result.seed, |run| metric.of(run))
}

/// Records per second that a system took without a rate.
fn full_speed(result: &RunResult, record: &SurveyRecord, system: &str) -> Option<f64> {
    let is_free = |case: &str| {
        let runs = runs_of(result, case, system);
        !runs.is_empty() && runs.iter().all(|run| !is_scheduled(run))
    };
    let cell = record.cells.iter().find(|cell| is_free(&cell.name))?;
    middle(&runs_of(result, &cell.name, system), Metric::ProduceRecords)
}

/// The small table: a row for each rate and system.
fn summary(result: &RunResult, record: &SurveyRecord) -> Table {
    let rows = rates(record, &result.runs).into_iter().flat_map(|(rate, case)| {
        result.arms.iter().map(move |arm| row(result, record, (rate, case), arm))
    });
    let mut table = Table {
        title: String::new(),
        about: "From the time at which a record was due; geometric means over the rounds.".into(),
        columns: vec![
            Column::figures("offered", "records/s"),
            Column::words("system"),
            Column::figures("full speed", "%"),
            Column::figures("publish p50", "ms"),
            Column::figures("p99", "ms"),
            Column::figures("end to end p99", "ms"),
            Column::words("kept up"),
        ],
        rows: rows.collect(),
    };
    if result.arms.len() == 1 {
        table.columns.remove(1);
        table.rows.iter_mut().for_each(|row| drop(row.remove(1)));
    }
    table.without_empty(NONE)
}

fn row(
    result: &RunResult,
    record: &SurveyRecord,
    (rate, case): (u64, &str),
    arm: &Arm,
) -> Vec<String> {
    let latency = |metric: Metric| {
        of(result, case, &arm.name, metric).map_or(NONE.into(), |found| plain(found.mean))
    };
    let full = full_speed(result, record, &arm.name);
    vec![
        thousands(rate),
        arm.name.clone(),
        full.map_or(NONE.into(), |full| format!("{:.0}", float(rate) / full * 1e2)),
        latency(Metric::ResponseP50),
        latency(Metric::ResponseP99),
        latency(Metric::EndToEndP99),
        kept_up(result, case, &arm.name).into(),
    ]
}

fn kept_up(result: &RunResult, case: &str, system: &str) -> &'static str {
    match reached(&result.runs, case, system, result.seed) {
        Reached::Ms(_) => "yes",
        Reached::Saturated => "no",
        Reached::Unknown => "generator late",
    }
}

/// A percentile of publish latency of every system over the rates.
fn over_load(
    result: &RunResult,
    record: &SurveyRecord,
    (id, name): (&str, &str),
    metric: Metric,
) -> Option<Chart> {
    let line = |(series, arm): (usize, &Arm)| {
        let points = rates(record, &result.runs).into_iter().filter_map(|(rate, case)| {
            let found = has_known(result, case, &arm.name)
                .then(|| of(result, case, &arm.name, metric))
                .flatten()?;
            let interval = found.interval.map(|it| (it.low, it.high));
            Some(Point { x: float(rate), y: Figure { value: found.mean, interval } })
        });
        Line { series, style: Style::Joined, points: points.collect() }
    };
    let lines: Vec<Line> = result.arms.iter().enumerate().map(line).collect();
    let series = result
        .arms
        .iter()
        .map(|arm| Series { name: arm.name.clone(), tone: tone(result, &arm.name) });
    lines.iter().any(|line| !line.points.is_empty()).then(|| Chart {
        id: format!("load-{id}"),
        title: format!("Publish latency by load, {name}"),
        about: "Geometric means over the rounds with 95 % intervals. Rates that a system does not \
                keep up with have no latency."
            .into(),
        series: series.collect(),
        plot: Plot::Lines {
            x: Axis::new("offered", "records/s", Scale::Linear),
            y: Axis::new("publish latency", "ms", Scale::Log),
            lines,
            guides: Vec::new(),
        },
    })
}

fn rates_table(result: &RunResult, record: &SurveyRecord, system: &str) -> Table {
    let rows = rates(record, &result.runs).into_iter().map(|(rate, case)| {
        let latency = |metric: Metric| {
            of(result, case, system, metric)
                .map_or(NONE.into(), |found| survey_page::words(&found, 1.0))
        };
        vec![
            thousands(rate),
            latency(Metric::ResponseP50),
            latency(Metric::ResponseP99),
            latency(Metric::ResponseP999),
            longest(result, case, system, |latency| latency.response.summary),
            latency(Metric::EndToEndP50),
            latency(Metric::EndToEndP99),
            latency(Metric::EndToEndP999),
            longest(result, case, system, |latency| latency.end_to_end.summary),
            kept_up(result, case, system).into(),
        ]
    });
    Table {
        title: format!("Latency by load on {system}"),
        about: "Open loop: from the time at which a record was due to its acknowledgement \
                (publish) and to its delivery (end to end). Geometric means over the rounds with \
                95 % intervals; the longest is that of all rounds."
            .into(),
        columns: vec![
            Column::figures("offered", "records/s"),
            Column::figures("publish p50", "ms"),
            Column::figures("p99", "ms"),
            Column::figures("p99.9", "ms"),
            Column::figures("longest", "ms"),
            Column::figures("end to end p50", "ms"),
            Column::figures("p99", "ms"),
            Column::figures("p99.9", "ms"),
            Column::figures("longest", "ms"),
            Column::words("kept up"),
        ],
        rows: rows.collect(),
    }
}

fn longest(
    result: &RunResult,
    case: &str,
    system: &str,
    latency: impl Fn(&LatencyRecord) -> Summary,
) -> String {
    let runs = runs_of(result, case, system);
    let kept = runs.iter().filter(|run| has_latencies(run));
    let found = kept.filter_map(|run| run.latency.as_ref()).map(|it| latency(it).max_ns).max();
    found.map_or(NONE.into(), |ns| plain(float(ns) / 1e6))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::make_late;
    use crate::survey_page::sample::curve;

    fn page_of(result: &RunResult) -> Page {
        page(result, result.survey().unwrap()).unwrap()
    }

    #[test]
    fn the_answer_names_the_lowest_latency_the_knee_and_what_is_beyond() {
        let page = page_of(&curve());
        assert_eq!(
            page.answer[0],
            "On ours 99 % of the records are acknowledged within 2.0 ms at 10,000 records/s, and \
             within twice that up to 50,000 records/s, 50 % of full speed; it takes 9.0 ms at \
             80,000."
        );
        assert!(page.answer[1].ends_with("records were read back."));
    }

    #[test]
    fn a_rate_that_is_not_kept_up_names_the_generator_if_that_was_busy() {
        let mut result = curve();
        result.runs.retain(|run| run.case != "at 80000");
        assert!(page_of(&result).answer[0].ends_with("; it does not keep up with 95,000."));
        for run in result.runs.iter_mut().filter(|run| run.case == "at 95000") {
            let generator =
                run.processes.iter_mut().find(|usage| usage.role == "generator").unwrap();
            generator.busiest_thread_ns = run.window_ns / 100 * 97;
        }
        let named = "95,000, which may be the generator's limit: its thread took 97 % of a \
                     processor.";
        let answer = &page_of(&result).answer[0];
        assert!(answer.ends_with(named), "{answer}");
    }

    #[test]
    fn every_rate_has_its_row_whether_it_was_kept_up_or_not() {
        let page = page_of(&curve());
        let rows = page.table.unwrap().rows;
        assert_eq!(rows[1], ["50,000", "50", "1.50", "3.00", "3.50", "yes"]);
        assert_eq!(rows[3], ["95,000", "95", "-", "-", "-", "no"]);
        let ids: Vec<&str> = page.charts.iter().map(|chart| chart.id.as_str()).collect();
        assert_eq!(ids, ["load-p99", "load-p50", "latency-at-80000"]);
        let Plot::Lines { lines, .. } = &page.charts[0].plot else { panic!("a curve") };
        assert_eq!(lines[0].points.len(), 3, "what is not kept up with has no latency");
        assert_eq!(page.details[0].tables[0].rows[2][4], "9.00");
    }

    #[test]
    fn where_the_generator_was_late_everywhere_there_is_no_answer() {
        let mut result = curve();
        for run in &mut result.runs {
            make_late(run, 2_000_000, 10);
        }
        let page = page_of(&result);
        assert_eq!(page.answer.len(), 1, "{:?}", page.answer);
        assert!(page.charts.is_empty());
    }
}
