//! Transactions in logs: what readers see, what ends together, what stays.

use std::sync::Arc;

use moldau_records::{
    Attributes, BatchBuilder, BatchOptions, BatchView, Compression, Compressor, Decompressor,
    Marker, MarkerBatch, Producer,
};
use moldau_storage::{
    AbortedTransaction, AppendError, Compaction, Drive, Isolation, Log, LogMarker, Lsn, Options,
    Storage, block_on,
};

use crate::sim_disk::SimDisk;
use crate::world::{AppendBytes, Owner, TOPIC, keyed, one, small};

const COMMITTED: Isolation = Isolation::ReadCommitted;

fn options() -> Options {
    Options { drive: Drive::Stepped, tail_cache_bytes: 0, ..small("/data".as_ref()) }
}

fn open(disk: &SimDisk) -> Storage {
    open_with_owner(disk).0
}

fn open_with_owner(disk: &SimDisk) -> (Storage, Owner) {
    let mut owner = Owner::default();
    let storage = Storage::open_on(Arc::new(disk.clone()), options(), &mut owner).unwrap();
    (storage, owner)
}

/// A batch of one record of a transaction.
fn part(id: i64, epoch: i16, base_sequence: i32, key: &[u8], value: &[u8]) -> Vec<u8> {
    let producer = Some(Producer { id, epoch, base_sequence });
    let attributes = Attributes::default().with_transactional(true);
    let mut builder =
        BatchBuilder::new(BatchOptions { producer, attributes, ..BatchOptions::default() });
    builder.append(1_000, Some(key), Some(value), []).unwrap();
    builder.finish(Compression::None, &mut Compressor::default()).unwrap().to_vec()
}

fn write(log: &Arc<Log>, id: i64, sequence: i32, value: &[u8]) -> i64 {
    log.append_bytes(&part(id, 0, sequence, b"k", value), 0).unwrap().base_offset
}

fn end(storage: &Storage, logs: &[&Arc<Log>], id: i64, marker: Marker) -> Lsn {
    let markers: Vec<_> = logs
        .iter()
        .map(|log| LogMarker {
            log: Arc::clone(log),
            batch: MarkerBatch::new(id, 0, marker, 2_000),
        })
        .collect();
    storage.append_together(&[b"ended".to_vec()], &markers, 0).unwrap()
}

fn flush(storage: &Storage) {
    while storage.step() {}
}

/// Offsets and values of what a consumer that reads committed records sees, as the protocol has it
/// filter them: batches of aborted transactions up to their markers.
fn committed(log: &Arc<Log>, bytes_max: usize) -> Vec<(i64, Vec<u8>)> {
    let (mut found, mut from) = (Vec::new(), log.start_offset());
    loop {
        let read = log.read_isolated(from, bytes_max, true, COMMITTED).unwrap().wait().unwrap();
        if read.batches.is_empty() {
            return found;
        }
        assert!(read.aborted.is_sorted_by_key(|aborted| aborted.first_offset));
        let mut rest = read.aborted.iter().peekable();
        let mut aborted = std::collections::HashSet::new();
        let bytes = read.batches.concat();
        for batch in moldau_records::iter_batches(&bytes) {
            let batch: BatchView<'_> = batch.unwrap();
            while let Some(next) = rest.next_if(|next| next.first_offset <= batch.last_offset()) {
                aborted.insert(next.producer_id);
            }
            if batch.marker() == Some(Marker::Abort) {
                aborted.remove(&batch.producer_id());
            }
            let hidden = batch.is_transactional() && aborted.contains(&batch.producer_id());
            if batch.is_control() || hidden {
                continue;
            }
            for record in batch.records(&mut Decompressor::default(), 1 << 20).unwrap() {
                let record = record.unwrap();
                found.push((record.offset(), record.value().unwrap().to_vec()));
            }
        }
        from = read.next_offset;
    }
}

fn values(found: &[(i64, Vec<u8>)]) -> Vec<&str> {
    found.iter().map(|(_, value)| std::str::from_utf8(value).unwrap()).collect()
}

#[test]
fn a_transaction_is_seen_once_its_end_is_durable_and_as_a_whole() {
    let storage = open(&SimDisk::new(1));
    let (one_log, other) = (storage.log(TOPIC, 0), storage.log(TOPIC, 1));
    one_log.append_bytes(&one(b"before"), 0).unwrap();
    write(&one_log, 1, 0, b"a");
    write(&other, 1, 0, b"b");
    one_log.append_bytes(&one(b"behind"), 0).unwrap();
    flush(&storage);
    assert_eq!((one_log.high_watermark(), one_log.last_stable_offset()), (3, 1));
    assert_eq!(values(&committed(&one_log, 1 << 20)), ["before"]);
    assert_eq!(committed(&other, 1 << 20), []);
    let frames = storage.metrics().frames;
    let lsn = end(&storage, &[&other, &one_log], 1, Marker::Commit);
    assert_eq!(one_log.last_stable_offset(), 1, "the marker may be lost");
    flush(&storage);
    assert!(storage.durable() >= lsn);
    assert_eq!(storage.metrics().frames, frames + 1);
    assert_eq!(values(&committed(&one_log, 1 << 20)), ["before", "a", "behind"]);
    assert_eq!(values(&committed(&other, 1)), ["b"]);
    assert_eq!((one_log.end_offset(), other.end_offset()), (4, 2));
}

