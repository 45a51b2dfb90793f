//! Errors between a caller and a cluster, and whether a retry may help.

use std::io;
use std::sync::Arc;

use moldau_protocol::{ApiKey, DecodeError, EncodeError, ErrorCode};

/// What can go wrong between a caller and a cluster. Clones are cheap, since one lost connection
/// fails many requests.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    // The network or the cluster is to blame; trying again may help.
    /// No connection could be made.
    #[error("cannot connect to {address}: {source}")]
    Connect {
        /// `host:port`.
        address: Arc<str>,
        /// What the operating system said.
        source: Arc<io::Error>,
    },
    /// The connection ended before the answer came.
    #[error("{address} closed the connection: {reason}")]
    Disconnected {
        /// `host:port`.
        address: Arc<str>,
        /// How it ended.
        reason: Arc<str>,
    },
    /// No answer came in time.
    #[error("no answer from {address} to {api:?} in time")]
    TimedOut {
        /// `host:port`.
        address: Arc<str>,
        /// The request's API.
        api: ApiKey,
    },
    /// The partition has no leader, or none that is known.
    #[error("partition {topic}-{partition} has no known leader")]
    NoLeader {
        /// Topic name.
        topic: Arc<str>,
        /// Partition number.
        partition: i32,
    },
    /// The batch could not be delivered within the delivery timeout. It may have been appended.
    #[error("a batch for {topic}-{partition} was not acknowledged in time")]
    DeliveryTimedOut {
        /// Topic name.
        topic: Arc<str>,
        /// Partition number.
        partition: i32,
    },

    // Authentication of this client or of the broker failed; an operator must act.
    /// TLS failed: a certificate is not believed, or the two have nothing in common.
    #[error("{address}: {reason}")]
    Tls {
        /// `host:port`.
        address: Arc<str>,
        /// What is wrong.
        reason: Arc<str>,
    },
    /// The broker refuses our credentials, or does not prove that it knows them.
    #[error("{address} did not authenticate us: {reason}")]
    Authentication {
        /// `host:port`.
        address: Arc<str>,
        /// The broker's words, or ours.
        reason: Arc<str>,
    },

    // The broker refused.
    /// The broker answered with an error code.
    #[error("{what}: {code:?}{}", detail(.message.as_deref()))]
    Broker {
        /// What was asked for.
        what: Arc<str>,
        /// Kafka's error code.
        code: ErrorCode,
        /// The broker's own words, where the API carries them.
        message: Option<Arc<str>>,
    },
    /// The broker and this client share no version of an API.
    #[error("{address} serves no version of {api:?} that this client speaks")]
    UnsupportedApi {
        /// `host:port`.
        address: Arc<str>,
        /// The API.
        api: ApiKey,
    },
    /// The peer's bytes are not Kafka's protocol.
    #[error("{address} sent a malformed answer: {reason}")]
    Malformed {
        /// `host:port`.
        address: Arc<str>,
        /// What is wrong with it.
        reason: Arc<str>,
    },

    // The caller asked for something impossible, or must slow down.
    /// The buffer memory is used up; wait for room.
    #[error("the producer's buffer is full")]
    BufferFull,
    /// Records of a transactional producer belong to a transaction, and none takes them: none is
    /// open, or a batch of it failed, and it can only be aborted.
    #[error("no transaction takes records")]
    NoTransaction,
    /// One record is larger than a request may be.
    #[error("a record of {record_bytes} bytes is above the limit of {bytes_max}")]
    RecordTooLarge {
        /// Size of the record.
        record_bytes: usize,
        /// The limit.
        bytes_max: usize,
    },
    /// The topic or partition does not exist.
    #[error("topic or partition {name} does not exist")]
    UnknownTopicOrPartition {
        /// Topic, or topic and partition.
        name: Arc<str>,
    },
    /// A request value cannot be expressed in the version that the broker speaks.
    #[error("{api:?} cannot be encoded: {source}")]
    Encode {
        /// The API.
        api: ApiKey,
        /// What cannot be expressed.
        source: Arc<EncodeError>,
    },
    /// The member does not hold the partition, or lost it in between.
    #[error("the member does not hold partition {topic}-{partition}")]
    NotHeld {
        /// Topic name.
        topic: Arc<str>,
        /// Partition number.
        partition: i32,
    },
    /// A pattern of topic names is not a regular expression.
    #[error("{pattern:?} is not a valid pattern of topics: {reason}")]
    InvalidPattern {
        /// The pattern given.
        pattern: Arc<str>,
        /// What is wrong with it.
        reason: Arc<str>,
    },
    /// There is no such assignor for classic groups.
    #[error("there is no assignor {name:?}; known are range and cooperative-sticky")]
    UnknownAssignor {
        /// The name given.
        name: Arc<str>,
    },
    /// A batch that cannot be passed over, since it does not say where it ends.
    #[error("{topic}-{partition}: the batch at offset {offset} cannot be read: {source}")]
    UnreadableBatch {
        /// Topic name.
        topic: Arc<str>,
        /// Partition number.
        partition: i32,
        /// Offset that was asked for.
        offset: i64,
        /// What is wrong with it.
        source: moldau_records::Error,
    },
    /// A record cannot be put into a batch.
    #[error("record batch: {0}")]
    Records(#[from] moldau_records::Error),
    /// An address is not of the form `host:port`.
    #[error("{address:?} is not of the form host:port")]
    InvalidAddress {
        /// The text given.
        address: Arc<str>,
    },
    /// The producer, fetcher or connection was closed by its owner.
    #[error("closed")]
    Closed,
}

