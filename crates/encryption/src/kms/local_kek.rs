//! Key encryption keys that this process holds itself.

use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use aws_lc_rs::rand;
use zeroize::Zeroizing;

use crate::{DATA_KEY_BYTES, DataKey};

/// Bytes of a key encryption key: AES-256.
pub(super) const KEK_BYTES: usize = 32;
/// Bytes of a nonce (IV) of AES-GCM.
pub(super) const IV_BYTES: usize = NONCE_LEN;
/// Bytes of a wrapped data key: the key and AES-GCM's tag.
pub(super) const WRAPPED_BYTES: usize = DATA_KEY_BYTES + 16;

/// A key encryption key that wraps with AES-256-GCM. The cipher library overwrites its memory
/// when it is dropped.
pub(super) struct LocalKek(LessSafeKey);

impl LocalKek {
    pub(super) fn new(bytes: &[u8; KEK_BYTES]) -> Self {
        let key = UnboundKey::new(&AES_256_GCM, bytes).expect("the length is the algorithm's");
        Self(LessSafeKey::new(key))
    }

    /// The data key under this key: ciphertext and tag.
    pub(super) fn wrap(&self, iv: [u8; IV_BYTES], aad: &[u8], key: &DataKey) -> Vec<u8> {
        // Room for the tag from the start, so that no copy of the key is left by a growing vector.
        let mut wrapped = Vec::with_capacity(WRAPPED_BYTES);
        wrapped.extend_from_slice(key.bytes());
        self.0
            .seal_in_place_append_tag(
                Nonce::assume_unique_for_key(iv),
                Aad::from(aad),
                &mut wrapped,
            )
            .expect("48 bytes are within what AES-GCM seals");
        wrapped
    }

    /// The data key in `wrapped`; `None` if it was not wrapped by this key with this nonce and
    /// these associated data.
    pub(super) fn unwrap(
        &self,
        iv: [u8; IV_BYTES],
        aad: &[u8],
        wrapped: &[u8; WRAPPED_BYTES],
    ) -> Option<DataKey> {
        let mut text = Zeroizing::new(*wrapped);
        let iv = Nonce::assume_unique_for_key(iv);
        let key = self.0.open_in_place(iv, Aad::from(aad), &mut text[..]).ok()?;
        let mut bytes = Zeroizing::new([0; DATA_KEY_BYTES]);
        bytes.copy_from_slice(key);
        Some(DataKey::new(bytes))
    }
}

/// A random nonce. A key encryption key wraps far fewer than the 2^32 data keys up to which
/// random nonces are safe (NIST SP 800-38D, 8.3).
pub(super) fn random_iv() -> [u8; IV_BYTES] {
    let mut iv = [0; IV_BYTES];
    rand::fill(&mut iv).expect("the generator is seeded before it is reachable");
    iv
}
