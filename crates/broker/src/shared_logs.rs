//! The logs of a cluster: batches in objects, offsets from the sequencer.
//!
//! Reads and lookups run on the cluster's own thread, as its connections belong there. Bounds are
//! those of the last look. One task looks again at the logs that fetches wait for: at those that a
//! wake names, and at all of them now and then, as a wake can be lost.

mod lookups;
mod transactions;

use std::any::Any;
use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::future::{Future, ready};
use std::sync::{Arc, Weak};
use std::time::Duration;

use bytes::Bytes;
use moldau_cluster::{
    AppendBatch, Find, Found, LogId, Outcome, Part, ProducerBatch, Reader, Records, Refusal,
    Sequencer, Store, Wakes, Writer,
};
use moldau_coordinator::producer_ids::ProducerIdentity;
use moldau_coordinator::transactions::Unmarked;
use moldau_protocol::Uuid as TopicUuid;
use moldau_records::{ValidBatch, iter_batches};
use moldau_threads::Mutex;
use tokio::runtime::Handle;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep};
use uuid::Uuid;

use crate::logs::{
    AbortedTransaction, AppendError, Appended, Bounds, ClusterLog, ClusterLogs, EpochEnd, Error,
    Isolation, Lsn, OpenTransactions, ProducerState, Read, ReadLimits, Ticket, TimeLookup,
    TimestampOffset, TopicId, Trimmed, Waiter,
};
use crate::troubles::{NamedLog, Troubles};

/// How often logs are looked at that fetches wait for, whether a wake names them or not.
const LOOK_INTERVAL: Duration = Duration::from_millis(500);

/// How long a log is looked at behind the last fetch that waited for it: consumers come again.
const WATCHED_FOR: Duration = Duration::from_secs(10);

/// Bounds of a log that is watched count for this long: some looks.
const FRESH_FOR: Duration = Duration::from_secs(2);

/// Logs of one look.
const LOGS_PER_LOOK: usize = 2_000;

/// The pause after a look without an answer.
const LOOK_PAUSE: Duration = Duration::from_millis(200);

/// The logs of a cluster as one broker reads and writes them.
pub(crate) struct SharedLogs<Q, S> {
    parts: Arc<Parts<Q, S>>,
    /// Guards which logs are known.
    logs: Mutex<HashMap<LogId, Arc<SharedLog<Q, S>>>>,
}

struct Parts<Q, S> {
    sequencer: Arc<Q>,
    reader: Reader<Q, S>,
    writer: Writer,
    runtime: Handle,
    troubles: Troubles,
}

struct SharedLog<Q, S> {
    id: LogId,
    /// Name of its topic.
    topic: Arc<str>,
    /// For what goes on where nobody waits for it.
    this: Weak<SharedLog<Q, S>>,
    parts: Arc<Parts<Q, S>>,
    /// Guards what is known.
    known: Mutex<Known>,
    /// Guards who waits.
    waiters: Arc<Mutex<Waiters>>,
}

#[derive(Clone, Copy, Default)]
struct Known {
    start_offset: i64,
    high_watermark: i64,
    last_stable_offset: i64,
    leader_epoch: i32,
    /// Of the last look.
    at: Option<Instant>,
    is_deleted: bool,
}

#[derive(Default)]
struct Waiters {
    waiting: Vec<Arc<Waiter>>,
    /// Until when the log is looked at without anybody who waits.
    watched_until: Option<Instant>,
}

/// Keeps a waiter registered until dropped.
struct Registered {
    waiters: Arc<Mutex<Waiters>>,
    waiter: Arc<Waiter>,
}

impl Drop for Registered {
    fn drop(&mut self) {
        let mut waiters = self.waiters.lock();
        let of = &mut waiters.waiting;
        if let Some(at) = of.iter().position(|waiter| Arc::ptr_eq(waiter, &self.waiter)) {
            of.swap_remove(at);
        }
        waiters.watched_until = Some(Instant::now() + WATCHED_FOR);
    }
}

