//! A real broker in the process of a test, on a port and a directory of its own.
//!
//! ```no_run
//! # async fn test() -> Result<(), Box<dyn std::error::Error>> {
//! use moldau_consumer::testing::TestBroker;
//! use moldau_consumer::{Message, record};
//!
//! let broker = TestBroker::start();
//! broker.create_topic("orders", 3).await;
//! broker.produce("orders", Some("anna"), "one book").await;
//! let (sender, mut handled) = tokio::sync::mpsc::unbounded_channel();
//! let handler = move |message: Message| {
//!     let sender = sender.clone();
//!     async move { sender.send(message) }
//! };
//! let app = broker.app("billing").topic("orders", record(handler));
//! app.run(async {
//!     let message = handled.recv().await.expect("the handler lives");
//!     assert_eq!(message.value(), Some(b"one book".as_slice()));
//! })
//! .await?;
//! assert_eq!(broker.committed("billing", "orders").await, 1);
//! # Ok(())
//! # }
//! ```
//!
//! Retries, delays, throttles and expiry go by the broker's [`clock`](TestBroker::clock), which
//! stands still until the test moves it.
//!
//! | to see how an app bears | use |
//! |---|---|
//! | connections that end | [`TestBroker::faults`], [`Faults::disconnect`] |
//! | slow fetches | [`Faults::hold_fetches`], [`Faults::delay_fetches`] |
//! | a member that its group takes for dead | [`Faults::hold_heartbeats`] |
//! | a rebalance | [`TestBroker::rebalance`] |
//! | a broker that restarts | [`TestBroker::restart`] |
//! | rights that are revoked | [`TestBroker::with_authorization`] |
//! | records that are delivered again | [`TestBroker::rewind`] |
//!
//! [`TestBroker::ledger`] says which records are done.

mod faults;
mod groups;

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::Duration;

use moldau_broker::{
    Advertised, AuthorizationSettings, Broker, Config, Durability, GroupSettings, ListenerConfig,
    QuotaWindow, SaslListener, TelemetrySettings, TopicDefaults, TransactionSettings, Unpacking,
};
use moldau_client::{
    Admin, Cluster, ClusterOptions, Delivery, Fetcher, FetcherOptions, GroupProtocol,
    MembershipOptions, OffsetSpec, Producer, ProducerOptions, Record, Start, TopicPartition,
    TopicSpec, partition_for_key,
};
use moldau_net::Principal;
use moldau_net::sasl::Mechanism;
use moldau_records::Decompressor;
use rustix::fs::statvfs;
use tempfile::TempDir;
use tokio::sync::OnceCell;

use crate::chunk::{Chunk, Spare};
use crate::scheduler::Records;
use crate::{App, AppOptions, Clock, Message};

pub use faults::{Faults, HeldFetches, HeldHeartbeats};

/// A broker that ends when it is dropped, with all its data.
pub struct TestBroker {
    /// `None` while it restarts.
    broker: Option<Broker>,
    config: Config,
    clock: Clock,
    cluster: OnceCell<Cluster>,
    /// Where the relay for faults will listen, until it does.
    relay: Mutex<Option<TcpListener>>,
    faults: OnceLock<Faults>,
    dir: TempDir,
}

impl TestBroker {
    /// Starts a broker. Its data is in `/dev/shm`, a file system in memory, if that has a GiB of
    /// room, or else in the directory for temporary files.
    ///
    /// # Panics
    /// The broker cannot listen, or cannot write into the directory for temporary files.
    #[must_use]
    pub fn start() -> Self {
        Self::start_in(directory(), |_| {})
    }

    /// Starts a broker that keeps up to half of `bytes` of records in memory, at least 128 MiB, for
    /// tests of speed. Its data is in the directory for temporary files.
    ///
    /// # Panics
    /// As [`start`](Self::start).
    #[must_use]
    pub fn with_memory(bytes: usize) -> Self {
        let dir = tempfile::tempdir().expect("a directory for temporary files");
        Self::start_in(dir, |config| {
            config.memory_bytes = bytes.max(config.memory_bytes);
            config.tail_cache_bytes = Some(config.memory_bytes / 2);
            config.journal_file_bytes = 64 << 20;
        })
    }

    /// Starts a broker with one more listener, at [`sasl_address`](Self::sasl_address), where
    /// clients authenticate by SCRAM-SHA-256, and again within each `reauthentication`
    /// (`connections.max.reauth.ms`). Users are added with AlterUserScramCredentials.
    ///
    /// # Panics
    /// As [`start`](Self::start).
    #[must_use]
    pub fn with_sasl(reauthentication: Duration) -> Self {
        Self::start_in(directory(), |config| {
            config.listeners.insert(SASL_LISTENER, sasl_listener(Some(reauthentication)));
        })
    }

