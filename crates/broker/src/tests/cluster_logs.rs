//! Logs of a cluster in memory. Like an object store with a sequencer they answer later: appends
//! wait for an object that takes all of them, offsets are assigned in its order, and what is
//! answered together is answered the last first.

use std::any::Any;
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use bytes::Bytes;
use moldau_coordinator::producer_ids::ProducerIdentity;
use moldau_coordinator::transactions::Unmarked;
use moldau_protocol::Uuid;
use moldau_records::{BatchView, ValidBatch};
use tokio::sync::oneshot;

use crate::logs::{
    AppendError, Appended, Bounds, ClusterLog, ClusterLogs, EpochEnd, Error, Isolation, Lsn,
    OpenTransactions, ProducerState, Read, ReadLimits, Ticket, TimeLookup, TimestampOffset,
    TopicId, Trimmed, Waiter,
};

/// All logs, and what is under way.
#[derive(Default)]
pub(super) struct MemoryLogs {
    logs: Mutex<HashMap<(TopicId, i32), Arc<MemoryLog>>>,
    queue: Arc<Queue>,
}

#[derive(Default)]
struct Queue {
    /// Batches that the next object takes.
    collected: Mutex<Vec<Append>>,
    /// What is still to be answered.
    answers: Mutex<Vec<Answer>>,
}

type Answer = Box<dyn FnOnce() + Send>;

type Append = Box<dyn FnOnce() -> Answer + Send>;

struct MemoryLog {
    this: Weak<MemoryLog>,
    queue: Arc<Queue>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    batches: Vec<Stored>,
    start_offset: i64,
    end_offset: i64,
    /// Of the newest batch of each producer: its epoch, last sequence and base offset.
    producers: HashMap<i64, (i16, i32, i64)>,
    waiters: Vec<Weak<Waiter>>,
    is_deleted: bool,
}

struct Stored {
    base_offset: i64,
    next_offset: i64,
    max_timestamp: i64,
    bytes: Bytes,
}

impl MemoryLogs {
    /// Gives one answer, the youngest, or commits an object where none is owed. Says whether there
    /// was anything to do.
    pub(super) fn step(&self) -> bool {
        let answer = lock(&self.queue.answers).pop();
        if let Some(answer) = answer {
            answer();
            return true;
        }
        self.commit()
    }

    /// Assigns offsets to what was collected; answers are owed from then on.
    pub(super) fn commit(&self) -> bool {
        let collected = std::mem::take(&mut *lock(&self.queue.collected));
        let is_any = !collected.is_empty();
        for append in collected {
            let answer = append();
            lock(&self.queue.answers).push(answer);
        }
        is_any
    }
}

impl Queue {
    /// A ticket for what `act` returns when its turn comes.
    fn later<T: Send + 'static>(
        &self,
        act: impl FnOnce() -> Result<T, Error> + Send + 'static,
    ) -> Ticket<T, Error> {
        let (sender, answer) = oneshot::channel();
        lock(&self.answers).push(Box::new(move || drop(sender.send(act()))));
        Box::pin(async move { answer.await.unwrap_or(Err(Error::Closed)) })
    }
}

impl ClusterLogs for MemoryLogs {
    fn log(&self, topic: TopicId, _name: &Arc<str>, partition: i32) -> Arc<dyn ClusterLog> {
        let mut logs = lock(&self.logs);
        let log = logs.entry((topic, partition)).or_insert_with(|| {
            Arc::new_cyclic(|this| MemoryLog {
                this: Weak::clone(this),
                queue: Arc::clone(&self.queue),
                state: Mutex::default(),
            })
        });
        Arc::clone(log) as Arc<dyn ClusterLog>
    }

    fn delete_topic(&self, topic: TopicId) {
        let mut logs = lock(&self.logs);
        for (_, log) in logs.extract_if(|(of, _), _| *of == topic) {
            let mut state = lock(&log.state);
            state.is_deleted = true;
            state.wake();
        }
    }

    fn fence(&self, _producer: ProducerIdentity) -> Ticket<Vec<(Uuid, i32)>, Error> {
        self.queue.later(|| Ok(Vec::new()))
    }

    fn open_transactions(&self) -> Ticket<OpenTransactions, Error> {
        self.queue.later(|| Ok(OpenTransactions::new()))
    }

    fn mark(&self, _unmarked: &Unmarked, _now_ms: i64) -> Ticket<(), Error> {
        self.queue.later(|| Ok(()))
    }
}

impl MemoryLog {
    /// The log itself, for when its turn comes.
    fn this(&self) -> Arc<MemoryLog> {
        self.this.upgrade().unwrap()
    }
}

impl fmt::Debug for MemoryLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryLog").finish_non_exhaustive()
    }
}

impl ClusterLog for MemoryLog {
    fn append(
        &self,
        batch: &ValidBatch<'_>,
        leader_epoch: i32,
    ) -> Result<Ticket<Appended, AppendError>, AppendError> {
        let (sender, answer) = oneshot::channel();
        let (log, bytes) = (self.this(), batch.view().bytes().to_vec());
        let append = move || {
            let appended = lock(&log.state).append(bytes, leader_epoch);
            Box::new(move || drop(sender.send(appended))) as Answer
        };
        lock(&self.queue.collected).push(Box::new(append));
        Ok(Box::pin(async move { answer.await.unwrap_or(Err(AppendError::Closed)) }))
    }

    fn read(&self, from: i64, limits: ReadLimits, _isolation: Isolation) -> Ticket<Read, Error> {
        let log = self.this();
        self.queue.later(move || lock(&log.state).read(from, limits))
    }

