//! What sealing changes, and what it leaves alone.

use std::collections::HashSet;

use moldau_encryption::{
    EDEK_BYTES_MAX, Edek, Error, KmsError, Recompression, SealOptions, Sealer, SealingKey, Wrapper,
};
use moldau_records::{
    Attributes, BatchBuilder, BatchOptions, BatchView, Compression, Compressor, crc32c,
};

use crate::sample::{SEAL_OPTIONS, Sample, build, data_key, open, plain, read, seal, sealing_key};

/// Seals with a key of its own and gives back what was appended and the count.
fn seal_with(options: SealOptions, bytes: &[u8]) -> (Result<u32, Error>, Vec<u8>) {
    let mut out = b"before".to_vec();
    let batch = BatchView::parse(bytes).unwrap();
    let sealed = Sealer::new(options).seal(&batch, &sealing_key(1), &mut out);
    assert!(out.starts_with(b"before"));
    (sealed, out.split_off(b"before".len()))
}

#[test]
fn a_tombstone_stays_and_an_empty_value_is_sealed() {
    let bytes = plain(&[Sample::tombstone(), Sample::of_value(b"")]);
    let (count, sealed) = seal_with(SEAL_OPTIONS, &bytes);
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
        let (count, sealed) = seal_with(SEAL_OPTIONS, &bytes);
        assert_eq!(count.unwrap(), 0);
        assert_eq!(sealed, bytes);
    }
}

#[test]
fn no_window_of_a_value_is_left_in_a_sealed_batch() {
    let value: Vec<u8> = (0..2000u32).map(|at| (at * at % 253) as u8).collect();
    for codec in Compression::ALL {
        let bytes = build(BatchOptions::default(), &[Sample::of_value(&value)], codec);
        let options = SealOptions { recompression: Recompression::Uncompressed, ..SEAL_OPTIONS };
        let (_, sealed) = seal_with(options, &bytes);
        assert_eq!(BatchView::parse(&sealed).unwrap().compression(), Ok(Compression::None));
        let windows: HashSet<&[u8]> = value.windows(8).collect();
        assert!(sealed.windows(8).all(|window| !windows.contains(window)), "{codec}");
        assert_eq!(read(&open(&sealed, 1)), [Sample::of_value(&value)]);
    }
}

#[test]
fn no_nonce_of_a_key_is_used_twice() {
    let key = sealing_key(1);
    let other = sealing_key(1);
    let mut sealer = Sealer::new(SEAL_OPTIONS);
    let samples: Vec<Sample> = (0..100u8).map(|at| Sample::of_value(&[at])).collect();
    let bytes = plain(&samples);
    let batch = BatchView::parse(&bytes).unwrap();
    let mut nonces = HashSet::new();
    for key in [&key, &other, &key] {
        let mut out = Vec::new();
        assert_eq!(sealer.seal(&batch, key, &mut out).unwrap(), 100);
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
        let (count, sealed) = seal_with(SEAL_OPTIONS, &bytes);
        assert_eq!(count.unwrap(), 7);
        let growth = (sealed.len() - bytes.len()) / 7;
        assert!(growth <= key.record_growth_max() && growth + 9 >= key.record_growth_max());
    }
}

#[test]
fn a_batch_that_outgrows_the_limit_leaves_nothing() {
    let bytes = plain(&vec![Sample::of_value(b"v"); 100]);
    for bytes_max in [0, 1000, 15_000] {
        let (sealed, out) = seal_with(SealOptions { bytes_max, ..SEAL_OPTIONS }, &bytes);
        assert!(matches!(sealed, Err(Error::BatchTooLarge { .. })), "{bytes_max}");
        assert_eq!(out, b"");
    }
    let (sealed, _) = seal_with(SealOptions { bytes_max: 20_000, ..SEAL_OPTIONS }, &bytes);
    assert_eq!(sealed.unwrap(), 100);

    let packed = build(BatchOptions::default(), &[Sample::of_value(&[0; 9999])], Compression::Lz4);
    let (sealed, out) = seal_with(SealOptions { bytes_max: 9000, ..SEAL_OPTIONS }, &packed);
    let too_large = moldau_records::Error::PayloadTooLarge { bytes_max: 9000 };
    assert!(matches!(sealed, Err(Error::Batch(error)) if error == too_large));
    assert_eq!(out, b"");
}

#[test]
fn a_damaged_batch_is_not_sealed() {
    for codec in Compression::ALL {
        let mut bytes = build(BatchOptions::default(), &[Sample::of_value(b"value")], codec);
        *bytes.last_mut().unwrap() ^= 1;
        let (sealed, out) = seal_with(SEAL_OPTIONS, &bytes);
        let Err(Error::Batch(error)) = sealed else { panic!("{codec}: {sealed:?}") };
        assert!(matches!(error, moldau_records::Error::CrcMismatch { .. }), "{codec}: {error}");
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
    let (sealed, out) = seal_with(SEAL_OPTIONS, &bytes);
    let Err(Error::Batch(error)) = sealed else { panic!("{sealed:?}") };
    assert!(matches!(error, moldau_records::Error::InvalidRecord { .. }), "{error}");
    assert_eq!(out, b"");
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
