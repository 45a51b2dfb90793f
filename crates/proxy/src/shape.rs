//! The shapes of answers that end in the endpoints of nodes, so that these are found by skipping
//! over what stands before them.
//!
//! Only flexible versions carry endpoints (KIP-951, KIP-932), so every length is compact.

use moldau_protocol::{DecodeError, Reader};

/// One field to skip.
#[derive(Debug)]
pub(crate) enum Field {
    /// A value of so many bytes.
    Fixed(usize),
    /// Text, bytes or records, or null: a length and so many bytes.
    Sized,
    /// An array of structs of these fields. Each struct ends in tagged fields.
    Array(&'static [Self]),
    /// The tagged fields of a struct that is not an array's element.
    Tags,
}

use Field::{Array, Fixed, Sized, Tags};

const PRODUCE_PARTITION: &[Field] = &[
    // index, error, base offset, log append time, log start offset
    Fixed(4 + 2 + 8 + 8 + 8),
    // record errors: batch index, message
    Array(&[Fixed(4), Sized]),
    // error message
    Sized,
];

/// Produce from version 10 on: topics by name, throttle time.
pub(crate) const PRODUCE_BY_NAME: &[Field] = &[Array(&[Sized, Array(PRODUCE_PARTITION)]), Fixed(4)];

/// Produce from version 13 on: topics by id, throttle time.
pub(crate) const PRODUCE_BY_ID: &[Field] =
    &[Array(&[Fixed(16), Array(PRODUCE_PARTITION)]), Fixed(4)];

/// ShareFetch: throttle time and error, error message, lock timeout, topics.
pub(crate) const SHARE_FETCH: &[Field] = &[
    Fixed(4 + 2),
    Sized,
    Fixed(4),
    Array(&[
        Fixed(16),
        Array(&[
            // index, error, error message
            Fixed(4 + 2),
            Sized,
            // acknowledge error, its message
            Fixed(2),
            Sized,
            // current leader: id, epoch
            Fixed(4 + 4),
            Tags,
            // records
            Sized,
            // acquired records: first and last offset, delivery count
            Array(&[Fixed(8 + 8 + 2)]),
        ]),
    ]),
];

const SHARE_ACKNOWLEDGE_TOPICS: Field =
    Array(&[Fixed(16), Array(&[Fixed(4 + 2), Sized, Fixed(4 + 4), Tags])]);

/// ShareAcknowledge: throttle time and error, error message, topics.
pub(crate) const SHARE_ACKNOWLEDGE: &[Field] = &[Fixed(4 + 2), Sized, SHARE_ACKNOWLEDGE_TOPICS];

/// ShareAcknowledge from version 2 on, which adds the lock timeout.
pub(crate) const SHARE_ACKNOWLEDGE_WITH_LOCK: &[Field] =
    &[Fixed(4 + 2), Sized, Fixed(4), SHARE_ACKNOWLEDGE_TOPICS];

/// Skips `fields`.
///
/// # Errors
/// The bytes end or a count is more than they could hold.
pub(crate) fn skip(reader: &mut Reader<'_>, fields: &[Field]) -> Result<(), DecodeError> {
    for field in fields {
        match field {
            Fixed(count) => {
                reader.take(*count, "field")?;
            }
            Sized => {
                reader.slice(true, true)?;
            }
            Array(element) => {
                for _ in 0..reader.count(true, true, 1)?.unwrap_or_default() {
                    skip(reader, element)?;
                    reader.skip_tagged_fields()?;
                }
            }
            Tags => reader.skip_tagged_fields()?,
        }
    }
    Ok(())
}
