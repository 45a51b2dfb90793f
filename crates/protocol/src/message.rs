//! The traits that generated messages implement.

use bytes::{Bytes, BytesMut};

use crate::api_key::ApiKey;
use crate::error::{DecodeError, EncodeError};
use crate::layout::{Field, Structure};
use crate::reader::{FromWire, Reader};
use crate::versions::VersionRange;
use crate::writer::{ToWire, Writer};

/// A message: the body of a request or response, a header, or a versioned record.
pub trait Message: FromWire + ToWire + Structure + Default {
    /// Kafka's name of the message.
    const NAME: &'static str;
    /// The versions that exist, without unstable ones.
    const VERSIONS: VersionRange;
    /// The first version with compact lengths and tagged fields (KIP-482), `i16::MAX` if none has.
    const FLEXIBLE_FROM: i16;

    /// Reads a message and leaves what follows it.
    ///
    /// # Errors
    /// The version does not exist, or the bytes are not this message.
    fn decode(reader: &mut Reader<'_>, version: i16) -> Result<Self, DecodeError> {
        if !Self::VERSIONS.contains(version) {
            return Err(DecodeError::UnsupportedVersion { message: Self::NAME, version });
        }
        Self::read(reader, version, version >= Self::FLEXIBLE_FROM)
    }

    /// Appends the message.
    ///
    /// # Errors
    /// The version does not exist or cannot express the value; what was written so far stays.
    fn encode(&self, writer: &mut Writer<'_>, version: i16) -> Result<(), EncodeError> {
        if !Self::VERSIONS.contains(version) {
            return Err(EncodeError::UnsupportedVersion { message: Self::NAME, version });
        }
        self.write(writer, version, version >= Self::FLEXIBLE_FROM)
    }

    /// Reads a message that must fill all of `bytes`, whose byte fields then share its memory.
    ///
    /// # Errors
    /// As [`decode`](Self::decode), and if bytes are left over.
    fn from_bytes(bytes: &Bytes, version: i16) -> Result<Self, DecodeError> {
        let mut reader = Reader::shared(bytes);
        let message = Self::decode(&mut reader, version)?;
        reader.finish()?;
        Ok(message)
    }

    /// The message in a buffer of its own.
    ///
    /// # Errors
    /// As [`encode`](Self::encode).
    fn to_bytes(&self, version: i16) -> Result<Bytes, EncodeError> {
        let mut out = BytesMut::new();
        self.encode(&mut Writer::new(&mut out), version)?;
        Ok(out.freeze())
    }
}

/// The body of a request.
pub trait Request: Message {
    /// The API that the request calls.
    const KEY: ApiKey;
    /// What answers it.
    type Response: Response;
}

/// The body of a response.
pub trait Response: Message {
    /// The API that is answered.
    const KEY: ApiKey;
}

/// What a reader must know of a message beside its bytes.
#[derive(Clone, Copy, Debug)]
pub struct Layout {
    /// Kafka's name of the message.
    pub name: &'static str,
    /// Its fields.
    pub fields: &'static [Field],
    /// The versions that exist.
    pub versions: VersionRange,
    /// The first version with compact lengths and tagged fields.
    pub flexible_from: i16,
}

impl Layout {
    /// The layout of a message.
    #[must_use]
    pub const fn of<M: Message>() -> Self {
        Self {
            name: M::NAME,
            fields: M::FIELDS,
            versions: M::VERSIONS,
            flexible_from: M::FLEXIBLE_FROM,
        }
    }
}
