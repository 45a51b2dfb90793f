//! Transactions against a broker that writes down what it is asked, and is busy for a moment after
//! each of them.

use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::BytesMut;
use moldau_client::{
    Cluster, ClusterOptions, CommittedOffset, Delivery, DeliverySink, Error, GroupMetadata,
    Producer, ProducerOptions, Record, TopicPartition,
};
use moldau_net::{ConnectionLimits, NetworkThreads, Reply, Response, Service};
use moldau_protocol::frame::{RequestHeader, encode_response};
use moldau_protocol::messages::add_partitions_to_txn_response::{
    AddPartitionsToTxnPartitionResult, AddPartitionsToTxnTopicResult,
};
use moldau_protocol::messages::find_coordinator_response::Coordinator;
use moldau_protocol::messages::metadata_response::{
    MetadataResponseBroker, MetadataResponsePartition, MetadataResponseTopic,
};
use moldau_protocol::messages::produce_request::{PartitionProduceData, TopicProduceData};
use moldau_protocol::messages::produce_response::{PartitionProduceResponse, TopicProduceResponse};
use moldau_protocol::messages::txn_offset_commit_response::{
    TxnOffsetCommitResponsePartition, TxnOffsetCommitResponseTopic,
};
use moldau_protocol::messages::{
    AddOffsetsToTxnRequest, AddOffsetsToTxnResponse, AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse, EndTxnRequest, EndTxnResponse, FindCoordinatorRequest,
    FindCoordinatorResponse, InitProducerIdRequest, InitProducerIdResponse, MetadataRequest,
    MetadataResponse, ProduceRequest, ProduceResponse, TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
};
use moldau_protocol::{ApiKey, ErrorCode, Message, Reader};
use moldau_records::BatchView;

use crate::fake;

/// What the broker was asked, in order.
type Asked = Arc<Mutex<Vec<String>>>;

#[derive(Clone)]
struct Broker {
    address: SocketAddr,
    asked: Asked,
    /// What it says of every batch.
    produce_code: ErrorCode,
}

impl Broker {
    fn start(produce_code: ErrorCode) -> (Self, NetworkThreads) {
        let make = |address| Self { address, asked: Asked::default(), produce_code };
        fake::start(make, ConnectionLimits::default().in_flight_requests_max)
    }

    fn note(&self, asked: String) {
        self.asked.lock().unwrap().push(asked);
    }

    fn has_heard(&self, asked: &str) -> bool {
        self.asked.lock().unwrap().iter().any(|it| it == asked)
    }

    fn metadata(&self, request: MetadataRequest) -> MetadataResponse {
        let partition = |partition_index| MetadataResponsePartition {
            partition_index,
            leader_id: 1,
            ..Default::default()
        };
        let topic = |name| MetadataResponseTopic {
            name,
            partitions: vec![partition(0), partition(1)],
            ..Default::default()
        };
        let names = request.topics.into_iter().flatten().map(|asked| asked.name);
        let (host, port) = (self.address.ip().to_string(), self.address.port().into());
        MetadataResponse {
            brokers: vec![MetadataResponseBroker { node_id: 1, host, port, ..Default::default() }],
            topics: names.map(topic).collect(),
            ..Default::default()
        }
    }

    fn find_coordinator(&self, request: &FindCoordinatorRequest) -> FindCoordinatorResponse {
        let [key] = request.coordinator_keys.as_slice() else { panic!("{request:?}") };
        assert!([(1, "mine"), (0, "workers")].contains(&(request.key_type, key.as_str())));
        let coordinator = Coordinator {
            key: key.clone(),
            node_id: 1,
            host: self.address.ip().to_string(),
            port: self.address.port().into(),
            ..Default::default()
        };
        FindCoordinatorResponse { coordinators: vec![coordinator], ..Default::default() }
    }

