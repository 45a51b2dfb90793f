//! Sorted segments: what was sorted, merged and compacted is read as if it had stayed.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use moldau_records::{
    BatchBuilder, BatchOptions, BatchView, Compression, Compressor, Decompressor,
};
use moldau_storage::{AppendError, Compaction, Drive, Error, Isolation, Log, Options, Storage};

use crate::sim_disk::{Kind, SimDisk};
use crate::world::{AppendBytes, Owner, TOPIC, one, records, small};

fn options() -> Options {
    Options { drive: Drive::Stepped, tail_cache_bytes: 0, ..small("/data".as_ref()) }
}

fn open(disk: &SimDisk) -> Storage {
    Storage::open_on(Arc::new(disk.clone()), options(), &mut Owner::default()).unwrap()
}

/// Appends until the journal has entered `files` further files; returns what each log got.
fn fill(storage: &Storage, logs: i32, files: u64) -> BTreeMap<i32, Vec<(i64, Vec<u8>)>> {
    let mut expected: BTreeMap<i32, Vec<_>> = BTreeMap::new();
    let until = storage.metrics().files_started + files;
    let mut at = 0usize;
    while storage.metrics().files_started < until {
        let partition = i32::try_from(at * at % 7).unwrap() % logs;
        let value = vec![at as u8; (at * 7919) % 5000];
        let log = storage.log(TOPIC, partition);
        let appended = log.append_bytes(&one(&value), 3).unwrap();
        assert!(storage.step());
        expected.entry(partition).or_default().push((appended.base_offset, value));
        at += 1;
    }
    expected
}

fn upkeep(storage: &Storage) {
    while storage.step_upkeep().unwrap() {}
}

fn segments(disk: &SimDisk) -> usize {
    files_of(disk, "segment")
}

fn spares(disk: &SimDisk) -> usize {
    files_of(disk, "spare")
}

fn files_of(disk: &SimDisk, suffix: &str) -> usize {
    let names = disk.names();
    names.iter().filter(|name| name.extension().is_some_and(|it| it == suffix)).count()
}

fn assert_holds(storage: &Storage, expected: &BTreeMap<i32, Vec<(i64, Vec<u8>)>>) {
    for (partition, expected) in expected {
        for bytes_max in [1, 5_000, 1 << 20] {
            assert_eq!(&records(&storage.log(TOPIC, *partition), bytes_max), expected);
        }
    }
}

#[test]
fn sorted_logs_are_read_from_every_offset_and_survive_a_restart() {
    let disk = SimDisk::new(1);
    let storage = open(&disk);
    let expected = fill(&storage, 5, 4);
    upkeep(&storage);
    assert!(segments(&disk) > 0);
    assert_holds(&storage, &expected);
    for (partition, expected) in &expected {
        let log = storage.log(TOPIC, *partition);
        for (offset, _) in expected {
            let read = log.read(*offset, 1, true).unwrap().wait().unwrap();
            assert_eq!(BatchView::parse(&read.batches.concat()).unwrap().base_offset(), *offset);
            assert_eq!(read.next_offset, offset + 1);
        }
    }
    drop(storage);
    assert_holds(&open(&disk), &expected);
}

#[test]
fn a_checkpoint_frees_the_journal_of_what_is_sorted() {
    let disk = SimDisk::new(1);
    let storage = open(&disk);
    let expected = fill(&storage, 3, 5);
    upkeep(&storage);
    assert!(storage.is_checkpoint_due());
    storage.checkpoint(|_| Ok(())).unwrap();
    assert!(storage.checkpoint(|_| Ok(())).unwrap() >= 3);
    assert!(!disk.names().contains(&Path::new("/data/journal/0000000001.journal").into()));
    assert_holds(&storage, &expected);
    let frames = storage.metrics().frames;
    drop(storage);
    let storage = open(&disk);
    assert!(storage.info().recovered_frames < frames / 2);
    assert_holds(&storage, &expected);
}

