//! Reading logs as a consumer does, which follows `next_offset`.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use moldau_records::{Decompressor, iter_batches};
use moldau_storage::{Error, Log, Read, Storage};

use super::model::Record;

/// The records of a read from the offset asked for on.
pub(crate) fn records_of(read: &Read, from: i64) -> Vec<(i64, Record)> {
    let mut found = Vec::new();
    let mut end = 0;
    let mut decompressor = Decompressor::default();
    for batch in iter_batches(&read.batches.concat()) {
        let batch = batch.unwrap();
        batch.check_crc().unwrap();
        assert!(batch.base_offset() >= end, "a batch at {} after {end}", batch.base_offset());
        end = batch.next_offset();
        assert!(end <= read.next_offset, "a batch ends at {end}, the read before");
        for record in batch.records(&mut decompressor, 1 << 20).unwrap() {
            let record = record.unwrap();
            let is_within = record.offset() >= batch.base_offset() && record.offset() < end;
            assert!(is_within, "record {} of a batch that ends at {end}", record.offset());
            let owned = |bytes: Option<&[u8]>| bytes.map(<[u8]>::to_vec);
            let (key, value) = (owned(record.key()), owned(record.value()));
            found.push((record.offset(), Record { timestamp: record.timestamp(), key, value }));
        }
    }
    assert!(read.next_offset <= read.high_watermark.max(from));
    assert_eq!(read.bytes, read.batches.iter().map(bytes::Bytes::len).sum::<usize>());
    found.retain(|(offset, _)| *offset >= from);
    found
}

/// What following a log to its high watermark gave.
pub(crate) struct Followed {
    pub(crate) records: Vec<(i64, Record)>,
    pub(crate) bytes: u64,
}

/// Reads from an offset to the high watermark; every read must get on.
pub(crate) fn follow(log: &Arc<Log>, from: i64, bytes_max: usize) -> Result<Followed, Error> {
    let mut followed = Followed { records: Vec::new(), bytes: 0 };
    let (mut at, end) = (from, log.high_watermark());
    while at < end {
        let read = log.read(at, bytes_max, true)?.wait()?;
        assert!(read.next_offset > at, "a consumer would stay at offset {at} of {end}");
        followed.records.extend(records_of(&read, at));
        followed.bytes += read.bytes as u64;
        at = read.next_offset;
    }
    assert_eq!(at, end.max(from), "a consumer ends at the high watermark");
    Ok(followed)
}

/// Runs a future and serves its reads.
pub(crate) fn run<F: Future>(storage: &Storage, future: F) -> F::Output {
    let mut future = pin!(future);
    for _ in 0..STEPS_MAX {
        if let Poll::Ready(output) = poll_once(future.as_mut()) {
            return output;
        }
        storage.step();
    }
    panic!("a lookup does not come to an end");
}

pub(crate) fn poll_once<F: Future>(future: std::pin::Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

/// More chunks than a lookup can ask for.
const STEPS_MAX: usize = 100_000;
