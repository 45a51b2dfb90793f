//! The Kafka wire protocol: generated messages, primitives, frames, API keys and error codes.
//!
//! # Layout
//!
//! - [`messages`]: every message of Kafka 4.4.0 as an owned struct, with a module per message for
//!   the structs within it. `cargo xtask codegen` writes them.
//! - [`Message`], [`Request`], [`Response`]: what the messages implement.
//! - [`Reader`] and [`Writer`]: the primitive types, and values made of them ([`FromWire`],
//!   [`ToWire`]).
//! - [`frame`]: lengths and headers. [`ApiKey`], [`ErrorCode`], [`Uuid`]: constants and ids.
//! - [`produce`] and [`fetch`]: borrowed views and encoders that leave record bytes where they are.
//! - [`metadata`]: an encoder of responses that share the bytes of their partitions.
//! - [`Layout`]: the fields of a message as data, and what they name ([`Entity`]). [`names`] finds
//!   and rewrites the names in a message of any API.
//! - [`walk`]: tells structure from records while a frame streams by.
//!
//! # Invariants
//!
//! - Bytes to decode are hostile: no decoder panics, and none allocates more than the bytes that
//!   are left could justify.
//! - What a decoder accepts can be encoded again; tagged fields that are not known are kept.
//! - A value that a version cannot express is an [`EncodeError`], never dropped, unless Kafka marks
//!   the field as ignorable.
//! - The crate owns no thread, file, socket or clock.

mod api_key;
mod elements;
mod error;
mod error_code;
pub mod fetch;
pub mod frame;
mod generated;
mod layout;
mod message;
pub mod metadata;
pub mod names;
pub mod produce;
#[cfg(test)]
mod random;
mod reader;
mod segments;
pub mod share_fetch;
mod software;
mod tagged;
#[cfg(test)]
mod tests;
mod uuid;
mod versions;
pub mod walk;
mod writer;

pub use api_key::ApiKey;
pub use elements::{Borrowed, Elements};
pub use error::{DecodeError, EncodeError, RewriteError};
pub use error_code::{ErrorCode, UnknownErrorCode};
pub use layout::{Entity, Field, Kind, Structure};
pub use message::{Layout, Message, Request, Response};
pub use reader::{FromWire, Reader};
pub use tagged::RawTaggedField;
pub use uuid::{ParseUuidError, Uuid};
pub use versions::VersionRange;
pub use writer::{TaggedFieldsWriter, ToWire, Writer};

/// Kafka's messages; the structs within a message stand in the module of its name.
pub mod messages {
    pub use crate::api_key::ApiKey;
    pub use crate::generated::*;
}
