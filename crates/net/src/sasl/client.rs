//! The client's side: whose credentials, and one authentication with them.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use moldau_protocol::messages::{
    SaslAuthenticateRequest, SaslAuthenticateResponse, SaslHandshakeRequest, SaslHandshakeResponse,
};
use moldau_protocol::{DecodeError, EncodeError, ErrorCode, Message, Reader, Request, frame};
use moldau_threads::Mutex;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use zeroize::Zeroizing;

use super::mechanism::Mechanism;
use super::scram::{self, ClientExchange, SaltedPassword};
use super::{oauth_bearer, plain};
use crate::error::SaslError;

/// What a client proves itself with. Shows no secrets.
pub enum SaslCredentials {
    /// PLAIN.
    Plain {
        /// The user's name.
        user: String,
        /// In clear text.
        password: Zeroizing<String>,
    },
    /// SCRAM.
    Scram {
        /// [`Mechanism::ScramSha256`] or [`Mechanism::ScramSha512`].
        mechanism: Mechanism,
        /// The user's name.
        user: String,
        /// In clear text; it never leaves this process.
        password: Zeroizing<String>,
    },
    /// OAUTHBEARER.
    OAuthBearer {
        /// Asked for a token before each authentication.
        tokens: Arc<dyn TokenSource>,
        /// Sent beside the token (KIP-342): names of letters, and values.
        extensions: Vec<(String, String)>,
    },
}

/// Gives access tokens.
pub trait TokenSource: Send + Sync {
    /// A token that holds for some while.
    fn token(&self) -> TokenFuture<'_>;
}

/// A token to come.
pub type TokenFuture<'a> =
    Pin<Box<dyn Future<Output = Result<Zeroizing<String>, SaslError>> + Send + 'a>>;

/// One and the same token each time.
pub struct StaticToken(Zeroizing<String>);

impl StaticToken {
    /// A source that gives `token`.
    #[must_use]
    pub fn new(token: Zeroizing<String>) -> Self {
        Self(token)
    }
}

impl TokenSource for StaticToken {
    fn token(&self) -> TokenFuture<'_> {
        Box::pin(std::future::ready(Ok(self.0.clone())))
    }
}

/// The client's side of SASL, shared by all connections with the same credentials.
pub struct SaslClient {
    credentials: SaslCredentials,
    /// Guards what SCRAM's many hashes yielded, which is the same for all connections as long as
    /// the server's salt is; never held across a wait.
    salted: Mutex<Option<SaltedPassword>>,
}

impl SaslClient {
    /// # Errors
    /// [`SaslError::Settings`]: the mechanism is none of SCRAM, or an extension cannot be sent.
    pub fn new(credentials: SaslCredentials) -> Result<Self, SaslError> {
        let invalid = |reason: String| Err(SaslError::Settings(reason));
        match &credentials {
            SaslCredentials::Scram {
                mechanism: mechanism @ (Mechanism::Plain | Mechanism::OAuthBearer),
                ..
            } => return invalid(format!("{mechanism} is not a mechanism of SCRAM")),
            SaslCredentials::OAuthBearer { extensions, .. } => {
                for (key, value) in extensions {
                    let letters = key.bytes().all(|byte| byte.is_ascii_alphabetic());
                    let printable = value.bytes().all(|byte| matches!(byte, 0x20..=0x7e));
                    if key.is_empty() || key == "auth" || !letters || !printable || value.is_empty()
                    {
                        return invalid(format!("the extension {key:?} cannot be sent"));
                    }
                }
            }
            SaslCredentials::Plain { .. } | SaslCredentials::Scram { .. } => {}
        }
        Ok(Self { credentials, salted: Mutex::new(None) })
    }

    /// The mechanism of the credentials.
    #[must_use]
    pub fn mechanism(&self) -> Mechanism {
        match &self.credentials {
            SaslCredentials::Plain { .. } => Mechanism::Plain,
            SaslCredentials::Scram { mechanism, .. } => *mechanism,
            SaslCredentials::OAuthBearer { .. } => Mechanism::OAuthBearer,
        }
    }

    /// Whose credentials they are; `None` where a token says it.
    #[must_use]
    pub fn user(&self) -> Option<&str> {
        match &self.credentials {
            SaslCredentials::Plain { user, .. } | SaslCredentials::Scram { user, .. } => Some(user),
            SaslCredentials::OAuthBearer { .. } => None,
        }
    }

