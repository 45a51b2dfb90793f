//! What surrounds the handling of a record: its attempts, the time, the state of the app.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use moldau_client::{Cluster, Record, TopicPartition};
use tokio::sync::watch;

use crate::Error;
use crate::claims::Claims;
use crate::clock::Clock;
use crate::failure::{Cause, Failure};
use crate::figures::Board;
use crate::message::MessageRef;
use crate::outbox::{Outbox, Sending, To};
use crate::outgoing::{Buffer, Outgoing};
use crate::scheduler::{Attempt, PostponedBy};

/// What surrounds the handling of a record or batch.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    attempt: Attempt,
    /// Attempts in other topics, before the record came to this one.
    attempts_before: u32,
    services: &'a Services,
    /// Where returned records wait for their transaction; `None` without one.
    returned: Option<&'a Buffer>,
    /// The partition of the record; 0 outside of routes.
    source: i32,
}

/// What all handlers and background tasks of an app share. Each shard has a clone, whose counts of
/// references no other thread changes.
#[derive(Clone)]
pub(crate) struct Services {
    /// Partitions that the app reads.
    pub(crate) assignment: watch::Receiver<Vec<TopicPartition>>,
    /// Partitions of which background tasks take care.
    pub(crate) claims: Claims,
    pub(crate) clock: Clock,
    pub(crate) cluster: Cluster,
    pub(crate) drain_timeout: Duration,
    pub(crate) states: States,
    pub(crate) outbox: Arc<Outbox>,
    pub(crate) board: Arc<Board>,
}

/// Values of the app by their type.
#[derive(Clone, Default)]
pub(crate) struct States {
    by_type: HashMap<TypeId, Arc<dyn Any + Send + Sync>>,
}

/// A type of state.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct StateType {
    id: TypeId,
    name: &'static str,
}

impl StateType {
    /// The type `S`.
    #[must_use]
    pub fn of<S: 'static>() -> Self {
        Self { id: TypeId::of::<S>(), name: std::any::type_name::<S>() }
    }
}

impl<'a> Context<'a> {
    #[inline]
    pub(crate) fn new(attempt: Attempt, services: &'a Services) -> Self {
        Self { attempt, attempts_before: 0, services, returned: None, source: 0 }
    }

    /// The same, for a record of partition `source`. What comes of it waits in `returned` for a
    /// transaction, if there are any.
    #[inline]
    pub(crate) fn returning(mut self, source: i32, returned: Option<&'a Buffer>) -> Self {
        (self.source, self.returned) = (source, returned);
        self
    }

    /// The same after `attempts` in other topics.
    #[inline]
    pub(crate) fn after(mut self, attempts: u32) -> Self {
        self.attempts_before = attempts;
        self
    }

    /// Number of this attempt, from 1 on, those in retry topics included. Only failures count, not
    /// waits.
    #[must_use]
    pub fn attempt(&self) -> u32 {
        self.attempts_before.saturating_add(self.attempt.failures).saturating_add(1)
    }

    /// Time since 1970-01-01 by the app's clock.
    #[must_use]
    pub fn now(&self) -> Duration {
        self.services.clock.now()
    }

    /// The app's clock.
    #[must_use]
    pub fn clock(&self) -> &'a Clock {
        &self.services.clock
    }

    /// The state of type `S` that the app was given.
    #[must_use]
    pub fn state<S: Send + Sync + 'static>(&self) -> Option<Arc<S>> {
        self.services.states.get()
    }

    /// Sends records to their topics in this order: each to the partition of its key, or, without
    /// a key, to `partition` modulo the number of partitions. Returns when the cluster has all of
    /// them; in an [exactly-once](crate::App::exactly_once) app they are sent with the transaction
    /// of the record that is handled. Their tokens have no effect.
    ///
    /// # Errors
    /// A topic does not exist, or the cluster does not take a record; the others may have been
    /// sent.
    pub async fn send<'r>(
        &self,
        partition: i32,
        records: impl IntoIterator<Item = (&'r str, Record<'r>)> + Send,
    ) -> moldau_client::Result<()> {
        let records = records.into_iter();
        let records = records.map(|(topic, record)| (To::key(topic, partition), record));
        let records: Vec<_> = records.collect();
        self.outbox().send_all(records).await
    }

    /// Sends records to other topics: in an exactly-once app with the transaction of the record
    /// that is handled.
    pub(crate) fn outbox(&self) -> Sending<'a> {
        let now_ms = i64::try_from(self.now().as_millis()).unwrap_or(i64::MAX);
        let Services { outbox, board, .. } = self.services;
        Sending::new(outbox, self.returned, &board.refusals, now_ms)
    }

    /// Sends what a handler returned. Boxed, so that the future of a handler that returns nothing
    /// stays small.
    pub(crate) fn send_returned(
        self,
        records: Vec<Outgoing>,
    ) -> BoxFuture<'a, Result<(), Failure>> {
        Box::pin(async move {
            let sent = self.outbox().send_returned(self.source, records).await;
            sent.map_err(|error| Cause::Failed(error.into()).into())
        })
    }

    /// Counts a failed attempt, where it ends: a layer that settles the failure calls this.
    pub(crate) fn count_failure(&self, first: MessageRef<'_>, failure: &Failure) {
        self.services.board.take_failure(self.now(), self.attempt(), first, failure);
    }

    /// The next attempt tries anew what a transaction could not send of these records.
    pub(crate) fn forget_refusals(&self, first: MessageRef<'_>, last: i64) {
        let (topic, partition, offset) = (first.topic(), first.partition(), first.offset());
        self.services.board.refusals.forget(topic, partition, offset..=last);
    }

    /// Notes that nothing takes what comes of a record; or, without a `cause`, that it is no longer
    /// so.
    pub(crate) fn set_blocked(&self, first: MessageRef<'_>, cause: Option<String>) {
        let (topic, partition, offset) = (first.topic(), first.partition(), first.offset());
        let Some(cause) = cause else {
            return self.services.board.unblock(topic, partition, offset..=offset);
        };
        let blocked =
            Error::Blocked { topic: topic.to_owned(), partition, offset, cause: cause.clone() };
        tracing::error!(error = %blocked, "tried again");
        self.services.board.block(first, cause);
    }

    pub(crate) fn count_dead_letter(&self, message: MessageRef<'_>) {
        self.services.board.count_dead_letter(message);
    }

    /// Whether layer `number` let it wait, and nothing else since.
    pub(crate) fn has_waited_for(&self, number: u32) -> bool {
        self.attempt.postponed_by == Some(PostponedBy::Layer(number))
    }
}

impl States {
    pub(crate) fn insert<S: Send + Sync + 'static>(&mut self, state: S) {
        self.by_type.insert(TypeId::of::<S>(), Arc::new(state));
    }

    /// # Errors
    /// [`Error::NoState`]: one of these types is missing.
    pub(crate) fn check(&self, needed: &[StateType]) -> Result<(), Error> {
        let missing = needed.iter().find(|state| !self.by_type.contains_key(&state.id));
        missing.map_or(Ok(()), |state| Err(Error::NoState(state.name)))
    }

    fn get<S: Send + Sync + 'static>(&self) -> Option<Arc<S>> {
        Arc::clone(self.by_type.get(&TypeId::of::<S>())?).downcast().ok()
    }
}
