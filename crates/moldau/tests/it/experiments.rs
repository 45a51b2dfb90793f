//! The laboratory's experiments with plans of seconds, against brokers that they start themselves.
//! What they measure here says nothing; that they end, lose nothing and can be told does.

use std::ffi::OsStr;
use std::net::SocketAddr;
use std::path::Path;

use moldau_lab::checks::Verdict;
use moldau_lab::experiments::file::{self, ExperimentFile};
use moldau_lab::experiments::fronts::{Front, FrontPlan};
use moldau_lab::experiments::overhead::{Planted, Scope};
use moldau_lab::experiments::{Conditions, Silent, cores, overhead, storage, threads};
use moldau_lab::page::{self, Extent};
use moldau_lab::pages::{self, save};
use moldau_lab::result::{Arm, ConnectionsRecord, RunResult};
use moldau_lab::sizing::{Load, Term};
use moldau_lab::systems::{FrontAddresses, FrontFiles};
use moldau_load::bare_disk::{Task, Work, measure};
use moldau_load::workload::Workload;
use moldau_measure::cpu::ProcessUsage;
use moldau_measure::profile::{ProfileRecord, Profiler};

use crate::world::{conditions, moldau, result_of, run, system};

/// Rebuilds all reports from the document alone, and looks for faults in the records.
fn assert_reports(result: &RunResult, parts: &[&str]) {
    let directory = tempfile::tempdir().unwrap();
    save(result, directory.path()).unwrap();
    let read = std::fs::read_to_string(directory.path().join("result.json")).unwrap();
    let read = RunResult::from_json(&read).unwrap();
    let written = std::fs::read_to_string(directory.path().join("report.md")).unwrap();
    let page = pages::page(&read).unwrap();
    let shown = page::terminal(&page, "", 200, Extent::Verbose);
    for report in [shown, written] {
        for part in parts {
            assert!(report.contains(part), "{part} in {report}");
        }
    }
    assert!(read.audit.is_clean() && read.audit.acked > 0, "{:?}", read.audit);
    assert_ne!(read.verdict, Verdict::RecordsLost);
}

/// Every arm has run through each case equally often: in so many rounds, or in more since the
/// generator was late in some on a busy machine.
fn rounds_are_whole(result: &RunResult, rounds: usize) {
    for case in result.cases() {
        let counts: Vec<usize> = result
            .arms
            .iter()
            .map(|arm| {
                result.runs.iter().filter(|run| (&*run.case, &run.arm) == (&*case, &arm.name))
            })
            .map(Iterator::count)
            .collect();
        let all = counts.first().copied().unwrap_or_default();
        assert!((rounds..=2 * rounds).contains(&all), "{case}: {counts:?}");
        assert!(counts.iter().all(|count| *count == all), "{case}: {counts:?}");
    }
}

#[test]
fn storage_experiment_completes_without_loss() {
    let directory = tempfile::tempdir().unwrap();
    let plan = storage::Plan::usual(moldau().into(), conditions(directory.path()));
    let short =
        |workload: &Workload| Workload { warmup_ms: 20, window_ms: 200, ..workload.clone() };
    let plan = storage::Plan {
        durable: short(&plan.durable),
        durable_pairs: 2,
        scan_bytes: 4 << 20,
        scan_rounds: 2,
        scanned_pairs: 1,
        fan_out: short(&plan.fan_out),
        fan_out_pairs: 1,
        ..plan
    };
    let result = storage::run(&plan, &mut Silent).unwrap();
    assert_reports(&result, &["bare loop", "disk, 16 reads", "Cold scan of", "ten consumers"]);
    let tails = result.runs.iter().filter(|run| run.workload.tails == 9);
    assert!((1..=2).contains(&tails.count()));
}

/// A plan of seconds.
fn brief(directory: &Path, fronts: Vec<Front>, scope: Scope) -> overhead::Plan {
    let plan = overhead::Plan::usual(moldau().into(), conditions(directory));
    overhead::Plan {
        fronts,
        scope,
        rates: vec![1_000],
        rest_ms: 0,
        first_load_ms: 20,
        warmup_ms: 20,
        window_ms: 200,
        full_speed_window_ms: 300,
        rounds: 1,
        connections: 2,
        ..plan
    }
}

