//! Keys of Kafka's `server.properties` that the broker's file does not have, each with the reason.
//! The keys that it has are in [`broker::File`](super::broker::File).

/// Why the broker's file does not have a key of Kafka.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    /// The broker works without it; leaving it out loses nothing.
    None(&'static str),
    /// The broker does not do what the key asks for.
    Unsupported(&'static str),
}

use Effect::{None as Meaningless, Unsupported};

/// Former names of keys, their names, and what else changes with the name.
pub(super) const RENAMED: [(&str, &str, &str); 21] = [
    ("data_dir", "log.dirs", ""),
    ("log.dir", "log.dirs", ""),
    ("listen", "listeners", ", with a value such as PLAINTEXT://127.0.0.1:9092"),
    ("advertised", "advertised.listeners", ", with a value such as PLAINTEXT://kafka.example:9092"),
    (
        "authorization",
        "authorizer.class.name",
        ", together with super.users and allow.everyone.if.no.acl.found",
    ),
    ("network_threads", "num.network.threads", ""),
    ("auto_create_topics", "auto.create.topics.enable", ""),
    ("partitions_default", "num.partitions", ""),
    ("group_initial_rebalance_delay_ms", "group.initial.rebalance.delay.ms", ""),
    ("log_retention_check_interval_ms", "log.retention.check.interval.ms", ""),
    ("log_cleaner_backoff_ms", "log.cleaner.backoff.ms", ""),
    ("max_connections", "max.connections", ""),
    ("max_connections_per_ip", "max.connections.per.ip", ""),
    ("max.reauthentication.ms", "max_reauthentication_ms", ""),
    ("bootstrap", "bootstrap.servers", ""),
    ("group", "group.id", ""),
    ("security.protocol", "tls", " and \"sasl\", each a mapping"),
    ("ssl.truststore.location", "tls", ", a mapping with trust_file or trust_store_file"),
    ("sasl.mechanism", "sasl", ", a mapping with mechanism, user and password_file"),
    ("sasl.jaas.config", "sasl", ", a mapping with mechanism, user and password_file"),
    ("topic", "topics", ""),
];

/// The reason for which the broker's file does not have a key of Kafka; `None` for a key that it
/// has, or that Kafka does not have.
pub(crate) fn effect(key: &str) -> Option<Effect> {
    let matches = |pattern: &str| match pattern.strip_suffix('*') {
        Some(start) => key.starts_with(start),
        None => key == pattern,
    };
    let entry = EFFECTS.iter().find(|(patterns, _)| patterns.iter().any(|it| matches(it)));
    entry.map(|(_, effect)| *effect)
}

/// Kafka's keys, where a `*` stands for any end of a name; the first match counts.
const EFFECTS: &[(&[&str], Effect)] = &[
    (
        &["process.roles", "controller.*", "controlled.shutdown.*", "quorum.*"],
        Meaningless("the broker keeps its metadata in its own journal; there is no controller"),
    ),
    (
        &["broker.id", "node.id", "broker.id.generation.enable", "reserved.broker.max.id"],
        Meaningless("the one broker has the id 0"),
    ),
    (
        &["zookeeper.*", "metadata.*", "initial.broker.registration.timeout.ms"],
        Meaningless("the broker keeps its metadata in its own journal"),
    ),
    (
        &[
            "inter.broker.*",
            "security.inter.broker.protocol",
            "sasl.mechanism.inter.broker.protocol",
        ],
        Meaningless("there is no other broker"),
    ),
    (
        &["broker.heartbeat.interval.ms", "broker.session.timeout.ms", "broker.rack"],
        Meaningless("there is no other broker"),
    ),
    (
        &[
            "replica.*",
            "num.replica.*",
            "leader.*",
            "follower.*",
            "auto.leader.rebalance.enable",
            "fetch.purgatory.purge.interval.requests",
            "producer.purgatory.purge.interval.requests",
            "delete.records.purgatory.purge.interval.requests",
        ],
        Meaningless("each partition has one replica, on this broker"),
    ),
    (
        &["default.replication.factor"],
        Unsupported("each partition has one replica, on this broker"),
    ),
    (
        &[
            "num.io.threads",
            "background.threads",
            "queued.max.requests",
            "queued.max.request.bytes",
        ],
        Meaningless("network threads handle requests themselves, without a queue"),
    ),
    (
        &["socket.send.buffer.bytes", "socket.receive.buffer.bytes"],
        Meaningless("the operating system sizes socket buffers"),
    ),
    (&["socket.listen.backlog.size"], Meaningless("the backlog is 1024 connections")),
    (
        &["num.recovery.threads.per.data.dir", "log.flush.offset.checkpoint.interval.ms"],
        Meaningless("a start reads a checkpoint and the end of the journal"),
    ),
    (
        &["log.flush.start.offset.checkpoint.interval.ms", "log.dir.failure.timeout.ms"],
        Meaningless("a start reads a checkpoint and the end of the journal"),
    ),
    (
        &["offsets.topic.*", "offsets.load.buffer.size", "offsets.commit.*"],
        Meaningless("committed offsets are in the journal, not in a topic"),
    ),
    (
        &["log.cleaner.enable"],
        Unsupported("topics with cleanup.policy=compact are always compacted"),
    ),
    (
        &["log.cleaner.threads", "log.cleaner.io.*", "log.cleaner.dedupe.buffer.size"],
        Meaningless("compaction adapts to the load"),
    ),
    (&["delete.topic.enable"], Unsupported("topics can always be deleted")),
    (
        &["transaction.state.log.*", "add.partitions.to.txn.*"],
        Meaningless("transactions are in the journal"),
    ),
    (
        &[
            "transaction.abort.*",
            "transaction.remove.*",
            "transaction.partition.*",
            "transaction.two.*",
        ],
        Unsupported(
            "timeouts are exact, and the broker always checks a batch against its \
             transaction",
        ),
    ),
    (&["unstable.*"], Meaningless("the broker serves no unstable API versions")),
    (
        &["producer.id.expiration.*", "max.incremental.fetch.session.cache.slots"],
        Unsupported("the broker has a fixed limit"),
    ),
    (&["fetch.max.bytes"], Unsupported("the broker has a fixed limit")),
    (
        &["share.*", "group.share.persister.*", "group.share.initialize.*"],
        Meaningless("share groups are in the journal, not in a topic"),
    ),
    (
        &["group.share.assignors", "group.share.assignor.offload.enable"],
        Meaningless("share groups have one assignor, on the network threads"),
    ),
    (&["group.share.dlq.*"], Unsupported("share groups have no dead letter queue")),
    (&["group.share.max.share.sessions"], Unsupported("the broker has a fixed limit")),
    (
        &["group.streams.assignors", "group.streams.assignor.offload.enable"],
        Meaningless("streams groups have one assignor, on the network threads"),
    ),
    (
        &[
            "group.streams.num.warmup.replicas",
            "group.streams.max.warmup.replicas",
            "group.streams.task.offset.interval.ms",
            "group.streams.min.task.offset.interval.ms",
            "group.streams.acceptable.recovery.lag",
        ],
        Meaningless("no warm-up tasks are assigned, nor does Kafka 4.4 assign any"),
    ),
    (
        &["group.streams.topology.description.*"],
        Unsupported("the broker keeps no descriptions of topologies"),
    ),
    (
        &["group.coordinator.*", "group.consumer.assignor.offload.enable"],
        Meaningless("groups of all protocols are served, on the network threads"),
    ),
    (&["remote.*"], Unsupported("there is no tiered storage")),
    (
        &["metric.reporters", "metrics.*", "kafka.metrics.*", "auto.include.jmx.reporter"],
        Meaningless("metrics are on the admin port, at /metrics"),
    ),
    (
        &["kafka.csv.*", "confluent.support.*"],
        Meaningless("metrics are on the admin port, at /metrics"),
    ),
    (
        &["client.quota.callback.class"],
        Unsupported("quotas are those of users, client ids and addresses"),
    ),
    (
        &["max.connections.per.ip.overrides", "max.connection.creation.rate"],
        Unsupported("limits are the same for all addresses, and there is no limit of the rate"),
    ),
    (&["config.providers*"], Unsupported("secrets are in files, which keys ending in _file name")),
    (
        &[
            "create.topic.policy.class.name",
            "alter.config.policy.class.name",
            "principal.builder.class",
        ],
        Unsupported("the broker runs no Java classes"),
    ),
    (
        &[
            "security.providers",
            "early.start.listeners",
            "connection.failed.authentication.delay.ms",
        ],
        Meaningless("the broker has no such setting"),
    ),
    (
        &["log.message.format.version", "log.message.downconversion.enable", "password.encoder.*"],
        Meaningless("Kafka 4 has no such key"),
    ),
    (
        &[
            "listener.security.protocol.map",
            "ssl.*",
            "sasl.*",
            "connections.max.reauth.ms",
            "listener.name.*",
        ],
        Unsupported("a list of listeners has the keys `tls` and `sasl` of each"),
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_key_of_the_file_has_an_excuse() {
        let problem = crate::config::parse::<crate::config::broker::File>("'0': 1").unwrap_err();
        let problem = problem.to_string();
        let (_, keys) = problem.split_once("known keys: ").unwrap();
        for key in keys.split(", ") {
            assert_eq!(effect(key), None, "{key}");
        }
    }

    #[test]
    fn a_pattern_with_a_star_stands_for_every_end() {
        assert!(matches!(effect("replica.lag.time.max.ms"), Some(Meaningless(_))));
        assert!(matches!(effect("remote.log.storage.system.enable"), Some(Unsupported(_))));
        assert_eq!(effect("replicas"), None);
    }
}
