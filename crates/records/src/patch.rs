//! Changes to a finished batch in place.

use crate::batch::{BATCH_HEADER_LEN, CRC_START, LENGTH_OVERHEAD};
use crate::{Attributes, BatchView, Compression, Error, Producer, TimestampType, crc32c};

/// Writes the base offset. It lies outside the CRC.
///
/// # Errors
/// [`Error::Truncated`] when `batch` is shorter than a batch header.
pub fn patch_base_offset(batch: &mut [u8], base_offset: i64) -> Result<(), Error> {
    header_of(batch)?[0..8].copy_from_slice(&base_offset.to_be_bytes());
    Ok(())
}

/// Writes the partition leader epoch. It lies outside the CRC.
///
/// # Errors
/// [`Error::Truncated`] when `batch` is shorter than a batch header.
pub fn patch_partition_leader_epoch(batch: &mut [u8], leader_epoch: i32) -> Result<(), Error> {
    header_of(batch)?[12..16].copy_from_slice(&leader_epoch.to_be_bytes());
    Ok(())
}

/// Writes the producer fields of the batch at the start of `bytes`, and its CRC anew. A producer
/// does so when it gets another id while batches wait. What follows the batch is left alone.
///
/// # Errors
/// As [`BatchView::parse`]; nothing is changed then.
pub fn set_producer(bytes: &mut [u8], producer: Producer) -> Result<(), Error> {
    let batch = first_batch(bytes)?;
    let header = header_of(batch)?;
    header[43..51].copy_from_slice(&producer.id.to_be_bytes());
    header[51..53].copy_from_slice(&producer.epoch.to_be_bytes());
    header[53..57].copy_from_slice(&producer.base_sequence.to_be_bytes());
    write_crc(batch)
}

/// Completes a batch whose records stand anew behind the room for its header: the header is that of
/// `original`, but for the length, the codec and the CRC.
///
/// # Errors
/// [`Error::Truncated`] when `batch` is shorter than a batch header, [`Error::FormatOverflow`] when
/// it is longer than a length field can say.
pub fn write_header_like(
    batch: &mut [u8],
    original: &BatchView<'_>,
    compression: Compression,
) -> Result<(), Error> {
    copy_header(batch, original, original.attributes().with_compression(compression))?;
    write_crc(batch)
}

/// As [`write_header_like`], with another timestamp type and max timestamp.
pub(crate) fn write_header_timed(
    batch: &mut [u8],
    original: &BatchView<'_>,
    compression: Compression,
    (timestamp_type, max_timestamp): (TimestampType, i64),
) -> Result<(), Error> {
    let attributes = original.attributes().with_timestamp_type(timestamp_type);
    copy_header(batch, original, attributes.with_compression(compression))?;
    header_of(batch)?[35..43].copy_from_slice(&max_timestamp.to_be_bytes());
    write_crc(batch)
}

fn copy_header(
    batch: &mut [u8],
    original: &BatchView<'_>,
    attributes: Attributes,
) -> Result<(), Error> {
    let length = i32::try_from(batch.len().saturating_sub(LENGTH_OVERHEAD))
        .map_err(|_| Error::FormatOverflow)?;
    let header = header_of(batch)?;
    *header = *original.header();
    header[8..12].copy_from_slice(&length.to_be_bytes());
    header[21..23].copy_from_slice(&attributes.bits().to_be_bytes());
    Ok(())
}

/// Writes the CRC of a batch whose other bytes are in place.
pub(crate) fn write_crc(batch: &mut [u8]) -> Result<(), Error> {
    let crc = crc32c(batch.get(CRC_START..).unwrap_or_default());
    header_of(batch)?[17..21].copy_from_slice(&crc.to_be_bytes());
    Ok(())
}

fn first_batch(bytes: &mut [u8]) -> Result<&mut [u8], Error> {
    let needed = BatchView::parse(bytes)?.bytes().len();
    let available = bytes.len();
    bytes.get_mut(..needed).ok_or(Error::Truncated { needed, available })
}

/// The header as an array, so that places in it are checked when compiling.
fn header_of(batch: &mut [u8]) -> Result<&mut [u8; BATCH_HEADER_LEN], Error> {
    let available = batch.len();
    batch.first_chunk_mut().ok_or(Error::Truncated { needed: BATCH_HEADER_LEN, available })
}