#[test]
fn overhead_measures_every_arm_without_loss() {
    let directory = tempfile::tempdir().unwrap();
    let fronts = vec![Front::DIRECT, Front::RELAY, Front::PASSTHROUGH, Front::ENCRYPTION];
    let plan = brief(directory.path(), fronts, Scope::Whole);
    let result = overhead::run(&plan, &mut Silent).unwrap();
    let parts = ["CPU time per MB", "1000 records/s, 16 KB", "Catch up from disk"];
    assert_reports(&result, &parts);
    assert_eq!(result.arms.len(), 4);
    rounds_are_whole(&result, 1);
    for run in &result.runs {
        // A client that went around the relay would leave it at rest.
        let front = run.processes.iter().find(|usage| usage.role == "proxy");
        let has_worked = front.map(|usage| usage.cpu_ns > 0);
        assert_eq!(has_worked, (run.arm != "direct").then_some(true), "{} {}", run.case, run.arm);
        // What is read back right after has its audit there.
        let is_audited = run.case != "Produce at full speed, 128 KB batches";
        assert_eq!(run.audit.acked > 0, is_audited, "{} {}", run.case, run.arm);
        assert!(run.audit.is_clean(), "{} {}: {:?}", run.case, run.arm, run.audit);
    }
    let idle = |arm: &Arm| arm.idle.is_some_and(|idle| idle.resident_bytes > 0);
    assert_eq!(result.arms.iter().map(idle).collect::<Vec<_>>(), [false, true, true, true]);
}

/// Runs of an experiment until one is undisturbed.
const ATTEMPTS_MAX: usize = 5;

/// The verdict of an experiment with a planted fault, and what its answer says.
fn planted(fault: Planted) -> (RunResult, String) {
    let directory = tempfile::tempdir().unwrap();
    let plan = brief(directory.path(), vec![Front::DIRECT], Scope::Short);
    let plan = overhead::Plan { rates: vec![20_000], planted: Some(fault), ..plan };
    let result = overhead::run(&plan, &mut Silent).unwrap();
    let answer = pages::page(&result).unwrap().answer.join(" ");
    (result, answer)
}

#[test]
fn planted_record_loss_exits_with_2() {
    let (result, answer) = planted(Planted::Loss);
    assert_eq!((result.verdict, result.verdict.exit_code()), (Verdict::RecordsLost, 2));
    let lost: u64 = result.runs.iter().map(|run| run.audit.lost).sum();
    assert!(lost > 0 && answer.contains(" lost"), "{answer}");
    let is_planted = |case: &str| case.ends_with("records are deleted before they are read");
    let others = result.runs.iter().filter(|run| !is_planted(&run.case));
    assert!(others.map(|run| run.audit).all(|audit| audit.is_clean()));
}

#[test]
fn planted_generator_limit_exits_with_3() {
    // A generator may be late while other tests take the processors, so one run proves nothing.
    let attempts = std::iter::repeat_with(|| planted(Planted::Generator)).take(ATTEMPTS_MAX);
    let mut answers = Vec::new();
    let refused = attempts.into_iter().find_map(|(result, answer)| {
        answers.push(answer);
        (result.verdict == Verdict::Invalid).then_some(result)
    });
    let result = refused.unwrap_or_else(|| panic!("{answers:?}"));
    assert_eq!(result.verdict.exit_code(), 3);
    assert!(result.audit.is_clean());
}

/// Clients that did not do as the front demands would be refused, and values that were not masked
/// would be damaged.
#[test]
fn gateway_arms_are_measured_without_loss() {
    let directory = tempfile::tempdir().unwrap();
    let plan = brief(directory.path(), Front::GATEWAY.to_vec(), Scope::FixedRates);
    let plan = overhead::Plan { connections: 3, ..plan };
    let result = overhead::run(&plan, &mut Silent).unwrap();
    let parts = ["Compared with passthrough", "A new connection", "1000 records/s, 16 KB batches"];
    assert_reports(&result, &parts);
    rounds_are_whole(&result, 1);
    for run in &result.runs {
        assert!(run.audit.acked > 0 && run.audit.is_clean(), "{} {:?}", run.arm, run.audit);
    }
    for arm in &result.arms {
        // Over all runs: in the short window of one the proxy may have had no processor.
        let of_arm = result.runs.iter().filter(|run| run.arm == arm.name);
        let has_worked = |usage: &ProcessUsage| usage.role == "proxy" && usage.cpu_ns > 0;
        let has_worked = of_arm.flat_map(|run| &run.processes).any(has_worked);
        assert_eq!(has_worked, arm.name != "direct", "{}", arm.name);
    }
    let is_whole = |record: &ConnectionsRecord| record.connections == 3 && record.cpu_ns > 0;
    assert!(result.connections.iter().all(is_whole), "{:?}", result.connections);
    let connected = result.connections.iter().map(|record| &record.arm);
    assert!(connected.eq(result.arms.iter().skip(1).map(|arm| &arm.name)));
}

