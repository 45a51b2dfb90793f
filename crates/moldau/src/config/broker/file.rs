//! The keys of the broker's file. One that Kafka has too has Kafka's name.

use std::net::SocketAddr;
use std::path::PathBuf;

use moldau_broker::FileKey;
use serde::Deserialize;

use super::telemetry;
use crate::arguments::DurabilityChoice;
use crate::config::listeners::Listeners;
use crate::config::problem::At;

/// Makes the struct of the file: keys with their types, then keys that are defaults of topic
/// configurations, which the broker itself parses.
macro_rules! file {
    (
        $($(#[doc = $doc:literal])* $name:literal => $field:ident: $type:ty,)*
        topics: { $($topic_name:literal => $topic:ident,)* }
    ) => {
        /// The keys of the file. Each may be left out.
        #[derive(Debug, Default, Deserialize)]
        #[serde(deny_unknown_fields, default)]
        pub(crate) struct File {
            $($(#[doc = $doc])* #[serde(rename = $name)] pub(super) $field: Option<At<$type>>,)*
            $(#[serde(rename = $topic_name)] $topic: Option<At<String>>,)*
        }

        impl File {
            /// The keys and their documentation, in order, but for the defaults of topics.
            pub(crate) const KEYS: &[(&'static str, &'static str)] =
                &[$(($name, concat!($($doc),*))),*];

            /// The keys with their documentation and whether the file has them, but for the
            /// defaults of topics.
            pub(super) fn described(&self) -> Vec<FileKey> {
                let is_given = [$(self.$field.is_some()),*];
                let described = Self::KEYS.iter().zip(is_given).map(|((name, text), is_given)| {
                    FileKey { name, documentation: text.trim_start(), is_given }
                });
                described.collect()
            }

            /// The defaults of topic configurations that the file has.
            pub(super) fn topic_defaults(
                &self,
            ) -> impl Iterator<Item = (&'static str, &At<String>)> {
                let keys = [$(($topic_name, &self.$topic)),*];
                keys.into_iter().filter_map(|(name, value)| Some((name, value.as_ref()?)))
            }
        }
    };
}

file! {
    /// Directory of the journal. Default `moldau-data`.
    "log.dirs" => data_dir: PathBuf,
    /// Listening addresses for Kafka clients: `NAME://HOST:PORT`, separated by commas, or a list of
    /// listeners with TLS, SASL and limits. Default `PLAINTEXT://127.0.0.1:9092`.
    "listeners" => listeners: Listeners,
    /// Addresses for clients, `NAME://HOST:PORT` of listeners without TLS and SASL. Default: the
    /// address that each client connected to.
    "advertised.listeners" => advertised_listeners: String,
    /// Address of the admin pages. Default `127.0.0.1:9644`.
    "admin" => admin: SocketAddr,
    /// Class of the authorizer. Default: every client may do everything.
    "authorizer.class.name" => authorizer: String,
    /// Principals that may do everything, separated by semicolons. Default: none.
    "super.users" => super_users: String,
    /// Whether every client may use a resource without an access control list. Default `false`.
    "allow.everyone.if.no.acl.found" => allow_everyone: bool,
    /// `fsync` or `os`. Default `fsync`.
    "durability" => durability: DurabilityChoice,
    /// Milliseconds that a flush waits for more records, for slow network disks. Default 0.
    "commit_delay_ms" => commit_delay_ms: u64,
    /// Whether compressed batches are unpacked to check their records. Default true.
    "check_compressed_records" => check_compressed_records: bool,
    /// Bytes of memory for records, requests and responses. Default: five eighths of the machine's
    /// memory, or of its control group's.
    "memory.max.bytes" => memory_max_bytes: usize,
    /// MiB of recent records in memory. Default: 256, or a sixteenth of memory.max.bytes.
    "tail_cache_mib" => tail_cache_mib: usize,
    /// MiB of a journal file, 1 to 1024: the unit of allocation, and the limit of a batch. Default
    /// 256.
    "journal_file_mib" => journal_file_mib: u64,
    /// MiB of free space on the disk below which records are refused, but topics and commits are
    /// not. At least the size of a journal file. Default 256.
    "disk_reserve_mib" => disk_reserve_mib: u64,
    /// MiB per second of the daily check of all data; 0 for no check. Default 4.
    "scrub_mib_per_second" => scrub_mib_per_second: u64,
    /// Milliseconds that requests in flight may take after SIGTERM. Default 10000.
    "drain_timeout_ms" => drain_timeout_ms: u64,
    /// Threads that serve connections. Default: one for each core.
    "num.network.threads" => network_threads: usize,
    /// Open connections of the process. Default: 16384, or one for each 256 KiB of
    /// memory.max.bytes.
    "max.connections" => max_connections: usize,
    /// Open connections of one address. Default: no limit.
    "max.connections.per.ip" => max_connections_per_ip: usize,
    /// Milliseconds until the broker closes an idle connection. Default 600000.
    "connections.max.idle.ms" => connections_max_idle_ms: u64,
    /// Bytes of the largest request. Default 104857600.
    "socket.request.max.bytes" => socket_request_max_bytes: usize,
    /// Whether a request for an unknown topic creates it. Default `true`.
    "auto.create.topics.enable" => auto_create_topics: bool,
    /// Number of partitions of a topic created without one. Default 1.
    "num.partitions" => partitions_default: u32,
    /// Milliseconds that the first member of a group waits for others. Default 500.
    "group.initial.rebalance.delay.ms" => group_initial_rebalance_delay_ms: u64,
    /// Shortest session timeout of a group member, in milliseconds. Default 6000.
    "group.min.session.timeout.ms" => group_min_session_timeout_ms: u64,
    /// Longest session timeout of a group member, in milliseconds. Default 1800000.
    "group.max.session.timeout.ms" => group_max_session_timeout_ms: u64,
    /// Members of one group. Default 10000.
    "group.max.size" => group_max_size: usize,
    /// Milliseconds without a heartbeat after which a member of the consumer protocol is put out.
    /// Default 45000.
    "group.consumer.session.timeout.ms" => group_consumer_session_timeout_ms: u64,
    /// Shortest session timeout that a group may set. Default 45000.
    "group.consumer.min.session.timeout.ms" => group_consumer_min_session_timeout_ms: u64,
    /// Longest session timeout that a group may set. Default 60000.
    "group.consumer.max.session.timeout.ms" => group_consumer_max_session_timeout_ms: u64,
    /// Milliseconds between two heartbeats of a member of the consumer protocol. Default 5000.
    "group.consumer.heartbeat.interval.ms" => group_consumer_heartbeat_interval_ms: u64,
    /// Shortest heartbeat interval that a group may set. Default 5000.
    "group.consumer.min.heartbeat.interval.ms" => group_consumer_min_heartbeat_interval_ms: u64,
    /// Longest heartbeat interval that a group may set. Default 15000.
    "group.consumer.max.heartbeat.interval.ms" => group_consumer_max_heartbeat_interval_ms: u64,
    /// Least milliseconds between two target assignments of a group. Default 1000.
    "group.consumer.assignment.interval.ms" => group_consumer_assignment_interval_ms: u64,
    /// Shortest assignment interval that a group may set. Default 0.
    "group.consumer.min.assignment.interval.ms" => group_consumer_min_assignment_interval_ms: u64,
    /// Longest assignment interval that a group may set. Default 15000.
    "group.consumer.max.assignment.interval.ms" => group_consumer_max_assignment_interval_ms: u64,
    /// Members of one group of the consumer protocol. Default 10000.
    "group.consumer.max.size" => group_consumer_max_size: usize,
    /// Assignors that members may ask for, the default first. Default `uniform,range`.
    "group.consumer.assignors" => group_consumer_assignors: String,
    /// Which groups with members change their protocol: `disabled`, `downgrade`, `upgrade` or
    /// `bidirectional`. Default `bidirectional`.
    "group.consumer.migration.policy" => group_consumer_migration_policy: String,
    /// Milliseconds after which the topics of a regular expression are looked for again. Default
    /// 600000.
    "group.consumer.regex.refresh.interval.ms" => group_consumer_regex_refresh_interval_ms: u64,
    /// Milliseconds without a heartbeat after which a member of a share group is put out. Default
    /// 45000.
    "group.share.session.timeout.ms" => group_share_session_timeout_ms: u64,
    /// Shortest session timeout that a share group may set. Default 45000.
    "group.share.min.session.timeout.ms" => group_share_min_session_timeout_ms: u64,
    /// Longest session timeout that a share group may set. Default 60000.
    "group.share.max.session.timeout.ms" => group_share_max_session_timeout_ms: u64,
    /// Milliseconds between two heartbeats of a member of a share group. Default 5000.
    "group.share.heartbeat.interval.ms" => group_share_heartbeat_interval_ms: u64,
    /// Shortest heartbeat interval that a share group may set. Default 5000.
    "group.share.min.heartbeat.interval.ms" => group_share_min_heartbeat_interval_ms: u64,
    /// Longest heartbeat interval that a share group may set. Default 15000.
    "group.share.max.heartbeat.interval.ms" => group_share_max_heartbeat_interval_ms: u64,
    /// Least milliseconds between two target assignments of a share group. Default 1000.
    "group.share.assignment.interval.ms" => group_share_assignment_interval_ms: u64,
    /// Shortest assignment interval that a share group may set. Default 0.
    "group.share.min.assignment.interval.ms" => group_share_min_assignment_interval_ms: u64,
    /// Longest assignment interval that a share group may set. Default 15000.
    "group.share.max.assignment.interval.ms" => group_share_max_assignment_interval_ms: u64,
    /// Milliseconds that a member of a share group may work on a record. Default 30000.
    "group.share.record.lock.duration.ms" => group_share_record_lock_duration_ms: u64,
    /// Shortest lock duration that a share group may set. Default 15000.
    "group.share.min.record.lock.duration.ms" => group_share_min_record_lock_duration_ms: u64,
    /// Longest lock duration that a share group may set. Default 60000.
    "group.share.max.record.lock.duration.ms" => group_share_max_record_lock_duration_ms: u64,
    /// How often a record is delivered to a share group at most. Default 5.
    "group.share.delivery.count.limit" => group_share_delivery_count_limit: u64,
    /// Lowest limit of deliveries that a share group may set. Default 2.
    "group.share.min.delivery.count.limit" => group_share_min_delivery_count_limit: u64,
    /// Highest limit of deliveries that a share group may set. Default 10.
    "group.share.max.delivery.count.limit" => group_share_max_delivery_count_limit: u64,
    /// Records of one partition that a share group may have locked. Default 2000.
    "group.share.partition.max.record.locks" => group_share_partition_max_record_locks: u64,
    /// Lowest limit of locked records that a share group may set. Default 100.
    "group.share.min.partition.max.record.locks" => group_share_min_partition_max_record_locks: u64,
    /// Highest limit of locked records that a share group may set. Default 4000.
    "group.share.max.partition.max.record.locks" => group_share_max_partition_max_record_locks: u64,
    /// Members of one share group. Default 200.
    "group.share.max.size" => group_share_max_size: usize,
    /// Whether a dead-letter topic of a share group that does not exist is created. Default
    /// `false`.
    "errors.deadletterqueue.auto.create.topics.enable" => dead_letter_auto_create: bool,
    /// How the names of dead-letter topics of share groups must begin; empty for no rule. Default
    /// `dlq.`.
    "errors.deadletterqueue.topic.name.prefix" => dead_letter_prefix: String,
    /// Milliseconds without a heartbeat after which a member of a streams group is put out. Default
    /// 45000.
    "group.streams.session.timeout.ms" => group_streams_session_timeout_ms: u64,
    /// Shortest session timeout that a streams group may set. Default 45000.
    "group.streams.min.session.timeout.ms" => group_streams_min_session_timeout_ms: u64,
    /// Longest session timeout that a streams group may set. Default 60000.
    "group.streams.max.session.timeout.ms" => group_streams_max_session_timeout_ms: u64,
    /// Milliseconds between two heartbeats of a member of a streams group. Default 5000.
    "group.streams.heartbeat.interval.ms" => group_streams_heartbeat_interval_ms: u64,
    /// Shortest heartbeat interval that a streams group may set. Default 5000.
    "group.streams.min.heartbeat.interval.ms" => group_streams_min_heartbeat_interval_ms: u64,
    /// Longest heartbeat interval that a streams group may set. Default 15000.
    "group.streams.max.heartbeat.interval.ms" => group_streams_max_heartbeat_interval_ms: u64,
    /// Least milliseconds between two target assignments of a streams group. Default 1000.
    "group.streams.assignment.interval.ms" => group_streams_assignment_interval_ms: u64,
    /// Shortest assignment interval that a streams group may set. Default 0.
    "group.streams.min.assignment.interval.ms" => group_streams_min_assignment_interval_ms: u64,
    /// Longest assignment interval that a streams group may set. Default 15000.
    "group.streams.max.assignment.interval.ms" => group_streams_max_assignment_interval_ms: u64,
    /// Milliseconds that the first member of an empty streams group waits for others. Default 3000.
    "group.streams.initial.rebalance.delay.ms" => group_streams_initial_rebalance_delay_ms: u64,
    /// Copies of the state of each task of a streams group. Default 0.
    "group.streams.num.standby.replicas" => group_streams_num_standby_replicas: u64,
    /// Most copies that a streams group may set. Default 2.
    "group.streams.max.standby.replicas" => group_streams_max_standby_replicas: u64,
    /// Tags that each client of a streams group must have, separated by commas. Default none.
    "group.streams.rack.aware.assignment.tags" => group_streams_rack_aware_assignment_tags: String,
    /// Members of one streams group. Default 10000.
    "group.streams.max.size" => group_streams_max_size: usize,
    /// Longest metadata string of a commit for one partition in bytes. Default 4096.
    "offset.metadata.max.bytes" => offset_metadata_max_bytes: usize,
    /// Minutes until offsets expire after the last member has left their group. Default 10080.
    "offsets.retention.minutes" => offsets_retention_minutes: u64,
    /// Milliseconds between two checks for expired offsets. Default 600000.
    "offsets.retention.check.interval.ms" => offsets_retention_check_interval_ms: u64,
    /// Longest timeout of a transaction in milliseconds. Default 900000.
    "transaction.max.timeout.ms" => transaction_max_timeout_ms: u64,
    /// Milliseconds until the broker forgets an unused transactional id. Default 604800000.
    "transactional.id.expiration.ms" => transactional_id_expiration_ms: u64,
    /// Windows over which the rates of clients with a quota are measured. Default 11.
    "quota.window.num" => quota_window_num: u32,
    /// Seconds of each window. Default 1.
    "quota.window.size.seconds" => quota_window_size_seconds: u32,
    /// Bytes of the largest push of metrics by a client, compressed, up to 16777216. Default
    /// 1048576.
    "telemetry.max.bytes" => telemetry_max_bytes: usize,
    /// Where metrics that clients push go by OTLP. Default: nowhere.
    "telemetry" => telemetry: telemetry::Keys,
    // Kafka waits five minutes. A search in an index in memory is cheap, and space comes back
    // sooner.
    /// Milliseconds between two checks for records to delete. Default 30000.
    "log.retention.check.interval.ms" => log_retention_check_interval_ms: u64,
    /// Milliseconds between two checks for logs to compact. Default 15000.
    "log.cleaner.backoff.ms" => log_cleaner_backoff_ms: u64,
    topics: {
        "log.cleanup.policy" => log_cleanup_policy,
        "compression.gzip.level" => compression_gzip_level,
        "compression.lz4.level" => compression_lz4_level,
        "compression.type" => compression_type,
        "compression.zstd.level" => compression_zstd_level,
        "log.cleaner.delete.retention.ms" => log_cleaner_delete_retention_ms,
        "log.segment.delete.delay.ms" => log_segment_delete_delay_ms,
        "log.flush.interval.messages" => log_flush_interval_messages,
        "log.flush.interval.ms" => log_flush_interval_ms,
        "log.flush.scheduler.interval.ms" => log_flush_scheduler_interval_ms,
        "log.index.interval.bytes" => log_index_interval_bytes,
        "log.local.retention.bytes" => log_local_retention_bytes,
        "log.local.retention.ms" => log_local_retention_ms,
        "log.cleaner.max.compaction.lag.ms" => log_cleaner_max_compaction_lag_ms,
        "max.decompressed.message.bytes" => max_decompressed_message_bytes,
        "message.max.bytes" => message_max_bytes,
        "log.message.timestamp.after.max.ms" => log_message_timestamp_after_max_ms,
        "log.message.timestamp.before.max.ms" => log_message_timestamp_before_max_ms,
        "log.message.timestamp.type" => log_message_timestamp_type,
        "log.cleaner.min.cleanable.ratio" => log_cleaner_min_cleanable_ratio,
        "log.cleaner.min.compaction.lag.ms" => log_cleaner_min_compaction_lag_ms,
        "min.insync.replicas" => min_insync_replicas,
        "log.preallocate" => log_preallocate,
        "log.remote.copy.lag.bytes" => log_remote_copy_lag_bytes,
        "log.remote.copy.lag.ms" => log_remote_copy_lag_ms,
        "log.retention.bytes" => log_retention_bytes,
        "log.retention.ms" => log_retention_ms,
        "log.retention.minutes" => log_retention_minutes,
        "log.retention.hours" => log_retention_hours,
        "log.segment.bytes" => log_segment_bytes,
        "log.index.size.max.bytes" => log_index_size_max_bytes,
        "log.roll.jitter.ms" => log_roll_jitter_ms,
        "log.roll.jitter.hours" => log_roll_jitter_hours,
        "log.roll.ms" => log_roll_ms,
        "log.roll.hours" => log_roll_hours,
        "unclean.leader.election.enable" => unclean_leader_election_enable,
    }
}
