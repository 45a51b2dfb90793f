//! What can go wrong when the broker starts, and how a refusal reaches a Kafka client.

use std::net::SocketAddr;

use moldau_protocol::ErrorCode;
use moldau_storage::AppendError;

/// Why the broker did not start or stopped.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The operator: the address is taken or not of this machine.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// The address that was asked for.
        address: SocketAddr,
        /// What the system said.
        source: std::io::Error,
    },
    /// The disk or the operator: the data directory cannot be used.
    #[error(transparent)]
    Storage(#[from] moldau_storage::Error),
    /// The data directory holds metadata that this version cannot read.
    #[error("metadata in the journal cannot be read: {0}")]
    Metadata(String),
    /// The system refused a thread or a socket.
    #[error("the system refused a resource: {0}")]
    System(#[from] std::io::Error),
}

/// A refusal in Kafka's terms: the code for programs, the message for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) code: ErrorCode,
    pub(crate) message: String,
}

impl Refusal {
    pub(crate) fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }
}

/// Kafka's code for an append that storage refused. This is the one place where they meet.
pub(crate) fn append_code(error: &AppendError) -> ErrorCode {
    match error {
        AppendError::OutOfOrderSequence { .. } => ErrorCode::OutOfOrderSequenceNumber,
        AppendError::ProducerFenced { .. } => ErrorCode::InvalidProducerEpoch,
        AppendError::UnknownProducer { .. } => ErrorCode::UnknownProducerId,
        AppendError::DiskFull => ErrorCode::KafkaStorageError,
        AppendError::Poisoned => ErrorCode::KafkaStorageError,
    }
}