#[test]
fn every_arm_has_a_valid_configuration() {
    let directory = tempfile::tempdir().unwrap();
    let address = |port| SocketAddr::from(([127, 0, 0, 1], port));
    let plan = FrontPlan {
        moldau: moldau().into(),
        kroxylicious: None,
        work_directory: directory.path().into(),
        files: FrontFiles::make(&directory.path().join("files"), 1).unwrap(),
        upstream: address(9092),
        upstream_tls: Some(address(9093)),
        node: 0,
        broker: ("broker".into(), 1),
        broker_admin: None,
        seed: 1,
    };
    let [bootstrap, broker, admin] = [19092, 19093, 19094].map(address);
    let addresses = FrontAddresses { bootstrap, broker, admin };
    let mut checked = 0;
    for front in Front::every().filter(|front| !front.is_kroxylicious()) {
        let spec = front.spec(&plan, addresses).unwrap();
        let Some([command, _, file]) = spec.as_ref().map(|spec| &*spec.args) else { continue };
        assert_eq!(command, "proxy", "{front}");
        let output = run([OsStr::new("config"), OsStr::new("check"), file]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && said.is_empty(), "{front}: {said}");
        checked += 1;
    }
    // All of ours but the broker itself and the relay.
    assert_eq!(checked, Front::GATEWAY.len() - 1 + 1);
    let without_tls = FrontPlan { upstream_tls: None, ..plan };
    let [front] = Front::named("tls-both").try_into().unwrap();
    assert!(front.spec(&without_tls, addresses).is_err());
}

#[test]
fn experiment_file_completes_without_loss() {
    let directory = tempfile::tempdir().unwrap();
    let text = r#"{
        "question": "Does it end?", "hypothesis": "It does.", "rounds": 3,
        "factor": {"key": "commit_delay_ms", "levels": [
            {"name": "natural", "value": 0}, {"name": "timer", "value": 5}]},
        "cases": [{"name": "Slowly", "figure": "response_p50", "expected": "rises", "load": {
            "records_per_second": 2000, "record_bytes": 64, "partitions": 2, "producers": 1,
            "batch_bytes": 4096, "linger_us": 0, "warmup_ms": 20, "window_ms": 200}}],
        "objective": {"level": "natural", "margin_percent": 5}}"#;
    let plan = file::Plan {
        file: serde_json::from_str::<ExperimentFile>(text).unwrap(),
        moldau: moldau().into(),
        conditions: Conditions { quick: false, ..conditions(directory.path()) },
        profiler: Some(Profiler::new(moldau().into(), None).unwrap()),
    };
    let result = file::run(&plan, &mut Silent).unwrap();
    assert_reports(&result, &["Slowly, publish p50: natural against timer", "over the levels"]);
    rounds_are_whole(&result, 3);
    assert_profiles_exist(&result, directory.path());
}

/// A profile of each arm and case, which is found again where the result is.
fn assert_profiles_exist(result: &RunResult, directory: &Path) {
    let profiles = result.profiles.clone().unwrap();
    assert!(profiles.missing.is_empty(), "{:?}", profiles.missing);
    assert_eq!(profiles.taken.len(), result.arms.len() * result.cases().len());
    let is_ours = |it: &ProfileRecord| it.program_sha256 == profiles.moldau_sha256;
    assert!(profiles.taken.iter().all(is_ours), "{profiles:?}");
    save(result, directory).unwrap();
    let json = std::fs::read_to_string(directory.join("result.json")).unwrap();
    let mut again = RunResult::from_json(&json).unwrap().profiles.unwrap();
    assert!(again.taken.iter().all(|it| it.text.is_none()));
    again.read(directory);
    assert_eq!(again, profiles);
}

const SURVEY: &str = "
question: Does it end?
hypothesis: It does.
systems: [moldau, moldau-proxy, kafka]
rounds: 3
warmup_ms: 20
window_ms: 150
load: {record_bytes: 256, partitions: 2, batch_bytes: 4096, outstanding: 8}
scenarios:
  - name: alone
    load: {outstanding: 1, acks: leader}
  - name: together
  - name: spread
    load:
      records_per_second: 600
      topics: 3
      producers: 2
      consumers: 2
      fetch_min_bytes: 20000
      fetch_max_wait_ms: 100
factors:
  - {from: together, levels: [{compression: gzip}, {compression: zstd}]}
  - {from: together, levels: [{producers: 3}]}
claims:
  - says: Eight take more than one
    at: nowhere
    figure: produce_records
    published: 3
    holds: {at_least: 1.01}
    measured: {of: together, over: alone}
    isolated:
      - {of: 'together, producers 3', over: together}
  - says: Nothing is lost
    at: nowhere
    figure: faults
    published: 0
    holds: {at_most: 0}
    measured: {of: alone}
