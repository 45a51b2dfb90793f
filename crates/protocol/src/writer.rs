//! Appends Kafka's primitive types to a buffer. All integers are big-endian.

mod tagged_fields;

use bytes::{BufMut, BytesMut};

use crate::error::EncodeError;
use crate::tagged::RawTaggedField;
use crate::uuid::Uuid;

pub use tagged_fields::TaggedFieldsWriter;

/// Appends values to a [`BytesMut`].
pub struct Writer<'a> {
    out: &'a mut BytesMut,
}

/// Defines an infallible method for each number type.
macro_rules! numbers {
    ($($type:ident $put:ident),*) => {$(
        #[doc = concat!("Appends an `", stringify!($type), "`.")]
        pub fn $type(&mut self, value: $type) {
            self.out.$put(value);
        }
    )*};
}

impl<'a> Writer<'a> {
    /// A writer that appends to `out`.
    pub fn new(out: &'a mut BytesMut) -> Self {
        Self { out }
    }

    /// How many bytes the buffer holds.
    #[must_use]
    pub fn len(&self) -> usize {
        self.out.len()
    }

    /// Whether the buffer is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.out.is_empty()
    }

    numbers!(
        i8 put_i8, u8 put_u8, i16 put_i16, u16 put_u16, i32 put_i32, u32 put_u32, i64 put_i64,
        f64 put_f64
    );

    /// Appends a boolean as one byte.
    pub fn bool(&mut self, value: bool) {
        self.u8(u8::from(value));
    }

    /// Appends the 16 bytes of an id.
    pub fn uuid(&mut self, value: Uuid) {
        self.raw(value.as_bytes());
    }

    /// Appends bytes as they are.
    pub fn raw(&mut self, bytes: &[u8]) {
        self.out.extend_from_slice(bytes);
    }

    /// Appends an integer in 1 to 5 bytes, seven bits each, the lowest first.
    pub fn unsigned_varint(&mut self, value: u32) {
        let (bytes, len) = varint(value);
        self.raw(bytes.get(..len).unwrap_or(&bytes));
    }

    /// Appends a string.
    ///
    /// # Errors
    /// It is longer than 32,767 bytes.
    pub fn string(&mut self, value: &str, flexible: bool) -> Result<(), EncodeError> {
        let length = value.len();
        let prefix =
            i16::try_from(length).map_err(|_| EncodeError::TooLong { what: "string", length })?;
        if flexible {
            self.unsigned_varint(u32::from(prefix.unsigned_abs()) + 1);
        } else {
            self.i16(prefix);
        }
        self.raw(value.as_bytes());
        Ok(())
    }

    /// Appends a string or null.
    ///
    /// # Errors
    /// It is too long, or null without being `nullable`.
    pub fn nullable_string(
        &mut self,
        value: Option<&str>,
        flexible: bool,
        nullable: bool,
        field: &'static str,
    ) -> Result<(), EncodeError> {
        match value {
            Some(value) => self.string(value, flexible),
            None if !nullable => Err(EncodeError::Null { field }),
            None if flexible => {
                self.u8(0);
                Ok(())
            }
            None => {
                self.i16(-1);
                Ok(())
            }
        }
    }

    /// Appends bytes after their length.
    ///
    /// # Errors
    /// There are more than `i32::MAX`.
    pub fn bytes(&mut self, value: &[u8], flexible: bool) -> Result<(), EncodeError> {
        self.length(value.len(), flexible, "bytes")?;
        self.raw(value);
        Ok(())
    }

    /// Appends bytes or null.
    ///
    /// # Errors
    /// There are too many, or null is not `nullable`.
    pub fn nullable_bytes(
        &mut self,
        value: Option<&[u8]>,
        flexible: bool,
        nullable: bool,
        field: &'static str,
    ) -> Result<(), EncodeError> {
        match value {
            Some(value) => self.bytes(value, flexible),
            None => self.null_length(flexible, nullable, field),
        }
    }

    /// Appends an array.
    ///
    /// # Errors
    /// An element cannot be written, or there are more than `i32::MAX`.
    pub fn array<T: ToWire>(
        &mut self,
        values: &[T],
        version: i16,
        flexible: bool,
    ) -> Result<(), EncodeError> {
        self.length(values.len(), flexible, "array")?;
        values.iter().try_for_each(|value| value.write(self, version, flexible))
    }

    /// Appends an array or null.
    ///
    /// # Errors
    /// As [`array`](Self::array), or null is not `nullable`.
    pub fn nullable_array<T: ToWire>(
        &mut self,
        values: Option<&[T]>,
        version: i16,
        flexible: bool,
        nullable: bool,
        field: &'static str,
    ) -> Result<(), EncodeError> {
        match values {
            Some(values) => self.array(values, version, flexible),
            None => self.null_length(flexible, nullable, field),
        }
    }

    /// Appends a struct after the byte 1, or the byte -1 for null.
    ///
    /// # Errors
    /// The struct cannot be written, or null is not `nullable`.
    pub fn nullable_struct<T: ToWire>(
        &mut self,
        value: Option<&T>,
        version: i16,
        flexible: bool,
        nullable: bool,
        field: &'static str,
    ) -> Result<(), EncodeError> {
        match value {
            Some(value) => {
                self.i8(1);
                value.write(self, version, flexible)
            }
            None if nullable => {
                self.i8(-1);
                Ok(())
            }
            None => Err(EncodeError::Null { field }),
        }
    }

    /// Starts the tagged fields of a struct, of which `unknown` are passed on as they are.
    pub fn tagged_fields<'w>(
        &'w mut self,
        unknown: &'w [RawTaggedField],
    ) -> TaggedFieldsWriter<'w, 'a> {
        TaggedFieldsWriter::new(self, unknown)
    }

    /// Appends the tagged fields of a struct that has no known ones.
    ///
    /// # Errors
    /// The tags do not ascend.
    pub fn unknown_tagged_fields(&mut self, fields: &[RawTaggedField]) -> Result<(), EncodeError> {
        if fields.is_empty() {
            self.u8(0);
            return Ok(());
        }
        self.tagged_fields(fields).finish()
    }

    /// Appends the length of bytes or an array.
    ///
    /// # Errors
    /// It exceeds `i32::MAX`.
    pub fn length(
        &mut self,
        length: usize,
        flexible: bool,
        what: &'static str,
    ) -> Result<(), EncodeError> {
        let prefix = i32::try_from(length).map_err(|_| EncodeError::TooLong { what, length })?;
        if flexible {
            self.unsigned_varint(prefix.unsigned_abs() + 1);
        } else {
            self.i32(prefix);
        }
        Ok(())
    }

    fn null_length(
        &mut self,
        flexible: bool,
        nullable: bool,
        field: &'static str,
    ) -> Result<(), EncodeError> {
        match (nullable, flexible) {
            (false, _) => return Err(EncodeError::Null { field }),
            (true, true) => self.u8(0),
            (true, false) => self.i32(-1),
        }
        Ok(())
    }

    /// Appends the size of a tagged field.
    fn tagged_field_size(&mut self, length: usize) -> Result<(), EncodeError> {
        self.unsigned_varint(field_size(length)?);
        Ok(())
    }

    /// Puts the size of what follows `start` before it.
    fn insert_size(&mut self, start: usize) -> Result<(), EncodeError> {
        let length = self.len().saturating_sub(start);
        let size = field_size(length)?;
        self.u8(0);
        self.out.copy_within(start..start + length, start + 1);
        self.replace_byte_by_varint(start, size);
        Ok(())
    }

    /// Overwrites the byte at `at` with an integer, making room if it takes more than one byte.
    fn replace_byte_by_varint(&mut self, at: usize, value: u32) {
        let (bytes, len) = varint(value);
        let end = self.len();
        self.out.put_bytes(0, len - 1);
        self.out.copy_within(at + 1..end, at + len);
        self.out[at..at + len].copy_from_slice(&bytes[..len]);
    }
}

