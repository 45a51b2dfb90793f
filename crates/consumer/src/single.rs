//! The handling of one record of a share group.

use std::panic::AssertUnwindSafe;
use std::pin::{Pin, pin};
use std::time::Duration;

use futures_util::FutureExt;

use crate::context::{Context, Services};
use crate::failure::{Cause, Postponed, panic_message};
use crate::figures::RouteFigures;
use crate::handler::Handler;
use crate::layer::UNSETTLED;
use crate::message::Message;
use crate::scheduler::{Attempt, PostponedBy};

/// A record that is being handled.
pub(crate) type Single = Pin<Box<dyn Future<Output = Verdict> + Send>>;

/// What is to become of a record.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Verdict {
    /// It is done.
    Accept,
    /// It failed, and any member may try it again at this time.
    Release(Duration),
    /// It failed for good.
    Reject,
    /// A layer lets it wait until this time; nothing was tried.
    Wait(Duration, PostponedBy),
}

/// Handles a record by a route's handler with all its layers.
pub(crate) async fn handle<H: Handler<Message>>(
    handler: &H,
    figures: &RouteFigures,
    message: Message,
    attempt: Attempt,
    services: &Services,
) -> Verdict {
    let context = Context::new(attempt, services).returning(message.partition(), None);
    let run = async {
        let call = pin!(handler.call(message.clone(), context));
        figures.measure(figures.sample(1) == 0, 1, call).await
    };
    let called = AssertUnwindSafe(run).catch_unwind().await;
    let called = called.unwrap_or_else(|panic| Err(Cause::Panicked(panic_message(&*panic)).into()));
    let Err(failure) = called else { return Verdict::Accept };
    if let Cause::Postponed(Postponed { at, by }) = failure.cause() {
        return match by {
            PostponedBy::Failure => Verdict::Release(*at),
            PostponedBy::Layer(_) => Verdict::Wait(*at, *by),
        };
    }
    context.count_failure(message.view(), &failure);
    let attempt = context.attempt();
    if failure.is_given_up() || !failure.is_retriable() {
        tracing::warn!(record = ?message, attempt, %failure, "failed; rejected");
        return Verdict::Reject;
    }
    tracing::warn!(record = ?message, attempt, %failure, "failed; released");
    Verdict::Release(UNSETTLED.next_after(&failure, context))
}
