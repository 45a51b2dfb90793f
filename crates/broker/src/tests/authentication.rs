//! SASL as a client meets it: messages in requests and bare (KIP-43, KIP-152), and how long a
//! client is believed (KIP-368).

use std::io::Write;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use bytes::Bytes;
use jsonwebtoken::jwk::Jwk;
use jsonwebtoken::{Algorithm, EncodingKey, Header, get_current_timestamp};
use moldau_net::Refusal;
use moldau_net::sasl::{
    AUTHENTICATION_BYTES_MAX, KeySource, Mechanism, SaslClient, SaslCredentials, SaslStep,
    ScramCredential, StaticToken, TokenSettings, TokenVerifier, Users,
};
use moldau_protocol::ErrorCode;
use moldau_protocol::messages::{
    ApiVersionsRequest, SaslAuthenticateRequest, SaslAuthenticateResponse, SaslHandshakeRequest,
};
use serde_json::json;
use zeroize::Zeroizing;

use super::listeners::{Client, DEADLINE, Server};
use super::world::code;

/// A broker with all mechanisms, and the issuer of the tokens that it believes.
struct World {
    server: Server,
    key: EncodingKey,
}

impl World {
    fn new() -> Self {
        let pair = rcgen::KeyPair::generate().unwrap();
        let key = EncodingKey::from_ec_der(&pair.serialize_der());
        let jwk = Jwk::from_encoding_key(&key, Algorithm::ES256).unwrap();
        let keys = KeySource::Bytes(json!({ "keys": [jwk] }).to_string().into_bytes());
        let tokens = Arc::new(TokenVerifier::new(TokenSettings::new(keys)).unwrap());
        let mut users = Users::default();
        users.insert_password("alice", Zeroizing::new("alice-secret".to_owned()));
        let scram = Mechanism::ScramSha256;
        let credential = ScramCredential::derive(scram, "alice-secret", b"some salt", 4096);
        users.insert_scram(scram, "alice", credential);
        let server = Server::with(|sasl| {
            sasl.mechanisms = vec![Mechanism::Plain, scram, Mechanism::OAuthBearer];
            sasl.users = Arc::new(users);
            sasl.tokens = Some(tokens);
        });
        Self { server, key }
    }

    /// A token of the user that holds for so many seconds from now on.
    fn token(&self, user: &str, seconds: u64) -> String {
        let claims = json!({ "sub": user, "exp": get_current_timestamp() + seconds });
        jsonwebtoken::encode(&Header::new(Algorithm::ES256), &claims, &self.key).unwrap()
    }

    /// How many authentications the broker has counted as refused.
    fn refused(&self) -> u64 {
        self.server.broker.threads.handle().metrics().refused(Refusal::Authentication)
    }
}

fn by_password(mechanism: Mechanism, password: &str) -> SaslClient {
    let (user, password) = ("alice".to_owned(), Zeroizing::new(password.to_owned()));
    SaslClient::new(match mechanism {
        Mechanism::Plain => SaslCredentials::Plain { user, password },
        _ => SaslCredentials::Scram { mechanism, user, password },
    })
    .unwrap()
}

fn by_token(token: &str) -> SaslClient {
    let tokens = Arc::new(StaticToken::new(Zeroizing::new(token.to_owned())));
    SaslClient::new(SaslCredentials::OAuthBearer { tokens, extensions: Vec::new() }).unwrap()
}

fn choose(mechanism: Mechanism) -> SaslHandshakeRequest {
    SaslHandshakeRequest { mechanism: mechanism.name().to_owned() }
}

impl Client {
    /// Sends a token and gives that of the broker; `None` if it closes the connection instead.
    fn say(&mut self, token: &[u8]) -> Option<Vec<u8>> {
        let length = u32::try_from(token.len()).unwrap();
        // The broker may have closed it already.
        self.stream.write_all(&length.to_be_bytes()).ok()?;
        self.stream.write_all(token).ok()?;
        self.read_frame()
    }

