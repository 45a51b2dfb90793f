//! Our cleaner against Kafka's, see `tests/golden/README.md`, and what it does with batches that
//! Kafka would not have stored.

use std::path::PathBuf;

use moldau_records::{
    Attributes, BatchOptions, BatchView, CleanCounts, CleanPolicy, Cleaned, Cleaner, Compression,
    Decompressor, Error, KeyMap, Mapped, crc32c, iter_batches,
};
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::Value;

use crate::sample::{BYTES_MAX, Bytes, Sample, build, codecs, plain, read, samples};

const SEED: u64 = 7;
const NOW: i64 = 1_700_000_000_000;
const POLICY: CleanPolicy =
    CleanPolicy { now_ms: NOW, delete_retention_ms: 1000, first_uncleanable_offset: i64::MAX };

/// Both passes over `log`. `last_offsets` are pairs of a producer and its last offset.
fn round(
    cleaner: &mut Cleaner,
    map: &mut KeyMap,
    log: &[u8],
    last_offsets: &[(i64, i64)],
) -> Bytes {
    for batch in iter_batches(log).map(Result::unwrap) {
        if cleaner.map_batch(&batch, map).unwrap() == Mapped::Full {
            break;
        }
    }
    let mut cleaned = Vec::new();
    for batch in iter_batches(log).map(Result::unwrap) {
        let is_last = last_offsets.contains(&(batch.producer_id(), batch.last_offset()));
        match cleaner.clean_batch(&batch, map, is_last).unwrap() {
            Cleaned::Unchanged => cleaned.extend_from_slice(batch.bytes()),
            Cleaned::Rewritten(bytes) | Cleaned::Emptied(bytes) => cleaned.extend_from_slice(bytes),
            Cleaned::Removed => {}
        }
    }
    cleaned
}

fn hex(value: &Value) -> Bytes {
    let digits = value.as_str().unwrap().as_bytes();
    let digit = |at: usize| char::from(digits[at]).to_digit(16).unwrap() as u8;
    (0..digits.len() / 2).map(|at| digit(2 * at) << 4 | digit(2 * at + 1)).collect()
}

fn golden() -> Vec<Value> {
    let file = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden/cleaning.json");
    let golden: Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
    golden.as_array().unwrap().clone()
}

fn clean_as_told(case: &Value) -> (Bytes, i64) {
    let number = |field: &str| case[field].as_i64().unwrap();
    let policy = CleanPolicy {
        now_ms: number("now_ms"),
        delete_retention_ms: number("delete_retention_ms"),
        first_uncleanable_offset: number("first_uncleanable_offset"),
    };
    let last_offsets: Vec<(i64, i64)> = case["last_offsets"]
        .as_array()
        .unwrap()
        .iter()
        .map(|pair| (pair[0].as_i64().unwrap(), pair[1].as_i64().unwrap()))
        .collect();
    let mut map = KeyMap::new(usize::try_from(number("map_bytes")).unwrap(), SEED);
    map.start(number("from_offset"), i64::MAX);
    let mut cleaner = Cleaner::new(BYTES_MAX, policy);
    let cleaned = round(&mut cleaner, &mut map, &hex(&case["before"]), &last_offsets);
    (cleaned, map.end_offset())
}

#[test]
fn every_log_is_cleaned_as_kafka_cleans_it() {
    let mut identical = 0;
    for case in golden() {
        let name = case["name"].as_str().unwrap();
        let (ours, end_offset) = clean_as_told(&case);
        let kafkas = hex(&case["after"]);
        assert_eq!(end_offset, case["end_offset"].as_i64().unwrap(), "{name}");
        let batches = |bytes| iter_batches(bytes).map(Result::unwrap).collect::<Vec<_>>();
        let (our_batches, kafkas_batches) = (batches(&ours), batches(&kafkas));
        assert_eq!(our_batches.len(), kafkas_batches.len(), "{name}");
        for (our, kafkas) in our_batches.iter().zip(&kafkas_batches) {
            our.check_crc().unwrap();
            assert_eq!(BatchOptions::of(our), BatchOptions::of(kafkas), "{name}");
            assert_eq!(our.records_count(), kafkas.records_count(), "{name}");
            assert_eq!(unpacked(our), unpacked(kafkas), "{name}");
            if kafkas.compression() == Ok(Compression::None) {
                assert_eq!(our.bytes(), kafkas.bytes(), "{name}");
                identical += 1;
            }
        }
    }
    assert_eq!(identical, 94);
}

