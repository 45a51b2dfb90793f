//! The published system files, with the real Apache Kafka and Kroxylicious that they start.
//!
//! Both are where `cargo xtask peers` puts them.

use std::fs;
use std::path::Path;
use std::sync::Mutex;
use std::thread;

use moldau_lab::result::RunRecord;

use crate::world::{result_of, run};

/// All that is published, but `external.yaml`, which starts nothing.
fn published() -> Vec<String> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments/systems");
    let files = fs::read_dir(&directory).unwrap().map(|file| file.unwrap().path());
    let names = files.map(|file| file.file_stem().unwrap().to_str().unwrap().to_owned());
    let mut names: Vec<String> = names.filter(|name| name != "external").collect();
    names.sort();
    assert!(names.len() > 10, "{names:?}");
    names
}

/// The runs of a short load, whose other settings are `more`, on a system: a second one where the
/// generator was late in the first.
fn loaded(system: &str, more: &str) -> Vec<RunRecord> {
    let directory = tempfile::tempdir().unwrap();
    let survey = format!(
        "
question: Does it run?
hypothesis: It does.
systems: [{system}]
rounds: 1
warmup_ms: 200
window_ms: 1000
load: {{partitions: 3, records_per_second: 1000, consumers: 1{more}}}
scenarios: [{{name: short}}]
"
    );
    let file = directory.path().join("survey.yaml");
    fs::write(&file, survey).unwrap();
    let [file, runs] = [file, directory.path().join("runs")].map(|path| path.display().to_string());
    let output = run(["lab", "run", &file, "--out", &runs, "--json"]);
    let runs = result_of(&output).runs;
    assert!(!runs.is_empty(), "{system}: {}", String::from_utf8_lossy(&output.stderr));
    runs
}

/// Systems that run at a time: they wait for their starts and for windows more than they compute.
const AT_A_TIME: usize = 2;

/// Checks all systems, some at a time.
fn for_each(systems: &[String], check: impl Fn(&str) + Sync) {
    let queue = Mutex::new(systems.iter());
    let next = || queue.lock().unwrap().next();
    thread::scope(|scope| {
        for _ in 0..AT_A_TIME {
            scope.spawn(|| {
                while let Some(system) = next() {
                    check(system);
                }
            });
        }
    });
}

#[test]
fn every_published_system_stores_its_records() {
    for_each(&published(), |system| {
        for RunRecord { audit, offered, processes, .. } in loaded(system, "") {
            assert!(audit.is_clean(), "{system}: {audit:?}");
            assert_eq!((offered, audit.acked), (1_000, audit.sent), "{system}: {audit:?}");
            assert_eq!(audit.delivered, audit.sent, "{system}: {audit:?}");
            assert!(processes.len() > 1, "{system}: {processes:?}");
            assert!(processes.iter().all(|process| process.cpu_ns > 0), "{system}: {processes:?}");
        }
    });
}

#[test]
fn transactions_are_committed_and_every_record_is_read_back() {
    let systems = ["moldau", "kafka", "kafka-kroxylicious"].map(str::to_owned);
    for_each(&systems, |system| {
        for run in loaded(system, ", transaction_records: 100") {
            let audit = run.audit;
            assert!(audit.is_clean(), "{system}: {audit:?}");
            assert_eq!((audit.acked, audit.delivered), (audit.sent, audit.sent), "{system}");
            assert_eq!(run.held_records, audit.sent, "{system}");
            let made = run.transactions.unwrap();
            assert!(made.commit.summary.count > 0 && made.begin.summary.count > 0, "{system}");
        }
    });
}
