//! The narrow waist: all that the broker asks of the records of partitions.
//!
//! A [`Log`] is either one of this broker's journal or one of a cluster. The journal's is called
//! directly, without a virtual call, an allocation or a wait. A cluster's is a [`ClusterLog`]:
//! other brokers write to it too, so an append has no offset before the cluster's answer, and what
//! a broker knows of a log is as old as its last look. Hence three rules for callers:
//!
//! - An append or a deletion is [`Answered`]: now by the journal, later by a cluster.
//! - Appends to a log get their offsets in the order of the calls; answers come in any order.
//! - Offsets are what this broker knows. Who must know what others wrote calls [`Log::refresh`].
//!
//! A deleted topic's logs are refused by [`Error::Deleted`]. A dropped [`Ticket`] cancels nothing.

use std::any::Any;
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use moldau_coordinator::producer_ids::ProducerIdentity;
use moldau_coordinator::transactions::Unmarked;
use moldau_protocol::Uuid;
use moldau_records::ValidBatch;
pub(crate) use moldau_storage::{
    AbortedTransaction, Admission, AppendError, Appended, EpochEnd, Error, Isolation, Lsn,
    ProducerState, Read, ReadLimits, TimestampOffset, TopicId, Trimmed, Waiter,
};
use moldau_storage::{ReadOutcome, Storage};

/// The logs of all partitions.
#[derive(Clone)]
pub(crate) enum Logs {
    /// Those of this broker's journal: a partition that was never written has none.
    Journal(Storage),
    /// Those of a cluster: every partition has one, as other brokers may have written to it.
    Cluster(Arc<dyn ClusterLogs>),
}

/// The log of one partition.
#[derive(Clone, Debug)]
pub(crate) enum Log {
    Journal(Arc<moldau_storage::Log>),
    Cluster(Arc<dyn ClusterLog>),
}

/// An answer that comes from elsewhere; it is durable.
pub(crate) type Ticket<T, E> = Pin<Box<dyn Future<Output = Result<T, E>> + Send>>;

/// What an append or a deletion gives.
pub(crate) enum Answered<T, E> {
    /// The answer is there, and true once the position in it is durable.
    Now(T),
    /// It comes later.
    Later(Ticket<T, E>),
}

/// What a broker knows of the offsets of a cluster's log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Bounds {
    /// Offset of the first record.
    pub(crate) start_offset: i64,
    /// Offset after the last record.
    pub(crate) high_watermark: i64,
    /// Offset of the first record of a transaction that is open, or the high watermark.
    pub(crate) last_stable_offset: i64,
}

/// What is looked for by time.
#[derive(Clone, Copy, Debug)]
pub(crate) enum TimeLookup {
    /// The first record with at least this timestamp, in ms since 1970, that a reader of this
    /// isolation is to see.
    NotBefore(i64, Isolation),
    /// The first record with the largest timestamp (KIP-734).
    Largest,
}

/// Transactions that are open: ids of their producers, and where they have written.
pub(crate) type OpenTransactions = BTreeMap<i64, Vec<(Uuid, i32)>>;

/// The logs of a cluster.
pub(crate) trait ClusterLogs: Send + Sync {
    /// The log of a partition. The same for each call, until the topic is deleted.
    fn log(&self, topic: TopicId, name: &Arc<str>, partition: i32) -> Arc<dyn ClusterLog>;

    /// Forgets the logs of a topic, which take no further append and serve no read.
    fn delete_topic(&self, topic: TopicId);

    /// From here on the producer opens no transaction with a lower epoch. Tells where one is open.
    fn fence(&self, producer: ProducerIdentity) -> Ticket<Vec<(Uuid, i32)>, Error>;

    /// The transactions that are open.
    fn open_transactions(&self) -> Ticket<OpenTransactions, Error>;

    /// Writes the markers of a decision that are not written yet.
    fn mark(&self, unmarked: &Unmarked, now_ms: i64) -> Ticket<(), Error>;
}

/// The log of one partition of a cluster.
pub(crate) trait ClusterLog: Debug + Send + Sync {
    /// Takes a batch for the next object. The sequence is checked where the offset is assigned.
    ///
    /// # Errors
    /// A batch that can never be stored, or too many that wait. Nothing is appended then.
    fn append(
        &self,
        batch: &ValidBatch<'_>,
        leader_epoch: i32,
    ) -> Result<Ticket<Appended, AppendError>, AppendError>;

    /// Reads batches, as [`Log::read`].
    fn read(&self, from: i64, limits: ReadLimits, isolation: Isolation) -> Ticket<Read, Error>;

