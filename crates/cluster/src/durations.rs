//! How long requests took, counted in buckets.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Upper bounds of the buckets in microseconds; the last bucket has none. A PUT to a store in the
/// cloud takes 10 to 100 ms, a commit some ms, and a request is given up after some seconds.
const BOUNDS_MICROS: [u64; 14] = [
    1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000, 2_500_000,
    5_000_000, 10_000_000, 30_000_000,
];

/// A histogram of durations. Counting takes two atomic additions.
#[derive(Debug, Default)]
pub struct Durations {
    buckets: [AtomicU64; BOUNDS_MICROS.len() + 1],
    sum_micros: AtomicU64,
}

/// A histogram as it is read.
#[derive(Debug, Clone, PartialEq)]
pub struct DurationsRead {
    /// Upper bounds in seconds, each with the number of durations between it and the bound before.
    pub buckets: Vec<(f64, u64)>,
    /// Sum in seconds.
    pub sum_seconds: f64,
    /// Number of durations.
    pub count: u64,
}

impl Durations {
    /// Counts a duration.
    pub fn add(&self, duration: Duration) {
        let micros = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
        let bucket = BOUNDS_MICROS.partition_point(|bound| *bound < micros);
        if let Some(bucket) = self.buckets.get(bucket) {
            bucket.fetch_add(1, Ordering::Relaxed);
        }
        self.sum_micros.fetch_add(micros, Ordering::Relaxed);
    }

    /// What was counted.
    #[must_use]
    pub fn read(&self) -> DurationsRead {
        let counts = self.buckets.each_ref().map(|bucket| bucket.load(Ordering::Relaxed));
        let bounds = BOUNDS_MICROS.iter().map(|micros| seconds(*micros)).chain([f64::INFINITY]);
        DurationsRead {
            count: counts.iter().sum(),
            buckets: bounds.zip(counts).collect(),
            sum_seconds: seconds(self.sum_micros.load(Ordering::Relaxed)),
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "a sum of 285 years is as exact as it is shown")]
fn seconds(micros: u64) -> f64 {
    micros as f64 / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_is_counted_in_the_bucket_whose_bound_it_does_not_exceed() {
        let durations = Durations::default();
        for micros in [0, 1_000, 1_001, 60_000_000] {
            durations.add(Duration::from_micros(micros));
        }
        let read = durations.read();
        assert_eq!(read.buckets[..2], [(0.001, 2), (0.0025, 1)]);
        assert_eq!(read.buckets.last(), Some(&(f64::INFINITY, 1)));
        assert_eq!((read.count, read.sum_seconds), (4, 60.002_001));
    }
}
