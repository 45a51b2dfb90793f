//! Totals of loads over many topics: as a harness that multiplies computes them, and as the broker
//! and the ledger count them.
//!
//! A generator that spreads one rate over all topics prints that rate. Scripts that multiply it by
//! the number of topics report a total that was never offered, and divide processor time by it. The
//! time that records wait for a fetch to fill shows which total is right: a fetch of one topic
//! waits until that has `fetch.min.bytes`, at most `fetch.max.wait.ms`.

use serde::{Deserialize, Serialize};

use crate::metric::Metric;
use moldau_load::run::RunRecord;
use moldau_measure::statistics::{float, median};

/// How far a latency may be off the wait that explains it, as a factor: what else takes time is
/// added to the wait.
const AGREEMENT_MAX: f64 = 1.5;

/// What was published of a load over a number of topics.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublishedTotal {
    /// The load that offers what theirs offered.
    pub load: String,
    /// Where in the source it stands.
    pub at: String,
    /// Records per second of all topics together, as published.
    pub records_per_second: f64,
    /// Mean and 99th percentile of the time from end to end, ms.
    pub end_to_end_mean_ms: f64,
    /// The second of them.
    pub end_to_end_p99_ms: f64,
    /// Processor time of the proxy as published, ms per MB: millicores for each MB/s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proxy_cpu: Option<f64>,
}

/// How a rate that a generator prints is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// As that of each topic, which multiplying it means.
    OfEach,
    /// As that of all topics together.
    OfAll,
}

/// A load over several topics on one system; medians over its runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Audited {
    /// What the rate is multiplied by: topics, and producers of each.
    pub factor: f64,
    /// Topics.
    pub topics: f64,
    /// Records per second that the generator prints: those acknowledged in the window.
    pub printed: f64,
    /// Records per second of all topics by the broker's end offsets, over the whole run.
    pub held: f64,
    /// Processor time of the proxy, ms per MB that passed it; absent where none stands there.
    pub proxy_cpu: Option<f64>,
    /// Mean time from end to end, ms; absent where the generator was late.
    pub end_to_end_mean: Option<f64>,
    /// Its 99th percentile, ms.
    pub end_to_end_p99: Option<f64>,
    /// What a fetch waits for, records.
    pub fetch_records: f64,
    /// How long it waits at most, ms.
    pub fetch_max_wait: f64,
}

impl Audited {
    /// The means over the runs of a load on a system; `None` without a run with records.
    #[must_use]
    pub fn of(runs: &[RunRecord], load: &str, system: &str) -> Option<Self> {
        let runs: Vec<&RunRecord> =
            runs.iter().filter(|run| run.case == load && run.arm == system).collect();
        let workload = &runs.first()?.workload;
        let middle = |of: &dyn Fn(&RunRecord) -> Option<f64>| {
            let values: Vec<f64> = runs.iter().filter_map(|run| of(run)).collect();
            (!values.is_empty()).then(|| median(&values))
        };
        let run_seconds = workload.length().as_secs_f64();
        let record_bytes = middle(&RunRecord::stored_record_bytes)?;
        Some(Self {
            factor: f64::from(workload.all_producers()),
            topics: f64::from(workload.tuning.topics),
            printed: middle(&|run| Metric::ProduceRecords.of(run))?,
            held: middle(&|run| Some(float(run.held_records) / run_seconds))?,
            proxy_cpu: middle(&|run| Metric::ProxyCpu.of(run)),
            end_to_end_mean: middle(&|run| Metric::EndToEndMean.of(run)),
            end_to_end_p99: middle(&|run| Metric::EndToEndP99.of(run)),
            fetch_records: f64::from(workload.tuning.fetch_min_bytes) / record_bytes,
            fetch_max_wait: f64::from(workload.tuning.fetch_max_wait_ms),
        })
    }

    /// The total of a harness that multiplies the printed rate by the number of topics.
    #[must_use]
    pub fn multiplied(&self) -> f64 {
        self.printed * self.factor
    }

    /// How many times the broker's count that is.
    #[must_use]
    pub fn excess(&self) -> f64 {
        self.multiplied() / self.held
    }

    /// Processor time of the proxy per MB, by the multiplied total.
    #[must_use]
    pub fn proxy_cpu_multiplied(&self) -> Option<f64> {
        self.proxy_cpu.map(|cpu| cpu / self.excess())
    }

    /// How long a fetch waits, ms, if a printed rate is read like this: the longest that a record
    /// waits. On average records wait for half of it.
    #[must_use]
    pub fn wait(&self, printed: f64, reading: Reading) -> f64 {
        let of_a_topic = match reading {
            Reading::OfEach => printed * self.factor / self.topics,
            Reading::OfAll => printed / self.topics,
        };
        (self.fetch_records / of_a_topic * 1e3).min(self.fetch_max_wait)
    }

    /// The reading whose wait explains a mean time from end to end, ms; `None` where neither does,
    /// or both.
    #[must_use]
    pub fn explains(&self, printed: f64, mean: f64) -> Option<Reading> {
        let agrees = |reading: &Reading| {
            let ratio = mean / (self.wait(printed, *reading) / 2.0);
            ratio < AGREEMENT_MAX && ratio > AGREEMENT_MAX.recip()
        };
        let mut agreeing = [Reading::OfEach, Reading::OfAll].into_iter().filter(agrees);
        agreeing.next().filter(|_| agreeing.next().is_none())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 10 topics at a printed rate of 5,000, as the harness has them; a record takes 1,093 bytes.
    fn ten() -> Audited {
        Audited {
            factor: 10.0,
            topics: 10.0,
            printed: 5_000.0,
            held: 5_000.0,
            proxy_cpu: Some(100.0),
            end_to_end_mean: Some(94.5),
            end_to_end_p99: Some(198.0),
            fetch_records: 100_000.0 / 1_093.0,
            fetch_max_wait: 500.0,
        }
    }

    #[test]
    fn a_multiplied_total_is_too_high_and_its_coefficient_too_low_by_the_topics() {
        let found = ten();
        assert!((found.multiplied() - 50_000.0).abs() < 1e-9);
        assert!((found.excess() - 10.0).abs() < 1e-9);
        assert!((found.proxy_cpu_multiplied().unwrap() - 10.0).abs() < 1e-9);
    }

    #[test]
    fn the_wait_of_a_fetch_is_that_of_filling_it_and_ends() {
        let found = ten();
        assert_eq!(found.wait(5_000.0, Reading::OfEach).round(), 18.0);
        assert_eq!(found.wait(5_000.0, Reading::OfAll).round(), 183.0);
        let hundred = Audited { factor: 100.0, topics: 100.0, printed: 500.0, ..found };
        assert_eq!(hundred.wait(500.0, Reading::OfEach).round(), 183.0);
        assert_eq!(hundred.wait(500.0, Reading::OfAll), 500.0);
    }

    #[test]
    fn a_latency_is_explained_by_one_reading_or_by_none() {
        let found = ten();
        assert_eq!(found.explains(5_000.0, 96.9), Some(Reading::OfAll));
        assert_eq!(found.explains(5_000.0, 10.0), Some(Reading::OfEach));
        assert_eq!(found.explains(5_000.0, 30.0), None);
        // One topic: both readings are the same.
        let one = Audited { factor: 1.0, topics: 1.0, printed: 10_100.0, ..found };
        assert_eq!(one.explains(10_100.0, 5.0), None);
    }
}
