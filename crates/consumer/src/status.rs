//! The figures of an app at a moment.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use moldau_client::TopicPartition;
use serde::{Serialize, Serializer};
use tokio::sync::{mpsc, oneshot, watch};

use crate::figures::{Board, RouteFigures, Sampled, ShareFigures, Trouble};

/// What an app does: its routes with their partitions, and its last failures.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Status {
    /// Its routes, in the order in which it was given them.
    pub routes: Vec<RouteStatus>,
    /// Its last failures, the newest first, at most 100.
    pub failures: Vec<Trouble>,
}

/// What a route does. Counts begin with the app.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RouteStatus {
    /// Its topic.
    pub topic: String,
    /// Records that are done, by this app.
    pub handled: u64,
    /// Failures by [`Failure::kind`](crate::Failure::kind), of kinds that happened. Each attempt
    /// counts, a batch once.
    pub failed: Vec<(&'static str, u64)>,
    /// Records that were sent to a topic of dead letters.
    pub dead_letters: u64,
    /// Topics that [`DeadLetters`](crate::DeadLetters) of the route send to.
    pub dead_letter_topics: Vec<String>,
    /// Median time of a call of the handler, with all its layers, of a sample.
    #[serde(rename = "handlerP50Micros", serialize_with = "micros")]
    pub handler_p50: Option<Duration>,
    /// 99th percentile of it.
    #[serde(rename = "handlerP99Micros", serialize_with = "micros")]
    pub handler_p99: Option<Duration>,
    /// CPU time per record that the handler and its layers use on the thread that polls them, of a
    /// sample. What they start elsewhere is not in it.
    #[serde(rename = "cpuPerRecordNanos", serialize_with = "nanos")]
    pub cpu_per_record: Option<Duration>,
    /// Its records of a share group; `None` in an app of a consumer group.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub share: Option<ShareStatus>,
    /// Its partitions that the app reads, by name.
    pub partitions: Vec<PartitionStatus>,
}

/// What a route does with the records of a share group.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ShareStatus {
    /// Records that are locked for this member: they wait for their handler, are handled, or wait
    /// for their next attempt.
    pub held: u64,
    /// Records that are done.
    pub accepted: u64,
    /// Records that were given back, to be delivered again.
    pub released: u64,
    /// Records that are not delivered again although they are not done.
    pub rejected: u64,
    /// Records whose lock had ended when something was to be said of them.
    pub lost: u64,
}

/// What the app does with a partition.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PartitionStatus {
    /// Its topic.
    pub topic: String,
    /// Its number.
    pub partition: i32,
    /// First offset that is not done; `None` before the first record.
    pub done_to: Option<i64>,
    /// Offset after the last record that was queued.
    pub position: Option<i64>,
    /// Offset after the last record of the partition, as the last fetch said. With an admin port
    /// it is also asked for every few seconds.
    pub end: Option<i64>,
    /// Records from `done_to` to `end`.
    pub lag: Option<i64>,
    /// Records that wait for their handler or are handled.
    pub queued_records: usize,
    /// Their bytes.
    pub queued_bytes: usize,
    /// Records or batches that are handled.
    pub running: usize,
    /// How long the one that is at it for longest has made no progress.
    #[serde(rename = "stalledMillis", serialize_with = "millis")]
    pub stalled: Option<Duration>,
    /// Failed records that wait for their next attempt.
    pub retrying: usize,
    /// Records that a layer lets wait.
    pub delayed: usize,
    /// Why it is not read on, or not handled.
    pub paused: Option<Pause>,
    /// The same in words, where something is wrong.
    pub trouble: Option<String>,
    /// Records that are done, since the app has the partition.
    pub handled: u64,
}

/// Why a partition is not read on.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Pause {
    /// [`Control::pause`](crate::Control::pause) paused it. It is not handled either.
    Asked,
    /// Its queue is full, of records or bytes, or with gaps that the commit has no room for.
    QueueFull,
    /// Queues of all partitions hold as much as they may.
    Memory,
    /// It cannot be read, which is tried again.
    Unreadable,
    /// A topic refuses what comes of a record ([`Error::Blocked`](crate::Error::Blocked)), which is
    /// tried again.
    Blocked,
    /// It is given back.
    Draining,
}

impl RouteStatus {
    /// Records of its partitions that are not done; `None` if no partition's lag is known.
    #[must_use]
    pub fn lag(&self) -> Option<i64> {
        self.partitions.iter().filter_map(|it| it.lag).reduce(i64::saturating_add)
    }
}

impl Pause {
    /// A word for it, for metrics.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Asked => "asked",
            Self::QueueFull => "queue_full",
            Self::Memory => "memory",
            Self::Unreadable => "unreadable",
            Self::Blocked => "blocked",
            Self::Draining => "draining",
        }
    }
}

impl fmt::Display for Pause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Asked => "paused on request",
            Self::QueueFull => "its queue is full",
            Self::Memory => "all queues together are full",
            Self::Unreadable => "it cannot be read; tried again",
            Self::Blocked => "a topic refuses what comes of a record; tried again",
            Self::Draining => "it is given back",
        })
    }
}

