//! Configuration of one group, as IncrementalAlterConfigs sets it. A group need not exist to have
//! one; it outlives the group.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use crate::config::{Config, GroupSettings};
use crate::share_config::{AutoOffsetReset, DeadLetterSettings, IsolationLevel, ShareSettings};
use crate::streams_config::{StreamsConfig, StreamsSettings};

/// What a group overrides, by key.
pub type GroupOverrides = BTreeMap<String, String>;

/// A key of a group's configuration.
#[derive(Debug)]
pub struct GroupKey {
    /// Its name.
    pub name: &'static str,
    /// The broker's key with the default, if there is one.
    pub broker_key: Option<&'static str>,
    /// What it does.
    pub documentation: &'static str,
    value: Value,
}

/// The type of a value, as DescribeConfigs names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupKeyType {
    /// `true` or `false`.
    Boolean,
    /// Text.
    String,
    /// A number of 32 bits.
    Int,
    /// Texts that commas separate.
    List,
}

#[derive(Debug)]
enum Value {
    Number { default: fn(&Config) -> i32, range: fn(&Config) -> &RangeInclusive<i32> },
    Reset,
    Isolation,
    Flag { default: bool },
    Tags,
    DeadLetterTopic,
}

/// Longest topic name, as in Kafka.
const TOPIC_NAME_BYTES_MAX: usize = 249;

