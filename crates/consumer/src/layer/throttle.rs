//! Limits how many records are handled in a time.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::{Layer, next_number};
use crate::context::Context;
use crate::failure::Failure;
use crate::handler::{Handler, Work};
use crate::scheduler::PostponedBy;

/// Lets through a number of records per second, over all partitions that this process handles. A
/// record above it waits for its time and occupies no worker. Clones share the limit.
///
/// An attempt of a record counts as a record.
#[derive(Clone, Debug)]
pub struct Throttle {
    /// Time that a record takes up.
    interval: Duration,
    number: u32,
    /// Nanoseconds since 1970-01-01 when the next record may pass.
    next: Arc<AtomicU64>,
}

impl Throttle {
    /// Lets through `records` per second, at least one. After a pause, up to a tenth of a second's
    /// records pass at once.
    #[must_use]
    pub fn per_second(records: u32) -> Self {
        let interval = Duration::from_secs(1) / records.max(1);
        Self { interval, number: next_number(), next: Arc::default() }
    }

    /// Takes up the time of `records`; returns when they may pass.
    fn reserve(&self, now: Duration, records: usize) -> Duration {
        let nanos = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let earliest = nanos(now.saturating_sub(BURST));
        let taken = self.interval.saturating_mul(u32::try_from(records).unwrap_or(u32::MAX));
        let after = |next: u64| next.max(earliest).saturating_add(nanos(taken));
        let reserved =
            self.next.fetch_update(Ordering::AcqRel, Ordering::Acquire, |next| Some(after(next)));
        let (Ok(next) | Err(next)) = reserved;
        Duration::from_nanos(next.max(earliest))
    }
}

impl<W: Work> Layer<W> for Throttle {
    async fn call<H: Handler<W>>(
        &self,
        inner: &H,
        work: W,
        context: Context<'_>,
    ) -> Result<(), Failure> {
        if !context.has_waited_for(self.number) {
            let now = context.now();
            let at = self.reserve(now, work.messages().count());
            if at > now {
                return Err(Failure::postponed(at, PostponedBy::Layer(self.number)));
            }
        }
        inner.call(work, context).await
    }
}

/// Unused time that is kept: about what the timers of a busy machine are late by, several times.
const BURST: Duration = Duration::from_millis(100);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_pass_at_the_rate_after_a_burst() {
        let throttle = Throttle::per_second(100);
        let now = Duration::from_secs(1000);
        let at: Vec<Duration> = (0..30).map(|_| throttle.reserve(now, 1)).collect();
        assert_eq!(at.iter().filter(|at| **at <= now).count(), 11);
        assert_eq!(at[29], now + Duration::from_millis(190));
        let later = now + Duration::from_secs(60);
        assert_eq!(throttle.reserve(later, 20), later - BURST);
        assert_eq!(throttle.reserve(later, 1), later + BURST);
    }
}
