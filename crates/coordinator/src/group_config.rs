//! Configuration of one group, as IncrementalAlterConfigs sets it. A group need not exist to have
//! one; it outlives the group.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use crate::config::{Config, ConsumerConfig, GroupSettings};

/// What a group overrides, by key.
pub type GroupOverrides = BTreeMap<String, String>;

/// A key of a group's configuration. Its value is a number of milliseconds.
#[derive(Debug)]
pub struct GroupKey {
    /// Its name.
    pub name: &'static str,
    /// The broker's key with the default.
    pub broker_key: &'static str,
    /// What it does.
    pub documentation: &'static str,
    default: fn(&ConsumerConfig) -> i32,
    range: fn(&ConsumerConfig) -> &RangeInclusive<i32>,
    set: fn(&mut GroupSettings, i32),
}

/// Every key that a group may override.
pub static GROUP_KEYS: [GroupKey; 3] = [
    GroupKey {
        name: "consumer.assignment.interval.ms",
        broker_key: "group.consumer.assignment.interval.ms",
        documentation: "The least time between two target assignments of the group.",
        default: |config| config.settings.assignment_interval_ms,
        range: |config| &config.assignment_interval_ms_range,
        set: |settings, ms| settings.assignment_interval_ms = ms,
    },
    GroupKey {
        name: "consumer.heartbeat.interval.ms",
        broker_key: "group.consumer.heartbeat.interval.ms",
        documentation: "How often members of the group send heartbeats.",
        default: |config| config.settings.heartbeat_interval_ms,
        range: |config| &config.heartbeat_interval_ms_range,
        set: |settings, ms| settings.heartbeat_interval_ms = ms,
    },
    GroupKey {
        name: "consumer.session.timeout.ms",
        broker_key: "group.consumer.session.timeout.ms",
        documentation: "A member of the group without a heartbeat for so long is put out.",
        default: |config| config.settings.session_timeout_ms,
        range: |config| &config.session_timeout_ms_range,
        set: |settings, ms| settings.session_timeout_ms = ms,
    },
];

impl GroupKey {
    /// The key of a name.
    pub fn named(name: &str) -> Option<&'static Self> {
        GROUP_KEYS.iter().find(|key| key.name == name)
    }

    /// The value of a group that overrides nothing.
    pub fn default(&self, config: &Config) -> i32 {
        (self.default)(&config.consumer)
    }

    /// Reads a value.
    ///
    /// # Errors
    ///
    /// Says what the key accepts.
    pub fn parse(&self, config: &Config, text: &str) -> Result<i32, String> {
        let range = (self.range)(&config.consumer);
        let value = text.trim().parse::<i32>().ok().filter(|value| range.contains(value));
        let (low, high) = (range.start(), range.end());
        value.ok_or_else(|| format!("{} takes a number from {low} to {high}", self.name))
    }
}

/// The settings of a group. A value that was stored under wider limits is cut to those of today.
pub(crate) fn settings(config: &Config, overrides: &GroupOverrides) -> GroupSettings {
    let mut settings = config.consumer.settings;
    for key in &GROUP_KEYS {
        let stored = overrides.get(key.name).and_then(|text| text.trim().parse::<i32>().ok());
        if let Some(value) = stored {
            let range = (key.range)(&config.consumer);
            let high = (*range.end()).max(*range.start());
            (key.set)(&mut settings, value.clamp(*range.start(), high));
        }
    }
    settings
}
