//! Does a cluster keep Kafka's promises under faults? Clients send, poll, commit and abort while
//! processes are killed and stopped, connections are cut and disks fail. The history of all of them
//! is checked.

mod clients;
mod clock;
mod ending;
mod member;
mod nemesis;
mod page;
mod recorder;
mod world;

use std::fs;
use std::os::unix::fs::symlink;
use std::panic::resume_unwind;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use moldau_checker::History;
use moldau_client::{ClusterOptions, ConnectionOptions};
use moldau_disk::LossyDisk;
use tokio::runtime::Runtime;
use tokio::sync::Notify;
use tokio::task::JoinSet;

use super::faults::{not_cut, resolved};
use super::running::Running;
use super::{Conditions, Progress};
use crate::check::{CheckRecord, Fault, Source, Struck, Totals};
use crate::checks::{Check, Weight};
use crate::environment::Environment;
use crate::result::{Arm, Experiment, RunResult, result_id};
use crate::systems::{Installations, LinkEnd, Process, SystemFile, bare_relay, free_addresses};
use crate::wall_clock::unix_ms;
use clients::Role;
use clock::BrokerClocks;
use moldau_load::generator::target;
use moldau_measure::Error;
use recorder::{RECORDS_MAX, Recorder};
use world::{OPERATION_TIMEOUT, REQUEST_TIMEOUT, World};

pub use page::page;

/// How long faults strike.
pub const LENGTH: Duration = Duration::from_secs(105);

/// The same in the short form.
pub const QUICK_LENGTH: Duration = Duration::from_secs(30);

/// Fewest clients: all roles, with two members of the group.
const CLIENTS_MIN: u16 = 6;

/// Most clients: all of them are on one thread.
const CLIENTS_MAX: u16 = 64;

/// Usual number of clients.
pub const CLIENTS: u16 = 8;

/// Most partitions: each client that polls reads all of them.
const PARTITIONS_MAX: u16 = 64;

/// Usual number of partitions: few, so that transactions meet.
pub const PARTITIONS: u16 = 4;

/// Operations of all clients per second, unless the history would become too long.
const OPERATIONS_PER_SECOND: f64 = 200.0;

/// Records that an operation sends and that clients poll of it, on average.
const RECORDS_PER_OPERATION: f64 = 13.0;

/// What a disk needs that can be told to fail.
const DISK_NEEDS: &str = "such a disk needs /dev/fuse, and root or fusermount3";

/// Name of the history's file beside the result.
pub const HISTORY_FILE: &str = "history.jsonl";

/// Everything that a run needs to know.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Name of the system.
    pub name: String,
    /// Its file.
    pub system: SystemFile,
    /// What is there to start it from.
    pub installations: Installations,
    /// Under what conditions it is carried out.
    pub conditions: Conditions,
    /// Clients at a time.
    pub clients: u16,
    /// Partitions of their topic.
    pub partitions: u16,
    /// How long faults strike.
    pub length: Duration,
    /// The faults. Those that are not possible are left out, which the report says.
    pub faults: Vec<Fault>,
}

/// Keeps operations that have ended, under the id of the result: those under faults as soon as the
/// faults are over, those of the last client before the history is checked.
pub type Keep<'a> = dyn FnMut(&str, &History) -> Result<(), Error> + 'a;