#[test]
fn segments_of_short_runs_become_one_and_dead_ones_go() {
    let disk = SimDisk::new(1);
    let storage = open(&disk);
    let expected = fill(&storage, 4, 12);
    upkeep(&storage);
    let metrics = storage.metrics();
    assert!(metrics.segments_removed > 0 && segments(&disk) < 8, "{metrics:?}");
    assert_holds(&storage, &expected);
    for partition in 0..4 {
        storage.log(TOPIC, partition).delete_records(-1).unwrap();
    }
    storage.step();
    upkeep(&storage);
    assert_eq!(segments(&disk), 0);
    drop(storage);
    let storage = open(&disk);
    for (partition, expected) in expected {
        let log = storage.log(TOPIC, partition);
        assert_eq!(log.start_offset(), expected.last().unwrap().0 + 1);
        assert_eq!((log.end_offset(), log.bytes()), (log.start_offset(), 0));
    }
}

/// Sorting always had work, so that nothing was merged and no space of what was mostly dead came
/// back for as long as producers went on.
#[test]
fn segments_are_merged_while_the_journal_is_not_sorted_to_its_end() {
    let disk = SimDisk::new(1);
    let storage = open(&disk);
    for _ in 0..12 {
        fill(&storage, 4, 2);
        assert!(storage.step_upkeep().unwrap());
    }
    assert!(storage.metrics().segments_removed >= 4);
}

/// With the journal full to the last byte their files stayed until the next start, though they were
/// what would have given the space.
#[test]
fn dead_segments_whose_removal_is_refused_go_later() {
    let disk = SimDisk::new(1);
    let storage = open(&disk);
    fill(&storage, 4, 4);
    upkeep(&storage);
    let count = segments(&disk);
    for partition in 0..4 {
        storage.log(TOPIC, partition).delete_records(-1).unwrap();
    }
    disk.state().free_bytes = 0;
    while storage.append_metadata(&[4; 3000]).is_ok() {
        storage.step();
    }
    assert!(matches!(storage.step_upkeep(), Err(Error::DiskFull)));
    assert_eq!(segments(&disk), count);
    disk.state().free_bytes = u64::MAX;
    upkeep(&storage);
    assert_eq!(segments(&disk), 0);
}

/// After much was deleted at once nothing was sorted for minutes.
#[test]
fn urgent_sorting_goes_between_the_removal_of_dead_segments() {
    let disk = SimDisk::new(1);
    let storage = open(&disk);
    let logs: Vec<_> = (0..10).map(|partition| storage.log(TOPIC, partition)).collect();
    for log in &logs {
        log.append_bytes(&keyed(&[("a", Some("1"))], Compression::None), 0).unwrap();
    }
    storage.step();
    for log in logs {
        assert_eq!(storage.compact(&[(Arc::clone(&log), EVERYTHING)], 5_000).unwrap().logs, 1);
        log.delete_records(-1).unwrap();
    }
    fill(&storage, 1, 20);
    let written = storage.metrics().segments_written;
    for (dead, sorted) in [9, 8, 7, 6, 6, 5].into_iter().zip([0, 0, 0, 0, 1, 1]) {
        assert!(storage.step_upkeep().unwrap());
        let written = storage.metrics().segments_written - written;
        assert_eq!((segments(&disk) as u64 - written, written), (dead, sorted));
    }
}

/// Removing a file of 256 MiB at once delayed every flush by 30 ms, and ten files by 300 ms, on a
/// file system that reports free blocks to the device. So each piece is reported before the next.
#[test]
fn large_files_are_given_back_a_little_at_a_time() {
    let disk = SimDisk::new(1);
    let storage = open(&disk);
    let expected = fill(&storage, 4, 12);
    upkeep(&storage);
    storage.checkpoint(|_| Ok(())).unwrap();
    disk.state().done.clear();
    // All but the last files are free with the second checkpoint, and more than can be of use.
    assert!(storage.checkpoint(|_| Ok(())).unwrap() > 4);
    let retired = spares(&disk);
    assert!(retired > 4, "{retired}");
    for partition in 0..4 {
        storage.log(TOPIC, partition).delete_records(-1).unwrap();
    }
    storage.step();
    upkeep(&storage);
    assert_eq!((spares(&disk), segments(&disk)), (2, 0));
    for kind in [Kind::Spare, Kind::Segment] {
        let at = |operation| disk.state().done.iter().position(|it| *it == (operation, kind));
        assert!(at("shorten").is_some() && at("shorten") < at("remove"));
    }
    assert_eq!(disk.state().untold_max as u64, options().file_bytes / 16);
    // Those that are kept are whole.
    fill(&storage, 4, 3);
    drop(storage);
    assert_eq!(open(&disk).log(TOPIC, 0).start_offset(), expected[&0].last().unwrap().0 + 1);
}

