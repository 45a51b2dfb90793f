//! Records that the proxy sealed.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use moldau_client::{
    Cluster, ClusterOptions, Delivery, Producer, ProducerOptions, Record, partition_for_key,
};
use moldau_consumer::encryption::{
    DataKey, DataKeys, Edek, KekId, KekTemplate, KeySettings, Kms, KmsError, KmsFuture, MemoryKek,
    MemoryKms, WrappedDataKey,
};
use moldau_consumer::testing::TestBroker;
use moldau_consumer::{Batch, DeadLetters, Decrypt, Message, Retry, batch, header, record};
use moldau_filters::{
    OnDamage, Recompression, RecordEncryption, RecordEncryptionSettings, UnresolvedKey,
};
use moldau_proxy::{Config, Gateway, Proxy, VirtualCluster};
use moldau_records::HeaderView;
use zeroize::Zeroizing;

use crate::world::{
    GROUP, Seen, TOPIC, broker, channel, drained, next, run_until, ticking, values,
};

const DEAD: &str = "orders.dead";
const KEK: &str = "KEK";

/// A proxy in front of a broker, which seals all records.
pub(crate) struct Sealing {
    _proxy: Proxy,
    cluster: Cluster,
    pub(crate) kms: Arc<MemoryKms>,
}

impl Sealing {
    pub(crate) async fn start(broker: &TestBroker) -> Self {
        let (uuid, key) = (
            "a7a3b1c2-0001-4a6b-8c3d-1f2e3d4c5b6a",
            "QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVoyMzQ1Njc=",
        );
        let kek = MemoryKek::parse(uuid, &Zeroizing::new(key.to_owned()), KEK).expect("a key");
        let kms = Arc::new(MemoryKms::new(vec![kek]));
        let settings = RecordEncryptionSettings {
            template: KekTemplate::parse(KEK).expect("valid"),
            unresolved_key: UnresolvedKey::Reject,
            on_damage: OnDamage::Fail,
            recompression: Recompression::SameCodec,
        };
        let keys = DataKeys::new(Arc::clone(&kms) as Arc<dyn Kms>, &KeySettings::default(), 1);
        let gateway = Gateway::Ports {
            bootstrap: "127.0.0.1:0".parse().expect("an address"),
            advertised_host: None,
            broker_port_start: 0,
        };
        let cluster = VirtualCluster {
            filters: vec![Arc::new(RecordEncryption::new(settings, keys))],
            ..VirtualCluster::plain("main", gateway, vec![broker.address()])
        };
        let config = Config {
            admin: None,
            memory_bytes: 1 << 30,
            network_threads: 1,
            traces: None,
            drain_timeout: Duration::ZERO,
            virtual_clusters: vec![cluster],
        };
        // It waits for its threads, which a task must not.
        let started = std::thread::spawn(|| Proxy::start(config)).join();
        let proxy = started.expect("a start does not panic").expect("the proxy starts");
        let address = proxy.bootstrap_addresses()[0].1.to_string();
        let connected = Cluster::connect(&[address], ClusterOptions::default()).await;
        Self { _proxy: proxy, cluster: connected.expect("the proxy answers"), kms }
    }

    pub(crate) async fn produce(
        &self,
        at: Duration,
        topic: &str,
        records: &[(Option<&'static str>, &'static str)],
    ) {
        let timestamp = i64::try_from(at.as_millis()).expect("a time");
        let record = |(key, value): &(Option<&'static str>, &'static str)| {
            let (key, value) = (key.map(str::as_bytes), Some(value.as_bytes()));
            Record { token: 0, timestamp, key, value, headers: &[] }
        };
        let records: Vec<_> = records.iter().map(record).collect();
        produce(&self.cluster, topic, &records).await;
    }
}

