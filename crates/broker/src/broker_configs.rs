//! The broker's own configuration under Kafka's names, as DescribeConfigs shows it. The defaults of
//! topics are shown beside it.

use std::time::Duration;

use crate::config::{
    Advertised, Config, ConsumerGroupSettings, ListenerConfig, STANDARD_AUTHORIZER,
    ShareGroupSettings, StreamsGroupSettings,
};
use crate::topic_config::DefaultSource;

/// The type of a value (Kafka: `ConfigType`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConfigType {
    Boolean,
    String,
    Int,
    Long,
    List,
}

impl ConfigType {
    /// Kafka's number.
    pub(crate) const fn code(self) -> i8 {
        match self {
            Self::Boolean => 1,
            Self::String => 2,
            Self::Int => 3,
            Self::Long => 5,
            Self::List => 7,
        }
    }
}

/// Kafka's numbers of sources: the topic or group itself, what clients gave the broker and all
/// brokers, the broker's configuration file, the built-in default.
pub(crate) const SOURCE_TOPIC: i8 = 1;
pub(crate) const SOURCE_CLIENT_METRICS: i8 = 7;
pub(crate) const SOURCE_GROUP: i8 = 8;
const SOURCE_DYNAMIC_BROKER: i8 = 2;
const SOURCE_DYNAMIC_DEFAULT_BROKER: i8 = 3;
pub(crate) const SOURCE_STATIC_BROKER: i8 = 4;
pub(crate) const SOURCE_DEFAULT: i8 = 5;

/// Kafka's number for the source of a default.
pub(crate) fn code_of(source: DefaultSource) -> i8 {
    match source {
        DefaultSource::Broker => SOURCE_DYNAMIC_BROKER,
        DefaultSource::Cluster => SOURCE_DYNAMIC_DEFAULT_BROKER,
        DefaultSource::File => SOURCE_STATIC_BROKER,
    }
}

/// One key of the broker with its value.
#[derive(Debug)]
pub(crate) struct BrokerConfig {
    pub(crate) name: &'static str,
    pub(crate) config_type: ConfigType,
    pub(crate) value: String,
    /// What the key does.
    pub(crate) documentation: &'static str,
    /// Whether the operator gave the value.
    pub(crate) is_given: bool,
}

/// Keys that Kafka has and the file has not: their values are fixed.
const FIXED: &[(&str, &str)] = &[
    ("broker.id", "Number of the broker; 0 where there is one."),
    ("default.replication.factor", "Replicas of a topic: the data directory is the only one."),
    ("group.coordinator.rebalance.protocols", "Protocols of groups that the broker speaks."),
    ("group.share.assignors", "Assignors of share groups."),
    ("group.streams.assignors", "Assignors of streams groups."),
    ("node.id", "Number of the broker; 0 where there is one."),
];

impl Config {
    /// All keys in alphabetical order.
    pub(crate) fn broker_configs(&self, node_id: i32) -> Vec<BrokerConfig> {
        let mut configs = self.own_configs(node_id);
        configs.extend(self.timing_configs());
        configs.extend(classic_group_configs(self));
        configs.extend(consumer_group_configs(&self.groups.consumer));
        configs.extend(share_group_configs(&self.groups.share));
        configs.extend(streams_group_configs(&self.groups.streams));
        configs.extend(self.authorization_configs());
        configs.sort_unstable_by_key(|(name, ..)| *name);
        let shown = configs.into_iter().map(|(name, config_type, value)| {
            let of_file = self.file_keys.iter().find(|key| key.name == name);
            let fixed = FIXED.iter().find(|(fixed, _)| *fixed == name);
            let documentation = of_file.map(|key| key.documentation);
            // Each broker of Kafka is given its number.
            let is_number = matches!(name, "broker.id" | "node.id");
            BrokerConfig {
                name,
                config_type,
                value,
                documentation: documentation.or(fixed.map(|(_, text)| *text)).unwrap_or_default(),
                is_given: is_number || of_file.is_some_and(|key| key.is_given),
            }
        });
        shown.collect()
    }

    fn own_configs(&self, node_id: i32) -> Vec<Named> {
        let listeners: Vec<_> = self.listeners.iter().map(ListenerConfig::url).collect();
        vec![
            list("advertised.listeners", self.advertised_listeners()),
            boolean("auto.create.topics.enable", self.auto_create_topics),
            int("broker.id", node_id),
            int("default.replication.factor", 1),
            list("listeners", listeners.join(",")),
            list("log.dirs", self.data_dir.display().to_string()),
            long("memory.max.bytes", self.memory_bytes),
            int("node.id", node_id),
            int("num.network.threads", self.network_threads),
            int("num.partitions", self.partitions_default),
            int("quota.window.num", self.quota_window.num),
            int("quota.window.size.seconds", self.quota_window.size_seconds),
            int("socket.request.max.bytes", self.request_bytes_max),
            int("telemetry.max.bytes", self.telemetry.bytes_max),
            int("transaction.max.timeout.ms", self.transactions.timeout_ms_max),
            int("transactional.id.expiration.ms", self.transactions.id_expiration_ms),
        ]
    }

    fn timing_configs(&self) -> [Named; 3] {
        let ms = |name, time: Duration| long(name, time.as_millis());
        [
            ms("connections.max.idle.ms", self.connections_max_idle),
            ms("log.cleaner.backoff.ms", self.log_cleaner_backoff),
            ms("log.retention.check.interval.ms", self.log_retention_check_interval),
        ]
    }

