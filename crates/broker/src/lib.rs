//! The embedded Kafka broker: one handler per API over the journal.
//!
//! [`Broker::start`] opens a data directory, replays the journal, and serves Kafka clients until it
//! is drained or dropped.
//!
//! | module | what it holds |
//! |---|---|
//! | `server` | start, listeners, drain |
//! | `client_service` | one connection: who the client is, its frames on their way to `dispatch` |
//! | `dispatch` | the one table: API key, versions, handler |
//! | `api/` | a handler for each API |
//! | `state` | what connections share; restoring it from the journal |
//! | `storage`, `submissions` | where that is written: the journal, or a log that brokers share |
//! | `joining`, `member`, `following` | a broker of a cluster: it follows that log or owns it |
//! | `forwards`, `forwarding` | requests that its clients have for the controller |
//! | `nodes`, `shared_logs`, `upkeep` | the brokers of a cluster, its logs, and their objects |
//! | `forgetting` | producers that the logs of a cluster forget |
//! | `catalog`, `topic_config` | topics, their partitions and configuration |
//! | `authorizer`, `rights` | who may do what: the rules, and what a connection remembers of them |
//! | `security`, `scram_credentials` | ACLs and credentials of users, and their journal records |
//! | `quotas`, `throttle` | quotas of clients and their journal records; who exceeds one |
//! | `telemetry` | metrics that clients push |
//! | `metadata_record` | what the broker writes into the journal beside the data |
//! | `fetch_session` | incremental fetch sessions |
//! | `dead_letters` | dead-letter records of share groups |
//! | `group_service` | the group coordinator, its journal records and its timer |
//! | `partition`, `topic_logs`, `retention` | from names to logs; which exist; what leaves them |
//! | `partition_runs` | the encoded partitions that Metadata answers share |
//! | `repair` | what a repair of the data directory means for topics, groups and producer ids |
//! | `call` | a request and its answer, as handlers see them |
//! | `troubles` | what the log tells of tries that fail again and again |
//! | `cluster_health` | whether the services of a cluster answer |
//! | `counters`, `metrics`, `cluster_metrics` | what handlers count; what `/metrics` reports |
//! | `metric_families` | metrics without labels, encoded |
//!
//! Invariants:
//!
//! - ApiVersions lists what the table of `dispatch` serves, nothing else.
//! - An API stands in the table with the rights that it asks for. Where authorization is on,
//!   without one, nothing is shown, changed or confirmed to exist.
//! - A produce with `acks` other than 0, a metadata change and a commit are answered after the
//!   flush that makes them durable. A failed journal is answered with `KAFKA_STORAGE_ERROR`.
//! - Storage errors become Kafka codes in `error` alone, by exhaustive matches.
//! - Nothing a client sends can panic; what cannot be answered closes its own connection.

mod api;
mod authorizer;
mod broker_configs;
mod call;
mod catalog;
mod catching_up;
mod client_service;
mod clock;
mod cluster_health;
mod cluster_metrics;
mod compaction;
mod config;
mod counters;
mod dead_letters;
mod dispatch;
mod error;
mod fetch_session;
mod following;
mod forgetting;
mod forwarding;
mod forwards;
mod group_service;
mod joining;
mod loggers;
mod logs;
mod member;
mod memory_plan;
mod metadata_record;
mod metric_families;
mod metrics;
mod nodes;
mod partition;
mod partition_runs;
mod quota_entity;
mod quotas;
mod repair;
mod retention;
mod rights;
mod scram_credentials;
mod security;
mod server;
mod share_service;
mod share_session;
mod shared_logs;
mod state;
mod storage;
mod submissions;
mod telemetry;
#[cfg(test)]
mod tests;
mod throttle;
mod topic_config;
mod topic_logs;
mod topic_names;
mod transaction_ends;
mod transaction_service;
mod troubles;
mod upkeep;
mod visible_topics;

#[doc(hidden)]
pub use authorizer::Decisions;
pub use config::{
    Advertised, AuthorizationSettings, Config, ConsumerGroupSettings, FileKey, GroupSettings,
    ListenerConfig, STANDARD_AUTHORIZER, SaslListener, ShareGroupSettings, StreamsGroupSettings,
    TelemetrySettings, TransactionSettings, Unpacking,
};
pub use error::Error;
pub use joining::ClusterSettings;
pub use loggers::{Level, Loggers, ROOT};
pub use memory_plan::MEMORY_BYTES_MIN;
pub use moldau_coordinator::{Assignor, MigrationPolicy};
pub use moldau_protocol::Uuid;
pub use moldau_storage::{Damage, Durability, Lost, Orphan, Report};
pub use quota_entity::QuotaWindow;
pub use repair::Repair;
pub use server::Broker;
pub use topic_config::TopicDefaults;
