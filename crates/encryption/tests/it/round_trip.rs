//! What is sealed opens to what it was.

use moldau_encryption::{MARKER_KEY, Wrapper};
use moldau_records::{Attributes, BatchOptions, BatchView, Compression, Producer, Rewriter};
use proptest::prelude::*;

use crate::editors::OpenAll;
use crate::sample::{Keys, Sample, build, codecs, edek, open, read, samples, seal};

prop_compose! {
    fn headers()(
        base_offset in 0i64..1 << 60, partition_leader_epoch: i32, is_transactional: bool,
        is_log_append_time: bool, has_delete_horizon: bool, base_timestamp: i64,
        max_timestamp: i64, producer in proptest::option::of((0i64.., 0i16.., 0i32..)),
        gap in 0i32..9,
    ) -> BatchOptions {
        let bits = u16::from(is_log_append_time) << 3;
        BatchOptions {
            base_offset,
            partition_leader_epoch,
            attributes: Attributes::from_bits(bits)
                .with_transactional(is_transactional)
                .with_delete_horizon(has_delete_horizon),
            base_timestamp: Some(base_timestamp),
            max_timestamp: Some(max_timestamp),
            producer: producer
                .map(|(id, epoch, base_sequence)| Producer { id, epoch, base_sequence }),
            last_offset_delta: Some(20 + gap),
        }
    }
}

/// The batch's header, but for length and CRC.
fn header(bytes: &[u8]) -> (BatchOptions, i32) {
    let batch = BatchView::parse(bytes).unwrap();
    (BatchOptions::of(&batch), batch.records_count())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_byte_comes_back_from_batches_of_every_codec(
        options in headers(), samples in samples(), codec in codecs()
    ) {
        let bytes = build(options, &samples, codec);
        let sealed = seal(&bytes, 1);
        prop_assert_eq!(open(&sealed, 1), bytes);
    }

    #[test]
    fn a_sealed_batch_differs_in_values_and_markers_only(
        options in headers(), samples in samples(), codec in codecs()
    ) {
        let bytes = build(options, &samples, codec);
        let sealed = seal(&bytes, 1);
        prop_assert_eq!(header(&sealed), header(&bytes));
        for (plain, sealed) in samples.into_iter().zip(read(&sealed)) {
            let Some(value) = plain.value.clone() else {
                prop_assert_eq!(sealed, plain);
                continue;
            };
            let wrapped = sealed.value.unwrap();
            let wrapper = Wrapper::parse(&wrapped).unwrap();
            prop_assert_eq!(wrapper.edek, &*edek(1).0);
            let length_len = moldau_records::varint::len_i32(value.len() as i32);
            prop_assert_eq!(wrapper.ciphertext.len(), length_len + value.len() + 1);
            let marked = [(MARKER_KEY.as_bytes().to_vec(), Some(vec![2]))];
            let headers: Vec<_> = marked.into_iter().chain(plain.headers).collect();
            prop_assert_eq!(sealed.headers, headers);
            prop_assert_eq!((sealed.key, sealed.timestamp), (plain.key, plain.timestamp));
        }
    }

    #[test]
    fn two_layers_come_off_one_by_one(samples in samples(), codec in codecs()) {
        let bytes = build(BatchOptions::default(), &samples, codec);
        let once = seal(&bytes, 1);
        let twice = seal(&once, 2);
        prop_assert_eq!(&open(&twice, 2), &once);
        prop_assert_eq!(open(&open(&twice, 2), 1), bytes);
    }

    #[test]
    fn opening_without_recompression_changes_the_codec_only(
        options in headers(), samples in samples(), codec in codecs()
    ) {
        let sealed = seal(&build(options, &samples, codec), 1);
        let (keys, mut out) = (Keys::of(&[1]), Vec::new());
        let mut opening = OpenAll::new(|edek: &[u8]| keys.get(edek), false);
        opening.codec = Some(Compression::None);
        let batch = BatchView::parse(&sealed).unwrap();
        if opening.open(&mut Rewriter::default(), &batch, &mut out).unwrap().is_rewritten {
            let batch = BatchView::parse(&out).unwrap();
            prop_assert_eq!(batch.compression(), Ok(Compression::None));
        } else {
            out = sealed.clone();
        }
        prop_assert_eq!(header(&out).1, header(&sealed).1);
        prop_assert_eq!(read(&out), samples);
    }
}

#[test]
fn values_of_a_hundred_kilobytes_and_of_none_come_back() {
    let large: Vec<u8> = (0..100_000u32).map(|at| (at % 251) as u8).collect();
    for codec in Compression::ALL {
        let samples = [Sample::of_value(&large), Sample::of_value(b""), Sample::tombstone()];
        let bytes = build(BatchOptions::default(), &samples, codec);
        assert_eq!(open(&seal(&bytes, 1), 1), bytes, "{codec}");
    }
}
