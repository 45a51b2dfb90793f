//! Directories that are damaged at random, repaired, and read.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use moldau_records::Producer;
use moldau_storage::{
    Disk, Drive, Error, Left, LogId, Options, Repair, Replay, Report, Salvage, Storage, TopicId,
};

use crate::sim_disk::SimDisk;
use crate::world::{AppendBytes, batch, records, small, try_records};

const DATA: &str = "/data";
const ASIDE: &str = "damaged";

/// An owner whose entries are the first bytes of the ids of topics, or anything longer.
#[derive(Debug, Default, Clone)]
struct Owner {
    topics: Vec<u8>,
}

impl Replay for Owner {
    fn metadata(&mut self, bytes: &[u8]) -> Result<(), String> {
        match bytes {
            [topic] if !self.topics.contains(topic) => self.topics.push(*topic),
            [snapshot @ .., 0xff] => self.topics = snapshot.to_vec(),
            _ => {}
        }
        Ok(())
    }
}

impl Salvage for Owner {
    fn topic_name(&self, topic: TopicId) -> Option<String> {
        self.topics.contains(&topic.0[0]).then(|| format!("topic-{}", topic.0[0]))
    }

    fn make_up(&mut self, left: &Left) -> Vec<Vec<u8>> {
        assert!(left.producer_id_max.is_none_or(|id| id == 7));
        let mut unknown: Vec<u8> = left.topics.keys().map(|topic| topic.0[0]).collect();
        unknown.retain(|topic| !self.topics.contains(topic));
        self.topics.extend(&unknown);
        unknown.into_iter().map(|topic| vec![topic]).collect()
    }
}

fn options() -> Options {
    Options { drive: Drive::Stepped, tail_cache_bytes: 0, ..small(DATA.as_ref()) }
}

fn try_open(disk: &SimDisk) -> Result<(Storage, Owner), Error> {
    let mut owner = Owner::default();
    let storage = Storage::open_on(Arc::new(disk.clone()), options(), &mut owner)?;
    Ok((storage, owner))
}

fn examine(disk: &SimDisk) -> Result<Repair, Error> {
    Repair::examine_on(Arc::new(disk.clone()), DATA.as_ref(), &mut Owner::default())
}

/// Repairs, and returns what was found; a second look finds nothing.
fn repair(disk: &SimDisk) -> Report {
    let repair = examine(disk).unwrap();
    let report = repair.report().clone();
    let aside = repair.apply(ASIDE).unwrap();
    assert_eq!(aside.is_some(), !report.is_sound());
    let again = examine(disk).unwrap();
    assert!(again.report().is_sound(), "{:#?} after {report:#?}", again.report());
    report
}

/// A batch that was appended: its values tell which it is.
#[derive(Debug, Clone)]
struct Appended {
    base_offset: i64,
    values: Vec<Vec<u8>>,
    /// The frame that it lies in.
    frame: std::ops::Range<u64>,
}

/// A directory and all that was written to it.
struct Written {
    disk: SimDisk,
    logs: BTreeMap<LogId, Vec<Appended>>,
    /// Where the last frame begins, which nothing vouches for.
    last_frame: u64,
}

impl Written {
    fn values(&self, log: &LogId) -> Vec<&Vec<u8>> {
        self.logs[log].iter().flat_map(|batch| &batch.values).collect()
    }
}

