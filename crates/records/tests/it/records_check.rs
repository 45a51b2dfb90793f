//! What a `Validator` says of the records behind a sound header.

use moldau_records::{
    AppendRules, Attributes, BatchOptions, BatchView, Compression, Compressor, Decompressor, Error,
    FAULTY_RECORDS_MAX, FaultyRecord, Invalid, Packing, Producer, TimestampType, Timestamps,
    Unpacking, Validator, crc32c,
};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::sample::{Sample, build, plain, read, samples};

const RULES: AppendRules = AppendRules::LENIENT;

/// The time from which records are taken, and up to which.
const TIMES: Timestamps = Timestamps::Create { earliest: 100, latest: 200 };

/// A batch with these bytes for its records, and this record count in its header.
fn of_payload(payload: &[u8], count: i32, codec: Compression) -> Vec<u8> {
    let mut bytes = plain(&[Sample::of_value(b"")], Compression::None);
    bytes.truncate(61);
    Compressor::default().compress(codec, payload, &mut bytes).unwrap();
    let length = i32::try_from(bytes.len() - 12).unwrap();
    bytes[8..12].copy_from_slice(&length.to_be_bytes());
    bytes[22] = codec.id();
    bytes[23..27].copy_from_slice(&(count - 1).to_be_bytes());
    bytes[57..61].copy_from_slice(&count.to_be_bytes());
    sealed(bytes)
}

fn sealed(mut bytes: Vec<u8>) -> Vec<u8> {
    let crc = crc32c(&bytes[21..]);
    bytes[17..21].copy_from_slice(&crc.to_be_bytes());
    bytes
}

/// A record without a key, at an offset delta below 64.
fn record(offset_delta: u8, value: &[u8]) -> Vec<u8> {
    let length = u8::try_from(6 + value.len()).unwrap();
    let value_length = u8::try_from(value.len()).unwrap() * 2;
    [&[length * 2, 0, 0, offset_delta * 2, 1, value_length], value, &[0]].concat()
}

fn outcome(bytes: &[u8], rules: &AppendRules) -> Result<(), Error> {
    Validator::default().check(bytes, rules).map(|_| ()).map_err(|invalid| invalid.error)
}

fn at(timestamp: i64) -> Sample {
    Sample { timestamp, key: Some(b"k".to_vec()), ..Sample::of_value(b"v") }
}

/// The consumer of such a batch fails on it for ever, or gives the records behind it wrong offsets.
#[test]
fn records_that_are_not_as_many_as_counted_are_refused_in_every_codec() {
    let two = [record(0, b"a"), record(1, b"b")].concat();
    for codec in Compression::ALL {
        let checked = |payload: &[u8], count| outcome(&of_payload(payload, count, codec), &RULES);
        assert_eq!(checked(&two, 2), Ok(()), "{codec}");
        assert!(matches!(checked(&two, 1), Err(Error::InvalidRecord { .. })), "{codec}");
        assert!(checked(&two, 3).is_err(), "{codec}");
        let behind = [&two[..], b"JUNK"].concat();
        assert!(matches!(checked(&behind, 2), Err(Error::InvalidRecord { .. })), "{codec}");
        assert!(checked(&two[..two.len() - 1], 2).is_err(), "{codec}");
    }
}

#[test]
fn a_payload_that_is_not_of_its_codec_is_refused() {
    let plain = of_payload(&record(0, b"no codec"), 1, Compression::None);
    for codec in [Compression::Gzip, Compression::Snappy, Compression::Lz4, Compression::Zstd] {
        let mut bytes = plain.clone();
        bytes[22] = codec.id();
        let refused = outcome(&sealed(bytes), &RULES);
        assert!(matches!(refused, Err(Error::CorruptPayload { .. })), "{codec}");
    }
}

#[test]
fn a_record_that_does_not_fill_its_length_is_refused() {
    // Length, attributes, timestamp, offset, key, value, headers.
    let sound = record(0, b"value");
    let with = |place: usize, byte: u8| {
        let mut bytes = sound.clone();
        bytes[place] = byte;
        outcome(&of_payload(&bytes, 1, Compression::None), &RULES)
    };
    assert_eq!(with(0, sound[0]), Ok(()));
    let last = sound.len() - 1;
    for (place, byte) in [
        (0, sound[0] + 2),
        (0, sound[0] - 2),
        (0, 1),
        (4, 2),
        (4, 0x7e),
        (5, sound[5] - 2),
        (5, sound[5] + 2),
        (5, 1),
        (last, 1),
        (last, 2),
        (last, 0x80),
    ] {
        let refused = with(place, byte);
        let is_named = matches!(refused, Err(Error::InvalidRecord { .. } | Error::InvalidVarint));
        assert!(is_named, "{byte} at {place}: {refused:?}");
    }
}

