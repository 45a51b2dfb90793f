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
pub use moldau_coordinator::transactions::TransactionConfig as TransactionSettings;
use moldau_net::sasl::{Mechanism, TokenVerifier, Users};
use moldau_net::tls::ServerTls;
use moldau_net::{ListenerLimits, Principal};
/// Which compressed batches of producers are unpacked.
pub use moldau_records::Unpacking;
use moldau_storage::{Durability, Options};

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
    fn url(&self) -> String {
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

/// A host and port that clients can reach.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Advertised {
    /// Name or address.
    pub host: String,
    /// Port.
    pub port: u16,
}

/// Settings of groups of the consumer protocol under Kafka's names.
fn consumer_group_configs(config: &ConsumerGroupSettings) -> Vec<(&'static str, String)> {
    let names = config.assignors.iter().map(|assignor| assignor.name());
    let (sessions, heartbeats) =
        (&config.session_timeout_ms_range, &config.heartbeat_interval_ms_range);
    let (intervals, own) = (&config.assignment_interval_ms_range, &config.settings);
    vec![
        ("group.consumer.assignment.interval.ms", own.assignment_interval_ms.to_string()),
        ("group.consumer.assignors", names.collect::<Vec<_>>().join(",")),
        ("group.consumer.heartbeat.interval.ms", own.heartbeat_interval_ms.to_string()),
        ("group.consumer.max.assignment.interval.ms", intervals.end().to_string()),
        ("group.consumer.max.heartbeat.interval.ms", heartbeats.end().to_string()),
        ("group.consumer.max.session.timeout.ms", sessions.end().to_string()),
        ("group.consumer.max.size", config.group_size_max.to_string()),
        ("group.consumer.migration.policy", "disabled".to_owned()),
        ("group.consumer.min.assignment.interval.ms", intervals.start().to_string()),
        ("group.consumer.min.heartbeat.interval.ms", heartbeats.start().to_string()),
        ("group.consumer.min.session.timeout.ms", sessions.start().to_string()),
        ("group.consumer.regex.refresh.interval.ms", config.regex_refresh_interval_ms.to_string()),
        ("group.consumer.session.timeout.ms", own.session_timeout_ms.to_string()),
    ]
}

/// Settings of share groups under Kafka's names.
fn share_group_configs(config: &ShareGroupSettings) -> Vec<(&'static str, String)> {
    let mut configs = vec![
        ("group.share.assignors", "simple".to_owned()),
        ("group.share.max.size", config.group_size_max.to_string()),
    ];
    macro_rules! add {
        ($name:literal $setting:ident $range:ident) => {
            configs.extend([
                (concat!("group.share.", $name), config.settings.$setting.to_string()),
                (concat!("group.share.min.", $name), config.$range.start().to_string()),
                (concat!("group.share.max.", $name), config.$range.end().to_string()),
            ]);
        };
    }
    add!("session.timeout.ms" session_timeout_ms session_timeout_ms_range);
    add!("heartbeat.interval.ms" heartbeat_interval_ms heartbeat_interval_ms_range);
    add!("assignment.interval.ms" assignment_interval_ms assignment_interval_ms_range);
    add!("record.lock.duration.ms" record_lock_duration_ms record_lock_duration_ms_range);
    add!("delivery.count.limit" delivery_count_limit delivery_count_limit_range);
    add!("partition.max.record.locks" partition_max_record_locks partition_max_record_locks_range);
    configs
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

    /// The broker's own configuration under Kafka's names, as DescribeConfigs shows it. The
    /// defaults of topics come beside it.
    pub(crate) fn broker_configs(&self) -> Vec<(&'static str, String)> {
        let milliseconds = |time: Duration| time.as_millis().to_string();
        let (groups, minute_ms) = (&self.groups, 60_000);
        let mut configs = vec![
            ("advertised.listeners", self.advertised_listeners()),
            ("auto.create.topics.enable", self.auto_create_topics.to_string()),
            ("broker.id", NODE_ID.to_string()),
            ("connections.max.idle.ms", milliseconds(self.connections_max_idle)),
            ("default.replication.factor", "1".to_owned()),
            ("group.initial.rebalance.delay.ms", groups.initial_rebalance_delay_ms.to_string()),
            ("group.max.session.timeout.ms", groups.session_timeout_ms_max.to_string()),
            ("group.max.size", groups.group_size_max.to_string()),
            ("group.min.session.timeout.ms", groups.session_timeout_ms_min.to_string()),
            ("group.coordinator.rebalance.protocols", "classic,consumer,share".to_owned()),
            (
                "listeners",
                self.listeners.iter().map(ListenerConfig::url).collect::<Vec<_>>().join(","),
            ),
            ("log.cleaner.backoff.ms", milliseconds(self.log_cleaner_backoff)),
            ("log.dirs", self.data_dir.display().to_string()),
            ("log.retention.check.interval.ms", milliseconds(self.log_retention_check_interval)),
            ("memory.max.bytes", self.memory_bytes.to_string()),
            ("node.id", NODE_ID.to_string()),
            ("num.network.threads", self.network_threads.to_string()),
            ("num.partitions", self.partitions_default.to_string()),
            ("offset.metadata.max.bytes", groups.offset_metadata_bytes_max.to_string()),
            (
                "offsets.retention.check.interval.ms",
                groups.offsets_retention_check_interval_ms.to_string(),
            ),
            ("offsets.retention.minutes", (groups.offsets_retention_ms / minute_ms).to_string()),
            ("quota.window.num", self.quota_window.num.to_string()),
            ("quota.window.size.seconds", self.quota_window.size_seconds.to_string()),
            ("socket.request.max.bytes", self.request_bytes_max.to_string()),
            ("transaction.max.timeout.ms", self.transactions.timeout_ms_max.to_string()),
            ("transactional.id.expiration.ms", self.transactions.id_expiration_ms.to_string()),
        ];
        configs.extend(consumer_group_configs(&groups.consumer));
        configs.extend(share_group_configs(&groups.share));
        if let Some(authorization) = &self.authorization {
            let users: Vec<_> = authorization.super_users.iter().map(ToString::to_string).collect();
            let allow = authorization.allow_everyone_if_no_acl_found.to_string();
            configs.push(("allow.everyone.if.no.acl.found", allow));
            configs.push(("authorizer.class.name", STANDARD_AUTHORIZER.to_owned()));
            configs.push(("super.users", users.join(";")));
        }
        configs.sort_unstable();
        configs
    }

    /// The addresses for clients, and the own address of a listener without one.
    fn advertised_listeners(&self) -> String {
        let advertised = self.listeners.iter().map(|listener| match &listener.advertised {
            Some(Advertised { host, port }) => format!("{}://{host}:{port}", listener.name),
            None => listener.url(),
        });
        advertised.collect::<Vec<_>>().join(",")
    }
}
