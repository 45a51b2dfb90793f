//! Everything at once, on real files and threads.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use moldau_records::{BatchBuilder, BatchOptions, Compression, Compressor};
use moldau_storage::{Compaction, Log, Options, Storage, TopicId, block_on};

use crate::world::{AppendBytes, TOPIC, append, one, open, records, small};

const APPENDS: i64 = 1_000;
/// Logs that get a first batch, so many that some do in each step of a checkpoint.
const BEGINNINGS: i32 = 2_000;
const TABLE: TopicId = TopicId([9; 16]);
const SHORT_LIVED: TopicId = TopicId([11; 16]);
const EVERYTHING: Compaction = Compaction {
    min_lag_ms: 0,
    max_lag_ms: i64::MAX,
    delete_retention_ms: 0,
    min_dirty_ratio: 0.0,
};

/// Appends values that tell their offset, and a table of ten keys.
fn write(storage: &Storage, log: &Arc<Log>, table: &Arc<Log>) {
    for at in 0..APPENDS {
        let mut value = at.to_be_bytes().to_vec();
        value.resize(8 + (at as usize * 7919) % 900, 1);
        assert_eq!(append(storage, log, &one(&value)), at);
        let mut builder = BatchBuilder::new(BatchOptions::default());
        let key = [(at % 10) as u8];
        builder.append(1_000, Some(&key), Some(&at.to_be_bytes()), []).unwrap();
        let batch = builder.finish(Compression::None, &mut Compressor::default()).unwrap();
        table.append_bytes(batch, 0).unwrap();
    }
}

/// Follows a log to its end; every value is where it was written.
fn follow(log: &Arc<Log>) {
    let mut from = 0;
    while from < APPENDS {
        let read = log.read(from, 10_000, true).unwrap().wait().unwrap();
        let mut expected = from;
        for batch in moldau_records::iter_batches(&read.batches.concat()) {
            let batch = batch.unwrap();
            batch.check_crc().unwrap();
            assert_eq!(batch.base_offset(), expected);
            expected += 1;
        }
        assert_eq!(read.next_offset, expected);
        from = expected;
    }
}

/// Creates and deletes a topic of several logs.
fn come_and_go(storage: &Storage, generation: u8) {
    let topic = TopicId([generation; 16]);
    for partition in 0..5 {
        storage.log(topic, partition).append_bytes(&one(&[2; 3_000]), 0).unwrap();
    }
    storage.delete_topic(topic).unwrap();
    let log = storage.log(SHORT_LIVED, 0);
    let appended = log.append_bytes(&one(&[3; 2_000]), 0).unwrap();
    assert!(block_on(storage.wait_durable(appended.lsn)).is_ok());
    log.delete_records(-1).unwrap();
}

#[test]
fn readers_and_writers_go_on_while_everything_is_rewritten() {
    let dir = tempfile::tempdir().unwrap();
    let options = Options { background_rate: 0, sort_memory_bytes: 8 << 10, ..small(dir.path()) };
    let (storage, _) = open(options.clone());
    let logs: Vec<_> = (0..3).map(|partition| storage.log(TOPIC, partition)).collect();
    let tables: Vec<_> = (0..3).map(|partition| storage.log(TABLE, partition)).collect();
    let is_written = AtomicBool::new(false);
    thread::scope(|scope| {
        let writers: Vec<_> = logs
            .iter()
            .zip(&tables)
            .map(|(log, table)| scope.spawn(|| write(&storage, log, table)))
            .collect();
        logs.iter().for_each(|log| drop(scope.spawn(|| follow(log))));
        scope.spawn(|| {
            let logs: Vec<_> = tables.iter().map(|table| (Arc::clone(table), EVERYTHING)).collect();
            while !is_written.load(Ordering::Acquire) {
                storage.compact(&logs, 2_000).unwrap();
            }
        });
        scope.spawn(|| {
            let mut generation = 20;
            while !is_written.load(Ordering::Acquire) {
                come_and_go(&storage, generation % 200 + 20);
                storage.checkpoint(|_| Ok(())).unwrap();
                generation = generation.wrapping_add(1);
            }
        });
        writers.into_iter().for_each(|writer| writer.join().unwrap());
        is_written.store(true, Ordering::Release);
    });
    // How far the background has come by now is a matter of the machine.
    while storage.step_upkeep().unwrap() {}
    storage.checkpoint(|_| Ok(())).unwrap();
    let metrics = storage.metrics();
    assert!(metrics.segments_written > 10 && metrics.segments_removed > 0, "{metrics:?}");
    assert!(metrics.files_retired > 10 && metrics.corrupt_batches == 0, "{metrics:?}");
    check(&logs, &tables);
    drop((storage, logs, tables));
    let (storage, _) = open(options);
    let of = |topic| (0..3).map(|partition| storage.log(topic, partition)).collect::<Vec<_>>();
    check(&of(TOPIC), &of(TABLE));
}

/// A log that was left out of a checkpoint taken while its first batch came in was empty after the
/// next start, or kept the broker from starting.
#[test]
fn a_log_that_begins_while_checkpoints_are_taken_is_found_again() {
    let dir = tempfile::tempdir().unwrap();
    let (storage, _) = open(small(dir.path()));
    let is_written = AtomicBool::new(false);
    thread::scope(|scope| {
        let taking = scope.spawn(|| {
            while !is_written.load(Ordering::Acquire) {
                storage.checkpoint(|_| Ok(())).unwrap();
            }
        });
        for partition in 0..BEGINNINGS {
            append(&storage, &storage.log(TOPIC, partition), &one(&partition.to_be_bytes()));
        }
        is_written.store(true, Ordering::Release);
        taking.join().unwrap();
    });
    drop(storage);
    let (storage, _) = open(small(dir.path()));
    for partition in 0..BEGINNINGS {
        let found = records(&storage.log(TOPIC, partition), 50_000);
        assert_eq!(found, [(0, partition.to_be_bytes().to_vec())], "log {partition}");
    }
}

fn check(logs: &[Arc<Log>], tables: &[Arc<Log>]) {
    for log in logs {
        let found = records(log, 50_000);
        assert_eq!(found.len() as i64, APPENDS);
        for (at, (offset, value)) in (0i64..).zip(&found) {
            assert_eq!((*offset, &value[..8]), (at, &at.to_be_bytes()[..]));
        }
    }
    for table in tables {
        let found = records(table, 50_000);
        let last: Vec<i64> = found.iter().rev().take(10).map(|(offset, _)| *offset).collect();
        assert_eq!(last, (0..10).map(|back| APPENDS - 1 - back).collect::<Vec<_>>());
        assert!((found.len() as i64) < APPENDS, "nothing was compacted");
    }
}
