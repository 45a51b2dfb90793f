//! Figures of the runs of one case and arm, as pages show them.

use crate::metric::Metric;
use crate::page::Estimate;
use crate::punctuality::{
    cannot_keep_up, has_latencies, is_late, is_saturated, latencies_are_withheld,
};
use crate::result::RunResult;
use moldau_load::run::RunRecord;
use moldau_measure::numbers::plain;
use moldau_measure::statistics::{float, median, paired_effect};

/// What stands where a figure does not exist.
pub(crate) const NONE: &str = "-";

/// Throughput, of what is consumed if anything is.
const THROUGHPUT: [Metric; 2] = [Metric::ConsumeThroughput, Metric::ProduceThroughput];

/// The runs of a case on an arm.
pub(crate) fn runs_of<'a>(result: &'a RunResult, case: &str, arm: &str) -> Vec<&'a RunRecord> {
    result.runs.iter().filter(|run| run.case == case && run.arm == arm).collect()
}

/// The mean of a figure over runs with its interval, cut off at zero; the median if the runs are
/// too few for an interval.
pub(crate) fn estimate(runs: &[&RunRecord], metric: Metric, seed: u64) -> Option<Estimate> {
    let figures: Vec<f64> = metric.told_of(runs.iter().copied()).map(|(_, value)| value).collect();
    if figures.is_empty() {
        return None;
    }
    Some(match paired_effect(&figures, seed) {
        Some(effect) => {
            let (low, high) = (effect.interval_95.low.max(0.0), effect.interval_95.high);
            Estimate { value: effect.mean, interval: Some((low, high)) }
        }
        None => median(&figures).into(),
    })
}

/// The median of a figure over the runs that have it.
pub(crate) fn middle(runs: &[&RunRecord], metric: Metric) -> Option<f64> {
    let figures: Vec<f64> = runs.iter().filter_map(|run| metric.of(run)).collect();
    (!figures.is_empty()).then(|| median(&figures))
}

/// The same with the lowest and the highest of these runs.
pub(crate) fn middle_of_runs(runs: &[&RunRecord], metric: Metric) -> Option<Estimate> {
    let figures = || runs.iter().filter_map(|run| metric.of(run));
    let (low, high) = (figures().reduce(f64::min)?, figures().reduce(f64::max)?);
    Some(Estimate { value: middle(runs, metric)?, interval: Some((low, high)) })
}

/// Median throughput, MB/s.
pub(crate) fn throughput(runs: &[&RunRecord]) -> Option<f64> {
    THROUGHPUT.iter().find_map(|metric| middle(runs, *metric))
}

/// Mean throughput with its interval, MB/s.
pub(crate) fn throughput_estimate(runs: &[&RunRecord], seed: u64) -> Option<Estimate> {
    THROUGHPUT.iter().find_map(|metric| estimate(runs, *metric, seed))
}

/// Why runs at a fixed rate have no latencies, in one word; `None` where they have.
pub(crate) fn silence(runs: &[&RunRecord]) -> Option<&'static str> {
    if cannot_keep_up(runs) {
        return Some("saturated");
    }
    latencies_are_withheld(runs).then_some("late")
}

/// A percentile of latency, or why there is none.
pub(crate) fn quantile(runs: &[&RunRecord], metric: Metric) -> String {
    let known = silence(runs).map(str::to_owned);
    known.or_else(|| middle(runs, metric).map(plain)).unwrap_or_else(|| NONE.into())
}

/// Median and 99th percentile of publish latency, and of how many runs, where that is not all;
/// otherwise why there are none. `None` of runs without a rate.
pub(crate) fn latency_in_words(runs: &[&RunRecord]) -> Option<String> {
    if cannot_keep_up(runs) {
        let taken = middle(runs, Metric::ProduceThroughput)?;
        return Some(format!("saturated at {} MB/s", plain(taken)));
    }
    if latencies_are_withheld(runs) {
        let late = runs.iter().filter(|run| is_late(run) && !is_saturated(run)).count();
        return (late > 0).then(|| format!("late in {late} of {} runs", runs.len()));
    }
    let [p50, p99] =
        [Metric::ResponseP50, Metric::ResponseP99].map(|it| middle(runs, it).map(plain));
    let count = runs.iter().filter(|run| has_latencies(run)).count();
    let of = match count < runs.len() {
        true => format!(" ({count} of {} runs)", runs.len()),
        false => String::new(),
    };
    Some(format!("{} / {}{of}", p50?, p99?))
}

/// A figure with its interval, in words.
pub(crate) fn in_words(estimate: &Estimate) -> String {
    let value = plain(estimate.value);
    match estimate.interval {
        Some((low, high)) => format!("{value} [{}, {}]", plain(low), plain(high)),
        None => value,
    }
}

/// ns as ms.
pub(crate) fn milliseconds(nanos: u64) -> f64 {
    float(nanos) / 1e6
}
