//! A broker that keeps what is produced and gives it back, and a key service with a switch.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use moldau_encryption::{
    DataKey, DataKeys, Edek, KekId, KekTemplate, KeySettings, Kms, KmsError, KmsFuture, MemoryKek,
    MemoryKms, WrappedDataKey,
};
use moldau_filters::{
    OnDamage, Recompression, RecordEncryption, RecordEncryptionSettings, UnresolvedKey,
};
use moldau_protocol::messages::fetch_request::FetchTopic;
use moldau_protocol::messages::metadata_response::MetadataResponseTopic;
use moldau_protocol::messages::produce_request::TopicProduceData;
use moldau_protocol::messages::{
    ApiKey, FetchRequest, FetchResponse, MetadataRequest, MetadataResponse, ProduceRequest,
    ProduceResponse, ShareFetchRequest, ShareFetchResponse, fetch_response, produce_response,
    share_fetch_response,
};
use moldau_protocol::{ErrorCode, Uuid};
use moldau_proxy::RequestFrame;

use tokio::sync::Barrier;

use crate::world::{Cluster, body};

/// Topics have ids of one repeated byte; the cluster knows those below this one.
const UNKNOWN_ID: u8 = 90;

/// The id of the topic `topic-<number>`.
pub(super) fn topic_id(number: u8) -> Uuid {
    Uuid::from_bytes([number; 16])
}

fn name_of(id: Uuid) -> String {
    format!("topic-{}", id.as_bytes()[0])
}

/// Records of a broker, by topic and partition.
#[derive(Default)]
pub(super) struct Store {
    pub(super) records: Mutex<BTreeMap<(String, i32), Vec<u8>>>,
    pub(super) produce_requests: AtomicUsize,
    pub(super) metadata_requests: AtomicUsize,
}

impl Store {
    pub(super) fn serve(self: &Arc<Self>) -> Cluster {
        let store = Arc::clone(self);
        Cluster::start(move |request| match request.api_key() {
            ApiKey::Produce => store.produce(request),
            ApiKey::Fetch => store.fetch(request),
            ApiKey::ShareFetch => store.share_fetch(request),
            ApiKey::Metadata => store.metadata(request),
            other => panic!("{other} is not scripted"),
        })
    }

    /// The records of a partition of `topic-<number>`.
    pub(super) fn get(&self, number: u8, partition: i32) -> Vec<u8> {
        let records = self.records.lock().unwrap();
        records.get(&(name_of(topic_id(number)), partition)).cloned().unwrap_or_default()
    }

    pub(super) fn put(&self, number: u8, partition: i32, bytes: &[u8]) {
        let key = (name_of(topic_id(number)), partition);
        self.records.lock().unwrap().insert(key, bytes.to_vec());
    }

    fn produce(&self, request: &RequestFrame) -> Vec<u8> {
        self.produce_requests.fetch_add(1, Ordering::SeqCst);
        let produced: ProduceRequest = request.decode().unwrap();
        let mut responses = Vec::new();
        for TopicProduceData { name, topic_id, partition_data, .. } in produced.topic_data {
            let of = if name.is_empty() { name_of(topic_id) } else { name.clone() };
            let mut partition_responses = Vec::new();
            for data in partition_data {
                let records = data.records.unwrap_or_default().to_vec();
                self.records.lock().unwrap().insert((of.clone(), data.index), records);
                partition_responses.push(produce_response::PartitionProduceResponse {
                    index: data.index,
                    ..Default::default()
                });
            }
            responses.push(produce_response::TopicProduceResponse {
                name,
                topic_id,
                partition_responses,
                ..Default::default()
            });
        }
        body(request.api_version(), &ProduceResponse { responses, ..Default::default() })
    }

    fn fetch(&self, request: &RequestFrame) -> Vec<u8> {
        let asked: FetchRequest = request.decode().unwrap();
        let topics =
            asked.topics.into_iter().map(|FetchTopic { topic, topic_id, partitions, .. }| {
                let of = if topic.is_empty() { name_of(topic_id) } else { topic.clone() };
                let partitions = partitions.iter().map(|partition| fetch_response::PartitionData {
                    partition_index: partition.partition,
                    high_watermark: 100,
                    last_stable_offset: 100,
                    aborted_transactions: Some(Vec::new()),
                    records: Some(self.of(&of, partition.partition).into()),
                    ..Default::default()
                });
                fetch_response::FetchableTopicResponse {
                    topic,
                    topic_id,
                    partitions: partitions.collect(),
                    ..Default::default()
                }
            });
        let responses = topics.collect();
        body(request.api_version(), &FetchResponse { responses, ..Default::default() })
    }

