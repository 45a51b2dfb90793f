//! Settings of streams groups (KIP-1071).

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

/// Settings of the streams groups of a broker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamsConfig {
    /// Those that a group may override.
    pub settings: StreamsSettings,
    /// `group.streams.min.session.timeout.ms` and `group.streams.max.session.timeout.ms`: what a
    /// group may set.
    pub session_timeout_ms_range: RangeInclusive<i32>,
    /// `group.streams.min.heartbeat.interval.ms` and `group.streams.max.heartbeat.interval.ms`.
    pub heartbeat_interval_ms_range: RangeInclusive<i32>,
    /// `group.streams.min.assignment.interval.ms` and `group.streams.max.assignment.interval.ms`.
    pub assignment_interval_ms_range: RangeInclusive<i32>,
    /// 0 and `group.streams.max.standby.replicas`.
    pub standby_replicas_range: RangeInclusive<i32>,
    /// What a group may set as its initial rebalance delay.
    pub initial_rebalance_delay_ms_range: RangeInclusive<i32>,
    /// `group.streams.max.size`: members of one group.
    pub group_size_max: usize,
}

/// Settings that a streams group may override.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamsSettings {
    /// `group.streams.session.timeout.ms`: a member without a heartbeat for so long is put out.
    pub session_timeout_ms: i32,
    /// `group.streams.heartbeat.interval.ms`: how often members send heartbeats.
    pub heartbeat_interval_ms: i32,
    /// `group.streams.assignment.interval.ms`: the least time between two target assignments.
    pub assignment_interval_ms: i32,
    /// `group.streams.initial.rebalance.delay.ms`: how long the first member of an empty group
    /// waits for others before the first target assignment.
    pub initial_rebalance_delay_ms: i32,
    /// `group.streams.num.standby.replicas`: copies of each task's state.
    pub standby_replicas: i32,
    /// `group.streams.rack.aware.assignment.tags`: tags that each client must have.
    pub rack_tags: Vec<String>,
}

/// `streams.task.offset.interval.ms`: how often members say how far their copies of states are.
pub(crate) const TASK_OFFSET_INTERVAL_MS: i32 = 60_000;

/// `streams.acceptable.recovery.lag`: records that a copy of a state may be behind.
pub(crate) const ACCEPTABLE_RECOVERY_LAG: i64 = 10_000;

/// Subtopologies of one topology: to decide the partitions of repartition topics, all may have to
/// be looked at as often as there are any. Applications have some dozens.
pub(crate) const SUBTOPOLOGIES_MAX: usize = 1_000;

/// Tasks of one group. Targets are written as one record: this takes some MiB of it.
pub(crate) const TASKS_MAX: i32 = 500_000;

/// Default of [`StreamsConfig::group_size_max`]. Kafka has no limit by default.
const GROUP_SIZE_MAX: usize = 10_000;

impl StreamsConfig {
    /// Tags of a list that commas separate: none may be empty or there twice.
    pub fn tags(text: &str) -> Option<Vec<String>> {
        let tags: Vec<String> = text.split(',').map(|tag| tag.trim().to_owned()).collect();
        if tags == [""] {
            return Some(Vec::new());
        }
        let distinct: BTreeSet<&String> = tags.iter().collect();
        let is_valid = distinct.len() == tags.len() && tags.iter().all(|tag| !tag.is_empty());
        is_valid.then_some(tags)
    }
}

impl Default for StreamsConfig {
    fn default() -> Self {
        Self {
            settings: StreamsSettings {
                session_timeout_ms: 45_000,
                heartbeat_interval_ms: 5_000,
                assignment_interval_ms: 1_000,
                initial_rebalance_delay_ms: 3_000,
                standby_replicas: 0,
                rack_tags: Vec::new(),
            },
            session_timeout_ms_range: 45_000..=60_000,
            heartbeat_interval_ms_range: 5_000..=15_000,
            assignment_interval_ms_range: 0..=15_000,
            standby_replicas_range: 0..=2,
            initial_rebalance_delay_ms_range: 0..=i32::MAX,
            group_size_max: GROUP_SIZE_MAX,
        }
    }
}
