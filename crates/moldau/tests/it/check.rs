//! Clients of a broker that is killed, and the history of what they did.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Output;
use std::time::Duration;

#[cfg(feature = "lossy-disk")]
use moldau_checker::Kind;
use moldau_checker::{Action, History, Outcome};
use moldau_client::Admin;
use moldau_lab::check::{CheckRecord, Fault};
use moldau_lab::checks::Verdict;
use moldau_lab::experiments::Silent;
use moldau_lab::experiments::check::{Plan, run};
use moldau_lab::result::{Experiment, RunResult};

use crate::traffic::{block_on, connect};
use crate::world::{Process, SYSTEM, conditions, result_of, system};

/// The file of a cluster with all that it stands on.
const CLUSTER: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../experiments/checked-systems/moldau-cluster.yaml");

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

/// A second of few clients without faults.
fn plan(directory: &Path) -> Plan {
    let (system, installations) = system();
    Plan {
        name: "moldau".into(),
        system,
        installations,
        conditions: conditions(directory),
        clients: 6,
        partitions: 1,
        length: Duration::from_secs(1),
        faults: Vec::new(),
    }
}

/// The finding of the failed check whose name has this part.
fn failed<'a>(result: &'a RunResult, part: &str) -> &'a str {
    let found = result.checks.iter().find(|check| !check.passed && check.name.contains(part));
    &found.unwrap_or_else(|| panic!("{part}: {:#?}", result.checks)).found
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
fn a_broker_under_all_faults_breaks_no_promise_and_a_planted_loss_is_found() {
    let directory = tempfile::tempdir().unwrap();
    let plan = Plan {
        clients: 8,
        partitions: 3,
        length: Duration::from_secs(40),
        faults: Fault::usual(false),
        ..plan(directory.path())
    };
    let (result, mut history) = run(&plan, &mut Silent, &mut |_, _| Ok(())).unwrap();
    let found = record(&result.experiment);
    assert_eq!(result.verdict, Verdict::Ok, "{:#?} {:#?}", result.checks, found.examples);
    assert!(found.totals.committed > 0 && found.totals.aborted > 0, "{:?}", found.totals);
    assert!(!found.struck.is_empty() && found.totals.polled > found.totals.acked, "{found:?}");
    assert!(found.totals.commits > 0 && found.overlaps().next().is_some(), "{found:?}");

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

/// A random choice of faults strikes, so that the history is kept if it shows an anomaly.
#[test]
fn a_cluster_under_all_faults_breaks_no_promise() {
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().to_str().unwrap();
    let arguments = ["lab", "check", "--system", "moldau-cluster", "--for", "35s", "--out", out];
    let output = crate::world::run(arguments.into_iter().chain(["--json"]));
    let result = result_of(&output);
    let found = record(&result.experiment);
    if result.verdict != Verdict::Ok {
        let (seed, kept) = (result.seed, directory.keep());
        panic!("seed {seed}, {}: {:#?} {:#?}", kept.display(), result.checks, found.examples);
    }
    assert!(found.totals.committed > 0 && found.totals.aborted > 0, "{:?}", found.totals);
    let of_brokers = [Fault::Kill, Fault::Stop, Fault::Cut, Fault::Clock];
    let strikes_brokers = of_brokers.map(|it| found.strikes(it));
    let strikes_services = found.struck.iter().any(|struck| struck.fault.is_of_services());
    assert!(strikes_brokers.iter().sum::<u64>() > 0 && strikes_services, "{found:?}");
    assert!(found.totals.commits > 0, "{found:?}");
}

/// A database that answers before its standby has what was committed.
#[test]
fn records_that_a_standby_did_not_have_are_lost_in_a_failover() {
    let directory = tempfile::tempdir().unwrap();
    let text = std::fs::read_to_string(CLUSTER).unwrap();
    let file = directory.path().join("cluster.yaml");
    std::fs::write(&file, text.replace("      - --synchronous\n", "")).unwrap();
    let out = directory.path().join("out");
    let [file, out] = [&file, &out].map(|path| path.to_str().unwrap());
    let arguments = ["lab", "check", "--system", file, "--for", "10s", "--faults", "failover"];
    // With this seed the standby gets nothing for some seconds.
    let more = ["--seed", "3", "--out", out, "--json"];
    let result = result_of(&crate::world::run(arguments.into_iter().chain(more)));
    let found = record(&result.experiment);
    assert_eq!(found.strikes(Fault::Failover), 1, "{found:?}");
    assert_eq!(result.verdict, Verdict::RecordsLost, "{:#?}", result.checks);
}

/// Its links would be measured, and the processor time of the laboratory with them.
#[test]
fn a_system_whose_connections_the_lab_carries_is_not_measured() {
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().to_str().unwrap();
    let output = crate::world::run(["lab", "latency", "--system", CLUSTER, "--out", out]);
    assert_eq!(output.status.code(), Some(i32::from(Verdict::Environment.exit_code())));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("go through the laboratory"), "{said}");
}

