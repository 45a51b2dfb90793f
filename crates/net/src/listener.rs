//! Sockets that listen, and the limits of the connections that come.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::time::Duration;

use socket2::{Domain, Protocol, Socket, Type};

use crate::error::Error;
use crate::proxy_protocol::Mode;

/// Connections that the kernel holds until they are accepted; Kafka's `socket.listen.backlog.size`
/// is 50, which a reconnecting fleet of clients overruns.
const BACKLOG: i32 = 1024;

/// Pause after a failed accept, so that a lack of file descriptors does not spin.
pub(crate) const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Limits of one listener.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ListenerLimits {
    /// Open connections above which further ones are closed at once. Counted over all listeners
    /// of the same threads. The default stays below common limits of file descriptors.
    pub connections_max: usize,
    /// Open connections from one IP address above which further ones are closed at once, counted
    /// like those; Kafka's `max.connections.per.ip`. Unlimited by default, since many clients can
    /// share an address.
    pub connections_per_address_max: usize,
    /// Longest time from accept until a connection is ready to serve: PROXY protocol, TLS and SASL
    /// together. The default is what Kafka's clients wait for a connection.
    pub handshake_timeout: Duration,
}

/// Memory that a connection may take beside what it has permits for: its read buffer, answers that
/// no permit covers, requests under way, and what TLS buffers.
const CONNECTION_BYTES: usize = 256 * 1024;

impl ListenerLimits {
    /// The defaults, with no more connections than so many bytes of memory are enough for.
    #[must_use]
    pub fn within(memory_bytes: usize) -> Self {
        let defaults = Self::default();
        let connections_max = defaults.connections_max.min(memory_bytes / CONNECTION_BYTES);
        Self { connections_max, ..defaults }
    }
}

impl Default for ListenerLimits {
    fn default() -> Self {
        Self {
            connections_max: 16_384,
            connections_per_address_max: usize::MAX,
            handshake_timeout: Duration::from_secs(10),
        }
    }
}

/// A bound TCP socket that is not accepting yet; see [`crate::NetworkHandle::serve`].
#[derive(Debug)]
pub struct Listener {
    pub(crate) socket: TcpListener,
    pub(crate) proxy_protocol: Mode,
    address: SocketAddr,
}

impl Listener {
    /// Binds and listens on `address`; port 0 picks a free port.
    ///
    /// # Errors
    /// The address is in use or not ours; the error names it.
    pub fn bind(address: SocketAddr) -> Result<Self, Error> {
        let listen = || -> io::Result<Self> {
            let socket =
                Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
            // A restart must not wait for the old connections' TIME_WAIT.
            socket.set_reuse_address(true)?;
            socket.set_nonblocking(true)?;
            socket.bind(&address.into())?;
            socket.listen(BACKLOG)?;
            let socket = TcpListener::from(socket);
            let address = socket.local_addr()?;
            Ok(Self { socket, proxy_protocol: Mode::Disabled, address })
        };
        listen().map_err(|source| match source.kind() {
            io::ErrorKind::AddrInUse => Error::AddressInUse { address },
            _ => Error::Bind { address, source },
        })
    }

    /// Takes the peer's address from a PROXY protocol header, as `mode` says. Limits per address
    /// then apply to that address.
    #[must_use]
    pub fn with_proxy_protocol(mut self, mode: Mode) -> Self {
        self.proxy_protocol = mode;
        self
    }

    /// The address that was bound, with the real port.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }
}
