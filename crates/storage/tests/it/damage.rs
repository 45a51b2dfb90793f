//! Torn, flipped, stale and refused bytes.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use moldau_storage::{
    AppendError, CheckpointWriter, Compaction, Drive, Error, Options, ReadOutcome, Storage,
    block_on,
};

use crate::sim_disk::SimDisk;
use crate::world::{AppendBytes, Owner, TOPIC, keyed, one, records, small, try_records};

pub(crate) fn stepped() -> Options {
    Options { drive: Drive::Stepped, tail_cache_bytes: 0, ..small("/data".as_ref()) }
}

pub(crate) fn try_open(disk: &SimDisk, options: Options) -> Result<(Storage, Owner), Error> {
    let mut owner = Owner::default();
    let storage = Storage::open_on(Arc::new(disk.clone()), options, &mut owner)?;
    Ok((storage, owner))
}

pub(crate) fn open(disk: &SimDisk) -> (Storage, Owner) {
    try_open(disk, stepped()).unwrap()
}

pub(crate) fn file(number: u32) -> PathBuf {
    Path::new("/data/journal").join(format!("{number:010}.journal"))
}

/// Appends a batch and an entry of metadata in a frame of their own; returns where they end.
pub(crate) fn append_frame(storage: &Storage, value: &[u8]) -> usize {
    storage.log(TOPIC, 0).append_bytes(&one(value), 0).unwrap();
    storage.append_metadata(value).unwrap();
    assert!(storage.step());
    storage.durable().0 as usize
}

#[test]
fn a_frame_torn_at_any_byte_is_cut_and_what_was_before_stays() {
    let disk = SimDisk::new(1);
    let (storage, _) = open(&disk);
    append_frame(&storage, b"first");
    let start = storage.durable().0 as usize;
    let before = disk.copy();
    let end = append_frame(&storage, &[9; 4500]);
    let whole = disk.bytes(&file(1));
    drop(storage);
    // The last byte that is not zero is the last that can be missed.
    let last = whole[..end].iter().rposition(|byte| *byte != 0).unwrap();
    for cut in start..=last {
        let torn = before.copy();
        torn.change(&file(1), |bytes| bytes[start..cut].copy_from_slice(&whole[start..cut]));
        let (storage, owner) = open(&torn);
        assert_eq!(owner.0, [b"first".to_vec()], "cut at {cut}");
        let log = storage.log(TOPIC, 0);
        assert_eq!((log.end_offset(), storage.info().end.0 as usize), (1, start));
        if cut % 512 == 0 {
            append_frame(&storage, b"second");
            drop(storage);
            let (storage, _) = open(&torn);
            let expected = [(0, b"first".to_vec()), (1, b"second".to_vec())];
            assert_eq!(records(&storage.log(TOPIC, 0), 100), expected);
        }
    }
}

#[test]
fn a_flip_of_any_byte_of_a_frame_that_was_followed_is_reported() {
    let disk = SimDisk::new(1);
    let (storage, _) = open(&disk);
    let start = storage.durable().0 as usize;
    let end = append_frame(&storage, b"damaged");
    append_frame(&storage, b"later");
    drop(storage);
    for at in start..end {
        let flipped = disk.copy();
        flipped.change(&file(1), |bytes| bytes[at] ^= 0x10);
        match try_open(&flipped, stepped()) {
            Err(Error::Corrupt { path, offset, .. }) => {
                assert_eq!((path, offset as usize), (file(1), start), "flip at {at}");
            }
            other => panic!("flip at {at}: {:?}", other.map(|(_, owner)| owner)),
        }
    }
}

#[test]
fn a_flip_in_a_header_of_a_file_is_reported() {
    let disk = SimDisk::new(1);
    drop(open(&disk));
    for (path, bytes) in [(file(1), 64), (PathBuf::from("/data/moldau.meta"), 64)] {
        for at in 0..bytes {
            let flipped = disk.copy();
            flipped.change(&path, |bytes| bytes[at] ^= 1);
            let refused = try_open(&flipped, stepped()).err();
            assert!(matches!(refused, Some(Error::Corrupt { path: named, .. }) if named == path));
        }
    }
}

