//! Errors of the cluster's storage, grouped by what the caller can do about them.

use crate::ObjectKey;

/// Why the sequencer or the store did not do what was asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Database or network: no answer, so the request may have taken effect. Ask again; a commit
    /// with the same key.
    #[error("no answer from the database: {0}")]
    SequencerAway(String),
    /// Store or network: no answer, so the object may exist. Ask again.
    #[error("no answer from the object store: {0}")]
    StoreAway(String),
    /// The object was collected as garbage before this commit: nothing of it was appended.
    #[error("object {0} was collected before its commit")]
    ObjectDead(ObjectKey),
    /// The key is too old to be committed. An earlier request of it may have appended the batches.
    #[error("the key of object {0} has expired")]
    KeyExpired(ObjectKey),
    /// The store has no such object, or no longer: look up the offset again.
    #[error("the store has no object {0}")]
    ObjectMissing(ObjectKey),
    /// The store has an object of this key.
    #[error("the store has an object {0} already")]
    ObjectExists(ObjectKey),
    /// Client: no such topic or partition.
    #[error("no such topic or partition")]
    UnknownLog,
    /// Client: the offset is below the start offset or above the high watermark.
    #[error("offset {0} is out of range")]
    OffsetOutOfRange(i64),
    /// Client: a topic of this name exists.
    #[error("topic {0} exists")]
    TopicExists(String),
    /// Another broker has replaced or removed the sources: plan again.
    #[error("the sources of the swap have changed")]
    SourcesChanged,
    /// Another broker owns the log of frames: follow it.
    #[error("epoch {by} of the log of frames has begun")]
    Fenced {
        /// The newest epoch.
        by: i64,
    },
    /// The log of frames has another frame in this place, or none before it: follow it.
    #[error("the log of frames goes on with {next}")]
    OutOfSequence {
        /// Sequence behind its last frame.
        next: i64,
    },
    /// Frames gave way to a snapshot: load that.
    #[error("a snapshot took the place of the frames below {by}")]
    FramesReplaced {
        /// Sequence of the first frame that is left.
        by: i64,
    },
    /// Operator: a broker of this id is alive, or was until some seconds ago: register later.
    #[error("a broker with the id {0} is alive, and no two brokers have the same id")]
    BrokerIdTaken(i32),
    /// Operator: the schema of the database does not fit this program.
    #[error("the database has schema version {found}, this program needs {needed}")]
    SchemaVersion {
        /// Version in the database, 0 for none.
        found: i32,
        /// Version that this program knows.
        needed: i32,
    },
    /// Operator: the server of the database is older than the schema needs.
    #[error("PostgreSQL {0} is too old: a cluster needs 15 or later")]
    DatabaseTooOld(String),
    /// Operator: the database does not let this program in, or not do what it must.
    #[error("the database refuses: {0}")]
    DatabaseRefused(String),
    /// Operator: the settings of the database or of the store are wrong.
    #[error("{0}")]
    Settings(String),
    /// Operator: other brokers of the cluster keep their objects elsewhere.
    #[error("the objects of this cluster are in bucket {bucket}, prefix \"{prefix}\"")]
    OtherStore {
        /// Bucket of the cluster.
        bucket: String,
        /// Prefix of the cluster.
        prefix: String,
    },
    /// Operator: the objects of this prefix are those of another cluster.
    #[error(
        "bucket {bucket}, prefix \"{prefix}\" belongs to the cluster {owner}, and the database is \
         that of the cluster {own}: give each cluster a prefix of its own, or name the database of \
         the cluster {owner}; if that cluster is gone for good, delete its objects and the object \
         moldau-cluster of the prefix"
    )]
    StoreOwned {
        /// Bucket of the prefix.
        bucket: String,
        /// The prefix.
        prefix: String,
        /// Cluster that the prefix belongs to.
        owner: uuid::Uuid,
        /// Cluster of the database.
        own: uuid::Uuid,
    },
    /// Operator: another copy of the database owns the prefix.
    #[error(
        "bucket {bucket}, prefix \"{prefix}\" belongs to another copy of this database: name that \
         one, or, if this one shall go on in its place, run `moldau cluster init --restored`"
    )]
    StoreTakenOver {
        /// Bucket of the prefix.
        bucket: String,
        /// The prefix.
        prefix: String,
    },
    /// Operator: the database was restored from a backup or moved. The older one may be in use.
    #[error(
        "this database is a copy of the one that owns the objects of the cluster, and the two \
         would delete each other's objects: if it was restored or moved and shall go on in the \
         place of the other one, run `moldau cluster init --restored`"
    )]
    DatabaseCopied,
    /// Operator: the prefix has none of the objects that the database knows.
    #[error(
        "bucket {bucket}, prefix \"{prefix}\" is empty, but the database knows objects there: name \
         the store that has them"
    )]
    StoreEmpty {
        /// Bucket of the prefix.
        bucket: String,
        /// The prefix.
        prefix: String,
    },
    /// Operator: the prefix has objects that the database does not know.
    #[error(
        "bucket {bucket}, prefix \"{prefix}\" has objects of a cluster already, and the database \
         of the cluster {own} knows none of them: give each cluster a prefix of its own, or name \
         the database of that cluster; if that cluster is gone for good, delete its objects"
    )]
    StoreInUse {
        /// Bucket of the prefix.
        bucket: String,
        /// The prefix.
        prefix: String,
        /// Cluster of the database.
        own: uuid::Uuid,
    },
    /// Operator: the store refuses what this broker asks.
    #[error("the object store refuses: {0}")]
    StoreRefused(StoreRefusal),
    /// Us: the database refused a statement, or answered in another shape.
    #[error("the sequencer refused: {0}")]
    Refused(String),
    /// Store: an object does not hold what was written.
    #[error("object {key} is damaged: {reason}")]
    Damaged {
        /// The object.
        key: ObjectKey,
        /// What is wrong.
        reason: &'static str,
    },
    /// The queue is full, as the store or the database is slower than producers: send later.
    #[error("the queue of appends is full")]
    QueueFull,
    /// This broker stops.
    #[error("the writer has stopped")]
    Stopped,
}

