//! Batches in which some records are replaced: unpacked once, walked once, and written anew only if
//! a record changes.
//!
//! The records of a batch that is not compressed go straight behind the header in the caller's
//! buffer; those of another are gathered first, and packed into it. Records that stay are copied in
//! runs. Header, offsets, sequence numbers and timestamps stay; length, codec and CRC are made to
//! fit. The CRC is checked before: a right one must not cover up damage.

use std::ops::Range;

use crate::compression::BUFFER_RETAINED_MAX;
use crate::{
    BATCH_HEADER_LEN, BatchView, Compression, Compressor, Decompressor, Error, RawRecord,
    RawRecords, write_header_like,
};

/// Looks at the records of a batch, and replaces some of them.
pub trait RecordEditor {
    /// What keeps a batch from being rewritten.
    type Error: From<Error>;

    /// Called before the records of a batch, once it is certain that it has room for as many as it
    /// counts. Returns the codec of the rewritten batch.
    ///
    /// # Errors
    /// Those of the editor; the batch then stays as it is.
    fn begin(&mut self, batch: &BatchView<'_>) -> Result<Compression, Self::Error> {
        Ok(batch.compression()?)
    }

    /// Looks at the record at `index` of its batch. It stays unless it is replaced through `edit`.
    ///
    /// # Errors
    /// Those of the editor; the batch then stays as it is.
    fn record(
        &mut self,
        index: i32,
        record: &RawRecord<'_>,
        edit: &mut Edit<'_>,
    ) -> Result<(), Self::Error>;

    /// Called after the last record of a batch.
    ///
    /// # Errors
    /// Those of the editor; the batch then stays as it is.
    fn end(&mut self, batch: &BatchView<'_>) -> Result<(), Self::Error> {
        let _batch = batch;
        Ok(())
    }
}

/// How many bytes a batch may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RewriteLimits {
    /// Most bytes of its records, unpacked, before the rewriting. Too little for them is found out
    /// before the editor sees any.
    pub unpacked_bytes_max: usize,
    /// Most bytes of its records after the rewriting, before they are packed again.
    pub records_bytes_max: usize,
    /// Most bytes of the rewritten batch, header included.
    pub batch_bytes_max: usize,
}

/// Rewrites one batch after the other with buffers that it keeps. One per thread.
#[derive(Debug, Default)]
pub struct Rewriter {
    decompressor: Decompressor,
    compressor: Compressor,
    /// Rewritten records that are yet to be compressed.
    records: Vec<u8>,
    unpacked_bytes: usize,
}

impl Rewriter {
    /// Lets `editor` look at the records of `batch`. If it replaces any, appends the rewritten
    /// batch to `out` and returns true. `prepare` is called once before, with `out`, to append
    /// the bytes that precede the batch. Control batches and those without records stay as
    /// they are.
    ///
    /// # Errors
    /// Those of the editor; [`Error::CrcMismatch`], [`Error::UnknownCompression`],
    /// [`Error::CorruptPayload`], [`Error::InvalidRecord`] and [`Error::InvalidVarint`] if the
    /// batch is damaged; [`Error::PayloadTooLarge`] and [`Error::RewrittenTooLarge`] beyond
    /// `limits`. What was appended to `out` means nothing then.
    pub fn rewrite<E: RecordEditor + ?Sized>(
        &mut self,
        batch: &BatchView<'_>,
        editor: &mut E,
        limits: RewriteLimits,
        out: &mut Vec<u8>,
        prepare: impl FnMut(&mut Vec<u8>),
    ) -> Result<bool, E::Error> {
        let rewritten = self.append(batch, editor, limits, out, prepare);
        if self.records.capacity() > BUFFER_RETAINED_MAX {
            self.records = Vec::new();
        }
        rewritten
    }

