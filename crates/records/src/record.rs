//! Records and their headers, walked lazily over an unpacked payload.
//!
//! ```text
//! record: length varint | attributes i8 | timestamp delta varlong | offset delta varint
//!         | key length varint, key | value length varint, value | header count varint, headers
//! header: key length varint, key | value length varint, value
//! ```
//! All varints are zigzag; a negative key or value length means null. Source: KIP-98.

use crate::{BatchView, Error, NO_SEQUENCE, TimestampType, varint};

/// Fewest bytes that a record takes: its seven fields at one byte each.
const RECORD_LEN_MIN: usize = 7;
/// Fewest bytes that a header takes: two lengths.
const HEADER_LEN_MIN: usize = 2;

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
        let mut rest = self.headers;
        for _ in 0..self.headers_count {
            read_header(&mut rest)?;
        }
        if !rest.is_empty() {
            return Err(Error::InvalidRecord { reason: "bytes follow its last header" });
        }
        Ok(Headers { rest: self.headers, remaining: self.headers_count })
    }
}

/// One header of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeaderView<'a> {
    /// The key; Kafka writes UTF-8, the bytes are kept as they are.
    pub key: &'a [u8],
    /// The value; `None` is null, which differs from empty.
    pub value: Option<&'a [u8]>,
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
    rest: &'a [u8],
    remaining: usize,
    base_offset: i64,
    base_timestamp: i64,
    log_append_time: Option<i64>,
    base_sequence: i32,
}

impl<'a> Records<'a> {
    pub(crate) fn of(batch: &BatchView<'_>, payload: &'a [u8]) -> Result<Self, Error> {
        let remaining = usize::try_from(batch.records_count())
            .ok()
            .filter(|&count| count <= payload.len() / RECORD_LEN_MIN)
            .ok_or(Error::InvalidRecord { reason: "the batch is too short for its count" })?;
        let log_append_time = match batch.timestamp_type() {
            TimestampType::CreateTime => None,
            TimestampType::LogAppendTime => Some(batch.max_timestamp()),
        };
        Ok(Self {
            rest: payload,
            remaining,
            base_offset: batch.base_offset(),
            base_timestamp: batch.base_timestamp(),
            log_append_time,
            base_sequence: batch.base_sequence(),
        })
    }

    /// Records not yet given.
    #[must_use]
    pub fn remaining(&self) -> usize {
        self.remaining
    }

    #[inline]
    fn read_record(&mut self) -> Result<RecordView<'a>, Error> {
        let body_len = varint::read_i32(&mut self.rest)?;
        let body_len = usize::try_from(body_len)
            .map_err(|_| Error::InvalidRecord { reason: "its length is negative" })?;
        let mut body = take(&mut self.rest, body_len)?;
        take(&mut body, ATTRIBUTES_LEN)?;
        let timestamp_delta = varint::read_i64(&mut body)?;
        let offset_delta = varint::read_i32(&mut body)?;
        let key = read_nullable(&mut body)?;
        let value = read_nullable(&mut body)?;
        let headers_count = read_headers_count(&mut body)?;
        let stored_timestamp = self.base_timestamp.wrapping_add(timestamp_delta);
        Ok(RecordView {
            offset: self.base_offset.wrapping_add(i64::from(offset_delta)),
            offset_delta,
            timestamp: self.log_append_time.unwrap_or(stored_timestamp),
            stored_timestamp,
            sequence: sequence_at(self.base_sequence, offset_delta),
            key,
            value,
            headers_count,
            headers: body,
        })
    }
}

/// The record's attribute byte, of which no bit is in use.
const ATTRIBUTES_LEN: usize = 1;

impl<'a> Iterator for Records<'a> {
    type Item = Result<RecordView<'a>, Error>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.remaining == 0 {
            if self.rest.is_empty() {
                return None;
            }
            self.rest = &[];
            return Some(Err(Error::InvalidRecord { reason: "bytes follow the last one" }));
        }
        self.remaining -= 1;
        let record = self.read_record();
        if record.is_err() {
            self.remaining = 0;
            self.rest = &[];
        }
        Some(record)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (0, self.remaining.checked_add(1))
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

#[inline]
fn take<'a>(input: &mut &'a [u8], len: usize) -> Result<&'a [u8], Error> {
    let (head, tail) = input
        .split_at_checked(len)
        .ok_or(Error::InvalidRecord { reason: "a length passes the end" })?;
    *input = tail;
    Ok(head)
}

#[inline]
fn read_nullable<'a>(input: &mut &'a [u8]) -> Result<Option<&'a [u8]>, Error> {
    match usize::try_from(varint::read_i32(input)?) {
        Ok(len) => take(input, len).map(Some),
        Err(_) => Ok(None),
    }
}

#[inline]
fn read_headers_count(input: &mut &[u8]) -> Result<usize, Error> {
    let count = usize::try_from(varint::read_i32(input)?)
        .map_err(|_| Error::InvalidRecord { reason: "its header count is negative" })?;
    if count > input.len() / HEADER_LEN_MIN {
        return Err(Error::InvalidRecord { reason: "it is too short for its headers" });
    }
    if count == 0 && !input.is_empty() {
        return Err(Error::InvalidRecord { reason: "its length passes its last field" });
    }
    Ok(count)
}

fn read_header<'a>(input: &mut &'a [u8]) -> Result<HeaderView<'a>, Error> {
    let key =
        read_nullable(input)?.ok_or(Error::InvalidRecord { reason: "a header key is null" })?;
    let value = read_nullable(input)?;
    Ok(HeaderView { key, value })
}
