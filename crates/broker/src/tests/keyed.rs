//! What a producer to a compacted topic is told.

use bytes::Bytes;
use moldau_protocol::ErrorCode;
use moldau_records::{BatchBuilder, BatchOptions, Compression, Compressor};

use super::requests::{PRODUCE_BY_NAME, produce};
use super::world::{NOW_MS, World, batch, code, reseal};

/// A batch of records that have these keys.
fn keyed(compression: Compression, keys: &[Option<&str>]) -> Bytes {
    let mut builder = BatchBuilder::new(BatchOptions::default());
    for key in keys {
        builder.append(NOW_MS, key.map(str::as_bytes), Some(b"value"), []).unwrap();
    }
    builder.finish_bytes(compression, &mut Compressor::default()).unwrap()
}

fn world_with(policy: &str) -> World {
    let world = World::new();
    world.create_with("table", 1, &[("cleanup.policy", policy)]);
    world
}

#[test]
fn a_record_without_a_key_is_refused_and_named_in_every_codec() {
    let world = world_with("compact");
    for compression in Compression::ALL {
        let records = keyed(compression, &[Some("a"), None, Some(""), None]);
        let response = world.produce("table", 0, records);
        assert_eq!(code(response.error_code), ErrorCode::InvalidRecord, "{compression:?}");
        assert_eq!(response.base_offset, -1);
        let named: Vec<_> = response.record_errors.iter().map(|it| it.batch_index).collect();
        assert_eq!(named, [1, 3]);
        let told = |text: &Option<String>| text.as_ref().is_some_and(|it| it.contains("key"));
        assert!(told(&response.error_message));
        assert!(response.record_errors.iter().all(|it| told(&it.batch_index_error_message)));
    }
    assert_eq!(world.fetch("table", 0, 0).high_watermark, 0);
}

#[test]
fn records_with_keys_are_appended_in_every_codec() {
    let world = world_with("compact");
    for (offset, compression) in (0..).step_by(2).zip(Compression::ALL) {
        let records = keyed(compression, &[Some("a"), Some("")]);
        assert_eq!(world.append("table", 0, records), offset);
    }
}

#[test]
fn the_policy_of_the_topic_decides_whether_a_key_is_needed() {
    for (policy, expected) in [
        ("compact,delete", ErrorCode::InvalidRecord),
        ("delete", ErrorCode::None),
        ("", ErrorCode::None),
    ] {
        let world = world_with(policy);
        let response = world.produce("table", 0, keyed(Compression::None, &[None]));
        assert_eq!(code(response.error_code), expected, "{policy}");
    }
}

#[test]
fn refusal_names_a_limited_number_of_records() {
    let world = world_with("compact");
    let response = world.produce("table", 0, keyed(Compression::Zstd, &[None; 5_000]));
    assert_eq!(code(response.error_code), ErrorCode::InvalidRecord);
    assert_eq!(response.record_errors.len(), 1_000);
}

/// A request of a few kilobytes had an answer of many megabytes.
#[test]
fn a_request_names_no_more_records_than_one_batch() {
    let world = World::new();
    world.create_with("table", 3, &[("cleanup.policy", "compact")]);
    let records = keyed(Compression::Zstd, &[None; 700]);
    let mut request = produce("table", 0, records.clone());
    for index in 1..3 {
        let more = produce("table", index, records.clone()).topic_data.remove(0).partition_data;
        request.topic_data[0].partition_data.extend(more);
    }
    let response = world.ask_in(PRODUCE_BY_NAME, &request);
    let partitions = &response.responses[0].partition_responses;
    let named: Vec<_> = partitions.iter().map(|it| it.record_errors.len()).collect();
    assert_eq!(named, [700, 300, 0]);
    assert!(partitions.iter().all(|it| code(it.error_code) == ErrorCode::InvalidRecord));
}

/// Such a batch unpacks to a thousand times its size; the code makes Kafka's producer split it.
#[test]
fn a_batch_that_unpacks_to_too_much_is_refused_as_too_large() {
    let world = world_with("compact");
    let value = "v".repeat(65 << 20);
    let mut builder = BatchBuilder::new(BatchOptions::default());
    builder.append(NOW_MS, Some(b"key"), Some(value.as_bytes()), []).unwrap();
    let records = builder.finish_bytes(Compression::Zstd, &mut Compressor::default()).unwrap();
    assert!(records.len() < 1 << 20);
    let response = world.produce("table", 0, records);
    assert_eq!(code(response.error_code), ErrorCode::MessageTooLarge);
}

#[test]
fn malformed_records_are_refused() {
    let world = world_with("compact");
    let mut torn = keyed(Compression::None, &[Some("a")]).to_vec();
    let last = torn.len() - 1;
    torn[last] = 0x7f;
    reseal(&mut torn);
    let response = world.produce("table", 0, torn.into());
    assert_eq!(code(response.error_code), ErrorCode::InvalidRecord);
    world.create("stream", 1);
    world.append("stream", 0, batch(NOW_MS, &["a"]));
}
