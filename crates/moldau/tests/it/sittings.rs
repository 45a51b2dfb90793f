//! Experiments that are interrupted: each is measured whole, loses part of what it has finished,
//! and goes on with the rest. What they measure here says nothing.

use std::path::PathBuf;
use std::time::Duration;

use moldau_lab::environment::Environment;
use moldau_lab::experiments::fronts::Front;
use moldau_lab::experiments::overhead::{self, Scope};
use moldau_lab::experiments::partitions::{self, CurvePlan, RestartPlan};
use moldau_lab::experiments::side_by_side::System;
use moldau_lab::experiments::{Conditions, Progress, ceiling, cores, threads};
use moldau_lab::result::{Experiment, RunResult};
use moldau_lab::sittings::{Manifest, Sittings};
use moldau_lab::systems::Durability;
use moldau_lab::threads::{Reading, ThreadsRecord};
use moldau_load::workload::Workload;
use tempfile::TempDir;

use crate::experiments::small_load;
use crate::partitions::creation;
use crate::world::{conditions, moldau, system};

/// Keeps what is finished.
struct Kept(Sittings);

impl Progress for Kept {
    fn step(&mut self, _done: u32, _total: u32, _what: &str) {}

    fn sittings(&mut self) -> Option<&mut Sittings> {
        Some(&mut self.0)
    }
}

/// An experiment in the directory of its sittings.
struct Sat<E> {
    experiment: E,
    _out: TempDir,
    directory: PathBuf,
    manifest: Manifest,
    /// What its first sitting finished, a line each.
    lines: Vec<String>,
    whole: RunResult,
}

impl<E: Fn(&mut dyn Progress, Conditions) -> RunResult> Sat<E> {
    /// Carries an experiment through in one sitting.
    fn whole(experiment: E) -> Self {
        let out = tempfile::tempdir().unwrap();
        let manifest = Manifest {
            format_version: 1,
            started_unix_ms: 1_000,
            program_sha256: String::new(),
            environment: Environment::default(),
            arguments: Vec::new(),
        };
        let mut kept = Kept(Sittings::begin(out.path(), &manifest, "").unwrap());
        let directory = kept.0.directory().to_owned();
        let work = tempfile::tempdir().unwrap();
        let whole = experiment(&mut kept, conditions(work.path()));
        let finished = std::fs::read_to_string(directory.join("finished.jsonl")).unwrap();
        let lines = finished.split_inclusive('\n').map(str::to_owned).collect();
        Self { experiment, _out: out, directory, manifest, lines, whole }
    }

    /// Goes on with it as if its first sitting had ended after so many lines, in the middle of one.
    fn resumed(&self, lines: usize) -> RunResult {
        let path = self.directory.join("finished.jsonl");
        let kept = self.lines[..lines].concat();
        std::fs::write(&path, format!("{kept}{}", &self.lines[lines][..9])).unwrap();
        let sittings = Sittings::resume(&self.directory, &self.manifest, "").unwrap();
        let work = tempfile::tempdir().unwrap();
        let result = (self.experiment)(&mut Kept(sittings), conditions(work.path()));
        assert!(std::fs::read_to_string(&path).unwrap().starts_with(&kept));
        assert_eq!((&result.id, result.cases()), (&self.whole.id, self.whole.cases()));
        assert!(result.audit.is_clean() && result.audit.acked > 0, "{:?}", result.audit);
        let note = result.checks.iter().find(|check| check.name.contains("resumed")).unwrap();
        assert!(note.found.starts_with(&format!("{lines} runs")), "{note:?}");
        result
    }

    /// The runs of the first lines are those of the first sitting, and those after them are others.
    fn assert_keeps_runs(&self, lines: usize, resumed: &RunResult) {
        let runs = self.lines[..lines].iter().map(|line| {
            let line: serde_json::Value = serde_json::from_str(line).unwrap();
            let finished = line.get("case").or(line.get("found")).unwrap();
            finished["runs"].as_array().unwrap().len()
        });
        let runs: usize = runs.sum();
        assert!(runs > 0 && resumed.runs[..runs] == self.whole.runs[..runs]);
        assert!(resumed.runs[runs..].iter().all(|run| !self.whole.runs.contains(run)));
    }
}

#[test]
fn resumed_overhead_keeps_cases_and_connections() {
    let sat = Sat::whole(|progress, conditions| {
        let plan = overhead::Plan {
            fronts: vec![Front::DIRECT, Front::PASSTHROUGH],
            rates: vec![1_000],
            scope: Scope::FixedRates,
            rest_ms: 0,
            first_load_ms: 20,
            warmup_ms: 20,
            window_ms: 200,
            rounds: 2,
            connections: 2,
            ..overhead::Plan::usual(moldau().into(), conditions)
        };
        overhead::run(&plan, progress).unwrap()
    });
    // Two rounds of two cases on two arms at least, and a line for the connections of each round.
    let all = sat.lines.len();
    assert!(all >= 10, "{all}");
    let resumed = sat.resumed(5);
    sat.assert_keeps_runs(5, &resumed);
    assert!(resumed.connections != sat.whole.connections);
    let resumed = sat.resumed(all - 1);
    assert!(resumed.runs == sat.whole.runs);
    let (known, others) = (&sat.whole.connections, &resumed.connections);
    assert_eq!((known.len(), others.len(), &known[0]), (2, 2, &others[0]));
    assert_ne!(known[1], others[1]);
}

