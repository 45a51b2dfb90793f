use std::io;
use std::net::SocketAddr;

/// What can go wrong while network threads and listeners are set up.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The operator's address is taken by another socket.
    #[error("cannot listen on {address}: the address is in use by another process")]
    AddressInUse {
        /// The address that was asked for.
        address: SocketAddr,
    },
    /// The operating system refused the operator's address.
    #[error("cannot listen on {address}: {source}")]
    Bind {
        /// The address that was asked for.
        address: SocketAddr,
        /// What the operating system said.
        source: io::Error,
    },
    /// The operating system refused a thread or its event queue.
    #[error("cannot start network thread {index}: {source}")]
    Thread {
        /// Position of the thread, from 0.
        index: usize,
        /// What the operating system said.
        source: io::Error,
    },
    /// The network threads have stopped; nothing can be placed on them.
    #[error("the network threads have stopped")]
    Stopped,
}
