//! Counters of the filter, for the metrics page.

use moldau_encryption::{KeyCache, KeyCounters, Operation, Outcome};
use moldau_protocol::ErrorCode;
use moldau_proxy::FilterMetric;

use crate::batches::Fault;
use crate::counter::Counter;

/// Why a partition failed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Cause {
    /// No key, where that is refused.
    NoKey,
    /// The key management service did not answer, or refused us.
    Service,
    /// The key was revoked.
    KeyGone,
    /// The topic id is not known.
    TopicId,
    /// The bytes are damaged, or a record does not open.
    Damage,
    /// The batch is too large.
    Size,
}

impl Cause {
    const ALL: [Self; 6] =
        [Self::NoKey, Self::Service, Self::KeyGone, Self::TopicId, Self::Damage, Self::Size];

    pub(super) fn of(fault: &Fault) -> Self {
        match fault.code {
            ErrorCode::UnknownTopicId => Self::TopicId,
            ErrorCode::KafkaStorageError => Self::Service,
            ErrorCode::TopicAuthorizationFailed => Self::KeyGone,
            ErrorCode::MessageTooLarge => Self::Size,
            _ if fault.message == NO_KEY => Self::NoKey,
            _ => Self::Damage,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::NoKey => "no_key",
            Self::Service => "service",
            Self::KeyGone => "key_gone",
            Self::TopicId => "topic_id",
            Self::Damage => "damage",
            Self::Size => "size",
        }
    }
}

/// Counters of the filter.
#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) sealed: Counter,
    pub(super) opened: Counter,
    /// Of topics without a key.
    pub(super) passed_plain: Counter,
    pub(super) passed_damaged: Counter,
    not_sealed: [Counter; Cause::ALL.len()],
    not_opened: [Counter; Cause::ALL.len()],
}

impl Counters {
    pub(super) fn not_sealed(&self, cause: Cause) {
        self.not_sealed[cause as usize].add(1);
    }

    pub(super) fn not_opened(&self, cause: Cause) {
        self.not_opened[cause as usize].add(1);
    }

    pub(super) fn metrics(&self, keys: &KeyCounters) -> Vec<FilterMetric> {
        let mut metrics = vec![
            self.sealed.metric("records_sealed", "Produced records encrypted"),
            self.opened.metric("records_opened", "Fetched records decrypted"),
            self.passed_plain.metric(
                "records_passed_plain",
                "Produced records passed in clear, of topics without a key",
            ),
            self.passed_damaged.metric(
                "records_passed_damaged",
                "Fetched records passed encrypted because they could not be decrypted",
            ),
            FilterMetric {
                name: "sealing_keys_replaced",
                help: "Data keys replaced by the next one",
                labels: Vec::new(),
                value: keys.sealing_keys_replaced(),
            },
        ];
        for cause in Cause::ALL {
            let by_cause = |name, help, counters: &[Counter]| {
                let labels = vec![("cause", cause.name().to_owned())];
                FilterMetric { labels, ..counters[cause as usize].metric(name, help) }
            };
            let help = "Produced partitions refused because they could not be encrypted";
            metrics.push(by_cause("partitions_not_sealed", help, &self.not_sealed));
            let help = "Fetched partitions withheld because they could not be decrypted";
            metrics.push(by_cause("partitions_not_opened", help, &self.not_opened));
        }
        for (operation, outcome) in
            Operation::ALL.iter().flat_map(|it| Outcome::ALL.map(|outcome| (*it, outcome)))
        {
            metrics.push(FilterMetric {
                name: "kms_calls",
                help: "Calls to the key management service, retries included",
                labels: vec![
                    ("operation", operation.name().to_owned()),
                    ("outcome", outcome.name().to_owned()),
                ],
                value: keys.calls(operation, outcome),
            });
        }
        for cache in KeyCache::ALL {
            metrics.push(FilterMetric {
                name: "key_waits",
                help: "Key lookups that waited for the key management service",
                labels: vec![("cache", cache.name().to_owned())],
                value: keys.waits(cache),
            });
        }
        metrics
    }
}

/// The message of a fault for a topic without a key, which has no code of its own.
pub(super) const NO_KEY: &str = "the topic has no key to encrypt with";
