//! Takes Kafka's primitive types from the front of a slice. All integers are big-endian.
//!
//! The bytes are hostile: nothing here panics, nothing is allocated before the bytes that are left
//! could hold what a length announces, and a message takes no more memory than any may.

use bytes::Bytes;

use crate::error::DecodeError;
use crate::tagged::RawTaggedField;
use crate::uuid::Uuid;

/// Strings are at most this long, in compact form too.
pub(crate) const STRING_LENGTH_MAX: usize = 0x7fff;

/// An array reserves at most this many bytes of memory before its elements are read. Elements may
/// be far larger in memory than on the wire, so the count alone must not decide.
const RESERVED_BYTES_MAX: usize = 64 * 1024;

/// Memory that the values of one message may take. Elements of arrays may take fifty times their
/// bytes, so that a frame of Kafka's `socket.request.max.bytes` could take gigabytes. The largest
/// messages in use, metadata of a million partitions, take half of this.
const MEMORY_BYTES_MAX: usize = 256 << 20;

/// What the allocation of a short text takes beside its bytes.
const ALLOCATION_BYTES: usize = 16;

/// Reads values one after the other.
#[derive(Clone)]
pub struct Reader<'a> {
    rest: &'a [u8],
    /// Memory that values may still take.
    memory_left: usize,
    /// The position of the end of `rest`, counted from where the outermost reader started.
    end: usize,
    /// What `rest` lies in, if byte fields are to share memory instead of being copied.
    source: Option<&'a Bytes>,
}

/// Defines a method for each number type.
macro_rules! numbers {
    ($($type:ident),*) => {$(
        #[doc = concat!("Reads an `", stringify!($type), "`.\n\n# Errors\nThe bytes end.")]
        pub fn $type(&mut self) -> Result<$type, DecodeError> {
            self.fixed(stringify!($type)).map($type::from_be_bytes)
        }
    )*};
}

