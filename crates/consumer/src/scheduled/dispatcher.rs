//! The member that has a partition sends the messages of that partition when they are due.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use moldau_client::{Record, TopicPartition};
use moldau_records::HeaderView;
use tokio::task::{JoinError, JoinSet};

use super::loading::{Loaded, load};
use super::pending::{Id, Pending, Place};
use super::{header, schedule_header};
use crate::background::Background;
use crate::caretaker::caretaker;
use crate::chunk::Chunk;
use crate::claims::Hold;
use crate::context::Services;
use crate::failure::BoxError;
use crate::message::Message;
use crate::outbox::To;
use crate::topic_reader::TopicReader;

/// The task that sends scheduled messages.
pub(crate) fn background(topic: Arc<str>) -> Background {
    caretaker("scheduled messages", topic, async |hold, services| {
        let reader = TopicReader::open(&services.cluster, &services.clock, &hold.partition).await?;
        let dispatcher = Dispatcher {
            hold,
            services,
            reader,
            pending: Pending::new(HELD_BYTES_MAX),
            flights: JoinSet::new(),
            loads: JoinSet::new(),
            load_at: Duration::ZERO,
            paused: HashMap::new(),
        };
        dispatcher.run().await
    })
}

/// A message that was taken to be sent.
struct Flight {
    id: Id,
    place: Place,
    message: Message,
    outcome: Result<(), moldau_client::Error>,
}

struct Dispatcher {
    hold: Hold,
    services: Arc<Services>,
    reader: TopicReader,
    pending: Pending<Message>,
    /// Messages that are being sent.
    flights: JoinSet<Flight>,
    /// At most one.
    loads: JoinSet<moldau_client::Result<Loaded>>,
    /// When messages may be loaded again.
    load_at: Duration,
    /// Topics that do not take messages at the moment, and when they are tried again.
    paused: HashMap<Vec<u8>, Duration>,
}

impl Dispatcher {
    async fn run(mut self) -> Result<(), BoxError> {
        // What was sent is known only at the end of the topic.
        while !self.reader.is_caught_up() {
            tokio::select! {
                biased;
                () = self.hold.recalled() => return Ok(()),
                chunk = self.reader.next() => self.take_records(&chunk?),
            }
            if self.pending.len() > PENDING_MAX {
                let TopicPartition { topic, partition } = &self.hold.partition;
                let many = format!("more than {PENDING_MAX} messages wait in {topic}-{partition}");
                return Err(many.into());
            }
        }
        let clock = self.services.clock.clone();
        loop {
            self.send_due();
            self.start_load();
            let due = self.next_due();
            tokio::select! {
                biased;
                () = self.hold.recalled() => break,
                Some(ended) = self.flights.join_next() => self.take_sent(ended),
                Some(loaded) = self.loads.join_next() => self.take_loaded(loaded),
                () = clock.sleep_until(due.unwrap_or_default()), if due.is_some() => {}
                chunk = self.reader.next(), if self.pending.len() < PENDING_MAX => {
                    self.take_records(&chunk?);
                }
            }
        }
        self.stop().await;
        Ok(())
    }

    fn take_records(&mut self, chunk: &Arc<Chunk>) {
        for message in Message::all_of(chunk) {
            let Some(key) = message.key() else {
                tracing::error!(record = ?message, "a scheduled message has no id as its key");
                continue;
            };
            if message.value().is_none() {
                let rewritten = match number(&message, schedule_header::OFFSET) {
                    Some(offset) => self.pending.settle(key, offset).cloned(),
                    None => {
                        self.pending.cancel(key);
                        None
                    }
                };
                self.rewrite(rewritten);
                continue;
            }
            let due = number(&message, schedule_header::AT);
            let (Some(due), Some(_)) = (due, message.header(schedule_header::TOPIC)) else {
                tracing::error!(record = ?message, "its topic or time is missing");
                continue;
            };
            let (place, held) = ((due, message.offset()), message.detached());
            let bytes = bytes(&held);
            self.pending.insert(key, place, held, bytes);
        }
    }

