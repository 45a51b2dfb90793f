//! The result document of the OpenMessaging Benchmark, read, and written of runs.
//!
//! | field | unit and meaning |
//! |---|---|
//! | `publishRate`, `consumeRate`, `publishErrorRate` | records per second, all topics, by period |
//! | `backlog` | records that subscriptions have not received, by period |
//! | `publishLatency*` | ms from sending to acknowledgement |
//! | `publishDelayLatency*` | **microseconds** from the intended time to sending |
//! | `endToEndLatency*` | ms |
//! | `aggregated*` | of the whole run; `*Quantiles` by percentile, 0 to 100 |
//!
//! A period of the benchmark is 10 s; the periods of rates here are the slots of the run, and the
//! latencies of a period are those of the whole window, which is what the result document holds.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use moldau_load::run::{LatencyRecord, RunRecord};
use moldau_measure::Error;
use moldau_measure::histograms::Durations;
use moldau_measure::statistics::float;

/// The benchmark's figures of a latency, each with its quantile; `None` is the mean.
const FIGURES: [(&str, Option<f64>); 8] = [
    ("Avg", None),
    ("50pct", Some(0.5)),
    ("75pct", Some(0.75)),
    ("95pct", Some(0.95)),
    ("99pct", Some(0.99)),
    ("999pct", Some(0.999)),
    ("9999pct", Some(0.9999)),
    ("Max", Some(1.0)),
];

/// Points of a curve of quantiles per factor of ten of its tail, and factors at most.
const POINTS_PER_DECADE: u32 = 20;
const DECADES: u32 = 5;

/// A result of the benchmark.
#[derive(Clone, Debug, PartialEq)]
pub struct Document {
    /// Name of the workload.
    pub workload: String,
    /// Name of the driver, or of whatever was measured.
    pub driver: String,
    /// Size of a record's value.
    pub message_size: u64,
    /// Topics.
    pub topics: u64,
    /// Partitions of each.
    pub partitions: u64,
    /// Producers of each.
    pub producers_per_topic: u64,
    /// Consumers of each.
    pub consumers_per_topic: u64,
    /// Records per second acknowledged, one value a period.
    pub publish_rate: Vec<f64>,
    /// Records per second refused.
    pub publish_error_rate: Vec<f64>,
    /// Records per second delivered.
    pub consume_rate: Vec<f64>,
    /// Records not delivered yet.
    pub backlog: Vec<f64>,
    /// Sending to acknowledgement, ms.
    pub publish: Latency,
    /// Intended time to sending, microseconds.
    pub delay: Latency,
    /// To delivery, ms.
    pub end_to_end: Latency,
    /// Fields that are known neither of the benchmark nor of Redpanda's fork.
    pub unknown: Vec<String>,
}

/// One latency, in its unit.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Latency {
    /// By period, in the order mean, p50, p75, p95, p99, p99.9, p99.99, longest.
    pub periods: [Vec<f64>; FIGURES.len()],
    /// Of the whole run, in the same order; none where there is no such figure.
    pub aggregated: [Option<f64>; FIGURES.len()],
    /// By percentile, which is a number in a text.
    pub quantiles: BTreeMap<String, f64>,
}

impl Latency {
    /// The 50th, 99th and 99.9th percentiles of the whole run.
    #[must_use]
    pub fn percentiles(&self) -> [Option<f64>; 3] {
        let [_, p50, _, _, p99, p999, _, _] = self.aggregated;
        [p50, p99, p999]
    }

    /// Of durations, in units of `unit_ns`; whole numbers if `is_whole`.
    fn of(durations: &Durations, unit_ns: f64, is_whole: bool) -> Self {
        if durations.count() == 0 {
            return Self::default();
        }
        let scaled = |ns: f64| if is_whole { (ns / unit_ns).round() } else { ns / unit_ns };
        let at = |quantile: f64| scaled(float(durations.quantile_ns(quantile)));
        let figures = FIGURES.map(|(_, quantile)| match quantile {
            Some(quantile) => at(quantile),
            None => durations.mean_ns() / unit_ns,
        });
        let tail = |step: u32| 1.0 - 10_f64.powf(-f64::from(step) / f64::from(POINTS_PER_DECADE));
        let points = (0..=DECADES * POINTS_PER_DECADE).map(tail).chain([1.0]);
        let percentile = |quantile: f64| format!("{:?}", (quantile * 1e8).round() / 1e6);
        Self {
            periods: figures.map(|figure| vec![figure]),
            aggregated: figures.map(Some),
            quantiles: points.map(|quantile| (percentile(quantile), at(quantile))).collect(),
        }
    }
}

