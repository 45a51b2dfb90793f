//! Quotas of clients (KIP-13, KIP-124, KIP-546, KIP-599, KIP-612): their place in the journal, who
//! is limited, and what was used.
//!
//! A request's changes are one metadata record. They hold from the moment they are appended; the
//! client is answered once they are durable. What clients have used is in memory alone, as in
//! Kafka.

mod client;
mod meters;
mod rate;
mod rules;

use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError, RwLock};

use moldau_protocol::ErrorCode;
use moldau_storage::Lsn;

pub(crate) use self::client::QuotaClient;
use self::meters::Meters;
pub(crate) use self::meters::SharedMeter;
use self::rate::whole;
pub(crate) use self::rules::QuotaRules;
use crate::error::Refusal;
use crate::fetch_session::lock;
use crate::metadata_record::MetadataRecord;
use crate::quota_entity::{QuotaChange, QuotaKey, QuotaWindow};
use crate::storage::Storage;

/// Most quotas: each takes some hundred bytes, and listing goes through all of them.
const QUOTAS_MAX: usize = 100_000;

/// Quotas, and what was used of them.
pub(crate) struct ClientQuotas {
    pub(crate) window: QuotaWindow,
    /// Guards the quotas and the order of their records in the journal.
    rules: RwLock<Journaled>,
    /// Grows with every change of the quotas: limits found before are void.
    generation: AtomicU64,
    /// Quotas of all entities.
    count: AtomicUsize,
    /// Guards the table of meters.
    meters: Mutex<Meters>,
    /// Requests and connections that were throttled, by the code of their quota less one.
    throttles: [AtomicU64; QuotaKey::ALL.len()],
}

#[derive(Default)]
struct Journaled {
    rules: QuotaRules,
    /// Position of the last record: what it says may not be durable before.
    written: Option<Lsn>,
}

/// A limit with what was used of it.
#[derive(Clone)]
pub(crate) struct Limit {
    pub(crate) rate: f64,
    pub(crate) meter: SharedMeter,
}

impl ClientQuotas {
    /// Without quotas.
    pub(crate) fn new(window: QuotaWindow) -> Self {
        Self {
            window,
            rules: RwLock::default(),
            generation: AtomicU64::new(0),
            count: AtomicUsize::new(0),
            meters: Mutex::default(),
            throttles: Default::default(),
        }
    }

    /// Applies a record that the journal holds.
    pub(crate) fn replay(&self, changes: Vec<QuotaChange>) {
        self.apply(&mut self.write(), changes);
    }

    /// Takes the quotas of others in place of these.
    pub(crate) fn replace(&self, by: Self) {
        let by = by.rules.into_inner().unwrap_or_else(PoisonError::into_inner);
        let mut guard = self.write();
        *guard = Journaled { rules: by.rules, written: None };
        self.apply(&mut guard, Vec::new());
    }

    /// Whether anybody has a quota.
    pub(crate) fn exist(&self) -> bool {
        self.count.load(Ordering::Acquire) > 0
    }

    /// How often the quotas have changed.
    pub(crate) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// Reads the quotas.
    pub(crate) fn view<T>(&self, view: impl FnOnce(&QuotaRules) -> T) -> T {
        view(&self.rules.read().unwrap_or_else(PoisonError::into_inner).rules)
    }

    /// Makes the changes that `decide` finds to be made, and returns what else it says with the
    /// position that must be durable first.
    ///
    /// # Errors
    /// `POLICY_VIOLATION` for too many, or a journal that takes nothing.
    pub(crate) fn alter<T>(
        &self,
        storage: &Storage,
        decide: impl FnOnce(&QuotaRules) -> (Vec<QuotaChange>, T),
    ) -> Result<(T, Option<Lsn>), Refusal> {
        let mut guard = self.write();
        let (changes, decided) = decide(&guard.rules);
        if changes.is_empty() {
            return Ok((decided, guard.written));
        }
        let added = changes.iter().filter(|change| change.value.is_some()).count();
        if guard.rules.len().saturating_add(added) > QUOTAS_MAX {
            let message = format!("the limit is {QUOTAS_MAX} quotas");
            return Err(Refusal::new(ErrorCode::PolicyViolation, message));
        }
        let record = MetadataRecord::ClientQuotasChanged(changes);
        guard.written = Some(storage.write(&record.encode())?);
        if let MetadataRecord::ClientQuotasChanged(changes) = record {
            self.apply(&mut guard, changes);
        }
        Ok((decided, guard.written))
    }

