//! Tries again after a failure.

use std::pin::pin;
use std::time::Duration;

use super::Layer;
use crate::context::Context;
use crate::failure::{Failure, caught};
use crate::handler::{Handler, Work};
use crate::message::MessageRef;
use crate::scheduler::PostponedBy;

/// Pauses between attempts: each twice as long as the one before, up to a limit, less a random
/// part of up to a fifth, so that records that failed together do not come back together.
#[derive(Clone, Copy, Debug)]
pub struct Backoff {
    first: Duration,
    max: Duration,
}

impl Backoff {
    /// Pauses from `first` up to `max`.
    #[must_use]
    pub const fn new(first: Duration, max: Duration) -> Self {
        Self { first, max }
    }

    /// The pause after attempt number `attempt`, with `jitter` from 0 to 1.
    fn pause(&self, attempt: u32, jitter: f64) -> Duration {
        let doubled = 2_u32.checked_pow(attempt.saturating_sub(1)).unwrap_or(u32::MAX);
        let pause = self.first.saturating_mul(doubled).min(self.max);
        pause.mul_f64(1.0 - JITTER * jitter.clamp(0.0, 1.0))
    }

    /// When the attempt after the current one is due.
    pub(crate) fn next_at(&self, context: Context<'_>) -> Duration {
        context.now() + self.pause(context.attempt(), fastrand::f64())
    }

    /// The same after `failure`, which may ask for another pause.
    pub(crate) fn next_after(&self, failure: &Failure, context: Context<'_>) -> Duration {
        let asked = failure.pause().map(|pause| context.now().saturating_add(pause));
        asked.unwrap_or_else(|| self.next_at(context))
    }
}

/// Tries a failed record again, after growing pauses. Meanwhile only what must follow the record
/// waits, and no worker is occupied. A failure that further attempts cannot help, or that comes
/// after the last attempt, goes to the outer layers.
///
/// All layers of a route count the same attempts.
#[derive(Clone, Copy, Debug)]
pub struct Retry {
    attempts_max: u32,
    backoff: Backoff,
}

impl Retry {
    /// At most `attempts_max` attempts in all, with pauses from `first` on, each twice as long as
    /// the one before.
    #[must_use]
    pub const fn exponential(attempts_max: u32, first: Duration) -> Self {
        Self { attempts_max, backoff: Backoff::new(first, PAUSE_MAX) }
    }

    /// Limits the pauses.
    #[must_use]
    pub const fn pause_max(mut self, max: Duration) -> Self {
        self.backoff.max = max;
        self
    }
}

impl<W: Work> Layer<W> for Retry {
    async fn call<H: Handler<W>>(
        &self,
        inner: &H,
        work: W,
        context: Context<'_>,
    ) -> Result<(), Failure> {
        let first = work.messages().next().map(MessageRef::to_message);
        let call = pin!(async { inner.call(work, context).await });
        match caught(call).await {
            Err(failure) if failure.is_retriable() && context.attempt() < self.attempts_max => {
                tracing::debug!(attempt = context.attempt(), %failure, "a record is tried again");
                if let Some(first) = first {
                    context.count_failure(first.view(), &failure);
                }
                let at = self.backoff.next_after(&failure, context);
                Err(Failure::postponed(at, PostponedBy::Failure))
            }
            Err(failure) if failure.is_retriable() => Err(failure.given_up()),
            called => called,
        }
    }
}

/// Longest pause unless a route says otherwise: Kafka's session timeout is of the same order.
const PAUSE_MAX: Duration = Duration::from_secs(30);

/// Largest part by which a pause is shortened.
const JITTER: f64 = 0.2;

/// Pauses before a record that no layer settled is tried again.
pub(crate) const UNSETTLED: Backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(30));

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_limit() {
        let backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(30));
        let pauses = [1, 2, 3, 5, 6, 100].map(|attempt| backoff.pause(attempt, 0.0).as_secs());
        assert_eq!(pauses, [1, 2, 4, 16, 30, 30]);
        assert_eq!(backoff.pause(1, 1.0), Duration::from_millis(800));
    }
}
