//! The server's side: which certificate for which host, who may connect, and under what name.

use std::fmt;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use moldau_threads::RwLock;
use rustls::ServerConfig;
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{Acceptor, NoServerSessionStorage, ResolvesServerCert, WebPkiClientVerifier};
use rustls::sign::CertifiedKey;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout_at};
use tokio_rustls::{LazyConfigAcceptor, StartHandshake, TlsStream};

use super::identity::{CryptoProvider, Identity, TrustAnchors};
use super::mapping::PrincipalMapping;
use crate::error::TlsError;
use crate::notice::Notice;
use crate::principal::Principal;
use crate::stream::Stream;

/// Whether clients show a certificate; Kafka's `ssl.client.auth`.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum ClientAuthentication {
    /// They are not asked.
    #[default]
    None,
    /// They are asked. One without a certificate is anonymous, one with a wrong one is refused.
    Requested,
    /// Without a trusted certificate they are refused.
    Required,
}

/// Configuration of a listener with TLS.
#[derive(Debug)]
pub struct ServerTlsSettings {
    /// Certificates by the host that the client names (SNI): `broker-1.example`, `*.example` for
    /// exactly one label, or `None` for every other host and for clients that name none. The first
    /// that fits counts, an exact host before a pattern, a pattern before `None`.
    pub identities: Vec<(Option<String>, Identity)>,
    /// Whether clients show a certificate.
    pub client_authentication: ClientAuthentication,
    /// Who signed the certificates of clients; necessary if they are asked.
    pub client_trust: Option<TrustAnchors>,
    /// Which library does the cryptography.
    pub provider: CryptoProvider,
    /// How the principal follows from a client's certificate.
    pub principal_mapping: PrincipalMapping,
}

/// The server's side of TLS, shared by all connections of a listener.
pub struct ServerTls {
    /// Guards the settings of the next handshake; held only to clone them.
    current: RwLock<Arc<Current>>,
}

struct Current {
    config: Arc<ServerConfig>,
    identities: Arc<Identities>,
    principal_mapping: PrincipalMapping,
}

/// A connection whose handshake is done.
#[derive(Debug)]
pub struct Accepted {
    /// The connection.
    pub stream: Stream,
    /// The host that the client named, in lower case.
    pub server_name: Option<String>,
    /// Who the client's certificate is for; `None` without a certificate.
    pub principal: Option<Principal>,
}

/// A connection whose client has said which host it wants, and waits for our certificate.
pub struct ClientHello {
    start: StartHandshake<TcpStream>,
    server_name: Option<String>,
    deadline: Instant,
}

impl ServerTls {
    /// # Errors
    /// [`TlsError::Material`] or [`TlsError::Settings`].
    pub fn new(settings: ServerTlsSettings) -> Result<Self, TlsError> {
        Ok(Self { current: RwLock::new(Arc::new(Current::new(settings)?)) })
    }

    /// Goes by `settings` from the next handshake on; connections that stand are not touched.
    /// What earlier handshakes left for resumption is not believed any more.
    ///
    /// # Errors
    /// As [`new`](Self::new); then everything stays as it was.
    pub fn replace(&self, settings: ServerTlsSettings) -> Result<(), TlsError> {
        let next = Arc::new(Current::new(settings)?);
        *self.current.write() = next;
        Ok(())
    }

    /// Takes the client's side of the handshake and answers it, on the runtime thread that calls.
    ///
    /// # Errors
    /// The peer is refused, or not done by `deadline`; it got the reason as far as TLS can state
    /// it.
    pub async fn accept(&self, stream: TcpStream, deadline: Instant) -> Result<Accepted, TlsError> {
        self.answer(ClientHello::read(stream, deadline).await?).await
    }

    /// The second half of [`accept`](Self::accept), for listeners that choose by the host which
    /// settings apply.
    ///
    /// # Errors
    /// As [`accept`](Self::accept).
    pub async fn answer(&self, hello: ClientHello) -> Result<Accepted, TlsError> {
        let current = Arc::clone(&self.current.read());
        if current.identities.find(hello.server_name()).is_none() {
            return Err(hello.refuse().await);
        }
        let ClientHello { start, server_name, deadline } = hello;
        let handshake = in_turns(start.into_stream(Arc::clone(&current.config)));
        let stream = timeout_at(deadline, handshake).await.map_err(|_| TlsError::TimedOut)??;
        let certificates = stream.get_ref().1.peer_certificates();
        let principal = match certificates.and_then(<[_]>::first) {
            Some(own) => Some(current.principal_mapping.principal(own)?),
            None => None,
        };
        Ok(Accepted { stream: TlsStream::from(stream).into(), server_name, principal })
    }
}

impl fmt::Debug for ServerTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerTls").finish_non_exhaustive()
    }
}

impl ClientHello {
    /// Reads the client's first message, so that what it asks for is known before it is answered.
    ///
    /// # Errors
    /// It is not TLS, or not there by `deadline`.
    pub async fn read(stream: TcpStream, deadline: Instant) -> Result<Self, TlsError> {
        let acceptor = LazyConfigAcceptor::new(Acceptor::default(), stream);
        let start = timeout_at(deadline, acceptor).await.map_err(|_| TlsError::TimedOut)??;
        let name = start.client_hello().server_name().map(str::to_ascii_lowercase);
        Ok(Self { start, server_name: name, deadline })
    }

    /// The host that the client named, in lower case.
    #[must_use]
    pub fn server_name(&self) -> Option<&str> {
        self.server_name.as_deref()
    }

    /// Tells the client that its host is not known here, and closes. Gives the error that says so.
    pub async fn refuse(self) -> TlsError {
        let mut socket = self.start.io;
        // The client may be gone; then it needs no telling.
        drop(timeout_at(self.deadline, socket.write_all(&UNRECOGNIZED_NAME)).await);
        TlsError::UnknownServerName { name: self.server_name }
    }
}

