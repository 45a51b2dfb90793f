//! Which batches a fetch returns, and which fetches are refused.

use bytes::Bytes;
use moldau_protocol::ErrorCode;
use moldau_protocol::messages::delete_records_request::{
    DeleteRecordsPartition, DeleteRecordsTopic,
};
use moldau_protocol::messages::{DeleteRecordsRequest, FetchRequest, FetchResponse};

use super::requests::{
    FETCH_BY_NAME, PRODUCE_BY_NAME, fetch, fetch_topic, fetch_topic_id, only, produce,
};
use super::world::{NOW_MS, World, base_offsets, batch, code, unknown_id};

/// A topic of two partitions with three batches of two records each; the size of a batch.
fn filled(world: &World) -> usize {
    world.create("orders", 2);
    let records = batch(NOW_MS, &["0123456789", "0123456789"]);
    for partition in [0, 1] {
        for _ in 0..3 {
            world.append("orders", partition, records.clone());
        }
    }
    records.len()
}

/// The base offsets returned of each partition.
fn returned(response: &FetchResponse) -> Vec<Vec<i64>> {
    let topics = response.responses.iter();
    let partitions = topics.flat_map(|topic| &topic.partitions);
    partitions.map(|partition| base_offsets(partition.records.as_ref())).collect()
}

fn within(bytes: usize) -> i32 {
    i32::try_from(bytes).unwrap()
}

#[test]
fn an_offset_within_a_batch_returns_the_whole_batch() {
    let world = World::new();
    filled(&world);
    assert_eq!(base_offsets(world.fetch("orders", 0, 1).records.as_ref()), [0, 2, 4]);
    assert_eq!(base_offsets(world.fetch("orders", 0, 2).records.as_ref()), [2, 4]);
    assert_eq!(base_offsets(world.fetch("orders", 0, 5).records.as_ref()), [4]);
}

#[test]
fn end_of_the_log_returns_its_offset_without_records() {
    let world = World::new();
    filled(&world);
    let end = world.fetch("orders", 0, 6);
    assert_eq!(code(end.error_code), ErrorCode::None);
    assert_eq!((end.high_watermark, end.last_stable_offset, end.log_start_offset), (6, 6, 0));
    assert!(end.records.is_none_or(|records| records.is_empty()));
}

#[test]
fn the_first_batch_is_returned_whatever_its_size() {
    let world = World::new();
    filled(&world);
    let topics = vec![fetch_topic("orders", &[(0, 0), (1, 0)])];
    let mut small = FetchRequest { max_bytes: 1, ..fetch(topics.clone()) };
    assert_eq!(returned(&world.ask_in(FETCH_BY_NAME, &small)), [vec![0], vec![]]);
    small = fetch(topics);
    small.topics[0].partitions.iter_mut().for_each(|it| it.partition_max_bytes = 1);
    assert_eq!(returned(&world.ask_in(FETCH_BY_NAME, &small)), [vec![0], vec![]]);
    // The first partition has nothing, so the second one has the first batch.
    small.topics[0].partitions[0].fetch_offset = 6;
    assert_eq!(returned(&world.ask_in(FETCH_BY_NAME, &small)), [vec![], vec![0]]);
}

#[test]
fn partition_and_response_limits_both_apply() {
    let world = World::new();
    let bytes = filled(&world);
    let mut request = fetch(vec![fetch_topic("orders", &[(0, 0), (1, 0)])]);
    request.topics[0].partitions[0].partition_max_bytes = within(2 * bytes + 1);
    assert_eq!(returned(&world.ask_in(FETCH_BY_NAME, &request)), [vec![0, 2], vec![0, 2, 4]]);
    request.max_bytes = within(4 * bytes);
    assert_eq!(returned(&world.ask_in(FETCH_BY_NAME, &request)), [vec![0, 2], vec![0, 2]]);
    request.max_bytes = within(3 * bytes - 1);
    assert_eq!(returned(&world.ask_in(FETCH_BY_NAME, &request)), [vec![0, 2], vec![]]);
}

#[test]
fn negative_limits_still_return_the_first_batch() {
    let world = World::new();
    filled(&world);
    let topics = vec![fetch_topic("orders", &[(0, 0)])];
    let request = FetchRequest { max_bytes: -1, min_bytes: -1, max_wait_ms: -1, ..fetch(topics) };
    assert_eq!(returned(&world.ask_in(FETCH_BY_NAME, &request)), [[0]]);
}

