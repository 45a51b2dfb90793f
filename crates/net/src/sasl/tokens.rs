//! Access tokens: JSON Web Tokens, signed with a key of a set that the issuer publishes.

use std::collections::HashSet;
use std::fmt;
use std::sync::{Arc, Weak};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use jsonwebtoken::errors::ErrorKind;
use jsonwebtoken::jwk::{Jwk, PublicKeyUse};
use jsonwebtoken::{Algorithm, AlgorithmFamily, DecodingKey, Validation};
use moldau_threads::RwLock;
use serde_json::{Map, Value};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use crate::error::SaslError;
use crate::http::HttpUrl;
use crate::tls::ClientTls;

/// Where the issuer's keys come from: a JSON Web Key Set (RFC 7517).
#[derive(Debug)]
pub enum KeySource {
    /// The set itself.
    Bytes(Vec<u8>),
    /// An address that gives the set.
    Url {
        /// `http://` or `https://`.
        url: String,
        /// How an `https` address is believed.
        tls: Option<Arc<ClientTls>>,
        /// How often the set is fetched anew; Kafka's `sasl.oauthbearer.jwks.endpoint.refresh.ms`
        /// is an hour.
        refresh_interval: Duration,
    },
}

/// Which tokens are believed.
#[derive(Debug)]
pub struct TokenSettings {
    /// The issuer's keys.
    pub keys: KeySource,
    /// What `iss` has to be, if anything.
    pub issuer: Option<String>,
    /// One of these has to be in `aud`, if there are any.
    pub audiences: Vec<String>,
    /// Which claim names the principal; `sub` is Kafka's default.
    pub principal_claim: String,
    /// Scopes that all have to be in `scope` (or `scp`).
    pub scopes: Vec<String>,
    /// By how much clocks may differ; Kafka's `sasl.oauthbearer.clock.skew.seconds` is 30 s.
    pub clock_skew: Duration,
    /// Signature algorithms that are believed (`RS256`, `ES384`, `EdDSA`, ...); all that use public
    /// keys if there are none here.
    pub algorithms: Vec<String>,
}

impl TokenSettings {
    /// Any token that one of `keys` signed and that has not expired.
    #[must_use]
    pub fn new(keys: KeySource) -> Self {
        Self {
            keys,
            issuer: None,
            audiences: Vec::new(),
            principal_claim: "sub".to_owned(),
            scopes: Vec::new(),
            clock_skew: Duration::from_secs(30),
            algorithms: Vec::new(),
        }
    }
}

/// Verifies access tokens with keys that it keeps up to date.
pub struct TokenVerifier {
    /// Guards the keys; held for a look-up only.
    keys: RwLock<Arc<KeySet>>,
    source: Option<Remote>,
    algorithms: Vec<Algorithm>,
    validation: Validation,
    principal_claim: String,
    scopes: Vec<String>,
}

struct Remote {
    url: HttpUrl,
    refresh_interval: Duration,
    /// Told that a token named a key that is not in the set.
    unknown_key: Notify,
}

/// A token that is believed.
pub(super) struct Verified {
    pub(super) principal: String,
    pub(super) expires_in: Duration,
}

/// Why a token is not believed. Shown to operators, in words of our own: nothing of a token that
/// is not believed gets into a log. The client learns the status only.
#[derive(Debug, thiserror::Error)]
pub(super) enum TokenRefusal {
    #[error("unknown key id of the issuer")]
    UnknownKey,
    #[error("{0}")]
    Invalid(&'static str),
    #[error("its algorithm is not allowed")]
    Algorithm,
    #[error("it has no claim {claim:?} for the principal")]
    NoPrincipal { claim: String },
    #[error("it lacks the scope {scope:?}")]
    Scope { scope: String },
}

impl TokenRefusal {
    fn of(error: &jsonwebtoken::errors::Error) -> Self {
        Self::Invalid(match error.kind() {
            ErrorKind::InvalidSignature => "its signature is wrong",
            ErrorKind::ExpiredSignature => "it has expired",
            ErrorKind::ImmatureSignature => "it is not valid yet",
            ErrorKind::InvalidIssuer => "it has a wrong issuer",
            ErrorKind::InvalidAudience => "it has a wrong audience",
            ErrorKind::MissingRequiredClaim(_) => "it lacks a required claim",
            ErrorKind::InvalidClaimFormat(_) => "a claim has a wrong type",
            ErrorKind::InvalidAlgorithm => "its algorithm is not that of the key",
            _ => "it is not a valid JSON Web Token",
        })
    }

