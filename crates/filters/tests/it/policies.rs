//! Policies of records, quotas, audit and chaos, between a client and a cluster that keeps one
//! topic.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use moldau_filters::*;
use moldau_protocol::messages::*;
use moldau_protocol::{ErrorCode, Uuid};
use moldau_proxy::{Filter, Proxy, RequestFrame};
use moldau_records::{
    BatchBuilder, BatchOptions, Compression, Compressor, Decompressor, Producer, iter_batches,
};
use serde_json::Value;

use crate::world::{Client, Cluster, body, proxy};

const ORDERS: Uuid = Uuid::from_bytes([1; 16]);

/// A batch of an idempotent producer with a record for each value.
fn batch(values: &[&str]) -> Bytes {
    let producer = Some(Producer { id: 7, epoch: 0, base_sequence: 40 });
    let mut builder = BatchBuilder::new(BatchOptions { producer, ..BatchOptions::default() });
    for value in values {
        builder.append(5, None, Some(value.as_bytes()), []).unwrap();
    }
    builder.finish_bytes(Compression::Zstd, &mut Compressor::default()).unwrap()
}

/// The values and the number of headers of all records.
fn records(of: &Bytes) -> Vec<(String, usize)> {
    let mut records = Vec::new();
    for batch in iter_batches(of) {
        let batch = batch.unwrap();
        batch.check_crc().unwrap();
        assert_eq!((batch.producer_id(), batch.base_sequence()), (7, 40));
        let mut decompressor = Decompressor::default();
        for record in batch.records(&mut decompressor, 1 << 20).unwrap() {
            let record = record.unwrap();
            let value = String::from_utf8(record.value().unwrap().to_vec()).unwrap();
            records.push((value, record.headers_count()));
        }
    }
    records
}

/// What was produced to the partitions of the topic.
type Log = Arc<Mutex<Vec<(i32, Bytes)>>>;

fn metadata(request: &MetadataRequest) -> MetadataResponse {
    let asked = request.topics.iter().flatten();
    let topics = asked.map(|topic| metadata_response::MetadataResponseTopic {
        name: (topic.topic_id == ORDERS).then(|| "orders".to_owned()),
        topic_id: topic.topic_id,
        error_code: match topic.topic_id {
            ORDERS => 0,
            _ => ErrorCode::UnknownTopicId.into(),
        },
        ..Default::default()
    });
    MetadataResponse { topics: topics.collect(), ..Default::default() }
}

fn produced(request: ProduceRequest, log: &Log) -> ProduceResponse {
    let partition = |of: produce_request::PartitionProduceData| {
        let mut log = log.lock().unwrap();
        log.push((of.index, of.records.unwrap()));
        produce_response::PartitionProduceResponse {
            index: of.index,
            base_offset: 42,
            ..Default::default()
        }
    };
    let topic = |of: produce_request::TopicProduceData| produce_response::TopicProduceResponse {
        name: of.name,
        topic_id: of.topic_id,
        partition_responses: of.partition_data.into_iter().map(partition).collect(),
        ..Default::default()
    };
    let responses = request.topic_data.into_iter().map(topic).collect();
    ProduceResponse { responses, ..Default::default() }
}

fn fetched(request: FetchRequest, log: &Log) -> FetchResponse {
    let topic = |of: fetch_request::FetchTopic| {
        let partition = |(index, records): &(i32, Bytes)| fetch_response::PartitionData {
            partition_index: *index,
            records: Some(records.clone()),
            ..Default::default()
        };
        fetch_response::FetchableTopicResponse {
            topic: of.topic,
            topic_id: of.topic_id,
            partitions: log.lock().unwrap().iter().map(partition).collect(),
            ..Default::default()
        }
    };
    let responses = request.topics.into_iter().map(topic).collect();
    FetchResponse { responses, ..Default::default() }
}

/// A cluster that keeps what it is sent, and a proxy with these filters before it.
fn world(filters: Vec<Arc<dyn Filter>>) -> (Proxy, Log) {
    let log = Log::default();
    let kept = Arc::clone(&log);
    let cluster = Cluster::start(move |request: &RequestFrame| {
        let version = request.api_version();
        match request.api_key() {
            ApiKey::Metadata => body(version, &metadata(&request.decode().unwrap())),
            ApiKey::Produce => body(version, &produced(request.decode().unwrap(), &kept)),
            ApiKey::Fetch => body(version, &fetched(request.decode().unwrap(), &kept)),
            ApiKey::DeleteGroups => body(version, &DeleteGroupsResponse::default()),
            api => panic!("{api}"),
        }
    });
    (proxy(cluster.address, vec![("main", filters)]), log)
}

