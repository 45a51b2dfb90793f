//! Frames on the wire: addresses, requests with their headers, answers without theirs.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use moldau_net::LENGTH_PREFIX_BYTES;
use moldau_protocol::{ApiKey, EncodeError, ErrorCode, Message, Reader, Request, Writer};

use crate::{Error, Result};

/// Where a broker listens.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Address {
    /// Host name or IP address, without brackets.
    pub host: String,
    /// TCP port.
    pub port: u16,
}

impl FromStr for Address {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let invalid = || Error::InvalidAddress { address: text.into() };
        let (host, port) = text.trim().rsplit_once(':').ok_or_else(invalid)?;
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let port = port.parse().map_err(|_| invalid())?;
        if host.is_empty() {
            return Err(invalid());
        }
        Ok(Self { host: host.to_owned(), port })
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

/// Length prefix, header and body of a request.
pub(crate) fn encode_request<R: Request>(
    request: &R,
    version: i16,
    correlation_id: i32,
    client_id: &str,
) -> Result<Bytes> {
    let failed = |source: EncodeError| Error::Encode { api: R::KEY, source: Arc::new(source) };
    let mut out = BytesMut::new();
    begin_request(&mut out, R::KEY, version, correlation_id, client_id).map_err(failed)?;
    request.encode(&mut Writer::new(&mut out), version).map_err(failed)?;
    finish_request(&mut out, 0).map_err(failed)?;
    Ok(out.freeze())
}

/// Room for the length prefix, then the header.
pub(crate) fn begin_request(
    out: &mut BytesMut,
    api: ApiKey,
    version: i16,
    correlation_id: i32,
    client_id: &str,
) -> std::result::Result<(), EncodeError> {
    let mut writer = Writer::new(out);
    writer.i32(0);
    writer.i16(api.key());
    writer.i16(version);
    writer.i32(correlation_id);
    // The header's client id never takes the compact form.
    writer.string(client_id, false)?;
    if api.request_header_version(version) >= 2 {
        writer.unknown_tagged_fields(&[])?;
    }
    Ok(())
}

/// Writes the length prefix of a request that `following_bytes` more will follow.
pub(crate) fn finish_request(
    out: &mut BytesMut,
    following_bytes: usize,
) -> std::result::Result<(), EncodeError> {
    let length = (out.len() + following_bytes).saturating_sub(LENGTH_PREFIX_BYTES);
    let prefix =
        i32::try_from(length).map_err(|_| EncodeError::TooLong { what: "request", length })?;
    if let Some(place) = out.first_chunk_mut() {
        *place = prefix.to_be_bytes();
    }
    Ok(())
}

/// The body of an answer's frame; its byte fields share the frame's memory.
pub(crate) fn decode_answer<M: Message>(
    frame: &Bytes,
    api: ApiKey,
    version: i16,
    address: &Arc<str>,
) -> Result<M> {
    let decode = || {
        let mut reader = Reader::shared(frame);
        reader.i32()?;
        if api.response_header_version(version) >= 1 {
            reader.tagged_fields(&mut Vec::new(), |_, _| Ok(false))?;
        }
        let message = M::decode(&mut reader, version)?;
        reader.finish()?;
        Ok(message)
    };
    decode().map_err(|error| Error::malformed(address, &error))
}

/// Whether the frame says that the broker does not know the version of ApiVersions. The error
/// code stands first in every version, right after the correlation id.
pub(crate) fn api_versions_refused(frame: &[u8]) -> bool {
    let code = frame.get(4..6).and_then(|bytes| bytes.first_chunk()).copied();
    code.map(i16::from_be_bytes) == Some(i16::from(ErrorCode::UnsupportedVersion))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_parsed_and_shown() {
        for (text, host, port) in [
            ("localhost:9092", "localhost", 9092),
            ("127.0.0.1:1", "127.0.0.1", 1),
            ("[::1]:9092", "::1", 9092),
        ] {
            let address: Address = text.parse().unwrap();
            assert_eq!((address.host.as_str(), address.port), (host, port));
            assert_eq!(address.to_string(), text);
        }
        for text in ["", "localhost", ":9092", "host:", "host:70000", "host:x"] {
            assert!(text.parse::<Address>().is_err(), "{text:?}");
        }
    }
}
