//! One seed: several lives of a storage on one disk, each ended by a crash or a clean restart.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::panic::Location;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

use moldau_storage::{
    AppendError, Compaction, Drive, Error, Log, Options, PendingRead, Replay, Storage,
};

use super::model::{Cleanup, DELETE_RETENTION_MS, Model};
use super::reader::follow;
use crate::sim_disk::{Kind, SimDisk};
use crate::world::small;

/// How often what happened, over all seeds.
pub(crate) type Coverage = BTreeMap<&'static str, u64>;

/// One seed.
pub(crate) struct World {
    pub(crate) rng: RefCell<fastrand::Rng>,
    pub(crate) disk: SimDisk,
    pub(crate) setup: Setup,
    pub(crate) model: RefCell<Model>,
    pub(crate) now: RefCell<Now>,
    pub(crate) coverage: RefCell<Coverage>,
}

/// What the seed chose for all its lives.
pub(crate) struct Setup {
    options: Options,
    /// How often each action is done, beside the others.
    pub(crate) weights: Vec<u32>,
    /// Partitions of a topic, at most.
    partitions: usize,
    pub(crate) has_troubles: bool,
    pub(crate) has_little_space: bool,
    interrupts_one_in: u32,
}

/// The state of the life that is being lived.
#[derive(Default)]
pub(crate) struct Now {
    pub(crate) ms: i64,
    pub(crate) storage: Option<Storage>,
    pub(crate) pending: Vec<Pending>,
    /// The owner has learned that the journal is stopped.
    pub(crate) is_stopped: bool,
    pub(crate) phase: Phase,
}

/// A read that was begun.
pub(crate) struct Pending {
    pub(crate) topic: u32,
    pub(crate) partition: usize,
    pub(crate) from: i64,
    pub(crate) read: PendingRead,
}

/// What is under way while others are let in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Phase {
    #[default]
    Recovery,
    Other,
    Upkeep,
    Cleaning,
    Checkpoint,
    Interrupt,
}

thread_local! {
    static CURRENT: RefCell<Option<Rc<World>>> = const { RefCell::new(None) };
}

/// Lives through a seed and says what happened.
pub(crate) fn run(seed: u64) -> Coverage {
    let world = Rc::new(World::new(seed));
    CURRENT.set(Some(Rc::clone(&world)));
    world.run();
    CURRENT.set(None);
    world.coverage.take()
}

fn interrupt() {
    if let Some(world) = CURRENT.with_borrow(Clone::clone) {
        world.interrupted();
    }
}

impl World {
    fn new(seed: u64) -> World {
        let mut rng = fastrand::Rng::with_seed(seed);
        let disk = SimDisk::new(seed);
        let setup = Setup::choose(&mut rng);
        disk.state().has_short_writes = rng.u8(..8) == 0;
        let world = World {
            rng: RefCell::new(rng),
            disk,
            setup,
            model: RefCell::default(),
            now: RefCell::new(Now { ms: 1_000_000, ..Now::default() }),
            coverage: RefCell::default(),
        };
        (0..1 + world.below(3)).for_each(|_| world.create_topic());
        world
    }

    pub(crate) fn below(&self, bound: usize) -> usize {
        self.rng.borrow_mut().usize(..bound)
    }

    pub(crate) fn one_in(&self, bound: usize) -> bool {
        self.below(bound) == 0
    }

    pub(crate) fn count(&self, what: &'static str) {
        *self.coverage.borrow_mut().entry(what).or_default() += 1;
    }

    pub(crate) fn storage(&self) -> Storage {
        self.now.borrow().storage.clone().expect("there is a storage within a life")
    }

