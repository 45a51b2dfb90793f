//! Starts the paths and puts every load through each of them, round by round.

use std::thread;
use std::time::Duration;

use super::plan::{Plan, Planted};
use crate::checks::{self, Check, Weight};
use crate::experiments::Progress;
use crate::experiments::bench::{Bench, Case, Path};
use crate::experiments::connecting;
use crate::experiments::fronts::{Front, FrontPlan, RunningFront};
use crate::experiments::rounds::{self, Subject};
use crate::result::{Arm, Experiment, RunResult};
use crate::systems::{Durability, FrontFiles, Process, free_addresses, moldau_broker_configured};
use moldau_load::generator::Setup;
use moldau_load::schedule::Arrivals;
use moldau_load::workload::{Codec, Pace, Tuning, Workload};
use moldau_measure::Error;

/// Warm-up and window of the run during which the broker stops, ms.
const STALLED_MS: (u64, u64) = (1_000, 5_000);

/// The broker's cache holds what is written before catching up from memory, with what encryption
/// adds, and a small part of what is written at full speed.
const TAIL_CACHE_MIB: u32 = 640;

/// 1 GB/s, compressed by gzip: no thread can do that.
const IMPOSSIBLE_PER_SECOND: u64 = 1 << 20;

/// Runs the experiment.
///
/// # Errors
/// [`Error::Plan`] for an impossible plan; otherwise when a system does not start, ends early or
/// fails. A run whose figures do not hold is a verdict of the result, not an error.
pub fn run(plan: &Plan, progress: &mut dyn Progress) -> Result<RunResult, Error> {
    plan.check()?;
    let mut bench = Bench::new(&plan.conditions, plan.steps(), progress);
    bench.step("Start the broker and what stands before it");
    let (mut broker, mut fronts) = start(plan)?;
    thread::sleep(Duration::from_millis(plan.rest_ms));
    let arms: Vec<Arm> = fronts.iter().map(|front| arm(front, plan.durability)).collect();
    let cases = plan.cases();
    let first_load = Workload { window_ms: plan.first_load_ms, warmup_ms: 0, ..plan.shape(16) };
    for front in &fronts {
        bench.probe(front.path(), &first_load)?;
    }
    if let (Some(planted), Some(case), Some(front)) = (plan.planted, cases.first(), fronts.first())
    {
        plant(planted, &mut bench, case, front.path(), &broker)?;
    }
    for case in &cases {
        rounds::run(&mut bench, &mut fronts, case, plan.rounds)?;
        broker.check_alive()?;
    }
    let mut connections = Vec::new();
    for round in 0..plan.rounds {
        let what = format!("Open connections, {}", round + 1);
        bench.step(&what);
        let opened =
            bench.once(&what, |_| connecting::measure(&fronts, round, plan.connections))?;
        connections.extend(opened);
    }
    for case in &cases {
        let paths = fronts.iter().map(Subject::path);
        bench.profile(plan.profiler.as_ref(), paths, case)?;
    }
    fronts.into_iter().try_for_each(RunningFront::stop)?;
    broker.stop()?;
    for check in omitted(plan) {
        bench.note(check);
    }
    let result = bench.finish(Experiment::Overhead, arms, checks::of_arms)?;
    Ok(RunResult { connections, ..result })
}

fn start(plan: &Plan) -> Result<(Process, Vec<RunningFront>), Error> {
    let directory = &plan.conditions.work_directory;
    let files = FrontFiles::make(&directory.join("files"), plan.conditions.seed)?;
    let [listen, listen_tls, admin] = free_addresses()?;
    let path = files.directory().display();
    let lines = format!(
        "tail_cache_mib: {TAIL_CACHE_MIB}\n\
         listeners:\n\
         \x20 - {{name: PLAIN, address: '{listen}'}}\n\
         \x20 - name: TLS\n\
         \x20   address: {listen_tls}\n\
         \x20   tls: {{certificate_file: '{path}/server.pem', key_file: '{path}/server.key'}}\n"
    );
    let durability = plan.durability;
    let spec = moldau_broker_configured(&plan.moldau, directory, admin, durability, &lines)?;
    let broker = Process::start(&spec, directory)?;
    let from = FrontPlan {
        moldau: plan.moldau.clone(),
        kroxylicious: plan.kroxylicious.clone(),
        work_directory: directory.clone(),
        files,
        upstream: listen,
        upstream_tls: Some(listen_tls),
        node: 0,
        broker: (broker.role().to_string(), broker.pid()),
        broker_admin: broker.admin_port(),
        seed: plan.conditions.seed,
    };
    let fronts = plan.present().map(|front| front.start(&from)).collect::<Result<_, _>>()?;
    Ok((broker, fronts))
}