#[test]
fn the_counts_tell_what_a_round_has_read() {
    let mut keyless = keyed(b"a", Some(b"1"));
    keyless.key = None;
    let log = batch_at(0, &[keyed(b"a", Some(b"1")), keyless, keyed(b"a", Some(b"2"))]);
    let mut map = mapped(&[&log]);
    let mut cleaner = Cleaner::new(BYTES_MAX, POLICY);
    round(&mut cleaner, &mut map, &log, &[]);
    let expected = CleanCounts {
        records_read: 3,
        records_retained: 1,
        records_without_key: 1,
        batches_too_large: 0,
    };
    assert_eq!(cleaner.counts(), expected);
    cleaner.start(POLICY);
    assert_eq!(cleaner.counts(), CleanCounts::default());
}

#[test]
fn a_damaged_batch_is_an_error_in_both_passes() {
    let mut bytes = batch_at(5, &[keyed(b"a", Some(b"1")), keyed(b"a", Some(b"2"))]);
    *bytes.last_mut().unwrap() ^= 1;
    let batch = BatchView::parse(&bytes).unwrap();
    let mut map = KeyMap::new(2400, SEED);
    let mut cleaner = Cleaner::new(BYTES_MAX, POLICY);
    let refused = cleaner.map_batch(&batch, &mut map).unwrap_err();
    assert!(matches!(refused, Error::CrcMismatch { .. }));
    assert_eq!((map.len(), map.end_offset()), (0, 0));
    let refused = cleaner.clean_batch(&batch, &map, true).unwrap_err();
    assert!(matches!(refused, Error::CrcMismatch { .. }));
}

#[test]
fn offsets_that_do_not_grow_or_leave_the_batch_or_the_log_are_errors() {
    let bytes = batch_at(5, &[keyed(b"a", Some(b"1")), keyed(b"b", Some(b"2"))]);
    let refused = |at: usize, replacement: &[u8]| {
        let mut bytes = bytes.clone();
        bytes[at..at + replacement.len()].copy_from_slice(replacement);
        with_crc(&mut bytes);
        let batch = BatchView::parse(&bytes).unwrap();
        let mut map = KeyMap::new(2400, SEED);
        let mut cleaner = Cleaner::new(BYTES_MAX, POLICY);
        let error = cleaner.map_batch(&batch, &mut map).unwrap_err();
        assert_eq!(cleaner.clean_batch(&batch, &map, false), Err(error));
        error
    };
    let invalid = |offset_delta, previous| Error::InvalidOffsetDelta { offset_delta, previous };
    // A record is length, attributes, timestamp delta, offset delta; zigzag 4 is 2, zigzag 0 is 0.
    let second_delta = 61 + (bytes.len() - 61) / 2 + 3;
    assert_eq!(bytes[second_delta], 2);
    assert_eq!(refused(second_delta, &[4]), invalid(2, 0));
    assert_eq!(refused(second_delta, &[0]), invalid(0, 0));
    assert_eq!(refused(23, &(-1i32).to_be_bytes()), invalid(-1, -1));
    for base_offset in [-1, i64::MIN, i64::MAX, i64::MAX - 1] {
        let error = refused(0, &i64::to_be_bytes(base_offset));
        assert!(matches!(error, Error::InvalidRecord { .. }), "{base_offset}");
    }
}

