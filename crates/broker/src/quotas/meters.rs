//! What those with a quota have used, in a bounded table.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use super::rate::{TokenBucket, WindowedRate};
use super::rules::Sharers;
use crate::fetch_session::lock;
use crate::quota_entity::{QuotaKey, QuotaWindow};

/// Most meters: each takes some hundred bytes, and clients choose their ids. Those beyond share one
/// for each key.
const METERS_MAX: usize = 20_000;

/// After this time meters are looked through for those that nobody needs (Kafka removes sensors
/// after an hour).
const SWEEP_INTERVAL_MS: i64 = 60 * 60 * 1_000;

/// What sharers of a limit have used.
#[derive(Debug)]
pub(crate) enum Meter {
    Rate(WindowedRate),
    Bucket(TokenBucket),
}

/// A meter that connections share.
pub(crate) type SharedMeter = Arc<Mutex<Meter>>;

impl Meter {
    fn new(key: QuotaKey) -> SharedMeter {
        Arc::new(Mutex::new(match key {
            QuotaKey::ControllerMutationRate => Self::Bucket(TokenBucket::default()),
            _ => Self::Rate(WindowedRate::default()),
        }))
    }

    /// Adds what was used.
    pub(crate) fn record(&mut self, window: QuotaWindow, limit: f64, value: f64, now_ms: i64) {
        match self {
            Self::Rate(rate) => rate.record(window, value, now_ms),
            Self::Bucket(bucket) => bucket.take(window, limit, value, now_ms),
        }
    }

    /// Milliseconds for which whoever has used so much waits.
    pub(crate) fn throttle_ms(&mut self, window: QuotaWindow, limit: f64, now_ms: i64) -> f64 {
        match self {
            Self::Rate(rate) => rate.throttle_ms(window, limit, now_ms),
            Self::Bucket(bucket) => bucket.throttle_ms(window, limit, now_ms),
        }
    }

    fn is_over(&self, window: QuotaWindow, now_ms: i64) -> bool {
        match self {
            Self::Rate(rate) => rate.is_over(window, now_ms),
            Self::Bucket(bucket) => bucket.is_over(window, now_ms),
        }
    }
}

/// All meters.
#[derive(Default)]
pub(crate) struct Meters {
    by_sharers: HashMap<Sharers, SharedMeter>,
    beyond: HashMap<i8, SharedMeter>,
    swept_ms: i64,
}

impl Meters {
    /// The meter of those who share a limit.
    pub(crate) fn find(
        &mut self,
        key: QuotaKey,
        sharers: Sharers,
        window: QuotaWindow,
        now_ms: i64,
    ) -> SharedMeter {
        if let Some(meter) = self.by_sharers.get(&sharers) {
            return Arc::clone(meter);
        }
        self.sweep(window, now_ms);
        if self.by_sharers.len() >= METERS_MAX {
            return Arc::clone(self.beyond.entry(key.code()).or_insert_with(|| Meter::new(key)));
        }
        Arc::clone(self.by_sharers.entry(sharers).or_insert_with(|| Meter::new(key)))
    }

    pub(crate) fn len(&self) -> usize {
        self.by_sharers.len()
    }

    /// Removes meters that no connection holds and that know nothing that counts. A full table is
    /// looked through once in a window.
    fn sweep(&mut self, window: QuotaWindow, now_ms: i64) {
        let interval = match self.by_sharers.len() >= METERS_MAX {
            true => window.size_ms(),
            false => SWEEP_INTERVAL_MS,
        };
        if (self.swept_ms..self.swept_ms.saturating_add(interval)).contains(&now_ms) {
            return;
        }
        self.swept_ms = now_ms;
        self.by_sharers.retain(|_, meter| {
            Arc::strong_count(meter) > 1 || !lock(meter).is_over(window, now_ms)
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: QuotaKey = QuotaKey::ProducerByteRate;

    fn sharers(index: usize) -> Sharers {
        let client_id = Some(format!("client-{index}").into());
        Sharers { key: KEY.code(), user: None, client_id }
    }

    #[test]
    fn meters_are_bounded_and_those_that_are_over_make_room() {
        let window = QuotaWindow::default();
        let mut meters = Meters::default();
        for index in 0..METERS_MAX {
            let meter = meters.find(KEY, sharers(index), window, 0);
            lock(&meter).record(window, 1.0, 1.0, 0);
        }
        let beyond = meters.find(KEY, sharers(METERS_MAX), window, 1_000);
        let too = meters.find(KEY, sharers(METERS_MAX + 1), window, 1_000);
        assert!(Arc::ptr_eq(&beyond, &too));
        assert_eq!(meters.len(), METERS_MAX);
        let known = meters.find(KEY, sharers(7), window, 1_000);
        let own = meters.find(KEY, sharers(METERS_MAX), window, 20_000);
        assert!(!Arc::ptr_eq(&beyond, &own));
        assert_eq!(meters.len(), 2, "one is held, one is found");
        assert!(Arc::ptr_eq(&known, &meters.find(KEY, sharers(7), window, 20_000)));
    }
}
