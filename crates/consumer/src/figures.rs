//! What an app counts while it runs, for [`Status`](crate::Status) and the admin port.
//!
//! Handled records are counted by the scheduler, with what is done. Times of handlers are sampled,
//! and failures are counted where they end: by the layer that settles one, or by the runtime.

use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::Context;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use moldau_client::{MemberWatch, TopicPartition};
use rustix::time::{ClockId, clock_gettime};
use serde::{Serialize, Serializer};
use tokio::sync::watch;

use crate::failure::{Cause, Failure};
use crate::message::MessageRef;
use crate::refusals::Refusals;

/// A failure of a handler.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Trouble {
    /// When, since 1970-01-01, by the app's clock.
    #[serde(rename = "atMillis", serialize_with = "millis")]
    pub at: Duration,
    /// Topic of the record, or of the first of the batch.
    pub topic: String,
    /// Its partition.
    pub partition: i32,
    /// Its offset.
    pub offset: i64,
    /// Number of the attempt.
    pub attempt: u32,
    /// [`Failure::kind`](crate::Failure::kind).
    pub kind: &'static str,
    /// The error in words, at most 300 letters; without the payload.
    pub cause: String,
}

/// Counters of a route.
pub(crate) struct RouteFigures {
    /// Records handled of partitions that were given back.
    retired: AtomicU64,
    /// By the index of their kind.
    failed: [AtomicU64; KINDS.len()],
    dead_letters: AtomicU64,
    /// Those of a share group.
    share: OnceLock<ShareFigures>,
    calls: AtomicU64,
    /// Whether the last measured call took so long that measuring costs nothing beside it.
    is_slow: AtomicBool,
    sampled: Mutex<Sampled>,
}

/// Counters of a route whose records come from a share group.
#[derive(Default)]
pub(crate) struct ShareFigures {
    /// Records that are locked for this member.
    pub(crate) held: AtomicU64,
    pub(crate) accepted: AtomicU64,
    pub(crate) released: AtomicU64,
    pub(crate) rejected: AtomicU64,
    pub(crate) lost: AtomicU64,
}

/// Times of the calls that were measured.
#[derive(Clone)]
pub(crate) struct Sampled {
    /// Time of calls in microseconds.
    pub(crate) micros: Histogram<u64>,
    /// Sum of it.
    pub(crate) total: Duration,
    /// CPU time of their thread.
    pub(crate) cpu: Duration,
    /// Records that they were given.
    pub(crate) records: u64,
}

/// A call that is measured.
pub(crate) struct Measuring {
    start: Instant,
    /// CPU time of its polls that have ended.
    cpu: Duration,
    /// CPU time of the thread when the poll began that has not.
    polled_at: Option<Duration>,
}

impl Measuring {
    fn begin() -> Self {
        Self { start: Instant::now(), cpu: Duration::ZERO, polled_at: None }
    }

    /// Polls the call. If that panics, its time counts too.
    pub(crate) fn poll<T>(&mut self, poll: impl FnOnce() -> T) -> T {
        self.polled_at = Some(thread_cpu());
        let polled = poll();
        self.pause();
        polled
    }

    fn pause(&mut self) {
        if let Some(before) = self.polled_at.take() {
            self.cpu += thread_cpu().saturating_sub(before);
        }
    }
}

impl RouteFigures {
    pub(crate) fn new() -> Self {
        let micros = Histogram::new(HISTOGRAM_DIGITS).expect("the number of digits is valid");
        let sampled = Sampled { micros, total: Duration::ZERO, cpu: Duration::ZERO, records: 0 };
        Self {
            retired: AtomicU64::new(0),
            failed: std::array::from_fn(|_| AtomicU64::new(0)),
            dead_letters: AtomicU64::new(0),
            share: OnceLock::new(),
            calls: AtomicU64::new(0),
            is_slow: AtomicBool::new(true),
            sampled: Mutex::new(sampled),
        }
    }

    /// Counts the next `calls` calls of the handler; returns which of them is one of the sample. It
    /// may be none: a number that they do not reach.
    pub(crate) fn sample(&self, calls: usize) -> u64 {
        let first = self.calls.fetch_add(u64::try_from(calls).unwrap_or(1), Ordering::Relaxed);
        first.next_multiple_of(SAMPLE_EVERY) - first
    }

    /// Runs a call of the handler, and measures it if it is one of the sample.
    pub(crate) async fn measure<T>(
        &self,
        is_sample: bool,
        records: usize,
        mut call: Pin<&mut impl Future<Output = T>>,
    ) -> T {
        let Some(mut measuring) = self.begin(is_sample) else { return call.await };
        let poll = |context: &mut Context<'_>| measuring.poll(|| call.as_mut().poll(context));
        let output = std::future::poll_fn(poll).await;
        self.end(measuring, records);
        output
    }

