//! The value of a sealed record.
//!
//! ```text
//! cipher u8, 0 | EDEK length uvarint, EDEK | AAD kind u8, 0 | nonce 12 bytes | ciphertext | tag 16
//! ```
//! Cipher 0 is AES-256-GCM with a nonce of 96 bits and a tag of 128; AAD kind 0 is none. The
//! ciphertext is a [`crate::Parcel`] and runs up to the tag, the tag up to the end of the value.

use moldau_records::varint;

use crate::damage::Damage;

/// Most bytes of an EDEK. Those of the services take between 78 and some 6,200 bytes, and each is a
/// key of a cache, which a forger should not fill with megabytes.
pub const EDEK_BYTES_MAX: usize = 16 << 10;

pub(crate) const NONCE_BYTES: usize = 12;
pub(crate) const TAG_BYTES: usize = 16;

const CIPHER_AES_256_GCM: u8 = 0;
const AAD_NONE: u8 = 0;

/// A sealed value, borrowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wrapper<'a> {
    /// The data key as the service wrapped it.
    pub edek: &'a [u8],
    /// The nonce, which is used once with the data key.
    pub nonce: &'a [u8; NONCE_BYTES],
    /// The sealed parcel.
    pub ciphertext: &'a [u8],
    /// The tag that authenticates it.
    pub tag: &'a [u8; TAG_BYTES],
}

impl<'a> Wrapper<'a> {
    /// Reads the value of a record that has the marker.
    ///
    /// # Errors
    /// [`Damage::Wrapper`], [`Damage::Cipher`], [`Damage::Aad`].
    #[inline]
    pub fn parse(value: &'a [u8]) -> Result<Self, Damage> {
        let (&cipher, mut rest) = value.split_first().ok_or(Damage::Wrapper)?;
        if cipher != CIPHER_AES_256_GCM {
            return Err(Damage::Cipher(cipher));
        }
        let edek_len = varint::read_u32(&mut rest).map_err(|_| Damage::Wrapper)?;
        let (edek, rest) = usize::try_from(edek_len)
            .ok()
            .filter(|&len| len <= EDEK_BYTES_MAX)
            .and_then(|len| rest.split_at_checked(len))
            .ok_or(Damage::Wrapper)?;
        let (&aad, rest) = rest.split_first().ok_or(Damage::Wrapper)?;
        if aad != AAD_NONE {
            return Err(Damage::Aad(aad));
        }
        let (nonce, rest) = rest.split_first_chunk().ok_or(Damage::Wrapper)?;
        let (ciphertext, tag) = rest.split_last_chunk().ok_or(Damage::Wrapper)?;
        Ok(Self { edek, nonce, ciphertext, tag })
    }
}

/// What precedes the nonce in every value that is sealed with the data key of `edek`; `None` if
/// the EDEK is longer than [`EDEK_BYTES_MAX`].
pub(crate) fn head(edek: &[u8]) -> Option<Box<[u8]>> {
    let edek_len = u32::try_from(edek.len()).ok().filter(|_| edek.len() <= EDEK_BYTES_MAX)?;
    let mut head = Vec::with_capacity(edek.len() + 2 + varint::LEN_32_MAX);
    head.push(CIPHER_AES_256_GCM);
    varint::write_u32(&mut head, edek_len);
    head.extend_from_slice(edek);
    head.push(AAD_NONE);
    Some(head.into_boxed_slice())
}