fn write(seed: u64, steps: u32) -> Written {
    let mut rng = fastrand::Rng::with_seed(seed);
    let disk = SimDisk::new(seed);
    let (mut storage, _) = try_open(&disk).unwrap();
    let mut written = Written { disk, logs: BTreeMap::new(), last_frame: 0 };
    let mut topics: Vec<u8> = Vec::new();
    let mut sequences: BTreeMap<LogId, i32> = BTreeMap::new();
    for step in 0..rng.u32(10..steps) {
        if topics.is_empty() || rng.u8(..40) == 0 {
            topics.push(1 + topics.len() as u8);
            storage.append_metadata(&topics[topics.len() - 1..]).unwrap();
        }
        let from = storage.end().0;
        let mut in_frame = Vec::new();
        for _ in 0..rng.usize(1..5) {
            let topic = TopicId([topics[rng.usize(..topics.len())]; 16]);
            let id = LogId { topic, partition: rng.i32(0..3) };
            let length = [20, 200, 3_000, 9_000][rng.usize(..4)];
            let count = rng.usize(1..4);
            let value = |at: usize| {
                let mut value = format!("{step}-{:?}-{at}", id).into_bytes();
                value.resize(value.len() + rng.usize(..length), at as u8);
                value
            };
            let values: Vec<_> = (0..count).map(value).collect();
            let sequence = sequences.entry(id).or_default();
            let producer = Producer { id: 7, epoch: 0, base_sequence: *sequence };
            *sequence += values.len() as i32;
            let pairs: Vec<(i64, &[u8])> = values.iter().map(|it| (1_000, &it[..])).collect();
            let appended = storage.log(topic, id.partition);
            let appended = appended.append_bytes(&batch(&pairs, Some(producer)), 3).unwrap();
            in_frame.push((id, appended.base_offset, values));
        }
        while storage.step() {}
        let to = storage.durable().0;
        for (id, base_offset, values) in in_frame {
            let frame = from..to;
            written.logs.entry(id).or_default().push(Appended { base_offset, values, frame });
        }
        match rng.u8(..12) {
            0 | 1 => while storage.step_upkeep().unwrap() {},
            2 | 3 => {
                let snapshot = [&topics[..], &[0xff]].concat();
                let taken = storage.checkpoint(|writer| {
                    writer.metadata(&snapshot);
                    Ok(())
                });
                taken.unwrap();
            }
            4 => {
                drop(storage);
                (storage, _) = try_open(&written.disk).unwrap();
            }
            _ => {}
        }
    }
    written.last_frame = storage.end().0;
    storage.append_metadata(b"the end").unwrap();
    storage.step();
    written
}

/// The files with something in them, and where in each damage may begin and end.
fn targets(written: &Written) -> Vec<(PathBuf, usize)> {
    let mut targets = Vec::new();
    for path in written.disk.names() {
        let bytes = written.disk.bytes(&path);
        let is_journal = path.extension().is_some_and(|it| it == "journal");
        let limit = if is_journal {
            let base = u64::from_le_bytes(bytes[40..48].try_into().unwrap());
            (written.last_frame.saturating_sub(base) as usize).min(bytes.len())
        } else {
            bytes.len()
        };
        let is_spare = path.extension().is_some_and(|it| it == "spare" || it == "tmp");
        if limit > 0 && !is_spare && !path.ends_with("lock") {
            targets.push((path, limit));
        }
    }
    targets
}

/// What was changed: file and bytes.
type Hit = (PathBuf, std::ops::Range<usize>);

fn damage(written: &Written, rng: &mut fastrand::Rng) -> (SimDisk, Vec<Hit>) {
    let disk = written.disk.copy();
    let targets = targets(written);
    let mut hits = Vec::new();
    for _ in 0..rng.usize(1..5) {
        let (path, limit) = &targets[rng.usize(..targets.len())];
        let at = rng.usize(..*limit);
        let hit = match rng.u8(..4) {
            0 => at / 512 * 512..(at / 512 * 512 + 512).min(*limit),
            1 => at / 4096 * 4096..(at / 4096 * 4096 + 4096).min(*limit),
            _ => at..at + 1,
        };
        let value = rng.u8(..);
        disk.change(path, |bytes| match hit.len() {
            1 => bytes[at] ^= 1 << (value % 8),
            _ => bytes[hit.clone()].fill([0, value][usize::from(value % 2)]),
        });
        hits.push((path.clone(), hit));
    }
    (disk, hits)
}

/// Whether a batch that is lost lay in a place that was hit.
fn is_explained(written: &Written, batch: &Appended, hits: &[Hit]) -> bool {
    hits.iter().any(|(path, hit)| {
        let bytes = written.disk.bytes(path);
        let tag = &batch.values[0];
        let is_here = bytes.windows(tag.len()).any(|window| window == &tag[..]);
        let is_journal = path.extension().is_some_and(|it| it == "journal");
        if !is_journal {
            return is_here;
        }
        let base = u64::from_le_bytes(bytes[40..48].try_into().unwrap()) as usize;
        let (from, to) = (batch.frame.start as usize, batch.frame.end as usize);
        // Several frames may have been written from one round of appends.
        hit.start + base < to.next_multiple_of(4096) && hit.end + base > from.saturating_sub(65_536)
    })
}

