//! What can go wrong when the broker starts, and how a refusal reaches a Kafka client.

use std::fmt;

use moldau_cluster::BucketSettings;
use moldau_protocol::ErrorCode;
use moldau_storage::AppendError;

use crate::authorizer::ResourceType;

/// Why the broker did not start or stopped.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The operator or the system: an address is taken, a thread was refused.
    #[error(transparent)]
    Net(#[from] moldau_net::Error),
    /// The operator: a listener cannot offer what it is to offer.
    #[error("listener {listener}: {source}")]
    Sasl {
        /// Its name.
        listener: String,
        /// What is wrong.
        source: moldau_net::SaslError,
    },
    /// The disk or the operator: the data directory cannot be used.
    #[error(transparent)]
    Storage(#[from] moldau_storage::Error),
    /// The data directory holds metadata that this version cannot read.
    #[error("failed to restore topics and groups from the journal: {0}")]
    Metadata(String),
    /// The system: a thread was refused.
    #[error("failed to start a thread: {0}")]
    Thread(std::io::Error),
    /// The operator, the database or the object store: the cluster cannot be joined.
    #[error("failed to join the cluster: {0}")]
    Cluster(#[from] moldau_cluster::Error),
    /// The operator or the object store: it does not answer, or refuses.
    #[error("failed to join the cluster: {place}: {error}")]
    Store {
        /// Bucket and address.
        place: String,
        /// What the store says.
        error: moldau_cluster::Error,
    },
    /// The operator: the name that a recovered topic is to get.
    #[error("topic {id} cannot be named {name:?}: {problem}")]
    TopicName {
        /// The topic's id.
        id: String,
        /// The name that was given.
        name: String,
        /// What is wrong with it.
        problem: String,
    },
}

impl Error {
    /// An error while a broker joins, with the place of the store if that is to blame.
    pub(crate) fn of_joining(error: moldau_cluster::Error, bucket: &BucketSettings) -> Self {
        match error {
            moldau_cluster::Error::StoreAway(_) | moldau_cluster::Error::StoreRefused(_) => {
                Self::Store { place: bucket.place(), error }
            }
            error => Self::Cluster(error),
        }
    }

    /// Whether the database or the store does not answer.
    pub(crate) fn is_of_an_absent_service(&self) -> bool {
        matches!(
            self,
            Self::Cluster(moldau_cluster::Error::SequencerAway(_))
                | Self::Store { error: moldau_cluster::Error::StoreAway(_), .. }
        )
    }

    /// Whether the data directory is damaged, so that a repair may help.
    pub fn is_damage(&self) -> bool {
        matches!(self, Error::Storage(moldau_storage::Error::Corrupt { .. }))
    }
}

/// A refusal in Kafka's terms: the code for programs, the message for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) code: ErrorCode,
    pub(crate) message: String,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl Refusal {
    pub(crate) fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }

    /// The code for whoever asked for share partitions, which the controller has.
    pub(crate) fn code_of_shares(&self) -> ErrorCode {
        match self.code {
            ErrorCode::NotController => ErrorCode::NotLeaderOrFollower,
            code => code,
        }
    }

    /// The code for whoever asked the coordinator, which is the controller.
    pub(crate) fn code_of_coordinator(&self) -> ErrorCode {
        match self.code {
            ErrorCode::NotController => ErrorCode::NotCoordinator,
            code => code,
        }
    }
}

/// The refusal of a forbidden operation.
pub(crate) fn denied(resource_type: ResourceType) -> Refusal {
    let (code, what) = match resource_type {
        ResourceType::Topic => (ErrorCode::TopicAuthorizationFailed, "Topic"),
        ResourceType::Group => (ErrorCode::GroupAuthorizationFailed, "Group"),
        ResourceType::TransactionalId => {
            (ErrorCode::TransactionalIdAuthorizationFailed, "Transactional Id")
        }
        ResourceType::DelegationToken => {
            (ErrorCode::DelegationTokenAuthorizationFailed, "Delegation Token")
        }
        ResourceType::Cluster | ResourceType::User => {
            (ErrorCode::ClusterAuthorizationFailed, "Cluster")
        }
    };
    Refusal::new(code, format!("{what} authorization failed."))
}

/// The answer to an append that storage refused. Here and in [`read_code`] alone do
/// storage's errors become Kafka's.
pub(crate) fn append_refusal(error: &AppendError) -> Refusal {
    let code = match error {
        AppendError::TooLarge { .. } => ErrorCode::MessageTooLarge,
        AppendError::OutOfOrderSequence { .. } => ErrorCode::OutOfOrderSequenceNumber,
        AppendError::InvalidProducerEpoch { .. } => ErrorCode::InvalidProducerEpoch,
        AppendError::InTransaction => ErrorCode::InvalidTxnState,
        AppendError::TooManyTransactions => ErrorCode::PolicyViolation,
        AppendError::Deleted => ErrorCode::UnknownTopicOrPartition,
        AppendError::Away => ErrorCode::RequestTimedOut,
        AppendError::DiskFull
        | AppendError::Exhausted
        | AppendError::Poisoned(_)
        | AppendError::Closed => ErrorCode::KafkaStorageError,
    };
    Refusal::new(code, error.to_string())
}

/// Kafka's code for a read, a lookup or a deletion that storage refused.
pub(crate) fn read_code(error: &moldau_storage::Error) -> ErrorCode {
    use moldau_storage::Error as Storage;
    match error {
        Storage::OffsetOutOfRange { .. } => ErrorCode::OffsetOutOfRange,
        Storage::Deleted => ErrorCode::UnknownTopicOrPartition,
        Storage::Corrupt { .. }
        | Storage::Io { .. }
        | Storage::Poisoned { .. }
        | Storage::Defect { .. }
        | Storage::DiskFull
        | Storage::Exhausted
        | Storage::Closed => ErrorCode::KafkaStorageError,
        Storage::Locked { .. }
        | Storage::NotADataDirectory { .. }
        | Storage::RepairUnfinished { .. }
        | Storage::UnknownVersion { .. }
        | Storage::WrongNode { .. }
        | Storage::Option { .. }
        | Storage::Replay { .. } => ErrorCode::UnknownServerError,
    }
}

/// The answer to invalid record batches.
pub(crate) fn records_refusal(error: &moldau_records::Error) -> Refusal {
    use moldau_records::Error as Records;
    let code = match error {
        Records::BatchTooLarge { .. } | Records::PayloadTooLarge { .. } => {
            ErrorCode::MessageTooLarge
        }
        // Producers send again what may have been damaged on the way, and nothing else.
        Records::UnknownMagic { .. } | Records::CrcMismatch { .. } => ErrorCode::CorruptMessage,
        Records::UnknownCompression { .. } => ErrorCode::UnsupportedCompressionType,
        Records::InvalidTimestampType | Records::TimestampOutOfRange { .. } => {
            ErrorCode::InvalidTimestamp
        }
        _ => ErrorCode::InvalidRecord,
    };
    Refusal::new(code, error.to_string())
}
