//! What a producer is told.

use bytes::Bytes;
use moldau_net::Reply;
use moldau_protocol::messages::describe_producers_request::TopicRequest;
use moldau_protocol::messages::produce_response::PartitionProduceResponse;
use moldau_protocol::messages::{DescribeProducersRequest, ProduceRequest};
use moldau_protocol::{ErrorCode, Uuid};
use moldau_records::{Attributes, BatchOptions, BatchView, Compression, Producer, TimestampType};

use super::requests::{PRODUCE_BY_NAME, fetch, fetch_topic, only, produce};
use super::world::{
    NOW_MS, World, base_offsets, batch, batch_of, code, request_frame, reseal, sequenced,
    unknown_id,
};

fn refusal(world: &World, topic: &str, partition: i32, records: Bytes) -> ErrorCode {
    let response = world.produce(topic, partition, records);
    assert_eq!(response.base_offset, -1);
    assert!(response.error_message.is_some());
    code(response.error_code)
}

fn ask(world: &World, version: i16, request: &ProduceRequest) -> PartitionProduceResponse {
    let mut response = world.ask_in(version, request);
    response.responses.pop().unwrap().partition_responses.pop().unwrap()
}

#[test]
fn offsets_follow_one_another_in_each_partition() {
    let world = World::new();
    world.create("orders", 2);
    assert_eq!(world.append("orders", 0, batch(NOW_MS, &["a", "b"])), 0);
    assert_eq!(world.append("orders", 1, batch(NOW_MS, &["c"])), 0);
    let response = world.produce("orders", 0, batch(NOW_MS, &["d"]));
    assert_eq!((response.base_offset, response.log_start_offset), (2, 0));
    assert_eq!(response.log_append_time_ms, -1);
}

#[test]
fn a_topic_or_partition_that_does_not_exist_is_refused() {
    let world = World::new();
    let id = world.create("orders", 1);
    let records = batch(NOW_MS, &["a"]);
    for (topic, partition) in [("absent", 0), ("orders", 1), ("orders", -1)] {
        let code = refusal(&world, topic, partition, records.clone());
        assert_eq!(code, ErrorCode::UnknownTopicOrPartition);
    }
    let by_id = |topic_id: Uuid| {
        let mut request = produce("", 0, records.clone());
        request.topic_data[0].topic_id = topic_id;
        code(ask(&world, 13, &request).error_code)
    };
    assert_eq!(by_id(unknown_id()), ErrorCode::UnknownTopicId);
    assert_eq!(by_id(id), ErrorCode::None);
}

#[test]
fn bytes_that_are_not_one_intact_batch_are_refused() {
    let world = World::new();
    world.create("orders", 1);
    let intact = batch(NOW_MS, &["a"]);
    let mut damaged = intact.to_vec();
    *damaged.last_mut().unwrap() ^= 1;
    assert_eq!(refusal(&world, "orders", 0, damaged.into()), ErrorCode::CorruptMessage);
    let mut of_no_format = intact.to_vec();
    of_no_format[16] = 3;
    assert_eq!(refusal(&world, "orders", 0, of_no_format.into()), ErrorCode::CorruptMessage);
    let twice = Bytes::from([&intact[..], &intact[..]].concat());
    assert_eq!(refusal(&world, "orders", 0, twice), ErrorCode::InvalidRecord);
    assert_eq!(world.fetch("orders", 0, 0).high_watermark, 0);
}

/// CORRUPT_MESSAGE is retriable: a client that sends nothing, half a batch or one of an old format
/// would send it again for two minutes.
#[test]
fn malformed_batch_is_refused_without_retry() {
    let world = World::new();
    world.create("orders", 1);
    let intact = batch(NOW_MS, &["a"]);
    let with = |place: usize, bytes: &[u8]| {
        let mut changed = intact.to_vec();
        changed[place..place + bytes.len()].copy_from_slice(bytes);
        Bytes::from(changed)
    };
    for records in [
        intact.slice(..intact.len() - 1),
        intact.slice(..10),
        with(8, &(-1i32).to_be_bytes()),
        with(8, &48i32.to_be_bytes()),
        with(8, &i32::MAX.to_be_bytes()),
        with(16, &[0]),
        with(16, &[1]),
    ] {
        assert_eq!(refusal(&world, "orders", 0, records), ErrorCode::InvalidRecord);
    }
    assert_eq!(refusal(&world, "orders", 0, Bytes::new()), ErrorCode::InvalidRecord);
    let mut request = produce("orders", 0, Bytes::new());
    request.topic_data[0].partition_data[0].records = None;
    let response = ask(&world, PRODUCE_BY_NAME, &request);
    assert_eq!(code(response.error_code), ErrorCode::InvalidRecord);
}

