//! Primitives of the record formats: lengths and counts as unsigned LEB128 varints, integers big
//! endian, an absent string as length 0 and a present one as its length plus one.

use bytes::Bytes;
use moldau_protocol::Uuid;

use crate::error::Error;

/// Appends to a buffer.
pub(crate) struct Put<'a>(pub(crate) &'a mut Vec<u8>);

impl Put<'_> {
    pub(crate) fn u8(&mut self, value: u8) {
        self.0.push(value);
    }

    pub(crate) fn i16(&mut self, value: i16) {
        self.0.extend_from_slice(&value.to_be_bytes());
    }

    pub(crate) fn i32(&mut self, value: i32) {
        self.0.extend_from_slice(&value.to_be_bytes());
    }

    pub(crate) fn i64(&mut self, value: i64) {
        self.0.extend_from_slice(&value.to_be_bytes());
    }

    pub(crate) fn uuid(&mut self, value: Uuid) {
        self.0.extend_from_slice(&value.into_bytes());
    }

    pub(crate) fn count(&mut self, count: usize) {
        let mut rest = count;
        while rest >= 0x80 {
            let low = u8::try_from(rest & 0x7f).expect("seven bits fit a byte");
            self.0.push(low | 0x80);
            rest >>= 7;
        }
        self.0.push(u8::try_from(rest).expect("less than 0x80"));
    }

    pub(crate) fn bytes(&mut self, value: &[u8]) {
        self.count(value.len());
        self.0.extend_from_slice(value);
    }

    pub(crate) fn string(&mut self, value: &str) {
        self.bytes(value.as_bytes());
    }

    pub(crate) fn optional_string(&mut self, value: Option<&str>) {
        match value {
            None => self.count(0),
            Some(text) => {
                self.count(text.len() + 1);
                self.0.extend_from_slice(text.as_bytes());
            }
        }
    }
}

/// Takes from the front of a slice.
pub(crate) struct Take<'a>(pub(crate) &'a [u8]);

impl<'a> Take<'a> {
    pub(crate) fn slice(&mut self, len: usize, field: &'static str) -> Result<&'a [u8], Error> {
        let (head, rest) = self.0.split_at_checked(len).ok_or(Error::Truncated { field })?;
        self.0 = rest;
        Ok(head)
    }

    fn array<const N: usize>(&mut self, field: &'static str) -> Result<[u8; N], Error> {
        let (head, rest) = self.0.split_first_chunk::<N>().ok_or(Error::Truncated { field })?;
        self.0 = rest;
        Ok(*head)
    }

    pub(crate) fn u8(&mut self, field: &'static str) -> Result<u8, Error> {
        Ok(u8::from_be_bytes(self.array(field)?))
    }

    pub(crate) fn i16(&mut self, field: &'static str) -> Result<i16, Error> {
        Ok(i16::from_be_bytes(self.array(field)?))
    }

    pub(crate) fn i32(&mut self, field: &'static str) -> Result<i32, Error> {
        Ok(i32::from_be_bytes(self.array(field)?))
    }

    pub(crate) fn i64(&mut self, field: &'static str) -> Result<i64, Error> {
        Ok(i64::from_be_bytes(self.array(field)?))
    }

    pub(crate) fn uuid(&mut self, field: &'static str) -> Result<Uuid, Error> {
        Ok(Uuid::from_bytes(self.array(field)?))
    }

    /// A length or a count. It never exceeds the bytes that remain, since every element takes at
    /// least one, so it may size an allocation.
    pub(crate) fn count(&mut self, field: &'static str) -> Result<usize, Error> {
        let count = self.varint(field)?;
        if count > self.0.len() { Err(Error::Truncated { field }) } else { Ok(count) }
    }

    fn varint(&mut self, field: &'static str) -> Result<usize, Error> {
        let mut value = 0usize;
        for shift in [0, 7, 14, 21, 28] {
            let byte = self.u8(field)?;
            value |= usize::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                let padded = shift > 0 && byte == 0;
                return if padded { Err(Error::Invalid { field }) } else { Ok(value) };
            }
        }
        Err(Error::Invalid { field })
    }

    pub(crate) fn bytes(&mut self, field: &'static str) -> Result<Bytes, Error> {
        let len = self.count(field)?;
        Ok(Bytes::copy_from_slice(self.slice(len, field)?))
    }

    pub(crate) fn string(&mut self, field: &'static str) -> Result<String, Error> {
        let len = self.count(field)?;
        self.text(len, field)
    }

    pub(crate) fn optional_string(&mut self, field: &'static str) -> Result<Option<String>, Error> {
        match self.varint(field)?.checked_sub(1) {
            None => Ok(None),
            Some(len) => self.text(len, field).map(Some),
        }
    }

    fn text(&mut self, len: usize, field: &'static str) -> Result<String, Error> {
        let text = std::str::from_utf8(self.slice(len, field)?);
        text.map(str::to_owned).map_err(|_| Error::Invalid { field })
    }

    pub(crate) fn end(&self) -> Result<(), Error> {
        if self.0.is_empty() { Ok(()) } else { Err(Error::Trailing { bytes: self.0.len() }) }
    }
}

/// A counted list. It grows with its elements, since one of them may take far more memory than the
/// byte that its count is checked against.
pub(crate) fn list<T>(
    take: &mut Take<'_>,
    field: &'static str,
    mut element: impl FnMut(&mut Take<'_>) -> Result<T, Error>,
) -> Result<Vec<T>, Error> {
    let count = take.count(field)?;
    let mut list = Vec::new();
    for _ in 0..count {
        list.push(element(take)?);
    }
    Ok(list)
}
