//! An issuer of tokens (RFC 7519) with one key, published as a JSON Web Key Set (RFC 7517).

use std::io::{Read, Write};
use std::net::TcpListener;
use std::thread;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64_URL;
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use rcgen::KeyPair;
use serde_json::{Value, json};

use super::USER;
use crate::process::loopback;

/// Who issues.
const ISSUER: &str = "https://issuer.test";

/// For whom.
const AUDIENCE: &str = "kafka";

const KEY_ID: &str = "first";

const LIFETIME_S: u64 = 3600;

/// An issuer whose keys are served on loopback until the process ends.
pub struct Issuer {
    key: KeyPair,
    other_key: KeyPair,
    port: u16,
}

impl Issuer {
    /// Makes its keys and serves the public one.
    pub fn start() -> Result<Self> {
        let (key, other_key) = (KeyPair::generate()?, KeyPair::generate()?);
        let listener = TcpListener::bind(loopback(0))?;
        let port = listener.local_addr()?.port();
        let keys = key_set(&key)?.to_string();
        thread::spawn(move || serve(&listener, &keys));
        Ok(Self { key, other_key, port })
    }

    /// What a server has to know of it.
    pub fn settings(&self) -> Value {
        json!({
            "jwks_url": format!("http://{}/keys", loopback(self.port)),
            "issuer": ISSUER,
            "audience": AUDIENCE,
        })
    }

    /// A token that holds.
    pub fn token(&self) -> String {
        sign(&self.key, &claims(AUDIENCE, now_s() + LIFETIME_S))
    }

    /// One that held until an hour ago.
    pub fn expired_token(&self) -> String {
        sign(&self.key, &claims(AUDIENCE, now_s() - LIFETIME_S))
    }

    /// One signed by a key that is not published, under the name of the one that is.
    pub fn forged_token(&self) -> String {
        sign(&self.other_key, &claims(AUDIENCE, now_s() + LIFETIME_S))
    }

    /// One that is meant for somebody else.
    pub fn misdirected_token(&self) -> String {
        sign(&self.key, &claims("another service", now_s() + LIFETIME_S))
    }
}

fn claims(audience: &str, expires_s: u64) -> Value {
    json!({
        "iss": ISSUER,
        "aud": audience,
        "sub": USER,
        "iat": expires_s - LIFETIME_S,
        "exp": expires_s,
    })
}

fn sign(key: &KeyPair, claims: &Value) -> String {
    let header = Header { kid: Some(KEY_ID.to_owned()), ..Header::new(Algorithm::ES256) };
    let key = EncodingKey::from_ec_der(&key.serialize_der());
    encode(&header, claims, &key).expect("a P-256 key signs by ES256")
}

/// An uncompressed point of P-256 is 4, x and y.
fn key_set(key: &KeyPair) -> Result<Value> {
    let point = key.public_key_raw().strip_prefix(&[4]).context("an uncompressed point")?;
    let (x, y) = point.split_at_checked(32).context("a point of P-256")?;
    Ok(json!({"keys": [{
        "kty": "EC",
        "crv": "P-256",
        "use": "sig",
        "alg": "ES256",
        "kid": KEY_ID,
        "x": BASE64_URL.encode(x),
        "y": BASE64_URL.encode(y),
    }]}))
}

fn serve(listener: &TcpListener, keys: &str) {
    for stream in listener.incoming() {
        let Ok(mut stream) = stream else { continue };
        let mut request = Vec::new();
        let mut piece = [0; 1024];
        while !request.ends_with(b"\r\n\r\n") {
            match stream.read(&mut piece) {
                Ok(count) if count > 0 => request.extend_from_slice(&piece[..count]),
                _ => break,
            }
        }
        let answer = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\
             Connection: close\r\n\r\n{keys}",
            keys.len()
        );
        // A server that went away asks again.
        let _ = stream.write_all(answer.as_bytes());
    }
}

fn now_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
