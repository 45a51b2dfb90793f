//! Keys of an issuer by https: one that is believed, one that is not, one that fails.

use std::net::SocketAddr;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use jsonwebtoken::jwk::Jwk;
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use moldau_net::sasl::{KeySource, TokenSettings, TokenVerifier};
use moldau_net::tls::{ClientTls, ServerTls};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::task::AbortHandle;

use crate::authority::Authority;
use crate::sasl::{World, bearer};
use crate::world::{PATIENCE, client_tls, run, server_settings};

/// A key that signs tokens, and its public half under an id.
struct Signer {
    key: EncodingKey,
    id: &'static str,
}

impl Signer {
    fn new(id: &'static str) -> Self {
        let pair = rcgen::KeyPair::generate().unwrap();
        Self { key: EncodingKey::from_ec_der(&pair.serialize_der()), id }
    }

    fn key_set(&self) -> Vec<u8> {
        let mut jwk = Jwk::from_encoding_key(&self.key, Algorithm::ES256).unwrap();
        jwk.common.key_id = Some(self.id.to_owned());
        json!({ "keys": [jwk] }).to_string().into_bytes()
    }

    fn token(&self) -> String {
        let claims = json!({ "sub": "alice", "exp": jsonwebtoken::get_current_timestamp() + 600 });
        let header = Header { kid: Some(self.id.to_owned()), ..Header::new(Algorithm::ES256) };
        jsonwebtoken::encode(&header, &claims, &self.key).unwrap()
    }
}

/// A server of key sets, whose certificate is for `localhost`.
struct Issuer {
    address: SocketAddr,
    /// What it gives.
    set: Mutex<Vec<u8>>,
    /// Connections that it has got.
    connections: AtomicU64,
    tls: ServerTls,
}

impl Issuer {
    fn start(authority: &Authority, set: Vec<u8>) -> Arc<Self> {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        Self::start_on(TcpListener::from_std(listener).unwrap(), authority, set)
    }

    fn start_on(listener: TcpListener, authority: &Authority, set: Vec<u8>) -> Arc<Self> {
        let own = authority.issue("issuer", &["localhost"]);
        let issuer = Arc::new(Self {
            address: listener.local_addr().unwrap(),
            set: Mutex::new(set),
            connections: AtomicU64::new(0),
            tls: ServerTls::new(server_settings(&own)).unwrap(),
        });
        let serving = Arc::clone(&issuer);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                serving.connections.fetch_add(1, Relaxed);
                let serving = Arc::clone(&serving);
                tokio::spawn(async move { serving.answer(stream).await });
            }
        });
        issuer
    }

    /// A client that does not like what it gets goes away; that is its own matter.
    async fn answer(&self, stream: TcpStream) -> Option<()> {
        let deadline = tokio::time::Instant::now() + PATIENCE;
        let mut stream = self.tls.accept(stream, deadline).await.ok()?.stream;
        // Of the request nothing matters but that it has begun.
        stream.read_u8().await.ok()?;
        let set = self.set.lock().unwrap().clone();
        let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", set.len());
        stream.write_all(head.as_bytes()).await.ok()?;
        stream.write_all(&set).await.ok()?;
        stream.flush().await.ok()
    }
}

/// A server that believes tokens by the keys of an address, fetched again after `refresh_interval`.
struct Believer {
    world: World,
    refresher: AbortHandle,
}

impl Believer {
    fn start(issuer: SocketAddr, tls: ClientTls, refresh_interval: Duration) -> Self {
        let url = format!("https://localhost:{}/keys?secret=x", issuer.port());
        let keys = KeySource::Url { url, tls: Some(Arc::new(tls)), refresh_interval };
        let verifier = Arc::new(TokenVerifier::new(TokenSettings::new(keys)).unwrap());
        let refresher = tokio::spawn(verifier.keep_fresh()).abort_handle();
        // Listeners are not opened on a thread that has a runtime.
        let start = std::thread::spawn(|| World::start(Some(verifier), PATIENCE));
        Self { world: start.join().unwrap(), refresher }
    }

    async fn believes(&self, token: &str) -> bool {
        self.world.authenticate(&bearer(token)).await.is_ok()
    }

    /// Waits until a token is believed, or is not any more.
    async fn wait(&self, token: &str, believed: bool) {
        let deadline = Instant::now() + PATIENCE;
        while self.believes(token).await != believed {
            assert!(Instant::now() < deadline, "believed: {}", !believed);
        }
    }
}

impl Drop for Believer {
    fn drop(&mut self) {
        self.refresher.abort();
    }
}

const HOUR: Duration = Duration::from_hours(1);

#[test]
fn keys_come_by_https_and_change() {
    let authority = Authority::new("trusted");
    let (first, second) = (Signer::new("first"), Signer::new("second"));
    run(async {
        let issuer = Issuer::start(&authority, first.key_set());
        let often = Duration::from_millis(20);
        let believer = Believer::start(issuer.address, client_tls(&authority, None), often);
        believer.wait(&first.token(), true).await;
        assert!(!believer.believes(&second.token()).await);
        *issuer.set.lock().unwrap() = second.key_set();
        believer.wait(&second.token(), true).await;
        assert!(!believer.believes(&first.token()).await, "its key is withdrawn");
        // What is no key set changes nothing.
        *issuer.set.lock().unwrap() = b"{}".to_vec();
        let before = issuer.connections.load(Relaxed);
        while issuer.connections.load(Relaxed) < before + 2 {
            assert!(believer.believes(&second.token()).await);
        }
    });
}

#[test]
fn keys_of_an_issuer_with_the_certificate_of_another_authority_are_not_taken() {
    let (trusted, other) = (Authority::new("trusted"), Authority::new("other"));
    let signer = Signer::new("one");
    run(async {
        let issuer = Issuer::start(&other, signer.key_set());
        let believer = Believer::start(issuer.address, client_tls(&trusted, None), HOUR);
        // It tries again, and in vain.
        while issuer.connections.load(Relaxed) < 2 {
            assert!(!believer.believes(&signer.token()).await);
        }
        assert!(!believer.believes(&signer.token()).await);
    });
}

#[test]
fn issuer_that_cannot_be_reached_is_tried_again() {
    let (authority, signer) = (Authority::new("trusted"), Signer::new("one"));
    run(async {
        // Who is bound and does not listen refuses connections.
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let address = socket.local_addr().unwrap();
        let believer = Believer::start(address, client_tls(&authority, None), HOUR);
        assert!(!believer.believes(&signer.token()).await);
        let listener = socket.listen(16).unwrap();
        let _issuer = Issuer::start_on(listener, &authority, signer.key_set());
        believer.wait(&signer.token(), true).await;
    });
}

#[test]
fn answer_that_is_too_large_is_given_up() {
    let (authority, signer) = (Authority::new("trusted"), Signer::new("one"));
    run(async {
        let mut set = signer.key_set();
        set.resize(2 << 20, b' ');
        let issuer = Issuer::start(&authority, set);
        let believer = Believer::start(issuer.address, client_tls(&authority, None), HOUR);
        while issuer.connections.load(Relaxed) < 2 {
            assert!(!believer.believes(&signer.token()).await, "it is a key set, but too large");
        }
        *issuer.set.lock().unwrap() = signer.key_set();
        believer.wait(&signer.token(), true).await;
    });
}