    /// Begins an authentication.
    ///
    /// # Errors
    /// [`SaslError::Token`]: the source gave none.
    pub async fn begin(&self) -> Result<SaslExchange<'_>, SaslError> {
        let progress = match &self.credentials {
            SaslCredentials::Plain { user, password } => {
                Progress::Single(plain::message(user, password))
            }
            SaslCredentials::Scram { mechanism, user, password } => {
                let nonce = scram::random_nonce();
                let exchange = ClientExchange::new(*mechanism, user, password.clone(), nonce);
                Progress::Scram(exchange)
            }
            SaslCredentials::OAuthBearer { tokens, extensions } => {
                let token = tokens.token().await?;
                Progress::Single(Zeroizing::new(oauth_bearer::message(&token, extensions)))
            }
        };
        Ok(SaslExchange { client: self, progress })
    }

    /// Authenticates on a stream that nothing else uses meanwhile, and reads not a byte beyond the
    /// last answer. Gives how long the server believes us, if it limits that. The caller bounds
    /// the time.
    ///
    /// # Errors
    /// The server refuses, is not who it should be, or breaks the protocol.
    pub async fn authenticate<S: AsyncRead + AsyncWrite + Unpin>(
        &self,
        stream: &mut S,
        client_id: &str,
    ) -> Result<Option<Duration>, SaslError> {
        let mut exchange = self.begin().await?;
        let mut correlation_id = 0;
        let request = exchange.handshake();
        let response = call(stream, &request, HANDSHAKE_VERSION, correlation_id, client_id).await?;
        let mut request = exchange.chosen(&response)?;
        loop {
            correlation_id += 1;
            let version = AUTHENTICATE_VERSION;
            let response = call(stream, &request, version, correlation_id, client_id).await?;
            match exchange.answered(&response)? {
                SaslStep::Send(next) => request = next,
                SaslStep::Done { lifetime } => return Ok(lifetime),
            }
        }
    }
}

impl fmt::Debug for SaslClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SaslClient").field("mechanism", &self.mechanism()).finish_non_exhaustive()
    }
}

/// Next step of an authentication.
#[derive(Debug)]
pub enum SaslStep {
    /// Send this.
    Send(SaslAuthenticateRequest),
    /// The server believes us.
    Done {
        /// For how long, if it limits that: authenticate again before (KIP-368).
        lifetime: Option<Duration>,
    },
}

/// One authentication, message by message, for those who own the connection's frames.
pub struct SaslExchange<'a> {
    client: &'a SaslClient,
    progress: Progress,
}

enum Progress {
    /// One message says it all.
    Single(Zeroizing<Vec<u8>>),
    /// That message is under way.
    SingleSent,
    Scram(ClientExchange),
    ScramFirstSent(ClientExchange),
    ScramLastSent(ClientExchange),
    /// The server has said why it does not believe a token, and says it again as an error.
    ChallengeTaken,
    Over,
}