/// A value that can be written: a message, a struct within one, or an element of an array.
pub trait ToWire {
    /// Appends the value to a message of `version`, whose fields are compact if `flexible`.
    ///
    /// # Errors
    /// The version cannot express the value.
    fn write(
        &self,
        writer: &mut Writer<'_>,
        version: i16,
        flexible: bool,
    ) -> Result<(), EncodeError>;
}

/// Implements [`ToWire`] for a type with an infallible method of [`Writer`].
macro_rules! to_wire {
    ($($type:ty, $name:ident;)*) => {$(
        impl ToWire for $type {
            fn write(&self, writer: &mut Writer<'_>, _: i16, _: bool) -> Result<(), EncodeError> {
                writer.$name(*self);
                Ok(())
            }
        }
    )*};
}

to_wire! {
    i8, i8;
    i16, i16;
    i32, i32;
    i64, i64;
    Uuid, uuid;
}

impl ToWire for String {
    fn write(&self, writer: &mut Writer<'_>, _: i16, flexible: bool) -> Result<(), EncodeError> {
        writer.string(self, flexible)
    }
}

/// The size of a tagged field as it is written.
fn field_size(length: usize) -> Result<u32, EncodeError> {
    u32::try_from(length).map_err(|_| EncodeError::TooLong { what: "tagged field", length })
}

/// The bytes of a variable-length integer, and how many of them count.
fn varint(value: u32) -> ([u8; 5], usize) {
    let mut bytes = [0; 5];
    let mut rest = value;
    let mut len = 0;
    for byte in &mut bytes {
        let [low, ..] = (rest & 0x7f).to_le_bytes();
        rest >>= 7;
        len += 1;
        *byte = if rest == 0 { low } else { low | 0x80 };
        if rest == 0 {
            break;
        }
    }
    (bytes, len)
}
