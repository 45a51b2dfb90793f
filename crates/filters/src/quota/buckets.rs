//! Token buckets by name, shared by all sessions.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::error::Error;
use crate::topics::TopicPatterns;

/// Limits of one kind for entities of one kind, and what has been used of them.
#[derive(Debug)]
pub(super) struct Table {
    /// The first that matches a name counts.
    named: Vec<(TopicPatterns, u64)>,
    /// For each name that no limit is for.
    default: Option<u64>,
    burst: Duration,
    /// Guards what has been used; never held across a wait.
    used: Mutex<Used>,
}

#[derive(Debug, Default)]
struct Used {
    buckets: HashMap<Box<str>, Bucket>,
    /// Shared by names that have no bucket since there are too many.
    overflow: Option<Bucket>,
    swept: Option<Instant>,
}

/// As Kafka's: it may go below zero, and is waited for then until it is at zero.
#[derive(Clone, Copy, Debug)]
struct Bucket {
    tokens: f64,
    at: Instant,
    rate: Rate,
}

impl Table {
    pub(super) fn new(burst: Duration) -> Self {
        Self { named: Vec::new(), default: None, burst, used: Mutex::default() }
    }

    /// Adds a limit per second, for each name by itself if there is no pattern.
    pub(super) fn limit(&mut self, pattern: Option<&str>, per_second: u64) -> Result<(), Error> {
        if per_second == 0 {
            return Err(Error::setting(super::NAME, "a limit is 1 per second at least"));
        }
        match pattern {
            Some(pattern) => {
                let pattern = TopicPatterns::parse(super::NAME, &[pattern.to_owned()])?;
                self.named.push((pattern, per_second));
            }
            None => self.default = Some(per_second),
        }
        Ok(())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.named.is_empty() && self.default.is_none()
    }

    /// Takes tokens for `name`, and says how long it has to wait before it goes on.
    pub(super) fn take(&self, name: &str, amount: usize, now: Instant) -> Duration {
        let named = self.named.iter().find(|(pattern, _)| pattern.matches(name));
        let Some(rate) = named.map(|(_, rate)| *rate).or(self.default) else {
            return Duration::ZERO;
        };
        let rate = Rate { per_second: rate as f64, burst: self.burst };
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        used.bucket(name, rate, now).take(amount, now)
    }
}

impl Used {
    fn bucket(&mut self, name: &str, rate: Rate, now: Instant) -> &mut Bucket {
        let full = Bucket { tokens: rate.tokens_max(), at: now, rate };
        if !self.buckets.contains_key(name) {
            let is_long = name.len() > NAME_BYTES_MAX;
            if !is_long && self.buckets.len() >= BUCKETS_MAX {
                self.sweep(now);
            }
            if is_long || self.buckets.len() >= BUCKETS_MAX {
                let overflow = self.overflow.get_or_insert(full);
                overflow.rate = rate;
                return overflow;
            }
        }
        // The name is copied once, for its first request.
        match self.buckets.contains_key(name) {
            true => self.buckets.get_mut(name).expect("it was found"),
            false => self.buckets.entry(name.into()).or_insert(full),
        }
    }

    /// Forgets buckets that are full again, which makes no difference to their owners. So only who
    /// keeps on using names can fill the table, and not who once named many.
    fn sweep(&mut self, now: Instant) {
        let is_due = self.swept.is_none_or(|swept| now.duration_since(swept) >= SWEEP_INTERVAL);
        if is_due {
            self.swept = Some(now);
            self.buckets.retain(|_, bucket| bucket.filled(now) < bucket.rate.tokens_max());
        }
    }
}

/// How a bucket fills.
#[derive(Clone, Copy, Debug)]
struct Rate {
    per_second: f64,
    burst: Duration,
}

impl Rate {
    fn tokens_max(self) -> f64 {
        (self.per_second * self.burst.as_secs_f64()).max(1.0)
    }
}

impl Bucket {
    fn take(&mut self, amount: usize, now: Instant) -> Duration {
        self.tokens = self.filled(now) - amount as f64;
        self.at = now;
        let owed = (-self.tokens / self.rate.per_second).max(0.0);
        Duration::try_from_secs_f64(owed).unwrap_or(Duration::MAX)
    }

    /// The tokens that there are by now.
    fn filled(&self, now: Instant) -> f64 {
        let elapsed = now.duration_since(self.at).as_secs_f64();
        (self.tokens + elapsed * self.rate.per_second).min(self.rate.tokens_max())
    }
}

/// Names of one kind that have a bucket of their own, at some hundred bytes each. Client ids are
/// what clients say they are.
const BUCKETS_MAX: usize = 10_000;

