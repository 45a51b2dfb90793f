//! The PROXY protocol, versions 1 and 2: a load balancer states the address of its client.
//!
//! ```text
//! version 1   PROXY TCP4 192.0.2.1 192.0.2.9 50000 9092 \r\n          at most 107 bytes
//!
//! version 2   0            12            13         14       16
//!             | signature  | 0x2 command | family   | length | addresses, then TLVs (skipped) |
//! ```
//!
//! No Kafka frame within any sane limit and no TLS record begins with the first byte of either
//! header, so one byte says whether a header is there. Source: the HAProxy project's
//! `proxy-protocol.txt`, section 2.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;

use crate::error::ProxyProtocolError;

/// Whether connections begin with a PROXY protocol header.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Mode {
    /// No header is looked for: clients connect directly.
    #[default]
    Disabled,
    /// A header is taken if there is one. Anyone who can connect can then claim any address.
    Allowed,
    /// A connection without a header is closed.
    Required,
}

/// A header's addresses.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Header {
    /// The client's address; `None` where the balancer speaks for itself (health checks).
    pub source: Option<SocketAddr>,
    /// Length of the header in the stream.
    pub header_bytes: usize,
}

/// Reads the header from the start of `stream` as `mode` says, and not a byte beyond it.
///
/// Gives the address of the peer: the header's, or the socket's `peer` where there is none.
///
/// # Errors
/// The header is missing or malformed, or the socket ended.
pub async fn accept(
    stream: &mut TcpStream,
    mode: Mode,
    peer: SocketAddr,
) -> Result<SocketAddr, ProxyProtocolError> {
    if mode == Mode::Disabled {
        return Ok(peer);
    }
    let mut first = [0; 1];
    let announced =
        stream.peek(&mut first).await? == 1 && (first == [V1_FIRST] || first == [V2_FIRST]);
    if !announced {
        return match mode {
            Mode::Required => Err(ProxyProtocolError::Missing),
            Mode::Allowed | Mode::Disabled => Ok(peer),
        };
    }
    let mut held = Vec::with_capacity(PEEK_BYTES);
    loop {
        let before = held.len();
        let mut ahead = [0; PEEK_BYTES];
        let count = stream.peek(&mut ahead).await?;
        if count == 0 {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
        }
        held.extend_from_slice(ahead.get(..count).unwrap_or_default());
        let header = parse(&held)?;
        let taken = header.map_or(count, |header| header.header_bytes.saturating_sub(before));
        // They were peeked at, so this waits for nothing.
        stream.read_exact(ahead.get_mut(..taken).unwrap_or_default()).await?;
        if let Some(header) = header {
            return Ok(header.source.unwrap_or(peer));
        }
    }
}

/// The header at the start of `bytes`; `None` while it is incomplete.
///
/// # Errors
/// The bytes cannot be the start of a header.
pub fn parse(bytes: &[u8]) -> Result<Option<Header>, ProxyProtocolError> {
    match bytes.first() {
        None => Ok(None),
        Some(&V1_FIRST) => parse_v1(bytes),
        Some(&V2_FIRST) => parse_v2(bytes),
        Some(_) => Err(ProxyProtocolError::Missing),
    }
}

/// A version 2 header for a TCP connection from `source` to `destination`. Addresses of two
/// families are both sent as IPv6.
#[must_use]
pub fn encode_v2(source: SocketAddr, destination: SocketAddr) -> Vec<u8> {
    let mut header = V2_SIGNATURE.to_vec();
    header.push(V2_PROXY);
    match (source.ip(), destination.ip()) {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            header.push(V2_TCP4);
            header.extend_from_slice(&V2_TCP4_BYTES.to_be_bytes());
            header.extend_from_slice(&from.octets());
            header.extend_from_slice(&to.octets());
        }
        (from, to) => {
            header.push(V2_TCP6);
            header.extend_from_slice(&V2_TCP6_BYTES.to_be_bytes());
            for address in [from, to] {
                let address = match address {
                    IpAddr::V4(address) => address.to_ipv6_mapped(),
                    IpAddr::V6(address) => address,
                };
                header.extend_from_slice(&address.octets());
            }
        }
    }
    header.extend_from_slice(&source.port().to_be_bytes());
    header.extend_from_slice(&destination.port().to_be_bytes());
    header
}

