//! Offsets, producers, timestamps and retention of one log.

use std::sync::Arc;

use moldau_records::Producer;
use moldau_storage::{
    AppendError, Drive, EpochEnd, Error, Isolation, Log, Options, ReadOutcome, Storage, TopicId,
    Waiter, block_on,
};

use crate::world::{AppendBytes, TOPIC, append, batch, one, open, records, small};

fn stepped() -> (tempfile::TempDir, Storage, Arc<Log>) {
    let dir = tempfile::tempdir().unwrap();
    let (storage, _) = open(Options { drive: Drive::Stepped, ..small(dir.path()) });
    let log = storage.log(TOPIC, 0);
    (dir, storage, log)
}

fn from_producer(epoch: i16, base_sequence: i32, count: usize) -> Vec<u8> {
    let records = vec![(1_000, &b"value"[..]); count];
    batch(&records, Some(Producer { id: 9, epoch, base_sequence }))
}

#[test]
fn sequences_are_judged_as_by_kafka() {
    let (_dir, storage, log) = stepped();
    let send = |epoch, sequence, count| {
        let appended = log.append_bytes(&from_producer(epoch, sequence, count), 0);
        appended.map(|appended| (appended.base_offset, appended.is_duplicate))
    };
    let gap = |last_sequence, first_sequence| {
        Err(AppendError::OutOfOrderSequence { last_sequence, first_sequence })
    };
    // An unknown producer may begin anywhere.
    assert_eq!(send(1, 5, 2), Ok((0, false)));
    assert_eq!(send(1, 8, 1), gap(6, 8));
    assert_eq!(send(1, 7, 1), Ok((2, false)));
    assert_eq!(send(1, 5, 2), Ok((0, true)));
    assert_eq!(send(1, 5, 3), gap(7, 5));
    assert_eq!(send(0, 8, 1), Err(AppendError::InvalidProducerEpoch { epoch: 0, current: 1 }));
    assert_eq!(send(2, 8, 1), gap(-1, 8));
    assert_eq!(send(2, 0, 1), Ok((3, false)));
    // Only the last five batches are remembered.
    for sequence in 1..6 {
        assert_eq!(send(2, sequence, 1), Ok((3 + i64::from(sequence), false)));
    }
    assert_eq!(send(2, 1, 1), Ok((4, true)));
    assert_eq!(send(2, 0, 1), gap(5, 0));
    assert_eq!(storage.metrics().duplicates, 2);
    log.expire_producers(2_000, 1_000);
    assert_eq!(send(2, 77, 1), Ok((9, false)));
}

#[test]
fn sequences_wrap_to_zero() {
    let (_dir, _storage, log) = stepped();
    log.append_bytes(&from_producer(0, i32::MAX - 1, 4), 0).unwrap();
    assert!(log.append_bytes(&from_producer(0, 3, 1), 0).is_err());
    assert_eq!(log.append_bytes(&from_producer(0, 2, 1), 0).unwrap().base_offset, 4);
    assert!(log.append_bytes(&from_producer(0, i32::MAX - 1, 4), 0).unwrap().is_duplicate);
}

#[test]
fn a_duplicate_of_a_batch_in_flight_waits_for_its_flush() {
    let (_dir, storage, log) = stepped();
    let first = log.append_bytes(&from_producer(0, 0, 1), 0).unwrap();
    let again = log.append_bytes(&from_producer(0, 0, 1), 0).unwrap();
    assert!(again.is_duplicate && again.lsn >= first.lsn && storage.durable() < again.lsn);
    storage.step();
    assert!(storage.durable() >= again.lsn);
}

#[test]
fn producers_are_known_after_reopening_and_after_a_snapshot() {
    let dir = tempfile::tempdir().unwrap();
    let (storage, _) = open(small(dir.path()));
    let log = storage.log(TOPIC, 0);
    let first = append(&storage, &log, &from_producer(3, 0, 2));
    for _ in 0..20 {
        append(&storage, &log, &one(&[1; 9000]));
    }
    log.delete_records(-1).unwrap();
    storage.checkpoint(|_| Ok(())).unwrap();
    assert!(storage.checkpoint(|_| Ok(())).unwrap() > 0);
    drop((storage, log));
    for _ in 0..2 {
        let (storage, _) = open(small(dir.path()));
        let log = storage.log(TOPIC, 0);
        assert_eq!((log.start_offset(), log.end_offset()), (22, 22));
        let again = log.append_bytes(&from_producer(3, 0, 2), 0).unwrap();
        assert_eq!((again.base_offset, again.is_duplicate), (first, true));
        assert!(log.append_bytes(&from_producer(2, 2, 1), 0).is_err());
    }
}

