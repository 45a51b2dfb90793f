//! What orders the batches of objects, and knows where each offset is.
//!
//! An object of batches gets its offsets with one [`Commit`]. The key of the object is unique: a
//! commit whose answer was lost is asked again with the same key, and gets the first answer. The
//! collector makes the key of an object dead; whichever of the two comes first wins. So neither
//! clocks nor leases decide anything.

use std::fmt;
use std::future::Future;
use std::time::Duration;

use uuid::Uuid;

use crate::Error;

/// Name of an object. It is never used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectKey(pub Uuid);

impl ObjectKey {
    /// A key that nobody else has, and that does not expire.
    #[must_use]
    pub fn fresh() -> Self {
        Self::of_generation(u32::MAX)
    }

    /// A key that nobody else has; see [`Sequencer::generation`].
    #[must_use]
    pub fn of_generation(generation: u32) -> Self {
        let mut bytes = Uuid::new_v4().into_bytes();
        bytes[12..].copy_from_slice(&generation.to_be_bytes());
        Self(uuid::Builder::from_custom_bytes(bytes).into_uuid())
    }

    /// The generation that the key was made in.
    #[must_use]
    pub fn generation(self) -> u32 {
        let [.., a, b, c, d] = self.0.into_bytes();
        u32::from_be_bytes([a, b, c, d])
    }
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A partition of a topic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LogId {
    /// Topic id (KIP-516).
    pub topic: Uuid,
    /// Partition, from 0.
    pub partition: i32,
}

/// Idempotent producer of a batch (KIP-98).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProducerBatch {
    /// Producer id.
    pub id: i64,
    /// Producer epoch.
    pub epoch: i16,
    /// Sequence of the first record.
    pub first_sequence: i32,
    /// Sequence of the last record; it starts again at 0 after `i32::MAX`.
    pub last_sequence: i32,
}

/// What a batch is to a transaction (KIP-98).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Part {
    /// Nothing.
    #[default]
    Outside,
    /// Records of a transaction, which its first batch in the log opens.
    Inside,
    /// The control batch that ends it.
    Marker(Marker),
}

/// The end of a transaction in a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Marker {
    /// Whether its records count.
    pub commits: bool,
    /// A number that is greater for each transaction of the producer, such as the sequence of the
    /// frame that decided it. A marker that comes twice, or late, then ends no later transaction.
    /// -1 to end whichever is open.
    pub decision: i64,
}

/// One batch of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BatchEntry {
    /// Where it is appended.
    pub log: LogId,
    /// The leader epoch that the log must have, or -1 for any.
    pub leader_epoch: i32,
    /// First byte in the object.
    pub position: i64,
    /// Bytes.
    pub size: i32,
    /// Number of offsets: last offset delta + 1.
    pub offsets_count: i32,
    /// Greatest timestamp in ms, or -1.
    pub max_timestamp: i64,
    /// None for a producer that is not idempotent. The sequences of a marker mean nothing.
    pub producer: Option<ProducerBatch>,
    /// What it is to a transaction of the producer.
    pub part: Part,
}

/// An object whose batches are appended together.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Commit {
    /// The object.
    pub key: ObjectKey,
    /// In the order of the object. Each log gets its batches in this order.
    pub batches: Vec<BatchEntry>,
}

/// What became of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Outcome {
    /// It is in the log.
    Appended {
        /// Offset of its first record.
        base_offset: i64,
        /// Start offset of the log.
        start_offset: i64,
    },
    /// The log holds it already, from an earlier send.
    Duplicate {
        /// Offset that it got the first time.
        base_offset: i64,
        /// Start offset of the log.
        start_offset: i64,
    },
    /// It is not in the log.
    Refused(Refusal),
}

/// Why a batch was not appended. The names are those of Kafka's errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Refusal {
    /// `UNKNOWN_TOPIC_OR_PARTITION`.
    UnknownTopicOrPartition,
    /// `OUT_OF_ORDER_SEQUENCE_NUMBER`.
    OutOfOrderSequenceNumber,
    /// `INVALID_PRODUCER_EPOCH`.
    InvalidProducerEpoch,
    /// `INVALID_TXN_STATE`: the producer has a transaction open.
    InvalidTxnState,
    /// `FENCED_LEADER_EPOCH`.
    FencedLeaderEpoch,
    /// `UNKNOWN_LEADER_EPOCH`.
    UnknownLeaderEpoch,
}

/// A byte range of an object: batches of one log that follow one another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Extent {
    /// First offset.
    pub base_offset: i64,
    /// Last offset.
    pub last_offset: i64,
    /// The object.
    pub object: ObjectKey,
    /// First byte in the object.
    pub position: i64,
    /// Bytes.
    pub size: i32,
    /// Leader epoch of all its batches.
    pub leader_epoch: i32,
    /// Whether the batches hold their offsets. Otherwise they are numbered from `base_offset`.
    pub sorted: bool,
    /// Greatest timestamp in ms, or -1.
    pub max_timestamp: i64,
}

