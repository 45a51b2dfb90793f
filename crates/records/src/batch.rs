//! A batch as it lies in memory, and the walk over several of them.
//!
//! ```text
//! at  len  field                    at  len  field
//!  0   8   base offset              27   8   base timestamp (ms)
//!  8   4   length of the rest       35   8   max timestamp (ms)
//! 12   4   partition leader epoch   43   8   producer id
//! 16   1   magic, 2                 51   2   producer epoch
//! 17   4   CRC32C of 21..           53   4   base sequence
//! 21   2   attributes               57   4   record count
//! 23   4   last offset delta        61       records, compressed or not
//! ```
//! All big-endian. Source: Kafka's documentation, "Message Format", and KIP-98.

use crate::compression::Decompressor;
use crate::record::sequence_at;
use crate::{Attributes, Compression, Error, Records, TimestampType, crc32c};

/// Bytes of a batch before its records.
pub const BATCH_HEADER_LEN: usize = 61;
/// Bytes before those that the length field counts.
pub(crate) const LENGTH_OVERHEAD: usize = 12;
/// First byte that the CRC covers.
pub(crate) const CRC_START: usize = 21;
/// The magic byte of the format.
pub(crate) const MAGIC: i8 = 2;
/// Bytes up to and with the magic byte, which stands at the same place in formats 0 and 1.
const PREFIX_LEN: usize = 17;

/// Producer id of a batch from a producer that is not idempotent.
pub const NO_PRODUCER_ID: i64 = -1;
/// Base sequence of a batch from a producer that is not idempotent.
pub const NO_SEQUENCE: i32 = -1;
/// Timestamp of a record that has none.
pub const NO_TIMESTAMP: i64 = -1;
/// Leader epoch of a batch that no broker has appended.
pub const NO_PARTITION_LEADER_EPOCH: i32 = -1;

/// One whole batch over borrowed bytes. Its length and magic are checked; its CRC and counts only
/// where asked for.
#[derive(Debug, Clone, Copy)]
pub struct BatchView<'a> {
    bytes: &'a [u8],
    payload: &'a [u8],
    base_offset: i64,
    partition_leader_epoch: i32,
    crc: u32,
    attributes: Attributes,
    last_offset_delta: i32,
    base_timestamp: i64,
    max_timestamp: i64,
    producer_id: i64,
    producer_epoch: i16,
    base_sequence: i32,
    records_count: i32,
}

impl<'a> BatchView<'a> {
    /// Reads the batch at the start of `bytes`; what follows it is left alone.
    ///
    /// # Errors
    /// [`Error::Truncated`] when the batch is not whole, [`Error::InvalidLength`],
    /// [`Error::UnsupportedMagic`] for formats 0 and 1, [`Error::UnknownMagic`].
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Error> {
        let batch_len = batch_len(bytes)?;
        let bytes = bytes
            .get(..batch_len)
            .ok_or(Error::Truncated { needed: batch_len, available: bytes.len() })?;
        let mut fields = Fields { rest: bytes, batch_len };
        let base_offset = i64::from_be_bytes(fields.take()?);
        let _length: [u8; 4] = fields.take()?;
        let partition_leader_epoch = i32::from_be_bytes(fields.take()?);
        let _magic: [u8; 1] = fields.take()?;
        let crc = u32::from_be_bytes(fields.take()?);
        let attributes = Attributes::from_bits(u16::from_be_bytes(fields.take()?));
        let last_offset_delta = i32::from_be_bytes(fields.take()?);
        let base_timestamp = i64::from_be_bytes(fields.take()?);
        let max_timestamp = i64::from_be_bytes(fields.take()?);
        let producer_id = i64::from_be_bytes(fields.take()?);
        let producer_epoch = i16::from_be_bytes(fields.take()?);
        let base_sequence = i32::from_be_bytes(fields.take()?);
        let records_count = i32::from_be_bytes(fields.take()?);
        Ok(Self {
            bytes,
            payload: fields.rest,
            base_offset,
            partition_leader_epoch,
            crc,
            attributes,
            last_offset_delta,
            base_timestamp,
            max_timestamp,
            producer_id,
            producer_epoch,
            base_sequence,
            records_count,
        })
    }

