//! The figures that are read off a run and compared between arms.

use serde::{Deserialize, Serialize};

use crate::punctuality::{has_latencies, is_bunched, is_scheduled, tells_no_latencies};
use moldau_load::run::RunRecord;
use moldau_measure::histograms::{HistogramRecord, Summary};
use moldau_measure::numbers::Unit;
use moldau_measure::statistics::{
    PairedEffect, differences, float, log_ratios, median, paired_effect,
};

/// A figure of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "each is named by what `label` says")]
pub enum Metric {
    ResponseMean,
    ResponseP50,
    ResponseP99,
    ResponseP999,
    ServiceP50,
    ServiceP99,
    ServiceP999,
    EndToEndMean,
    EndToEndP50,
    EndToEndP99,
    EndToEndP999,
    ProduceThroughput,
    ProduceRecords,
    ConsumeThroughput,
    ConsumeRecords,
    FanOut,
    CompressionRatio,
    Faults,
    BrokerCpu,
    BrokerCpuDelivered,
    ProxyCpu,
    GeneratorCpu,
}

impl Metric {
    /// The metrics of tables, in their order. The others are for claims: mean latencies, open or
    /// closed loop, effects of codecs, and faults, where checks allow none.
    pub const ALL: [Self; 15] = [
        Self::ResponseP50,
        Self::ResponseP99,
        Self::ResponseP999,
        Self::EndToEndP50,
        Self::EndToEndP99,
        Self::EndToEndP999,
        Self::ProduceThroughput,
        Self::ProduceRecords,
        Self::ConsumeThroughput,
        Self::ConsumeRecords,
        Self::FanOut,
        Self::BrokerCpu,
        Self::BrokerCpuDelivered,
        Self::ProxyCpu,
        Self::GeneratorCpu,
    ];

    /// Name in tables.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::ResponseMean => "publish mean",
            Self::ResponseP50 => "publish p50",
            Self::ResponseP99 => "publish p99",
            Self::ResponseP999 => "publish p99.9",
            Self::ServiceP50 => "send to acknowledgement p50",
            Self::ServiceP99 => "send to acknowledgement p99",
            Self::ServiceP999 => "send to acknowledgement p99.9",
            Self::EndToEndMean => "end-to-end mean",
            Self::EndToEndP50 => "end-to-end p50",
            Self::EndToEndP99 => "end-to-end p99",
            Self::EndToEndP999 => "end-to-end p99.9",
            Self::ProduceThroughput => "produced",
            Self::ProduceRecords => "produced records",
            Self::ConsumeThroughput => "consumed",
            Self::ConsumeRecords => "consumed records",
            Self::FanOut => "consumed of produced",
            Self::CompressionRatio => "values by stored bytes",
            Self::Faults => "records lost, damaged or out of place",
            Self::BrokerCpu => "broker CPU",
            Self::BrokerCpuDelivered => "broker CPU, delivered MB",
            Self::ProxyCpu => "proxy CPU",
            Self::GeneratorCpu => "client CPU",
        }
    }

    /// Its unit.
    #[must_use]
    pub fn unit(self) -> Unit {
        match self {
            Self::ResponseMean
            | Self::ResponseP50
            | Self::ResponseP99
            | Self::ResponseP999
            | Self::ServiceP50
            | Self::ServiceP99
            | Self::ServiceP999
            | Self::EndToEndMean
            | Self::EndToEndP50
            | Self::EndToEndP99
            | Self::EndToEndP999 => Unit::Milliseconds,
            Self::ProduceThroughput | Self::ConsumeThroughput => Unit::MegabytesPerSecond,
            Self::ProduceRecords | Self::ConsumeRecords => Unit::RecordsPerSecond,
            Self::FanOut | Self::CompressionRatio => Unit::Times,
            Self::Faults => Unit::Records,
            Self::BrokerCpu | Self::BrokerCpuDelivered | Self::ProxyCpu | Self::GeneratorCpu => {
                Unit::CpuMillisecondsPerMegabyte
            }
        }
    }

    /// The figure of `run`, or `None` where the run does not have it.
    #[must_use]
    pub fn of(self, run: &RunRecord) -> Option<f64> {
        // A late generator's latencies are its own, and where the target cannot keep up they grow
        // with the length of the run.
        let latency = run.latency.as_ref().filter(|_| has_latencies(run));
        let response = latency.map(|l| &l.response.summary);
        // Clocks that are far apart make times between them.
        let between = latency.filter(|_| run.clocks_are_close());
        let end_to_end = between.map(|l| &l.end_to_end.summary);
        // At a fixed rate the intended time counts, not that of sending.
        let service = latency.filter(|_| !is_scheduled(run)).map(|l| &l.service.summary);
        match self {
            Self::ResponseMean => mean(latency.map(|it| &it.response)),
            Self::ResponseP50 => milliseconds(response, |s| s.p50_ns),
            Self::ResponseP99 => milliseconds(response, |s| s.p99_ns),
            Self::ResponseP999 => milliseconds(response, |s| s.p999_ns),
            Self::ServiceP50 => milliseconds(service, |s| s.p50_ns),
            Self::ServiceP99 => milliseconds(service, |s| s.p99_ns),
            Self::ServiceP999 => milliseconds(service, |s| s.p999_ns),
            Self::EndToEndMean => mean(between.map(|it| &it.end_to_end)),
            Self::EndToEndP50 => milliseconds(end_to_end, |s| s.p50_ns),
            Self::EndToEndP99 => milliseconds(end_to_end, |s| s.p99_ns),
            Self::EndToEndP999 => milliseconds(end_to_end, |s| s.p999_ns),
            Self::ProduceThroughput => per_second(run, run.megabytes(run.produced_records)),
            Self::ProduceRecords => per_second(run, float(run.produced_records)),
            Self::ConsumeThroughput => per_second(run, run.megabytes(run.consumed_records)),
            Self::ConsumeRecords => per_second(run, float(run.consumed_records)),
            Self::FanOut => {
                let is_shown = run.workload.tails > 0 && run.produced_records > 0;
                is_shown.then(|| float(run.consumed_records) / float(run.produced_records))
            }
            Self::CompressionRatio => (run.stored_bytes > 0).then(|| {
                let values = float(run.audit.delivered) * run.record_bytes();
                values / float(run.stored_bytes)
            }),
            Self::Faults => (run.audit.acked > 0).then(|| float(run.audit.faults())),
            Self::BrokerCpu => cpu_per_megabyte(run, "broker", moved(run)),
            Self::BrokerCpuDelivered if run.workload.consume && run.produced_records > 0 => {
                cpu_per_megabyte(run, "broker", run.consumed_records)
            }
            Self::BrokerCpuDelivered => None,
            Self::ProxyCpu => cpu_per_megabyte(run, "proxy", moved(run)),
            Self::GeneratorCpu => cpu_per_megabyte(run, "generator", moved(run)),
        }
    }
}

