//! What handlers count.

use std::sync::atomic::{AtomicU64, Ordering};

use moldau_protocol::ApiKey;
use moldau_storage::Compacted;

/// Counters that only grow.
#[derive(Debug)]
pub(crate) struct Counters {
    /// One counter for each API of the protocol, in the order of [`ApiKey::ALL`].
    requests: Vec<AtomicU64>,
    pub(crate) produced_bytes: AtomicU64,
    pub(crate) produced_records: AtomicU64,
    pub(crate) fetched_bytes: AtomicU64,
    pub(crate) compacted_logs: AtomicU64,
    pub(crate) compacted_records: AtomicU64,
    pub(crate) reloads: AtomicU64,
    pub(crate) reload_failures: AtomicU64,
}

impl Default for Counters {
    fn default() -> Self {
        Self {
            requests: ApiKey::ALL.iter().map(|_| AtomicU64::new(0)).collect(),
            produced_bytes: AtomicU64::new(0),
            produced_records: AtomicU64::new(0),
            fetched_bytes: AtomicU64::new(0),
            compacted_logs: AtomicU64::new(0),
            compacted_records: AtomicU64::new(0),
            reloads: AtomicU64::new(0),
            reload_failures: AtomicU64::new(0),
        }
    }
}

impl Counters {
    pub(crate) fn request(&self, key: ApiKey) {
        if let Some((_, count)) = self.by_api().find(|(api, _)| *api == key) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// The counter of requests of each API.
    pub(crate) fn by_api(&self) -> impl Iterator<Item = (ApiKey, &AtomicU64)> {
        ApiKey::ALL.iter().copied().zip(&self.requests)
    }

    pub(crate) fn produced(&self, bytes: usize, records: u64) {
        self.produced_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        self.produced_records.fetch_add(records, Ordering::Relaxed);
    }

    pub(crate) fn compacted(&self, compacted: &Compacted) {
        let cleaned_away = compacted.records_read.saturating_sub(compacted.records_retained);
        self.compacted_logs.fetch_add(compacted.logs as u64, Ordering::Relaxed);
        self.compacted_records.fetch_add(cleaned_away, Ordering::Relaxed);
    }

    /// Counts the compaction of one log.
    pub(crate) fn compacted_log(&self, records_read: u64, records_retained: u64) {
        self.compacted(&Compacted { logs: 1, records_read, records_retained });
    }

    pub(crate) fn fetched(&self, bytes: usize) {
        self.fetched_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }
}
