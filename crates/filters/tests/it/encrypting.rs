//! Record encryption between a client and a broker that keeps what it gets.

mod store;

use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;

use bytes::Bytes;
use moldau_filters::{RecordEncryption, UnresolvedKey};
use moldau_protocol::messages::fetch_request::{FetchPartition, FetchTopic};
use moldau_protocol::messages::produce_request::{PartitionProduceData, TopicProduceData};
use moldau_protocol::messages::produce_response::PartitionProduceResponse;
use moldau_protocol::messages::share_fetch_request;
use moldau_protocol::messages::{
    ApiKey, FetchRequest, ProduceRequest, ProduceResponse, ShareFetchRequest,
};
use moldau_protocol::{ErrorCode, messages::fetch_response::PartitionData};
use moldau_proxy::{Filter, Limits, Proxy};
use moldau_records::{
    Attributes, BatchBuilder, BatchOptions, BatchView, Compression, Compressor, Decompressor,
    HeaderView, Producer, crc32c,
};

use tokio::sync::Barrier;

use self::store::{Service, Store, encryption, topic_id};
use crate::world::{Client, proxy_with};

const PRODUCE: i16 = 12;
const FETCH: i16 = 12;

/// Longer than the window in which clear text would be found.
const SECRET: &[u8] = b"a value that must not be found on disk";

struct World {
    store: Arc<Store>,
    service: Arc<Service>,
    filter: Arc<RecordEncryption>,
    proxy: Proxy,
}

impl World {
    fn start(unresolved_key: UnresolvedKey) -> Self {
        Self::start_with(unresolved_key, &Limits::default())
    }

    fn start_with(unresolved_key: UnresolvedKey, limits: &Limits) -> Self {
        let (store, service) = (Arc::new(Store::default()), Service::start());
        let filter = encryption(&service, unresolved_key);
        let filters: Vec<Arc<dyn Filter>> = vec![Arc::clone(&filter) as _];
        let proxy = proxy_with(store.serve().address, vec![("main", filters)], limits);
        Self { store, service, filter, proxy }
    }

    fn client(&self) -> Client {
        Client::connect(&self.proxy, 0)
    }

    /// Error codes of fetched partitions of `topic-<number>`, and their records.
    fn fetch(&self, version: i16, number: u8, partitions: &[i32]) -> Vec<(ErrorCode, Vec<u8>)> {
        let response = self.client().call(version, &fetch_request(version, number, partitions));
        let partitions = response.responses.into_iter().flat_map(|topic| topic.partitions);
        partitions
            .map(|PartitionData { error_code, records, .. }| {
                (ErrorCode::try_from(error_code).unwrap(), records.unwrap_or_default().to_vec())
            })
            .collect()
    }

    /// What the filter counted under this name and these values of labels.
    fn counter(&self, name: &str, labels: &[&str]) -> u64 {
        let metrics = self.filter.metrics().into_iter();
        let mut values = metrics.filter(|it| it.name == name);
        let has_labels = |of: &[(&str, String)]| of.iter().map(|(_, value)| value).eq(labels);
        values.find(|it| has_labels(&it.labels)).expect("it is counted").value
    }
}

fn fetch_request(version: i16, number: u8, partitions: &[i32]) -> FetchRequest {
    let partitions =
        partitions.iter().map(|index| FetchPartition { partition: *index, ..Default::default() });
    let mut topic = FetchTopic { partitions: partitions.collect(), ..Default::default() };
    if version >= 13 {
        topic.topic_id = topic_id(number);
    } else {
        topic.topic = format!("topic-{number}");
    }
    FetchRequest { topics: vec![topic], ..Default::default() }
}

