//! The broker's check of produced bytes, before offsets are assigned.

use crate::{BatchView, Compression, Error, TimestampType, set_log_append_time};

/// What a topic allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AppendLimits {
    /// Largest batch in bytes, header included: Kafka's `max.message.bytes`.
    pub batch_bytes_max: usize,
}

/// One batch that a log may append. Only this module makes it, so that nothing else reaches a log.
#[derive(Debug, Clone, Copy)]
pub struct ValidBatch<'a> {
    batch: BatchView<'a>,
    compression: Compression,
}

impl<'a> ValidBatch<'a> {
    /// Checks that `bytes` are one whole batch that a producer may append.
    ///
    /// Looked at: length, magic, size limit, CRC32C, record count against last offset delta and
    /// against the bytes present, codec, producer fields, base offset 0, no control bit,
    /// CreateTime. Payloads are neither unpacked nor walked: unlike Kafka, which walks every
    /// record, a batch whose CRC is right and whose records are not is accepted, and the max
    /// timestamp is the producer's word.
    ///
    /// # Errors
    /// The first thing that is wrong, see [`Error`].
    pub fn check(bytes: &'a [u8], limits: &AppendLimits) -> Result<Self, Error> {
        let batch = BatchView::parse(bytes)?;
        if batch.bytes().len() != bytes.len() {
            return Err(Error::NotOneBatch);
        }
        let compression = check_batch(&batch, limits)?;
        Ok(Self { batch, compression })
    }

    /// The same batch with the type LogAppendTime and `timestamp` (ms since 1970) for all its
    /// records, written into `buffer`.
    #[must_use]
    pub fn stamped(self, timestamp: i64, buffer: &mut Vec<u8>) -> ValidBatch<'_> {
        const WHOLE: &str = "a batch that was parsed is parsed again";
        buffer.clear();
        buffer.extend_from_slice(self.batch.bytes());
        set_log_append_time(buffer, timestamp).expect(WHOLE);
        let batch = BatchView::parse(buffer).expect(WHOLE);
        ValidBatch { batch, compression: self.compression }
    }

    /// The batch itself.
    #[must_use]
    pub fn view(&self) -> &BatchView<'a> {
        &self.batch
    }

    /// Number of its records.
    #[must_use]
    pub fn records_count(&self) -> u64 {
        u64::from(self.batch.records_count().unsigned_abs())
    }

    /// The codec of its records.
    #[must_use]
    pub fn compression(&self) -> Compression {
        self.compression
    }
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