    /// Values of RFC 6750, section 3.1.
    pub(super) fn status(&self) -> &'static str {
        match self {
            Self::Scope { .. } => "insufficient_scope",
            _ => "invalid_token",
        }
    }

    pub(super) fn scope(&self) -> Option<&str> {
        match self {
            Self::Scope { scope } => Some(scope),
            _ => None,
        }
    }
}

impl TokenVerifier {
    /// # Errors
    /// [`SaslError::Settings`]: keys, address or algorithms cannot be used.
    pub fn new(settings: TokenSettings) -> Result<Self, SaslError> {
        let invalid = |reason: &dyn fmt::Display| SaslError::Settings(reason.to_string());
        let algorithms = allowed(&settings.algorithms)?;
        let (keys, source) = match settings.keys {
            KeySource::Bytes(bytes) => {
                let keys = KeySet::parse(&bytes).map_err(|reason| invalid(&reason))?;
                (keys, None)
            }
            KeySource::Url { url, tls, refresh_interval } => {
                let url = HttpUrl::parse(&url, tls).map_err(|reason| invalid(&reason))?;
                let unknown_key = Notify::new();
                (KeySet::default(), Some(Remote { url, refresh_interval, unknown_key }))
            }
        };
        let mut validation = Validation::new(Algorithm::RS256);
        validation.leeway = settings.clock_skew.as_secs();
        validation.validate_nbf = true;
        validation.required_spec_claims = HashSet::from(["exp".to_owned()]);
        if let Some(issuer) = &settings.issuer {
            validation.set_issuer(&[issuer]);
            validation.required_spec_claims.insert("iss".to_owned());
        }
        validation.validate_aud = !settings.audiences.is_empty();
        if validation.validate_aud {
            validation.set_audience(&settings.audiences);
            validation.required_spec_claims.insert("aud".to_owned());
        }
        Ok(Self {
            keys: RwLock::new(Arc::new(keys)),
            source,
            algorithms,
            validation,
            principal_claim: settings.principal_claim,
            scopes: settings.scopes,
        })
    }

