//! Seeded lives of a storage on a disk that dies at any operation, compared with a model.

use std::sync::Arc;

use moldau_records::Producer;
use moldau_storage::{AppendError, Drive, Error, Log, Lsn, Options, Storage, TopicId};

use crate::sim_disk::SimDisk;
use crate::world::{Owner, batch, small, try_records};

/// What must hold of one log.
#[derive(Default)]
struct LogModel {
    /// Value of every record by offset, as appended.
    values: Vec<Vec<u8>>,
    /// Offsets below this are acknowledged.
    acknowledged: usize,
    /// Appends that wait for the flush.
    flying: Vec<(Lsn, usize)>,
    /// Base offset, size and first sequence of the idempotent producer's batches.
    batches: Vec<(i64, usize, i32)>,
    /// Log start offset: acknowledged, and as last asked for.
    start: (i64, i64),
    start_lsn: Lsn,
}

impl LogModel {
    fn next_sequence(&self) -> i32 {
        self.batches.last().map_or(0, |(_, size, sequence)| sequence + *size as i32)
    }
}

#[derive(Default)]
struct Model {
    logs: Vec<LogModel>,
    metadata: Vec<Vec<u8>>,
    metadata_acknowledged: usize,
    metadata_flying: Vec<(Lsn, usize)>,
    deleted: Vec<(TopicId, Lsn, bool)>,
    entries: u32,
}

struct World {
    seed: u64,
    rng: fastrand::Rng,
    disk: SimDisk,
    model: Model,
}

const LOGS: usize = 3;

fn options() -> Options {
    let options = small("/data".as_ref());
    Options { drive: Drive::Stepped, tail_cache_bytes: 8 << 10, ..options }
}

fn topic(generation: usize) -> TopicId {
    TopicId([generation as u8 + 1; 16])
}

#[test]
fn acknowledged_records_survive_crashes_at_any_operation() {
    let (from, count) = match std::env::var("MOLDAU_SIMULATION_SEED") {
        Ok(seed) => (seed.parse().unwrap(), 1),
        Err(_) => (0, SCHEDULES),
    };
    for seed in from..from + count {
        let outcome = std::panic::catch_unwind(|| World::new(seed).run());
        assert!(outcome.is_ok(), "failed with MOLDAU_SIMULATION_SEED={seed}");
    }
}

impl World {
    fn new(seed: u64) -> World {
        let mut model = Model::default();
        model.logs.resize_with(LOGS, LogModel::default);
        World { seed, rng: fastrand::Rng::with_seed(seed), disk: SimDisk::new(seed), model }
    }

    fn run(mut self) {
        for _ in 0..4 {
            self.disk.die_within(self.rng.u64(1..120));
            if let Some((storage, owner)) = self.open() {
                self.compare(&storage, &owner);
                self.live(&storage);
            }
            let is_power_lost = self.rng.u8(..4) > 0;
            self.disk.restart(is_power_lost);
        }
        let (storage, owner) = self.open().expect("nothing fails any more");
        self.compare(&storage, &owner);
    }

    /// Opens the storage, unless the disk dies before.
    fn open(&self) -> Option<(Storage, Owner)> {
        let mut owner = Snapshots::default();
        match Storage::open_on(Arc::new(self.disk.clone()), options(), &mut owner) {
            Ok(storage) => Some((storage, Owner(owner.0))),
            Err(_) if self.disk.is_dead() => None,
            Err(error) => panic!("seed {}: {error}", self.seed),
        }
    }

    fn log(&self, storage: &Storage, at: usize) -> Arc<Log> {
        storage.log(topic(0), at as i32)
    }