#[test]
fn a_missing_file_is_reported() {
    let disk = SimDisk::new(1);
    let (storage, _) = open(&disk);
    while !disk.names().contains(&file(3)) {
        append_frame(&storage, &[1; 9000]);
    }
    drop(storage);
    for number in [1, 2] {
        let lost = disk.copy();
        moldau_storage::Disk::remove(&lost, &file(number)).unwrap();
        assert!(matches!(try_open(&lost, stepped()), Err(Error::Corrupt { .. })));
    }
}

#[test]
fn damage_after_recovery_is_never_served() {
    let disk = SimDisk::new(1);
    let (storage, _) = open(&disk);
    append_frame(&storage, b"hello, river");
    drop(storage);
    let value = disk.bytes(&file(1)).windows(5).position(|bytes| bytes == b"river").unwrap();
    // The batch follows the headers of file, frame and entry; its checksum leaves out its first 16
    // bytes: base offset, length and leader epoch.
    let batch = 4096 + 64 + 48;
    for at in (batch..batch + 16).chain([value]) {
        let disk = disk.copy();
        let (storage, _) = open(&disk);
        disk.change(&file(1), |bytes| bytes[at] ^= 1);
        let read = storage.log(TOPIC, 0).read(0, 100, true).and_then(ReadOutcome::wait);
        assert!(matches!(read, Err(Error::Corrupt { path, .. }) if path == file(1)), "{at}");
        assert_eq!(storage.metrics().corrupt_batches, 1);
    }
}

#[test]
fn stale_frames_of_a_recycled_file_are_not_replayed() {
    let disk = SimDisk::new(1);
    let (storage, _) = open(&disk);
    let log = storage.log(TOPIC, 0);
    while !disk.names().contains(&file(3)) {
        append_frame(&storage, &[1; 9000]);
    }
    log.delete_records(-1).unwrap();
    storage.step();
    let checkpoint = || {
        let retired = storage.checkpoint(|writer| {
            writer.metadata(b"snapshot");
            Ok(())
        });
        retired.unwrap()
    };
    // The second makes the journal before the first needless.
    assert_eq!((checkpoint(), checkpoint()), (0, 2));
    assert!(!disk.names().contains(&file(1)));
    while !disk.names().contains(&file(5)) {
        append_frame(&storage, &[2; 9000]);
    }
    let (start, end) = (log.start_offset(), log.end_offset());
    drop((storage, log));
    assert!(disk.bytes(&file(5)).windows(9).filter(|bytes| *bytes == [1; 9]).count() > 0);
    let (storage, owner) = open(&disk);
    let log = storage.log(TOPIC, 0);
    assert_eq!((log.start_offset(), log.end_offset()), (start, end));
    assert_eq!(owner.0[0], b"snapshot");
    assert!(owner.0[1..].iter().all(|entry| *entry == [2; 9000]));
    assert!(records(&log, 1 << 20).iter().all(|(_, value)| *value == [2; 9000]));
}

#[test]
fn appends_after_a_failed_write_or_flush_are_refused() {
    for operation in ["write", "sync"] {
        let disk = SimDisk::new(1);
        let (storage, _) = open(&disk);
        append_frame(&storage, b"acknowledged");
        let log = storage.log(TOPIC, 0);
        let lost = log.append_bytes(&one(b"lost"), 0).unwrap();
        disk.state().fault = Some((operation, 0));
        assert!(!storage.step());
        assert!(matches!(block_on(storage.wait_durable(lost.lsn)), Err(Error::Poisoned { .. })));
        assert!(matches!(block_on(storage.stopped()), Error::Poisoned { .. }));
        assert!(matches!(log.append_bytes(&one(b"x"), 0), Err(AppendError::Poisoned(_))));
        assert!(matches!(storage.append_metadata(b"x"), Err(AppendError::Poisoned(_))));
        assert_eq!((log.high_watermark(), storage.step()), (1, false));
        assert!(storage.close().is_err());
    }
}

