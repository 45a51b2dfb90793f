//! Experiments that are files: one key of the broker's configuration at several levels, under
//! several loads, each with the figure that it is about.
//!
//! The file states expectations in advance: a hypothesis in words, the trend of every figure over
//! the levels, and the level that must not be worse than any other. The format is described in
//! `docs/experiments.md`.

mod page;

use std::path::PathBuf;

use serde::Deserialize;

use super::asked::{Asked, Payload, ReadFile, Times};
use super::bench::{self, Bench, Path};
use super::rounds::{self, Subject};
use super::{Conditions, Progress};
use crate::checks::{self, Check, Weight};
use crate::metric::Metric;
use crate::objective::{Bound, Objective};
use crate::result::{Arm, Experiment, Question, RunResult};
use crate::systems::{Durability, Process, free_addresses, moldau_broker_configured};
use moldau_load::run::RunRecord;
use moldau_load::shape::{Keys, Sizes};
use moldau_load::workload::{Pace, Tuning, Workload};
use moldau_measure::Error;
use moldau_measure::numbers::Unit;
use moldau_measure::profile::Profiler;
use moldau_measure::statistics::median;

pub use page::page;

/// Most levels and most cases of a file: each level is a broker that runs all the while.
const LEVELS_MAX: usize = 8;
const CASES_MAX: usize = 16;

/// The short form's share of warm-up and window, and the shortest window.
const QUICK_SHARE: u64 = 4;
const QUICK_WINDOW_MS_MIN: u64 = 1_000;

/// A change of a figure from one level to the next that is no rise and no fall.
const FLAT_SHARE: f64 = 0.1;

/// An experiment, as its file says.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExperimentFile {
    /// The question.
    pub question: String,
    /// What is expected and why.
    pub hypothesis: String,
    /// What differs.
    pub factor: Factor,
    /// What is offered at each level.
    pub cases: Vec<Case>,
    /// What is to be shown.
    pub objective: Wish,
    /// Rounds; each runs every level once, forwards and backwards in turn.
    pub rounds: u32,
}

/// One key of the broker's configuration.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Factor {
    /// Its name in the broker's configuration.
    pub key: String,
    /// Its values.
    pub levels: Vec<Level>,
}

/// One value of the factor.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Level {
    /// Short name, for tables.
    pub name: String,
    /// The value.
    pub value: u64,
}

/// One load and the figure that it is about.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// The goal, in a few words.
    pub name: String,
    /// The figure that says how well it is reached.
    pub figure: Metric,
    /// How the figure is expected to go from level to level.
    pub expected: Course,
    /// What is offered.
    pub load: Load,
}

/// How a figure goes over the levels in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Course {
    /// Higher at the last level than at the first, and nowhere lower than at the level before.
    Rises,
    /// Lower at the last level than at the first, and nowhere higher than at the level before.
    Falls,
    /// About the same everywhere.
    Flat,
}

/// What is offered.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Load {
    /// Records per second at fixed intended times; left out, as fast as the target acknowledges.
    pub records_per_second: Option<u64>,
    /// Size of a record's value, where all are of one size.
    pub record_bytes: Option<usize>,
    /// Sizes of values, where they differ.
    pub record_sizes: Option<Sizes>,
    /// What records hold.
    #[serde(default)]
    pub filler: Payload,
    /// Keys of records, which decide their partitions.
    pub keys: Option<Keys>,
    /// How intended times follow one another, where there is a rate.
    #[serde(default)]
    pub arrivals: Times,
    /// Partitions of the topic.
    pub partitions: u16,
    /// Producers, each over a connection of its own.
    pub producers: u16,
    /// A producer's largest batch.
    pub batch_bytes: usize,
    /// How long a producer's batch may wait for more, microseconds.
    pub linger_us: u64,
    /// Time before the measured window, ms.
    pub warmup_ms: u64,
    /// The measured window, ms.
    pub window_ms: u64,
}

/// What is to be shown: one level is not worse than any other, in the figure of every case.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Wish {
    /// The level.
    pub level: String,
    /// Percent by which it may be worse.
    pub margin_percent: u32,
}

/// Everything that a run of a file needs to know.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The file.
    pub file: ExperimentFile,
    /// The `moldau` executable.
    pub moldau: PathBuf,
    /// Under what conditions it is carried out.
    pub conditions: Conditions,
    /// What takes a profile of each case and level in the end, if it is wanted.
    pub profiler: Option<Profiler>,
}