impl SaslExchange<'_> {
    /// Version of SaslHandshake that this is for.
    pub const HANDSHAKE_VERSION: i16 = HANDSHAKE_VERSION;

    /// The request to begin with, of version [`Self::HANDSHAKE_VERSION`].
    #[must_use]
    pub fn handshake(&self) -> SaslHandshakeRequest {
        SaslHandshakeRequest { mechanism: self.client.mechanism().name().to_owned() }
    }

    /// Takes the answer to [`handshake`](Self::handshake) and gives the first message.
    ///
    /// # Errors
    /// [`SaslError::MechanismNotOffered`], [`SaslError::Refused`].
    pub fn chosen(
        &mut self,
        response: &SaslHandshakeResponse,
    ) -> Result<SaslAuthenticateRequest, SaslError> {
        match code(response.error_code) {
            ErrorCode::None => {}
            ErrorCode::UnsupportedSaslMechanism => {
                let mechanism = self.client.mechanism().name();
                let offered = response.mechanisms.clone();
                return Err(SaslError::MechanismNotOffered { mechanism, offered });
            }
            code => return Err(SaslError::Refused { code, message: format!("{code:?}") }),
        }
        match std::mem::replace(&mut self.progress, Progress::Over) {
            Progress::Single(message) => {
                self.progress = Progress::SingleSent;
                Ok(request(&message))
            }
            Progress::Scram(exchange) => {
                let message = exchange.first();
                self.progress = Progress::ScramFirstSent(exchange);
                Ok(request(message.as_bytes()))
            }
            _ => Err(self.out_of_order()),
        }
    }

    /// Takes the answer to a message.
    ///
    /// # Errors
    /// The server refuses, is not who it should be, or breaks the protocol.
    pub fn answered(&mut self, response: &SaslAuthenticateResponse) -> Result<SaslStep, SaslError> {
        let code = code(response.error_code);
        if code != ErrorCode::None {
            let message = response.error_message.clone();
            let message = message.unwrap_or_else(|| format!("{code:?}"));
            return Err(SaslError::Refused { code, message });
        }
        let answer = &response.auth_bytes;
        match std::mem::replace(&mut self.progress, Progress::Over) {
            Progress::SingleSent if answer.is_empty() => Ok(done(response)),
            Progress::SingleSent if self.client.mechanism() == Mechanism::OAuthBearer => {
                self.progress = Progress::ChallengeTaken;
                Ok(SaslStep::Send(request(oauth_bearer::ACKNOWLEDGEMENT)))
            }
            Progress::ScramFirstSent(mut exchange) => {
                let salted = &self.client.salted;
                let mut kept = salted.lock().clone();
                let message = exchange.last(answer, &mut kept)?;
                *salted.lock() = kept;
                self.progress = Progress::ScramLastSent(exchange);
                Ok(SaslStep::Send(request(message.as_bytes())))
            }
            Progress::ScramLastSent(exchange) => {
                exchange.verify(answer)?;
                Ok(done(response))
            }
            _ => Err(self.out_of_order()),
        }
    }

    fn out_of_order(&self) -> SaslError {
        let mechanism = self.client.mechanism().name();
        SaslError::Exchange { mechanism, reason: "the server's answer comes out of order" }
    }
}

impl fmt::Debug for SaslExchange<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SaslExchange").field("client", &self.client).finish_non_exhaustive()
    }
}

fn code(code: i16) -> ErrorCode {
    ErrorCode::try_from(code).unwrap_or(ErrorCode::UnknownServerError)
}

fn request(message: &[u8]) -> SaslAuthenticateRequest {
    let auth_bytes = Bytes::copy_from_slice(message);
    SaslAuthenticateRequest { auth_bytes, ..Default::default() }
}

fn done(response: &SaslAuthenticateResponse) -> SaslStep {
    let lifetime = u64::try_from(response.session_lifetime_ms).ok().filter(|ms| *ms > 0);
    SaslStep::Done { lifetime: lifetime.map(Duration::from_millis) }
}

/// Sends a request and waits for its answer.
async fn call<S: AsyncRead + AsyncWrite + Unpin, Q: Request>(
    stream: &mut S,
    request: &Q,
    version: i16,
    correlation_id: i32,
    client_id: &str,
) -> Result<Q::Response, SaslError> {
    let mut out = BytesMut::new();
    frame::encode_request(&mut out, version, correlation_id, Some(client_id), request)
        .map_err(|error: EncodeError| SaslError::Malformed(error.to_string()))?;
    stream.write_all(&out).await?;
    stream.flush().await?;
    let mut prefix = [0; frame::LENGTH_SIZE];
    stream.read_exact(&mut prefix).await?;
    let length = usize::try_from(i32::from_be_bytes(prefix)).unwrap_or(usize::MAX);
    if length > ANSWER_BYTES_MAX {
        return Err(SaslError::Malformed(format!("its length is {}", i32::from_be_bytes(prefix))));
    }
    let mut answer = vec![0; length];
    stream.read_exact(&mut answer).await?;
    let malformed = |error: DecodeError| SaslError::Malformed(error.to_string());
    let (id, body) = frame::parse_response(&answer, Q::KEY, version).map_err(malformed)?;
    if id != correlation_id {
        return Err(SaslError::Malformed("it answers another request".to_owned()));
    }
    Message::decode(&mut Reader::new(body), version).map_err(malformed)
}

/// SaslHandshake that is followed by SaslAuthenticate; served since Kafka 1.0.
const HANDSHAKE_VERSION: i16 = 1;

/// Served since Kafka 2.5.
const AUTHENTICATE_VERSION: i16 = 2;

/// No answer within an authentication is longer than a challenge or a list of mechanisms.
const ANSWER_BYTES_MAX: usize = 512 * 1024;