fn arm(front: &RunningFront, durability: Durability) -> Arm {
    let mut arm = front.arm();
    if arm.name == Front::DIRECT.name() {
        arm.description += match durability {
            Durability::Fsync => ", acknowledged after the flush to the disk",
            Durability::Os => ", acknowledged once the operating system has it",
        };
        arm.description += &format!(", with {TAIL_CACHE_MIB} MiB of the newest data in memory");
    }
    arm
}

/// A note for each front that was wished for and could not be started.
fn omitted(plan: &Plan) -> impl Iterator<Item = Check> {
    let is_absent = |front: &&Front| front.is_kroxylicious() && plan.kroxylicious.is_none();
    plan.fronts.iter().filter(is_absent).map(|front| Check {
        name: format!("arm {front}"),
        passed: false,
        weight: Weight::Note,
        found: "left out, Kroxylicious is not there".into(),
        demanded: "cargo xtask peers".into(),
    })
}

/// One run of a case on the first path, with a fault.
fn plant(
    planted: Planted,
    bench: &mut Bench<'_>,
    case: &Case,
    path: &Path,
    broker: &Process,
) -> Result<(), Error> {
    let run = |bench: &mut Bench<'_>, path: &Path, what: &str, workload: Workload| {
        let name = format!("{}, {what}", case.name);
        bench.run_case(path, &Case { name, workload, reading: None }, 0)
    };
    match planted {
        Planted::Stall { after, length } => {
            let (warmup_ms, window_ms) = STALLED_MS;
            let workload = Workload { warmup_ms, window_ms, ..case.workload.clone() };
            let what = "the broker stops meanwhile";
            with_stall(broker, after, length, || run(bench, path, what, workload))
        }
        Planted::Loss => {
            let name = format!("{}, records are deleted before they are read", case.name);
            let workload = Workload { consume: false, ..case.workload.clone() };
            let delete = |setup: &Setup| {
                let topics = setup.topics();
                let delete = |it: &String| path.control.delete_older_half(it, workload.partitions);
                topics.iter().try_for_each(delete)
            };
            let (setup, _) = bench.produce_and_audit_after(path, &name, 0, &workload, delete)?;
            path.control.delete_topics(&setup.topics())
        }
        Planted::Generator => {
            let pace =
                Pace::Scheduled { per_second: IMPOSSIBLE_PER_SECOND, arrivals: Arrivals::Constant };
            let tuning = Tuning { compression: Codec::Gzip, ..case.workload.tuning.clone() };
            let workload = Workload { pace, tuning, ..case.workload.clone() };
            run(bench, path, "more than the generator can offer", workload)
        }
    }
}

/// Does `work` while the broker stands still for a moment.
fn with_stall(
    broker: &Process,
    after: Duration,
    length: Duration,
    work: impl FnOnce() -> Result<(), Error>,
) -> Result<(), Error> {
    thread::scope(|scope| {
        let stalling = scope.spawn(move || {
            thread::sleep(after);
            broker.suspend()?;
            thread::sleep(length);
            broker.resume()
        });
        let worked = work();
        let stalled = stalling.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        worked.and(stalled)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiments::Conditions;
    use crate::systems::Kroxylicious;

    fn plan() -> Plan {
        Plan::usual("moldau".into(), Conditions::of_tests())
    }

    #[test]
    fn missing_fronts_are_left_out_with_a_warning() {
        let all = Plan { fronts: Front::PEERS.to_vec(), ..plan() };
        assert_eq!(all.present().collect::<Vec<_>>(), Front::PEERS[..4]);
        let said: Vec<Check> = omitted(&all).collect();
        assert_eq!(said.len(), 2);
        assert!(said.iter().all(|check| !check.passed && check.weight == Weight::Note));
        assert!(said[1].name.contains("kroxylicious-encryption"));
        let there = Kroxylicious { java: "java".into(), directory: "there".into() };
        let all = Plan { kroxylicious: Some(there), ..all };
        assert_eq!(all.present().collect::<Vec<_>>(), Front::PEERS);
        assert_eq!(omitted(&all).count(), 0);
    }
}
