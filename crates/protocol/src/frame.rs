//! Frames: four bytes of length, a header, a body.
//!
//! The length counts what follows it. A request header is `key int16, version int16,
//! correlation id int32, client id nullable string` and, from the API's first flexible version on,
//! tagged fields; the client id keeps its two-byte length. A response header is the correlation id
//! and, if flexible, tagged fields (KIP-482).
//!
//! Functions that read take a frame without its four bytes of length.

use bytes::{BufMut, BytesMut};

use crate::api_key::ApiKey;
use crate::error::{DecodeError, EncodeError};
use crate::generated;
use crate::layout::{Field, Kind};
use crate::message::{Message, Request};
use crate::reader::Reader;
use crate::writer::Writer;

/// How many bytes hold the length of a frame.
pub const LENGTH_SIZE: usize = 4;

/// The start of a request header, which has the same form in every version of every API.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestPeek<'a> {
    /// The API key, known or not.
    pub api_key: i16,
    /// The version of the API, supported or not.
    pub api_version: i16,
    /// What the response has to repeat.
    pub correlation_id: i32,
    /// The client's name for itself.
    pub client_id: Option<&'a str>,
}

/// The header of a request whose API is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestHeader<'a> {
    /// The API that is called.
    pub api_key: ApiKey,
    /// A valid version of it.
    pub api_version: i16,
    /// What the response has to repeat.
    pub correlation_id: i32,
    /// The client's name for itself.
    pub client_id: Option<&'a str>,
}

/// Reads the start of a request header, whatever follows it.
///
/// # Errors
/// The frame ends within it, or the client id is not UTF-8.
pub fn peek(frame: &[u8]) -> Result<RequestPeek<'_>, DecodeError> {
    peek_from(&mut Reader::new(frame))
}

fn peek_from<'a>(reader: &mut Reader<'a>) -> Result<RequestPeek<'a>, DecodeError> {
    Ok(RequestPeek {
        api_key: reader.i16()?,
        api_version: reader.i16()?,
        correlation_id: reader.i32()?,
        client_id: reader.str(false, true)?,
    })
}

impl<'a> RequestHeader<'a> {
    /// Splits a request into header and body.
    ///
    /// # Errors
    /// The API or its version is unknown, or the header is broken.
    pub fn parse(frame: &'a [u8]) -> Result<(Self, &'a [u8]), DecodeError> {
        let mut reader = Reader::new(frame);
        let peek = peek_from(&mut reader)?;
        let api_key = ApiKey::try_from(peek.api_key)?;
        if !api_key.valid_versions().contains(peek.api_version) {
            let (message, version) = (api_key.name(), peek.api_version);
            return Err(DecodeError::UnsupportedVersion { message, version });
        }
        if api_key.is_flexible(peek.api_version) {
            reader.skip_tagged_fields()?;
        }
        let header = Self {
            api_key,
            api_version: peek.api_version,
            correlation_id: peek.correlation_id,
            client_id: peek.client_id,
        };
        Ok((header, reader.rest()))
    }
}

/// Splits a response into its correlation id and its body. The caller knows by the correlation id
/// which request is answered, and so its API and version: see [`correlation_id`].
///
/// # Errors
/// The header is broken.
pub fn parse_response(
    frame: &[u8],
    api: ApiKey,
    version: i16,
) -> Result<(i32, &[u8]), DecodeError> {
    let mut reader = Reader::new(frame);
    let correlation_id = reader.i32()?;
    if api.response_header_version(version) > 0 {
        reader.skip_tagged_fields()?;
    }
    Ok((correlation_id, reader.rest()))
}

/// The correlation id of a response.
///
/// # Errors
/// The frame has fewer than four bytes.
pub fn correlation_id(frame: &[u8]) -> Result<i32, DecodeError> {
    Reader::new(frame).i32()
}

/// Appends a request with its length.
///
/// # Errors
/// The version cannot express the request, or the frame is too long; `out` is as it was then.
pub fn encode_request<Q: Request>(
    out: &mut BytesMut,
    version: i16,
    correlation_id: i32,
    client_id: Option<&str>,
    request: &Q,
) -> Result<(), EncodeError> {
    framed(out, |out| {
        write_request_header(out, Q::KEY, version, correlation_id, client_id)?;
        request.encode(&mut Writer::new(out), version)
    })
}

/// Appends a response with its length.
///
/// # Errors
/// The version cannot express the response, or the frame is too long; `out` is as it was then.
pub fn encode_response<R: Message>(
    out: &mut BytesMut,
    api: ApiKey,
    version: i16,
    correlation_id: i32,
    response: &R,
) -> Result<(), EncodeError> {
    framed(out, |out| {
        write_response_header(out, api, version, correlation_id);
        response.encode(&mut Writer::new(out), version)
    })
}

/// Appends a request header without a frame's length.
///
/// # Errors
/// The client id is too long.
pub fn write_request_header(
    out: &mut BytesMut,
    api: ApiKey,
    version: i16,
    correlation_id: i32,
    client_id: Option<&str>,
) -> Result<(), EncodeError> {
    let mut writer = Writer::new(out);
    writer.i16(api.key());
    writer.i16(version);
    writer.i32(correlation_id);
    writer.nullable_string(client_id, false, true, "ClientId")?;
    if api.is_flexible(version) {
        writer.u8(0);
    }
    Ok(())
}

/// Appends a response header without a frame's length.
pub fn write_response_header(out: &mut BytesMut, api: ApiKey, version: i16, correlation_id: i32) {
    out.put_i32(correlation_id);
    if api.response_header_version(version) > 0 {
        out.put_u8(0);
    }
}