/// The header counted one of two records, or the payload was not of its codec: such batches were
/// stored, and consumers failed on them for ever.
#[test]
fn batch_contradicting_its_header_is_refused_without_retry() {
    let world = World::new();
    world.create("orders", 1);
    for codec in Compression::ALL {
        let records = [(NOW_MS, "a"), (NOW_MS, "b")];
        let mut counted = batch_of(BatchOptions::default(), codec, &records).to_vec();
        counted[26] = 0;
        counted[60] = 1;
        let mut of_gzip = batch(NOW_MS, &["no gzip inside"]).to_vec();
        of_gzip[22] = 1;
        for mut records in [counted, of_gzip] {
            reseal(&mut records);
            assert_eq!(refusal(&world, "orders", 0, records.into()), ErrorCode::InvalidRecord);
        }
    }
    assert_eq!(world.fetch("orders", 0, 0).high_watermark, 0);
}

#[test]
fn wrong_max_timestamp_is_corrected() {
    let world = World::new();
    world.create("orders", 1);
    let options = BatchOptions { max_timestamp: Some(NOW_MS + 5), ..BatchOptions::default() };
    let records = batch_of(options, Compression::Lz4, &[(NOW_MS - 9, "a"), (NOW_MS - 8, "b")]);
    world.append("orders", 0, records);
    let stored = world.fetch("orders", 0, 0).records.unwrap();
    let stored = BatchView::parse(&stored).unwrap();
    assert_eq!((stored.max_timestamp(), stored.check_crc()), (NOW_MS - 8, Ok(())));
}

#[test]
fn control_batch_and_batch_without_transaction_are_refused() {
    let world = World::new();
    world.create("orders", 1);
    let with = |attributes| {
        let producer = Some(Producer { id: 1, epoch: 0, base_sequence: 0 });
        let options = BatchOptions { attributes, producer, ..BatchOptions::default() };
        batch_of(options, Compression::None, &[(NOW_MS, "a")])
    };
    let plain = Attributes::default();
    let control = with(plain.with_control(true));
    assert_eq!(refusal(&world, "orders", 0, control), ErrorCode::InvalidRecord);
    let transactional = with(plain.with_transactional(true));
    let mut request = produce("orders", 0, transactional.clone());
    request.transactional_id = Some("transaction".to_owned());
    let response = ask(&world, PRODUCE_BY_NAME, &request);
    assert_eq!(code(response.error_code), ErrorCode::InvalidProducerIdMapping);
    // Nobody may write to a transaction that has no id.
    let without_id = refusal(&world, "orders", 0, transactional);
    assert_eq!(without_id, ErrorCode::TransactionalIdAuthorizationFailed);
}

/// The batch decides whether a produce is of a transaction. A client that sends an empty id for
/// none lost its connection with acks=0.
#[test]
fn transactional_id_does_not_affect_other_batches() {
    let world = World::new();
    world.create("orders", 1);
    for (offset, id) in (0..).step_by(3).zip(["", "transaction"]) {
        let mut request = produce("orders", 0, batch(NOW_MS, &["a"]));
        request.transactional_id = Some(id.to_owned());
        let response = ask(&world, PRODUCE_BY_NAME, &request);
        assert_eq!((code(response.error_code), response.base_offset), (ErrorCode::None, offset));
        let silent = ProduceRequest { acks: 0, ..request };
        for version in [3, PRODUCE_BY_NAME] {
            let reply = world.send(&request_frame(version, &silent));
            assert!(matches!(reply, Reply::NoResponse), "{id:?} {version}");
        }
    }
}

/// Such a topic is there if it was made by a broker that knew no such rule.
#[test]
fn a_produce_to_an_internal_topic_of_kafka_is_refused() {
    let world = World::new();
    for topic in ["__consumer_offsets", "__transaction_state", "__share_group_state"] {
        let refused = refusal(&world, topic, 0, batch(NOW_MS, &["a"]));
        assert_eq!(refused, ErrorCode::InvalidTopicException);
    }
}

