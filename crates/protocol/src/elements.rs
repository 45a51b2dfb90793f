//! Arrays that are read while they are iterated over, without copying.

use std::marker::PhantomData;

use crate::error::DecodeError;
use crate::reader::Reader;

/// A struct that borrows from the bytes of its message.
pub trait Borrowed<'a>: Sized {
    /// The fewest bytes that the struct takes.
    const SIZE_MIN: usize;

    /// Reads a struct of a message of `version`, whose fields are compact if `flexible`.
    ///
    /// # Errors
    /// The bytes are no such struct.
    fn read(reader: &mut Reader<'a>, version: i16, flexible: bool) -> Result<Self, DecodeError>;
}

/// Iterates over the elements of an array; an error is the last item.
#[derive(Clone)]
pub struct Elements<'a, T> {
    reader: Reader<'a>,
    left: usize,
    version: i16,
    flexible: bool,
    element: PhantomData<fn() -> T>,
}

impl<'a, T: Borrowed<'a>> Elements<'a, T> {
    /// The array at the reader's position, which stays there.
    pub(crate) fn peek(
        reader: &Reader<'a>,
        version: i16,
        flexible: bool,
    ) -> Result<Self, DecodeError> {
        let mut reader = reader.clone();
        let left = reader.count(flexible, false, T::SIZE_MIN)?.unwrap_or_default();
        Ok(Self { reader, left, version, flexible, element: PhantomData })
    }

    /// How many elements are left.
    #[must_use]
    pub fn left(&self) -> usize {
        self.left
    }

    /// A reader of what follows the array.
    pub(crate) fn end(mut self) -> Result<Reader<'a>, DecodeError> {
        for element in &mut self {
            element?;
        }
        Ok(self.reader)
    }
}

impl<'a, T: Borrowed<'a>> Iterator for Elements<'a, T> {
    type Item = Result<T, DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        let element = T::read(&mut self.reader, self.version, self.flexible);
        if element.is_err() {
            self.left = 0;
        }
        Some(element)
    }
}
