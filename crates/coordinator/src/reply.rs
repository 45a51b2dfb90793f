//! What comes out of the coordinator: replies, records to be written, and views of groups.

use std::collections::BTreeMap;

use bytes::Bytes;
use moldau_protocol::ErrorCode;

use crate::consumer_member::{ConsumerMember, Partitions};
use crate::record::GroupRecord;
use crate::request::Token;
use crate::share_record::ShareMember;
use crate::streams_heartbeat::StreamsHeartbeatReply;
use crate::streams_record::{StreamsMember, StreamsTasks};
use crate::streams_topology::StreamsTopology;

/// Why a heartbeat is refused.
pub(crate) type Refused = (ErrorCode, String);

/// The outcome of one step.
///
/// The caller writes `records` in their order and delivers `replies` when the records of the same
/// and of all former steps are durable. A reply never depends on the records of a later step.
/// Heartbeats say nothing that a restart could undo, so their replies may go out at once.
#[derive(Debug, Default, PartialEq, Eq)]
#[must_use = "replies that are dropped leave clients waiting"]
pub struct Effects {
    /// Answers to this request or to requests that waited.
    pub replies: Vec<(Token, Reply)>,
    /// What must be written durably.
    pub records: Vec<GroupRecord>,
}

impl Effects {
    pub(crate) fn append(&mut self, mut later: Self) {
        self.replies.append(&mut later.replies);
        self.records.append(&mut later.records);
    }

    pub(crate) fn reply(token: Token, reply: Reply) -> Self {
        Self { replies: vec![(token, reply)], records: Vec::new() }
    }
}

/// An answer to one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// To JoinGroup.
    Join(JoinReply),
    /// To SyncGroup.
    Sync(SyncReply),
    /// To Heartbeat.
    Heartbeat(ErrorCode),
    /// To LeaveGroup.
    Leave(LeaveReply),
    /// To ConsumerGroupHeartbeat.
    ConsumerHeartbeat(ConsumerHeartbeatReply),
    /// To ShareGroupHeartbeat.
    ShareHeartbeat(ShareHeartbeatReply),
    /// To StreamsGroupHeartbeat.
    StreamsHeartbeat(Box<StreamsHeartbeatReply>),
    /// To OffsetCommit, in the order of the request.
    OffsetCommit(Vec<TopicResult>),
    /// To OffsetDelete; the error is that of the whole request.
    OffsetDelete(Result<Vec<TopicResult>, ErrorCode>),
    /// To DeleteGroups, in the order of the request.
    DeleteGroups(Vec<(String, ErrorCode)>),
}

/// JoinGroup's answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JoinReply {
    /// `None` where the member joined, or the reason why not.
    pub error: ErrorCode,
    /// -1 with an error.
    pub generation: i32,
    /// Absent with an error.
    pub protocol_type: Option<String>,
    /// The protocol that the group chose; absent with an error.
    pub protocol_name: Option<String>,
    /// Member id of the leader, empty with an error.
    pub leader: String,
    /// The leader must not compute an assignment (KIP-814).
    pub skip_assignment: bool,
    /// The member's id.
    pub member_id: String,
    /// All members, for the leader alone.
    pub members: Vec<JoinedMember>,
}

impl JoinReply {
    /// A refusal of the member `member_id`.
    pub(crate) fn refused(member_id: &str, error: ErrorCode) -> Self {
        Self {
            error,
            generation: -1,
            protocol_type: None,
            protocol_name: None,
            leader: String::new(),
            skip_assignment: false,
            member_id: member_id.to_owned(),
            members: Vec::new(),
        }
    }
}

/// A member as the leader sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JoinedMember {
    /// The member's id.
    pub member_id: String,
    /// Set for static members.
    pub instance_id: Option<String>,
    /// Its metadata for the chosen protocol.
    pub metadata: Bytes,
}