/// Runs the experiment; gives the history beside the result. A system that does not come back from
/// a fault, or cannot be read at the end, is a failed check of the result.
///
/// # Errors
/// [`Error::Plan`] for numbers out of range, for an absent system and if none of the faults is
/// possible, [`Error::NotReady`] and [`Error::Ended`] for a system that does not start, those of
/// `keep`.
pub fn run(
    plan: &Plan,
    progress: &mut dyn Progress,
    keep: &mut Keep<'_>,
) -> Result<(RunResult, History), Error> {
    const STEPS: u32 = 4;
    plan.check()?;
    let (started, started_unix_ms) = (Instant::now(), unix_ms());
    let id = result_id(started_unix_ms);
    progress.step(0, STEPS, &format!("Start {}", plan.name));
    let mut scene = Scene::start(plan)?;
    let seconds = plan.length.as_secs();
    progress.step(1, STEPS, &format!("{}: {seconds} s of faults", plan.name));
    let (struck, survived) = scene.play(plan, |fault| {
        progress.step(1, STEPS, &format!("{}: {}", plan.name, fault.name()));
    });
    let mut history = scene.world.recorder.history();
    keep(&id, &history)?;
    progress.step(2, STEPS, "Read everything back");
    let mut more = std::mem::take(&mut scene.notes);
    more.push(has_survived(&survived));
    if survived.is_ok() {
        let unread = scene.read_all(plan);
        more.push(is_read_back("the last client", &unread));
        if unread.is_ok_and(|unread| unread.is_empty()) {
            more.push(is_read_back("the group", &scene.end_group()));
        }
        let mut last = scene.world.recorder.history();
        keep(&id, &last)?;
        history.operations.append(&mut last.operations);
        more.extend(scene.end());
    }
    progress.step(3, STEPS, "Check the history");
    let record = CheckRecord::of(&history, Source::System(plan.name.clone()), struck)
        .map_err(|error| Error::Document(error.to_string()))?;
    let mut checks = checks(&record);
    checks.extend(more);
    let mut result = result(record, checks, started_unix_ms, plan.environment());
    result.arms = vec![Arm::of(&plan.name, plan.system.description.trim())];
    (result.seed, result.quick) = (plan.conditions.seed, plan.conditions.quick);
    result.elapsed_ms = millis(started.elapsed());
    Ok((result, history))
}

/// The result of a history that clients of others may have written.
///
/// # Errors
/// [`Error::Document`] for a value that is sent twice.
pub fn of_history(
    history: &History,
    file: &Path,
    conditions: &Conditions,
) -> Result<RunResult, Error> {
    let (started, started_unix_ms) = (Instant::now(), unix_ms());
    let name = file.file_name().unwrap_or(file.as_os_str()).to_string_lossy().into_owned();
    let record = CheckRecord::of(history, Source::File(name), Vec::new())
        .map_err(|error| Error::Document(error.to_string()))?;
    let checks = checks(&record);
    let environment =
        Environment { binary_version: conditions.version.clone(), ..Environment::default() };
    let mut result = result(record, checks, started_unix_ms, environment);
    result.elapsed_ms = millis(started.elapsed());
    Ok(result)
}

impl Plan {
    fn check(&self) -> Result<(), Error> {
        if let Some(reason) = self.system.missing(&self.installations) {
            return Err(Error::Plan(format!("{}: {reason}", self.name)));
        }
        let ranges = [
            ("clients", CLIENTS_MIN, self.clients, CLIENTS_MAX),
            ("partitions", 1, self.partitions, PARTITIONS_MAX),
        ];
        match ranges.iter().find(|(_, min, value, max)| !(min..=max).contains(&value)) {
            Some((name, min, value, max)) => {
                Err(Error::Plan(format!("{value} {name}; {min} to {max} are possible")))
            }
            None => Ok(()),
        }
    }

    fn environment(&self) -> Environment {
        let Conditions { version, work_directory, .. } = &self.conditions;
        let is_own = !self.system.processes.is_empty();
        let shared_host = is_own.then_some(true);
        Environment { shared_host, ..Environment::inspect(version, work_directory) }
    }

    /// Mean pause of a client between operations.
    fn pause(&self) -> Duration {
        let records = f64::from(u32::try_from(RECORDS_MAX).unwrap_or(u32::MAX));
        let bound = records / RECORDS_PER_OPERATION / self.length.as_secs_f64().max(1.0);
        Duration::from_secs_f64(f64::from(self.clients) / bound.min(OPERATIONS_PER_SECOND))
    }

