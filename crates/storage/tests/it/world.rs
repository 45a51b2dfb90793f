//! What the tests share: batches, and an owner that remembers its metadata.

use std::path::Path;
use std::sync::Arc;

use moldau_records::{
    AppendRules, BatchBuilder, BatchOptions, BatchView, Compression, Compressor, Decompressor,
    Producer, Validator,
};
use moldau_storage::{
    AppendError, Appended, Error, Log, Options, Replay, Storage, TopicId, block_on,
};

pub(crate) const TOPIC: TopicId = TopicId([7; 16]);

/// An owner that keeps every metadata entry in order.
#[derive(Debug, Default, PartialEq, Eq, Clone)]
pub(crate) struct Owner(pub(crate) Vec<Vec<u8>>);

impl Replay for Owner {
    fn metadata(&mut self, bytes: &[u8]) -> Result<(), String> {
        self.0.push(bytes.to_vec());
        Ok(())
    }
}

/// Small files and caches, so that a test reaches their ends.
pub(crate) fn small(dir: &Path) -> Options {
    Options {
        file_bytes: 64 << 10,
        tail_cache_bytes: 16 << 10,
        read_cache_bytes: 0,
        reserve_bytes: 0,
        ..Options::new(dir)
    }
}

pub(crate) fn open(options: Options) -> (Storage, Owner) {
    let mut owner = Owner::default();
    let storage = Storage::open(options, &mut owner).unwrap();
    (storage, owner)
}

/// A batch of records with these values, one timestamp each.
pub(crate) fn batch(records: &[(i64, &[u8])], producer: Option<Producer>) -> Vec<u8> {
    let options = BatchOptions { producer, ..BatchOptions::default() };
    let mut builder = BatchBuilder::new(options);
    for (timestamp, value) in records {
        builder.append(*timestamp, None, Some(value), []).unwrap();
    }
    builder.finish(Compression::None, &mut Compressor::default()).unwrap().to_vec()
}

/// A batch of one record with a key.
pub(crate) fn keyed(timestamp: i64, key: &[u8], value: &[u8]) -> Vec<u8> {
    let mut builder = BatchBuilder::new(BatchOptions::default());
    builder.append(timestamp, Some(key), Some(value), []).unwrap();
    builder.finish(Compression::None, &mut Compressor::default()).unwrap().to_vec()
}

/// A batch of one record.
pub(crate) fn one(value: &[u8]) -> Vec<u8> {
    batch(&[(1_000, value)], None)
}

/// Appends bytes that are a sound batch.
pub(crate) trait AppendBytes {
    fn append_bytes(&self, batch: &[u8], leader_epoch: i32) -> Result<Appended, AppendError>;
}

impl AppendBytes for Arc<Log> {
    fn append_bytes(&self, batch: &[u8], leader_epoch: i32) -> Result<Appended, AppendError> {
        let mut validator = Validator::default();
        let batch = validator.check(batch, &AppendRules::LENIENT).unwrap();
        self.append(&batch, leader_epoch)
    }
}

/// Appends and waits until durable.
pub(crate) fn append(storage: &Storage, log: &Arc<Log>, batch: &[u8]) -> i64 {
    let appended = log.append_bytes(batch, 0).unwrap();
    block_on(storage.wait_durable(appended.lsn)).unwrap();
    appended.base_offset
}

/// All records of a log as (offset, value), read in steps of at most `bytes_max`.
pub(crate) fn records(log: &Arc<Log>, bytes_max: usize) -> Vec<(i64, Vec<u8>)> {
    try_records(log, bytes_max).unwrap()
}

/// As [`records`], on a disk that may fail.
pub(crate) fn try_records(log: &Arc<Log>, bytes_max: usize) -> Result<Vec<(i64, Vec<u8>)>, Error> {
    let mut found = Vec::new();
    let start = log.start_offset();
    let mut from = start;
    loop {
        let read = log.read(from, bytes_max, true)?.wait()?;
        if read.batches.is_empty() {
            return Ok(found);
        }
        values_of(&read.batches.concat(), |offset, value| {
            if offset >= start {
                found.push((offset, value.to_vec()));
            }
        });
        from = read.next_offset;
    }
}

fn values_of(bytes: &[u8], mut take: impl FnMut(i64, &[u8])) {
    for batch in moldau_records::iter_batches(bytes) {
        let batch: BatchView<'_> = batch.unwrap();
        batch.check_crc().unwrap();
        for record in batch.records(&mut Decompressor::default(), 1 << 20).unwrap() {
            let record = record.unwrap();
            take(record.offset(), record.value().unwrap());
        }
    }
}