fn check(written: &Written, disk: &SimDisk, report: &Report, hits: &[Hit]) {
    let (storage, _) = try_open(disk).unwrap();
    for (id, batches) in &written.logs {
        let log = storage.log(id.topic, id.partition);
        let values = written.values(id);
        // A log that lay entirely in lost frames is unknown.
        let is_known = log.end_offset() > 0;
        let found = records(&log, 50_000);
        for (offset, value) in &found {
            assert_eq!(value, values[*offset as usize], "{id:?} at {offset}");
        }
        let has_all = log.end_offset() >= values.len() as i64;
        assert!(has_all || !is_known, "{id:?}: offsets are given out again, {report:#?}");
        assert!(is_known || report.is_metadata_uncertain);
        let found: Vec<i64> = found.into_iter().map(|(offset, _)| offset).collect();
        let is_told = |offset: i64| {
            report.lost.iter().any(|lost| lost.log == *id && lost.offsets.contains(&offset))
        };
        for batch in batches {
            for at in 0..batch.values.len() as i64 {
                let offset = batch.base_offset + at;
                let is_there = found.binary_search(&offset).is_ok();
                assert!(
                    !is_known || is_there != is_told(offset),
                    "{id:?} at {offset}: {is_there}, {report:#?}"
                );
                assert!(is_there || is_explained(written, batch, hits), "{id:?} at {offset}");
            }
        }
    }
    // It goes on.
    for id in written.logs.keys() {
        let log = storage.log(id.topic, id.partition);
        let end = log.end_offset();
        assert_eq!(
            log.append_bytes(&batch(&[(2_000, b"further")], None), 3).unwrap().base_offset,
            end
        );
        while storage.step() {}
        assert_eq!(records(&log, 50_000).last(), Some(&(end, b"further".to_vec())));
    }
    while storage.step_upkeep().unwrap() {}
    storage.checkpoint(|_| Ok(())).unwrap();
    drop(storage);
    assert!(examine(disk).unwrap().report().is_sound());
}

#[test]
fn what_lies_outside_of_damage_is_there_after_a_repair() {
    let mut lost = 0;
    for seed in 0..SEEDS {
        let written = write(seed, STEPS);
        let mut rng = fastrand::Rng::with_seed(seed);
        for round in 0..4 {
            eprintln!("seed {seed}, round {round}");
            let (disk, hits) = damage(&written, &mut rng);
            // A directory that lost its identity with all of its journal belongs to no broker.
            let report = repair(&disk);
            lost += report.lost.len();
            check(&written, &disk, &report, &hits);
        }
    }
    assert!(lost > 50, "{lost}");
}

#[test]
fn nothing_is_found_where_nothing_is_damaged() {
    for seed in 0..20 {
        let written = write(seed, STEPS);
        assert!(repair(&written.disk).is_sound());
        let names = written.disk.names();
        assert!(names.iter().all(|name| !name.to_string_lossy().contains(ASIDE)), "{names:?}");
    }
}

/// Every byte of every file of the directory, in order of names.
fn contents(disk: &SimDisk) -> Vec<(PathBuf, Vec<u8>)> {
    disk.names().into_iter().map(|name| (name.clone(), disk.bytes(&name))).collect()
}

#[test]
fn looking_changes_nothing() {
    let written = write(3, STEPS);
    let (disk, _) = damage(&written, &mut fastrand::Rng::with_seed(3));
    let before = contents(&disk);
    assert!(!examine(&disk).unwrap().report().is_sound());
    assert_eq!(contents(&disk), before);
}

#[test]
fn a_repair_that_dies_at_any_point_can_be_done_again() {
    for seed in 0..2 {
        let written = write(seed, 30);
        let mut rng = fastrand::Rng::with_seed(seed);
        let (damaged, hits) = damage(&written, &mut rng);
        let original = contents(&damaged);
        let whole = damaged.copy();
        let expected = repair(&whole);
        for operations in 1.. {
            let disk = damaged.copy();
            let repair = examine(&disk).unwrap();
            disk.die_within(operations);
            let outcome = repair.apply(ASIDE);
            let has_died = disk.is_dead();
            disk.restart(operations % 2 == 0);
            // Every file that was damaged is still there, under its name or aside.
            let kept = contents(&disk);
            for (path, bytes) in &original {
                let name = path.file_name().unwrap();
                let is_kept =
                    |(at, kept): &(PathBuf, Vec<u8>)| at.file_name() == Some(name) && kept == bytes;
                let is_mutable = path.ends_with("lock");
                assert!(is_mutable || kept.iter().any(is_kept), "{path:?} after {operations}");
            }
            match try_open(&disk.copy()) {
                Ok((storage, _)) => same_records(&storage, &written),
                Err(Error::Corrupt { .. } | Error::RepairUnfinished { .. }) => {}
                Err(error) => panic!("{error}"),
            }
            repair_again(&disk);
            check(&written, &disk, &expected, &hits);
            if !has_died {
                outcome.unwrap();
                break;
            }
        }
    }
}

