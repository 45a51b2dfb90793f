//! Layers: handlers around handlers.
//!
//! A layer sees each record before its inner handler and what came of it, and may leave it out,
//! let it wait, or settle its failure. [`Route::layer`](crate::Route::layer) puts a layer around
//! all that stands before it, so the last one is the outermost. Layers may stand in any order:
//! none of them commits anything, the offset ledger decides by what the outermost returns.
//!
//! A layer that lets a record wait returns [`Cause::Postponed`](crate::Cause::Postponed). The
//! record occupies no worker then, and the outer layers pass the failure on.

mod dead_letters;
#[cfg(feature = "encryption")]
mod decrypt;
mod delay;
mod headers;
mod metrics;
mod pipe;
mod retry;
mod retry_topics;
mod select;
mod throttle;
mod timeout;
mod trace;
mod unique;

use std::sync::atomic::{AtomicU32, Ordering};

use crate::context::{Context, StateType};
use crate::failure::Failure;
use crate::handler::{Handler, Work};

pub use dead_letters::{DeadLetters, Replay};
#[cfg(feature = "encryption")]
pub use decrypt::Decrypt;
pub use delay::Delay;
pub(crate) use headers::{Origin, attempts_before};
pub use headers::{header, pipe_header, retry_header};
pub use metrics::{Measured, Metrics};
pub use pipe::Pipe;
pub(crate) use retry::UNSETTLED;
pub use retry::{Backoff, Retry};
pub use retry_topics::RetryTopics;
pub use select::{Expire, Filter};
pub use throttle::Throttle;
pub use timeout::Timeout;
pub use trace::Trace;
pub use unique::{DoneIds, Unique, Window};

/// Wraps a handler.
pub trait Layer<W: Work>: Send + Sync + 'static {
    /// Handles `work` with `inner`, which may be called once or not at all.
    fn call<H: Handler<W>>(
        &self,
        inner: &H,
        work: W,
        context: Context<'_>,
    ) -> impl Future<Output = Result<(), Failure>> + Send;

    /// The topic to which it sends records that cannot be handled, for the admin port and the
    /// AsyncAPI document.
    fn dead_letter_topic(&self) -> Option<&str> {
        None
    }

    /// Topics that the app reads by the same route, beside its own.
    fn topics(&self) -> Vec<String> {
        Vec::new()
    }
}

/// A layer that a route may lack.
impl<W: Work, L: Layer<W>> Layer<W> for Option<L> {
    async fn call<H: Handler<W>>(
        &self,
        inner: &H,
        work: W,
        context: Context<'_>,
    ) -> Result<(), Failure> {
        match self {
            Some(layer) => layer.call(inner, work, context).await,
            None => inner.call(work, context).await,
        }
    }

    fn dead_letter_topic(&self) -> Option<&str> {
        self.as_ref().and_then(L::dead_letter_topic)
    }

    fn topics(&self) -> Vec<String> {
        self.as_ref().map(L::topics).unwrap_or_default()
    }
}

/// A handler with a layer around it.
#[derive(Debug)]
pub struct Layered<L, H> {
    layer: L,
    inner: H,
}

impl<L, H> Layered<L, H> {
    pub(crate) fn new(layer: L, inner: H) -> Self {
        Self { layer, inner }
    }
}

impl<W: Work, L: Layer<W>, H: Handler<W>> Handler<W> for Layered<L, H> {
    fn call(
        &self,
        work: W,
        context: Context<'_>,
    ) -> impl Future<Output = Result<(), Failure>> + Send {
        self.layer.call(&self.inner, work, context)
    }

    fn topics(&self) -> Vec<String> {
        let mut topics = self.inner.topics();
        topics.extend(self.layer.topics());
        topics
    }

    fn states(&self) -> Vec<StateType> {
        self.inner.states()
    }
}

/// A number that tells a layer apart from all others of the process.
fn next_number() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}
