//! SASL that the proxy answers: before a session, and again within it (KIP-368).

use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use bytes::BytesMut;
use moldau_net::sasl::{
    AUTHENTICATION_BYTES_MAX, Admit, FAILED_AUTHENTICATION_DELAY, SaslServer, SaslSession,
    SaslState,
};
use moldau_net::{Refusal, Stream};
use moldau_protocol::frame::{self, RequestHeader};
use moldau_protocol::messages::api_versions_response::ApiVersion;
use moldau_protocol::messages::{
    ApiVersionsRequest, ApiVersionsResponse, SaslAuthenticateRequest, SaslHandshakeRequest,
};
use moldau_protocol::{ApiKey, DecodeError, EncodeError, ErrorCode, Message, Reader};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::{sleep, timeout_at};

use crate::cluster::Cluster;
use crate::context::SessionContext;
use crate::filter::{FilterFuture, RequestOutcome, SessionFilter};
use crate::frame::RequestFrame;
use crate::rewrite;
use crate::upstream::Upstream;

/// Why a client gets no session.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Refused {
    #[error("no authentication in time")]
    TimedOut,
    #[error("{0}")]
    Credentials(String),
    #[error("{0} before authentication")]
    TooEarly(ApiKey),
    #[error("a frame of {0} bytes before authentication")]
    FrameLength(u32),
    #[error("malformed request: {0}")]
    Broken(#[from] DecodeError),
    #[error("failed to respond: {0}")]
    Unanswerable(#[from] EncodeError),
    #[error("connection lost: {0}")]
    Io(#[from] io::Error),
}

impl Refused {
    /// The refusal to count, unless the client just went away.
    pub(crate) fn cause(&self) -> Option<Refusal> {
        match self {
            Self::TimedOut => Some(Refusal::AuthenticationTimeout),
            Self::Credentials(_) => Some(Refusal::Authentication),
            Self::FrameLength(_) => Some(Refusal::FrameOversized),
            Self::TooEarly(_) | Self::Broken(_) | Self::Unanswerable(_) => {
                Some(Refusal::FrameRefused)
            }
            Self::Io(_) => None,
        }
    }
}

/// Authenticates a client by `deadline`. Nothing that it sent is left unread, and nothing behind it
/// is read.
pub(crate) async fn authenticate(
    stream: &mut Stream,
    cluster: &Arc<Cluster>,
    server: &Arc<SaslServer>,
    context: &SessionContext,
    deadline: tokio::time::Instant,
) -> Result<(), Refused> {
    let mut session = SaslSession::new(Arc::clone(server));
    let exchange = async {
        while !step(stream, cluster, &mut session, context).await? {}
        Ok::<_, Refused>(())
    };
    timeout_at(deadline, exchange).await.map_err(|_| Refused::TimedOut)??;
    context.set_sasl(session);
    Ok(())
}

/// Answers one request; whether the client has authenticated by it.
async fn step(
    stream: &mut Stream,
    cluster: &Arc<Cluster>,
    session: &mut SaslSession,
    context: &SessionContext,
) -> Result<bool, Refused> {
    let frame = read_frame(stream).await?;
    if session.awaits_token() {
        return take_token(stream, session, context, &frame).await;
    }
    let peek = frame::peek(&frame)?;
    let api = ApiKey::try_from(peek.api_key)?;
    if matches!(session.admits(api, Instant::now()), Admit::No(_)) {
        return Err(Refused::TooEarly(api));
    }
    if api == ApiKey::ApiVersions {
        let (version, answer) = offer(cluster, peek.api_version, &frame).await?;
        write(stream, api, version, peek.correlation_id, &answer).await?;
        return Ok(false);
    }
    let (header, body) = RequestHeader::parse(&frame)?;
    let RequestHeader { api_version, correlation_id, .. } = header;
    let mut body = Reader::new(body);
    if api == ApiKey::SaslHandshake {
        let request = SaslHandshakeRequest::decode(&mut body, api_version)?;
        let answer = session.handshake(&request, api_version);
        if answer.error_code != 0 {
            sleep(FAILED_AUTHENTICATION_DELAY).await;
        }
        write(stream, api, api_version, correlation_id, &answer).await?;
        return match answer.error_code {
            0 => Ok(false),
            _ => Err(Refused::Credentials(session.refusal().to_owned())),
        };
    }
    let request = SaslAuthenticateRequest::decode(&mut body, api_version)?;
    let (answer, state) = session.authenticate(&request.auth_bytes, Instant::now());
    if matches!(state, SaslState::Failed) {
        sleep(FAILED_AUTHENTICATION_DELAY).await;
    }
    write(stream, api, api_version, correlation_id, &answer).await?;
    proceed(state, session, context)
}

/// Answers a token that comes without a request around it; whether the client has authenticated by
/// it.
async fn take_token(
    stream: &mut Stream,
    session: &mut SaslSession,
    context: &SessionContext,
    token: &[u8],
) -> Result<bool, Refused> {
    let (answer, state) = session.authenticate(token, Instant::now());
    if matches!(state, SaslState::Failed) {
        sleep(FAILED_AUTHENTICATION_DELAY).await;
        return Err(Refused::Credentials(session.refusal().to_owned()));
    }
    let answer = answer.auth_bytes;
    stream
        .write_u32(u32::try_from(answer.len()).expect("the tokens of a server are short"))
        .await?;
    stream.write_all(&answer).await?;
    stream.flush().await?;
    proceed(state, session, context)
}

/// Whether the client has authenticated.
fn proceed(
    state: SaslState,
    session: &SaslSession,
    context: &SessionContext,
) -> Result<bool, Refused> {
    match state {
        SaslState::Going => Ok(false),
        SaslState::Failed => Err(Refused::Credentials(session.refusal().to_owned())),
        SaslState::Authenticated(principal) => {
            context.set_principal(principal);
            Ok(true)
        }
    }
}

async fn read_frame(stream: &mut Stream) -> Result<Vec<u8>, Refused> {
    let length = stream.read_u32().await?;
    if !usize::try_from(length).is_ok_and(|length| length <= AUTHENTICATION_BYTES_MAX) {
        return Err(Refused::FrameLength(length));
    }
    let mut frame = Vec::new();
    if stream.take(length.into()).read_to_end(&mut frame).await? as u64 != u64::from(length) {
        return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
    }
    Ok(frame)
}

async fn write<M: Message>(
    stream: &mut Stream,
    api: ApiKey,
    version: i16,
    correlation_id: i32,
    answer: &M,
) -> Result<(), Refused> {
    let mut bytes = BytesMut::new();
    frame::encode_response(&mut bytes, api, version, correlation_id, answer)?;
    stream.write_all(&bytes).await?;
    stream.flush().await?;
    Ok(())
}

/// The APIs that the cluster serves, which a client may see before it has authenticated, and the
/// version of that answer.
async fn offer(
    cluster: &Arc<Cluster>,
    version: i16,
    frame: &[u8],
) -> Result<(i16, ApiVersionsResponse), Refused> {
    let versions = ApiKey::ApiVersions.valid_versions();
    if !versions.contains(version) {
        // The answer to a version that is not served is of version 0 and says which are (KIP-511).
        let served = ApiVersion {
            api_key: ApiKey::ApiVersions.key(),
            min_version: versions.min,
            max_version: versions.max,
            ..Default::default()
        };
        let error_code = ErrorCode::UnsupportedVersion.into();
        let api_keys = vec![served];
        return Ok((0, ApiVersionsResponse { error_code, api_keys, ..Default::default() }));
    }
    let (_header, body) = RequestHeader::parse(frame)?;
    if !ApiVersionsRequest::decode(&mut Reader::new(body), version)?.names_software(version) {
        let error_code = ErrorCode::InvalidRequest.into();
        return Ok((version, ApiVersionsResponse { error_code, ..Default::default() }));
    }
    let mut answer = (*cluster.api_versions().await).clone();
    let chain = cluster.chains().current();
    rewrite::offer(&mut answer, &chain);
    // The proxy answers these itself, independently of the cluster.
    for api in [ApiKey::SaslHandshake, ApiKey::SaslAuthenticate] {
        let versions = api.valid_versions();
        answer.api_keys.retain(|offered| offered.api_key != api.key());
        answer.api_keys.push(ApiVersion {
            api_key: api.key(),
            min_version: versions.min,
            max_version: versions.max,
            ..Default::default()
        });
    }
    Ok((version, answer))
}

/// Answers the SASL of a session that has begun.
pub(super) struct Terminator {
    context: SessionContext,
}

impl Terminator {
    pub(super) fn new(context: SessionContext) -> Self {
        Self { context }
    }
}

impl SessionFilter for Terminator {
    fn request(self: Rc<Self>, request: RequestFrame, _: Upstream) -> FilterFuture<RequestOutcome> {
        Box::pin(async move {
            let session = self.context.sasl().ok_or("there is no SASL session")?;
            if request.api_key() == ApiKey::SaslHandshake {
                let message = request.decode()?;
                let answer = session.borrow_mut().handshake(&message, request.api_version());
                let response = request.respond(&answer)?;
                if answer.error_code == 0 {
                    return Ok(RequestOutcome::Respond(response));
                }
                sleep(FAILED_AUTHENTICATION_DELAY).await;
                return Ok(RequestOutcome::RespondAndClose(response));
            }
            let message: SaslAuthenticateRequest = request.decode()?;
            let (answer, state) =
                session.borrow_mut().authenticate(&message.auth_bytes, Instant::now());
            let answer = request.respond(&answer)?;
            match state {
                SaslState::Going => {}
                SaslState::Authenticated(principal) => self.context.set_principal(principal),
                SaslState::Failed => {
                    sleep(FAILED_AUTHENTICATION_DELAY).await;
                    return Ok(RequestOutcome::RespondAndClose(answer));
                }
            }
            Ok(RequestOutcome::Respond(answer))
        })
    }
}
