//! One connection: TLS and SASL before the first request, then each frame on its way to `dispatch`.

use std::cell::RefCell;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::{Arc, PoisonError, RwLock};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use bytes::{BufMut, BytesMut};
use moldau_net::sasl::{
    self, Credentials, FAILED_AUTHENTICATION_DELAY, Mechanism, SaslServer, SaslServerSettings,
    SaslSession, SaslState, Users,
};
use moldau_net::{
    ConnectionLimits, LENGTH_PREFIX_BYTES, MemoryAccount, NetworkHandle, Principal, Refusal, Reply,
    Response, Service, Stream, serve_connection,
};
use moldau_protocol::frame::{self, RequestHeader};
use moldau_protocol::messages::{SaslAuthenticateRequest, SaslHandshakeRequest};
use moldau_protocol::{ApiKey, ErrorCode, Message, Reader};
use moldau_storage::{Admission, Admit};
use tokio::net::TcpStream;

use crate::authorizer::Subject;
use crate::call::{Later, Served, Software, encode_or_close};
use crate::clock::wall_clock_ms;
use crate::config::{ListenerConfig, SaslListener};
use crate::dispatch::{self, CallSite};
use crate::error::Error;
use crate::quotas::QuotaClient;
use crate::rights::Access;
use crate::scram_credentials::ScramMechanism;
use crate::security::Security;
use crate::share_session::ConnectionId;
use crate::state::State;

/// What the connections of a listener share.
pub(crate) struct Entrance {
    state: Arc<State>,
    /// Guards the terms of future connections.
    terms: RwLock<Arc<Terms>>,
    net: NetworkHandle,
}

/// The settings of a connection, fixed from its start to its end.
pub(crate) struct Terms {
    listener: ListenerConfig,
    sasl: Option<Arc<SaslServer>>,
}

impl Terms {
    /// # Errors
    /// Mechanisms that the listener cannot offer.
    pub(crate) fn new(state: &State, listener: &ListenerConfig) -> Result<Self, Error> {
        let server = listener.sasl.as_ref().map(|sasl| sasl_server(sasl, state));
        let sasl = server.transpose().map_err(|source| {
            let listener = listener.name.clone();
            Error::Sasl { listener, source }
        })?;
        Ok(Self { listener: listener.clone(), sasl: sasl.map(Arc::new) })
    }
}

impl Entrance {
    pub(crate) fn new(state: &Arc<State>, terms: Terms, net: NetworkHandle) -> Arc<Self> {
        let (state, terms) = (Arc::clone(state), RwLock::new(Arc::new(terms)));
        Arc::new(Self { state, terms, net })
    }

    /// The listener's name.
    pub(crate) fn name(&self) -> String {
        self.terms().listener.name.clone()
    }

    /// Gives future connections other terms. Open ones stay, and authenticate
    /// anew by them too (KIP-368).
    pub(crate) fn replace(&self, mut terms: Terms) {
        if let (Some(before), Some(next)) = (&self.terms().sasl, &mut terms.sasl) {
            before.take_over(next);
            *next = Arc::clone(before);
        }
        *self.terms.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(terms);
    }

