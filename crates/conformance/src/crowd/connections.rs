//! Connections without a client library.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use rustls::pki_types::ServerName;
use rustls::{ClientConnection, StreamOwned};
use socket2::{Domain, Socket, Type};

use crate::certificates::without_resumption;
use crate::process::loopback;

/// How long an answer may take on a busy machine.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);

/// ApiVersions, version 0, of a client without a name (KIP-35).
///
/// ```text
/// | length 10 | api key 18 | version 0 | correlation id 1 | client id null |
/// ```
const API_VERSIONS: [u8; 14] = [0, 0, 0, 10, 0, 18, 0, 0, 0, 0, 0, 1, 0xff, 0xff];

/// How Produce requests, version 9, begin that are just not too large: one within its header, one
/// within its body.
///
/// ```text
/// | length | api key 0 | version 9 | correlation id | no client id, no tags | no transaction ...
/// ```
const LARGEST_FRAMES: [&[u8]; 2] = [
    &[0x06, 0x3f, 0xff, 0xff, 0, 0, 0, 9],
    &[0x06, 0x3f, 0xff, 0xff, 0, 0, 0, 9, 0, 0, 0, 1, 0xff, 0xff, 0, 0],
];

/// Lengths that no frame may have: 2 GiB, a byte above Kafka's `socket.request.max.bytes`, and one
/// below nothing.
const WRONG_FRAMES: [[u8; 4]; 3] = [[0x7f, 0xff, 0xff, 0xff], [0x06, 0x40, 0, 1], [0xff; 4]];

/// Connections that each asked once what the server offers, and say nothing more.
pub(super) struct Crowd {
    _connections: Vec<Idle>,
}

enum Idle {
    Plain(TcpStream),
    Tls(Box<StreamOwned<ClientConnection, TcpStream>>),
}

impl Crowd {
    /// Opens all of them, by TLS where an authority is trusted.
    pub(super) fn open(port: u16, count: usize, authority: Option<&Path>) -> Result<Self> {
        let tls = authority.map(without_resumption).transpose()?;
        let mut connections = Vec::with_capacity(count);
        for _ in 0..count {
            let stream = TcpStream::connect(loopback(port))?;
            stream.set_read_timeout(Some(ANSWER_TIMEOUT))?;
            let mut connection = match &tls {
                None => Idle::Plain(stream),
                Some(config) => {
                    let host = ServerName::try_from("localhost")?;
                    let connection = ClientConnection::new(Arc::clone(config), host)?;
                    Idle::Tls(Box::new(StreamOwned::new(connection, stream)))
                }
            };
            connection.stream().write_all(&API_VERSIONS)?;
            connections.push(connection);
        }
        for connection in &mut connections {
            let mut length = [0; 4];
            connection.stream().read_exact(&mut length)?;
            let length = usize::try_from(u32::from_be_bytes(length))?;
            ensure!((10..64 * 1024).contains(&length), "an answer of {length} bytes");
            let mut answer = vec![0; length];
            connection.stream().read_exact(&mut answer)?;
            ensure!(answer.starts_with(&[0, 0, 0, 1, 0, 0]), "ApiVersions failed");
        }
        Ok(Self { _connections: connections })
    }
}

trait Duplex: Read + Write {}

impl<T: Read + Write> Duplex for T {}

impl Idle {
    fn stream(&mut self) -> &mut dyn Duplex {
        match self {
            Self::Plain(stream) => stream,
            Self::Tls(stream) => stream.as_mut(),
        }
    }
}

/// Connections of one address that mean harm.
pub(super) struct Hostile(Vec<TcpStream>);

impl Hostile {
    /// Each has begun a frame as large as may be.
    pub(super) fn slow(port: u16, count: usize, address: Ipv4Addr) -> Result<Self> {
        let mut streams = Self::connect(port, count, address)?;
        for (stream, frame) in streams.0.iter_mut().zip(LARGEST_FRAMES.iter().cycle()) {
            stream.write_all(frame)?;
        }
        Ok(streams)
    }

    /// Each has announced a frame that none may be.
    pub(super) fn oversized(port: u16, count: usize, address: Ipv4Addr) -> Result<Self> {
        let mut streams = Self::connect(port, count, address)?;
        for (stream, frame) in streams.0.iter_mut().zip(WRONG_FRAMES.iter().cycle()) {
            stream.write_all(frame)?;
        }
        Ok(streams)
    }

    /// They say nothing.
    pub(super) fn flood(port: u16, count: usize, address: Ipv4Addr) -> Result<Self> {
        Self::connect(port, count, address)
    }

    fn connect(port: u16, count: usize, address: Ipv4Addr) -> Result<Self> {
        let connect = |_| -> Result<TcpStream> {
            let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
            socket.bind(&SocketAddr::from(SocketAddrV4::new(address, 0)).into())?;
            socket.connect(&SocketAddr::from(loopback(port)).into())?;
            Ok(socket.into())
        };
        Ok(Self((0..count).map(connect).collect::<Result<_>>()?))
    }

    /// Sends one more byte on each that is still open.
    pub(super) fn send_a_byte(&mut self) -> Result<()> {
        for stream in &mut self.0 {
            match stream.write(&[0]) {
                Err(error) if !is_end(&error) => return Err(error.into()),
                _ => {}
            }
        }
        Ok(())
    }

    /// How many the server closes in a time.
    pub(super) fn closed_within(mut self, timeout: Duration) -> usize {
        let deadline = Instant::now() + timeout;
        let mut closed = 0;
        for stream in &mut self.0 {
            let left = deadline.saturating_duration_since(Instant::now());
            let left = left.max(Duration::from_millis(1));
            let ended = stream.set_read_timeout(Some(left)).and_then(|()| stream.read(&mut [0]));
            closed += usize::from(match ended {
                Ok(count) => count == 0,
                Err(error) => is_end(&error),
            });
        }
        closed
    }
}

fn is_end(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::ConnectionReset | ErrorKind::BrokenPipe)
}
