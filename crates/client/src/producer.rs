//! The producer: records go into a batch per partition, batches into requests per broker.
//!
//! [`Producer::send`] is synchronous and does the work that costs: it encodes the record into its
//! partition's open batch and, when that is full, compresses it. A task sends what is full or has
//! lingered, several requests deep per broker, and gives outcomes to a [`DeliverySink`], one call
//! per batch. Per record, nothing is allocated and no future exists.
//!
//! | module | what it holds |
//! |---|---|
//! | `accumulator` | which batch is sent when, and what follows from its outcome: no I/O |
//! | `in_flight` | how many requests are on their way, and for how long |
//! | `offsets` | offsets of a group as part of a transaction |
//! | `partition` | one partition's batches, sequence numbers included |
//! | `plan` | what is to be done, and what became of it |
//! | `request` | Produce on the wire |
//! | `sender` | the task: connections, metadata, producer ids |
//! | `transaction` | begin, commit and abort |

mod accumulator;
mod ids;
mod in_flight;
mod offsets;
mod partition;
mod plan;
mod request;
mod sender;
mod transaction;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use moldau_records::{Compression, HeaderView};
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use crate::cluster::Cluster;
use crate::{Error, Result};
use accumulator::Accumulator;
use in_flight::RequestClock;

pub use in_flight::RequestTimes;

/// When the broker answers a produce request.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Acks {
    /// Never; the outcome of a batch is unknown.
    None,
    /// When the leader has it.
    Leader,
    /// When all in-sync replicas have it.
    #[default]
    All,
}

impl Acks {
    fn wire(self) -> i16 {
        match self {
            Self::None => 0,
            Self::Leader => 1,
            Self::All => -1,
        }
    }
}

/// Options of a producer. Names and defaults are Kafka's unless said otherwise.
#[derive(Clone, Debug)]
pub struct ProducerOptions {
    /// When the broker answers.
    pub acks: Acks,
    /// Whether retries must not duplicate (`enable.idempotence`); needs [`Acks::All`].
    pub idempotent: bool,
    /// Codec of the batches.
    pub compression: Compression,
    /// How long a batch waits for more records (`linger.ms`); timers are good for about 1 ms.
    pub linger: Duration,
    /// Bytes, before compression, above which a batch is closed (`batch.size`).
    pub batch_bytes: usize,
    /// Bytes of batches in one request (`max.request.size`). A record may not be larger.
    pub request_bytes_max: usize,
    /// Requests in flight per broker (`max.in.flight.requests.per.connection`); an idempotent
    /// producer keeps at most 5, which is how many batches per partition brokers remember.
    pub in_flight_max: usize,
    /// Bytes of records, before compression, that may wait for their outcome (`buffer.memory`).
    pub buffer_bytes_max: usize,
    /// How long a batch is tried, from its first record (`delivery.timeout.ms`).
    pub delivery_timeout: Duration,
    /// How long one request may take (`request.timeout.ms`).
    pub request_timeout: Duration,
    /// The id under which it makes transactions (`transactional.id`), which other producers of
    /// the id are kept out of. Such a producer is idempotent and waits for all replicas.
    pub transactional_id: Option<String>,
    /// After how long the cluster aborts a transaction by itself (`transaction.timeout.ms`).
    pub transaction_timeout: Duration,
}

impl Default for ProducerOptions {
    fn default() -> Self {
        Self {
            acks: Acks::All,
            idempotent: true,
            compression: Compression::None,
            linger: Duration::from_millis(5),
            batch_bytes: 16 * 1024,
            request_bytes_max: 1024 * 1024,
            in_flight_max: 5,
            buffer_bytes_max: 32 * 1024 * 1024,
            delivery_timeout: Duration::from_mins(2),
            request_timeout: Duration::from_secs(30),
            transactional_id: None,
            transaction_timeout: Duration::from_mins(1),
        }
    }
}

/// Batches per partition that brokers remember of an idempotent producer.
const IDEMPOTENT_IN_FLIGHT_MAX: usize = 5;

