//! The result document of the OpenMessaging Benchmark.

use super::{Figure, NOT_READ_BACK, Output, Problem, Tool};
use crate::metric::Metric;
use crate::omb::{Document, Latency};
use moldau_measure::Error;

pub(super) fn read(text: &str) -> Result<Output, Problem> {
    let document = Document::from_json(text).map_err(|error| match error {
        Error::Document(text) => Problem::whole(text),
        other => Problem::whole(other.to_string()),
    })?;
    let mut figures = Vec::new();
    let mut push = |metric: Metric, value: Option<f64>| {
        figures.extend(value.map(|value| Figure { metric, value }));
    };
    let megabytes = |records: f64| {
        let bytes = moldau_measure::statistics::float(document.message_size);
        (bytes > 0.0).then_some(records * bytes / moldau_load::workload::BYTES_PER_MB)
    };
    let published = mean(&document.publish_rate);
    push(Metric::ProduceRecords, published);
    push(Metric::ProduceThroughput, published.and_then(megabytes));
    let consumed = mean(&document.consume_rate).filter(|rate| *rate > 0.0);
    push(Metric::ConsumeRecords, consumed);
    push(Metric::ConsumeThroughput, consumed.and_then(megabytes));
    let latencies: [([Metric; 3], &Latency); 2] = [
        ([Metric::ServiceP50, Metric::ServiceP99, Metric::ServiceP999], &document.publish),
        ([Metric::EndToEndP50, Metric::EndToEndP99, Metric::EndToEndP999], &document.end_to_end),
    ];
    for (metrics, latency) in latencies {
        for (metric, value) in metrics.into_iter().zip(latency.percentiles()) {
            push(metric, value);
        }
    }
    Ok(Output {
        file: String::new(),
        tool: Tool::OpenMessagingBenchmark,
        case: document.workload.clone(),
        arm: document.driver.clone(),
        record_bytes: Some(document.message_size).filter(|bytes| *bytes > 0),
        figures,
        warnings: warnings(&document),
    })
}

fn warnings(document: &Document) -> Vec<String> {
    let mut warnings = vec![
        "coordinated omission: publish latency counts from sending, not from the intended time; \
         the wait before it is publishDelayLatency, in microseconds where all others are in ms, \
         and no sum of the two can be had from percentiles"
            .to_string(),
        "end-to-end latency is the difference of two wall clocks in whole ms; samples of 0 ms and \
         below were dropped, so that it is too high on fast paths and has no median below 1 ms"
            .into(),
        "rates are totals over all topics, and so is producerRate of a workload".into(),
        NOT_READ_BACK.into(),
    ];
    if document.topics > 1 {
        warnings.push(format!(
            "{} topics: multiplying the rates by them, as some publications do, counts every \
             record {} times",
            document.topics, document.topics
        ));
    }
    if document.publish_error_rate.iter().any(|rate| *rate > 0.0) {
        warnings.push("some records were refused (publishErrorRate)".into());
    }
    if document.message_size == 0 {
        warnings.push("the output lacks the record size, so no MB/s is given".into());
    }
    let spread = document.publish_rate.iter().copied();
    let (low, high) =
        spread.fold((f64::INFINITY, 0.0_f64), |(low, high), rate| (low.min(rate), high.max(rate)));
    if high > UNSTEADY * low {
        warnings.push(format!(
            "the publish rate went from {low:.0} to {high:.0} records/s within the run: the mean \
             is of no steady state"
        ));
    }
    if !document.unknown.is_empty() {
        warnings.push(format!("fields passed over: {}", document.unknown.join(", ")));
    }
    warnings
}

fn mean(values: &[f64]) -> Option<f64> {
    let count = u32::try_from(values.len()).ok().filter(|count| *count > 0)?;
    Some(values.iter().sum::<f64>() / f64::from(count))
}

/// A rate that differs by more than this between two periods was still being looked for, or fell.
const UNSTEADY: f64 = 1.25;
