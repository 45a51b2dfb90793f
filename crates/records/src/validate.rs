//! The broker's check of produced bytes, before offsets are assigned.

use crate::compression::BUFFER_RETAINED_MAX;
use crate::patch::write_header_timed;
use crate::summary::Summary;
use crate::{
    BATCH_HEADER_LEN, BatchView, Compression, Compressor, Decompressor, Error, NO_TIMESTAMP,
    Packing, RawRecord, TimestampType,
};

/// Rules of a topic, and the cost limit of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AppendRules {
    /// Largest batch in bytes, header included: Kafka's `max.message.bytes`.
    pub batch_bytes_max: usize,
    /// Most bytes that the records of a compressed batch may unpack to.
    pub unpacked_bytes_max: usize,
    /// Whose timestamps count.
    pub timestamps: Timestamps,
    /// Whether each record needs a key, as in a compacted topic.
    pub needs_keys: bool,
    /// How records are packed; `None` for as the producer has them.
    pub packing: Option<Packing>,
    /// Whether records may be packed now, which takes long: [`Error::PackingNeeded`] if not.
    pub may_pack: bool,
    /// Which compressed batches are unpacked.
    pub unpacking: Unpacking,
}

impl AppendRules {
    /// Allows everything that a batch of Kafka's format can hold.
    pub const LENIENT: Self = Self {
        batch_bytes_max: usize::MAX,
        unpacked_bytes_max: 64 << 20,
        timestamps: Timestamps::Create { earliest: i64::MIN, latest: i64::MAX },
        needs_keys: false,
        packing: None,
        may_pack: true,
        unpacking: Unpacking::Always,
    };
}

/// Which compressed batches are unpacked to check their records.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Unpacking {
    /// All, as in Kafka.
    #[default]
    Always,
    /// Those whose header does not show that the records keep the rules of the topic. Of the
    /// others, the header is believed.
    WhereNeeded,
}

/// The timestamp type of a topic, with what follows from it. All times are in ms since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Timestamps {
    /// The producer's own, which must lie between these, both included, where a record has one.
    Create {
        /// Least timestamp that is accepted.
        earliest: i64,
        /// Greatest timestamp that is accepted.
        latest: i64,
    },
    /// This one for all records.
    Append(i64),
}

/// One batch that a log may append: it holds what its header says. Only [`Validator`] makes it, so
/// that nothing else reaches a log.
#[derive(Debug, Clone, Copy)]
pub struct ValidBatch<'a> {
    batch: BatchView<'a>,
    compression: Compression,
}

impl<'a> ValidBatch<'a> {
    /// The batch itself.
    #[must_use]
    pub fn view(&self) -> &BatchView<'a> {
        &self.batch
    }

    /// The codec of its records.
    #[must_use]
    pub fn compression(&self) -> Compression {
        self.compression
    }

    /// Number of its records.
    #[must_use]
    pub fn records_count(&self) -> u64 {
        u64::from(self.batch.records_count().unsigned_abs())
    }
}

/// Why a batch is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invalid {
    /// What is wrong with the batch, or with the first record at fault.
    pub error: Error,
    /// The records at fault, where the others are sound (KIP-467): at most [`FAULTY_RECORDS_MAX`].
    pub records: Vec<FaultyRecord>,
}

/// A record for which its batch is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FaultyRecord {
    /// Its place in the batch, from 0 on.
    pub index: i32,
    /// What is wrong with it.
    pub error: Error,
}

/// Most records that a refusal names. A small batch can unpack to millions.
pub const FAULTY_RECORDS_MAX: usize = 1_000;

impl From<Error> for Invalid {
    fn from(error: Error) -> Self {
        Self { error, records: Vec::new() }
    }
}

/// Checks batches; holds codec contexts and buffers. One per thread.
#[derive(Debug, Default)]
pub struct Validator {
    decompressor: Decompressor,
    compressor: Compressor,
    /// Records with other offsets than their producer gave them.
    renumbered: Vec<u8>,
    /// A batch that had to be changed.
    rewritten: Vec<u8>,
}