    /// Gives the records of `batch` to `each`, under the conditions of [`Self::rewrite`].
    ///
    /// # Errors
    /// Those of [`Self::rewrite`] but for the editor's.
    pub fn read(
        &mut self,
        batch: &BatchView<'_>,
        records_bytes_max: usize,
        mut each: impl FnMut(&RawRecord<'_>),
    ) -> Result<(), Error> {
        let Self { decompressor, unpacked_bytes, .. } = self;
        let unpacked = unpack(decompressor, batch, records_bytes_max, unpacked_bytes)?;
        for record in unpacked.into_iter().flat_map(|(_, records)| records) {
            each(&record?);
        }
        Ok(())
    }

    /// Bytes that the last batch unpacked to; if that failed, the most that it may have cost.
    #[must_use]
    pub fn unpacked_bytes(&self) -> usize {
        self.unpacked_bytes
    }

    fn append<E: RecordEditor + ?Sized>(
        &mut self,
        batch: &BatchView<'_>,
        editor: &mut E,
        limits: RewriteLimits,
        out: &mut Vec<u8>,
        mut prepare: impl FnMut(&mut Vec<u8>),
    ) -> Result<bool, E::Error> {
        let Self { decompressor, compressor, records, unpacked_bytes } = self;
        let unpacked = unpack(decompressor, batch, limits.unpacked_bytes_max, unpacked_bytes)?;
        let Some((payload, all)) = unpacked else { return Ok(false) };
        let codec = editor.begin(batch)?;
        let mut start = out.len();
        let mut begin = |out: &mut Vec<u8>| {
            prepare(out);
            start = out.len();
            out.resize(start + BATCH_HEADER_LEN, 0);
        };
        let room = limits.batch_bytes_max.saturating_sub(BATCH_HEADER_LEN);
        let is_rewritten = if codec == Compression::None {
            let bytes_max = limits.records_bytes_max.min(room);
            let mut edit = Edit::new(payload, out, &mut begin, bytes_max);
            edit_all(batch, all, editor, &mut edit)?
        } else {
            records.clear();
            let bytes_max = limits.records_bytes_max;
            let mut gather = |_: &mut Vec<u8>| {};
            let mut edit = Edit::new(payload, records, &mut gather, bytes_max);
            let is_rewritten = edit_all(batch, all, editor, &mut edit)?;
            if is_rewritten {
                begin(out);
                compressor.compress(codec, records, out)?;
            }
            is_rewritten
        };
        if !is_rewritten {
            return Ok(false);
        }
        if out.len() - start > limits.batch_bytes_max {
            return Err(Error::RewrittenTooLarge { bytes_max: limits.batch_bytes_max }.into());
        }
        write_header_like(out.get_mut(start..).unwrap_or_default(), batch, codec)?;
        Ok(true)
    }
}

/// A batch whose records the editor may replace.
pub struct Edit<'a> {
    payload: &'a [u8],
    /// Where in the payload the record at hand begins and ends.
    record: Range<usize>,
    /// Up to where the payload stands in `out`, or was replaced there.
    done: usize,
    out: &'a mut Vec<u8>,
    /// Called before the first record is written.
    begin: &'a mut dyn FnMut(&mut Vec<u8>),
    /// Where the records begin in `out`, once one was written.
    start: Option<usize>,
    bytes_max: usize,
    is_rewritten: bool,
}

impl<'a> Edit<'a> {
    fn new(
        payload: &'a [u8],
        out: &'a mut Vec<u8>,
        begin: &'a mut dyn FnMut(&mut Vec<u8>),
        bytes_max: usize,
    ) -> Self {
        let (record, done, start, is_rewritten) = (0..0, 0, None, false);
        Self { payload, record, done, out, begin, start, bytes_max, is_rewritten }
    }

    /// Replaces the record at hand by what `write` appends. If that fails, the record stays.
    ///
    /// # Errors
    /// Those of `write`.
    #[inline]
    pub fn replace<E>(
        &mut self,
        write: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
    ) -> Result<(), E> {
        if self.start.is_none() {
            (self.begin)(self.out);
            self.start = Some(self.out.len());
        }
        self.keep(self.record.start);
        let start = self.out.len();
        if let Err(error) = write(self.out) {
            self.out.truncate(start);
            return Err(error);
        }
        self.done = self.record.end;
        self.is_rewritten = true;
        Ok(())
    }

    /// Appends the payload up to `until`.
    fn keep(&mut self, until: usize) {
        self.out.extend_from_slice(self.payload.get(self.done..until).unwrap_or_default());
        self.done = until;
    }

    #[inline]
    fn check_size(&self) -> Result<(), Error> {
        let size = self.start.map_or(0, |start| self.out.len() - start);
        let bytes_max = self.bytes_max;
        if size > bytes_max { Err(Error::RewrittenTooLarge { bytes_max }) } else { Ok(()) }
    }
}

/// Takes all records of a batch through the editor, and says whether it replaced any.
fn edit_all<E: RecordEditor + ?Sized>(
    batch: &BatchView<'_>,
    records: RawRecords<'_>,
    editor: &mut E,
    edit: &mut Edit<'_>,
) -> Result<bool, E::Error> {
    for (index, record) in (0..).zip(records) {
        let record = record?;
        edit.record = edit.record.end..edit.record.end + record.bytes().len();
        editor.record(index, &record, edit)?;
        edit.check_size()?;
    }
    editor.end(batch)?;
    if edit.is_rewritten {
        edit.keep(edit.payload.len());
        edit.check_size()?;
    }
    Ok(edit.is_rewritten)
}

/// The payload of a batch, unpacked, and its records; `None` if there is nothing to look at.
fn unpack<'p>(
    decompressor: &'p mut Decompressor,
    batch: &BatchView<'p>,
    bytes_max: usize,
    unpacked_bytes: &mut usize,
) -> Result<Option<(&'p [u8], RawRecords<'p>)>, Error> {
    *unpacked_bytes = batch.bytes().len();
    if batch.is_control() || batch.records_count() == 0 {
        return Ok(None);
    }
    batch.check_crc()?;
    let codec = batch.compression()?;
    if codec != Compression::None {
        *unpacked_bytes = bytes_max;
    }
    let payload = decompressor.decompress(codec, batch.payload(), bytes_max)?;
    *unpacked_bytes = payload.len();
    Ok(Some((payload, batch.records_of_payload(payload)?.raw())))
}