/// A request for partitions of topics, each with its records.
fn produce_request(version: i16, acks: i16, parts: &[(u8, i32, &[u8])]) -> ProduceRequest {
    let mut topic_data: Vec<TopicProduceData> = Vec::new();
    for (number, index, records) in parts {
        let mut topic = TopicProduceData::default();
        if version >= 13 {
            topic.topic_id = topic_id(*number);
        } else {
            topic.name = format!("topic-{number}");
        }
        let data = PartitionProduceData {
            index: *index,
            records: Some(Bytes::copy_from_slice(records)),
            ..Default::default()
        };
        match topic_data
            .iter_mut()
            .find(|it| (&it.name, it.topic_id) == (&topic.name, topic.topic_id))
        {
            Some(topic) => topic.partition_data.push(data),
            None => topic_data.push(TopicProduceData { partition_data: vec![data], ..topic }),
        }
    }
    ProduceRequest { acks, topic_data, ..Default::default() }
}

/// Topic, partition and error of each partition that was answered, in order.
fn outcomes(response: &ProduceResponse) -> Vec<(String, i32, ErrorCode)> {
    let mut outcomes: Vec<_> = response
        .responses
        .iter()
        .flat_map(|topic| {
            let name = match topic.name.as_str() {
                "" => format!("topic-{}", topic.topic_id.as_bytes()[0]),
                name => name.to_owned(),
            };
            topic.partition_responses.iter().map(move |partition| {
                let code = ErrorCode::try_from(partition.error_code).unwrap();
                (name.clone(), partition.index, code)
            })
        })
        .collect();
    outcomes.sort_by_key(|(name, index, _)| (name.clone(), *index));
    outcomes
}

fn batch_with(options: BatchOptions, compression: Compression) -> Vec<u8> {
    let mut builder = BatchBuilder::new(options);
    let header = HeaderView { key: b"h", value: Some(b"clear") };
    builder.append(1000, Some(b"key"), Some(SECRET), [header]).unwrap();
    builder.append(1001, Some(b"tombstone"), None, []).unwrap();
    builder.append(1002, None, Some(b""), [header, header]).unwrap();
    builder.finish(compression, &mut Compressor::default()).unwrap().to_vec()
}

fn batch() -> Vec<u8> {
    batch_with(BatchOptions::default(), Compression::None)
}

/// A batch whose one record says that it is sealed and is not.
fn forged() -> Vec<u8> {
    let mut builder = BatchBuilder::new(BatchOptions::default());
    let marker = HeaderView { key: moldau_encryption::MARKER_KEY.as_bytes(), value: Some(&[2]) };
    builder.append(1000, None, Some(b"clear"), [marker]).unwrap();
    builder.finish(Compression::None, &mut Compressor::default()).unwrap().to_vec()
}

/// A batch that counts more records than any has, in all fields that could contradict it.
fn counting_too_many(compression: Compression) -> Vec<u8> {
    let mut bytes = batch_with(BatchOptions::default(), compression);
    bytes[23..27].copy_from_slice(&(i32::MAX - 1).to_be_bytes());
    bytes[57..61].copy_from_slice(&i32::MAX.to_be_bytes());
    let crc = crc32c(&bytes[21..]);
    bytes[17..21].copy_from_slice(&crc.to_be_bytes());
    bytes
}

fn has_secret(bytes: &[u8]) -> bool {
    SECRET.windows(8).any(|part| bytes.windows(8).any(|window| window == part))
}

#[test]
fn every_version_is_sealed_on_its_way_in_and_opened_on_its_way_out() {
    let world = World::start(UnresolvedKey::Reject);
    let mut client = world.client();
    for version in ApiKey::Produce.valid_versions().iter() {
        world.store.records.lock().unwrap().clear();
        let request = produce_request(version, -1, &[(1, 0, &batch()), (2, 7, &batch())]);
        let response = client.call(version, &request);
        let ok = |name: &str, index| (name.to_owned(), index, ErrorCode::None);
        assert_eq!(outcomes(&response), [ok("topic-1", 0), ok("topic-2", 7)]);
        let stored = world.store.get(2, 7);
        assert!(stored.len() > batch().len() && !has_secret(&stored));
        BatchView::parse(&stored).unwrap().check_crc().unwrap();
    }
    for version in ApiKey::Fetch.valid_versions().iter() {
        assert_eq!(
            world.fetch(version, 2, &[7, 8]),
            [(ErrorCode::None, batch()), (ErrorCode::None, Vec::new())]
        );
    }
    assert_eq!(world.counter("records_sealed", &[]), 2 * 2 * 11);
    // Names are learned once for all sessions.
    assert_eq!(world.store.metadata_requests.load(SeqCst), 1);
}