/// Every key that a group may override.
pub static GROUP_KEYS: [GroupKey; 20] = [
    GroupKey {
        name: ASSIGNMENT_INTERVAL,
        broker_key: Some("group.consumer.assignment.interval.ms"),
        documentation: "The least time between two target assignments of the group.",
        value: Value::Number {
            default: |config| config.consumer.settings.assignment_interval_ms,
            range: |config| &config.consumer.assignment_interval_ms_range,
        },
    },
    GroupKey {
        name: HEARTBEAT_INTERVAL,
        broker_key: Some("group.consumer.heartbeat.interval.ms"),
        documentation: "How often members of the group send heartbeats.",
        value: Value::Number {
            default: |config| config.consumer.settings.heartbeat_interval_ms,
            range: |config| &config.consumer.heartbeat_interval_ms_range,
        },
    },
    GroupKey {
        name: SESSION_TIMEOUT,
        broker_key: Some("group.consumer.session.timeout.ms"),
        documentation: "A member of the group without a heartbeat for so long is put out.",
        value: Value::Number {
            default: |config| config.consumer.settings.session_timeout_ms,
            range: |config| &config.consumer.session_timeout_ms_range,
        },
    },
    GroupKey {
        name: DEAD_LETTER_COPY,
        broker_key: None,
        documentation: "Whether a dead-letter record of the share group has the key and the value \
                        of the record, beside the headers that say where it was.",
        value: Value::Flag { default: false },
    },
    GroupKey {
        name: DEAD_LETTER_TOPIC,
        broker_key: None,
        documentation: "The topic of dead-letter records: of what members of the share group \
                        reject, and of what was delivered as often as it may be. Empty for none.",
        value: Value::DeadLetterTopic,
    },
    GroupKey {
        name: SHARE_ASSIGNMENT_INTERVAL,
        broker_key: Some("group.share.assignment.interval.ms"),
        documentation: "The least time between two target assignments of the share group.",
        value: Value::Number {
            default: |config| config.share.settings.assignment_interval_ms,
            range: |config| &config.share.assignment_interval_ms_range,
        },
    },
    GroupKey {
        name: SHARE_AUTO_OFFSET_RESET,
        broker_key: None,
        documentation: "Where the share group starts in a partition that is new to it: latest, \
                        earliest, or by_duration with an ISO 8601 duration before now.",
        value: Value::Reset,
    },
    GroupKey {
        name: SHARE_DELIVERY_COUNT_LIMIT,
        broker_key: Some("group.share.delivery.count.limit"),
        documentation: "How often a record is delivered to the share group at most.",
        value: Value::Number {
            default: |config| config.share.settings.delivery_count_limit,
            range: |config| &config.share.delivery_count_limit_range,
        },
    },
    GroupKey {
        name: SHARE_HEARTBEAT_INTERVAL,
        broker_key: Some("group.share.heartbeat.interval.ms"),
        documentation: "How often members of the share group send heartbeats.",
        value: Value::Number {
            default: |config| config.share.settings.heartbeat_interval_ms,
            range: |config| &config.share.heartbeat_interval_ms_range,
        },
    },
    GroupKey {
        name: SHARE_ISOLATION_LEVEL,
        broker_key: None,
        documentation: "Whether the share group gets records of transactions before they are \
                        committed: read_uncommitted or read_committed.",
        value: Value::Isolation,
    },
    GroupKey {
        name: SHARE_PARTITION_MAX_RECORD_LOCKS,
        broker_key: Some("group.share.partition.max.record.locks"),
        documentation: "How many records of one partition the share group may have locked.",
        value: Value::Number {
            default: |config| config.share.settings.partition_max_record_locks,
            range: |config| &config.share.partition_max_record_locks_range,
        },
    },
    GroupKey {
        name: SHARE_RECORD_LOCK_DURATION,
        broker_key: Some("group.share.record.lock.duration.ms"),
        documentation: "How long a member of the share group may work on a record.",
        value: Value::Number {
            default: |config| config.share.settings.record_lock_duration_ms,
            range: |config| &config.share.record_lock_duration_ms_range,
        },
    },
    GroupKey {
        name: SHARE_RENEW_ACKNOWLEDGE_ENABLE,
        broker_key: None,
        documentation: "Whether members of the share group may renew their lock of a record.",
        value: Value::Flag { default: true },
    },
    GroupKey {
        name: SHARE_SESSION_TIMEOUT,
        broker_key: Some("group.share.session.timeout.ms"),
        documentation: "A member of the share group without a heartbeat for so long is put out.",
        value: Value::Number {
            default: |config| config.share.settings.session_timeout_ms,
            range: |config| &config.share.session_timeout_ms_range,
        },
    },
    GroupKey {
        name: STREAMS_ASSIGNMENT_INTERVAL,
        broker_key: Some("group.streams.assignment.interval.ms"),
        documentation: "The least time between two target assignments of the streams group.",
        value: Value::Number {
            default: |config| config.streams.settings.assignment_interval_ms,
            range: |config| &config.streams.assignment_interval_ms_range,
        },
    },
    GroupKey {
        name: STREAMS_HEARTBEAT_INTERVAL,
        broker_key: Some("group.streams.heartbeat.interval.ms"),
        documentation: "How often members of the streams group send heartbeats.",
        value: Value::Number {
            default: |config| config.streams.settings.heartbeat_interval_ms,
            range: |config| &config.streams.heartbeat_interval_ms_range,
        },
    },
    GroupKey {
        name: STREAMS_INITIAL_REBALANCE_DELAY,
        broker_key: Some("group.streams.initial.rebalance.delay.ms"),
        documentation: "How long the first member of the empty streams group waits for others.",
        value: Value::Number {
            default: |config| config.streams.settings.initial_rebalance_delay_ms,
            range: |config| &config.streams.initial_rebalance_delay_ms_range,
        },
    },
    GroupKey {
        name: STREAMS_NUM_STANDBY_REPLICAS,
        broker_key: Some("group.streams.num.standby.replicas"),
        documentation: "Copies of the state of each task.",
        value: Value::Number {
            default: |config| config.streams.settings.standby_replicas,
            range: |config| &config.streams.standby_replicas_range,
        },
    },
    GroupKey {
        name: STREAMS_RACK_AWARE_TAGS,
        broker_key: Some("group.streams.rack.aware.assignment.tags"),
        documentation: "Tags that each client of the streams group must have; one that lacks some \
                        is told so.",
        value: Value::Tags,
    },
    GroupKey {
        name: STREAMS_SESSION_TIMEOUT,
        broker_key: Some("group.streams.session.timeout.ms"),
        documentation: "A member of the streams group without a heartbeat for so long is put out.",
        value: Value::Number {
            default: |config| config.streams.settings.session_timeout_ms,
            range: |config| &config.streams.session_timeout_ms_range,
        },
    },
];