";

#[test]
fn survey_completes_and_leaves_out_missing_systems() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    // A system may be named by any path, whose slashes are in no directory's name.
    let system = concat!(env!("CARGO_MANIFEST_DIR"), "/../../experiments/systems/moldau.yaml");
    std::fs::copy(system, path("own.yaml")).unwrap();
    let survey = SURVEY.replace("[moldau,", &format!("[{},", path("own.yaml")));
    std::fs::write(path("survey.yaml"), survey).unwrap();
    let absent = ["--kafka-classpath", &path("absent"), "--json"];
    let asked = ["lab", "run", &path("survey.yaml"), "--out", &path("runs")];
    let output = run(asked.into_iter().chain(absent));
    let result = result_of(&output);
    let parts = ["Eight take more than one", "Nothing is lost", "Apache Kafka is not there"];
    assert_reports(&result, &parts);
    rounds_are_whole(&result, 3);
    assert_eq!((result.arms.len(), result.cases().len()), (2, 6));
    for run in &result.runs {
        assert!(run.audit.is_clean(), "{} {}: {:?}", run.case, run.arm, run.audit);
        // In the short window of one run the system may have had no processor.
        let alike = result.runs.iter().filter(|it| (&it.case, &it.arm) == (&run.case, &run.arm));
        let answers = alike.map(|it| it.latency.as_ref().unwrap().service.summary.count);
        assert!(answers.sum::<u64>() > 0, "{} {}", run.case, run.arm);
        // Words are shortened, and the batch around a value of 256 bytes is not free.
        let is_shortened = run.stored_bytes < run.audit.delivered * 256;
        let is_compressed = run.case.contains("compression");
        assert_eq!(is_shortened, is_compressed, "{} {}", run.case, run.arm);
    }
    // Both consumers read all topics; on a busy machine not always within the window.
    let spread = || result.runs.iter().filter(|run| run.case == "spread");
    assert!(spread().any(|run| run.consumed_records > run.produced_records));
    for run in spread() {
        // No topic gets the bytes of a fetch within its wait.
        let end_to_end = run.latency.as_ref().unwrap().end_to_end.summary;
        assert!(end_to_end.p50_ns > 10_000_000, "{end_to_end:?}");
        assert_eq!(run.held_records, run.audit.acked);
    }
    let front = result.runs.iter().filter(|run| run.arm == "moldau-proxy");
    let mut proxies = front.map(|run| run.processes.iter().find(|usage| usage.role == "proxy"));
    assert!(proxies.all(|usage| usage.is_some_and(|usage| usage.cpu_ns > 0)));
}

#[test]
fn survey_beyond_its_time_limit_omits_rounds() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let survey = "
question: How many rounds are there time for?
hypothesis: Far fewer than a thousand.
systems: [moldau-os]
rounds: 1000
within_s: {whole: 4, quick: 1}
warmup_ms: 0
window_ms: 100
load: {records_per_second: 100}
scenarios: [{name: short}]
";
    std::fs::write(path("survey.yaml"), survey).unwrap();
    for more in [&["--json"][..], &["--json", "--quick"]] {
        let asked = ["lab", "run", &path("survey.yaml"), "--out", &path("runs")];
        let result = result_of(&run(asked.into_iter().chain(more.iter().copied())));
        let rounds = result.runs.len();
        assert!((3..500).contains(&rounds), "{rounds}");
        rounds_are_whole(&result, rounds);
        assert_reports(&result, &["rounds that were left out"]);
    }
}

/// A load that cores are planned for.
pub(crate) fn small_load() -> Load {
    Load {
        produce_bytes_per_second: 1_048_576.0,
        record_bytes: 100,
        batch_bytes: 1_000,
        groups: 2,
        partitions: 10,
        batches_per_request: None,
        batches_per_fetch: None,
    }
}

