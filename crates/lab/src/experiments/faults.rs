//! Does a failure lose acknowledged records, and how long do clients wait? Connections are cut, and
//! brokers are suspended or killed. The load is an open loop at a rate. Each fault strikes once in
//! a window.

mod page;

use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::thread;
use std::time::Duration;

use super::bench::{Bench, Named, Path};
use super::running::{Running, absence, arms, split_own};
use super::{Conditions, Progress};
use crate::checks::{self, Check, Weight};
use crate::faults::{Fault, FaultsRecord};
use crate::result::{Experiment, RunResult};
use crate::systems::{
    Installations, Process, RunningSystem, SystemFile, bare_relay, free_addresses,
};
use moldau_load::generator;
use moldau_load::ledger::audit;
use moldau_load::payload::Filler;
use moldau_load::schedule::Arrivals;
use moldau_load::workload::{Pace, Tuning, Workload};
use moldau_measure::Error;

pub use page::page;

/// Time from the start of the window to the fault.
const AFTER: Duration = Duration::from_secs(1);

/// How long a process stands still where it is stopped.
const STOP: Duration = Duration::from_secs(1);

/// What is offered beside the rate and the size of records.
const PARTITIONS: u16 = 6;
const BATCH_BYTES: usize = 16 * 1024;
const WARMUP_MS: u64 = 1_000;

/// How long a broker that is ready may take to accept a connection.
const ANSWER_MAX: Duration = Duration::from_secs(5);

/// How long each system is loaded at full speed ahead of everything.
const FULL_SPEED_MS: u64 = 5_000;

/// Everything that a run needs to know.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Names of the systems.
    pub names: Vec<String>,
    /// Their files, in the same order.
    pub systems: Vec<SystemFile>,
    /// What is there to start them from.
    pub installations: Installations,
    /// Under what conditions it is carried out.
    pub conditions: Conditions,
    /// Rounds; in each, everything strikes every system once.
    pub rounds: u32,
    /// The measured window of each run, ms: what strikes has to be over within it.
    pub window_ms: u64,
    /// Records per second.
    pub rate: u64,
    /// Size of a record's value.
    pub record_bytes: usize,
}

impl Plan {
    fn workload(&self) -> Workload {
        Workload {
            pace: Pace::Scheduled { per_second: self.rate, arrivals: Arrivals::Constant },
            record_bytes: self.record_bytes,
            filler: Filler::Text,
            partitions: PARTITIONS,
            producers: 1,
            batch_bytes: BATCH_BYTES,
            linger_us: 0,
            consume: true,
            tails: 0,
            warmup_ms: WARMUP_MS,
            window_ms: self.window_ms,
            tuning: Tuning::default(),
        }
    }
}

/// A system with a way to it that can be cut.
struct Struck {
    system: RunningSystem,
    direct: Path,
    /// What carries connections, and the way through it; absent where there are several brokers,
    /// which clients reach one by one.
    relayed: Option<(Process, Path)>,
}

/// Runs the experiment.
///
/// # Errors
/// [`Error::Plan`] where no system can be struck, [`Error::NotReady`] where one does not come back,
/// otherwise as [`super::overhead::run`].
pub fn run(plan: &Plan, progress: &mut dyn Progress) -> Result<RunResult, Error> {
    plan.workload().check()?;
    let shortest_ms = 2 * millis(AFTER + STOP);
    if plan.window_ms < shortest_ms {
        return Err(Error::Plan(format!("a window of {shortest_ms} ms at least")));
    }
    let (there, left_out) = split_own(&plan.names, &plan.systems, &plan.installations)?;
    let count = u32::try_from(there.len() * Fault::ALL.len()).unwrap_or(u32::MAX);
    let warm_ups = u32::try_from(there.len()).unwrap_or(u32::MAX);
    let mut bench = Bench::new(&plan.conditions, count * plan.rounds + 1 + warm_ups, progress);
    let mut systems = Vec::new();
    bench.step("Start");
    for (name, system) in &there {
        systems.push(Struck::start(plan, name, system)?);
    }
    let warm_up = Workload { warmup_ms: 0, window_ms: FULL_SPEED_MS, ..plan.workload() };
    for struck in &systems {
        bench.warm_up(&struck.direct, &warm_up)?;
    }
    for round in 0..plan.rounds {
        for struck in &mut systems {
            for fault in Fault::ALL {
                struck.run(plan, &mut bench, fault, round)?;
            }
        }
    }
    let uncut: Vec<String> = (systems.iter())
        .filter(|struck| struck.relayed.is_none())
        .map(|struck| struck.direct.arm.clone())
        .collect();
    for struck in systems {
        struck.system.stop()?;
    }
    left_out.iter().for_each(|left_out| bench.note(absence(left_out)));
    uncut.iter().for_each(|name| bench.note(not_cut(name)));
    let record = FaultsRecord { after_ms: millis(AFTER), stop_ms: millis(STOP), left_out };
    let mut result = bench.finish(Experiment::Faults(record), arms(&there), checks::of_limits)?;
    // Their processes are there to be struck, not to be measured.
    result.environment.shared_host = Some(true);
    Ok(result)
}