#[test]
fn a_short_write_is_continued() {
    let disk = SimDisk::new(1);
    disk.state().has_short_writes = true;
    let (storage, _) = open(&disk);
    append_frame(&storage, &[5; 9000]);
    drop(storage);
    let (storage, _) = open(&disk);
    assert_eq!(records(&storage.log(TOPIC, 0), 100), [(0, vec![5; 9000])]);
}

#[test]
fn a_full_disk_refuses_data_first_and_serves_again_when_space_returns() {
    let disk = SimDisk::new(1);
    let (kept, file_bytes) = (64 << 10, 64 << 10);
    disk.state().free_bytes = 3 * file_bytes;
    let (storage, _) = try_open(&disk, Options { reserve_bytes: kept, ..stepped() }).unwrap();
    let log = storage.log(TOPIC, 0);
    let refused = loop {
        match log.append_bytes(&one(&[3; 9000]), 0) {
            Ok(_) => assert!(storage.step()),
            Err(error) => break error,
        }
    };
    assert_eq!(refused, AppendError::DiskFull);
    let end = log.end_offset();
    for _ in 0..4 {
        storage.append_metadata(&[4; 9000]).unwrap();
        storage.step();
    }
    assert_eq!(log.append_bytes(&one(b"x"), 0), Err(AppendError::DiskFull));
    assert_eq!(records(&log, 1 << 20).len() as i64, end);
    disk.state().free_bytes = 3 * file_bytes;
    assert_eq!(log.append_bytes(&one(b"x"), 0).unwrap().base_offset, end);
    storage.step();
    drop((storage, log));
    let (storage, owner) = open(&disk);
    assert_eq!((storage.log(TOPIC, 0).end_offset(), owner.0.len()), (end + 1, 4));
}

#[test]
fn another_node_or_an_unknown_version_is_refused() {
    let disk = kept();
    let other = try_open(&disk, Options { node_id: 5, ..stepped() });
    assert!(matches!(other, Err(Error::WrongNode { found: 0, expected: 5, .. })));
    for path in ["/data/moldau.meta".into(), file(1), checkpoint(), segment(1)] {
        let newer = disk.copy();
        newer.change(&path, |bytes| {
            bytes[8] = 3;
            let crc = moldau_records::crc32c(&bytes[..60]).to_le_bytes();
            bytes[60..64].copy_from_slice(&crc);
        });
        let refused = try_open(&newer, stepped()).err();
        match refused {
            Some(Error::UnknownVersion { found: 3, path: named, .. }) => assert_eq!(named, path),
            other => panic!("{other:?}"),
        }
    }
}

fn checkpoint() -> PathBuf {
    "/data/checkpoint".into()
}

pub(crate) fn segment(number: u32) -> PathBuf {
    Path::new("/data/segments").join(format!("{number:010}.segment"))
}

/// A directory with a checkpoint, a segment and batches behind it in the journal.
fn kept() -> SimDisk {
    let disk = SimDisk::new(1);
    let (storage, _) = open(&disk);
    let log = storage.log(TOPIC, 0);
    for (key, value) in [(&b"a"[..], &b"sorted"[..]), (b"b", &[5; 4500])] {
        log.append_bytes(&keyed(1_000, key, value), 0).unwrap();
        storage.step();
    }
    let compaction = Compaction {
        min_lag_ms: 0,
        max_lag_ms: i64::MAX,
        delete_retention_ms: 0,
        min_dirty_ratio: 0.0,
    };
    assert_eq!(storage.compact(&[(log, compaction)], 5_000).unwrap().logs, 1);
    append_frame(&storage, b"in the journal");
    let metadata = |writer: &mut CheckpointWriter<'_>| {
        writer.metadata(b"all");
        Ok(())
    };
    storage.checkpoint(metadata).unwrap();
    disk
}

