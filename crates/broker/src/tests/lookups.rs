//! Offsets by time and by epoch, and what deleting records leaves.

use moldau_protocol::ErrorCode;
use moldau_protocol::messages::delete_records_request::{
    DeleteRecordsPartition, DeleteRecordsTopic,
};
use moldau_protocol::messages::delete_records_response::DeleteRecordsPartitionResult;
use moldau_protocol::messages::offset_for_leader_epoch_request::{
    OffsetForLeaderPartition, OffsetForLeaderTopic,
};
use moldau_protocol::messages::{DeleteRecordsRequest, OffsetForLeaderEpochRequest};
use moldau_records::{BatchOptions, Compression};

use super::requests::list_offsets;
use super::world::{NOW_MS, World, batch, batch_of, code};

const LATEST: i64 = -1;
const EARLIEST: i64 = -2;
const MAX_TIMESTAMP: i64 = -3;
const EARLIEST_LOCAL: i64 = -4;

/// Offset and timestamp found.
fn at(world: &World, timestamp: i64) -> (i64, i64) {
    let found = world.offset_at("orders", 0, timestamp);
    assert_eq!(code(found.error_code), ErrorCode::None);
    (found.offset, found.timestamp)
}

fn delete(world: &World, topic: &str, offset: i64) -> DeleteRecordsPartitionResult {
    let partition = DeleteRecordsPartition { offset, ..DeleteRecordsPartition::default() };
    let topic = DeleteRecordsTopic {
        name: topic.to_owned(),
        partitions: vec![partition],
        ..DeleteRecordsTopic::default()
    };
    let request = DeleteRecordsRequest { topics: vec![topic], ..Default::default() };
    world.ask(&request).topics.remove(0).partitions.remove(0)
}

#[test]
fn an_empty_log_begins_and_ends_at_zero() {
    let world = World::new();
    world.create("orders", 1);
    assert_eq!(at(&world, EARLIEST), (0, -1));
    assert_eq!(at(&world, LATEST), (0, -1));
    assert_eq!(at(&world, MAX_TIMESTAMP), (-1, -1));
    assert_eq!(at(&world, 0), (-1, -1));
}

#[test]
fn a_partition_named_twice_is_refused_once() {
    let world = World::new();
    world.create("orders", 2);
    let mut request = list_offsets("orders", 0, LATEST);
    let twice = request.topics[0].partitions[0].clone();
    let mut other = twice.clone();
    other.partition_index = 1;
    request.topics[0].partitions.extend([other, twice]);
    let partitions = world.ask(&request).topics.remove(0).partitions.into_iter();
    let codes = partitions.map(|it| (it.partition_index, code(it.error_code)));
    let expected = [(0, ErrorCode::InvalidRequest), (1, ErrorCode::None)];
    assert_eq!(codes.collect::<Vec<_>>(), expected);
}

#[test]
fn the_first_record_not_before_a_time_is_found_within_its_batch() {
    for codec in [Compression::None, Compression::Gzip, Compression::Snappy, Compression::Lz4] {
        let world = World::new();
        world.create("orders", 1);
        world.append("orders", 0, batch(NOW_MS, &["a"]));
        let times = [(NOW_MS + 10, "b"), (NOW_MS + 30, "c"), (NOW_MS + 20, "d")];
        world.append("orders", 0, batch_of(BatchOptions::default(), codec, &times));
        assert_eq!(at(&world, 0), (0, NOW_MS));
        assert_eq!(at(&world, NOW_MS), (0, NOW_MS));
        assert_eq!(at(&world, NOW_MS + 1), (1, NOW_MS + 10));
        assert_eq!(at(&world, NOW_MS + 11), (2, NOW_MS + 30), "{codec:?}");
        assert_eq!(at(&world, NOW_MS + 30), (2, NOW_MS + 30));
        assert_eq!(at(&world, NOW_MS + 31), (-1, -1));
        assert_eq!(at(&world, MAX_TIMESTAMP), (2, NOW_MS + 30));
        assert_eq!(at(&world, LATEST), (4, -1));
    }
}

#[test]
fn a_lookup_without_records_in_range_has_no_epoch() {
    let world = World::new();
    world.create("orders", 1);
    world.append("orders", 0, batch(NOW_MS, &["a"]));
    assert_eq!(world.offset_at("orders", 0, NOW_MS).leader_epoch, 0);
    assert_eq!(world.offset_at("orders", 0, NOW_MS + 1).leader_epoch, -1);
}

#[test]
fn unknown_time_constant_is_refused() {
    let world = World::new();
    world.create("orders", 1);
    for (timestamp, since) in [(MAX_TIMESTAMP, 7), (EARLIEST_LOCAL, 8), (-5, 9), (-6, 11)] {
        for (version, expected) in
            [(since - 1, ErrorCode::UnsupportedVersion), (since, ErrorCode::None)]
        {
            let response = world.ask_in(version, &list_offsets("orders", 0, timestamp));
            assert_eq!(code(response.topics[0].partitions[0].error_code), expected, "{version}");
        }
    }
    let response = world.ask(&list_offsets("orders", 0, -7));
    let refused = &response.topics[0].partitions[0];
    assert_eq!(code(refused.error_code), ErrorCode::UnsupportedVersion);
}