    /// Authenticates in this version of SaslHandshake; gives the last answer, `None` if the broker
    /// closes the connection instead.
    fn authenticate(
        &mut self,
        client: &SaslClient,
        version: i16,
    ) -> Option<SaslAuthenticateResponse> {
        let begun = pin!(client.begin());
        let Poll::Ready(exchange) = begun.poll(&mut Context::from_waker(Waker::noop())) else {
            panic!("nothing is waited for");
        };
        let mut exchange = exchange.unwrap();
        let agreed = self.ask(version, &exchange.handshake());
        let mut request = exchange.chosen(&agreed).unwrap();
        loop {
            let answer = match version {
                0 => {
                    let auth_bytes = self.say(&request.auth_bytes)?.into();
                    SaslAuthenticateResponse { auth_bytes, ..Default::default() }
                }
                _ => self.try_ask(2, &request)?,
            };
            match exchange.answered(&answer) {
                Ok(SaslStep::Send(next)) => request = next,
                _ => return Some(answer),
            }
        }
    }
}

#[test]
fn bare_tokens_of_each_mechanism_follow_a_handshake_of_version_0() {
    let world = World::new();
    for client in [
        by_password(Mechanism::Plain, "alice-secret"),
        by_password(Mechanism::ScramSha256, "alice-secret"),
        by_token(&world.token("alice", 600)),
    ] {
        let mut connection = world.server.sasl();
        connection.ask(0, &ApiVersionsRequest::default());
        assert!(connection.authenticate(&client, 0).is_some(), "{client:?}");
        assert_eq!(connection.addresses().len(), 3);
    }
    assert_eq!(world.refused(), 0);
}