impl Serialize for Pause {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// What is asked of a shard, which owns its partitions.
#[derive(Debug)]
pub(crate) enum Question {
    /// The figures of all partitions, each with its topic.
    Partitions(oneshot::Sender<Vec<PartitionStatus>>),
    /// Pauses or resumes a partition; answered by whether the app reads it.
    SetPaused(TopicPartition, bool, oneshot::Sender<bool>),
}

/// Asks the shards of an app, which answer while they run. Clones ask the same.
#[derive(Clone)]
pub(crate) struct Inquiry {
    /// None before the app runs.
    pub(crate) shards: watch::Receiver<Vec<mpsc::Sender<Question>>>,
    pub(crate) board: Arc<Board>,
}

/// A route as its figures name it.
#[derive(Clone)]
pub(crate) struct RouteName {
    pub(crate) topic: Arc<str>,
    pub(crate) dead_letter_topics: Vec<String>,
    pub(crate) figures: Arc<RouteFigures>,
}

impl Inquiry {
    /// Pauses or resumes a partition; false if no shard reads it.
    pub(crate) async fn set_paused(&self, partition: &TopicPartition, paused: bool) -> bool {
        for shard in self.shards().await {
            let question = |asker| Question::SetPaused(partition.clone(), paused, asker);
            if ask(&shard, question).await == Some(true) {
                return true;
            }
        }
        false
    }

    /// Waits until the app has ended.
    pub(crate) async fn ended(&self) {
        let mut shards = self.shards.clone();
        while shards.changed().await.is_ok() {}
    }

    /// Waits until the app runs; none if it is dropped before.
    async fn shards(&self) -> Vec<mpsc::Sender<Question>> {
        let mut shards = self.shards.clone();
        let running = shards.wait_for(|shards| !shards.is_empty()).await;
        running.map(|shards| shards.clone()).unwrap_or_default()
    }

    async fn partitions(&self) -> Vec<PartitionStatus> {
        let mut partitions = Vec::new();
        for shard in self.shards().await {
            partitions.extend(ask(&shard, Question::Partitions).await.unwrap_or_default());
        }
        partitions
    }

    /// The figures of an app with these routes.
    pub(crate) async fn status(&self, routes: &[RouteName]) -> Status {
        let mut partitions = self.partitions().await;
        partitions.sort_by(|one, other| {
            (&one.topic, one.partition).cmp(&(&other.topic, other.partition))
        });
        for partition in &mut partitions {
            let name = TopicPartition::of(&partition.topic, partition.partition);
            partition.end = partition.end.max(self.board.end(&name));
            let ends = partition.end.zip(partition.done_to);
            partition.lag = ends.map(|(end, done_to)| end.saturating_sub(done_to).max(0));
        }
        let routes = routes.iter().map(|route| {
            let is_its = |it: &PartitionStatus| self.board.is_bound(&it.topic, &route.figures);
            route.status(partitions.extract_if(.., |it| is_its(it)).collect())
        });
        Status { routes: routes.collect(), failures: self.board.troubles() }
    }
}

/// Asks a shard; `None` once it has ended.
async fn ask<T>(
    shard: &mpsc::Sender<Question>,
    question: impl FnOnce(oneshot::Sender<T>) -> Question,
) -> Option<T> {
    let (sender, answer) = oneshot::channel();
    shard.send(question(sender)).await.ok()?;
    answer.await.ok()
}

impl RouteName {
    fn status(&self, partitions: Vec<PartitionStatus>) -> RouteStatus {
        let Sampled { micros, cpu, records, .. } = self.figures.sampled();
        let percentile = |part: f64| {
            (!micros.is_empty()).then(|| Duration::from_micros(micros.value_at_quantile(part)))
        };
        let running: u64 = partitions.iter().map(|it| it.handled).sum();
        RouteStatus {
            topic: self.topic.to_string(),
            handled: self.figures.retired() + running,
            failed: self.figures.failed(),
            dead_letters: self.figures.dead_letters(),
            dead_letter_topics: self.dead_letter_topics.clone(),
            handler_p50: percentile(0.5),
            handler_p99: percentile(0.99),
            cpu_per_record: u32::try_from(records).ok().and_then(|it| cpu.checked_div(it)),
            share: self.figures.shared().map(ShareFigures::status),
            partitions,
        }
    }
}

impl ShareFigures {
    fn status(&self) -> ShareStatus {
        let count = |of: &AtomicU64| of.load(Ordering::Relaxed);
        ShareStatus {
            held: count(&self.held),
            accepted: count(&self.accepted),
            released: count(&self.released),
            rejected: count(&self.rejected),
            lost: count(&self.lost),
        }
    }
}

fn millis<S: Serializer>(time: &Option<Duration>, serializer: S) -> Result<S::Ok, S::Error> {
    time.map(|time| time.as_millis()).serialize(serializer)
}

fn micros<S: Serializer>(time: &Option<Duration>, serializer: S) -> Result<S::Ok, S::Error> {
    time.map(|time| time.as_micros()).serialize(serializer)
}

fn nanos<S: Serializer>(time: &Option<Duration>, serializer: S) -> Result<S::Ok, S::Error> {
    time.map(|time| time.as_nanos()).serialize(serializer)
}

/// Questions that wait for the runtime, which answers at once.
pub(crate) const QUESTIONS_MAX: usize = 16;
