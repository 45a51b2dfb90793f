//! StreamsGroupHeartbeat, as it goes in and as it comes out.

use std::collections::BTreeMap;

use moldau_protocol::ErrorCode;

use crate::streams_config::{ACCEPTABLE_RECOVERY_LAG, TASK_OFFSET_INTERVAL_MS};
use crate::streams_record::{StreamsTasks, TaskIds, UserEndpoint};
use crate::streams_topology::{InternalTopic, StreamsTopology};

/// StreamsGroupHeartbeat. What is absent is as in the heartbeat before.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StreamsHeartbeat {
    /// The group.
    pub group_id: String,
    /// The client makes it itself.
    pub member_id: String,
    /// 0 to join, -1 to leave, -2 for a static member that will come back.
    pub member_epoch: i32,
    /// The epoch of the endpoints that the client knows.
    pub endpoint_epoch: i32,
    /// Set for static members (KIP-345).
    pub instance_id: Option<String>,
    /// Where the client is.
    pub rack_id: Option<String>,
    /// How long the member may take to give up tasks; -1 as before.
    pub rebalance_timeout_ms: i32,
    /// What the application does; only of a member that joins.
    pub topology: Option<StreamsTopology>,
    /// Active tasks that the member has.
    pub active: Option<TaskIds>,
    /// Standby tasks that the member has.
    pub standby: Option<TaskIds>,
    /// Warm-up tasks that the member has.
    pub warmup: Option<TaskIds>,
    /// The process that the member is part of.
    pub process_id: Option<String>,
    /// Where the member answers interactive queries.
    pub endpoint: Option<UserEndpoint>,
    /// What else the client says of where it is.
    pub tags: Option<BTreeMap<String, String>>,
    /// How far the member's copies of states are.
    pub task_offsets: Option<Vec<TaskOffset>>,
    /// How far they have to come.
    pub task_end_offsets: Option<Vec<TaskOffset>>,
    /// The whole application is to stop.
    pub shuts_down: bool,
    /// The client understands that tags are missing (version 1 and later).
    pub knows_missing_tags: bool,
    /// From the request header.
    pub client_id: String,
    /// Address of the client, as StreamsGroupDescribe shows it.
    pub client_host: String,
}

/// The sum of the offsets of a task's changelogs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskOffset {
    /// Id of the subtopology.
    pub subtopology: String,
    /// The task.
    pub partition: i32,
    /// The sum.
    pub offset: i64,
}

/// StreamsGroupHeartbeat's answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamsHeartbeatReply {
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
    /// How often to send offsets of tasks.
    pub task_offset_interval_ms: i32,
    /// Records that a copy of a state may be behind; -1 with an error or a leave.
    pub acceptable_recovery_lag: i64,
    /// What keeps the application from its work; empty with an error.
    pub statuses: Vec<StreamsStatus>,
    /// What the member may run; absent where it is as before.
    pub assignment: Option<StreamsTasks>,
    /// The epoch of the endpoints.
    pub endpoint_epoch: i32,
    /// Partitions by the endpoint that answers for them; absent where the client knows them.
    pub endpoints: Option<Vec<EndpointPartitions>>,
    /// Internal topics that are to be created.
    pub missing_topics: Vec<InternalTopic>,
}

/// What a member with an endpoint answers for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndpointPartitions {
    /// Where it answers.
    pub endpoint: UserEndpoint,
    /// Topics and partitions that its active tasks read.
    pub active: Vec<(String, Vec<i32>)>,
    /// Topics and partitions that its standby tasks read.
    pub standby: Vec<(String, Vec<i32>)>,
}

/// Something that keeps an application from its work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamsStatus {
    /// What it is.
    pub code: StreamsStatusCode,
    /// For people.
    pub detail: String,
}

/// What keeps an application from its work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamsStatusCode {
    /// The group has a later topology than the member.
    StaleTopology,
    /// Source topics do not exist.
    MissingSourceTopics,
    /// Topics do not have the partitions that they must have.
    IncorrectlyPartitionedTopics,
    /// Internal topics do not exist yet.
    MissingInternalTopics,
    /// A member asked for the end of the application.
    ShutdownApplication,
    /// The target assignment is computed later.
    AssignmentDelayed,
    /// The client lacks tags that the group asks for.
    MissingClientTags,
}

impl StreamsHeartbeatReply {
    pub(crate) fn refused(error: ErrorCode, message: String) -> Self {
        Self {
            error,
            message: Some(message),
            member_id: String::new(),
            member_epoch: 0,
            heartbeat_interval_ms: 0,
            task_offset_interval_ms: 0,
            acceptable_recovery_lag: -1,
            statuses: Vec::new(),
            assignment: None,
            endpoint_epoch: 0,
            endpoints: None,
            missing_topics: Vec::new(),
        }
    }

    /// To a member that leaves.
    pub(crate) fn left(member_id: String, member_epoch: i32) -> Self {
        Self {
            error: ErrorCode::None,
            message: None,
            member_id,
            member_epoch,
            ..Self::refused(ErrorCode::None, String::new())
        }
    }

    /// To a member that stays.
    pub(crate) fn to(member_id: &str, member_epoch: i32, heartbeat_interval_ms: i32) -> Self {
        Self {
            heartbeat_interval_ms,
            task_offset_interval_ms: TASK_OFFSET_INTERVAL_MS,
            acceptable_recovery_lag: ACCEPTABLE_RECOVERY_LAG,
            ..Self::left(member_id.to_owned(), member_epoch)
        }
    }
}

impl StreamsStatusCode {
    /// The number that StreamsGroupHeartbeat uses.
    pub const fn number(self) -> i8 {
        match self {
            Self::StaleTopology => 0,
            Self::MissingSourceTopics => 1,
            Self::IncorrectlyPartitionedTopics => 2,
            Self::MissingInternalTopics => 3,
            Self::ShutdownApplication => 4,
            Self::AssignmentDelayed => 5,
            Self::MissingClientTags => 6,
        }
    }
}

impl StreamsStatus {
    pub(crate) fn new(code: StreamsStatusCode, detail: impl Into<String>) -> Self {
        Self { code, detail: detail.into() }
    }
}
