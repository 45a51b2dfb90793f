//! Authentication over sockets: clients of ours against a server that demands it.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use bytes::BytesMut;
use jsonwebtoken::jwk::Jwk;
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use moldau_net::sasl::{
    Admit, KeySource, Mechanism, SaslClient, SaslCredentials, SaslServer, SaslServerSettings,
    SaslSession, SaslState, ScramCredential, StaticToken, TokenSettings, TokenVerifier, Users,
};
use moldau_net::{
    ConnectionLimits, Listener, ListenerLimits, Metrics, NetworkThreads, Refusal, Reply, Response,
    SaslError, Service, serve_connection,
};
use moldau_protocol::frame::{RequestHeader, encode_response};
use moldau_protocol::messages::{
    HeartbeatRequest, HeartbeatResponse, SaslAuthenticateRequest, SaslHandshakeRequest,
};
use moldau_protocol::{ApiKey, ErrorCode, Message, Reader};
use rcgen::KeyPair;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use zeroize::Zeroizing;

use crate::world::{PATIENCE, await_refusals, is_closed, run};

/// Answers authentication, and heartbeats of those who are authenticated.
struct Guarded {
    session: SaslSession,
    metrics: Arc<Metrics>,
}

impl Service for Guarded {
    type Future = Pin<Box<dyn Future<Output = Response>>>;

    fn is_authenticated(&self) -> bool {
        self.session.principal().is_some()
    }

    fn call(&mut self, frame: &[u8]) -> Reply<Self::Future> {
        let Ok((header, body)) = RequestHeader::parse(frame) else {
            return Reply::Close("not a request");
        };
        let RequestHeader { api_key, api_version: version, correlation_id, .. } = header;
        if let Admit::No(reason) = self.session.admits(api_key, Instant::now()) {
            return Reply::Close(reason);
        }
        let mut body = Reader::new(body);
        let mut out = BytesMut::new();
        match api_key {
            ApiKey::SaslHandshake => {
                let request = SaslHandshakeRequest::decode(&mut body, version).unwrap();
                let response = self.session.handshake(&request, 1);
                encode_response(&mut out, api_key, version, correlation_id, &response).unwrap();
            }
            ApiKey::SaslAuthenticate => {
                let request = SaslAuthenticateRequest::decode(&mut body, version).unwrap();
                let (response, state) =
                    self.session.authenticate(&request.auth_bytes, Instant::now());
                encode_response(&mut out, api_key, version, correlation_id, &response).unwrap();
                if state == SaslState::Failed {
                    let why = self.session.refusal();
                    self.metrics.refuse(Refusal::Authentication, None, &"test", &why);
                    let answer = std::future::ready(Response::from(out.freeze()));
                    return Reply::Last(Box::pin(answer), "authentication failed");
                }
            }
            _ => {
                let response = HeartbeatResponse::default();
                encode_response(&mut out, api_key, version, correlation_id, &response).unwrap();
            }
        }
        Reply::Ready(out.freeze().into())
    }
}

pub(crate) struct World {
    network: NetworkThreads,
    address: SocketAddr,
}

impl World {
    pub(crate) fn start(
        tokens: Option<Arc<TokenVerifier>>,
        authentication_timeout: Duration,
    ) -> Self {
        let mut users = Users::default();
        users.insert_password("alice", Zeroizing::new("secret".to_owned()));
        for mechanism in [Mechanism::ScramSha256, Mechanism::ScramSha512] {
            let salt = ScramCredential::random_salt();
            let credential = ScramCredential::derive(mechanism, "secret", &salt, 8192);
            users.insert_scram(mechanism, "alice", credential);
        }
        let mut mechanisms = Mechanism::ALL.to_vec();
        mechanisms.truncate(if tokens.is_some() { 4 } else { 3 });
        let settings = SaslServerSettings {
            mechanisms,
            credentials: Arc::new(users),
            tokens,
            max_reauthentication: Some(Duration::from_hours(1)),
        };
        let server = Arc::new(SaslServer::new(settings).unwrap());
        let network = NetworkThreads::start("sasl", 1).unwrap();
        let handle = network.handle();
        let listener = Listener::bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let address = listener.local_addr();
        let (shutdown, metrics) = (handle.shutdown().clone(), Arc::clone(handle.metrics()));
        let limits = ConnectionLimits { authentication_timeout, ..ConnectionLimits::default() };
        let serve = move |stream, _, _| {
            let session = SaslSession::new(Arc::clone(&server));
            let (limits, shutdown) = (limits.clone(), shutdown.clone());
            let metrics = Arc::clone(&metrics);
            async move {
                let service = Guarded { session, metrics: Arc::clone(&metrics) };
                serve_connection(stream, service, limits, &shutdown, metrics).await;
            }
        };
        handle.serve(listener, ListenerLimits::default(), serve).unwrap();
        Self { network, address }
    }

