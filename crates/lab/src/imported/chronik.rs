//! The results that `chronik-bench` writes as JSON and as CSV.

use serde::Deserialize;

use super::{Figure, NOT_READ_BACK, Output, Problem, Tool};
use crate::metric::Metric;

/// What the header of its CSV begins with.
pub(super) const CSV_START: &str = "timestamp,mode,duration_secs,";

/// The clock runs on until the reporter wakes, this long after it last did.
const REPORTER_SECONDS: f64 = 5.0;

/// The columns of its CSV that the JSON has too.
const COLUMNS: [&str; 12] = [
    "mode",
    "duration_secs",
    "total_messages",
    "failed_messages",
    "total_bytes",
    "latency_p50_us",
    "latency_p99_us",
    "latency_p999_us",
    "latency_max_us",
    "message_size",
    "concurrency",
    "compression",
];

/// The fields of its JSON that are read, of fourteen.
#[derive(Deserialize)]
struct Document {
    mode: String,
    duration: Clock,
    total_messages: u64,
    failed_messages: u64,
    total_bytes: u64,
    latency_p50_us: u64,
    latency_p99_us: u64,
    latency_p999_us: u64,
    latency_max_us: u64,
    message_size: u64,
    concurrency: u64,
    compression: String,
}

#[derive(Deserialize)]
struct Clock {
    secs: u64,
    nanos: u32,
}

pub(super) fn json(text: &str) -> Result<Output, Problem> {
    let document: Document = serde_json::from_str(text).map_err(Problem::of_json)?;
    let seconds = float(document.duration.secs) + f64::from(document.duration.nanos) / 1e9;
    output(&document, seconds).ok_or_else(|| Problem::whole("duration: is 0"))
}

pub(super) fn csv(text: &str) -> Result<Output, Problem> {
    let mut lines = text.lines();
    let names: Vec<&str> = lines.next().unwrap_or_default().split(',').collect();
    let Some(row) = lines.next().filter(|row| !row.trim().is_empty()) else {
        return Err(Problem::at(2, "the row is missing"));
    };
    if lines.any(|line| !line.trim().is_empty()) {
        return Err(Problem::at(3, "chronik-bench writes one row; import other runs one by one"));
    }
    let cells: Vec<&str> = row.split(',').collect();
    let find = |name: &str| {
        let place = names.iter().position(|known| *known == name);
        place.and_then(|at| cells.get(at).copied())
    };
    if let Some(missing) = COLUMNS.iter().find(|name| find(name).is_none()) {
        return Err(Problem::at(1, format!("column {missing:?} is missing")));
    }
    let word = |name: &str| find(name).unwrap_or_default().trim().to_owned();
    let number = |name: &str| {
        let text = word(name);
        text.parse().map_err(|_| Problem::at(2, format!("{name}: {text} is no whole number")))
    };
    let seconds = word("duration_secs").parse::<f64>().ok().filter(|it| it.is_finite());
    let Some(seconds) = seconds else {
        return Err(Problem::at(
            2,
            format!("duration_secs: {} is no number", word("duration_secs")),
        ));
    };
    let document = Document {
        mode: word("mode"),
        duration: Clock { secs: 0, nanos: 0 },
        total_messages: number("total_messages")?,
        failed_messages: number("failed_messages")?,
        total_bytes: number("total_bytes")?,
        latency_p50_us: number("latency_p50_us")?,
        latency_p99_us: number("latency_p99_us")?,
        latency_p999_us: number("latency_p999_us")?,
        latency_max_us: number("latency_max_us")?,
        message_size: number("message_size")?,
        concurrency: number("concurrency")?,
        compression: word("compression"),
    };
    output(&document, seconds).ok_or_else(|| Problem::at(2, "duration_secs: is 0"))
}

/// `None` where no time has passed.
fn output(document: &Document, seconds: f64) -> Option<Output> {
    if seconds <= 0.0 {
        return None;
    }
    let megabytes = float(document.total_bytes) / moldau_load::workload::BYTES_PER_MB;
    let is_consumer = document.mode == "Consume";
    let [records, throughput] = match is_consumer {
        true => [Metric::ConsumeRecords, Metric::ConsumeThroughput],
        false => [Metric::ProduceRecords, Metric::ProduceThroughput],
    };
    let [p50, p99, p999] = match document.mode.as_str() {
        "RoundTrip" => [Metric::EndToEndP50, Metric::EndToEndP99, Metric::EndToEndP999],
        _ => [Metric::ServiceP50, Metric::ServiceP99, Metric::ServiceP999],
    };
    let ms = |us: u64| float(us) / 1e3;
    let mut figures = vec![
        (records, float(document.total_messages) / seconds),
        (throughput, megabytes / seconds),
    ];
    // A consumer records no latency, and says 0.
    if document.latency_max_us > 0 {
        figures.extend([
            (p50, ms(document.latency_p50_us)),
            (p99, ms(document.latency_p99_us)),
            (p999, ms(document.latency_p999_us)),
        ]);
    }
    Some(Output {
        file: String::new(),
        tool: Tool::ChronikBench,
        case: format!(
            "{}, {} at once, {}",
            document.mode.to_lowercase(),
            document.concurrency,
            document.compression.to_lowercase()
        ),
        arm: Tool::ChronikBench.name().into(),
        record_bytes: Some(document.message_size),
        figures: figures.into_iter().map(|(metric, value)| Figure { metric, value }).collect(),
        warnings: warnings(document, seconds),
    })
}

fn warnings(document: &Document, seconds: f64) -> Vec<String> {
    let mut warnings = vec![
        format!(
            "coordinated omission: a closed loop of {} records, each waiting for its answer; \
             throughput is {} divided by the mean latency",
            document.concurrency, document.concurrency
        ),
        format!(
            "the clock stops up to {REPORTER_SECONDS} s late, when the reporter wakes, so that \
             rates are {:.0} % too low at most",
            REPORTER_SECONDS / (seconds - REPORTER_SECONDS).max(REPORTER_SECONDS) * 100.0
        ),
        "latency samples are dropped while another thread holds the histogram".into(),
        "its warm-up is 1000 records, one after the other".into(),
        NOT_READ_BACK.into(),
    ];
    if document.compression != "None" {
        warnings.push(
            "values are random unless --payload-pattern says otherwise, which no codec shortens"
                .into(),
        );
    }
    if document.mode == "RoundTrip" {
        warnings.push(
            "consuming begins after producing has ended, so that end-to-end latency is about the \
             length of the run"
                .into(),
        );
    }
    if document.failed_messages > 0 {
        warnings.push(format!("{} messages failed", document.failed_messages));
    }
    warnings
}

fn float(value: u64) -> f64 {
    moldau_measure::statistics::float(value)
}
