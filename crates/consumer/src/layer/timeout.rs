//! Limits how long a handler may take.

use std::time::Duration;

use super::Layer;
use crate::context::Context;
use crate::failure::{Cause, Failure};
use crate::handler::{Handler, Work};

/// Drops a call of the inner handler that takes too long; the record failed then. A handler that
/// blocks its thread cannot be dropped.
#[derive(Clone, Copy, Debug)]
pub struct Timeout {
    after: Duration,
}

impl Timeout {
    /// A call may take this long.
    #[must_use]
    pub const fn after(after: Duration) -> Self {
        Self { after }
    }
}

impl<W: Work> Layer<W> for Timeout {
    async fn call<H: Handler<W>>(
        &self,
        inner: &H,
        work: W,
        context: Context<'_>,
    ) -> Result<(), Failure> {
        let deadline = context.now() + self.after;
        tokio::select! {
            biased;
            called = inner.call(work, context) => called,
            () = context.clock().sleep_until(deadline) => {
                Err(Cause::TimedOut(self.after).into())
            }
        }
    }
}
