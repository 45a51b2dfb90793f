//! Handles records some time after they were made.

use std::time::Duration;

use super::headers::made_at;
use super::{Layer, next_number};
use crate::context::Context;
use crate::failure::Failure;
use crate::handler::{Handler, Work};
use crate::scheduler::PostponedBy;

/// Handles a record no earlier than some time after its timestamp. What must follow it waits too;
/// no worker is occupied.
#[derive(Clone, Copy, Debug)]
pub struct Delay {
    by: Duration,
    number: u32,
}

impl Delay {
    /// Handles records no earlier than `by` after their timestamp.
    #[must_use]
    pub fn by(by: Duration) -> Self {
        Self { by, number: next_number() }
    }
}

impl<W: Work> Layer<W> for Delay {
    async fn call<H: Handler<W>>(
        &self,
        inner: &H,
        work: W,
        context: Context<'_>,
    ) -> Result<(), Failure> {
        let newest = work.messages().map(made_at).max().unwrap_or(-1);
        let due = u64::try_from(newest).map_or(Duration::ZERO, Duration::from_millis) + self.by;
        if due > context.now() {
            return Err(Failure::postponed(due, PostponedBy::Layer(self.number)));
        }
        inner.call(work, context).await
    }
}