/// Opens a changed directory: what is damaged is named, or everything is served as it was.
fn assert_reported_or_whole(changed: &SimDisk, path: &Path, what: &str) {
    let named = |error: Error| match error {
        Error::Corrupt { path: named, .. } => assert_eq!(named, path, "{what}"),
        other => panic!("{what}: {other}"),
    };
    match try_open(changed, stepped()) {
        Err(error) => named(error),
        Ok((storage, owner)) => {
            assert_eq!(owner.0, [b"all".to_vec()], "{what}");
            match try_records(&storage.log(TOPIC, 0), 1 << 20) {
                Ok(found) => {
                    let values = found.into_iter().map(|(_, value)| value);
                    let expected = [b"sorted".to_vec(), vec![5; 4500], b"in the journal".to_vec()];
                    assert!(values.eq(expected), "{what}");
                }
                Err(error) => named(error),
            }
        }
    }
}

#[test]
fn a_flip_of_any_byte_of_a_segment_is_reported_or_means_nothing() {
    let disk = kept();
    let bytes = disk.bytes(&segment(1));
    let mut flips = 0;
    // Most zeros are padding, all alike.
    for at in (0..bytes.len()).filter(|at| bytes[*at] != 0 || at % 512 == 0) {
        let flipped = disk.copy();
        flipped.change(&segment(1), |bytes| bytes[at] ^= 0x40);
        assert_reported_or_whole(&flipped, &segment(1), &format!("flip at {at}"));
        flips += 1;
    }
    assert!(flips > 90, "{flips}");
}

/// A directory with two checkpoints, whose journal does not begin at its beginning any more.
fn kept_twice() -> SimDisk {
    let disk = SimDisk::new(1);
    let (storage, _) = open(&disk);
    while !disk.names().contains(&file(3)) {
        append_frame(&storage, &[1; 9000]);
    }
    storage.log(TOPIC, 0).delete_records(-1).unwrap();
    for value in [&b"first"[..], b"second", b"third"] {
        append_frame(&storage, value);
        let metadata = |writer: &mut CheckpointWriter<'_>| {
            writer.metadata(value);
            Ok(())
        };
        storage.checkpoint(metadata).unwrap();
    }
    append_frame(&storage, b"fourth");
    assert!(!disk.names().contains(&file(1)));
    disk
}

/// A checkpoint of one flipped bit once cost all topics, since the journal before it was gone.
#[test]
fn a_flip_of_any_byte_of_the_newest_checkpoint_loses_nothing() {
    let disk = kept_twice();
    let bytes = disk.bytes(&checkpoint());
    for at in (0..bytes.len()).filter(|at| bytes[*at] != 0 || at % 512 == 0) {
        let flipped = disk.copy();
        flipped.change(&checkpoint(), |bytes| bytes[at] ^= 0x40);
        assert_whole(&flipped, &format!("flip at {at}"));
        // Nor does the next checkpoint put it in the place of the one before.
        let (storage, _) = open(&flipped);
        storage.checkpoint(|_| Ok(())).unwrap();
        drop(storage);
        flipped.change(&checkpoint(), |bytes| bytes.truncate(100));
        assert_whole(&flipped, &format!("flip at {at}, and another"));
    }
}

fn assert_whole(disk: &SimDisk, what: &str) {
    let (storage, owner) = open(disk);
    // Entries come after the snapshot that stands for all before them.
    assert_eq!(owner.0.last().map(Vec::as_slice), Some(&b"fourth"[..]), "{what}");
    let values = records(&storage.log(TOPIC, 0), 1 << 20).into_iter().map(|(_, value)| value);
    let expected = [&b"first"[..], b"second", b"third", b"fourth"].map(<[u8]>::to_vec);
    assert!(values.eq(expected), "{what}");
}

