//! The figures of a result, measured or imported: the data of comparisons, histories and reference
//! pages.
//!
//! The replicate is the run. A figure of a result is the series of its values over the runs of one
//! case and arm, or over the outputs of a tool that were imported together.

use crate::metric::Metric;
use crate::punctuality::{is_late, is_scheduled, tells_no_latencies};
use crate::result::{Experiment, RunResult};
use moldau_load::run::RunRecord;
use moldau_load::workload::Workload;
use moldau_measure::numbers::Unit;
use moldau_measure::statistics::float;

/// One figure of one case and arm, a value for each run that has it.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// The case.
    pub case: String,
    /// The arm.
    pub arm: String,
    /// The figure.
    pub metric: Metric,
    /// Its values, in the order of the runs.
    pub values: Vec<f64>,
}

/// Case and arm of everything that a result has replicates of, in their order. The trials of a
/// search are each at a rate of its own, and replicates of nothing.
#[must_use]
pub fn places(result: &RunResult) -> Vec<(&str, &str)> {
    let is_trial = |run: &&RunRecord| result.ceiling.is_some() && is_scheduled(run);
    let of_runs = result.runs.iter().filter(|run| !is_trial(run));
    let of_runs = of_runs.map(|run| (run.case.as_str(), run.arm.as_str()));
    let outputs = result.imported().into_iter().flat_map(|record| &record.outputs);
    let mut places = Vec::new();
    for place in of_runs.chain(outputs.map(|it| (it.case.as_str(), it.arm.as_str()))) {
        if !places.contains(&place) {
            places.push(place);
        }
    }
    places
}

/// What was offered in a case to an arm; `None` for imported outputs, which do not state it in
/// full.
#[must_use]
pub fn workload<'a>(result: &'a RunResult, case: &'a str, arm: &'a str) -> Option<&'a Workload> {
    result.runs_of(case, arm).next().map(|run| &run.workload)
}

/// All figures of a result that have a value, by case, arm and figure.
#[must_use]
pub fn all(result: &RunResult) -> Vec<Series> {
    let of_place = |(case, arm): (&str, &str)| {
        let series = METRICS.map(|metric| Series {
            case: case.into(),
            arm: arm.into(),
            metric,
            values: values(result, case, arm, metric),
        });
        series.into_iter().filter(|series| !series.values.is_empty())
    };
    places(result).into_iter().flat_map(of_place).collect()
}

fn values(result: &RunResult, case: &str, arm: &str, metric: Metric) -> Vec<f64> {
    if let Experiment::Imported(record) = &result.experiment {
        let outputs = record.outputs.iter().filter(|it| it.case == case && it.arm == arm);
        let figures = outputs.flat_map(|output| &output.figures);
        return figures.filter(|it| it.metric == metric).map(|it| it.value).collect();
    }
    let runs: Vec<&RunRecord> = result.runs_of(case, arm).collect();
    if metric.unit() == Unit::Milliseconds && tells_no_latencies(&runs) {
        return Vec::new();
    }
    runs.iter().filter_map(|run| metric.of(run).or_else(|| service(run, metric))).collect()
}

/// From sending on also at a fixed rate, where it hides what waits to be sent: it is what other
/// tools measure.
fn service(run: &RunRecord, metric: Metric) -> Option<f64> {
    let latency = run.latency.as_ref().filter(|_| !is_late(run))?;
    let summary = latency.service.summary;
    let nanos = match metric {
        Metric::ServiceP50 => summary.p50_ns,
        Metric::ServiceP99 => summary.p99_ns,
        Metric::ServiceP999 => summary.p999_ns,
        _ => return None,
    };
    (summary.count > 0).then_some(float(nanos) / 1e6)
}

/// Figures in the order of tables.
const METRICS: [Metric; 17] = [
    Metric::ProduceRecords,
    Metric::ProduceThroughput,
    Metric::ConsumeRecords,
    Metric::ConsumeThroughput,
    Metric::ResponseP50,
    Metric::ResponseP99,
    Metric::ResponseP999,
    Metric::ServiceP50,
    Metric::ServiceP99,
    Metric::ServiceP999,
    Metric::EndToEndP50,
    Metric::EndToEndP99,
    Metric::EndToEndP999,
    Metric::BrokerCpu,
    Metric::ProxyCpu,
    Metric::GeneratorCpu,
    Metric::CompressionRatio,
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    #[test]
    fn trials_of_a_search_are_replicates_of_nothing() {
        let cases = |result: &RunResult| -> Vec<String> {
            places(result).into_iter().map(|(case, _)| case.to_owned()).collect()
        };
        assert!(cases(&sample::result()).iter().any(|case| case == sample::FIXED));
        let searched = cases(&sample::ceiling());
        assert!(!searched.is_empty() && searched.iter().all(|case| case != sample::FIXED));
    }
}