impl<'a> Reader<'a> {
    /// A reader over borrowed bytes; byte fields are copied out of it.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self::over(bytes, None)
    }

    /// A reader over shared bytes; byte fields are slices of the same memory.
    #[must_use]
    pub fn shared(bytes: &'a Bytes) -> Self {
        Self::over(bytes, Some(bytes))
    }

    fn over(bytes: &'a [u8], source: Option<&'a Bytes>) -> Self {
        Self { rest: bytes, memory_left: MEMORY_BYTES_MAX, end: bytes.len(), source }
    }

    /// What has not been read.
    #[must_use]
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Whether everything has been read.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// How many bytes have been read.
    #[must_use]
    pub fn position(&self) -> usize {
        self.end.saturating_sub(self.rest.len())
    }

    /// Checks that everything has been read.
    ///
    /// # Errors
    /// Bytes are left over.
    pub fn finish(&self) -> Result<(), DecodeError> {
        match self.rest.len() {
            0 => Ok(()),
            remaining => Err(DecodeError::Trailing { at: self.position(), remaining }),
        }
    }

    numbers!(i8, u8, i16, u16, i32, u32, i64, f64);

    /// Reads a boolean: any byte but 0 is true.
    ///
    /// # Errors
    /// The bytes end.
    pub fn bool(&mut self) -> Result<bool, DecodeError> {
        Ok(self.u8()? != 0)
    }

    /// Reads an id.
    ///
    /// # Errors
    /// The bytes end.
    pub fn uuid(&mut self) -> Result<Uuid, DecodeError> {
        self.fixed("uuid").map(Uuid::from_bytes)
    }

    /// Reads an integer of 1 to 5 bytes, seven bits each, the lowest first.
    ///
    /// # Errors
    /// The bytes end, or the integer exceeds 32 bits.
    pub fn unsigned_varint(&mut self) -> Result<u32, DecodeError> {
        let at = self.position();
        let mut value = 0_u32;
        for shift in [0, 7, 14, 21, 28] {
            let byte = self.u8()?;
            let low = u32::from(byte & 0x7f);
            if shift == 28 && byte > 0x0f {
                return Err(DecodeError::Varint { at });
            }
            value |= low << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(DecodeError::Varint { at })
    }

    /// Takes the next `len` bytes.
    ///
    /// # Errors
    /// Fewer are left.
    pub fn take(&mut self, len: usize, what: &'static str) -> Result<&'a [u8], DecodeError> {
        let Some((taken, rest)) = self.rest.split_at_checked(len) else {
            return Err(self.truncated(what, len));
        };
        self.rest = rest;
        Ok(taken)
    }

    /// Reads a string.
    ///
    /// # Errors
    /// The bytes end, are not UTF-8, or are null.
    pub fn string(&mut self, flexible: bool) -> Result<String, DecodeError> {
        Ok(self.nullable_string(flexible, false)?.unwrap_or_default())
    }

    /// Reads a string or null.
    ///
    /// # Errors
    /// The bytes end, are not UTF-8, or are null without being `nullable`.
    pub fn nullable_string(
        &mut self,
        flexible: bool,
        nullable: bool,
    ) -> Result<Option<String>, DecodeError> {
        let Some(text) = self.str(flexible, nullable)? else { return Ok(None) };
        self.charge(text.len() + ALLOCATION_BYTES)?;
        Ok(Some(text.to_owned()))
    }

    /// Reads a string or null without copying it.
    ///
    /// # Errors
    /// The bytes end, are not UTF-8, or are null without being `nullable`.
    pub fn str(&mut self, flexible: bool, nullable: bool) -> Result<Option<&'a str>, DecodeError> {
        let length =
            if flexible { i64::from(self.unsigned_varint()?) - 1 } else { i64::from(self.i16()?) };
        let Some(length) = self.checked_length(length, nullable, "string")? else {
            return Ok(None);
        };
        let at = self.position();
        if length > STRING_LENGTH_MAX {
            let length = i64::try_from(length).unwrap_or(i64::MAX);
            return Err(DecodeError::Length { what: "string", at, length });
        }
        let bytes = self.take(length, "string")?;
        std::str::from_utf8(bytes).map(Some).map_err(|_| DecodeError::Utf8 { at })
    }

    /// Reads bytes.
    ///
    /// # Errors
    /// The bytes end or are null.
    pub fn bytes(&mut self, flexible: bool) -> Result<Bytes, DecodeError> {
        Ok(self.nullable_bytes(flexible, false)?.unwrap_or_default())
    }

    /// Reads bytes or null.
    ///
    /// # Errors
    /// The bytes end, or are null without being `nullable`.
    pub fn nullable_bytes(
        &mut self,
        flexible: bool,
        nullable: bool,
    ) -> Result<Option<Bytes>, DecodeError> {
        let Some(slice) = self.slice(flexible, nullable)? else { return Ok(None) };
        self.own(slice).map(Some)
    }

    /// Reads bytes or null without copying them.
    ///
    /// # Errors
    /// The bytes end, or are null without being `nullable`.
    pub fn slice(
        &mut self,
        flexible: bool,
        nullable: bool,
    ) -> Result<Option<&'a [u8]>, DecodeError> {
        match self.length(flexible, nullable, "bytes")? {
            Some(length) => self.take(length, "bytes").map(Some),
            None => Ok(None),
        }
    }

    /// Reads an array.
    ///
    /// # Errors
    /// An element is broken, or the array is null.
    pub fn array<T: FromWire>(
        &mut self,
        version: i16,
        flexible: bool,
    ) -> Result<Vec<T>, DecodeError> {
        Ok(self.nullable_array(version, flexible, false)?.unwrap_or_default())
    }

    /// Reads an array or null.
    ///
    /// # Errors
    /// An element is broken, or the array is null without being `nullable`.
    pub fn nullable_array<T: FromWire>(
        &mut self,
        version: i16,
        flexible: bool,
        nullable: bool,
    ) -> Result<Option<Vec<T>>, DecodeError> {
        let Some(count) = self.count(flexible, nullable, T::SIZE_MIN)? else {
            return Ok(None);
        };
        self.charge(count.saturating_mul(size_of::<T>()))?;
        let reserved = count.min(RESERVED_BYTES_MAX / size_of::<T>().max(1));
        let mut values = Vec::with_capacity(reserved);
        for _ in 0..count {
            values.push(T::read(self, version, flexible)?);
        }
        Ok(Some(values))
    }

    /// Reads the count of an array whose elements take at least `size_min` bytes each.
    ///
    /// # Errors
    /// The bytes that are left cannot hold so many, or the array is null without being `nullable`.
    pub fn count(
        &mut self,
        flexible: bool,
        nullable: bool,
        size_min: usize,
    ) -> Result<Option<usize>, DecodeError> {
        let Some(count) = self.length(flexible, nullable, "array")? else {
            return Ok(None);
        };
        if count > self.rest.len() / size_min.max(1) {
            return Err(self.truncated("array", count.saturating_mul(size_min)));
        }
        Ok(Some(count))
    }

    /// Reads a struct after the byte 1, or null as the byte -1.
    ///
    /// # Errors
    /// The struct is broken, or null without being `nullable`.
    pub fn nullable_struct<T: FromWire>(
        &mut self,
        version: i16,
        flexible: bool,
        nullable: bool,
    ) -> Result<Option<T>, DecodeError> {
        match self.i8()? {
            marker if marker >= 0 => T::read(self, version, flexible).map(Some),
            _ if nullable => Ok(None),
            _ => Err(DecodeError::Null { what: "struct", at: self.position() }),
        }
    }

    /// Reads tagged fields. `known` reads the content of a tag that it knows and returns true;
    /// the others end up in `unknown`, by ascending tag.
    ///
    /// # Errors
    /// A field is broken, does not fill its size, or is unknown and comes twice.
    pub fn tagged_fields(
        &mut self,
        unknown: &mut Vec<RawTaggedField>,
        mut known: impl FnMut(&mut Self, u32) -> Result<bool, DecodeError>,
    ) -> Result<(), DecodeError> {
        for _ in 0..self.unsigned_varint()? {
            let tag = self.unsigned_varint()?;
            let size = self.unsigned_varint()?;
            let size = usize::try_from(size).unwrap_or(usize::MAX);
            let content = self.take(size, "tagged field")?;
            let mut field = Self { rest: content, end: self.position(), ..*self };
            if known(&mut field, tag)? {
                field.finish()?;
                self.memory_left = field.memory_left;
            } else {
                self.charge(size_of::<RawTaggedField>())?;
                unknown.push(RawTaggedField { tag, data: self.own(content)? });
            }
        }
        unknown.sort_unstable_by_key(|field| field.tag);
        let twice = unknown.array_windows().find(|[one, next]| one.tag == next.tag);
        match twice {
            Some([one, _]) => Err(DecodeError::DuplicateTag { tag: one.tag, at: self.position() }),
            None => Ok(()),
        }
    }

    /// Reads the tagged fields of a struct that knows none.
    ///
    /// # Errors
    /// The bytes end, or a field comes twice.
    pub fn unknown_tagged_fields(
        &mut self,
        unknown: &mut Vec<RawTaggedField>,
    ) -> Result<(), DecodeError> {
        self.tagged_fields(unknown, |_, _| Ok(false))
    }

    /// Passes over tagged fields.
    ///
    /// # Errors
    /// The bytes end.
    pub fn skip_tagged_fields(&mut self) -> Result<(), DecodeError> {
        for _ in 0..self.unsigned_varint()? {
            self.unsigned_varint()?;
            let size = self.unsigned_varint()?;
            self.take(usize::try_from(size).unwrap_or(usize::MAX), "tagged field")?;
        }
        Ok(())
    }

    /// Reads the length of bytes or an array.
    fn length(
        &mut self,
        flexible: bool,
        nullable: bool,
        what: &'static str,
    ) -> Result<Option<usize>, DecodeError> {
        let length =
            if flexible { i64::from(self.unsigned_varint()?) - 1 } else { i64::from(self.i32()?) };
        self.checked_length(length, nullable, what)
    }

    fn checked_length(
        &self,
        length: i64,
        nullable: bool,
        what: &'static str,
    ) -> Result<Option<usize>, DecodeError> {
        let at = self.position();
        match (length, nullable) {
            (-1, true) => Ok(None),
            (-1, false) => Err(DecodeError::Null { what, at }),
            _ => usize::try_from(length).map(Some).map_err(|_| DecodeError::Length {
                what,
                at,
                length,
            }),
        }
    }

    fn fixed<const N: usize>(&mut self, what: &'static str) -> Result<[u8; N], DecodeError> {
        let Some((taken, rest)) = self.rest.split_first_chunk() else {
            return Err(self.truncated(what, N));
        };
        self.rest = rest;
        Ok(*taken)
    }

    fn own(&mut self, slice: &[u8]) -> Result<Bytes, DecodeError> {
        match self.source {
            Some(source) => Ok(source.slice_ref(slice)),
            None => {
                self.charge(slice.len() + ALLOCATION_BYTES)?;
                Ok(Bytes::copy_from_slice(slice))
            }
        }
    }

    /// Accounts for memory that what is read takes.
    ///
    /// # Errors
    /// The message takes more than any may.
    pub(crate) fn charge(&mut self, bytes: usize) -> Result<(), DecodeError> {
        match self.memory_left.checked_sub(bytes) {
            Some(left) => {
                self.memory_left = left;
                Ok(())
            }
            None => Err(self.exhausted()),
        }
    }

    #[cold]
    fn exhausted(&self) -> DecodeError {
        DecodeError::Memory { at: self.position(), max: MEMORY_BYTES_MAX }
    }

    #[cold]
    fn truncated(&self, what: &'static str, needed: usize) -> DecodeError {
        DecodeError::Truncated { what, at: self.position(), needed, remaining: self.rest.len() }
    }
}