    pub(crate) fn create_topic(&self) {
        let most = self.setup.partitions;
        let partitions = if most > 100 { most } else { 1 + self.below(most) };
        let is_compacted = self.one_in(2);
        let cleanup = Cleanup {
            compaction: is_compacted.then(|| Compaction {
                min_lag_ms: [0, 0, 500][self.below(3)],
                max_lag_ms: [i64::MAX, 1_000][self.below(2)],
                delete_retention_ms: DELETE_RETENTION_MS,
                min_dirty_ratio: [0.0, 0.0, 0.5][self.below(3)],
            }),
            retention_ms: self.one_in(3).then(|| 1_000 + self.below(20_000) as i64),
            retention_bytes: self.one_in(3).then(|| self.below(100_000) as u64),
        };
        self.model.borrow_mut().create(partitions, cleanup);
    }

    fn run(&self) {
        let lives = 2 + self.below(4);
        for _ in 0..lives {
            if self.one_in(2) {
                self.disk.die_within(1 + self.below(60) as u64);
            }
            let is_clean = self.open() && self.compare() && self.live();
            let is_power_lost = self.one_in(4) || !is_clean && self.one_in(2);
            self.end(is_power_lost);
        }
        self.disk.state().free_bytes = u64::MAX;
        assert!(self.open(), "nothing fails any more");
        assert!(self.compare());
        self.end(false);
        self.count("schedules");
    }

    fn end(&self, is_power_lost: bool) {
        let mut now = self.now.borrow_mut();
        now.pending.clear();
        now.is_stopped = false;
        let storage = now.storage.take();
        let phase = now.phase;
        drop(now);
        if self.disk.is_dead() {
            self.count(self.died_in(phase));
            self.count(if is_power_lost { "power lost" } else { "process killed" });
        }
        if let Some(storage) = storage {
            // What is flushed in closing is acknowledged like all else.
            storage.close().ok();
            self.model.borrow_mut().acknowledge(storage.durable());
        }
        self.disk.restart(is_power_lost);
        if self.one_in(4) {
            self.damage_checkpoint();
        }
    }

    /// The newest checkpoint is not what was written; the one before and the journal say as much.
    fn damage_checkpoint(&self) {
        let path = Path::new("/data/checkpoint");
        if !self.disk.names().iter().any(|name| name == path) {
            return;
        }
        self.disk.change(path, |bytes| match self.below(4) {
            0 => bytes.truncate(self.below(bytes.len() + 1)),
            1 => bytes.fill(0),
            _ => {
                let at = self.below(bytes.len().max(1));
                bytes.get_mut(at).into_iter().for_each(|byte| *byte ^= 1 << self.below(8));
            }
        });
        self.count("newest checkpoint damaged");
    }

