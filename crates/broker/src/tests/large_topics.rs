//! Topics of very many partitions, which cost nothing until they are written to.

use moldau_net::{Reply, Response};
use moldau_protocol::messages::create_partitions_request::CreatePartitionsTopic;
use moldau_protocol::messages::delete_records_request::{
    DeleteRecordsPartition, DeleteRecordsTopic,
};
use moldau_protocol::messages::describe_topic_partitions_request::{Cursor, TopicRequest};
use moldau_protocol::messages::metadata_request::MetadataRequestTopic;
use moldau_protocol::messages::metadata_response::MetadataResponsePartition;
use moldau_protocol::messages::{
    CreatePartitionsRequest, DeleteRecordsRequest, DescribeTopicPartitionsRequest, FetchRequest,
    MetadataRequest,
};
use moldau_protocol::metadata::encode_partitions;
use moldau_protocol::{ApiKey, ErrorCode};
use moldau_storage::Drive;

use super::requests::{creatable, create, fetch, fetch_topic, produce};
use super::world::{NOW_MS, World, batch, code, newest, request_frame};
use crate::catalog::{PARTITIONS_MAX, TOPIC_PARTITIONS_MAX};

const MILLION: i32 = 1_000_000;

fn about(name: &str) -> MetadataRequest {
    let topic =
        MetadataRequestTopic { name: Some(name.to_owned()), ..MetadataRequestTopic::default() };
    MetadataRequest { topics: Some(vec![topic]), ..MetadataRequest::default() }
}

fn raw_answer(world: &World, version: i16, request: &MetadataRequest) -> Response {
    match world.send(&request_frame(version, request)) {
        Reply::Later(answer, _) => world.wait(answer),
        _ => panic!("metadata is answered later"),
    }
}

fn whole(response: &Response) -> Vec<u8> {
    let segments = std::iter::once(&response.head).chain(&response.rest);
    segments.map(|segment| &segment[..]).collect::<Vec<_>>().concat()
}

fn try_create(world: &World, name: &str, partitions: i32) -> ErrorCode {
    code(world.ask(&create(vec![creatable(name, partitions)])).topics[0].error_code)
}

fn delete_records(world: &World, name: &str, partition_index: i32, offset: i64) -> ErrorCode {
    let asked =
        DeleteRecordsPartition { partition_index, offset, ..DeleteRecordsPartition::default() };
    let topic = DeleteRecordsTopic {
        name: name.to_owned(),
        partitions: vec![asked],
        ..DeleteRecordsTopic::default()
    };
    let request = DeleteRecordsRequest { topics: vec![topic], ..DeleteRecordsRequest::default() };
    code(world.ask(&request).topics[0].partitions[0].error_code)
}

fn grow(world: &World, name: &str, count: i32) -> ErrorCode {
    let name = name.to_owned();
    let topic = CreatePartitionsTopic { name, count, assignments: None, ..Default::default() };
    let topics = vec![topic];
    let request = CreatePartitionsRequest { topics, ..CreatePartitionsRequest::default() };
    code(world.ask(&request).results[0].error_code)
}

#[test]
fn metadata_describes_a_million_partitions_in_every_version() {
    let world = World::new();
    world.create("orders", MILLION);
    let template = MetadataResponsePartition {
        leader_epoch: 0,
        replica_nodes: vec![0],
        isr_nodes: vec![0],
        ..MetadataResponsePartition::default()
    };
    for version in 0..=newest(ApiKey::Metadata) {
        let answer = whole(&raw_answer(&world, version, &about("orders")));
        let partitions = encode_partitions(0..MILLION, &template, version).unwrap();
        // Behind them are at most the operations, an error and the ends of two structs.
        let ends_with = |behind| answer[..answer.len() - behind].ends_with(&partitions);
        assert!((0..=10).any(ends_with), "version {version}");
    }
    let topic = world.ask(&about("orders")).topics.remove(0);
    assert!(topic.partitions.iter().map(|it| it.partition_index).eq(0..MILLION));
    assert!(topic.partitions.iter().all(|it| it.leader_id == 0 && it.isr_nodes == [0]));
    assert_eq!(world.state.partition_runs.bytes(), 0, "no answer is under way");
}

#[test]
fn an_answer_for_many_partitions_is_made_in_turns() {
    let world = World::new();
    world.create("orders", 200_000);
    world.create("small", 1);
    let mut large = world.begin(newest(ApiKey::Metadata), &about("orders"));
    assert!(!world.poll(&mut large));
    assert!(!world.poll(&mut large));
    world.append("small", 0, batch(NOW_MS, &["a"]));
    assert_eq!(world.ask(&about("small")).topics[0].partitions.len(), 1);
    let answer = world.finish::<MetadataRequest>(large);
    assert_eq!(answer.topics[0].partitions.len(), 200_000);
}