    /// The first time after a transaction, the one before is still being ended.
    fn add_partitions(&self, request: &AddPartitionsToTxnRequest) -> AddPartitionsToTxnResponse {
        let busy = "busy".to_owned();
        let is_busy = self.asked.lock().unwrap().last().is_some_and(|it| it.starts_with("end"));
        let code = if is_busy { ErrorCode::ConcurrentTransactions } else { ErrorCode::None };
        let [topic] = request.v3_and_below_topics.as_slice() else { panic!("{request:?}") };
        let added = format!("add {} {:?}", topic.name, topic.partitions);
        self.note(if is_busy { busy } else { added });
        let result = |index: &i32| AddPartitionsToTxnPartitionResult {
            partition_index: *index,
            partition_error_code: code.code(),
            ..Default::default()
        };
        let topic = AddPartitionsToTxnTopicResult {
            name: topic.name.clone(),
            results_by_partition: topic.partitions.iter().map(result).collect(),
            ..Default::default()
        };
        let results_by_topic_v3_and_below = vec![topic];
        AddPartitionsToTxnResponse { results_by_topic_v3_and_below, ..Default::default() }
    }

    fn produce(&self, request: ProduceRequest) -> ProduceResponse {
        assert_eq!(request.transactional_id.as_deref(), Some("mine"));
        let topic = |topic: TopicProduceData| {
            let partition = |partition: &PartitionProduceData| {
                let bytes = partition.records.clone().unwrap();
                let batch = BatchView::parse(&bytes).unwrap();
                assert!(batch.is_transactional() && batch.producer_id() == 7);
                self.note(format!("{} records for {}", batch.records_count(), partition.index));
                PartitionProduceResponse {
                    index: partition.index,
                    error_code: self.produce_code.code(),
                    ..Default::default()
                }
            };
            let partition_responses = topic.partition_data.iter().map(partition).collect();
            TopicProduceResponse { name: topic.name, partition_responses, ..Default::default() }
        };
        let responses = request.topic_data.into_iter().map(topic).collect();
        ProduceResponse { responses, ..Default::default() }
    }
}

/// One partition of one topic, of which it says this.
fn offsets_answer(request: &TxnOffsetCommitRequest, code: ErrorCode) -> TxnOffsetCommitResponse {
    let [topic] = request.topics.as_slice() else { panic!("{request:?}") };
    let [partition] = topic.partitions.as_slice() else { panic!("{request:?}") };
    let partition = TxnOffsetCommitResponsePartition {
        partition_index: partition.partition_index,
        error_code: code.code(),
        ..Default::default()
    };
    let topic = TxnOffsetCommitResponseTopic {
        name: topic.name.clone(),
        partitions: vec![partition],
        ..Default::default()
    };
    TxnOffsetCommitResponse { topics: vec![topic], ..Default::default() }
}

const APIS: [(ApiKey, i16); 9] = [
    (ApiKey::ApiVersions, 4),
    (ApiKey::Metadata, 9),
    (ApiKey::FindCoordinator, 4),
    (ApiKey::InitProducerId, 5),
    (ApiKey::AddPartitionsToTxn, 5),
    (ApiKey::EndTxn, 5),
    (ApiKey::Produce, 12),
    (ApiKey::AddOffsetsToTxn, 4),
    (ApiKey::TxnOffsetCommit, 5),
];

impl Service for Broker {
    type Future = Pin<Box<dyn Future<Output = Response>>>;

