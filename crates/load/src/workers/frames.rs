//! The bytes between a coordinator and a worker.
//!
//! Each side begins with a hello of 40 bytes, the coordinator first:
//!
//! | bytes | field |
//! |---|---|
//! | 0..8 | magic and version, `MLDWORK1` |
//! | 8..40 | random bytes |
//!
//! From the token and the random bytes of both, HKDF-SHA-256 gives a key for each direction, so
//! keys serve one connection, and only holders of the token have them. All that follows is frames:
//!
//! | bytes | field |
//! |---|---|
//! | 0..4 | length of what follows, big-endian |
//! | 4.. | sealed: 1 where the message goes on in the next frame, 0 at its end; then its piece |
//! | last 16 | tag of AES-256-GCM |
//!
//! The nonce of a frame is its number in its direction, 12 bytes big-endian, and its length is
//! authenticated with it: a frame that was changed, left out, repeated, moved or turned back does
//! not open. A message is JSON. The coordinator's first message must open before the worker sends
//! anything that was made with a key, so a peer without the token gets no data to try tokens
//! against.
//!
//! The token is never sent, and nothing can be read, changed or sent without it. Anyone who learns
//! the token later can decrypt a recording, so use a token for days of experiments, not for years.
//! Lengths and times of frames are not hidden.

use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use aws_lc_rs::hkdf::{HKDF_SHA256, Salt};
use bytes::{Buf as _, BytesMut};

use super::Token;

/// Length of a hello.
pub const HELLO_BYTES: usize = MAGIC.len() + RANDOM_BYTES;

/// Longest piece of a message in a frame: larger ones would be held unverified.
pub const PIECE_BYTES_MAX: usize = 64 << 10;

/// Longest message. The ledger of a run of an hour at a thousand batches per second has some 20 MB.
pub const MESSAGE_BYTES_MAX: usize = 256 << 20;

const MAGIC: [u8; 8] = *b"MLDWORK1";
const RANDOM_BYTES: usize = 32;
const LENGTH_BYTES: usize = 4;
const TAG_BYTES: usize = 16;

/// Most bytes of a frame after its length.
const SEALED_BYTES_MAX: usize = 1 + PIECE_BYTES_MAX + TAG_BYTES;

/// What the keys of each direction are for.
const TO_WORKER: &[u8] = b"moldau lab worker: to the worker";
const TO_COORDINATOR: &[u8] = b"moldau lab worker: to the coordinator";

/// How a side begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hello {
    /// Unpredictable bytes.
    pub random: [u8; RANDOM_BYTES],
}

/// Why bytes are not what the other side should send.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Broken {
    /// No hello.
    #[error("it does not speak as a worker of this version of moldau does")]
    Hello,
    /// A length that no frame has.
    #[error("a frame of {0} bytes")]
    Length(u32),
    /// A frame that does not open.
    #[error("a frame does not open: its token is another, or bytes were changed on the way")]
    Sealed,
    /// A message beyond [`MESSAGE_BYTES_MAX`].
    #[error("a message of more than {MESSAGE_BYTES_MAX} bytes")]
    Long,
}

impl Hello {
    /// Its bytes.
    #[must_use]
    pub fn to_bytes(self) -> [u8; HELLO_BYTES] {
        let mut bytes = [0; HELLO_BYTES];
        let fields = MAGIC.iter().chain(&self.random);
        bytes.iter_mut().zip(fields).for_each(|(to, from)| *to = *from);
        bytes
    }

    /// Reads it.
    ///
    /// # Errors
    /// [`Broken::Hello`].
    pub fn read(bytes: &[u8; HELLO_BYTES]) -> Result<Self, Broken> {
        let rest = bytes.strip_prefix(&MAGIC).ok_or(Broken::Hello)?;
        Ok(Self { random: rest.try_into().map_err(|_| Broken::Hello)? })
    }
}

/// Which side of a connection this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The one that connects.
    Coordinator,
    /// The one that listens.
    Worker,
}

