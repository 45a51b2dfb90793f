//! Connections that take what they can get, without a client library.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context, Result};
use socket2::{Domain, Socket, Type};

use crate::process::pause;

/// What a fetch asks for: the broker's limit of an answer.
const FETCH_BYTES: i32 = 55 << 20;

/// Fetches that one sends ahead.
const FETCHES_AHEAD: usize = 64;

/// A socket that takes little ahead of its reader.
const RECEIVE_BYTES: usize = 16 << 10;

/// What a slow reader takes at once, some times a second.
const SIP_BYTES: usize = 4 << 10;

/// Length of a request that is begun and not ended.
const STALLED_BYTES: u32 = 8 << 20;

/// Length of one that servers with little memory can never hold.
const OVERSIZED_BYTES: u32 = 95_000_000;

/// What is missing of either.
const MISSING_BYTES: u32 = 1 << 20;

/// How long a read waits until it is looked whether all is over.
const PATIENCE: Duration = Duration::from_millis(100);

/// How a connection behaves.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Kind {
    /// It reads as fast as it can.
    Greedy,
    /// It reads a little now and then.
    Slow,
    /// It never reads.
    Silent,
    /// It sends a large request but for its end.
    Stalled,
    /// As `Stalled`, with a request that is larger than the memory.
    Oversized,
}

/// Connections at work, each on a thread.
pub(super) struct Flood {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

/// What they all did.
pub(super) struct Flooded {
    /// Bytes that they read.
    pub(super) bytes: u64,
    /// Times that the server disconnected one.
    pub(super) disconnected: usize,
}

struct Shared {
    address: SocketAddr,
    topic: String,
    bytes: AtomicU64,
    disconnected: AtomicUsize,
    is_over: AtomicBool,
}

impl Flood {
    /// Begins so many connections of each kind.
    pub(super) fn begin(address: &str, topic: &str, connections: &[(Kind, usize)]) -> Result<Self> {
        let shared = Arc::new(Shared {
            address: address.parse().context("the address of a server")?,
            topic: topic.to_owned(),
            bytes: AtomicU64::new(0),
            disconnected: AtomicUsize::new(0),
            is_over: AtomicBool::new(false),
        });
        let mut threads = Vec::new();
        for &(kind, count) in connections {
            for _ in 0..count {
                let shared = Arc::clone(&shared);
                let thread = std::thread::Builder::new().stack_size(256 << 10);
                threads.push(thread.spawn(move || shared.live(kind))?);
            }
        }
        Ok(Self { shared, threads })
    }

    /// Ends them all.
    pub(super) fn end(self) -> Flooded {
        self.shared.is_over.store(true, Ordering::Relaxed);
        for thread in self.threads {
            drop(thread.join());
        }
        Flooded {
            bytes: self.shared.bytes.load(Ordering::Relaxed),
            disconnected: self.shared.disconnected.load(Ordering::Relaxed),
        }
    }
}

impl Shared {
    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    /// Connects again and again.
    fn live(&self, kind: Kind) {
        while !self.is_over() {
            // A connection that fails is one that the server ended.
            let _ended = self.connect().and_then(|stream| self.behave(kind, stream));
            if !self.is_over() {
                self.disconnected.fetch_add(1, Ordering::Relaxed);
                pause(PATIENCE);
            }
        }
    }

    fn connect(&self) -> Result<TcpStream> {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
        socket.set_recv_buffer_size(RECEIVE_BYTES)?;
        socket.connect(&self.address.into())?;
        let stream = TcpStream::from(socket);
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        Ok(stream)
    }

    fn behave(&self, kind: Kind, mut stream: TcpStream) -> Result<()> {
        match kind {
            Kind::Stalled => return self.stall(&mut stream, STALLED_BYTES),
            Kind::Oversized => return self.stall(&mut stream, OVERSIZED_BYTES),
            Kind::Greedy | Kind::Slow | Kind::Silent => {}
        }
        let ahead = if kind == Kind::Greedy { 1 } else { FETCHES_AHEAD };
        loop {
            for _ in 0..ahead {
                self.write_all(&mut stream, &self.fetch())?;
            }
            match kind {
                Kind::Greedy => self.read_answer(&mut stream)?,
                Kind::Slow => return self.read_while_open(&mut stream, SIP_BYTES),
                _ => return self.ask_while_open(&mut stream),
            }
            if self.is_over() {
                return Ok(());
            }
        }
    }