#[test]
fn codecs_and_the_fields_of_producers_stay() {
    let world = World::start(UnresolvedKey::Reject);
    let mut client = world.client();
    let producer = Producer { id: 4711, epoch: 3, base_sequence: 17 };
    for compression in Compression::ALL {
        let options = BatchOptions {
            attributes: Attributes::default().with_transactional(true),
            producer: Some(producer),
            ..BatchOptions::default()
        };
        let sent = batch_with(options, compression);
        client.call(PRODUCE, &produce_request(PRODUCE, -1, &[(1, 0, &sent)]));
        let stored = world.store.get(1, 0);
        let stored = BatchView::parse(&stored).unwrap();
        assert_eq!((stored.producer_id(), stored.base_sequence()), (4711, 17));
        assert!(stored.is_transactional() && stored.compression().unwrap() == compression);
        let mut decompressor = Decompressor::default();
        let payload = decompressor.decompress(compression, stored.payload(), 1 << 20).unwrap();
        assert!(!has_secret(payload));
        let fetched = world.fetch(FETCH, 1, &[0]);
        let (code, records) = fetched.first().unwrap();
        let opened = BatchView::parse(records).unwrap();
        assert_eq!((*code, opened.producer_epoch()), (ErrorCode::None, 3));
        let records = opened.records(&mut decompressor, 1 << 20).unwrap();
        let values: Vec<_> = records.map(|it| it.unwrap().value().map(<[u8]>::to_vec)).collect();
        assert_eq!(values, [Some(SECRET.to_vec()), None, Some(Vec::new())]);
    }
}

#[test]
fn a_topic_without_a_key_fails_alone_where_that_is_refused() {
    let world = World::start(UnresolvedKey::Reject);
    for version in [7, 8, 12, 13] {
        let parts = [(1, 0, &*batch()), (50, 0, &*batch()), (2, 0, &*batch()), (50, 1, &*batch())];
        let response = world.client().call(version, &produce_request(version, -1, &parts));
        assert_eq!(
            outcomes(&response),
            [
                ("topic-1".to_owned(), 0, ErrorCode::None),
                ("topic-2".to_owned(), 0, ErrorCode::None),
                ("topic-50".to_owned(), 0, ErrorCode::InvalidRecord),
                ("topic-50".to_owned(), 1, ErrorCode::InvalidRecord),
            ]
        );
        let partitions = response.responses.iter().flat_map(|topic| &topic.partition_responses);
        let has_message = |it: &PartitionProduceResponse| it.error_message.is_some();
        let messages = partitions.filter(|it| has_message(it)).count();
        assert_eq!(messages, if version >= 8 { 2 } else { 0 });
    }
    assert!(world.store.get(50, 0).is_empty());
    assert!(!has_secret(&world.store.get(1, 0)));
    assert_eq!(world.counter("partitions_not_sealed", &["no_key"]), 8);
}

#[test]
fn a_request_with_nothing_to_send_is_answered_at_once() {
    let world = World::start(UnresolvedKey::Reject);
    let request = produce_request(PRODUCE, -1, &[(50, 3, &batch())]);
    let response = world.client().call(PRODUCE, &request);
    let refused = ("topic-50".to_owned(), 3, ErrorCode::InvalidRecord);
    assert_eq!(outcomes(&response), [refused]);
    assert_eq!(world.store.produce_requests.load(SeqCst), 0);
}