#[test]
fn timestamps_are_found_to_the_record() {
    let (_dir, storage, log) = stepped();
    let value = &b"v"[..];
    log.append_bytes(&batch(&[(10, value), (30, value), (20, value)], None), 4).unwrap();
    log.append_bytes(&batch(&[(5, value)], None), 4).unwrap();
    log.append_bytes(&batch(&[(40, value), (35, value)], None), 5).unwrap();
    while storage.step() {}
    log.append_bytes(&batch(&[(99, value)], None), 5).unwrap();
    let find = |timestamp| {
        let found =
            block_on(log.offset_for_timestamp(timestamp, Isolation::ReadUncommitted)).unwrap();
        found.map(|found| (found.offset, found.timestamp, found.leader_epoch))
    };
    assert_eq!(find(0), Some((0, 10, 4)));
    assert_eq!(find(11), Some((1, 30, 4)));
    assert_eq!(find(31), Some((4, 40, 5)));
    assert_eq!(find(41), None);
    let newest = block_on(log.offset_of_max_timestamp()).unwrap().unwrap();
    assert_eq!((newest.offset, newest.timestamp), (4, 40));
    log.delete_records(2).unwrap();
    assert_eq!(find(0), Some((2, 20, 4)));
}

#[test]
fn epochs_end_where_the_next_begins() {
    let (_dir, storage, log) = stepped();
    for epoch in [0, 0, 3] {
        log.append_bytes(&one(b"x"), epoch).unwrap();
    }
    storage.step();
    assert_eq!(log.end_of_epoch(1), EpochEnd { leader_epoch: 0, end_offset: 2 });
    assert_eq!(log.end_of_epoch(3), EpochEnd { leader_epoch: 3, end_offset: 3 });
    assert_eq!((log.epoch_at(1), log.latest_epoch()), (Some(0), Some(3)));
}

#[test]
fn retention_takes_whole_batches_and_no_record_that_is_not_durable() {
    let (_dir, storage, log) = stepped();
    let size = one(b"x").len() as u64;
    for timestamp in [100, 200, 300, 400] {
        log.append_bytes(&batch(&[(timestamp, b"x")], None), 0).unwrap();
    }
    assert_eq!(log.apply_retention(900, Some(0), None).unwrap().start_offset, 0);
    storage.step();
    assert_eq!(log.apply_retention(900, Some(750), None).unwrap().start_offset, 1);
    assert_eq!(log.apply_retention(900, None, Some(2 * size)).unwrap().start_offset, 2);
    assert_eq!(log.apply_retention(900, None, Some(2 * size)).unwrap().start_offset, 2);
    assert_eq!(log.bytes(), 2 * size);
    let read = log.read(1, 100, true);
    assert!(matches!(read, Err(Error::OffsetOutOfRange { start: 2, end: 4 })));
    assert!(matches!(log.read(5, 100, true), Err(Error::OffsetOutOfRange { .. })));
    assert!(matches!(log.delete_records(5), Err(Error::OffsetOutOfRange { .. })));
}

#[test]
fn reads_from_memory_and_from_disk_are_equal() {
    let dir = tempfile::tempdir().unwrap();
    let large = Options { tail_cache_bytes: 64 << 20, ..small(dir.path()) };
    let (storage, _) = open(large);
    let logs = [storage.log(TOPIC, 0), storage.log(TOPIC, 1)];
    for at in 0..200usize {
        let log = &logs[at % 2];
        append(&storage, log, &one(&vec![at as u8; (at * 7919) % 12_000]));
    }
    let from_memory = logs.map(|log| records(&log, 30_000));
    assert_eq!(storage.metrics().chunk_reads, 0);
    drop(storage);
    let (storage, _) = open(small(dir.path()));
    for (partition, expected) in (0..).zip(from_memory) {
        assert_eq!(expected.len(), 100);
        assert_eq!(records(&storage.log(TOPIC, partition), 30_000), expected);
    }
    assert!(storage.metrics().chunk_reads > 0);
}

#[test]
fn a_read_keeps_to_its_limit_but_for_the_first_batch() {
    let (_dir, storage, log) = stepped();
    let size = one(&[0; 100]).len();
    for _ in 0..5 {
        log.append_bytes(&one(&[0; 100]), 0).unwrap();
    }
    storage.step();
    let read = |bytes_max, min_one| {
        let read = log.read(1, bytes_max, min_one).unwrap().wait().unwrap();
        (read.bytes / size, read.next_offset)
    };
    assert_eq!(read(2 * size, false), (2, 3));
    assert_eq!(read(2 * size - 1, false), (1, 2));
    assert_eq!(read(1, false), (0, 1));
    assert_eq!(read(0, true), (1, 2));
}

