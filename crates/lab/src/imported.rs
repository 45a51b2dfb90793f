//! Outputs of other tools, read for their figures, each with what the tool keeps from its reader.
//!
//! A figure of another tool is that of this laboratory only where both measure the same thing, so
//! each is filed under the [`Metric`] that it is: no tool that is read here counts latency from the
//! intended time, so none gives a `response`.

mod chronik;
mod omb;
mod perf_test;
mod rdkafka;

use serde::{Deserialize, Serialize};

use crate::metric::Metric;
use moldau_measure::Error;

/// Longest output that is read: a day of lines every five seconds has 2 MB.
pub const OUTPUT_BYTES_MAX: usize = 16 << 20;

/// Figures that were imported.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ImportedRecord {
    /// One for each file; those with the same case and arm are repetitions.
    pub outputs: Vec<Output>,
}

/// What one output of a tool says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Output {
    /// Name of the file, without its directories.
    pub file: String,
    /// The tool.
    pub tool: Tool,
    /// What was offered, by the tool's own words.
    pub case: String,
    /// What was measured, by the tool's own words; the tool's name where it has none.
    pub arm: String,
    /// Size of a record's value, if the tool reports it.
    pub record_bytes: Option<u64>,
    /// What it found.
    pub figures: Vec<Figure>,
    /// What these figures do not say, or say in other units than one thinks.
    pub warnings: Vec<String>,
}

/// A tool whose outputs are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tool {
    /// Apache Kafka's `kafka-producer-perf-test`.
    KafkaProducerPerfTest,
    /// `rdkafka_performance` of librdkafka.
    RdkafkaPerformance,
    /// `chronik-bench`.
    ChronikBench,
    /// The OpenMessaging Benchmark and its forks.
    OpenMessagingBenchmark,
}

impl Tool {
    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::KafkaProducerPerfTest => "kafka-producer-perf-test",
            Self::RdkafkaPerformance => "rdkafka_performance",
            Self::ChronikBench => "chronik-bench",
            Self::OpenMessagingBenchmark => "OpenMessaging Benchmark",
        }
    }
}

/// A figure of an output.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Figure {
    /// What it is.
    pub metric: Metric,
    /// Its value, in the unit of the metric.
    pub value: f64,
}

/// Reads the output of whatever tool wrote it.
///
/// # Errors
/// [`Error::Output`] names the file, and the line and the key where it can.
pub fn read(file: &str, text: &str) -> Result<Output, Error> {
    let within = |problem: Problem| Error::Output(format!("{file}{problem}"));
    if text.len() > OUTPUT_BYTES_MAX {
        return Err(within(Problem::whole(format!("is longer than {OUTPUT_BYTES_MAX} bytes"))));
    }
    let start = text.trim_start();
    let found = if start.starts_with('{') {
        json(text)
    } else if start.starts_with(chronik::CSV_START) {
        chronik::csv(text)
    } else if perf_test::is_one(text) {
        perf_test::read(text)
    } else if rdkafka::is_one(text) {
        rdkafka::read(text)
    } else {
        Err(Problem::whole(
            "is no output of kafka-producer-perf-test, rdkafka_performance, chronik-bench (JSON, \
             CSV) or the OpenMessaging Benchmark (JSON)",
        ))
    };
    let mut output = found.map_err(within)?;
    file.clone_into(&mut output.file);
    if let Some(figure) = output.figures.iter().find(|it| !it.value.is_finite() || it.value < 0.0) {
        let name = figure.metric.label();
        return Err(within(Problem::whole(format!("{name} is {}, no figure", figure.value))));
    }
    Ok(output)
}

fn json(text: &str) -> Result<Output, Problem> {
    let document: serde_json::Value = serde_json::from_str(text).map_err(Problem::of_json)?;
    if document.get("latency_p50_us").is_some() {
        chronik::json(text)
    } else if document.get("publishRate").is_some() || document.get("workload").is_some() {
        omb::read(text)
    } else {
        Err(Problem::whole(
            "is JSON neither of chronik-bench, which has \"latency_p50_us\", nor of the \
             OpenMessaging Benchmark, which has \"publishRate\"",
        ))
    }
}

/// The error in an output, printed after the name of its file.
#[derive(Clone, Debug)]
struct Problem {
    line: Option<usize>,
    text: String,
}

impl Problem {
    /// With no place of its own.
    fn whole(text: impl Into<String>) -> Self {
        Self { line: None, text: text.into() }
    }

    /// In a line, counted from 1.
    fn at(line: usize, text: impl Into<String>) -> Self {
        Self { line: Some(line), text: text.into() }
    }

    fn of_json(error: serde_json::Error) -> Self {
        let text = error.to_string();
        // The place stands before the text already.
        let words = text.rsplit_once(" at line ").map_or(&*text, |(words, _)| words);
        Self { line: (error.line() > 0).then_some(error.line()), text: words.into() }
    }
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.line {
            Some(line) => write!(f, ":{line}: {}", self.text),
            None => write!(f, ": {}", self.text),
        }
    }
}

/// What every tool leaves open that does not read back what it wrote.
const NOT_READ_BACK: &str = "records are not read back: what was acknowledged and lost counts as \
                             written";

#[cfg(test)]
mod tests;