    /// Fetches the keys and keeps them up to date as long as the verifier lives. To be run on any
    /// runtime, once; ends at once where the keys were given. Until the first fetch has succeeded,
    /// no token is believed.
    ///
    /// What fails is tried again after a pause that doubles up to a minute; the keys that are
    /// there stay in use. A token that names an unknown key brings the next fetch forward, but not
    /// within ten seconds of the one before.
    pub fn keep_fresh(self: &Arc<Self>) -> impl Future<Output = ()> + Send + 'static {
        let verifier = Arc::downgrade(self);
        async move {
            let mut failures = 0;
            while let Some(pause) = fetch_once(&verifier, &mut failures).await {
                let earliest = Instant::now() + UNKNOWN_KEY_PAUSE.min(pause);
                let latest = Instant::now() + pause;
                wait(&verifier, earliest, latest).await;
            }
        }
    }

    /// Takes the keys that `before` has of the same address, until the first fetch has succeeded.
    pub(super) fn take_keys(&self, before: &Self) {
        let (Some(own), Some(others)) = (&self.source, &before.source) else { return };
        if own.url == others.url {
            let keys = Arc::clone(&before.keys.read());
            let mut own = self.keys.write();
            if own.keys.is_empty() {
                *own = keys;
            }
        }
    }

    /// Who the token is for and how long it holds.
    pub(super) fn verify(&self, token: &str) -> Result<Verified, TokenRefusal> {
        let header = jsonwebtoken::decode_header(token).map_err(|e| TokenRefusal::of(&e))?;
        if !self.algorithms.contains(&header.alg) {
            return Err(TokenRefusal::Algorithm);
        }
        // Extensions that must be understood, or the token refused (RFC 7515, section 4.1.11).
        if header.crit.is_some() {
            return Err(TokenRefusal::Invalid("it demands an extension of the format"));
        }
        let keys = Arc::clone(&self.keys.read());
        let mut validation = self.validation.clone();
        validation.algorithms = vec![header.alg];
        let mut refusal = TokenRefusal::UnknownKey;
        for key in keys.candidates(header.kid.as_deref(), header.alg) {
            match jsonwebtoken::decode::<Map<String, Value>>(token, &key.key, &validation) {
                Ok(data) => return self.claims(&data.claims),
                // Without a key id, another key may be the one.
                Err(error) if *error.kind() == ErrorKind::InvalidSignature => {
                    refusal = TokenRefusal::of(&error);
                }
                Err(error) => return Err(TokenRefusal::of(&error)),
            }
        }
        if let (TokenRefusal::UnknownKey, Some(remote)) = (&refusal, &self.source) {
            remote.unknown_key.notify_one();
        }
        Err(refusal)
    }

    fn claims(&self, claims: &Map<String, Value>) -> Result<Verified, TokenRefusal> {
        let granted = claims.get("scope").or_else(|| claims.get("scp"));
        let has = |scope: &str| match granted {
            Some(Value::String(list)) => list.split(' ').any(|entry| entry == scope),
            Some(Value::Array(list)) => list.iter().any(|entry| entry == scope),
            _ => false,
        };
        if self.scopes.iter().any(|scope| !has(scope)) {
            return Err(TokenRefusal::Scope { scope: self.scopes.join(" ") });
        }
        let name = claims.get(&self.principal_claim).and_then(Value::as_str);
        let Some(principal) = name.filter(|name| !name.is_empty()) else {
            return Err(TokenRefusal::NoPrincipal { claim: self.principal_claim.clone() });
        };
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        // It is there and not negative: the validation demands that. What is beyond all times is
        // for ever.
        let expiry = claims.get("exp").and_then(Value::as_f64).unwrap_or_default();
        let expiry = Duration::try_from_secs_f64(expiry).unwrap_or(Duration::MAX);
        // Within the clock skew, a token that has just expired gets a moment.
        let expires_in = expiry.saturating_sub(now).max(LIFETIME_MIN);
        Ok(Verified { principal: principal.to_owned(), expires_in })
    }
}

impl fmt::Debug for TokenVerifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenVerifier")
            .field("algorithms", &self.algorithms)
            .field("principal_claim", &self.principal_claim)
            .finish_non_exhaustive()
    }
}

/// Fetches the keys. Gives the pause until the next time, or `None` when there is none.
async fn fetch_once(verifier: &Weak<TokenVerifier>, failures: &mut u32) -> Option<Duration> {
    let verifier = verifier.upgrade()?;
    let remote = verifier.source.as_ref()?;
    let fetched = match remote.url.get().await {
        Ok(bytes) => KeySet::parse(&bytes),
        Err(reason) => Err(reason),
    };
    match fetched {
        Ok(keys) => {
            *failures = 0;
            *verifier.keys.write() = Arc::new(keys);
            Some(remote.refresh_interval)
        }
        Err(reason) => {
            *failures = (*failures + 1).min(RETRY_DOUBLINGS_MAX);
            let pause = RETRY_PAUSE * 2_u32.pow(*failures - 1);
            tracing::warn!(url = %remote.url, reason, "failed to fetch the issuer's keys");
            Some(pause)
        }
    }
}

