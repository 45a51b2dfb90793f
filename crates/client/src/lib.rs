//! Kafka client: metadata, producer, fetcher, group membership and administration.
//!
//! | module | what it holds |
//! |---|---|
//! | `wire` | addresses, frames of requests and answers |
//! | `connection` | [`Connection`]: pipelined requests on one socket |
//! | `metadata` | [`Metadata`]: brokers, topics, leaders |
//! | `cluster` | [`Cluster`]: bootstrap, refresh, connections, coordinators |
//! | `offsets` | offsets by time |
//! | `partitioner` | the partition of a key |
//! | `producer` | [`Producer`]: batches per partition, idempotence, transactions, retries |
//! | `fetcher` | [`Fetcher`]: incremental sessions, read-ahead, shared buffers |
//! | `group` | [`Membership`] in both protocols; [`GroupConsumer`]: a member that reads |
//! | `share` | [`ShareConsumer`]: a member of a share group |
//! | `admin` | topics, groups, offsets, configs |
//!
//! Invariants:
//!
//! - Everything runs on the tokio runtime that it is started in and needs no other thread.
//! - An answer that does not match the oldest request ends its connection.
//! - Buffers, requests in flight and retries are bounded; errors are typed, and
//!   [`Error::is_retriable`] says what may pass.
//! - The records of a partition are sent in the order given, through retries too; with an
//!   idempotent producer they are appended once.

mod admin;
mod cluster;
mod connection;
mod error;
mod fetcher;
mod group;
mod metadata;
mod offsets;
mod partitioner;
mod producer;
mod share;
mod wire;

pub use admin::{Admin, ConfigEntry, ConfigResource, ConfigSource, TopicSpec};
pub use cluster::{Cluster, ClusterOptions, Purpose};
pub use connection::{Connection, ConnectionOptions, Security};
pub use error::Error;
pub use fetcher::{
    Fetched, Fetcher, FetcherOptions, Isolation, RecordViews, Reset, Room, Start, UnpackPool,
    Unpacked,
};
pub use group::{
    CommittedOffset, Committer, GroupConsumer, GroupMetadata, GroupOptions, GroupProtocol,
    MemberStage, MemberState, MemberWatch, Membership, MembershipEvent, MembershipOptions,
};
pub use metadata::{Leader, Metadata, Partition, Topic, TopicRef};
pub use offsets::{ListedOffset, OffsetSpec, TopicPartition};
pub use partitioner::partition_for_key;
pub use producer::{
    Acks, Delivery, DeliverySink, PartitionHandle, Producer, ProducerOptions, Record, RequestTimes,
};
pub use share::{
    AcknowledgeMode, Acknowledgement, Acquired, ShareConsumer, ShareFetched, ShareOptions,
};
pub use wire::Address;

/// Result of calls of this crate.
pub type Result<T> = std::result::Result<T, Error>;
