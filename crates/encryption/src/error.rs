//! Errors, grouped by who can resolve them.

use std::path::PathBuf;

/// Why a service of keys could not be set up.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The key management service did not do what was asked.
    #[error(transparent)]
    Kms(#[from] KmsError),
    /// A setting that cannot be; the operator must change it.
    #[error("{setting}: {reason}")]
    Setting {
        /// Which setting.
        setting: &'static str,
        /// What is wrong with it.
        reason: String,
    },
    /// A file of keys that cannot be read, trusted or written; the operator must act.
    #[error("key file {}: {reason}", path.display())]
    KeyFile {
        /// The file.
        path: PathBuf,
        /// What is wrong with it, and what to do.
        reason: String,
    },
}

/// Why a key management service did not answer as asked. No variant carries a secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KmsError {
    /// No such key encryption key, or it was revoked: asking again does not help.
    #[error("key {0:?} is not known to the key management service")]
    UnknownKey(String),
    /// The service refuses the credentials or the request; the operator must act.
    #[error("the key management service refuses: {0}")]
    Refused(String),
    /// The service cannot be reached, is slow or failed: it may answer later.
    #[error("the key management service does not answer: {0}")]
    Unavailable(String),
    /// A wrapped data key that the service, or its layout, does not recognise.
    #[error("the wrapped data key is damaged: {0}")]
    DamagedEdek(&'static str),
}
