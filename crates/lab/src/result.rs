//! The result document: everything that a report needs, in one JSON file per experiment.
//!
//! The layout is described in `docs/formats.md`. A document of another format version or with
//! unknown fields is refused, never read by half.

use serde::{Deserialize, Serialize};

use crate::checks::{Check, Verdict};
use crate::cpu::{HostUsage, ProcessUsage};
use crate::environment::Environment;
use crate::error::Error;
use crate::histograms::{HistogramRecord, Latencies};
use crate::ledger::Audit;
use crate::metric::Comparison;
use crate::workload::Workload;

/// Version of the document's format.
pub const FORMAT_VERSION: u32 = 1;

/// The outcome of one experiment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunResult {
    /// [`FORMAT_VERSION`].
    pub format_version: u32,
    /// Name of the result's folder: the start in UTC, as `20260131-235959`.
    pub id: String,
    /// Which question was asked.
    pub experiment: Experiment,
    /// Start, ms since 1970.
    pub started_unix_ms: u64,
    /// Length of the whole experiment, ms.
    pub elapsed_ms: u64,
    /// Seed of everything random in it.
    pub seed: u64,
    /// Whether it was the short form.
    pub quick: bool,
    /// The machine.
    pub environment: Environment,
    /// What was compared; the first is the baseline.
    pub arms: Vec<Arm>,
    /// Every measured run, in the order in which they happened.
    pub runs: Vec<RunRecord>,
    /// Differences of the arms from the baseline.
    pub comparisons: Vec<Comparison>,
    /// What the laboratory checked about itself.
    pub checks: Vec<Check>,
    /// Every record of all runs.
    pub audit: Audit,
    /// What follows from the checks and the audit.
    pub verdict: Verdict,
}

/// The question that an experiment answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Experiment {
    /// What does the proxy cost?
    Overhead,
    /// How do whole systems compare?
    SideBySide,
}

/// One of the systems or paths that are compared.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Arm {
    /// Short name, used in [`RunRecord::arm`].
    pub name: String,
    /// What it is, for people.
    pub description: String,
}

/// One measured run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunRecord {
    /// Runs of one case are comparable with each other.
    pub case: String,
    /// Name of the [`Arm`].
    pub arm: String,
    /// Which pair (or round of repetitions) it belongs to, from 0.
    pub pair: u32,
    /// What was offered.
    pub workload: Workload,
    /// Start of the measured window, ms since the start of the experiment.
    pub window_start_ms: u64,
    /// Length of the measured window, ns.
    pub window_ns: u64,
    /// Operations of the schedule inside the window; 0 for an unpaced run.
    pub offered: u64,
    /// Operations of the whole run that were never offered because the target was too far behind.
    pub shed: u64,
    /// Records acknowledged inside the window.
    pub produced_records: u64,
    /// Record batches acknowledged inside the window.
    pub produced_batches: u64,
    /// Operations of the window that were acknowledged in the end.
    pub answered: u64,
    /// Records delivered inside the window.
    pub consumed_records: u64,
    /// Latency histograms of the operations of the window; absent from unpaced runs, whose
    /// operations have no intended time.
    pub latency: Option<LatencyRecord>,
    /// Length of a slot of the series, ms.
    pub slot_ms: u64,
    /// The course of the window, slot by slot.
    pub series: Vec<Slot>,
    /// What each process used inside the window.
    pub processes: Vec<ProcessUsage>,
    /// What the machine did inside the window.
    pub host: HostUsage,
    /// Records that the target says that it was given, asked after the run.
    pub held_records: u64,
    /// Every record of the run.
    pub audit: Audit,
}

/// The four histograms of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LatencyRecord {
    /// Intended time to the moment the generator took the operation up.
    pub lag: HistogramRecord,
    /// Hand-over to the target until its acknowledgement.
    pub service: HistogramRecord,
    /// Intended time to acknowledgement.
    pub response: HistogramRecord,
    /// Intended time to delivery.
    pub end_to_end: HistogramRecord,
}

