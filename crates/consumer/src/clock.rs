//! The time that retries, delays, throttles and expiry go by.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use tokio::sync::watch;

/// A source of time, as the duration since 1970-01-01. Clones share it.
#[derive(Clone, Debug)]
pub struct Clock {
    kind: Arc<Kind>,
}

#[derive(Debug)]
enum Kind {
    /// The system's time at the start, and what has passed since: it never goes back.
    System {
        at_start: Duration,
        start: Instant,
    },
    Manual(watch::Sender<Duration>),
}

impl Clock {
    /// The system's clock.
    #[must_use]
    pub fn system() -> Self {
        let at_start = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let at_start = at_start.unwrap_or_default();
        Self { kind: Arc::new(Kind::System { at_start, start: Instant::now() }) }
    }

    /// A clock that begins with the system's time and stands still but for
    /// [`advance`](Self::advance). For tests.
    #[must_use]
    pub fn manual() -> Self {
        let now = Self::system().now();
        Self { kind: Arc::new(Kind::Manual(watch::Sender::new(now))) }
    }

    /// Moves a manual clock, and wakes what waits for the time that passes. The system's clock is
    /// not changed.
    pub fn advance(&self, by: Duration) {
        if let Kind::Manual(now) = &*self.kind {
            now.send_modify(|now| *now = now.saturating_add(by));
        }
    }

    /// Time since 1970-01-01.
    #[must_use]
    pub fn now(&self) -> Duration {
        match &*self.kind {
            Kind::System { at_start, start } => *at_start + start.elapsed(),
            Kind::Manual(now) => *now.borrow(),
        }
    }

    /// Waits until it is `at`.
    pub async fn sleep_until(&self, at: Duration) {
        match &*self.kind {
            Kind::System { .. } => tokio::time::sleep(at.saturating_sub(self.now())).await,
            Kind::Manual(now) => {
                // The sender lives as long as this clock.
                drop(now.subscribe().wait_for(|now| *now >= at).await);
            }
        }
    }
}

impl Default for Clock {
    fn default() -> Self {
        Self::system()
    }
}