    /// The places whose clients make transactions.
    fn transactional_places(&self) -> Vec<usize> {
        let places = 0..usize::from(self.clients);
        let is_transactional =
            |place: &usize| matches!(Role::of(*place), Role::Transactions | Role::Exchange);
        places.filter(is_transactional).collect()
    }
}

/// A system that runs, what carries connections to it, and what clients know.
struct Scene {
    running: Running,
    relay: Option<Process>,
    /// It must outlast the system.
    disk: Option<LossyDisk>,
    clocks: Option<BrokerClocks>,
    faults: Vec<Fault>,
    notes: Vec<Check>,
    world: Arc<World>,
    runtime: Runtime,
}

impl Scene {
    fn start(plan: &Plan) -> Result<Self, Error> {
        let Conditions { seed, .. } = plan.conditions;
        let (mut faults, mut notes) = (plan.faults.clone(), Vec::new());
        if plan.system.processes.is_empty() {
            leave_out(&mut faults, &mut notes);
        }
        if !plan.system.is_on_services() {
            let reason = "the system has no database and store";
            without(&mut faults, &mut notes, Fault::is_of_services, reason);
        }
        let disk = disk(plan, &mut faults, &mut notes)?;
        let mut system = plan.system.clone();
        let clocks = clocks(plan, &mut system, &mut faults, &mut notes);
        let running = Running::start(&plan.conditions, &plan.installations, &plan.name, &system)?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(Error::machine("starting a runtime"))?;
        let connection = ConnectionOptions {
            security: running.path.clients.security.clone(),
            request_timeout: REQUEST_TIMEOUT,
            connect_timeout: REQUEST_TIMEOUT,
            ..ConnectionOptions::default()
        };
        let options = ClusterOptions {
            connection,
            operation_timeout: OPERATION_TIMEOUT,
            bootstrap_only: running.path.clients.bootstrap_only,
            ..ClusterOptions::default()
        };
        let topic = format!("moldau-check-{seed}-{}", fastrand::u32(..));
        let mut world = World {
            bootstrap: running.path.bootstrap.clone(),
            options,
            topic,
            recorder: Recorder::new(),
            ends: (0..plan.partitions).map(|_| 0.into()).collect(),
            pause: plan.pause(),
            clients_end: plan.faults.contains(&Fault::Client),
            is_over: AtomicBool::new(false),
        };
        let has_links = running.system.links(LinkEnd::Clients, None).next().is_some();
        let needs_relay = faults.contains(&Fault::Cut) && !has_links;
        let relay = match needs_relay {
            true => relay(plan, &running, &runtime, &mut world)?,
            false => None,
        };
        if relay.is_none() && needs_relay {
            notes.push(not_cut(&plan.name));
            faults.retain(|fault| *fault != Fault::Cut);
        }
        if faults.is_empty() && !plan.faults.is_empty() {
            let reasons: Vec<&str> = notes.iter().map(|note| note.found.as_str()).collect();
            return Err(Error::Plan(format!("no fault is possible: {}", reasons.join("; "))));
        }
        running.path.control.create_topic(&world.topic, plan.partitions)?;
        Ok(Self { running, relay, disk, clocks, faults, notes, world: Arc::new(world), runtime })
    }

