//! The broker's check of produced bytes, before offsets are assigned.

use crate::{BatchView, Compression, Error, NO_TIMESTAMP, TimestampType};

/// What a topic allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AppendLimits {
    /// Largest batch in bytes, header included: Kafka's `max.message.bytes`.
    pub batch_bytes_max: usize,
}

/// What [`validate_for_append`] saw.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AppendInfo {
    /// Number of batches, at least 1. Kafka refuses more than one per partition and request.
    pub batches_count: usize,
    /// Number of records in all batches.
    pub records_count: u64,
    /// Largest of the batches' max timestamps, -1 for none. It is what the producer claims.
    pub max_timestamp: i64,
    /// Whether any batch is compressed by zstd, which Produce below version 7 may not carry.
    pub has_zstd: bool,
    /// Whether any batch is transactional.
    pub is_transactional: bool,
    /// Producer id, epoch and base sequence of the first batch, if it has a producer id.
    pub producer: Option<crate::Producer>,
}

/// Checks that `bytes` are one or more whole batches that a producer may append.
///
/// Looked at: length, magic, size limit, CRC32C, record count against last offset delta and against
/// the bytes present, codec, producer fields, base offset 0, no control bit, CreateTime. Payloads
/// are neither unpacked nor walked: unlike Kafka, which walks every record, a batch whose CRC is
/// right and whose records are not is accepted, and `max_timestamp` is the producer's word.
///
/// # Errors
/// The first thing that is wrong, see [`Error`].
pub fn validate_for_append(bytes: &[u8], limits: &AppendLimits) -> Result<AppendInfo, Error> {
    let first = BatchView::parse(bytes)?;
    let mut info = AppendInfo {
        batches_count: 0,
        records_count: 0,
        max_timestamp: NO_TIMESTAMP,
        has_zstd: false,
        is_transactional: false,
        producer: crate::Producer::of(&first),
    };
    let mut rest = bytes;
    while !rest.is_empty() {
        let batch = BatchView::parse(rest)?;
        let compression = check_batch(&batch, limits)?;
        info.batches_count += 1;
        info.records_count += u64::from(batch.records_count().unsigned_abs());
        info.max_timestamp = info.max_timestamp.max(batch.max_timestamp());
        info.has_zstd |= compression == Compression::Zstd;
        info.is_transactional |= batch.is_transactional();
        rest = rest.get(batch.bytes().len()..).unwrap_or_default();
    }
    Ok(info)
}

fn check_batch(batch: &BatchView<'_>, limits: &AppendLimits) -> Result<Compression, Error> {
    let bytes = batch.bytes().len();
    if bytes > limits.batch_bytes_max {
        return Err(Error::BatchTooLarge { bytes, bytes_max: limits.batch_bytes_max });
    }
    batch.check_crc()?;
    batch.check_count()?;
    if batch.base_offset() != 0 {
        return Err(Error::InvalidBaseOffset { base_offset: batch.base_offset() });
    }
    if batch.is_control() {
        return Err(Error::ControlBatch);
    }
    if batch.timestamp_type() == TimestampType::LogAppendTime {
        return Err(Error::InvalidTimestampType);
    }
    check_producer(batch)?;
    let compression = batch.compression()?;
    if compression == Compression::None {
        // The walk itself is left to readers; only the room for it is checked.
        batch.records_of_payload(batch.payload())?;
    }
    Ok(compression)
}

/// A producer id needs an epoch and a sequence; a transaction needs a producer id.
fn check_producer(batch: &BatchView<'_>) -> Result<(), Error> {
    let consistent = if batch.has_producer_id() {
        batch.producer_epoch() >= 0 && batch.base_sequence() >= 0
    } else {
        !batch.is_transactional()
    };
    if consistent {
        return Ok(());
    }
    Err(Error::InvalidProducer {
        id: batch.producer_id(),
        epoch: batch.producer_epoch(),
        base_sequence: batch.base_sequence(),
    })
}
