//! Topic configuration: every key of Kafka, what it accepts, and what follows from it.
//!
//! A key is in force, or stored as a hint because the layout of the data makes it moot, or not
//! supported: then only its default is accepted, so that a tool that spells out defaults works and
//! one that asks for more gets an error. [`keys`] is the one table; `DescribeConfigs` shows its
//! texts.

mod defaults;
mod keys;
#[cfg(test)]
mod tests;
mod value;

pub use defaults::TopicDefaults;
pub(crate) use defaults::{DefaultSource, IN_SYNC};
pub(crate) use keys::{TOPIC_KEYS, TopicKey};
pub(crate) use value::{VALUE_BYTES_MAX, list, shown};

use std::collections::{BTreeMap, HashSet};

use moldau_records::{Compression, Packing};
use moldau_storage::Compaction;

/// The configuration that a topic overrides, by key.
pub(crate) type TopicOverrides = BTreeMap<String, String>;

/// The configuration of one topic, defaults filled in.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TopicConfig {
    /// `max.message.bytes`: the largest record batch accepted, in bytes.
    pub(crate) message_bytes_max: usize,
    /// `compression.type` with its level; `None` keeps the producer's compression.
    pub(crate) packing: Option<Packing>,
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
    /// `errors.deadletterqueue.group.enable`: whether share groups write dead-letter records to it.
    pub(crate) takes_dead_letters: bool,
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

    /// The value in the spelling in which it is kept.
    ///
    /// # Errors
    /// What the key accepts, without its name.
    fn check(&self, text: &str) -> Result<String, String> {
        let canonical = self.form.canonical(text)?;
        if canonical.len() > VALUE_BYTES_MAX {
            return Err(format!("longer than {} bytes", VALUE_BYTES_MAX));
        }
        match self.default_only {
            Some(reason) if canonical != self.default => Err(reason.to_owned()),
            _ => Ok(canonical),
        }
    }

    fn canonical(&self, text: &str) -> Result<String, String> {
        self.check(text).map_err(|problem| invalid_value(self.name, text, &problem))
    }
}

impl TopicConfig {
    /// Checks the overrides and fills in the defaults.
    ///
    /// # Errors
    /// Names the key and what it accepts, or says that the key has no effect in this broker.
    pub(crate) fn parse(
        overrides: &TopicOverrides,
        defaults: &TopicDefaults,
    ) -> Result<Self, String> {
        let config = Self::restore(overrides, defaults)?;
        let number = |name| number_of(overrides, defaults, name);
        let (min_ms, max_ms) = (number("min.compaction.lag.ms"), number("max.compaction.lag.ms"));
        if min_ms > max_ms {
            return Err(format!(
                "conflict topic config setting min.compaction.lag.ms ({min_ms}) > \
                 max.compaction.lag.ms ({max_ms})"
            ));
        }
        Ok(config)
    }

    /// As [`TopicConfig::parse`], for overrides that were checked when they were stored: the
    /// defaults may have changed since, and a broker starts with topics that would be refused.
    ///
    /// # Errors
    /// Names a key that does not exist, or a value that it does not accept.
    pub(crate) fn restore(
        overrides: &TopicOverrides,
        defaults: &TopicDefaults,
    ) -> Result<Self, String> {
        for (name, value) in overrides {
            canonical(name, value)?;
        }
        let text = |name| defaults.effective(overrides, name);
        let number = |name| number_of(overrides, defaults, name);
        let timestamp_type = match text("message.timestamp.type") {
            "LogAppendTime" => TimestampType::LogAppendTime,
            _ => TimestampType::CreateTime,
        };
        let has = |policy| list(text("cleanup.policy")).any(|word| word == policy);
        let compaction = Compaction {
            min_lag_ms: number("min.compaction.lag.ms"),
            max_lag_ms: number("max.compaction.lag.ms").max(number("min.compaction.lag.ms")),
            delete_retention_ms: number("delete.retention.ms"),
            min_dirty_ratio: text("min.cleanable.dirty.ratio")
                .trim()
                .parse()
                .expect("checked against the key's form"),
        };
        Ok(Self {
            message_bytes_max: usize::try_from(number("max.message.bytes")).unwrap_or(usize::MAX),
            packing: packing(text),
            timestamp_type,
            timestamp_before_ms_max: number("message.timestamp.before.max.ms"),
            timestamp_after_ms_max: number("message.timestamp.after.max.ms"),
            retention_ms: Some(number("retention.ms")).filter(|ms| *ms >= 0),
            retention_bytes: u64::try_from(number("retention.bytes")).ok(),
            deletes: has("delete"),
            takes_dead_letters: text("errors.deadletterqueue.group.enable") == "true",
            compaction: has("compact").then_some(compaction),
        })
    }
}

fn packing<'a>(text: impl Fn(&'static str) -> &'a str) -> Option<Packing> {
    let level = |name| Some(text(name).trim().parse().expect("checked against the key's form"));
    let (codec, level) = match text("compression.type") {
        "producer" => return None,
        "gzip" => (Compression::Gzip, level("compression.gzip.level").filter(|it| *it != -1)),
        "snappy" => (Compression::Snappy, None),
        "lz4" => (Compression::Lz4, level("compression.lz4.level")),
        "zstd" => (Compression::Zstd, level("compression.zstd.level")),
        _ => (Compression::None, None),
    };
    Some(Packing { codec, level })
}

/// What Kafka says of a value that a key does not accept.
fn invalid_value(name: &str, value: &str, problem: &str) -> String {
    format!("Invalid value {} for configuration {name}: {problem}", shown(value))
}

/// The value of a key in the spelling in which it is stored.
///
/// # Errors
/// Names the key and what it accepts, or says why it is not supported.
pub(crate) fn canonical(name: &str, value: &str) -> Result<String, String> {
    let key =
        topic_key(name).ok_or_else(|| format!("Unknown topic config name: {}", shown(name)))?;
    key.canonical(value)
}

/// A list with the words of another appended, where they are absent, or subtracted.
pub(crate) fn altered_list(current: &str, words: &str, is_append: bool) -> String {
    let mut altered: Vec<&str> = list(current).collect();
    if is_append {
        let present: HashSet<&str> = altered.iter().copied().collect();
        altered.extend(words.split(',').map(str::trim).filter(|word| !present.contains(word)));
    } else {
        let subtracted: HashSet<&str> = list(words).collect();
        altered.retain(|word| !subtracted.contains(word));
    }
    altered.join(",")
}

/// The entry of a key.
pub(crate) fn topic_key(name: &str) -> Option<&'static TopicKey> {
    TOPIC_KEYS.iter().find(|key| key.name == name)
}

fn number_of(overrides: &TopicOverrides, defaults: &TopicDefaults, name: &str) -> i64 {
    let text = defaults.effective(overrides, name);
    text.trim().parse().expect("checked against the key's form")
}
