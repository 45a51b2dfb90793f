//! Mistakes of an operator: one clear line that names the place, and an exit code that is not 0.

use std::process::Output;

use crate::world::{Process, run};

fn problem(output: &Output) -> String {
    assert!(!output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stderr.clone()).unwrap();
    assert!(!text.contains("panicked"), "{text}");
    assert_eq!(text.lines().count(), 1, "one line: {text}");
    text
}

#[test]
fn an_unknown_key_is_refused_with_file_line_and_nearest_key() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("broker.yaml");
    std::fs::write(&file, "log.dirs: data\nlissteners: PLAINTEXT://127.0.0.1:9092\n").unwrap();
    let line = problem(&run(["broker", "--config", file.to_str().unwrap()]));
    assert!(line.contains("broker.yaml:2:1: unknown key \"lissteners\""), "{line}");
    assert!(line.contains("did you mean \"listeners\""), "{line}");
    let line = problem(&run(["config", "check", file.to_str().unwrap()]));
    assert!(line.contains("did you mean \"listeners\""), "{line}");
}

#[test]
fn wrong_type_is_refused_with_its_place() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("broker.yaml");
    std::fs::write(&file, "log.dirs: data\nnum.partitions: many\n").unwrap();
    let line = problem(&run(["broker", "--config", file.to_str().unwrap()]));
    assert!(line.contains("broker.yaml:2:17"), "{line}");
}

#[test]
fn error_names_a_port_in_use() {
    let dir = tempfile::tempdir().unwrap();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let data = dir.path().join("data");
    let line =
        problem(&run(["broker", "--listen", &address, "--data-dir", data.to_str().unwrap()]));
    assert!(line.contains(&address) && line.contains("in use"), "{line}");
}

#[test]
fn error_names_a_locked_data_directory() {
    let dir = tempfile::tempdir().unwrap();
    let _broker = Process::broker(dir.path(), &[]);
    let arguments = ["broker", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"];
    let data = ["--data-dir", dir.path().to_str().unwrap()];
    let line = problem(&run(arguments.into_iter().chain(data)));
    assert!(line.contains(dir.path().to_str().unwrap()), "{line}");
    assert!(line.contains("another process"), "{line}");
}

#[test]
fn error_names_a_data_directory_of_unknown_format() {
    let dir = tempfile::tempdir().unwrap();
    Process::broker(dir.path(), &[]).terminate();
    let meta = std::fs::read_dir(dir.path())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .find(|path| path.extension().is_some_and(|it| it == "meta"))
        .expect("a data directory has a meta file");
    let mut bytes = std::fs::read(&meta).unwrap();
    bytes.iter_mut().take(16).for_each(|byte| *byte ^= 0x55);
    std::fs::write(&meta, bytes).unwrap();
    let arguments = ["broker", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"];
    let data = ["--data-dir", dir.path().to_str().unwrap()];
    let line = problem(&run(arguments.into_iter().chain(data)));
    assert!(line.contains(meta.file_name().unwrap().to_str().unwrap()), "{line}");
}

#[test]
fn system_without_stored_records_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = dir.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    file("sink.yaml", "description: a sink\nbootstrap: 127.0.0.1:1\nkeeps_records: false\n");
    let asked = "question: q\nhypothesis: h\nsystems: [sink.yaml]\nrounds: 1\n";
    let loads = "warmup_ms: 0\nwindow_ms: 100\nscenarios: [{name: one}]\n";
    let survey = file("survey.yaml", &format!("{asked}{loads}"));
    let grid = "topics: [1], counts: [1], records: 100, record_bytes: 100, partitions: 1";
    let threads = file("threads.yaml", &format!("{asked}threads: {{{grid}}}\n"));
    let runs = dir.path().join("runs");
    for experiment in [survey, threads] {
        let line = problem(&run(["lab", "run", &experiment, "--out", runs.to_str().unwrap()]));
        assert!(line.contains("sink.yaml: its records cannot be read back"), "{line}");
    }
}

#[test]
fn sigterm_drains_and_exits_with_zero() {
    let dir = tempfile::tempdir().unwrap();
    let broker = Process::broker(dir.path(), &[]);
    assert_eq!(broker.page("/readyz"), "ready\n");
    assert_eq!(broker.page("/livez"), "ok\n");
    assert!(broker.page("/metrics").ends_with("# EOF\n"));
    assert_eq!(broker.terminate().code(), Some(0));
}
