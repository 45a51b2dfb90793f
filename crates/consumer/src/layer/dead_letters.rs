//! Puts records that cannot be handled into a topic of their own.

use moldau_client::Record;
use moldau_records::HeaderView;

use super::Layer;
use crate::context::Context;
use crate::failure::{Cause, Failure};
use crate::handler::{Handler, Work};
use crate::message::MessageRef;

/// Sends records whose handling failed to another topic, with key, value and headers as they are
/// and the headers of [`header`]. They then count as handled, so they never block their partition.
/// A record that the other topic does not take stays where it is and is tried again.
///
/// It takes every failure that reaches it: a [`Retry`](super::Retry) belongs inside of it.
#[derive(Clone, Debug)]
pub struct DeadLetters {
    topic: String,
}

impl DeadLetters {
    /// Sends records to `topic`, which must exist: to the partition of their key, or to that with
    /// their partition's number modulo the number of partitions.
    pub fn to(topic: impl Into<String>) -> Self {
        Self { topic: topic.into() }
    }

    async fn send(
        &self,
        message: MessageRef<'_>,
        failure: &Failure,
        context: Context<'_>,
    ) -> Result<(), Failure> {
        let cause = failure.to_string();
        let origin = [
            (header::TOPIC, message.topic().to_owned()),
            (header::PARTITION, message.partition().to_string()),
            (header::OFFSET, message.offset().to_string()),
            (header::TIMESTAMP, message.timestamp().to_string()),
            (header::ATTEMPTS, context.attempt().to_string()),
            (header::KIND, failure.kind().to_owned()),
            (header::CAUSE, cause.chars().take(CAUSE_CHARS_MAX).collect()),
        ];
        let added = origin
            .iter()
            .map(|(key, value)| HeaderView { key: key.as_bytes(), value: Some(value.as_bytes()) });
        let headers: Vec<HeaderView<'_>> = message.headers().chain(added).collect();
        let record = Record {
            token: 0,
            timestamp: i64::try_from(context.now().as_millis()).unwrap_or(i64::MAX),
            key: message.key(),
            value: message.value(),
            headers: &headers,
        };
        let sent = context.outbox().send(&self.topic, message.partition(), record).await;
        sent.map_err(|error| Cause::Failed(error.into()).into())
    }
}

impl<W: Work> Layer<W> for DeadLetters {
    async fn call<H: Handler<W>>(
        &self,
        inner: &H,
        work: W,
        context: Context<'_>,
    ) -> Result<(), Failure> {
        let failure = match inner.call(work.clone(), context).await {
            Err(failure) if !failure.is_postponed() => failure,
            called => return called,
        };
        if let Some(first) = work.messages().next() {
            context.count_failure(first, &failure);
        }
        for message in work.messages().filter(|message| failure.concerns(message.offset())) {
            self.send(message, &failure, context).await?;
            context.count_dead_letter(message);
            tracing::warn!(record = ?message, topic = self.topic, %failure, "dead letter");
        }
        Ok(())
    }

    fn dead_letter_topic(&self) -> Option<&str> {
        Some(&self.topic)
    }
}

/// Headers of dead letters; their values are text.
pub mod header {
    /// Topic that the record was read from.
    pub const TOPIC: &str = "dead-letter-topic";
    /// Its partition.
    pub const PARTITION: &str = "dead-letter-partition";
    /// Its offset.
    pub const OFFSET: &str = "dead-letter-offset";
    /// Its timestamp in ms since 1970.
    pub const TIMESTAMP: &str = "dead-letter-timestamp";
    /// How often its handling was tried.
    pub const ATTEMPTS: &str = "dead-letter-attempts";
    /// The kind of the failure: [`Failure::kind`](crate::Failure::kind).
    pub const KIND: &str = "dead-letter-kind";
    /// The failure in words.
    pub const CAUSE: &str = "dead-letter-cause";
}

/// Longest cause in a header: some lines of text, so that the record still fits its batch.
const CAUSE_CHARS_MAX: usize = 1024;
