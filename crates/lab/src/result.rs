//! The result document: everything that a report needs, in one JSON file per experiment.
//!
//! The layout is described in `docs/formats.md`. A document of another format version or with
//! unknown fields is refused, never read by half.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::administration::AdministrationRecord;
use crate::ceiling::CeilingRecord;
use crate::check::CheckRecord;
use crate::checks::{Check, Verdict};
use crate::environment::Environment;
use crate::explain::Explanation;
use crate::faults::FaultsRecord;
use crate::imported::ImportedRecord;
use crate::littles_law::LawRecord;
use crate::metric::Comparison;
use crate::partitions::PartitionsRecord;
use crate::self_test::{SelfTest, SelfTestRecord};
use crate::sizing::SizingRecord;
use crate::soak::SoakRecord;
use crate::survey::{Setting, SurveyRecord};
use crate::threads::ThreadsRecord;
use moldau_load::ledger::Audit;
use moldau_measure::Error;
use moldau_measure::profile::ProfilesRecord;
use moldau_measure::resources::Resources;

pub use moldau_load::run::{ConnectionsRecord, LatencyRecord, RunRecord, Slot};

/// Version of the document's format. Documents of version 1 are read too.
pub const FORMAT_VERSION: u32 = 2;

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
    /// Runs that earlier versions repeated because the generator was late in them or in their
    /// partner; their records are in the audit, their figures nowhere.
    pub set_aside: Vec<RunRecord>,
    /// Differences of the arms from the baseline.
    pub comparisons: Vec<Comparison>,
    /// What the laboratory checked about itself.
    pub checks: Vec<Check>,
    /// Every record of all runs.
    pub audit: Audit,
    /// What follows from the checks and the audit.
    pub verdict: Verdict,
    /// What the partition experiment found beside its runs; absent from all others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partitions: Option<PartitionsRecord>,
    /// What runs counted and cost, for a model of the proxy's processor time; absent from all
    /// other experiments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sizing: Option<SizingRecord>,
    /// What searches for the highest rate found; absent from all other experiments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ceiling: Option<CeilingRecord>,
    /// What connections cost what stands before the target; absent from experiments that do not
    /// ask.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub connections: Vec<ConnectionsRecord>,
    /// What Little's law came to; absent where it was not put to the test.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub littles_law: Option<LawRecord>,
    /// What making and moving partitions took; absent where that was not asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub administration: Option<AdministrationRecord>,
    /// What the laboratory found about itself; absent from all other experiments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub self_test: Option<SelfTestRecord>,
    /// Where the processes spent their time; absent without `--profile`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profiles: Option<ProfilesRecord>,
}

/// The question that an experiment answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Experiment {
    /// What does the proxy cost?
    Overhead,
    /// How do whole systems compare?
    SideBySide,
    /// Which rate does a system sustain?
    Ceiling,
    /// What does a number of partitions cost?
    Partitions,
    /// How much slower than the disk is the broker?
    Storage,
    /// How many cores does the proxy need?
    Cores,
    /// What limits a load on a system?
    Explain(ExplainRecord),
    /// Does the laboratory itself keep its promises?
    SelfTest(SelfTest),
    /// What an experiment file asks.
    File(Question),
    /// What does another topic cost consumers, and what do threads give?
    Threads(ThreadsRecord),
    /// Does a failure lose records, and how long do clients wait?
    Faults(FaultsRecord),
    /// Does a cluster keep Kafka's promises under faults?
    Check(CheckRecord),
    /// Does anything grow in the course of hours?
    Soak(SoakRecord),
    /// How do loads that differ in one setting compare, and do published claims hold?
    Survey(SurveyRecord),
    /// What do the outputs of other tools say?
    Imported(ImportedRecord),
}

/// What an experiment file says of itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Question {
    /// The question.
    pub question: String,
    /// What was expected and why, before anything was measured.
    pub hypothesis: String,
}

/// What limits a load on a system.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExplainRecord {
    /// Name of the system.
    pub system: String,
    /// What is said of the load; the rest is usual.
    pub load: Vec<Setting>,
    /// What was found.
    pub explanation: Explanation,
}

/// One of the systems or paths that are compared.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Arm {
    /// Short name, used in [`RunRecord::arm`].
    pub name: String,
    /// What it is, for people.
    pub description: String,
    /// What its front held before anything passed through it; absent where none stands before the
    /// target, and from experiments that do not ask.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle: Option<Resources>,
}

impl Arm {
    /// An arm without a front.
    #[must_use]
    pub fn of(name: &str, description: impl Into<String>) -> Self {
        Self { name: name.into(), description: description.into(), idle: None }
    }
}

