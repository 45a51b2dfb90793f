//! The server's side: which mechanisms are offered, and one connection's way through them.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use moldau_protocol::messages::{
    SaslAuthenticateResponse, SaslHandshakeRequest, SaslHandshakeResponse,
};
use moldau_protocol::{ApiKey, ErrorCode};
use moldau_threads::RwLock;

use super::mechanism::Mechanism;
use super::oauth_bearer::{self, BearerMessage};
use super::plain::{OTHER_AUTHORIZATION_ID, PlainMessage};
use super::scram::{self, Refusal, ScramCredential, ServerExchange};
use super::tokens::{TokenVerifier, Verified};
use crate::error::SaslError;
use crate::principal::{Principal, shown};

/// How long the answer to wrong credentials is delayed, so that guessing is slow; Kafka's
/// `connection.failed.authentication.delay.ms`. The sender of the answer waits.
pub const FAILED_AUTHENTICATION_DELAY: Duration = Duration::from_millis(100);

/// Largest message of an authentication, and largest frame of a peer that has not yet proven who it
/// is. Tokens take a few kilobytes; the 512 KiB of Kafka's `sasl.server.max.receive.size` are what
/// each of many strangers could make us hold.
pub const AUTHENTICATION_BYTES_MAX: usize = 64 * 1024;

/// The users of a server. Called on network threads: nothing here may block.
pub trait Credentials: Send + Sync {
    /// Whether `password` is the user's. Compare with [`super::secrets_equal`].
    fn plain(&self, user: &str, password: &str) -> bool;

    /// What is stored for the user and one mechanism of SCRAM.
    fn scram(&self, mechanism: Mechanism, user: &str) -> Option<ScramCredential>;
}

/// Configuration of a listener with SASL.
pub struct SaslServerSettings {
    /// The mechanisms offered; at least one.
    pub mechanisms: Vec<Mechanism>,
    /// Who is known for PLAIN and SCRAM.
    pub credentials: Arc<dyn Credentials>,
    /// Who is believed for OAUTHBEARER.
    pub tokens: Option<Arc<TokenVerifier>>,
    /// How long a client is believed until it authenticates again; Kafka's
    /// `connections.max.reauth.ms` (KIP-368), where 0 means for ever as `None` does. A token's own
    /// end counts in any case.
    pub max_reauthentication: Option<Duration>,
}

/// The server's side of SASL, shared by all connections of a listener.
pub struct SaslServer {
    /// Guards what the next message is answered by; held for a look-up only.
    settings: RwLock<Arc<SaslServerSettings>>,
    /// Makes up credentials of users that do not exist.
    phantom_secret: [u8; 32],
}

impl SaslServer {
    /// # Errors
    /// [`SaslError::Settings`]: no mechanism, or OAUTHBEARER without a verifier.
    pub fn new(mut settings: SaslServerSettings) -> Result<Self, SaslError> {
        if settings.mechanisms.is_empty() {
            return Err(SaslError::Settings("a server has to offer a mechanism".to_owned()));
        }
        if settings.mechanisms.contains(&Mechanism::OAuthBearer) && settings.tokens.is_none() {
            let missing = "OAUTHBEARER needs the keys that tokens are signed with";
            return Err(SaslError::Settings(missing.to_owned()));
        }
        settings.max_reauthentication =
            settings.max_reauthentication.filter(|limit| !limit.is_zero());
        let mut phantom_secret = [0; 32];
        scram::fill_random(&mut phantom_secret);
        Ok(Self { settings: RwLock::new(Arc::new(settings)), phantom_secret })
    }

    /// Applies the settings of `next` from the next message on. Established connections are kept
    /// while their authentication is valid. A removed user cannot authenticate again (KIP-368).
    pub fn take_over(&self, next: &Self) {
        let next = next.settings();
        if let (Some(before), Some(tokens)) = (&self.settings().tokens, &next.tokens) {
            tokens.take_keys(before);
        }
        *self.settings.write() = next;
    }

    fn settings(&self) -> Arc<SaslServerSettings> {
        Arc::clone(&self.settings.read())
    }

    fn look_up(&self, mechanism: Mechanism, user: &str) -> (ScramCredential, bool) {
        // Made up for known users too, so that both cost the same.
        let phantom = scram::phantom(mechanism, user, &self.phantom_secret);
        match self.settings().credentials.scram(mechanism, user) {
            Some(credential) => (credential, true),
            None => (phantom, false),
        }
    }
}

