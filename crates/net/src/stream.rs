//! One connection's bytes, plain or through TLS.

use std::io::{self, ErrorKind, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::TlsStream;

/// A socket, plain or with TLS over it.
///
/// What is written to a TLS stream may stay there until it is flushed. The end of a TLS stream
/// without TLS's own farewell is an ordinary end: Kafka's frames carry their length, so nothing can
/// be cut off unnoticed.
#[derive(Debug)]
pub struct Stream(Kind);

#[derive(Debug)]
enum Kind {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

impl Stream {
    /// The socket, if nothing lies over it.
    #[must_use]
    pub fn as_tcp(&self) -> Option<&TcpStream> {
        match &self.0 {
            Kind::Plain(socket) => Some(socket),
            Kind::Tls(_) => None,
        }
    }

    /// The socket itself, if nothing lies over it.
    ///
    /// # Errors
    /// The stream as it was: it is a TLS stream.
    pub fn into_tcp(self) -> Result<TcpStream, Self> {
        match self.0 {
            Kind::Plain(socket) => Ok(socket),
            Kind::Tls(_) => Err(self),
        }
    }

    /// Whether TLS lies over the socket.
    #[must_use]
    pub fn is_tls(&self) -> bool {
        matches!(self.0, Kind::Tls(_))
    }
}

impl From<TcpStream> for Stream {
    fn from(socket: TcpStream) -> Self {
        Self(Kind::Plain(socket))
    }
}

impl From<TlsStream<TcpStream>> for Stream {
    fn from(stream: TlsStream<TcpStream>) -> Self {
        Self(Kind::Tls(Box::new(stream)))
    }
}

impl AsyncRead for Stream {
    #[inline]
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match &mut self.get_mut().0 {
            Kind::Plain(socket) => Pin::new(socket).poll_read(cx, buffer),
            Kind::Tls(stream) => match Pin::new(stream).poll_read(cx, buffer) {
                Poll::Ready(Err(error)) if error.kind() == ErrorKind::UnexpectedEof => {
                    Poll::Ready(Ok(()))
                }
                polled => polled,
            },
        }
    }
}

impl AsyncWrite for Stream {
    #[inline]
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match &mut self.get_mut().0 {
            Kind::Plain(socket) => Pin::new(socket).poll_write(cx, bytes),
            Kind::Tls(stream) => Pin::new(stream).poll_write(cx, bytes),
        }
    }

    #[inline]
    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match &mut self.get_mut().0 {
            Kind::Plain(socket) => Pin::new(socket).poll_write_vectored(cx, slices),
            Kind::Tls(stream) => Pin::new(stream).poll_write_vectored(cx, slices),
        }
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    #[inline]
    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.get_mut().0 {
            Kind::Plain(socket) => Pin::new(socket).poll_flush(cx),
            Kind::Tls(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.get_mut().0 {
            Kind::Plain(socket) => Pin::new(socket).poll_shutdown(cx),
            Kind::Tls(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}