/// SyncGroup's answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SyncReply {
    /// The outcome.
    pub error: ErrorCode,
    /// Absent with an error.
    pub protocol_type: Option<String>,
    /// Absent with an error.
    pub protocol_name: Option<String>,
    /// What the leader assigned to this member; empty with an error.
    pub assignment: Bytes,
}

impl SyncReply {
    pub(crate) fn refused(error: ErrorCode) -> Self {
        Self { error, protocol_type: None, protocol_name: None, assignment: Bytes::new() }
    }
}

/// LeaveGroup's answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaveReply {
    /// The outcome of the whole request.
    pub error: ErrorCode,
    /// The outcome for each member, in the order of the request; empty with an error above.
    pub members: Vec<LeftMember>,
}

/// The outcome for one leaving member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftMember {
    /// As in the request.
    pub member_id: String,
    /// As in the request.
    pub instance_id: Option<String>,
    /// The outcome.
    pub error: ErrorCode,
}

/// ConsumerGroupHeartbeat's answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConsumerHeartbeatReply {
    /// The outcome.
    pub error: ErrorCode,
    /// What is wrong, with an error.
    pub message: Option<String>,
    /// The member's id.
    pub member_id: String,
    /// What the member has to send from now on.
    pub member_epoch: i32,
    /// When to send the next heartbeat.
    pub heartbeat_interval_ms: i32,
    /// What the member may hold; absent where it is as before.
    pub assignment: Option<Partitions>,
}

impl ConsumerHeartbeatReply {
    pub(crate) fn refused(error: ErrorCode, message: String) -> Self {
        Self {
            error,
            message: Some(message),
            member_id: String::new(),
            member_epoch: 0,
            heartbeat_interval_ms: 0,
            assignment: None,
        }
    }
}

/// ShareGroupHeartbeat's answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShareHeartbeatReply {
    /// The outcome.
    pub error: ErrorCode,
    /// What is wrong, with an error.
    pub message: Option<String>,
    /// The member's id.
    pub member_id: String,
    /// What the member has to send from now on.
    pub member_epoch: i32,
    /// When to send the next heartbeat.
    pub heartbeat_interval_ms: i32,
    /// What the member may fetch; absent where it is as before.
    pub assignment: Option<Partitions>,
}

impl ShareHeartbeatReply {
    pub(crate) fn refused(error: ErrorCode, message: String) -> Self {
        Self {
            error,
            message: Some(message),
            member_id: String::new(),
            member_epoch: 0,
            heartbeat_interval_ms: 0,
            assignment: None,
        }
    }
}

/// The outcome for the partitions of one topic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopicResult {
    /// Name of the topic.
    pub topic: String,
    /// Index of each partition and its outcome.
    pub partitions: Vec<(i32, ErrorCode)>,
}

/// The protocol that a group follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupType {
    /// Members agree among themselves by JoinGroup and SyncGroup.
    Classic,
    /// The broker assigns (KIP-848).
    Consumer,
    /// Members share partitions (KIP-932).
    Share,
    /// The broker assigns the tasks of a Streams application (KIP-1071).
    Streams,
}

impl GroupType {
    /// The name that ListGroups uses.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Classic => "classic",
            Self::Consumer => "consumer",
            Self::Share => "share",
            Self::Streams => "streams",
        }
    }
}

/// The state of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupState {
    /// No members; the group lives for its offsets or for a join to come.
    Empty,
    /// Members are asked to rejoin.
    PreparingRebalance,
    /// All have joined; the leader's assignment is awaited.
    CompletingRebalance,
    /// Every member has its assignment.
    Stable,
    /// A target assignment is to be computed; only in groups of the consumer protocol.
    Assigning,
    /// Members are on their way to the target; only in groups of the consumer protocol.
    Reconciling,
    /// Topics are missing or not as they must be; only in streams groups.
    NotReady,
}

