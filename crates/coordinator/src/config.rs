//! Settings of the group coordinator and the limits that keep its memory bounded.

use std::ops::RangeInclusive;

use crate::assignor::Assignor;
use crate::share_config::ShareConfig;
use crate::streams_config::StreamsConfig;

/// Settings of [`Groups`](crate::Groups), named after Kafka's broker configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// `group.initial.rebalance.delay.ms`: how long the first join of an empty group waits for
    /// others before the first generation starts.
    pub initial_rebalance_delay_ms: i32,
    /// `group.min.session.timeout.ms`: shorter session timeouts are refused.
    pub session_timeout_ms_min: i32,
    /// `group.max.session.timeout.ms`: longer session timeouts are refused.
    pub session_timeout_ms_max: i32,
    /// `group.max.size`: members of one group.
    pub group_size_max: usize,
    /// Groups of the consumer protocol.
    pub consumer: ConsumerConfig,
    /// Share groups.
    pub share: ShareConfig,
    /// Streams groups.
    pub streams: StreamsConfig,
    /// Groups that may exist at once; a request that would create one more is refused.
    pub groups_max: usize,
    /// `offset.metadata.max.bytes`: length of the text that a commit may carry per partition.
    pub offset_metadata_bytes_max: usize,
    /// Length of a record in its binary form. What would need a longer one is refused, since the
    /// owner could not write it.
    pub record_bytes_max: usize,
    /// `offsets.retention.minutes`, in milliseconds.
    pub offsets_retention_ms: i64,
    /// `offsets.retention.check.interval.ms`: how often expired offsets are looked for.
    pub offsets_retention_check_interval_ms: i64,
}

/// Settings of the groups of the consumer protocol (KIP-848).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConsumerConfig {
    /// Those that a group may override.
    pub settings: GroupSettings,
    /// `group.consumer.min.session.timeout.ms` and `group.consumer.max.session.timeout.ms`: what a
    /// group may set.
    pub session_timeout_ms_range: RangeInclusive<i32>,
    /// `group.consumer.min.heartbeat.interval.ms` and `group.consumer.max.heartbeat.interval.ms`.
    pub heartbeat_interval_ms_range: RangeInclusive<i32>,
    /// `group.consumer.min.assignment.interval.ms` and
    /// `group.consumer.max.assignment.interval.ms`.
    pub assignment_interval_ms_range: RangeInclusive<i32>,
    /// `group.consumer.max.size`: members of one group.
    pub group_size_max: usize,
    /// `group.consumer.assignors`: what members may ask for; the first is the default.
    pub assignors: Vec<Assignor>,
    /// `group.consumer.regex.refresh.interval.ms`: how often the topics of regular expressions are
    /// looked for again, for topics that a client may describe since.
    pub regex_refresh_interval_ms: i32,
    /// `group.consumer.migration.policy`: which groups with members change their protocol.
    pub migration: MigrationPolicy,
}

/// Settings that a group of the consumer protocol may override.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupSettings {
    /// `group.consumer.session.timeout.ms`: a member without a heartbeat for so long is put out.
    pub session_timeout_ms: i32,
    /// `group.consumer.heartbeat.interval.ms`: how often members send heartbeats.
    pub heartbeat_interval_ms: i32,
    /// `group.consumer.assignment.interval.ms`: the least time between two target assignments, so
    /// that members who come together are assigned together.
    pub assignment_interval_ms: i32,
}

/// `group.consumer.migration.policy`: which groups with members change their protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MigrationPolicy {
    /// None, and members of the classic protocol cannot join a group of the consumer protocol.
    Disabled,
    /// A group of the consumer protocol becomes a classic one when its last member of that leaves.
    Downgrade,
    /// A classic group becomes one of the consumer protocol when a member of that joins.
    Upgrade,
    /// Both.
    Bidirectional,
}

impl MigrationPolicy {
    /// Every policy.
    pub const ALL: [Self; 4] =
        [Self::Disabled, Self::Downgrade, Self::Upgrade, Self::Bidirectional];

