//! Counts what a handler does.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::Layer;
use crate::context::Context;
use crate::failure::Failure;
use crate::handler::{Handler, Work};

/// Counts the calls of the inner handler. Clones share the counters, so one is kept for reading.
#[derive(Clone, Debug, Default)]
pub struct Metrics {
    counters: Arc<Counters>,
}

#[derive(Debug, Default)]
struct Counters {
    handled: AtomicU64,
    failed: AtomicU64,
    postponed: AtomicU64,
    busy_nanos: AtomicU64,
}

/// Counts so far.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Measured {
    /// Records that were handled.
    pub handled: u64,
    /// Records whose handling failed; each attempt counts.
    pub failed: u64,
    /// Records that were to wait.
    pub postponed: u64,
    /// Sum of the time that calls took.
    pub busy: Duration,
}

impl Metrics {
    /// The counts so far.
    #[must_use]
    pub fn read(&self) -> Measured {
        let Counters { handled, failed, postponed, busy_nanos } = &*self.counters;
        Measured {
            handled: handled.load(Ordering::Relaxed),
            failed: failed.load(Ordering::Relaxed),
            postponed: postponed.load(Ordering::Relaxed),
            busy: Duration::from_nanos(busy_nanos.load(Ordering::Relaxed)),
        }
    }
}

impl<W: Work> Layer<W> for Metrics {
    async fn call<H: Handler<W>>(
        &self,
        inner: &H,
        work: W,
        context: Context<'_>,
    ) -> Result<(), Failure> {
        let records = u64::try_from(work.messages().count()).unwrap_or(u64::MAX);
        let start = Instant::now();
        let called = inner.call(work, context).await;
        let nanos = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let counter = match &called {
            Ok(()) => &self.counters.handled,
            Err(failure) if failure.is_postponed() => &self.counters.postponed,
            Err(_) => &self.counters.failed,
        };
        counter.fetch_add(records, Ordering::Relaxed);
        self.counters.busy_nanos.fetch_add(nanos, Ordering::Relaxed);
        called
    }
}
