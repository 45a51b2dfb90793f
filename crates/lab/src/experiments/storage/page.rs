//! What the broker takes off what the disk gives, as a page.

use crate::metric::Metric;
use crate::page::{Detail, Page};
use crate::punctuality::is_scheduled;
use crate::result::RunResult;
use crate::result_page;
use crate::run_charts::{self, percentiles, tone};
use crate::run_tables;
use moldau_measure::Error;

/// The page of the storage experiment.
///
/// # Errors
/// [`Error::Document`] when a histogram cannot be read.
pub fn page(result: &RunResult) -> Result<Page, Error> {
    const TITLE: &str = "What does the broker take off what the disk gives?";
    let mut page = result_page::answered(result, TITLE, vec![result_page::goals(result)]);
    page.table = Some(result_page::goals_table(result));
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