    /// The recovered state is what was appended, up to some point at or after the acknowledged one.
    fn compare(&mut self, storage: &Storage, owner: &Owner) {
        for at in 0..LOGS {
            let log = self.log(storage, at);
            let model = &mut self.model.logs[at];
            let end = log.end_offset() as usize;
            assert_eq!(log.high_watermark(), end as i64);
            assert!(end >= model.acknowledged, "{end} of {} acknowledged", model.acknowledged);
            assert!(end <= model.values.len());
            let start = log.start_offset();
            assert!(model.start.0 <= start && start <= model.start.1.max(model.start.0));
            if let Some(found) = read_all(&log, &self.disk) {
                assert!(found.iter().map(|(offset, _)| *offset).eq(start..end as i64));
                for (offset, value) in found {
                    assert_eq!(value, model.values[offset as usize]);
                }
            }
            model.values.truncate(end);
            model.acknowledged = end;
            model.flying.clear();
            model.start = (start, start);
            model.batches.retain(|(base, ..)| (*base as usize) < end);
            let is_whole =
                model.batches.last().is_none_or(|(base, size, _)| *base as usize + size == end);
            assert!(is_whole, "a batch is whole or absent");
        }
        let found = &owner.0;
        assert!(found.len() >= self.model.metadata_acknowledged);
        assert!(self.model.metadata.starts_with(found), "{found:?}");
        self.model.metadata.truncate(found.len());
        self.model.metadata_acknowledged = found.len();
        self.model.metadata_flying.clear();
        for (topic, _, is_acknowledged) in &self.model.deleted {
            let is_back = storage.topics().contains(topic);
            assert!(!(is_back && *is_acknowledged), "a deleted topic is back");
        }
    }

    fn live(&mut self, storage: &Storage) {
        for _ in 0..self.rng.usize(10..120) {
            let outcome = self.act(storage);
            if self.disk.is_dead() {
                break;
            }
            outcome.unwrap();
            self.acknowledge(storage);
        }
        self.acknowledge(storage);
        // After a failure of the disk nothing is taken and nothing becomes durable.
        if self.disk.is_dead() {
            while storage.step() {}
            let durable = storage.durable();
            // The journal need not have noticed yet; nothing is acknowledged in any case.
            self.append(storage).err();
            while storage.step() {}
            assert_eq!(storage.durable(), durable);
        }
    }

    fn act(&mut self, storage: &Storage) -> Result<(), Error> {
        match self.rng.u8(..18) {
            0..5 => self.append(storage)?,
            5..9 => {
                storage.step();
            }
            9 => {
                self.model.entries += 1;
                let entry = format!("entry {}", self.model.entries).into_bytes();
                let lsn = storage.append_metadata(&entry)?;
                self.model.metadata.push(entry);
                self.model.metadata_flying.push((lsn, self.model.metadata.len()));
            }
            10 => {
                storage.step_preparation();
            }
            11 => self.delete_records(storage)?,
            12 => self.checkpoint(storage)?,
            13 => self.delete_topic(storage)?,
            14 => self.send_again(storage),
            15 | 16 => {
                storage.step_upkeep()?;
            }
            _ => {
                let at = self.rng.usize(..LOGS);
                if let Some(found) = read_all(&self.log(storage, at), &self.disk) {
                    let model = &self.model.logs[at];
                    assert!(found.iter().all(|(at, value)| model.values[*at as usize] == *value));
                }
            }
        }
        Ok(())
    }

    fn append(&mut self, storage: &Storage) -> Result<(), Error> {
        let at = self.rng.usize(..LOGS);
        let size = self.rng.usize(1..4);
        let length = if self.rng.u8(..8) == 0 { 9_000 } else { 300 };
        let values: Vec<Vec<u8>> =
            (0..size).map(|_| vec![self.rng.u8(..); self.rng.usize(..length)]).collect();
        let log = self.log(storage, at);
        let model = &mut self.model.logs[at];
        let producer = Producer { id: 5, epoch: 0, base_sequence: model.next_sequence() };
        let records: Vec<_> = values.iter().map(|value| (1_000, value.as_slice())).collect();
        let base = model.values.len() as i64;
        match log.append(&batch(&records, Some(producer)), 0) {
            Ok(appended) => {
                assert_eq!((appended.base_offset, appended.is_duplicate), (base, false));
                model.values.extend(values);
                model.flying.push((appended.lsn, model.values.len()));
                model.batches.push((base, size, producer.base_sequence));
                Ok(())
            }
            Err(AppendError::Poisoned(cause)) => Err(Error::Poisoned { cause }),
            Err(error) => panic!("{error}"),
        }
    }