#[test]
fn a_topic_without_a_key_passes_in_clear_where_that_is_wanted() {
    let world = World::start(UnresolvedKey::Passthrough);
    let parts = [(1, 0, &*batch()), (50, 0, &*batch())];
    world.client().call(PRODUCE, &produce_request(PRODUCE, -1, &parts));
    assert_eq!(world.store.get(50, 0), batch());
    assert!(!has_secret(&world.store.get(1, 0)));
    world.client().call(PRODUCE, &produce_request(PRODUCE, -1, &[(51, 0, &*batch())]));
    assert_eq!(world.counter("records_passed_plain", &[]), 6);
    assert_eq!(world.fetch(FETCH, 50, &[0]), [(ErrorCode::None, batch())]);
}

#[test]
fn while_the_service_is_down_only_cold_topics_fail_and_may_be_tried_again() {
    let world = World::start(UnresolvedKey::Passthrough);
    let request = produce_request(PRODUCE, -1, &[(1, 0, &batch())]);
    world.client().call(PRODUCE, &request);
    world.service.down.store(true, SeqCst);
    let parts = [(1, 0, &*batch()), (2, 0, &*batch())];
    let request = produce_request(PRODUCE, -1, &parts);
    let response = world.client().call(PRODUCE, &request);
    assert_eq!(
        outcomes(&response),
        [
            ("topic-1".to_owned(), 0, ErrorCode::None),
            ("topic-2".to_owned(), 0, ErrorCode::KafkaStorageError),
        ]
    );
    assert!(world.store.get(2, 0).is_empty());
    // What was sealed by a key that this process made is yet to be opened for the first time.
    assert_eq!(world.fetch(FETCH, 1, &[0]), [(ErrorCode::KafkaStorageError, Vec::new())]);
    world.service.down.store(false, SeqCst);
    let mut client = world.client();
    while outcomes(&client.call(PRODUCE, &request)).iter().any(|it| it.2 != ErrorCode::None) {}
    while world.fetch(FETCH, 1, &[0]) != [(ErrorCode::None, batch())] {}
}

#[test]
fn keys_of_several_topics_are_asked_for_at_once() {
    let world = World::start(UnresolvedKey::Reject);
    *world.service.together.lock().unwrap() = Some(Arc::new(Barrier::new(3)));
    let parts = [(1, 0, &*batch()), (2, 0, &*batch()), (3, 0, &*batch())];
    let response = world.client().call(PRODUCE, &produce_request(PRODUCE, -1, &parts));
    assert!(outcomes(&response).iter().all(|it| it.2 == ErrorCode::None), "{response:?}");
    for (number, partition) in [(2, 1), (3, 2)] {
        world.store.put(1, partition, &world.store.get(number, 0));
    }
    let opened = (ErrorCode::None, batch());
    assert_eq!(world.fetch(FETCH, 1, &[0, 1, 2]), [opened.clone(), opened.clone(), opened]);
}

type Header = (Vec<u8>, Option<Vec<u8>>);

/// The values and headers of a batch as they are stored.
fn records(bytes: &[u8]) -> Vec<(Option<Vec<u8>>, Vec<Header>)> {
    let mut decompressor = Decompressor::default();
    let batch = BatchView::parse(bytes).unwrap();
    let records = batch.records(&mut decompressor, 1 << 20).unwrap().map(|record| {
        let record = record.unwrap();
        let headers = record.headers().unwrap();
        let headers = headers.map(|it| (it.key.to_vec(), it.value.map(<[u8]>::to_vec)));
        (record.value().map(<[u8]>::to_vec), headers.collect())
    });
    records.collect()
}

