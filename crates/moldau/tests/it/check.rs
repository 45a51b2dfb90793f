//! Clients of a broker that is killed, and the history of what they did.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Output;
use std::time::Duration;

use moldau_checker::{Action, History, Outcome};
use moldau_lab::check::{CheckRecord, Fault};
use moldau_lab::checks::Verdict;
use moldau_lab::experiments::Silent;
use moldau_lab::experiments::check::{Plan, run};
use moldau_lab::result::Experiment;

use crate::world::{conditions, result_of, system};

/// How long faults strike. The pauses between them are four seconds at most.
const LENGTH: Duration = Duration::from_secs(20);

/// Checks a file by the binary.
fn check(directory: &Path, history: &History) -> Output {
    let file = directory.join("kept.jsonl");
    history.write(std::fs::File::create(&file).unwrap()).unwrap();
    check_file(directory, &file)
}

fn check_file(directory: &Path, file: &Path) -> Output {
    let out = directory.join("out");
    let (file, out) = (file.to_str().unwrap(), out.to_str().unwrap());
    crate::world::run(["lab", "check", "--history", file, "--out", out, "--json"])
}

fn record(experiment: &Experiment) -> &CheckRecord {
    let Experiment::Check(record) = experiment else { panic!("{experiment:?}") };
    record
}

/// Takes the first acknowledged record of a partition with others out of all polls.
fn lose_a_record(history: &mut History) -> u64 {
    let mut first: BTreeMap<u32, (i64, u64)> = BTreeMap::new();
    let committed = history.operations.iter().filter(|it| it.outcome == Outcome::Committed);
    for step in committed.flat_map(|operation| &operation.steps) {
        if let Action::Send { partition, value, offset: Some(offset) } = step.action {
            let known = first.entry(partition).or_insert((offset, value));
            *known = (*known).min((offset, value));
        }
    }
    let (_, (_, lost)) = first.pop_first().unwrap();
    for step in history.operations.iter_mut().flat_map(|operation| &mut operation.steps) {
        if let Action::Poll { records, .. } = &mut step.action {
            records.retain(|seen| seen.value != lost);
        }
    }
    lost
}

#[test]
fn a_killed_broker_breaks_no_promise_and_a_planted_loss_is_found() {
    let directory = tempfile::tempdir().unwrap();
    let (system, installations) = system();
    let plan = Plan {
        name: "moldau".into(),
        system,
        installations,
        conditions: conditions(directory.path()),
        clients: 8,
        partitions: 3,
        length: LENGTH,
        faults: vec![Fault::Kill, Fault::Cut, Fault::Client],
    };
    let (result, mut history) = run(&plan, &mut Silent).unwrap();
    let found = record(&result.experiment);
    assert_eq!(result.verdict, Verdict::Ok, "{:#?} {:#?}", result.checks, found.examples);
    assert!(found.totals.committed > 0 && found.totals.aborted > 0, "{:?}", found.totals);
    assert!(!found.struck.is_empty() && found.totals.polled > found.totals.acked, "{found:?}");

    let sound = check(directory.path(), &history);
    assert_eq!(sound.status.code(), Some(0), "{sound:?}");
    let again = result_of(&sound);
    let again = record(&again.experiment);
    assert_eq!((&again.report, again.totals), (&found.report, found.totals));

    let lost = lose_a_record(&mut history);
    let broken = check(directory.path(), &history);
    assert_eq!(broken.status.code(), Some(i32::from(Verdict::RecordsLost.exit_code())));
    let broken = result_of(&broken);
    let example = &record(&broken.experiment).examples[0];
    assert_eq!(example.anomaly.value, Some(lost));
}

#[test]
fn a_file_that_is_no_history_is_refused_with_its_line() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("broken.jsonl");
    let sound = r#"{"client":1,"outcome":"committed","steps":[]}"#;
    std::fs::write(&path, format!("{sound}\n{{}}\n")).unwrap();
    let output = check_file(directory.path(), &path);
    assert_eq!(output.status.code(), Some(i32::from(Verdict::Environment.exit_code())));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("broken.jsonl") && said.contains("line 2 is not an operation"), "{said}");
    let absent = check_file(directory.path(), &directory.path().join("absent.jsonl"));
    assert_eq!(absent.status.code(), Some(i32::from(Verdict::Environment.exit_code())));
}