impl<Q: Sequencer, S: Store> SharedLogs<Q, S> {
    /// The logs through this reader and writer, whose tasks are on the runtime of the caller.
    pub(crate) fn new(sequencer: Arc<Q>, reader: Reader<Q, S>, writer: Writer) -> Arc<Self> {
        let (runtime, troubles) = (Handle::current(), Troubles::default());
        let parts = Parts { sequencer, reader, writer, runtime, troubles };
        Arc::new(Self { parts: Arc::new(parts), logs: Mutex::default() })
    }

    /// Looks at logs that fetches wait for, for as long as the returned future is polled.
    pub(crate) async fn watch(&self, wakes: &Wakes) {
        let mut looks = interval(LOOK_INTERVAL);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let woken = tokio::select! {
                woken = wakes.woken() => woken,
                _ = looks.tick() => None,
            };
            for logs in self.watched(woken.as_ref()).chunks(LOGS_PER_LOOK) {
                look(&self.parts, logs).await;
            }
        }
    }

    /// The logs that are watched, of some or of all.
    fn watched(&self, of: Option<&BTreeSet<LogId>>) -> Vec<Arc<SharedLog<Q, S>>> {
        let now = Instant::now();
        let logs = self.logs.lock();
        let is_watched = |log: &&Arc<SharedLog<Q, S>>| log.is_watched(now);
        match of {
            Some(of) => {
                of.iter().filter_map(|id| logs.get(id)).filter(is_watched).cloned().collect()
            }
            None => logs.values().filter(is_watched).cloned().collect(),
        }
    }
}

async fn look<Q: Sequencer, S: Store>(parts: &Parts<Q, S>, logs: &[Arc<SharedLog<Q, S>>]) {
    let wanted: Vec<_> = logs.iter().map(|log| bounds_of(log.id)).collect();
    let found = parts.sequencer.find(&wanted).await;
    match parts.troubles.note("look at the logs that fetches wait for", found) {
        Ok(found) => logs.iter().zip(&found).for_each(|(log, found)| log.learn(found.as_ref())),
        Err(_) => sleep(LOOK_PAUSE).await,
    }
}

fn bounds_of(log: LogId) -> Find {
    Find { log, offset: 0, extents_max: 0 }
}

impl<Q: Sequencer, S: Store> ClusterLogs for SharedLogs<Q, S> {
    fn log(&self, topic: TopicId, name: &Arc<str>, partition: i32) -> Arc<dyn ClusterLog> {
        let id = LogId { topic: Uuid::from_bytes(topic.0), partition };
        let mut logs = self.logs.lock();
        let log = logs.entry(id).or_insert_with(|| {
            Arc::new_cyclic(|this| SharedLog {
                id,
                topic: Arc::clone(name),
                this: Weak::clone(this),
                parts: Arc::clone(&self.parts),
                known: Mutex::default(),
                waiters: Arc::default(),
            })
        });
        Arc::clone(log) as Arc<dyn ClusterLog>
    }

    fn delete_topic(&self, topic: TopicId) {
        let topic = Uuid::from_bytes(topic.0);
        let mut logs = self.logs.lock();
        for (_, log) in logs.extract_if(|id, _| id.topic == topic) {
            log.learn(None);
        }
    }

    fn fence(&self, producer: ProducerIdentity) -> Ticket<Vec<(TopicUuid, i32)>, Error> {
        let ProducerIdentity { id, epoch } = producer;
        self.parts.run(async move |parts| parts.fence(id, epoch).await)
    }

    fn open_transactions(&self) -> Ticket<OpenTransactions, Error> {
        self.parts.run(async move |parts| parts.open_transactions().await)
    }

    fn mark(&self, unmarked: &Unmarked, now_ms: i64) -> Ticket<(), Error> {
        let unmarked = unmarked.clone();
        self.parts.run(async move |parts| parts.mark(unmarked, now_ms).await)
    }
}

impl<Q: Sequencer, S: Store> Parts<Q, S> {
    /// Runs a request on the cluster's thread.
    fn run<T, F>(self: &Arc<Self>, request: impl FnOnce(Arc<Self>) -> F) -> Ticket<T, Error>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, Error>> + Send + 'static,
    {
        let task = self.runtime.spawn(request(Arc::clone(self)));
        Box::pin(async move { task.await.unwrap_or(Err(Error::Closed)) })
    }
}

