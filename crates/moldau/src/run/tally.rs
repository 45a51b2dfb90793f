//! Counts for the summary.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use moldau_consumer::{Context, Failure, Handler, Layer, MessageRef, Work};

/// Counts what comes of records: a layer between retries and dead letters. Clones share the counts.
#[derive(Clone, Debug)]
pub(crate) struct Tally {
    counts: Arc<Counts>,
    /// Whether a failure that no layer within settled is the end of its record.
    is_end: fn(&Failure) -> bool,
}

#[derive(Debug, Default)]
struct Counts {
    handled: AtomicU64,
    postponed: AtomicU64,
    failed: AtomicU64,
}

impl Tally {
    /// For a route of a share group or not, with dead letters or not: without them a record that
    /// a share group does not reject is tried again.
    pub(crate) fn new(is_shared: bool, has_dead_letters: bool) -> Self {
        let is_end: fn(&Failure) -> bool = match (has_dead_letters, is_shared) {
            (true, _) => |_| true,
            (false, true) => |failure| failure.is_given_up() || !failure.is_retriable(),
            (false, false) => |_| false,
        };
        Self { counts: Arc::default(), is_end }
    }

    /// Records that were handled.
    pub(crate) fn handled(&self) -> u64 {
        self.counts.handled.load(Ordering::Relaxed)
    }

    /// Attempts of records that failed and are followed by another one.
    pub(crate) fn postponed(&self) -> u64 {
        self.counts.postponed.load(Ordering::Relaxed)
    }

    /// Records that no further attempt was to follow.
    pub(crate) fn failed(&self) -> u64 {
        self.counts.failed.load(Ordering::Relaxed)
    }
}

impl<W: Work> Layer<W> for Tally {
    async fn call<H: Handler<W>>(
        &self,
        inner: &H,
        work: W,
        context: Context<'_>,
    ) -> Result<(), Failure> {
        let called = inner.call(work.clone(), context).await;
        let count = |is_counted: &dyn Fn(MessageRef<'_>) -> bool| {
            let counted = work.messages().filter(|message| is_counted(*message)).count();
            u64::try_from(counted).unwrap_or(u64::MAX)
        };
        let Counts { handled, postponed, failed } = &*self.counts;
        match &called {
            Ok(()) => handled.fetch_add(count(&|_| true), Ordering::Relaxed),
            Err(failure) if failure.is_postponed() => {
                postponed.fetch_add(count(&|_| true), Ordering::Relaxed)
            }
            Err(failure) => {
                let concerns = |message: MessageRef<'_>| failure.concerns(message.offset());
                handled.fetch_add(count(&|it| !concerns(it)), Ordering::Relaxed);
                let counter = if (self.is_end)(failure) { failed } else { postponed };
                counter.fetch_add(count(&concerns), Ordering::Relaxed)
            }
        };
        called
    }
}