    /// Where in storage's work the disk died.
    fn died_in(&self, phase: Phase) -> &'static str {
        let state = self.disk.state();
        let did = |operation, kind| state.done.contains(&(operation, kind));
        match phase {
            Phase::Recovery => "crash in recovery",
            Phase::Cleaning => "crash in cleaning",
            Phase::Checkpoint if did("rename", Kind::Spare) => "crash in retiring",
            Phase::Checkpoint => "crash in a checkpoint",
            Phase::Upkeep if did("shorten", Kind::Spare) || did("shorten", Kind::Segment) => {
                "crash in giving back"
            }
            Phase::Upkeep if did("read", Kind::Journal) => "crash in sorting",
            Phase::Upkeep if did("read", Kind::Segment) => "crash in merging",
            Phase::Upkeep if did("write", Kind::Journal) => "crash in removal",
            Phase::Interrupt => "crash beside other work",
            Phase::Upkeep | Phase::Other => "crash elsewhere",
        }
    }

    /// Opens the storage, unless the disk dies or fails before.
    fn open(&self) -> bool {
        self.enter(Phase::Recovery);
        let mut owner = Snapshots::default();
        let options = self.setup.options(&mut self.rng.borrow_mut());
        match Storage::open_on(Arc::new(self.disk.clone()), options, &mut owner) {
            Ok(storage) => {
                self.now.borrow_mut().storage = Some(storage);
                self.model.borrow_mut().recover_metadata(&owner.0);
                true
            }
            Err(error) => {
                self.explain(&error);
                self.count("recovery failed");
                false
            }
        }
    }

    pub(crate) fn enter(&self, phase: Phase) {
        self.disk.state().done.clear();
        self.go_on_with(phase);
    }

    /// As [`World::enter`], after what came in between.
    pub(crate) fn go_on_with(&self, phase: Phase) {
        self.now.borrow_mut().phase = phase;
        let is_interrupted = matches!(phase, Phase::Upkeep | Phase::Cleaning | Phase::Checkpoint);
        let one_in = self.setup.interrupts_one_in;
        self.disk.state().interrupt = is_interrupted.then_some((interrupt as fn(), one_in));
    }

    /// An error must have its cause in the disk.
    #[track_caller]
    pub(crate) fn explain(&self, error: &Error) {
        let place = Location::caller();
        let (is_dead, has_failed) = (self.disk.is_dead(), self.disk.state().has_failed);
        let is_short = self.setup.has_little_space;
        let has_cause = match error {
            Error::DiskFull => is_short || has_failed || is_dead,
            Error::Io { .. } | Error::Poisoned { .. } => is_short || has_failed || is_dead,
            Error::Closed => is_dead,
            _ => false,
        };
        assert!(has_cause, "{error}, at {place}");
        if matches!(error, Error::Poisoned { .. } | Error::Closed) {
            self.now.borrow_mut().is_stopped = true;
        }
    }

    #[track_caller]
    pub(crate) fn explain_append(&self, error: AppendError) {
        match error {
            AppendError::Poisoned(cause) => self.explain(&Error::Poisoned { cause }),
            AppendError::DiskFull => self.explain(&Error::DiskFull),
            error => panic!("{error}"),
        }
    }

    /// The recovered state is what was appended, up to some point at or after the acknowledged one.
    /// False if the disk dies or fails meanwhile.
    fn compare(&self) -> bool {
        let storage = self.storage();
        let found = storage.topics();
        for gone in &self.model.borrow().gone {
            assert!(!found.contains(gone), "a deleted topic is back");
        }
        let topics: Vec<u32> = self.model.borrow().topics.keys().copied().collect();
        for topic in topics {
            let id = self.model.borrow().topics[&topic].id;
            if self.model.borrow().topics[&topic].deletion.is_some() {
                if !found.contains(&id) {
                    let topic = self.model.borrow_mut().topics.remove(&topic);
                    self.model.borrow_mut().gone.extend(topic.map(|topic| topic.id));
                    continue;
                }
                self.count("deletion lost");
            }
            let mut model = self.model.borrow_mut();
            let Some(topic) = model.topics.get_mut(&topic) else { continue };
            topic.deletion = None;
            let logs: BTreeMap<i32, Arc<Log>> =
                storage.logs_of(id).into_iter().map(|log| (log.id().partition, log)).collect();
            for (partition, model) in topic.logs.iter_mut().enumerate() {
                let log = logs.get(&(partition as i32));
                let (start, end) = log.map_or((0, 0), |log| (log.start_offset(), log.end_offset()));
                assert_eq!(log.map_or(0, |log| log.high_watermark()), end);
                model.recover(start, end);
            }
        }
        self.read_everything()
    }

    /// Reads all logs; false if the disk dies or fails meanwhile.
    fn read_everything(&self) -> bool {
        let storage = self.storage();
        let bytes_max = [1, 4_000, 100_000][self.below(3)];
        let mut model = self.model.borrow_mut();
        for topic in model.topics.values_mut().filter(|topic| topic.deletion.is_none()) {
            for log in storage.logs_of(topic.id) {
                let Some(model) = topic.logs.get_mut(log.id().partition as usize) else {
                    panic!("{:?} was never written to", log.id());
                };
                let from = log.start_offset();
                match follow(&log, from, bytes_max) {
                    Ok(found) => {
                        model.check_all(&found.records, from, log.high_watermark());
                        let bytes = log.bytes();
                        let (least, most) = (found.bytes, 2 * model.bytes);
                        assert!(least <= bytes, "{bytes} bytes, {least} were read");
                        assert!(bytes <= most, "{bytes} bytes, {most} were appended");
                    }
                    Err(error) => {
                        self.explain(&error);
                        return false;
                    }
                }
            }
        }
        true
    }

    /// Acts for a while. False if the disk died or the journal stopped.
    fn live(&self) -> bool {
        self.enter(Phase::Other);
        if self.one_in(2) {
            self.disk.die_within(1 + self.below(1_500) as u64);
        }
        let actions = 10 + self.below(if self.one_in(4) { 800 } else { 150 });
        for _ in 0..actions {
            self.act();
            self.acknowledge();
            if self.disk.is_dead() || self.now.borrow().is_stopped {
                self.after_failure();
                return false;
            }
        }
        // The death that has not come must not come to the next life.
        self.disk.state().dies_at = None;
        if self.one_in(2) {
            return self.read_everything();
        }
        true
    }

    pub(crate) fn acknowledge(&self) {
        let durable = self.storage().durable();
        self.model.borrow_mut().acknowledge(durable);
    }

    /// After a failure of the disk nothing becomes durable.
    fn after_failure(&self) {
        if !self.disk.is_dead() {
            return;
        }
        let phase = self.now.borrow().phase;
        let storage = self.storage();
        while storage.step() {}
        let durable = storage.durable();
        // The journal need not have noticed yet; nothing is acknowledged in any case.
        self.append();
        while storage.step() {}
        assert_eq!(storage.durable(), durable);
        self.now.borrow_mut().phase = phase;
    }
}

