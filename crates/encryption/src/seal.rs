//! Sealing the values of a batch's records.

use std::sync::Arc;

use moldau_records::{Edit, Error, RawRecord, varint};

use crate::cipher::{Nonces, SealingKey};
use crate::marker::MARKER_HEADER;
use crate::parcel;
use crate::wrapper::{NONCE_BYTES, TAG_BYTES};

/// Seals the records of one batch.
pub struct Sealer {
    key: Arc<SealingKey>,
    nonces: Nonces,
}

impl Sealer {
    /// For a batch of `records` records. A nonce of the key is taken for each, those with null
    /// values included.
    #[must_use]
    pub fn new(key: Arc<SealingKey>, records: u32) -> Self {
        let nonces = key.take_nonces(records);
        Self { key, nonces }
    }

    /// Replaces the record by one with a sealed value, and returns true. A null value stays.
    ///
    /// # Errors
    /// The record is malformed, or larger than the format allows once it is sealed.
    ///
    /// # Panics
    /// With more records than the batch was said to have.
    #[inline]
    pub fn seal(&mut self, record: &RawRecord<'_>, edit: &mut Edit<'_>) -> Result<bool, Error> {
        // Readers look for the marker among the headers.
        record.check_headers()?;
        let Some(value) = record.value() else { return Ok(false) };
        edit.replace(|out| write(record, value, &self.key, self.nonces.next(), out))?;
        Ok(true)
    }
}

#[inline]
fn write(
    record: &RawRecord<'_>,
    value: &[u8],
    key: &SealingKey,
    nonce: [u8; NONCE_BYTES],
    out: &mut Vec<u8>,
) -> Result<(), Error> {
    let overflow = || Error::FormatOverflow;
    let before = record.before_value();
    let head = key.wrapper_head();
    let parcel_len = parcel::value_len(value).ok_or_else(overflow)?;
    let wrapper_len = head.len() + NONCE_BYTES + parcel_len + TAG_BYTES;
    let wrapper_len_field = i32::try_from(wrapper_len).map_err(|_| overflow())?;
    let headers_count = i32::try_from(record.headers_count() + 1).map_err(|_| overflow())?;
    let body_len = before.len()
        + varint::len_i32(wrapper_len_field)
        + wrapper_len
        + varint::len_i32(headers_count)
        + MARKER_HEADER.len()
        + record.headers().len();
    let body_len_field = i32::try_from(body_len).map_err(|_| overflow())?;

    out.reserve(varint::LEN_32_MAX + body_len);
    varint::write_i32(out, body_len_field);
    out.extend_from_slice(before);
    varint::write_i32(out, wrapper_len_field);
    out.extend_from_slice(head);
    out.extend_from_slice(&nonce);
    let parcel_at = out.len();
    parcel::write_value(out, value);
    let tag = key.seal(nonce, out.get_mut(parcel_at..).unwrap_or_default());
    out.extend_from_slice(&tag);
    varint::write_i32(out, headers_count);
    out.extend_from_slice(MARKER_HEADER);
    out.extend_from_slice(record.headers());
    Ok(())
}