impl Validator {
    /// Checks that `bytes` are one whole batch that a producer may append, as Kafka does.
    ///
    /// Looked at: length, magic, size limit, CRC32C, count against last offset delta, codec,
    /// producer fields, base offset 0, no control bit; then all records, unpacked where they are
    /// compressed: as many as the header counts, each within its length, up to the last byte, with
    /// keys and timestamps that the topic allows. With [`Unpacking::WhereNeeded`] the header of
    /// most compressed batches is believed instead.
    ///
    /// Written anew are a max timestamp that is not that of the records, the timestamp type that is
    /// not the topic's, the codec that is not, and offsets of records that do not count up by one.
    ///
    /// # Errors
    /// The first thing that is wrong, or all records that break a rule of the topic.
    pub fn check<'a>(
        &'a mut self,
        bytes: &'a [u8],
        rules: &AppendRules,
    ) -> Result<ValidBatch<'a>, Invalid> {
        let batch = BatchView::parse(bytes)?;
        if batch.bytes().len() != bytes.len() {
            return Err(Error::NotOneBatch.into());
        }
        let compression = check_header(&batch, rules)?;
        let checked = self.check_records(&batch, compression, rules);
        // A thread should not hold for long what a rare payload took.
        self.decompressor.shrink();
        shrink(&mut self.renumbered);
        let compression = match checked? {
            Checked::Sound => return Ok(ValidBatch { batch, compression }),
            Checked::Rewritten(compression) => compression,
        };
        let (bytes, bytes_max) = (self.rewritten.len(), rules.batch_bytes_max);
        if bytes > bytes_max {
            return Err(Error::BatchTooLarge { bytes, bytes_max }.into());
        }
        Ok(ValidBatch { batch: BatchView::parse(&self.rewritten)?, compression })
    }

    fn check_records(
        &mut self,
        batch: &BatchView<'_>,
        compression: Compression,
        rules: &AppendRules,
    ) -> Result<Checked, Invalid> {
        let bytes_max = rules.unpacked_bytes_max;
        let (payload, summary) = if header_suffices(batch, compression, rules) {
            (batch.payload(), Summary::claimed_by(batch))
        } else {
            let payload = self.decompressor.decompress(compression, batch.payload(), bytes_max)?;
            (payload, Summary::of(batch, payload)?)
        };
        if is_stamped(batch, rules) || !keeps(&summary, rules) {
            refuse_faulty(batch, payload, rules)?;
        }
        let time = match rules.timestamps {
            Timestamps::Append(now) => (TimestampType::LogAppendTime, now),
            Timestamps::Create { .. } => (TimestampType::CreateTime, summary.timestamp_max),
        };
        let packing = rules.packing.unwrap_or(Packing::from(compression));
        let is_as_packed = packing.codec == compression && summary.is_consecutive;
        if is_as_packed && time == (batch.timestamp_type(), batch.max_timestamp()) {
            return Ok(Checked::Sound);
        }
        let out = &mut self.rewritten;
        shrink(out);
        out.clear();
        out.resize(BATCH_HEADER_LEN, 0);
        if is_as_packed {
            out.extend_from_slice(batch.payload());
        } else {
            if packing.codec != Compression::None && !rules.may_pack {
                return Err(Error::PackingNeeded.into());
            }
            let records = match summary.is_consecutive {
                true => payload,
                false => renumber(batch, payload, &mut self.renumbered)?,
            };
            self.compressor.compress(packing, records, out)?;
        }
        write_header_timed(out, batch, packing.codec, time)?;
        Ok(Checked::Rewritten(packing.codec))
    }
}

/// How a valid batch is handled.
enum Checked {
    /// It is appended as it is.
    Sound,
    /// It was written anew, with this codec.
    Rewritten(Compression),
}

/// The records with offset deltas that count up from 0 by one, as the log will count them.
fn renumber<'a>(
    batch: &BatchView<'_>,
    payload: &[u8],
    out: &'a mut Vec<u8>,
) -> Result<&'a [u8], Error> {
    out.clear();
    for (index, record) in (0..).zip(batch.records_of_payload(payload)?.raw()) {
        record?.write_at(index, out)?;
    }
    Ok(out)
}