impl ExperimentFile {
    /// Refuses what cannot be measured.
    ///
    /// # Errors
    /// [`Error::Plan`] and [`Error::RecordTooSmall`].
    pub fn check(&self) -> Result<(), Error> {
        let refuse = |text: &str| Err(Error::Plan(text.to_string()));
        let levels: Vec<&str> = self.factor.levels.iter().map(|l| l.name.as_str()).collect();
        if !(2..=LEVELS_MAX).contains(&levels.len()) {
            return refuse("factor.levels: 2 to 8 of them");
        }
        if !(1..=CASES_MAX).contains(&self.cases.len()) {
            return refuse("cases: 1 to 16 of them");
        }
        let cases: Vec<&str> = self.cases.iter().map(|case| case.name.as_str()).collect();
        if has_twins(&levels) || has_twins(&cases) {
            return refuse("factor.levels and cases: every name once");
        }
        if !levels.contains(&self.objective.level.as_str()) {
            return refuse("objective.level: the name of one of factor.levels");
        }
        rounds::check(self.rounds)?;
        for case in &self.cases {
            let is_latency = case.figure.unit() == Unit::Milliseconds;
            let is_traced = case.load.arrivals.is_trace();
            if is_latency && case.load.records_per_second.is_none() && !is_traced {
                return refuse("cases.figure: a latency needs load.records_per_second");
            }
            case.load.check()?;
        }
        Ok(())
    }

    /// Reads the files of the user that its loads name.
    ///
    /// # Errors
    /// [`Error::Plan`] with the file, and the line where it can.
    pub fn read_files(&mut self, read: &mut ReadFile<'_>) -> Result<(), Error> {
        for Case { load, .. } in &mut self.cases {
            load.filler.read_file(read)?;
            load.arrivals.read_file(read)?;
        }
        Ok(())
    }
}

impl Load {
    fn check(&self) -> Result<(), Error> {
        let refuse = |text: &str| Err(Error::Plan(text.to_string()));
        if self.record_bytes.is_some() && self.record_sizes.is_some() {
            return refuse("load: record_bytes and record_sizes exclude each other");
        }
        if self.records_per_second.is_some() && self.arrivals.is_trace() {
            return refuse("load: records_per_second and a trace exclude each other");
        }
        let workload = self.workload(false);
        let shape = &workload.tuning.shape;
        let bytes_min = workload.filler.record_bytes_min();
        if self.record_bytes.is_none() && shape.record_bytes(bytes_min).is_none() {
            return refuse("load.record_bytes: nothing else says how large records are");
        }
        workload.check()
    }

    fn workload(&self, quick: bool) -> Workload {
        let share = if quick { QUICK_SHARE } else { 1 };
        let window_ms = (self.window_ms / share).max(self.window_ms.min(QUICK_WINDOW_MS_MIN));
        let asked = Asked {
            record_bytes: self.record_bytes.unwrap_or_default(),
            sizes: self.record_sizes.as_ref(),
            keys: self.keys,
            payload: &self.filler,
            times: &self.arrivals,
        };
        let (record_bytes, filler, shape) = asked.shape();
        Workload {
            pace: self.arrivals.pace(self.records_per_second, &shape).unwrap_or(Pace::Unpaced),
            record_bytes,
            filler,
            partitions: self.partitions,
            producers: self.producers,
            batch_bytes: self.batch_bytes,
            linger_us: self.linger_us,
            consume: false,
            tails: 0,
            warmup_ms: self.warmup_ms / share,
            window_ms,
            tuning: Tuning { shape, ..Tuning::default() },
        }
    }
}

impl Plan {
    fn rounds(&self) -> u32 {
        rounds::of_file(self.file.rounds, self.conditions.quick)
    }
}

