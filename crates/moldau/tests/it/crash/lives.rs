//! The lives of one broker: each begins with recovery, and a `kill -9` ends it.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use moldau_client::{Cluster, OffsetSpec};
use tempfile::TempDir;
use tokio::sync::watch;
use tokio::time::Instant;

use super::account::{Account, Plan, Problems, Writer};
use super::audit::{Reader, check_logs, offsets};
use super::changes::{Changes, Passers, commit_until, create, delete_records_until};
use super::{COMPACTED, Way};
use crate::traffic::{connect, soon};
use crate::world::{Process, broker_command, free_port, metric_of};

/// Longest time that the broker is left alone once it has acknowledged something.
const LIFETIME_MAX: Duration = Duration::from_millis(600);

/// Longest time that a broker is left alone that is killed while it starts.
const START_MAX: Duration = Duration::from_millis(80);

/// Steps of a disk within which a broker is killed that is up.
const STEPS_MAX: u64 = 400;

/// Steps of a disk within which a broker is killed that starts.
const START_STEPS_MAX: u64 = 40;

/// Longest time between a look at the metrics and a kill.
const LOOK_MAX: Duration = Duration::from_millis(30);

/// Stamp of the first topic that comes and goes, above those of the others.
const STAMP_PASSING: u32 = 1 << 20;

/// What must have happened: without it the kills prove nothing of it.
const COUNTERS: [&str; 6] = [
    "moldau_segments_written_total",
    "moldau_segments_removed_total",
    "moldau_checkpoints_total",
    "moldau_journal_files_retired_total",
    "moldau_compacted_logs_total",
    "moldau_compacted_records_total",
];

/// Journal files are small and looks at old records frequent, so that sorting, merging,
/// checkpoints, cleaning and the return of space are always under way. Sorting leaves alone what
/// the tail cache holds.
const CONFIG: &str = "journal_file_mib: 1\ntail_cache_mib: 1\ndisk_reserve_mib: 1\n\
                      log.retention.check.interval.ms: 25\nlog.cleaner.backoff.ms: 25\n";

/// What happened.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) kills: u32,
    /// Kills of a broker that may not have been up.
    pub(super) kills_at_start: u32,
    /// Files that were being written at a kill.
    pub(super) unfinished_files: usize,
    pub(super) acknowledged: i64,
    /// Records that were there in the end.
    pub(super) found: i64,
    pub(super) topics_deleted: u64,
    pub(super) records_deleted: u64,
    /// Offsets that retention left behind.
    pub(super) retained_from: i64,
    counters: BTreeMap<&'static str, f64>,
    pub(super) problems: Vec<String>,
}

impl Tally {
    fn look(&mut self, page: &str) {
        for name in COUNTERS {
            *self.counters.entry(name).or_default() += metric_of(page, name);
        }
    }

    pub(super) fn add(&mut self, other: Tally) {
        self.kills += other.kills;
        self.kills_at_start += other.kills_at_start;
        self.unfinished_files += other.unfinished_files;
        self.acknowledged += other.acknowledged;
        self.found += other.found;
        self.topics_deleted += other.topics_deleted;
        self.records_deleted += other.records_deleted;
        self.retained_from += other.retained_from;
        for (name, more) in other.counters {
            *self.counters.entry(name).or_default() += more;
        }
        self.problems.extend(other.problems);
    }

    /// What was meant to happen and did not.
    pub(super) fn missing(&self) -> Vec<&'static str> {
        let is_zero = |name: &&str| self.counters.get(name).is_none_or(|sum| *sum == 0.0);
        let mut missing: Vec<_> = COUNTERS.into_iter().filter(is_zero).collect();
        missing.extend((self.topics_deleted == 0).then_some("deletion of a topic"));
        missing.extend((self.records_deleted == 0).then_some("deletion of records"));
        missing.extend((self.retained_from == 0).then_some("retention"));
        missing
    }
}

/// Where the data lies, and what an end of the broker means for it.
pub(super) trait Ground: Send + Sync {
    /// The data directory, which the broker makes.
    fn data_dir(&self) -> PathBuf;

    /// Kills a process before the step of the disk that follows so many; `false` if it cannot.
    fn kill_at_step(&self, process: u32, step: u64) -> bool;

    /// Loses what was not synced.
    fn lose_power(&self);
}

/// A directory of this machine, whose power stays: all that was written is kept.
impl Ground for TempDir {
    fn data_dir(&self) -> PathBuf {
        self.path().join("data")
    }

    fn kill_at_step(&self, _process: u32, _step: u64) -> bool {
        false
    }

    fn lose_power(&self) {}
}

#[cfg(feature = "lossy-disk")]
impl Ground for moldau_disk::LossyDisk {
    fn data_dir(&self) -> PathBuf {
        self.place().join("data")
    }