impl LatencyRecord {
    /// The document form of the histograms.
    ///
    /// # Errors
    /// None in practice, see [`crate::histograms::Durations::to_record`].
    pub fn of(latencies: &Latencies) -> Result<Self, Error> {
        Ok(Self {
            lag: latencies.lag.to_record()?,
            service: latencies.service.to_record()?,
            response: latencies.response.to_record()?,
            end_to_end: latencies.end_to_end.to_record()?,
        })
    }
}

/// A slot of the course of a run; durations are 0 where the slot has no sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Slot {
    /// Records acknowledged.
    pub produced_records: u64,
    /// Records delivered.
    pub consumed_records: u64,
    /// Median response time of the operations intended in the slot, ns.
    pub response_p50_ns: u64,
    /// 99th percentile of it, ns.
    pub response_p99_ns: u64,
    /// Longest of it, ns.
    pub response_max_ns: u64,
    /// 99th percentile of the end-to-end time of the records intended in the slot, ns.
    pub end_to_end_p99_ns: u64,
}

impl RunResult {
    /// The document as JSON text.
    ///
    /// # Errors
    /// None in practice: every field has a JSON form.
    pub fn to_json(&self) -> Result<String, Error> {
        serde_json::to_string(self).map_err(|error| Error::Document(error.to_string()))
    }

    /// Reads a document.
    ///
    /// # Errors
    /// [`Error::Document`] for other text, unknown fields or another format version.
    pub fn from_json(text: &str) -> Result<Self, Error> {
        #[derive(Deserialize)]
        struct Version {
            format_version: u32,
        }
        let broken = |error: serde_json::Error| Error::Document(error.to_string());
        let Version { format_version } = serde_json::from_str(text).map_err(broken)?;
        if format_version != FORMAT_VERSION {
            return Err(Error::Document(format!(
                "format version {format_version}; this program reads version {FORMAT_VERSION}"
            )));
        }
        serde_json::from_str(text).map_err(broken)
    }

    /// The runs of one case and arm.
    pub fn runs_of<'a>(
        &'a self,
        case: &'a str,
        arm: &'a str,
    ) -> impl Iterator<Item = &'a RunRecord> {
        self.runs.iter().filter(move |run| run.case == case && run.arm == arm)
    }

    /// The names of the cases, in the order of their first runs.
    #[must_use]
    pub fn cases(&self) -> Vec<&str> {
        let mut cases: Vec<&str> = Vec::new();
        for run in &self.runs {
            if !cases.contains(&run.case.as_str()) {
                cases.push(&run.case);
            }
        }
        cases
    }
}

/// The name of a result that began at `unix_ms`, in UTC: `20260131-235959`.
#[must_use]
pub fn result_id(unix_ms: u64) -> String {
    const SECONDS_PER_DAY: u64 = 86_400;
    let seconds = unix_ms / 1_000;
    let (mut days, second) = (seconds / SECONDS_PER_DAY, seconds % SECONDS_PER_DAY);
    let is_leap =
        |year: u64| year.is_multiple_of(4) && !year.is_multiple_of(100) || year.is_multiple_of(400);
    let mut year = 1970;
    while days >= 365 + u64::from(is_leap(year)) {
        days -= 365 + u64::from(is_leap(year));
        year += 1;
    }
    let february = 28 + u64::from(is_leap(year));
    let mut month = 1;
    for length in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] {
        if days < length {
            break;
        }
        days -= length;
        month += 1;
    }
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    format!("{year:04}{month:02}{:02}-{hour:02}{minute:02}{second:02}", days + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_is_named_after_its_start() {
        assert_eq!(result_id(0), "19700101-000000");
        assert_eq!(result_id(951_827_696_000), "20000229-123456");
        assert_eq!(result_id(1_769_903_999_999), "20260131-235959");
        assert_eq!(result_id(1_735_689_599_000), "20241231-235959");
    }
}