#[test]
fn lookup_in_a_missing_partition_is_refused() {
    let world = World::new();
    world.create("orders", 1);
    for (topic, partition) in [("absent", 0), ("orders", 1), ("orders", -1)] {
        let refused = world.offset_at(topic, partition, LATEST);
        assert_eq!(code(refused.error_code), ErrorCode::UnknownTopicOrPartition);
    }
    let mut newer = list_offsets("orders", 0, LATEST);
    newer.topics[0].partitions[0].current_leader_epoch = 1;
    let refused = world.ask(&newer).topics.remove(0).partitions.remove(0);
    assert_eq!(code(refused.error_code), ErrorCode::UnknownLeaderEpoch);
}

#[test]
fn an_epoch_ends_at_the_high_watermark_and_others_are_unknown() {
    let world = World::new();
    world.create("orders", 1);
    let end_of = |current_leader_epoch, leader_epoch| {
        let partition = OffsetForLeaderPartition {
            partition: 0,
            current_leader_epoch,
            leader_epoch,
            ..OffsetForLeaderPartition::default()
        };
        let topic = OffsetForLeaderTopic {
            topic: "orders".to_owned(),
            partitions: vec![partition],
            ..OffsetForLeaderTopic::default()
        };
        let request = OffsetForLeaderEpochRequest {
            replica_id: -2,
            topics: vec![topic],
            ..OffsetForLeaderEpochRequest::default()
        };
        let end = world.ask(&request).topics.remove(0).partitions.remove(0);
        (code(end.error_code), end.leader_epoch, end.end_offset)
    };
    // ListOffsets names the first epoch before anything is written, so consumers ask for its end.
    assert_eq!(end_of(-1, 0), (ErrorCode::None, 0, 0));
    assert_eq!(end_of(0, 1), (ErrorCode::None, -1, -1));
    world.append("orders", 0, batch(NOW_MS, &["a", "b"]));
    assert_eq!(end_of(-1, 0), (ErrorCode::None, 0, 2));
    assert_eq!(end_of(0, 0), (ErrorCode::None, 0, 2));
    assert_eq!(end_of(0, 1), (ErrorCode::None, -1, -1));
    assert_eq!(end_of(1, 0), (ErrorCode::UnknownLeaderEpoch, -1, -1));
}

#[test]
fn deleting_records_raises_the_start_of_the_log() {
    let world = World::new();
    world.create("orders", 1);
    world.append("orders", 0, batch(NOW_MS, &["a", "b"]));
    world.append("orders", 0, batch(NOW_MS + 1, &["c"]));
    let deleted = delete(&world, "orders", 1);
    assert_eq!((code(deleted.error_code), deleted.low_watermark), (ErrorCode::None, 1));
    assert_eq!(at(&world, EARLIEST), (1, -1));
    assert_eq!(at(&world, EARLIEST_LOCAL), (1, -1));
    assert_eq!(at(&world, 0), (1, NOW_MS), "a deleted record is not found by its time");
    // An offset below the start changes nothing.
    assert_eq!(delete(&world, "orders", 0).low_watermark, 1);
    // The high watermark, by its other name.
    assert_eq!(delete(&world, "orders", -1).low_watermark, 3);
    assert_eq!((at(&world, EARLIEST), at(&world, LATEST)), ((3, -1), (3, -1)));
    assert_eq!(at(&world, MAX_TIMESTAMP), (-1, -1));
    assert_eq!(world.append("orders", 0, batch(NOW_MS, &["d"])), 3);
}

#[test]
fn compact_only_topic_refuses_delete_records() {
    let world = World::new();
    for (topic, policy, expected) in [
        ("compacted", "compact", ErrorCode::PolicyViolation),
        ("both", "compact,delete", ErrorCode::None),
        ("neither", "", ErrorCode::None),
    ] {
        world.create_with(topic, 1, &[("cleanup.policy", policy)]);
        world.append(topic, 0, batch(NOW_MS, &["a"]));
        assert_eq!(code(delete(&world, topic, 1).error_code), expected, "{topic}");
    }
}

#[test]
fn records_that_do_not_exist_cannot_be_deleted() {
    let world = World::new();
    world.create("orders", 1);
    world.append("orders", 0, batch(NOW_MS, &["a"]));
    for offset in [2, -2, i64::MAX, i64::MIN] {
        let refused = delete(&world, "orders", offset);
        assert_eq!(code(refused.error_code), ErrorCode::OffsetOutOfRange, "{offset}");
        assert_eq!(refused.low_watermark, -1);
    }
    let refused = delete(&world, "absent", 0);
    assert_eq!(code(refused.error_code), ErrorCode::UnknownTopicOrPartition);
}