fn parse_v1(bytes: &[u8]) -> Result<Option<Header>, ProxyProtocolError> {
    let malformed = ProxyProtocolError::Malformed;
    let within = bytes.get(..V1_BYTES_MAX).unwrap_or(bytes);
    let Some(end) = within.iter().position(|byte| *byte == b'\n') else {
        let prefix_fits = within.iter().zip(V1_PREFIX).all(|(byte, wanted)| byte == wanted);
        return match within.len() {
            V1_BYTES_MAX => Err(malformed("version 1 has no end of line within 107 bytes")),
            _ if !prefix_fits => Err(malformed("version 1 does not begin with PROXY")),
            _ => Ok(None),
        };
    };
    let line = within.get(..end).unwrap_or_default();
    let line = line.strip_suffix(b"\r").ok_or(malformed("version 1 does not end with CR LF"))?;
    let line = std::str::from_utf8(line).map_err(|_| malformed("version 1 is not text"))?;
    let fields: Vec<&str> = line.split(' ').collect();
    let source = match fields.as_slice() {
        // The specification says to ignore what follows.
        ["PROXY", "UNKNOWN", ..] => None,
        ["PROXY", "TCP4", source, destination, from_port, to_port] => {
            let address: Option<Ipv4Addr> = source.parse().ok();
            let valid = destination.parse::<Ipv4Addr>().is_ok();
            let port = from_port.parse().ok().filter(|_| to_port.parse::<u16>().is_ok());
            Some(socket_address(address.filter(|_| valid), port)?)
        }
        ["PROXY", "TCP6", source, destination, from_port, to_port] => {
            let address: Option<Ipv6Addr> = source.parse().ok();
            let valid = destination.parse::<Ipv6Addr>().is_ok();
            let port = from_port.parse().ok().filter(|_| to_port.parse::<u16>().is_ok());
            Some(socket_address(address.filter(|_| valid), port)?)
        }
        _ => return Err(malformed("version 1 has wrong fields")),
    };
    Ok(Some(Header { source, header_bytes: end + 1 }))
}

fn socket_address<A: Into<IpAddr>>(
    address: Option<A>,
    port: Option<u16>,
) -> Result<SocketAddr, ProxyProtocolError> {
    let (Some(address), Some(port)) = (address, port) else {
        return Err(ProxyProtocolError::Malformed("version 1 has a broken address or port"));
    };
    Ok(SocketAddr::new(address.into(), port))
}

fn parse_v2(bytes: &[u8]) -> Result<Option<Header>, ProxyProtocolError> {
    let malformed = ProxyProtocolError::Malformed;
    if !bytes.iter().zip(V2_SIGNATURE).all(|(byte, wanted)| *byte == wanted) {
        return Err(malformed("version 2 has a wrong signature"));
    }
    let rest = bytes.get(V2_SIGNATURE.len()..).unwrap_or_default();
    let Some((&[command, family, high, low], rest)) = rest.split_first_chunk() else {
        return Ok(None);
    };
    let length = usize::from(u16::from_be_bytes([high, low]));
    if length > V2_BODY_BYTES_MAX {
        return Err(malformed("version 2 is too long"));
    }
    let Some(body) = rest.get(..length) else { return Ok(None) };
    let source = match (command, family) {
        // The connection is the balancer's own; the family does not matter.
        (V2_LOCAL, _) => None,
        (V2_PROXY, V2_TCP4) => {
            let short = malformed("version 2 has no room for its addresses");
            let (address, ports) = body.split_first_chunk::<8>().ok_or(short)?;
            let [a, b, c, d, ..] = *address;
            Some(SocketAddr::new(Ipv4Addr::new(a, b, c, d).into(), source_port(ports)?))
        }
        (V2_PROXY, V2_TCP6) => {
            let short = || malformed("version 2 has no room for its addresses");
            let (address, _) = body.split_first_chunk::<16>().ok_or_else(short)?;
            let (_, ports) = body.split_first_chunk::<32>().ok_or_else(short)?;
            let address = Ipv6Addr::from(*address);
            Some(SocketAddr::new(address.to_canonical(), source_port(ports)?))
        }
        // Families that carry no address of ours: the specification says to go on without one.
        (V2_PROXY, _) => None,
        _ => return Err(malformed("unknown version or command")),
    };
    Ok(Some(Header { source, header_bytes: V2_SIGNATURE.len() + V2_FIXED_BYTES + length }))
}

fn source_port(ports: &[u8]) -> Result<u16, ProxyProtocolError> {
    let ports = ports.first_chunk::<4>();
    let [high, low, ..] =
        *ports.ok_or(ProxyProtocolError::Malformed("version 2 has no room for its ports"))?;
    Ok(u16::from_be_bytes([high, low]))
}

/// Bytes looked at in one call; both versions with addresses of TCP and a few TLVs fit.
const PEEK_BYTES: usize = 256;

const V1_FIRST: u8 = b'P';
const V1_PREFIX: &[u8] = b"PROXY ";
/// The longest header of version 1, its end of line included.
const V1_BYTES_MAX: usize = 107;

const V2_FIRST: u8 = b'\r';
const V2_SIGNATURE: [u8; 12] = *b"\r\n\r\n\0\r\nQUIT\n";
/// Version and command, family and protocol, length.
const V2_FIXED_BYTES: usize = 4;
/// Addresses and TLVs. The TLVs in use (host name, TLS details, ids of cloud endpoints) stay far
/// below; the length field alone could claim 64 KiB.
const V2_BODY_BYTES_MAX: usize = 4096;
const V2_LOCAL: u8 = 0x20;
const V2_PROXY: u8 = 0x21;
const V2_TCP4: u8 = 0x11;
const V2_TCP4_BYTES: u16 = 12;
const V2_TCP6: u8 = 0x21;
const V2_TCP6_BYTES: u16 = 36;

#[cfg(test)]
mod tests;
