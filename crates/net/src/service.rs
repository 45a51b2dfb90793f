//! The service that answers the frames of a connection.

use std::any::Any;
use std::future::Future;
use std::net::SocketAddr;
use std::task::{Context, Poll};

use bytes::Bytes;

/// The bytes of one answer, length prefix included, as segments that are written with `writev`.
///
/// A fetch answer lists stored batches as segments of their own, so that they reach the socket
/// without a copy. An answer of one segment costs no allocation here.
#[derive(Debug, Default)]
pub struct Response {
    /// Written first; may be empty.
    pub head: Bytes,
    /// Written after the head, in order.
    pub rest: Vec<Bytes>,
    /// Why there is no answer and the connection is closed, as by [`Reply::Close`].
    pub closes: Option<&'static str>,
    /// Dropped once the answer is written or given up: a permit for its memory, say. An answer of
    /// some length that holds nothing is charged to the connection's account.
    pub holds: Option<Box<dyn Any>>,
}

impl Response {
    /// An answer of one segment.
    #[must_use]
    pub fn single(head: Bytes) -> Self {
        Self { head, ..Self::default() }
    }

    /// An answer of several segments, which are written in order.
    #[must_use]
    pub fn segments(segments: impl IntoIterator<Item = Bytes>) -> Self {
        let mut segments = segments.into_iter();
        let head = segments.next().unwrap_or_default();
        Self { head, rest: segments.collect(), ..Self::default() }
    }

    /// The request cannot be answered, as turned out late.
    #[must_use]
    pub fn closing(reason: &'static str) -> Self {
        Self { closes: Some(reason), ..Self::default() }
    }

    /// Nothing is written, for requests that turn out to want no answer.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// Bytes of all segments.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rest.iter().fold(self.head.len(), |sum, segment| sum + segment.len())
    }

    /// Whether nothing would be written.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl From<Bytes> for Response {
    fn from(head: Bytes) -> Self {
        Self::single(head)
    }
}

/// Reply of a service to a frame.
#[derive(Debug)]
pub enum Reply<F> {
    /// The answer is there.
    Ready(Response),
    /// The answer comes from this future. It is polled at once, then whenever it wakes; requests
    /// behind it are served meanwhile and their answers wait for it. So many bytes of the request
    /// are kept in memory until then: above
    /// [`KEPT_REQUEST_BYTES_MAX`](crate::KEPT_REQUEST_BYTES_MAX) in all, what is sent behind them
    /// waits unread.
    Later(F, usize),
    /// As [`Later`](Self::Later), but nothing more is taken, and once the answer is written, the
    /// connection is closed for this reason: for clients who learn why they are refused. That they
    /// are is for the service to count.
    Last(F, &'static str),
    /// The protocol wants no answer (produce with `acks=0`).
    NoResponse,
    /// The frame cannot be answered. Answers to earlier requests are still written, then the
    /// connection is closed.
    Close(&'static str),
}

/// Answers the frames of one connection, in their order.
pub trait Service {
    /// An answer that takes time. `Unpin`, so that it needs no box of its own: an enum over
    /// waiting states, with a boxed future as one of its variants, serves well.
    type Future: Future<Output = Response> + Unpin;

    /// Whether a frame of `frame_bytes` may be handed over. While this is pending, nothing more
    /// is read from the connection, so that the peer feels the back-pressure. Polled again for
    /// the same frame whenever the connection's task wakes.
    fn poll_ready(&mut self, cx: &mut Context<'_>, frame_bytes: usize) -> Poll<()> {
        let (_, _) = (cx, frame_bytes);
        Poll::Ready(())
    }

    /// Whether anything is taken from the peer. While this is pending, nothing is read from the
    /// connection and no frame is handed over; answers are written all the same. So a peer that
    /// exceeds its quota is slowed down (KIP-219).
    fn poll_open(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let _ = cx;
        Poll::Ready(())
    }

    /// A frame for which [`poll_ready`](Self::poll_ready) was pending cannot be taken for now: the
    /// peer does not read its answers, say. What the service waits for or has got meanwhile is for
    /// others; `poll_ready` begins anew.
    fn stand_back(&mut self) {}

    /// Whether the peer has proven who it is, where it has to. As long as it has not, only short
    /// frames are taken from it, and it has no longer than
    /// [`authentication_timeout`](crate::ConnectionLimits::authentication_timeout).
    fn is_authenticated(&self) -> bool {
        true
    }

    /// Address of the peer and name of its listener, logged with refusals.
    fn peer(&self) -> (Option<SocketAddr>, &str) {
        (None, "")
    }

    /// Takes one frame, length prefix excluded. Whatever must happen in arrival order (a log
    /// append) is done before this returns; what merely waits goes into the future.
    fn call(&mut self, frame: &[u8]) -> Reply<Self::Future>;
}
