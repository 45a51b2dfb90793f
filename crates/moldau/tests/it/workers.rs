//! Workers as processes of their own: a load is dealt to them, and whatever becomes of one, nobody
//! waits forever.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Stdio};

use moldau_load::generator::{Clients, Layout, Setup};
use moldau_load::ledger::audit;
use moldau_load::payload::Filler;
use moldau_load::run::RunRecord;
use moldau_load::schedule::Arrivals;
use moldau_load::workers::{Token, Workers};
use moldau_load::workload::{Pace, Tuning, Workload};
use zeroize::Zeroizing;

use crate::world::{self, moldau, result_of, run};

const TOKEN: &str = "0123456789abcdef0123456789abcdef";
const VERSION: &str = env!("CARGO_PKG_VERSION");

const SURVEY: &str = "
question: What do workers do?
hypothesis: They offer one load together.
systems: [moldau-os]
rounds: 1
warmup_ms: 100
window_ms: 500
load: {topics: 2, partitions: 3, producers: 2, payload: random, record_bytes: 200}
scenarios:
  - {name: meanwhile, load: {records_per_second: 2000, consumers: 2}}
  - {name: afterwards, load: {records_per_second: 2000}}
  - {name: full speed, load: {consumers: 1, outstanding: 64}}
";

/// A worker that runs.
struct Worker {
    child: Child,
    said: BufReader<ChildStderr>,
    name: String,
}

impl Worker {
    fn start(token_file: &Path, more: &[&str]) -> Self {
        let mut command = Command::new(moldau());
        command.args(["lab", "worker", "--listen", "127.0.0.1:0", "--token-file"]).arg(token_file);
        let child = command.args(more).stdin(Stdio::null()).stderr(Stdio::piped()).spawn();
        let mut child = child.unwrap();
        let said = BufReader::new(child.stderr.take().unwrap());
        let mut worker = Self { child, said, name: String::new() };
        let line = worker.says("listens on ");
        worker.name = line.rsplit(' ').next().unwrap().to_owned();
        worker
    }

