//! What the filter counts, for the metrics page.

use std::sync::atomic::{AtomicU64, Ordering};

use moldau_encryption::{KeyCache, KeyCounters, Operation, Outcome};

use crate::filter::FilterMetric;
use crate::metrics::add;

/// Why a partition failed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Cause {
    /// No key, where that is refused.
    NoKey,
    /// The key management service did not answer, or refused us.
    Service,
    /// The key was revoked, or nobody knows it.
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

/// What the filter has done.
#[derive(Debug, Default)]
pub(super) struct Counters {
    sealed: AtomicU64,
    opened: AtomicU64,
    passed_plain: AtomicU64,
    passed_damaged: AtomicU64,
    not_sealed: [AtomicU64; Cause::ALL.len()],
    not_opened: [AtomicU64; Cause::ALL.len()],
}

impl Counters {
    pub(super) fn sealed(&self, records: u32) {
        add(&self.sealed, records.into());
    }

    pub(super) fn opened(&self, records: u32) {
        add(&self.opened, records.into());
    }

    /// Records that were produced to a topic without a key.
    pub(super) fn passed_plain(&self, records: u64) {
        add(&self.passed_plain, records);
    }

    pub(super) fn passed_damaged(&self, records: u32) {
        add(&self.passed_damaged, records.into());
    }

    pub(super) fn not_sealed(&self, cause: Cause) {
        add(&self.not_sealed[cause as usize], 1);
    }

    pub(super) fn not_opened(&self, cause: Cause) {
        add(&self.not_opened[cause as usize], 1);
    }

    pub(super) fn metrics(&self, keys: &KeyCounters) -> Vec<FilterMetric> {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let plain = |name, help, value| FilterMetric { name, help, labels: Vec::new(), value };
        let mut metrics = vec![
            plain("records_sealed", "Produced records encrypted", load(&self.sealed)),
            plain("records_opened", "Fetched records decrypted", load(&self.opened)),
            plain(
                "records_passed_plain",
                "Produced records passed in clear, of topics without a key",
                load(&self.passed_plain),
            ),
            plain(
                "records_passed_damaged",
                "Fetched records passed encrypted because they could not be decrypted",
                load(&self.passed_damaged),
            ),
            plain(
                "sealing_keys_replaced",
                "Data keys replaced by the next one",
                keys.sealing_keys_replaced(),
            ),
        ];
        for cause in Cause::ALL {
            let by_cause = |name, help, counters: &[AtomicU64]| {
                let labels = vec![("cause", cause.name().to_owned())];
                FilterMetric { name, help, labels, value: load(&counters[cause as usize]) }
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
