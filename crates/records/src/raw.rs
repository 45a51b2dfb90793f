//! Records by the places of their fields, for filters that change one field and copy the others as
//! they stand.
//!
//! ```text
//! record: length varint | attributes i8 | timestamp delta varlong | offset delta varint
//!         | key length varint, key | value length varint, value | header count varint, headers
//! header: key length varint, key | value length varint, value
//! ```
//! All varints are zigzag; a negative key or value length means null. Source: KIP-98.

use crate::{Error, varint};

/// Fewest bytes that a record takes: its seven fields at one byte each.
const RECORD_LEN_MIN: usize = 7;
/// The record's attribute byte; no bit is in use.
const ATTRIBUTES_LEN: usize = 1;
/// Fewest bytes that a header takes: two lengths.
const HEADER_LEN_MIN: usize = 2;

/// One record as its bytes lie in the payload.
#[derive(Debug, Clone, Copy)]
pub struct RawRecord<'a> {
    bytes: &'a [u8],
    before_value: &'a [u8],
    timestamp_delta: i64,
    offset_delta: i32,
    key: Option<&'a [u8]>,
    value: Option<&'a [u8]>,
    headers_count: usize,
    headers: &'a [u8],
}

impl<'a> RawRecord<'a> {
    /// The record that `bytes` are, its length included.
    ///
    /// # Errors
    /// [`Error::InvalidVarint`], [`Error::InvalidRecord`].
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Error> {
        let mut rest = bytes;
        let record = Self::read(&mut rest)?;
        if rest.is_empty() {
            Ok(record)
        } else {
            Err(Error::InvalidRecord { reason: "bytes follow it" })
        }
    }

    #[inline]
    fn read(input: &mut &'a [u8]) -> Result<Self, Error> {
        let all = *input;
        let body_len = usize::try_from(varint::read_i32(input)?)
            .map_err(|_| Error::InvalidRecord { reason: "its length is negative" })?;
        let body = take(input, body_len)?;
        let mut rest = body;
        take(&mut rest, ATTRIBUTES_LEN)?;
        let timestamp_delta = varint::read_i64(&mut rest)?;
        let offset_delta = varint::read_i32(&mut rest)?;
        let key = read_nullable(&mut rest)?;
        let before_value = passed(body, rest);
        let value = read_nullable(&mut rest)?;
        let headers_count = read_headers_count(&mut rest)?;
        Ok(Self {
            bytes: passed(all, input),
            before_value,
            timestamp_delta,
            offset_delta,
            key,
            value,
            headers_count,
            headers: rest,
        })
    }

    /// The whole record, its length included.
    #[must_use]
    #[inline]
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// All fields between the record's length and its value.
    #[must_use]
    #[inline]
    pub fn before_value(&self) -> &'a [u8] {
        self.before_value
    }

    /// Distance from the batch's base timestamp, in ms.
    #[must_use]
    #[inline]
    pub fn timestamp_delta(&self) -> i64 {
        self.timestamp_delta
    }

    /// Distance from the batch's base offset.
    #[must_use]
    #[inline]
    pub fn offset_delta(&self) -> i32 {
        self.offset_delta
    }

    /// The key; `None` is null, which differs from empty.
    #[must_use]
    #[inline]
    pub fn key(&self) -> Option<&'a [u8]> {
        self.key
    }

    /// The value; `None` is null, a tombstone in a compacted topic.
    #[must_use]
    #[inline]
    pub fn value(&self) -> Option<&'a [u8]> {
        self.value
    }

    /// Number of headers.
    #[must_use]
    #[inline]
    pub fn headers_count(&self) -> usize {
        self.headers_count
    }

    /// Appends the record to `out` with another offset delta.
    ///
    /// # Errors
    /// [`Error::FormatOverflow`].
    pub(crate) fn write_at(&self, offset_delta: i32, out: &mut Vec<u8>) -> Result<(), Error> {
        let (attributes, _) = self.before_value.split_first().unwrap_or((&0, &[]));
        let headers_count = i32::try_from(self.headers_count).map_err(|_| Error::FormatOverflow)?;
        let fields = varint::len_i64(self.timestamp_delta) + varint::len_i32(offset_delta);
        let headers = varint::len_i32(headers_count) + self.headers.len();
        let body_len = varint::nullable_len(self.key)
            .and_then(|key| {
                Some(ATTRIBUTES_LEN + fields + key + varint::nullable_len(self.value)? + headers)
            })
            .and_then(|len| i32::try_from(len).ok())
            .ok_or(Error::FormatOverflow)?;
        varint::write_i32(out, body_len);
        out.push(*attributes);
        varint::write_i64(out, self.timestamp_delta);
        varint::write_i32(out, offset_delta);
        varint::write_nullable(out, self.key);
        varint::write_nullable(out, self.value);
        varint::write_i32(out, headers_count);
        out.extend_from_slice(self.headers);
        Ok(())
    }

    /// The headers behind their count: as many as [`read_header`] is to read.
    #[must_use]
    #[inline]
    pub fn headers(&self) -> &'a [u8] {
        self.headers
    }

    /// Reads all headers, for filters that only copy them.
    ///
    /// # Errors
    /// As [`read_header`], and [`Error::InvalidRecord`] when bytes follow the last one.
    #[inline]
    pub fn check_headers(&self) -> Result<(), Error> {
        check_headers(self.headers, self.headers_count)
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

/// Iterator over the records of a payload. After an error it ends. It gives an error where the
/// payload holds fewer or more bytes than its records need.
#[derive(Debug, Clone)]
pub struct RawRecords<'a> {
    rest: &'a [u8],
    remaining: usize,
}

impl<'a> RawRecords<'a> {
    pub(crate) fn of(payload: &'a [u8], records_count: i32) -> Result<Self, Error> {
        let remaining = usize::try_from(records_count)
            .ok()
            .filter(|&count| count <= payload.len() / RECORD_LEN_MIN)
            .ok_or(Error::InvalidRecord { reason: "the batch is too short for its count" })?;
        Ok(Self { rest: payload, remaining })
    }

    /// Records not yet given.
    #[must_use]
    pub fn remaining(&self) -> usize {
        self.remaining
    }
}

impl<'a> Iterator for RawRecords<'a> {
    type Item = Result<RawRecord<'a>, Error>;

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
        let record = RawRecord::read(&mut self.rest);
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

/// Reads one header of a record and moves `input` past it.
///
/// # Errors
/// [`Error::InvalidVarint`], [`Error::InvalidRecord`] when a length passes the end or the key is
/// null.
#[inline]
pub fn read_header<'a>(input: &mut &'a [u8]) -> Result<HeaderView<'a>, Error> {
    let key =
        read_nullable(input)?.ok_or(Error::InvalidRecord { reason: "a header key is null" })?;
    let value = read_nullable(input)?;
    Ok(HeaderView { key, value })
}

/// Checks that `headers` holds `count` headers and nothing else.
#[inline]
pub(crate) fn check_headers(mut headers: &[u8], count: usize) -> Result<(), Error> {
    for _ in 0..count {
        read_header(&mut headers)?;
    }
    if !headers.is_empty() {
        return Err(Error::InvalidRecord { reason: "bytes follow its last header" });
    }
    Ok(())
}

/// What lies in `all` before `rest`, which is its end.
#[inline]
fn passed<'a>(all: &'a [u8], rest: &[u8]) -> &'a [u8] {
    all.get(..all.len() - rest.len()).unwrap_or_default()
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