#[test]
fn cores_counts_traffic_and_size_answers_for_another_load() {
    let directory = tempfile::tempdir().unwrap();
    let load = small_load();
    let plan = cores::Plan::usual(moldau().into(), conditions(directory.path()), load);
    let mut cases = plan.cases[..6].to_vec();
    for case in &mut cases {
        case.per_second = case.per_second.min(500);
    }
    let plan = cores::Plan { cases, rounds: 1, warmup_ms: 100, window_ms: 400, ..plan };
    let result = cores::run(&plan, &mut Silent).unwrap();
    assert_reports(&result, &["Prices", "Error on held-out cases", "passthrough", "encryption"]);
    let sizing = result.sizing.as_ref().unwrap();
    for run in sizing.observations.iter().filter(|run| run.is_loaded()) {
        assert!(run.cpu_ns > 0 && run.produced_batches <= run.produced_records, "{run:?}");
        assert_eq!(run.consumed_records > 0, run.groups > 0, "{run:?}");
        assert_eq!(run.consumed_batches > 0, run.groups > 0, "{run:?}");
        // Batches of the warm-up may be acknowledged in the window.
        assert!(run.rates().of(Term::ProducedRecords) <= 1_000.0, "{run:?}");
    }
    let single = sizing.observations.iter().filter(|run| run.case.contains("in 1 KB"));
    for run in single {
        assert!(run.produce_requests > 0 && run.produced_batches == run.produced_records);
    }

    let file = directory.path().join("result.json");
    std::fs::write(&file, result.to_json().unwrap()).unwrap();
    let size = |arguments: &[&str]| {
        let from = ["lab", "size", "--from", file.to_str().unwrap()];
        let output = run(from.iter().chain(arguments));
        let error = String::from_utf8(output.stderr).unwrap();
        (output.status.code(), String::from_utf8(output.stdout).unwrap(), error)
    };
    let (code, answer, error) = size(&["--produce", "2MB/s", "--record", "200", "--groups", "1"]);
    if code == Some(0) {
        assert!(
            answer.starts_with("2.00 MB/s of 200 B records in batches of 16.0 KiB"),
            "{answer}"
        );
    } else {
        // A machine that is too busy for such short runs fails their checks, and is told so.
        assert!(error.contains("do not hold"), "{error}");
    }
    let (code, _, error) = size(&["--produce", "2MB"]);
    assert!(code == Some(4) && error.contains("is not a rate such as 100MB/s"), "{error}");
    let (code, _, error) = size(&["--record", "1KB", "--batch", "100"]);
    assert!(code == Some(4) && error.contains("a batch holds at least one record"), "{error}");
}

#[test]
fn a_bare_loop_runs_in_its_own_process() {
    let directory = tempfile::tempdir().unwrap();
    let task = |work| Task { path: directory.path().join("bare"), file_bytes: 2 << 20, work };
    measure(moldau().as_ref(), &task(Work::Prepare)).unwrap();
    let read = measure(moldau().as_ref(), &task(Work::Read { depth: 2 })).unwrap();
    assert_eq!(read.answered, 2);
    let refused = run(["lab", "bare-disk", "{\"path\":\"x\"}"]);
    assert_eq!(refused.status.code(), Some(4));
    let help = String::from_utf8(run(["lab", "--help"]).stdout).unwrap();
    assert!(help.contains("storage") && !help.contains("bare-disk"), "{help}");
}

#[test]
fn clients_read_the_same_backlog_and_are_compared() {
    let file = r#"{"question": "q", "hypothesis": "h", "systems": ["moldau"], "rounds": 1,
        "threads": {"topics": [1], "counts": [1], "records": 200, "record_bytes": 100,
                    "partitions": 2},
        "clients": [{"name": "alone", "command": ["${moldau}", "lab", "reader", "raw"]},
                    {"name": "records", "command": ["${moldau}", "lab", "reader", "record"]},
                    {"name": "keys", "command": ["${moldau}", "lab", "reader", "key"]},
                    {"name": "rdkafka", "command": ["${stream-consumer}"]}],
        "cases": [{"name": "nothing", "topics": 2, "partitions": 3, "records": 1000, "keys": 50,
                   "threads": 2},
                  {"name": "waits", "topics": 1, "partitions": 3, "records": 100, "keys": 50,
                   "threads": 1, "handling": "wait:1000"}]}"#;
    let work = tempfile::tempdir().unwrap();
    let (system, installations) = system();
    let plan = threads::Plan {
        file: serde_json::from_str(file).unwrap(),
        systems: vec![system],
        installations,
        conditions: conditions(work.path()),
    };
    let result = threads::run(&plan, &mut Silent).unwrap();
    let record = result.threads().unwrap();
    let clients = &record.clients;
    assert_eq!(clients.names, ["alone", "records", "keys"]);
    assert_eq!(clients.readings.len(), 3 * 2);
    assert!(clients.readings.iter().all(|it| it.records > 0 && it.wall_ns > 0 && it.cpu_ns > 0));
    assert!(clients.ratio(["moldau", "nothing", "alone"], 1).is_some_and(|it| it.mean == 1.0));
    assert!(record.left_out.iter().any(|it| it.reason.contains("peers stream-consumer")));
    assert_reports(&result, &["of the first client", "keys", "wait:1000"]);
}