/// The names of a latency's fields: of periods, and of the whole run.
const LATENCIES: [[&str; 2]; 3] = [
    ["publishLatency", "aggregatedPublishLatency"],
    ["publishDelayLatency", "aggregatedPublishDelayLatency"],
    ["endToEndLatency", "aggregatedEndToEndLatency"],
];

/// The other fields.
const FIELDS: [&str; 11] = [
    "workload",
    "driver",
    "messageSize",
    "topics",
    "partitions",
    "producersPerTopic",
    "consumersPerTopic",
    "publishRate",
    "publishErrorRate",
    "consumeRate",
    "backlog",
];

/// Fields of Redpanda's fork that nothing here has a figure for.
const FORK_FIELDS: [&str; 8] = [
    "version",
    "beginTime",
    "endTime",
    "sampleRateMillis",
    "sent",
    "consumed",
    "publishFailed",
    "consumeFailed",
];

impl Document {
    /// The document of one run.
    ///
    /// # Errors
    /// [`Error::Document`] when a histogram of the run cannot be read.
    pub fn of(run: &RunRecord) -> Result<Self, Error> {
        let workload = &run.workload;
        let subscriptions = u64::from(workload.consume) + u64::from(workload.tails);
        let per_second = |records: u64| float(records) * 1e3 / float(run.slot_ms.max(1));
        let mut published = 0;
        let mut received = 0;
        let backlog = run.series.iter().map(|slot| {
            published += slot.produced_records;
            received += slot.consumed_records;
            float((published * subscriptions).saturating_sub(received))
        });
        let backlog = backlog.collect();
        let failed = float(run.audit.failed) * 1e9 / float(run.window_ns.max(1));
        let mut document = Self {
            workload: run.case.clone(),
            driver: run.arm.clone(),
            message_size: workload.record_bytes as u64,
            topics: workload.tuning.topics.into(),
            partitions: workload.partitions.into(),
            producers_per_topic: workload.producers.into(),
            consumers_per_topic: subscriptions,
            publish_rate: run.series.iter().map(|it| per_second(it.produced_records)).collect(),
            publish_error_rate: vec![failed],
            consume_rate: run.series.iter().map(|it| per_second(it.consumed_records)).collect(),
            backlog,
            publish: Latency::default(),
            delay: Latency::default(),
            end_to_end: Latency::default(),
            unknown: Vec::new(),
        };
        if let Some(LatencyRecord { lag, service, end_to_end, .. }) = &run.latency {
            document.publish = Latency::of(&service.durations()?, 1e6, false);
            document.delay = Latency::of(&lag.durations()?, 1e3, true);
            document.end_to_end = Latency::of(&end_to_end.durations()?, 1e6, false);
        }
        Ok(document)
    }

    /// The document as the benchmark writes it.
    #[must_use]
    pub fn to_json(&self) -> String {
        let mut fields = Map::new();
        let values = [
            json!(self.workload),
            json!(self.driver),
            json!(self.message_size),
            json!(self.topics),
            json!(self.partitions),
            json!(self.producers_per_topic),
            json!(self.consumers_per_topic),
            json!(self.publish_rate),
            json!(self.publish_error_rate),
            json!(self.consume_rate),
            json!(self.backlog),
        ];
        fields.extend(FIELDS.map(String::from).into_iter().zip(values));
        for (names, latency) in LATENCIES.iter().zip([&self.publish, &self.delay, &self.end_to_end])
        {
            let [by_period, whole] = names;
            let figures = latency.periods.iter().zip(&latency.aggregated);
            for ((suffix, _), (periods, aggregated)) in FIGURES.iter().zip(figures) {
                fields.insert(format!("{by_period}{suffix}"), json!(periods));
                fields.insert(format!("{whole}{suffix}"), json!(aggregated));
            }
            fields.insert(format!("{whole}Quantiles"), json!(latency.quantiles));
        }
        format!("{:#}\n", Value::Object(fields))
    }

