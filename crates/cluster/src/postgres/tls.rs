//! TLS to the database, by the settings of all other connections.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use moldau_net::TlsError;
use moldau_net::tls::{ClientTls, server_end_point};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};
use tokio_rustls::client;

/// Secures connections to the database.
#[derive(Clone)]
pub(super) struct Tls(pub(super) Arc<ClientTls>);

/// The same for one host.
pub(super) struct TlsOfHost {
    tls: Arc<ClientTls>,
    host: String,
}

/// A connection with TLS.
pub(super) struct Secured<S>(client::TlsStream<S>);

type Connecting<S> = Pin<Box<dyn Future<Output = Result<Secured<S>, TlsError>> + Send>>;

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> MakeTlsConnect<S> for Tls {
    type Stream = Secured<S>;
    type TlsConnect = TlsOfHost;
    type Error = TlsError;

    fn make_tls_connect(&mut self, host: &str) -> Result<TlsOfHost, TlsError> {
        Ok(TlsOfHost { tls: Arc::clone(&self.0), host: host.to_owned() })
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> TlsConnect<S> for TlsOfHost {
    type Stream = Secured<S>;
    type Error = TlsError;
    type Future = Connecting<S>;

    fn connect(self, stream: S) -> Connecting<S> {
        Box::pin(async move { self.tls.secure(stream, &self.host).await.map(Secured) })
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> TlsStream for Secured<S> {
    fn channel_binding(&self) -> ChannelBinding {
        let certificates = self.0.get_ref().1.peer_certificates().unwrap_or_default();
        let binding = certificates.first().and_then(|own| server_end_point(own));
        binding.map_or_else(ChannelBinding::none, ChannelBinding::tls_server_end_point)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Secured<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, buffer)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Secured<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}