#[test]
fn a_log_that_the_transaction_did_not_write_gets_no_marker() {
    let storage = open(&SimDisk::new(1));
    let (written, other) = (storage.log(TOPIC, 0), storage.log(TOPIC, 1));
    write(&written, 1, 0, b"a");
    end(&storage, &[&written, &other], 1, Marker::Commit);
    end(&storage, &[&written, &other], 1, Marker::Commit);
    assert_eq!((written.end_offset(), other.end_offset()), (2, 0));
}

#[test]
fn what_is_no_part_of_the_open_transaction_is_refused() {
    let storage = open(&SimDisk::new(1));
    let log = storage.log(TOPIC, 0);
    write(&log, 1, 0, b"a");
    let producer = Some(Producer { id: 1, epoch: 0, base_sequence: 1 });
    let plain = crate::world::batch(&[(1_000, b"x")], producer);
    assert_eq!(log.append_bytes(&plain, 0), Err(AppendError::InTransaction));
    end(&storage, &[&log], 1, Marker::Abort);
    log.append_bytes(&plain, 0).unwrap();
}

#[test]
fn the_epoch_of_a_marker_fences_what_comes_late() {
    let storage = open(&SimDisk::new(1));
    let log = storage.log(TOPIC, 0);
    write(&log, 1, 0, b"a");
    let batch = MarkerBatch::new(1, 1, Marker::Commit, 2_000);
    storage.append_together(&[], &[LogMarker { log: Arc::clone(&log), batch }], 0).unwrap();
    let late = log.append_bytes(&part(1, 0, 1, b"k", b"late"), 0);
    assert_eq!(late, Err(AppendError::InvalidProducerEpoch { epoch: 0, current: 1 }));
    assert!(log.append_bytes(&part(1, 1, 5, b"k", b"gap"), 0).is_err());
    log.append_bytes(&part(1, 1, 0, b"k", b"next"), 0).unwrap();
}

#[test]
fn open_and_aborted_transactions_are_known_after_a_restart() {
    let disk = SimDisk::new(1);
    let storage = open(&disk);
    let log = storage.log(TOPIC, 0);
    write(&log, 1, 0, b"a");
    write(&log, 2, 0, b"b");
    write(&log, 3, 0, b"c");
    end(&storage, &[&log], 1, Marker::Abort);
    end(&storage, &[&log], 2, Marker::Commit);
    flush(&storage);
    drop((storage, log));
    for has_checkpoint in [false, true, true] {
        let storage = open(&disk);
        let log = storage.log(TOPIC, 0);
        assert_eq!(log.last_stable_offset(), 2);
        assert_eq!(log.open_transactions(), [(3, 0)]);
        assert_eq!(values(&committed(&log, 1 << 20)), ["b"]);
        let read = log.read_isolated(0, 1 << 20, true, COMMITTED).unwrap().wait().unwrap();
        let aborted = AbortedTransaction { producer_id: 1, first_offset: 0, last_offset: 3 };
        assert_eq!((read.last_stable_offset, read.aborted), (2, vec![aborted]));
        if !has_checkpoint {
            storage.checkpoint(|_| Ok(())).unwrap();
        }
    }
}

/// The end of a transaction and the owner's bytes are there after a crash, or none of them is,
/// wherever the disk stopped.
#[test]
fn a_crash_never_leaves_a_transaction_half_ended() {
    let mut seen = [0, 0];
    for operations in 0..24 {
        let disk = SimDisk::new(operations);
        let storage = open(&disk);
        let logs: Vec<_> = (0..3).map(|partition| storage.log(TOPIC, partition)).collect();
        for log in &logs {
            write(log, 1, 0, &[b'a'; 5_000]);
        }
        flush(&storage);
        disk.die_within(operations + 1);
        end(&storage, &logs.iter().collect::<Vec<_>>(), 1, Marker::Commit);
        for _ in 0..8 {
            storage.log(TOPIC, 9).append_bytes(&one(b"more"), 0).ok();
            storage.step();
        }
        drop((storage, logs));
        disk.restart(true);
        let (storage, owner) = open_with_owner(&disk);
        let is_ended = !owner.0.is_empty();
        for partition in 0..3 {
            let log = storage.log(TOPIC, partition);
            assert_eq!(log.open_transactions().is_empty(), is_ended);
            assert_eq!(committed(&log, 1 << 20).len(), usize::from(is_ended));
        }
        seen[usize::from(is_ended)] += 1;
    }
    assert!(seen.iter().all(|times| *times > 0), "{seen:?}");
}