#[test]
fn headers_that_do_not_hold_are_refused() {
    let of_headers = |count: u8, headers: &[u8]| {
        let mut bytes = record(0, b"v");
        bytes.pop();
        bytes.push(count * 2);
        bytes.extend_from_slice(headers);
        bytes[0] = u8::try_from(bytes.len() - 1).unwrap() * 2;
        outcome(&of_payload(&bytes, 1, Compression::None), &RULES)
    };
    assert_eq!(of_headers(1, &[2, b'k', 2, b'v']), Ok(()));
    assert_eq!(of_headers(2, &[0, 0, 2, b'k', 1]), Ok(()));
    for (count, headers) in
        [(1, &[1, 0][..]), (1, &[0, 0, 0]), (2, &[0, 0]), (1, &[4, b'k', 0]), (0, &[0, 0])]
    {
        assert!(of_headers(count, headers).is_err(), "{count} of {headers:?}");
    }
}

/// The log counts offsets by the header. A record with another one hid those of other producers
/// from consumers.
#[test]
fn offset_deltas_that_do_not_count_up_are_written_anew() {
    for deltas in [[0, 5], [5, 0], [1, 2], [0, 0]] {
        for codec in Compression::ALL {
            let records = deltas.map(|delta| record(delta, b"v")).concat();
            let bytes = of_payload(&records, 2, codec);
            let mut validator = Validator::default();
            let batch = validator.check(&bytes, &RULES).unwrap();
            assert_eq!((batch.compression(), batch.view().check_crc()), (codec, Ok(())));
            let mut decompressor = Decompressor::default();
            let records = batch.view().records(&mut decompressor, 1_000).unwrap();
            let offsets: Vec<_> = records.map(|record| record.unwrap().offset()).collect();
            assert_eq!(offsets, [0, 1], "{deltas:?} {codec}");
        }
    }
}

/// Packing keeps the records and all other fields of the header.
#[test]
fn records_are_packed_as_the_topic_says() {
    let producer = Some(Producer { id: 7, epoch: 2, base_sequence: 40 });
    let options = BatchOptions { producer, partition_leader_epoch: 3, ..Default::default() };
    let headers = vec![(b"h".to_vec(), None), (b"h".to_vec(), Some(Vec::new()))];
    let many = |index: i64| Sample { headers: headers.clone(), ..at(index) };
    let samples: Vec<_> = (0..500).map(many).collect();
    for (from, to) in pairs() {
        let bytes = build(options, &samples, from);
        let rules = AppendRules { packing: Some(to.into()), ..RULES };
        let mut validator = Validator::default();
        let batch = validator.check(&bytes, &rules).unwrap();
        assert_eq!(batch.compression(), to);
        let view = batch.view();
        assert_eq!(view.check_crc(), Ok(()));
        assert_eq!(read(view).unwrap(), samples, "{from} to {to}");
        let header = |bytes: &[u8]| {
            let view = BatchView::parse(bytes).unwrap();
            let attributes = view.attributes().with_compression(Compression::None);
            BatchOptions { attributes, ..BatchOptions::of(&view) }
        };
        assert_eq!(header(view.bytes()), header(&bytes));
        assert_eq!((view.bytes() == bytes, view.records_count()), (from == to, 500));
        let unwilling = AppendRules { may_pack: false, ..rules };
        let packs = from != to && to != Compression::None;
        let expected = if packs { Err(Error::PackingNeeded) } else { Ok(()) };
        assert_eq!(outcome(&bytes, &unwilling), expected);
    }
}

fn pairs() -> impl Iterator<Item = (Compression, Compression)> {
    Compression::ALL.into_iter().flat_map(|from| Compression::ALL.map(|to| (from, to)))
}

#[test]
fn a_higher_level_packs_no_worse_and_the_level_is_that_of_each_batch() {
    let samples: Vec<_> = (0..2_000).map(|index| at(index * 7_919 % 1_000)).collect();
    let bytes = plain(&samples, Compression::None);
    let levels =
        [(Compression::Gzip, 1, 9), (Compression::Lz4, 9, 12), (Compression::Zstd, -50, 19)];
    for (codec, low, high) in levels {
        let mut validator = Validator::default();
        let mut packed = |level| {
            let packing = Some(Packing { codec, level: Some(level) });
            let rules = AppendRules { packing, ..RULES };
            validator.check(&bytes, &rules).unwrap().view().bytes().to_vec()
        };
        let [first, hard, again] = [packed(low), packed(high), packed(low)];
        assert!(hard.len() < first.len(), "{codec}: {} of {}", hard.len(), first.len());
        assert_eq!(first, again);
        for packed in [&first, &hard] {
            assert_eq!(outcome(packed, &RULES), Ok(()), "{codec}");
        }
    }
}