    fn share_fetch(&self, request: &RequestFrame) -> Vec<u8> {
        let asked: ShareFetchRequest = request.decode().unwrap();
        let topics = asked.topics.iter().map(|topic| {
            let partitions = topic.partitions.iter().map(|partition| {
                let index = partition.partition_index;
                let acquired =
                    share_fetch_response::AcquiredRecords { last_offset: 2, ..Default::default() };
                share_fetch_response::PartitionData {
                    partition_index: index,
                    records: self.of(&name_of(topic.topic_id), index).into(),
                    acquired_records: vec![acquired],
                    ..Default::default()
                }
            });
            share_fetch_response::ShareFetchableTopicResponse {
                topic_id: topic.topic_id,
                partitions: partitions.collect(),
                ..Default::default()
            }
        });
        let responses = topics.collect();
        body(request.api_version(), &ShareFetchResponse { responses, ..Default::default() })
    }

    fn metadata(&self, request: &RequestFrame) -> Vec<u8> {
        self.metadata_requests.fetch_add(1, Ordering::SeqCst);
        let asked: MetadataRequest = request.decode().unwrap();
        let topics = asked.topics.into_iter().flatten().map(|asked| {
            let known = asked.topic_id < topic_id(UNKNOWN_ID);
            let code = if known { ErrorCode::None } else { ErrorCode::UnknownTopicId };
            MetadataResponseTopic {
                error_code: code.into(),
                name: known.then(|| name_of(asked.topic_id)),
                topic_id: asked.topic_id,
                ..Default::default()
            }
        });
        let topics = topics.collect();
        body(request.api_version(), &MetadataResponse { topics, ..Default::default() })
    }

    fn of(&self, topic: &str, partition: i32) -> Vec<u8> {
        let records = self.records.lock().unwrap();
        records.get(&(topic.to_owned(), partition)).cloned().unwrap_or_default()
    }
}

/// A key service in memory that can be out of reach. It has keys for `topic-1` to `topic-9`.
pub(super) struct Service {
    keys: MemoryKms,
    pub(super) down: AtomicBool,
    /// Nothing is known any more.
    pub(super) emptied: AtomicBool,
    /// How many calls wait for one another before any of them is answered.
    pub(super) together: Mutex<Option<Arc<Barrier>>>,
}

impl Service {
    pub(super) fn start() -> Arc<Self> {
        let keks = (1..10_u8).map(|number| {
            let uuid = format!("00112233-4455-6677-8899-aabbccddee{number:02x}");
            // 32 bytes in base64.
            let key = format!("{number}{}=", "A".repeat(42));
            MemoryKek::parse(&uuid, &key.into(), &format!("KEK_topic-{number}")).unwrap()
        });
        let keys = MemoryKms::new(keks.collect());
        Arc::new(Self {
            keys,
            down: AtomicBool::default(),
            emptied: AtomicBool::default(),
            together: Mutex::default(),
        })
    }

    async fn check(&self) -> Result<(), KmsError> {
        let together = self.together.lock().unwrap().clone();
        if let Some(barrier) = together {
            barrier.wait().await;
        }
        if self.down.load(Ordering::SeqCst) {
            return Err(KmsError::Unavailable("switched off".to_owned()));
        }
        if self.emptied.load(Ordering::SeqCst) {
            return Err(KmsError::UnknownKey("any".to_owned()));
        }
        Ok(())
    }
}

impl Kms for Service {
    fn resolve_alias<'a>(&'a self, alias: &'a str) -> KmsFuture<'a, KekId> {
        Box::pin(async move {
            self.check().await?;
            self.keys.resolve_alias(alias).await
        })
    }

    fn generate_data_key<'a>(&'a self, kek: &'a KekId) -> KmsFuture<'a, WrappedDataKey> {
        Box::pin(async move {
            self.check().await?;
            self.keys.generate_data_key(kek).await
        })
    }

    fn decrypt_edek<'a>(&'a self, edek: &'a Edek) -> KmsFuture<'a, DataKey> {
        Box::pin(async move {
            self.check().await?;
            self.keys.decrypt_edek(edek).await
        })
    }
}

/// The filter with keys of the service.
pub(super) fn encryption(
    service: &Arc<Service>,
    unresolved_key: UnresolvedKey,
) -> Arc<RecordEncryption> {
    let settings = RecordEncryptionSettings {
        template: KekTemplate::parse("KEK_$(topicName)").unwrap(),
        unresolved_key,
        on_damage: OnDamage::Fail,
        recompression: Recompression::SameCodec,
    };
    let kms = Arc::clone(service) as Arc<dyn Kms>;
    let keys = DataKeys::new(kms, &KeySettings::default(), 1);
    Arc::new(RecordEncryption::new(settings, keys))
}