    /// Starts to send what is due.
    fn send_due(&mut self) {
        let now = self.services.clock.now();
        let now_ms = millis(now);
        while self.flights.len() < FLIGHTS_MAX {
            let Some((id, place, message)) = self.pending.take_due(now_ms) else { return };
            let topic = message.header(schedule_header::TOPIC).unwrap_or_default();
            if let Some(until) = self.paused.get(topic).filter(|until| **until > now) {
                let (at_ms, bytes) = (millis(*until), bytes(&message));
                self.pending.again(id, place, at_ms, message, bytes);
                continue;
            }
            let (services, home) = (Arc::clone(&self.services), self.hold.partition.clone());
            self.flights.spawn(async move {
                let outcome = send(&services, &message).await;
                if outcome.is_ok() {
                    settle(&services, &home, &message).await;
                }
                Flight { id, place, message, outcome }
            });
        }
    }

    fn take_sent(&mut self, ended: Result<Flight, JoinError>) {
        // A panic of a flight is one of this crate: the message is sent after a restart.
        let Ok(Flight { id, place, message, outcome }) = ended else { return };
        let Err(error) = outcome else { return self.pending.sent(id, place) };
        let now = self.services.clock.now();
        let topic = message.header(schedule_header::TOPIC).unwrap_or_default();
        let name = String::from_utf8_lossy(topic);
        tracing::error!(record = ?message, topic = %name, %error, "cannot be sent; tried again");
        self.paused.retain(|_, until| *until > now);
        let until = now + TOPIC_PAUSE;
        self.paused.insert(topic.to_vec(), until);
        let bytes = bytes(&message);
        self.pending.again(id, place, millis(until), message, bytes);
    }

    /// When a message is due, or messages may be loaded again; `None` while others must end first.
    fn next_due(&self) -> Option<Duration> {
        let is_full = self.flights.len() >= FLIGHTS_MAX;
        let due = self.pending.next_due().filter(|_| !is_full).map(Duration::from_millis);
        let load = Some(self.load_at).filter(|at| *at > self.services.clock.now());
        due.into_iter().chain(load).min()
    }

    fn start_load(&mut self) {
        if !self.loads.is_empty() || self.services.clock.now() < self.load_at {
            return;
        }
        let wanted = self.pending.to_load();
        if !wanted.is_empty() {
            let (cluster, home) = (self.services.cluster.clone(), self.hold.partition.clone());
            self.loads.spawn(async move { load(&cluster, &home, wanted).await });
        }
    }

    fn take_loaded(&mut self, loaded: Result<moldau_client::Result<Loaded>, JoinError>) {
        let loaded = match loaded {
            Ok(Ok(loaded)) => loaded,
            failed => {
                let partition = &self.hold.partition;
                let error = failed.map(Result::err);
                tracing::error!(?partition, ?error, "messages cannot be read; tried again");
                self.load_at = self.services.clock.now() + LOAD_PAUSE;
                return;
            }
        };
        for (place, message) in loaded.found {
            let bytes = bytes(&message);
            let rewritten = self.pending.loaded(place, message, bytes).cloned();
            self.rewrite(rewritten);
        }
        for place in loaded.missing {
            if self.pending.missing(place) {
                let partition = &self.hold.partition;
                tracing::warn!(?partition, offset = place.1, "a message is gone from its topic");
            }
        }
    }

    /// Writes a message behind the record that settled its predecessor; compaction would remove it
    /// otherwise.
    fn rewrite(&mut self, message: Option<Message>) {
        let Some(message) = message else { return };
        let (services, home) = (Arc::clone(&self.services), self.hold.partition.clone());
        tokio::spawn(async move {
            let headers: Vec<_> = message.headers().collect();
            put(&services, &home, message.key(), message.value(), &headers).await;
        });
    }

