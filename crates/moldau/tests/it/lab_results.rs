//! A workload of the OpenMessaging Benchmark run as it is, and its results written, imported,
//! compared, laid over time and put on a page.

use std::path::{Path, PathBuf};
use std::process::Output;

use moldau_lab::omb::Document;
use moldau_lab::result::RunResult;

use crate::world::run;

const WORKLOAD: &str = "\
name: small
topics: 2
partitionsPerTopic: 3
messageSize: 100
payloadFile: payload/payload-100b.data
subscriptionsPerTopic: 1
consumerPerSubscription: 1
producersPerTopic: 1
producerRate: 200
consumerBacklogSizeGB: 0
testDurationMinutes: 1
warmupDurationMinutes: 0
";

const DRIVER: &str = "\
name: Kafka
driverClass: io.openmessaging.benchmark.driver.kafka.KafkaBenchmarkDriver
replicationFactor: 3
producerConfig: |
  acks=all
  linger.ms=1
";

fn lab(arguments: &[&str]) -> Output {
    run(["lab"].iter().chain(arguments))
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// The directory of the only result below `runs`.
fn only_result(runs: &Path) -> PathBuf {
    let entries = std::fs::read_dir(runs).unwrap().map(|entry| entry.unwrap().path());
    let mut found = entries.filter(|path| path.join("result.json").is_file());
    let result = found.next().unwrap();
    assert_eq!(found.next(), None);
    result
}

fn file(directory: &Path, name: &str, text: &str) -> String {
    let path = directory.join(name);
    std::fs::write(&path, text).unwrap();
    path.display().to_string()
}

#[test]
fn omb_workload_runs_and_its_results_are_written_and_imported() {
    let directory = tempfile::tempdir().unwrap();
    let workload = file(directory.path(), "small.yaml", WORKLOAD);
    let driver = file(directory.path(), "kafka.yaml", DRIVER);
    let runs = directory.path().join("runs");
    let out = runs.display().to_string();
    let checked = lab(&["omb", &workload, "-d", &driver, "--system", "moldau", "--check"]);
    assert!(checked.status.success(), "{}", text(&checked.stderr));
    assert!(text(&checked.stdout).starts_with("small: 200 records/s of all topics together, 100"));
    assert!(text(&checked.stderr).contains("replicationFactor 3"));

    let ran = lab(&[
        "omb", &workload, "-d", &driver, "--system", "moldau", "--quick", "--rounds", "3", "--out",
        &out,
    ]);
    // A busy machine makes the generator late, which is told by 3 and keeps every file.
    assert!(matches!(ran.status.code(), Some(0 | 3)), "{}", text(&ran.stderr));
    let result_directory = only_result(&runs);
    for name in ["result.json", "report.html", "report.md", "latency.hlog", "series.csv"] {
        assert!(result_directory.join(name).is_file(), "{name}");
    }
    let document = std::fs::read_to_string(result_directory.join("result.json")).unwrap();
    let result = RunResult::from_json(&document).unwrap();
    // Rounds are added where the generator was late.
    assert!((3..=6).contains(&result.runs.len()) && result.audit.faults() == 0);
    assert_eq!(result.runs[0].workload.tuning.topics, 2);

    let omb: Vec<String> = (1..=3)
        .map(|round| result_directory.join(format!("omb/small-moldau-{round}.json")))
        .map(|path| path.display().to_string())
        .collect();
    let written = Document::from_json(&std::fs::read_to_string(&omb[0]).unwrap()).unwrap();
    assert_eq!((written.workload.as_str(), written.topics, written.partitions), ("small", 2, 3));
    assert!(written.publish.percentiles()[0].is_some_and(|p50| p50 > 0.0));

    let imports = directory.path().join("imports");
    let into = imports.display().to_string();
    let imported = lab(&["import", &omb[0], &omb[1], &omb[2], "--out", &into]);
    assert!(imported.status.success(), "{}", text(&imported.stderr));
    let said = text(&imported.stdout);
    assert!(said.contains("Imported 3 outputs of OpenMessaging Benchmark"), "{said}");
    let imported = only_result(&imports);
    let report = std::fs::read_to_string(imported.join("report.md")).unwrap();
    assert!(report.contains("coordinated omission"), "{report}");
    let imported = imported.display().to_string();

    let compared = lab(&["compare", &imported, &imported]);
    assert!(compared.status.success(), "{}", text(&compared.stdout));
    assert!(text(&compared.stdout).contains("shown to differ in none"));
    let refused = lab(&["compare", &imported, &imported, "--cases", "a", "b"]);
    assert_eq!(refused.status.code(), Some(3), "{}", text(&refused.stdout));

    let history = lab(&["history", &into]);
    assert!(text(&history.stdout).starts_with("1 result, "), "{}", text(&history.stderr));
    assert!(imports.join("history.html").is_file());

    let page = directory.path().join("page.md").display().to_string();
    let made = lab(&["page", &imported, "--out", &page]);
    assert!(made.status.success(), "{}", text(&made.stderr));
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.contains("](imports/") && page.contains("| moldau | ["), "{page}");
}

#[test]
fn imports_of_the_same_second_get_different_names() {
    let directory = tempfile::tempdir().unwrap();
    let at = std::time::UNIX_EPOCH + std::time::Duration::from_hours(500_000);
    let printed = |name: &str, per_second: u32| {
        let line = format!(
            "20000 records sent, {per_second}.0 records/sec (0.28 MB/sec), 9.88 ms avg latency, \
             667.00 ms max latency, 6 ms 50th, 49 ms 95th, 87 ms 99th, 109 ms 99.9th.\n"
        );
        let path = file(directory.path(), name, &line);
        std::fs::File::options().append(true).open(&path).unwrap().set_modified(at).unwrap();
        path
    };
    let (one, other) = (printed("a.txt", 3_000), printed("b.txt", 4_000));
    let runs = directory.path().join("runs");
    let into = runs.display().to_string();
    for output in [&one, &other, &one] {
        let imported = lab(&["import", output, "--out", &into]);
        assert!(imported.status.success(), "{}", text(&imported.stderr));
    }
    let entries = std::fs::read_dir(&runs).unwrap().map(|entry| entry.unwrap().path());
    let mut results: Vec<String> =
        entries.map(|path| std::fs::read_to_string(path.join("result.json")).unwrap()).collect();
    results.sort_by_key(|result| result.contains("b.txt"));
    assert_eq!(results.len(), 2);
    assert!(results[0].contains("a.txt") && results[1].contains("b.txt"));
}

#[test]
fn errors_name_file_and_line_of_unusable_files() {
    let directory = tempfile::tempdir().unwrap();
    let backlog = WORKLOAD.replacen("SizeGB: 0", "SizeGB: 64", 1);
    let workload = file(directory.path(), "backlog.yaml", &backlog);
    let refused = lab(&["omb", &workload, "--check"]);
    assert_eq!(refused.status.code(), Some(4));
    let said = text(&refused.stderr);
    assert!(said.contains("backlog.yaml:10:24: consumerBacklogSizeGB: "), "{said}");
    let nothing = file(directory.path(), "notes.txt", "nothing\n");
    let refused = lab(&["import", &nothing]);
    assert_eq!(refused.status.code(), Some(4));
    assert!(text(&refused.stderr).contains("notes.txt: is no output of"));
    let refused = lab(&["compare", &nothing, &nothing]);
    assert_eq!(refused.status.code(), Some(4));
    assert!(text(&refused.stderr).contains("notes.txt"));
}
