//! Appends: batches are collected in one object, which is put and committed.
//!
//! Objects are put side by side, and committed in the order in which they were collected, so the
//! requests of a connection are appended in its order. An answer that is lost is asked for again
//! with the same key. If the time for that is over, the appends fail; the object may still be
//! committed.

mod commits;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until};

use crate::Error;
use crate::durations::Durations;
use crate::object::ObjectBuilder;
use crate::sequencer::{Answer, BatchEntry, LogId, Outcome, Part, ProducerBatch, Sequencer};
use crate::store::Store;
use crate::wakes::Wakes;

use self::commits::{Commits, Sealed, Uploaded};

/// When objects are written, and how much waits.
#[derive(Debug, Clone, Copy)]
pub struct WriterOptions {
    /// Time from the first batch of an object to its PUT, 10 ms to 1 s.
    pub collect: Duration,
    /// An object of this many bytes is put at once.
    pub object_bytes: usize,
    /// Objects that are put at a time.
    pub objects_in_flight: usize,
    /// Bytes of batches without an answer; appends beyond are refused.
    pub queue_bytes_max: usize,
    /// Appends fail if an object is not committed in this time.
    pub timeout: Duration,
}

impl Default for WriterOptions {
    fn default() -> Self {
        Self {
            collect: Duration::from_millis(250),
            object_bytes: 8 << 20,
            objects_in_flight: 8,
            queue_bytes_max: 128 << 20,
            timeout: Duration::from_secs(30),
        }
    }
}

/// A batch of an append. The caller has validated it.
#[derive(Debug, Clone)]
pub struct AppendBatch {
    /// Where it is appended.
    pub log: LogId,
    /// The leader epoch that the log must have, or -1 for any.
    pub leader_epoch: i32,
    /// Number of offsets: last offset delta + 1.
    pub offsets_count: i32,
    /// Greatest timestamp in ms, or -1.
    pub max_timestamp: i64,
    /// None for a producer that is not idempotent.
    pub producer: Option<ProducerBatch>,
    /// What it is to a transaction of the producer.
    pub part: Part,
    /// The batch.
    pub bytes: Bytes,
}

/// Answer of an append that is in the queue.
#[derive(Debug)]
pub struct Pending(oneshot::Receiver<Answer<Vec<Outcome>>>);

impl Pending {
    /// What became of each batch.
    ///
    /// # Errors
    /// Retriable ones if it is unknown whether the batches were appended, or if they were not as
    /// the store was away; [`Error::Stopped`].
    pub async fn outcomes(self) -> Answer<Vec<Outcome>> {
        self.0.await.unwrap_or(Err(Error::Stopped))
    }
}

/// What is counted of appends.
#[derive(Debug)]
pub struct WriterMetrics {
    /// From the arrival of a batch to the PUT of its object.
    pub collects: Durations,
    /// Of the commits of objects.
    pub commits: Durations,
    /// From the arrival of a batch to its offset.
    pub appends: Durations,
    room: Arc<Semaphore>,
    queue_bytes_max: usize,
}

impl WriterMetrics {
    fn new(queue_bytes_max: usize) -> Self {
        let queue_bytes_max = queue_bytes_max.min(Semaphore::MAX_PERMITS);
        Self {
            collects: Durations::default(),
            commits: Durations::default(),
            appends: Durations::default(),
            room: Arc::new(Semaphore::new(queue_bytes_max)),
            queue_bytes_max,
        }
    }

    /// Bytes of batches without an answer.
    #[must_use]
    pub fn waiting_bytes(&self) -> usize {
        self.queue_bytes_max.saturating_sub(self.room.available_permits())
    }

    /// Their limit.
    #[must_use]
    pub fn waiting_bytes_max(&self) -> usize {
        self.queue_bytes_max
    }
}

/// Appends of one broker.
#[derive(Debug)]
pub struct Writer {
    appends: mpsc::Sender<Append>,
    metrics: Arc<WriterMetrics>,
    tasks: [JoinHandle<()>; 2],
}

#[derive(Debug)]
struct Append {
    batches: Vec<AppendBatch>,
    waiter: Waiter,
}

/// Who waits for the outcomes of some batches of an object.
#[derive(Debug)]
struct Waiter {
    batches_count: usize,
    answer: oneshot::Sender<Answer<Vec<Outcome>>>,
    /// When the batches arrived.
    arrived: Instant,
    /// Room in the queue until the answer.
    _room: OwnedSemaphorePermit,
}