    /// Starts a broker with one more listener, as [`with_sasl`](Self::with_sasl), whose users may
    /// do what ACLs allow them and nothing else.
    ///
    /// # Panics
    /// As [`start`](Self::start).
    #[must_use]
    pub fn with_authorization() -> Self {
        Self::start_in(directory(), |config| {
            config.listeners.insert(SASL_LISTENER, sasl_listener(None));
            config.authorization = Some(AuthorizationSettings {
                super_users: vec![Principal::anonymous()],
                allow_everyone_if_no_acl_found: false,
            });
        })
    }

    /// Stops the broker and starts it again, with its data and at its addresses.
    ///
    /// # Panics
    /// It cannot start again.
    pub async fn restart(&mut self) {
        let broker = self.broker.take().expect("it runs");
        for (listener, address) in self.config.listeners.iter_mut().zip(broker.addresses()) {
            listener.address = *address;
        }
        let config = self.config.clone();
        let restart = move || {
            broker.drain();
            Broker::start(config)
        };
        let restarted = tokio::task::spawn_blocking(restart).await;
        self.broker = Some(restarted.expect("a start does not panic").expect("it starts again"));
    }

    fn broker(&self) -> &Broker {
        self.broker.as_ref().expect("nobody asks for it while it restarts")
    }

    /// Where clients of [`with_sasl`](Self::with_sasl) and
    /// [`with_authorization`](Self::with_authorization) connect that authenticate: `host:port`.
    ///
    /// # Panics
    /// The broker was started otherwise.
    #[must_use]
    pub fn sasl_address(&self) -> String {
        let addresses = self.broker().addresses();
        let has_sasl = addresses.len() > listeners(self.broker().address()).len();
        let address = addresses.get(SASL_LISTENER).filter(|_| has_sasl);
        address.expect("the broker has a listener with SASL").to_string()
    }

    fn start_in(dir: TempDir, change: impl FnOnce(&mut Config)) -> Self {
        let relay = Faults::bind();
        let mut config = config(&dir, relay.local_addr().expect("it is bound"));
        change(&mut config);
        // It waits for its threads, which a task must not.
        let starting = config.clone();
        let started = thread::spawn(|| Broker::start(starting)).join();
        let broker = started.expect("a start does not panic").expect("the broker starts");
        Self {
            broker: Some(broker),
            config,
            clock: Clock::manual(),
            cluster: OnceCell::new(),
            relay: Mutex::new(Some(relay)),
            faults: OnceLock::new(),
            dir,
        }
    }

    /// Faults for the apps of [`app_with_faults`](Self::app_with_faults).
    ///
    /// # Panics
    /// The thread of the relay cannot be started.
    pub fn faults(&self) -> &Faults {
        self.faults.get_or_init(|| {
            let relay = self.relay.lock().unwrap_or_else(PoisonError::into_inner).take();
            let relay = relay.expect("the relay is started once");
            let listener = self.broker().addresses().last().copied();
            Faults::start(relay, listener.expect("the broker listens"), self.clock.clone())
        })
    }

    /// As [`app`](Self::app), disturbed by [`faults`](Self::faults).
    #[must_use]
    pub fn app_with_faults(&self, group: &str) -> App {
        App::new([self.faults().address()]).group(group).options(self.options())
    }

    /// Where clients connect: `host:port`.
    #[must_use]
    pub fn address(&self) -> String {
        self.broker().address().to_string()
    }

    /// Where its data is; gone with the broker.
    #[must_use]
    pub fn directory(&self) -> &Path {
        self.dir.path()
    }

    /// The clock of the apps of [`app`](Self::app).
    #[must_use]
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// An app of this broker, which commits and beats often and goes by this broker's clock.
    #[must_use]
    pub fn app(&self, group: &str) -> App {
        App::new([self.address()]).group(group).options(self.options())
    }

    /// The options of [`app`](Self::app).
    #[must_use]
    pub fn options(&self) -> AppOptions {
        AppOptions {
            membership: MembershipOptions {
                protocol: GroupProtocol::Consumer,
                heartbeat_interval: HEARTBEAT_INTERVAL,
                ..MembershipOptions::default()
            },
            commit_interval: Duration::from_millis(10),
            clock: self.clock.clone(),
            ..AppOptions::default()
        }
    }