/// A compacted topic may hold such batches once its data key was replaced.
#[test]
fn keys_of_one_batch_are_asked_for_at_once() {
    let world = World::start(UnresolvedKey::Reject);
    let parts = [(1, 0, &*batch()), (2, 0, &*batch()), (3, 0, &*batch())];
    world.client().call(PRODUCE, &produce_request(PRODUCE, -1, &parts));
    let mut builder = BatchBuilder::new(BatchOptions::default());
    for number in [1, 2, 3, 1] {
        for (value, headers) in records(&world.store.get(number, 0)) {
            let headers = headers.iter();
            let headers = headers.map(|(key, value)| HeaderView { key, value: value.as_deref() });
            builder.append(1000, None, value.as_deref(), headers).unwrap();
        }
    }
    let mixed = builder.finish(Compression::Zstd, &mut Compressor::default()).unwrap().to_vec();
    world.store.put(1, 1, &mixed);
    *world.service.together.lock().unwrap() = Some(Arc::new(Barrier::new(3)));
    let [(code, opened)] = &world.fetch(FETCH, 1, &[1])[..] else { panic!() };
    assert_eq!((*code, records(opened)), (ErrorCode::None, vec![records(&batch()); 4].concat()));
    assert_eq!(world.counter("kms_calls", &["decrypt_edek", "ok"]), 3);
}

#[test]
fn a_batch_of_more_data_keys_than_any_writer_uses_is_withheld() {
    let world = World::start(UnresolvedKey::Reject);
    let mut builder = BatchBuilder::new(BatchOptions::default());
    let marker = HeaderView { key: moldau_encryption::MARKER_KEY.as_bytes(), value: Some(&[2]) };
    for number in 0..2_000_u16 {
        let edek = number.to_be_bytes();
        let value = [&[0, 2][..], &edek, &[0], &[0; 12], &[0; 17]].concat();
        builder.append(1000, None, Some(&value), [marker]).unwrap();
    }
    let forged = builder.finish(Compression::None, &mut Compressor::default()).unwrap().to_vec();
    world.store.put(1, 0, &forged);
    assert_eq!(world.fetch(FETCH, 1, &[0]), [(ErrorCode::CorruptMessage, Vec::new())]);
    assert_eq!(world.counter("partitions_not_opened", &["damage"]), 1);
}

#[test]
fn a_producer_that_expects_no_answer_is_disconnected_once_the_others_are_sent() {
    let world = World::start(UnresolvedKey::Reject);
    let mut client = world.client();
    let parts = [(1, 0, &*batch()), (50, 0, &*batch())];
    client.send(PRODUCE, &produce_request(PRODUCE, 0, &parts));
    assert!(client.is_closed());
    while world.store.produce_requests.load(SeqCst) == 0 {
        std::thread::yield_now();
    }
    let mut client = world.client();
    client.send(PRODUCE, &produce_request(PRODUCE, 0, &[(50, 0, &batch())]));
    assert!(client.is_closed());
    assert_eq!(world.counter("partitions_not_sealed", &["no_key"]), 2);
    assert!(world.store.get(50, 0).is_empty());
}

#[test]
fn a_topic_id_that_the_cluster_does_not_know_fails_alone() {
    let world = World::start(UnresolvedKey::Reject);
    let parts = [(1, 0, &*batch()), (99, 0, &*batch())];
    let response = world.client().call(13, &produce_request(13, -1, &parts));
    assert_eq!(
        outcomes(&response),
        [
            ("topic-1".to_owned(), 0, ErrorCode::None),
            ("topic-99".to_owned(), 0, ErrorCode::UnknownTopicId),
        ]
    );
}

/// The request grew by each of them, to thousands of times what came, before anyone looked.
#[test]
fn a_partition_that_unpacks_to_more_than_a_request_holds_is_refused_before_it_does() {
    let world = World::start(UnresolvedKey::Reject);
    let mut builder = BatchBuilder::new(BatchOptions::default());
    builder.append(1000, None, Some(&vec![0; 60 << 20]), []).unwrap();
    let packed = builder.finish(Compression::Zstd, &mut Compressor::default()).unwrap().to_vec();
    let parts = [(1, 0, &*packed.repeat(4)), (1, 1, &*batch())];
    let response = world.client().call(PRODUCE, &produce_request(PRODUCE, -1, &parts));
    let codes = outcomes(&response).into_iter().map(|(_, _, code)| code);
    assert_eq!(codes.collect::<Vec<_>>(), [ErrorCode::MessageTooLarge, ErrorCode::None]);
    // Two of them are more than a request holds.
    assert_eq!(world.counter("records_sealed", &[]), 2 + 2);
}

