use std::fmt;
use std::io;

use crate::buffer::FrameError;
use crate::memory::MemoryExceeded;
use crate::refusal::Refusal;
use crate::watch::Silence;

/// Why a connection ended.
#[derive(Debug)]
pub enum Closed {
    /// The peer closed it.
    ByPeer,
    /// The socket failed.
    Io(io::Error),
    /// The peer was silent or slow for too long.
    Silent(Silence),
    /// The peer did not prove who it is in time.
    Unauthenticated,
    /// The peer sent a length that no frame may have.
    Frame(FrameError),
    /// The peer sent a frame that the memory budget never has room for.
    Memory(MemoryExceeded),
    /// The service could not answer a frame, for this reason.
    ByService(&'static str),
    /// The service refused the peer with its last answer, for this reason.
    Refused(&'static str),
    /// The process is shutting down.
    Drained,
}

impl Closed {
    /// The refusal to count, if it has not been counted yet.
    pub(super) fn cause(&self) -> Option<Refusal> {
        match self {
            Self::Silent(silence) => Some((*silence).into()),
            Self::Unauthenticated => Some(Refusal::AuthenticationTimeout),
            Self::Frame(error) => Some(error.into()),
            Self::Memory(_) => Some(Refusal::MemoryBudget),
            Self::ByService(_) => Some(Refusal::FrameRefused),
            Self::Refused(_) | Self::ByPeer | Self::Io(_) | Self::Drained => None,
        }
    }
}

impl fmt::Display for Closed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ByPeer => f.write_str("the client closed the connection"),
            Self::Io(error) => write!(f, "socket error: {error}"),
            Self::Silent(silence) => silence.fmt(f),
            Self::Unauthenticated => f.write_str("no authentication in time"),
            Self::Frame(error) => error.fmt(f),
            Self::Memory(error) => error.fmt(f),
            Self::ByService(reason) | Self::Refused(reason) => f.write_str(reason),
            Self::Drained => f.write_str("the process is shutting down"),
        }
    }
}