#[test]
fn a_deleted_topic_frees_its_segments_and_stays_deleted() {
    let disk = SimDisk::new(1);
    let storage = open(&disk);
    fill(&storage, 4, 4);
    upkeep(&storage);
    storage.delete_topic(TOPIC).unwrap();
    storage.step();
    drop(storage);
    let storage = open(&disk);
    assert!(storage.topics().is_empty());
    upkeep(&storage);
    assert_eq!(segments(&disk), 0);
}

/// With the journal full the deletion was refused, and yet the segments went once there was space:
/// a start before the next checkpoint missed what the one before knew of the topic.
#[test]
fn segments_of_a_topic_go_after_its_deletion_is_in_the_journal() {
    let disk = SimDisk::new(1);
    let storage = open(&disk);
    fill(&storage, 4, 4);
    upkeep(&storage);
    for _ in 0..2 {
        storage.checkpoint(|_| Ok(())).unwrap();
    }
    while spares(&disk) > 0 {
        fill(&storage, 4, 1);
    }
    disk.state().free_bytes = 0;
    while storage.append_metadata(&[4; 3000]).is_ok() {
        storage.step();
    }
    assert_eq!(storage.delete_topic(TOPIC), Err(AppendError::DiskFull));
    disk.state().free_bytes = u64::MAX;
    upkeep(&storage);
    assert_eq!(segments(&disk), 0);
    drop(storage);
    assert!(open(&disk).topics().is_empty());
}

#[test]
fn retention_and_lookups_by_time_see_what_is_sorted() {
    let disk = SimDisk::new(1);
    let storage = open(&disk);
    let log = storage.log(TOPIC, 0);
    let until = storage.metrics().files_started + 4;
    let mut end = 0;
    while storage.metrics().files_started < until {
        let record = crate::world::batch(&[(10 * end, &[7; 700])], None);
        end = log.append_bytes(&record, 0).unwrap().last_offset + 1;
        storage.step();
    }
    upkeep(&storage);
    for offset in [0, 1, end / 3, end / 2, end - 1] {
        let lookup = log.offset_for_timestamp(10 * offset - 5, Isolation::ReadUncommitted);
        assert_eq!(block_on_stepped(&storage, lookup).unwrap().unwrap().offset, offset);
    }
    let latest = block_on_stepped(&storage, log.offset_of_max_timestamp()).unwrap().unwrap();
    assert_eq!(latest.offset, end - 1);
    let bytes = log.bytes();
    log.apply_retention(10 * end, None, Some(bytes / 2)).unwrap();
    assert!(log.start_offset() > 0 && log.bytes() >= bytes / 2 && log.bytes() < bytes);
    let start = log.start_offset();
    assert!(matches!(log.read(start - 1, 1, true), Err(Error::OffsetOutOfRange { .. })));
    assert_eq!(records(&log, 1 << 20).first().unwrap().0, start);
    log.apply_retention(20 * end, Some(1), None).unwrap();
    assert_eq!((log.start_offset(), log.bytes()), (end, 0));
}

/// Runs a future and serves its reads.
fn block_on_stepped<F: Future>(storage: &Storage, future: F) -> F::Output {
    let mut future = std::pin::pin!(future);
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    loop {
        if let std::task::Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return output;
        }
        assert!(storage.step());
    }
}

const EVERYTHING: Compaction = Compaction {
    min_lag_ms: 0,
    max_lag_ms: i64::MAX,
    delete_retention_ms: 0,
    min_dirty_ratio: 0.0,
};

/// A batch of records with keys; no value is a tombstone.
fn keyed(records: &[(&str, Option<&str>)], compression: Compression) -> Vec<u8> {
    let mut builder = BatchBuilder::new(BatchOptions::default());
    for (key, value) in records {
        let value = value.map(str::as_bytes);
        builder.append(1_000, Some(key.as_bytes()), value, []).unwrap();
    }
    builder.finish(compression, &mut Compressor::default()).unwrap().to_vec()
}