    /// Begins to measure a call, if it is one of the sample or the last one was slow.
    #[inline]
    pub(crate) fn begin(&self, is_sample: bool) -> Option<Measuring> {
        (is_sample || self.is_slow.load(Ordering::Relaxed)).then(Measuring::begin)
    }

    /// Takes the time of a call that was given so many records.
    pub(crate) fn end(&self, mut measuring: Measuring, records: usize) {
        measuring.pause();
        let Measuring { start, cpu, .. } = measuring;
        let time = start.elapsed();
        self.is_slow.store(time >= SLOW, Ordering::Relaxed);
        let mut sampled = self.lock_sampled();
        let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX).min(MICROS_MAX);
        // It grows as far as this bound.
        sampled.micros.record(micros).ok();
        sampled.total += time;
        sampled.cpu += cpu;
        sampled.records += u64::try_from(records).unwrap_or(0);
    }

    /// The counters of a share group, which the route has from now on.
    pub(crate) fn share(&self) -> &ShareFigures {
        self.share.get_or_init(ShareFigures::default)
    }

    /// The counters of a share group, if its records come from one.
    pub(crate) fn shared(&self) -> Option<&ShareFigures> {
        self.share.get()
    }

    /// Counts records handled of a partition that is given back.
    pub(crate) fn retire(&self, handled: u64) {
        self.retired.fetch_add(handled, Ordering::Relaxed);
    }

    pub(crate) fn retired(&self) -> u64 {
        self.retired.load(Ordering::Relaxed)
    }

    pub(crate) fn dead_letters(&self) -> u64 {
        self.dead_letters.load(Ordering::Relaxed)
    }

    /// Failures by their kind, those that happened.
    pub(crate) fn failed(&self) -> Vec<(&'static str, u64)> {
        let counts = self.failed.iter().map(|count| count.load(Ordering::Relaxed));
        KINDS.into_iter().zip(counts).filter(|(_, count)| *count > 0).collect()
    }

    pub(crate) fn sampled(&self) -> Sampled {
        self.lock_sampled().clone()
    }

    fn lock_sampled(&self) -> MutexGuard<'_, Sampled> {
        self.sampled.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What all parts of an app write their figures to.
#[derive(Default)]
pub(crate) struct Board {
    /// Guards the route of each topic.
    by_topic: Mutex<HashMap<Arc<str>, Arc<RouteFigures>>>,
    /// Guards the last failures, the oldest first.
    troubles: Mutex<VecDeque<Trouble>>,
    /// Guards the membership, once the group has taken the member.
    member: Mutex<Option<MemberWatch>>,
    /// Guards end offsets that were asked for, beside those that fetches tell.
    ends: Mutex<HashMap<TopicPartition, i64>>,
    /// Guards the record of each partition that is blocked, and why.
    blocked: Mutex<HashMap<TopicPartition, (i64, String)>>,
    /// Whether there is one.
    has_blocked: AtomicBool,
    /// Outputs that transactions could not send.
    pub(crate) refusals: Refusals,
    /// Where the admin port listens.
    pub(crate) admin: watch::Sender<Option<SocketAddr>>,
}

impl Board {
    /// The records of a topic are handled by the route of these figures.
    pub(crate) fn bind(&self, topic: &Arc<str>, figures: &Arc<RouteFigures>) {
        lock(&self.by_topic).insert(Arc::clone(topic), Arc::clone(figures));
    }

    /// Whether a route has handled records of a topic.
    pub(crate) fn is_known(&self, topic: &str) -> bool {
        lock(&self.by_topic).contains_key(topic)
    }

    /// Whether the records of a topic are handled by the route of these figures.
    pub(crate) fn is_bound(&self, topic: &str, figures: &Arc<RouteFigures>) -> bool {
        lock(&self.by_topic).get(topic).is_some_and(|bound| Arc::ptr_eq(bound, figures))
    }

    /// Counts a failure that a layer settled or that is tried again, once for each attempt.
    pub(crate) fn take_failure(
        &self,
        at: Duration,
        attempt: u32,
        of: MessageRef<'_>,
        why: &Failure,
    ) {
        let figures = lock(&self.by_topic).get(of.topic()).cloned();
        let kind = KINDS.iter().position(|kind| *kind == why.kind());
        if let (Some(figures), Some(kind)) = (figures, kind) {
            figures.failed.get(kind).map(|count| count.fetch_add(1, Ordering::Relaxed));
        }
        // What a decoder says quotes the payload.
        let cause = match why.cause() {
            Cause::Undecodable(_) => "the payload cannot be decoded".to_owned(),
            _ => why.to_string(),
        };
        self.take_trouble(Trouble {
            at,
            topic: of.topic().to_owned(),
            partition: of.partition(),
            offset: of.offset(),
            attempt,
            kind: why.kind(),
            cause: cause.chars().take(CAUSE_CHARS_MAX).collect(),
        });
    }

