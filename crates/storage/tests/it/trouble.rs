//! Sectors that cannot be read, and disks and processes that have nothing left.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use moldau_storage::{AppendError, Compaction, Error, Options, Storage};

use crate::damage::{append_frame, file, open, segment, sorted, stepped, try_open};
use crate::sim_disk::SimDisk;
use crate::world::{AppendBytes, TOPIC, keyed, one, records, try_records};

/// Does all upkeep, and says how often it could not read something.
fn failed_reads_of_upkeep(storage: &Storage) -> u32 {
    let mut failed = 0;
    loop {
        match storage.step_upkeep() {
            Ok(true) => {}
            Ok(false) => return failed,
            Err(error) => {
                assert!(matches!(error, Error::Io { operation: "read", .. }), "{error}");
                failed += 1;
                assert!(failed < 5, "{error} once more");
            }
        }
    }
}

/// A power loss soon after the first start once took the whole directory, as its own name was not
/// durable.
#[test]
fn the_names_above_a_data_directory_are_durable_before_it_counts() {
    let disk = SimDisk::new(1);
    let synced = |data_dir: &str| {
        disk.state().synced_dirs.clear();
        drop(try_open(&disk, Options { data_dir: data_dir.into(), ..stepped() }).unwrap());
        std::mem::take(&mut disk.state().synced_dirs)
    };
    let (absolute, relative) = (synced("/var/lib/data"), synced("lib/data"));
    for dir in ["/var/lib", "/var", "/"] {
        assert!(absolute.contains(Path::new(dir)), "{dir}");
    }
    for dir in ["lib", "."] {
        assert!(relative.contains(Path::new(dir)), "{dir}");
    }
    assert!(!synced("/var/lib/data").contains(Path::new("/var/lib")));
}

/// Such a sector once ended every pass of scrubbing, and what lay behind it was never read.
#[test]
fn scrubbing_goes_on_behind_what_the_disk_cannot_read() {
    let disk = SimDisk::new(1);
    let (storage, starts, segment) = sorted(&disk);
    disk.change(&file(1), |bytes| bytes[starts[4] + 200] ^= 1);
    disk.change(&segment, |bytes| *bytes.iter_mut().rfind(|byte| **byte != 0).unwrap() ^= 1);
    assert_eq!(storage.scrub().unwrap(), 2);
    disk.break_at(&file(1), starts[1] + 200);
    disk.break_at(&segment, 4096 + 700);
    assert_eq!(storage.scrub().unwrap(), 4);
}

/// Such a sector once stopped sorting for good, also after each start: the journal only grew.
#[test]
fn what_the_disk_cannot_read_keeps_nothing_else_from_being_sorted() {
    let disk = SimDisk::new(1);
    let (storage, _) = open(&disk);
    let logs: Vec<_> = (0..3).map(|partition| storage.log(TOPIC, partition)).collect();
    while storage.metrics().files_started < 4 {
        for log in &logs {
            log.append_bytes(&one(&[5; 2000]), 0).unwrap();
            storage.step();
        }
    }
    // The second frame holds the first batch of the second log.
    disk.break_at(&file(1), 4096 + 4096 + 700);
    assert_eq!(failed_reads_of_upkeep(&storage), 1);
    for _ in 0..2 {
        storage.checkpoint(|_| Ok(())).unwrap();
    }
    assert!(try_records(&logs[1], 1 << 20).is_err());
    assert!(storage.metrics().segments_written > 0);
    for log in [&logs[0], &logs[2]] {
        assert_eq!(records(log, 1 << 20).len() as i64, log.end_offset());
    }
}

/// The same segment was tried again and again, and nothing else was merged or compacted.
#[test]
fn a_segment_that_the_disk_cannot_read_stays_as_it_is() {
    let disk = SimDisk::new(1);
    let (storage, _) = open(&disk);
    let logs: Vec<_> = (0..8).map(|partition| storage.log(TOPIC, partition)).collect();
    let compaction = Compaction {
        min_lag_ms: 0,
        max_lag_ms: i64::MAX,
        delete_retention_ms: 0,
        min_dirty_ratio: 0.0,
    };
    for log in &logs {
        log.append_bytes(&keyed(1_000, b"a", b"1"), 0).unwrap();
        storage.step();
        storage.compact(&[(Arc::clone(log), compaction)], 5_000).unwrap();
    }
    disk.break_at(&segment(1), 4096 + 10);
    assert_eq!(failed_reads_of_upkeep(&storage), 1);
    assert!(storage.metrics().segments_removed >= 4);
    for log in &logs[..2] {
        log.append_bytes(&keyed(1_001, b"a", b"2"), 0).unwrap();
    }
    storage.step();
    let logs: Vec<_> = logs.into_iter().map(|log| (log, compaction)).collect();
    assert!(matches!(storage.compact(&logs, 5_000), Err(Error::Io { operation: "read", .. })));
    assert_eq!(storage.compact(&logs, 5_000).unwrap().logs, 1);
}