#[test]
fn topics_that_are_named_twice_are_refused_in_one_answer_each() {
    let world = World::start(UnresolvedKey::Reject);
    let topic = |number: usize| TopicProduceData {
        name: format!("topic-{}", 100 + number % 2_000),
        partition_data: vec![PartitionProduceData {
            index: i32::try_from(number / 2_000).unwrap(),
            records: Some(Bytes::from_static(b"?")),
            ..Default::default()
        }],
        ..Default::default()
    };
    let topic_data = (0..4_000).map(topic).collect();
    let request = ProduceRequest { acks: -1, topic_data, ..Default::default() };
    let response = world.client().call(PRODUCE, &request);
    assert_eq!(response.responses.len(), 2_000);
    let of_each = response.responses.iter().map(|topic| topic.partition_responses.len());
    assert!(of_each.into_iter().all(|count| count == 2));
}

/// Each took a data key for itself and left the next batch to wait for another.
#[test]
fn a_count_that_a_batch_cannot_hold_spends_no_data_key() {
    let world = World::start(UnresolvedKey::Reject);
    let mut client = world.client();
    for compression in [Compression::None, Compression::Zstd] {
        let forged = counting_too_many(compression);
        let parts = [(1, 0, &*batch()), (1, 1, &*forged), (1, 2, &*batch())];
        let response = client.call(PRODUCE, &produce_request(PRODUCE, -1, &parts));
        let codes = outcomes(&response).into_iter().map(|(_, _, code)| code);
        let expected = [ErrorCode::None, ErrorCode::InvalidRecord, ErrorCode::None];
        assert_eq!(codes.collect::<Vec<_>>(), expected, "{compression:?}");
    }
    assert_eq!(world.counter("kms_calls", &["generate_data_key", "ok"]), 1);
}

#[test]
fn a_damaged_batch_is_refused_alone() {
    let world = World::start(UnresolvedKey::Reject);
    let mut damaged = batch();
    *damaged.last_mut().unwrap() ^= 1;
    let short = &batch()[..70];
    let parts = [(1, 0, &*damaged), (1, 1, &*batch()), (1, 2, short), (1, 3, b"")];
    let response = world.client().call(PRODUCE, &produce_request(PRODUCE, -1, &parts));
    let codes: Vec<_> = outcomes(&response).into_iter().map(|(_, _, code)| code).collect();
    let (corrupt, invalid) = (ErrorCode::CorruptMessage, ErrorCode::InvalidRecord);
    assert_eq!(codes, [corrupt, ErrorCode::None, invalid, ErrorCode::None]);
}

/// A frame above the limit would cost the client its connection, again and again.
#[test]
fn what_outgrows_a_request_once_it_is_sealed_is_refused_alone() {
    let world = World::start(UnresolvedKey::Reject);
    let mut builder = BatchBuilder::new(BatchOptions::default());
    // Small records grow most: 70 bytes become 210.
    for _ in 0..200_000 {
        builder.append(1000, None, Some(&[7; 60]), []).unwrap();
    }
    let large = builder.finish(Compression::None, &mut Compressor::default()).unwrap();
    let parts = [(1, 0, large), (1, 1, large), (1, 2, large), (1, 3, &*batch())];
    let response = world.client().call(PRODUCE, &produce_request(PRODUCE, -1, &parts));
    let codes: Vec<_> = outcomes(&response).into_iter().map(|(_, _, code)| code).collect();
    let none = ErrorCode::None;
    assert_eq!(codes, [none, none, ErrorCode::MessageTooLarge, none]);
}