    /// The policy of this name, in any case of letters.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|policy| policy.name().eq_ignore_ascii_case(name))
    }

    /// As the configuration spells it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Disabled => "disabled",
            Self::Downgrade => "downgrade",
            Self::Upgrade => "upgrade",
            Self::Bidirectional => "bidirectional",
        }
    }

    pub(crate) fn upgrades(self) -> bool {
        matches!(self, Self::Upgrade | Self::Bidirectional)
    }

    pub(crate) fn downgrades(self) -> bool {
        matches!(self, Self::Downgrade | Self::Bidirectional)
    }
}

/// Default of [`Config::group_size_max`]. Kafka has no limit by default; a rebalance holds the
/// metadata and the assignments of all members at once, which this keeps within reach.
pub const GROUP_SIZE_MAX: usize = 10_000;

/// Default of [`Config::groups_max`]: an empty group with one offset costs about a kilobyte.
pub const GROUPS_MAX: usize = 100_000;

/// Default of [`Config::record_bytes_max`]: a commit of 8,000 partitions with the longest text, or
/// a group of 10,000 members with 3 KiB each.
pub const RECORD_BYTES_MAX: usize = 32 << 20;

/// Members of one group that were told their id and did not use it yet. They expire with their
/// session timeout; more of them at once means that clients do nothing but ask for ids.
pub const PENDING_MEMBERS_MAX: usize = 10_000;

/// Protocols that one member may offer. Clients offer one for each assignor they know.
pub const PROTOCOLS_MAX: usize = 64;

/// Sum of the bytes of one member's protocols: names, metadata, protocol type, instance id.
pub const MEMBER_METADATA_BYTES_MAX: usize = 1 << 20;

/// Sum of the bytes of all assignments of one group. They are written as one record; at 33 bytes
/// for a partition this is half a million partitions.
pub const ASSIGNMENTS_BYTES_MAX: usize = 16 << 20;

/// Bytes of a group id: the longest that the 16-bit length of Kafka's string type can carry.
pub const NAME_BYTES_MAX: usize = 32_767;

/// Partitions for which one group may hold committed offsets.
pub const OFFSETS_PER_GROUP_MAX: usize = 1_000_000;

/// Bytes of the names and expressions that one member of the consumer protocol may subscribe to.
pub const SUBSCRIPTION_BYTES_MAX: usize = MEMBER_METADATA_BYTES_MAX;

impl Config {
    /// The assignor of groups whose members ask for none.
    pub(crate) fn default_assignor(&self) -> Assignor {
        self.consumer.assignors.first().copied().unwrap_or(Assignor::Uniform)
    }
}

impl Default for ConsumerConfig {
    fn default() -> Self {
        Self {
            settings: GroupSettings {
                session_timeout_ms: 45_000,
                heartbeat_interval_ms: 5_000,
                assignment_interval_ms: 1_000,
            },
            session_timeout_ms_range: 45_000..=60_000,
            heartbeat_interval_ms_range: 5_000..=15_000,
            assignment_interval_ms_range: 0..=15_000,
            group_size_max: GROUP_SIZE_MAX,
            assignors: vec![Assignor::Uniform, Assignor::Range],
            regex_refresh_interval_ms: 600_000,
            migration: MigrationPolicy::Bidirectional,
        }
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            initial_rebalance_delay_ms: 3_000,
            session_timeout_ms_min: 6_000,
            session_timeout_ms_max: 1_800_000,
            group_size_max: GROUP_SIZE_MAX,
            consumer: ConsumerConfig::default(),
            share: ShareConfig::default(),
            streams: StreamsConfig::default(),
            groups_max: GROUPS_MAX,
            offset_metadata_bytes_max: 4_096,
            record_bytes_max: RECORD_BYTES_MAX,
            offsets_retention_ms: 7 * 24 * 60 * 60 * 1_000,
            offsets_retention_check_interval_ms: 600_000,
        }
    }
}