#[test]
fn responses_in_flight_share_bytes() {
    let world = World::new();
    for name in ["orders", "others"] {
        world.create(name, 100_000);
    }
    let all = MetadataRequest { topics: None, ..MetadataRequest::default() };
    let version = newest(ApiKey::Metadata);
    let one = raw_answer(&world, version, &about("orders"));
    let held = world.state.partition_runs.bytes();
    assert!(held >= one.len() - 1_000, "{held}");
    let both = raw_answer(&world, version, &all);
    assert!(both.len() > 2 * one.len() - 1_000);
    assert_eq!(world.state.partition_runs.bytes(), held);
    drop((one, both));
    assert_eq!(world.state.partition_runs.bytes(), 0);
}

#[test]
fn pages_of_a_large_topic_name_every_partition_once() {
    let world = World::new();
    for (name, partitions) in [("a", 3), ("b", 100_000), ("c", 5)] {
        world.create(name, partitions);
    }
    for (limit, most) in [(1_999, 1_999), (i32::MAX, 2_000)] {
        let (mut seen, mut cursor) = (Vec::new(), None);
        loop {
            let asked =
                |name: &str| TopicRequest { name: name.to_owned(), ..TopicRequest::default() };
            let request = DescribeTopicPartitionsRequest {
                topics: ["c", "a", "b"].map(asked).to_vec(),
                response_partition_limit: limit,
                cursor,
                ..DescribeTopicPartitionsRequest::default()
            };
            let page = world.ask(&request);
            let before = seen.len();
            for topic in page.topics {
                let name = topic.name.unwrap();
                seen.extend(topic.partitions.iter().map(|it| (name.clone(), it.partition_index)));
            }
            assert!((1..=most).contains(&(seen.len() - before)));
            let Some(next) = page.next_cursor else { break };
            cursor = Some(Cursor {
                topic_name: next.topic_name,
                partition_index: next.partition_index,
                ..Cursor::default()
            });
        }
        let all = [("a", 3), ("b", 100_000), ("c", 5)];
        let all = all.iter().flat_map(|(name, end)| (0..*end).map(|at| ((*name).to_owned(), at)));
        assert!(seen.into_iter().eq(all), "a limit of {limit}");
    }
}

#[test]
fn an_increment_costs_the_same_however_large_the_topic_is() {
    let world = World::with(Drive::Stepped, |_| {});
    world.create("orders", 1_000);
    let journal_bytes = || world.state.storage.metrics().frame_bytes;
    let mut costs = Vec::new();
    for count in (2..=100).map(|thousands| thousands * 1_000) {
        let before = journal_bytes();
        assert_eq!(grow(&world, "orders", count), ErrorCode::None);
        costs.push(journal_bytes() - before);
    }
    assert!(costs.iter().all(|cost| cost == &costs[0]), "{costs:?}");
    assert_eq!(world.ask(&about("orders")).topics[0].partitions.len(), 100_000);
    let world = world.restarted();
    assert_eq!(world.ask(&about("orders")).topics[0].partitions.len(), 100_000);
}

#[test]
fn counts_above_the_limits_are_policy_violations() {
    let world = World::new();
    let most = i32::try_from(TOPIC_PARTITIONS_MAX).unwrap();
    for partitions in [i32::MAX, most + 1] {
        assert_eq!(try_create(&world, "orders", partitions), ErrorCode::PolicyViolation);
    }
    assert_eq!(try_create(&world, "orders", 1), ErrorCode::None);
    for partitions in [i32::MAX, most + 1] {
        assert_eq!(grow(&world, "orders", partitions), ErrorCode::PolicyViolation);
    }
    assert_eq!(grow(&world, "orders", most), ErrorCode::None);
    let topics = PARTITIONS_MAX / u64::from(TOPIC_PARTITIONS_MAX);
    for index in 1..topics {
        assert_eq!(try_create(&world, &format!("t{index}"), most), ErrorCode::None);
    }
    assert_eq!(try_create(&world, "straw", 1), ErrorCode::PolicyViolation);
    world.delete("t1");
    assert_eq!(try_create(&world, "straw", 1), ErrorCode::None);
    assert_eq!(grow(&world, "straw", most), ErrorCode::None);
    assert_eq!(grow(&world, "straw", most + 1), ErrorCode::PolicyViolation);
    let world = world.restarted();
    assert_eq!(try_create(&world, "last", 1), ErrorCode::PolicyViolation);
}