#[test]
fn an_offset_outside_of_the_log_is_out_of_range() {
    let world = World::new();
    filled(&world);
    let partition = DeleteRecordsPartition { offset: 3, ..DeleteRecordsPartition::default() };
    let topic = DeleteRecordsTopic {
        name: "orders".to_owned(),
        partitions: vec![partition],
        ..DeleteRecordsTopic::default()
    };
    world.ask(&DeleteRecordsRequest { topics: vec![topic], ..Default::default() });
    for outside in [-1, 0, 2, 7, i64::MAX, i64::MIN] {
        let refused = world.fetch("orders", 0, outside);
        assert_eq!(code(refused.error_code), ErrorCode::OffsetOutOfRange, "{outside}");
    }
    // The log starts within a batch, which is returned whole.
    let first = world.fetch("orders", 0, 3);
    assert_eq!((code(first.error_code), first.log_start_offset), (ErrorCode::None, 3));
    assert_eq!(base_offsets(first.records.as_ref()), [2, 4]);
}

#[test]
fn missing_topics_and_partitions_get_their_errors() {
    let world = World::new();
    let id = world.create("orders", 1);
    for (topic, partition) in [("absent", 0), ("orders", 1), ("orders", -1)] {
        let refused = world.fetch(topic, partition, 0);
        assert_eq!(code(refused.error_code), ErrorCode::UnknownTopicOrPartition);
        assert_eq!(refused.high_watermark, -1);
    }
    for (topic_id, expected) in [(unknown_id(), ErrorCode::UnknownTopicId), (id, ErrorCode::None)] {
        let mut response = world.ask(&fetch(vec![fetch_topic_id(topic_id, &[(0, 0)])]));
        assert_eq!(response.responses[0].topic_id, topic_id);
        assert_eq!(code(only(&mut response).error_code), expected);
    }
    world.delete("orders");
    let mut response = world.ask(&fetch(vec![fetch_topic_id(id, &[(0, 0)])]));
    assert_eq!(code(only(&mut response).error_code), ErrorCode::UnknownTopicId);
}

#[test]
fn an_epoch_that_is_not_the_current_one_is_refused() {
    let world = World::new();
    world.create("orders", 1);
    for (epoch, expected) in [
        (-2, ErrorCode::FencedLeaderEpoch),
        (-1, ErrorCode::None),
        (0, ErrorCode::None),
        (1, ErrorCode::UnknownLeaderEpoch),
    ] {
        let mut request = fetch(vec![fetch_topic("orders", &[(0, 0)])]);
        request.topics[0].partitions[0].current_leader_epoch = epoch;
        let mut response = world.ask_in(FETCH_BY_NAME, &request);
        assert_eq!(code(only(&mut response).error_code), expected, "{epoch}");
    }
}

#[test]
fn nothing_above_the_high_watermark_is_served() {
    let world = World::stepped();
    world.create("orders", 1);
    world.append("orders", 0, batch(NOW_MS, &["durable"]));
    let unflushed = produce("orders", 0, batch(NOW_MS, &["not yet"]));
    let mut pending = world.begin(PRODUCE_BY_NAME, &unflushed);
    assert!(!world.poll(&mut pending));
    let before = world.fetch("orders", 0, 0);
    assert_eq!((before.high_watermark, base_offsets(before.records.as_ref())), (1, vec![0]));
    world.flush();
    let after = world.fetch("orders", 0, 0);
    assert_eq!((after.high_watermark, base_offsets(after.records.as_ref())), (2, vec![0, 1]));
}

#[test]
fn fetched_bytes_differ_only_in_offset_and_epoch() {
    let world = World::new();
    world.create("orders", 1);
    world.append("orders", 0, batch(NOW_MS, &["before"]));
    let sent = batch(NOW_MS, &["a", "b"]);
    world.append("orders", 0, sent.clone());
    let stored: Bytes = world.fetch("orders", 0, 1).records.unwrap();
    assert_eq!(stored[..8], 1i64.to_be_bytes());
    assert_eq!(stored[12..16], 0i32.to_be_bytes());
    assert_eq!((&stored[8..12], &stored[16..]), (&sent[8..12], &sent[16..]));
}
