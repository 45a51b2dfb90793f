//! Topic configuration: the keys that are in force, their defaults and what they accept.
//!
//! A key that Kafka knows and that has no effect here is refused by name rather than stored and
//! ignored: see [`TopicConfig::parse`].

use crate::metadata_record::TopicOverrides;

/// The configuration of one topic, defaults filled in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TopicConfig {
    /// `max.message.bytes`: the largest record batch accepted, in bytes.
    pub(crate) message_bytes_max: usize,
    /// `message.timestamp.type`.
    pub(crate) timestamp_type: TimestampType,
    /// `message.timestamp.before.max.ms`: how far a timestamp may lie in the past.
    pub(crate) timestamp_before_ms_max: i64,
    /// `message.timestamp.after.max.ms`: how far a timestamp may lie in the future.
    pub(crate) timestamp_after_ms_max: i64,
    /// `retention.ms`; `None` keeps records for ever.
    pub(crate) retention_ms: Option<i64>,
    /// `retention.bytes` of each partition; `None` sets no bound.
    pub(crate) retention_bytes: Option<u64>,
}

/// Who sets the timestamp of a record (`message.timestamp.type`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TimestampType {
    /// The producer.
    CreateTime,
    /// The broker, at the append.
    LogAppendTime,
}

/// Kafka's type of a configuration value, as `DescribeConfigs` reports it (`ConfigType`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ValueType {
    /// Free text or one of several words.
    String,
    /// 32-bit integer.
    Int,
    /// 64-bit integer.
    Long,
    /// Comma-separated words.
    List,
}

impl ValueType {
    /// The number that stands for the type on the wire.
    pub(crate) const fn code(self) -> i8 {
        match self {
            Self::String => 2,
            Self::Int => 3,
            Self::Long => 5,
            Self::List => 7,
        }
    }
}

/// One key that a topic can override.
pub(crate) struct TopicKey {
    /// Kafka's name.
    pub(crate) name: &'static str,
    /// The value in force where a topic does not override it.
    pub(crate) default: &'static str,
    /// Kafka's type.
    pub(crate) value_type: ValueType,
    /// The broker-level key that Kafka reports as its synonym.
    pub(crate) broker_synonym: &'static str,
    /// What the key does.
    pub(crate) documentation: &'static str,
    check: fn(&str) -> Result<(), String>,
}

/// Every key that is in force, in alphabetical order.
pub(crate) static TOPIC_KEYS: [TopicKey; 9] = [
    TopicKey {
        name: "cleanup.policy",
        default: "delete",
        value_type: ValueType::List,
        broker_synonym: "log.cleanup.policy",
        documentation: "How old records leave a partition; `delete` is the policy in force.",
        check: |value| one_of(value, &["delete"]),
    },
    TopicKey {
        name: "compression.type",
        default: "producer",
        value_type: ValueType::String,
        broker_synonym: "compression.type",
        documentation: "Batches are stored with the codec that the producer chose.",
        check: |value| one_of(value, &["producer"]),
    },
    TopicKey {
        name: "max.message.bytes",
        default: "1048588",
        value_type: ValueType::Int,
        broker_synonym: "message.max.bytes",
        documentation: "Largest record batch that is accepted, in bytes, after compression.",
        check: |value| integer(value, 0, i64::from(i32::MAX)).map(drop),
    },
    TopicKey {
        name: "message.timestamp.after.max.ms",
        default: "3600000",
        value_type: ValueType::Long,
        broker_synonym: "log.message.timestamp.after.max.ms",
        documentation: "How far ahead of the broker's clock a record's timestamp may lie.",
        check: |value| integer(value, 0, i64::MAX).map(drop),
    },
    TopicKey {
        name: "message.timestamp.before.max.ms",
        default: "9223372036854775807",
        value_type: ValueType::Long,
        broker_synonym: "log.message.timestamp.before.max.ms",
        documentation: "How far behind the broker's clock a record's timestamp may lie.",
        check: |value| integer(value, 0, i64::MAX).map(drop),
    },
    TopicKey {
        name: "message.timestamp.type",
        default: "CreateTime",
        value_type: ValueType::String,
        broker_synonym: "log.message.timestamp.type",
        documentation: "Whether a record keeps its producer's timestamp or takes the append time.",
        check: |value| one_of(value, &["CreateTime", "LogAppendTime"]),
    },
    TopicKey {
        name: "min.insync.replicas",
        default: "1",
        value_type: ValueType::Int,
        broker_synonym: "min.insync.replicas",
        documentation: "Replicas that must have a record before acks=all succeeds; there is one.",
        check: |value| integer(value, 1, 1).map(drop),
    },
    TopicKey {
        name: "retention.bytes",
        default: "-1",
        value_type: ValueType::Long,
        broker_synonym: "log.retention.bytes",
        documentation: "Bytes that a partition keeps before its oldest batches go; -1 for all.",
        check: |value| integer(value, -1, i64::MAX).map(drop),
    },
    TopicKey {
        name: "retention.ms",
        default: "604800000",
        value_type: ValueType::Long,
        broker_synonym: "log.retention.ms",
        documentation: "Milliseconds that a record is kept; -1 for ever.",
        check: |value| integer(value, -1, i64::MAX).map(drop),
    },
];