impl RunResult {
    /// That of an experiment without runs.
    pub(crate) fn bare(
        experiment: Experiment,
        started_unix_ms: u64,
        environment: Environment,
        checks: Vec<Check>,
    ) -> Self {
        Self {
            format_version: FORMAT_VERSION,
            id: result_id(started_unix_ms),
            experiment,
            started_unix_ms,
            elapsed_ms: 0,
            seed: 1,
            quick: false,
            environment,
            arms: Vec::new(),
            runs: Vec::new(),
            set_aside: Vec::new(),
            comparisons: Vec::new(),
            verdict: Verdict::of(&checks),
            checks,
            audit: Audit::default(),
            partitions: None,
            sizing: None,
            ceiling: None,
            connections: Vec::new(),
            littles_law: None,
            administration: None,
            self_test: None,
            profiles: None,
        }
    }

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
        let broken = |error: serde_json::Error| Error::Document(error.to_string());
        let mut document: Value = serde_json::from_str(text).map_err(broken)?;
        match document.get("format_version").and_then(Value::as_u64) {
            Some(1) => upgrade(&mut document),
            Some(version) if version == u64::from(FORMAT_VERSION) => {}
            version => {
                let found = version.map_or("none".into(), |version| version.to_string());
                return Err(Error::Document(format!(
                    "format version {found}; this program reads versions 1 and {FORMAT_VERSION}"
                )));
            }
        }
        forget_evidence(&mut document);
        serde_json::from_value(document).map_err(broken)
    }

    /// What limits a load, if that was asked.
    #[must_use]
    pub fn explained(&self) -> Option<&ExplainRecord> {
        match &self.experiment {
            Experiment::Explain(record) => Some(record),
            _ => None,
        }
    }

    /// The survey, if this is one.
    #[must_use]
    pub fn survey(&self) -> Option<&SurveyRecord> {
        match &self.experiment {
            Experiment::Survey(record) => Some(record),
            _ => None,
        }
    }

    /// The figures of other tools, if it is made of such.
    #[must_use]
    pub fn imported(&self) -> Option<&ImportedRecord> {
        match &self.experiment {
            Experiment::Imported(record) => Some(record),
            _ => None,
        }
    }

    /// What struck systems, if that was asked.
    #[must_use]
    pub fn faults(&self) -> Option<&FaultsRecord> {
        match &self.experiment {
            Experiment::Faults(record) => Some(record),
            _ => None,
        }
    }

    /// What systems held in the course of hours, if that was asked.
    #[must_use]
    pub fn soak(&self) -> Option<&SoakRecord> {
        match &self.experiment {
            Experiment::Soak(record) => Some(record),
            _ => None,
        }
    }

    /// What threads read, if this is such an experiment.
    #[must_use]
    pub fn threads(&self) -> Option<&ThreadsRecord> {
        match &self.experiment {
            Experiment::Threads(record) => Some(record),
            _ => None,
        }
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

/// Makes a document of version 1 one of version 2, which has no figures of an inferred speed of the
/// machine, and in which a ceiling lies between two rates that were offered.
fn upgrade(document: &mut Value) {
    remove(document, &["yardstick_ns", "own_steal_ticks"]);
    document["format_version"] = FORMAT_VERSION.into();
    let searches = document.pointer_mut("/ceiling/searches").and_then(Value::as_array_mut);
    for search in searches.into_iter().flatten() {
        if let Some(found) = search.get_mut("found").and_then(Value::as_object_mut)
            && let Some(interval) = found.remove("interval_95")
        {
            found.insert("bracket".into(), interval);
        }
        for trial in search.get_mut("trials").and_then(Value::as_array_mut).into_iter().flatten() {
            remove(trial, &["machine", "between_stops_p99_ms", "silence_ms", "moment"]);
            if trial.get("outcome").is_some_and(|outcome| outcome == "stopped") {
                trial["outcome"] = "missed".into();
            }
        }
    }
}

/// Removes what was gathered beside runs for guesses at their limits, which are not made any more.
fn forget_evidence(document: &mut Value) {
    for runs in ["runs", "set_aside"] {
        let runs = document.get_mut(runs).and_then(Value::as_array_mut);
        for run in runs.into_iter().flatten().filter_map(Value::as_object_mut) {
            run.remove("evidence");
        }
    }
}

/// Removes these keys from all objects.
fn remove(value: &mut Value, keys: &[&str]) {
    match value {
        Value::Object(object) => {
            object.retain(|key, _| !keys.contains(&key.as_str()));
            object.values_mut().for_each(|value| remove(value, keys));
        }
        Value::Array(values) => values.iter_mut().for_each(|value| remove(value, keys)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    /// As version 1 wrote it: with the speed of the machine, stops, and an interval.
    #[test]
    fn a_document_of_version_1_is_read() {
        let result = sample::ceiling();
        let mut document = serde_json::to_value(&result).unwrap();
        document["format_version"] = 1.into();
        document["runs"][0]["host"]["yardstick_ns"] = 12_000.into();
        document["runs"][0]["host"]["own_steal_ticks"] = 3.into();
        document["runs"][0]["evidence"] = serde_json::json!({ "runnable": 1.5 });
        let search = &mut document["ceiling"]["searches"][0];
        let bracket = search["found"].as_object_mut().unwrap().remove("bracket").unwrap();
        search["found"]["interval_95"] = bracket;
        let trial = &mut search["trials"][0];
        trial["machine"] = 1.02.into();
        (trial["silence_ms"], trial["moment"]) = (183.0.into(), true.into());
        trial["outcome"] = "stopped".into();
        let read = RunResult::from_json(&document.to_string()).unwrap();
        let mut expected = result;
        expected.ceiling.as_mut().unwrap().searches[0].trials[0].outcome =
            crate::ceiling::search::Outcome::Missed;
        assert_eq!(read, expected);
    }

    #[test]
    fn a_result_is_named_after_its_start() {
        assert_eq!(result_id(0), "19700101-000000");
        assert_eq!(result_id(951_827_696_000), "20000229-123456");
        assert_eq!(result_id(1_769_903_999_999), "20260131-235959");
        assert_eq!(result_id(1_735_689_599_000), "20241231-235959");
    }
}