const ASSIGNMENT_INTERVAL: &str = "consumer.assignment.interval.ms";
const DEAD_LETTER_COPY: &str = "errors.deadletterqueue.copy.record.enable";
const DEAD_LETTER_TOPIC: &str = "errors.deadletterqueue.topic.name";
const HEARTBEAT_INTERVAL: &str = "consumer.heartbeat.interval.ms";
const SESSION_TIMEOUT: &str = "consumer.session.timeout.ms";
const SHARE_ASSIGNMENT_INTERVAL: &str = "share.assignment.interval.ms";
const SHARE_AUTO_OFFSET_RESET: &str = "share.auto.offset.reset";
const SHARE_DELIVERY_COUNT_LIMIT: &str = "share.delivery.count.limit";
const SHARE_HEARTBEAT_INTERVAL: &str = "share.heartbeat.interval.ms";
const SHARE_ISOLATION_LEVEL: &str = "share.isolation.level";
const SHARE_PARTITION_MAX_RECORD_LOCKS: &str = "share.partition.max.record.locks";
const SHARE_RECORD_LOCK_DURATION: &str = "share.record.lock.duration.ms";
const SHARE_RENEW_ACKNOWLEDGE_ENABLE: &str = "share.renew.acknowledge.enable";
const SHARE_SESSION_TIMEOUT: &str = "share.session.timeout.ms";
const STREAMS_ASSIGNMENT_INTERVAL: &str = "streams.assignment.interval.ms";
const STREAMS_HEARTBEAT_INTERVAL: &str = "streams.heartbeat.interval.ms";
const STREAMS_INITIAL_REBALANCE_DELAY: &str = "streams.initial.rebalance.delay.ms";
const STREAMS_NUM_STANDBY_REPLICAS: &str = "streams.num.standby.replicas";
const STREAMS_RACK_AWARE_TAGS: &str = "streams.rack.aware.assignment.tags";
const STREAMS_SESSION_TIMEOUT: &str = "streams.session.timeout.ms";

/// How much of a value that is refused the message repeats.
const SHOWN_CHARACTERS_MAX: usize = 100;

impl GroupKey {
    /// The key of a name.
    pub fn named(name: &str) -> Option<&'static Self> {
        GROUP_KEYS.iter().find(|key| key.name == name)
    }

    /// The type of its value.
    pub fn value_type(&self) -> GroupKeyType {
        match self.value {
            Value::Number { .. } => GroupKeyType::Int,
            Value::Reset | Value::Isolation | Value::DeadLetterTopic => GroupKeyType::String,
            Value::Flag { .. } => GroupKeyType::Boolean,
            Value::Tags => GroupKeyType::List,
        }
    }

    /// The value of a group that overrides nothing.
    pub fn default(&self, config: &Config) -> String {
        match &self.value {
            Value::Number { default, .. } => default(config).to_string(),
            Value::Reset => AutoOffsetReset::default().to_string(),
            Value::Isolation => IsolationLevel::default().name().to_owned(),
            Value::Flag { default } => default.to_string(),
            Value::Tags => config.streams.settings.rack_tags.join(","),
            Value::DeadLetterTopic => String::new(),
        }
    }

    /// Reads a value, and returns it as it is to be stored.
    ///
    /// # Errors
    ///
    /// Says what the key accepts.
    pub fn parse(&self, config: &Config, text: &str) -> Result<String, String> {
        let text = text.trim();
        let (parsed, problem) = match &self.value {
            Value::Number { range, .. } => match text.parse::<i32>() {
                Ok(number) => return self.within(number, range(config)),
                Err(_) => (None, "Not a number of type INT"),
            },
            Value::Reset => {
                let problem = "must be latest, earliest or by_duration:PnDTnHnMn.nS";
                (AutoOffsetReset::named(text).map(|_| text.to_owned()), problem)
            }
            Value::Isolation => {
                let problem = "String must be one of: read_committed, read_uncommitted";
                (IsolationLevel::named(text).map(|level| level.name().to_owned()), problem)
            }
            Value::Flag { .. } => {
                let flag = text.to_ascii_lowercase().parse::<bool>().ok();
                let problem = "Expected value to be either true or false";
                (flag.map(|flag| flag.to_string()), problem)
            }
            Value::Tags => {
                let tags = StreamsConfig::tags(text).map(|tags| tags.join(","));
                (tags, "must be names that commas separate, each once")
            }
            // As in Kafka other rules of names are checked when a record is written.
            Value::DeadLetterTopic => {
                let is_ordinary = !text.starts_with("__") && text.len() <= TOPIC_NAME_BYTES_MAX;
                (is_ordinary.then(|| text.to_owned()), "DLQ topic name must not start with '__'")
            }
        };
        parsed.ok_or_else(|| {
            // The text is a client's, of any length.
            let text: String = text.chars().take(SHOWN_CHARACTERS_MAX).collect();
            format!("Invalid value {text} for configuration {}: {problem}", self.name)
        })
    }

    /// A number, where it is in its range.
    fn within(&self, number: i32, range: &RangeInclusive<i32>) -> Result<String, String> {
        let (name, least, most) = (self.name, range.start(), range.end());
        match range.contains(&number) {
            true => Ok(number.to_string()),
            false if *most == i32::MAX => Err(format!(
                "Invalid value {number} for configuration {name}: Value must be at least {least}"
            )),
            false => Err(format!("{name} must be in the range {least} to {most} inclusive.")),
        }
    }
}

