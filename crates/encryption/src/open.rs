//! Opening the sealed value of a record.

use moldau_records::{Edit, RawRecord, varint};

use crate::cipher::OpeningKey;
use crate::damage::Damage;
use crate::marker::{self, Marked};
use crate::parcel::{self, Field, Parcel};
use crate::wrapper::Wrapper;

/// A record that says that it is sealed.
#[derive(Debug, Clone, Copy)]
pub struct SealedRecord<'r> {
    record: RawRecord<'r>,
    marked: Marked<'r>,
    wrapper: Wrapper<'r>,
}

impl<'r> SealedRecord<'r> {
    /// `None` for a record without a marker. So is one with a null value, with any headers: a null
    /// value is never sealed, and a forged marker must not keep consumers from what follows.
    ///
    /// # Errors
    /// The record is malformed. Within, the [`Damage`] of a record that cannot be opened.
    #[inline]
    pub fn find(
        record: &RawRecord<'r>,
    ) -> Result<Option<Result<Self, Damage>>, moldau_records::Error> {
        let (Some(marked), Some(value)) = (marker::find(record)?, record.value()) else {
            return Ok(None);
        };
        let wrapper = marked.version.and_then(|()| Wrapper::parse(value));
        Ok(Some(wrapper.map(|wrapper| Self { record: *record, marked, wrapper })))
    }

    /// The wrapped data key.
    #[must_use]
    #[inline]
    pub fn edek(&self) -> &'r [u8] {
        self.wrapper.edek
    }

    /// Appends the record without this layer of sealing to `out`.
    ///
    /// # Errors
    /// [`Damage`]; what `out` has more then is worthless.
    pub fn open_into(&self, key: &OpeningKey, out: &mut Vec<u8>) -> Result<(), Damage> {
        self.write(key, out)
    }

    /// Replaces the record, which is at hand in `edit`, by one without this layer of sealing.
    ///
    /// # Errors
    /// [`Damage`]; the record then stays.
    #[inline]
    pub fn open(&self, key: &OpeningKey, edit: &mut Edit<'_>) -> Result<(), Damage> {
        edit.replace(|out| self.write(key, out))
    }

    /// The ciphertext is opened where the value is to stand: a parcel with a value only is the
    /// value's field and one byte more.
    #[inline]
    fn write(&self, key: &OpeningKey, out: &mut Vec<u8>) -> Result<(), Damage> {
        let Self { record, marked, wrapper } = self;
        let field_len = wrapper.ciphertext.len().checked_sub(1).ok_or(Damage::Parcel)?;
        let before = record.before_value();
        let headers_count = length_field(marked.headers_count)?;
        let headers_len = varint::len_i32(headers_count) + marked.headers.len();
        let body_len = before.len() + field_len + headers_len;

        let start = out.len();
        out.reserve(varint::LEN_32_MAX + body_len + 1);
        varint::write_i32(out, length_field(body_len)?);
        out.extend_from_slice(before);
        let parcel_at = out.len();
        out.extend_from_slice(wrapper.ciphertext);
        let parcel = out.get_mut(parcel_at..).unwrap_or_default();
        key.open(wrapper, parcel)?;
        if !parcel::has_value_only(parcel) {
            let parcel = out.split_off(parcel_at);
            out.truncate(start);
            return self.unwrap_parcel(&parcel, out);
        }
        out.truncate(parcel_at + field_len);
        varint::write_i32(out, headers_count);
        out.extend_from_slice(marked.headers);
        Ok(())
    }

    /// Appends the record that a parcel makes of this one. No known writer makes such parcels, so
    /// their buffers are not kept.
    #[cold]
    fn unwrap_parcel(&self, parcel: &[u8], out: &mut Vec<u8>) -> Result<(), Damage> {
        let Self { record, marked, .. } = self;
        let Parcel { value, headers } = Parcel::parse(parcel)?;
        let value = match value {
            Field::Present(value) => Some(value),
            Field::Null => None,
            Field::Absent => record.value(),
        };
        let mut body = record.before_value().to_vec();
        write_nullable(&mut body, value)?;
        match headers {
            Field::Absent => {
                varint::write_i32(&mut body, length_field(marked.headers_count)?);
                body.extend_from_slice(marked.headers);
            }
            Field::Null => varint::write_i32(&mut body, 0),
            Field::Present(headers) => {
                varint::write_i32(&mut body, length_field(headers.len())?);
                for header in headers {
                    write_nullable(&mut body, Some(header.key))?;
                    write_nullable(&mut body, header.value)?;
                }
            }
        }
        varint::write_i32(out, length_field(body.len())?);
        out.extend_from_slice(&body);
        Ok(())
    }
}

fn write_nullable(out: &mut Vec<u8>, bytes: Option<&[u8]>) -> Result<(), Damage> {
    varint::write_i32(out, bytes.map_or(Ok(-1), |bytes| length_field(bytes.len()))?);
    out.extend_from_slice(bytes.unwrap_or_default());
    Ok(())
}

/// A length in an opened record. Beyond 31 bits it came of a parcel that no one has written.
#[inline]
fn length_field(len: usize) -> Result<i32, Damage> {
    i32::try_from(len).map_err(|_| Damage::Parcel)
}