/// Where an offset of a log is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Find {
    /// The log.
    pub log: LogId,
    /// First offset that is wanted.
    pub offset: i64,
    /// Most extents in the answer.
    pub extents_max: i64,
}

/// State of a log, and the extents from an offset on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// First offset that can be read.
    pub start_offset: i64,
    /// Offset behind the last record.
    pub high_watermark: i64,
    /// Offset before which every transaction has ended.
    pub last_stable_offset: i64,
    /// Whether an aborted transaction ends at the wanted offset or behind.
    pub has_aborted: bool,
    /// Broker that leads the log, if it was moved to one.
    pub leader: Option<i32>,
    /// Leader epoch.
    pub leader_epoch: i32,
    /// In order of offsets. The first contains the wanted offset, or begins behind it if compaction
    /// removed that. Empty unless `start_offset <= offset < high_watermark`.
    pub extents: Vec<Extent>,
}

/// A transaction of a log that was aborted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct AbortedTransaction {
    /// Whose batches they are.
    pub producer_id: i64,
    /// Offset of the first record.
    pub first_offset: i64,
    /// Offset of the marker.
    pub last_offset: i64,
}

/// A transaction that is open in a log. They are in order of the producers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OpenTransaction {
    /// Who began it.
    pub producer_id: i64,
    /// Where.
    pub log: LogId,
}

/// A producer as a log knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogProducer {
    /// Producer id.
    pub id: i64,
    /// Its newest epoch.
    pub epoch: i16,
    /// Of its last batch; -1 where its last transaction took it along.
    pub last_sequence: i32,
    /// Of its last batch, in ms.
    pub last_timestamp: i64,
    /// First offset of its open transaction.
    pub transaction_start: Option<i64>,
}

/// A producer in a log. They are in order of the logs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProducerPlace {
    /// The log.
    pub log: LogId,
    /// Producer id.
    pub producer_id: i64,
}

/// What [`Sequencer::expire_producers`] has done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExpiredProducers {
    /// The last one that was looked at; none if none is left.
    pub last: Option<ProducerPlace>,
    /// How many were forgotten.
    pub forgotten: i64,
}

/// What a log keeps. `None` is no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// Extents with only older records go, in ms.
    pub before_timestamp: Option<i64>,
    /// Extents go while at least this many bytes stay.
    pub bytes: Option<i64>,
}

/// Extents that give way to those of a sorted object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Swap {
    /// The sorted object.
    pub key: ObjectKey,
    /// Extents that go.
    pub sources: Vec<(LogId, Extent)>,
    /// Extents that come. Each ends with the last offset of a source; `object` and `sorted` are set
    /// by the swap.
    pub targets: Vec<(LogId, Extent)>,
}

/// A topic.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Topic {
    /// Topic id.
    pub id: Uuid,
    /// Name.
    pub name: String,
    /// Number of partitions.
    pub partitions: i32,
}

/// Result of a request to the sequencer.
pub type Answer<T> = Result<T, Error>;