impl<Q, S> fmt::Debug for SharedLog<Q, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SharedLog").field(&self.id).finish()
    }
}

impl<Q: Sequencer, S: Store> SharedLog<Q, S> {
    /// Runs a request on the cluster's thread.
    fn run<T, F>(&self, request: impl FnOnce(Arc<Self>) -> F) -> Ticket<T, Error>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, Error>> + Send + 'static,
    {
        let Some(this) = self.this.upgrade() else { return Box::pin(ready(Err(Error::Closed))) };
        self.parts.run(|_| request(this))
    }

    fn is_watched(&self, now: Instant) -> bool {
        let waiters = self.waiters.lock();
        !waiters.waiting.is_empty() || waiters.watched_until.is_some_and(|until| now < until)
    }

    /// Takes up what the sequencer says; `None` for a log that does not exist.
    fn learn(&self, found: Option<&Found>) {
        let mut known = self.known.lock();
        let before = *known;
        match found {
            Some(found) => {
                // An answer may be older than one that came before it.
                known.start_offset = known.start_offset.max(found.start_offset);
                known.high_watermark = known.high_watermark.max(found.high_watermark);
                known.last_stable_offset = known.last_stable_offset.max(found.last_stable_offset);
                known.leader_epoch = known.leader_epoch.max(found.leader_epoch);
                known.at = Some(Instant::now());
                known.is_deleted = false;
            }
            None => known.is_deleted = true,
        }
        let is_news = known.high_watermark > before.high_watermark
            || known.last_stable_offset > before.last_stable_offset
            || known.is_deleted != before.is_deleted;
        drop(known);
        if is_news {
            self.waiters.lock().waiting.iter().for_each(|waiter| waiter.wake());
        }
    }

    fn learn_records(&self, records: &Records) {
        self.learn(Some(&Found {
            start_offset: records.start_offset,
            high_watermark: records.high_watermark,
            last_stable_offset: records.last_stable_offset,
            has_aborted: false,
            leader: None,
            leader_epoch: records.leader_epoch,
            extents: Vec::new(),
        }));
    }

    async fn refresh(&self) -> Result<(), Error> {
        let found = self.parts.sequencer.find(&[bounds_of(self.id)]).await;
        let found = self.parts.troubles.note("look at a log", found);
        let found = found.map_err(|_away| Error::Closed)?;
        self.learn(found.first().and_then(Option::as_ref));
        match self.known.lock().is_deleted {
            true => Err(Error::Deleted),
            false => Ok(()),
        }
    }

    /// What there is to read at the end, if that is known well enough.
    fn read_at_end(&self, from: i64, isolation: Isolation) -> Option<Read> {
        let now = Instant::now();
        let known = *self.known.lock();
        let is_fresh = known.at.is_some_and(|at| now.duration_since(at) < FRESH_FOR);
        let is_known = is_fresh && !known.is_deleted && self.is_watched(now);
        // Behind an append of this broker, what is stable is known with the next look.
        let is_stable = isolation == Isolation::ReadUncommitted || from == known.last_stable_offset;
        (is_known && is_stable && from == known.high_watermark).then(|| empty_read(from, &known))
    }

    async fn read(
        &self,
        from: i64,
        limits: ReadLimits,
        isolation: Isolation,
    ) -> Result<Read, Error> {
        let bytes_max = limits.bytes_max.min(limits.memory_max);
        if bytes_max == 0 && !limits.min_one {
            self.refresh().await?;
            return Ok(empty_read(from, &self.known.lock()));
        }
        let reader = &self.parts.reader;
        let read = match isolation {
            Isolation::ReadUncommitted => reader.read(self.id, from, bytes_max).await,
            Isolation::ReadCommitted => reader.read_committed(self.id, from, bytes_max).await,
        };
        self.note(&read);
        match read {
            Ok(records) => {
                self.learn_records(&records);
                let known = *self.known.lock();
                Ok(cut(records, empty_read(from, &known), bytes_max, limits.min_one))
            }
            Err(error) => Err(self.read_error(error).await),
        }
    }