fn shrink(buffer: &mut Vec<u8>) {
    if buffer.capacity() > BUFFER_RETAINED_MAX {
        *buffer = Vec::new();
    }
}

fn check_header(batch: &BatchView<'_>, rules: &AppendRules) -> Result<Compression, Error> {
    let bytes = batch.bytes().len();
    if bytes > rules.batch_bytes_max {
        return Err(Error::BatchTooLarge { bytes, bytes_max: rules.batch_bytes_max });
    }
    batch.check_crc()?;
    batch.check_count()?;
    if batch.base_offset() != 0 {
        return Err(Error::InvalidBaseOffset { base_offset: batch.base_offset() });
    }
    if batch.is_control() {
        return Err(Error::ControlBatch);
    }
    check_producer(batch)?;
    batch.compression()
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

/// Whether the records of a batch need not be unpacked: the rules leave that open, they ask for
/// nothing that only the records show, and the header's timestamp keeps them.
fn header_suffices(batch: &BatchView<'_>, codec: Compression, rules: &AppendRules) -> bool {
    let is_in_time = match rules.timestamps {
        Timestamps::Append(_) => true,
        // A limit before 1970 refuses no timestamp that a clock can give.
        Timestamps::Create { earliest, latest } => {
            earliest < 0 && (NO_TIMESTAMP..=latest).contains(&batch.max_timestamp())
        }
    };
    rules.unpacking == Unpacking::WhereNeeded
        && codec != Compression::None
        && rules.packing.is_none_or(|packing| packing.codec == codec)
        && !rules.needs_keys
        && is_in_time
        && !is_stamped(batch, rules)
}

/// Whether the timestamp type of the batch is LogAppendTime where that is for the topic to say, or
/// without a time. A copy of another topic's batch may have it, and loses it here.
fn is_stamped(batch: &BatchView<'_>, rules: &AppendRules) -> bool {
    batch.timestamp_type() == TimestampType::LogAppendTime
        && (matches!(rules.timestamps, Timestamps::Append(_))
            || batch.max_timestamp() == NO_TIMESTAMP)
}

/// Whether all records certainly keep the rules; where not, each has to be looked at.
fn keeps(summary: &Summary, rules: &AppendRules) -> bool {
    let in_time = match rules.timestamps {
        Timestamps::Create { earliest, latest } => {
            earliest <= summary.timestamp_min && summary.timestamp_max <= latest
        }
        Timestamps::Append(_) => true,
    };
    in_time && !(rules.needs_keys && summary.has_keyless)
}

/// # Errors
/// The records that break a rule, if any does. Where a timestamp is among what is wrong, it is what
/// the batch is refused for, as in Kafka.
fn refuse_faulty(
    batch: &BatchView<'_>,
    payload: &[u8],
    rules: &AppendRules,
) -> Result<(), Invalid> {
    let mut records = Vec::new();
    let mut first_of_time = None;
    for (index, record) in (0..).zip(batch.records_of_payload(payload)?.raw()) {
        let Some(error) = fault(batch, &record?, rules) else { continue };
        if matches!(error, Error::TimestampOutOfRange { .. } | Error::InvalidTimestampType) {
            first_of_time = first_of_time.or(Some(error));
        }
        if records.len() < FAULTY_RECORDS_MAX {
            records.push(FaultyRecord { index, error });
        }
    }
    let first = records.first().map(|record| record.error);
    first_of_time.or(first).map_or(Ok(()), |error| Err(Invalid { error, records }))
}

fn fault(batch: &BatchView<'_>, record: &RawRecord<'_>, rules: &AppendRules) -> Option<Error> {
    if rules.needs_keys && record.key().is_none() {
        return Some(Error::KeylessRecord);
    }
    if is_stamped(batch, rules) {
        return Some(Error::InvalidTimestampType);
    }
    let timestamp = batch.base_timestamp().wrapping_add(record.timestamp_delta());
    match rules.timestamps {
        Timestamps::Create { earliest, latest }
            if timestamp != NO_TIMESTAMP && !(earliest..=latest).contains(&timestamp) =>
        {
            Some(Error::TimestampOutOfRange { timestamp, earliest, latest })
        }
        _ => None,
    }
}