/// Offset, key and value of all records; every read gets on.
fn entries(log: &Arc<Log>) -> Vec<(i64, String, Option<String>)> {
    let mut found = Vec::new();
    let mut from = log.start_offset();
    while from < log.high_watermark() {
        let read = log.read(from, 3_000, true).unwrap().wait().unwrap();
        assert!(read.next_offset > from);
        from = read.next_offset;
        for batch in moldau_records::iter_batches(&read.batches.concat()) {
            let batch = batch.unwrap();
            batch.check_crc().unwrap();
            for record in batch.records(&mut Decompressor::default(), 1 << 20).unwrap() {
                let record = record.unwrap();
                let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
                let key = text(record.key().unwrap());
                found.push((record.offset(), key, record.value().map(text)));
            }
        }
    }
    found
}

#[test]
fn compaction_keeps_the_last_value_of_each_key_in_journal_and_segments() {
    let disk = SimDisk::new(1);
    let storage = open(&disk);
    let log = storage.log(TOPIC, 0);
    let mut rng = fastrand::Rng::with_seed(4);
    let mut model: BTreeMap<String, (i64, String)> = BTreeMap::new();
    for round in 0..6 {
        for at in 0..120 {
            let codec = [Compression::None, Compression::Lz4, Compression::Zstd][at % 3];
            let values: Vec<(String, String)> = (0..rng.usize(1..6))
                .map(|_| (format!("key-{}", rng.u8(..40)), format!("{round}-{at}-{}", rng.u64(..))))
                .collect();
            let batch: Vec<_> =
                values.iter().map(|(key, value)| (key.as_str(), Some(value.as_str()))).collect();
            let base = log.append_bytes(&keyed(&batch, codec), 0).unwrap().base_offset;
            storage.step();
            for (offset, (key, value)) in (base..).zip(values) {
                model.insert(key, (offset, value));
            }
        }
        if round % 2 == 0 {
            upkeep(&storage);
        }
        let compacted = storage.compact(&[(Arc::clone(&log), EVERYTHING)], 5_000).unwrap();
        assert_eq!(compacted.logs, 1);
        let mut expected: Vec<_> = model
            .iter()
            .map(|(key, (offset, value))| (*offset, key.clone(), Some(value.clone())))
            .collect();
        expected.sort();
        assert_eq!(entries(&log), expected);
        let again = storage.compact(&[(Arc::clone(&log), EVERYTHING)], 5_000).unwrap();
        assert_eq!(again.logs, 0, "nothing is dirty");
        if round == 3 {
            storage.checkpoint(|_| Ok(())).unwrap();
        }
        assert_eq!(entries(&open(&disk.copy()).log(TOPIC, 0)), expected);
    }
}

#[test]
fn compaction_has_the_space_of_retired_files_if_that_is_enough() {
    let disk = SimDisk::new(1);
    let options = Options { reserve_bytes: 256 << 10, ..options() };
    let kept = options.reserve_bytes + options.file_bytes;
    let file_bytes = options.file_bytes;
    let storage = Storage::open_on(Arc::new(disk.clone()), options, &mut Owner::default()).unwrap();
    let log = storage.log(TOPIC, 0);
    let value = "v".repeat(3_000);
    while storage.metrics().files_started < 12 {
        for _ in 0..4 {
            log.append_bytes(&keyed(&[("a", Some(&value))], Compression::None), 0).unwrap();
        }
        storage.step();
    }
    upkeep(&storage);
    for _ in 0..2 {
        storage.checkpoint(|_| Ok(())).unwrap();
    }
    let before = spares(&disk);
    assert!(before > 4, "{before}");
    let of_spares = (before as u64 - 2) * file_bytes;
    let compact = || storage.compact(&[(Arc::clone(&log), EVERYTHING)], 5_000);
    disk.state().free_bytes = kept + log.bytes() - of_spares - 1;
    assert!(matches!(compact(), Err(Error::DiskFull)));
    assert_eq!(spares(&disk), before, "removed for nothing");
    disk.state().free_bytes += 1;
    assert_eq!(compact().unwrap().logs, 1);
    assert_eq!(spares(&disk), 2);
    assert_eq!(entries(&log).len(), 1);
}

