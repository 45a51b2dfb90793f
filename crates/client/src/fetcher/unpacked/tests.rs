//! Views over several batches, and what reading them allocates.

use moldau_protocol::Uuid;
use moldau_records::{BatchBuilder, BatchOptions, Compressor, HeaderView};

use super::super::Aborted;
use super::*;
use crate::Error;
use crate::metadata::TopicRef;

const BATCH_RECORDS: usize = 500;

/// Batches of [`BATCH_RECORDS`] records each.
fn fetched(batches: usize, codec: Compression) -> Fetched {
    let mut compressor = Compressor::default();
    let mut bytes = Vec::new();
    for batch in 0..batches {
        let base_offset = i64::try_from(batch * BATCH_RECORDS).unwrap();
        let options = BatchOptions { base_offset, ..BatchOptions::default() };
        let mut builder = BatchBuilder::new(options);
        for _ in 0..BATCH_RECORDS {
            let value = [b'v'; 40];
            let header = HeaderView { key: b"h", value: Some(b"1") };
            builder.append(1, Some(b"key"), Some(&value), [header]).unwrap();
        }
        bytes.extend_from_slice(builder.finish(codec, &mut compressor).unwrap());
    }
    Fetched {
        topic: TopicRef { name: "t".into(), id: Uuid::default() },
        partition: 0,
        position: 0,
        next_position: i64::try_from(batches * BATCH_RECORDS).unwrap(),
        high_watermark: 0,
        log_start_offset: 0,
        bytes: bytes.into(),
        aborted: Aborted::default(),
        generation: 1,
        room: None,
    }
}

/// Reads all records in order; how many there are, and in how many parts.
fn read(fetched: &Fetched, pool: &UnpackPool, from: i64) -> (usize, usize) {
    let (mut seen, mut parts, mut position) = (0, 0, from);
    while position < fetched.next_position {
        let unpacked = fetched.unpack(position, pool).unwrap();
        for record in &unpacked {
            let record = record.unwrap();
            assert_eq!(record.offset(), from + i64::try_from(seen).unwrap());
            let headers = record.headers().unwrap().filter(|header| header.key == b"h").count();
            seen += usize::from(record.key() == Some(b"key") && headers == 1);
        }
        parts += 1;
        position = unpacked.next_position();
    }
    (seen, parts)
}

/// Both ways to read, and both after a first round in which buffers grow.
#[test]
fn reading_allocates_nothing_per_record() {
    for codec in [Compression::None, Compression::Lz4, Compression::Zstd] {
        let few = fetched(20, codec);
        let many = fetched(240, codec);
        let pool = UnpackPool::new(1 << 20);
        let mut decompressor = Decompressor::default();
        let mut walk = |fetched: &Fetched| {
            let mut seen = 0;
            fetched.for_each_record(&mut decompressor, 1 << 20, |_| seen += 1).unwrap();
            seen
        };
        let records = 240 * BATCH_RECORDS;
        assert!(records >= 100_000);
        assert_eq!((read(&many, &pool, 0).0, walk(&many)), (records, records));
        for (fetched, records) in [(&few, 20 * BATCH_RECORDS), (&many, records)] {
            let measured = allocation_counter::measure(|| {
                assert_eq!((read(fetched, &pool, 0).0, walk(fetched)), (records, records));
            });
            assert_eq!(measured.count_total, 0, "{codec}, {records} records");
        }
    }
}

#[test]
fn memory_of_a_reader_is_bounded_by_the_pool() {
    for codec in [Compression::Lz4, Compression::Zstd] {
        let many = fetched(240, codec);
        let batch_bytes = 60 * BATCH_RECORDS;
        let pool = UnpackPool::new(4 * batch_bytes);
        let measured = allocation_counter::measure(|| {
            let (seen, parts) = read(&many, &pool, 0);
            assert_eq!(seen, 240 * BATCH_RECORDS);
            assert!(parts >= 40, "{parts}");
        });
        // The decompressor's own state beside the buffers.
        assert!(measured.bytes_max < 1 << 20, "{codec}: {measured:?}");
    }
}

#[test]
fn records_before_the_position_are_left_out() {
    for codec in [Compression::None, Compression::Zstd] {
        let some = fetched(3, codec);
        let from = i64::try_from(BATCH_RECORDS).unwrap() + 7;
        let pool = UnpackPool::new(1 << 20);
        assert_eq!(read(&some, &pool, from), (2 * BATCH_RECORDS - 7, 1));
        assert_eq!(read(&some, &pool, some.next_position), (0, 0));
    }
}

#[test]
fn views_of_several_batches_are_valid_together() {
    let some = fetched(3, Compression::Lz4);
    let unpacked = some.unpack(0, &UnpackPool::new(1 << 20)).unwrap();
    let records: Vec<_> = unpacked.iter().map(Result::unwrap).collect();
    assert_eq!(records.len(), 3 * BATCH_RECORDS);
    assert!(records.iter().all(|record| record.value() == Some(&[b'v'; 40])));
}

#[test]
fn batch_that_is_damaged_or_too_large_is_an_error() {
    let mut some = fetched(1, Compression::Zstd);
    let large = some.unpack(0, &UnpackPool::new(100)).unwrap_err();
    assert!(matches!(large, Error::Records(_)), "{large}");
    let mut bytes = some.bytes.to_vec();
    *bytes.last_mut().unwrap() ^= 1;
    some.bytes = bytes.into();
    let damaged = some.unpack(0, &UnpackPool::new(1 << 20)).unwrap_err();
    assert!(matches!(damaged, Error::Records(_)), "{damaged}");
}