impl GroupState {
    /// The name that DescribeGroups and ListGroups use. A group that does not exist is `Dead`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Empty => "Empty",
            Self::PreparingRebalance => "PreparingRebalance",
            Self::CompletingRebalance => "CompletingRebalance",
            Self::Stable => "Stable",
            Self::Assigning => "Assigning",
            Self::Reconciling => "Reconciling",
            Self::NotReady => "NotReady",
        }
    }
}

/// A group as ListGroups shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedGroup {
    /// The group.
    pub group_id: String,
    /// Its type.
    pub group_type: GroupType,
    /// Empty for a group that only stores offsets.
    pub protocol_type: String,
    /// Its state.
    pub state: GroupState,
}

/// A group as ConsumerGroupDescribe shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConsumerGroupDescription {
    /// The group.
    pub group_id: String,
    /// Its state.
    pub state: GroupState,
    /// Its epoch.
    pub epoch: i32,
    /// The epoch of the target assignment.
    pub target_epoch: i32,
    /// Name of the assignor.
    pub assignor: &'static str,
    /// Its members.
    pub members: Vec<ConsumerMemberDescription>,
}

/// A member as ConsumerGroupDescribe shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConsumerMemberDescription {
    /// The member.
    pub member: ConsumerMember,
    /// What it may read.
    pub assigned: Partitions,
    /// What it is to get.
    pub target: Partitions,
}

/// A group as ShareGroupDescribe shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShareGroupDescription {
    /// The group.
    pub group_id: String,
    /// Its state.
    pub state: GroupState,
    /// Its epoch.
    pub epoch: i32,
    /// The epoch of the target assignment.
    pub target_epoch: i32,
    /// Name of the assignor.
    pub assignor: &'static str,
    /// Its members.
    pub members: Vec<ShareMember>,
}

/// A group as StreamsGroupDescribe shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamsGroupDescription {
    /// The group.
    pub group_id: String,
    /// Its state.
    pub state: GroupState,
    /// Its epoch.
    pub epoch: i32,
    /// The epoch of the target assignment.
    pub target_epoch: i32,
    /// Name of the assignor.
    pub assignor: &'static str,
    /// Its topology; with the partitions of internal topics, if all topics are as they must be.
    pub topology: StreamsTopology,
    /// Its members.
    pub members: Vec<StreamsMemberDescription>,
}

/// A member as StreamsGroupDescribe shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamsMemberDescription {
    /// The member.
    pub member: StreamsMember,
    /// What it is to get.
    pub target: StreamsTasks,
    /// How far its copies of states are, by subtopology and partition.
    pub task_offsets: BTreeMap<String, BTreeMap<i32, i64>>,
    /// How far they have to come.
    pub task_end_offsets: BTreeMap<String, BTreeMap<i32, i64>>,
}

/// A group as DescribeGroups shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupDescription {
    /// The group.
    pub group_id: String,
    /// Its state.
    pub state: GroupState,
    /// Its generation.
    pub generation: i32,
    /// Empty for a group that only stores offsets.
    pub protocol_type: String,
    /// The chosen protocol, empty unless the group is stable.
    pub protocol_name: String,
    /// Its members.
    pub members: Vec<MemberDescription>,
}

/// A member as DescribeGroups shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberDescription {
    /// The member's id.
    pub member_id: String,
    /// Set for static members.
    pub instance_id: Option<String>,
    /// As the client named itself.
    pub client_id: String,
    /// Address of the client.
    pub client_host: String,
    /// Metadata of the chosen protocol, empty unless the group is stable.
    pub metadata: Bytes,
    /// Empty unless the group is stable.
    pub assignment: Bytes,
}

/// A committed offset as OffsetFetch shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FetchedOffset {
    /// Index of the partition.
    pub partition: i32,
    /// -1 where nothing is committed.
    pub offset: i64,
    /// -1 where unknown.
    pub leader_epoch: i32,
    /// Free text of the client.
    pub metadata: String,
}
