//! Loads whose records have keys, sizes of their own, and what files of the user hold.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Output;

use moldau_lab::result::RunRecord;

use crate::world::{result_of, run};

const SURVEY: &str = "
question: Does it end?
hypothesis: It does.
systems: [moldau]
rounds: 1
warmup_ms: 20
window_ms: 200
load: {partitions: 4, producers: 2}
scenarios:
  - name: keyed
    load:
      records_per_second: 2000
      keys: {zipf: {count: 100, exponent: 2}}
      record_sizes: {table: [{bytes: 100, weight: 3}, {bytes: 900, weight: 1}]}
  - name: lines
    load: {records_per_second: 500, payload: {file: events.jsonl}, arrivals: {poisson: {seed: 3}}}
  - name: cut
    load: {outstanding: 8, payload: {raw: events.jsonl}, record_bytes: 200, compression: lz4}
  - name: fetched
    load: {records_per_second: 1000, consumers: 1, fetch_min_bytes: 9000, fetch_max_wait_ms: 300}
  - name: fetched in bursts
    load:
      {records_per_second: 1000, consumers: 1, fetch_min_bytes: 9000, fetch_max_wait_ms: 300,
       arrivals: {bursts: {size: 10}}}
  - name: replayed
    load: {arrivals: {trace: {file: day.csv, speed: 2}}, consumers: 1}
";

/// Runs the survey with a trace of its own.
fn lab(directory: &Path, trace: &str) -> Output {
    let file = |name: &str| directory.join(name);
    std::fs::write(file("survey.yaml"), SURVEY).unwrap();
    std::fs::write(file("day.csv"), trace).unwrap();
    std::fs::write(file("events.jsonl"), "{\"event\":1}\n{\"event\":\"two\"}\n").unwrap();
    let [survey, runs] = ["survey.yaml", "runs"].map(|name| file(name).display().to_string());
    run(["lab", "run", &survey, "--out", &runs, "--json"])
}

#[test]
fn shaped_records_match_the_file_and_are_read_back() {
    let directory = tempfile::tempdir().unwrap();
    // A record each millisecond, in turn of 100 and of 300 bytes, of a second of long ago.
    let mut trace = String::from("time,bytes\n");
    for at in 0..1_000 {
        writeln!(trace, "1700000000.{at:03},{}", 100 + 200 * (at % 2)).unwrap();
    }
    let output = lab(directory.path(), &trace);
    let result = result_of(&output);
    let of = |case: &str| -> &RunRecord {
        let run = result.runs.iter().find(|run| run.case == case).unwrap();
        assert!(run.audit.acked > 0 && run.audit.is_clean(), "{case}: {:?}", run.audit);
        run
    };
    // The first of a hundred keys has three fifths of all.
    let keyed = of("keyed").skew.unwrap();
    assert!(keyed.largest_share() > 0.5, "{keyed:?}");
    assert!((100 * keyed.records..900 * keyed.records).contains(&keyed.value_bytes));
    assert_eq!(of("keyed").workload.record_bytes, 300);
    // 11 and 15 bytes behind a header of 32.
    let lines = of("lines").skew.unwrap();
    assert!((43 * lines.records..=47 * lines.records).contains(&lines.value_bytes));
    assert_eq!((of("cut").skew, of("cut").workload.record_bytes), (None, 200));
    // While the last records of the window may wait for others, others come: for two fetches of
    // 9 ms where they come at even distances, and otherwise as long as a fetch may wait.
    for (case, all) in [("fetched", 238), ("fetched in bursts", 520)] {
        let fetched = of(case);
        assert_eq!((fetched.offered, fetched.answered, fetched.audit.acked), (200, 200, all));
        assert_eq!(fetched.latency.as_ref().unwrap().end_to_end.summary.count, 200);
    }
    let replayed = of("replayed");
    assert_eq!((replayed.offered, replayed.answered), (400, 400));
    assert_eq!(replayed.record_bytes().round(), 200.0);
}

#[test]
fn error_names_the_line_of_a_mistake_in_a_data_file() {
    let directory = tempfile::tempdir().unwrap();
    let output = lab(directory.path(), "0\n1\nlater\n");
    assert_eq!(output.status.code(), Some(4));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("day.csv:3: \"later\" is no instant in seconds"), "{said}");
}
