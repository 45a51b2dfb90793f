//! What members of classic groups offer.

use bytes::Bytes;

/// One protocol (assignor) that a member offers, with the metadata that its leader will see.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Protocol {
    /// Name of the protocol, such as `range`.
    pub name: String,
    /// Opaque to the coordinator, except for the subscription of protocol type `consumer`.
    pub metadata: Bytes,
}