    fn call(&mut self, frame: &[u8]) -> Reply<Self::Future> {
        let (header, body) = RequestHeader::parse(frame).unwrap();
        let RequestHeader { api_key: key, api_version: version, correlation_id: id, .. } = header;
        let (mut body, mut out) = (Reader::new(body), BytesMut::new());
        match key {
            ApiKey::ApiVersions => {
                encode_response(&mut out, key, version, id, &fake::api_versions(&APIS))
            }
            ApiKey::Metadata => {
                let request = MetadataRequest::decode(&mut body, version).unwrap();
                encode_response(&mut out, key, version, id, &self.metadata(request))
            }
            ApiKey::FindCoordinator => {
                let request = FindCoordinatorRequest::decode(&mut body, version).unwrap();
                encode_response(&mut out, key, version, id, &self.find_coordinator(&request))
            }
            ApiKey::InitProducerId => {
                let request = InitProducerIdRequest::decode(&mut body, version).unwrap();
                let InitProducerIdRequest { producer_id, producer_epoch, .. } = request;
                let whose = request.transactional_id;
                self.note(format!("init {whose:?} of {producer_id}, {producer_epoch}"));
                let answer = InitProducerIdResponse {
                    producer_id: 7,
                    producer_epoch: producer_epoch + 1,
                    ..Default::default()
                };
                encode_response(&mut out, key, version, id, &answer)
            }
            ApiKey::AddPartitionsToTxn => {
                let request = AddPartitionsToTxnRequest::decode(&mut body, version).unwrap();
                encode_response(&mut out, key, version, id, &self.add_partitions(&request))
            }
            ApiKey::Produce => {
                let request = ProduceRequest::decode(&mut body, version).unwrap();
                assert!(version <= 11, "later versions add partitions by themselves");
                encode_response(&mut out, key, version, id, &self.produce(request))
            }
            ApiKey::EndTxn => {
                let request = EndTxnRequest::decode(&mut body, version).unwrap();
                self.note(format!("end {}", request.committed));
                encode_response(&mut out, key, version, id, &EndTxnResponse::default())
            }
            ApiKey::AddOffsetsToTxn => {
                let request = AddOffsetsToTxnRequest::decode(&mut body, version).unwrap();
                self.note(format!("add group {}", request.group_id));
                encode_response(&mut out, key, version, id, &AddOffsetsToTxnResponse::default())
            }
            ApiKey::TxnOffsetCommit => {
                assert!(version <= 4, "later versions add groups by themselves");
                let request = TxnOffsetCommitRequest::decode(&mut body, version).unwrap();
                let generation = request.generation_id_or_member_epoch;
                self.note(format!("offsets of {}, {generation}", request.member_id));
                let is_known = request.member_id == "member";
                let code = if is_known { ErrorCode::None } else { ErrorCode::UnknownMemberId };
                encode_response(&mut out, key, version, id, &offsets_answer(&request, code))
            }
            other => panic!("{other:?}"),
        }
        .unwrap();
        Reply::Ready(out.freeze().into())
    }
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.unwrap().block_on(future)
}

async fn producer(broker: &Broker) -> Producer {
    producer_that_tells(broker, |_: &Delivery<'_>| {}).await
}

async fn producer_that_tells(broker: &Broker, sink: impl DeliverySink) -> Producer {
    let address = broker.address.to_string();
    let cluster = Cluster::connect(&[address], ClusterOptions::default()).await.unwrap();
    let transactional_id = Some("mine".to_owned());
    let options = ProducerOptions { transactional_id, ..ProducerOptions::default() };
    Producer::start(&cluster, options, sink).await.unwrap()
}

fn record() -> Record<'static> {
    Record { token: 1, timestamp: 1, key: None, value: Some(b"value"), headers: &[] }
}

#[test]
fn topics_that_are_loaded_together_are_asked_for_once() {
    let (broker, _network) = Broker::start(ErrorCode::None);
    block_on(async {
        let address = broker.address.to_string();
        let cluster = Cluster::connect(&[address], ClusterOptions::default()).await.unwrap();
        let before = cluster.metadata().generation;
        cluster.load_topics(["a", "b", "c"]).await.unwrap();
        for name in ["a", "b", "c"] {
            cluster.topic(name).await.unwrap();
        }
        assert_eq!(cluster.metadata().generation, before + 1);
    });
}

#[test]
fn records_are_sent_once_their_partitions_are_added_and_before_the_end() {
    let (broker, _network) = Broker::start(ErrorCode::None);
    block_on(commits_then_aborts(&broker));
    let expected = [
        "init Some(\"mine\") of -1, -1",
        "add t [0, 1]",
        "2 records for 0",
        "end true",
        "busy",
        "add t [1]",
        "1 records for 1",
        "end false",
    ];
    assert_eq!(*broker.asked.lock().unwrap(), expected);
}

async fn commits_then_aborts(broker: &Broker) {
    let producer = producer(broker).await;
    let first = producer.partition("t", 0).await.unwrap();
    let second = producer.partition("t", 1).await.unwrap();
    assert!(matches!(producer.send(first, &record()), Err(Error::NoTransaction)));
    assert!(matches!(producer.commit_transaction().await, Err(Error::NoTransaction)));

    producer.begin_transaction(&[first, second]).await.unwrap();
    assert!(matches!(producer.begin_transaction(&[first]).await, Err(Error::NoTransaction)));
    producer.send(first, &record()).unwrap();
    producer.send(first, &record()).unwrap();
    producer.commit_transaction().await.unwrap();
    assert!(matches!(producer.send(first, &record()), Err(Error::NoTransaction)));

    producer.begin_transaction(&[second]).await.unwrap();
    producer.send(second, &record()).unwrap();
    producer.abort_transaction().await.unwrap();
}

