//! Messages that filters hold: header fields and body, in the bytes of their frame.

use std::fmt;

use bytes::BytesMut;
use moldau_protocol::frame::{self, LENGTH_SIZE, RequestHeader};
use moldau_protocol::{
    ApiKey, DecodeError, EncodeError, Message, Reader, Request, Response, Writer,
};

use crate::pool;

/// A request as a filter gets it: whole, with its header.
pub struct RequestFrame {
    api_key: ApiKey,
    api_version: i16,
    correlation_id: i32,
    expects_response: bool,
    frame: Frame,
}

/// A response as a filter gets it: whole, with its header.
pub struct ResponseFrame {
    api_key: ApiKey,
    api_version: i16,
    correlation_id: i32,
    frame: Frame,
}

/// The bytes of a frame, its length included.
struct Frame {
    bytes: Vec<u8>,
    /// Where the body begins.
    body_at: usize,
}

impl RequestFrame {
    /// Reads the header of a whole frame with its length.
    ///
    /// # Errors
    /// The API or its version is unknown, or the header is broken.
    pub fn parse(bytes: Vec<u8>, expects_response: bool) -> Result<Self, DecodeError> {
        let (header, body) = RequestHeader::parse(bytes.get(LENGTH_SIZE..).unwrap_or_default())?;
        let RequestHeader { api_key, api_version, correlation_id, .. } = header;
        let body_at = bytes.len() - body.len();
        let frame = Frame { bytes, body_at };
        Ok(Self { api_key, api_version, correlation_id, expects_response, frame })
    }

    /// The API that is called.
    #[must_use]
    pub fn api_key(&self) -> ApiKey {
        self.api_key
    }

    /// A valid version of it.
    #[must_use]
    pub fn api_version(&self) -> i16 {
        self.api_version
    }

    /// What the response repeats.
    #[must_use]
    pub fn correlation_id(&self) -> i32 {
        self.correlation_id
    }

    /// The client's name for itself.
    #[must_use]
    pub fn client_id(&self) -> Option<&str> {
        let frame = self.frame.bytes.get(LENGTH_SIZE..).unwrap_or_default();
        frame::peek(frame).ok().and_then(|header| header.client_id)
    }

    /// Whether the client waits for an answer; it does but for a produce request with `acks=0`.
    #[must_use]
    pub fn expects_response(&self) -> bool {
        self.expects_response
    }

    /// What follows the header.
    #[must_use]
    pub fn body(&self) -> &[u8] {
        self.frame.body()
    }

    /// The body as a message.
    ///
    /// # Errors
    /// The body is broken.
    pub fn decode<Q: Request>(&self) -> Result<Q, DecodeError> {
        Q::decode(&mut Reader::new(self.body()), self.api_version)
    }

    /// The same header before another message of the same API.
    ///
    /// # Errors
    /// The version cannot express the message.
    pub fn with_message<Q: Request>(self, message: &Q) -> Result<Self, EncodeError> {
        let version = self.api_version;
        self.with_body(|out| encode(message, version, out))
    }

    /// The same header before the body that `write` appends.
    ///
    /// # Errors
    /// Those of `write`, and a frame that is too long.
    pub fn with_body<E: From<EncodeError>>(
        self,
        write: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
    ) -> Result<Self, E> {
        Ok(Self { frame: self.frame.with_body(write)?, ..self })
    }

    /// The frame up to its body, with room for that. For a body that is written piece by piece, and
    /// given to [`with_bytes`](Self::with_bytes) together with this.
    #[must_use]
    pub fn header_bytes(&self) -> Vec<u8> {
        self.frame.header_bytes()
    }

    /// A frame of these bytes, which begin as [`header_bytes`](Self::header_bytes) do.
    ///
    /// # Errors
    /// The frame is too long.
    pub fn with_bytes(self, bytes: Vec<u8>) -> Result<Self, EncodeError> {
        Ok(Self { frame: self.frame.with_bytes(bytes)?, ..self })
    }

    /// The same body behind a header that names another client.
    ///
    /// # Errors
    /// The client id is too long.
    pub fn with_client_id(self, client_id: Option<&str>) -> Result<Self, EncodeError> {
        let (api, version) = (self.api_key, self.api_version);
        let mut bytes = BytesMut::zeroed(LENGTH_SIZE);
        frame::write_request_header(&mut bytes, api, version, self.correlation_id, client_id)?;
        let header = Frame { body_at: bytes.len(), bytes: bytes.into() };
        let frame = header.with_body(|out| {
            out.extend_from_slice(self.frame.body());
            Ok::<_, EncodeError>(())
        })?;
        Ok(Self { frame, ..self })
    }

    /// The frame with its length.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.frame.bytes
    }

    /// An answer to this request.
    ///
    /// # Errors
    /// The version cannot express the message.
    pub fn respond<R: Response>(&self, message: &R) -> Result<ResponseFrame, EncodeError> {
        let mut bytes = BytesMut::new();
        let (api, version) = (self.api_key, self.api_version);
        frame::encode_response(&mut bytes, api, version, self.correlation_id, message)?;
        let header_bytes = if api.response_header_version(version) > 0 { 5 } else { 4 };
        let frame = Frame { bytes: bytes.into(), body_at: LENGTH_SIZE + header_bytes };
        let correlation_id = self.correlation_id;
        Ok(ResponseFrame { api_key: api, api_version: version, correlation_id, frame })
    }

    /// The frame with its length.
    pub(crate) fn into_bytes(mut self) -> Vec<u8> {
        std::mem::take(&mut self.frame.bytes)
    }
}

