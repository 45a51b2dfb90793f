//! Rates over windows of time, by Kafka's rules, and for how long exceeding one throttles.

use std::collections::VecDeque;
use std::time::Duration;

use crate::quota_entity::QuotaWindow;

/// A rate of the last windows. The clock may be set back; what was measured then is forgotten.
#[derive(Debug, Default)]
pub(crate) struct WindowedRate {
    /// One more than the windows, so that none is lost of which a part still counts.
    samples: VecDeque<Sample>,
}

#[derive(Debug)]
struct Sample {
    start_ms: i64,
    last_ms: i64,
    value: f64,
}

impl WindowedRate {
    /// Adds a value, which may be negative to take back another.
    pub(crate) fn record(&mut self, window: QuotaWindow, value: f64, mut now_ms: i64) {
        // Requests of other threads may have come a moment later and be counted before.
        match self.samples.back().map(|sample| sample.start_ms) {
            Some(start_ms) if now_ms < start_ms.saturating_sub(window.size_ms()) => {
                self.samples.clear();
            }
            Some(start_ms) => now_ms = now_ms.max(start_ms),
            None => {}
        }
        match self.samples.back_mut() {
            Some(sample) if now_ms - sample.start_ms < window.size_ms() => {
                sample.value += value;
                sample.last_ms = now_ms;
            }
            _ => {
                self.samples.push_back(Sample { start_ms: now_ms, last_ms: now_ms, value });
                if self.samples.len() > window.num as usize + 1 {
                    self.samples.pop_front();
                }
            }
        }
    }

    /// Milliseconds for which to stop so that the rate falls to `limit` a second.
    pub(crate) fn throttle_ms(&mut self, window: QuotaWindow, limit: f64, now_ms: i64) -> f64 {
        self.samples.retain(|sample| now_ms - sample.last_ms < window.total_ms());
        let total: f64 = self.samples.iter().map(|sample| sample.value).sum();
        let start_ms = self.samples.iter().map(|sample| sample.start_ms).min().unwrap_or(now_ms);
        let mut elapsed_ms = now_ms.saturating_sub(start_ms).max(0);
        // A rate that has just begun is spread over all full windows, so that bursts may happen.
        let full = elapsed_ms / window.size_ms();
        let missing = i64::from(window.num) - 1 - full;
        elapsed_ms += missing.max(0) * window.size_ms();
        let elapsed_ms = elapsed_ms.max(1) as f64;
        let rate = total / (elapsed_ms / 1_000.0);
        if rate <= limit { 0.0 } else { ((rate - limit) / limit * elapsed_ms).round() }
    }

    /// Whether nothing that it knows still counts.
    pub(crate) fn is_over(&self, window: QuotaWindow, now_ms: i64) -> bool {
        let last = self.samples.back().map(|sample| sample.last_ms);
        last.is_none_or(|last| last.abs_diff(now_ms) >= window.total_ms().unsigned_abs())
    }
}

/// A bucket that fills at the rate of a quota (KIP-599). A request takes as many tokens as it makes
/// changes, if the bucket has not been overdrawn.
#[derive(Debug, Default)]
pub(crate) struct TokenBucket {
    /// Tokens, and when there were as many. `None` for a full bucket.
    filled: Option<(f64, i64)>,
}

impl TokenBucket {
    /// Takes tokens, more than there are if need be.
    pub(crate) fn take(&mut self, window: QuotaWindow, limit: f64, tokens: f64, now_ms: i64) {
        let level = self.level(window, limit, now_ms);
        self.filled = Some((level - tokens, now_ms));
    }

    /// Milliseconds until the bucket is no longer overdrawn.
    pub(crate) fn throttle_ms(&self, window: QuotaWindow, limit: f64, now_ms: i64) -> f64 {
        let level = self.level(window, limit, now_ms);
        if level >= 0.0 { 0.0 } else { (-level / limit * 1_000.0).round() }
    }

    /// Whether the bucket is full.
    pub(crate) fn is_over(&self, window: QuotaWindow, now_ms: i64) -> bool {
        self.filled.is_none_or(|(level, at)| level >= 0.0 && now_ms - at >= window.total_ms())
    }