/// Why the store refuses a request that it will not accept later either.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreRefusal {
    /// The bucket does not exist.
    #[error("it has no such bucket")]
    NoBucket,
    /// The bucket is elsewhere.
    #[error("the bucket is in another region or at another endpoint")]
    OtherRegion,
    /// The store has no such access key.
    #[error("it does not know the access key")]
    UnknownAccessKey,
    /// The signature is not that of the access key.
    #[error("the secret key does not belong to the access key")]
    WrongSecretKey,
    /// The session of the keys is over.
    #[error("the session token of the keys has expired or is invalid")]
    InvalidToken,
    /// A policy forbids the request.
    #[error("these keys may not {0} in the bucket")]
    AccessDenied(&'static str),
    /// Requests are only valid for some minutes.
    #[error("the clocks of the store and of this machine differ by minutes")]
    ClockSkew,
    /// The store overwrites objects, or knows no condition.
    #[error("it does not keep an object from being overwritten (If-None-Match)")]
    NoConditionalCreate,
    /// What the store says.
    #[error("{0}")]
    Other(String),
}

impl Error {
    /// Whether a service does not answer, or refuses all requests of a kind.
    #[must_use]
    pub fn is_outage(&self) -> bool {
        matches!(
            self,
            Self::SequencerAway(_)
                | Self::StoreAway(_)
                | Self::DatabaseRefused(_)
                | Self::StoreRefused(_)
        )
    }

    /// Whether the same request can succeed later.
    #[must_use]
    pub fn is_retriable(&self) -> bool {
        matches!(self, Self::SequencerAway(_) | Self::StoreAway(_) | Self::QueueFull)
    }
}
