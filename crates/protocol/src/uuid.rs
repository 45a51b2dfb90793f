//! Kafka's ids: 16 bytes, shown as 22 characters of unpadded URL-safe base64.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// A 16-byte id, as topics, directories and cluster members have it.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Uuid([u8; 16]);

/// The text is not an id.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("not an id: 22 characters of URL-safe base64 are expected")]
pub struct ParseUuidError;

impl Uuid {
    /// All zero bytes: "no id".
    pub const ZERO: Self = Self([0; 16]);

    /// The id with these bytes.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// The id's bytes.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }

    /// The id's bytes.
    #[must_use]
    pub const fn into_bytes(self) -> [u8; 16] {
        self.0
    }

    /// Whether this is [`ZERO`](Self::ZERO).
    #[must_use]
    pub fn is_zero(self) -> bool {
        self == Self::ZERO
    }
}

impl fmt::Display for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bits = u128::from_be_bytes(self.0);
        // 21 characters of six bits; the 22nd has the last two bits and four zeros.
        let letter = |index| {
            let six = if index == 21 { bits << 4 } else { bits >> (122 - 6 * index) };
            let [low, ..] = six.to_le_bytes();
            char::from(ALPHABET[usize::from(low & 0x3f)])
        };
        f.pad(&(0..22).map(letter).collect::<String>())
    }
}

impl fmt::Debug for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Uuid {
    type Err = ParseUuidError;

    fn from_str(text: &str) -> Result<Self, ParseUuidError> {
        let (last, head) = match text.as_bytes() {
            [head @ .., last] if head.len() == 21 => (*last, head),
            _ => return Err(ParseUuidError),
        };
        let mut bits = 0_u128;
        for letter in head {
            bits = bits << 6 | u128::from(sextet(*letter)?);
        }
        // The lower four bits of the last character carry nothing.
        bits = bits << 2 | u128::from(sextet(last)? >> 4);
        Ok(Self(bits.to_be_bytes()))
    }
}

fn sextet(letter: u8) -> Result<u8, ParseUuidError> {
    Ok(match letter {
        b'A'..=b'Z' => letter - b'A',
        b'a'..=b'z' => letter - b'a' + 26,
        b'0'..=b'9' => letter - b'0' + 52,
        b'-' => 62,
        b'_' => 63,
        _ => return Err(ParseUuidError),
    })
}

impl From<[u8; 16]> for Uuid {
    fn from(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }
}

impl From<Uuid> for [u8; 16] {
    fn from(id: Uuid) -> Self {
        id.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_form_is_the_one_of_kafka() {
        let bytes = [
            0x00, 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08, 0x09, 0x0a, 0x0b, 0x0c, 0x0d,
            0x0e, 0xff,
        ];
        assert_eq!(Uuid::from_bytes(bytes).to_string(), "AAECAwQFBgcICQoLDA0O_w");
        assert_eq!(Uuid::ZERO.to_string(), "AAAAAAAAAAAAAAAAAAAAAA");
        assert_eq!("AAECAwQFBgcICQoLDA0O_w".parse(), Ok(Uuid::from_bytes(bytes)));
    }

    #[test]
    fn text_of_another_length_or_alphabet_is_refused() {
        for text in ["", "AAAA", "AAAAAAAAAAAAAAAAAAAAA", "AAAAAAAAAAAAAAAAAAAAA+", "ä"] {
            assert_eq!(text.parse::<Uuid>(), Err(ParseUuidError), "{text}");
        }
    }
}