    /// Wakes the waiter when the known high watermark moves, until what is returned is dropped.
    fn register(&self, waiter: &Arc<Waiter>) -> Box<dyn Any + Send>;

    /// Learns what other brokers did to the log.
    fn refresh(&self) -> Ticket<(), Error>;

    /// The offsets as they are known.
    fn bounds(&self) -> Bounds;

    /// Where a leader epoch ends, as it is known.
    fn end_of_epoch(&self, leader_epoch: i32) -> EpochEnd;

    /// Bytes of the batches that the log holds, as they are known.
    fn bytes(&self) -> u64;

    /// The producers, as [`Log::producers`].
    fn producers(&self) -> Ticket<Vec<ProducerState>, Error>;

    /// Finds a record by time.
    fn look_up(&self, lookup: TimeLookup) -> Ticket<Option<TimestampOffset>, Error>;

    /// Moves the log start offset, as [`Log::delete_records`].
    fn delete_records(&self, before: i64) -> Ticket<Trimmed, Error>;
}

/// What [`Log::read`] gives.
pub(crate) enum Reading {
    /// The batches, or none if the offset is the high watermark.
    Ready(Read),
    /// They are read from the disk or from elsewhere.
    Pending(PendingRead),
}

/// A read that waits. Resolves with the batches.
pub(crate) enum PendingRead {
    Journal(moldau_storage::PendingRead),
    Cluster { read: Ticket<Read, Error>, memory: usize },
}

/// Keeps a waiter registered with a log until dropped.
pub(crate) enum Registration {
    Journal { _held: moldau_storage::Registration },
    Cluster { _held: Box<dyn Any + Send> },
}

impl Logs {
    /// The log of a partition that is about to be written, or of any partition of a cluster.
    pub(crate) fn log(&self, topic: TopicId, name: &Arc<str>, partition: i32) -> Log {
        match self {
            Self::Journal(storage) => Log::Journal(storage.log(topic, partition)),
            Self::Cluster(logs) => Log::Cluster(logs.log(topic, name, partition)),
        }
    }

    /// Whether only partitions that were written have a log.
    pub(crate) fn begin_with_an_append(&self) -> bool {
        matches!(self, Self::Journal(_))
    }

    /// Deletes a topic's logs, which take no further append and serve no read.
    ///
    /// # Errors
    /// A journal that takes nothing; the logs are gone from memory all the same, and from the disk
    /// when the caller asks again.
    pub(crate) fn delete_topic(&self, topic: TopicId) -> Result<(), AppendError> {
        match self {
            Self::Journal(storage) => storage.delete_topic(topic).map(drop),
            Self::Cluster(logs) => {
                logs.delete_topic(topic);
                Ok(())
            }
        }
    }
}

impl Log {
    /// Appends a batch; its offset is in the answer.
    ///
    /// # Errors
    /// See [`AppendError`]. No offset is assigned then.
    pub(crate) fn append(
        &self,
        batch: &ValidBatch<'_>,
        leader_epoch: i32,
    ) -> Result<Answered<Appended, AppendError>, AppendError> {
        match self {
            Self::Journal(log) => log.append(batch, leader_epoch).map(Answered::Now),
            Self::Cluster(log) => log.append(batch, leader_epoch).map(Answered::Later),
        }
    }

    /// Reads batches from the one that holds `from` on. What is in memory is returned at once, even
    /// if more lies elsewhere.
    ///
    /// # Errors
    /// [`Error::OffsetOutOfRange`] below the log start or above the log end, [`Error::Deleted`],
    /// [`Error::Corrupt`].
    pub(crate) fn read(
        &self,
        from: i64,
        limits: ReadLimits,
        isolation: Isolation,
    ) -> Result<Reading, Error> {
        match self {
            Self::Journal(log) => Ok(match log.read_within(from, limits, isolation)? {
                ReadOutcome::Ready(read) => Reading::Ready(read),
                ReadOutcome::Pending(read) => Reading::Pending(PendingRead::Journal(read)),
            }),
            Self::Cluster(log) => {
                let memory = limits.bytes_max.min(limits.memory_max);
                let read = log.read(from, limits, isolation);
                Ok(Reading::Pending(PendingRead::Cluster { read, memory }))
            }
        }
    }

    /// Registers a waiter that is woken when the high watermark moves, until the registration is
    /// dropped.
    pub(crate) fn register(&self, waiter: &Arc<Waiter>) -> Registration {
        match self {
            Self::Journal(log) => Registration::Journal { _held: log.register(waiter) },
            Self::Cluster(log) => Registration::Cluster { _held: log.register(waiter) },
        }
    }