    fn authorization_configs(&self) -> Vec<Named> {
        let Some(authorization) = &self.authorization else { return Vec::new() };
        let users: Vec<_> = authorization.super_users.iter().map(ToString::to_string).collect();
        vec![
            boolean("allow.everyone.if.no.acl.found", authorization.allow_everyone_if_no_acl_found),
            text("authorizer.class.name", STANDARD_AUTHORIZER.to_owned()),
            text("super.users", users.join(";")),
        ]
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

type Named = (&'static str, ConfigType, String);

fn int(name: &'static str, value: impl ToString) -> Named {
    (name, ConfigType::Int, value.to_string())
}

fn long(name: &'static str, value: impl ToString) -> Named {
    (name, ConfigType::Long, value.to_string())
}

fn boolean(name: &'static str, value: bool) -> Named {
    (name, ConfigType::Boolean, value.to_string())
}

fn text(name: &'static str, value: String) -> Named {
    (name, ConfigType::String, value)
}

fn list(name: &'static str, value: String) -> Named {
    (name, ConfigType::List, value)
}

/// Settings of classic groups and of offsets.
fn classic_group_configs(config: &Config) -> Vec<Named> {
    const MINUTE_MS: i64 = 60_000;
    let groups = &config.groups;
    vec![
        list("group.coordinator.rebalance.protocols", "classic,consumer,share,streams".to_owned()),
        int("group.initial.rebalance.delay.ms", groups.initial_rebalance_delay_ms),
        int("group.max.session.timeout.ms", groups.session_timeout_ms_max),
        int("group.max.size", groups.group_size_max),
        int("group.min.session.timeout.ms", groups.session_timeout_ms_min),
        int("offset.metadata.max.bytes", groups.offset_metadata_bytes_max),
        long("offsets.retention.check.interval.ms", groups.offsets_retention_check_interval_ms),
        int("offsets.retention.minutes", groups.offsets_retention_ms / MINUTE_MS),
    ]
}

fn consumer_group_configs(config: &ConsumerGroupSettings) -> Vec<Named> {
    let assignors: Vec<_> = config.assignors.iter().map(|assignor| assignor.name()).collect();
    let (sessions, heartbeats) =
        (&config.session_timeout_ms_range, &config.heartbeat_interval_ms_range);
    let (intervals, own) = (&config.assignment_interval_ms_range, &config.settings);
    vec![
        int("group.consumer.assignment.interval.ms", own.assignment_interval_ms),
        list("group.consumer.assignors", assignors.join(",")),
        int("group.consumer.heartbeat.interval.ms", own.heartbeat_interval_ms),
        int("group.consumer.max.assignment.interval.ms", intervals.end()),
        int("group.consumer.max.heartbeat.interval.ms", heartbeats.end()),
        int("group.consumer.max.session.timeout.ms", sessions.end()),
        int("group.consumer.max.size", config.group_size_max),
        text("group.consumer.migration.policy", config.migration.name().to_owned()),
        int("group.consumer.min.assignment.interval.ms", intervals.start()),
        int("group.consumer.min.heartbeat.interval.ms", heartbeats.start()),
        int("group.consumer.min.session.timeout.ms", sessions.start()),
        int("group.consumer.regex.refresh.interval.ms", config.regex_refresh_interval_ms),
        int("group.consumer.session.timeout.ms", own.session_timeout_ms),
    ]
}

fn share_group_configs(config: &ShareGroupSettings) -> Vec<Named> {
    let mut configs = vec![
        list("group.share.assignors", "simple".to_owned()),
        int("group.share.max.size", config.group_size_max),
        boolean("errors.deadletterqueue.auto.create.topics.enable", config.dead_letter_auto_create),
        text("errors.deadletterqueue.topic.name.prefix", config.dead_letter_prefix.clone()),
    ];
    macro_rules! add {
        ($name:literal $setting:ident $range:ident) => {
            configs.extend([
                int(concat!("group.share.", $name), config.settings.$setting),
                int(concat!("group.share.min.", $name), config.$range.start()),
                int(concat!("group.share.max.", $name), config.$range.end()),
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

fn streams_group_configs(config: &StreamsGroupSettings) -> Vec<Named> {
    let own = &config.settings;
    let mut configs = vec![
        list("group.streams.assignors", "sticky".to_owned()),
        int("group.streams.initial.rebalance.delay.ms", own.initial_rebalance_delay_ms),
        int("group.streams.max.size", config.group_size_max),
        int("group.streams.max.standby.replicas", config.standby_replicas_range.end()),
        int("group.streams.num.standby.replicas", own.standby_replicas),
        list("group.streams.rack.aware.assignment.tags", own.rack_tags.join(",")),
    ];
    macro_rules! add {
        ($name:literal $setting:ident $range:ident) => {
            configs.extend([
                int(concat!("group.streams.", $name), own.$setting),
                int(concat!("group.streams.min.", $name), config.$range.start()),
                int(concat!("group.streams.max.", $name), config.$range.end()),
            ]);
        };
    }
    add!("session.timeout.ms" session_timeout_ms session_timeout_ms_range);
    add!("heartbeat.interval.ms" heartbeat_interval_ms heartbeat_interval_ms_range);
    add!("assignment.interval.ms" assignment_interval_ms assignment_interval_ms_range);
    configs
}
