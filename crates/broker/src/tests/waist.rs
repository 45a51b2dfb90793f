//! Handlers do not depend on when and in which order the logs answer: see
//! [`cluster_logs`](super::cluster_logs).

use moldau_protocol::ErrorCode;
use moldau_protocol::messages::delete_records_request::{
    DeleteRecordsPartition, DeleteRecordsTopic,
};
use moldau_protocol::messages::offset_for_leader_epoch_request::{
    OffsetForLeaderPartition, OffsetForLeaderTopic,
};
use moldau_protocol::messages::{DeleteRecordsRequest, FetchRequest, OffsetForLeaderEpochRequest};
use moldau_protocol::messages::{ListOffsetsRequest, ProduceRequest};

use super::requests::{fetch, fetch_topic_id, list_offsets, produce};
use super::world::{NOW_MS, World, base_offsets, batch, code, newest, sequenced};

const LATEST: i64 = -1;
const EARLIEST: i64 = -2;
const MAX_TIMESTAMP: i64 = -3;

fn begin(world: &World, id: moldau_protocol::Uuid, records: bytes::Bytes) -> super::world::Pending {
    let mut request = produce("", 0, records);
    request.topic_data[0].topic_id = id;
    world.begin::<ProduceRequest>(13, &request)
}

fn offset(world: &World, pending: super::world::Pending) -> Result<i64, ErrorCode> {
    let mut response = world.finish::<ProduceRequest>(pending);
    let told = response.responses.pop().unwrap().partition_responses.pop().unwrap();
    match code(told.error_code) {
        ErrorCode::None => Ok(told.base_offset),
        code => Err(code),
    }
}

#[test]
fn appends_in_flight_get_offsets_in_the_order_of_their_requests() {
    for world in World::each() {
        let id = world.create("orders", 1);
        let sent: Vec<_> = (0..5).map(|_| begin(&world, id, batch(NOW_MS, &["a", "b"]))).collect();
        // Asked for the last first: an answer waits for no other.
        let offsets: Vec<_> =
            sent.into_iter().rev().map(|sent| offset(&world, sent).unwrap()).collect();
        assert_eq!(offsets, [8, 6, 4, 2, 0]);
    }
}

#[test]
fn a_produce_is_answered_when_its_object_is_committed_and_not_before() {
    let world = World::clustered();
    let id = world.create("orders", 1);
    let mut sent = begin(&world, id, batch(NOW_MS, &["a"]));
    assert!(!world.poll(&mut sent));
    assert!(world.cluster().commit());
    assert!(!world.poll(&mut sent), "the answer is on its way");
    assert!(world.cluster().step());
    assert!(world.poll(&mut sent));
}

#[test]
fn each_partition_of_a_produce_gets_its_own_answer() {
    for world in World::each() {
        let id = world.create("orders", 3);
        offset(&world, begin(&world, id, sequenced(7, 0, 0, &["first"]))).unwrap();
        let mut request = produce("", 0, sequenced(7, 0, 5, &["out of order"]));
        request.topic_data[0].topic_id = id;
        let template = request.topic_data[0].partition_data[0].clone();
        for index in [1, 2, 9] {
            let mut partition = template.clone();
            partition.index = index;
            partition.records = Some(batch(NOW_MS, &["a"]));
            request.topic_data[0].partition_data.push(partition);
        }
        let told = world.ask_in(13, &request).responses.pop().unwrap().partition_responses;
        let codes: Vec<_> = told.iter().map(|it| (it.index, code(it.error_code))).collect();
        let expected = [
            (0, ErrorCode::OutOfOrderSequenceNumber),
            (1, ErrorCode::None),
            (2, ErrorCode::None),
            (9, ErrorCode::UnknownTopicOrPartition),
        ];
        assert_eq!(codes, expected);
        let offsets: Vec<_> = told.iter().map(|it| (it.base_offset, it.log_start_offset)).collect();
        assert_eq!(offsets, [(-1, -1), (0, 0), (0, 0), (-1, -1)]);
    }
}

#[test]
fn a_batch_that_is_sent_again_while_the_first_is_in_flight_is_stored_once() {
    for world in World::each() {
        let id = world.create("orders", 1);
        let records = sequenced(7, 0, 0, &["a", "b"]);
        let sent = [begin(&world, id, records.clone()), begin(&world, id, records)];
        let next = begin(&world, id, sequenced(7, 0, 2, &["c"]));
        assert_eq!(sent.map(|sent| offset(&world, sent)), [Ok(0), Ok(0)]);
        assert_eq!(offset(&world, next), Ok(2));
    }
}