    /// The whole batch, header included.
    #[must_use]
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// What lies before the records.
    pub(crate) fn header(&self) -> &'a [u8; BATCH_HEADER_LEN] {
        self.bytes.first_chunk().expect("a view is made of a whole header at least")
    }

    /// The records as stored: compressed if [`Self::compression`] says so.
    #[must_use]
    pub fn payload(&self) -> &'a [u8] {
        self.payload
    }

    /// Offset of the first record; producers send 0, the broker assigns it.
    #[must_use]
    pub fn base_offset(&self) -> i64 {
        self.base_offset
    }

    /// Offset of the last record, wrapping where a hostile header asks for it.
    #[must_use]
    pub fn last_offset(&self) -> i64 {
        self.base_offset.wrapping_add(i64::from(self.last_offset_delta))
    }

    /// Offset that follows this batch, wrapping like [`Self::last_offset`].
    #[must_use]
    pub fn next_offset(&self) -> i64 {
        self.last_offset().wrapping_add(1)
    }

    /// Distance from the first offset to the last.
    #[must_use]
    pub fn last_offset_delta(&self) -> i32 {
        self.last_offset_delta
    }

    /// Epoch of the leader that appended the batch.
    #[must_use]
    pub fn partition_leader_epoch(&self) -> i32 {
        self.partition_leader_epoch
    }

    /// The stored CRC32C.
    #[must_use]
    pub fn crc(&self) -> u32 {
        self.crc
    }

    /// The attribute bits.
    #[must_use]
    pub fn attributes(&self) -> Attributes {
        self.attributes
    }

    /// The codec of the records.
    ///
    /// # Errors
    /// [`Error::UnknownCompression`].
    pub fn compression(&self) -> Result<Compression, Error> {
        self.attributes.compression()
    }

    /// Who sets the timestamps.
    #[must_use]
    pub fn timestamp_type(&self) -> TimestampType {
        self.attributes.timestamp_type()
    }

    /// Whether the batch belongs to a transaction.
    #[must_use]
    pub fn is_transactional(&self) -> bool {
        self.attributes.is_transactional()
    }

    /// Whether the batch holds control records in place of data.
    #[must_use]
    pub fn is_control(&self) -> bool {
        self.attributes.is_control()
    }

    /// Timestamp that the records' deltas count from, in ms since 1970.
    #[must_use]
    pub fn base_timestamp(&self) -> i64 {
        self.base_timestamp
    }

    /// Time from which the tombstones of the batch may go, in ms since 1970, once a cleaning has
    /// set it (KIP-534). It is the base timestamp then.
    #[must_use]
    pub fn delete_horizon(&self) -> Option<i64> {
        self.attributes.has_delete_horizon().then_some(self.base_timestamp)
    }

    /// Largest timestamp of the records, in ms since 1970; under LogAppendTime that of all records.
    #[must_use]
    pub fn max_timestamp(&self) -> i64 {
        self.max_timestamp
    }

    /// Producer id, [`NO_PRODUCER_ID`] for none.
    #[must_use]
    pub fn producer_id(&self) -> i64 {
        self.producer_id
    }

    /// Whether an idempotent producer wrote the batch.
    #[must_use]
    pub fn has_producer_id(&self) -> bool {
        self.producer_id > NO_PRODUCER_ID
    }

    /// Producer epoch, -1 for none.
    #[must_use]
    pub fn producer_epoch(&self) -> i16 {
        self.producer_epoch
    }

    /// Sequence number of the first record, [`NO_SEQUENCE`] for none.
    #[must_use]
    pub fn base_sequence(&self) -> i32 {
        self.base_sequence
    }

    /// Sequence number of the last record; after `i32::MAX` comes 0. [`NO_SEQUENCE`] for none.
    #[must_use]
    pub fn last_sequence(&self) -> i32 {
        sequence_at(self.base_sequence, self.last_offset_delta)
    }

    /// Record count of the header.
    #[must_use]
    pub fn records_count(&self) -> i32 {
        self.records_count
    }

    /// Compares the stored CRC with the bytes.
    ///
    /// # Errors
    /// [`Error::CrcMismatch`].
    pub fn check_crc(&self) -> Result<(), Error> {
        let computed = crc32c(self.bytes.get(CRC_START..).unwrap_or_default());
        if computed == self.crc {
            Ok(())
        } else {
            Err(Error::CrcMismatch { stored: self.crc, computed })
        }
    }

    /// Checks that the count is positive and equals the last offset delta + 1, which holds for
    /// every batch from a producer. A compacted batch may have fewer records.
    ///
    /// # Errors
    /// [`Error::InvalidCount`].
    pub fn check_count(&self) -> Result<(), Error> {
        if self.records_count > 0 && self.last_offset_delta == self.records_count - 1 {
            return Ok(());
        }
        Err(Error::InvalidCount {
            records_count: self.records_count,
            last_offset_delta: self.last_offset_delta,
        })
    }

    /// The records, unpacked by `decompressor` where needed into at most `bytes_max` bytes.
    /// The CRC is not looked at.
    ///
    /// # Errors
    /// [`Error::UnknownCompression`], [`Error::CorruptPayload`], [`Error::PayloadTooLarge`], and
    /// [`Error::InvalidRecord`] when the payload cannot hold as many records as the header counts.
    pub fn records<'r>(
        &self,
        decompressor: &'r mut Decompressor,
        bytes_max: usize,
    ) -> Result<Records<'r>, Error>
    where
        'a: 'r,
    {
        let payload = decompressor.decompress(self.compression()?, self.payload, bytes_max)?;
        Records::of(self, payload)
    }

    /// The records out of a payload that the caller has unpacked and keeps, by
    /// [`Decompressor::decompress_into`]. For an uncompressed batch that is [`Self::payload`].
    ///
    /// # Errors
    /// [`Error::InvalidRecord`] when the payload cannot hold as many records as the header counts.
    pub fn records_of_payload<'p>(&self, payload: &'p [u8]) -> Result<Records<'p>, Error> {
        Records::of(self, payload)
    }
}