#[test]
fn a_transaction_with_a_batch_that_failed_can_only_be_aborted() {
    let (broker, _network) = Broker::start(ErrorCode::InvalidTxnState);
    block_on(async {
        let producer = producer(&broker).await;
        let partition = producer.partition("t", 0).await.unwrap();
        producer.begin_transaction(&[partition]).await.unwrap();
        producer.send(partition, &record()).unwrap();
        assert!(matches!(producer.commit_transaction().await, Err(Error::NoTransaction)));
        assert!(!broker.has_heard("end true"));
        producer.abort_transaction().await.unwrap();
        assert!(broker.has_heard("end false"));
    });
}

/// A fresh epoch ends what is open at the coordinator, and a commit would keep what came after it.
#[test]
fn a_sequence_that_is_lost_costs_the_transaction_and_the_epoch_behind_it() {
    let (broker, _network) = Broker::start(ErrorCode::OutOfOrderSequenceNumber);
    block_on(async {
        let (sender, mut outcomes) = tokio::sync::mpsc::unbounded_channel();
        let tell = move |delivery: &Delivery<'_>| sender.send(delivery.error.is_none()).unwrap();
        let producer = producer_that_tells(&broker, tell).await;
        let partition = producer.partition("t", 0).await.unwrap();
        for _ in 0..2 {
            producer.begin_transaction(&[partition]).await.unwrap();
            producer.send(partition, &record()).unwrap();
            // Nothing but its own linger sends it.
            let told = tokio::time::timeout(Duration::from_secs(20), outcomes.recv());
            assert_eq!(told.await, Ok(Some(false)));
            assert!(matches!(producer.commit_transaction().await, Err(Error::NoTransaction)));
            producer.abort_transaction().await.unwrap();
        }
    });
    let transaction = ["add t [0]", "1 records for 0", "end false"];
    let mut expected = vec!["init Some(\"mine\") of -1, -1"];
    expected.extend(transaction);
    expected.push("init Some(\"mine\") of 7, 0");
    expected.extend(transaction);
    expected.push("init Some(\"mine\") of 7, 1");
    assert_eq!(*broker.asked.lock().unwrap(), expected);
}

#[test]
fn a_group_is_added_before_its_offsets_and_a_refusal_of_them_ends_in_an_abort() {
    let (broker, _network) = Broker::start(ErrorCode::None);
    block_on(async {
        let producer = producer(&broker).await;
        let mut member = GroupMetadata {
            group: "workers".into(),
            member_id: "member".to_owned(),
            epoch: 3,
            instance_id: None,
        };
        let offsets = [(TopicPartition::of("t", 0), CommittedOffset::at(5))];
        let outside = producer.send_offsets_to_transaction(&member, &offsets).await;
        assert!(matches!(outside, Err(Error::NoTransaction)));

        producer.begin_transaction(&[]).await.unwrap();
        producer.send_offsets_to_transaction(&member, &offsets).await.unwrap();
        producer.commit_transaction().await.unwrap();

        member.member_id = "zombie".to_owned();
        producer.begin_transaction(&[]).await.unwrap();
        let refused = producer.send_offsets_to_transaction(&member, &offsets).await;
        assert!(refused.unwrap_err().is_left_behind());
        assert!(matches!(producer.commit_transaction().await, Err(Error::NoTransaction)));
        producer.abort_transaction().await.unwrap();

        // There is nothing to end.
        producer.begin_transaction(&[]).await.unwrap();
        producer.commit_transaction().await.unwrap();
    });
    let expected = [
        "init Some(\"mine\") of -1, -1",
        "add group workers",
        "offsets of member, 3",
        "end true",
        "add group workers",
        "offsets of zombie, 3",
        "end false",
    ];
    assert_eq!(*broker.asked.lock().unwrap(), expected);
}
