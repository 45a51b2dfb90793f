//! The two attribute bytes of a batch.
//!
//! | bits | meaning |
//! |---|---|
//! | 0-2 | [`Compression`] |
//! | 3 | timestamp type: 0 CreateTime, 1 LogAppendTime |
//! | 4 | transactional |
//! | 5 | control batch |
//! | 6 | base timestamp holds the delete horizon (KIP-534) |
//! | 7-15 | unused, kept as they are |

use std::fmt;

use crate::Error;

/// How the records of a batch are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[repr(u8)]
pub enum Compression {
    /// Not compressed.
    #[default]
    None = 0,
    /// gzip (RFC 1952).
    Gzip = 1,
    /// Snappy blocks in the framing of the Java library snappy-java ("xerial").
    Snappy = 2,
    /// LZ4 frames with 64 KB independent blocks (KIP-57).
    Lz4 = 3,
    /// Zstandard (RFC 8878, KIP-110).
    Zstd = 4,
}

impl Compression {
    /// All codecs, in the order of their ids.
    pub const ALL: [Compression; 5] = [Self::None, Self::Gzip, Self::Snappy, Self::Lz4, Self::Zstd];

    /// The codec of a wire id.
    ///
    /// # Errors
    /// [`Error::UnknownCompression`].
    pub const fn from_id(id: u8) -> Result<Self, Error> {
        Ok(match id {
            0 => Self::None,
            1 => Self::Gzip,
            2 => Self::Snappy,
            3 => Self::Lz4,
            4 => Self::Zstd,
            _ => return Err(Error::UnknownCompression { id }),
        })
    }

    /// The wire id, 0 to 4.
    #[must_use]
    pub const fn id(self) -> u8 {
        self as u8
    }

    /// Kafka's name, as in `compression.type`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Gzip => "gzip",
            Self::Snappy => "snappy",
            Self::Lz4 => "lz4",
            Self::Zstd => "zstd",
        }
    }

    /// The codec of Kafka's name, `None` for an unknown one.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|codec| codec.name() == name)
    }
}

impl fmt::Display for Compression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Who sets the timestamps of a topic's records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum TimestampType {
    /// The producer; each record has its own.
    #[default]
    CreateTime,
    /// The broker; all records of a batch have the batch's max timestamp.
    LogAppendTime,
}

/// The attribute bits of a batch, see the table above.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Attributes(u16);

const COMPRESSION_MASK: u16 = 0x07;
const LOG_APPEND_TIME: u16 = 0x08;
const TRANSACTIONAL: u16 = 0x10;
const CONTROL: u16 = 0x20;
const DELETE_HORIZON: u16 = 0x40;

impl Attributes {
    /// Takes the bits as they stand on the wire.
    #[must_use]
    pub const fn from_bits(bits: u16) -> Self {
        Self(bits)
    }

    /// The bits as they stand on the wire.
    #[must_use]
    pub const fn bits(self) -> u16 {
        self.0
    }

    /// The codec.
    ///
    /// # Errors
    /// [`Error::UnknownCompression`] for the ids 5 to 7.
    pub const fn compression(self) -> Result<Compression, Error> {
        Compression::from_id((self.0 & COMPRESSION_MASK) as u8)
    }

    /// Who sets the timestamps.
    #[must_use]
    pub const fn timestamp_type(self) -> TimestampType {
        if self.0 & LOG_APPEND_TIME == 0 {
            TimestampType::CreateTime
        } else {
            TimestampType::LogAppendTime
        }
    }

    /// Whether the batch belongs to a transaction.
    #[must_use]
    pub const fn is_transactional(self) -> bool {
        self.0 & TRANSACTIONAL != 0
    }

    /// Whether the batch holds control records (transaction markers) in place of data.
    #[must_use]
    pub const fn is_control(self) -> bool {
        self.0 & CONTROL != 0
    }

    /// Whether the base timestamp is the time from which tombstones may go (KIP-534).
    #[must_use]
    pub const fn has_delete_horizon(self) -> bool {
        self.0 & DELETE_HORIZON != 0
    }

    /// The same bits with another codec.
    #[must_use]
    pub const fn with_compression(self, compression: Compression) -> Self {
        Self(self.0 & !COMPRESSION_MASK | compression.id() as u16)
    }

    /// The same bits with another timestamp type.
    #[must_use]
    pub const fn with_timestamp_type(self, timestamp_type: TimestampType) -> Self {
        self.with_bit(LOG_APPEND_TIME, matches!(timestamp_type, TimestampType::LogAppendTime))
    }

    /// The same bits, transactional or not.
    #[must_use]
    pub const fn with_transactional(self, is_transactional: bool) -> Self {
        self.with_bit(TRANSACTIONAL, is_transactional)
    }

    /// The same bits, control or not.
    #[must_use]
    pub const fn with_control(self, is_control: bool) -> Self {
        self.with_bit(CONTROL, is_control)
    }

    /// The same bits, with or without a delete horizon in the base timestamp.
    #[must_use]
    pub const fn with_delete_horizon(self, has_delete_horizon: bool) -> Self {
        self.with_bit(DELETE_HORIZON, has_delete_horizon)
    }

    const fn with_bit(self, bit: u16, set: bool) -> Self {
        Self(if set { self.0 | bit } else { self.0 & !bit })
    }
}
