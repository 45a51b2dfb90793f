//! Frames in pieces, for `writev`: small structure in one buffer, records left where they are.

use bytes::{BufMut, Bytes, BytesMut};

use crate::error::EncodeError;
use crate::frame::{self, LENGTH_SIZE};
use crate::writer::Writer;

/// Most bytes of a piece that is copied.
const COPIED_PIECE_BYTES_MAX: usize = 4 * 1024;

/// Collects a frame whose record bytes, and large pieces of structure, are not copied.
pub(crate) struct SegmentWriter {
    structure: BytesMut,
    /// What is not copied, each with the length of the structure before it.
    records: Vec<(usize, Bytes)>,
    records_size: usize,
}

impl SegmentWriter {
    /// A frame whose length is filled in by [`finish`](Self::finish).
    pub(crate) fn new(capacity: usize) -> Self {
        let mut structure = BytesMut::with_capacity(capacity);
        structure.put_bytes(0, LENGTH_SIZE);
        Self { structure, records: Vec::new(), records_size: 0 }
    }

    /// The buffer of the structure, for headers.
    pub(crate) fn buffer(&mut self) -> &mut BytesMut {
        &mut self.structure
    }

    /// A writer of the structure.
    pub(crate) fn writer(&mut self) -> Writer<'_> {
        Writer::new(&mut self.structure)
    }

    /// Appends the pieces as one field of bytes with its length.
    pub(crate) fn bytes<'p>(
        &mut self,
        pieces: impl Iterator<Item = &'p Bytes> + Clone,
        flexible: bool,
    ) -> Result<(), EncodeError> {
        let size = pieces.clone().map(Bytes::len).sum();
        self.writer().length(size, flexible, "bytes")?;
        let at = self.structure.len();
        self.records.extend(pieces.filter(|piece| !piece.is_empty()).map(|it| (at, it.clone())));
        self.records_size += size;
        Ok(())
    }

    /// Appends encoded structure as it is. What is small is copied, since a segment of its own
    /// would cost the kernel more than that.
    pub(crate) fn pieces<'p>(&mut self, pieces: impl Iterator<Item = &'p Bytes>) {
        for piece in pieces {
            if piece.len() <= COPIED_PIECE_BYTES_MAX {
                self.structure.extend_from_slice(piece);
            } else {
                self.records.push((self.structure.len(), piece.clone()));
                self.records_size += piece.len();
            }
        }
    }

    /// The frame, its length included.
    pub(crate) fn finish(mut self) -> Result<Vec<Bytes>, EncodeError> {
        let length = self.structure.len() - LENGTH_SIZE + self.records_size;
        self.structure[..LENGTH_SIZE].copy_from_slice(&frame::length_prefix(length)?);
        let mut segments = Vec::with_capacity(2 * self.records.len() + 1);
        let mut structure = self.structure.freeze();
        let mut taken = 0;
        for (at, records) in self.records {
            if at > taken {
                segments.push(structure.split_to(at - taken));
                taken = at;
            }
            segments.push(records);
        }
        if !structure.is_empty() {
            segments.push(structure);
        }
        Ok(segments)
    }
}
