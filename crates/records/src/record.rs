//! Records and their headers, walked lazily over an unpacked payload, with what the header of
//! their batch says of them.

use crate::raw::{HeaderView, RawRecord, RawRecords, check_headers, read_header};
use crate::{BatchView, Error, NO_SEQUENCE, TimestampType};

/// One record, borrowing from the batch or from the buffer that it was unpacked into.
#[derive(Debug, Clone, Copy)]
pub struct RecordView<'a> {
    offset: i64,
    offset_delta: i32,
    timestamp: i64,
    stored_timestamp: i64,
    sequence: i32,
    key: Option<&'a [u8]>,
    value: Option<&'a [u8]>,
    headers_count: usize,
    headers: &'a [u8],
}

impl<'a> RecordView<'a> {
    /// Offset in the partition.
    #[must_use]
    pub fn offset(&self) -> i64 {
        self.offset
    }

    /// Distance from the batch's base offset.
    #[must_use]
    pub fn offset_delta(&self) -> i32 {
        self.offset_delta
    }

    /// Timestamp in ms since 1970, -1 for none; the broker's under LogAppendTime.
    #[must_use]
    pub fn timestamp(&self) -> i64 {
        self.timestamp
    }

    /// Timestamp that the record itself carries, which LogAppendTime hides.
    #[must_use]
    pub fn stored_timestamp(&self) -> i64 {
        self.stored_timestamp
    }

    /// Sequence number of an idempotent producer, -1 for none.
    #[must_use]
    pub fn sequence(&self) -> i32 {
        self.sequence
    }

    /// The key; `None` is null, which differs from empty.
    #[must_use]
    pub fn key(&self) -> Option<&'a [u8]> {
        self.key
    }

    /// The value; `None` is null, a tombstone in a compacted topic.
    #[must_use]
    pub fn value(&self) -> Option<&'a [u8]> {
        self.value
    }

    /// Number of headers.
    #[must_use]
    pub fn headers_count(&self) -> usize {
        self.headers_count
    }

    /// The headers in their order, duplicate keys included.
    ///
    /// # Errors
    /// [`Error::InvalidRecord`] or [`Error::InvalidVarint`] when they are malformed; they are
    /// walked once here so that the iterator itself cannot fail.
    pub fn headers(&self) -> Result<Headers<'a>, Error> {
        check_headers(self.headers, self.headers_count)?;
        Ok(Headers { rest: self.headers, remaining: self.headers_count })
    }
}

/// Iterator over the headers of a record.
#[derive(Debug, Clone, Default)]
pub struct Headers<'a> {
    rest: &'a [u8],
    remaining: usize,
}

impl<'a> Iterator for Headers<'a> {
    type Item = HeaderView<'a>;

    fn next(&mut self) -> Option<Self::Item> {
        self.remaining = self.remaining.checked_sub(1)?;
        read_header(&mut self.rest).ok()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.remaining, Some(self.remaining))
    }
}

impl ExactSizeIterator for Headers<'_> {}

/// Iterator over the records of a batch. After an error it ends. It gives an error where the
/// payload holds fewer or more bytes than its records need.
#[derive(Debug, Clone)]
pub struct Records<'a> {
    raw: RawRecords<'a>,
    base_offset: i64,
    base_timestamp: i64,
    log_append_time: Option<i64>,
    base_sequence: i32,
}

impl<'a> Records<'a> {
    pub(crate) fn of(batch: &BatchView<'_>, payload: &'a [u8]) -> Result<Self, Error> {
        let log_append_time = match batch.timestamp_type() {
            TimestampType::CreateTime => None,
            TimestampType::LogAppendTime => Some(batch.max_timestamp()),
        };
        Ok(Self {
            raw: RawRecords::of(payload, batch.records_count())?,
            base_offset: batch.base_offset(),
            base_timestamp: batch.base_timestamp(),
            log_append_time,
            base_sequence: batch.base_sequence(),
        })
    }

    /// Records not yet given.
    #[must_use]
    pub fn remaining(&self) -> usize {
        self.raw.remaining()
    }

    /// The same records by the places of their fields.
    #[must_use]
    pub fn raw(self) -> RawRecords<'a> {
        self.raw
    }

    #[inline]
    fn view(&self, record: &RawRecord<'a>) -> RecordView<'a> {
        let offset_delta = record.offset_delta();
        let stored_timestamp = self.base_timestamp.wrapping_add(record.timestamp_delta());
        RecordView {
            offset: self.base_offset.wrapping_add(i64::from(offset_delta)),
            offset_delta,
            timestamp: self.log_append_time.unwrap_or(stored_timestamp),
            stored_timestamp,
            sequence: sequence_at(self.base_sequence, offset_delta),
            key: record.key(),
            value: record.value(),
            headers_count: record.headers_count(),
            headers: record.headers(),
        }
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = Result<RecordView<'a>, Error>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let record = self.raw.next()?;
        Some(record.map(|record| self.view(&record)))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.raw.size_hint()
    }
}

/// Sequence numbers run from 0 to `i32::MAX` and start again at 0.
pub(crate) fn sequence_at(base_sequence: i32, offset_delta: i32) -> i32 {
    if base_sequence < 0 || offset_delta < 0 {
        return NO_SEQUENCE;
    }
    match base_sequence.checked_add(offset_delta) {
        Some(sequence) => sequence,
        None => offset_delta - (i32::MAX - base_sequence) - 1,
    }
}
