//! Record encryption, compatible on the wire with Kroxylicious (format V2).
//!
//! # Layout
//! - [`DataKey`] and [`Edek`]: a data encryption key, and the same key as the service wrapped it.
//! - [`Kms`]: what a key management service must do; [`KeyFile`] is the one that needs nothing
//!   installed, [`MemoryKms`] the one of Kroxylicious's own tests.
//!
//! # Invariants
//! - Key material is zeroised and has no `Debug`, `Clone` or serialisation.
//! - No key, no bytes: nothing that was to be encrypted leaves in clear because of an error.

mod data_key;
mod error;
mod kms;
mod utc;

pub use data_key::{DATA_KEY_BYTES, DataKey, Edek};
pub use error::{Error, KmsError};
pub use kms::{KekId, KeyFile, KeyFileEntry, Kms, KmsFuture, MemoryKek, MemoryKms, WrappedDataKey};