#[test]
fn two_damaged_checkpoints_are_reported_and_one_that_is_missing_is_none() {
    let disk = kept_twice();
    let missing = disk.copy();
    moldau_storage::Disk::remove(&missing, &checkpoint()).unwrap();
    assert_whole(&missing, "missing");
    for path in [checkpoint(), "/data/checkpoint.previous".into()] {
        assert_whole(&disk, "one of them");
        disk.change(&path, |bytes| bytes[4096 + 20] ^= 1);
    }
    let refused = try_open(&disk, stepped()).err();
    assert!(matches!(refused, Some(Error::Corrupt { path, .. }) if path == checkpoint()));
}

#[test]
fn a_file_cut_or_grown_by_any_block_is_reported() {
    let disk = kept();
    for path in [checkpoint(), segment(1), file(1)] {
        let length = disk.bytes(&path).len();
        for cut in (0..length).step_by(4096).chain([length - 1, length + 4096]) {
            let changed = disk.copy();
            changed.change(&path, |bytes| bytes.resize(cut, 0));
            match try_open(&changed, stepped()) {
                Err(Error::Corrupt { path: named, .. }) => assert_eq!(named, path, "{cut}"),
                // The journal has all that the checkpoint says.
                Ok((storage, owner)) if path == checkpoint() => {
                    assert_eq!((owner.0.len(), storage.log(TOPIC, 0).end_offset()), (1, 3));
                }
                other => panic!("{path:?} of {cut} bytes: {:?}", other.map(|(_, owner)| owner)),
            }
        }
    }
}

#[test]
fn files_of_another_kind_place_or_directory_are_reported() {
    let disk = kept();
    let (storage, _) = open(&disk);
    let moved = disk.copy();
    while !disk.names().contains(&file(2)) {
        append_frame(&storage, &[6; 9000]);
    }
    let paths = [segment(1), file(1), "/data/moldau.meta".into(), checkpoint()];
    for path in &paths[..3] {
        for other in paths.iter().filter(|other| *other != path) {
            let changed = disk.copy();
            changed.change(path, |bytes| *bytes = disk.bytes(other));
            let refused = try_open(&changed, stepped()).err();
            assert!(
                matches!(&refused, Some(Error::Corrupt { path: named, .. }) if named == path),
                "{other:?} as {path:?}: {refused:?}"
            );
        }
    }
    let stranger = kept();
    for path in [segment(1), file(1)] {
        moved.change(&path, |bytes| *bytes = stranger.bytes(&path));
        let refused = try_open(&moved, stepped()).err();
        assert!(matches!(refused, Some(Error::Corrupt { path: named, .. }) if named == path));
        moved.change(&path, |bytes| *bytes = disk.bytes(&path));
    }
    let renamed = disk.copy();
    moldau_storage::Disk::rename(&renamed, &file(2), &file(7)).unwrap();
    let refused = try_open(&renamed, stepped()).err();
    assert!(matches!(refused, Some(Error::Corrupt { path, .. }) if path == file(7)));
}

#[test]
fn a_journal_that_ends_before_its_checkpoint_is_reported() {
    let disk = kept();
    let (storage, _) = open(&disk);
    let start = storage.durable().0 as usize;
    let end = append_frame(&storage, b"later");
    storage.checkpoint(|_| Ok(())).unwrap();
    drop(storage);
    let journal = disk.bytes(&file(1));
    disk.change(&checkpoint(), |bytes| {
        // As if recovery began one frame earlier.
        bytes[12..16].copy_from_slice(&journal[start + 48..start + 52]);
        bytes[32..40].copy_from_slice(&(start as u64).to_le_bytes());
        bytes[40..48].copy_from_slice(&journal[start + 32..start + 40]);
        let crc = moldau_records::crc32c(&bytes[..60]).to_le_bytes();
        bytes[60..64].copy_from_slice(&crc);
    });
    assert!(try_open(&disk.copy(), stepped()).is_ok());
    disk.change(&file(1), |bytes| bytes[start..end].fill(0));
    match try_open(&disk, stepped()).err() {
        Some(Error::Corrupt { path, offset, .. }) => {
            assert_eq!((path, offset as usize), (file(1), start))
        }
        other => panic!("{other:?}"),
    }
}