    /// Clients and faults, until the time is up or the system does not come back, and all clients
    /// have ended.
    fn play(&mut self, plan: &Plan, tell: impl FnMut(Fault)) -> (Vec<Struck>, Result<(), Error>) {
        let mut random = fastrand::Rng::with_seed(plan.conditions.seed);
        let Self { running, relay, disk, clocks, faults, notes, world, runtime } = self;
        let mut places = JoinSet::new();
        for place in 0..usize::from(plan.clients) {
            let occupied = clients::occupy(Arc::clone(world), place, random.fork());
            places.spawn_on(occupied, runtime.handle());
        }
        let from_outside: Vec<Fault> =
            faults.iter().copied().filter(|fault| *fault != Fault::Client).collect();
        let targets = nemesis::Targets {
            system: &mut running.system,
            relay: relay.as_mut(),
            disk: disk.as_ref(),
            clocks: clocks.as_ref(),
        };
        let end = Instant::now() + plan.length;
        let is_gone = Notify::new();
        let ((mut struck, survived), ended) = thread::scope(|scope| {
            let clients = scope.spawn(|| runtime.block_on(clients::join(places, &is_gone)));
            let (struck, survived) =
                nemesis::harass(targets, &from_outside, (random, end), &world.recorder, tell);
            world.is_over.store(true, Ordering::Relaxed);
            if survived.is_err() {
                is_gone.notify_one();
            }
            let ended = clients.join();
            ((struck, survived), ended.unwrap_or_else(|panic| resume_unwind(panic)))
        });
        let at = |at_us: u64| Struck { fault: Fault::Client, from_us: at_us, to_us: at_us };
        struck.extend(ended.into_iter().map(at));
        struck.sort_by_key(|struck| struck.from_us);
        if world.recorder.is_full() {
            notes.push(is_short());
        }
        (struck, survived)
    }

    /// Ends transactions and reads everything; gives the partitions whose end was not reached.
    fn read_all(&self, plan: &Plan) -> Result<Vec<i32>, Error> {
        let places = plan.transactional_places();
        self.runtime.block_on(async {
            ending::end_transactions(&self.world, &places).await?;
            ending::read_all(&self.world).await
        })
    }

    /// Reads everything as a member of the group; gives the partitions whose end was not reached.
    fn end_group(&self) -> Result<Vec<i32>, Error> {
        self.runtime.block_on(ending::end_group(&self.world))
    }

    /// Deletes the topic and ends the system; gives a note if one of them fails.
    fn end(self) -> Option<Check> {
        let Self { running, world, disk: _disk, .. } = self;
        let deleted = running.path.control.delete_topic(&world.topic);
        deleted.and_then(|()| running.stop()).err().map(|error| Check {
            name: "removal of the topic and end of the system".into(),
            passed: false,
            weight: Weight::Note,
            found: error.to_string(),
            demanded: "no error".into(),
        })
    }
}

/// A relay that carries all connections of clients, if the cluster has one broker.
fn relay(
    plan: &Plan,
    running: &Running,
    runtime: &Runtime,
    world: &mut World,
) -> Result<Option<Process>, Error> {
    let cluster = runtime.block_on(world.connect()).map_err(target("connecting"))?;
    if cluster.metadata().brokers.len() != 1 {
        return Ok(None);
    }
    let upstream = resolved(&world.bootstrap)?;
    let [address] = free_addresses()?;
    let spec = bare_relay(plan.installations.moldau.as_ref(), address, upstream);
    let relay = Process::start(&spec, &running.directory)?;
    world.bootstrap = address.to_string();
    world.options.bootstrap_only = true;
    Ok(Some(relay))
}

/// A disk for the data of the broker, if it is to fail and can be mounted.
fn disk(
    plan: &Plan,
    faults: &mut Vec<Fault>,
    notes: &mut Vec<Check>,
) -> Result<Option<LossyDisk>, Error> {
    if !faults.iter().any(|fault| fault.is_of_disk()) {
        return Ok(None);
    }
    let Some(data) = plan.system.data_directory() else {
        let reason = "the broker keeps its data in no directory ${dir}/data";
        without(faults, notes, Fault::is_of_disk, reason);
        return Ok(None);
    };
    let place = plan.conditions.work_directory.join("disk");
    let data = plan.conditions.directory(&plan.name)?.join(data);
    let making = || Error::machine(format!("making {}", data.display()));
    fs::create_dir_all(&place).map_err(making())?;
    match LossyDisk::mount(&place, plan.conditions.seed) {
        Ok(disk) => {
            data.parent().map_or(Ok(()), fs::create_dir_all).map_err(making())?;
            symlink(&place, &data).map_err(making())?;
            Ok(Some(disk))
        }
        Err(error) => {
            let reason = format!("{DISK_NEEDS}: {error}");
            without(faults, notes, Fault::is_of_disk, &reason);
            Ok(None)
        }
    }
}