    /// A producer that got no answer sends its last batch again: it gets the first offsets.
    fn send_again(&mut self, storage: &Storage) {
        let at = self.rng.usize(..LOGS);
        let log = self.log(storage, at);
        let model = &mut self.model.logs[at];
        let Some((base, size, base_sequence)) = model.batches.last().copied() else { return };
        let values = &model.values[base as usize..base as usize + size];
        let records: Vec<_> = values.iter().map(|value| (1_000, value.as_slice())).collect();
        let producer = Producer { id: 5, epoch: 0, base_sequence };
        let again = log.append(&batch(&records, Some(producer)), 0).unwrap();
        assert_eq!((again.base_offset, again.is_duplicate), (base, true));
    }

    fn delete_records(&mut self, storage: &Storage) -> Result<(), Error> {
        let at = self.rng.usize(..LOGS);
        let log = self.log(storage, at);
        let before = self.rng.i64(0..=log.high_watermark());
        let trimmed = log.delete_records(before)?;
        let model = &mut self.model.logs[at];
        model.start.1 = trimmed.start_offset;
        model.start_lsn = trimmed.lsn;
        Ok(())
    }

    fn delete_topic(&mut self, storage: &Storage) -> Result<(), Error> {
        let topic = topic(1 + self.model.deleted.len());
        storage.log(topic, 0).append(&batch(&[(1, b"short-lived")], None), 0)?;
        let lsn = storage.delete_topic(topic)?;
        self.model.deleted.push((topic, lsn, false));
        Ok(())
    }

    fn checkpoint(&mut self, storage: &Storage) -> Result<(), Error> {
        let all = self.model.metadata.clone();
        let count = all.len();
        storage.checkpoint(|writer| {
            let joined = all.iter().flat_map(|entry| [entry.as_slice(), b"\n"]);
            let snapshot = [&b"snapshot\n"[..]].into_iter().chain(joined).collect::<Vec<_>>();
            writer.metadata(&snapshot.concat());
            Ok(())
        })?;
        assert!(self.model.metadata.len() == count);
        Ok(())
    }

    fn acknowledge(&mut self, storage: &Storage) {
        let durable = storage.durable();
        for model in &mut self.model.logs {
            for (lsn, end) in &model.flying {
                if *lsn <= durable {
                    model.acknowledged = model.acknowledged.max(*end);
                }
            }
            model.flying.retain(|(lsn, _)| *lsn > durable);
            if model.start_lsn <= durable {
                model.start.0 = model.start.1;
            }
        }
        for (lsn, end) in &self.model.metadata_flying {
            if *lsn <= durable {
                self.model.metadata_acknowledged = self.model.metadata_acknowledged.max(*end);
            }
        }
        for (_, lsn, is_acknowledged) in &mut self.model.deleted {
            *is_acknowledged |= *lsn <= durable;
        }
    }
}

/// All records, or `None` if the disk died meanwhile.
fn read_all(log: &Arc<Log>, disk: &SimDisk) -> Option<Vec<(i64, Vec<u8>)>> {
    match try_records(log, 5_000) {
        Ok(found) => Some(found),
        Err(_) if disk.is_dead() => None,
        Err(error) => panic!("{error}"),
    }
}

/// An owner whose snapshot entry holds all entries before it.
#[derive(Default)]
struct Snapshots(Vec<Vec<u8>>);

impl moldau_storage::Replay for Snapshots {
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

/// Enough to pass every operation of a short life many times, in a few seconds.
const SCHEDULES: u64 = 1_000;