impl fmt::Debug for SaslServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SaslServer")
            .field("mechanisms", &self.settings().mechanisms)
            .finish_non_exhaustive()
    }
}

/// Where an authentication stands after a message.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum SaslState {
    /// The client has more to say.
    Going,
    /// The client is who it says.
    Authenticated(Principal),
    /// The client is refused: the answer goes out after [`FAILED_AUTHENTICATION_DELAY`], then the
    /// connection is closed.
    Failed,
}

/// Whether a request may be served.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Admit {
    /// It may.
    Yes,
    /// It may not, and the connection is closed for this reason, without an answer.
    No(&'static str),
}

/// One connection's authentications: the first one and those that repeat it.
///
/// The version of the SaslHandshake says how the client's messages come: as SaslAuthenticate after
/// version 1 (KIP-152), as bare tokens after version 0 (KIP-43), which is what clients older than
/// Kafka 1.0 send and what librdkafka wants to see offered. Only SaslAuthenticate tells how long a
/// client is believed, so that version 0 serves the first authentication alone.
pub struct SaslSession {
    server: Arc<SaslServer>,
    exchange: Exchange,
    framing: Framing,
    /// Set once authenticated, and kept while that is repeated.
    believed: Option<Believed>,
    /// Why the client is refused, as operators may know it.
    refusal: String,
}

#[derive(Clone)]
struct Believed {
    principal: Principal,
    mechanism: Mechanism,
    /// When the client has to have authenticated again.
    until: Option<Instant>,
}

/// How the messages of an exchange come.
#[derive(Clone, Copy, Eq, PartialEq)]
enum Framing {
    /// Each in a SaslAuthenticate request.
    Requests,
    /// Each as a frame of its own, without a request around it.
    Tokens,
}

enum Exchange {
    None,
    /// The client has chosen.
    Chosen(Mechanism),
    Scram(Box<ServerExchange>, Mechanism),
    /// A token was not accepted; this is the error for the client.
    TokenRefused(String),
    Failed,
}

/// A step that succeeded.
enum Step {
    Challenge(Exchange, Vec<u8>),
    Done { user: String, answer: Vec<u8>, mechanism: Mechanism, expires_in: Option<Duration> },
}

impl SaslSession {
    /// A connection that has not said anything.
    #[must_use]
    pub fn new(server: Arc<SaslServer>) -> Self {
        Self {
            server,
            exchange: Exchange::None,
            framing: Framing::Requests,
            believed: None,
            refusal: String::new(),
        }
    }

    /// Who the client is, once it has proven it.
    #[must_use]
    pub fn principal(&self) -> Option<&Principal> {
        self.believed.as_ref().map(|believed| &believed.principal)
    }

    /// Why the client was refused, for operators; no secret. Empty for one that was not.
    #[must_use]
    pub fn refusal(&self) -> &str {
        &self.refusal
    }

    /// Whether a request may be served at `now`: before the client is authenticated, while it
    /// repeats that and once its time is over, only what serves to authenticate. As in Kafka, the
    /// versions served may be asked for at the beginning, but not by a client whose time is over.
    #[must_use]
    pub fn admits(&self, api: ApiKey, now: Instant) -> Admit {
        let authenticates = matches!(api, ApiKey::SaslHandshake | ApiKey::SaslAuthenticate);
        match (&self.exchange, &self.believed) {
            (Exchange::Failed, _) => Admit::No("a request after a failed authentication"),
            _ if authenticates => Admit::Yes,
            (Exchange::None, None) if api == ApiKey::ApiVersions => Admit::Yes,
            (_, None) => Admit::No("a request before authentication"),
            (Exchange::None, Some(believed)) => match believed.until {
                Some(until) if now >= until => {
                    Admit::No("a request after the authentication expired")
                }
                _ => Admit::Yes,
            },
            (_, Some(_)) => Admit::No("a request within a re-authentication"),
        }
    }

    /// Whether the next frame is no request but a bare token, for
    /// [`authenticate`](Self::authenticate).
    #[must_use]
    pub fn awaits_token(&self) -> bool {
        self.framing == Framing::Tokens
            && !matches!(self.exchange, Exchange::None | Exchange::Failed)
    }

