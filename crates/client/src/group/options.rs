//! Options of a group member. Names and defaults are Kafka's.

use std::time::Duration;

/// The protocol between a member and the group's coordinator (`group.protocol`).
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum GroupProtocol {
    /// JoinGroup and SyncGroup: the members elect a leader, which assigns the partitions.
    #[default]
    Classic,
    /// ConsumerGroupHeartbeat: the coordinator assigns the partitions (KIP-848).
    Consumer,
}

/// Options of a group member.
#[derive(Clone, Debug)]
pub struct MembershipOptions {
    /// The protocol; all members of a classic group must speak it.
    pub protocol: GroupProtocol,
    /// Topics to read. One that does not exist has no partitions until it is created.
    pub topics: Vec<String>,
    /// Reads also the topics whose whole name matches, in the syntax of RE2. In the consumer
    /// protocol the coordinator finds them. In the classic protocol the client does, at the start
    /// and whenever metadata is as old as it may be; it understands the syntax of the crate
    /// `regex`, which has no `\Q..\E`.
    pub pattern: Option<String>,
    /// How long the coordinator waits for a heartbeat (`session.timeout.ms`). Classic protocol; in
    /// the consumer protocol it is a setting of the broker.
    pub session_timeout: Duration,
    /// How long the coordinator waits for members that must join again or give up partitions
    /// (`max.poll.interval.ms`).
    pub rebalance_timeout: Duration,
    /// Time between heartbeats (`heartbeat.interval.ms`). In the consumer protocol, the
    /// coordinator's own setting replaces it.
    pub heartbeat_interval: Duration,
    /// Makes the member static (KIP-345, `group.instance.id`).
    pub instance_id: Option<String>,
    /// Where the member is (`client.rack`).
    pub rack: Option<String>,
    /// Who gets what. Classic protocol: `range` (the default) or `cooperative-sticky`. Consumer
    /// protocol: an assignor of the coordinator, which has a default.
    pub assignor: Option<String>,
}

impl Default for MembershipOptions {
    fn default() -> Self {
        Self {
            protocol: GroupProtocol::default(),
            topics: Vec::new(),
            pattern: None,
            session_timeout: Duration::from_secs(45),
            rebalance_timeout: Duration::from_mins(5),
            heartbeat_interval: Duration::from_secs(3),
            instance_id: None,
            rack: None,
            assignor: None,
        }
    }
}

/// Milliseconds as the protocol has them.
pub(crate) fn millis(duration: Duration) -> i32 {
    i32::try_from(duration.as_millis()).unwrap_or(i32::MAX)
}
