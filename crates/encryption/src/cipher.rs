//! Data keys made ready: AES-256-GCM with its round keys and hash keys expanded once.

use std::sync::atomic::{AtomicU64, Ordering};

use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use moldau_records::varint::LEN_32_MAX;

use crate::damage::Damage;
use crate::marker::MARKER_HEADER;
use crate::wrapper::{self, NONCE_BYTES, TAG_BYTES, Wrapper};
use crate::{DataKey, Edek, KmsError};

/// A data key that seals values, from any number of threads.
///
/// Nonces count up from a random start, so that any number of these objects may be made of one
/// data key. The library overwrites the expanded key when it is dropped.
pub struct SealingKey {
    cipher: LessSafeKey,
    /// What precedes the nonce in every value.
    wrapper_head: Box<[u8]>,
    nonce_start: u128,
    nonces_taken: AtomicU64,
}

impl SealingKey {
    /// Expands `key`, whose wrapped form is `edek`.
    ///
    /// # Errors
    /// [`KmsError::DamagedEdek`] if the EDEK is longer than [`crate::EDEK_BYTES_MAX`].
    pub fn new(key: &DataKey, edek: &Edek) -> Result<Self, KmsError> {
        let wrapper_head =
            wrapper::head(&edek.0).ok_or(KmsError::DamagedEdek("it is too long for a record"))?;
        let mut start = [0; NONCE_BYTES];
        aws_lc_rs::rand::fill(&mut start).expect("AWS-LC ends the process if it has no randomness");
        Ok(Self::starting_at(key, wrapper_head, start))
    }

    fn starting_at(key: &DataKey, wrapper_head: Box<[u8]>, start: [u8; NONCE_BYTES]) -> Self {
        let [s0, s1, s2, s3, s4, s5, s6, s7, s8, s9, s10, s11] = start;
        let nonce_start =
            u128::from_be_bytes([0, 0, 0, 0, s0, s1, s2, s3, s4, s5, s6, s7, s8, s9, s10, s11]);
        Self { cipher: expand(key), wrapper_head, nonce_start, nonces_taken: AtomicU64::new(0) }
    }

    /// Bytes by which a record with a value grows at most, apart from compression: the marker, the
    /// wrapper around its value, and longer lengths.
    #[must_use]
    pub fn record_growth_max(&self) -> usize {
        self.wrapper_head.len() + RECORD_GROWTH_MAX
    }

    pub(crate) fn wrapper_head(&self) -> &[u8] {
        &self.wrapper_head
    }

    /// Nonces for `count` records, which no one else gets.
    pub(crate) fn take_nonces(&self, count: u32) -> Nonces {
        let first = self.nonces_taken.fetch_add(u64::from(count), Ordering::Relaxed);
        Nonces { next: self.nonce_start + u128::from(first), remaining: count }
    }

    #[inline]
    pub(crate) fn seal(&self, nonce: [u8; NONCE_BYTES], parcel: &mut [u8]) -> [u8; TAG_BYTES] {
        let nonce = Nonce::assume_unique_for_key(nonce);
        let tag = self
            .cipher
            .seal_in_place_separate_tag(nonce, Aad::empty(), parcel)
            .expect("a parcel is far below the 64 GB that a nonce is good for");
        tag.as_ref().try_into().expect("the tag of AES-GCM has 16 bytes")
    }
}

/// Nonces of one batch. Every one differs from all that its key has given out.
pub(crate) struct Nonces {
    next: u128,
    remaining: u32,
}

impl Nonces {
    /// The next nonce.
    ///
    /// # Panics
    /// Beyond the number that was taken: a nonce that is used twice gives the key away.
    #[inline]
    pub(crate) fn next(&mut self) -> [u8; NONCE_BYTES] {
        self.remaining = self.remaining.checked_sub(1).expect("a nonce was taken for each record");
        let [_, _, _, _, nonce @ ..] = self.next.to_be_bytes();
        self.next += 1;
        nonce
    }
}

