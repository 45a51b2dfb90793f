//! What a key management service (KMS) must do.

use std::future::Future;
use std::pin::Pin;

use crate::{DataKey, Edek, KmsError};

/// The service's own name of a key encryption key (KEK), which an alias leads to.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct KekId(pub Box<str>);

/// A data key and the same key wrapped.
pub struct WrappedDataKey {
    /// The key in clear.
    pub key: DataKey,
    /// The key as the service wrapped it.
    pub edek: Edek,
}

/// What a service's call gives, later.
pub type KmsFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, KmsError>> + Send + 'a>>;

/// A key management service. One call is one request to the service: whoever calls keeps what it
/// answers and asks again after [`KmsError::Unavailable`].
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
}