impl Setup {
    fn choose(rng: &mut fastrand::Rng) -> Setup {
        let file_bytes = [64 << 10, 64 << 10, 128 << 10, 256 << 10][rng.usize(..4)];
        let options = Options {
            drive: Drive::Stepped,
            file_bytes,
            tail_cache_bytes: [0, 8 << 10, 64 << 10, 1 << 20][rng.usize(..4)],
            sort_memory_bytes: [2 << 10, 16 << 10, 1 << 20][rng.usize(..3)],
            clean_memory_bytes: [48, 120, 400, 64 << 10][rng.usize(..4)],
            ..small("/data".as_ref())
        };
        let weights = super::actions::ACTIONS.iter().map(|(weight, _)| weight * rng.u32(..4));
        Setup {
            options,
            weights: weights.collect(),
            partitions: if rng.u8(..32) == 0 { 500 } else { 1 + rng.usize(..6) },
            has_troubles: rng.u8(..3) == 0,
            has_little_space: rng.u8(..6) == 0,
            interrupts_one_in: [2, 8, 32, 1 << 20][rng.usize(..4)],
        }
    }

    /// The options of one life: some may change with a restart.
    fn options(&self, rng: &mut fastrand::Rng) -> Options {
        let file_bytes = match rng.u8(..16) {
            0 => [64 << 10, 96 << 10, 512 << 10][rng.usize(..3)],
            _ => self.options.file_bytes,
        };
        Options { file_bytes, ..self.options.clone() }
    }
}

/// An owner whose snapshot entry holds all entries before it.
#[derive(Default)]
struct Snapshots(Vec<Vec<u8>>);

impl Replay for Snapshots {
    fn metadata(&mut self, bytes: &[u8]) -> Result<(), String> {
        match bytes.strip_prefix(b"snapshot\n") {
            Some(all) => {
                let entries = all.split(|byte| *byte == b'\n').filter(|entry| !entry.is_empty());
                self.0 = entries.map(<[u8]>::to_vec).collect();
            }
            None => self.0.push(bytes.to_vec()),
        }
        Ok(())
    }
}
