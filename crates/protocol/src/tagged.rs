//! Tagged fields (KIP-482) as they are kept.

use bytes::Bytes;

/// A tagged field whose meaning is not known here, kept so that a relay can pass it on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawTaggedField {
    /// The tag.
    pub tag: u32,
    /// The content without its size.
    pub data: Bytes,
}
