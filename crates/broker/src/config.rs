//! What an operator decides about a broker. The binary reads it from a file or from arguments.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Settings of the group coordinator. The broker itself bounds the length of its records.
pub use moldau_coordinator::Config as GroupSettings;
/// Settings of the groups of the consumer protocol.
pub use moldau_coordinator::ConsumerConfig as ConsumerGroupSettings;
/// Settings of share groups.
pub use moldau_coordinator::ShareConfig as ShareGroupSettings;
pub use moldau_coordinator::StreamsConfig as StreamsGroupSettings;
pub use moldau_coordinator::transactions::TransactionConfig as TransactionSettings;
use moldau_net::sasl::{Mechanism, TokenVerifier, Users};
use moldau_net::tls::ServerTls;
use moldau_net::{HttpUrl, ListenerLimits, Principal};
/// Which compressed batches of producers are unpacked.
pub use moldau_records::Unpacking;
use moldau_storage::{Durability, Options};

use crate::loggers::Loggers;
use crate::memory_plan::MemoryPlan;
use crate::quota_entity::QuotaWindow;
use crate::topic_config::TopicDefaults;

/// How long a request that has no timeout of its own waits for its record to be durable: Kafka's
/// `offsets.commit.timeout.ms`.
pub(crate) const DURABLE_WITHIN: Duration = Duration::from_secs(5);

/// The leader epoch of every partition: the leader never changes.
pub(crate) const LEADER_EPOCH: i32 = 0;

/// The node id of the one broker.
pub(crate) const NODE_ID: i32 = 0;

/// The class whose rules the broker follows once it enforces access control lists.
pub const STANDARD_AUTHORIZER: &str = "org.apache.kafka.metadata.authorizer.StandardAuthorizer";

/// A key of the broker's configuration file, for those who ask for the broker's configuration.
#[derive(Clone, Copy, Debug)]
pub struct FileKey {
    /// Its name.
    pub name: &'static str,
    /// What it does.
    pub documentation: &'static str,
    /// Whether the operator gave it a value.
    pub is_given: bool,
}

/// Settings of one broker, complete when made.
#[derive(Clone, Debug)]
pub struct Config {
    /// Where the journal lives; created if absent.
    pub data_dir: PathBuf,
    /// Where Kafka clients connect; at least one.
    pub listeners: Vec<ListenerConfig>,
    /// Who may do what; `None` lets everyone do everything.
    pub authorization: Option<AuthorizationSettings>,
    /// Where `/metrics`, `/livez` and `/readyz` are served; `None` serves them nowhere.
    pub admin: Option<SocketAddr>,
    /// When a produce counts as done.
    pub durability: Durability,
    /// How long the journal waits for more before it flushes; for slow network disks.
    pub commit_delay: Duration,
    /// Bytes of memory for records, requests and answers, which caches, buffers and the budget of
    /// the connections share; at least [`MEMORY_BYTES_MIN`](crate::MEMORY_BYTES_MIN).
    pub memory_bytes: usize,
    /// Bytes of journal buffers kept for reads of recent data; a share of the memory by default.
    pub tail_cache_bytes: Option<usize>,
    /// Bytes of a journal file, a multiple of 4096 from 64 KiB to 1 GiB.
    pub journal_file_bytes: u64,
    /// Bytes that records leave free on the disk, for metadata when it is full.
    pub disk_reserve_bytes: u64,
    /// Bytes a second that are read back to find damage, once a day; zero for none.
    pub scrub_rate: u64,
    /// Threads that serve connections.
    pub network_threads: usize,
    /// Whether a topic is created when a client asks for its metadata (Kafka:
    /// `auto.create.topics.enable`).
    pub auto_create_topics: bool,
    /// Partitions of a topic that does not say how many (Kafka: `num.partitions`).
    pub partitions_default: u32,
    /// Configurations of topics that do not override them.
    pub topic_defaults: TopicDefaults,
    /// Consumer groups and the offsets that they commit.
    pub groups: GroupSettings,
    /// Which compressed batches of producers are unpacked to check their records.
    pub unpacking: Unpacking,
    /// Transactions of producers.
    pub transactions: TransactionSettings,
    /// Over which time the rates of clients with a quota are measured.
    pub quota_window: QuotaWindow,
    /// Metrics that clients push.
    pub telemetry: TelemetrySettings,
    /// Largest request (Kafka: `socket.request.max.bytes`).
    pub request_bytes_max: usize,
    /// Time after which an idle connection is closed (Kafka: `connections.max.idle.ms`).
    pub connections_max_idle: Duration,
    /// How often retention is applied (Kafka: `log.retention.check.interval.ms`).
    pub log_retention_check_interval: Duration,
    /// How long compaction waits between two looks for logs that are due (Kafka:
    /// `log.cleaner.backoff.ms`).
    pub log_cleaner_backoff: Duration,
    /// How long requests in flight may take after a stop was asked for.
    pub drain_timeout: Duration,
    /// The keys of the configuration file, but for the defaults of topics.
    pub file_keys: Vec<FileKey>,
    /// The loggers of the process, which clients can see and change; `None` for none.
    pub loggers: Option<Arc<dyn Loggers>>,
}