fn detail(message: Option<&str>) -> String {
    message.map(|text| format!(" ({text})")).unwrap_or_default()
}

impl Error {
    /// The broker's error `code` as a result of asking for `what`; `Ok` for no error.
    ///
    /// # Errors
    /// The code, unless it is 0.
    pub fn check(code: i16, what: &str, message: Option<&str>) -> Result<(), Self> {
        match ErrorCode::try_from(code).unwrap_or(ErrorCode::UnknownServerError) {
            ErrorCode::None => Ok(()),
            code => Err(Self::broker(code, what, message)),
        }
    }

    /// An error code of the broker.
    #[must_use]
    pub fn broker(code: ErrorCode, what: &str, message: Option<&str>) -> Self {
        Self::Broker { what: what.into(), code, message: message.map(Into::into) }
    }

    pub(crate) fn malformed(address: &Arc<str>, source: &DecodeError) -> Self {
        Self::Malformed { address: address.clone(), reason: source.to_string().into() }
    }

    /// Kafka's code, if a broker refused.
    #[must_use]
    pub fn code(&self) -> Option<ErrorCode> {
        match self {
            Self::Broker { code, .. } => Some(*code),
            _ => None,
        }
    }

    /// Whether the same request may succeed when sent again.
    #[must_use]
    pub fn is_retriable(&self) -> bool {
        match self {
            Self::Connect { .. }
            | Self::Disconnected { .. }
            | Self::TimedOut { .. }
            | Self::NoLeader { .. }
            | Self::BufferFull => true,
            Self::Broker { code, .. } => code.is_retriable(),
            _ => false,
        }
    }

    /// True if a broker does not believe this client, or this client no broker: nothing but an
    /// operator helps.
    #[must_use]
    pub fn is_unauthenticated(&self) -> bool {
        matches!(self, Self::Tls { .. } | Self::Authentication { .. })
    }

    /// True if the cluster knows this client and does not let it do that, before someone grants the
    /// right.
    #[must_use]
    pub fn is_unauthorized(&self) -> bool {
        matches!(
            self.code(),
            Some(
                ErrorCode::TopicAuthorizationFailed
                    | ErrorCode::GroupAuthorizationFailed
                    | ErrorCode::ClusterAuthorizationFailed
                    | ErrorCode::TransactionalIdAuthorizationFailed
            )
        )
    }

    /// True if a record is refused as it is, or its topic refuses every record of this client:
    /// sending it again does not help before someone changes something. A topic that does not
    /// exist is one of them: it was waited for.
    #[must_use]
    pub fn is_refused(&self) -> bool {
        match self {
            Self::RecordTooLarge { .. }
            | Self::Records(_)
            | Self::UnknownTopicOrPartition { .. } => true,
            Self::Broker { code, .. } => matches!(
                code,
                ErrorCode::MessageTooLarge
                    | ErrorCode::RecordListTooLarge
                    | ErrorCode::InvalidRecord
                    | ErrorCode::InvalidTimestamp
                    | ErrorCode::UnsupportedForMessageFormat
                    | ErrorCode::InvalidTopicException
                    | ErrorCode::PolicyViolation
                    | ErrorCode::TopicAuthorizationFailed
                    | ErrorCode::ClusterAuthorizationFailed
                    | ErrorCode::TransactionalIdAuthorizationFailed
                    | ErrorCode::UnknownTopicOrPartition
                    | ErrorCode::UnknownTopicId
            ),
            _ => false,
        }
    }

    /// True if the group goes on without the member. It joins again by itself, and the new owners
    /// of its partitions read on from the last commit.
    #[must_use]
    pub fn is_left_behind(&self) -> bool {
        match self {
            Self::NotHeld { .. } => true,
            Self::Broker { code, .. } => matches!(
                code,
                ErrorCode::UnknownMemberId
                    | ErrorCode::IllegalGeneration
                    | ErrorCode::RebalanceInProgress
                    | ErrorCode::FencedMemberEpoch
                    | ErrorCode::StaleMemberEpoch
            ),
            _ => false,
        }
    }

    /// True if another member of the group has the same static id (KIP-345).
    #[must_use]
    pub fn is_static_id_taken(&self) -> bool {
        let code = self.code();
        matches!(code, Some(ErrorCode::FencedInstanceId | ErrorCode::UnreleasedInstanceId))
    }

    /// True if another producer has the transactional id, or the coordinator has ended a
    /// transaction that took longer than its timeout.
    #[must_use]
    pub fn is_fenced(&self) -> bool {
        let code = self.code();
        matches!(code, Some(ErrorCode::ProducerFenced | ErrorCode::InvalidProducerEpoch))
    }

    /// Whether it is unknown if the request took effect.
    #[must_use]
    pub fn is_ambiguous(&self) -> bool {
        match self {
            Self::Disconnected { .. } | Self::TimedOut { .. } | Self::Malformed { .. } => true,
            Self::Broker { code, .. } => matches!(
                code,
                ErrorCode::RequestTimedOut
                    | ErrorCode::NotEnoughReplicasAfterAppend
                    | ErrorCode::KafkaStorageError
                    | ErrorCode::UnknownServerError
            ),
            _ => false,
        }
    }
}
