//! Real files.

use moldau_storage::{AppendError, Error, Options, Storage};

use crate::world::{Owner, TOPIC, append, one, open, records, small};

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
    let options = Options { drive: moldau_storage::Drive::Stepped, ..small(dir.path()) };
    let (storage, _) = open(options);
    let log = storage.log(TOPIC, 0);
    let appended = log.append(&one(b"x"), 0).unwrap();
    assert!(storage.durable() < appended.lsn);
    assert_eq!((log.high_watermark(), log.end_offset()), (0, 1));
    assert_eq!(records(&log, 100), []);
    assert!(storage.step());
    assert!(storage.durable() >= appended.lsn);
    assert_eq!(log.high_watermark(), 1);
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
    log.append(&one(b"x"), 0).unwrap();
    storage.close().unwrap();
    assert_eq!(log.append(&one(b"y"), 0), Err(AppendError::Closed));
    drop((storage, log));
    let (storage, _) = open(small(dir.path()));
    assert_eq!(records(&storage.log(TOPIC, 0), 100), [(0, b"x".to_vec())]);
}
