//! Data encryption keys, in clear and wrapped.

use aws_lc_rs::rand;
use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
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

    /// A key from its 32 bytes in base64, as services send it.
    pub(crate) fn from_base64(text: &str) -> Option<Self> {
        let bytes = Zeroizing::new(BASE64.decode(text).ok()?);
        let key = <[u8; DATA_KEY_BYTES]>::try_from(bytes.as_slice()).ok()?;
        Some(Self(Zeroizing::new(key)))
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