/// A value that can be read: a message, a struct within one, or an element of an array.
pub trait FromWire: Sized {
    /// The fewest bytes that a value takes; it bounds how many can be in what is left of a frame.
    const SIZE_MIN: usize;

    /// Reads a value of a message of `version`, whose fields are compact if `flexible`.
    ///
    /// # Errors
    /// The bytes are no such value.
    fn read(reader: &mut Reader<'_>, version: i16, flexible: bool) -> Result<Self, DecodeError>;
}

/// Implements [`FromWire`] for a type with a method of [`Reader`].
macro_rules! from_wire {
    ($($type:ty, $name:ident, $size:literal;)*) => {$(
        impl FromWire for $type {
            const SIZE_MIN: usize = $size;

            fn read(reader: &mut Reader<'_>, _: i16, _: bool) -> Result<Self, DecodeError> {
                reader.$name()
            }
        }
    )*};
}

from_wire! {
    i8, i8, 1;
    i16, i16, 2;
    i32, i32, 4;
    i64, i64, 8;
    Uuid, uuid, 16;
}

impl FromWire for String {
    const SIZE_MIN: usize = 1;

    fn read(reader: &mut Reader<'_>, _: i16, flexible: bool) -> Result<Self, DecodeError> {
        reader.string(flexible)
    }
}