/// Clocks for the brokers, if they are to jump and can be set.
fn clocks(
    plan: &Plan,
    system: &mut SystemFile,
    faults: &mut Vec<Fault>,
    notes: &mut Vec<Check>,
) -> Option<BrokerClocks> {
    if !faults.contains(&Fault::Clock) {
        return None;
    }
    let made = BrokerClocks::give(system, &plan.conditions.work_directory);
    made.map_err(|reason| without(faults, notes, |fault| fault == Fault::Clock, &reason)).ok()
}

/// Takes out the faults of processes that the laboratory did not start.
fn leave_out(faults: &mut Vec<Fault>, notes: &mut Vec<Check>) {
    let of_process = |fault: Fault| !matches!(fault, Fault::Cut | Fault::Client);
    let reason = "the laboratory starts no process of this system";
    without(faults, notes, of_process, reason);
}

/// Takes out some faults, and notes why.
fn without(
    faults: &mut Vec<Fault>,
    notes: &mut Vec<Check>,
    are_left_out: impl Fn(Fault) -> bool,
    reason: &str,
) {
    let left_out: Vec<Fault> = faults.extract_if(.., |fault| are_left_out(*fault)).collect();
    if !left_out.is_empty() {
        let names = left_out.iter().map(|fault| fault.name()).collect::<Vec<_>>().join("; ");
        notes.push(Check {
            name: format!("faults: {names}"),
            passed: false,
            weight: Weight::Note,
            found: format!("left out: {reason}"),
            demanded: "struck".into(),
        });
    }
}

/// What a history must show, and must not.
fn checks(record: &CheckRecord) -> Vec<Check> {
    let violations = record.report.found().filter(|(kind, _)| kind.permitted().is_none());
    let found: Vec<String> =
        violations.map(|(kind, found)| format!("{} {}", found.count, kind.name())).collect();
    let is_sound = found.is_empty();
    let Totals { acked, polled, .. } = record.totals;
    vec![
        Check {
            name: "anomalies that Kafka's protocol does not permit".into(),
            passed: is_sound,
            weight: Weight::Records,
            found: if is_sound { "none".into() } else { found.join(", ") },
            demanded: "none".into(),
        },
        Check {
            name: "records that the history can be judged by".into(),
            passed: acked > 0 && polled > 0,
            weight: Weight::Validity,
            found: format!("{acked} acknowledged, {polled} polled"),
            demanded: "some of both".into(),
        },
    ]
}

/// The note about clients that ended before the faults did.
fn is_short() -> Check {
    Check {
        name: "records of the history".into(),
        passed: false,
        weight: Weight::Note,
        found: "the limit was reached, and the clients ended early".into(),
        demanded: format!("at most {RECORDS_MAX}"),
    }
}

fn has_survived(survived: &Result<(), Error>) -> Check {
    Check {
        name: "the system runs again after each fault".into(),
        passed: survived.is_ok(),
        weight: Weight::Validity,
        found: survived.as_ref().map_or_else(ToString::to_string, |()| "yes".into()),
        demanded: "yes".into(),
    }
}

fn is_read_back(reader: &str, unread: &Result<Vec<i32>, Error>) -> Check {
    let found = match unread {
        Ok(unread) if unread.is_empty() => "none".into(),
        Ok(unread) => unread.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "),
        Err(error) => error.to_string(),
    };
    Check {
        name: format!("partitions that {reader} could not read to their end"),
        passed: unread.as_ref().is_ok_and(Vec::is_empty),
        weight: Weight::Validity,
        found,
        demanded: "none".into(),
    }
}

fn result(
    record: CheckRecord,
    checks: Vec<Check>,
    started_unix_ms: u64,
    environment: Environment,
) -> RunResult {
    RunResult::bare(Experiment::Check(record), started_unix_ms, environment, checks)
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
