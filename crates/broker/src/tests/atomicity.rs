//! Seeded lives of a broker whose disk runs full, or whose process dies, between any two records of
//! a change: each change of topics, groups and offsets is there as a whole or not at all.
//!
//! `MOLDAU_SIMULATION_SEED` runs one seed alone.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, IoSlice};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use fastrand::Rng;
use moldau_coordinator::GroupRecord;
use moldau_protocol::messages::delete_topics_request::DeleteTopicState;
use moldau_protocol::messages::{
    CreateTopicsRequest, DeleteGroupsRequest, DeleteTopicsRequest, OffsetCommitRequest,
};
use moldau_protocol::{ApiKey, ErrorCode, Uuid};
use moldau_storage::{Access, AppendError, Disk, DiskFile, Drive, RealDisk};

use super::requests::{commit, creatable, create};
use super::world::{NOW_MS, World, batch, code, newest};
use crate::error::Refusal;
use crate::metadata_record::MetadataRecord;

/// Lives that each run of the tests goes through.
const SEEDS: u64 = 24;

/// Changes in a life.
const CHANGES: usize = 40;

/// Length of a journal file: short, so that one is soon full.
const FILE_BYTES: usize = 64 << 10;

/// Length at which a frame of such a file takes no further entry.
const FRAME_BYTES: u64 = (FILE_BYTES as u64 - 4096) / 2;

/// The records of a change take fewer bytes than this.
const CHANGE_BYTES: u64 = 300;

const TOPICS: [&str; 3] = ["orders", "returns", "sales"];
const GROUPS: [&str; 2] = ["billing", "reports"];

#[test]
fn changes_are_atomic() {
    let only = std::env::var("MOLDAU_SIMULATION_SEED").ok().map(|seed| seed.parse().unwrap());
    let mut reached = Reached::default();
    for seed in only.map_or(0..SEEDS, |seed: u64| seed..seed + 1) {
        println!("MOLDAU_SIMULATION_SEED={seed}");
        Life::new(seed).run(&mut reached);
    }
    println!("{reached:?}");
    if only.is_none() {
        assert!(reached.refused > 0 && reached.crashes > 0 && reached.cut > 0, "{reached:?}");
    }
}

/// What the lives came to.
#[derive(Debug, Default)]
struct Reached {
    changes: usize,
    refused: usize,
    crashes: usize,
    /// Crashes that lost some of what a change appended, and not all of it.
    cut: usize,
}

/// All that metadata says.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
struct Metadata {
    /// Partitions and what is overridden, by name.
    topics: BTreeMap<String, (u32, BTreeMap<String, String>)>,
    /// By group and topic.
    offsets: BTreeMap<(String, String), i64>,
}

impl Metadata {
    fn of(world: &World) -> Self {
        let state = &world.state;
        let topics = state
            .catalog
            .all()
            .into_iter()
            .map(|topic| (topic.name.to_string(), (topic.partitions, topic.overrides.clone())));
        let mut offsets = BTreeMap::new();
        for group in GROUPS {
            for (topic, partitions) in state.groups.view(|groups| groups.offset_fetch(group, None))
            {
                offsets.insert((group.to_owned(), topic), partitions[0].offset);
            }
        }
        Self { topics: topics.collect(), offsets }
    }
}

