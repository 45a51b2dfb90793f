//! Our reader and writer against batches that the Java client wrote, see `tests/golden/README.md`.

use std::path::PathBuf;

use moldau_records::{
    AppendRules, BatchBuilder, BatchOptions, BatchView, Compression, Compressor, Decompressor,
    Error, RecordView, TimestampType, Validator, crc32c, iter_batches, patch_base_offset,
};
use serde_json::{Value, json};

const BYTES_MAX: usize = 1 << 20;
const HEX_BYTES_MAX: usize = 64;

fn read(file: &str) -> Vec<u8> {
    let directory = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    std::fs::read(directory.join(file)).unwrap()
}

fn golden() -> Vec<Value> {
    let golden: Value = serde_json::from_slice(&read("golden.json")).unwrap();
    golden.as_array().unwrap().clone()
}

#[test]
fn every_batch_reads_as_java_reads_it() {
    for case in golden() {
        let file = case["file"].as_str().unwrap();
        let bytes = read(file);
        let mut batches = iter_batches(&bytes);
        let described: Vec<Value> =
            batches.by_ref().map(|batch| describe(&batch.unwrap())).collect();
        assert!(batches.remainder().is_empty(), "{file}");
        assert_eq!(described.len(), case["batches"].as_array().unwrap().len(), "{file}");
        for (ours, javas) in described.iter().zip(case["batches"].as_array().unwrap()) {
            assert_eq!(ours, javas, "{file}");
        }
    }
}

#[test]
fn every_uncompressed_batch_is_written_byte_for_byte_as_java_writes_it() {
    let mut compared = 0;
    for case in golden() {
        let file = case["file"].as_str().unwrap();
        for batch in iter_batches(&read(file)).map(Result::unwrap) {
            let written = write_again(&batch);
            if batch.compression() == Ok(Compression::None) {
                assert_eq!(written, batch.bytes(), "{file}");
                compared += 1;
            }
        }
    }
    assert_eq!(compared, 12);
}

#[test]
fn records_inside_every_codec_are_written_byte_for_byte_as_java_writes_them() {
    for case in golden() {
        let file = case["file"].as_str().unwrap();
        for batch in iter_batches(&read(file)).map(Result::unwrap) {
            let mut payload = Vec::new();
            Decompressor::default()
                .decompress_into(
                    batch.compression().unwrap(),
                    batch.payload(),
                    BYTES_MAX,
                    &mut payload,
                )
                .unwrap();
            let written = write_again(&batch);
            assert_eq!(BatchView::parse(&written).unwrap().payload(), payload, "{file}");
        }
    }
}

#[test]
fn producers_that_need_no_timestamp_options_write_the_bytes_of_java() {
    let bytes = read("features-none.bin");
    let batch = BatchView::parse(&bytes).unwrap();
    let mut builder = BatchBuilder::new(BatchOptions::default());
    let mut decompressor = Decompressor::default();
    for record in batch.records(&mut decompressor, BYTES_MAX).unwrap().map(Result::unwrap) {
        builder
            .append(record.timestamp(), record.key(), record.value(), record.headers().unwrap())
            .unwrap();
    }
    assert_eq!(builder.estimated_size(), bytes.len());
    assert_eq!(builder.finish(Compression::None, &mut Compressor::default()).unwrap(), bytes);
}

/// What producers write passes the broker's check as it is.
#[test]
fn batches_of_producers_are_valid_and_unchanged() {
    let mut accepted = 0;
    for case in golden() {
        let file = case["file"].as_str().unwrap();
        for batch in iter_batches(&read(file)).map(Result::unwrap) {
            let mut bytes = batch.bytes().to_vec();
            patch_base_offset(&mut bytes, 0).unwrap();
            let mut validator = Validator::default();
            let checked = validator.check(&bytes, &AppendRules::LENIENT);
            if batch.is_control() || batch.check_count().is_err() {
                assert!(checked.is_err(), "{file}");
            } else if batch.timestamp_type() == TimestampType::CreateTime {
                assert_eq!(checked.unwrap().view().bytes(), bytes, "{file}");
                accepted += 1;
            }
        }
    }
    assert_eq!(accepted, 20);
}

#[test]
fn message_sets_of_formats_0_and_1_are_refused_by_name() {
    for magic in [0, 1] {
        let bytes = read(&format!("legacy-format-{magic}.bin"));
        let mut batches = iter_batches(&bytes);
        let refused = batches.next().unwrap().unwrap_err();
        assert_eq!(refused, Error::UnsupportedMagic { magic });
        assert!(batches.next().is_none());
    }
}

/// The batch with its header fields and records, uncompressed, through the builder.
fn write_again(batch: &BatchView<'_>) -> Vec<u8> {
    let mut builder = BatchBuilder::new(BatchOptions::of(batch));
    let mut decompressor = Decompressor::default();
    for record in batch.records(&mut decompressor, BYTES_MAX).unwrap().map(Result::unwrap) {
        builder
            .append_at(
                record.offset_delta(),
                record.stored_timestamp(),
                record.key(),
                record.value(),
                record.headers().unwrap(),
            )
            .unwrap();
    }
    builder.finish(Compression::None, &mut Compressor::default()).unwrap().to_vec()
}

/// The same document as `GoldenBatches.java` writes.
fn describe(batch: &BatchView<'_>) -> Value {
    batch.check_crc().unwrap();
    let mut decompressor = Decompressor::default();
    let records: Vec<Value> = batch
        .records(&mut decompressor, BYTES_MAX)
        .unwrap()
        .map(|record| describe_record(&record.unwrap()))
        .collect();
    json!({
        "base_offset": batch.base_offset(),
        "last_offset": batch.last_offset(),
        "size": batch.bytes().len(),
        "leader_epoch": batch.partition_leader_epoch(),
        "crc": batch.crc(),
        "compression": batch.compression().unwrap().name(),
        "log_append_time": batch.timestamp_type() == TimestampType::LogAppendTime,
        "transactional": batch.is_transactional(),
        "control": batch.is_control(),
        "max_timestamp": batch.max_timestamp(),
        "producer_id": batch.producer_id(),
        "producer_epoch": batch.producer_epoch(),
        "base_sequence": batch.base_sequence(),
        "last_sequence": batch.last_sequence(),
        "records_count": batch.records_count(),
        "records": records,
    })
}

fn describe_record(record: &RecordView<'_>) -> Value {
    let headers: Vec<Value> = record
        .headers()
        .unwrap()
        .map(|header| json!([describe_bytes(Some(header.key)), describe_bytes(header.value)]))
        .collect();
    json!({
        "offset": record.offset(),
        "timestamp": record.timestamp(),
        "sequence": record.sequence(),
        "key": describe_bytes(record.key()),
        "value": describe_bytes(record.value()),
        "headers": headers,
    })
}

fn describe_bytes(bytes: Option<&[u8]>) -> Value {
    match bytes {
        None => Value::Null,
        Some(bytes) if bytes.len() <= HEX_BYTES_MAX => {
            bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>().into()
        }
        Some(bytes) => json!({"length": bytes.len(), "crc32c": crc32c(bytes)}),
    }
}
