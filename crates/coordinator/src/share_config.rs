//! Settings of share groups (KIP-932), and the values of their keys.

use std::fmt;
use std::ops::RangeInclusive;

/// Settings of the share groups of a broker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShareConfig {
    /// Those that a group may override.
    pub settings: ShareSettings,
    /// `group.share.min.session.timeout.ms` and `group.share.max.session.timeout.ms`: what a group
    /// may set.
    pub session_timeout_ms_range: RangeInclusive<i32>,
    /// `group.share.min.heartbeat.interval.ms` and `group.share.max.heartbeat.interval.ms`.
    pub heartbeat_interval_ms_range: RangeInclusive<i32>,
    /// `group.share.min.assignment.interval.ms` and `group.share.max.assignment.interval.ms`.
    pub assignment_interval_ms_range: RangeInclusive<i32>,
    /// `group.share.min.record.lock.duration.ms` and `group.share.max.record.lock.duration.ms`.
    pub record_lock_duration_ms_range: RangeInclusive<i32>,
    /// `group.share.min.delivery.count.limit` and `group.share.max.delivery.count.limit`.
    pub delivery_count_limit_range: RangeInclusive<i32>,
    /// `group.share.min.partition.max.record.locks` and
    /// `group.share.max.partition.max.record.locks`.
    pub partition_max_record_locks_range: RangeInclusive<i32>,
    /// `group.share.max.size`: members of one group.
    pub group_size_max: usize,
    /// `errors.deadletterqueue.auto.create.topics.enable`: whether a dead-letter topic that does
    /// not exist is created.
    pub dead_letter_auto_create: bool,
    /// `errors.deadletterqueue.topic.name.prefix`: how the names of dead-letter topics begin.
    pub dead_letter_prefix: String,
}

/// Where records go that a share group gives up (KIP-1191).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadLetterSettings {
    /// `errors.deadletterqueue.topic.name`.
    pub topic: String,
    /// `errors.deadletterqueue.copy.record.enable`: whether key and value go with them.
    pub copies_records: bool,
}

/// Settings that a share group may override.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShareSettings {
    /// `group.share.session.timeout.ms`: a member without a heartbeat for so long is put out.
    pub session_timeout_ms: i32,
    /// `group.share.heartbeat.interval.ms`: how often members send heartbeats.
    pub heartbeat_interval_ms: i32,
    /// `group.share.assignment.interval.ms`: the least time between two target assignments, so
    /// that members who come together are assigned together.
    pub assignment_interval_ms: i32,
    /// `group.share.record.lock.duration.ms`: how long a member may work on a record.
    pub record_lock_duration_ms: i32,
    /// `group.share.delivery.count.limit`: how often a record is delivered at most.
    pub delivery_count_limit: i32,
    /// `group.share.partition.max.record.locks`: records of one partition that may be locked.
    pub partition_max_record_locks: i32,
    /// Where the group starts in a partition that is new to it.
    pub auto_offset_reset: AutoOffsetReset,
    /// Which records of transactions the group gets.
    pub isolation_level: IsolationLevel,
    /// Whether a member may renew its lock of a record.
    pub renew_acknowledge_enable: bool,
    /// Whether records that the group gives up have a dead-letter topic.
    pub has_dead_letters: bool,
}

/// Where a share group starts in a partition that is new to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AutoOffsetReset {
    /// At the end.
    #[default]
    Latest,
    /// At the first record.
    Earliest,
    /// At the first record that is not older than so many milliseconds.
    ByDuration(i64),
}

/// Which records of transactions a share group gets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IsolationLevel {
    /// All of them.
    #[default]
    ReadUncommitted,
    /// Those that were committed.
    ReadCommitted,
}

/// Default of [`ShareConfig::group_size_max`], as in Kafka. All targets of a group are written as
/// one record when they change.
const GROUP_SIZE_MAX: usize = 200;

impl AutoOffsetReset {
    /// Reads the value of `share.auto.offset.reset`.
    pub fn named(text: &str) -> Option<Self> {
        match text {
            "latest" => Some(Self::Latest),
            "earliest" => Some(Self::Earliest),
            _ => duration_ms(text.strip_prefix("by_duration:")?).map(Self::ByDuration),
        }
    }
}

impl fmt::Display for AutoOffsetReset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Latest => f.write_str("latest"),
            Self::Earliest => f.write_str("earliest"),
            Self::ByDuration(ms) => {
                write!(f, "by_duration:PT{}.{:03}S", ms / 1_000, ms % 1_000)
            }
        }
    }
}

impl IsolationLevel {
    /// Reads the value of `share.isolation.level`.
    pub fn named(text: &str) -> Option<Self> {
        let levels = [Self::ReadUncommitted, Self::ReadCommitted];
        levels.into_iter().find(|level| level.name() == text)
    }