/// What a failed read lost was the history of all clients, so the fault could not be looked into.
#[test]
fn a_history_whose_partitions_cannot_be_read_at_the_end_is_kept() {
    let directory = tempfile::tempdir().unwrap();
    let data = tempfile::tempdir().unwrap();
    let broker = Process::broker(data.path(), &[]);
    let (mut system, mut installations) = system();
    (system.processes, system.bootstrap) = (Vec::new(), "${external}".into());
    installations.external = Some(broker.address.to_string());
    let plan = Plan { system, installations, ..plan(directory.path()) };
    let mut kept = Vec::new();
    let mut keep = |_: &str, history: &History| {
        kept.extend(history.operations.iter().cloned());
        let is_first = kept.len() == history.operations.len();
        if is_first {
            block_on(delete_topics(broker.address));
        }
        Ok(())
    };
    let (result, history) = run(&plan, &mut Silent, &mut keep).unwrap();
    assert_eq!(result.verdict, Verdict::Invalid, "{:#?}", result.checks);
    failed(&result, "partitions that the last client could not read");
    assert_eq!(kept, history.operations);
    let found = record(&result.experiment);
    assert!(found.totals.acked > 0 && found.report.violations() == 0, "{found:?}");
}

/// A run without any of the faults that were asked for would prove nothing of them.
#[test]
fn a_check_of_which_no_fault_is_possible_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let data = tempfile::tempdir().unwrap();
    let broker = Process::broker(data.path(), &[]);
    let (mut system, mut installations) = system();
    (system.processes, system.bootstrap) = (Vec::new(), "${external}".into());
    installations.external = Some(broker.address.to_string());
    let faults = vec![Fault::Kill, Fault::Power];
    let plan = Plan { system, installations, faults, ..plan(directory.path()) };
    let refused = run(&plan, &mut Silent, &mut |_, _| Ok(())).unwrap_err().to_string();
    assert!(refused.contains("no fault is possible: left out: the laboratory starts"), "{refused}");
}

async fn delete_topics(bootstrap: SocketAddr) {
    let cluster = connect(bootstrap).await;
    let known = cluster.all_topics().await.unwrap();
    let topics = known.topics.keys().map(ToString::to_string);
    let topics: Vec<String> = topics.filter(|name| name.starts_with("moldau-check")).collect();
    let deleted = Admin::new(&cluster).delete_topics(&topics).await.unwrap();
    assert!(matches!(deleted.as_slice(), [Ok(())]), "{deleted:?}");
}

/// A broker that starts once.
#[test]
fn a_broker_that_does_not_come_back_is_a_finding_and_its_history_is_kept() {
    let directory = tempfile::tempdir().unwrap();
    let once = r#"["sh", "-c", "mkdir ${dir}/started && exec \"$@\"", "sh", "${moldau}","#;
    let file = directory.path().join("once.yaml");
    std::fs::write(&file, SYSTEM.replace(r#"["${moldau}","#, once)).unwrap();
    let out = directory.path().join("out");
    let paths = [&file, &out].map(|path| path.to_str().unwrap());
    let [file, out] = paths;
    let arguments = ["lab", "check", "--system", file, "--faults", "kill", "--out", out, "--json"];
    let output = crate::world::run(arguments);
    assert_eq!(output.status.code(), Some(i32::from(Verdict::Invalid.exit_code())), "{output:?}");
    let result = result_of(&output);
    assert!(failed(&result, "runs again after each fault").contains("exit status: 1"));
    let kept = directory.path().join("out").join(&result.id).join("history.jsonl");
    let kept = History::read(std::io::BufReader::new(std::fs::File::open(kept).unwrap())).unwrap();
    let found = record(&result.experiment);
    assert!(!kept.operations.is_empty() && found.strikes(Fault::Kill) == 1, "{found:?}");
}

/// A broker that does not flush what it acknowledges.
#[cfg(feature = "lossy-disk")]
#[test]
fn records_that_were_not_flushed_are_lost_with_the_power() {
    let directory = tempfile::tempdir().unwrap();
    let mut plan = Plan { faults: vec![Fault::Power], ..plan(directory.path()) };
    // One loss of power in four spares everything.
    plan.length = Duration::from_secs(16);
    let command = &mut plan.system.processes.first_mut().unwrap().command;
    command.extend(["--durability", "os"].map(str::to_owned));
    let (result, _) = run(&plan, &mut Silent, &mut |_, _| Ok(())).unwrap();
    let found = record(&result.experiment);
    assert_eq!(result.verdict, Verdict::RecordsLost, "{:#?}", result.checks);
    assert!(found.strikes(Fault::Power) > 0, "{found:?}");
    // If clients had polled what was lost, other values at its offsets show the loss.
    let signs = [Kind::LostWrite, Kind::Unseen, Kind::InconsistentOffset];
    let signs = signs.map(|kind| found.report.count(kind));
    assert!(signs.iter().any(|count| *count > 0), "{found:?}");
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