/// Orders batches. Every request is atomic, and durable once answered. Any of them fails with
/// [`Error::SequencerAway`] if there is no answer; it may have taken effect then.
pub trait Sequencer: Send + Sync + 'static {
    /// Appends the batches of an object, and answers for each of them. Asked again with the same
    /// key, it answers as the first time.
    ///
    /// # Errors
    /// [`Error::ObjectDead`]: the collector was first. [`Error::KeyExpired`].
    fn commit(&self, commit: &Commit) -> impl Future<Output = Answer<Vec<Outcome>>> + Send;

    /// Looks up offsets; `None` for a log that does not exist.
    fn find(&self, wanted: &[Find]) -> impl Future<Output = Answer<Vec<Option<Found>>>> + Send;

    /// The first extent that holds a record at or after `timestamp` (ms).
    fn find_time(
        &self,
        log: LogId,
        timestamp: i64,
    ) -> impl Future<Output = Answer<Option<Extent>>> + Send;

    /// The first extent with the greatest timestamp, of those without a record below the start
    /// offset.
    fn find_latest(&self, log: LogId) -> impl Future<Output = Answer<Option<Extent>>> + Send;

    /// Aborted transactions with any offset of `from..to`, in order of their first offsets.
    ///
    /// # Errors
    /// [`Error::UnknownLog`]; [`Error::OffsetOutOfRange`] if `from` is below the start offset, as
    /// what ended below it is forgotten.
    fn aborted(
        &self,
        log: LogId,
        from: i64,
        to: i64,
    ) -> impl Future<Output = Answer<Vec<AbortedTransaction>>> + Send;

    /// The idempotent producers of a log, in order of their ids.
    ///
    /// # Errors
    /// [`Error::UnknownLog`].
    fn producers(&self, log: LogId) -> impl Future<Output = Answer<Vec<LogProducer>>> + Send;

    /// Looks at up to `producers_max` producers of logs behind `after`. A log forgets one whose
    /// last batch was appended at least `age` ago and that has no transaction open there: it takes
    /// the next batch of it with any sequence. The clock is that of the sequencer.
    fn expire_producers(
        &self,
        after: Option<ProducerPlace>,
        age: Duration,
        producers_max: i32,
    ) -> impl Future<Output = Answer<ExpiredProducers>> + Send;

    /// From here on the producer opens no transaction in any log with an epoch below this one.
    /// Returns the logs in which it has one open, so none is left out.
    fn fence(
        &self,
        producer_id: i64,
        epoch: i16,
    ) -> impl Future<Output = Answer<Vec<LogId>>> + Send;

    /// Producers of which [`Sequencer::fence`] was asked, or whose markers a log forgot: in order,
    /// from the one behind `after` on.
    fn fences(
        &self,
        after: Option<i64>,
        producers_max: i64,
    ) -> impl Future<Output = Answer<Vec<i64>>> + Send;

    /// Forgets the fences of producers. What comes late may open a transaction of them from here
    /// on, and end it.
    fn remove_fences(&self, producers: &[i64]) -> impl Future<Output = Answer<()>> + Send;

    /// Transactions that are open, in order, from the one behind `after` on.
    fn open_transactions(
        &self,
        after: Option<OpenTransaction>,
        transactions_max: i64,
    ) -> impl Future<Output = Answer<Vec<OpenTransaction>>> + Send;

    /// Bytes of the batches from the extent with the start offset on, as they were sent; `None` for
    /// a log that does not exist.
    fn sizes(&self, logs: &[LogId]) -> impl Future<Output = Answer<Vec<Option<i64>>>> + Send;

    /// Moves the start offset up (DeleteRecords; -1 for the high watermark). Returns it.
    ///
    /// # Errors
    /// [`Error::UnknownLog`]; [`Error::OffsetOutOfRange`] beyond the high watermark.
    fn trim(&self, log: LogId, before: i64) -> impl Future<Output = Answer<i64>> + Send;

    /// Moves the start offset up to what is kept, but not above the last stable offset. Returns it.
    ///
    /// # Errors
    /// [`Error::UnknownLog`] for a log of a deleted topic.
    fn retain(&self, log: LogId, keep: Retention) -> impl Future<Output = Answer<i64>> + Send;

    /// Removes up to `extents_max` extents of trimmed logs and deleted topics; whether there was
    /// any work.
    fn sweep(&self, extents_max: i32) -> impl Future<Output = Answer<bool>> + Send;

    /// Extents of the oldest objects whose batches are as they were sent, together for each object.
    /// What waits for the sweep is left out.
    fn unsorted(
        &self,
        objects_max: i64,
    ) -> impl Future<Output = Answer<Vec<(LogId, Extent)>>> + Send;

    /// Replaces extents. Asked again with the same key, it does nothing.
    ///
    /// # Errors
    /// [`Error::SourcesChanged`]; [`Error::ObjectDead`]; [`Error::KeyExpired`].
    fn swap(&self, swap: &Swap) -> impl Future<Output = Answer<()>> + Send;

    /// The generation of keys that are made. A key expires once the second generation behind its
    /// own begins: it cannot be committed for the first time then.
    fn generation(&self) -> impl Future<Output = Answer<u32>> + Send;

    /// Begins a generation if the last one is at least this old.
    fn begin_generation(&self, age: Duration) -> impl Future<Output = Answer<()>> + Send;

    /// Removes up to `keys_max` expired keys whose objects are deleted; whether there was any work.
    fn remove_keys(&self, keys_max: i32) -> impl Future<Output = Answer<bool>> + Send;

    /// Makes those keys dead that no commit has used. Returns the given keys that are dead, in
    /// order: their objects may be deleted.
    fn condemn(&self, keys: &[ObjectKey]) -> impl Future<Output = Answer<Vec<ObjectKey>>> + Send;

    /// Some dead keys whose objects are not deleted.
    fn dead(&self, keys_max: i64) -> impl Future<Output = Answer<Vec<ObjectKey>>> + Send;

    /// Notes that the objects of dead keys are deleted.
    fn forget(&self, keys: &[ObjectKey]) -> impl Future<Output = Answer<()>> + Send;

    /// Makes a topic. Asked again for the same topic, it does nothing.
    ///
    /// # Errors
    /// [`Error::TopicExists`].
    fn create_topic(&self, topic: &Topic) -> impl Future<Output = Answer<()>> + Send;

    /// Gives a topic at least this many partitions. Returns how many it has.
    ///
    /// # Errors
    /// [`Error::UnknownLog`].
    fn grow_topic(&self, id: Uuid, partitions: i32) -> impl Future<Output = Answer<i32>> + Send;

    /// Deletes a topic; its records cannot be read from then on.
    ///
    /// # Errors
    /// [`Error::UnknownLog`].
    fn delete_topic(&self, id: Uuid) -> impl Future<Output = Answer<()>> + Send;

    /// All topics, in order of their ids.
    fn topics(&self) -> impl Future<Output = Answer<Vec<Topic>>> + Send;

    /// Moves logs to a leader, each with a greater epoch. Returns how many exist.
    fn move_logs(&self, logs: &[LogId], leader: i32) -> impl Future<Output = Answer<i32>> + Send;
}