#[test]
fn a_batch_that_grows_beyond_the_limit_is_refused() {
    let bytes = plain(&vec![at(1); 500], Compression::Zstd);
    let batch_bytes_max = bytes.len();
    let packing = Some(Compression::None.into());
    let rules = AppendRules { batch_bytes_max, packing, ..RULES };
    let refused = outcome(&bytes, &rules).unwrap_err();
    assert!(matches!(refused, Error::BatchTooLarge { bytes_max, .. } if bytes_max == bytes.len()));
}

/// Lookups by time and retention rely on it; Kafka writes it anew too.
#[test]
fn a_wrong_max_timestamp_is_written_anew() {
    for codec in Compression::ALL {
        for claimed in [0, 151, i64::MAX, -1] {
            let options = BatchOptions { max_timestamp: Some(claimed), ..Default::default() };
            let bytes = build(options, &[at(120), at(150), at(-1), at(130)], codec);
            let mut validator = Validator::default();
            let batch = validator.check(&bytes, &RULES).unwrap();
            let view = batch.view();
            assert_eq!((view.max_timestamp(), view.check_crc()), (150, Ok(())), "{codec}");
            let mut expected = bytes.clone();
            expected[35..43].copy_from_slice(&150i64.to_be_bytes());
            assert_eq!(view.bytes(), sealed(expected));
        }
    }
    let bytes = build(BatchOptions::default(), &[at(-7), at(-5)], Compression::None);
    let mut validator = Validator::default();
    assert_eq!(validator.check(&bytes, &RULES).unwrap().view().max_timestamp(), -1);
}

#[test]
fn each_record_must_be_in_time_where_it_has_one() {
    let rules = AppendRules { timestamps: TIMES, ..RULES };
    let of_time = |times: &[i64]| {
        let records: Vec<_> = times.iter().map(|time| at(*time)).collect();
        Validator::default().check(&plain(&records, Compression::Lz4), &rules).map(|_| ())
    };
    assert_eq!(of_time(&[100, 200, -1]), Ok(()));
    let beyond = |timestamp| Error::TimestampOutOfRange { timestamp, earliest: 100, latest: 200 };
    let named = |index, timestamp| FaultyRecord { index, error: beyond(timestamp) };
    let refused = of_time(&[150, 99, -1, 201, -2]).unwrap_err();
    let records = vec![named(1, 99), named(3, 201), named(4, -2)];
    assert_eq!(refused, Invalid { error: beyond(99), records });
    let stamped = AppendRules { timestamps: Timestamps::Append(5), ..RULES };
    assert_eq!(outcome(&plain(&[at(1 << 60)], Compression::None), &stamped), Ok(()));
}

/// A copy of a batch from a topic of LogAppendTime has its type. Kafka takes it where timestamps
/// are the producer's.
#[test]
fn the_timestamp_type_is_that_of_the_topic() {
    let attributes = Attributes::default().with_timestamp_type(TimestampType::LogAppendTime);
    let of = |max_timestamp| {
        let options = BatchOptions { attributes, max_timestamp, ..Default::default() };
        build(options, &[at(5), at(7)], Compression::Gzip)
    };
    let bytes = of(Some(90));
    let mut validator = Validator::default();
    let batch = validator.check(&bytes, &RULES).unwrap();
    let view = batch.view();
    assert_eq!((view.timestamp_type(), view.max_timestamp()), (TimestampType::CreateTime, 7));
    assert_eq!(view.check_crc(), Ok(()));
    let stamped = AppendRules { timestamps: Timestamps::Append(5), ..RULES };
    for (bytes, rules) in [(of(Some(90)), stamped), (of(Some(-1)), RULES)] {
        let refused = Validator::default().check(&bytes, &rules).unwrap_err();
        assert_eq!((refused.error, refused.records.len()), (Error::InvalidTimestampType, 2));
    }
}

