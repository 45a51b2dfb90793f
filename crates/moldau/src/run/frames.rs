//! Documents in a stream of bytes.
//!
//! In the protocol `json-lines`, a document is a line. In the protocol `length-prefixed`, it is a
//! frame; numbers are big-endian:
//!
//! | bytes | content |
//! |---|---|
//! | 4 | length of all that follows |
//! | 4 | length of the JSON document |
//! | any | JSON document |
//! | rest | payloads |

use bytes::{Buf, BufMut, Bytes, BytesMut};
use serde::Deserialize;

use super::document::Document;

/// How documents stand in a stream.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Protocol {
    /// Each on its line.
    #[default]
    JsonLines,
    /// Each with its length before it, and payloads behind it.
    LengthPrefixed,
}

/// What is wrong with a stream; nothing after it can be read.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub(crate) enum FrameError {
    /// A line or frame is too long.
    #[error("wrote a reply of more than {} bytes", FRAME_BYTES_MAX)]
    TooLong,
    /// The document of a frame is longer than the frame.
    #[error("wrote a frame of {frame} bytes with a document of {document} bytes")]
    DocumentTooLong {
        /// Bytes of the frame after its first length.
        frame: usize,
        /// Bytes of the document.
        document: usize,
    },
}

/// Finds the documents in what a process writes.
#[derive(Debug)]
pub(crate) struct Decoder {
    protocol: Protocol,
    /// Bytes that belong to no document yet.
    pub(crate) buffer: BytesMut,
    /// Bytes of the buffer that hold no line break.
    searched: usize,
}

impl Decoder {
    pub(crate) fn new(protocol: Protocol) -> Self {
        Self { protocol, buffer: BytesMut::new(), searched: 0 }
    }

    /// The next document, if all of it is in the buffer.
    ///
    /// # Errors
    /// [`FrameError`].
    pub(crate) fn next(&mut self) -> Result<Option<Document>, FrameError> {
        match self.protocol {
            Protocol::JsonLines => self.next_line(),
            Protocol::LengthPrefixed => self.next_frame(),
        }
    }

    /// The next line that is not blank.
    fn next_line(&mut self) -> Result<Option<Document>, FrameError> {
        loop {
            let unsearched = self.buffer.get(self.searched..).unwrap_or_default();
            let Some(end) = unsearched.iter().position(|byte| *byte == b'\n') else {
                self.searched = self.buffer.len();
                let is_bounded = self.buffer.len() <= FRAME_BYTES_MAX;
                return if is_bounded { Ok(None) } else { Err(FrameError::TooLong) };
            };
            let mut line = self.buffer.split_to(self.searched + end + 1);
            self.searched = 0;
            line.truncate(line.trim_ascii_end().len());
            if line.len() > FRAME_BYTES_MAX {
                return Err(FrameError::TooLong);
            }
            if !line.trim_ascii_start().is_empty() {
                return Ok(Some(Document { json: line.freeze(), payloads: Bytes::new() }));
            }
        }
    }

    fn next_frame(&mut self) -> Result<Option<Document>, FrameError> {
        let Some(frame) = self.length_at(0) else { return Ok(None) };
        if frame > FRAME_BYTES_MAX {
            return Err(FrameError::TooLong);
        }
        if frame < LENGTH_BYTES {
            return Err(FrameError::DocumentTooLong { frame, document: 0 });
        }
        if self.buffer.len() - LENGTH_BYTES < frame {
            self.buffer.reserve(LENGTH_BYTES + frame - self.buffer.len());
            return Ok(None);
        }
        let document = self.length_at(LENGTH_BYTES).unwrap_or_default();
        if document > frame - LENGTH_BYTES {
            return Err(FrameError::DocumentTooLong { frame, document });
        }
        self.buffer.advance(2 * LENGTH_BYTES);
        let mut bytes = self.buffer.split_to(frame - LENGTH_BYTES).freeze();
        let json = bytes.split_to(document);
        Ok(Some(Document { json, payloads: bytes }))
    }

    fn length_at(&self, at: usize) -> Option<usize> {
        let length = self.buffer.get(at..at + LENGTH_BYTES)?.try_into().ok()?;
        usize::try_from(u32::from_be_bytes(length)).ok()
    }
}