    pub(crate) fn take_trouble(&self, trouble: Trouble) {
        let mut troubles = lock(&self.troubles);
        if troubles.len() >= TROUBLES_MAX {
            troubles.pop_front();
        }
        troubles.push_back(trouble);
    }

    /// A record is blocked; of several of a partition, the last that was tried is kept.
    pub(crate) fn block(&self, of: MessageRef<'_>, cause: String) {
        let partition = TopicPartition::of(of.topic(), of.partition());
        let mut blocked = lock(&self.blocked);
        if blocked.get(&partition).is_none_or(|(offset, _)| of.offset() <= *offset) {
            blocked.insert(partition, (of.offset(), cause));
        }
        self.has_blocked.store(true, Ordering::Relaxed);
    }

    /// Records of a partition are blocked no longer.
    #[inline]
    pub(crate) fn unblock(&self, topic: &str, partition: i32, offsets: RangeInclusive<i64>) {
        // There is nothing to look up for each record that is handled.
        if self.has_blocked.load(Ordering::Relaxed) {
            self.unblock_one(topic, partition, &offsets);
        }
    }

    fn unblock_one(&self, topic: &str, partition: i32, offsets: &RangeInclusive<i64>) {
        let partition = TopicPartition::of(topic, partition);
        let mut blocked = lock(&self.blocked);
        if blocked.get(&partition).is_some_and(|(offset, _)| offsets.contains(offset)) {
            blocked.remove(&partition);
        }
        self.has_blocked.store(!blocked.is_empty(), Ordering::Relaxed);
    }

    /// The record at which a partition is blocked, and why.
    pub(crate) fn blocked(&self, partition: &TopicPartition) -> Option<(i64, String)> {
        lock(&self.blocked).get(partition).cloned()
    }

    /// Counts a record that was sent to a topic of dead letters.
    pub(crate) fn count_dead_letter(&self, of: MessageRef<'_>) {
        if let Some(figures) = lock(&self.by_topic).get(of.topic()) {
            figures.dead_letters.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// The last failures, the newest first.
    pub(crate) fn troubles(&self) -> Vec<Trouble> {
        lock(&self.troubles).iter().rev().cloned().collect()
    }

    pub(crate) fn set_member(&self, member: MemberWatch) {
        *lock(&self.member) = Some(member);
    }

    pub(crate) fn member(&self) -> Option<MemberWatch> {
        lock(&self.member).clone()
    }

    pub(crate) fn set_ends(&self, ends: HashMap<TopicPartition, i64>) {
        *lock(&self.ends) = ends;
    }

    pub(crate) fn end(&self, partition: &TopicPartition) -> Option<i64> {
        lock(&self.ends).get(partition).copied()
    }
}

fn millis<S: Serializer>(time: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u128(time.as_millis())
}

fn lock<T>(guarded: &Mutex<T>) -> MutexGuard<'_, T> {
    guarded.lock().unwrap_or_else(PoisonError::into_inner)
}

/// CPU time that the calling thread has used.
fn thread_cpu() -> Duration {
    let used = clock_gettime(ClockId::ThreadCPUTime);
    let (seconds, nanos) = (u64::try_from(used.tv_sec), u32::try_from(used.tv_nsec));
    Duration::new(seconds.unwrap_or(0), nanos.unwrap_or(0))
}

/// Kinds of failures, by [`Failure::kind`].
const KINDS: [&str; 5] = ["failed", "permanent", "undecodable", "timed_out", "panicked"];

/// Calls of which one is measured, but not more than one of those that are made without a pause:
/// two readings of a clock of the kernel for each poll cost as much as ten records.
const SAMPLE_EVERY: u64 = 32;

/// Calls of this length are all measured, so that a quiet route has figures too. The choice goes by
/// the call before, so it favours no length.
const SLOW: Duration = Duration::from_micros(100);

/// Precision of the histogram: one percent.
const HISTOGRAM_DIGITS: u8 = 2;

/// Longest time of a call that is told apart: a day.
const MICROS_MAX: u64 = 24 * 60 * 60 * 1_000_000;

/// Failures that are kept: two screens of them.
const TROUBLES_MAX: usize = 100;

/// Longest cause that is kept of a failure.
const CAUSE_CHARS_MAX: usize = 300;