/// With a reserve shorter than a file nothing could be written when the disk was full, not even
/// what would have given space.
#[test]
fn a_reserve_has_space_for_a_file_of_metadata() {
    let disk = SimDisk::new(1);
    let (storage, _) = try_open(&disk, Options { reserve_bytes: 1, ..stepped() }).unwrap();
    let log = storage.log(TOPIC, 0);
    disk.state().free_bytes = 5 * (64 << 10) / 2;
    while log.append_bytes(&one(&[3; 9000]), 0).is_ok() {
        assert!(storage.step());
    }
    for _ in 0..4 {
        storage.append_metadata(&[4; 9000]).unwrap();
        storage.step();
    }
}

/// Metadata that came first to a file made data wait for space, even if the file took none from the
/// reserve.
#[test]
fn data_goes_on_in_files_that_took_nothing_from_the_reserve() {
    let disk = SimDisk::new(1);
    let options = Options { reserve_bytes: 64 << 10, ..stepped() };
    let (storage, _) = try_open(&disk, options).unwrap();
    let log = storage.log(TOPIC, 0);
    let enter_next_file = || {
        let started = storage.metrics().files_started;
        while storage.metrics().files_started == started {
            storage.append_metadata(&[4; 9000]).unwrap();
            storage.step();
        }
    };
    log.append_bytes(&one(&[3; 30_000]), 0).unwrap();
    storage.step();
    storage.step_preparation();
    disk.state().free_bytes = 20_000;
    enter_next_file();
    log.append_bytes(&one(b"in a file that was prepared"), 0).unwrap();
    // From the reserve.
    disk.state().free_bytes = 84_000;
    enter_next_file();
    assert_eq!(log.append_bytes(&one(b"x"), 0), Err(AppendError::DiskFull));
    // What was deleted gives files for later use.
    log.delete_records(-1).unwrap();
    storage.step();
    for _ in 0..2 {
        storage.checkpoint(|_| Ok(())).unwrap();
    }
    let is_spare = |name: &PathBuf| name.extension().is_some_and(|suffix| suffix == "spare");
    assert!(disk.names().iter().any(is_spare) && disk.state().free_bytes < 20_000);
    log.append_bytes(&one(b"while a file waits"), 0).unwrap();
    enter_next_file();
    log.append_bytes(&one(b"in a file that waited"), 0).unwrap();
}

/// Clients that took all descriptors once ended the broker, though nothing had been written.
#[test]
fn a_journal_file_waits_for_descriptors() {
    for has_spare in [false, true] {
        let disk = SimDisk::new(1);
        let (storage, _) = open(&disk);
        let log = storage.log(TOPIC, 0);
        if has_spare {
            while storage.metrics().files_started < 3 {
                append_frame(&storage, &[1; 9000]);
            }
            log.delete_records(-1).unwrap();
            storage.step();
            for _ in 0..2 {
                storage.checkpoint(|_| Ok(())).unwrap();
            }
        }
        append_frame(&storage, &[1; 9000]);
        let start = log.start_offset();
        disk.state().has_no_descriptors = true;
        assert!(!storage.step_preparation());
        let refused = loop {
            match log.append_bytes(&one(&[2; 9000]), 0) {
                Ok(_) => assert!(storage.step()),
                Err(error) => break error,
            }
        };
        assert_eq!(refused, AppendError::Exhausted);
        disk.state().has_no_descriptors = false;
        storage.step_preparation();
        // A file that was prepared is entered without another.
        disk.state().has_no_descriptors = true;
        let appended = log.append_bytes(&one(&[3; 9000]), 0).unwrap();
        assert!(storage.step());
        assert_eq!(log.high_watermark(), appended.last_offset + 1);
        disk.state().has_no_descriptors = false;
        drop(storage);
        let (storage, _) = open(&disk);
        let log = storage.log(TOPIC, 0);
        let found = records(&log, 1 << 20).len() as i64;
        assert_eq!((log.start_offset(), found), (start, log.end_offset() - start));
    }
}

/// Readers of as many older files had it closed, and without a descriptor the journal ended where
/// it was to be written.
#[test]
fn a_prepared_file_stays_open_during_any_reads() {
    let disk = SimDisk::new(1);
    let (storage, _) = open(&disk);
    let log = storage.log(TOPIC, 0);
    while storage.metrics().files_started < 20 {
        append_frame(&storage, &[1; 9000]);
    }
    append_frame(&storage, &[1; 9000]);
    storage.step_preparation();
    assert_eq!(records(&log, 1 << 10).len() as i64, log.end_offset());
    disk.state().has_no_descriptors = true;
    while storage.metrics().files_started == 20 {
        log.append_bytes(&one(&[2; 9000]), 0).unwrap();
        assert!(storage.step());
    }
    assert_eq!(log.high_watermark(), log.end_offset());
}
