//! Sealing the values of a batch.

use moldau_records::{
    BATCH_HEADER_LEN, BatchView, Compression, Compressor, Decompressor, RawRecord, RawRecords,
    varint, write_header_like,
};

use crate::cipher::{Nonces, SealingKey};
use crate::error::Error;
use crate::marker::MARKER_HEADER;
use crate::parcel;
use crate::wrapper::{NONCE_BYTES, TAG_BYTES};

/// How a rewritten batch is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Recompression {
    /// As it was before: what Kroxylicious does.
    #[default]
    SameCodec,
    /// Not at all. Sealed values do not compress, so it costs little beside keys and headers.
    Uncompressed,
}

impl Recompression {
    pub(crate) fn of(self, codec: Compression) -> Compression {
        match self {
            Self::SameCodec => codec,
            Self::Uncompressed => Compression::None,
        }
    }
}

/// What a [`Sealer`] goes by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SealOptions {
    /// Most bytes that a batch may take when it is not compressed, before and after sealing.
    pub bytes_max: usize,
    /// How sealed batches are compressed.
    pub recompression: Recompression,
}

/// Bytes of unpacked or unsealed records beyond which a buffer is given back after its batch.
/// Kafka's batches are 1 MB at most unless configured otherwise; a rare larger one should not pin
/// its memory for the life of the owner.
pub(crate) const BUFFER_RETAINED_MAX: usize = 4 << 20;

/// Seals the values of one batch after the other with buffers that it keeps. One per thread.
pub struct Sealer {
    options: SealOptions,
    decompressor: Decompressor,
    compressor: Compressor,
    /// Sealed records that are yet to be compressed.
    sealed: Vec<u8>,
}

impl Sealer {
    /// A sealer without buffers.
    #[must_use]
    pub fn new(options: SealOptions) -> Self {
        Self {
            options,
            decompressor: Decompressor::default(),
            compressor: Compressor::default(),
            sealed: Vec::new(),
        }
    }

    /// Checks that `batch` can hold as many records as its header counts, before a key is asked to
    /// seal that many. Where the count is no more than the bytes that were sent, nothing is
    /// unpacked for it: what a false one costs was paid for.
    ///
    /// # Errors
    /// [`Error::Batch`], as of [`BatchView::check_count`] and [`BatchView::records`].
    pub fn check_count(&mut self, batch: &BatchView<'_>) -> Result<(), Error> {
        batch.check_count()?;
        let codec = batch.compression()?;
        let counted = usize::try_from(batch.records_count()).unwrap_or_default();
        if codec == Compression::None || counted > batch.payload().len() {
            let bytes_max = self.options.bytes_max;
            let payload = self.decompressor.decompress(codec, batch.payload(), bytes_max)?;
            batch.records_of_payload(payload)?;
        }
        Ok(())
    }

    /// Appends `batch` to `out`, all its values but null ones sealed, and gives back their number.
    /// Control batches and those without a record to seal are appended as they are. What the
    /// header says stays, but for length, CRC and maybe codec.
    ///
    /// A nonce of `key` is taken for each record of the batch, those with null values included.
    ///
    /// # Errors
    /// [`Error::Batch`] if the bytes are damaged, [`Error::BatchTooLarge`]. `out` is then as it
    /// was.
    pub fn seal(
        &mut self,
        batch: &BatchView<'_>,
        key: &SealingKey,
        out: &mut Vec<u8>,
    ) -> Result<u32, Error> {
        let start = out.len();
        let sealed = self.append(batch, key, out);
        if sealed.is_err() {
            out.truncate(start);
        }
        if self.sealed.capacity() > BUFFER_RETAINED_MAX {
            self.sealed = Vec::new();
        }
        sealed
    }

    fn append(
        &mut self,
        batch: &BatchView<'_>,
        key: &SealingKey,
        out: &mut Vec<u8>,
    ) -> Result<u32, Error> {
        let start = out.len();
        if batch.is_control() || batch.records_count() == 0 {
            out.extend_from_slice(batch.bytes());
            return Ok(0);
        }
        // The rewritten batch gets a right CRC, which must not cover up damage.
        batch.check_crc()?;
        let codec = batch.compression()?;
        let bytes_max = self.options.bytes_max;
        let payload = self.decompressor.decompress(codec, batch.payload(), bytes_max)?;
        let records = batch.records_of_payload(payload)?.raw();
        let recompression = self.options.recompression.of(codec);

        out.resize(start + BATCH_HEADER_LEN, 0);
        let sealed = if recompression == Compression::None {
            seal_all(records, key, bytes_max, out)?
        } else {
            self.sealed.clear();
            let sealed = seal_all(records, key, bytes_max, &mut self.sealed)?;
            self.compressor.compress(recompression, &self.sealed, out)?;
            sealed
        };
        if sealed == 0 {
            out.truncate(start);
            out.extend_from_slice(batch.bytes());
            return Ok(0);
        }
        write_header_like(out.get_mut(start..).unwrap_or_default(), batch, recompression)?;
        Ok(sealed)
    }
}

/// Appends all records to `out`, of which they may take `bytes_max` bytes, and counts those sealed.
fn seal_all(
    records: RawRecords<'_>,
    key: &SealingKey,
    bytes_max: usize,
    out: &mut Vec<u8>,
) -> Result<u32, Error> {
    let end_max = out.len().saturating_add(bytes_max);
    let count = u32::try_from(records.remaining()).expect("a batch counts its records by an i32");
    let mut nonces = key.take_nonces(count);
    let mut sealed = 0;
    for record in records {
        let record = record?;
        // Who opens the batch reads them, and what was sealed must open.
        record.check_headers()?;
        match record.value() {
            Some(value) => {
                seal_one(&record, value, key, &mut nonces, out)?;
                sealed += 1;
            }
            None => out.extend_from_slice(record.bytes()),
        }
        if out.len() > end_max {
            return Err(Error::BatchTooLarge { bytes_max });
        }
    }
    Ok(sealed)
}

#[inline]
fn seal_one(
    record: &RawRecord<'_>,
    value: &[u8],
    key: &SealingKey,
    nonces: &mut Nonces,
    out: &mut Vec<u8>,
) -> Result<(), Error> {
    let overflow = || Error::from(moldau_records::Error::FormatOverflow);
    let before = record.before_value();
    let head = key.wrapper_head();
    let parcel_len = parcel::value_len(value).ok_or_else(overflow)?;
    let wrapper_len = head.len() + NONCE_BYTES + parcel_len + TAG_BYTES;
    let wrapper_len_field = i32::try_from(wrapper_len).map_err(|_| overflow())?;
    let headers_count = i32::try_from(record.headers_count() + 1).map_err(|_| overflow())?;
    let body_len = before.len()
        + varint::len_i32(wrapper_len_field)
        + wrapper_len
        + varint::len_i32(headers_count)
        + MARKER_HEADER.len()
        + record.headers().len();
    let body_len_field = i32::try_from(body_len).map_err(|_| overflow())?;

    out.reserve(varint::LEN_32_MAX + body_len);
    varint::write_i32(out, body_len_field);
    out.extend_from_slice(before);
    varint::write_i32(out, wrapper_len_field);
    out.extend_from_slice(head);
    let nonce = nonces.next();
    out.extend_from_slice(&nonce);
    let parcel_at = out.len();
    parcel::write_value(out, value);
    let tag = key.seal(nonce, out.get_mut(parcel_at..).unwrap_or_default());
    out.extend_from_slice(&tag);
    varint::write_i32(out, headers_count);
    out.extend_from_slice(MARKER_HEADER);
    out.extend_from_slice(record.headers());
    Ok(())
}
