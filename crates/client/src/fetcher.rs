//! The fetcher: assigned partitions are read ahead of the caller, one fetch per broker at a time.
//!
//! A broker's next fetch is sent as soon as the answer to the last has been looked through for its
//! last offsets, so the wire works while the caller does. What has been fetched and not yet taken
//! is bounded in bytes. An answer is read once into one shared buffer; [`Fetched`] lends the
//! batches in it, and nothing is allocated per record.
//!
//! | module | what it holds |
//! |---|---|
//! | `positions` | assigned partitions, their positions and what is to be fetched: no I/O |
//! | `session` | incremental fetch sessions (KIP-227): no I/O |
//! | `request` | Fetch on the wire |
//! | `unpacked` | records as views that stay valid together |
//! | `tasks` | one task per broker, one for offsets and leaders |

mod aborted;
mod positions;
mod request;
mod session;
mod tasks;
mod unpacked;

use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use moldau_records::{BatchView, Decompressor, RecordView, iter_batches};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::task::JoinHandle;

use crate::cluster::Cluster;
use crate::metadata::TopicRef;
use crate::offsets::TopicPartition;
use crate::{Error, Result};
use aborted::Aborted;
use positions::Positions;

pub use unpacked::{RecordViews, UnpackPool, Unpacked};

/// Fetched partitions that wait to be taken; their bytes are bounded apart.
const FETCHED_MAX: usize = 1024;

/// Where to begin reading a partition.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Start {
    /// The oldest record.
    Earliest,
    /// Records appended from now on.
    Latest,
    /// This offset.
    Offset(i64),
    /// The first record whose timestamp is at or after this, in ms since 1970; the end if there is
    /// none.
    Timestamp(i64),
}

/// What to do when a position lies outside the log.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Reset {
    /// Go on at the oldest record.
    #[default]
    Earliest,
    /// Go on at the end.
    Latest,
    /// Give the caller an error, and stop reading the partition.
    Fail,
}

/// Which records of transactions are read (`isolation.level`).
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Isolation {
    /// All that are durable.
    #[default]
    ReadUncommitted,
    /// Those of committed transactions, none beyond the first transaction that is open.
    ReadCommitted,
}

/// Options of a fetcher. Names and defaults are Kafka's unless said otherwise.
#[derive(Clone, Debug)]
pub struct FetcherOptions {
    /// How long the broker may wait for `min_bytes` (`fetch.max.wait.ms`).
    pub max_wait: Duration,
    /// Bytes that end the wait (`fetch.min.bytes`).
    pub min_bytes: i32,
    /// Bytes of one answer (`fetch.max.bytes`).
    pub max_bytes: i32,
    /// Bytes of one partition in one answer (`max.partition.fetch.bytes`).
    pub partition_bytes_max: i32,
    /// Bytes fetched and not yet dropped by the caller, above which nothing more is fetched. One
    /// answer per broker may come on top. Not in Kafka.
    pub buffer_bytes_max: usize,
    /// What to do when a position lies outside the log (`auto.offset.reset`).
    pub reset: Reset,
    /// Which records of transactions are read.
    pub isolation: Isolation,
}

impl Default for FetcherOptions {
    fn default() -> Self {
        Self {
            max_wait: Duration::from_millis(500),
            min_bytes: 1,
            max_bytes: 50 * 1024 * 1024,
            partition_bytes_max: 1024 * 1024,
            buffer_bytes_max: 64 * 1024 * 1024,
            reset: Reset::Earliest,
            isolation: Isolation::ReadUncommitted,
        }
    }
}

/// Whole batches of one partition, in order.
#[derive(Debug)]
pub struct Fetched {
    /// Topic name and id.
    pub topic: TopicRef,
    /// Partition number.
    pub partition: i32,
    /// First offset that was asked for. The first batch may begin before it, and its records up
    /// to here have been seen already.
    pub position: i64,
    /// Offset after the last batch, from which reading goes on.
    pub next_position: i64,
    /// Offset after the last record that is durable.
    pub high_watermark: i64,
    /// Offset of the oldest record.
    pub log_start_offset: i64,
    /// The batches, as the broker stores them.
    pub bytes: Bytes,
    /// The transactions in it that were aborted; none where all records are read.
    aborted: Aborted,
    generation: u64,
    /// Its share of the buffer.
    room: Option<OwnedSemaphorePermit>,
}

/// A share of a fetcher's buffer, which is given back when it is dropped.
#[derive(Debug)]
pub struct Room {
    _permit: Option<OwnedSemaphorePermit>,
}

impl Fetched {
    /// Takes over its share of the fetcher's buffer, for a caller that keeps parts of it for long
    /// and bounds them itself.
    #[must_use]
    pub fn take_room(&mut self) -> Room {
        Room { _permit: self.room.take() }
    }