    fn kill_at_step(&self, process: u32, step: u64) -> bool {
        let process = i32::try_from(process).ok().and_then(rustix::process::Pid::from_raw);
        self.kill_at_step(process.expect("a process id"), step);
        true
    }

    fn lose_power(&self) {
        self.lose_power();
    }
}

/// A data directory and the address of its brokers.
struct Host<'a> {
    ground: &'a dyn Ground,
    /// For files that are not data.
    dir: TempDir,
    listen: SocketAddr,
}

impl<'a> Host<'a> {
    fn new(ground: &'a dyn Ground) -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("broker.yaml"), CONFIG).unwrap();
        Self { ground, dir, listen: SocketAddr::from(([127, 0, 0, 1], free_port())) }
    }

    fn command(&self) -> std::process::Command {
        let mut command = broker_command(self.listen, &self.ground.data_dir());
        command.arg("--config").arg(self.dir.path().join("broker.yaml"));
        command
    }

    /// Starts the broker while all tasks go on.
    async fn start(&self) -> Process {
        let command = self.command();
        tokio::task::spawn_blocking(|| Process::start(command)).await.unwrap()
    }

    /// A kill that may meet recovery, the first appends, or anything between.
    async fn kill_while_it_starts(&self, random: &mut fastrand::Rng) {
        let mut command = self.command();
        let mut child = command.stderr(Stdio::null()).spawn().expect("the binary can be run");
        self.ground.kill_at_step(child.id(), random.u64(0..START_STEPS_MAX));
        moment(random, START_MAX).await;
        child.kill().expect("the child is ours");
        child.wait().expect("the child is ours");
        self.ground.lose_power();
    }

    /// A kill while everything is under way.
    async fn kill(&self, broker: Process, random: &mut fastrand::Rng) {
        if self.ground.kill_at_step(broker.id(), random.u64(0..STEPS_MAX)) {
            let death = tokio::task::spawn_blocking(|| broker.killed());
            soon("the step of the kill", death).await.unwrap();
        } else {
            broker.kill();
        }
        self.ground.lose_power();
    }

    /// Files whose writing was not finished.
    fn unfinished_files(&self) -> usize {
        let data = self.ground.data_dir();
        let dirs = [data.join("journal"), data.join("segments"), data];
        // What was not synced may be gone.
        let files = dirs.iter().filter_map(|dir| std::fs::read_dir(dir).ok()).flatten();
        files.filter(|file| is_unfinished(&file.as_ref().unwrap().path())).count()
    }
}

fn is_unfinished(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "tmp")
}

/// Lets a random time pass.
pub(super) async fn moment(random: &mut fastrand::Rng, longest: Duration) {
    let at = Instant::now() + longest.mul_f64(random.f64());
    tokio::time::interval_at(at, longest).tick().await;
}

/// The topics that stay, and how their records leave.
fn plans() -> [Plan; 6] {
    let plan = |topic: &str, partitions, value_bytes, runs_per_tick| Plan {
        topic: topic.to_owned(),
        partitions,
        configs: Vec::new(),
        deletes: false,
        compacts: false,
        value_bytes,
        runs_per_tick,
    };
    let deleting = |configs: &[(&'static str, &'static str)], plan: Plan| Plan {
        configs: [configs, &plan.configs].concat(),
        deletes: true,
        ..plan
    };
    let compacted = |plan: Plan| Plan { configs: COMPACTED.to_vec(), compacts: true, ..plan };
    let mut windowed = compacted(plan("windowed", 3, 20..600, 1));
    windowed.configs[0].1 = "compact,delete";
    [
        plan("wide", 1000, 20..300, 8),
        deleting(&[("retention.bytes", "200000")], plan("large", 4, 1000..8000, 1)),
        deleting(&[("retention.ms", "300")], plan("aged", 4, 100..1000, 1)),
        deleting(&[], plan("trimmed", 4, 100..1000, 1)),
        compacted(plan("table", 6, 20..300, 1)),
        deleting(&[("retention.bytes", "20000")], windowed),
    ]
}

/// Everything that goes on while brokers come and go.
struct Work {
    accounts: Vec<Arc<Account>>,
    changes: Arc<Changes>,
    problems: Problems,
    stop: watch::Sender<bool>,
    tasks: Vec<tokio::task::JoinHandle<()>>,
    passing: tokio::task::JoinHandle<Vec<Arc<Account>>>,
}