#[test]
fn an_open_transaction_in_a_segment_is_not_served() {
    let disk = SimDisk::new(1);
    let storage = open(&disk);
    let log = storage.log(TOPIC, 0);
    let mut expected = Vec::new();
    write(&log, 1, 0, b"aborted");
    for at in 0..40 {
        let value = format!("{at}-{}", "v".repeat(3_000));
        log.append_bytes(&one(value.as_bytes()), 0).unwrap();
        flush(&storage);
        expected.push(value);
    }
    end(&storage, &[&log], 1, Marker::Abort);
    let open_from = write(&log, 2, 0, b"open");
    for _ in 0..40 {
        log.append_bytes(&one(&[b'w'; 3_000]), 0).unwrap();
        flush(&storage);
    }
    while storage.step_upkeep().unwrap() {}
    assert!(storage.metrics().segments_written > 0);
    assert_eq!(log.last_stable_offset(), open_from);
    for bytes_max in [1, 10_000, 1 << 20] {
        assert_eq!(values(&committed(&log, bytes_max)), expected);
    }
    let from_time = |isolation| {
        let found = block_on_stepped(&storage, log.offset_for_timestamp(1, isolation));
        found.map(|found| found.offset)
    };
    assert_eq!(from_time(COMMITTED), Some(0));
    log.delete_records(open_from).unwrap();
    assert_eq!(from_time(COMMITTED), None);
    assert_eq!(from_time(Isolation::ReadUncommitted), Some(open_from));
}

fn block_on_stepped<T>(
    storage: &Storage,
    look_up: impl Future<Output = Result<Option<T>, moldau_storage::Error>>,
) -> Option<T> {
    let mut look_up = std::pin::pin!(look_up);
    block_on(std::future::poll_fn(|context| {
        while storage.step() {}
        look_up.as_mut().poll(context)
    }))
    .unwrap()
}

#[test]
fn retention_and_expiration_keep_what_is_open() {
    let storage = open(&SimDisk::new(1));
    let log = storage.log(TOPIC, 0);
    log.append_bytes(&one(b"old"), 0).unwrap();
    let first = write(&log, 1, 0, b"a");
    flush(&storage);
    log.expire_producers(1_000_000, 1);
    assert_eq!(log.apply_retention(1_000_000, Some(1), None).unwrap().start_offset, first);
    assert_eq!(log.open_transactions(), [(1, 0)]);
    assert_eq!(log.producers()[0].transaction_start, Some(first));
    end(&storage, &[&log], 1, Marker::Commit);
    flush(&storage);
    let end_offset = log.end_offset();
    assert_eq!(log.apply_retention(1_000_000, Some(1), None).unwrap().start_offset, end_offset);
    log.expire_producers(1_000_000, 1);
    assert_eq!(log.producers(), []);
}

const EVERYTHING: Compaction = Compaction {
    min_lag_ms: 0,
    max_lag_ms: i64::MAX,
    delete_retention_ms: 0,
    min_dirty_ratio: 0.0,
};

#[test]
fn compaction_drops_what_was_aborted_and_touches_nothing_that_is_open() {
    let storage = open(&SimDisk::new(1));
    let log = storage.log(TOPIC, 0);
    let compact = |now_ms| {
        flush(&storage);
        storage.compact(&[(Arc::clone(&log), EVERYTHING)], now_ms).unwrap();
        flush(&storage);
    };
    write(&log, 1, 0, b"first");
    end(&storage, &[&log], 1, Marker::Commit);
    write(&log, 1, 1, b"aborted");
    write(&log, 1, 2, b"aborted, too");
    end(&storage, &[&log], 1, Marker::Abort);
    log.append_bytes(&part(9, 0, 0, b"other", b"open"), 0).unwrap();
    log.append_bytes(&keyed(1_000, b"k", b"behind"), 0).unwrap();
    compact(5_000);
    let all = || {
        let (mut all, mut from) = (Vec::new(), 0);
        while from < log.high_watermark() {
            let read = log.read(from, 1 << 20, true).unwrap().wait().unwrap();
            let bytes = read.batches.concat();
            let batches = moldau_records::iter_batches(&bytes).map(Result::unwrap);
            all.extend(batches.map(|batch| (batch.base_offset(), batch.records_count())));
            from = read.next_offset;
        }
        all
    };
    // The last batch of the producer keeps its sequence number.
    assert_eq!(all(), [(0, 1), (1, 1), (3, 0), (4, 1), (5, 1), (6, 1)]);
    assert_eq!(values(&committed(&log, 1 << 20)), ["first"], "an aborted value supersedes none");
    end(&storage, &[&log], 9, Marker::Commit);
    log.append_bytes(&keyed(1_000, b"end", b"end"), 0).unwrap();
    compact(6_000);
    // Neither the value at 0 nor the marker of its commit is of use.
    assert_eq!(all(), [(3, 0), (4, 1), (5, 1), (6, 1), (7, 1), (8, 1)]);
    assert_eq!(values(&committed(&log, 1 << 20)), ["open", "behind", "end"]);
}