    /// Creates a topic.
    ///
    /// # Panics
    /// The broker refuses it.
    pub async fn create_topic(&self, name: &str, partitions: i32) {
        let admin = Admin::new(self.cluster().await);
        // The clock may be ahead of the broker's by any time.
        let any_time = ("message.timestamp.after.max.ms".to_owned(), i64::MAX.to_string());
        let topic = TopicSpec { configs: vec![any_time], ..TopicSpec::new(name, partitions) };
        let created = admin.create_topics(&[topic], false).await;
        let created: Result<Vec<()>, _> =
            created.expect("the broker answers").into_iter().collect();
        created.expect("the broker creates it");
    }

    /// Appends a record to the partition of its key, or to partition 0. Its timestamp is the time
    /// of this broker's clock.
    ///
    /// # Panics
    /// The topic does not exist.
    pub async fn produce(&self, topic: &str, key: Option<&str>, value: &str) {
        self.produce_all(topic, &[(key, value)]).await;
    }

    /// Appends records in this order, as [`produce`](Self::produce).
    ///
    /// # Panics
    /// The topic does not exist.
    pub async fn produce_all(&self, topic: &str, records: &[(Option<&str>, &str)]) {
        self.produce_at(self.clock.now(), topic, records).await;
    }

    /// Appends records with this timestamp, since 1970-01-01.
    ///
    /// # Panics
    /// The topic does not exist.
    pub async fn produce_at(&self, at: Duration, topic: &str, records: &[(Option<&str>, &str)]) {
        let cluster = self.cluster().await;
        let partitions = cluster.topic(topic).await.expect("the topic exists").partitions.len();
        let delivered = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&delivered);
        let sink = move |delivery: &Delivery<'_>| {
            assert!(delivery.error.is_none(), "{delivery:?}");
            counted.fetch_add(delivery.tokens.len(), Ordering::SeqCst);
        };
        let started = Producer::start(cluster, ProducerOptions::default(), sink).await;
        let producer = started.expect("the broker answers");
        let timestamp = i64::try_from(at.as_millis()).unwrap_or(i64::MAX);
        for (key, value) in records {
            let (key, value) = (key.map(str::as_bytes), Some(value.as_bytes()));
            let partition = key.map_or(0, |key| partition_for_key(key, partitions));
            let handle = producer.partition(topic, partition).await.expect("it exists");
            let record = Record { token: 0, timestamp, key, value, headers: &[] };
            producer.room_for(&record).await;
            producer.send(handle, &record).expect("there is room");
        }
        producer.close().await;
        assert_eq!(delivered.load(Ordering::SeqCst), records.len(), "the topic takes all");
    }

    /// The first `count` records of a topic, partition by partition; waits for them.
    ///
    /// # Panics
    /// The topic does not exist.
    pub async fn read(&self, topic: &str, count: usize) -> Vec<Message> {
        let cluster = self.cluster().await;
        let partitions = cluster.topic(topic).await.expect("the topic exists").partitions.len();
        let mut fetcher = Fetcher::start(cluster, FetcherOptions::default());
        for partition in (0..).take(partitions) {
            fetcher.assign(topic, partition, Start::Earliest).await.expect("it exists");
        }
        let mut decompressor = Decompressor::default();
        let mut messages = Vec::new();
        while messages.len() < count {
            let fetched = fetcher.next().await.expect("the topic can be read");
            let chunk = Chunk::read(fetched, &mut decompressor, &Spare::default()).chunk;
            messages.extend((0..chunk.len()).map(|index| Message::new(Arc::clone(&chunk), index)));
        }
        messages.sort_by_key(|message| (message.partition(), message.offset()));
        messages.truncate(count);
        messages
    }

    /// Sum of the offsets that a group has committed of a topic's partitions: the number of its
    /// records, once all are handled.
    ///
    /// # Panics
    /// The broker does not answer.
    pub async fn committed(&self, group: &str, topic: &str) -> i64 {
        let committed = self.cluster().await.committed_offsets(group).await;
        let committed = committed.expect("the broker answers");
        let is_of_topic = |partition: &TopicPartition| &*partition.topic == topic;
        committed.iter().filter(|(it, _)| is_of_topic(it)).map(|(_, offset)| *offset).sum()
    }

    /// How many records of a topic a group has not committed.
    ///
    /// # Panics
    /// The topic does not exist.
    pub async fn lag(&self, group: &str, topic: &str) -> i64 {
        let cluster = self.cluster().await;
        let partitions = cluster.topic(topic).await.expect("the topic exists").partitions.len();
        let wanted = (0..).take(partitions).map(|it| TopicPartition::of(topic, it));
        let wanted: Vec<_> = wanted.map(|partition| (partition, OffsetSpec::Latest)).collect();
        let ends = cluster.list_offsets(&wanted).await.into_values();
        let records: i64 = ends.map(|end| end.expect("the broker answers").offset).sum();
        records - self.committed(group, topic).await
    }

    /// A client of the broker.
    ///
    /// # Panics
    /// The broker does not answer.
    pub async fn cluster(&self) -> &Cluster {
        let connect =
            || async { Cluster::connect(&[self.address()], ClusterOptions::default()).await };
        self.cluster.get_or_try_init(connect).await.expect("the broker answers")
    }
}