/// Longer names share a bucket: they may have 32 KiB.
const NAME_BYTES_MAX: usize = 512;

/// Too many names must not make each request look at all of them.
const SWEEP_INTERVAL: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    fn table(limits: &[(Option<&str>, u64)]) -> Table {
        let mut table = Table::new(Duration::from_secs(2));
        limits.iter().for_each(|(pattern, rate)| table.limit(*pattern, *rate).unwrap());
        table
    }

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn a_burst_is_free_and_what_goes_beyond_it_waits_as_long_as_it_takes_to_fill() {
        let table = table(&[(None, 100)]);
        let start = Instant::now();
        assert_eq!(table.take("a", 200, start), Duration::ZERO);
        assert_eq!(table.take("a", 50, start), ms(500));
        assert_eq!(table.take("a", 50, start), ms(1000));
        assert_eq!(table.take("a", 0, start + ms(1000)), Duration::ZERO);
        assert_eq!(table.take("a", 100, start + ms(2000)), Duration::ZERO);
        assert_eq!(table.take("a", 1, start + ms(2000)), ms(10));
        // It does not fill beyond its burst.
        let later = start + Duration::from_secs(1000);
        assert_eq!(table.take("a", 300, later), ms(1000));
    }

    #[test]
    fn over_time_the_rate_holds_for_any_amounts() {
        let table = table(&[(None, 1000)]);
        let mut random = fastrand::Rng::with_seed(7);
        let start = Instant::now();
        let (mut now, mut taken) = (start, 0);
        while now < start + Duration::from_secs(600) {
            let amount = random.usize(1..5000);
            taken += amount;
            now += table.take("a", amount, now) + ms(random.u64(..10));
        }
        let seconds = (now - start).as_secs_f64();
        assert!(taken as f64 <= 1000.0 * (seconds + 2.0), "{taken} in {seconds}");
        assert!(taken as f64 >= 990.0 * seconds, "{taken} in {seconds}");
    }

    #[test]
    fn each_name_has_its_own_bucket_and_the_limit_that_fits_it() {
        let table = table(&[(Some("big"), 1000), (Some("eu-*"), 10), (None, 100)]);
        let now = Instant::now();
        for (name, free) in [("big", 2000), ("eu-1", 20), ("eu-2", 20), ("other", 200)] {
            assert_eq!(table.take(name, free, now), Duration::ZERO, "{name}");
            assert!(table.take(name, 1, now) > Duration::ZERO, "{name}");
        }
        let named_only = Table { default: None, ..table };
        assert_eq!(named_only.take("other", usize::MAX, now), Duration::ZERO);
    }

    #[test]
    fn names_without_end_share_a_bucket_and_idle_ones_are_forgotten() {
        let table = table(&[(None, 1)]);
        let now = Instant::now();
        for name in 0..BUCKETS_MAX {
            assert_eq!(table.take(&name.to_string(), 1, now), Duration::ZERO);
        }
        assert_eq!(table.take("x", 2, now), Duration::ZERO);
        assert!(table.take("y", 2, now) > Duration::ZERO);
        let later = now + SWEEP_INTERVAL;
        assert_eq!(table.take("z", 2, later), Duration::ZERO);
        let used = table.used.lock().unwrap();
        assert_eq!(used.buckets.len(), 1);
    }

    #[test]
    fn long_names_are_not_kept() {
        let table = table(&[(None, 1)]);
        let now = Instant::now();
        assert_eq!(table.take(&"x".repeat(NAME_BYTES_MAX), 2, now), Duration::ZERO);
        assert_eq!(table.take(&"y".repeat(NAME_BYTES_MAX + 1), 2, now), Duration::ZERO);
        assert!(table.take(&"z".repeat(NAME_BYTES_MAX + 1), 2, now) > Duration::ZERO);
        assert_eq!(table.used.lock().unwrap().buckets.len(), 1);
    }

    #[test]
    fn a_bucket_that_owes_is_not_forgotten() {
        let table = table(&[(None, 1)]);
        let now = Instant::now();
        table.take("owes", 100, now);
        for name in 1..BUCKETS_MAX {
            table.take(&name.to_string(), 1, now);
        }
        assert_eq!(table.take("x", 1, now + SWEEP_INTERVAL), Duration::ZERO);
        let used = table.used.lock().unwrap();
        assert_eq!(used.buckets.len(), 2);
        assert!(used.buckets.contains_key("owes"));
    }

    #[test]
    fn no_limit_is_zero() {
        assert!(Table::new(ms(1)).limit(None, 0).is_err());
    }
}