    /// Learns what other brokers did to the log.
    ///
    /// # Errors
    /// A cluster that does not answer, [`Error::Deleted`].
    pub(crate) async fn refresh(&self) -> Result<(), Error> {
        match self {
            Self::Journal(_) => Ok(()),
            Self::Cluster(log) => log.refresh().await,
        }
    }

    /// Offset of the first record.
    pub(crate) fn start_offset(&self) -> i64 {
        match self {
            Self::Journal(log) => log.start_offset(),
            Self::Cluster(log) => log.bounds().start_offset,
        }
    }

    /// Offset after the last durable record.
    pub(crate) fn high_watermark(&self) -> i64 {
        match self {
            Self::Journal(log) => log.high_watermark(),
            Self::Cluster(log) => log.bounds().high_watermark,
        }
    }

    /// Offset after the last record that a reader of this isolation is to see.
    pub(crate) fn end_for(&self, isolation: Isolation) -> i64 {
        match (self, isolation) {
            (Self::Journal(log), isolation) => log.end_for(isolation),
            (Self::Cluster(log), Isolation::ReadUncommitted) => log.bounds().high_watermark,
            (Self::Cluster(log), Isolation::ReadCommitted) => log.bounds().last_stable_offset,
        }
    }

    /// Where a leader epoch ends, as OffsetForLeaderEpoch asks; the high watermark for the newest.
    pub(crate) fn end_of_epoch(&self, leader_epoch: i32) -> EpochEnd {
        match self {
            Self::Journal(log) => log.end_of_epoch(leader_epoch),
            Self::Cluster(log) => log.end_of_epoch(leader_epoch),
        }
    }

    /// Bytes of the batches that the log holds.
    pub(crate) fn bytes(&self) -> u64 {
        match self {
            Self::Journal(log) => log.bytes(),
            Self::Cluster(log) => log.bytes(),
        }
    }

    /// The producers that the log knows, as DescribeProducers shows them.
    ///
    /// # Errors
    /// As [`Log::refresh`].
    pub(crate) async fn producers(&self) -> Result<Vec<ProducerState>, Error> {
        match self {
            Self::Journal(log) => Ok(log.producers()),
            Self::Cluster(log) => log.producers().await,
        }
    }

    /// Finds a record by time; `None` if there is none.
    ///
    /// # Errors
    /// As [`Log::read`].
    pub(crate) async fn look_up(
        &self,
        lookup: TimeLookup,
    ) -> Result<Option<TimestampOffset>, Error> {
        match (self, lookup) {
            (Self::Journal(log), TimeLookup::NotBefore(timestamp, isolation)) => {
                log.offset_for_timestamp(timestamp, isolation).await
            }
            (Self::Journal(log), TimeLookup::Largest) => log.offset_of_max_timestamp().await,
            (Self::Cluster(log), lookup) => log.look_up(lookup).await,
        }
    }

    /// Moves the log start offset to `before`, or to the high watermark for -1, as DeleteRecords
    /// asks. An offset below the log start changes nothing.
    ///
    /// # Errors
    /// [`Error::OffsetOutOfRange`] above the high watermark, [`Error::Deleted`],
    /// [`Error::DiskFull`], [`Error::Poisoned`].
    pub(crate) fn delete_records(&self, before: i64) -> Result<Answered<Trimmed, Error>, Error> {
        match self {
            Self::Journal(log) => log.delete_records(before).map(Answered::Now),
            Self::Cluster(log) => Ok(Answered::Later(log.delete_records(before))),
        }
    }

    /// The log of the journal, if it is one: what ends a transaction is one frame of the journal.
    pub(crate) fn of_journal(&self) -> Option<&Arc<moldau_storage::Log>> {
        match self {
            Self::Journal(log) => Some(log),
            Self::Cluster(_) => None,
        }
    }
}

impl Reading {
    /// Memory that a read takes, or keeps in use.
    pub(crate) fn memory(&self) -> usize {
        match self {
            Self::Ready(read) => read.memory,
            Self::Pending(read) => read.memory(),
        }
    }
}

impl PendingRead {
    /// Memory that is in use until the batches are there.
    pub(crate) fn memory(&self) -> usize {
        match self {
            Self::Journal(read) => read.memory(),
            Self::Cluster { memory, .. } => *memory,
        }
    }
}

impl Future for PendingRead {
    type Output = Result<Read, Error>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match self.get_mut() {
            Self::Journal(read) => Pin::new(read).poll(context),
            Self::Cluster { read, .. } => read.as_mut().poll(context),
        }
    }
}