    pub(crate) async fn authenticate(
        &self,
        client: &SaslClient,
    ) -> Result<Option<Duration>, SaslError> {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        let lifetime = client.authenticate(&mut stream, "test").await?;
        let mut out = BytesMut::new();
        let request = HeartbeatRequest::default();
        moldau_protocol::frame::encode_request(&mut out, 4, 99, Some("test"), &request).unwrap();
        stream.write_all(&out).await.unwrap();
        let length = stream.read_u32().await.unwrap();
        let mut answer = vec![0; usize::try_from(length).unwrap()];
        stream.read_exact(&mut answer).await.unwrap();
        assert_eq!(answer[..4], 99_i32.to_be_bytes());
        Ok(lifetime)
    }
}

fn client(mechanism: Mechanism, user: &str, password: &str) -> SaslClient {
    let (user, password) = (user.to_owned(), Zeroizing::new(password.to_owned()));
    SaslClient::new(match mechanism {
        Mechanism::Plain => SaslCredentials::Plain { user, password },
        _ => SaslCredentials::Scram { mechanism, user, password },
    })
    .unwrap()
}

pub(crate) fn bearer(token: &str) -> SaslClient {
    let tokens = Arc::new(StaticToken::new(Zeroizing::new(token.to_owned())));
    let extensions = vec![("logicalCluster".to_owned(), "lkc".to_owned())];
    SaslClient::new(SaslCredentials::OAuthBearer { tokens, extensions }).unwrap()
}

fn refusal(refused: Result<Option<Duration>, SaslError>) -> String {
    match refused {
        Err(SaslError::Refused { code: ErrorCode::SaslAuthenticationFailed, message }) => message,
        other => panic!("{other:?}"),
    }
}

#[test]
fn every_mechanism_with_a_password_lets_in_who_knows_it() {
    let world = World::start(None, PATIENCE);
    run(async {
        let mechanisms = [Mechanism::Plain, Mechanism::ScramSha256, Mechanism::ScramSha512];
        for (n, mechanism) in (1..).zip(mechanisms) {
            let right = client(mechanism, "alice", "secret");
            for _ in 0..2 {
                let lifetime = world.authenticate(&right).await.unwrap();
                assert_eq!(lifetime, Some(Duration::from_hours(1)));
            }
            let refused = world.authenticate(&client(mechanism, "alice", "guess")).await;
            assert!(refusal(refused).starts_with("Authentication failed"));
            await_refusals(world.network.handle().metrics(), Refusal::Authentication, n).await;
        }
        let refused = world.authenticate(&bearer("x")).await.unwrap_err();
        assert!(matches!(refused, SaslError::MechanismNotOffered { .. }), "{refused}");
        let shown = format!("{:?}", client(Mechanism::Plain, "alice", "secret"));
        assert!(!shown.contains("secret"), "{shown}");
    });
}

/// Whether the peer has closed the stream, without waiting for it.
fn is_closed_now(stream: &TcpStream) -> bool {
    !matches!(stream.try_read(&mut [0; 1]), Err(error) if error.kind() == ErrorKind::WouldBlock)
}

