//! Topic configuration: every key of Kafka, what it accepts, and what follows from it.
//!
//! A key is in force, or stored as a hint because the layout of the data makes it moot, or not
//! supported: then only its default is accepted, so that a tool that spells out defaults works and
//! one that asks for more is told. [`keys`] is the one table; `DescribeConfigs` shows its texts.

mod keys;
#[cfg(test)]
mod tests;
mod value;

pub(crate) use keys::{TOPIC_KEYS, TopicKey};
pub(crate) use value::{list, shown};

use moldau_storage::Compaction;

use crate::metadata_record::TopicOverrides;

/// The configuration of one topic, defaults filled in.
#[derive(Clone, Debug, PartialEq)]
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
    /// Whether retention applies: `cleanup.policy` has `delete`.
    pub(crate) deletes: bool,
    /// How logs are compacted; `None` unless `cleanup.policy` has `compact`.
    pub(crate) compaction: Option<Compaction>,
}

/// Who sets the timestamp of a record (`message.timestamp.type`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TimestampType {
    /// The producer.
    CreateTime,
    /// The broker, at the append.
    LogAppendTime,
}

impl TopicKey {
    /// Kafka's number for the type of the value (`ConfigType`).
    pub(crate) const fn type_code(&self) -> i8 {
        self.form.type_code()
    }

    /// Whether words can be appended and subtracted.
    pub(crate) const fn is_list(&self) -> bool {
        self.form.is_list()
    }

    fn canonical(&self, text: &str) -> Result<String, String> {
        let problem = |problem: &str| format!("{}={}: {problem}", self.name, shown(text));
        let canonical = self.form.canonical(text).map_err(|it| problem(&it))?;
        if canonical.len() > value::VALUE_BYTES_MAX {
            return Err(problem(&format!("longer than {} bytes", value::VALUE_BYTES_MAX)));
        }
        match self.default_only {
            Some(reason) if canonical != self.default => Err(problem(reason)),
            _ => Ok(canonical),
        }
    }
}

impl TopicConfig {
    /// Checks the overrides and fills in the defaults.
    ///
    /// # Errors
    /// Names the key and what it accepts, or says that the key has no effect in this broker.
    pub(crate) fn parse(overrides: &TopicOverrides) -> Result<Self, String> {
        for (name, value) in overrides {
            canonical(name, value)?;
        }
        let number = |name| number_of(overrides, name);
        let timestamp_type = match effective(overrides, "message.timestamp.type") {
            "LogAppendTime" => TimestampType::LogAppendTime,
            _ => TimestampType::CreateTime,
        };
        let compaction = compaction(overrides)?;
        let has = |policy| list(effective(overrides, "cleanup.policy")).any(|word| word == policy);
        Ok(Self {
            message_bytes_max: usize::try_from(number("max.message.bytes")).unwrap_or(usize::MAX),
            timestamp_type,
            timestamp_before_ms_max: number("message.timestamp.before.max.ms"),
            timestamp_after_ms_max: number("message.timestamp.after.max.ms"),
            retention_ms: Some(number("retention.ms")).filter(|ms| *ms >= 0),
            retention_bytes: u64::try_from(number("retention.bytes")).ok(),
            deletes: has("delete"),
            compaction: has("compact").then_some(compaction),
        })
    }
}

fn compaction(overrides: &TopicOverrides) -> Result<Compaction, String> {
    let number = |name| number_of(overrides, name);
    let ratio = effective(overrides, "min.cleanable.dirty.ratio");
    let compaction = Compaction {
        min_lag_ms: number("min.compaction.lag.ms"),
        max_lag_ms: number("max.compaction.lag.ms"),
        delete_retention_ms: number("delete.retention.ms"),
        min_dirty_ratio: ratio.trim().parse().expect("checked against the key's form"),
    };
    if compaction.min_lag_ms > compaction.max_lag_ms {
        return Err(format!(
            "min.compaction.lag.ms={} exceeds max.compaction.lag.ms={}",
            compaction.min_lag_ms, compaction.max_lag_ms
        ));
    }
    Ok(compaction)
}

/// The value of a key in the spelling in which it is stored.
///
/// # Errors
/// Names the key and what it accepts, or says why it is not supported.
pub(crate) fn canonical(name: &str, value: &str) -> Result<String, String> {
    let key = topic_key(name)
        .ok_or_else(|| format!("{} is not a configuration of a topic", shown(name)))?;
    key.canonical(value)
}

/// The entry of a key.
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
    effective(overrides, name).trim().parse().expect("checked against the key's form")
}
