//! Consumer groups, transactions and producer ids as pure state machines.
//!
//! [`Groups`] holds every group of one broker, classic ones, those of the consumer protocol
//! (KIP-848), share groups (KIP-932) and streams groups (KIP-1071): membership, assignments, static
//! members (KIP-345), committed offsets. It owns no clock, thread or socket: each call carries the
//! time in milliseconds, and what is to be done comes out as [`Effects`]. A join or a sync that has
//! to wait leaves its [`Token`] behind, which comes out with the reply in a later step.
//!
//! # Layout
//!
//! | module | subject |
//! |---|---|
//! | `groups` | all groups: lookup, creation, deadlines, retention, replay, snapshot |
//! | `any_group` | what both types of groups have in common |
//! | `group` | one classic group: members, state, generations; `join`, `sync`, `membership` |
//! | `consumer` | one group of the consumer protocol: epochs, targets, reconciliation |
//! | `consumer_member`, `consumer_record` | its members, and what is stored of it |
//! | `assignor` | who gets which partitions |
//! | `step` | what one step of a group works with |
//! | `share`, `share_assignor` | one share group, and who gets which partitions |
//! | `share_record`, `share_config` | its members and what is stored of it, and its settings |
//! | `streams`, `streams_assignor` | one streams group, and who gets which tasks |
//! | `streams_topology` | what a Streams application reads, writes and keeps |
//! | `streams_record`, `streams_config` | members of streams groups, what is stored, settings |
//! | `streams_heartbeat` | the heartbeat of streams groups and its answer |
//! | `group_config` | what a group may override of the configuration |
//! | `topics` | what the caller says of topics |
//! | `offsets`, `commits` | committed offsets of one group |
//! | `request`, `reply` | what goes in and what comes out |
//! | `record` | what is written durably, and its binary form |
//! | `timers` | deadlines of one group |
//! | `share_partitions` | what share groups do with the records of partitions |
//! | `transactions` | transactional ids, open transactions and their end |
//! | `producer_ids` | producer ids in durable blocks |
//!
//! # Driving it
//!
//! [`Groups::replay`] all stored records, then [`Groups::recovered`] once. Afterwards call the
//! request methods, and [`Groups::tick`] when [`Groups::next_deadline`] has come; the deadline may
//! move with every call. Write `records` in order and deliver `replies` after they are durable.
//!
//! # Invariants
//!
//! - Every token comes out exactly once.
//! - The generation of a group never decreases, and no commit of an older generation is accepted.
//! - Replaying the records of all steps gives the same offsets, generations and members.
//! - A partition has one member of the consumer protocol that may read it, and epochs only grow.
//! - A partition of a share group has at least one member that may fetch it.
//! - A task of a streams group is active in one member at most.
//! - A member has at most one request waiting, so waiting requests are bounded by the group size.
//! - Clocks may stand still; a time earlier than the one before only delays deadlines.

mod any_group;
mod assignor;
mod commits;
mod config;
mod consumer;
mod consumer_member;
mod consumer_record;
mod embedded;
mod error;
mod group;
mod group_config;
mod groups;
mod member_ids;
mod offered_protocol;
mod offsets;
pub mod producer_ids;
mod record;
mod reply;
mod request;
mod share;
mod share_assignor;
mod share_config;
pub mod share_partitions;
mod share_record;
mod step;
mod streams;
mod streams_assignor;
mod streams_config;
mod streams_heartbeat;
mod streams_record;
mod streams_topology;
mod timers;
mod topics;
pub mod transactions;
mod wire;

pub use assignor::Assignor;
pub use config::{
    ASSIGNMENTS_BYTES_MAX, Config, ConsumerConfig, GROUP_SIZE_MAX, GROUPS_MAX, GroupSettings,
    MEMBER_METADATA_BYTES_MAX, MigrationPolicy, NAME_BYTES_MAX, OFFSETS_PER_GROUP_MAX,
    PENDING_MEMBERS_MAX, PROTOCOLS_MAX, RECORD_BYTES_MAX, SUBSCRIPTION_BYTES_MAX,
};
pub use consumer::pattern::compile as compile_pattern;
pub use consumer_member::{
    ClassicMember, ConsumerMember, MemberState, OwnedPartitions, Partitions,
};
pub use consumer_record::ConsumerChange;
pub use error::Error;
pub use group_config::{GROUP_KEYS, GroupKey, GroupKeyType, GroupOverrides};
pub use groups::Groups;
pub use offered_protocol::Protocol;
pub use record::{CommittedOffset, GroupMetadata, GroupRecord, MemberRecord, TopicOffsets};
pub use reply::{
    ConsumerGroupDescription, ConsumerHeartbeatReply, ConsumerMemberDescription, Effects,
    FetchedOffset, GroupDescription, GroupState, GroupType, JoinReply, JoinedMember, LeaveReply,
    LeftMember, ListedGroup, MemberDescription, Reply, ShareGroupDescription, ShareHeartbeatReply,
    StreamsGroupDescription, StreamsMemberDescription, SyncReply, TopicResult,
};
pub use request::{
    ConsumerHeartbeat, HeartbeatRequest, JoinRequest, LeaveRequest, LeavingMember,
    OffsetCommitRequest, OffsetDeleteRequest, PartitionCommit, ShareHeartbeat, SyncRequest, Token,
    TopicCommit,
};
pub use share_config::{
    AutoOffsetReset, DeadLetterSettings, IsolationLevel, ShareConfig, ShareSettings,
};
pub use share_record::{ShareChange, ShareMember};
pub use streams_config::{StreamsConfig, StreamsSettings};
pub use streams_heartbeat::{
    EndpointPartitions, StreamsHeartbeat, StreamsHeartbeatReply, StreamsStatus, StreamsStatusCode,
    TaskOffset,
};
pub use streams_record::{
    AssignmentConfigs, MemberTasks, OwnedTasks, StreamsChange, StreamsMember, StreamsTasks,
    TaskIds, UserEndpoint,
};
pub use streams_topology::{CopartitionGroup, InternalTopic, StreamsTopology, Subtopology};
pub use topics::{TopicShape, Topics};