impl Metric {
    /// The figures of the runs of an arm in a case. Empty for a latency that too few of the runs
    /// have.
    pub(crate) fn told_of<'a>(
        self,
        runs: impl Iterator<Item = &'a RunRecord>,
    ) -> impl Iterator<Item = (&'a RunRecord, f64)> {
        let mut runs: Vec<&RunRecord> = runs.collect();
        if self.unit() == Unit::Milliseconds && tells_no_latencies(&runs) {
            runs.clear();
        }
        runs.into_iter().filter_map(move |run| Some((run, self.of(run)?)))
    }
}

/// The difference that an arm makes to one figure.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Effect {
    /// Difference in the figure's unit.
    pub difference: PairedEffect,
    /// Natural logarithm of the ratio.
    pub log_ratio: PairedEffect,
}

/// One figure of one case, in the baseline and in another arm.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Comparison {
    /// The case.
    pub case: String,
    /// The figure.
    pub metric: Metric,
    /// Name of the baseline.
    pub baseline: String,
    /// Name of the arm that is compared with it.
    pub arm: String,
    /// Median over the baseline's runs; absent where the baseline does not have the figure.
    pub baseline_median: Option<f64>,
    /// Median over the arm's runs.
    pub arm_median: Option<f64>,
    /// Effect over the pairs; absent with too few pairs or where one side lacks the figure.
    pub effect: Option<Effect>,
}

/// Compares the arms of every case with the first of them in the order of `arms`.
#[must_use]
pub fn compare_all(
    runs: &[RunRecord],
    cases: &[&str],
    arms: &[&str],
    seed: u64,
) -> Vec<Comparison> {
    let mut comparisons = Vec::new();
    for case in cases {
        let has_runs = |arm: &&&str| runs.iter().any(|run| run.case == *case && run.arm == **arm);
        let mut present = arms.iter().filter(has_runs);
        let Some(baseline) = present.next() else { continue };
        for arm in present {
            comparisons.extend(compare(runs, case, baseline, arm, seed));
        }
    }
    comparisons
}

/// Compares `arm` with `baseline` in every figure that the runs of `case` have.
#[must_use]
pub fn compare(
    runs: &[RunRecord],
    case: &str,
    baseline: &str,
    arm: &str,
    seed: u64,
) -> Vec<Comparison> {
    let all = Metric::ALL.iter().map(|m| compare_one(runs, case, baseline, arm, *m, seed));
    all.filter(|c| c.baseline_median.is_some() || c.arm_median.is_some()).collect()
}