#[test]
fn reading_an_unwritten_partition_leaves_it_without_a_log() {
    let world = World::new();
    world.create("orders", MILLION);
    let last = MILLION - 1;
    for (timestamp, offset) in [(-1, 0), (-2, 0), (-3, -1), (-4, 0), (-5, -1), (NOW_MS, -1)] {
        let found = world.offset_at("orders", last, timestamp);
        assert_eq!((code(found.error_code), found.offset), (ErrorCode::None, offset));
    }
    let fetched = world.fetch("orders", last, 0);
    assert_eq!((code(fetched.error_code), fetched.high_watermark), (ErrorCode::None, 0));
    assert_eq!((fetched.last_stable_offset, fetched.log_start_offset), (0, 0));
    let beyond = world.fetch("orders", last, 1);
    assert_eq!(code(beyond.error_code), ErrorCode::OffsetOutOfRange);
    for (before, expected) in
        [(-1, ErrorCode::None), (0, ErrorCode::None), (1, ErrorCode::OffsetOutOfRange)]
    {
        assert_eq!(delete_records(&world, "orders", last, before), expected, "{before}");
    }
    assert!(world.state.storage.logs().is_empty());
    world.append("orders", last, batch(NOW_MS, &["a"]));
    assert_eq!(world.state.storage.logs().len(), 1);
    let world = world.restarted();
    assert_eq!(world.fetch("orders", last, 0).high_watermark, 1);
    assert_eq!(world.offset_at("orders", last, -1).offset, 1);
}

#[test]
fn a_fetch_waits_for_the_first_record_of_a_partition() {
    let world = World::stepped();
    world.create("orders", MILLION);
    let asked = fetch_topic("orders", &[(MILLION - 1, 0), (7, 0)]);
    let request = FetchRequest { max_wait_ms: 60_000, min_bytes: 1, ..fetch(vec![asked]) };
    let mut waiting = world.begin(12, &request);
    assert!(!world.poll(&mut waiting));
    let mut produced = world.begin(9, &produce("orders", 7, batch(NOW_MS, &["a"])));
    assert!(!world.poll(&mut waiting), "nothing is served before it is durable");
    world.flush();
    assert!(world.poll(&mut produced));
    let mut response = world.finish::<FetchRequest>(waiting);
    let partitions = response.responses.remove(0).partitions;
    let offsets = partitions.iter().find(|it| it.partition_index == 7).unwrap();
    assert_eq!(offsets.high_watermark, 1);
    assert_eq!(world.state.storage.logs().len(), 1);
}

#[test]
fn deletion_wakes_a_fetch_that_waits_for_a_first_record() {
    let world = World::new();
    world.create("orders", MILLION);
    let asked = fetch_topic("orders", &[(MILLION - 1, 0)]);
    let request = FetchRequest { max_wait_ms: 60_000, min_bytes: 1, ..fetch(vec![asked]) };
    let mut waiting = world.begin(12, &request);
    assert!(!world.poll(&mut waiting));
    world.delete("orders");
    let mut response = world.finish::<FetchRequest>(waiting);
    let unknown = ErrorCode::UnknownTopicOrPartition;
    assert_eq!(code(response.responses.remove(0).partitions.remove(0).error_code), unknown);
}

#[test]
fn topics_created_and_deleted_in_turns_leave_nothing_behind() {
    let world = World::new();
    for round in 0..50 {
        world.create("orders", MILLION);
        for partition in [0, MILLION / 2, MILLION - 1] {
            world.append("orders", partition, batch(NOW_MS, &["a"]));
        }
        assert_eq!(world.state.storage.logs().len(), 3, "round {round}");
        world.delete("orders");
        assert!(world.state.storage.topics().is_empty(), "round {round}");
        assert!(world.state.catalog.all().is_empty(), "round {round}");
    }
    assert_eq!(try_create(&world, "orders", MILLION), ErrorCode::None);
}

#[test]
fn session_over_ten_thousand_partitions_reports_only_changes() {
    let world = World::new();
    world.create("orders", 10_000);
    let places: Vec<(i32, i64)> = (0..10_000).map(|index| (index, 0)).collect();
    let full = FetchRequest { session_epoch: 0, ..fetch(vec![fetch_topic("orders", &places)]) };
    let opened = world.ask_in(12, &full);
    assert_eq!(opened.responses[0].partitions.len(), 10_000);
    world.append("orders", 4_321, batch(NOW_MS, &["a"]));
    let session_id = opened.session_id;
    let next = FetchRequest { session_id, session_epoch: 1, ..fetch(Vec::new()) };
    let told = world.ask_in(12, &next).responses.remove(0).partitions;
    let told: Vec<i32> = told.iter().map(|it| it.partition_index).collect();
    assert_eq!(told, [4_321]);
    assert_eq!(world.state.storage.logs().len(), 1);
}