    fn level(&self, window: QuotaWindow, limit: f64, now_ms: i64) -> f64 {
        let burst = limit * window.total_ms() as f64 / 1_000.0;
        let Some((level, at)) = self.filled else { return burst };
        let elapsed_ms = now_ms.saturating_sub(at).max(0) as f64;
        (level + limit * elapsed_ms / 1_000.0).min(burst)
    }
}

/// The whole number below a number, within bounds.
pub(crate) fn whole(number: f64) -> u64 {
    // A time is converted with all checks.
    Duration::try_from_secs_f64(number.max(0.0)).map_or(u64::MAX, |time| time.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW: QuotaWindow = QuotaWindow { num: 11, size_seconds: 1 };

    /// Kafka's own example: 1000 bytes over 10 s may be sent at once; twice as many throttle for as
    /// long as the surplus takes.
    #[test]
    fn a_surplus_throttles_for_the_time_that_it_takes() {
        let mut rate = WindowedRate::default();
        rate.record(WINDOW, 1_000.0, 0);
        assert_eq!(rate.throttle_ms(WINDOW, 100.0, 0), 0.0);
        rate.record(WINDOW, 1_000.0, 500);
        // 2000 bytes in 10.5 s are 190.48 a second.
        assert_eq!(rate.throttle_ms(WINDOW, 100.0, 500), 9_500.0);
    }

    #[test]
    fn a_steady_rate_at_the_limit_is_not_throttled() {
        let mut rate = WindowedRate::default();
        for now_ms in (0..60_000).step_by(100) {
            rate.record(WINDOW, 10.0, now_ms);
            assert!(rate.throttle_ms(WINDOW, 100.0, now_ms) <= 100.0, "{now_ms}");
        }
        assert!(rate.samples.len() <= 12);
        assert!(!rate.is_over(WINDOW, 60_000));
        assert!(rate.is_over(WINDOW, 71_000));
    }

    #[test]
    fn windows_that_are_over_do_not_count() {
        let mut rate = WindowedRate::default();
        rate.record(WINDOW, 1e9, 0);
        assert!(rate.throttle_ms(WINDOW, 1.0, 10_999) > 0.0);
        assert_eq!(rate.throttle_ms(WINDOW, 1.0, 11_000), 0.0);
    }

    #[test]
    fn a_request_of_a_moment_before_counts_as_well() {
        let mut rate = WindowedRate::default();
        rate.record(WINDOW, 1_000.0, 1_000);
        rate.record(WINDOW, 1_000.0, 999);
        assert!(rate.throttle_ms(WINDOW, 100.0, 1_000) > 0.0);
        assert_eq!(rate.samples.len(), 1);
    }

    #[test]
    fn a_clock_that_is_set_back_forgets() {
        let mut rate = WindowedRate::default();
        rate.record(WINDOW, 1e9, 1_000_000);
        rate.record(WINDOW, 1.0, 0);
        assert_eq!(rate.throttle_ms(WINDOW, 1.0, 0), 0.0);
    }

    /// KIP-599: a full bucket takes a burst of any size, then waits until it has tokens again.
    #[test]
    fn an_overdrawn_bucket_waits_until_it_has_tokens() {
        let mut bucket = TokenBucket::default();
        assert!(bucket.is_over(WINDOW, 0));
        bucket.take(WINDOW, 2.0, 22.0, 0);
        assert_eq!(bucket.throttle_ms(WINDOW, 2.0, 0), 0.0);
        bucket.take(WINDOW, 2.0, 10.0, 0);
        assert_eq!(bucket.throttle_ms(WINDOW, 2.0, 0), 5_000.0);
        assert_eq!(bucket.throttle_ms(WINDOW, 2.0, 4_000), 1_000.0);
        assert_eq!(bucket.throttle_ms(WINDOW, 2.0, 5_000), 0.0);
        assert!(!bucket.is_over(WINDOW, 5_000));
    }
}