    /// Answers a client that chooses a mechanism, by a request of `version`. An answer whose error
    /// code is not 0 goes out after [`FAILED_AUTHENTICATION_DELAY`], then the connection is closed.
    pub fn handshake(
        &mut self,
        request: &SaslHandshakeRequest,
        version: i16,
    ) -> SaslHandshakeResponse {
        let settings = self.server.settings();
        let offered = &settings.mechanisms;
        let mechanisms = offered.iter().map(ToString::to_string).collect();
        let chosen: Option<Mechanism> = request.mechanism.parse().ok();
        let error_code = match (&self.exchange, chosen.filter(|it| offered.contains(it))) {
            _ if version == 0 && self.believed.is_some() => ErrorCode::UnsupportedVersion,
            (Exchange::None, Some(mechanism)) => {
                self.exchange = Exchange::Chosen(mechanism);
                self.framing = if version == 0 { Framing::Tokens } else { Framing::Requests };
                ErrorCode::None
            }
            (Exchange::None, None) => ErrorCode::UnsupportedSaslMechanism,
            _ => ErrorCode::IllegalSaslState,
        };
        if error_code != ErrorCode::None {
            self.exchange = Exchange::Failed;
            let mechanism = shown(&request.mechanism);
            self.refusal = format!("it chose SASL mechanism {mechanism}: {error_code:?}");
        }
        SaslHandshakeResponse { error_code: error_code.code(), mechanisms }
    }

    /// Answers a client's message, of a SaslAuthenticate or a bare token, at `now`. Of the answer
    /// to a token only `auth_bytes` goes out, as a frame of its own, and nothing to a client that
    /// is refused, which is closed after [`FAILED_AUTHENTICATION_DELAY`].
    pub fn authenticate(
        &mut self,
        message: &[u8],
        now: Instant,
    ) -> (SaslAuthenticateResponse, SaslState) {
        let step = match std::mem::replace(&mut self.exchange, Exchange::Failed) {
            Exchange::None | Exchange::Failed => {
                let reason = "SaslAuthenticate without a SaslHandshake before it";
                return self.refuse(ErrorCode::IllegalSaslState, reason.to_owned());
            }
            _ if message.len() > AUTHENTICATION_BYTES_MAX => {
                Err("Authentication failed: the message is too long".to_owned())
            }
            exchange => self.step(exchange, message),
        };
        match step {
            Ok(Step::Challenge(next, answer)) => {
                self.exchange = next;
                (answered(answer), SaslState::Going)
            }
            Ok(Step::Done { user, answer, mechanism, expires_in }) => {
                match self.believe(&user, mechanism, expires_in, now) {
                    Ok((principal, lifetime)) => {
                        self.exchange = Exchange::None;
                        let mut response = answered(answer);
                        response.session_lifetime_ms = lifetime;
                        (response, SaslState::Authenticated(principal))
                    }
                    Err(reason) => self.refuse(ErrorCode::SaslAuthenticationFailed, reason),
                }
            }
            Err(reason) => self.refuse(ErrorCode::SaslAuthenticationFailed, reason),
        }
    }

    /// Takes one message. The error is the message for the client, in Kafka's words.
    fn step(&mut self, exchange: Exchange, message: &[u8]) -> Result<Step, String> {
        let mechanism = match exchange {
            Exchange::Chosen(mechanism) => mechanism,
            Exchange::Scram(exchange, mechanism) => {
                let last = exchange.last(message).map_err(|why| self.scram_refusal(mechanism, why));
                let (user, answer) = last?;
                let answer = answer.into_bytes();
                return Ok(Step::Done { user, answer, mechanism, expires_in: None });
            }
            Exchange::TokenRefused(challenge) if message == oauth_bearer::ACKNOWLEDGEMENT => {
                return Err(challenge);
            }
            Exchange::TokenRefused(_) => return Err(self.invalid(Mechanism::OAuthBearer)),
            Exchange::None | Exchange::Failed => return Err(String::new()),
        };
        if let Some(believed) = &self.believed
            && believed.mechanism != mechanism
        {
            return Err(format!(
                "SASL mechanism '{mechanism}' requested by client is not supported for \
                 re-authentication of mechanism '{}'",
                believed.mechanism
            ));
        }
        match mechanism {
            Mechanism::Plain => self.plain(message),
            Mechanism::ScramSha256 | Mechanism::ScramSha512 => {
                let look_up = |user: &str| self.server.look_up(mechanism, user);
                let nonce = scram::random_nonce();
                let (exchange, answer) = ServerExchange::first(mechanism, message, &nonce, look_up)
                    .map_err(|why| self.scram_refusal(mechanism, why))?;
                let next = Exchange::Scram(Box::new(exchange), mechanism);
                Ok(Step::Challenge(next, answer.into_bytes()))
            }
            Mechanism::OAuthBearer => self.bearer(message),
        }
    }

