//! Every key that a topic can override: the keys of Kafka 4.4, with what each does here.

use super::value::Form;

/// One key that a topic can override.
pub(crate) struct TopicKey {
    /// Kafka's name.
    pub(crate) name: &'static str,
    /// The value in force where a topic does not override it.
    pub(crate) default: &'static str,
    /// The broker-level keys that give all topics a default, the one that wins first.
    pub(crate) broker_keys: &'static [BrokerKey],
    /// What the key does here.
    pub(crate) documentation: &'static str,
    /// What values look like.
    pub(super) form: Form,
    /// Why only the default is accepted, for a key that is not supported.
    pub(super) default_only: Option<&'static str>,
}

/// A broker-level key that gives all topics a default.
#[derive(Debug)]
pub(crate) struct BrokerKey {
    /// Kafka's name.
    pub(crate) name: &'static str,
    /// What one of its units counts in units of the topic's key.
    pub(crate) unit: i64,
}

const MINUTES: i64 = 60_000;
const HOURS: i64 = 60 * MINUTES;

const WHOLE_INT: Form = Form::Int(0..=i32::MAX);
const WHOLE_LONG: Form = Form::Long(0..=i64::MAX);
const POSITIVE_LONG: Form = Form::Long(1..=i64::MAX);

/// A broker-level key with the values of the topic's key.
const fn same(name: &'static str) -> BrokerKey {
    BrokerKey { name, unit: 1 }
}

/// A broker-level key that counts in another unit than the topic's key.
const fn in_units(name: &'static str, unit: i64) -> BrokerKey {
    BrokerKey { name, unit }
}

/// A key that is in force, or stored as a hint whose documentation says why it changes nothing.
const fn key(
    name: &'static str,
    default: &'static str,
    broker_keys: &'static [BrokerKey],
    form: Form,
    documentation: &'static str,
) -> TopicKey {
    TopicKey { name, default, broker_keys, documentation, form, default_only: None }
}

/// A key of which only the default is accepted.
const fn unsupported(key: TopicKey, reason: &'static str) -> TopicKey {
    TopicKey {
        name: key.name,
        default: key.default,
        broker_keys: key.broker_keys,
        documentation: key.documentation,
        form: key.form,
        default_only: Some(reason),
    }
}

