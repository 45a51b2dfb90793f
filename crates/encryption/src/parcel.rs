//! What is sealed of a record: its value, and maybe its headers.
//!
//! ```text
//! parcel:  value length varint, value | header count varint, headers
//! header:  key length uvarint, key | value length varint, value
//! ```
//! A length or count of -1 means null, one of -2 that the field is not in the parcel and stands in
//! the record. Varints are zigzag, but for the length of a header's key. Kroxylicious and this
//! crate write parcels without headers; those with headers are read.

use moldau_records::{HeaderView, varint};

use crate::damage::Damage;

const NULL: i32 = -1;
const ABSENT: i32 = -2;
/// [`ABSENT`] as a varint: all that follows the value in a parcel without headers.
const ABSENT_FIELD: u8 = 0x03;
/// Fewest bytes that a header takes: two lengths.
const HEADER_LEN_MIN: usize = 2;

/// A field of a parcel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Field<T> {
    /// Not in the parcel: the record has it.
    Absent,
    /// Null.
    Null,
    /// There.
    Present(T),
}

/// A parcel, borrowed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parcel<'a> {
    /// The record's value.
    pub value: Field<&'a [u8]>,
    /// The record's headers.
    pub headers: Field<ParcelHeaders<'a>>,
}

impl<'a> Parcel<'a> {
    /// Reads a parcel; its headers are walked once, so that their iterator cannot fail.
    ///
    /// # Errors
    /// [`Damage::Parcel`], also where bytes follow the last field.
    pub fn parse(parcel: &'a [u8]) -> Result<Self, Damage> {
        let mut rest = parcel;
        let value = match read_length(&mut rest)? {
            Field::Present(len) => Field::Present(take(&mut rest, len)?),
            Field::Null => Field::Null,
            Field::Absent => Field::Absent,
        };
        let headers = match read_length(&mut rest)? {
            Field::Present(count) => {
                let headers = ParcelHeaders { rest, remaining: count };
                skip_headers(&mut rest, count)?;
                Field::Present(headers)
            }
            Field::Null => Field::Null,
            Field::Absent => Field::Absent,
        };
        if rest.is_empty() { Ok(Self { value, headers }) } else { Err(Damage::Parcel) }
    }
}

/// Iterator over the headers of a parcel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParcelHeaders<'a> {
    rest: &'a [u8],
    remaining: usize,
}

impl<'a> Iterator for ParcelHeaders<'a> {
    type Item = HeaderView<'a>;

    fn next(&mut self) -> Option<Self::Item> {
        self.remaining = self.remaining.checked_sub(1)?;
        read_header(&mut self.rest).ok()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.remaining, Some(self.remaining))
    }
}

impl ExactSizeIterator for ParcelHeaders<'_> {}

/// Bytes that [`write_value`] appends; `None` beyond the 31 bits of a length.
#[inline]
pub(crate) fn value_len(value: &[u8]) -> Option<usize> {
    let len = i32::try_from(value.len()).ok()?;
    Some(varint::len_i32(len) + value.len() + 1)
}

/// Appends the parcel of a value without headers. Its bytes but the last are those of the value's
/// field in a record.
#[inline]
pub(crate) fn write_value(out: &mut Vec<u8>, value: &[u8]) {
    let len = i32::try_from(value.len()).expect("the value was measured before");
    varint::write_i32(out, len);
    out.extend_from_slice(value);
    out.push(ABSENT_FIELD);
}

/// Whether the parcel has a value and nothing else: all of it but the last byte is then the value's
/// field as a record has it.
#[inline]
pub(crate) fn has_value_only(parcel: &[u8]) -> bool {
    let Some((&ABSENT_FIELD, mut rest)) = parcel.split_last() else { return false };
    let len = varint::read_i32(&mut rest);
    len.is_ok_and(|len| match usize::try_from(len) {
        Ok(len) => rest.len() == len,
        Err(_) => len == NULL && rest.is_empty(),
    })
}

fn read_length(input: &mut &[u8]) -> Result<Field<usize>, Damage> {
    match varint::read_i32(input).map_err(|_| Damage::Parcel)? {
        ABSENT => Ok(Field::Absent),
        NULL => Ok(Field::Null),
        len => usize::try_from(len).map(Field::Present).map_err(|_| Damage::Parcel),
    }
}

fn skip_headers(input: &mut &[u8], count: usize) -> Result<(), Damage> {
    if count > input.len() / HEADER_LEN_MIN {
        return Err(Damage::Parcel);
    }
    for _ in 0..count {
        read_header(input)?;
    }
    Ok(())
}

fn read_header<'a>(input: &mut &'a [u8]) -> Result<HeaderView<'a>, Damage> {
    let key_len = varint::read_u32(input).map_err(|_| Damage::Parcel)?;
    let key = take(input, usize::try_from(key_len).map_err(|_| Damage::Parcel)?)?;
    let value = match read_length(input)? {
        Field::Present(len) => Some(take(input, len)?),
        Field::Null => None,
        Field::Absent => return Err(Damage::Parcel),
    };
    Ok(HeaderView { key, value })
}

fn take<'a>(input: &mut &'a [u8], len: usize) -> Result<&'a [u8], Damage> {
    let (head, tail) = input.split_at_checked(len).ok_or(Damage::Parcel)?;
    *input = tail;
    Ok(head)
}