    /// Hands over the records that rebuild all of it, which does not change meanwhile.
    pub(crate) fn with_snapshot<T>(&self, take: impl FnOnce(Vec<MetadataRecord>) -> T) -> T {
        let guard = self.rules.read().unwrap_or_else(PoisonError::into_inner);
        let records = guard.rules.snapshot();
        take(records.map(|change| MetadataRecord::ClientQuotasChanged(vec![change])).collect())
    }

    /// The limit of a user's client.
    pub(crate) fn limit(
        &self,
        key: QuotaKey,
        user: &str,
        client_id: &str,
        now_ms: i64,
    ) -> Option<Limit> {
        let found = self.view(|rules| match rules.has(key) {
            true => rules.find(key, user, client_id),
            false => None,
        });
        let (rate, sharers) = found?;
        Some(Limit { rate, meter: lock(&self.meters).find(key, sharers, self.window, now_ms) })
    }

    /// Milliseconds that a connection from an address waits because there were too many.
    pub(crate) fn connection(&self, address: IpAddr, now_ms: i64) -> i32 {
        let key = QuotaKey::ConnectionCreationRate;
        if !self.exist() {
            return 0;
        }
        let Some((rate, sharers)) = self.view(|rules| rules.find_address(address)) else {
            return 0;
        };
        let meter = lock(&self.meters).find(key, sharers, self.window, now_ms);
        let limit = Limit { rate, meter };
        let throttle_ms = self.record(key, &limit, 1.0, now_ms);
        if throttle_ms > 0 {
            // It is not served.
            lock(&limit.meter).record(self.window, rate, -1.0, now_ms);
        }
        throttle_ms
    }

    /// Adds what was used, and returns for how many milliseconds to throttle.
    pub(crate) fn record(&self, key: QuotaKey, limit: &Limit, value: f64, now_ms: i64) -> i32 {
        let mut meter = lock(&limit.meter);
        meter.record(self.window, limit.rate, value, now_ms);
        let throttle_ms = meter.throttle_ms(self.window, limit.rate, now_ms);
        drop(meter);
        self.throttled(key, throttle_ms)
    }

    /// Counts a throttling, and bounds its time.
    pub(crate) fn throttled(&self, key: QuotaKey, throttle_ms: f64) -> i32 {
        // As in Kafka: a slow request is no reason to stop a client for long.
        let throttle_ms = match key {
            QuotaKey::RequestPercentage => throttle_ms.min(self.window.size_ms() as f64),
            _ => throttle_ms,
        };
        let throttle_ms = i32::try_from(whole(throttle_ms)).unwrap_or(i32::MAX);
        if throttle_ms > 0 {
            let index = QuotaKey::ALL.iter().position(|other| *other == key);
            if let Some(count) = index.and_then(|index| self.throttles.get(index)) {
                count.fetch_add(1, Ordering::Relaxed);
            }
        }
        throttle_ms
    }

    /// How often each kind of quota has throttled.
    pub(crate) fn throttles(&self) -> impl Iterator<Item = (QuotaKey, u64)> {
        let counts = self.throttles.iter().map(|count| count.load(Ordering::Relaxed));
        QuotaKey::ALL.into_iter().zip(counts)
    }

    /// Users and clients whose use is measured.
    pub(crate) fn meters(&self) -> usize {
        lock(&self.meters).len()
    }

    fn apply(&self, journaled: &mut Journaled, changes: Vec<QuotaChange>) {
        journaled.rules.apply(changes);
        self.generation.fetch_add(1, Ordering::Release);
        self.count.store(journaled.rules.len(), Ordering::Release);
    }

    fn write(&self) -> std::sync::RwLockWriteGuard<'_, Journaled> {
        self.rules.write().unwrap_or_else(PoisonError::into_inner)
    }
}