/// Adds a document to what is sent.
pub(crate) fn encode(protocol: Protocol, document: &Document, out: &mut BytesMut) {
    match protocol {
        Protocol::JsonLines => {
            out.extend_from_slice(&document.json);
            out.put_u8(b'\n');
        }
        Protocol::LengthPrefixed => {
            // Records and batches are far below 4 GiB.
            let length = |bytes: usize| u32::try_from(bytes).unwrap_or(u32::MAX);
            let (json, payloads) = (&document.json, &document.payloads);
            out.put_u32(length(LENGTH_BYTES + json.len() + payloads.len()));
            out.put_u32(length(json.len()));
            out.extend_from_slice(json);
            out.extend_from_slice(payloads);
        }
    }
}

/// Bytes of a length.
const LENGTH_BYTES: usize = 4;

/// Longest document with its payloads that a process may write: many records of Kafka's default
/// `max.request.size` of 1 MiB.
pub(crate) const FRAME_BYTES_MAX: usize = 16 * 1024 * 1024;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn document(json: &str, payloads: &[u8]) -> Document {
        Document {
            json: Bytes::copy_from_slice(json.as_bytes()),
            payloads: Bytes::copy_from_slice(payloads),
        }
    }

    /// All documents of `bytes`, which arrive in pieces of `piece` bytes.
    fn decode(protocol: Protocol, bytes: &[u8], piece: usize) -> Result<Vec<Document>, FrameError> {
        let mut decoder = Decoder::new(protocol);
        let mut documents = Vec::new();
        for piece in bytes.chunks(piece.max(1)) {
            decoder.buffer.extend_from_slice(piece);
            while let Some(document) = decoder.next()? {
                documents.push(document);
            }
        }
        Ok(documents)
    }

    #[test]
    fn a_frame_has_its_documented_bytes() {
        let mut out = BytesMut::new();
        encode(Protocol::LengthPrefixed, &document("{\"id\":1}", b"k\0"), &mut out);
        assert_eq!(&out[..], b"\0\0\0\x0e\0\0\0\x08{\"id\":1}k\0");
        out.clear();
        encode(Protocol::JsonLines, &document("{\"id\":1}", b""), &mut out);
        assert_eq!(&out[..], b"{\"id\":1}\n");
    }

    #[test]
    fn blank_lines_and_carriage_returns_are_left_out() {
        let read = decode(Protocol::JsonLines, b"\n  \r\n{}\r\n\n[1] \n{", 3).unwrap();
        assert_eq!(read, [document("{}", b""), document("[1]", b"")]);
    }

    #[test]
    fn lengths_that_contradict_each_other_are_refused() {
        let refused = |bytes: &[u8]| decode(Protocol::LengthPrefixed, bytes, 64).unwrap_err();
        assert_eq!(refused(b"\xff\xff\xff\xff"), FrameError::TooLong);
        let beyond = FrameError::DocumentTooLong { frame: 5, document: 2 };
        assert_eq!(refused(b"\0\0\0\x05\0\0\0\x02{"), beyond);
        let short = FrameError::DocumentTooLong { frame: 3, document: 0 };
        assert_eq!(refused(b"\0\0\0\x03\0\0\0"), short);
    }

    #[test]
    fn a_line_without_an_end_is_refused_at_the_limit() {
        let mut decoder = Decoder::new(Protocol::JsonLines);
        decoder.buffer.resize(FRAME_BYTES_MAX, b'x');
        assert_eq!(decoder.next(), Ok(None));
        decoder.buffer.put_u8(b'x');
        assert_eq!(decoder.next(), Err(FrameError::TooLong));
    }

    proptest! {
        #[test]
        fn frames_come_back_however_they_are_cut(
            frames in prop::collection::vec((any::<Vec<u8>>(), any::<Vec<u8>>()), 0..6),
            piece in 1_usize..40,
        ) {
            let documents: Vec<_> = frames
                .into_iter()
                .map(|(json, payloads)| Document { json: json.into(), payloads: payloads.into() })
                .collect();
            let mut out = BytesMut::new();
            documents.iter().for_each(|it| encode(Protocol::LengthPrefixed, it, &mut out));
            prop_assert_eq!(decode(Protocol::LengthPrefixed, &out, piece), Ok(documents));
        }

        #[test]
        fn any_bytes_give_documents_or_an_error(
            bytes in any::<Vec<u8>>(),
            piece in 1_usize..20,
        ) {
            for protocol in [Protocol::JsonLines, Protocol::LengthPrefixed] {
                let at_once = decode(protocol, &bytes, bytes.len());
                prop_assert_eq!(decode(protocol, &bytes, piece).is_ok(), at_once.is_ok());
                let decoded = at_once.unwrap_or_default();
                let length = |it: &Document| it.json.len() + it.payloads.len();
                prop_assert!(decoded.iter().map(length).sum::<usize>() <= bytes.len());
            }
        }
    }
}