    /// Reads a document of the benchmark or of Redpanda's fork.
    ///
    /// # Errors
    /// [`Error::Document`] names the field.
    pub fn from_json(text: &str) -> Result<Self, Error> {
        let document: Value =
            serde_json::from_str(text).map_err(|error| Error::Document(error.to_string()))?;
        let Value::Object(fields) = document else {
            return Err(Error::Document("is no JSON object".into()));
        };
        let fields = Fields(fields);
        Ok(Self {
            workload: fields.word("workload")?,
            driver: fields.word("driver")?,
            message_size: fields.count("messageSize"),
            topics: fields.count("topics"),
            partitions: fields.count("partitions"),
            producers_per_topic: fields.count("producersPerTopic"),
            consumers_per_topic: fields.count("consumersPerTopic"),
            publish_rate: fields.numbers("publishRate")?.ok_or_else(|| missing("publishRate"))?,
            publish_error_rate: fields.numbers("publishErrorRate")?.unwrap_or_default(),
            consume_rate: fields.numbers("consumeRate")?.ok_or_else(|| missing("consumeRate"))?,
            backlog: fields.numbers("backlog")?.unwrap_or_default(),
            publish: fields.latency(LATENCIES[0])?,
            delay: fields.latency(LATENCIES[1])?,
            end_to_end: fields.latency(LATENCIES[2])?,
            unknown: fields.unknown(),
        })
    }
}

fn missing(name: &str) -> Error {
    Error::Document(format!("the key {name:?} is missing"))
}

/// The fields of a document that is read.
struct Fields(Map<String, Value>);

impl Fields {
    fn word(&self, name: &str) -> Result<String, Error> {
        let text = self.0.get(name).ok_or_else(|| missing(name))?.as_str();
        text.map(str::to_owned).ok_or_else(|| Error::Document(format!("{name}: is no text")))
    }

    /// 0 where an older version of the benchmark does not report it.
    fn count(&self, name: &str) -> u64 {
        self.0.get(name).and_then(Value::as_u64).unwrap_or(0)
    }

    fn number(&self, name: &str) -> Result<Option<f64>, Error> {
        match self.0.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => number(name, value).map(Some),
        }
    }

    fn numbers(&self, name: &str) -> Result<Option<Vec<f64>>, Error> {
        let Some(value) = self.0.get(name) else { return Ok(None) };
        let Some(list) = value.as_array() else {
            return Err(Error::Document(format!("{name}: is no list")));
        };
        list.iter().map(|value| number(name, value)).collect::<Result<_, _>>().map(Some)
    }

    fn latency(&self, [by_period, whole]: [&str; 2]) -> Result<Latency, Error> {
        let mut latency = Latency::default();
        let figures = latency.periods.iter_mut().zip(&mut latency.aggregated);
        for ((suffix, _), (periods, aggregated)) in FIGURES.iter().zip(figures) {
            *periods = self.numbers(&format!("{by_period}{suffix}"))?.unwrap_or_default();
            *aggregated = self.number(&format!("{whole}{suffix}"))?;
        }
        let name = format!("{whole}Quantiles");
        if let Some(Value::Object(quantiles)) = self.0.get(&name) {
            for (percentile, value) in quantiles {
                latency.quantiles.insert(percentile.clone(), number(&name, value)?);
            }
        }
        Ok(latency)
    }

    fn unknown(&self) -> Vec<String> {
        let is_of_latency = |name: &str, prefix: &str| {
            let suffix = name.strip_prefix(prefix);
            let others = ["99999pct", "Min", "Quantiles"];
            suffix.is_some_and(|suffix| {
                FIGURES.iter().any(|(known, _)| *known == suffix) || others.contains(&suffix)
            })
        };
        let of_fork = ["scheduleLatency", "aggregatedScheduleLatency"];
        let is_known = |name: &&String| {
            FIELDS.contains(&name.as_str())
                || FORK_FIELDS.contains(&name.as_str())
                || LATENCIES.iter().flatten().chain(&of_fork).any(|it| is_of_latency(name, it))
        };
        self.0.keys().filter(|name| !is_known(name)).cloned().collect()
    }
}