    /// Lets messages under way arrive.
    async fn stop(mut self) {
        let clock = self.services.clock.clone();
        let deadline = clock.now().saturating_add(self.services.drain_timeout);
        loop {
            tokio::select! {
                biased;
                ended = self.flights.join_next() => if ended.is_none() { break },
                () = clock.sleep_until(deadline) => break,
            }
        }
    }
}

/// Sends a message to the topic that it is for.
async fn send(services: &Services, message: &Message) -> moldau_client::Result<()> {
    let topic = message.header(schedule_header::TOPIC).unwrap_or_default();
    let topic = String::from_utf8_lossy(topic);
    let offset = message.offset().to_string();
    let is_own = |key: &[u8]| {
        [schedule_header::TOPIC, schedule_header::KEY].map(str::as_bytes).contains(&key)
    };
    let passed_on = message.headers().filter(|header| !is_own(header.key));
    let id = HeaderView { key: schedule_header::ID.as_bytes(), value: message.key() };
    let added = [id, header(schedule_header::OFFSET, &offset)];
    let headers: Vec<_> = passed_on.chain(added).collect();
    let record = Record {
        token: 0,
        timestamp: i64::try_from(millis(services.clock.now())).unwrap_or(i64::MAX),
        key: message.header(schedule_header::KEY),
        value: message.value(),
        headers: &headers,
    };
    // Messages without a key are spread over the partitions.
    let spread = i32::try_from(message.offset().rem_euclid(i64::from(i32::MAX))).unwrap_or(0);
    services.outbox.send_to(To::key(&topic, spread), record).await
}

/// Writes that a message was sent.
async fn settle(services: &Services, home: &TopicPartition, message: &Message) {
    let offset = message.offset().to_string();
    let headers = [header(schedule_header::OFFSET, &offset)];
    put(services, home, message.key(), None, &headers).await;
}

/// Writes a record into the topic of the schedule; tries until it is there.
async fn put(
    services: &Services,
    home: &TopicPartition,
    key: Option<&[u8]>,
    value: Option<&[u8]>,
    headers: &[HeaderView<'_>],
) {
    let clock = &services.clock;
    loop {
        let timestamp = i64::try_from(millis(clock.now())).unwrap_or(i64::MAX);
        let record = Record { token: 0, timestamp, key, value, headers };
        let sent =
            services.outbox.send_to(To::partition(&home.topic, home.partition), record).await;
        let Err(error) = sent else { return };
        tracing::error!(partition = ?home, %error, "cannot be written; tried again");
        clock.sleep_until(clock.now() + TOPIC_PAUSE).await;
    }
}

fn number<N: std::str::FromStr>(message: &Message, header: &str) -> Option<N> {
    std::str::from_utf8(message.header(header)?).ok()?.parse().ok()
}

fn millis(at: Duration) -> u64 {
    u64::try_from(at.as_millis()).unwrap_or(u64::MAX)
}

/// Bytes of a message that is held.
fn bytes(message: &Message) -> usize {
    let headers: usize =
        message.headers().map(|it| it.key.len() + it.value.map_or(0, <[u8]>::len)).sum();
    let (key, value) = (message.key(), message.value());
    HELD_OVERHEAD + headers + key.map_or(0, <[u8]>::len) + value.map_or(0, <[u8]>::len)
}

/// Messages of a partition that wait, at most: 1.5 GB for their places.
const PENDING_MAX: usize = 10_000_000;

/// Bytes of messages of a partition that are held because they are due first.
const HELD_BYTES_MAX: usize = 64 << 20;

/// What a message needs in memory beside its bytes.
const HELD_OVERHEAD: usize = 400;

/// Messages of a partition that are being sent at a time: some batches for each partition of the
/// topics that they are for.
const FLIGHTS_MAX: usize = 4_096;

/// Pause before a topic is tried again that did not take a message.
const TOPIC_PAUSE: Duration = Duration::from_secs(5);

/// Pause before messages are loaded again after a failure.
const LOAD_PAUSE: Duration = Duration::from_secs(1);
