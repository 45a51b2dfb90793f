//! Scheduled messages: records that wait in a topic until their time comes, and are then sent to
//! the topic that they are for.
//!
//! | module | what it holds |
//! |---|---|
//! | `pending` | which messages wait, and which of them are held in memory: no I/O |
//! | `dispatcher` | the member that has a partition sends the messages of that partition |
//! | `loading` | reads messages again that are not held in memory |
//!
//! The topic is compacted. A message is a record whose key is the message's id, with the headers of
//! [`schedule_header`]; a record without a value cancels the message. One is written, too, when
//! the message has been sent; its header `schedule-offset` says which record of the id it settles.

mod dispatcher;
mod loading;
mod pending;

use std::time::Duration;

use moldau_client::{Cluster, ProducerOptions, Record};
use moldau_records::HeaderView;

use crate::Result;
use crate::clock::Clock;
use crate::outbox::{Outbox, To};

pub(crate) use dispatcher::background;

/// A message for later.
#[derive(Clone, Debug)]
pub struct ScheduledMessage {
    id: String,
    topic: String,
    at: Duration,
    key: Option<Vec<u8>>,
    value: Vec<u8>,
    headers: Vec<(String, Vec<u8>)>,
}

impl ScheduledMessage {
    /// A message that is sent to `topic` at `at`, since 1970-01-01. Another message of the same id
    /// replaces it while it waits.
    pub fn new(
        id: impl Into<String>,
        topic: impl Into<String>,
        at: Duration,
        value: impl Into<Vec<u8>>,
    ) -> Self {
        let (id, topic, value) = (id.into(), topic.into(), value.into());
        Self { id, topic, at, key: None, value, headers: Vec::new() }
    }

    /// The key with which it is sent; it has none otherwise.
    #[must_use]
    pub fn key(mut self, key: impl Into<Vec<u8>>) -> Self {
        self.key = Some(key.into());
        self
    }

    /// A header with which it is sent.
    #[must_use]
    pub fn header(mut self, key: impl Into<String>, value: impl Into<Vec<u8>>) -> Self {
        self.headers.push((key.into(), value.into()));
        self
    }
}

/// Schedules and cancels messages. Any producer can do the same: see [`schedule_header`].
pub struct MessageSchedule {
    topic: String,
    outbox: Outbox,
}

impl MessageSchedule {
    /// The schedule in `topic`, which [`App::scheduled_messages`](crate::App::scheduled_messages)
    /// names too.
    #[must_use]
    pub fn new(cluster: &Cluster, topic: &str) -> Self {
        Self {
            topic: topic.to_owned(),
            outbox: Outbox::new(cluster.clone(), ProducerOptions::default()),
        }
    }

    /// Schedules a message. Returns when the cluster has it.
    ///
    /// # Errors
    /// The topic does not exist, or the cluster does not take the record.
    pub async fn send(&self, message: &ScheduledMessage) -> Result<()> {
        let ScheduledMessage { id, topic, at, key, value, headers } = message;
        let at = at.as_millis().to_string();
        let mut all = vec![header(schedule_header::TOPIC, topic), header(schedule_header::AT, &at)];
        if let Some(key) = key {
            all.push(HeaderView { key: schedule_header::KEY.as_bytes(), value: Some(key) });
        }
        let own = headers.iter().map(|(key, value)| (key.as_bytes(), Some(value.as_slice())));
        all.extend(own.map(|(key, value)| HeaderView { key, value }));
        self.put(id, Some(value), &all).await
    }

    /// Cancels the message of this id, if it still waits. One that is being sent at the moment
    /// is sent.
    ///
    /// # Errors
    /// As [`send`](Self::send).
    pub async fn cancel(&self, id: &str) -> Result<()> {
        self.put(id, None, &[]).await
    }

    async fn put(&self, id: &str, value: Option<&[u8]>, headers: &[HeaderView<'_>]) -> Result<()> {
        let timestamp = i64::try_from(Clock::system().now().as_millis()).unwrap_or(i64::MAX);
        let record = Record { token: 0, timestamp, key: Some(id.as_bytes()), value, headers };
        Ok(self.outbox.send_to(To::key(&self.topic, 0), record).await?)
    }
}

fn header<'a>(key: &'a str, value: &'a str) -> HeaderView<'a> {
    HeaderView { key: key.as_bytes(), value: Some(value.as_bytes()) }
}

/// Headers of scheduled messages, and of what is sent. Other headers are passed on.
pub mod schedule_header {
    /// While it waits: topic that it is for.
    pub const TOPIC: &str = "schedule-topic";
    /// While it waits: key with which it is sent; without this header it has none.
    pub const KEY: &str = "schedule-key";
    /// When it is due, in ms since 1970, as text. Also of what is sent.
    pub const AT: &str = "schedule-at";
    /// Of what is sent: the id of the message.
    pub const ID: &str = "schedule-id";
    /// Of what is sent: offset at which the message waited, as text. A message that is sent twice
    /// has the same id and offset.
    pub const OFFSET: &str = "schedule-offset";
}