    /// The name that the configuration uses.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ReadUncommitted => "read_uncommitted",
            Self::ReadCommitted => "read_committed",
        }
    }
}

impl Default for ShareConfig {
    fn default() -> Self {
        Self {
            settings: ShareSettings {
                session_timeout_ms: 45_000,
                heartbeat_interval_ms: 5_000,
                assignment_interval_ms: 1_000,
                record_lock_duration_ms: 30_000,
                delivery_count_limit: 5,
                partition_max_record_locks: 2_000,
                auto_offset_reset: AutoOffsetReset::Latest,
                isolation_level: IsolationLevel::ReadUncommitted,
                renew_acknowledge_enable: true,
                has_dead_letters: false,
            },
            session_timeout_ms_range: 45_000..=60_000,
            heartbeat_interval_ms_range: 5_000..=15_000,
            assignment_interval_ms_range: 0..=15_000,
            record_lock_duration_ms_range: 15_000..=60_000,
            delivery_count_limit_range: 2..=10,
            partition_max_record_locks_range: 100..=4_000,
            group_size_max: GROUP_SIZE_MAX,
            dead_letter_auto_create: false,
            dead_letter_prefix: "dlq.".to_owned(),
        }
    }
}

/// Milliseconds of an ISO 8601 duration of days, hours, minutes and seconds that is not negative.
/// As in Java each part may have a sign of its own, and only seconds may have a fraction.
fn duration_ms(text: &str) -> Option<i64> {
    let text = text.to_ascii_uppercase();
    let rest = text.strip_prefix('P')?;
    let (days, time) = match rest.split_once('T') {
        Some((_, "")) => return None,
        Some((days, time)) => (days, time),
        None => (rest, ""),
    };
    let mut ms = Some(0_i64);
    let mut parts = 0;
    let mut take = |rest: &mut &str, unit: char, unit_ms: i64| {
        let Some((number, after)) = rest.split_once(unit) else { return };
        *rest = after;
        parts += 1;
        let part = if unit == 'S' { seconds_ms(number) } else { whole(number, unit_ms) };
        ms = part.and_then(|part| ms?.checked_add(part));
    };
    let (mut days, mut time) = (days, time);
    take(&mut days, 'D', 86_400_000);
    take(&mut time, 'H', 3_600_000);
    take(&mut time, 'M', 60_000);
    take(&mut time, 'S', 1_000);
    (parts > 0 && days.is_empty() && time.is_empty()).then_some(ms)?.filter(|ms| *ms >= 0)
}

fn whole(number: &str, unit_ms: i64) -> Option<i64> {
    number.parse::<i64>().ok()?.checked_mul(unit_ms)
}

/// Seconds with up to nine digits behind the point; what is below a millisecond is cut off.
fn seconds_ms(number: &str) -> Option<i64> {
    let (seconds, fraction) = number.split_once(['.', ',']).unwrap_or((number, "0"));
    let is_fraction = fraction.len() <= 9 && fraction.bytes().all(|byte| byte.is_ascii_digit());
    if !is_fraction {
        return None;
    }
    let thousandths = fraction.bytes().chain(*b"000").take(3);
    let thousandths = thousandths.fold(0, |ms, digit| ms * 10 + i64::from(digit - b'0'));
    let sign = if seconds.starts_with('-') { -1 } else { 1 };
    whole(seconds, 1_000)?.checked_add(sign * thousandths)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_java_reads_them() {
        let read = |text| AutoOffsetReset::named(&format!("by_duration:{text}"));
        let ms = |ms| Some(AutoOffsetReset::ByDuration(ms));
        assert_eq!(read("PT1H"), ms(3_600_000));
        assert_eq!(read("pt0.0015s"), ms(1));
        assert_eq!(read("P2DT3H4M5.25S"), ms(183_845_250));
        assert_eq!(read("P1DT-1H"), ms(82_800_000));
        assert_eq!(read("P1D"), ms(86_400_000));
        for wrong in ["", "P", "PT", "P1DT", "PT-1S", "-PT1S", "PT1X", "1H", "PT1M1H", "PT1.5M"] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
        assert_eq!(read("P106751991168D"), None);
    }

    #[test]
    fn a_duration_is_shown_as_it_is_read() {
        let reset = AutoOffsetReset::ByDuration(1_050);
        assert_eq!(reset.to_string(), "by_duration:PT1.050S");
        assert_eq!(AutoOffsetReset::named(&reset.to_string()), Some(reset));
        assert_eq!(AutoOffsetReset::named("Latest"), None);
    }
}