    /// The next line with this part.
    fn says(&mut self, part: &str) -> String {
        let mut said = Vec::new();
        loop {
            let mut line = String::new();
            let read = self.said.read_line(&mut line).unwrap();
            assert!(read > 0 && !line.contains("panicked"), "no line with {part:?}: {said:?}");
            if line.contains(part) {
                return line.trim().to_owned();
            }
            said.push(line);
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // Both fail only if the process has ended already.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn token_file(directory: &Path) -> PathBuf {
    let path = directory.join("token");
    std::fs::write(&path, format!("{TOKEN}\n")).unwrap();
    path
}

fn connect(workers: &[&Worker]) -> Workers {
    let names: Vec<String> = workers.iter().map(|worker| worker.name.clone()).collect();
    let token = Token::new(Zeroizing::new(TOKEN.into())).unwrap();
    Workers::connect(&names, &token, VERSION).unwrap()
}

/// A load on a fresh topic of a broker.
pub(crate) fn setup(broker: &world::Process, topic: &str, window_ms: u64) -> Setup {
    let bootstrap = broker.address.to_string();
    let created = run(["topics", "create", topic, "--partitions", "3", "--bootstrap", &bootstrap]);
    assert!(created.status.success(), "{created:?}");
    Setup {
        bootstrap,
        clients: Clients::default(),
        topic: topic.into(),
        run: 1,
        seed: 7,
        workload: Workload {
            pace: Pace::Scheduled { per_second: 1_000, arrivals: Arrivals::Constant },
            record_bytes: 100,
            filler: Filler::Random,
            partitions: 3,
            producers: 4,
            batch_bytes: 16_384,
            linger_us: 1_000,
            consume: true,
            tails: 0,
            warmup_ms: 100,
            window_ms,
            tuning: Tuning::default(),
        },
        layout: Layout::Dense,
        first_producer: 0,
        processes: vec![("broker".into(), broker.id())],
        is_accounted: true,
    }
}

/// What every run that two workers shared must show.
fn is_shared(run: &RunRecord, names: [&str; 2]) {
    let RunRecord { audit, workers, case, .. } = run;
    assert!(audit.is_clean() && audit.acked > 0, "{case}: {audit:?}");
    assert_eq!((audit.acked, audit.sent), (run.held_records, audit.delivered), "{case}");
    let found: Vec<&str> = workers.iter().map(|worker| worker.name.as_str()).collect();
    assert_eq!(found, names);
    let produced: u64 = workers.iter().map(|worker| worker.produced_records).sum();
    assert_eq!(produced, run.produced_records, "{case}");
    for worker in workers {
        assert!(worker.produced_records > 0 && worker.usage.cpu_ns > 0, "{case}: {worker:?}");
        assert_eq!(worker.machine, 0, "{case}: both are on this machine");
        assert!(worker.clock.round_trip_ns > 0 && worker.clock.bound_ns > 0, "{case}: {worker:?}");
    }
    let generators = run.processes.iter().filter(|usage| usage.role == "generator");
    let sum: u64 = workers.iter().map(|worker| worker.usage.cpu_ns).sum();
    assert_eq!(generators.map(|usage| usage.cpu_ns).collect::<Vec<_>>(), [sum]);
    assert!(run.processes.iter().any(|usage| usage.role == "broker"));
}

#[test]
fn two_workers_share_the_loads_of_a_survey_and_every_record_is_audited() {
    let directory = tempfile::tempdir().unwrap();
    let token_file = token_file(directory.path());
    let mut workers = [["--once"]; 2].map(|more| Worker::start(&token_file, &more));
    let survey = directory.path().join("survey.yaml");
    std::fs::write(&survey, SURVEY).unwrap();
    let names = workers.each_ref().map(|worker| worker.name.clone());
    let mut command = Command::new(moldau());
    command.args(["lab", "run"]).arg(&survey).arg("--out").arg(directory.path().join("runs"));
    command.args(["--json", "--workers", &names.join(","), "--token-file"]).arg(&token_file);
    let output = command.output().unwrap();
    let words = String::from_utf8_lossy(&output.stderr);
    // A busy machine may make the figures void, and nothing else.
    assert!(matches!(output.status.code(), Some(0 | 3)), "{words}");
    let result = result_of(&output);
    let names = names.each_ref().map(String::as_str);
    assert!(result.runs.len() >= 3);
    result.runs.iter().for_each(|run| is_shared(run, names));
    let of = |case: &str| result.runs.iter().find(|run| run.case == case).unwrap();
    // The schedule of all producers has as many operations as that of one generator.
    assert_eq!((of("meanwhile").offered, of("afterwards").offered), (1_000, 1_000));
    let meanwhile = of("meanwhile");
    assert!(meanwhile.workers.iter().all(|worker| worker.consumed_records > 0));
    let latency = meanwhile.latency.as_ref().unwrap();
    assert_eq!(latency.end_to_end.summary.count, latency.response.summary.count);
    assert_eq!(of("afterwards").consumed_records, 0);
    let checks = result.checks.iter().find(|check| check.name.contains("workers' clocks"));
    assert!(checks.unwrap().found.contains(" us, "), "{checks:?}");
    for worker in &mut workers {
        worker.says("done with");
        assert!(worker.child.wait().unwrap().success(), "--once ends with the experiment");
    }
}

#[test]
fn dead_worker_ends_the_run_with_its_name() {
    let directory = tempfile::tempdir().unwrap();
    let token_file = token_file(directory.path());
    let broker = world::Process::broker(&directory.path().join("data"), &["--durability", "os"]);
    let (mut there, mut doomed) =
        (Worker::start(&token_file, &[]), Worker::start(&token_file, &[]));
    let mut workers = connect(&[&there, &doomed]);
    let (child, mut edges) = (&mut doomed.child, 0);
    // Far longer than the test: only the death can end it.
    let lost = workers.produce(&setup(&broker, "long", 600_000), &mut || {
        edges += 1;
        child.kill().unwrap();
    });
    let lost = lost.unwrap_err().to_string();
    assert!(lost.starts_with(&format!("worker {}: ", doomed.name)), "{lost}");
    assert_eq!(edges, 1, "nothing is measured any longer");
    drop(workers);
    there.says("it gave a load up");
    let mut workers = connect(&[&there]);
    let setup = setup(&broker, "short", 300);
    let measured = workers.produce(&setup, &mut || {}).unwrap();
    let found = audit(&measured.sent, measured.delivered.as_ref().unwrap());
    assert!(found.is_clean() && found.acked > 0, "{found:?}");
    assert_eq!((measured.offered, measured.sent.len()), (300, 4));
}

#[test]
fn worker_serves_the_next_coordinator_after_a_lost_one() {
    let directory = tempfile::tempdir().unwrap();
    let token_file = token_file(directory.path());
    let broker = world::Process::broker(&directory.path().join("data"), &["--durability", "os"]);
    let mut worker = Worker::start(&token_file, &[]);
    let survey = directory.path().join("survey.yaml");
    let long = SURVEY.replace("window_ms: 500", "window_ms: 600000");
    std::fs::write(&survey, long.replace("[moldau-os]", "[external]")).unwrap();
    let mut command = Command::new(moldau());
    command.args(["lab", "run"]).arg(&survey).arg("--out").arg(directory.path().join("runs"));
    command.args(["--external", &broker.address.to_string()]);
    command.args(["--workers", &worker.name, "--token-file"]).arg(&token_file);
    let mut coordinator = command.stderr(Stdio::null()).spawn().unwrap();
    worker.says("serves");
    coordinator.kill().unwrap();
    coordinator.wait().unwrap();
    worker.says("worker: coordinator");
    drop(connect(&[&worker]));
    worker.says("done with");
}

#[test]
fn wrong_worker_token_fails_before_any_run() {
    let directory = tempfile::tempdir().unwrap();
    let mut worker = Worker::start(&token_file(directory.path()), &[]);
    let other = directory.path().join("other");
    std::fs::write(&other, TOKEN.replace('0', "f")).unwrap();
    let survey = directory.path().join("survey.yaml");
    std::fs::write(&survey, SURVEY).unwrap();
    let paths = [&survey, &other].map(|path| path.to_str().unwrap().to_owned());
    let name = worker.name.clone();
    let arguments = ["lab", "run", &paths[0], "--workers", &name, "--token-file", &paths[1]];
    let output = run(arguments);
    let words = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(4), "{words}");
    assert!(words.contains(&format!("worker {name}: ")), "{words}");
    assert!(words.contains("as one does whose token is another"), "{words}");
    worker.says("does not open: its token is another");
    std::fs::write(&other, "short").unwrap();
    let output = run(arguments);
    let words = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(words.contains("fewer than 32 characters"), "{words}");
}
