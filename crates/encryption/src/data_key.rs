//! Data encryption keys, in clear and wrapped.

use aws_lc_rs::rand;
use zeroize::Zeroizing;

/// Bytes of a data encryption key: AES-256.
pub const DATA_KEY_BYTES: usize = 32;

/// A data encryption key (DEK) in clear. Its memory is overwritten when it is dropped.
pub struct DataKey(Zeroizing<[u8; DATA_KEY_BYTES]>);

impl DataKey {
    /// Takes the key's bytes.
    #[must_use]
    pub fn new(bytes: Zeroizing<[u8; DATA_KEY_BYTES]>) -> Self {
        Self(bytes)
    }

    /// A key from the cipher library's random generator.
    #[must_use]
    pub fn random() -> Self {
        let mut bytes = Zeroizing::new([0; DATA_KEY_BYTES]);
        rand::fill(&mut bytes[..]).expect("the generator is seeded before it is reachable");
        Self(bytes)
    }

    /// The key's bytes, for the cipher and for wrapping only.
    #[must_use]
    pub fn bytes(&self) -> &[u8; DATA_KEY_BYTES] {
        &self.0
    }
}

/// An encrypted data encryption key as it stands in each record: bytes whose layout only the
/// service that made them knows, the name of the key encryption key among them.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Edek(pub Box<[u8]>);