/// Runs the experiment.
///
/// # Errors
/// As [`super::overhead::run`].
pub fn run(plan: &Plan, progress: &mut dyn Progress) -> Result<RunResult, Error> {
    let file = &plan.file;
    file.check()?;
    let count = |length: usize| u32::try_from(length).unwrap_or(u32::MAX);
    let levels = count(file.factor.levels.len());
    let steps = levels * (2 + plan.rounds() * count(file.cases.len()));
    let mut bench = Bench::new(&plan.conditions, steps, progress);
    let mut running = Vec::new();
    for level in &file.factor.levels {
        bench.step(&format!("Start a broker: {}", level.name));
        running.push(Running::start(plan, level, running.len())?);
    }
    if let Some(case) = file.cases.first() {
        for level in &running {
            bench.probe(&level.path, &case.load.workload(true))?;
        }
    }
    for case in &file.cases {
        let workload = case.load.workload(plan.conditions.quick);
        let case = bench::Case { name: case.name.clone(), workload, reading: None };
        rounds::run(&mut bench, &mut running, &case, plan.rounds())?;
    }
    for case in &file.cases {
        let workload = case.load.workload(plan.conditions.quick);
        let case = bench::Case { name: case.name.clone(), workload, reading: None };
        let paths = running.iter().map(Subject::path);
        bench.profile(plan.profiler.as_ref(), paths, &case)?;
    }
    for level in running {
        level.process.stop()?;
    }
    for case in &file.cases {
        let check = course(file, case, bench.runs());
        bench.note(check);
    }
    bench.demand(objectives(file));
    let question =
        Question { question: file.question.clone(), hypothesis: file.hypothesis.clone() };
    let arms = file.factor.levels.iter().map(|level| arm(&file.factor.key, level)).collect();
    bench.finish(Experiment::File(question), arms, checks::all)
}

fn arm(key: &str, level: &Level) -> Arm {
    let description = format!("moldau broker with {key}: {}", level.value);
    Arm::of(&level.name, description)
}

/// The wished level against every other, in every case.
fn objectives(file: &ExperimentFile) -> Vec<Objective> {
    let Wish { level: wished, margin_percent } = &file.objective;
    let others = file.factor.levels.iter().filter(|level| level.name != *wished);
    let others: Vec<&Level> = others.collect();
    let mut objectives = Vec::new();
    for case in &file.cases {
        for other in &others {
            objectives.push(Objective {
                name: format!(
                    "{}, {}: {wished} against {}",
                    case.name,
                    case.figure.label(),
                    other.name
                ),
                case: case.name.clone(),
                metric: case.figure,
                arm: wished.clone(),
                bound: Bound::NotWorse {
                    baseline: other.name.clone(),
                    margin: f64::from(*margin_percent) / 100.0,
                },
            });
        }
    }
    objectives
}

/// Whether a figure went over the levels as the file expected it.
fn course(file: &ExperimentFile, case: &Case, runs: &[RunRecord]) -> Check {
    let medians: Vec<f64> = file
        .factor
        .levels
        .iter()
        .map(|level| {
            let of_level = runs.iter().filter(|run| run.case == case.name && run.arm == level.name);
            let figures: Vec<f64> = of_level.filter_map(|run| case.figure.of(run)).collect();
            median(&figures)
        })
        .collect();
    let found: Vec<String> = medians.iter().map(|value| format!("{value:.2}")).collect();
    let expected = match case.expected {
        Course::Rises => "rises",
        Course::Falls => "falls",
        Course::Flat => "is flat",
    };
    Check {
        name: format!("{}: {} over the levels", case.name, case.figure.label()),
        passed: follows(&medians, case.expected),
        weight: Weight::Note,
        found: format!("{} {}", found.join(", "), case.figure.unit().symbol()),
        demanded: format!("{expected}, as expected beforehand"),
    }
}

fn follows(values: &[f64], course: Course) -> bool {
    let (Some(first), Some(last)) = (values.first(), values.last()) else { return false };
    let rises = |from: f64, to: f64| to > from * (1.0 + FLAT_SHARE);
    let never = |step: &dyn Fn(f64, f64) -> bool| {
        values.iter().zip(values.iter().skip(1)).all(|(from, to)| !step(*from, *to))
    };
    match course {
        Course::Rises => rises(*first, *last) && never(&|from, to| rises(to, from)),
        Course::Falls => rises(*last, *first) && never(&rises),
        Course::Flat => values.iter().all(|value| !rises(*first, *value) && !rises(*value, *first)),
    }
}

fn has_twins(names: &[&str]) -> bool {
    names.iter().enumerate().any(|(at, name)| names.iter().skip(at + 1).any(|other| other == name))
}

/// A broker at one level.
struct Running {
    path: Path,
    process: Process,
}