    async fn read_error(&self, error: moldau_cluster::Error) -> Error {
        match error {
            moldau_cluster::Error::OffsetOutOfRange(_) => {
                if let Err(error) = self.refresh().await {
                    return error;
                }
                let Known { start_offset: start, high_watermark: end, .. } = *self.known.lock();
                Error::OffsetOutOfRange { start, end }
            }
            moldau_cluster::Error::UnknownLog => Error::Deleted,
            _ => Error::Closed,
        }
    }

    /// Lets the log tell of a read that failed, unless its client is at fault.
    fn note<T>(&self, read: &Result<T, moldau_cluster::Error>) {
        use moldau_cluster::Error as Cluster;
        let log = match read {
            Err(Cluster::OffsetOutOfRange(_) | Cluster::UnknownLog) => return,
            Ok(_) | Err(Cluster::Damaged { .. } | Cluster::ObjectMissing(_)) => {
                Some(NamedLog { topic: &self.topic, id: self.id })
            }
            Err(_) => None,
        };
        self.parts.troubles.note_of("read a log", log, read);
    }

    fn appended(
        &self,
        outcome: Outcome,
        delta: i64,
        of: (i16, i32),
    ) -> Result<Appended, AppendError> {
        let placed = |base_offset: i64, start_offset, is_duplicate| {
            let last_offset = base_offset + delta;
            let lsn = Lsn::default();
            Appended { base_offset, last_offset, lsn, is_duplicate, start_offset }
        };
        let (epoch, first_sequence) = of;
        match outcome {
            Outcome::Appended { base_offset, start_offset } => {
                let appended = placed(base_offset, start_offset, false);
                let mut known = self.known.lock();
                known.high_watermark = known.high_watermark.max(appended.last_offset + 1);
                known.start_offset = known.start_offset.max(start_offset);
                drop(known);
                self.waiters.lock().waiting.iter().for_each(|waiter| waiter.wake());
                Ok(appended)
            }
            Outcome::Duplicate { base_offset, start_offset } => {
                Ok(placed(base_offset, start_offset, true))
            }
            Outcome::Refused(Refusal::UnknownTopicOrPartition) => Err(AppendError::Deleted),
            Outcome::Refused(Refusal::OutOfOrderSequenceNumber) => {
                Err(AppendError::OutOfOrderSequence { last_sequence: -1, first_sequence })
            }
            Outcome::Refused(Refusal::InvalidProducerEpoch) => {
                let current = epoch.saturating_add(1);
                Err(AppendError::InvalidProducerEpoch { epoch, current })
            }
            Outcome::Refused(Refusal::InvalidTxnState) => Err(AppendError::InTransaction),
            // No append names a leader epoch.
            Outcome::Refused(Refusal::FencedLeaderEpoch | Refusal::UnknownLeaderEpoch) => {
                Err(AppendError::Away)
            }
        }
    }
}

impl<Q: Sequencer, S: Store> ClusterLog for SharedLog<Q, S> {
    fn append(
        &self,
        batch: &ValidBatch<'_>,
        _leader_epoch: i32,
    ) -> Result<Ticket<Appended, AppendError>, AppendError> {
        let view = batch.view();
        let producer = view.has_producer_id().then(|| ProducerBatch {
            id: view.producer_id(),
            epoch: view.producer_epoch(),
            first_sequence: view.base_sequence(),
            last_sequence: view.last_sequence(),
        });
        let sequence = (view.producer_epoch(), view.base_sequence());
        let delta = view.last_offset_delta();
        let append = AppendBatch {
            log: self.id,
            leader_epoch: ANY_EPOCH,
            offsets_count: delta.saturating_add(1),
            max_timestamp: view.max_timestamp(),
            producer,
            part: if view.is_transactional() { Part::Inside } else { Part::Outside },
            bytes: Bytes::copy_from_slice(view.bytes()),
        };
        // A full queue and a writer that stopped mean the same to producers: send again.
        let pending = self.parts.writer.append(vec![append]).map_err(|_full| AppendError::Away)?;
        let this = self.this.upgrade().ok_or(AppendError::Closed)?;
        Ok(Box::pin(async move {
            let outcomes = pending.outcomes().await;
            let outcomes = this.parts.troubles.note("append to the logs of the cluster", outcomes);
            let outcomes = outcomes.map_err(|_away| AppendError::Away)?;
            let outcome = outcomes.first().copied().ok_or(AppendError::Away)?;
            this.appended(outcome, i64::from(delta), sequence)
        }))
    }

