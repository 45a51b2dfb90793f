//! What a `Validator` says of the header of a batch.

use moldau_records::{
    AppendRules, Attributes, BatchOptions, BatchView, Compression, Error, Producer, TimestampType,
    Timestamps, Validator, crc32c, patch_base_offset,
};

use crate::sample::{Sample, build, plain};

const RULES: AppendRules = AppendRules::LENIENT;

/// A valid batch with some header bytes replaced and the CRC written anew.
fn with_bytes(at: usize, replacement: &[u8]) -> Vec<u8> {
    let mut bytes = plain(&[Sample::of_value(b"value")], Compression::None);
    bytes[at..at + replacement.len()].copy_from_slice(replacement);
    let crc = crc32c(&bytes[21..]);
    bytes[17..21].copy_from_slice(&crc.to_be_bytes());
    bytes
}

fn outcome(bytes: &[u8], rules: &AppendRules) -> Result<(), Error> {
    Validator::default().check(bytes, rules).map(|_| ()).map_err(|invalid| invalid.error)
}

fn refused(bytes: &[u8]) -> Error {
    outcome(bytes, &RULES).unwrap_err()
}

#[test]
fn one_batch_of_every_codec_is_accepted() {
    for codec in Compression::ALL {
        let sample = Sample::of_value(b"value");
        let bytes = plain(&[sample.clone(), sample], codec);
        let mut validator = Validator::default();
        let batch = validator.check(&bytes, &RULES).unwrap();
        assert_eq!((batch.records_count(), batch.compression()), (2, codec));
        assert_eq!(batch.view().bytes(), bytes);
    }
}

#[test]
fn the_time_of_the_append_replaces_the_timestamp_and_nothing_else() {
    let producer = Some(Producer { id: 3, epoch: 1, base_sequence: 8 });
    let options = BatchOptions { producer, ..Default::default() };
    let bytes = build(options, &[Sample::of_value(b"a")], Compression::Lz4);
    let rules = AppendRules { timestamps: Timestamps::Append(99), ..RULES };
    let mut validator = Validator::default();
    let stamped = validator.check(&bytes, &rules).unwrap();
    assert_eq!(stamped.compression(), Compression::Lz4);
    let stamped = *stamped.view();
    stamped.check_crc().unwrap();
    assert_eq!(stamped.timestamp_type(), TimestampType::LogAppendTime);
    assert_eq!((stamped.max_timestamp(), stamped.base_sequence()), (99, 8));
    assert_eq!(stamped.payload(), BatchView::parse(&bytes).unwrap().payload());
}

#[test]
fn all_but_one_whole_batch_is_refused() {
    let bytes = plain(&[Sample::of_value(b"value")], Compression::None);
    for cut in 0..bytes.len() {
        assert!(matches!(refused(&bytes[..cut]), Error::Truncated { .. }), "cut at {cut}");
        let trailing = [&bytes[..], &bytes[..cut]].concat();
        assert_eq!(outcome(&trailing, &RULES).is_ok(), cut == 0);
    }
    assert_eq!(refused(&[&bytes[..], &bytes[..]].concat()), Error::NotOneBatch);
}

#[test]
fn each_broken_header_field_has_its_error() {
    let length = |length: i32| with_bytes(8, &length.to_be_bytes());
    assert_eq!(refused(&length(-1)), Error::InvalidLength { length: -1 });
    assert_eq!(refused(&length(48)), Error::InvalidLength { length: 48 });
    assert!(matches!(refused(&length(i32::MAX)), Error::Truncated { .. }));
    assert_eq!(refused(&with_bytes(16, &[0])), Error::UnsupportedMagic { magic: 0 });
    assert_eq!(refused(&with_bytes(16, &[1])), Error::UnsupportedMagic { magic: 1 });
    assert_eq!(refused(&with_bytes(16, &[3])), Error::UnknownMagic { magic: 3 });
    assert_eq!(refused(&with_bytes(16, &[0xff])), Error::UnknownMagic { magic: -1 });
    assert_eq!(refused(&with_bytes(21, &[0, 5])), Error::UnknownCompression { id: 5 });
    assert_eq!(refused(&with_bytes(21, &[0, 0x20])), Error::ControlBatch);
    let mut bytes = with_bytes(0, &[]);
    patch_base_offset(&mut bytes, 4).unwrap();
    assert_eq!(refused(&bytes), Error::InvalidBaseOffset { base_offset: 4 });
}

#[test]
fn counts_that_disagree_or_pass_the_payload_are_refused() {
    let counted = |delta: i32, count: i32| {
        let mut bytes = with_bytes(23, &delta.to_be_bytes());
        bytes[57..61].copy_from_slice(&count.to_be_bytes());
        let crc = crc32c(&bytes[21..]);
        bytes[17..21].copy_from_slice(&crc.to_be_bytes());
        bytes
    };
    for (last_offset_delta, records_count) in
        [(0, 0), (-1, 0), (0, 2), (1, 1), (0, -1), (-2, -1), (i32::MAX, i32::MIN)]
    {
        let expected = Error::InvalidCount { records_count, last_offset_delta };
        assert_eq!(refused(&counted(last_offset_delta, records_count)), expected);
    }
    let too_many = refused(&counted(i32::MAX - 1, i32::MAX));
    assert!(matches!(too_many, Error::InvalidRecord { .. }));
}

#[test]
fn producer_fields_must_fit_together() {
    let producer = |id: i64, epoch: i16, base_sequence: i32, is_transactional: bool| {
        let options = BatchOptions {
            attributes: Attributes::default().with_transactional(is_transactional),
            producer: Some(Producer { id, epoch, base_sequence }),
            ..Default::default()
        };
        let bytes = build(options, &[Sample::of_value(b"v")], Compression::None);
        outcome(&bytes, &RULES)
    };
    let refused =
        |id, epoch, base_sequence| Err(Error::InvalidProducer { id, epoch, base_sequence });
    assert_eq!(producer(0, 0, 0, false), Ok(()));
    assert_eq!(producer(0, 0, 0, true), Ok(()));
    assert_eq!(producer(5, -1, 0, false), refused(5, -1, 0));
    assert_eq!(producer(5, 0, -1, false), refused(5, 0, -1));
    assert_eq!(producer(-1, -1, -1, true), refused(-1, -1, -1));
}

#[test]
fn a_batch_at_the_limit_is_accepted_and_one_byte_more_is_not() {
    let bytes = plain(&[Sample::of_value(&[1; 1000])], Compression::None);
    let at = AppendRules { batch_bytes_max: bytes.len(), ..RULES };
    assert_eq!(outcome(&bytes, &at), Ok(()));
    let below = AppendRules { batch_bytes_max: bytes.len() - 1, ..RULES };
    let expected = Error::BatchTooLarge { bytes: bytes.len(), bytes_max: bytes.len() - 1 };
    assert_eq!(outcome(&bytes, &below), Err(expected));
}

#[test]
fn every_flipped_bit_that_the_crc_covers_is_detected() {
    let bytes = plain(&[Sample::of_value(b"some value"), Sample::of_value(b"")], Compression::None);
    for bit in 17 * 8..bytes.len() * 8 {
        let mut flipped = bytes.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        assert!(matches!(refused(&flipped), Error::CrcMismatch { .. }), "bit {bit}");
    }
}