/// The outcome of one batch.
#[derive(Debug)]
pub struct Delivery<'a> {
    /// Topic name.
    pub topic: &'a Arc<str>,
    /// Partition number.
    pub partition: i32,
    /// Tokens given to [`Producer::send`], in the order of the records.
    pub tokens: &'a [u64],
    /// Offset of the first record; record `i` is at `base_offset + i`. `None` when it is not
    /// known: not delivered, `acks=0`, or found by the broker to be a duplicate of a batch that it
    /// has forgotten the offset of.
    pub base_offset: Option<i64>,
    /// Time of the append in ms since 1970, for topics that stamp records so.
    pub log_append_time_ms: Option<i64>,
    /// Why the batch was not delivered, or is not known to be.
    pub error: Option<&'a Error>,
}

/// Takes the outcomes. Called on the tasks of connections, so it must not block.
pub trait DeliverySink: Send + Sync + 'static {
    /// Takes the outcome of one batch; each record sent is in exactly one of them.
    fn delivered(&self, delivery: &Delivery<'_>);
}

impl<F: Fn(&Delivery<'_>) + Send + Sync + 'static> DeliverySink for F {
    fn delivered(&self, delivery: &Delivery<'_>) {
        self(delivery);
    }
}

/// A partition that records are sent to; from [`Producer::partition`].
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct PartitionHandle(usize);

/// A record to be sent.
#[derive(Clone, Copy, Debug)]
pub struct Record<'a> {
    /// Comes back in the [`Delivery`].
    pub token: u64,
    /// CreateTime in ms since 1970.
    pub timestamp: i64,
    /// The key; `None` is null.
    pub key: Option<&'a [u8]>,
    /// The value; `None` is null.
    pub value: Option<&'a [u8]>,
    /// Headers in their order.
    pub headers: &'a [HeaderView<'a>],
}

/// Sends records to partitions chosen by the caller.
///
/// Dropping it abandons what was not delivered, without a report; [`close`](Self::close) waits.
#[derive(Debug)]
pub struct Producer {
    shared: Arc<Shared>,
    task: JoinHandle<()>,
}

struct Shared {
    cluster: Cluster,
    options: ProducerOptions,
    sink: Box<dyn DeliverySink>,
    /// Guards all batches and their state.
    accumulator: Mutex<Accumulator>,
    /// Guards the sums over requests.
    requests: Mutex<RequestClock>,
    /// Wakes the sending task.
    work: Notify,
    /// Wakes those who wait for buffer memory or for a flush.
    settled: Notify,
}

