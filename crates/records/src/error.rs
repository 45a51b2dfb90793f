//! What can be wrong with a batch, grouped by who can do something about it.

use crate::Compression;

/// Everything that reading, checking or building a batch can fail with.
///
/// The variants carry no heap memory, so an attacker who sends broken batches causes no allocation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    // The bytes are damaged or incomplete (Kafka: CORRUPT_MESSAGE).
    /// Fewer bytes than the batch header or its length field calls for.
    #[error("batch needs {needed} bytes, {available} are there")]
    Truncated {
        /// Bytes that the batch needs, header included.
        needed: usize,
        /// Bytes that are there.
        available: usize,
    },
    /// The length field is negative or smaller than a batch header.
    #[error("batch length field is {length}, smaller than a batch header")]
    InvalidLength {
        /// Value of the length field.
        length: i32,
    },
    /// A magic byte that no version of Kafka has written.
    #[error("magic byte {magic} is none of Kafka's record formats")]
    UnknownMagic {
        /// Value of the magic byte.
        magic: i8,
    },
    /// The stored CRC32C differs from that of the bytes.
    #[error("batch CRC32C is {computed:#010x}, its header says {stored:#010x}")]
    CrcMismatch {
        /// CRC in the batch header.
        stored: u32,
        /// CRC of the bytes that it covers.
        computed: u32,
    },
    /// A compressed payload that its codec refuses.
    #[error("{compression} payload is corrupt: {reason}")]
    CorruptPayload {
        /// Codec named by the batch.
        compression: Compression,
        /// What is wrong, in one clause.
        reason: &'static str,
    },

    // The bytes are whole, and break a rule of the format (Kafka: INVALID_RECORD and others).
    /// A message set of format 0 or 1 (Kafka: UNSUPPORTED_FOR_MESSAGE_FORMAT).
    #[error("record format {magic} is not supported, format 2 is needed (Kafka 0.11 or later)")]
    UnsupportedMagic {
        /// Value of the magic byte, 0 or 1.
        magic: i8,
    },
    /// A codec id without a codec (Kafka: UNSUPPORTED_COMPRESSION_TYPE).
    #[error("compression codec {id} is unknown")]
    UnknownCompression {
        /// Codec id, bits 0 to 2 of the attributes.
        id: u8,
    },
    /// The record count is not positive, or does not agree with the last offset delta.
    #[error("batch counts {records_count} records, its last offset delta is {last_offset_delta}")]
    InvalidCount {
        /// Record count in the header.
        records_count: i32,
        /// Last offset delta in the header.
        last_offset_delta: i32,
    },
    /// No batch, or bytes behind the first one.
    #[error("a produce request carries exactly one record batch per partition")]
    NotOneBatch,
    /// A control batch where only the broker may write one.
    #[error("clients may not write control batches")]
    ControlBatch,
    /// Producer id, epoch, sequence and transactional bit do not fit together.
    #[error("producer fields are inconsistent: id {id}, epoch {epoch}, sequence {base_sequence}")]
    InvalidProducer {
        /// Producer id.
        id: i64,
        /// Producer epoch.
        epoch: i16,
        /// First sequence number.
        base_sequence: i32,
    },
    /// A producer must send base offset 0.
    #[error("base offset of a produced batch must be 0, it is {base_offset}")]
    InvalidBaseOffset {
        /// Base offset in the header.
        base_offset: i64,
    },
    /// A record of a compacted topic without a key.
    #[error("a record of a compacted topic needs a key")]
    KeylessRecord,
    /// A timestamp that the topic does not take (Kafka: INVALID_TIMESTAMP).
    #[error("timestamp {timestamp} is not between {earliest} and {latest}")]
    TimestampOutOfRange {
        /// Of the record, in ms since 1970.
        timestamp: i64,
        /// Least that is accepted.
        earliest: i64,
        /// Greatest that is accepted.
        latest: i64,
    },
    /// The timestamp type LogAppendTime, which the topic sets, or without a timestamp
    /// (Kafka: INVALID_TIMESTAMP).
    #[error("producers may not set the timestamp type LogAppendTime")]
    InvalidTimestampType,
    /// A varint that is longer than its type allows, or is cut short.
    #[error("malformed varint")]
    InvalidVarint,
    /// A record that breaks the format.
    #[error("malformed record: {reason}")]
    InvalidRecord {
        /// What is wrong, in one clause.
        reason: &'static str,
    },

    // A limit, which the operator or the producer can change (Kafka: MESSAGE_TOO_LARGE).
    /// A batch larger than the limit of its topic.
    #[error("batch of {bytes} bytes is larger than the limit of {bytes_max}")]
    BatchTooLarge {
        /// Size of the batch, header included.
        bytes: usize,
        /// The limit.
        bytes_max: usize,
    },
    /// A payload that unpacks to more than the caller allows.
    #[error("payload unpacks to more than the limit of {bytes_max} bytes")]
    PayloadTooLarge {
        /// The limit.
        bytes_max: usize,
    },

    /// A batch that takes more, once it is rewritten, than the caller allows.
    #[error("the rewritten batch takes more than the limit of {bytes_max} bytes")]
    RewrittenTooLarge {
        /// The limit.
        bytes_max: usize,
    },

    // Our own side asked for something that the format cannot hold, or that it does not want.
    /// A batch that has to be packed anew, where the caller wants no such work.
    #[error("the batch has to be packed anew")]
    PackingNeeded,
    /// A batch needs a record, or an explicit last offset delta.
    #[error("batch holds no records")]
    EmptyBatch,
    /// Offset deltas must grow from record to record and fit into 31 bits.
    #[error("offset delta {offset_delta} does not follow {previous}")]
    InvalidOffsetDelta {
        /// The refused delta.
        offset_delta: i32,
        /// Delta of the record before, -1 for none.
        previous: i32,
    },
    /// A key, value, header list or batch beyond the 31 bits that the format has for it.
    #[error("record or batch is larger than the format can hold")]
    FormatOverflow,
    /// A codec could not be set up or refused to compress.
    #[error("{compression} compressor failed")]
    CompressorFailed {
        /// The codec.
        compression: Compression,
    },
}
