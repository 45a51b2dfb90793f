//! Real files.

use moldau_storage::{Access, AppendError, Drive, Durability, Error, Options, Storage};

use crate::world::{AppendBytes, Owner, TOPIC, append, one, open, records, small};

#[test]
fn what_was_appended_is_read_back_before_and_after_reopening() {
    let dir = tempfile::tempdir().unwrap();
    let mut expected = Vec::new();
    for round in 0..4 {
        let (storage, owner) = open(small(dir.path()));
        assert_eq!(owner.0.len(), round);
        let log = storage.log(TOPIC, 3);
        for at in 0..60usize {
            let value = vec![b'a' + (at % 26) as u8; at * 37];
            let offset = append(&storage, &log, &one(&value));
            expected.push((offset, value));
        }
        storage.append_metadata(format!("round {round}").as_bytes()).unwrap();
        assert_eq!(log.high_watermark(), expected.len() as i64);
        assert_eq!(records(&log, 4096), expected);
        assert_eq!(records(&log, 1 << 20), expected);
    }
    assert_eq!(expected.len(), 240);
}

#[test]
fn an_append_counts_only_when_it_is_flushed() {
    let dir = tempfile::tempdir().unwrap();
    let options = Options { drive: Drive::Stepped, ..small(dir.path()) };
    let (storage, _) = open(options);
    let log = storage.log(TOPIC, 0);
    let appended = log.append_bytes(&one(b"x"), 0).unwrap();
    assert!(storage.durable() < appended.lsn);
    assert_eq!((log.high_watermark(), log.end_offset()), (0, 1));
    assert_eq!(records(&log, 100), []);
    assert!(storage.step());
    assert!(storage.durable() >= appended.lsn);
    assert_eq!(log.high_watermark(), 1);
}

#[test]
fn files_of_another_length_are_read_and_followed() {
    let dir = tempfile::tempdir().unwrap();
    let mut expected = Vec::new();
    for (file_bytes, length) in [(64 << 10, 20_000), (1 << 20, 300_000), (64 << 10, 20_000)] {
        let options = Options { file_bytes, drive: Drive::Stepped, ..small(dir.path()) };
        let (storage, _) = open(options);
        let log = storage.log(TOPIC, 0);
        assert_eq!(records(&log, 1 << 20), expected);
        for _ in 0..4 {
            let value = vec![1; length];
            log.append_bytes(&one(&value), 0).unwrap();
            expected.push((expected.len() as i64, value));
            assert!(storage.step());
            // The file after the current one exists before it is needed.
            storage.step_preparation();
        }
    }
    let (storage, _) = open(small(dir.path()));
    assert_eq!(records(&storage.log(TOPIC, 0), 1 << 20), expected);
}

#[test]
fn without_flushes_an_append_counts_when_it_is_written() {
    let dir = tempfile::tempdir().unwrap();
    let options = Options { durability: Durability::Os, ..small(dir.path()) };
    let (storage, _) = open(options.clone());
    assert_eq!(storage.info().access, Access::Buffered);
    append(&storage, &storage.log(TOPIC, 0), &one(b"x"));
    assert_eq!(storage.metrics().flushes, 0);
    drop(storage);
    let (storage, _) = open(options);
    assert_eq!(records(&storage.log(TOPIC, 0), 100), [(0, b"x".to_vec())]);
}

#[test]
fn a_second_process_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let (_storage, _) = open(small(dir.path()));
    let second = Storage::open(small(dir.path()), &mut Owner::default());
    assert!(matches!(second, Err(Error::Locked { .. })));
}

#[test]
fn appends_after_close_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let (storage, _) = open(small(dir.path()));
    let log = storage.log(TOPIC, 0);
    log.append_bytes(&one(b"x"), 0).unwrap();
    storage.close().unwrap();
    assert_eq!(log.append_bytes(&one(b"y"), 0), Err(AppendError::Closed));
    drop((storage, log));
    let (storage, _) = open(small(dir.path()));
    assert_eq!(records(&storage.log(TOPIC, 0), 100), [(0, b"x".to_vec())]);
}