fn number(name: &str, value: &Value) -> Result<f64, Error> {
    value.as_f64().ok_or_else(|| Error::Document(format!("{name}: {value} is no number")))
}

/// A document for each run, by the name of its file.
///
/// # Errors
/// As [`Document::of`].
pub fn documents(runs: &[RunRecord]) -> Result<Vec<(String, String)>, Error> {
    let of_run = |run: &RunRecord| {
        let name = format!("{}-{}-{}", run.case, run.arm, run.pair + 1);
        // The names of workloads hold what no file's name may.
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.');
        let plain: String = name.chars().map(|c| if is_plain(c) { c } else { '_' }).collect();
        Ok((format!("{plain}.json"), Document::of(run)?.to_json()))
    };
    runs.iter().map(of_run).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    #[test]
    fn a_run_written_for_the_benchmark_reads_back_the_same() {
        let result = sample::result();
        let written = Document::of(&result.runs[0]).unwrap();
        assert_eq!(Document::from_json(&written.to_json()).unwrap(), written);
        let documents = documents(&result.runs).unwrap();
        assert_eq!(documents.len(), result.runs.len());
        assert_eq!(documents[0].0, "Fixed_rate__produced_and_consumed-direct-1.json");
    }

    #[test]
    fn publish_latency_is_in_milliseconds_and_delay_in_microseconds() {
        let result = sample::result();
        let run = &result.runs[0];
        let latency = run.latency.as_ref().unwrap();
        let document = Document::of(run).unwrap();
        let [p50, p99, _] = document.publish.percentiles();
        assert_eq!(p50, Some(float(latency.service.summary.p50_ns) / 1e6));
        assert_eq!(p99, Some(float(latency.service.summary.p99_ns) / 1e6));
        let [delay, ..] = document.delay.percentiles();
        assert_eq!(delay, Some((float(latency.lag.summary.p50_ns) / 1e3).round()));
        assert_eq!(document.publish.quantiles.get("50.0"), None);
        assert_eq!(document.publish.quantiles.get("90.0").copied(), {
            Some(float(latency.service.summary.p90_ns) / 1e6)
        });
    }

    #[test]
    fn the_document_has_the_fields_of_the_benchmark_and_no_others() {
        let text = Document::of(&sample::result().runs[0]).unwrap().to_json();
        let Value::Object(fields) = serde_json::from_str(&text).unwrap() else { panic!("{text}") };
        // 11 of their own, and per latency 8 by period, 8 of the whole run and the quantiles.
        assert_eq!(fields.len(), 11 + 3 * 17);
        for name in [
            "publishErrorRate",
            "publishLatency9999pct",
            "publishDelayLatencyMax",
            "endToEndLatencyAvg",
            "aggregatedPublishLatency50pct",
            "aggregatedPublishDelayLatencyQuantiles",
            "aggregatedEndToEndLatency999pct",
        ] {
            assert!(fields.contains_key(name), "{name}");
        }
        assert_eq!(Fields(fields).unknown(), Vec::<String>::new());
    }

    #[test]
    fn fields_of_forks_are_known_and_others_are_named() {
        let mut text = Document::of(&sample::result().runs[0]).unwrap().to_json();
        let more = "{\"version\":\"1\",\"scheduleLatency99pct\":[1],\"publishLatencyMin\":[0],\
                    \"publishLatency99999pct\":[2],\"publishRates\":[3],";
        text = text.replacen('{', more, 1);
        assert_eq!(Document::from_json(&text).unwrap().unknown, ["publishRates"]);
    }

    #[test]
    fn a_field_that_is_not_a_number_is_refused_by_name() {
        let text = Document::of(&sample::result().runs[0]).unwrap().to_json();
        let refused = |right: &str, wrong: &str| {
            assert!(text.contains(right), "{right}");
            Document::from_json(&text.replacen(right, wrong, 1)).unwrap_err().to_string()
        };
        assert!(refused("\"publishRate\": [", "\"publishRat\": [").contains("\"publishRate\""));
        assert!(
            refused("\"publishErrorRate\": [", "\"publishErrorRate\": [\"x\",")
                .ends_with("publishErrorRate: \"x\" is no number")
        );
        assert!(refused("\"driver\": \"direct\"", "\"driver\": 3").ends_with("driver: is no text"));
    }
}