/// One address at which Kafka clients connect.
#[derive(Clone, Debug)]
pub struct ListenerConfig {
    /// What it is called in logs.
    pub name: String,
    /// Where it listens; port 0 picks a free port.
    pub address: SocketAddr,
    /// Address for its clients; `None` gives each the address that it connected to.
    pub advertised: Option<Advertised>,
    /// Certificates and keys; `None` for a listener without TLS.
    pub tls: Option<Arc<ServerTls>>,
    /// How clients prove who they are; `None` for what their certificate says, if they have one.
    pub sasl: Option<SaslListener>,
    /// Connections that it takes.
    pub limits: ListenerLimits,
}

/// What a listener with SASL offers, and whom it knows beside the users of the journal
/// (AlterUserScramCredentials).
#[derive(Clone, Debug)]
pub struct SaslListener {
    /// The mechanisms offered; at least one.
    pub mechanisms: Vec<Mechanism>,
    /// Users of PLAIN, and of SCRAM where the journal has no credential of theirs.
    pub users: Arc<Users>,
    /// Who is believed for OAUTHBEARER.
    pub tokens: Option<Arc<TokenVerifier>>,
    /// How long a client is believed until it authenticates again (Kafka:
    /// `connections.max.reauth.ms`); `None` for ever.
    pub max_reauthentication: Option<Duration>,
}

impl ListenerConfig {
    /// A listener without security.
    pub fn plain(address: SocketAddr, advertised: Option<Advertised>) -> Self {
        let name = "PLAINTEXT".to_owned();
        let (tls, sasl, limits) = (None, None, ListenerLimits::default());
        Self { name, address, advertised, tls, sasl, limits }
    }

    /// Name and address as Kafka writes them: `PLAINTEXT://127.0.0.1:9092`.
    pub(crate) fn url(&self) -> String {
        format!("{}://{}", self.name, self.address)
    }
}

/// How access control lists are enforced (Kafka: `StandardAuthorizer`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuthorizationSettings {
    /// Who may do everything (Kafka: `super.users`).
    pub super_users: Vec<Principal>,
    /// Whether everyone may use a resource that no ACL is about (Kafka:
    /// `allow.everyone.if.no.acl.found`).
    pub allow_everyone_if_no_acl_found: bool,
}

/// What an operator decides about the metrics of clients.
#[derive(Clone, Debug, PartialEq)]
pub struct TelemetrySettings {
    /// Most bytes of one push, compressed (Kafka: `telemetry.max.bytes`).
    pub bytes_max: usize,
    /// Where pushed metrics go by OTLP over HTTP, usually at `/v1/metrics`; `None` for nowhere.
    pub collector: Option<Arc<HttpUrl>>,
}

impl Default for TelemetrySettings {
    fn default() -> Self {
        Self { bytes_max: 1 << 20, collector: None }
    }
}

/// A host and port that clients can reach.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Advertised {
    /// Name or address.
    pub host: String,
    /// Port.
    pub port: u16,
}

impl Config {
    pub(crate) fn memory_plan(&self) -> MemoryPlan {
        MemoryPlan::new(self.memory_bytes, self.tail_cache_bytes)
    }

    /// What the storage is opened with.
    pub(crate) fn storage(&self) -> Options {
        let plan = self.memory_plan();
        let defaults = Options::new(&self.data_dir);
        Options {
            node_id: NODE_ID,
            durability: self.durability,
            commit_delay: self.commit_delay,
            tail_cache_bytes: plan.tail_cache,
            tail_cache_bytes_max: plan.tail_cache_max,
            read_cache_bytes: plan.read_cache,
            unflushed_bytes_max: plan.unflushed,
            // What cannot be read into an answer is not stored.
            entry_bytes_max: defaults.entry_bytes_max.min(plan.budget / 8),
            sort_memory_bytes: plan.sort,
            clean_memory_bytes: plan.clean,
            file_bytes: self.journal_file_bytes,
            reserve_bytes: self.disk_reserve_bytes,
            scrub_rate: self.scrub_rate,
            ..defaults
        }
    }
}
