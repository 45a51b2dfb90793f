//! What a key management service (KMS) must do, and those that are built in.

mod aws;
#[cfg(test)]
mod fake_http;
mod http;
mod key_file;
mod lease;
mod local_kek;
mod memory;
mod secret_file;
mod stamp;
mod vault;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

pub use self::aws::{AwsAuth, AwsKms, AwsSettings};
pub use self::key_file::{KeyFile, KeyFileEntry};
pub use self::memory::{MemoryKek, MemoryKms};
pub use self::vault::{Vault, VaultAuth, VaultSettings};

use crate::{DataKey, Edek, KmsError};

/// The service's own name of a key encryption key (KEK), which an alias leads to.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct KekId(pub Arc<str>);

/// A data key and the same key wrapped.
pub struct WrappedDataKey {
    /// The key in clear.
    pub key: DataKey,
    /// The key as the service wrapped it.
    pub edek: Edek,
}

/// What a service's call gives, later.
pub type KmsFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, KmsError>> + Send + 'a>>;

/// A key management service. One call is one request to the service. The caller caches answers and
/// retries after [`KmsError::Unavailable`]. A call that is dropped leaves nothing behind. Calls may
/// come from several threads and runtimes at once.
pub trait Kms: Send + Sync {
    /// The key encryption key that `alias` names.
    ///
    /// # Errors
    /// [`KmsError::UnknownKey`] if no key has this alias.
    fn resolve_alias<'a>(&'a self, alias: &'a str) -> KmsFuture<'a, KekId>;

    /// A fresh data key, wrapped by `kek`.
    ///
    /// # Errors
    /// [`KmsError`].
    fn generate_data_key<'a>(&'a self, kek: &'a KekId) -> KmsFuture<'a, WrappedDataKey>;

    /// The data key in `edek`, which names its key encryption key itself.
    ///
    /// # Errors
    /// [`KmsError`], [`KmsError::DamagedEdek`] before anything is asked where the layout shows it.
    fn decrypt_edek<'a>(&'a self, edek: &'a Edek) -> KmsFuture<'a, DataKey>;

    /// Does periodic work, such as renewing a token. The owner of the service calls it about once a
    /// minute.
    ///
    /// # Errors
    /// [`KmsError`]: the next call of any kind tries again.
    fn maintain(&self) -> KmsFuture<'_, ()> {
        Box::pin(async { Ok(()) })
    }
}