/// A consumer of one log among thousands once had a chunk read for each of its batches.
#[test]
fn a_log_whose_batches_lie_far_apart_is_read_without_what_lies_between() {
    let dir = tempfile::tempdir().unwrap();
    let options = Options { drive: Drive::Stepped, tail_cache_bytes: 0, ..small(dir.path()) };
    let (storage, _) = open(options);
    let (log, other) = (storage.log(TOPIC, 0), storage.log(TOPIC, 1));
    for _ in 0..10 {
        log.append_bytes(&one(b"far apart"), 0).unwrap();
        for _ in 0..4 {
            other.append_bytes(&one(&[1; 40_000]), 0).unwrap();
            while storage.step() {}
        }
    }
    assert_eq!(records(&log, 1 << 20).len(), 10);
    let read = storage.metrics().chunk_read_bytes;
    assert!(read <= 10 * 2 * 4096, "{read} bytes for ten small batches");
}

/// Answers to slow readers kept whole chunks in memory for a batch of each, beyond every limit.
#[test]
fn what_a_reader_holds_keeps_no_more_than_twice_its_bytes_from_being_freed() {
    let dir = tempfile::tempdir().unwrap();
    let options = Options { drive: Drive::Stepped, tail_cache_bytes: 0, ..small(dir.path()) };
    let (storage, _) = open(options);
    let log = storage.log(TOPIC, 0);
    for _ in 0..400 {
        log.append_bytes(&one(&[1; 2_000]), 0).unwrap();
        while storage.step() {}
    }
    for bytes_max in [1, 10_000, 60_000] {
        let mut held = Vec::new();
        let mut from = 0;
        while from < 400 {
            let outcome = log.read(from, bytes_max, true).unwrap();
            if let ReadOutcome::Pending(pending) = &outcome {
                assert!(pending.memory() >= 4096, "{}", pending.memory());
            }
            let read = outcome.wait().unwrap();
            assert!(read.memory >= read.bytes && read.memory <= 2 * read.bytes + 1, "{read:?}");
            from = read.next_offset;
            held.push(read);
        }
        let (cached, memory) = (storage.cached_bytes().1, storage.memory_bytes().1);
        let said: usize = held.iter().map(|read| read.memory).sum();
        assert!(memory <= cached + said, "{memory} in use, {cached} cached, {said} held");
        drop(held);
        assert!(storage.memory_bytes().1 <= storage.cached_bytes().1);
    }
}

#[test]
fn a_waiter_of_many_logs_is_woken_once_by_a_flush() {
    let (_dir, storage, _) = stepped();
    let waiter = Waiter::new();
    let logs: Vec<_> = (0..10).map(|partition| storage.log(TOPIC, partition)).collect();
    let registrations: Vec<_> = logs.iter().map(|log| log.register(&waiter)).collect();
    logs.iter().for_each(|log| assert!(log.append_bytes(&one(b"x"), 0).is_ok()));
    storage.step();
    block_on(waiter.moved());
    assert!(logs.iter().all(|log| log.high_watermark() == 1));
    drop(registrations);
    assert_eq!(Arc::strong_count(&waiter), 1);
}

#[test]
fn a_deleted_topic_does_not_come_back() {
    let dir = tempfile::tempdir().unwrap();
    let (storage, _) = open(small(dir.path()));
    let log = storage.log(TOPIC, 0);
    append(&storage, &log, &one(b"x"));
    let lsn = storage.delete_topic(TOPIC).unwrap();
    block_on(storage.wait_durable(lsn)).unwrap();
    assert_eq!(log.append_bytes(&one(b"y"), 0), Err(AppendError::Deleted));
    assert!(matches!(log.read(0, 1, true), Err(Error::Deleted)));
    drop((storage, log));
    let (storage, _) = open(small(dir.path()));
    assert_eq!(storage.topics(), Vec::<TopicId>::new());
    assert_eq!(storage.log(TOPIC, 0).end_offset(), 0);
}

#[test]
fn a_batch_that_no_file_can_hold_is_refused() {
    let (_dir, _storage, log) = stepped();
    let large = one(&[0; 62_000]);
    assert!(matches!(log.append_bytes(&large, 0), Err(AppendError::TooLarge { .. })));
    assert_eq!(log.end_offset(), 0);
}
