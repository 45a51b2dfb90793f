//! What sealing changes, and what it leaves alone.

use std::collections::HashSet;

use moldau_encryption::{EDEK_BYTES_MAX, Edek, KmsError, SealingKey, Wrapper};
use moldau_records::{
    Attributes, BatchBuilder, BatchOptions, BatchView, Compression, Compressor, Error, Rewriter,
    crc32c,
};

use crate::editors::{Failure, SealAll};
use crate::sample::{Sample, build, data_key, open, plain, read, seal, sealing_key};

/// Seals with a key of its own and gives back the count and what was appended.
fn seal_to(codec: Option<Compression>, bytes: &[u8]) -> (Result<u32, Failure>, Vec<u8>) {
    let mut out = b"before".to_vec();
    let batch = BatchView::parse(bytes).unwrap();
    let mut sealing = SealAll::new(sealing_key(1));
    sealing.codec = codec;
    let sealed = sealing.seal(&mut Rewriter::default(), &batch, &mut out);
    assert!(out.starts_with(b"before"));
    (sealed, out.split_off(b"before".len()))
}

#[test]
fn a_tombstone_stays_and_an_empty_value_is_sealed() {
    let bytes = plain(&[Sample::tombstone(), Sample::of_value(b"")]);
    let (count, sealed) = seal_to(None, &bytes);
    assert_eq!(count.unwrap(), 1);
    let [tombstone, empty] = &read(&sealed)[..] else { panic!("two records") };
    assert_eq!(tombstone, &Sample::tombstone());
    let value = empty.value.clone().unwrap();
    assert_eq!(Wrapper::parse(&value).unwrap().ciphertext.len(), 2);
    assert_eq!(open(&sealed, 1), bytes);
}

#[test]
fn batches_with_nothing_to_seal_are_copied_byte_for_byte() {
    let control = BatchOptions {
        attributes: Attributes::default().with_control(true).with_transactional(true),
        ..Default::default()
    };
    let without_records = BatchOptions {
        last_offset_delta: Some(4),
        attributes: Attributes::from_bits(1 << 12),
        ..Default::default()
    };
    let batches = [
        build(control, &[Sample::of_value(b"\0\0\0\0\0\0")], Compression::None),
        build(without_records, &[], Compression::None),
        build(BatchOptions::default(), &[Sample::tombstone()], Compression::Zstd),
    ];
    for bytes in batches {
        let (count, sealed) = seal_to(None, &bytes);
        assert_eq!(count.unwrap(), 0);
        assert_eq!(sealed, bytes);
    }
}

#[test]
fn no_window_of_a_value_is_left_in_a_sealed_batch() {
    let value: Vec<u8> = (0..2000u32).map(|at| (at * at % 253) as u8).collect();
    for codec in Compression::ALL {
        let bytes = build(BatchOptions::default(), &[Sample::of_value(&value)], codec);
        let (_, sealed) = seal_to(Some(Compression::None), &bytes);
        assert_eq!(BatchView::parse(&sealed).unwrap().compression(), Ok(Compression::None));
        let windows: HashSet<&[u8]> = value.windows(8).collect();
        assert!(sealed.windows(8).all(|window| !windows.contains(window)), "{codec}");
        assert_eq!(read(&open(&sealed, 1)), [Sample::of_value(&value)]);
    }
}

#[test]
fn no_nonce_of_a_key_is_used_twice() {
    let (mut one, mut other) = (SealAll::new(sealing_key(1)), SealAll::new(sealing_key(1)));
    let mut rewriter = Rewriter::default();
    let samples: Vec<Sample> = (0..100u8).map(|at| Sample::of_value(&[at])).collect();
    let bytes = plain(&samples);
    let batch = BatchView::parse(&bytes).unwrap();
    let mut nonces = HashSet::new();
    for at in 0..3 {
        let mut out = Vec::new();
        let sealing = if at == 1 { &mut other } else { &mut one };
        assert_eq!(sealing.seal(&mut rewriter, &batch, &mut out), Ok(100));
        for record in read(&out) {
            assert!(nonces.insert(*Wrapper::parse(&record.value.unwrap()).unwrap().nonce));
        }
    }
    assert_eq!(nonces.len(), 300);
}

#[test]
fn a_batch_grows_by_no_more_than_its_records_may() {
    let key = sealing_key(1);
    for len in [0, 1, 62, 63, 64, 8000, 8191, 8192, 1 << 20] {
        let bytes = plain(&vec![Sample::of_value(&vec![b'v'; len]); 7]);
        let (count, sealed) = seal_to(None, &bytes);
        assert_eq!(count.unwrap(), 7);
        let growth = (sealed.len() - bytes.len()) / 7;
        assert!(growth <= key.record_growth_max() && growth + 9 >= key.record_growth_max());
    }
}

#[test]
fn a_damaged_batch_is_not_sealed() {
    for codec in Compression::ALL {
        let mut bytes = build(BatchOptions::default(), &[Sample::of_value(b"value")], codec);
        *bytes.last_mut().unwrap() ^= 1;
        let (sealed, out) = seal_to(None, &bytes);
        let is_found = matches!(sealed, Err(Failure::Batch(Error::CrcMismatch { .. })));
        assert!(is_found, "{codec}: {sealed:?}");
        assert_eq!(out, b"");
    }
}

/// Nobody could open it: the reader looks for the marker among the headers.
#[test]
fn a_record_with_malformed_headers_is_not_sealed() {
    let whole = Sample::tombstone().with_header(b"h", None);
    let mut bytes = plain(&[Sample::of_value(b"v"), whole]);
    let null_key = bytes.len() - 3;
    assert_eq!(bytes[null_key..], [2, b'h', 1]);
    bytes[null_key] = 1;
    let crc = crc32c(&bytes[21..]);
    bytes[17..21].copy_from_slice(&crc.to_be_bytes());
    let (sealed, _) = seal_to(None, &bytes);
    let is_found = matches!(sealed, Err(Failure::Batch(Error::InvalidRecord { .. })));
    assert!(is_found, "{sealed:?}");
}

#[test]
fn a_batch_that_lost_its_last_records_keeps_its_last_offset() {
    let options =
        BatchOptions { base_offset: 40, last_offset_delta: Some(9), ..Default::default() };
    let mut builder = BatchBuilder::new(options);
    builder.append_at(2, 5, Some(b"k"), Some(b"v"), []).unwrap();
    builder.append_at(6, 6, Some(b"l"), None, []).unwrap();
    let bytes = builder.finish(Compression::Snappy, &mut Compressor::default()).unwrap();
    let sealed = seal(bytes, 1);
    let opened = open(&sealed, 1);
    assert_eq!(opened, bytes);
    for bytes in [sealed, opened] {
        let batch = BatchView::parse(&bytes).unwrap();
        assert_eq!((batch.base_offset(), batch.next_offset()), (40, 50));
        assert_eq!(batch.records_count(), 2);
    }
}

#[test]
fn an_edek_too_long_for_each_record_makes_no_key() {
    let longest = Edek(vec![1; EDEK_BYTES_MAX].into());
    assert!(SealingKey::new(&data_key(1), &longest).is_ok());
    let beyond = Edek(vec![1; EDEK_BYTES_MAX + 1].into());
    let Err(KmsError::DamagedEdek(_)) = SealingKey::new(&data_key(1), &beyond) else {
        panic!("it is too long");
    };
}