/// The default size was the bound, whatever size the operator had set.
#[test]
fn what_outgrows_the_configured_size_of_a_request_is_refused_alone() {
    let limits = Limits { frame_bytes_max: 16 << 10, ..Limits::default() };
    let world = World::start_with(UnresolvedKey::Reject, &limits);
    let mut builder = BatchBuilder::new(BatchOptions::default());
    for _ in 0..100 {
        builder.append(1000, None, Some(&[7; 60]), []).unwrap();
    }
    let large = builder.finish(Compression::None, &mut Compressor::default()).unwrap();
    let parts = [(1, 0, large), (1, 1, &*batch())];
    let response = world.client().call(PRODUCE, &produce_request(PRODUCE, -1, &parts));
    let codes: Vec<_> = outcomes(&response).into_iter().map(|(_, _, code)| code).collect();
    assert_eq!(codes, [ErrorCode::MessageTooLarge, ErrorCode::None]);
}

#[test]
fn records_that_do_not_open_are_withheld_from_there_on() {
    let world = World::start(UnresolvedKey::Reject);
    let parts = [(1, 0, &*batch()), (1, 1, &*batch()), (1, 2, &*batch())];
    world.client().call(PRODUCE, &produce_request(PRODUCE, -1, &parts));
    let sealed = world.store.get(1, 0);
    world.store.put(1, 0, &forged());
    world.store.put(1, 1, &[&*sealed, &forged(), &sealed].concat());
    for version in ApiKey::Fetch.valid_versions().iter() {
        assert_eq!(
            world.fetch(version, 1, &[0, 1, 2]),
            [
                (ErrorCode::CorruptMessage, Vec::new()),
                (ErrorCode::None, batch()),
                (ErrorCode::None, batch()),
            ]
        );
    }
}

#[test]
fn records_of_old_formats_pass() {
    let world = World::start(UnresolvedKey::Reject);
    // Offset, size, CRC, magic 1, attributes, timestamp, null key and value.
    let mut old = vec![0; 8 + 4 + 4 + 1 + 1 + 8];
    (old[11], old[16]) = (22, 1);
    old.extend([0xff; 8]);
    world.store.put(1, 0, &old);
    assert_eq!(world.fetch(4, 1, &[0]), [(ErrorCode::None, old)]);
}

#[test]
fn what_a_revoked_key_sealed_is_refused_and_the_connection_lives() {
    let world = World::start(UnresolvedKey::Reject);
    let request = produce_request(PRODUCE, -1, &[(1, 0, &batch())]);
    world.client().call(PRODUCE, &request);
    world.service.emptied.store(true, SeqCst);
    world.store.put(1, 1, &batch());
    let mut client = world.client();
    for _ in 0..2 {
        let response = client.call(FETCH, &fetch_request(FETCH, 1, &[0, 1]));
        let codes = response.responses[0].partitions.iter().map(|partition| partition.error_code);
        assert_eq!(codes.collect::<Vec<_>>(), [29, 0]);
    }
}

#[test]
fn share_consumers_get_opened_records_and_errors_for_whole_partitions() {
    let world = World::start(UnresolvedKey::Reject);
    world.client().call(PRODUCE, &produce_request(PRODUCE, -1, &[(1, 0, &batch())]));
    let sealed = world.store.get(1, 0);
    world.store.put(1, 1, &[&*sealed, &forged()].concat());
    for version in ApiKey::ShareFetch.valid_versions().iter() {
        let partitions = [0, 1].map(|index| share_fetch_request::FetchPartition {
            partition_index: index,
            ..Default::default()
        });
        let topic = share_fetch_request::FetchTopic {
            topic_id: topic_id(1),
            partitions: partitions.to_vec(),
            ..Default::default()
        };
        let request = ShareFetchRequest { topics: vec![topic], ..Default::default() };
        let response = world.client().call(version, &request);
        let [opened, withheld] = &response.responses[0].partitions[..] else { panic!() };
        assert_eq!((&*opened.records, opened.acquired_records.len()), (&*batch(), 1));
        assert_eq!((withheld.records.len(), withheld.acquired_records.len()), (0, 0));
        assert_eq!(withheld.error_code, i16::from(ErrorCode::CorruptMessage));
    }
}