/// Raises the throttle time of a response, whose bytes are a whole frame or its begin. A version
/// without a throttle time, or with it behind something of any length, stays as it is.
pub fn raise_throttle_time(frame: &mut [u8], api: ApiKey, version: i16, throttle_time_ms: i32) {
    let tagged = usize::from(api.response_header_version(version) > 0);
    let body = LENGTH_SIZE + size_of::<i32>() + tagged;
    let fields = generated::layouts(api).1.fields;
    if let Some(offset) = throttle_time_offset(fields, version) {
        raise(frame, body + offset, throttle_time_ms);
    }
}

/// Raises a number that stands at a position of a frame.
pub(crate) fn raise(frame: &mut [u8], at: usize, number: i32) {
    let field = frame.get_mut(at..).and_then(|rest| rest.first_chunk_mut::<4>());
    if let Some(field) = field {
        *field = i32::from_be_bytes(*field).max(number).to_be_bytes();
    }
}

fn throttle_time_offset(fields: &[Field], version: i16) -> Option<usize> {
    let mut offset = 0;
    let present = fields.iter().filter(|it| !it.is_tagged() && it.versions.contains(version));
    for field in present {
        match field.kind {
            Kind::Fixed(4) if field.name == "ThrottleTimeMs" => return Some(offset),
            Kind::Fixed(size) => offset += size,
            _ => return None,
        }
    }
    None
}

/// Appends what `content` writes, with its length before it.
fn framed(
    out: &mut BytesMut,
    content: impl FnOnce(&mut BytesMut) -> Result<(), EncodeError>,
) -> Result<(), EncodeError> {
    let start = out.len();
    out.put_bytes(0, LENGTH_SIZE);
    let written = content(out).and_then(|()| {
        let length = out.len() - start - LENGTH_SIZE;
        out[start..start + LENGTH_SIZE].copy_from_slice(&length_prefix(length)?);
        Ok(())
    });
    if written.is_err() {
        out.truncate(start);
    }
    written
}

/// The bytes before a frame of this length.
pub(crate) fn length_prefix(length: usize) -> Result<[u8; LENGTH_SIZE], EncodeError> {
    match i32::try_from(length) {
        Ok(prefix) => Ok(prefix.to_be_bytes()),
        Err(_) => Err(EncodeError::TooLong { what: "frame", length }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::messages::{ApiVersionsRequest, HeartbeatResponse, MetadataRequest};

    #[test]
    fn request_headers_are_read_back_with_the_rest_as_body() {
        let request = MetadataRequest::default();
        for (version, flexible) in [(8, false), (12, true)] {
            let mut out = BytesMut::new();
            encode_request(&mut out, version, 77, Some("probe"), &request).expect("valid");
            let frame = &out[LENGTH_SIZE..];
            assert_eq!(out[..4], i32::try_from(frame.len()).expect("small").to_be_bytes());
            let (header, body) = RequestHeader::parse(frame).expect("valid");
            assert_eq!(header.api_key, ApiKey::Metadata);
            assert_eq!((header.api_version, header.correlation_id), (version, 77));
            assert_eq!(header.client_id, Some("probe"));
            assert_eq!(ApiKey::Metadata.is_flexible(version), flexible);
            let decoded = MetadataRequest::decode(&mut Reader::new(body), version);
            assert_eq!(decoded, Ok(request.clone()));
        }
    }

    #[test]
    fn peek_reads_headers_of_unknown_apis() {
        let frame = [0x7f, 0xff, 0, 9, 0, 0, 0, 5, 0xff, 0xff, 1, 2, 3];
        let peek = peek(&frame).expect("a header");
        assert_eq!((peek.api_key, peek.api_version), (0x7fff, 9));
        assert_eq!((peek.correlation_id, peek.client_id), (5, None));
        assert_eq!(RequestHeader::parse(&frame), Err(DecodeError::UnknownApi { key: 0x7fff }));
    }

    #[test]
    fn a_response_that_cannot_be_encoded_leaves_the_buffer_alone() {
        let mut out = BytesMut::from(&b"before"[..]);
        let response = HeartbeatResponse::default();
        let result = encode_response(&mut out, ApiKey::Heartbeat, 99, 1, &response);
        assert!(result.is_err());
        assert_eq!(&out[..], b"before");
    }

    #[test]
    fn a_throttle_time_is_raised_where_the_version_has_one() {
        for (version, expected) in [(0, 0), (1, 70), (4, 70)] {
            let mut out = BytesMut::new();
            let response = HeartbeatResponse { error_code: 7, ..Default::default() };
            encode_response(&mut out, ApiKey::Heartbeat, version, 1, &response).expect("valid");
            raise_throttle_time(&mut out, ApiKey::Heartbeat, version, 70);
            raise_throttle_time(&mut out, ApiKey::Heartbeat, version, 30);
            let frame = &out[LENGTH_SIZE..];
            let (_, body) = parse_response(frame, ApiKey::Heartbeat, version).expect("valid");
            let read = HeartbeatResponse::decode(&mut Reader::new(body), version).expect("valid");
            assert_eq!((read.throttle_time_ms, read.error_code), (expected, 7));
        }
        raise_throttle_time(&mut [0; 6], ApiKey::Heartbeat, 4, 70);
    }

    #[test]
    fn api_versions_responses_have_the_oldest_header_in_every_version() {
        for version in ApiVersionsRequest::VERSIONS.iter() {
            assert_eq!(ApiKey::ApiVersions.response_header_version(version), 0);
        }
        assert_eq!(ApiKey::Heartbeat.response_header_version(3), 0);
        assert_eq!(ApiKey::Heartbeat.response_header_version(4), 1);
    }
}