fn repair_again(disk: &SimDisk) {
    examine(disk).unwrap().apply("damaged-again").unwrap();
    let found = examine(disk).unwrap();
    assert!(found.report().is_sound(), "{:#?}", found.report());
}

/// All that can be read is as it was written.
fn same_records(storage: &Storage, written: &Written) {
    for id in written.logs.keys() {
        let values = written.values(id);
        let Ok(found) = try_records(&storage.log(id.topic, id.partition), 50_000) else { continue };
        assert!(found.iter().all(|(offset, value)| value == values[*offset as usize]));
    }
}

#[test]
fn rubbish_is_refused_or_repaired() {
    for seed in 0..SEEDS {
        let written = write(seed % 20, STEPS);
        let mut rng = fastrand::Rng::with_seed(seed);
        let disk = written.disk.copy();
        let names = disk.names();
        for _ in 0..rng.usize(1..30) {
            let name = &names[rng.usize(..names.len())];
            let other = &names[rng.usize(..names.len())];
            let stolen = disk.names().contains(other).then(|| disk.bytes(other));
            if !disk.names().contains(name) {
                continue;
            }
            match rng.u8(..10) {
                0 => disk.remove(name).unwrap(),
                1 => disk.change(name, |bytes| *bytes = stolen.unwrap_or_default()),
                2 => disk.change(name, |bytes| bytes.truncate(rng.usize(..=bytes.len()))),
                3 => disk.change(name, |bytes| bytes.fill_with(|| rng.u8(..))),
                _ => disk.change(name, |bytes| {
                    let at = rng.usize(..bytes.len().max(1));
                    let to = bytes.len().min(at + [1, 8, 64, 4096][rng.usize(..4)]);
                    bytes.get_mut(at..to).into_iter().flatten().for_each(|byte| *byte = rng.u8(..));
                }),
            }
        }
        match examine(&disk) {
            Ok(repair) => {
                repair.apply(ASIDE).unwrap();
                let (storage, _) = try_open(&disk).unwrap();
                same_records(&storage, &written);
                drop(storage);
                assert!(examine(&disk).unwrap().report().is_sound(), "seed {seed}");
            }
            Err(
                Error::Corrupt { .. }
                | Error::NotADataDirectory { .. }
                | Error::UnknownVersion { .. },
            ) => {}
            Err(error) => panic!("seed {seed}: {error}"),
        }
    }
}

#[test]
fn another_directory_or_one_in_use_is_refused() {
    let disk = SimDisk::new(1);
    assert!(matches!(examine(&disk).err(), Some(Error::NotADataDirectory { .. })));
    let (storage, _) = try_open(&disk).unwrap();
    assert!(matches!(examine(&disk).err(), Some(Error::Locked { .. })));
    drop(storage);
    disk.change(Path::new("/data/moldau.meta"), |bytes| {
        bytes[8] = 3;
        let crc = moldau_records::crc32c(&bytes[..60]).to_le_bytes();
        bytes[60..64].copy_from_slice(&crc);
    });
    assert!(matches!(examine(&disk).err(), Some(Error::UnknownVersion { found: 3, .. })));
}

#[test]
fn a_disk_without_space_is_named_and_nothing_has_changed() {
    let written = write(3, STEPS);
    let (disk, _) = damage(&written, &mut fastrand::Rng::with_seed(3));
    let before = contents(&disk);
    let repair = examine(&disk).unwrap();
    assert!(!repair.report().is_sound());
    disk.state().free_bytes = 5_000;
    assert!(matches!(repair.apply(ASIDE), Err(Error::Io { .. })));
    let mut after = contents(&disk);
    after.retain(|(path, _)| path.extension().is_none_or(|it| it != "tmp"));
    assert_eq!(after, before);
}

const SEEDS: u64 = 40;
/// Rounds of appends, at most: enough for a dozen journal files.
const STEPS: u32 = 100;
