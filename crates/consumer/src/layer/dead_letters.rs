//! Puts records that cannot be handled into a topic of their own.

use std::fmt;
use std::pin::pin;
use std::sync::Arc;

use super::Layer;
use super::headers::{self, Origin, header};
use crate::context::Context;
use crate::failure::{Failure, caught};
use crate::handler::{Handler, Work};
use crate::message::{Message, MessageRef};
use crate::outbox::To;

/// Sends records whose handling failed to another topic, with key, value and headers as they are
/// and the headers of [`header`]. They then count as handled, so they never block their partition.
/// A record that the other topic does not take stays where it is and is tried again.
///
/// It takes every failure that reaches it: a [`Retry`](super::Retry) belongs inside of it.
#[derive(Clone)]
pub struct DeadLetters {
    topic: Topic,
    attempts: u32,
    keeps_partition: bool,
}

#[derive(Clone)]
enum Topic {
    Fixed(Arc<str>),
    Chosen(Arc<Choose>),
}

type Choose = dyn Fn(MessageRef<'_>, &Failure) -> String + Send + Sync;

impl DeadLetters {
    /// Sends records to `topic`, which must exist: to the partition of their key, or to that with
    /// their partition's number modulo the number of partitions.
    pub fn to(topic: impl Into<String>) -> Self {
        Self::with(Topic::Fixed(topic.into().into()))
    }

    /// Sends each record to the topic that `choose` names, by the record and its failure.
    pub fn by(choose: impl Fn(MessageRef<'_>, &Failure) -> String + Send + Sync + 'static) -> Self {
        Self::with(Topic::Chosen(Arc::new(choose)))
    }

    const fn with(topic: Topic) -> Self {
        Self { topic, attempts: 1, keeps_partition: false }
    }

    /// Takes a record after this many attempts in all. Before, its failure goes to the outer
    /// layers; if they do not settle it, the record is tried again after 1 to 30 seconds. Failures
    /// that no attempt can help are taken at once.
    #[must_use]
    pub fn after(mut self, attempts: u32) -> Self {
        self.attempts = attempts;
        self
    }

    /// Sends records to the partition with the number of their own, modulo the number of
    /// partitions, whatever their key.
    #[must_use]
    pub fn keep_partition(mut self) -> Self {
        self.keeps_partition = true;
        self
    }

    async fn send(
        &self,
        message: MessageRef<'_>,
        failure: &Failure,
        context: Context<'_>,
    ) -> Result<(), Failure> {
        let origin = Origin::of(message);
        let chosen;
        let topic = match &self.topic {
            Topic::Fixed(topic) => &**topic,
            Topic::Chosen(choose) => {
                chosen = choose(message, failure);
                &chosen
            }
        };
        let partition = origin.partition;
        let added = [
            (header::TOPIC, origin.topic),
            (header::PARTITION, partition.to_string()),
            (header::OFFSET, origin.offset.to_string()),
            (header::TIMESTAMP, origin.timestamp.to_string()),
            (header::ATTEMPTS, context.attempt().to_string()),
            (header::KIND, failure.kind().to_owned()),
            (header::CAUSE, headers::cause(failure)),
        ];
        let to = To { topic, partition, keeps_partition: self.keeps_partition };
        headers::send(message, to, message.value(), &added, context).await?;
        tracing::warn!(record = ?message, topic, %failure, "dead letter");
        Ok(())
    }
}

impl fmt::Debug for DeadLetters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let topic = match &self.topic {
            Topic::Fixed(topic) => topic,
            Topic::Chosen(_) => "chosen for each record",
        };
        f.debug_struct("DeadLetters").field("topic", &topic).finish_non_exhaustive()
    }
}

impl<W: Work> Layer<W> for DeadLetters {
    async fn call<H: Handler<W>>(
        &self,
        inner: &H,
        work: W,
        context: Context<'_>,
    ) -> Result<(), Failure> {
        let is_early =
            |failure: &Failure| failure.is_retriable() && context.attempt() < self.attempts;
        let call = pin!(async { inner.call(work.clone(), context).await });
        let failure = match caught(call).await {
            Err(failure) if !failure.is_postponed() && !is_early(&failure) => failure,
            called => return called,
        };
        if let Some(first) = work.messages().next() {
            context.count_failure(first, &failure);
        }
        for message in work.messages().filter(|message| failure.concerns(message.offset())) {
            self.send(message, &failure, context).await?;
            context.count_dead_letter(message);
        }
        Ok(())
    }

    fn dead_letter_topic(&self) -> Option<&str> {
        match &self.topic {
            Topic::Fixed(topic) => Some(topic),
            Topic::Chosen(_) => None,
        }
    }
}

/// A handler that sends dead letters back to the partitions that they came from, with the time at
/// which it does so as their timestamp. A route of a topic of dead letters replays all that are
/// there or come there; a [`Filter`](super::Filter) selects some.
///
/// ```
/// use moldau_consumer::{App, Filter, Message, Replay, Route, header};
///
/// let timed_out =
///     |letter: &Message| letter.header(header::KIND) == Some(b"timed_out".as_slice());
/// let route = Route::new(Replay).layer(Filter::new(timed_out));
/// let app = App::new(["localhost:9092"]).group("replay").topic("orders.dead", route);
/// ```
///
/// A record that is not a dead letter is a failure that no attempt can help.
#[derive(Clone, Copy, Debug, Default)]
pub struct Replay;

impl Replay {
    /// Sends one dead letter back. Returns when the cluster has it.
    ///
    /// # Errors
    /// A permanent failure for a record without the headers of a dead letter, a retriable one if
    /// the cluster does not take it.
    pub async fn replay(letter: MessageRef<'_>, context: Context<'_>) -> Result<(), Failure> {
        let origin = Origin::of_dead_letter(letter);
        let Origin { topic, partition, .. } =
            origin.ok_or_else(|| Failure::permanent("the record is not a dead letter"))?;
        let to = To { topic: &topic, partition, keeps_partition: true };
        headers::send(letter, to, letter.value(), &[], context).await
    }
}

impl Handler<Message> for Replay {
    async fn call(&self, letter: Message, context: Context<'_>) -> Result<(), Failure> {
        Self::replay(letter.view(), context).await
    }
}
