//! Tagged fields (KIP-482): a count, then for each field its tag, its size and its content.

use super::Writer;
use crate::error::EncodeError;
use crate::tagged::RawTaggedField;

/// Writes one struct's tagged fields, known and unknown, by ascending tag.
pub struct TaggedFieldsWriter<'w, 'b> {
    writer: &'w mut Writer<'b>,
    unknown: &'w [RawTaggedField],
    /// Where the count stands; one byte until [`finish`](Self::finish).
    count_at: usize,
    count: u32,
    last: Option<u32>,
}

impl<'w, 'b> TaggedFieldsWriter<'w, 'b> {
    pub(super) fn new(writer: &'w mut Writer<'b>, unknown: &'w [RawTaggedField]) -> Self {
        let count_at = writer.len();
        writer.u8(0);
        Self { writer, unknown, count_at, count: 0, last: None }
    }

    /// Writes a known field with `content`, after the unknown fields that come before it.
    ///
    /// # Errors
    /// The content cannot be written, or the tags do not ascend.
    pub fn field(
        &mut self,
        tag: u32,
        content: impl FnOnce(&mut Writer<'_>) -> Result<(), EncodeError>,
    ) -> Result<(), EncodeError> {
        while let Some((first, rest)) = self.unknown.split_first()
            && first.tag < tag
        {
            self.unknown = rest;
            self.raw(first)?;
        }
        self.start(tag)?;
        let start = self.writer.len();
        content(self.writer)?;
        self.writer.insert_size(start)
    }

    /// Writes the unknown fields that are left, and the count.
    ///
    /// # Errors
    /// The tags do not ascend.
    pub fn finish(mut self) -> Result<(), EncodeError> {
        for field in std::mem::take(&mut self.unknown) {
            self.raw(field)?;
        }
        self.writer.replace_byte_by_varint(self.count_at, self.count);
        Ok(())
    }

    fn raw(&mut self, field: &RawTaggedField) -> Result<(), EncodeError> {
        self.start(field.tag)?;
        self.writer.tagged_field_size(field.data.len())?;
        self.writer.raw(&field.data);
        Ok(())
    }

    fn start(&mut self, tag: u32) -> Result<(), EncodeError> {
        if self.last.is_some_and(|last| last >= tag) {
            return Err(EncodeError::TagOrder { tag });
        }
        self.last = Some(tag);
        self.count += 1;
        self.writer.unsigned_varint(tag);
        Ok(())
    }
}