/// Waits until `latest`, or until a token names an unknown key, but then until `earliest`.
async fn wait(verifier: &Weak<TokenVerifier>, earliest: Instant, latest: Instant) {
    sleep_until(earliest).await;
    loop {
        // Looking now and then lets this end soon after the verifier is gone.
        let Some(verifier) = verifier.upgrade() else { return };
        let Some(remote) = &verifier.source else { return };
        let step = Instant::now() + UNKNOWN_KEY_PAUSE;
        tokio::select! {
            () = remote.unknown_key.notified() => return,
            () = sleep_until(step.min(latest)) => {}
        }
        if Instant::now() >= latest {
            return;
        }
    }
}

/// The algorithms with these names, or all that use public keys.
fn allowed(names: &[String]) -> Result<Vec<Algorithm>, SaslError> {
    if names.is_empty() {
        return Ok(PUBLIC_KEY_ALGORITHMS.to_vec());
    }
    let parse = |name: &String| {
        let algorithm = name.parse().ok();
        algorithm.filter(|known| PUBLIC_KEY_ALGORITHMS.contains(known)).ok_or_else(|| {
            SaslError::Settings(format!("{name:?} is no signature algorithm with public keys"))
        })
    };
    names.iter().map(parse).collect()
}

#[derive(Default)]
struct KeySet {
    keys: Vec<Key>,
}

struct Key {
    id: Option<String>,
    /// The one algorithm that the key is for, where the set says so.
    algorithm: Option<Algorithm>,
    key: DecodingKey,
}

impl KeySet {
    /// Reads a set. Keys of kinds that are not known, for encryption, or secret are left out.
    fn parse(bytes: &[u8]) -> Result<Self, String> {
        let set: Value = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
        let entries = set.get("keys").and_then(Value::as_array);
        let entries = entries.ok_or("it is not a JSON Web Key Set")?;
        if entries.len() > KEYS_MAX {
            return Err(format!("it has {} keys, more than {KEYS_MAX}", entries.len()));
        }
        let jwks = entries.iter().filter_map(|e| serde_json::from_value::<Jwk>(e.clone()).ok());
        let keys: Vec<Key> = jwks.filter_map(|jwk| Key::of(&jwk)).collect();
        if keys.is_empty() {
            return Err("it has no public key for signatures".to_owned());
        }
        Ok(Self { keys })
    }

    fn candidates(&self, id: Option<&str>, algorithm: Algorithm) -> impl Iterator<Item = &Key> {
        self.keys.iter().filter(move |key| {
            (id.is_none() || key.id.as_deref() == id)
                && key.algorithm.is_none_or(|own| own == algorithm)
                && key.key.family() == algorithm.family()
        })
    }
}

impl Key {
    fn of(jwk: &Jwk) -> Option<Self> {
        let signs = jwk.common.public_key_use.as_ref();
        if signs.is_some_and(|it| *it != PublicKeyUse::Signature) {
            return None;
        }
        let key = DecodingKey::from_jwk(jwk).ok()?;
        if key.family() == AlgorithmFamily::Hmac {
            return None;
        }
        let algorithm = match jwk.common.key_algorithm {
            Some(named) => Some(named.to_string().parse().ok()?),
            None => None,
        };
        Some(Self { id: jwk.common.key_id.clone(), algorithm, key })
    }
}

/// Never `none`, and never those with a shared secret, which a public key could be mistaken for.
const PUBLIC_KEY_ALGORITHMS: [Algorithm; 9] = [
    Algorithm::RS256,
    Algorithm::RS384,
    Algorithm::RS512,
    Algorithm::PS256,
    Algorithm::PS384,
    Algorithm::PS512,
    Algorithm::ES256,
    Algorithm::ES384,
    Algorithm::EdDSA,
];

/// Issuers publish two or three; each is tried for a token that names none.
const KEYS_MAX: usize = 64;

/// Tokens with invented key ids must not make us a burden to the issuer.
const UNKNOWN_KEY_PAUSE: Duration = Duration::from_secs(10);

/// First pause after a failed fetch.
const RETRY_PAUSE: Duration = Duration::from_secs(1);
/// 1, 2, 4, ... 64 s.
const RETRY_DOUBLINGS_MAX: u32 = 7;

/// Shortest time that a token is believed, for one that is good by the clock skew alone.
const LIFETIME_MIN: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests;