/// A data key that opens values, from any number of threads. The library overwrites the expanded
/// key when it is dropped.
pub struct OpeningKey {
    cipher: LessSafeKey,
}

impl OpeningKey {
    /// Expands `key`.
    #[must_use]
    pub fn new(key: &DataKey) -> Self {
        Self { cipher: expand(key) }
    }

    /// Opens the ciphertext of `wrapper` in place; `parcel` is a copy of it.
    ///
    /// # Errors
    /// [`Damage::Authentication`]; the content of `parcel` is undefined then.
    #[inline]
    pub(crate) fn open(&self, wrapper: &Wrapper<'_>, parcel: &mut [u8]) -> Result<(), Damage> {
        let nonce = Nonce::assume_unique_for_key(*wrapper.nonce);
        self.cipher
            .open_in_place_separate_tag(nonce, Aad::empty(), wrapper.tag, parcel)
            .map(|_| ())
            .map_err(|_| Damage::Authentication)
    }
}

fn expand(key: &DataKey) -> LessSafeKey {
    let key = UnboundKey::new(&AES_256_GCM, key.bytes()).expect("a data key has 32 bytes");
    LessSafeKey::new(key)
}

/// The marker, nonce, tag, end of the parcel, length of the wrapper, and the bytes by which the
/// length of the record and the count of its headers grow at most.
const RECORD_GROWTH_MAX: usize =
    MARKER_HEADER.len() + NONCE_BYTES + TAG_BYTES + 1 + LEN_32_MAX + (LEN_32_MAX - 1) + 1;

#[cfg(test)]
mod tests {
    use zeroize::Zeroizing;

    use super::*;

    fn ascending<const N: usize>(first: u8) -> [u8; N] {
        let mut bytes = [0; N];
        bytes.iter_mut().zip(first..).for_each(|(byte, value)| *byte = value);
        bytes
    }

    #[test]
    fn sealing_writes_the_bytes_of_the_published_record() {
        let key = DataKey::new(Zeroizing::new(ascending(0x20)));
        let key = SealingKey::starting_at(&key, Box::default(), ascending(0));
        let nonce = key.take_nonces(1).next();
        assert_eq!(nonce, ascending(0));
        let mut parcel = *b"\x0ahello\x03";
        let tag = key.seal(nonce, &mut parcel);
        assert_eq!(parcel, [0x56, 0x3a, 0x38, 0xcb, 0x26, 0x5a, 0xe8]);
        let published = [
            0x27, 0xc6, 0x10, 0x5d, 0xe8, 0x00, 0x23, 0xad, 0x47, 0x53, 0x47, 0xf4, 0x63, 0x77,
            0xe6, 0x7a,
        ];
        assert_eq!(tag, published);
    }

    #[test]
    fn nonces_count_on_from_batch_to_batch_and_past_their_end() {
        let mut start = [0xff; NONCE_BYTES];
        start[NONCE_BYTES - 1] = 0xfd;
        let key = DataKey::new(Zeroizing::new([1; 32]));
        let key = SealingKey::starting_at(&key, Box::default(), start);
        let mut lasts = Vec::new();
        for count in [2, 3] {
            let mut nonces = key.take_nonces(count);
            lasts.extend((0..count).map(|_| nonces.next()));
        }
        let ends = lasts.iter().map(|nonce| (nonce[0], nonce[NONCE_BYTES - 1]));
        let expected = [(0xff, 0xfd), (0xff, 0xfe), (0xff, 0xff), (0, 0), (0, 1)];
        assert_eq!(ends.collect::<Vec<_>>(), expected);
    }

    #[test]
    #[should_panic(expected = "a nonce was taken for each record")]
    fn no_batch_gets_more_nonces_than_it_took() {
        let key = DataKey::new(Zeroizing::new([1; 32]));
        let key = SealingKey::starting_at(&key, Box::default(), [0; NONCE_BYTES]);
        let mut nonces = key.take_nonces(1);
        nonces.next();
        nonces.next();
    }
}