    /// The batches, control batches of transactions included, those of aborted transactions left
    /// out where committed records alone are read. Their CRC is not checked yet.
    pub fn batches(&self) -> impl Iterator<Item = Result<BatchView<'_>>> {
        let mut aborted = self.aborted.clone();
        iter_batches(&self.bytes).map(|batch| batch.map_err(Error::from)).filter(move |batch| {
            let is_aborted = batch.as_ref().is_ok_and(|batch| aborted.covers(batch));
            !is_aborted
        })
    }

    /// Gives each record from [`position`](Self::position) on to `take`, after its batch's CRC was
    /// checked. Control batches are left out. A batch may unpack to at most `bytes_max` bytes.
    ///
    /// # Errors
    /// A batch is damaged or too large.
    pub fn for_each_record(
        &self,
        decompressor: &mut Decompressor,
        bytes_max: usize,
        mut take: impl FnMut(&RecordView<'_>),
    ) -> Result<()> {
        for batch in self.batches() {
            let batch = batch?;
            batch.check_crc()?;
            if batch.is_control() {
                continue;
            }
            for record in batch.records(decompressor, bytes_max)? {
                let record = record?;
                if record.offset() >= self.position {
                    take(&record);
                }
            }
        }
        Ok(())
    }

    /// Topic and partition number as one key.
    #[must_use]
    pub fn topic_partition(&self) -> TopicPartition {
        TopicPartition { topic: self.topic.name.clone(), partition: self.partition }
    }
}

/// Reads assigned partitions. Dropping it ends its tasks.
#[derive(Debug)]
pub struct Fetcher {
    shared: Arc<Shared>,
    fetched: mpsc::Receiver<Result<Fetched>>,
    task: JoinHandle<()>,
}

#[derive(Debug)]
struct Shared {
    cluster: Cluster,
    options: FetcherOptions,
    /// Guards the assigned partitions.
    positions: Mutex<Positions>,
    /// Wakes the tasks when positions, pauses or leaders change.
    changed: Notify,
    fetched: mpsc::Sender<Result<Fetched>>,
    room: Arc<Semaphore>,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Positions> {
        self.positions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn changed(&self) {
        self.changed.notify_waiters();
    }
}

impl Fetcher {
    /// Starts a fetcher without partitions. Must be called in a tokio runtime, which then runs
    /// its tasks.
    #[must_use]
    pub fn start(cluster: &Cluster, options: FetcherOptions) -> Self {
        let (sender, fetched) = mpsc::channel(FETCHED_MAX);
        let room = options.buffer_bytes_max.clamp(1, tasks::ROOM_MAX);
        let shared = Arc::new(Shared {
            cluster: cluster.clone(),
            options,
            positions: Mutex::default(),
            changed: Notify::new(),
            fetched: sender,
            room: Arc::new(Semaphore::new(room)),
        });
        let task = tokio::spawn(tasks::direct(Arc::clone(&shared)));
        Self { shared, fetched, task }
    }

    /// Begins to read a partition, or moves to `start` if it is being read.
    ///
    /// # Errors
    /// The topic or partition does not exist, or the cluster does not answer.
    pub async fn assign(&self, topic: &str, partition: i32, start: Start) -> Result<()> {
        let known = self.shared.cluster.topic(topic).await?;
        if !known.has_partition(partition) {
            let name = format!("{topic}-{partition}").into();
            return Err(Error::UnknownTopicOrPartition { name });
        }
        self.shared.lock().assign(known.topic.clone(), partition, start);
        self.shared.changed();
        Ok(())
    }

    /// Moves a partition that is being read to `start`; what was fetched of it is dropped, and a
    /// pause stays.
    ///
    /// # Errors
    /// [`Error::NotHeld`] for a partition that is not assigned.
    pub fn seek(&self, partition: &TopicPartition, start: Start) -> Result<()> {
        let is_assigned = self.shared.lock().seek(partition, start);
        if !is_assigned {
            let TopicPartition { topic, partition } = partition.clone();
            return Err(Error::NotHeld { topic, partition });
        }
        self.shared.changed();
        Ok(())
    }

    /// Stops reading a partition; what was fetched of it is dropped.
    pub fn unassign(&self, partition: &TopicPartition) {
        self.shared.lock().unassign(partition);
        self.shared.changed();
    }

    /// Pauses or resumes the fetching of a partition; what was fetched still comes.
    pub fn set_paused(&self, partition: &TopicPartition, paused: bool) {
        self.shared.lock().set_paused(partition, paused);
        self.shared.changed();
    }

    /// Whether a partition is being read: it was assigned, and no error has ended that.
    #[must_use]
    pub fn is_assigned(&self, partition: &TopicPartition) -> bool {
        self.shared.lock().is_assigned(partition)
    }

    /// The next batches of any partition. Cancelling the future loses nothing.
    ///
    /// # Errors
    /// A partition cannot be read any further: it is no longer assigned then. Or
    /// [`Error::is_unauthenticated`]: a broker cannot be read from, which comes again for as long
    /// as that is so. Whatever may pass is tried again without an error here.
    pub async fn next(&mut self) -> Result<Fetched> {
        poll_fn(|context| self.poll_next(context)).await
    }

    /// As [`next`](Self::next), for a caller that waits for several fetchers at once.
    ///
    /// # Errors
    /// As [`next`](Self::next).
    pub fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Result<Fetched>> {
        loop {
            let fetched = ready!(self.fetched.poll_recv(context)).ok_or(Error::Closed)??;
            if self.shared.lock().is_valid(&fetched) {
                return Poll::Ready(Ok(fetched));
            }
        }
    }

    /// As [`next`](Self::next), without waiting; `None` if nothing is there.
    ///
    /// # Errors
    /// As [`next`](Self::next).
    pub fn try_next(&mut self) -> Result<Option<Fetched>> {
        while let Ok(fetched) = self.fetched.try_recv() {
            let fetched = fetched?;
            if self.shared.lock().is_valid(&fetched) {
                return Ok(Some(fetched));
            }
        }
        Ok(None)
    }
}

impl Drop for Fetcher {
    fn drop(&mut self) {
        self.task.abort();
    }
}

#[cfg(test)]
mod tests;