/// Reads header fields one after the other.
struct Fields<'a> {
    rest: &'a [u8],
    batch_len: usize,
}

impl<'a> Fields<'a> {
    #[inline]
    fn take<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        let (field, rest) = self
            .rest
            .split_first_chunk()
            .ok_or(Error::Truncated { needed: BATCH_HEADER_LEN, available: self.batch_len })?;
        self.rest = rest;
        Ok(*field)
    }
}

/// Size that the length field at the start of `bytes` announces, header included; magic checked.
fn batch_len(bytes: &[u8]) -> Result<usize, Error> {
    let mut fields = Fields { rest: bytes, batch_len: bytes.len() };
    let _base_offset: [u8; 8] = fields.take()?;
    let length = i32::from_be_bytes(fields.take()?);
    let _epoch_or_crc: [u8; 4] = fields.take()?;
    let [magic] = fields.take()?;
    match i8::from_be_bytes([magic]) {
        MAGIC => {}
        magic @ (0 | 1) => return Err(Error::UnsupportedMagic { magic }),
        magic => return Err(Error::UnknownMagic { magic }),
    }
    usize::try_from(length)
        .ok()
        .and_then(|length| length.checked_add(LENGTH_OVERHEAD))
        .filter(|&batch_len| batch_len >= BATCH_HEADER_LEN)
        .ok_or(Error::InvalidLength { length })
}

/// Walks the batches that lie one after the other in `bytes`.
///
/// A fetch response may end inside a batch, since the broker cuts at a byte count. The walk ends
/// there without an error and [`Batches::remainder`] tells what was left.
#[must_use]
pub fn iter_batches(bytes: &[u8]) -> Batches<'_> {
    Batches { rest: bytes, failed: false }
}

/// Iterator of [`iter_batches`]. After an error it ends, as the place of the next batch is unknown.
#[derive(Debug, Clone)]
pub struct Batches<'a> {
    rest: &'a [u8],
    failed: bool,
}

impl<'a> Batches<'a> {
    /// Bytes not walked: empty at a clean end, a partial batch where the bytes end inside one,
    /// or what begins with the batch that gave the error.
    #[must_use]
    pub fn remainder(&self) -> &'a [u8] {
        self.rest
    }
}

impl<'a> Iterator for Batches<'a> {
    type Item = Result<BatchView<'a>, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed || self.rest.len() < PREFIX_LEN {
            return None;
        }
        match BatchView::parse(self.rest) {
            Ok(batch) => {
                self.rest = self.rest.get(batch.bytes.len()..).unwrap_or_default();
                Some(Ok(batch))
            }
            Err(Error::Truncated { .. }) => None,
            Err(error) => {
                self.failed = true;
                Some(Err(error))
            }
        }
    }
}
