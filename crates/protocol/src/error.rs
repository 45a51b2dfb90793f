//! What can be wrong with bytes to decode or with a value to encode.

use thiserror::Error;

/// The peer's bytes are not the message that they claim to be. Positions count bytes from the start
/// of what the reader was given.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum DecodeError {
    /// The message does not exist in this version.
    #[error("{message} has no version {version}")]
    UnsupportedVersion {
        /// The message's name.
        message: &'static str,
        /// The version asked for.
        version: i16,
    },
    /// The API key names no API.
    #[error("unknown API key {key}")]
    UnknownApi {
        /// The key in the request header.
        key: i16,
    },
    /// The bytes end inside a value.
    #[error("{what} at byte {at} needs {needed} bytes, {remaining} are left")]
    Truncated {
        /// The kind of value.
        what: &'static str,
        /// Where the value starts.
        at: usize,
        /// How many bytes it takes at least.
        needed: usize,
        /// How many bytes are left.
        remaining: usize,
    },
    /// A length or a count is negative, or larger than its kind allows.
    #[error("{what} at byte {at} has the impossible length {length}")]
    Length {
        /// The kind of value.
        what: &'static str,
        /// Where the value's content would start.
        at: usize,
        /// The length as it was sent.
        length: i64,
    },
    /// Null stands where this version of the message allows none.
    #[error("{what} at byte {at} is null, which this version does not allow")]
    Null {
        /// The kind of value.
        what: &'static str,
        /// Where the value's content would start.
        at: usize,
    },
    /// A string is not UTF-8.
    #[error("string at byte {at} is not UTF-8")]
    Utf8 {
        /// Where the string's content starts.
        at: usize,
    },
    /// A variable-length integer does not fit 32 bits.
    #[error("variable-length integer at byte {at} exceeds 32 bits")]
    Varint {
        /// Where the integer starts.
        at: usize,
    },
    /// A struct carries the same unknown tagged field twice.
    #[error("tag {tag} occurs twice, again before byte {at}")]
    DuplicateTag {
        /// The tag.
        tag: u32,
        /// Where the second field ends.
        at: usize,
    },
    /// The message would take more memory than any may.
    #[error("the message takes more than {max} bytes of memory from byte {at} on")]
    Memory {
        /// Where the value starts for which none is left.
        at: usize,
        /// How much a message may take.
        max: usize,
    },
    /// Bytes are left over after the last field.
    #[error("{remaining} bytes are left over at byte {at}")]
    Trailing {
        /// Where the surplus starts.
        at: usize,
        /// How many bytes are left.
        remaining: usize,
    },
}

/// A value cannot be written in the version asked for: our own mistake, never the peer's.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum EncodeError {
    /// The message does not exist in this version.
    #[error("{message} has no version {version}")]
    UnsupportedVersion {
        /// The message's name.
        message: &'static str,
        /// The version asked for.
        version: i16,
    },
    /// A field is set that the version does not have and that must not be dropped silently.
    #[error("{field} is set, but version {version} does not have it")]
    Absent {
        /// Struct and field.
        field: &'static str,
        /// The version asked for.
        version: i16,
    },
    /// A field is `None` in a version that has no null.
    #[error("{field} is null, which this version does not allow")]
    Null {
        /// The field.
        field: &'static str,
    },
    /// A string, array or frame is longer than its length prefix can say.
    #[error("{what} is too long: {length}")]
    TooLong {
        /// The kind of value.
        what: &'static str,
        /// Its length in bytes or elements.
        length: usize,
    },
    /// Unknown tagged fields are not in ascending order, or repeat a known one.
    #[error("tag {tag} is out of order")]
    TagOrder {
        /// The tag.
        tag: u32,
    },
}

/// The names of a message cannot be rewritten.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum RewriteError {
    /// The peer's bytes are not the message.
    #[error(transparent)]
    Decode(#[from] DecodeError),
    /// A name has become too long.
    #[error(transparent)]
    Encode(#[from] EncodeError),
    /// What was to be left out stands in no array.
    #[error("nothing can be left out of {message}")]
    Indispensable {
        /// The message's name.
        message: &'static str,
    },
}

impl EncodeError {
    /// A field that is set in a version without it.
    pub(crate) const fn absent(field: &'static str, version: i16) -> Self {
        Self::Absent { field, version }
    }
}