async fn produce(cluster: &Cluster, topic: &str, records: &[Record<'_>]) {
    let sink = |delivery: &Delivery<'_>| assert!(delivery.error.is_none(), "{delivery:?}");
    let started = Producer::start(cluster, ProducerOptions::default(), sink).await;
    let producer = started.expect("the cluster answers");
    let partitions = cluster.topic(topic).await.expect("the topic exists").partitions.len();
    for record in records {
        let partition = record.key.map_or(0, |key| partition_for_key(key, partitions));
        let handle = producer.partition(topic, partition).await.expect("it exists");
        producer.send(handle, record).expect("there is room");
    }
    producer.close().await;
}

/// Appends the record again, with one bit of its value changed.
async fn tamper(broker: &TestBroker, sealed: &Message) {
    let mut value = sealed.value().expect("a value").to_vec();
    *value.last_mut().expect("it is sealed") ^= 1;
    let headers: Vec<HeaderView<'_>> = sealed.headers().collect();
    let (key, timestamp) = (sealed.key(), sealed.timestamp());
    let record = Record { token: 0, timestamp, key, value: Some(&value), headers: &headers };
    produce(broker.cluster().await, TOPIC, &[record]).await;
}

/// A service of keys that may be away, and counts what it opens.
struct Service {
    keys: Arc<MemoryKms>,
    is_up: AtomicBool,
    opened: Mutex<usize>,
}

impl Kms for Service {
    fn resolve_alias<'a>(&'a self, alias: &'a str) -> KmsFuture<'a, KekId> {
        self.keys.resolve_alias(alias)
    }

    fn generate_data_key<'a>(&'a self, kek: &'a KekId) -> KmsFuture<'a, WrappedDataKey> {
        self.keys.generate_data_key(kek)
    }

    fn decrypt_edek<'a>(&'a self, edek: &'a Edek) -> KmsFuture<'a, DataKey> {
        Box::pin(async move {
            if !self.is_up.load(Ordering::SeqCst) {
                return Err(KmsError::UnknownKey("KEK".to_owned()));
            }
            *self.opened.lock().expect("a lock") += 1;
            self.keys.decrypt_edek(edek).await
        })
    }
}

#[tokio::test]
async fn records_that_the_proxy_sealed_are_handled_in_clear() {
    let broker = broker(1, &[]).await;
    broker.create_topic(DEAD, 1).await;
    let sealing = Sealing::start(&broker).await;
    let now = broker.clock().now();
    sealing.produce(now, TOPIC, &[(Some("a"), "1"), (Some("a"), "2"), (None, "")]).await;
    broker.produce(TOPIC, None, "clear").await;
    let sealed = broker.read(TOPIC, 3).await;
    assert!(sealed.iter().all(|it| it.value().is_some_and(|value| value.len() > 30)));
    tamper(&broker, &sealed[0]).await;
    broker.produce(TOPIC, None, "last").await;
    let is_up = AtomicBool::new(true);
    let keys = Arc::clone(&sealing.kms);
    let service = Arc::new(Service { keys, is_up, opened: Mutex::default() });
    let decrypt = Decrypt::with(Arc::clone(&service) as Arc<dyn Kms>, &KeySettings::default());

    // By record and by batch, in which one damaged record does not fail the others.
    let (sender, mut receiver) = channel();
    let by_record = move |message: Message| {
        assert_eq!(message.headers().count(), 0);
        let sent = sender.send(Seen::of(&message));
        async move { sent }
    };
    let route = record(by_record).layer(decrypt.clone()).layer(DeadLetters::to(DEAD));
    let seen = run_until(broker.app("records").topic(TOPIC, route), &mut receiver, 5).await;
    assert_eq!(values(&seen), ["1", "2", "", "clear", "last"]);
    assert_eq!(seen[0].key.as_deref(), Some("a"));
    let (sender, mut receiver) = channel();
    let by_batch = move |batch: Batch| {
        let sent = batch.iter().try_for_each(|message| sender.send(Seen::of(message)));
        async move { sent }
    };
    let route = batch(by_batch).layer(decrypt).layer(DeadLetters::to(DEAD));
    let seen = run_until(broker.app("batches").topic(TOPIC, route), &mut receiver, 5).await;
    assert_eq!(values(&seen), ["1", "2", "", "clear", "last"]);

    assert_eq!(broker.lag("nobody", DEAD).await, 2);
    for letter in broker.read(DEAD, 2).await {
        // What was sealed is sent as it is.
        assert!(letter.value().is_some_and(|value| value.len() > 30));
        assert_eq!(letter.header(header::KIND), Some(b"undecodable".as_slice()));
        assert_eq!(letter.header(header::OFFSET), Some(b"4".as_slice()));
    }
    let data_keys = 3;
    assert!(*service.opened.lock().expect("a lock") <= data_keys, "keys are kept");
    for group in ["records", "batches"] {
        assert_eq!(broker.lag(group, TOPIC).await, 0);
    }
}

#[tokio::test]
async fn a_key_that_the_service_does_not_give_is_asked_for_again() {
    let broker = broker(1, &[]).await;
    let sealing = Sealing::start(&broker).await;
    sealing.produce(broker.clock().now(), TOPIC, &[(None, "1")]).await;
    let keys = Arc::clone(&sealing.kms);
    let is_up = AtomicBool::new(false);
    let service = Arc::new(Service { keys, is_up, opened: Mutex::default() });
    let settings = KeySettings { unknown_expiry: Duration::ZERO, ..KeySettings::default() };
    let decrypt = Decrypt::with(Arc::clone(&service) as Arc<dyn Kms>, &settings);
    let metrics = moldau_consumer::Metrics::default();
    let (sender, mut receiver) = channel();
    let handler = move |message: Message| {
        let sent = sender.send(Seen::of(&message));
        async move { sent }
    };
    let route = record(handler)
        .layer(decrypt)
        .layer(metrics.clone())
        .layer(Retry::exponential(1_000_000, Duration::from_secs(1)));
    let shutdown = async {
        while metrics.read().failed == 0 {
            tokio::task::yield_now().await;
        }
        service.is_up.store(true, Ordering::SeqCst);
        assert_eq!(values(&next(&mut receiver, 1).await), ["1"]);
        drained(&broker, GROUP, TOPIC).await;
    };
    let app = broker.app(GROUP).topic(TOPIC, route);
    ticking(&broker, Box::pin(app.run(shutdown))).await.expect("it runs");
}