/// All keys, in alphabetical order.
pub(crate) static TOPIC_KEYS: [TopicKey; 37] = [
    key(
        "cleanup.policy",
        "delete",
        &[same("log.cleanup.policy")],
        Form::Words(&["compact", "delete"]),
        "Removal of old records: `delete` removes them by retention.ms and retention.bytes, \
         `compact` removes a record once a newer one has its key. Both may be set; an empty value \
         keeps all records.",
    ),
    key(
        "compression.gzip.level",
        "-1",
        &[same("compression.gzip.level")],
        Form::GzipLevel,
        "Level of gzip where compression.type is `gzip`: 1 to 9, or -1 for its default.",
    ),
    key(
        "compression.lz4.level",
        "9",
        &[same("compression.lz4.level")],
        Form::Int(1..=17),
        "Level of lz4 where compression.type is `lz4`: 1 to 17. As in Kafka, 9 is the fast \
         compressor, and all other levels are those of the slow one.",
    ),
    key(
        "compression.type",
        "producer",
        &[same("compression.type")],
        Form::Word(&["uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"]),
        "Codec of stored batches: `producer` keeps the producer's compression; with any other \
         value the broker recompresses batches of other codecs.",
    ),
    key(
        "compression.zstd.level",
        "3",
        &[same("compression.zstd.level")],
        Form::Int(-131_072..=22),
        "Level of zstd where compression.type is `zstd`.",
    ),
    key(
        "delete.retention.ms",
        "86400000",
        &[same("log.cleaner.delete.retention.ms")],
        WHOLE_LONG,
        "Milliseconds that a tombstone stays in a compacted topic after its first cleaning, so \
         that consumers can still read it.",
    ),
    key(
        "errors.deadletterqueue.group.enable",
        "false",
        &[],
        Form::Boolean,
        "Whether share groups may write dead-letter records to the topic.",
    ),
    key(
        "file.delete.delay.ms",
        "60000",
        &[same("log.segment.delete.delay.ms")],
        WHOLE_LONG,
        "Stored only: partitions have no files of their own.",
    ),
    key(
        "flush.messages",
        "9223372036854775807",
        &[same("log.flush.interval.messages")],
        POSITIVE_LONG,
        "Stored only: the broker's `durability` decides for all topics.",
    ),
    key(
        "flush.ms",
        "9223372036854775807",
        &[same("log.flush.interval.ms"), same("log.flush.scheduler.interval.ms")],
        WHOLE_LONG,
        "Stored only: the broker's `durability` decides for all topics.",
    ),
    key(
        "follower.replication.throttled.replicas",
        "",
        &[],
        Form::Replicas,
        "Stored only: there is one replica, so no replication to throttle.",
    ),
    key(
        "index.interval.bytes",
        "4096",
        &[same("log.index.interval.bytes")],
        WHOLE_INT,
        "Stored only: the index has an entry for every batch.",
    ),
    key(
        "leader.replication.throttled.replicas",
        "",
        &[],
        Form::Replicas,
        "Stored only: there is one replica, so no replication to throttle.",
    ),
    key(
        "local.retention.bytes",
        "-2",
        &[same("log.local.retention.bytes")],
        Form::Long(-2..=i64::MAX),
        "Stored only: it matters only with remote.storage.enable, which is not supported.",
    ),
    key(
        "local.retention.ms",
        "-2",
        &[same("log.local.retention.ms")],
        Form::Long(-2..=i64::MAX),
        "Stored only: it matters only with remote.storage.enable, which is not supported.",
    ),
    key(
        "max.compaction.lag.ms",
        "9223372036854775807",
        &[same("log.cleaner.max.compaction.lag.ms")],
        POSITIVE_LONG,
        "Age in milliseconds at which a record makes its compacted log due for cleaning, \
         regardless of min.cleanable.dirty.ratio.",
    ),
    unsupported(
        key(
            "max.decompressed.message.bytes",
            "2147483639",
            &[same("max.decompressed.message.bytes")],
            Form::Int(1..=2_147_483_639),
            "Bytes of the largest record after decompression; a limit is not supported, so only \
             the default is accepted. The frame limit of the listener bounds all records of a \
             batch.",
        ),
        "not supported: the frame limit of the listener bounds batches after decompression",
    ),
    key(
        "max.message.bytes",
        "1048588",
        &[same("message.max.bytes")],
        WHOLE_INT,
        "Bytes of the largest accepted record batch, after compression.",
    ),
    key(
        "message.timestamp.after.max.ms",
        "3600000",
        &[same("log.message.timestamp.after.max.ms")],
        WHOLE_LONG,
        "Milliseconds by which a record's timestamp may be ahead of the broker's clock.",
    ),
    key(
        "message.timestamp.before.max.ms",
        "9223372036854775807",
        &[same("log.message.timestamp.before.max.ms")],
        WHOLE_LONG,
        "Milliseconds by which a record's timestamp may be behind the broker's clock.",
    ),
    key(
        "message.timestamp.type",
        "CreateTime",
        &[same("log.message.timestamp.type")],
        Form::Word(&["CreateTime", "LogAppendTime"]),
        "Whether a record keeps its producer's timestamp or gets the time of the append.",
    ),
    key(
        "min.cleanable.dirty.ratio",
        "0.5",
        &[same("log.cleaner.min.cleanable.ratio")],
        Form::Ratio,
        "Share of a compacted log, by bytes, that must be uncleaned before the log is due for \
         cleaning.",
    ),
    key(
        "min.compaction.lag.ms",
        "0",
        &[same("log.cleaner.min.compaction.lag.ms")],
        WHOLE_LONG,
        "Milliseconds during which compaction keeps a new record.",
    ),
    key(
        "min.insync.replicas",
        "1",
        &[same("min.insync.replicas")],
        Form::Int(1..=i32::MAX),
        "Replicas that must have a record before acks=all succeeds. As in Kafka, a number above \
         that of the topic's replicas, which is one, counts as that number.",
    ),
    key(
        "preallocate",
        "false",
        &[same("log.preallocate")],
        Form::Boolean,
        "Stored only: the journal always allocates its files before it writes to them.",
    ),
    key(
        "remote.copy.lag.bytes",
        "-1",
        &[same("log.remote.copy.lag.bytes")],
        Form::Long(-1..=i64::MAX),
        "Stored only: it matters only with remote.storage.enable, which is not supported.",
    ),
    key(
        "remote.copy.lag.ms",
        "0",
        &[same("log.remote.copy.lag.ms")],
        Form::Long(-1..=i64::MAX),
        "Stored only: it matters only with remote.storage.enable, which is not supported.",
    ),
    key(
        "remote.log.copy.disable",
        "false",
        &[],
        Form::Boolean,
        "Stored only: it matters only with remote.storage.enable, which is not supported.",
    ),
    key(
        "remote.log.delete.on.disable",
        "false",
        &[],
        Form::Boolean,
        "Stored only: it matters only with remote.storage.enable, which is not supported.",
    ),
    unsupported(
        key(
            "remote.storage.enable",
            "false",
            &[],
            Form::Boolean,
            "Tiered storage is not supported; only false is accepted.",
        ),
        "not supported: there is no tiered storage, so only false is accepted",
    ),
    key(
        "retention.bytes",
        "-1",
        &[same("log.retention.bytes")],
        Form::Long(i64::MIN..=i64::MAX),
        "Bytes that a partition keeps, if cleanup.policy has `delete`; above them its oldest \
         batches are deleted. A negative number sets no limit.",
    ),
    key(
        "retention.ms",
        "604800000",
        &[
            same("log.retention.ms"),
            in_units("log.retention.minutes", MINUTES),
            in_units("log.retention.hours", HOURS),
        ],
        Form::Long(-1..=i64::MAX),
        "Milliseconds that a record is kept, if cleanup.policy has `delete`; -1 for ever.",
    ),
    key(
        "segment.bytes",
        "1073741824",
        &[same("log.segment.bytes")],
        Form::Int(1_048_576..=i32::MAX),
        "Stored only: partitions share the journal and have no segments of their own.",
    ),
    key(
        "segment.index.bytes",
        "10485760",
        &[same("log.index.size.max.bytes")],
        Form::Int(4..=i32::MAX),
        "Stored only: a partition has no index file.",
    ),
    key(
        "segment.jitter.ms",
        "0",
        &[same("log.roll.jitter.ms"), in_units("log.roll.jitter.hours", HOURS)],
        WHOLE_LONG,
        "Stored only: partitions share the journal and have no segments of their own.",
    ),
    key(
        "segment.ms",
        "604800000",
        &[same("log.roll.ms"), in_units("log.roll.hours", HOURS)],
        POSITIVE_LONG,
        "Stored only: retention and compaction work on batches, so they do not wait for a new \
         segment.",
    ),
    key(
        "unclean.leader.election.enable",
        "false",
        &[same("unclean.leader.election.enable")],
        Form::Boolean,
        "Stored only: there is one replica, which is always in sync.",
    ),
];
