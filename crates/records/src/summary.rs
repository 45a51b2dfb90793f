//! One walk over the records of a batch, for what holds of all of them.
//!
//! The broker does so for every record that is produced, so the walk makes no views: it hops from
//! length to length. [`RawRecords`](crate::RawRecords) says what is wrong where it cannot go on.

use crate::{BatchView, Error, NO_TIMESTAMP, varint};

/// Common properties of the records of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Summary {
    /// Least of the timestamps, [`NO_TIMESTAMP`] like any other.
    pub(crate) timestamp_min: i64,
    /// Greatest of the timestamps, or [`NO_TIMESTAMP`] where that is greater.
    pub(crate) timestamp_max: i64,
    /// Whether a record has no key.
    pub(crate) has_keyless: bool,
    /// Whether the offset deltas count up from 0 by one.
    pub(crate) is_consecutive: bool,
}

impl Summary {
    /// Walks all records of `payload`, which is that of `batch` unpacked.
    ///
    /// # Errors
    /// What is wrong with the first record that does not hold, or that the payload holds fewer or
    /// more bytes than the records that the header counts.
    pub(crate) fn of(batch: &BatchView<'_>, payload: &[u8]) -> Result<Self, Error> {
        let records = batch.records_of_payload(payload)?.raw();
        let count = u32::try_from(records.remaining()).map_err(|_| UNLIKE)?;
        match hop(payload, count, batch.base_timestamp()) {
            Some(summary) => Ok(summary),
            None => Err(error_of(records)),
        }
    }

    /// What the header says of the records, for a topic that takes records without keys.
    pub(crate) fn claimed_by(batch: &BatchView<'_>) -> Self {
        let timestamp = batch.max_timestamp();
        Self {
            timestamp_min: timestamp,
            timestamp_max: timestamp,
            has_keyless: false,
            is_consecutive: true,
        }
    }
}

const UNLIKE: Error = Error::InvalidRecord { reason: "it does not hold" };

#[cold]
fn error_of(records: crate::RawRecords<'_>) -> Error {
    let mut checked = records.map(|record| record?.check_headers());
    checked.find_map(Result::err).unwrap_or(UNLIKE)
}

/// The summary of `count` records that fill `payload`; `None` where they do not.
fn hop(payload: &[u8], count: u32, base_timestamp: i64) -> Option<Summary> {
    let mut cursor = Cursor { bytes: payload, at: 0 };
    let (mut timestamp_min, mut timestamp_max) = (i64::MAX, NO_TIMESTAMP);
    let (mut keyless, mut unexpected) = (0, 0);
    for index in 0..count {
        let body_len = cursor.length()?;
        // Positions only grow: what passes the end in between does not arrive at it.
        let end = cursor.at + body_len;
        cursor.skip(ATTRIBUTES_LEN);
        let timestamp = base_timestamp.wrapping_add(cursor.i64()?);
        timestamp_min = timestamp_min.min(timestamp);
        timestamp_max = timestamp_max.max(timestamp);
        unexpected |= cursor.u32()? ^ (index << 1);
        keyless |= cursor.skip_nullable()?;
        cursor.skip_nullable()?;
        let headers_count = cursor.length()?;
        for _ in 0..headers_count {
            let key_len = cursor.length()?;
            cursor.skip(key_len);
            cursor.skip_nullable()?;
        }
        if cursor.at != end {
            return None;
        }
    }
    (cursor.at == payload.len()).then_some(Summary {
        timestamp_min,
        timestamp_max,
        has_keyless: keyless & 1 != 0,
        is_consecutive: unexpected == 0,
    })
}

/// The record's attribute byte; no bit is in use.
const ATTRIBUTES_LEN: usize = 1;
const CONTINUES: u8 = 0x80;
const BITS_PER_BYTE: u32 = 7;

/// A place in the payload, which may lie beyond its end: the next read tells.
struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Cursor<'_> {
    #[inline]
    fn skip(&mut self, len: usize) {
        // A read of the end comes before the next skip, and each is of 31 bits at most.
        self.at += len;
    }

    /// A length or count in zigzag form; `None` for a negative one.
    #[inline]
    fn length(&mut self) -> Option<usize> {
        let zigzag = self.u32()?;
        (zigzag & 1 == 0).then_some((zigzag >> 1) as usize)
    }

    /// Skips bytes behind their length, and gives a number that is odd where they are null.
    #[inline]
    fn skip_nullable(&mut self) -> Option<u32> {
        let zigzag = self.u32()?;
        if zigzag & 1 == 0 {
            self.skip((zigzag >> 1) as usize);
        }
        Some(zigzag)
    }

    /// An unsigned varint. Most take one byte or two.
    #[inline]
    fn u32(&mut self) -> Option<u32> {
        let first = *self.bytes.get(self.at)?;
        if first < CONTINUES {
            self.at += 1;
            return Some(u32::from(first));
        }
        let second = *self.bytes.get(self.at + 1)?;
        if second < CONTINUES {
            self.at += 2;
            return Some(u32::from(first ^ CONTINUES) | u32::from(second) << BITS_PER_BYTE);
        }
        let (value, at) = wide(self.bytes, self.at, varint::read_u32)?;
        self.at = at;
        Some(value)
    }

    #[inline]
    fn i64(&mut self) -> Option<i64> {
        let first = *self.bytes.get(self.at)?;
        let zigzag = if first < CONTINUES {
            self.at += 1;
            u64::from(first)
        } else {
            let second = *self.bytes.get(self.at + 1)?;
            if second >= CONTINUES {
                let (value, at) = wide(self.bytes, self.at, varint::read_i64)?;
                self.at = at;
                return Some(value);
            }
            self.at += 2;
            u64::from(first ^ CONTINUES) | u64::from(second) << BITS_PER_BYTE
        };
        Some((zigzag >> 1).cast_signed() ^ -(zigzag & 1).cast_signed())
    }
}

/// Reads a varint of any width at a place, and gives the place behind it. Not a method, so that
/// the cursor stays in registers.
#[cold]
#[inline(never)]
fn wide<T>(
    bytes: &[u8],
    at: usize,
    read: fn(&mut &[u8]) -> Result<T, Error>,
) -> Option<(T, usize)> {
    let mut rest = bytes.get(at..)?;
    let value = read(&mut rest).ok()?;
    Some((value, bytes.len() - rest.len()))
}