/// The settings of a group of the consumer protocol.
pub(crate) fn settings(config: &Config, overrides: &GroupOverrides) -> GroupSettings {
    let number = |name| number(config, overrides, name);
    let own = config.consumer.settings;
    GroupSettings {
        session_timeout_ms: number(SESSION_TIMEOUT).unwrap_or(own.session_timeout_ms),
        heartbeat_interval_ms: number(HEARTBEAT_INTERVAL).unwrap_or(own.heartbeat_interval_ms),
        assignment_interval_ms: number(ASSIGNMENT_INTERVAL).unwrap_or(own.assignment_interval_ms),
    }
}

/// The settings of a share group.
pub(crate) fn share_settings(config: &Config, overrides: &GroupOverrides) -> ShareSettings {
    let number = |name| number(config, overrides, name);
    let text = |name: &str| overrides.get(name).map(String::as_str);
    let own = config.share.settings;
    let renews = text(SHARE_RENEW_ACKNOWLEDGE_ENABLE).and_then(|text| text.parse().ok());
    ShareSettings {
        session_timeout_ms: number(SHARE_SESSION_TIMEOUT).unwrap_or(own.session_timeout_ms),
        heartbeat_interval_ms: number(SHARE_HEARTBEAT_INTERVAL)
            .unwrap_or(own.heartbeat_interval_ms),
        assignment_interval_ms: number(SHARE_ASSIGNMENT_INTERVAL)
            .unwrap_or(own.assignment_interval_ms),
        record_lock_duration_ms: number(SHARE_RECORD_LOCK_DURATION)
            .unwrap_or(own.record_lock_duration_ms),
        delivery_count_limit: number(SHARE_DELIVERY_COUNT_LIMIT)
            .unwrap_or(own.delivery_count_limit),
        partition_max_record_locks: number(SHARE_PARTITION_MAX_RECORD_LOCKS)
            .unwrap_or(own.partition_max_record_locks),
        auto_offset_reset: text(SHARE_AUTO_OFFSET_RESET)
            .and_then(AutoOffsetReset::named)
            .unwrap_or(own.auto_offset_reset),
        isolation_level: text(SHARE_ISOLATION_LEVEL)
            .and_then(IsolationLevel::named)
            .unwrap_or(own.isolation_level),
        renew_acknowledge_enable: renews.unwrap_or(own.renew_acknowledge_enable),
        has_dead_letters: dead_letters(overrides).is_some(),
    }
}

/// Where records go that a share group gives up.
pub(crate) fn dead_letters(overrides: &GroupOverrides) -> Option<DeadLetterSettings> {
    let topic = overrides.get(DEAD_LETTER_TOPIC).filter(|topic| !topic.is_empty())?.clone();
    let copies = overrides.get(DEAD_LETTER_COPY).and_then(|text| text.parse().ok());
    Some(DeadLetterSettings { topic, copies_records: copies.unwrap_or(false) })
}

/// The settings of a streams group.
pub(crate) fn streams_settings(config: &Config, overrides: &GroupOverrides) -> StreamsSettings {
    let number = |name| number(config, overrides, name);
    let own = &config.streams.settings;
    let tags = overrides.get(STREAMS_RACK_AWARE_TAGS).and_then(|tags| StreamsConfig::tags(tags));
    StreamsSettings {
        session_timeout_ms: number(STREAMS_SESSION_TIMEOUT).unwrap_or(own.session_timeout_ms),
        heartbeat_interval_ms: number(STREAMS_HEARTBEAT_INTERVAL)
            .unwrap_or(own.heartbeat_interval_ms),
        assignment_interval_ms: number(STREAMS_ASSIGNMENT_INTERVAL)
            .unwrap_or(own.assignment_interval_ms),
        initial_rebalance_delay_ms: number(STREAMS_INITIAL_REBALANCE_DELAY)
            .unwrap_or(own.initial_rebalance_delay_ms),
        standby_replicas: number(STREAMS_NUM_STANDBY_REPLICAS).unwrap_or(own.standby_replicas),
        rack_tags: tags.unwrap_or_else(|| own.rack_tags.clone()),
    }
}

/// A number that a group overrides. One that was stored under wider limits is cut to those of
/// today.
fn number(config: &Config, overrides: &GroupOverrides, name: &str) -> Option<i32> {
    let stored = overrides.get(name)?.trim().parse::<i32>().ok()?;
    let Value::Number { range, .. } = &GroupKey::named(name)?.value else { return None };
    let range = range(config);
    Some(stored.clamp(*range.start(), (*range.end()).max(*range.start())))
}
