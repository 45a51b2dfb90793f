//! What the builder writes, the view reads.

use moldau_records::{
    Attributes, BATCH_HEADER_LEN, BatchBuilder, BatchOptions, BatchView, Compression, Compressor,
    Error, Producer, iter_batches,
};
use proptest::prelude::*;

use crate::sample::{Sample, build, codecs, plain, read, samples};

proptest! {
    #[test]
    fn every_codec_gives_back_every_record(samples in samples(), codec in codecs()) {
        let bytes = plain(&samples, codec);
        let batch = BatchView::parse(&bytes).unwrap();
        prop_assert_eq!(batch.bytes().len(), bytes.len());
        prop_assert_eq!(batch.check_crc(), Ok(()));
        prop_assert_eq!(batch.check_count(), Ok(()));
        prop_assert_eq!(batch.compression(), Ok(codec));
        prop_assert_eq!(read(&batch).unwrap(), samples);
    }

    #[test]
    fn estimated_size_is_exact_before_compression_and_bounded_by_record_size_max(
        samples in samples()
    ) {
        let mut builder = BatchBuilder::new(BatchOptions::default());
        for sample in &samples {
            let (key, value) = (sample.key.as_deref(), sample.value.as_deref());
            let before = builder.estimated_size();
            builder.append(sample.timestamp, key, value, sample.header_views()).unwrap();
            let bound = BatchBuilder::record_size_max(key, value, sample.header_views());
            prop_assert!(builder.estimated_size() <= before + bound);
        }
        let estimated = builder.estimated_size();
        let batch = builder.finish(Compression::None, &mut Compressor::default()).unwrap();
        prop_assert_eq!(batch.len(), estimated);
    }

    #[test]
    fn header_fields_come_back(
        base_offset: i64, epoch: i32, id in 0i64.., producer_epoch in 0i16.., sequence in 0i32..,
        base_timestamp: i64, max_timestamp: i64, codec in codecs()
    ) {
        let options = BatchOptions {
            base_offset,
            partition_leader_epoch: epoch,
            attributes: Attributes::default().with_transactional(true),
            base_timestamp: Some(base_timestamp),
            max_timestamp: Some(max_timestamp),
            producer: Some(Producer { id, epoch: producer_epoch, base_sequence: sequence }),
            last_offset_delta: Some(5),
        };
        let bytes = build(options, &[Sample::of_value(b"v")], codec);
        let batch = BatchView::parse(&bytes).unwrap();
        let attributes = options.attributes.with_compression(codec);
        prop_assert_eq!(BatchOptions::of(&batch), BatchOptions { attributes, ..options });
        prop_assert!(batch.is_transactional() && !batch.is_control() && batch.has_producer_id());
        prop_assert_eq!(batch.next_offset(), base_offset.wrapping_add(6));
        prop_assert_eq!(read(&batch).unwrap(), [Sample::of_value(b"v")]);
    }
}

#[test]
fn a_builder_used_again_writes_what_a_fresh_one_writes() {
    let mut compressor = Compressor::default();
    let mut builder = BatchBuilder::new(BatchOptions::default());
    for round in 0..3u8 {
        for codec in Compression::ALL {
            let value = vec![round; 100_000];
            builder.start(BatchOptions::default());
            builder.append(0, None, Some(&value), []).unwrap();
            let bytes = builder.finish(codec, &mut compressor).unwrap();
            assert_eq!(bytes, plain(&[Sample::of_value(&value)], codec), "{codec}");
        }
    }
}

#[test]
fn a_batch_handed_over_equals_a_batch_lent_and_leaves_the_builder_started() {
    for codec in Compression::ALL {
        let mut compressor = Compressor::default();
        let mut builder = BatchBuilder::new(BatchOptions::default());
        for value in [b"first", b"other"] {
            builder.append(0, None, Some(value), []).unwrap();
            let bytes = builder.finish_bytes(codec, &mut compressor).unwrap();
            assert_eq!(bytes, plain(&[Sample::of_value(value)], codec), "{codec}");
            assert_eq!((builder.is_empty(), builder.estimated_size()), (true, BATCH_HEADER_LEN));
        }
    }
}

#[test]
fn offset_deltas_must_grow_and_stay_below_the_last() {
    let mut builder =
        BatchBuilder::new(BatchOptions { last_offset_delta: Some(3), ..Default::default() });
    builder.append_at(2, 0, None, None, []).unwrap();
    let refused = builder.append_at(2, 0, None, None, []).unwrap_err();
    assert_eq!(refused, Error::InvalidOffsetDelta { offset_delta: 2, previous: 2 });
    assert_eq!(builder.records_count(), 1);
    builder.append_at(4, 0, None, None, []).unwrap();
    let refused = builder.finish(Compression::None, &mut Compressor::default()).unwrap_err();
    assert_eq!(refused, Error::InvalidOffsetDelta { offset_delta: 3, previous: 4 });
}

#[test]
fn an_empty_batch_needs_an_explicit_last_offset_delta() {
    let mut compressor = Compressor::default();
    let mut builder = BatchBuilder::new(BatchOptions::default());
    assert_eq!(builder.finish(Compression::Zstd, &mut compressor), Err(Error::EmptyBatch));
    builder.start(BatchOptions { last_offset_delta: Some(9), ..Default::default() });
    let bytes = builder.finish(Compression::None, &mut compressor).unwrap();
    let batch = BatchView::parse(bytes).unwrap();
    assert_eq!((batch.records_count(), batch.last_offset()), (0, 9));
    assert_eq!(read(&batch).unwrap(), []);
}

#[test]
fn sequence_numbers_start_again_at_zero_after_the_largest() {
    let producer = Producer { id: 1, epoch: 0, base_sequence: i32::MAX };
    let options = BatchOptions { producer: Some(producer), ..Default::default() };
    let bytes =
        build(options, &[Sample::of_value(b"a"), Sample::of_value(b"b")], Compression::None);
    let batch = BatchView::parse(&bytes).unwrap();
    assert_eq!(batch.last_sequence(), 0);
}

#[test]
fn a_walk_over_batches_ends_before_a_partial_one_wherever_it_is_cut() {
    let one = plain(&[Sample::of_value(b"one")], Compression::None);
    let two = plain(&[Sample::of_value(b"two")], Compression::Lz4);
    let bytes = [&one[..], &two].concat();
    for cut in 0..=bytes.len() {
        let mut batches = iter_batches(&bytes[..cut]);
        let whole = batches.by_ref().map(Result::unwrap).count();
        assert_eq!(whole, usize::from(cut >= one.len()) + usize::from(cut == bytes.len()));
        let walked = [0, one.len(), bytes.len()][whole];
        assert_eq!(batches.remainder(), &bytes[walked..cut]);
    }
}

#[test]
fn a_walk_ends_after_a_broken_batch() {
    let one = plain(&[Sample::of_value(b"one")], Compression::None);
    let mut bytes = [&one[..], &one, &one].concat();
    bytes[one.len() + 16] = 9;
    let walked: Vec<_> = iter_batches(&bytes).map(|batch| batch.map(|_| ())).collect();
    assert_eq!(walked, [Ok(()), Err(Error::UnknownMagic { magic: 9 })]);
    bytes[one.len() + 16] = 2;
    bytes[one.len() + 8..][..4].copy_from_slice(&48i32.to_be_bytes());
    let walked: Vec<_> = iter_batches(&bytes).map(|batch| batch.map(|_| ())).collect();
    assert_eq!(walked, [Ok(()), Err(Error::InvalidLength { length: 48 })]);
}
