//! Writing batches: for producers, record after record, and for filters that rewrite a batch.

use bytes::Bytes;

use crate::batch::{BATCH_HEADER_LEN, LENGTH_OVERHEAD, MAGIC};
use crate::patch::write_crc;
use crate::{
    Attributes, BatchView, Compression, Compressor, Error, HeaderView, NO_PARTITION_LEADER_EPOCH,
    NO_PRODUCER_ID, NO_SEQUENCE, NO_TIMESTAMP, varint,
};

/// Id, epoch and first sequence number of an idempotent or transactional producer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Producer {
    /// Producer id, 0 or more.
    pub id: i64,
    /// Producer epoch, 0 or more.
    pub epoch: i16,
    /// Sequence number of the batch's first record; -1 in a control batch.
    pub base_sequence: i32,
}

impl Producer {
    pub(crate) fn of(batch: &BatchView<'_>) -> Option<Self> {
        batch.has_producer_id().then(|| Self {
            id: batch.producer_id(),
            epoch: batch.producer_epoch(),
            base_sequence: batch.base_sequence(),
        })
    }
}

/// The header fields of a batch to be written. `default()` is what a plain producer sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchOptions {
    /// Offset of the first record; 0 from a producer.
    pub base_offset: i64,
    /// Epoch of the appending leader, -1 from a producer.
    pub partition_leader_epoch: i32,
    /// Transactional, control and timestamp type bits. The codec is that given to `finish`.
    pub attributes: Attributes,
    /// Timestamp that deltas count from; that of the first record if `None`.
    pub base_timestamp: Option<i64>,
    /// Max timestamp; the largest of the records if `None`. LogAppendTime needs it.
    pub max_timestamp: Option<i64>,
    /// The idempotent producer, if any.
    pub producer: Option<Producer>,
    /// Last offset delta; that of the last record if `None`. A filter that drops records keeps the
    /// offsets of the batch by it.
    pub last_offset_delta: Option<i32>,
}

impl Default for BatchOptions {
    fn default() -> Self {
        Self {
            base_offset: 0,
            partition_leader_epoch: NO_PARTITION_LEADER_EPOCH,
            attributes: Attributes::default(),
            base_timestamp: None,
            max_timestamp: None,
            producer: None,
            last_offset_delta: None,
        }
    }
}

impl BatchOptions {
    /// All header fields of `batch`, for a filter that writes it anew. Records should then be
    /// appended with their [`crate::RecordView::stored_timestamp`].
    #[must_use]
    pub fn of(batch: &BatchView<'_>) -> Self {
        Self {
            base_offset: batch.base_offset(),
            partition_leader_epoch: batch.partition_leader_epoch(),
            attributes: batch.attributes(),
            base_timestamp: Some(batch.base_timestamp()),
            max_timestamp: Some(batch.max_timestamp()),
            producer: Producer::of(batch),
            last_offset_delta: Some(batch.last_offset_delta()),
        }
    }
}

/// Builds one batch after the other in buffers that it keeps.
///
/// ```
/// use moldau_records::{BatchBuilder, BatchOptions, BatchView, Compression, Compressor};
///
/// let mut builder = BatchBuilder::new(BatchOptions::default());
/// builder.append(1_700_000_000_000, Some(b"key"), Some(b"value"), [])?;
/// let bytes = builder.finish(Compression::Lz4, &mut Compressor::default())?;
/// assert_eq!(BatchView::parse(bytes)?.records_count(), 1);
/// # Ok::<(), moldau_records::Error>(())
/// ```
#[derive(Debug)]
pub struct BatchBuilder {
    options: BatchOptions,
    /// Room for the header, then the records.
    plain: Vec<u8>,
    /// Room for the header, then the compressed records.
    packed: Vec<u8>,
    records_count: i32,
    last_offset_delta: i32,
    base_timestamp: Option<i64>,
    max_timestamp: i64,
}

impl BatchBuilder {
    /// A builder for a first batch.
    #[must_use]
    pub fn new(options: BatchOptions) -> Self {
        let mut builder = Self {
            options: BatchOptions::default(),
            plain: Vec::new(),
            packed: Vec::new(),
            records_count: 0,
            last_offset_delta: -1,
            base_timestamp: None,
            max_timestamp: NO_TIMESTAMP,
        };
        builder.start(options);
        builder
    }

    /// Begins another batch; what was appended and not finished is dropped, buffers are kept.
    pub fn start(&mut self, options: BatchOptions) {
        self.plain.clear();
        self.plain.resize(BATCH_HEADER_LEN, 0);
        self.records_count = 0;
        self.last_offset_delta = -1;
        self.base_timestamp = options.base_timestamp;
        self.max_timestamp = NO_TIMESTAMP;
        self.options = options;
    }