    /// Sends a Produce request of version 3 but for its end, and waits until the server closes the
    /// connection.
    fn stall(&self, stream: &mut TcpStream, length: u32) -> Result<()> {
        let head = [0, 0, 0, 3, 0, 0, 0, 9, 0, 1, b'x', 0xff, 0xff, 0xff, 0xff];
        self.write_all(stream, &[&length.to_be_bytes()[..], &head].concat())?;
        let zeros = vec![0; 64 << 10];
        let mut left = usize::try_from(length - MISSING_BYTES)?;
        while left > 0 && !self.is_over() {
            self.write_all(stream, &zeros[..left.min(zeros.len())])?;
            left = left.saturating_sub(zeros.len());
        }
        self.read_while_open(stream, 1)
    }

    fn write_all(&self, stream: &mut TcpStream, mut bytes: &[u8]) -> Result<()> {
        while !bytes.is_empty() && !self.is_over() {
            match stream.write(bytes) {
                Ok(count) => bytes = &bytes[count..],
                Err(error) if is_timeout(&error) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Reads one answer to its end.
    fn read_answer(&self, stream: &mut TcpStream) -> Result<()> {
        let mut length = [0; 4];
        self.read_exact(stream, &mut length)?;
        let mut left = usize::try_from(u32::from_be_bytes(length))?;
        let mut bytes = vec![0; 64 << 10];
        while left > 0 {
            let count = left.min(bytes.len());
            self.read_exact(stream, &mut bytes[..count])?;
            left -= count;
        }
        Ok(())
    }

    fn read_exact(&self, stream: &mut TcpStream, mut bytes: &mut [u8]) -> Result<()> {
        while !bytes.is_empty() && !self.is_over() {
            match stream.read(bytes) {
                Ok(0) => anyhow::bail!("the server closed the connection"),
                Ok(count) => {
                    self.bytes.fetch_add(count as u64, Ordering::Relaxed);
                    bytes = &mut bytes[count..];
                }
                Err(error) if is_timeout(&error) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Reads so many bytes ten times a second.
    fn read_while_open(&self, stream: &mut TcpStream, bytes: usize) -> Result<()> {
        let mut buffer = vec![0; bytes];
        while !self.is_over() {
            self.read_exact(stream, &mut buffer)?;
            pause(PATIENCE);
        }
        Ok(())
    }

    /// Asks on until the server ends the connection, without reading.
    fn ask_while_open(&self, stream: &mut TcpStream) -> Result<()> {
        while !self.is_over() {
            self.write_all(stream, &self.fetch())?;
            pause(PATIENCE);
        }
        Ok(())
    }

    /// Fetch, version 4, of everything from any offset of partition 0.
    ///
    /// ```text
    /// | length | api key 1 | version 4 | correlation id | client id | replica -1 | max wait 100 |
    /// | min bytes 1 | max bytes | isolation 0 | 1 topic | name | 1 partition |
    /// | index | offset | max bytes |
    /// ```
    fn fetch(&self) -> Vec<u8> {
        let mut body = vec![0, 1, 0, 4, 0, 0, 0, 7, 0, 1, b'x'];
        body.extend((-1_i32).to_be_bytes());
        body.extend(100_i32.to_be_bytes());
        body.extend(1_i32.to_be_bytes());
        body.extend(FETCH_BYTES.to_be_bytes());
        body.push(0);
        body.extend(1_i32.to_be_bytes());
        body.extend(i16::try_from(self.topic.len()).unwrap_or(0).to_be_bytes());
        body.extend(self.topic.as_bytes());
        body.extend(1_i32.to_be_bytes());
        body.extend(0_i32.to_be_bytes());
        body.extend(fastrand::i64(0..super::RECORDS.cast_signed()).to_be_bytes());
        body.extend(FETCH_BYTES.to_be_bytes());
        let mut frame = u32::try_from(body.len()).unwrap_or(0).to_be_bytes().to_vec();
        frame.extend(body);
        frame
    }
}

fn is_timeout(error: &std::io::Error) -> bool {
    matches!(error.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut)
}
