//! Lets failed records wait in topics of their own, so that they hold up nothing.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use super::headers::{self, Origin, retry_header};
use super::{Layer, next_number};
use crate::context::Context;
use crate::failure::{Failure, caught};
use crate::handler::{Handler, Work};
use crate::message::MessageRef;
use crate::outbox::To;
use crate::scheduler::PostponedBy;

/// Sends a failed record to a retry topic, where it waits for its next attempt while the records
/// after it go on. The app reads these topics by the same route. Each attempt takes the next delay;
/// a failure after the last of them, or one that no attempt can help, goes to the outer layers.
///
/// Headers of [`retry_header`] hold the record's origin, attempts and last failure, so that they
/// survive restarts; attempts and origin are those that [`DeadLetters`](super::DeadLetters) tells,
/// and [`Delay`](super::Delay) and [`Expire`](super::Expire) go by the origin's timestamp.
///
/// Records of one key keep no order: those behind a failed one are handled before it.
///
/// Clones are the same layer.
#[derive(Clone, Debug)]
pub struct RetryTopics {
    topics: Arc<[String]>,
    /// Of each attempt: the topic and the delay.
    steps: Arc<[(usize, Duration)]>,
    number: u32,
}

impl RetryTopics {
    /// Uses a topic for each delay that differs from the one before: `NAME-1`, `NAME-2` and so on.
    /// Records of a topic so become due in order. The topics must exist, and a route of another
    /// topic must not use them.
    pub fn to(name: &str, delays: impl IntoIterator<Item = Duration>) -> Self {
        let mut steps: Vec<(usize, Duration)> = Vec::new();
        for delay in delays {
            let topic = match steps.last() {
                None => 0,
                Some((topic, last)) => topic + usize::from(*last != delay),
            };
            steps.push((topic, delay));
        }
        let count = steps.last().map_or(0, |(topic, _)| topic + 1);
        let topics = (1..=count).map(|topic| format!("{name}-{topic}")).collect();
        Self { topics, steps: steps.into(), number: next_number() }
    }

    /// Names of the topics.
    #[must_use]
    pub fn names(&self) -> &[String] {
        &self.topics
    }

    fn is_retry(&self, message: MessageRef<'_>) -> bool {
        self.topics.iter().any(|topic| topic == message.topic())
    }

    /// The delays that a record was given.
    fn step(&self, message: MessageRef<'_>) -> usize {
        let step = || headers::number(message, retry_header::STEP);
        if self.is_retry(message) { step().unwrap_or(0) } else { 0 }
    }

    /// When the last of `work` is to be tried.
    fn due(&self, work: &impl Work) -> Duration {
        let due = |message: MessageRef<'_>| headers::number(message, retry_header::DUE);
        let due = work.messages().filter(|it| self.is_retry(*it)).filter_map(due).max();
        Duration::from_millis(due.unwrap_or(0))
    }

    async fn send(
        &self,
        message: MessageRef<'_>,
        step: usize,
        failure: &Failure,
        context: Context<'_>,
    ) -> Result<(), Failure> {
        let Some((topic, delay)) = self.steps.get(step) else { return Ok(()) };
        let Some(topic) = self.topics.get(*topic) else { return Ok(()) };
        let (origin, now) = (Origin::of(message), context.now());
        let first_failure =
            headers::number(message, retry_header::FIRST_FAILURE).filter(|_| step > 0);
        let partition = origin.partition;
        let added = [
            (retry_header::TOPIC, origin.topic),
            (retry_header::PARTITION, partition.to_string()),
            (retry_header::OFFSET, origin.offset.to_string()),
            (retry_header::TIMESTAMP, origin.timestamp.to_string()),
            (retry_header::ATTEMPTS, context.attempt().to_string()),
            (retry_header::STEP, (step + 1).to_string()),
            (retry_header::DUE, now.saturating_add(*delay).as_millis().to_string()),
            (retry_header::FIRST_FAILURE, first_failure.unwrap_or(now.as_millis()).to_string()),
            (retry_header::KIND, failure.kind().to_owned()),
            (retry_header::CAUSE, headers::cause(failure)),
        ];
        let to = To { topic, partition, keeps_partition: false };
        headers::send(message, to, message.value(), &added, context).await?;
        tracing::info!(record = ?message, topic, %failure, "failed; waits in a retry topic");
        Ok(())
    }
}

impl<W: Work> Layer<W> for RetryTopics {
    fn topics(&self) -> Vec<String> {
        self.topics.to_vec()
    }

    async fn call<H: Handler<W>>(
        &self,
        inner: &H,
        work: W,
        context: Context<'_>,
    ) -> Result<(), Failure> {
        let due = self.due(&work);
        if due > context.now() {
            return Err(Failure::postponed(due, PostponedBy::Layer(self.number)));
        }
        let call = pin!(async { inner.call(work.clone(), context).await });
        let failure = match caught(call).await {
            Err(failure) if failure.is_retriable() => failure,
            called => return called,
        };
        let mut left = Vec::new();
        for message in work.messages().filter(|message| failure.concerns(message.offset())) {
            let step = self.step(message);
            if step < self.steps.len() {
                self.send(message, step, &failure, context).await?;
            } else {
                left.push(message.offset());
            }
        }
        if left.is_empty() { Ok(()) } else { Err(failure.only(left)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_delays_in_a_row_share_a_topic() {
        let delays = [1, 10, 10, 60].map(Duration::from_secs);
        let layer = RetryTopics::to("orders.retry", delays);
        assert_eq!(layer.names(), ["orders.retry-1", "orders.retry-2", "orders.retry-3"]);
        let topics: Vec<_> = layer.steps.iter().map(|(topic, _)| *topic).collect();
        assert_eq!(topics, [0, 1, 1, 2]);
        assert!(RetryTopics::to("orders.retry", []).names().is_empty());
    }
}