#[test]
fn peer_that_does_not_authenticate_in_time_is_closed() {
    let world = World::start(None, Duration::from_millis(50));
    run(async {
        let mut silent = TcpStream::connect(world.address).await.unwrap();
        assert!(is_closed(&mut silent).await);
        let metrics = world.network.handle().metrics().clone();
        await_refusals(&metrics, Refusal::AuthenticationTimeout, 1).await;
        // Once authenticated, time does not matter any more.
        let alice = client(Mechanism::Plain, "alice", "secret");
        let deadline = Instant::now() + PATIENCE;
        let stream = loop {
            let mut stream = TcpStream::connect(world.address).await.unwrap();
            match alice.authenticate(&mut stream, "test").await {
                Ok(_) => break stream,
                // This machine was too slow for once.
                Err(error) => assert!(Instant::now() < deadline, "{error}"),
            }
        };
        let mut other = TcpStream::connect(world.address).await.unwrap();
        assert!(is_closed(&mut other).await);
        await_refusals(&metrics, Refusal::AuthenticationTimeout, 2).await;
        assert!(!is_closed_now(&stream), "the authenticated one stands");
    });
}

#[test]
fn frames_are_short_until_authenticated() {
    let world = World::start(None, PATIENCE);
    run(async {
        let mut stream = TcpStream::connect(world.address).await.unwrap();
        stream.write_all(&1_000_000_i32.to_be_bytes()).await.unwrap();
        assert!(is_closed(&mut stream).await);
        await_refusals(world.network.handle().metrics(), Refusal::FrameOversized, 1).await;
    });
}

/// Gives a key set over HTTP and counts how often it was asked.
async fn serve_key_set(listener: tokio::net::TcpListener, set: String, asked: Arc<AtomicU64>) {
    loop {
        let (mut stream, _) = listener.accept().await.unwrap();
        asked.fetch_add(1, Relaxed);
        let mut request = [0; 4096];
        assert!(stream.read(&mut request).await.unwrap() > 0);
        let answer = format!(
            "HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{set}",
            set.len()
        );
        stream.write_all(answer.as_bytes()).await.unwrap();
    }
}

#[test]
fn tokens_are_verified_with_keys_from_the_issuer() {
    let key = KeyPair::generate().unwrap();
    let encoding = EncodingKey::from_ec_der(&key.serialize_der());
    let token = |claims: serde_json::Value, id: &str| {
        let header = Header { kid: Some(id.to_owned()), ..Header::new(Algorithm::ES256) };
        jsonwebtoken::encode(&header, &claims, &encoding).unwrap()
    };
    let mut jwk = Jwk::from_encoding_key(&encoding, Algorithm::ES256).unwrap();
    jwk.common.key_id = Some("one".to_owned());
    let set = json!({ "keys": [jwk] }).to_string();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let url = format!("http://{}/keys", listener.local_addr().unwrap());
    let keys = KeySource::Url { url, tls: None, refresh_interval: Duration::from_hours(1) };
    let verifier = Arc::new(TokenVerifier::new(TokenSettings::new(keys)).unwrap());
    let world = World::start(Some(Arc::clone(&verifier)), PATIENCE);
    run(async {
        let listener = tokio::net::TcpListener::from_std(listener).unwrap();
        let now = jsonwebtoken::get_current_timestamp();
        let good = token(json!({ "sub": "alice", "exp": now + 600 }), "one");

        let refused = world.authenticate(&bearer(&good)).await;
        assert_eq!(refusal(refused), r#"{"status":"invalid_token"}"#, "no keys yet");

        let asked = Arc::new(AtomicU64::new(0));
        tokio::spawn(serve_key_set(listener, set, Arc::clone(&asked)));
        let refresher = tokio::spawn(verifier.keep_fresh());
        let deadline = Instant::now() + PATIENCE;
        let lifetime = loop {
            match world.authenticate(&bearer(&good)).await {
                Ok(lifetime) => break lifetime.unwrap(),
                Err(error) => assert!(Instant::now() < deadline, "{error}"),
            }
        };
        assert!(lifetime <= Duration::from_mins(10), "the token's own end counts: {lifetime:?}");
        for bad in [
            token(json!({ "sub": "alice", "exp": now - 60 }), "one"),
            token(json!({ "sub": "alice", "exp": now + 600 }), "two"),
            "a.b.c".to_owned(),
        ] {
            let refused = world.authenticate(&bearer(&bad)).await;
            assert_eq!(refusal(refused), r#"{"status":"invalid_token"}"#);
        }
        assert_eq!(asked.load(Relaxed), 1, "an unknown key does not bring a fetch at once");
        refresher.abort();
    });
}