impl fmt::Debug for ClientHello {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientHello")
            .field("server_name", &self.server_name)
            .finish_non_exhaustive()
    }
}

impl Current {
    fn new(settings: ServerTlsSettings) -> Result<Self, TlsError> {
        let provider = settings.provider.get();
        let identities = Arc::new(Identities::new(&settings.identities, &provider)?);
        let asked = settings.client_authentication != ClientAuthentication::None;
        let unusable = |error: &dyn fmt::Display| TlsError::Settings(error.to_string());
        let verifier: Arc<dyn ClientCertVerifier> = match settings.client_trust {
            _ if !asked => WebPkiClientVerifier::no_client_auth(),
            None => {
                let missing = "client authentication needs the certificates to trust";
                return Err(TlsError::Settings(missing.to_owned()));
            }
            Some(trust) => {
                let builder =
                    WebPkiClientVerifier::builder_with_provider(trust.roots, Arc::clone(&provider));
                let builder = match settings.client_authentication {
                    ClientAuthentication::Required => builder,
                    _ => builder.allow_unauthenticated(),
                };
                builder.build().map_err(|error| unusable(&error))?
            }
        };
        let ticketer = match settings.provider {
            CryptoProvider::AwsLc => rustls::crypto::aws_lc_rs::Ticketer::new(),
            CryptoProvider::Ring => rustls::crypto::ring::Ticketer::new(),
        };
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| unusable(&error))?
            .with_client_cert_verifier(verifier)
            .with_cert_resolver(Arc::<Identities>::clone(&identities));
        config.session_storage = Arc::new(NoServerSessionStorage {});
        if asked {
            // A resumed session would carry on with a certificate that has expired since.
            config.send_tls13_tickets = 0;
        } else {
            config.ticketer = ticketer.map_err(|error| unusable(&error))?;
        }
        let principal_mapping = settings.principal_mapping;
        Ok(Self { config: Arc::new(config), identities, principal_mapping })
    }
}

/// Keys by host, the more exact first.
struct Identities {
    by_host: Vec<(HostPattern, Arc<CertifiedKey>)>,
}

/// In the order in which they are tried.
#[derive(Eq, Ord, PartialEq, PartialOrd)]
enum HostPattern {
    Host(String),
    /// What follows the `*` of a pattern, from its dot on.
    OneLabelBefore(String),
    Any,
}

impl Identities {
    fn new(
        settings: &[(Option<String>, Identity)],
        provider: &rustls::crypto::CryptoProvider,
    ) -> Result<Self, TlsError> {
        let mut by_host = Vec::with_capacity(settings.len());
        for (host, identity) in settings {
            let pattern = HostPattern::new(host.as_deref());
            by_host.push((pattern, identity.certified_key(provider)?));
        }
        if by_host.is_empty() {
            return Err(TlsError::Settings("a server needs a certificate".to_owned()));
        }
        by_host.sort_by(|(a, _), (b, _)| a.cmp(b));
        Ok(Self { by_host })
    }

    fn find(&self, host: Option<&str>) -> Option<&Arc<CertifiedKey>> {
        self.by_host.iter().find(|(pattern, _)| pattern.matches(host)).map(|(_, key)| key)
    }
}

impl ResolvesServerCert for Identities {
    fn resolve(&self, hello: rustls::server::ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let host = hello.server_name().map(str::to_ascii_lowercase);
        self.find(host.as_deref()).map(Arc::clone)
    }
}

impl fmt::Debug for Identities {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Identities").field("count", &self.by_host.len()).finish_non_exhaustive()
    }
}

impl HostPattern {
    fn new(pattern: Option<&str>) -> Self {
        let Some(pattern) = pattern.map(str::to_ascii_lowercase) else { return Self::Any };
        match pattern.strip_prefix('*') {
            Some(suffix) if suffix.starts_with('.') => Self::OneLabelBefore(suffix.to_owned()),
            _ => Self::Host(pattern),
        }
    }

    fn matches(&self, host: Option<&str>) -> bool {
        match (self, host) {
            (Self::Any, _) => true,
            (_, None) => false,
            (Self::Host(own), Some(host)) => own == host,
            (Self::OneLabelBefore(suffix), Some(host)) => {
                let label = host.strip_suffix(suffix.as_str());
                label.is_some_and(|label| !label.is_empty() && !label.contains('.'))
            }
        }
    }
}

/// Runs a handshake such that, of all on this thread, one is worked on per look at the sockets.
async fn in_turns<F: Future>(handshake: F) -> F::Output {
    thread_local! {
        static TURN: Arc<Semaphore> = Arc::new(Semaphore::new(1));
    }
    let turn = TURN.with(Arc::clone);
    let notice = Notice::new();
    let waker = Waker::from(Arc::clone(&notice));
    let mut handshake = pin!(handshake);
    loop {
        // It is never closed; without a turn, a handshake would merely be less polite.
        let held = turn.acquire().await;
        let polled = handshake.as_mut().poll(&mut Context::from_waker(&waker));
        tokio::task::yield_now().await;
        drop(held);
        if let Poll::Ready(done) = polled {
            return done;
        }
        // The peer is waited for without a turn.
        std::future::poll_fn(|cx| {
            notice.set_task(cx.waker());
            if notice.take() { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }
}

/// A fatal alert of TLS, `unrecognized_name`, as a record that is not encrypted (RFC 8446,
/// section 6): rustls has no way to send this one.
const UNRECOGNIZED_NAME: [u8; 7] = [21, 3, 3, 0, 2, 2, 112];