    fn plain(&self, message: &[u8]) -> Result<Step, String> {
        let mechanism = Mechanism::Plain;
        let PlainMessage { user, password } = PlainMessage::parse(message)
            .map_err(|words| words.map_or_else(|| self.invalid(mechanism), str::to_owned))?;
        if !self.server.settings().credentials.plain(user, password) {
            return Err("Authentication failed: Invalid username or password".to_owned());
        }
        let user = user.to_owned();
        Ok(Step::Done { user, answer: Vec::new(), mechanism, expires_in: None })
    }

    fn bearer(&mut self, message: &[u8]) -> Result<Step, String> {
        let mechanism = Mechanism::OAuthBearer;
        let Some(message) = BearerMessage::parse(message) else {
            return Err(self.invalid(mechanism));
        };
        // Present wherever the mechanism is offered, which may have been up to this message.
        let verifier = self.server.settings().tokens.clone();
        let verifier = verifier.ok_or_else(|| self.invalid(mechanism))?;
        let Verified { principal, expires_in } = match verifier.verify(message.token) {
            Ok(verified) => verified,
            Err(refusal) => {
                self.refusal = format!("invalid access token: {refusal}");
                let challenge = oauth_bearer::challenge(refusal.status(), refusal.scope());
                let answer = challenge.clone().into_bytes();
                return Ok(Step::Challenge(Exchange::TokenRefused(challenge), answer));
            }
        };
        if let Some(id) = message.authorization_id.filter(|id| *id != principal) {
            let (id, principal) = (shown(id), shown(&principal));
            return Err(format!(
                "Authentication failed: Client requested an authorization id ({id}) that is \
                 different from the token's principal name ({principal})"
            ));
        }
        let expires_in = Some(expires_in);
        Ok(Step::Done { user: principal, answer: Vec::new(), mechanism, expires_in })
    }

    /// Gives the principal and for how many milliseconds it is believed, 0 for ever.
    fn believe(
        &mut self,
        user: &str,
        mechanism: Mechanism,
        expires_in: Option<Duration>,
        now: Instant,
    ) -> Result<(Principal, i64), String> {
        let principal = Principal::user(user);
        if let Some(before) = self.principal().filter(|before| **before != principal) {
            return Err(format!(
                "Cannot change principals during re-authentication from {}.{}: {}.{}",
                before.kind(),
                shown(before.name()),
                principal.kind(),
                shown(principal.name())
            ));
        }
        let limits = [self.server.settings().max_reauthentication, expires_in];
        let lifetime = limits.into_iter().flatten().min();
        let until = lifetime.and_then(|lifetime| now.checked_add(lifetime));
        let lifetime_ms = until.and(lifetime).map_or(0, |lifetime| lifetime.as_millis());
        self.believed = Some(Believed { principal: principal.clone(), mechanism, until });
        Ok((principal, i64::try_from(lifetime_ms).unwrap_or(i64::MAX)))
    }

    fn refuse(&mut self, code: ErrorCode, reason: String) -> (SaslAuthenticateResponse, SaslState) {
        self.exchange = Exchange::Failed;
        if self.refusal.is_empty() {
            self.refusal.clone_from(&reason);
        }
        let (error_code, error_message) = (code.code(), Some(reason));
        let response = SaslAuthenticateResponse { error_code, error_message, ..Default::default() };
        (response, SaslState::Failed)
    }

    fn scram_refusal(&self, mechanism: Mechanism, refusal: Refusal) -> String {
        match refusal {
            Refusal::OtherAuthorizationId => OTHER_AUTHORIZATION_ID.to_owned(),
            Refusal::Malformed | Refusal::WrongCredentials => self.invalid(mechanism),
        }
    }

    fn invalid(&self, mechanism: Mechanism) -> String {
        let what = if self.believed.is_some() { "re-authentication" } else { "authentication" };
        format!(
            "Authentication failed during {what} due to invalid credentials with SASL mechanism \
             {mechanism}"
        )
    }
}

impl fmt::Debug for SaslSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SaslSession").field("principal", &self.principal()).finish_non_exhaustive()
    }
}

fn answered(answer: Vec<u8>) -> SaslAuthenticateResponse {
    let auth_bytes = Bytes::from(answer);
    SaslAuthenticateResponse { error_message: None, auth_bytes, ..Default::default() }
}

#[cfg(test)]
mod tests;
