//! A server that echoes frames, on one network thread, and clients of it.

use std::future::{Future, Ready};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use moldau_net::tls::{
    ClientAuthentication, ClientTls, ClientTlsSettings, CryptoProvider, PrincipalMapping,
    ServerTls, ServerTlsSettings,
};
use moldau_net::{
    ConnectionLimits, Listener, ListenerLimits, Metrics, NetworkThreads, Refusal, Reply, Response,
    Service, Stream, serve_connection,
};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::authority::{Authority, Issued};

/// Longest wait for anything: far longer than any of it takes.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct World {
    pub(crate) network: NetworkThreads,
    pub(crate) address: SocketAddr,
}

/// Answers each frame with itself, `!` with an answer that is too large for any socket's buffers,
/// and `?` with what the server knows of the client.
#[derive(Clone, Default)]
pub(crate) struct Echo {
    about: String,
}

impl Service for Echo {
    type Future = Ready<Response>;

    fn call(&mut self, frame: &[u8]) -> Reply<Self::Future> {
        Reply::Ready(match frame {
            b"?" => framed(self.about.as_bytes()).into(),
            b"!" => framed(&vec![0; 64 << 20]).into(),
            _ => framed(frame).into(),
        })
    }
}

impl World {
    pub(crate) fn start(
        tls: Option<Arc<ServerTls>>,
        limits: ListenerLimits,
        connection_limits: ConnectionLimits,
    ) -> Self {
        let listener = Listener::bind("127.0.0.1:0".parse().unwrap()).unwrap();
        Self::start_on(listener, tls, limits, connection_limits)
    }

    pub(crate) fn start_on(
        listener: Listener,
        tls: Option<Arc<ServerTls>>,
        limits: ListenerLimits,
        connection_limits: ConnectionLimits,
    ) -> Self {
        let network = NetworkThreads::start("echo", 1).unwrap();
        let handle = network.handle();
        let address = listener.local_addr();
        let (shutdown, metrics) = (handle.shutdown().clone(), Arc::clone(handle.metrics()));
        let serve = move |stream: TcpStream, peer: SocketAddr, deadline| {
            let (tls, shutdown, metrics) = (tls.clone(), shutdown.clone(), Arc::clone(&metrics));
            let connection_limits = connection_limits.clone();
            async move {
                let mut about = format!("peer={}", peer.ip());
                let stream = match tls {
                    None => Stream::from(stream),
                    Some(tls) => match tls.accept(stream, deadline).await {
                        Ok(accepted) => {
                            let host = accepted.server_name.unwrap_or_default();
                            let user = accepted.principal.map(|it| it.to_string());
                            let user = user.unwrap_or_default();
                            about = format!("{about} host={host} user={user}");
                            accepted.stream
                        }
                        Err(error) => {
                            return metrics.refuse((&error).into(), None, &"test", &error);
                        }
                    },
                };
                let service = Echo { about };
                serve_connection(stream, service, connection_limits, &shutdown, metrics).await;
            }
        };
        handle.serve(listener, limits, serve).unwrap();
        Self { network, address }
    }

    pub(crate) fn metrics(&self) -> Arc<Metrics> {
        Arc::clone(self.network.handle().metrics())
    }

    pub(crate) async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }
}

/// A server's settings with one certificate for every host.
pub(crate) fn server_settings(issued: &Issued) -> ServerTlsSettings {
    ServerTlsSettings {
        identities: vec![(None, issued.identity())],
        client_authentication: ClientAuthentication::None,
        client_trust: None,
        provider: CryptoProvider::default(),
        principal_mapping: PrincipalMapping::default(),
    }
}

/// A client's side that trusts `authority`.
pub(crate) fn client_tls(authority: &Authority, own: Option<&Issued>) -> ClientTls {
    let settings = ClientTlsSettings {
        trust: authority.trust(),
        identity: own.map(Issued::identity),
        provider: CryptoProvider::default(),
        verify_host_name: true,
    };
    ClientTls::new(settings).unwrap()
}

pub(crate) fn run<F: Future>(test: F) -> F::Output {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async { tokio::time::timeout(PATIENCE, test).await.unwrap() })
}

pub(crate) fn framed(frame: &[u8]) -> Bytes {
    let length = u32::try_from(frame.len()).unwrap().to_be_bytes();
    [&length[..], frame].concat().into()
}

/// Sends a frame and gives the answer.
pub(crate) async fn ask<S: AsyncRead + AsyncWrite + Unpin>(
    stream: &mut S,
    frame: &[u8],
) -> std::io::Result<Vec<u8>> {
    stream.write_all(&framed(frame)).await?;
    stream.flush().await?;
    let length = stream.read_u32().await?;
    let mut answer = vec![0; usize::try_from(length).unwrap()];
    stream.read_exact(&mut answer).await?;
    Ok(answer)
}

/// Whether the peer closes the stream without another byte.
pub(crate) async fn is_closed<S: AsyncRead + Unpin>(stream: &mut S) -> bool {
    matches!(stream.read(&mut [0; 1]).await, Ok(0) | Err(_))
}

/// Waits until so many were refused for this cause.
pub(crate) async fn await_refusals(metrics: &Metrics, cause: Refusal, count: u64) {
    let deadline = Instant::now() + PATIENCE;
    while metrics.refused(cause) < count {
        assert!(Instant::now() < deadline, "{} of {count}", metrics.refused(cause));
        tokio::task::yield_now().await;
    }
}