impl Work {
    async fn start(
        cluster: &Cluster,
        address: SocketAddr,
        progress: &watch::Sender<u64>,
        random: &mut fastrand::Rng,
    ) -> Self {
        let (problems, changes) = (Problems::default(), Arc::new(Changes::default()));
        let (stop, stopped) = watch::channel(false);
        let (mut accounts, mut tasks, mut stamp) = (Vec::new(), Vec::new(), 0);
        for plan in plans() {
            create(cluster, &plan).await;
            changes.note_created(cluster, &plan.topic).await;
            let account = Account::new(plan, stamp, &problems);
            stamp += u32::try_from(account.plan.partitions).unwrap();
            let writer = Writer::start(cluster, &account, progress, random.fork()).await;
            tasks.push(tokio::spawn(writer.send_until(stopped.clone())));
            accounts.push(account);
        }
        let reader = Reader::start(cluster, &accounts).await;
        tasks.push(tokio::spawn(reader.read_until(stopped.clone())));
        let of = |topic: &str| {
            let found = accounts.iter().find(|account| account.plan.topic == topic);
            Arc::clone(found.expect("one of the plans"))
        };
        tasks.push(tokio::spawn(delete_records_until(
            cluster.clone(),
            of("trimmed"),
            Arc::clone(&changes),
            random.fork(),
            stopped.clone(),
        )));
        tasks.push(tokio::spawn(commit_until(
            cluster.clone(),
            of("table"),
            Arc::clone(&changes),
            stopped.clone(),
        )));
        let passers = Passers {
            broker: address,
            changes: Arc::clone(&changes),
            problems: problems.clone(),
            progress: progress.clone(),
            random: random.fork(),
            stamp: STAMP_PASSING,
        };
        let passing = tokio::spawn(passers.pass_until(stopped));
        Self { accounts, changes, problems, stop, tasks, passing }
    }

    /// What must hold as soon as a broker is back.
    async fn check(&self, cluster: &Cluster) {
        check_logs(cluster, &self.accounts).await;
        self.changes.check(cluster, &self.problems).await;
    }

    /// Ends when all that was sent is acknowledged; all topics that are left.
    async fn end(&mut self) -> Vec<Arc<Account>> {
        self.stop.send(true).unwrap();
        for task in std::mem::take(&mut self.tasks) {
            soon("the last acknowledgement", task).await.unwrap();
        }
        let passing = soon("the last topic", &mut self.passing).await.unwrap();
        self.accounts.iter().cloned().chain(passing).collect()
    }
}

/// Kills the brokers of a data directory so many times while all the work goes on, and looks at
/// everything after the last.
pub(super) async fn live(
    random: &mut fastrand::Rng,
    ground: &dyn Ground,
    way: Way,
    kills: u32,
) -> Tally {
    let host = Host::new(ground);
    let mut tally = Tally::default();
    let mut broker = host.start().await;
    let proxy = (way == Way::Proxy).then(|| Process::proxy(host.dir.path(), host.listen));
    let address = proxy.as_ref().map_or(host.listen, |proxy| proxy.address);
    let cluster = connect(address).await;
    let (progress, mut acknowledged) = watch::channel(0);
    let mut work = Work::start(&cluster, address, &progress, random).await;
    while tally.kills + 1 < kills {
        let seen = *acknowledged.borrow();
        let more = acknowledged.wait_for(|count| *count > seen);
        soon("an acknowledgement", more).await.unwrap();
        moment(random, LIFETIME_MAX).await;
        if random.bool() {
            broker = look(&mut tally, broker).await;
            moment(random, LOOK_MAX).await;
        }
        host.kill(broker, random).await;
        tally.kills += 1;
        tally.unfinished_files += host.unfinished_files();
        while tally.kills + 1 < kills && random.u8(0..3) == 0 {
            host.kill_while_it_starts(random).await;
            tally.kills += 1;
            tally.kills_at_start += 1;
            tally.unfinished_files += host.unfinished_files();
        }
        broker = host.start().await;
        work.check(&cluster).await;
    }
    let accounts = work.end().await;
    look(&mut tally, broker).await.kill();
    ground.lose_power();
    tally.kills += 1;
    let _broker = host.start().await;
    work.check(&cluster).await;
    let cluster = connect(address).await;
    tally.found = Reader::start(&cluster, &accounts).await.read_all().await;
    tally.retained_from = retained_from(&cluster, &accounts).await;
    tally.acknowledged = i64::try_from(*acknowledged.borrow()).unwrap();
    (tally.topics_deleted, tally.records_deleted) = work.changes.counts();
    tally.problems = work.problems.all();
    tally
}

/// How far retention has moved the log starts of the topics whose records nobody else deletes.
async fn retained_from(cluster: &Cluster, accounts: &[Arc<Account>]) -> i64 {
    let is_retained = |account: &&Arc<Account>| {
        account.plan.deletes && account.known().iter().all(|known| known.start == 0)
    };
    let retained = accounts.iter().filter(is_retained);
    let partitions: Vec<_> = retained.flat_map(|account| account.topic_partitions()).collect();
    offsets(cluster, &partitions, OffsetSpec::Earliest).await.values().sum()
}

/// Adds up what a broker has done.
async fn look(tally: &mut Tally, broker: Process) -> Process {
    let looking = move || (broker.page("/metrics"), broker);
    let (page, broker) = tokio::task::spawn_blocking(looking).await.unwrap();
    tally.look(&page);
    broker
}