#[test]
fn a_fetch_gets_what_was_written_and_waits_for_what_was_not() {
    for world in World::each() {
        let id = world.create("orders", 2);
        let ask = |at| FetchRequest {
            max_wait_ms: 300_000,
            ..fetch(vec![fetch_topic_id(id, &[(0, at), (1, 0)])])
        };
        let waiting = world.begin::<FetchRequest>(newest(moldau_protocol::ApiKey::Fetch), &ask(0));
        assert_eq!(offset(&world, begin(&world, id, batch(NOW_MS, &["a"]))), Ok(0));
        let told = world.finish::<FetchRequest>(waiting);
        let told = &told.responses[0].partitions[0];
        assert_eq!((told.high_watermark, base_offsets(told.records.as_ref())), (1, vec![0]));
        assert_eq!(offset(&world, begin(&world, id, batch(NOW_MS, &["b"]))), Ok(1));
        let told = world.ask(&ask(1));
        assert_eq!(base_offsets(told.responses[0].partitions[0].records.as_ref()), [1]);
        let told = world.ask(&FetchRequest { max_wait_ms: 0, ..ask(9) });
        let told = &told.responses[0].partitions[0];
        assert_eq!(code(told.error_code), ErrorCode::OffsetOutOfRange);
    }
}

#[test]
fn offsets_are_found_by_time_and_by_epoch_and_records_are_deleted() {
    for world in World::each() {
        let id = world.create("orders", 1);
        for (at, value) in [(10, "a"), (30, "b"), (20, "c")] {
            let sent = begin(&world, id, batch(NOW_MS + at, &[value]));
            offset(&world, sent).unwrap();
        }
        let at = |timestamp| {
            let told = world.ask::<ListOffsetsRequest>(&list_offsets("orders", 0, timestamp));
            told.topics[0].partitions[0].offset
        };
        assert_eq!([EARLIEST, LATEST, MAX_TIMESTAMP].map(at), [0, 3, 1]);
        assert_eq!([NOW_MS, NOW_MS + 11, NOW_MS + 31].map(at), [0, 1, -1]);
        assert_eq!(end_of_epoch(&world, 0), (0, 3));
        assert_eq!(delete(&world, 2), (ErrorCode::None, 2));
        assert_eq!(delete(&world, 4).0, ErrorCode::OffsetOutOfRange);
        assert_eq!([EARLIEST, LATEST].map(at), [2, 3]);
    }
}

fn end_of_epoch(world: &World, leader_epoch: i32) -> (i32, i64) {
    let partition =
        OffsetForLeaderPartition { leader_epoch, ..OffsetForLeaderPartition::default() };
    let topic = OffsetForLeaderTopic {
        topic: "orders".to_owned(),
        partitions: vec![partition],
        ..OffsetForLeaderTopic::default()
    };
    let request = OffsetForLeaderEpochRequest { topics: vec![topic], ..Default::default() };
    let told = world.ask(&request).topics.remove(0).partitions.remove(0);
    (told.leader_epoch, told.end_offset)
}

fn delete(world: &World, offset: i64) -> (ErrorCode, i64) {
    let partition = DeleteRecordsPartition { offset, ..DeleteRecordsPartition::default() };
    let topic = DeleteRecordsTopic {
        name: "orders".to_owned(),
        partitions: vec![partition],
        ..DeleteRecordsTopic::default()
    };
    let request = DeleteRecordsRequest { topics: vec![topic], ..Default::default() };
    let told = world.ask(&request).topics.remove(0).partitions.remove(0);
    (code(told.error_code), told.low_watermark)
}

#[test]
fn the_id_of_a_deleted_topic_is_unknown_to_produce_and_fetch() {
    for world in World::each() {
        let id = world.create("orders", 1);
        assert_eq!(offset(&world, begin(&world, id, batch(NOW_MS, &["a"]))), Ok(0));
        world.delete("orders");
        assert_eq!(
            offset(&world, begin(&world, id, batch(NOW_MS, &["b"]))),
            Err(ErrorCode::UnknownTopicId)
        );
        let told = world.ask(&fetch(vec![fetch_topic_id(id, &[(0, 0)])]));
        let told = &told.responses[0].partitions[0];
        assert_eq!(code(told.error_code), ErrorCode::UnknownTopicId);
    }
}
