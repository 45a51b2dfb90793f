//! What goes into the coordinator: plain requests, independent of API versions.

use bytes::Bytes;
use moldau_protocol::Uuid;

use crate::consumer_member::Partitions;
use crate::offered_protocol::Protocol;

/// An opaque number that the caller gives to a request, to find the request again when its reply
/// comes out. Every token that goes in comes out in exactly one [`Effects`](crate::Effects).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Token(pub u64);

/// JoinGroup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JoinRequest {
    /// The group; empty is refused.
    pub group_id: String,
    /// Empty for a member that has no id.
    pub member_id: String,
    /// Set for static members (KIP-345).
    pub instance_id: Option<String>,
    /// From the request header; becomes part of the member id.
    pub client_id: String,
    /// Address of the client, as DescribeGroups shows it.
    pub client_host: String,
    /// Milliseconds without a heartbeat after which the member is removed.
    pub session_timeout_ms: i32,
    /// Milliseconds that the member may take to rejoin. Version 0 of the API has no such field:
    /// pass the session timeout.
    pub rebalance_timeout_ms: i32,
    /// Such as `consumer` or `connect`.
    pub protocol_type: String,
    /// In the member's order of preference.
    pub protocols: Vec<Protocol>,
    /// Answer a dynamic member that has no id with MEMBER_ID_REQUIRED and its id (version 4 and
    /// later, KIP-394).
    pub require_known_member_id: bool,
    /// A static leader that comes back may skip the assignment (version 9 and later,
    /// KIP-814).
    pub supports_skipping_assignment: bool,
}

/// SyncGroup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SyncRequest {
    /// The group.
    pub group_id: String,
    /// The generation that the join reply named.
    pub generation: i32,
    /// The member.
    pub member_id: String,
    /// Set for static members.
    pub instance_id: Option<String>,
    /// Checked where given (version 5 and later).
    pub protocol_type: Option<String>,
    /// Checked where given (version 5 and later).
    pub protocol_name: Option<String>,
    /// Member id and assignment; only the leader sends any.
    pub assignments: Vec<(String, Bytes)>,
}

/// Heartbeat.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeartbeatRequest {
    /// The group.
    pub group_id: String,
    /// The member's generation.
    pub generation: i32,
    /// The member.
    pub member_id: String,
    /// Set for static members.
    pub instance_id: Option<String>,
}

/// LeaveGroup. Versions before 3 name one member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaveRequest {
    /// The group.
    pub group_id: String,
    /// Those who leave.
    pub members: Vec<LeavingMember>,
}

/// A member that leaves, named by its id, or by its instance id with an empty member id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeavingMember {
    /// Empty where the instance id alone names the member.
    pub member_id: String,
    /// Set for static members.
    pub instance_id: Option<String>,
}

/// OffsetCommit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OffsetCommitRequest {
    /// The group.
    pub group_id: String,
    /// Generation, or epoch of a member of the consumer protocol; -1 for a consumer that does not
    /// take part in the group management.
    pub generation: i32,
    /// Empty for a consumer that does not take part in the group management.
    pub member_id: String,
    /// Set for static members.
    pub instance_id: Option<String>,
    /// How long to keep the offsets (versions 2 to 4); `None` for the broker's retention.
    pub retention_ms: Option<i64>,
    /// The client may be a member of the consumer protocol (version 9 and later).
    pub knows_member_epochs: bool,
    /// What to commit.
    pub topics: Vec<TopicCommit>,
}

/// The part of a commit that concerns one topic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopicCommit {
    /// Name of the topic.
    pub topic: String,
    /// Its id.
    pub topic_id: Uuid,
    /// Its partitions.
    pub partitions: Vec<PartitionCommit>,
}

/// The part of a commit that concerns one partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionCommit {
    /// Index of the partition.
    pub partition: i32,
    /// Offset of the next record to be read.
    pub offset: i64,
    /// Leader epoch of the last record that was read, -1 where unknown.
    pub leader_epoch: i32,
    /// Free text of the client.
    pub metadata: String,
}

/// OffsetDelete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OffsetDeleteRequest {
    /// The group.
    pub group_id: String,
    /// Topics and their partitions.
    pub topics: Vec<(String, Vec<i32>)>,
}

/// ConsumerGroupHeartbeat. What is absent is as in the heartbeat before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConsumerHeartbeat {
    /// The group.
    pub group_id: String,
    /// Empty for a member that gets its id here (version 0).
    pub member_id: String,
    /// 0 to join, -1 to leave, -2 to leave as a static member that comes back.
    pub member_epoch: i32,
    /// Set for static members.
    pub instance_id: Option<String>,
    /// Where the client is.
    pub rack_id: Option<String>,
    /// How long the member may take to give up partitions; -1 where it is as before.
    pub rebalance_timeout_ms: i32,
    /// Names of topics.
    pub topics: Option<Vec<String>>,
    /// A regular expression in the syntax of RE2; empty for none.
    pub regex: Option<String>,
    /// The assignor that the member asks for.
    pub assignor: Option<String>,
    /// What the member holds.
    pub owned: Option<Partitions>,
    /// From the request header.
    pub client_id: String,
    /// Address of the client, as ConsumerGroupDescribe shows it.
    pub client_host: String,
}

/// ShareGroupHeartbeat. What is absent is as in the heartbeat before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShareHeartbeat {
    /// The group.
    pub group_id: String,
    /// The client makes it itself.
    pub member_id: String,
    /// 0 to join, -1 to leave.
    pub member_epoch: i32,
    /// Where the client is.
    pub rack_id: Option<String>,
    /// Names of topics.
    pub topics: Option<Vec<String>>,
    /// From the request header.
    pub client_id: String,
    /// Address of the client, as ShareGroupDescribe shows it.
    pub client_host: String,
}