impl ResponseFrame {
    /// Reads the header of a whole frame with its length.
    ///
    /// # Errors
    /// The header is broken.
    pub fn parse(bytes: Vec<u8>, api_key: ApiKey, api_version: i16) -> Result<Self, DecodeError> {
        let frame = bytes.get(LENGTH_SIZE..).unwrap_or_default();
        let (correlation_id, body) = frame::parse_response(frame, api_key, api_version)?;
        let body_at = bytes.len() - body.len();
        Ok(Self { api_key, api_version, correlation_id, frame: Frame { bytes, body_at } })
    }

    /// The API that was called.
    #[must_use]
    pub fn api_key(&self) -> ApiKey {
        self.api_key
    }

    /// The version of the request and of this answer.
    #[must_use]
    pub fn api_version(&self) -> i16 {
        self.api_version
    }

    /// That of the request.
    #[must_use]
    pub fn correlation_id(&self) -> i32 {
        self.correlation_id
    }

    /// What follows the header.
    #[must_use]
    pub fn body(&self) -> &[u8] {
        self.frame.body()
    }

    /// The body as a message.
    ///
    /// # Errors
    /// The body is broken.
    pub fn decode<R: Response>(&self) -> Result<R, DecodeError> {
        R::decode(&mut Reader::new(self.body()), self.api_version)
    }

    /// The same header before another message of the same API.
    ///
    /// # Errors
    /// The version cannot express the message.
    pub fn with_message<R: Response>(self, message: &R) -> Result<Self, EncodeError> {
        let version = self.api_version;
        self.with_body(|out| encode(message, version, out))
    }

    /// The same header before the body that `write` appends.
    ///
    /// # Errors
    /// Those of `write`, and a frame that is too long.
    pub fn with_body<E: From<EncodeError>>(
        self,
        write: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
    ) -> Result<Self, E> {
        Ok(Self { frame: self.frame.with_body(write)?, ..self })
    }

    /// The frame up to its body, with room for that. For a body that is written piece by piece, and
    /// given to [`with_bytes`](Self::with_bytes) together with this.
    #[must_use]
    pub fn header_bytes(&self) -> Vec<u8> {
        self.frame.header_bytes()
    }

    /// A frame of these bytes, which begin as [`header_bytes`](Self::header_bytes) do.
    ///
    /// # Errors
    /// The frame is too long.
    pub fn with_bytes(self, bytes: Vec<u8>) -> Result<Self, EncodeError> {
        Ok(Self { frame: self.frame.with_bytes(bytes)?, ..self })
    }

    /// The frame with its length.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.frame.bytes
    }

    /// Bytes of the frame with its length.
    pub(crate) fn size(&self) -> usize {
        self.frame.bytes.len()
    }

    /// The frame with its length.
    pub(crate) fn into_bytes(mut self) -> Vec<u8> {
        std::mem::take(&mut self.frame.bytes)
    }
}

impl Drop for Frame {
    fn drop(&mut self) {
        pool::give_frame(std::mem::take(&mut self.bytes));
    }
}

impl Frame {
    fn body(&self) -> &[u8] {
        self.bytes.get(self.body_at..).unwrap_or_default()
    }

    fn header_bytes(&self) -> Vec<u8> {
        // The output of a filter may be longer, and is likely to be so again.
        let mut bytes = pool::take_frame(2 * self.bytes.len());
        if bytes.capacity() == 0 {
            bytes = pool::take_frame(self.bytes.len());
        }
        bytes.reserve(self.bytes.len());
        bytes.extend_from_slice(self.bytes.get(..self.body_at).unwrap_or_default());
        bytes
    }

    fn with_bytes(&self, mut bytes: Vec<u8>) -> Result<Self, EncodeError> {
        let header = LENGTH_SIZE..self.body_at;
        assert!(bytes.get(header.clone()) == self.bytes.get(header), "a frame keeps its header");
        let length = bytes.len().saturating_sub(LENGTH_SIZE);
        let prefix =
            i32::try_from(length).map_err(|_| EncodeError::TooLong { what: "frame", length })?;
        if let Some(place) = bytes.first_chunk_mut() {
            *place = prefix.to_be_bytes();
        }
        Ok(Self { bytes, body_at: self.body_at })
    }

    fn with_body<E: From<EncodeError>>(
        &self,
        write: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
    ) -> Result<Self, E> {
        let mut bytes = self.header_bytes();
        write(&mut bytes)?;
        Ok(self.with_bytes(bytes)?)
    }
}

fn encode(message: &impl Message, version: i16, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    let mut body = BytesMut::new();
    message.encode(&mut Writer::new(&mut body), version)?;
    out.extend_from_slice(&body);
    Ok(())
}

/// Shows no body: it may hold what must not be logged.
impl fmt::Debug for RequestFrame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestFrame")
            .field("api_key", &self.api_key)
            .field("api_version", &self.api_version)
            .field("correlation_id", &self.correlation_id)
            .field("expects_response", &self.expects_response)
            .field("bytes", &self.frame.bytes.len())
            .finish()
    }
}

/// Shows no body: it may hold what must not be logged.
impl fmt::Debug for ResponseFrame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseFrame")
            .field("api_key", &self.api_key)
            .field("api_version", &self.api_version)
            .field("correlation_id", &self.correlation_id)
            .field("bytes", &self.frame.bytes.len())
            .finish()
    }
}