/// Compares `arm` with `baseline` in one figure.
pub(crate) fn compare_one(
    runs: &[RunRecord],
    case: &str,
    baseline: &str,
    arm: &str,
    metric: Metric,
    seed: u64,
) -> Comparison {
    let of = |name: &str| -> Vec<(u32, f64)> {
        let of_arm = runs.iter().filter(|run| run.case == case && run.arm == name);
        metric.told_of(of_arm).map(|(run, value)| (run.pair, value)).collect()
    };
    let (first, second) = (of(baseline), of(arm));
    let pairs: Vec<(f64, f64)> = first
        .iter()
        .filter_map(|(pair, a)| Some((*a, second.iter().find(|(p, _)| p == pair)?.1)))
        .collect();
    let effect = || {
        Some(Effect {
            difference: paired_effect(&differences(&pairs), seed)?,
            log_ratio: paired_effect(&log_ratios(&pairs), seed)?,
        })
    };
    Comparison {
        case: case.to_string(),
        metric,
        baseline: baseline.to_string(),
        arm: arm.to_string(),
        baseline_median: median_of(&first),
        arm_median: median_of(&second),
        effect: effect(),
    }
}

fn median_of(values: &[(u32, f64)]) -> Option<f64> {
    let values: Vec<f64> = values.iter().map(|(_, value)| *value).collect();
    (!values.is_empty()).then(|| median(&values))
}

fn milliseconds(summary: Option<&Summary>, figure: impl Fn(&Summary) -> u64) -> Option<f64> {
    summary.filter(|summary| summary.count > 0).map(|summary| float(figure(summary)) / 1e6)
}

/// The mean of a latency, ms.
fn mean(histogram: Option<&HistogramRecord>) -> Option<f64> {
    let durations = histogram?.durations().ok()?;
    (durations.count() > 0).then(|| durations.mean_ns() / 1e6)
}

fn per_second(run: &RunRecord, amount: f64) -> Option<f64> {
    (amount > 0.0 && run.window_ns > 0).then(|| amount / (float(run.window_ns) / 1e9))
}

fn moved(run: &RunRecord) -> u64 {
    run.produced_records + run.consumed_records
}

fn cpu_per_megabyte(run: &RunRecord, role: &str, records: u64) -> Option<f64> {
    let megabytes = run.megabytes(records);
    // A cluster has several brokers.
    let of_role = run.processes.iter().filter(|usage| usage.role == role).map(|it| it.cpu_ns);
    let cpu_ns = of_role.reduce(|sum, next| sum + next)?;
    (megabytes > 0.0 && !is_bunched(run)).then(|| float(cpu_ns) / 1e6 / megabytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    fn near(found: Option<f64>, exact: f64) -> bool {
        found.is_some_and(|found| (found / exact - 1.0).abs() < 1e-9)
    }

    #[test]
    fn figures_follow_from_the_counts_of_the_window() {
        let result = sample::result();
        let run = &result.runs[1];
        assert_eq!((run.arm.as_str(), run.produced_records), ("proxy", 120_000));
        assert!(near(Metric::ProduceRecords.of(run), 20_000.0));
        assert!(near(Metric::ProduceThroughput.of(run), 20_000.0 / 1_024.0));
        // 260 ms over 120,000 records of 1 KB in and as many out.
        assert!(near(Metric::ProxyCpu.of(run), 260.0 / (240_000.0 / 1_024.0)));
        let response = run.latency.as_ref().unwrap().response.summary;
        assert!(near(Metric::ResponseP99.of(run), float(response.p99_ns) / 1e6));
        // End to end takes 90 us more, whatever else.
        let means = [Metric::ResponseMean, Metric::EndToEndMean].map(|it| it.of(run).unwrap());
        assert!((means[1] - means[0] - 0.09).abs() < 0.01, "{means:?}");
    }

    #[test]
    fn a_figure_that_a_run_lacks_is_absent() {
        let result = sample::result();
        let direct = &result.runs[0];
        assert_eq!(Metric::ProxyCpu.of(direct), None);
        let full_speed = result.runs.last().unwrap();
        assert_eq!(Metric::ResponseP50.of(full_speed), None);
        assert_eq!(Metric::ConsumeThroughput.of(full_speed), None);
    }

    #[test]
    fn runs_are_compared_with_the_neighbour_of_their_pair() {
        let mut result = sample::result();
        // A drift that both runs of a pair share does not touch the difference.
        for run in &mut result.runs {
            run.processes[0].cpu_ns = 1_000_000 * u64::from(run.pair + 1) * 100;
            if run.arm == "proxy" {
                run.processes[0].cpu_ns += 5_000_000 + u64::from(run.pair) * 1_000;
            }
        }
        let found = compare(&result.runs, sample::FIXED, "direct", "proxy", 1);
        let broker = found.iter().find(|c| c.metric == Metric::BrokerCpu).unwrap();
        let effect = broker.effect.unwrap().difference;
        assert_eq!(effect.pairs, 6);
        assert!((effect.mean - 5.0025 / (240_000.0 / 1_024.0)).abs() < 1e-9);
        assert!(effect.is_different());
    }
}
