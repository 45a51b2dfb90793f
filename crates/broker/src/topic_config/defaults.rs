//! What topics have where they override nothing: Kafka's defaults, or those that the operator gives
//! all topics under Kafka's broker-level names (`log.retention.hours`).

use std::collections::BTreeMap;

use super::keys::{BrokerKey, TOPIC_KEYS, TopicKey};
use super::{TopicConfig, TopicOverrides, invalid_value, shown, topic_key};

/// The key that has a default for the cluster at any time, as in Kafka: where none was given, that
/// of the configuration file or the built-in one (KIP-966).
pub(crate) const IN_SYNC: &str = "min.insync.replicas";

/// Broker-level defaults of topic configurations.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TopicDefaults {
    /// Values under the topic's names, from the broker-level key that wins.
    values: TopicOverrides,
    /// Every value as it was given, by its source and its broker-level name.
    given: BTreeMap<(DefaultSource, &'static str), String>,
}

/// Who gave a broker-level default; the first of several wins (KIP-226).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum DefaultSource {
    /// A client, for this broker.
    Broker,
    /// A client, for all brokers.
    Cluster,
    /// The configuration file.
    File,
}

impl DefaultSource {
    const ALL: [Self; 3] = [Self::Broker, Self::Cluster, Self::File];
}

impl TopicDefaults {
    /// Kafka's names of the broker-level keys, in the order of the topic keys that they are for.
    pub fn keys() -> impl Iterator<Item = &'static str> {
        TOPIC_KEYS.iter().flat_map(|key| key.broker_keys).map(|key| key.name)
    }

    /// The topic's key that a broker-level key is for, and what that does, or why it changes
    /// nothing; `None` for an unknown key.
    #[must_use]
    pub fn documentation(name: &str) -> Option<(&'static str, &'static str)> {
        broker_key(name).map(|(topic, _)| (topic.name, topic.documentation))
    }

    /// Adds the value that the configuration file gives a broker-level key.
    ///
    /// # Errors
    /// Says what the key accepts, or that there is no such key.
    pub fn with(mut self, name: &str, value: &str) -> Result<Self, String> {
        self.give(DefaultSource::File, name, value)?;
        let settled = self.settled()?;
        TopicConfig::parse(&TopicOverrides::new(), &settled)
            .map_err(|problem| format!("{name}: {value:?}: {problem}"))?;
        Ok(settled)
    }

    /// Replaces all values of a source. They may contradict others, which may have changed since
    /// the values were checked.
    ///
    /// # Errors
    /// Says what a key accepts, or that there is no such key.
    pub(crate) fn replaced(
        &self,
        source: DefaultSource,
        values: &TopicOverrides,
    ) -> Result<Self, String> {
        let mut replaced = self.clone();
        replaced.given.retain(|(of, _), _| *of != source);
        for (name, value) in values {
            replaced.give(source, name, value)?;
        }
        replaced.settled()
    }

    /// All values of a source.
    pub(crate) fn given_by(&self, source: DefaultSource) -> TopicOverrides {
        let own = self.given.iter().filter(|((of, _), _)| *of == source);
        own.map(|((_, name), value)| ((*name).to_owned(), value.clone())).collect()
    }

    fn give(&mut self, source: DefaultSource, name: &str, value: &str) -> Result<(), String> {
        let (topic, key) = broker_key(name)
            .ok_or_else(|| format!("{} is not a default of topic configurations", shown(name)))?;
        key.in_topic_units(value)
            .and_then(|value| topic.check(&value))
            .map_err(|problem| invalid_value(name, value, &problem))?;
        self.given.insert((source, key.name), value.trim().to_owned());
        Ok(())
    }

    /// With the values that win. Kafka lets the finer unit win, in whichever order the keys stand.
    fn settled(mut self) -> Result<Self, String> {
        self.values.clear();
        for topic in &TOPIC_KEYS {
            let of = |key: &'static BrokerKey| {
                let given = |source| self.given.get(&(source, key.name));
                Some((key, DefaultSource::ALL.into_iter().find_map(given)?))
            };
            let Some((key, text)) = topic.broker_keys.iter().find_map(of) else { continue };
            let in_force = key.in_topic_units(text).and_then(|value| topic.check(&value))?;
            self.values.insert(topic.name.to_owned(), in_force);
        }
        Ok(self)
    }

    /// The value in force for a key of [`TOPIC_KEYS`].
    pub(crate) fn effective<'a>(&'a self, overrides: &'a TopicOverrides, name: &str) -> &'a str {
        match overrides.get(name) {
            Some(value) => value,
            None => self.of(name),
        }
    }

    /// The value that topics have where they do not override a key of [`TOPIC_KEYS`].
    pub(crate) fn of(&self, name: &str) -> &str {
        match self.values.get(name) {
            Some(value) => value,
            None => topic_key(name).map_or("", |key| key.default),
        }
    }

    /// The values that were given to the broker-level keys of a topic's key, the first of which
    /// wins among those of a name.
    pub(crate) fn given(
        &self,
        key: &TopicKey,
    ) -> impl Iterator<Item = (DefaultSource, &'static str, &str)> {
        let default = key.default;
        let of = move |source, key: &'static BrokerKey| {
            let given = |source| self.given.get(&(source, key.name)).map(String::as_str);
            let value = given(source).or_else(|| {
                let is_always_given = source == DefaultSource::Cluster && key.name == IN_SYNC;
                is_always_given.then(|| given(DefaultSource::File).unwrap_or(default))
            });
            Some((source, key.name, value?))
        };
        let keys = key.broker_keys;
        DefaultSource::ALL
            .into_iter()
            .flat_map(move |source| keys.iter().filter_map(move |key| of(source, key)))
    }
}

