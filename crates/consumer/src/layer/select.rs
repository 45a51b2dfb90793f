//! Leaves out records; what is left out counts as handled.

use std::time::Duration;

use super::Layer;
use super::headers::made_at;
use crate::context::Context;
use crate::failure::Failure;
use crate::handler::{Handler, Work};
use crate::message::{Message, MessageRef};

/// Handles only records of which a predicate says so. They are not decoded before.
#[derive(Clone, Copy, Debug)]
pub struct Filter<P>(P);

impl<P: Fn(&Message) -> bool + Send + Sync + 'static> Filter<P> {
    /// Keeps records for which `is_kept` is true.
    pub const fn new(is_kept: P) -> Self {
        Self(is_kept)
    }
}

impl<W: Work, P: Fn(&Message) -> bool + Send + Sync + 'static> Layer<W> for Filter<P> {
    async fn call<H: Handler<W>>(
        &self,
        inner: &H,
        work: W,
        context: Context<'_>,
    ) -> Result<(), Failure> {
        call_with(inner, work.retain(&self.0), context).await
    }
}

/// Leaves out records whose timestamp is older than a time. In a retry topic it is that of their
/// origin. Records without a timestamp are kept.
#[derive(Clone, Copy, Debug)]
pub struct Expire {
    after: Duration,
}

impl Expire {
    /// Leaves out records older than `after`.
    #[must_use]
    pub const fn after(after: Duration) -> Self {
        Self { after }
    }
}

impl<W: Work> Layer<W> for Expire {
    async fn call<H: Handler<W>>(
        &self,
        inner: &H,
        work: W,
        context: Context<'_>,
    ) -> Result<(), Failure> {
        let now = context.now();
        let is_fresh = |message: &Message| {
            let timestamp = u64::try_from(made_at(message.view())).ok().map(Duration::from_millis);
            timestamp.is_none_or(|timestamp| timestamp + self.after >= now)
        };
        call_with(inner, work.retain(is_fresh), context).await
    }
}

/// Handles what is left, if anything is. Its failure does not concern what was left out.
pub(super) async fn call_with<W: Work, H: Handler<W>>(
    inner: &H,
    left: Option<W>,
    context: Context<'_>,
) -> Result<(), Failure> {
    let Some(left) = left else { return Ok(()) };
    let called = inner.call(left.clone(), context).await;
    called.map_err(|failure| failure.concerning(left.messages().map(MessageRef::offset)))
}