impl Struck {
    fn start(plan: &Plan, name: &str, file: &SystemFile) -> Result<Self, Error> {
        let running = Running::start(&plan.conditions, &plan.installations, name, file)?;
        let Running { path, system, directory } = running;
        // A process that is killed has no processor time of the window.
        let direct = Path { processes: Vec::new(), ..path };
        let relayed = match system.brokers() {
            1 => {
                let upstream = resolved(&direct.bootstrap)?;
                let [address] = free_addresses()?;
                let program = plan.installations.moldau.as_ref();
                let spec = bare_relay(program, address, upstream);
                let relay = Process::start(&spec, &directory)?;
                let mut path = Path::to_system(name, &system)?;
                path.bootstrap = address.to_string();
                path.clients.bootstrap_only = true;
                path.processes.clear();
                Some((relay, path))
            }
            _ => None,
        };
        Ok(Self { system, direct, relayed })
    }

    /// One run that the fault strikes in its window, on a topic of its own, every record audited.
    fn run(
        &mut self,
        plan: &Plan,
        bench: &mut Bench<'_>,
        fault: Fault,
        round: u32,
    ) -> Result<(), Error> {
        let name = self.direct.arm.clone();
        if bench.recall(fault.name(), &name, round) {
            return Ok(());
        }
        let known = bench.runs().len();
        bench.step(&format!("{name}: {}, {}", fault.name(), round + 1));
        let Self { system, direct, relayed } = self;
        let (relay, path) = match (fault, relayed) {
            (Fault::Cut, None) => return Ok(()),
            (Fault::Cut, Some((relay, path))) => (Some(relay), &*path),
            _ => (None, &*direct),
        };
        let workload = plan.workload();
        let setup = bench.setup(path, round, &workload);
        let control = &direct.control;
        control.create_topics(&setup.topics(), workload.partitions)?;
        bench.rest(workload.window())?;
        let mut targets = Some((&mut *system, relay));
        let measured = thread::scope(|scope| {
            let mut striking = None;
            // The second call is the end of the window, when the fault is over.
            let measured = generator::produce_watched(&setup, &mut || {
                if let Some((system, relay)) = targets.take() {
                    striking = Some(scope.spawn(move || strike(fault, system, relay)));
                }
            });
            let struck = striking.map(thread::ScopedJoinHandle::join);
            struck
                .unwrap_or(Ok(Ok(())))
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
            measured
        })?;
        system.wait_until_ready()?;
        let delivered = measured.delivered.as_ref().expect("the workload consumes");
        let audit = audit(&measured.sent, delivered);
        let held = control.records_held_by_all(&setup.topics(), workload.partitions)?;
        let named = Named { case: fault.name(), path, pair: round };
        bench.record(named, &workload, &measured, audit, held)?;
        bench.keep(fault.name(), &name, round, known)?;
        control.delete_topics(&setup.topics())
    }
}

/// The address of a running broker by its name or number: of those of a name, one that answers.
pub(super) fn resolved(bootstrap: &str) -> Result<SocketAddr, Error> {
    let unknown = |reason| Error::Plan(format!("{bootstrap} is no address to relay to: {reason}"));
    let mut found = bootstrap.to_socket_addrs().map_err(|error| unknown(error.to_string()))?;
    let answering = found.find(|it| TcpStream::connect_timeout(it, ANSWER_MAX).is_ok());
    answering.ok_or_else(|| unknown("no answer from there".into()))
}

/// The warning about a system whose connections could not be cut.
pub(super) fn not_cut(name: &str) -> Check {
    Check {
        name: format!("{} of {name}", Fault::Cut.name()),
        passed: false,
        weight: Weight::Note,
        found: "left out: clients reach its brokers one by one, past any relay".into(),
        demanded: "struck".into(),
    }
}

fn strike(
    fault: Fault,
    system: &mut RunningSystem,
    relay: Option<&mut Process>,
) -> Result<(), Error> {
    thread::sleep(AFTER);
    match fault {
        Fault::Nothing => Ok(()),
        Fault::Cut => relay.map_or(Ok(()), Process::kill_and_restart),
        Fault::Stopped => {
            let broker = system.broker_mut()?;
            broker.suspend()?;
            thread::sleep(STOP);
            broker.resume()
        }
        Fault::Killed => system.broker_mut()?.kill_and_restart(),
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
