//! Records by the places of their fields, and batches written anew around them.

use moldau_records::{
    Attributes, BATCH_HEADER_LEN, BatchOptions, BatchView, Compression, Decompressor, Error,
    Producer, RawRecord, read_header, varint, write_header_like,
};
use proptest::prelude::*;

use crate::sample::{BYTES_MAX, build, codecs, plain, read, samples};

/// A record written anew from the fields that a filter copies.
fn rewrite(record: &RawRecord<'_>, out: &mut Vec<u8>) {
    let mut body = record.before_value().to_vec();
    match record.value() {
        Some(value) => {
            varint::write_i32(&mut body, value.len() as i32);
            body.extend_from_slice(value);
        }
        None => varint::write_i32(&mut body, -1),
    }
    varint::write_i32(&mut body, record.headers_count() as i32);
    body.extend_from_slice(record.headers());
    varint::write_i32(out, body.len() as i32);
    out.extend_from_slice(&body);
}

proptest! {
    #[test]
    fn raw_records_have_the_fields_of_the_views_and_all_bytes(
        samples in samples(), codec in codecs()
    ) {
        let bytes = plain(&samples, codec);
        let batch = BatchView::parse(&bytes).unwrap();
        let mut decompressor = Decompressor::default();
        let records = batch.records(&mut decompressor, BYTES_MAX).unwrap();
        for (view, raw) in records.clone().zip(records.raw()) {
            let (view, raw) = (view.unwrap(), raw.unwrap());
            prop_assert_eq!(view.offset_delta(), raw.offset_delta());
            let timestamp = batch.base_timestamp().wrapping_add(raw.timestamp_delta());
            prop_assert_eq!(view.stored_timestamp(), timestamp);
            prop_assert_eq!((view.key(), view.value()), (raw.key(), raw.value()));
            let mut rest = raw.headers();
            for header in view.headers().unwrap() {
                prop_assert_eq!(read_header(&mut rest), Ok(header));
            }
            prop_assert!(rest.is_empty());
            let mut copy = Vec::new();
            rewrite(&raw, &mut copy);
            prop_assert_eq!(raw.bytes(), &copy[..]);
        }
    }

    #[test]
    fn a_batch_written_anew_keeps_its_header_and_gets_its_own_crc(
        samples in samples(), codec in codecs(), base_offset: i64, leader_epoch: i32,
        (id, epoch, base_sequence) in (0i64.., 0i16.., 0i32..), base_timestamp: i64,
        max_timestamp: i64, bits: u16, gap in 0i32..100,
    ) {
        let options = BatchOptions {
            base_offset,
            partition_leader_epoch: leader_epoch,
            attributes: Attributes::from_bits(bits),
            base_timestamp: Some(base_timestamp),
            max_timestamp: Some(max_timestamp),
            producer: Some(Producer { id, epoch, base_sequence }),
            last_offset_delta: Some(samples.len() as i32 + gap),
        };
        let bytes = build(options, &samples, codec);
        let batch = BatchView::parse(&bytes).unwrap();
        let mut anew = vec![0; BATCH_HEADER_LEN];
        let mut decompressor = Decompressor::default();
        for record in batch.records(&mut decompressor, BYTES_MAX).unwrap().raw() {
            rewrite(&record.unwrap(), &mut anew);
        }
        write_header_like(&mut anew, &batch, Compression::None).unwrap();
        prop_assert_eq!(&anew, &build(options, &samples, Compression::None));
        prop_assert_eq!(read(&BatchView::parse(&anew).unwrap()).unwrap(), samples);
    }
}

#[test]
fn a_batch_without_room_for_its_header_is_refused() {
    let bytes = plain(&[crate::sample::Sample::of_value(b"v")], Compression::None);
    let batch = BatchView::parse(&bytes).unwrap();
    let short = Err(Error::Truncated { needed: 61, available: 60 });
    assert_eq!(write_header_like(&mut [0; 60], &batch, Compression::None), short);
}