#[test]
fn a_record_without_a_key_is_named_and_a_time_out_of_range_goes_before_it() {
    let rules = AppendRules { needs_keys: true, timestamps: TIMES, ..RULES };
    let keyless = |timestamp| Sample { key: None, ..at(timestamp) };
    let check = |records: &[Sample]| {
        Validator::default().check(&plain(records, Compression::Zstd), &rules).unwrap_err()
    };
    let refused = check(&[at(150), keyless(150), keyless(1)]);
    let named: Vec<_> = refused.records.iter().map(|it| (it.index, it.error)).collect();
    assert_eq!(named, [(1, Error::KeylessRecord), (2, Error::KeylessRecord)]);
    assert_eq!(refused.error, Error::KeylessRecord);
    let refused = check(&[keyless(150), at(1)]);
    assert_eq!(refused.records.len(), 2);
    assert!(matches!(refused.error, Error::TimestampOutOfRange { timestamp: 1, .. }));
    let many = check(&vec![keyless(150); FAULTY_RECORDS_MAX + 1]);
    assert_eq!(many.records.len(), FAULTY_RECORDS_MAX);
}

#[test]
fn records_that_unpack_to_more_than_allowed_are_refused() {
    let records = [Sample::of_value(&[7; 100_000])];
    for codec in [Compression::Gzip, Compression::Snappy, Compression::Lz4, Compression::Zstd] {
        let bytes = plain(&records, codec);
        let unpacked = plain(&records, Compression::None).len() - 61;
        let within =
            |unpacked_bytes_max| outcome(&bytes, &AppendRules { unpacked_bytes_max, ..RULES });
        assert_eq!(within(unpacked), Ok(()), "{codec}");
        let bytes_max = unpacked - 1;
        assert_eq!(within(bytes_max), Err(Error::PayloadTooLarge { bytes_max }), "{codec}");
    }
}

/// With the header believed, only what the header shows is checked, unless the topic needs more.
#[test]
fn a_compressed_batch_is_unpacked_where_its_header_does_not_suffice() {
    let believing = AppendRules { unpacking: Unpacking::WhereNeeded, ..RULES };
    let until = |earliest, latest| Timestamps::Create { earliest, latest };
    let garbage = |codec: Compression| {
        let mut bytes = plain(&[at(150), at(160)], codec);
        bytes[61..].fill(0xff);
        sealed(bytes)
    };
    for codec in [Compression::Gzip, Compression::Snappy, Compression::Lz4, Compression::Zstd] {
        let garbage = garbage(codec);
        assert!(outcome(&garbage, &RULES).is_err(), "{codec}");
        let mut validator = Validator::default();
        let batch = validator.check(&garbage, &believing).unwrap();
        assert_eq!((batch.view().bytes(), batch.records_count()), (garbage.as_slice(), 2));
        let stamped = AppendRules { timestamps: Timestamps::Append(70), ..believing };
        let batch = validator.check(&garbage, &stamped).unwrap();
        assert_eq!(batch.view().max_timestamp(), 70);
        assert_eq!(batch.view().check_crc(), Ok(()));
        assert_eq!(batch.view().payload(), &garbage[61..]);
        let other = if codec == Compression::Gzip { Compression::Lz4 } else { Compression::Gzip };
        for rules in [
            AppendRules { needs_keys: true, ..believing },
            AppendRules { packing: Some(Packing::from(other)), ..believing },
            AppendRules { timestamps: until(i64::MIN, 159), ..believing },
            AppendRules { timestamps: until(0, 200), ..believing },
        ] {
            assert!(outcome(&garbage, &rules).is_err(), "{codec} {rules:?}");
        }
        let rules = AppendRules { timestamps: until(-1, 160), ..believing };
        assert_eq!(outcome(&garbage, &rules), Ok(()), "{codec}");
        let late = plain(&[at(150), at(201)], codec);
        let rules = AppendRules { timestamps: until(-1, 200), ..believing };
        let refused = Validator::default().check(&late, &rules).unwrap_err();
        assert_eq!(refused.records.iter().map(|it| it.index).collect::<Vec<_>>(), [1]);
    }
    assert!(outcome(&garbage(Compression::None), &believing).is_err());
}

proptest! {
    #[test]
    fn what_is_accepted_is_what_can_be_read(
        samples in samples(), changes in vec((any::<usize>(), any::<u8>()), 0..3)
    ) {
        let mut bytes = plain(&samples, Compression::None);
        for (place, byte) in changes {
            let place = 61 + place % (bytes.len() - 61);
            bytes[place] = byte;
        }
        let bytes = sealed(bytes);
        let read = read(&BatchView::parse(&bytes).unwrap());
        prop_assert_eq!(outcome(&bytes, &RULES).is_ok(), read.is_ok());
        if let Ok(read) = read {
            let expected = read.iter().map(|it| it.timestamp).max().unwrap().max(-1);
            let mut validator = Validator::default();
            let batch = validator.check(&bytes, &RULES).unwrap();
            prop_assert_eq!(batch.view().max_timestamp(), expected);
        }
    }
}