/// The space of all compacted logs was once asked for, whichever were due: with little space
/// nothing was compacted, and files for later use went for nothing.
#[test]
fn compaction_asks_for_the_space_of_what_is_due_alone() {
    let disk = SimDisk::new(1);
    let storage = open(&disk);
    let (due, other) = (storage.log(TOPIC, 0), storage.log(TOPIC, 1));
    let value = "v".repeat(3_000);
    let append = |log: &Arc<Log>| {
        log.append_bytes(&keyed(&[("a", Some(&value))], Compression::None), 0).unwrap();
        storage.step();
    };
    while storage.metrics().files_started < 12 {
        append(&other);
    }
    append(&due);
    upkeep(&storage);
    for _ in 0..2 {
        storage.checkpoint(|_| Ok(())).unwrap();
    }
    let before = spares(&disk);
    assert!(before > 4, "{before}");
    disk.state().free_bytes = options().file_bytes + due.bytes();
    let never = Compaction { min_dirty_ratio: 1.1, ..EVERYTHING };
    for (of_due, cleaned) in [(never, 0), (EVERYTHING, 1)] {
        let logs = [(Arc::clone(&due), of_due), (Arc::clone(&other), never)];
        assert_eq!(storage.compact(&logs, 5_000).unwrap().logs, cleaned);
    }
    assert_eq!(spares(&disk), before, "removed for nothing");
}

#[test]
fn a_tombstone_goes_with_its_key_and_the_end_of_the_log_stays() {
    let disk = SimDisk::new(1);
    let storage = open(&disk);
    let log = storage.log(TOPIC, 0);
    let append = |records: &[(&str, Option<&str>)]| {
        log.append_bytes(&keyed(records, Compression::None), 0).unwrap();
        storage.step();
    };
    append(&[("a", Some("1")), ("b", Some("1"))]);
    append(&[("a", None)]);
    let compact = |now_ms| storage.compact(&[(Arc::clone(&log), EVERYTHING)], now_ms).unwrap();
    compact(2_000);
    let left = |log: &Arc<Log>| -> Vec<_> {
        entries(log).into_iter().map(|(offset, key, _)| (offset, key)).collect()
    };
    assert_eq!(left(&log), [(1, "b".to_owned()), (2, "a".to_owned())]);
    append(&[("c", None)]);
    compact(3_000);
    append(&[("c", None)]);
    compact(4_000);
    let found = left(&log);
    assert!(!found.iter().any(|(_, key)| key == "a"), "{found:?}");
    assert_eq!(log.high_watermark(), 5);
    let read = log.read(4, 100, true).unwrap().wait().unwrap();
    assert_eq!(read.next_offset, 5);
}

#[test]
fn young_records_are_not_compacted() {
    let disk = SimDisk::new(1);
    let storage = open(&disk);
    let log = storage.log(TOPIC, 0);
    for value in ["1", "2", "3"] {
        log.append_bytes(&keyed(&[("a", Some(value))], Compression::None), 0).unwrap();
        storage.step();
    }
    let compact = |compaction, now_ms| {
        storage.compact(&[(Arc::clone(&log), compaction)], now_ms).unwrap().logs
    };
    assert_eq!(compact(Compaction { min_lag_ms: 100, ..EVERYTHING }, 1_050), 0);
    assert_eq!(
        compact(Compaction { min_dirty_ratio: 1.1, max_lag_ms: 50, ..EVERYTHING }, 1_050),
        0
    );
    assert_eq!(entries(&log).len(), 3);
    assert_eq!(
        compact(Compaction { min_dirty_ratio: 1.1, max_lag_ms: 50, ..EVERYTHING }, 1_051),
        1
    );
    assert_eq!(entries(&log).len(), 1);
}