#[test]
fn acks_other_than_none_one_and_all_are_refused() {
    let world = World::new();
    world.create("orders", 1);
    for acks in [-2, 2] {
        let request = ProduceRequest { acks, ..produce("orders", 0, batch(NOW_MS, &["a"])) };
        let response = ask(&world, PRODUCE_BY_NAME, &request);
        assert_eq!(code(response.error_code), ErrorCode::InvalidRequiredAcks);
    }
    let request = ProduceRequest { acks: 1, ..produce("orders", 0, batch(NOW_MS, &["a"])) };
    assert_eq!(code(ask(&world, PRODUCE_BY_NAME, &request).error_code), ErrorCode::None);
}

#[test]
fn a_batch_above_the_limit_of_its_topic_is_refused() {
    let world = World::new();
    let records = batch(NOW_MS, &["a"]);
    let fits = records.len().to_string();
    let too_small = (records.len() - 1).to_string();
    world.create_with("fits", 1, &[("max.message.bytes", &fits)]);
    world.create_with("small", 1, &[("max.message.bytes", &too_small)]);
    assert_eq!(world.append("fits", 0, records.clone()), 0);
    assert_eq!(refusal(&world, "small", 0, records), ErrorCode::MessageTooLarge);
}

#[test]
fn zstd_is_accepted_from_the_version_that_knows_it() {
    let world = World::new();
    world.create("orders", 1);
    let records = batch_of(BatchOptions::default(), Compression::Zstd, &[(NOW_MS, "a")]);
    let request = produce("orders", 0, records);
    let older = ask(&world, 6, &request);
    assert_eq!(code(older.error_code), ErrorCode::UnsupportedCompressionType);
    assert_eq!(code(ask(&world, 7, &request).error_code), ErrorCode::None);
}

#[test]
fn a_timestamp_out_of_the_bounds_of_its_topic_is_refused() {
    let world = World::new();
    let bounds =
        [("message.timestamp.after.max.ms", "1000"), ("message.timestamp.before.max.ms", "2000")];
    world.create_with("bounded", 1, &bounds);
    for refused in [NOW_MS + 1_001, NOW_MS - 2_001] {
        let code = refusal(&world, "bounded", 0, batch(refused, &["a"]));
        assert_eq!(code, ErrorCode::InvalidTimestamp);
    }
    for accepted in [NOW_MS + 1_000, NOW_MS - 2_000, -1] {
        world.append("bounded", 0, batch(accepted, &["a"]));
    }
    let records = [(NOW_MS, "a"), (5, "b"), (NOW_MS, "c")];
    let response =
        world.produce("bounded", 0, batch_of(BatchOptions::default(), Compression::Gzip, &records));
    assert_eq!(code(response.error_code), ErrorCode::InvalidTimestamp);
    let named: Vec<_> = response.record_errors.iter().map(|it| it.batch_index).collect();
    assert_eq!(named, [1]);
}

#[test]
fn log_append_time_replaces_the_timestamp_of_the_producer() {
    let world = World::new();
    world.create_with("stamped", 1, &[("message.timestamp.type", "LogAppendTime")]);
    let response = world.produce("stamped", 0, batch(5, &["a", "b"]));
    assert_eq!(response.log_append_time_ms, NOW_MS);
    let records = world.fetch("stamped", 0, 0).records.unwrap();
    let stored = BatchView::parse(&records).unwrap();
    stored.check_crc().unwrap();
    assert_eq!(stored.timestamp_type(), TimestampType::LogAppendTime);
    assert_eq!(stored.max_timestamp(), NOW_MS);
}

#[test]
fn a_repeated_batch_gets_its_first_offset_and_is_stored_once() {
    let world = World::new();
    world.create("orders", 1);
    let id = world.producer_id().producer_id;
    for _ in 0..2 {
        assert_eq!(world.append("orders", 0, sequenced(id, 0, 0, &["a", "b"])), 0);
        assert_eq!(world.append("orders", 0, sequenced(id, 0, 2, &["c"])), 2);
    }
    assert_eq!(base_offsets(world.fetch("orders", 0, 0).records.as_ref()), [0, 2]);
}

#[test]
fn a_gap_in_the_sequence_and_an_older_epoch_are_refused() {
    let world = World::new();
    world.create("orders", 1);
    let id = world.producer_id().producer_id;
    world.append("orders", 0, sequenced(id, 0, 0, &["a"]));
    let gap = sequenced(id, 0, 2, &["c"]);
    assert_eq!(refusal(&world, "orders", 0, gap), ErrorCode::OutOfOrderSequenceNumber);
    let bumped = sequenced(id, 1, 1, &["b"]);
    assert_eq!(refusal(&world, "orders", 0, bumped), ErrorCode::OutOfOrderSequenceNumber);
    assert_eq!(world.append("orders", 0, sequenced(id, 1, 0, &["b"])), 1);
    let older = sequenced(id, 0, 1, &["b"]);
    assert_eq!(refusal(&world, "orders", 0, older), ErrorCode::InvalidProducerEpoch);
}