#[test]
fn resumed_threads_writes_its_backlog_again() {
    let record = |result: &RunResult| -> ThreadsRecord {
        let Experiment::Threads(record) = &result.experiment else { panic!() };
        record.clone()
    };
    let file = r#"{"question": "q", "hypothesis": "h", "systems": ["moldau"], "rounds": 2,
        "threads": {"topics": [1, 2], "counts": [1, 2], "records": 200, "record_bytes": 100,
                    "partitions": 2}}"#;
    let sat = Sat::whole(|progress, conditions| {
        let (system, installations) = system();
        let plan = threads::Plan {
            file: serde_json::from_str(file).unwrap(),
            systems: vec![system],
            installations,
            conditions: Conditions { quick: false, ..conditions },
        };
        threads::run(&plan, progress).unwrap()
    });
    // A line for each of two topics, and for each place of the grid in either round.
    assert_eq!(sat.lines.len(), 2 + 2 * 4);
    let resumed = sat.resumed(5);
    let (known, others) = (record(&sat.whole).readings, record(&resumed).readings);
    assert_eq!((known.len(), others.len(), &known[..3]), (8, 8, &others[..3]));
    assert!(others[3..].iter().all(|reading| !known.contains(reading)));
    let is_whole = |it: &Reading| it.records.is_multiple_of(u64::from(it.topics) * 200);
    assert!(others.iter().all(|it| it.records > 0 && is_whole(it)));
    let mut pairs: Vec<u32> = resumed.runs.iter().map(|run| run.pair).collect();
    pairs.sort_unstable();
    assert_eq!(pairs, [0, 1, 2, 3]);
    assert!(sat.whole.runs.iter().all(|run| resumed.runs.contains(run)));
}

#[test]
fn resumed_partitions_keeps_finished_parts() {
    let sat = Sat::whole(|progress, conditions| {
        let own = System::Moldau { program: moldau().into(), durability: Durability::Os };
        let plan = partitions::Plan::usual(vec![own], conditions);
        let plan = partitions::Plan {
            curve: plan.curve.map(|curve| CurvePlan {
                partitions: vec![1, 20],
                per_second: 500,
                filling_bytes: 1_024,
                warmup_ms: 50,
                full_speed_ms: 100,
                fixed_rate_ms: 300,
                idle_ms: 50,
                ..curve
            }),
            creation: Some(creation()),
            restart: Some(RestartPlan { points: vec![(20, 1)], limit: Duration::from_mins(1) }),
            reassignment: None,
            ..plan
        };
        partitions::run(&plan, progress).unwrap()
    });
    // Two points, three ways to make partitions, and one to start again.
    assert_eq!(sat.lines.len(), 2 + 3 + 1);
    let resumed = sat.resumed(3);
    sat.assert_keeps_runs(3, &resumed);
    let [known, others] = [&sat.whole, &resumed].map(|it| it.partitions.as_ref().unwrap());
    assert_eq!((&known.curve, &known.at_once), (&others.curve, &others.at_once));
    assert_eq!(known.limits, others.limits);
    assert!(known.grown != others.grown && known.topics != others.topics);
    assert!(others.restarts.len() == 1 && known.restarts != others.restarts);
}

#[test]
fn resumed_search_replays_its_trials() {
    let sat = Sat::whole(|progress, conditions| {
        let (system, installations) = system();
        let (names, systems) = (vec!["moldau".into()], vec![system]);
        let plan = ceiling::Plan::usual(names, systems, installations, conditions);
        let workload = Workload { warmup_ms: 20, window_ms: 200, ..plan.workload };
        ceiling::run(&ceiling::Plan { workload, warmup_ms: 20, ..plan }, progress).unwrap()
    });
    let resumed = sat.resumed(5);
    sat.assert_keeps_runs(5, &resumed);
    let [known, others] = [&sat.whole, &resumed].map(|it| &it.ceiling.as_ref().unwrap().searches);
    let ([known], [others]) = (known.as_slice(), others.as_slice()) else { panic!() };
    assert_eq!(known.full_speed, others.full_speed);
    // The first line is full speed, and what is known names the rate of the next trial.
    assert_eq!(known.trials[..4], others.trials[..4]);
    assert_eq!(known.trials[4].rate, others.trials[4].rate);
}

#[test]
fn resumed_cores_keeps_its_observations() {
    let sat = Sat::whole(|progress, conditions| {
        let plan = cores::Plan::usual(moldau().into(), conditions, small_load());
        let mut cases = plan.cases[..2].to_vec();
        for case in &mut cases {
            case.per_second = case.per_second.min(500);
        }
        let fronts = vec![Front::PASSTHROUGH];
        let plan = cores::Plan { cases, fronts, rounds: 2, warmup_ms: 50, window_ms: 200, ..plan };
        cores::run(&plan, progress).unwrap()
    });
    // In each round nothing and two loads pass through the one front.
    assert_eq!(sat.lines.len(), 2 * 3);
    let resumed = sat.resumed(4);
    let [known, others] =
        [&sat.whole, &resumed].map(|it| &it.sizing.as_ref().unwrap().observations);
    assert_eq!((known.len(), others.len(), &known[..4]), (6, 6, &others[..4]));
    assert!(others[4..].iter().all(|observation| !known.contains(observation)));
}