fn config(dir: &TempDir, relay: SocketAddr) -> Config {
    let mut groups = GroupSettings { initial_rebalance_delay_ms: 0, ..GroupSettings::default() };
    let heartbeat_ms = i32::try_from(HEARTBEAT_INTERVAL.as_millis()).unwrap_or(i32::MAX);
    groups.consumer.settings.heartbeat_interval_ms = heartbeat_ms;
    groups.consumer.heartbeat_interval_ms_range = heartbeat_ms..=heartbeat_ms;
    groups.consumer.settings.assignment_interval_ms = 0;
    groups.share.settings.heartbeat_interval_ms = heartbeat_ms;
    groups.share.heartbeat_interval_ms_range = heartbeat_ms..=heartbeat_ms;
    groups.share.settings.assignment_interval_ms = 0;
    // Tests wait for them.
    groups.share.record_lock_duration_ms_range = 1..=60_000;
    groups.share.session_timeout_ms_range = 1..=60_000;
    groups.consumer.session_timeout_ms_range = 1..=60_000;
    Config {
        data_dir: dir.path().to_owned(),
        listeners: listeners(relay),
        authorization: None,
        admin: None,
        durability: Durability::Os,
        commit_delay: Duration::ZERO,
        memory_bytes: 128 << 20,
        tail_cache_bytes: Some(8 << 20),
        journal_file_bytes: 1 << 20,
        disk_reserve_bytes: 0,
        scrub_rate: 0,
        network_threads: 1,
        auto_create_topics: false,
        partitions_default: 1,
        topic_defaults: TopicDefaults::default(),
        groups,
        unpacking: Unpacking::Always,
        transactions: TransactionSettings::default(),
        quota_window: QuotaWindow::default(),
        telemetry: TelemetrySettings::default(),
        request_bytes_max: 16 << 20,
        connections_max_idle: Duration::from_mins(10),
        log_retention_check_interval: Duration::from_mins(5),
        log_cleaner_backoff: Duration::from_mins(5),
        drain_timeout: Duration::ZERO,
        file_keys: Vec::new(),
        loggers: None,
    }
}

fn sasl_listener(max_reauthentication: Option<Duration>) -> ListenerConfig {
    let any_port = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let mut listener = ListenerConfig::plain(any_port, None);
    listener.name = "SASL".to_owned();
    listener.sasl = Some(SaslListener {
        mechanisms: vec![Mechanism::ScramSha256],
        users: Arc::default(),
        tokens: None,
        max_reauthentication,
    });
    listener
}

/// Flushes of a directory take longer on a disk than all else that a start does.
fn directory() -> TempDir {
    let memory = Path::new("/dev/shm");
    let has_room =
        statvfs(memory).is_ok_and(|it| it.f_bavail.saturating_mul(it.f_frsize) >= 1 << 30);
    let in_memory = has_room.then(|| tempfile::tempdir_in(memory).ok()).flatten();
    in_memory.unwrap_or_else(|| tempfile::tempdir().expect("a directory for temporary files"))
}

/// One for apps, and one for those that connect through the relay.
fn listeners(relay: SocketAddr) -> Vec<ListenerConfig> {
    let any_port = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let advertised = Advertised { host: relay.ip().to_string(), port: relay.port() };
    let mut faults = ListenerConfig::plain(any_port, Some(advertised));
    faults.name = "FAULTS".to_owned();
    vec![ListenerConfig::plain(any_port, None), faults]
}

/// Place of the listener with SASL: the last one is that for faults.
const SASL_LISTENER: usize = 1;

/// A test that waits for a rebalance waits for a heartbeat.
const HEARTBEAT_INTERVAL: Duration = Duration::from_millis(20);