/// Kafka's tools show it as -1.
#[test]
fn a_producer_without_transactions_has_no_coordinator_epoch() {
    let world = World::new();
    world.create("orders", 1);
    let id = world.producer_id().producer_id;
    world.append("orders", 0, sequenced(id, 0, 0, &["a"]));
    let orders = TopicRequest {
        name: "orders".to_owned(),
        partition_indexes: vec![0],
        ..Default::default()
    };
    let request = DescribeProducersRequest { topics: vec![orders], ..Default::default() };
    let shown = world.ask(&request).topics.remove(0).partitions.remove(0).active_producers;
    let shown: Vec<_> = shown.iter().map(|it| (it.producer_id, it.coordinator_epoch)).collect();
    assert_eq!(shown, [(id, -1)]);
}

#[test]
fn a_refused_partition_leaves_the_others_of_its_request_alone() {
    let world = World::new();
    world.create("orders", 1);
    let mut request = produce("absent", 0, batch(NOW_MS, &["a"]));
    request.topic_data.extend(produce("orders", 0, batch(NOW_MS, &["b"])).topic_data);
    let response = world.ask_in(PRODUCE_BY_NAME, &request);
    let codes = response.responses.iter().map(|topic| topic.partition_responses[0].error_code);
    let codes: Vec<_> = codes.map(code).collect();
    assert_eq!(codes, [ErrorCode::UnknownTopicOrPartition, ErrorCode::None]);
}

#[test]
fn acks_0_gets_no_response_and_a_refusal_closes() {
    let world = World::new();
    world.create("orders", 1);
    let silent =
        |topic: &str| ProduceRequest { acks: 0, ..produce(topic, 0, batch(NOW_MS, &["a"])) };
    let frame = request_frame(PRODUCE_BY_NAME, &silent("orders"));
    assert!(matches!(world.send(&frame), Reply::NoResponse));
    let frame = request_frame(PRODUCE_BY_NAME, &silent("absent"));
    assert!(matches!(world.send(&frame), Reply::Close(_)));
    // What follows is durable after it, so the first batch is there.
    assert_eq!(world.append("orders", 0, batch(NOW_MS, &["b"])), 1);
    let mut all = world.ask_in(11, &fetch(vec![fetch_topic("orders", &[(0, 0)])]));
    assert_eq!(base_offsets(only(&mut all).records.as_ref()), [0, 1]);
}

#[test]
fn a_produce_is_answered_after_the_flush_and_not_before() {
    let world = World::stepped();
    world.create("orders", 1);
    let request = produce("orders", 0, batch(NOW_MS, &["a"]));
    let mut pending = world.begin(PRODUCE_BY_NAME, &request);
    assert!(!world.poll(&mut pending));
    world.flush();
    let response = world.finish::<ProduceRequest>(pending);
    assert_eq!(code(response.responses[0].partition_responses[0].error_code), ErrorCode::None);
}

/// Without an answer to wait for, or once the client had gone, a request no longer counted against
/// the limit of unflushed bytes while its bytes waited for the disk, and memory ran out.
#[test]
fn produce_is_admitted_until_durable_even_without_its_response() {
    let world = World::stepped();
    world.create("orders", 1);
    let storage = &world.state.storage;
    // More than the limit is admitted only if nothing else is.
    let holds_nothing = || storage.admit(usize::MAX).is_some();
    let request = produce("orders", 0, batch(NOW_MS, &["a"]));
    let unanswered = ProduceRequest { acks: 0, ..request.clone() };
    assert!(holds_nothing());
    let reply = world.send(&request_frame(PRODUCE_BY_NAME, &unanswered));
    assert!(matches!(reply, Reply::NoResponse));
    assert!(!holds_nothing(), "without an answer");
    drop(world.wait(storage.admit_wait(usize::MAX)));
    let pending = world.begin(PRODUCE_BY_NAME, &request);
    // A connection ends on its network thread.
    world.wait(async { drop(pending) });
    assert!(!holds_nothing(), "the client has gone");
    drop(world.wait(storage.admit_wait(usize::MAX)));
    let pending = world.begin(PRODUCE_BY_NAME, &request);
    assert!(!holds_nothing());
    world.finish::<ProduceRequest>(pending);
    assert!(holds_nothing());
}