impl TopicConfig {
    /// Checks the overrides and fills in the defaults.
    ///
    /// # Errors
    /// Names the key and what it accepts, or says that the key has no effect in this broker.
    pub(crate) fn parse(overrides: &TopicOverrides) -> Result<Self, String> {
        for (name, value) in overrides {
            let key = topic_key(name).ok_or_else(|| unsupported(name))?;
            (key.check)(value).map_err(|problem| format!("{name}={value}: {problem}"))?;
        }
        let number = |name| number_of(overrides, name);
        let timestamp_type = match effective(overrides, "message.timestamp.type") {
            "LogAppendTime" => TimestampType::LogAppendTime,
            _ => TimestampType::CreateTime,
        };
        Ok(Self {
            message_bytes_max: usize::try_from(number("max.message.bytes")).unwrap_or(usize::MAX),
            timestamp_type,
            timestamp_before_ms_max: number("message.timestamp.before.max.ms"),
            timestamp_after_ms_max: number("message.timestamp.after.max.ms"),
            retention_ms: Some(number("retention.ms")).filter(|ms| *ms >= 0),
            retention_bytes: u64::try_from(number("retention.bytes")).ok(),
        })
    }
}

/// The entry of a key that is in force.
pub(crate) fn topic_key(name: &str) -> Option<&'static TopicKey> {
    TOPIC_KEYS.iter().find(|key| key.name == name)
}

/// The value in force for a key of [`TOPIC_KEYS`].
pub(crate) fn effective<'a>(overrides: &'a TopicOverrides, name: &str) -> &'a str {
    match overrides.get(name) {
        Some(value) => value,
        None => topic_key(name).map_or("", |key| key.default),
    }
}

fn number_of(overrides: &TopicOverrides, name: &str) -> i64 {
    effective(overrides, name).parse().expect("checked against the key's bounds")
}

fn unsupported(name: &str) -> String {
    let known: Vec<_> = TOPIC_KEYS.iter().map(|key| key.name).collect();
    format!("{name} is not supported; the keys in force are {}", known.join(", "))
}

fn one_of(value: &str, words: &[&str]) -> Result<(), String> {
    if words.contains(&value) {
        return Ok(());
    }
    Err(format!("must be {}", words.join(" or ")))
}

fn integer(value: &str, least: i64, most: i64) -> Result<i64, String> {
    match value.parse::<i64>() {
        Ok(number) if (least..=most).contains(&number) => Ok(number),
        _ => Err(format!("must be an integer from {least} to {most}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn overrides(pairs: &[(&str, &str)]) -> TopicOverrides {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn defaults_are_those_of_kafka() {
        let config = TopicConfig::parse(&TopicOverrides::new()).unwrap();
        assert_eq!(config.message_bytes_max, 1_048_588);
        assert_eq!(config.retention_ms, Some(604_800_000));
        assert_eq!(config.retention_bytes, None);
        assert_eq!(config.timestamp_type, TimestampType::CreateTime);
    }

    #[test]
    fn every_default_passes_its_own_check() {
        for key in &TOPIC_KEYS {
            assert_eq!((key.check)(key.default), Ok(()), "{}", key.name);
        }
    }

    #[test]
    fn the_page_on_configuration_lists_every_key_with_its_default() {
        let page = include_str!("../../../docs/configuration.md");
        let (_, section) = page.split_once("## Topics").expect("the page has the heading");
        let rows: Vec<_> = section.lines().filter(|line| line.starts_with("| `")).collect();
        let keys = TOPIC_KEYS.iter().map(|key| format!("| `{}` | `{}` |", key.name, key.default));
        assert_eq!(rows, keys.collect::<Vec<_>>());
    }

    #[test]
    fn keys_stand_in_alphabetical_order() {
        assert!(TOPIC_KEYS.is_sorted_by_key(|key| key.name));
    }

    #[test]
    fn an_override_replaces_the_default() {
        let config = TopicConfig::parse(&overrides(&[
            ("retention.ms", "-1"),
            ("retention.bytes", "1000"),
            ("message.timestamp.type", "LogAppendTime"),
        ]))
        .unwrap();
        assert_eq!(config.retention_ms, None);
        assert_eq!(config.retention_bytes, Some(1000));
        assert_eq!(config.timestamp_type, TimestampType::LogAppendTime);
    }

    #[test]
    fn a_key_without_effect_is_refused_by_name() {
        let problem = TopicConfig::parse(&overrides(&[("segment.bytes", "1")])).unwrap_err();
        assert!(problem.starts_with("segment.bytes is not supported"), "{problem}");
    }

    #[test]
    fn a_value_out_of_bounds_is_refused_with_the_bounds() {
        for (key, value) in [
            ("max.message.bytes", "-1"),
            ("max.message.bytes", "2147483648"),
            ("retention.ms", "week"),
            ("cleanup.policy", "compact"),
            ("min.insync.replicas", "2"),
        ] {
            assert!(TopicConfig::parse(&overrides(&[(key, value)])).is_err(), "{key}={value}");
        }
    }
}