impl Shared {
    /// Gives outcomes to the sink, then wakes tasks that wait for room.
    fn deliver(&self, reports: Vec<plan::Report>) {
        for report in &reports {
            report.deliver(&*self.sink);
        }
        self.lock().recycle(reports);
        self.settled.notify_waiters();
    }
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").field("options", &self.options).finish_non_exhaustive()
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Accumulator> {
        self.accumulator.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn requests(&self) -> MutexGuard<'_, RequestClock> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Producer {
    /// Starts a producer; an idempotent one gets its id before this returns. Must be called in a
    /// tokio runtime, which then runs the sending task.
    ///
    /// # Errors
    /// No broker gives a producer id.
    pub async fn start(
        cluster: &Cluster,
        mut options: ProducerOptions,
        sink: impl DeliverySink,
    ) -> Result<Self> {
        options.in_flight_max = options.in_flight_max.max(1);
        if options.transactional_id.is_some() {
            (options.idempotent, options.acks) = (true, Acks::All);
        }
        options.idempotent &= options.acks == Acks::All;
        let mut accumulator = Accumulator::new(options.clone(), cluster.options().clone());
        if options.idempotent {
            options.in_flight_max = options.in_flight_max.min(IDEMPOTENT_IN_FLIGHT_MAX);
            accumulator = Accumulator::new(options.clone(), cluster.options().clone());
            let (id, epoch) = ids::producer_id(cluster, &options, None).await?;
            accumulator.set_producer_id(id, epoch);
        }
        let requests = RequestClock::new(options.in_flight_max, Instant::now());
        let shared = Arc::new(Shared {
            cluster: cluster.clone(),
            requests: Mutex::new(requests),
            options,
            sink: Box::new(sink),
            accumulator: Mutex::new(accumulator),
            work: Notify::new(),
            settled: Notify::new(),
        });
        let task = tokio::spawn(sender::run(Arc::clone(&shared)));
        Ok(Self { shared, task })
    }

    /// A handle for sending to one partition. Ask once and keep it.
    ///
    /// # Errors
    /// The topic or partition does not exist, or the cluster does not answer.
    pub async fn partition(&self, topic: &str, partition: i32) -> Result<PartitionHandle> {
        let known = self.shared.cluster.topic(topic).await?;
        if !known.has_partition(partition) {
            let name = format!("{topic}-{partition}").into();
            return Err(Error::UnknownTopicOrPartition { name });
        }
        Ok(PartitionHandle(self.shared.lock().partition(&known.topic, partition)))
    }

    /// Puts a record into its partition's batch. Its outcome goes to the sink.
    ///
    /// # Errors
    /// [`Error::BufferFull`]: wait with [`room_for`](Self::room_for) and send again.
    /// [`Error::RecordTooLarge`], [`Error::Records`]: the record can never be sent.
    /// [`Error::NoTransaction`], [`Error::Closed`]. The sink hears nothing of a record that was
    /// refused.
    #[inline]
    pub fn send(&self, partition: PartitionHandle, record: &Record<'_>) -> Result<()> {
        let wake = self.shared.lock().append(partition.0, record)?;
        if wake {
            self.shared.work.notify_one();
        }
        Ok(())
    }

    /// Ends the open batch of a partition, which is then sent without lingering: for callers that
    /// decide themselves what makes a batch.
    ///
    /// # Errors
    /// [`Error::Records`]: the batch cannot be compressed, and its records are reported so later.
    pub fn seal(&self, partition: PartitionHandle) -> Result<()> {
        self.shared.lock().seal(partition.0)?;
        self.shared.work.notify_one();
        Ok(())
    }

    /// Produce requests made so far, retries included.
    #[must_use]
    pub fn requests_made(&self) -> u64 {
        self.shared.lock().requests_made()
    }

    /// Counters of its requests so far.
    #[must_use]
    pub fn request_times(&self) -> RequestTimes {
        self.shared.requests().read(Instant::now())
    }

    /// Waits until `bytes` more of records and of the batches around them fit the buffer.
    pub async fn room(&self, bytes: usize) {
        self.settled(|accumulator| accumulator.has_room(bytes)).await;
    }

    /// Waits until there is room for a record: one that is sent next is not refused for want of it.
    pub async fn room_for(&self, record: &Record<'_>) {
        self.room(Accumulator::takes(record)).await;
    }

    /// Sends without lingering what is there, and waits until all of it has an outcome.
    pub async fn flush(&self) {
        self.shared.lock().begin_flush();
        self.shared.work.notify_one();
        self.settled(|accumulator| accumulator.is_idle()).await;
        self.shared.lock().end_flush();
    }

    /// Refuses further records, waits until all have an outcome and ends the task.
    pub async fn close(self) {
        self.shared.lock().refuse_records();
        self.flush().await;
    }

    /// Bytes of records whose outcome is not known yet.
    #[must_use]
    pub fn buffered_bytes(&self) -> usize {
        self.shared.lock().buffered_bytes()
    }

    async fn settled(&self, condition: impl Fn(&Accumulator) -> bool) {
        loop {
            let settled = self.shared.settled.notified();
            tokio::pin!(settled);
            // Registers before the condition is read, so that no change is missed.
            settled.as_mut().enable();
            if condition(&self.shared.lock()) {
                return;
            }
            settled.await;
        }
    }
}

impl Drop for Producer {
    fn drop(&mut self) {
        self.task.abort();
    }
}