/// What a side seals and opens frames with.
#[must_use]
pub fn ends(token: &Token, coordinator: Hello, worker: Hello, side: Side) -> (Sealer, Opener) {
    let salt = [coordinator.random, worker.random].concat();
    let secret = Salt::new(HKDF_SHA256, &salt).extract(token.bytes());
    let key = |purpose: &[u8]| {
        let purposes = [purpose];
        let key = secret.expand(&purposes, &AES_256_GCM).map(UnboundKey::from);
        LessSafeKey::new(key.expect("a key of AES-256 is shorter than what HKDF can give"))
    };
    let (to_worker, to_coordinator) = (key(TO_WORKER), key(TO_COORDINATOR));
    let (mine, theirs) = match side {
        Side::Coordinator => (to_worker, to_coordinator),
        Side::Worker => (to_coordinator, to_worker),
    };
    let opener = Opener { key: theirs, number: 0, message: Vec::new() };
    (Sealer { key: mine, number: 0 }, opener)
}

/// Makes frames of messages.
#[derive(Debug)]
pub struct Sealer {
    key: LessSafeKey,
    number: u64,
}

/// Makes messages of frames.
#[derive(Debug)]
pub struct Opener {
    key: LessSafeKey,
    number: u64,
    /// What came of a message that goes on.
    message: Vec<u8>,
}

impl Sealer {
    /// The frames of a message.
    pub fn seal(&mut self, message: &[u8]) -> Vec<u8> {
        let mut pieces = message.chunks(PIECE_BYTES_MAX);
        let mut frames = Vec::with_capacity(message.len() + LENGTH_BYTES + 1 + TAG_BYTES);
        let mut piece = pieces.next().unwrap_or_default();
        loop {
            let next = pieces.next();
            let mut sealed = Vec::with_capacity(1 + piece.len() + TAG_BYTES);
            sealed.push(u8::from(next.is_some()));
            sealed.extend_from_slice(piece);
            let length = u32::try_from(sealed.len() + TAG_BYTES).expect("a piece is short");
            let length = length.to_be_bytes();
            self.key
                .seal_in_place_append_tag(nonce(&mut self.number), Aad::from(length), &mut sealed)
                .expect("a frame is far shorter than what AES-GCM can seal");
            frames.extend_from_slice(&length);
            frames.extend_from_slice(&sealed);
            match next {
                Some(next) => piece = next,
                None => return frames,
            }
        }
    }
}

impl Opener {
    /// Takes frames from the front of what came; gives the first message that is whole.
    ///
    /// # Errors
    /// [`Broken`]; the connection is of no use then.
    pub fn open(&mut self, came: &mut BytesMut) -> Result<Option<Vec<u8>>, Broken> {
        while let Some((length, rest)) = came.split_first_chunk::<LENGTH_BYTES>() {
            let bytes = u32::from_be_bytes(*length);
            let sealed = usize::try_from(bytes).unwrap_or(usize::MAX);
            if !(1 + TAG_BYTES..=SEALED_BYTES_MAX).contains(&sealed) {
                return Err(Broken::Length(bytes));
            }
            if rest.len() < sealed {
                return Ok(None);
            }
            came.advance(LENGTH_BYTES);
            let mut frame = came.split_to(sealed);
            let aad = Aad::from(bytes.to_be_bytes());
            let opened = self.key.open_in_place(nonce(&mut self.number), aad, &mut frame);
            let opened = opened.map_err(|_| Broken::Sealed)?;
            let (goes_on, piece) = opened.split_first().ok_or(Broken::Sealed)?;
            if self.message.len() + piece.len() > MESSAGE_BYTES_MAX {
                return Err(Broken::Long);
            }
            self.message.extend_from_slice(piece);
            if *goes_on == 0 {
                return Ok(Some(std::mem::take(&mut self.message)));
            }
        }
        Ok(None)
    }
}

/// The nonce of the next frame. A connection ends long before its frames are counted.
fn nonce(number: &mut u64) -> Nonce {
    let mut bytes = [0; NONCE_LEN];
    bytes.iter_mut().rev().zip(number.to_le_bytes()).for_each(|(to, from)| *to = from);
    *number += 1;
    Nonce::assume_unique_for_key(bytes)
}

#[cfg(test)]
mod tests;
