//! Record encryption, compatible on the wire with Kroxylicious (format V2).
//!
//! # Layout
//! - [`DataKey`] and [`Edek`]: a data encryption key, and the same key as the service wrapped it.
//! - [`Kms`]: what a key management service must do; [`KeyFile`] is the one that needs nothing
//!   installed, [`Vault`] and [`AwsKms`] are those of others, [`MemoryKms`] that of Kroxylicious's
//!   own tests.
//! - [`DataKeys`]: which data key seals and which opens, and when the service is asked;
//!   [`KekTemplate`]: which key encryption key a topic has.
//! - [`SealingKey`] and [`OpeningKey`]: a data key made ready for many records.
//! - [`Sealer`] and [`SealedRecord`] replace the records of a batch that a
//!   [`moldau_records::Rewriter`] rewrites; [`Wrapper`] and [`Parcel`] are what stands in the value
//!   of a sealed record, beside the header with [`MARKER_KEY`].
//!
//! # Invariants
//! - Key material is zeroised and has no `Debug`, `Clone` or serialisation.
//! - What is not the value of a record, or the marker, is copied as it stands.
//! - No key, no bytes: nothing that was to be encrypted leaves in clear because of an error.

mod cipher;
mod damage;
mod data_key;
mod error;
mod keys;
mod kms;
mod marker;
mod open;
mod parcel;
mod seal;
mod utc;
mod wrapper;

pub use cipher::{OpeningKey, SealingKey};
pub use damage::Damage;
pub use data_key::{DATA_KEY_BYTES, DataKey, Edek};
pub use error::{Error, KmsError};
pub use keys::{DataKeys, KekTemplate, KeyCache, KeyCounters, KeySettings, Operation, Outcome};
pub use kms::{
    AwsAuth, AwsKms, AwsSettings, KekId, KeyFile, KeyFileEntry, Kms, KmsFuture, MemoryKek,
    MemoryKms, Vault, VaultAuth, VaultSettings, WrappedDataKey,
};
pub use marker::MARKER_KEY;
pub use open::SealedRecord;
pub use parcel::{Field, Parcel, ParcelHeaders};
pub use seal::Sealer;
pub use wrapper::{EDEK_BYTES_MAX, Wrapper};