#[test]
fn wrong_credentials_in_bare_tokens_close_the_connection_without_an_answer() {
    let world = World::new();
    for mechanism in [Mechanism::Plain, Mechanism::ScramSha256] {
        let mut connection = world.server.sasl();
        assert!(connection.authenticate(&by_password(mechanism, "guess"), 0).is_none());
    }
    // RFC 7628: why a token is refused is told, and nothing any more once that is acknowledged.
    let mut connection = world.server.sasl();
    connection.ask(0, &choose(Mechanism::OAuthBearer));
    let message = format!("n,,\x01auth=Bearer {}x\x01\x01", world.token("alice", 600));
    let told = connection.say(message.as_bytes()).unwrap();
    assert_eq!(told, br#"{"status":"invalid_token"}"#);
    assert!(connection.say(b"\x01").is_none());
    assert_eq!(world.refused(), 3);
}

#[test]
fn invalid_tokens_close_the_connection() {
    let world = World::new();
    for mechanism in [Mechanism::Plain, Mechanism::ScramSha256, Mechanism::OAuthBearer] {
        for token in [&b""[..], b"\0", &[0xff; 1024], &vec![b'x'; AUTHENTICATION_BYTES_MAX + 1]] {
            let mut connection = world.server.sasl();
            connection.ask(0, &choose(mechanism));
            assert!(connection.say(token).is_none(), "{mechanism}: {} bytes", token.len());
        }
    }
}

#[test]
fn handshake_mechanism_cannot_change() {
    let world = World::new();
    let token = b"\0alice\0alice-secret";
    let auth_bytes = Bytes::from_static(token);
    let request = SaslAuthenticateRequest { auth_bytes, ..Default::default() };
    let mut bare = world.server.sasl();
    bare.ask(0, &choose(Mechanism::Plain));
    assert!(bare.try_ask(2, &request).is_none(), "a request in place of a token");
    let mut bare = world.server.sasl();
    bare.ask(0, &choose(Mechanism::Plain));
    assert!(bare.try_ask(1, &choose(Mechanism::Plain)).is_none(), "another handshake");
    let mut framed = world.server.sasl();
    framed.ask(1, &choose(Mechanism::Plain));
    assert!(framed.say(token).is_none(), "a token in place of a request");
}

#[test]
fn handshake_of_version_0_does_not_repeat_an_authentication() {
    let world = World::new();
    let alice = by_password(Mechanism::Plain, "alice-secret");
    for version in [0, 1] {
        let mut connection = world.server.sasl();
        assert!(connection.authenticate(&alice, version).is_some());
        let answer = connection.ask(0, &choose(Mechanism::Plain));
        assert_eq!(code(answer.error_code), ErrorCode::UnsupportedVersion);
        assert!(connection.is_closed());
    }
}

#[test]
fn client_stays_authenticated_until_its_token_expires() {
    let world = World::new();
    let mut connection = world.server.sasl();
    let answer = connection.authenticate(&by_token(&world.token("alice", 2)), 1).unwrap();
    assert!((1..=2000).contains(&answer.session_lifetime_ms), "{answer:?}");
    let lifetime = Duration::from_millis(answer.session_lifetime_ms.unsigned_abs());
    assert_eq!(connection.addresses().len(), 3);
    // A later token of the same user takes its place.
    let answer = connection.authenticate(&by_token(&world.token("alice", 600)), 1).unwrap();
    assert!(answer.session_lifetime_ms > 590_000, "{answer:?}");
    let first_over = Instant::now() + lifetime;
    while Instant::now() < first_over {
        assert_eq!(connection.addresses().len(), 3);
    }
    assert_eq!(connection.addresses().len(), 3);
    let answer = connection.authenticate(&by_token(&world.token("bob", 600)), 1).unwrap();
    assert_eq!(code(answer.error_code), ErrorCode::SaslAuthenticationFailed);
    assert!(connection.is_closed());
}

/// It kept its connection, and its place among those of its address, for as long as it wanted.
#[test]
fn api_versions_does_not_extend_an_expired_session() {
    let world = World::new();
    let mut connection = world.server.sasl();
    let began = Instant::now();
    assert!(connection.authenticate(&by_token(&world.token("alice", 1)), 1).is_some());
    while connection.try_ask(3, &versions()).is_some() {
        assert!(began.elapsed() < DEADLINE, "it is still served");
    }
    assert!(connection.is_closed());
}

#[test]
fn user_reload_keeps_clients_connected() {
    let world = World::new();
    let alice = by_password(Mechanism::Plain, "alice-secret");
    let mut connection = world.server.sasl();
    assert!(connection.authenticate(&alice, 1).is_some());
    let mut users = Users::default();
    users.insert_password("bob", Zeroizing::new("bob-secret".to_owned()));
    let mut listeners = world.server.broker.state.config.listeners.clone();
    listeners[1].sasl.as_mut().unwrap().users = Arc::new(users);
    listeners[1].advertised.as_mut().unwrap().port = 9999;
    world.server.broker.reload(&listeners).unwrap();
    assert_eq!(connection.addresses()[0].1, 9093, "what it was told holds");
    let mut anew = world.server.sasl();
    assert_eq!(anew.log_in("bob", "bob-secret"), ErrorCode::None);
    assert_eq!(anew.addresses()[0].1, 9999);
    let unknown = world.server.sasl().log_in("alice", "alice-secret");
    assert_eq!(unknown, ErrorCode::SaslAuthenticationFailed);
    // The one that stands cannot repeat what it did.
    let refused = connection.authenticate(&alice, 1).unwrap();
    assert_eq!(code(refused.error_code), ErrorCode::SaslAuthenticationFailed);
}

#[test]
fn invalid_reload_changes_nothing() {
    let world = World::new();
    let mut listeners = world.server.broker.state.config.listeners.clone();
    let sasl = listeners[1].sasl.as_mut().unwrap();
    (sasl.users, sasl.tokens) = (Arc::default(), None);
    let error = world.server.broker.reload(&listeners).unwrap_err().to_string();
    assert!(error.starts_with("listener SASL_PLAINTEXT: SASL settings: OAUTHBEARER"), "{error}");
    assert_eq!(world.server.sasl().log_in("alice", "alice-secret"), ErrorCode::None);
}

fn versions() -> ApiVersionsRequest {
    let (name, version) = ("tester".to_owned(), "1".to_owned());
    ApiVersionsRequest {
        client_software_name: name,
        client_software_version: version,
        ..ApiVersionsRequest::default()
    }
}