/// A storage with data in the journal and sorted: where frames begin, and the last segment.
pub(crate) fn sorted(disk: &SimDisk) -> (Storage, Vec<usize>, PathBuf) {
    let (storage, _) = open(disk);
    let mut starts = Vec::new();
    while storage.metrics().files_started < 4 {
        starts.push(storage.durable().0 as usize);
        append_frame(&storage, &[1; 3000]);
    }
    while storage.step_upkeep().unwrap() {}
    let mut names = disk.names().into_iter();
    let segment = names.rfind(|name| name.starts_with("/data/segments")).unwrap();
    (storage, starts, segment)
}

#[test]
fn scrubbing_finds_what_was_damaged_since_it_was_written() {
    let disk = SimDisk::new(1);
    let (storage, starts, segment) = sorted(&disk);
    assert_eq!(storage.scrub().unwrap(), 0);
    let (bytes, read) = (storage.metrics().frame_bytes, storage.metrics().scrubbed_bytes);
    assert!(read > bytes, "{read} of {bytes} and what was sorted");
    // A block of data, the footer, and three frames: one by itself and two that are neighbours.
    disk.change(&segment, |bytes| bytes[4096 + 700] ^= 1);
    assert_eq!(storage.scrub().unwrap(), 1);
    disk.change(&segment, |bytes| *bytes.iter_mut().rfind(|byte| **byte != 0).unwrap() ^= 1);
    assert_eq!(storage.scrub().unwrap(), 2);
    for frame in [1, 3, 4] {
        disk.change(&file(1), |bytes| bytes[starts[frame] + 200] ^= 1);
    }
    assert_eq!(storage.scrub().unwrap(), 5);
    assert_eq!(storage.metrics().scrub_damaged, 8);
    for _ in 0..2 {
        storage.checkpoint(|_| Ok(())).unwrap();
    }
    let found = storage.scrub().unwrap();
    for (path, more) in [(checkpoint(), 1), ("/data/checkpoint.previous".into(), 2)] {
        disk.change(&path, |bytes| bytes[4096 + 20] ^= 1);
        assert_eq!(storage.scrub().unwrap(), found + more);
    }
}

#[test]
fn a_checkpoint_that_says_anything_else_is_refused_or_read_to_an_end() {
    let disk = kept();
    let (storage, _) = open(&disk);
    append_frame(&storage, &[4; 20_000]);
    storage.checkpoint(|_| Ok(())).unwrap();
    drop(storage);
    let length = disk.bytes(&checkpoint())[4096] as usize;
    let mut opened = 0;
    for at in 4096 + 16..4096 + 16 + length {
        for value in [0, 0x7f, 0x80, 0xff] {
            let changed = disk.copy();
            changed.change(&checkpoint(), |bytes| {
                bytes[at] = value;
                let crc = moldau_records::crc32c(&bytes[4096 + 8..4096 + 16 + length]);
                bytes[4096 + 4..4096 + 8].copy_from_slice(&crc.to_le_bytes());
            });
            let Ok((storage, _)) = try_open(&changed, stepped()) else { continue };
            opened += 1;
            for log in storage.logs() {
                match try_records(&log, 1 << 20) {
                    // A read of a batch of no bytes once waited for ever.
                    Ok(_) | Err(Error::Corrupt { .. }) => {}
                    Err(error) => panic!("{value} at {at}: {error}"),
                }
            }
        }
    }
    assert!(opened > 20, "{opened}");
}

#[test]
fn a_lost_file_before_the_checkpoint_is_reported() {
    let disk = SimDisk::new(1);
    let (storage, _) = open(&disk);
    while !disk.names().contains(&file(3)) {
        append_frame(&storage, &[1; 9000]);
    }
    storage.checkpoint(|_| Ok(())).unwrap();
    drop(storage);
    moldau_storage::Disk::remove(&disk, &file(1)).unwrap();
    assert!(matches!(try_open(&disk, stepped()), Err(Error::Corrupt { .. })));
}