/// A request for partitions of the topic, by name or by id.
fn produce(version: i16, partitions: &[&Bytes]) -> ProduceRequest {
    let partition_data = partitions.iter().zip(0..).map(|(records, index)| {
        let records = Some(Bytes::clone(records));
        produce_request::PartitionProduceData { index, records, ..Default::default() }
    });
    let topic = produce_request::TopicProduceData {
        name: if version < 13 { "orders".to_owned() } else { String::new() },
        topic_id: if version < 13 { Uuid::ZERO } else { ORDERS },
        partition_data: partition_data.collect(),
        ..Default::default()
    };
    ProduceRequest { acks: -1, topic_data: vec![topic], ..Default::default() }
}

fn fetch(version: i16) -> FetchRequest {
    let topic = fetch_request::FetchTopic {
        topic: if version < 13 { "orders".to_owned() } else { String::new() },
        topic_id: if version < 13 { Uuid::ZERO } else { ORDERS },
        ..Default::default()
    };
    FetchRequest { topics: vec![topic], ..Default::default() }
}

fn orders() -> Vec<String> {
    vec!["orders".to_owned()]
}

#[test]
fn records_are_validated_marked_and_masked_in_every_version() {
    let json = FieldRule { content: Content::Json { unique_keys: true }, ..FieldRule::default() };
    let validation = RecordValidation::new(RecordValidationSettings {
        rules: vec![ValidationRule { topics: orders(), value: json, ..ValidationRule::default() }],
    });
    let header = Header::new(HeaderSettings {
        rules: vec![HeaderRule {
            topics: orders(),
            on: HeaderWay::Produce,
            remove: Vec::new(),
            add: vec![("from".to_owned(), HeaderValue::ClientId)],
        }],
    });
    let mask = Mask::new(MaskSettings {
        rules: vec![MaskRule {
            topics: orders(),
            fields: vec!["$.iban".to_owned()],
            masking: Masking::Last(2),
            not_json: NotJson::Error,
            exempt_principals: Vec::new(),
        }],
        hash_key: None,
    });
    let (proxy, log) = world(vec![
        Arc::new(validation.unwrap()),
        Arc::new(header.unwrap()),
        Arc::new(mask.unwrap()),
    ]);
    let (good, bad) = (batch(&[r#"{"iban":"DE89"}"#, "1"]), batch(&["1", "{", "2"]));
    for version in ApiKey::Produce.valid_versions().iter() {
        log.lock().unwrap().clear();
        let mut client = Client::connect(&proxy, 0);
        let answer = client.call(version, &produce(version, &[&bad, &good]));
        let [topic] = &answer.responses[..] else { panic!("{answer:?}") };
        let told: Vec<_> = topic
            .partition_responses
            .iter()
            .map(|it| (it.index, it.error_code, it.base_offset))
            .collect();
        assert_eq!(told, [(0, ErrorCode::InvalidRecord.into(), -1), (1, 0, 42)]);
        if version >= 8 {
            let errors = &topic.partition_responses[0].record_errors;
            assert_eq!(errors.iter().map(|it| it.batch_index).collect::<Vec<_>>(), [1]);
        }
        let kept = log.lock().unwrap().clone();
        let [(1, kept)] = &kept[..] else { panic!("{kept:?}") };
        assert_eq!(records(kept), [(r#"{"iban":"DE89"}"#.to_owned(), 1), ("1".to_owned(), 1)]);
    }
    for version in ApiKey::Fetch.valid_versions().iter() {
        let answer = Client::connect(&proxy, 0).call(version, &fetch(version));
        let partition = &answer.responses[0].partitions[0];
        assert_eq!(partition.error_code, 0, "version {version}");
        let masked = records(partition.records.as_ref().unwrap());
        assert_eq!(masked, [(r#"{"iban":"DE**"}"#.to_owned(), 1), ("1".to_owned(), 1)]);
    }
}

#[test]
fn a_topic_id_that_the_cluster_does_not_know_is_refused() {
    let add = vec![("x".to_owned(), HeaderValue::Principal)];
    let rule = HeaderRule { topics: orders(), on: HeaderWay::Produce, remove: Vec::new(), add };
    let header = Header::new(HeaderSettings { rules: vec![rule] }).unwrap();
    let (proxy, log) = world(vec![Arc::new(header)]);
    let mut request = produce(13, &[&batch(&["1"])]);
    request.topic_data[0].topic_id = Uuid::from_bytes([9; 16]);
    let answer = Client::connect(&proxy, 0).call(13, &request);
    let partition = &answer.responses[0].partition_responses[0];
    assert_eq!(partition.error_code, i16::from(ErrorCode::UnknownTopicId));
    assert!(log.lock().unwrap().is_empty());
}

#[test]
fn a_passed_limit_throttles_and_others_go_on() {
    let limit = |entity, bytes| QuotaLimit {
        entity,
        produce_bytes_per_second: Some(bytes),
        fetch_bytes_per_second: None,
        requests_per_second: None,
    };
    let limits = vec![
        limit(QuotaEntity::Topic(Some("orders".to_owned())), 1),
        limit(QuotaEntity::ClientId(None), u64::MAX),
    ];
    let burst = Duration::from_secs(1);
    let quota = Quota::new(&QuotaSettings { limits, burst }).unwrap();
    let (proxy, log) = world(vec![Arc::new(quota)]);
    for version in [3, 8, 9, 12, 13] {
        let answer = Client::connect(&proxy, 0).call(version, &produce(version, &[&batch(&["1"])]));
        assert_eq!(u128::try_from(answer.throttle_time_ms).unwrap(), THROTTLE_MAX.as_millis());
    }
    assert_eq!(log.lock().unwrap().len(), 5);
    // A held client does not hold up others.
    let answer = Client::connect(&proxy, 0).call(12, &fetch(12));
    assert_eq!((answer.throttle_time_ms, answer.responses[0].partitions.len()), (0, 5));
}

#[test]
fn the_audit_sees_answers_of_other_filters() {
    let (sink, mut lines) = tokio::sync::mpsc::channel(99);
    let settings = AuditSettings {
        apis: AUDITED_APIS.to_vec(),
        summary_interval: Duration::ZERO,
        when_full: WhenFull::Drop,
    };
    let error = ChaosRule {
        apis: vec![ApiKey::DeleteGroups, ApiKey::Produce],
        topics: Vec::new(),
        principals: Vec::new(),
        probability: 1.0,
        fault: ChaosFault::Error(ErrorCode::KafkaStorageError),
    };
    let chaos = Chaos::new(ChaosSettings { seed: 1, rules: vec![error] }).unwrap();
    let (proxy, log) = world(vec![Arc::new(Audit::new(settings, sink)), Arc::new(chaos)]);
    let mut client = Client::connect(&proxy, 0);
    client
        .call(2, &DeleteGroupsRequest { groups_names: vec!["g".to_owned()], ..Default::default() });
    for _ in 0..2 {
        let answer = client.call(13, &produce(13, &[&batch(&["1"])]));
        let code = answer.responses[0].partition_responses[0].error_code;
        assert_eq!(code, i16::from(ErrorCode::KafkaStorageError));
    }
    assert!(log.lock().unwrap().is_empty());
    let mut told = || serde_json::from_slice::<Value>(&lines.blocking_recv().unwrap()).unwrap();
    let deleted = told();
    assert_eq!(
        (&deleted["api"], &deleted["principal"]),
        (&"DeleteGroups".into(), &"User:ANONYMOUS".into())
    );
    assert_eq!(deleted["resources"][0]["group"], "g");
    let first = told();
    assert_eq!((&first["event"], &first["topic"]), (&"first_use".into(), &"orders".into()));
    let sum = told();
    assert_eq!((&sum["event"], &sum["messages"]), (&"summary".into(), &1.into()));
    assert_eq!(sum["codes"]["KAFKA_STORAGE_ERROR"], 1);
    drop(client);
    // The end of the session sums up what is left.
    assert_eq!(told()["event"], "summary");
}

#[test]
fn chaos_disconnects() {
    let rule = ChaosRule {
        apis: vec![ApiKey::Produce],
        topics: orders(),
        principals: Vec::new(),
        probability: 1.0,
        fault: ChaosFault::Disconnect,
    };
    let chaos = Chaos::new(ChaosSettings { seed: 1, rules: vec![rule] }).unwrap();
    let (proxy, log) = world(vec![Arc::new(chaos)]);
    for version in [12, 13] {
        let mut client = Client::connect(&proxy, 0);
        client.call(12, &fetch(12));
        client.send(version, &produce(version, &[&batch(&["1"])]));
        assert!(client.is_closed());
    }
    assert!(log.lock().unwrap().is_empty());
}
