//! The header that says that a record is sealed.
//!
//! ```text
//! key "kroxylicious.io/encryption" | value: version u8, 2
//! ```
//! A writer puts it before all other headers. A reader takes the first header with this key,
//! wherever it stands: a record that two proxies have sealed has two; the first belongs to the
//! outer layer.

use moldau_records::{RawRecord, read_header};

use crate::damage::Damage;

/// Key of the marker.
pub const MARKER_KEY: &str = "kroxylicious.io/encryption";
/// The one version there is.
const VERSION: u8 = 2;

/// The marker as a record holds it: zigzag length and key, zigzag length and value.
pub(crate) const MARKER_HEADER: &[u8; 29] = b"\x34kroxylicious.io/encryption\x02\x02";

/// The headers of a sealed record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Marked<'a> {
    /// Whether the marker is as it should be.
    pub(crate) version: Result<(), Damage>,
    /// How many headers the record has without its layer.
    pub(crate) headers_count: usize,
    /// These headers: all but the marker if that is the first, else all of them, as Kroxylicious
    /// leaves them.
    pub(crate) headers: &'a [u8],
}

/// Looks for the marker; `None` means that the record is not sealed.
///
/// # Errors
/// As [`RawRecord::check_headers`]: a record without its marker must be whole.
#[inline]
pub(crate) fn find<'a>(
    record: &RawRecord<'a>,
) -> Result<Option<Marked<'a>>, moldau_records::Error> {
    record.check_headers()?;
    let mut rest = record.headers();
    for at in 0..record.headers_count() {
        let header = read_header(&mut rest)?;
        if header.key == MARKER_KEY.as_bytes() {
            let version = match header.value {
                Some([VERSION]) => Ok(()),
                Some([version]) => Err(Damage::Version(*version)),
                _ => Err(Damage::Marker),
            };
            let (headers_count, headers) = match at {
                0 => (record.headers_count() - 1, rest),
                _ => (record.headers_count(), record.headers()),
            };
            return Ok(Some(Marked { version, headers_count, headers }));
        }
    }
    Ok(None)
}
