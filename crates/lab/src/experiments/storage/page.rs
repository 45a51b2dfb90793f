//! How much slower than the disk the broker is, as a page.

use super::{BROKER, cold_scan, durable, fan_out};
use crate::metric::{Comparison, Metric, compare_one};
use crate::page::{Detail, Page, Table};
use crate::punctuality::is_scheduled;
use crate::result::RunResult;
use crate::result_page;
use crate::run_charts::{self, percentiles, tone};
use crate::run_tables;
use moldau_measure::Error;
use moldau_measure::numbers::{number, plain};

/// What is held against what, and in which figure.
const RATIOS: [(&str, &str, Metric); 8] = [
    (BROKER, durable::LOOP, Metric::ResponseP50),
    (BROKER, durable::LOOP, Metric::ResponseP99),
    (BROKER, durable::SERVED, Metric::ResponseP50),
    (BROKER, durable::SERVED, Metric::ResponseP99),
    (BROKER, cold_scan::DISK_16, Metric::ConsumeThroughput),
    (BROKER, cold_scan::DISK_2, Metric::ConsumeThroughput),
    (cold_scan::SCANNED, BROKER, Metric::ResponseP99),
    (fan_out::TEN, fan_out::ONE, Metric::ConsumeThroughput),
];

/// The page of the storage experiment.
///
/// # Errors
/// [`Error::Document`] when a histogram cannot be read.
pub fn page(result: &RunResult) -> Result<Page, Error> {
    const TITLE: &str = "How much slower than the disk is the broker?";
    let found = ratios(result);
    let mut page = result_page::answered(result, TITLE, sentences(&found));
    page.table = Some(table(&found));
    let is_fixed =
        |case: &&str| result.runs.iter().any(|run| run.case == *case && is_scheduled(run));
    let (fixed, unpaced): (Vec<&str>, Vec<&str>) = result.cases().into_iter().partition(is_fixed);
    let tone = |arm: &str| tone(result, arm);
    page.charts.extend(run_charts::throughput(result, "throughput", &unpaced, tone));
    for case in &fixed {
        page.charts.extend(percentiles(result, case, tone, |latency| &latency.response)?);
    }
    let all = result.cases();
    page.details.extend([
        Detail::table(run_tables::latency(result, &fixed)),
        Detail::table(run_tables::throughputs(result, &unpaced)),
        Detail::table(run_tables::cpu(result, &all, Metric::BrokerCpu, "the broker")),
        result_page::comparisons(result),
        result_page::audit(result),
    ]);
    page.details.retain(|detail| !detail.is_empty());
    Ok(page)
}

/// The ratios of every case that has both sides.
fn ratios(result: &RunResult) -> Vec<Comparison> {
    let of_case = |case| {
        RATIOS.map(|(arm, baseline, metric)| {
            compare_one(&result.runs, case, baseline, arm, metric, result.seed)
        })
    };
    let all = result.cases().into_iter().flat_map(of_case);
    all.filter(|it| it.baseline_median.is_some() && it.arm_median.is_some()).collect()
}

fn sentences(found: &[Comparison]) -> Vec<String> {
    let sentence = |it: &Comparison| {
        let ratio = it.arm_median? / it.baseline_median?;
        let Comparison { case, arm, metric, baseline, .. } = it;
        Some(format!("{case}: {} of {arm} is {} x {baseline}.", metric.label(), plain(ratio)))
    };
    // The first ratio of each case.
    found
        .chunk_by(|one, next| one.case == next.case)
        .filter_map(|of| sentence(of.first()?))
        .collect()
}

fn table(found: &[Comparison]) -> Table {
    let row = |it: &Comparison| {
        let unit = it.metric.unit();
        let value = |value: Option<f64>| value.map_or("-".into(), |value| number(value, unit));
        let ratio = it.effect.as_ref().map_or("too few pairs".into(), |effect| {
            let log = effect.log_ratio;
            let [mean, low, high] =
                [log.mean, log.interval_95.low, log.interval_95.high].map(|it| plain(it.exp()));
            format!("{mean} [{low}, {high}]")
        });
        vec![
            it.case.clone(),
            format!("{}, {}", it.metric.label(), unit.symbol()),
            format!("{}: {}", it.arm, value(it.arm_median)),
            format!("{}: {}", it.baseline, value(it.baseline_median)),
            ratio,
        ]
    };
    Table::of(
        "",
        "Medians over the runs, and the mean ratio over pairs with its 95 % interval.",
        &["case", "figure", "of", "against", "ratio, x"],
        found.iter().map(row),
    )
}
