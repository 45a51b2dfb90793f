//! Patches of a finished batch.

use moldau_records::{
    AppendRules, BatchOptions, BatchView, Compression, Error, Producer, TimestampType, Timestamps,
    Validator, patch_base_offset, patch_partition_leader_epoch, set_producer,
};

use crate::sample::{Sample, build, plain};

#[test]
fn offset_and_leader_epoch_change_without_touching_the_crc() {
    let mut bytes = plain(&[Sample::of_value(b"v")], Compression::None);
    let crc = BatchView::parse(&bytes).unwrap().crc();
    patch_base_offset(&mut bytes, 1 << 40).unwrap();
    patch_partition_leader_epoch(&mut bytes, 17).unwrap();
    let batch = BatchView::parse(&bytes).unwrap();
    assert_eq!((batch.base_offset(), batch.partition_leader_epoch()), (1 << 40, 17));
    assert_eq!(batch.crc(), crc);
    assert_eq!(batch.check_crc(), Ok(()));
}

#[test]
fn log_append_time_holds_for_every_record_and_the_crc_follows() {
    for codec in Compression::ALL {
        let bytes = plain(&[Sample::of_value(b"a"), Sample::of_value(b"b")], codec);
        let rules = AppendRules { timestamps: Timestamps::Append(99), ..AppendRules::LENIENT };
        let mut validator = Validator::default();
        let batch = *validator.check(&bytes, &rules).unwrap().view();
        assert_eq!(batch.check_crc(), Ok(()));
        assert_eq!(batch.timestamp_type(), TimestampType::LogAppendTime);
        assert_eq!((batch.compression(), batch.max_timestamp()), (Ok(codec), 99));
        let mut decompressor = moldau_records::Decompressor::default();
        for record in batch.records(&mut decompressor, 1 << 20).unwrap().map(Result::unwrap) {
            assert_eq!((record.timestamp(), record.stored_timestamp()), (99, 0));
        }
    }
}

#[test]
fn producer_fields_equal_those_written_by_the_builder() {
    let producer = Producer { id: 1 << 33, epoch: 4, base_sequence: 77 };
    let options = BatchOptions { producer: Some(producer), ..Default::default() };
    for codec in Compression::ALL {
        let mut bytes = plain(&[Sample::of_value(b"v")], codec);
        set_producer(&mut bytes, producer).unwrap();
        assert_eq!(bytes, build(options, &[Sample::of_value(b"v")], codec));
    }
}

#[test]
fn bytes_shorter_than_a_header_are_left_alone() {
    let mut bytes = plain(&[Sample::of_value(b"v")], Compression::None);
    bytes.truncate(60);
    bytes[8..12].copy_from_slice(&49i32.to_be_bytes());
    let untouched = bytes.clone();
    let short = Err(Error::Truncated { needed: 61, available: 60 });
    assert_eq!(patch_base_offset(&mut bytes, 1), short);
    assert_eq!(patch_partition_leader_epoch(&mut bytes, 1), short);
    let producer = Producer { id: 1, epoch: 1, base_sequence: 1 };
    assert_eq!(set_producer(&mut bytes, producer), short);
    assert_eq!(bytes, untouched);
}

#[test]
fn what_follows_a_batch_is_left_alone() {
    let one = plain(&[Sample::of_value(b"one")], Compression::None);
    let two = plain(&[Sample::of_value(b"two")], Compression::None);
    let mut both = [&one[..], &two].concat();
    let mut alone = one.clone();
    for bytes in [&mut both, &mut alone] {
        set_producer(bytes, Producer { id: 1, epoch: 0, base_sequence: 0 }).unwrap();
    }
    assert_eq!(both, [alone, two].concat());
}
