//! The text that `rdkafka_performance` prints of itself, as sentences or (`-u`) as a table. The
//! last one counts, which is that of the whole run.
//!
//! ```text
//! % 500000 messages produced (50000000 bytes), 500000 delivered (offset 0, 0 failed) in 1200ms:
//!     416000 msgs/s and 41.67 MB/s, 0 produce failures, 0 in queue, no compression
//! % 500000 messages (50000000 bytes) consumed in 900ms: 555000 msgs/s (55.56 MB/s)
//! |    elapsed |       msgs |      bytes |        rtt |         dr |     dr_m/s |    dr_MB/s | ...
//! ```

use super::{Figure, NOT_READ_BACK, Output, Problem, Tool};
use crate::metric::Metric;

/// Whether a text is such an output.
pub(super) fn is_one(text: &str) -> bool {
    text.lines().any(|line| is_sentence(line) || is_header(line))
}

pub(super) fn read(text: &str) -> Result<Output, Problem> {
    let lines = || text.lines().enumerate().map(|(index, line)| (index + 1, line));
    let totals = match lines().filter(|(_, line)| is_sentence(line)).last() {
        Some((number, line)) => sentence(number, line)?,
        None => table(lines())?,
    };
    totals.output()
}

/// What the tool counted.
struct Totals {
    line: usize,
    is_producer: bool,
    milliseconds: f64,
    /// Delivered by the producer, or consumed.
    messages: f64,
    bytes: f64,
    failed: f64,
    has_latency: bool,
}

impl Totals {
    fn output(self) -> Result<Output, Problem> {
        if self.milliseconds <= 0.0 {
            return Err(Problem::at(self.line, "the time of the run is 0 ms"));
        }
        let seconds = self.milliseconds / 1e3;
        let megabytes = self.bytes / moldau_load::workload::BYTES_PER_MB / seconds;
        let [records, throughput] = match self.is_producer {
            true => [Metric::ProduceRecords, Metric::ProduceThroughput],
            false => [Metric::ConsumeRecords, Metric::ConsumeThroughput],
        };
        let figures = vec![
            Figure { metric: records, value: self.messages / seconds },
            Figure { metric: throughput, value: megabytes },
        ];
        let mut warnings = vec![
            "its MB are 10^6 bytes; they were converted to 2^20".to_string(),
            "the clock runs from the first call, connecting and warming up included".into(),
            NOT_READ_BACK.into(),
        ];
        if self.has_latency {
            warnings.push(
                "latency is given as mean, minimum and maximum only; without percentiles it is \
                 not imported"
                    .into(),
            );
        }
        if self.failed > 0.0 {
            warnings.push(format!("{} messages failed", self.failed));
        }
        let record_bytes = (self.bytes / self.messages).round();
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a whole number of bytes below 2^32"
        )]
        let record_bytes =
            (1.0..=f64::from(u32::MAX)).contains(&record_bytes).then_some(record_bytes as u64);
        Ok(Output {
            file: String::new(),
            tool: Tool::RdkafkaPerformance,
            case: if self.is_producer { "produce" } else { "consume" }.into(),
            arm: Tool::RdkafkaPerformance.name().into(),
            record_bytes,
            figures,
            warnings,
        })
    }
}

fn is_sentence(line: &str) -> bool {
    let is_of_whole_run = line.starts_with("% ") && !line.starts_with("% INTERVAL");
    is_of_whole_run
        && line.contains(" messages ")
        && line.contains(" msgs/s ")
        && (line.contains(" delivered (") || line.contains(" consumed in "))
}

fn is_header(line: &str) -> bool {
    let names: Vec<&str> = cells(line).collect();
    names.starts_with(&["elapsed", "msgs", "bytes", "rtt"])
}

fn sentence(number: usize, line: &str) -> Result<Totals, Problem> {
    let find = |word: &str| {
        let found = line.split_once(word).and_then(|(before, _)| {
            let start = before.rfind([' ', '(']).map_or(0, |at| at + 1);
            before.get(start..)?.parse::<f64>().ok()
        });
        let problem = || {
            let word = word.trim();
            Problem::at(number, format!("the number before {word:?} is missing or is no number"))
        };
        found.ok_or_else(problem)
    };
    let is_producer = line.contains(" delivered (");
    let sent = find(" messages ")?;
    let bytes = find(" bytes)")?;
    let messages = if is_producer { find(" delivered (")? } else { sent };
    // Bytes are of what was handed over; what failed of it was not delivered.
    let share = if sent > 0.0 { messages / sent } else { 0.0 };
    Ok(Totals {
        line: number,
        is_producer,
        milliseconds: find("ms:")?,
        messages,
        bytes: bytes * share,
        failed: if is_producer { find(" failed)")? } else { 0.0 },
        has_latency: line.contains("latency curr/avg/lo/hi"),
    })
}

/// The last row below the last header.
fn table<'a>(lines: impl Iterator<Item = (usize, &'a str)>) -> Result<Totals, Problem> {
    let mut names: Vec<&str> = Vec::new();
    let mut last = None;
    for (number, line) in lines.filter(|(_, line)| line.starts_with('|')) {
        if is_header(line) {
            names = cells(line).collect();
        } else {
            last = Some((number, cells(line).collect::<Vec<_>>()));
        }
    }
    let Some((number, row)) = last else {
        return Err(Problem::whole("has a table of rdkafka_performance without rows"));
    };
    let find = |name: &str| {
        let place = names.iter().position(|known| *known == name);
        let found = place.and_then(|at| row.get(at)?.parse::<f64>().ok());
        found.ok_or_else(|| {
            Problem::at(number, format!("column {name:?} is missing or is no number"))
        })
    };
    let is_producer = names.contains(&"dr");
    let sent = find("msgs")?;
    let messages = if is_producer { find("dr")? } else { sent };
    let share = if sent > 0.0 { messages / sent } else { 0.0 };
    Ok(Totals {
        line: number,
        is_producer,
        milliseconds: find("elapsed")?,
        messages,
        bytes: find("bytes")? * share,
        failed: find(if is_producer { "dr_err" } else { "rx_err" })?,
        has_latency: names.contains(&"lat_avg"),
    })
}

fn cells(line: &str) -> impl Iterator<Item = &str> {
    line.split('|').skip(1).map(str::trim).filter(|cell| !cell.is_empty())
}