impl BrokerKey {
    /// The value in units of the topic's key. A negative time means "none" in each unit.
    fn in_topic_units(&self, value: &str) -> Result<String, String> {
        if self.unit == 1 {
            return Ok(value.to_owned());
        }
        let number: i32 =
            value.trim().parse().map_err(|_| "Not a number of type INT".to_owned())?;
        let scaled = i64::from(number).saturating_mul(self.unit);
        Ok(if number < 0 { number.to_string() } else { scaled.to_string() })
    }
}

/// The entry of a broker-level key, and that of the topic's key that it is for.
fn broker_key(name: &str) -> Option<(&'static TopicKey, &'static BrokerKey)> {
    TOPIC_KEYS.iter().find_map(|topic| {
        let key = topic.broker_keys.iter().find(|key| key.name == name)?;
        Some((topic, key))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn defaults(pairs: &[(&str, &str)]) -> Result<TopicDefaults, String> {
        let add =
            |defaults: TopicDefaults, (name, value): &(&str, &str)| defaults.with(name, value);
        pairs.iter().try_fold(TopicDefaults::default(), add)
    }

    #[test]
    fn hours_and_minutes_count_as_milliseconds_and_the_finer_unit_wins() {
        for (pairs, ms) in [
            (&[("log.retention.hours", "2")][..], "7200000"),
            (&[("log.retention.hours", "2"), ("log.retention.minutes", "3")], "180000"),
            (&[("log.retention.ms", "4"), ("log.retention.hours", "2")], "4"),
            (&[("log.retention.hours", "-1")], "-1"),
        ] {
            assert_eq!(defaults(pairs).unwrap().of("retention.ms"), ms, "{pairs:?}");
        }
        let longest = defaults(&[("log.roll.hours", "2147483647")]).unwrap();
        assert_eq!(longest.of("segment.ms"), "7730941129200000");
    }

    #[test]
    fn an_override_of_a_topic_wins_over_the_default_of_the_broker() {
        let defaults =
            defaults(&[("log.retention.bytes", "5"), ("message.max.bytes", "6")]).unwrap();
        let overrides = TopicOverrides::from([("retention.bytes".to_owned(), "7".to_owned())]);
        let config = TopicConfig::parse(&overrides, &defaults).unwrap();
        assert_eq!((config.retention_bytes, config.message_bytes_max), (Some(7), 6));
    }

    #[test]
    fn invalid_topic_default_is_refused_by_its_broker_key() {
        for (name, value, part) in [
            ("log.retention.hours", "week", "Invalid value week for configuration log.retention.h"),
            ("log.cleanup.policy", "shred", "Invalid value shred for configuration log.cleanup."),
            ("compression.type", "lzma", "Invalid value lzma for configuration compression.type"),
            ("retention.ms", "1", "retention.ms is not a default"),
        ] {
            let problem = defaults(&[(name, value)]).unwrap_err();
            assert!(problem.starts_with(part), "{problem}");
        }
    }

    #[test]
    fn lags_that_exclude_one_another_are_refused_in_either_order() {
        let lags = [
            ("log.cleaner.min.compaction.lag.ms", "6"),
            ("log.cleaner.max.compaction.lag.ms", "5"),
        ];
        assert!(defaults(&lags).unwrap_err().contains("> max.compaction.lag.ms (5)"));
        assert!(defaults(&[lags[1], lags[0]]).is_err());
    }
}