#[test]
fn a_flip_anywhere_in_a_segment_is_reported_and_never_served() {
    let disk = SimDisk::new(1);
    let storage = open(&disk);
    let expected = fill(&storage, 3, 3);
    upkeep(&storage);
    storage.checkpoint(|_| Ok(())).unwrap();
    drop(storage);
    let path = Path::new("/data/segments/0000000001.segment");
    let length = disk.bytes(path).len();
    let padding = |at: usize| disk.bytes(path)[at] == 0;
    let mut detected = 0;
    for at in (0..length).step_by(97).filter(|at| !padding(*at)) {
        let flipped = disk.copy();
        flipped.change(path, |bytes| bytes[at] ^= 0x10);
        let mut owner = Owner::default();
        match Storage::open_on(Arc::new(flipped), options(), &mut owner) {
            Err(Error::Corrupt { path: named, .. }) => assert_eq!(named, path),
            Err(error) => panic!("{error}"),
            Ok(storage) => {
                let mut errors = 0;
                for (partition, expected) in &expected {
                    match crate::world::try_records(&storage.log(TOPIC, *partition), 2_000) {
                        Ok(found) => assert_eq!(&found, expected),
                        Err(Error::Corrupt { path: named, .. }) => {
                            assert_eq!(named, path);
                            errors += 1;
                        }
                        Err(error) => panic!("{error}"),
                    }
                }
                assert!(errors > 0, "flip at {at} was not noticed");
            }
        }
        detected += 1;
    }
    assert!(detected > 100);
}

#[test]
fn a_missing_or_swapped_file_is_reported() {
    let disk = SimDisk::new(1);
    let storage = open(&disk);
    fill(&storage, 3, 4);
    upkeep(&storage);
    for _ in 0..2 {
        storage.checkpoint(|_| Ok(())).unwrap();
    }
    drop(storage);
    let mut names = disk.names();
    names.retain(|name| name.extension().is_some_and(|suffix| suffix == "segment"));
    let (one, other) = (names.first().unwrap(), names.last().unwrap());
    assert_ne!(one, other);
    for change in ["lost", "swapped", "truncated", "checkpoints"] {
        let copy = disk.copy();
        match change {
            "lost" => moldau_storage::Disk::remove(&copy, one).unwrap(),
            "swapped" => copy.change(one, |bytes| *bytes = disk.bytes(other)),
            "truncated" => copy.change(one, |bytes| bytes.truncate(bytes.len() / 2)),
            _ => ["/data/checkpoint", "/data/checkpoint.previous"]
                .into_iter()
                .for_each(|path| moldau_storage::Disk::remove(&copy, path.as_ref()).unwrap()),
        }
        let opened = Storage::open_on(Arc::new(copy), options(), &mut Owner::default());
        assert!(matches!(opened.map(drop), Err(Error::Corrupt { .. })), "{change}");
    }
}

/// Fetches that are full still ask each partition for its watermark, and once had a block of each
/// read for nothing.
#[test]
fn a_read_without_room_asks_nothing_of_the_disk() {
    let disk = SimDisk::new(1);
    let storage = open(&disk);
    fill(&storage, 3, 4);
    upkeep(&storage);
    let log = storage.log(TOPIC, 0);
    let before = storage.metrics().chunk_reads;
    let read = log.read(0, 0, false).unwrap().wait().unwrap();
    assert_eq!((read.bytes, read.next_offset), (0, 0));
    assert!(read.high_watermark > 0);
    assert_eq!(storage.metrics().chunk_reads, before);
    assert!(log.read(0, 0, true).unwrap().wait().unwrap().bytes > 0);
    assert!(storage.metrics().chunk_reads > before);
}

/// The start once removed such a segment as a stray before it refused the directory.
#[test]
fn a_segment_under_another_name_is_still_there_after_the_refusal() {
    let disk = SimDisk::new(1);
    let storage = open(&disk);
    fill(&storage, 3, 4);
    upkeep(&storage);
    for _ in 0..2 {
        storage.checkpoint(|_| Ok(())).unwrap();
    }
    drop(storage);
    let mut names = disk.names();
    names.retain(|name| name.extension().is_some_and(|suffix| suffix == "segment"));
    let (one, stray) = (&names[0], Path::new("/data/segments/9999999999.segment"));
    let bytes = disk.bytes(one);
    moldau_storage::Disk::rename(&disk, one, stray).unwrap();
    let opened = Storage::open_on(Arc::new(disk.clone()), options(), &mut Owner::default());
    assert!(matches!(opened.map(drop), Err(Error::Corrupt { .. })));
    assert_eq!(disk.bytes(stray), bytes);
}