    /// Number of records appended.
    #[must_use]
    pub fn records_count(&self) -> usize {
        self.records_count.unsigned_abs() as usize
    }

    /// Whether no record is appended.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.records_count == 0
    }

    /// Bytes of the batch so far, header included, before compression.
    #[must_use]
    pub fn estimated_size(&self) -> usize {
        self.plain.len()
    }

    /// Upper bound of what a record adds to [`Self::estimated_size`], with any timestamp.
    #[must_use]
    pub fn record_size_max<'h>(
        key: Option<&[u8]>,
        value: Option<&[u8]>,
        headers: impl IntoIterator<Item = HeaderView<'h>>,
    ) -> usize {
        let lengths = 4 * varint::LEN_32_MAX + varint::LEN_64_MAX + 1;
        let headers: usize = headers
            .into_iter()
            .map(|h| 2 * varint::LEN_32_MAX + h.key.len() + h.value.map_or(0, <[u8]>::len))
            .sum();
        lengths
            + varint::LEN_32_MAX
            + key.map_or(0, <[u8]>::len)
            + value.map_or(0, <[u8]>::len)
            + headers
    }

    /// Appends a record at the next offset and gives back its offset delta.
    /// `timestamp` is in ms since 1970; the headers are walked twice, hence `Clone`.
    ///
    /// # Errors
    /// [`Error::FormatOverflow`]; nothing is appended then.
    pub fn append<'h, H>(
        &mut self,
        timestamp: i64,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
        headers: H,
    ) -> Result<i32, Error>
    where
        H: IntoIterator<Item = HeaderView<'h>>,
        H::IntoIter: Clone,
    {
        let offset_delta = self.last_offset_delta.checked_add(1).ok_or(Error::FormatOverflow)?;
        self.append_at(offset_delta, timestamp, key, value, headers)?;
        Ok(offset_delta)
    }

    /// Appends a record at a given distance from the base offset, for filters that keep offsets.
    ///
    /// # Errors
    /// [`Error::InvalidOffsetDelta`] when the deltas do not grow, [`Error::FormatOverflow`];
    /// nothing is appended then.
    pub fn append_at<'h, H>(
        &mut self,
        offset_delta: i32,
        timestamp: i64,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
        headers: H,
    ) -> Result<(), Error>
    where
        H: IntoIterator<Item = HeaderView<'h>>,
        H::IntoIter: Clone,
    {
        if offset_delta <= self.last_offset_delta {
            let previous = self.last_offset_delta;
            return Err(Error::InvalidOffsetDelta { offset_delta, previous });
        }
        let base_timestamp = self.base_timestamp.unwrap_or(timestamp);
        let timestamp_delta = timestamp.wrapping_sub(base_timestamp);
        let headers = headers.into_iter();
        let (headers_count, headers_len) = measure_headers(headers.clone())?;
        let body_len = 1usize
            .checked_add(varint::len_i64(timestamp_delta) + varint::len_i32(offset_delta))
            .and_then(|len| len.checked_add(varint::nullable_len(key)?))
            .and_then(|len| len.checked_add(varint::nullable_len(value)?))
            .and_then(|len| len.checked_add(varint::len_i32(headers_count) + headers_len))
            .ok_or(Error::FormatOverflow)?;
        let body_len_field = i32::try_from(body_len).map_err(|_| Error::FormatOverflow)?;
        let record_len = varint::len_i32(body_len_field) + body_len;
        if self.plain.len() + record_len > BATCH_LEN_MAX {
            return Err(Error::FormatOverflow);
        }

        self.plain.reserve(record_len);
        varint::write_i32(&mut self.plain, body_len_field);
        self.plain.push(0);
        varint::write_i64(&mut self.plain, timestamp_delta);
        varint::write_i32(&mut self.plain, offset_delta);
        varint::write_nullable(&mut self.plain, key);
        varint::write_nullable(&mut self.plain, value);
        varint::write_i32(&mut self.plain, headers_count);
        for header in headers {
            varint::write_nullable(&mut self.plain, Some(header.key));
            varint::write_nullable(&mut self.plain, header.value);
        }

        self.base_timestamp = Some(base_timestamp);
        self.max_timestamp = self.max_timestamp.max(timestamp);
        self.last_offset_delta = offset_delta;
        self.records_count += 1;
        Ok(())
    }

    /// Completes the batch and lends its bytes. The builder then waits for [`Self::start`].
    ///
    /// # Errors
    /// [`Error::EmptyBatch`] without records and without an explicit last offset delta,
    /// [`Error::InvalidOffsetDelta`] when that delta lies before the last record,
    /// [`Error::CompressorFailed`], [`Error::FormatOverflow`].
    pub fn finish(
        &mut self,
        compression: Compression,
        compressor: &mut Compressor,
    ) -> Result<&[u8], Error> {
        self.seal(compression, compressor).map(|batch| &batch[..])
    }

    /// As [`Self::finish`], and hands the buffer over without a copy; the next batch of this
    /// builder, already started with the same options, allocates another. For producers, which
    /// keep a batch until it is acknowledged.
    ///
    /// # Errors
    /// As [`Self::finish`].
    pub fn finish_bytes(
        &mut self,
        compression: Compression,
        compressor: &mut Compressor,
    ) -> Result<Bytes, Error> {
        let batch = Bytes::from(std::mem::take(self.seal(compression, compressor)?));
        self.start(self.options);
        Ok(batch)
    }

    fn seal(
        &mut self,
        compression: Compression,
        compressor: &mut Compressor,
    ) -> Result<&mut Vec<u8>, Error> {
        let last_offset_delta = self.options.last_offset_delta.unwrap_or(self.last_offset_delta);
        if last_offset_delta < 0 {
            return Err(Error::EmptyBatch);
        }
        if last_offset_delta < self.last_offset_delta {
            return Err(Error::InvalidOffsetDelta {
                offset_delta: last_offset_delta,
                previous: self.last_offset_delta,
            });
        }
        let records = self.plain.get(BATCH_HEADER_LEN..).ok_or(Error::EmptyBatch)?;
        if compression != Compression::None {
            self.packed.clear();
            self.packed.resize(BATCH_HEADER_LEN, 0);
            compressor.compress(compression, records, &mut self.packed)?;
        }
        let batch_len = match compression {
            Compression::None => self.plain.len(),
            _ => self.packed.len(),
        };
        let header = self.header(batch_len, last_offset_delta, compression)?;
        let batch = match compression {
            Compression::None => &mut self.plain,
            _ => &mut self.packed,
        };
        if let Some(place) = batch.first_chunk_mut() {
            *place = header;
        }
        write_crc(batch)?;
        Ok(batch)
    }

    fn header(
        &self,
        batch_len: usize,
        last_offset_delta: i32,
        compression: Compression,
    ) -> Result<[u8; BATCH_HEADER_LEN], Error> {
        let length =
            i32::try_from(batch_len - LENGTH_OVERHEAD).map_err(|_| Error::FormatOverflow)?;
        let attributes = self.options.attributes.with_compression(compression);
        let producer = self.options.producer.unwrap_or(Producer {
            id: NO_PRODUCER_ID,
            epoch: -1,
            base_sequence: NO_SEQUENCE,
        });
        let base_timestamp = self.base_timestamp.unwrap_or(NO_TIMESTAMP);
        let max_timestamp = self.options.max_timestamp.unwrap_or(self.max_timestamp);
        let mut header = [0; BATCH_HEADER_LEN];
        header[0..8].copy_from_slice(&self.options.base_offset.to_be_bytes());
        header[8..12].copy_from_slice(&length.to_be_bytes());
        header[12..16].copy_from_slice(&self.options.partition_leader_epoch.to_be_bytes());
        header[16..17].copy_from_slice(&MAGIC.to_be_bytes());
        header[21..23].copy_from_slice(&attributes.bits().to_be_bytes());
        header[23..27].copy_from_slice(&last_offset_delta.to_be_bytes());
        header[27..35].copy_from_slice(&base_timestamp.to_be_bytes());
        header[35..43].copy_from_slice(&max_timestamp.to_be_bytes());
        header[43..51].copy_from_slice(&producer.id.to_be_bytes());
        header[51..53].copy_from_slice(&producer.epoch.to_be_bytes());
        header[53..57].copy_from_slice(&producer.base_sequence.to_be_bytes());
        header[57..61].copy_from_slice(&self.records_count.to_be_bytes());
        Ok(header)
    }
}

/// The length field is an `i32` and counts all but the first bytes.
const BATCH_LEN_MAX: usize = i32::MAX as usize;

#[inline]
fn measure_headers<'h>(
    headers: impl Iterator<Item = HeaderView<'h>>,
) -> Result<(i32, usize), Error> {
    let mut count = 0i32;
    let mut len = 0usize;
    for header in headers {
        count = count.checked_add(1).ok_or(Error::FormatOverflow)?;
        len = varint::nullable_len(Some(header.key))
            .and_then(|key| len.checked_add(key))
            .and_then(|len| len.checked_add(varint::nullable_len(header.value)?))
            .ok_or(Error::FormatOverflow)?;
    }
    Ok((count, len))
}