#[derive(Debug)]
enum Change {
    Create(&'static str),
    Delete(String),
    Grow(String),
    Configure(String, i64),
    Commit(&'static str, String, i64),
    DeleteGroup(&'static str),
}

impl Change {
    fn choose(rng: &mut Rng, before: &Metadata) -> Self {
        let names: Vec<_> = before.topics.keys().cloned().collect();
        let Some(name) = rng.choice(names) else {
            return Self::Create(rng.choice(TOPICS).unwrap());
        };
        let absent = TOPICS.into_iter().find(|topic| !before.topics.contains_key(*topic));
        match (rng.u8(..8), absent) {
            (0 | 1, Some(absent)) => Self::Create(absent),
            (0..=2, _) => Self::Delete(name),
            (3, _) => Self::Grow(name),
            (4, _) => Self::Configure(name, rng.i64(1..1_000_000)),
            (5, _) => Self::DeleteGroup(rng.choice(GROUPS).unwrap()),
            _ => Self::Commit(rng.choice(GROUPS).unwrap(), name, rng.i64(0..1_000_000)),
        }
    }

    /// Groups are ahead of a journal that takes nothing: a refused change of theirs may come true.
    fn refused_change_may_apply(&self) -> bool {
        matches!(self, Self::Commit(..) | Self::DeleteGroup(_))
    }

    fn apply(&self, metadata: &mut Metadata) {
        match self {
            Self::Create(name) => {
                metadata.topics.insert((*name).to_owned(), (1, BTreeMap::new()));
            }
            Self::Delete(name) => {
                metadata.topics.remove(name);
                metadata.offsets.retain(|(_, topic), _| topic != name);
            }
            Self::Grow(name) => metadata.topics.get_mut(name).unwrap().0 += 1,
            Self::Configure(name, ms) => {
                let overrides = &mut metadata.topics.get_mut(name).unwrap().1;
                overrides.insert("retention.ms".to_owned(), ms.to_string());
            }
            Self::Commit(group, topic, offset) => {
                metadata.offsets.insert(((*group).to_owned(), topic.clone()), *offset);
            }
            Self::DeleteGroup(group) => metadata.offsets.retain(|(known, _), _| known != group),
        }
    }
}

struct Life {
    rng: Rng,
    disk: Arc<FullDisk>,
    world: World,
    /// What may hold: more than one while it is open whether refused changes come true.
    possible: Vec<Metadata>,
}

impl Life {
    fn new(seed: u64) -> Self {
        let disk = Arc::new(FullDisk::default());
        let world = World::on(Arc::clone(&disk) as Arc<dyn Disk>, Drive::Stepped, |config| {
            config.journal_file_bytes = FILE_BYTES as u64;
        });
        Self { rng: Rng::with_seed(seed), disk, world, possible: vec![Metadata::default()] }
    }

    fn run(mut self, reached: &mut Reached) {
        for _ in 0..CHANGES {
            self.narrow_down();
            if self.rng.u8(..8) == 0 {
                // On a full disk there may be none.
                self.world.state.checkpoint().ok();
            }
            let change = Change::choose(&mut self.rng, &self.possible[0]);
            self.crowd();
            self.make(&change, reached);
            if self.rng.u8(..3) > 0 {
                self.disk.is_full.store(false, Ordering::Relaxed);
            }
            self.check_topics();
        }
        self.disk.is_full.store(false, Ordering::Relaxed);
        self.narrow_down();
        while self.world.state.storage.step_upkeep().unwrap() {}
        self.world.state.delete_orphaned_logs().unwrap();
        self.check_logs(&self.world);
        let Self { world, possible, .. } = self;
        assert_eq!(Metadata::of(&world.restarted()), possible[0]);
    }

    /// Makes a change, with a crash in the middle of it as another world sees it.
    fn make(&mut self, change: &Change, reached: &mut Reached) {
        let appended_from = self.world.state.storage.end();
        let world = &self.world;
        let flushes = self.rng.usize(..3);
        let before = self.possible.clone();
        let after = before.iter().cloned().map(|mut metadata| {
            change.apply(&mut metadata);
            metadata
        });
        let after: Vec<_> = after.collect();
        let crash = |reached: &mut Reached| {
            for _ in 0..flushes {
                world.state.storage.step();
            }
            let (durable, end) = (world.state.storage.durable(), world.state.storage.end());
            reached.crashes += 1;
            reached.cut += usize::from(durable > appended_from && durable < end);
            let crashed = world.crashed(Arc::new(FullDisk::default()));
            let found = Metadata::of(&crashed);
            let is_possible = before.contains(&found) || after.contains(&found);
            assert!(is_possible, "{change:?}\nfound: {found:?}\nof {before:?}\nor {after:?}");
            self.check_logs(&crashed);
        };
        let outcome = carry_out(world, change, || crash(reached));
        reached.changes += 1;
        world.flush();
        match outcome {
            ErrorCode::None => self.possible = after,
            refused => {
                assert!(self.disk.is_full.load(Ordering::Relaxed), "{change:?}: {refused}");
                reached.refused += 1;
                if change.refused_change_may_apply() {
                    self.possible.extend(after);
                }
            }
        }
    }

    /// Compares with what the broker shows, if its groups show anything.
    fn narrow_down(&mut self) {
        if self.world.state.groups.written(&self.world.state.storage).is_err() {
            return;
        }
        let found = Metadata::of(&self.world);
        assert!(self.possible.contains(&found), "found: {found:?}\nof {:?}", self.possible);
        self.possible = vec![found];
    }

    /// A topic that is listed can be written, and one that is not is unknown.
    fn check_topics(&self) {
        let topics = &self.possible[0].topics;
        for name in TOPICS {
            let produced = code(self.world.produce(name, 0, batch(NOW_MS, &["a"])).error_code);
            let expected = match topics.contains_key(name) {
                true if produced == ErrorCode::KafkaStorageError => {
                    assert!(self.disk.is_full.load(Ordering::Relaxed), "{name}");
                    produced
                }
                true => ErrorCode::None,
                false => ErrorCode::UnknownTopicOrPartition,
            };
            assert_eq!(produced, expected, "{name}");
        }
    }

    /// No log outlives its topic.
    fn check_logs(&self, world: &World) {
        for topic in world.state.storage.topics() {
            let id = Uuid::from_bytes(topic.0);
            assert!(world.state.catalog.by_id(id).is_some(), "logs of {id}, which is no topic");
        }
    }

    /// Leaves little room in the frame or on the disk, so that the next change finds none for
    /// some of its records.
    fn crowd(&mut self) {
        self.world.flush();
        let storage = &self.world.state.storage;
        match self.rng.u8(..5) {
            0 | 1 => {
                let start = storage.end().0.next_multiple_of(4096);
                let room = self.rng.u64(..CHANGE_BYTES);
                while storage.end().0.saturating_sub(start) < FRAME_BYTES - room {
                    if self.filler(1).is_err() {
                        return;
                    }
                }
            }
            2 | 3 => {
                self.disk.is_full.store(true, Ordering::Relaxed);
                for bytes in [5_000, self.rng.usize(1..=300)] {
                    while self.filler(bytes).is_ok() {
                        self.world.flush();
                    }
                }
            }
            _ => {}
        }
    }

    /// Appends a record that changes nothing.
    fn filler(&self, bytes: usize) -> Result<(), AppendError> {
        let mut record = Vec::new();
        GroupRecord::GroupDeleted { group_id: "f".repeat(bytes) }.encode(&mut record);
        let record = MetadataRecord::Group(record).encode();
        self.world.state.storage.append_metadata(&record).map(drop)
    }
}

/// Carries out a change as a client has it, with `between` before the answer is waited for.
fn carry_out(world: &World, change: &Change, between: impl FnOnce()) -> ErrorCode {
    match change {
        Change::Create(name) => {
            let request = create(vec![creatable(name, 1)]);
            let newest = newest(ApiKey::CreateTopics);
            let pending = world.begin::<CreateTopicsRequest>(newest, &request);
            between();
            code(world.finish::<CreateTopicsRequest>(pending).topics[0].error_code)
        }
        Change::Delete(name) => {
            let topic = DeleteTopicState { name: Some(name.clone()), ..Default::default() };
            let request = DeleteTopicsRequest { topics: vec![topic], ..Default::default() };
            let newest = newest(ApiKey::DeleteTopics);
            let pending = world.begin::<DeleteTopicsRequest>(newest, &request);
            between();
            code(world.finish::<DeleteTopicsRequest>(pending).responses[0].error_code)
        }
        Change::Commit(group, topic, offset) => {
            let pending = world.begin::<OffsetCommitRequest>(9, &commit(group, topic, 0, *offset));
            between();
            let answer = world.finish::<OffsetCommitRequest>(pending);
            code(answer.topics[0].partitions[0].error_code)
        }
        Change::DeleteGroup(group) => {
            let groups_names = vec![(*group).to_owned()];
            let request = DeleteGroupsRequest { groups_names, ..Default::default() };
            let newest = newest(ApiKey::DeleteGroups);
            let pending = world.begin::<DeleteGroupsRequest>(newest, &request);
            between();
            let answer = code(world.finish::<DeleteGroupsRequest>(pending).results[0].error_code);
            if answer == ErrorCode::GroupIdNotFound { ErrorCode::None } else { answer }
        }
        Change::Grow(name) => {
            let (catalog, storage) = (&world.state.catalog, &world.state.storage);
            let partitions = catalog.by_name(name).unwrap().partitions + 1;
            let grown = catalog.grow(storage, name, partitions);
            between();
            outcome(grown)
        }
        Change::Configure(name, ms) => {
            let (catalog, storage) = (&world.state.catalog, &world.state.storage);
            let configured = catalog.configure(storage, name, false, |overrides| {
                overrides.insert("retention.ms".to_owned(), ms.to_string());
                Ok(())
            });
            between();
            outcome(configured)
        }
    }
}

fn outcome<T>(changed: Result<T, Refusal>) -> ErrorCode {
    changed.map_or_else(|refusal| refusal.code, |_| ErrorCode::None)
}

/// The disk of this machine, which may say that it is full. Nothing here loses power, so nothing is
/// flushed.
#[derive(Default)]
struct FullDisk {
    is_full: AtomicBool,
}

struct UnflushedFile(Arc<dyn DiskFile>);

impl Disk for FullDisk {
    fn create_dir(&self, path: &Path) -> io::Result<()> {
        RealDisk.create_dir(path)
    }

    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        RealDisk.list(path)
    }

    fn open(&self, path: &Path, access: Access, create: bool) -> io::Result<Arc<dyn DiskFile>> {
        let file = RealDisk.open(path, access, create)?;
        Ok(Arc::new(UnflushedFile(file)))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn sync_dir(&self, _path: &Path) -> io::Result<()> {
        Ok(())
    }

    fn free_bytes(&self, _path: &Path) -> io::Result<u64> {
        Ok(if self.is_full.load(Ordering::Relaxed) { 0 } else { u64::MAX })
    }

    fn lock(&self, path: &Path) -> io::Result<Option<Box<dyn Send + Sync>>> {
        RealDisk.lock(path)
    }
}

impl DiskFile for UnflushedFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.0.read_at(buffer, offset)
    }

    fn write_at(&self, buffers: &[IoSlice<'_>], offset: u64) -> io::Result<usize> {
        self.0.write_at(buffers, offset)
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }

    fn allocate(&self, bytes: u64) -> io::Result<()> {
        self.0.allocate(bytes)
    }

    fn shorten(&self, bytes: u64) -> io::Result<()> {
        self.0.shorten(bytes)
    }

    fn length(&self) -> io::Result<u64> {
        self.0.length()
    }
}