    fn register(&self, waiter: &Arc<Waiter>) -> Box<dyn Any + Send> {
        lock(&self.state).waiters.push(Arc::downgrade(waiter));
        Box::new(Arc::clone(waiter))
    }

    fn refresh(&self) -> Ticket<(), Error> {
        self.queue.later(|| Ok(()))
    }

    fn bounds(&self) -> Bounds {
        let state = lock(&self.state);
        let State { start_offset, end_offset, .. } = *state;
        Bounds { start_offset, high_watermark: end_offset, last_stable_offset: end_offset }
    }

    fn end_of_epoch(&self, leader_epoch: i32) -> EpochEnd {
        EpochEnd { leader_epoch, end_offset: lock(&self.state).end_offset }
    }

    fn bytes(&self) -> u64 {
        lock(&self.state).batches.iter().map(|stored| stored.bytes.len() as u64).sum()
    }

    fn producers(&self) -> Ticket<Vec<ProducerState>, Error> {
        self.queue.later(|| Ok(Vec::new()))
    }

    fn look_up(&self, lookup: TimeLookup) -> Ticket<Option<TimestampOffset>, Error> {
        let log = self.this();
        self.queue.later(move || Ok(lock(&log.state).look_up(lookup)))
    }

    fn delete_records(&self, before: i64) -> Ticket<Trimmed, Error> {
        let log = self.this();
        self.queue.later(move || lock(&log.state).delete_records(before))
    }
}

impl State {
    fn wake(&mut self) {
        self.waiters.retain(|waiter| waiter.upgrade().is_some());
        self.waiters.iter().filter_map(Weak::upgrade).for_each(|waiter| waiter.wake());
    }

    fn append(&mut self, mut bytes: Vec<u8>, leader_epoch: i32) -> Result<Appended, AppendError> {
        if self.is_deleted {
            return Err(AppendError::Deleted);
        }
        let view = BatchView::parse(&bytes).unwrap();
        let (id, epoch) = (view.producer_id(), view.producer_epoch());
        let (first_sequence, last_sequence) = (view.base_sequence(), view.last_sequence());
        let delta = i64::from(view.last_offset_delta());
        let (base_offset, max_timestamp) = (self.end_offset, view.max_timestamp());
        let mut appended = Appended {
            base_offset,
            last_offset: base_offset + delta,
            lsn: Lsn::default(),
            is_duplicate: false,
            start_offset: self.start_offset,
        };
        if view.has_producer_id() {
            let known = self.producers.get(&id).copied();
            if let Some((current, last, at)) = known {
                if epoch < current {
                    return Err(AppendError::InvalidProducerEpoch { epoch, current });
                }
                if epoch == current && last_sequence == last {
                    appended.base_offset = at;
                    appended.last_offset = at + delta;
                    appended.is_duplicate = true;
                    return Ok(appended);
                }
                let last = if epoch == current { last } else { -1 };
                if first_sequence != last + 1 {
                    let last_sequence = last;
                    return Err(AppendError::OutOfOrderSequence { last_sequence, first_sequence });
                }
            }
            self.producers.insert(id, (epoch, last_sequence, base_offset));
        }
        bytes[..8].copy_from_slice(&base_offset.to_be_bytes());
        bytes[12..16].copy_from_slice(&leader_epoch.to_be_bytes());
        let next_offset = base_offset + delta + 1;
        let bytes = bytes.into();
        self.batches.push(Stored { base_offset, next_offset, max_timestamp, bytes });
        self.end_offset = next_offset;
        self.wake();
        Ok(appended)
    }

    fn read(&self, from: i64, limits: ReadLimits) -> Result<Read, Error> {
        if self.is_deleted {
            return Err(Error::Deleted);
        }
        if from < self.start_offset || from > self.end_offset {
            let (start, end) = (self.start_offset, self.end_offset);
            return Err(Error::OffsetOutOfRange { start, end });
        }
        let mut read = Read {
            batches: Vec::new(),
            bytes: 0,
            memory: 0,
            next_offset: from,
            high_watermark: self.end_offset,
            start_offset: self.start_offset,
            last_stable_offset: self.end_offset,
            aborted: Vec::new(),
        };
        for stored in self.batches.iter().filter(|stored| stored.next_offset > from) {
            let is_first = limits.min_one && read.batches.is_empty();
            if !is_first && read.bytes + stored.bytes.len() > limits.bytes_max {
                break;
            }
            read.batches.push(stored.bytes.clone());
            read.bytes += stored.bytes.len();
            read.next_offset = stored.next_offset;
        }
        read.memory = read.bytes;
        Ok(read)
    }

    /// Batches of these tests have one record, so that its place is that of its batch.
    fn look_up(&self, lookup: TimeLookup) -> Option<TimestampOffset> {
        let largest = self.batches.iter().map(|stored| stored.max_timestamp).max()?;
        let timestamp = match lookup {
            TimeLookup::NotBefore(timestamp, _) => timestamp,
            TimeLookup::Largest => largest,
        };
        let mut held = self.batches.iter().filter(|it| it.base_offset >= self.start_offset);
        held.find(|stored| stored.max_timestamp >= timestamp).map(|stored| TimestampOffset {
            offset: stored.base_offset,
            timestamp: stored.max_timestamp,
            leader_epoch: 0,
        })
    }

    fn delete_records(&mut self, before: i64) -> Result<Trimmed, Error> {
        let before = if before == -1 { self.end_offset } else { before };
        if before < 0 || before > self.end_offset {
            let (start, end) = (self.start_offset, self.end_offset);
            return Err(Error::OffsetOutOfRange { start, end });
        }
        self.start_offset = self.start_offset.max(before);
        self.batches.retain(|stored| stored.next_offset > before);
        Ok(Trimmed { start_offset: self.start_offset, lsn: Lsn::default() })
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
