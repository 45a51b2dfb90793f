//! Damages of a sealed record.

/// Why a record that says it is sealed cannot be opened: it is forged, damaged, or was written in a
/// way that this format does not have. No variant carries a byte of a key or a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Damage {
    /// The marker header does not hold the one byte of its version.
    #[error("its marker is not one byte")]
    Marker,
    /// A version other than 2.
    #[error("its version {0} is not supported, 2 is")]
    Version(u8),
    /// The wrapper ends within a field, or its EDEK has a length that none can have.
    #[error("its wrapper is malformed")]
    Wrapper,
    /// A cipher other than AES-256-GCM.
    #[error("its cipher {0} is unknown")]
    Cipher(u8),
    /// Additional authenticated data other than none.
    #[error("its additional authenticated data is of the unknown kind {0}")]
    Aad(u8),
    /// The key management service does not recognise its EDEK, or has revoked the key.
    #[error("its data key is refused by the key management service")]
    Edek,
    /// The tag does not fit: it was changed, or sealed with another key.
    #[error("its authentication tag is wrong")]
    Authentication,
    /// What was sealed is no parcel.
    #[error("its parcel is malformed")]
    Parcel,
}
