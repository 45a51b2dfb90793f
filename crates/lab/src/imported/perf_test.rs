//! The text that `kafka-producer-perf-test` prints: a line every five seconds, and a last one that
//! has percentiles.
//!
//! ```text
//! 5000 records sent, 999.4 records/sec (0.98 MB/sec), 1.2 ms avg latency, 35.0 ms max latency.
//! 9000 records sent, 999.8 records/sec (0.98 MB/sec), 0.93 ms avg latency, 35.00 ms max latency,
//!     1 ms 50th, 2 ms 95th, 9 ms 99th, 30 ms 99.9th.
//! ```

use super::{Figure, NOT_READ_BACK, Output, Problem, Tool};
use crate::metric::Metric;

/// Whether a text is such an output.
pub(super) fn is_one(text: &str) -> bool {
    text.lines().any(is_summary) || text.lines().any(|line| rest_of(line, "records sent").is_some())
}

/// The last line is the whole run without its warm-up (KIP-1052), if there was one.
pub(super) fn read(text: &str) -> Result<Output, Problem> {
    let lines = text.lines().enumerate().map(|(index, line)| (index + 1, line));
    let Some((number, line)) = lines.filter(|(_, line)| is_summary(line)).last() else {
        return Err(Problem::whole(
            "has no line with percentiles (\"... ms 99th\"), which kafka-producer-perf-test prints \
             when it ends",
        ));
    };
    let before = |word: &str| {
        number_before(line, word).ok_or_else(|| {
            Problem::at(number, format!("the number before {word:?} is missing or is no number"))
        })
    };
    let records = before("records sent")?;
    let per_second = before("records/sec")?;
    let megabytes = before("MB/sec")?;
    let [p50, p99, p999] = [before("ms 50th")?, before("ms 99th")?, before("ms 99.9th")?];
    let mut output = Output {
        file: String::new(),
        tool: Tool::KafkaProducerPerfTest,
        case: "produce".into(),
        arm: Tool::KafkaProducerPerfTest.name().into(),
        record_bytes: None,
        figures: [
            (Metric::ProduceRecords, per_second),
            (Metric::ProduceThroughput, megabytes),
            (Metric::ServiceP50, p50),
            (Metric::ServiceP99, p99),
            (Metric::ServiceP999, p999),
        ]
        .map(|(metric, value)| Figure { metric, value })
        .to_vec(),
        warnings: Vec::new(),
    };
    output.warnings = [
        "coordinated omission: one thread sends, and while send() waits no record is offered, so \
         that a stall of the target delays the records of that time without a trace in latencies",
        "latencies are whole milliseconds: below a few ms percentiles are mostly rounding",
        "the output lacks the record size",
        NOT_READ_BACK,
    ]
    .map(String::from)
    .to_vec();
    if records > SAMPLES_MAX {
        output
            .warnings
            .push(format!("percentiles are of every n-th record, {SAMPLES_MAX} of them at most"));
    }
    if text.lines().any(|line| line.to_ascii_lowercase().contains("exception")) {
        output.warnings.push("exceptions were printed: some records were not acknowledged".into());
    }
    Ok(output)
}

fn is_summary(line: &str) -> bool {
    rest_of(line, "ms 99th").is_some() && rest_of(line, "records sent").is_some()
}

/// What stands before the word.
fn rest_of<'a>(line: &'a str, word: &str) -> Option<&'a str> {
    line.split_once(word).map(|(before, _)| before)
}

/// The number that ends where `word` begins, white space between them, and "steady state" where a
/// warm-up is not counted. The tool writes fractions as its locale does, behind a point or a comma,
/// and groups no digits.
fn number_before(line: &str, word: &str) -> Option<f64> {
    let before = rest_of(line, word)?.trim_end();
    let before = before.strip_suffix("steady state").unwrap_or(before).trim_end();
    let is_of_number = |c: char| c.is_ascii_digit() || c == '.' || c == ',';
    let start = before.rfind(|c: char| !is_of_number(c)).map_or(0, |at| at + 1);
    before.get(start..)?.replace(',', ".").parse().ok()
}

/// Samples that the tool keeps.
const SAMPLES_MAX: f64 = 500_000.0;
