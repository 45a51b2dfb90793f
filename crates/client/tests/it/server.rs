//! A server with TLS and SASL that knows one user and answers heartbeats.

use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::time::{Duration, Instant};

use bytes::BytesMut;
use moldau_net::sasl::{
    Admit, Credentials, Mechanism, SaslServer, SaslServerSettings, SaslSession, SaslState,
    ScramCredential,
};
use moldau_net::tls::{
    ClientAuthentication, ClientTls, ClientTlsSettings, CryptoProvider, Identity, PrincipalMapping,
    ServerTls, ServerTlsSettings, TrustAnchors,
};
use moldau_net::{
    ConnectionLimits, Listener, ListenerLimits, NetworkThreads, Reply, Response, Service,
    serve_connection,
};
use moldau_protocol::frame::{RequestHeader, encode_response};
use moldau_protocol::messages::api_versions_response::ApiVersion;
use moldau_protocol::messages::{
    ApiVersionsResponse, HeartbeatResponse, SaslAuthenticateRequest, SaslHandshakeRequest,
};
use moldau_protocol::{ApiKey, Message, Reader};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};

pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    pub(crate) shared: Arc<Shared>,
    _network: NetworkThreads,
}

pub(crate) struct Shared {
    tls: ServerTls,
    sasl: Arc<SaslServer>,
    user: Arc<User>,
    /// Authentications that succeeded.
    pub(crate) authentications: AtomicU64,
}

/// `alice`, whose password is `secret` until she is gone.
pub(crate) struct User {
    credential: ScramCredential,
    gone: AtomicBool,
}

impl Credentials for User {
    fn plain(&self, _: &str, _: &str) -> bool {
        false
    }

    fn scram(&self, mechanism: Mechanism, user: &str) -> Option<ScramCredential> {
        let known = user == "alice" && mechanism == Mechanism::ScramSha256;
        (known && !self.gone.load(Relaxed)).then(|| self.credential.clone())
    }
}

/// A certificate authority and its one certificate.
pub(crate) struct Authority {
    root: String,
    certificate: String,
    key: KeyPair,
}

impl Authority {
    pub(crate) fn new() -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let root_key = KeyPair::generate().unwrap();
        let root = params.self_signed(&root_key).unwrap().pem();
        let issuer = Issuer::new(params, root_key);
        let params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &issuer).unwrap().pem();
        Self { root, certificate, key }
    }

    fn trust(&self) -> TrustAnchors {
        TrustAnchors::from_pem(self.root.as_bytes()).unwrap()
    }

    fn identity(&self) -> Identity {
        let key = self.key.serialize_pem();
        Identity::from_pem(self.certificate.as_bytes(), key.as_bytes()).unwrap()
    }

    /// A client's side that trusts this authority and optionally shows its certificate.
    pub(crate) fn client(&self, with_identity: bool) -> Arc<ClientTls> {
        let settings = ClientTlsSettings {
            trust: self.trust(),
            identity: with_identity.then(|| self.identity()),
            provider: CryptoProvider::default(),
            verify_host_name: true,
        };
        Arc::new(ClientTls::new(settings).unwrap())
    }
}

impl Server {
    pub(crate) fn start(authority: &Authority, max_reauthentication: Option<Duration>) -> Self {
        let credential = ScramCredential::derive(Mechanism::ScramSha256, "secret", b"salt", 4096);
        let user = Arc::new(User { credential, gone: AtomicBool::new(false) });
        let settings = SaslServerSettings {
            mechanisms: vec![Mechanism::ScramSha256],
            credentials: Arc::<User>::clone(&user),
            tokens: None,
            max_reauthentication,
        };
        let sasl = Arc::new(SaslServer::new(settings).unwrap());
        let settings = ServerTlsSettings {
            identities: vec![(None, authority.identity())],
            client_authentication: ClientAuthentication::Required,
            client_trust: Some(authority.trust()),
            provider: CryptoProvider::default(),
            principal_mapping: PrincipalMapping::default(),
        };
        let tls = ServerTls::new(settings).unwrap();
        let shared = Arc::new(Shared { tls, sasl, user, authentications: AtomicU64::new(0) });
        let network = NetworkThreads::start("server", 1).unwrap();
        let handle = network.handle();
        let listener = Listener::bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let address = listener.local_addr();
        let (shutdown, metrics) = (handle.shutdown().clone(), Arc::clone(handle.metrics()));
        let of_connections = Arc::clone(&shared);
        let serve = move |stream, _, deadline| {
            let (shared, shutdown) = (Arc::clone(&of_connections), shutdown.clone());
            let metrics = Arc::clone(&metrics);
            async move {
                let Ok(accepted) = shared.tls.accept(stream, deadline).await else { return };
                let session = SaslSession::new(Arc::clone(&shared.sasl));
                let service = Guarded { session, shared };
                let limits = ConnectionLimits::default();
                serve_connection(accepted.stream, service, limits, &shutdown, metrics).await;
            }
        };
        handle.serve(listener, ListenerLimits::default(), serve).unwrap();
        Self { address, shared, _network: network }
    }

    pub(crate) fn forget_the_user(&self) {
        self.shared.user.gone.store(true, Relaxed);
    }
}

struct Guarded {
    session: SaslSession,
    shared: Arc<Shared>,
}

impl Service for Guarded {
    type Future = Pin<Box<dyn Future<Output = Response>>>;

    fn is_authenticated(&self) -> bool {
        self.session.principal().is_some()
    }

    fn call(&mut self, frame: &[u8]) -> Reply<Self::Future> {
        let (header, body) = RequestHeader::parse(frame).unwrap();
        let RequestHeader { api_key, api_version: version, correlation_id: id, .. } = header;
        if let Admit::No(reason) = self.session.admits(api_key, Instant::now()) {
            return Reply::Close(reason);
        }
        let (mut body, mut out) = (Reader::new(body), BytesMut::new());
        match api_key {
            ApiKey::ApiVersions => {
                let api = |(key, max): (ApiKey, i16)| ApiVersion {
                    api_key: key.key(),
                    max_version: max,
                    ..Default::default()
                };
                let apis = [
                    (ApiKey::ApiVersions, 4),
                    (ApiKey::Heartbeat, 4),
                    (ApiKey::SaslHandshake, 1),
                    (ApiKey::SaslAuthenticate, 2),
                ];
                let api_keys = apis.map(api).to_vec();
                let response = ApiVersionsResponse { api_keys, ..Default::default() };
                encode_response(&mut out, api_key, version, id, &response).unwrap();
            }
            ApiKey::SaslHandshake => {
                let request = SaslHandshakeRequest::decode(&mut body, version).unwrap();
                let response = self.session.handshake(&request, 1);
                encode_response(&mut out, api_key, version, id, &response).unwrap();
            }
            ApiKey::SaslAuthenticate => {
                let request = SaslAuthenticateRequest::decode(&mut body, version).unwrap();
                let (response, state) =
                    self.session.authenticate(&request.auth_bytes, Instant::now());
                encode_response(&mut out, api_key, version, id, &response).unwrap();
                match state {
                    SaslState::Going => {}
                    SaslState::Authenticated(_) => {
                        self.shared.authentications.fetch_add(1, Relaxed);
                    }
                    SaslState::Failed => {
                        let answer = std::future::ready(Response::from(out.freeze()));
                        return Reply::Last(Box::pin(answer), "authentication failed");
                    }
                }
            }
            _ => {
                let response = HeartbeatResponse::default();
                encode_response(&mut out, api_key, version, id, &response).unwrap();
            }
        }
        Reply::Ready(out.freeze().into())
    }
}