    fn read(&self, from: i64, limits: ReadLimits, isolation: Isolation) -> Ticket<Read, Error> {
        match self.read_at_end(from, isolation) {
            Some(read) => Box::pin(ready(Ok(read))),
            None => self.run(async move |this| this.read(from, limits, isolation).await),
        }
    }

    fn register(&self, waiter: &Arc<Waiter>) -> Box<dyn Any + Send> {
        self.waiters.lock().waiting.push(Arc::clone(waiter));
        Box::new(Registered { waiters: Arc::clone(&self.waiters), waiter: Arc::clone(waiter) })
    }

    fn refresh(&self) -> Ticket<(), Error> {
        self.run(async move |this| this.refresh().await)
    }

    fn bounds(&self) -> Bounds {
        let Known { start_offset, high_watermark, last_stable_offset, .. } = *self.known.lock();
        Bounds { start_offset, high_watermark, last_stable_offset }
    }

    fn end_of_epoch(&self, leader_epoch: i32) -> EpochEnd {
        let known = *self.known.lock();
        match leader_epoch < 0 {
            true => EpochEnd::UNDEFINED,
            // All epochs below the newest have ended where it began, which is not kept.
            false => EpochEnd { leader_epoch, end_offset: known.high_watermark },
        }
    }

    fn bytes(&self) -> u64 {
        0
    }

    fn producers(&self) -> Ticket<Vec<ProducerState>, Error> {
        self.run(async move |this| this.producers().await)
    }

    fn look_up(&self, lookup: TimeLookup) -> Ticket<Option<TimestampOffset>, Error> {
        self.run(async move |this| this.look_up(lookup).await)
    }

    fn delete_records(&self, before: i64) -> Ticket<Trimmed, Error> {
        self.run(async move |this| this.delete_records(before).await)
    }
}

/// What a read of nothing gives.
fn empty_read(from: i64, known: &Known) -> Read {
    Read {
        batches: Vec::new(),
        bytes: 0,
        memory: 0,
        next_offset: from,
        high_watermark: known.high_watermark,
        start_offset: known.start_offset,
        last_stable_offset: known.last_stable_offset,
        aborted: Vec::new(),
    }
}

/// Whole batches within the limit: the range of an object may hold more.
fn cut(records: Records, mut read: Read, bytes_max: usize, min_one: bool) -> Read {
    for range in records.batches {
        let mut taken = 0;
        let mut is_full = false;
        for batch in iter_batches(&range).flatten() {
            let bytes = batch.bytes().len();
            let is_first = min_one && read.bytes + taken == 0;
            if !is_first && read.bytes + taken + bytes > bytes_max {
                is_full = true;
                break;
            }
            taken += bytes;
            read.next_offset = batch.next_offset();
        }
        if taken > 0 {
            read.bytes += taken;
            read.batches.push(range.slice(..taken));
        }
        if is_full {
            break;
        }
    }
    read.memory = read.bytes;
    let is_read =
        |aborted: &&moldau_cluster::AbortedTransaction| aborted.first_offset < read.next_offset;
    let aborted = records.aborted.iter().filter(is_read).map(|aborted| AbortedTransaction {
        producer_id: aborted.producer_id,
        first_offset: aborted.first_offset,
        last_offset: aborted.last_offset,
    });
    read.aborted = aborted.collect();
    read
}

/// Any broker writes to any log: nothing depends on who leads it.
const ANY_EPOCH: i32 = -1;