/// What a tombstone deleted would come back if it went before a batch that still holds it.
#[test]
fn tombstones_after_a_batch_that_cannot_be_read_stay_for_the_round() {
    let bomb = {
        let options = BatchOptions::default();
        build(options, &[keyed(b"a", Some(&[0; 1 << 20]))], Compression::Zstd)
    };
    let mut damaged = batch_at(0, &[keyed(b"a", Some(b"1"))]);
    *damaged.last_mut().unwrap() ^= 1;
    let tombstone = {
        let attributes = Attributes::default().with_delete_horizon(true);
        let options = BatchOptions {
            base_offset: 1,
            attributes,
            base_timestamp: Some(NOW - 1),
            ..Default::default()
        };
        build(options, &[keyed(b"a", None)], Compression::None)
    };
    let tombstone = BatchView::parse(&tombstone).unwrap();
    for (unread, batches_too_large) in [(bomb, 1), (damaged, 0)] {
        let unread = BatchView::parse(&unread).unwrap();
        let mut map = KeyMap::new(2400, SEED);
        let mut cleaner = Cleaner::new(1 << 16, POLICY);
        let is_too_large = batches_too_large == 1;
        let mapped = cleaner.map_batch(&unread, &mut map);
        assert_eq!(mapped.is_ok(), is_too_large);
        assert_eq!(cleaner.map_batch(&tombstone, &mut map), Ok(Mapped::Whole));
        assert_eq!((map.latest(b"a"), map.end_offset()), (Some(1), 2));

        let cleaned = cleaner.clean_batch(&unread, &map, false);
        assert_eq!(cleaned == Ok(Cleaned::Unchanged), is_too_large);
        assert_eq!(cleaner.clean_batch(&tombstone, &map, false), Ok(Cleaned::Unchanged));
        assert_eq!(cleaner.counts().batches_too_large, batches_too_large);
        cleaner.start(POLICY);
        assert_eq!(cleaner.clean_batch(&tombstone, &map, false), Ok(Cleaned::Removed));
    }
}

proptest! {
    #[test]
    fn batches_with_mutated_records_never_panic_and_never_become_broken(
        samples in samples(), codec in codecs(),
        edits in vec((any::<prop::sample::Index>(), any::<u8>()), 0..8), is_last: bool,
        keys in 0usize..20,
    ) {
        let mut bytes = plain(&samples, codec);
        for (at, byte) in edits {
            let at = 21 + at.index(bytes.len() - 21);
            bytes[at] = byte;
        }
        with_crc(&mut bytes);
        let batch = BatchView::parse(&bytes).unwrap();
        let mut map = KeyMap::new(24 * keys, SEED);
        let mut cleaner = Cleaner::new(BYTES_MAX, POLICY);
        let mapped = cleaner.map_batch(&batch, &mut map);
        let cleaned = cleaner.clean_batch(&batch, &map, is_last);
        prop_assert!(mapped.is_ok() || cleaned.is_err());
        if let Ok(Cleaned::Rewritten(bytes) | Cleaned::Emptied(bytes)) = cleaned {
            let cleaned = BatchView::parse(bytes).unwrap();
            prop_assert_eq!(cleaned.check_crc(), Ok(()));
            prop_assert_eq!(cleaned.next_offset(), batch.next_offset());
            prop_assert_eq!(read(&cleaned).unwrap().len() as i32, cleaned.records_count());
        }
    }
}

/// A map of all records of `batches`.
fn mapped(batches: &[&[u8]]) -> KeyMap {
    let mut map = KeyMap::new(2400, SEED);
    let mut cleaner = Cleaner::new(BYTES_MAX, POLICY);
    for bytes in batches {
        let batch = BatchView::parse(bytes).unwrap();
        assert_eq!(cleaner.map_batch(&batch, &mut map), Ok(Mapped::Whole));
    }
    map
}

fn keyed(key: &[u8], value: Option<&[u8]>) -> Sample {
    Sample {
        timestamp: NOW,
        key: Some(key.to_vec()),
        value: value.map(<[u8]>::to_vec),
        headers: Vec::new(),
    }
}

fn batch_at(base_offset: i64, samples: &[Sample]) -> Bytes {
    build(BatchOptions { base_offset, ..Default::default() }, samples, Compression::None)
}

fn with_crc(bytes: &mut [u8]) {
    let crc = crc32c(&bytes[21..]);
    bytes[17..21].copy_from_slice(&crc.to_be_bytes());
}

fn unpacked(batch: &BatchView<'_>) -> Bytes {
    let mut payload = Vec::new();
    if batch.records_count() > 0 {
        let codec = batch.compression().unwrap();
        Decompressor::default()
            .decompress_into(codec, batch.payload(), BYTES_MAX, &mut payload)
            .unwrap();
    }
    payload
}