impl Writer {
    /// Starts the tasks of the writer, which announce the logs that they append to.
    ///
    /// # Errors
    /// [`Error::Settings`].
    pub fn start<Q: Sequencer, S: Store>(
        sequencer: Arc<Q>,
        store: Arc<S>,
        wakes: Arc<Wakes>,
        options: WriterOptions,
    ) -> Answer<Self> {
        if !(COLLECT_MIN..=COLLECT_MAX).contains(&options.collect) {
            return Err(Error::Settings("the time to collect is 10 ms to 1 s".into()));
        }
        if options.objects_in_flight == 0 || options.object_bytes > OBJECT_BYTES_MAX {
            return Err(Error::Settings(
                "objects need a size up to 256 MiB, and one in flight".into(),
            ));
        }
        let (appends, queue) = mpsc::channel(APPENDS_MAX);
        let (sealed, order) = mpsc::channel(options.objects_in_flight);
        let metrics = Arc::new(WriterMetrics::new(options.queue_bytes_max));
        let collector = Collector {
            sequencer: sequencer.clone(),
            store: store.clone(),
            options,
            metrics: metrics.clone(),
            sealed,
        };
        let commits =
            Commits { sequencer, store, wakes, metrics: metrics.clone(), timeout: options.timeout };
        let tasks = [tokio::spawn(collector.run(queue)), tokio::spawn(commits.run(order))];
        Ok(Self { appends, metrics, tasks })
    }

    /// What is counted of the appends.
    pub fn metrics(&self) -> &Arc<WriterMetrics> {
        &self.metrics
    }

    /// Queues batches for one object. Appends are made in the order of these calls.
    ///
    /// # Errors
    /// [`Error::QueueFull`]; [`Error::Stopped`].
    pub fn append(&self, batches: Vec<AppendBatch>) -> Answer<Pending> {
        let bytes: usize = batches.iter().map(|batch| batch.bytes.len()).sum();
        let permits = u32::try_from(bytes).map_err(|_| Error::QueueFull)?;
        let room = self.metrics.room.clone().try_acquire_many_owned(permits);
        let room = room.map_err(|_| Error::QueueFull)?;
        let (answer, pending) = oneshot::channel();
        let (batches_count, arrived) = (batches.len(), Instant::now());
        let waiter = Waiter { batches_count, answer, arrived, _room: room };
        self.appends.try_send(Append { batches, waiter }).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => Error::QueueFull,
            mpsc::error::TrySendError::Closed(_) => Error::Stopped,
        })?;
        Ok(Pending(pending))
    }

    /// Answers all appends in the queue, then ends.
    pub async fn stop(self) {
        drop(self.appends);
        for task in self.tasks {
            // A task that panicked has answered its appends with `Stopped`.
            drop(task.await);
        }
    }
}

struct Collector<Q, S> {
    sequencer: Arc<Q>,
    store: Arc<S>,
    options: WriterOptions,
    metrics: Arc<WriterMetrics>,
    sealed: mpsc::Sender<Sealed>,
}

impl<Q: Sequencer, S: Store> Collector<Q, S> {
    async fn run(self, mut queue: mpsc::Receiver<Append>) {
        while let Some(first) = queue.recv().await {
            let end = Instant::now() + self.options.collect;
            let mut open = Open::default();
            open.add(first);
            while open.builder.batches_bytes() < self.options.object_bytes {
                tokio::select! {
                    biased;
                    () = sleep_until(end) => break,
                    append = queue.recv() => match append {
                        Some(append) => open.add(append),
                        None => break,
                    },
                }
            }
            let (object, batches, waiters) = open.seal();
            // Waits while too many objects are in flight.
            let Ok(slot) = self.sealed.reserve().await else { return };
            let now = Instant::now();
            for waiter in &waiters {
                self.metrics.collects.add(now.duration_since(waiter.arrived));
            }
            let deadline = now + self.options.timeout;
            let (sequencer, store) = (self.sequencer.clone(), self.store.clone());
            let upload = Uploaded::start(sequencer, store, object, deadline);
            slot.send(Sealed { upload, batches, waiters, deadline });
        }
    }
}

/// The object that is collected.
#[derive(Default)]
struct Open {
    builder: ObjectBuilder,
    batches: Vec<BatchEntry>,
    waiters: Vec<Waiter>,
}

impl Open {
    fn add(&mut self, append: Append) {
        for batch in append.batches {
            self.batches.push(BatchEntry {
                log: batch.log,
                leader_epoch: batch.leader_epoch,
                position: 0,
                size: i32::try_from(batch.bytes.len()).unwrap_or(i32::MAX),
                offsets_count: batch.offsets_count,
                max_timestamp: batch.max_timestamp,
                producer: batch.producer,
                part: batch.part,
            });
            self.builder.push(batch.log, batch.bytes);
        }
        self.waiters.push(append.waiter);
    }

    fn seal(mut self) -> (Bytes, Vec<BatchEntry>, Vec<Waiter>) {
        let (object, positions) = self.builder.finish();
        for (batch, position) in self.batches.iter_mut().zip(positions) {
            batch.position = position;
        }
        (object, self.batches, self.waiters)
    }
}

const COLLECT_MIN: Duration = Duration::from_millis(10);
const COLLECT_MAX: Duration = Duration::from_secs(1);
/// One append more fits above it, and positions stay below 2 GiB.
const OBJECT_BYTES_MAX: usize = 256 << 20;
/// Appends that wait for their object. Their bytes have a limit of their own.
const APPENDS_MAX: usize = 1 << 16;