impl Running {
    fn start(plan: &Plan, level: &Level, index: usize) -> Result<Self, Error> {
        let directory = plan.conditions.directory(&format!("level-{index}"))?;
        let [listen, admin] = free_addresses()?;
        let lines =
            format!("listeners: PLAINTEXT://{listen}\n{}: {}\n", plan.file.factor.key, level.value);
        let spec =
            moldau_broker_configured(&plan.moldau, &directory, admin, Durability::Fsync, &lines)?;
        let process = Process::start(&spec, &directory)?;
        let measured = vec![(process.role().to_string(), process.pid())];
        let admin_ports = process.admin_port().into_iter().collect();
        let path = Path { admin_ports, ..Path::to(&level.name, listen.to_string(), measured)? };
        Ok(Self { path, process })
    }
}

impl Subject for Running {
    fn path(&self) -> &Path {
        &self.path
    }

    fn check(&mut self) -> Result<(), Error> {
        self.process.check_alive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file() -> ExperimentFile {
        let text = r#"{
            "question": "q", "hypothesis": "h", "rounds": 8,
            "factor": {"key": "commit_delay_ms", "levels": [
                {"name": "natural", "value": 0}, {"name": "timer", "value": 10}]},
            "cases": [{"name": "c", "figure": "response_p50", "expected": "rises", "load": {
                "records_per_second": 100, "record_bytes": 1024, "partitions": 1, "producers": 1,
                "batch_bytes": 16384, "linger_us": 0, "warmup_ms": 400, "window_ms": 8000}}],
            "objective": {"level": "natural", "margin_percent": 5}}"#;
        serde_json::from_str(text).unwrap()
    }

    fn refused(change: impl FnOnce(&mut ExperimentFile)) -> String {
        let mut file = file();
        change(&mut file);
        file.check().unwrap_err().to_string()
    }

    #[test]
    fn a_file_that_cannot_be_measured_is_refused() {
        file().check().unwrap();
        assert!(refused(|f| drop(f.factor.levels.pop())).contains("factor.levels"));
        assert!(refused(|f| f.factor.levels[1].name = "natural".into()).contains("once"));
        assert!(refused(|f| f.cases.clear()).contains("cases"));
        assert!(refused(|f| f.objective.level = "other".into()).contains("objective.level"));
        assert!(refused(|f| f.rounds = 0).contains("rounds"));
        assert!(refused(|f| f.cases[0].load.record_bytes = Some(8)).contains("32-byte"));
        assert!(
            refused(|f| f.cases[0].load.records_per_second = None).contains("records_per_second")
        );
    }

    #[test]
    fn the_short_form_halves_rounds_and_quarters_windows() {
        let plan = |quick| Plan {
            file: file(),
            moldau: "moldau".into(),
            conditions: Conditions { quick, ..Conditions::of_tests() },
            profiler: None,
        };
        assert_eq!((plan(false).rounds(), plan(true).rounds()), (8, 4));
        let load = file().cases[0].load.clone();
        assert_eq!((load.workload(true).warmup_ms, load.workload(true).window_ms), (100, 2_000));
        let short = Load { window_ms: 600, ..load };
        assert_eq!(short.workload(true).window_ms, 600);
    }

    #[test]
    fn every_case_holds_the_wished_level_against_every_other() {
        let mut three = file();
        three.factor.levels.push(Level { name: "longer".into(), value: 50 });
        let names: Vec<String> = objectives(&three).into_iter().map(|wish| wish.name).collect();
        assert_eq!(
            names,
            ["c, publish p50: natural against timer", "c, publish p50: natural against longer"]
        );
    }

    #[test]
    fn the_trend_of_a_figure_follows_from_its_medians() {
        use Course::{Falls, Flat, Rises};
        for (values, course, expected) in [
            (&[1.0, 2.0, 4.0], Rises, true),
            (&[1.0, 4.0, 2.0], Rises, false),
            (&[1.0, 1.0, 1.05], Rises, false),
            (&[4.0, 2.0, 1.0], Falls, true),
            (&[4.0, 1.0, 2.0], Falls, false),
            (&[1.0, 1.08, 0.95], Flat, true),
            (&[1.0, 1.08, 1.2], Flat, false),
        ] {
            assert_eq!(follows(values, course), expected, "{values:?} {course:?}");
        }
        assert!(!follows(&[], Flat));
    }
}