    fn terms(&self) -> Arc<Terms> {
        Arc::clone(&self.terms.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Serves one connection to its end. TLS and SASL have to be done by `deadline`.
    pub(crate) async fn serve(
        self: Arc<Self>,
        stream: TcpStream,
        peer: SocketAddr,
        deadline: tokio::time::Instant,
    ) {
        let Ok(local) = stream.local_addr() else { return };
        // As in Kafka, a connection above the quota of its address is not served and closed late.
        let throttle_ms = self.state.quotas.connection(peer.ip().to_canonical(), wall_clock_ms());
        if let Ok(throttle_ms @ 1..) = u64::try_from(throttle_ms) {
            let over = tokio::time::Instant::now() + Duration::from_millis(throttle_ms);
            return tokio::time::sleep_until(over.min(deadline)).await;
        }
        let terms = self.terms();
        let (stream, principal) = match &terms.listener.tls {
            None => (Stream::from(stream), None),
            Some(tls) => match tls.accept(stream, deadline).await {
                Ok(accepted) => (accepted.stream, accepted.principal),
                Err(error) => {
                    let (metrics, listener) = (self.net.metrics(), &terms.listener.name);
                    metrics.refuse((&error).into(), Some(peer), listener, &error);
                    return;
                }
            },
        };
        let memory = self.state.memory.account();
        let client = (peer, principal);
        let service = ClientService::new(&self, terms, client, local, memory.clone());
        let limits = ConnectionLimits {
            authentication_timeout: deadline.saturating_duration_since(tokio::time::Instant::now()),
            frame_bytes_max: self.state.config.request_bytes_max,
            idle_timeout: self.state.config.connections_max_idle,
            memory,
            ..ConnectionLimits::default()
        };
        let metrics = Arc::clone(self.net.metrics());
        let closed = serve_connection(stream, service, limits, self.net.shutdown(), metrics).await;
        tracing::debug!(%peer, %closed, "connection closed");
    }
}

fn sasl_server(sasl: &SaslListener, state: &State) -> Result<SaslServer, moldau_net::SaslError> {
    let (users, security) = (Arc::clone(&sasl.users), Arc::clone(&state.security));
    SaslServer::new(SaslServerSettings {
        mechanisms: sasl.mechanisms.clone(),
        credentials: Arc::new(KnownUsers { users, security }),
        tokens: sasl.tokens.clone(),
        max_reauthentication: sasl.max_reauthentication,
    })
}

/// The users of a listener and those of the journal.
struct KnownUsers {
    users: Arc<Users>,
    security: Arc<Security>,
}

impl Credentials for KnownUsers {
    fn plain(&self, user: &str, password: &str) -> bool {
        self.users.plain(user, password)
    }

    fn scram(&self, mechanism: Mechanism, user: &str) -> Option<sasl::ScramCredential> {
        let own = ScramMechanism::of_sasl(mechanism)?;
        let found = self.security.view_credentials(|all| all.find(user, own).cloned());
        match found {
            Some(found) => Some(found.0),
            None => self.users.scram(mechanism, user),
        }
    }
}

/// The broker as one connection sees it.
pub(crate) struct ClientService {
    entrance: Arc<Entrance>,
    terms: Arc<Terms>,
    /// `None` where the client need not prove who it is.
    sasl: Option<SaslSession>,
    principal: Principal,
    /// Quotas of the client.
    client: Rc<QuotaClient>,
    software: RefCell<Software>,
    /// What the client may do; `None` for everything, once it is authenticated.
    access: Option<Rc<Access>>,
    peer: SocketAddr,
    local: SocketAddr,
    admission: AdmissionState,
    memory: MemoryAccount,
    connection: ConnectionId,
}

impl Drop for ClientService {
    fn drop(&mut self) {
        self.entrance.state.disconnected(self.connection);
    }
}

/// How far the next frame is on its way to be admitted.
enum AdmissionState {
    Idle,
    Waiting(Admit),
    Admitted(Admission),
}

impl ClientService {
    /// A connection whose client is `principal` by its certificate.
    pub(crate) fn new(
        entrance: &Arc<Entrance>,
        terms: Arc<Terms>,
        (peer, principal): (SocketAddr, Option<Principal>),
        local: SocketAddr,
        memory: MemoryAccount,
    ) -> Self {
        let principal = principal.unwrap_or_else(Principal::anonymous);
        let sasl = terms.sasl.as_ref().map(|server| SaslSession::new(Arc::clone(server)));
        let access = access(&entrance.state, &principal, peer);
        let connection = entrance.state.share_sessions.connect();
        let quotas = Arc::clone(&entrance.state.quotas);
        let client = Rc::new(QuotaClient::new(quotas, principal.name()));
        Self {
            entrance: Arc::clone(entrance),
            terms,
            sasl,
            principal,
            client,
            software: RefCell::default(),
            access,
            peer,
            local,
            admission: AdmissionState::Idle,
            memory,
            connection,
        }
    }

    /// Answers what belongs to SASL and refuses what has to wait for it; `None` for a request that
    /// may be served.
    fn authenticate(&mut self, bytes: &[u8]) -> Option<Served> {
        let session = self.sasl.as_mut()?;
        if session.awaits_token() {
            let (response, state) = session.authenticate(bytes, Instant::now());
            let answer = match state {
                SaslState::Failed => Response::none(),
                _ => token_frame(&response.auth_bytes),
            };
            return Some(self.proceed(answer, state));
        }
        let Ok(peek) = frame::peek(bytes) else {
            return Some(Reply::Close("malformed request header"));
        };
        let Ok(key) = ApiKey::try_from(peek.api_key) else {
            return Some(Reply::Close("unknown API"));
        };
        let now = Instant::now();
        if let sasl::Admit::No(reason) = session.admits(key, now) {
            return Some(Reply::Close(reason));
        }
        match (key, peek.api_version) {
            (ApiKey::SaslHandshake, version @ 0..=1) => {
                let Some((header, request)) = read::<SaslHandshakeRequest>(bytes) else {
                    return Some(Reply::Close("malformed request"));
                };
                let response = session.handshake(&request, version);
                let ends = response.error_code != i16::from(ErrorCode::None);
                let bytes = encode_or_close(key, version, header.correlation_id, &response);
                Some(match ends {
                    false => Reply::Ready(bytes),
                    true => self.refuse(bytes),
                })
            }
            (ApiKey::SaslAuthenticate, version @ 0..=2) => {
                let Some((header, request)) = read::<SaslAuthenticateRequest>(bytes) else {
                    return Some(Reply::Close("malformed request"));
                };
                let (response, state) = session.authenticate(&request.auth_bytes, now);
                let answer = encode_or_close(key, version, header.correlation_id, &response);
                Some(self.proceed(answer, state))
            }
            _ => None,
        }
    }

    /// Goes on after a message of the client's authentication.
    fn proceed(&mut self, answer: Response, state: SaslState) -> Served {
        match state {
            SaslState::Going => {}
            SaslState::Authenticated(principal) => {
                self.access = access(&self.entrance.state, &principal, self.peer);
                self.client.become_user(principal.name());
                self.principal = principal;
            }
            SaslState::Failed => return self.refuse(answer),
        }
        Reply::Ready(answer)
    }

    /// Ends the connection of a client that could not authenticate.
    fn refuse(&self, answer: Response) -> Served {
        let why = self.sasl.as_ref().map_or("", SaslSession::refusal);
        let (metrics, listener) = (self.entrance.net.metrics(), &self.terms.listener.name);
        metrics.refuse(Refusal::Authentication, Some(self.peer), listener, &why);
        Reply::Last(Box::pin(delayed(answer)), "the authentication failed")
    }
}

/// Holds back the answer to a client that is refused.
async fn delayed(answer: Response) -> Response {
    tokio::time::sleep(FAILED_AUTHENTICATION_DELAY).await;
    answer
}

/// What a principal may do by a connection from `peer`; `None` for everything.
fn access(state: &State, principal: &Principal, peer: SocketAddr) -> Option<Rc<Access>> {
    let (principal, address) = (principal.to_string(), peer.ip().to_canonical());
    Access::of(&state.security, Subject { principal, address })
}

/// A bare token as a frame.
fn token_frame(token: &[u8]) -> Response {
    let length = u32::try_from(token.len()).expect("the tokens of a server are short");
    let mut frame = BytesMut::with_capacity(LENGTH_PREFIX_BYTES + token.len());
    frame.put_u32(length);
    frame.put_slice(token);
    frame.freeze().into()
}

fn read<Q: Message>(bytes: &[u8]) -> Option<(RequestHeader<'_>, Q)> {
    let (header, body) = RequestHeader::parse(bytes).ok()?;
    let request = Q::decode(&mut Reader::new(body), header.api_version).ok()?;
    Some((header, request))
}

impl Service for ClientService {
    type Future = Later<Response>;

    fn is_authenticated(&self) -> bool {
        self.sasl.as_ref().is_none_or(|session| session.principal().is_some())
    }

    fn peer(&self) -> (Option<SocketAddr>, &str) {
        (Some(self.peer), &self.terms.listener.name)
    }

    fn poll_open(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.client.poll_open(cx)
    }

    /// A frame counts against the limit of unflushed bytes until it is known not to be a produce,
    /// or until it is durable.
    fn poll_ready(&mut self, cx: &mut Context<'_>, frame_bytes: usize) -> Poll<()> {
        let mut waiting = match std::mem::replace(&mut self.admission, AdmissionState::Idle) {
            AdmissionState::Idle => self.entrance.state.storage.admit_wait(frame_bytes),
            AdmissionState::Waiting(waiting) => waiting,
            admitted @ AdmissionState::Admitted(_) => {
                self.admission = admitted;
                return Poll::Ready(());
            }
        };
        match Pin::new(&mut waiting).poll(cx) {
            Poll::Ready(admission) => {
                self.admission = AdmissionState::Admitted(admission);
                Poll::Ready(())
            }
            Poll::Pending => {
                self.admission = AdmissionState::Waiting(waiting);
                Poll::Pending
            }
        }
    }

    /// Whoever waits behind this connection for the bytes that it was granted goes on.
    fn stand_back(&mut self) {
        self.admission = AdmissionState::Idle;
    }

    fn call(&mut self, frame: &[u8]) -> Reply<Self::Future> {
        let admission = match std::mem::replace(&mut self.admission, AdmissionState::Idle) {
            AdmissionState::Admitted(admission) => Some(admission),
            AdmissionState::Idle | AdmissionState::Waiting(_) => None,
        };
        if let Some(reply) = self.authenticate(frame) {
            return reply;
        }
        let site = CallSite {
            state: &self.entrance.state,
            principal: &self.principal,
            peer: self.peer,
            local: self.local,
            listener: &self.terms.listener,
            client: &self.client,
            software: &self.software,
            access: self.access.as_ref(),
            now_ms: wall_clock_ms(),
            admission,
            memory: &self.memory,
            connection: self.connection,
            is_deferred: false,
        };
        dispatch::dispatch(site, frame)
    }
}
