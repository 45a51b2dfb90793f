//! TLS, SASL and its repetition (KIP-368).

use std::sync::{Arc, Weak};
use std::time::Duration;

use moldau_net::sasl::{SaslClient, SaslExchange, SaslStep};
use moldau_net::tls::ClientTls;
use moldau_net::{SaslError, Stream, TlsError};
use moldau_protocol::messages::SaslAuthenticateRequest;
use moldau_protocol::{Message, Request};
use tokio::net::TcpStream;

use super::{ConnectionOptions, Permit, Shared};
use crate::wire::{self, Address};
use crate::{Error, Result};

/// Encryption and credentials of connections. Default: neither.
#[derive(Clone, Debug, Default)]
pub struct Security {
    /// TLS, with our certificate if the broker asks for one.
    pub tls: Option<Arc<ClientTls>>,
    /// SASL, over TLS where there is both.
    pub sasl: Option<Arc<SaslClient>>,
}

/// Gives the secured stream and how long the broker believes us, if it limits that.
pub(super) async fn secure(
    socket: TcpStream,
    address: &Address,
    name: &Arc<str>,
    options: &ConnectionOptions,
) -> Result<(Stream, Option<Duration>)> {
    let mut stream = match &options.security.tls {
        None => Stream::from(socket),
        Some(tls) => {
            let secured = tls.connect(socket, &address.host).await;
            secured.map_err(|error| tls_error(error, name))?
        }
    };
    let lifetime = match &options.security.sasl {
        None => None,
        Some(sasl) => {
            let authenticated = sasl.authenticate(&mut stream, &options.client_id).await;
            authenticated.map_err(|error| sasl_error(error, name, sasl))?
        }
    };
    Ok((stream, lifetime))
}

/// What is wrong with a connection that failed with `error`.
pub(super) fn tls_error(error: TlsError, address: &Arc<str>) -> Error {
    match error {
        TlsError::Io(source) => {
            Error::Connect { address: address.clone(), source: Arc::new(source) }
        }
        refused => Error::Tls { address: address.clone(), reason: refused.to_string().into() },
    }
}

/// What is wrong with an authentication that failed with `error`, and whose it was.
fn sasl_error(error: SaslError, address: &Arc<str>, sasl: &SaslClient) -> Error {
    let words = match error {
        // A server that refuses our certificate under TLS 1.3 says so with the first read.
        SaslError::Io(source) => return tls_error(source.into(), address),
        SaslError::Refused { message, .. } => message,
        refused => refused.to_string(),
    };
    let mechanism = sasl.mechanism().name();
    let reason = match sasl.user() {
        Some(user) => format!("user {user} by {mechanism}: {words}"),
        None => format!("{mechanism}: {words}"),
    };
    Error::Authentication { address: address.clone(), reason: reason.into() }
}

/// Starts the task that authenticates again before `lifetime` is over, and so on.
pub(super) fn keep_authenticated(
    shared: &Arc<Shared>,
    sasl: Arc<SaslClient>,
    lifetime: Duration,
    in_flight_max: usize,
) {
    let task = tokio::spawn(repeat(Arc::downgrade(shared), sasl, lifetime, in_flight_max));
    let first = shared.reauthentication.set(task.abort_handle());
    assert!(first.is_ok(), "a connection is made once");
}

async fn repeat(
    shared: Weak<Shared>,
    sasl: Arc<SaslClient>,
    mut lifetime: Duration,
    in_flight_max: usize,
) {
    loop {
        tokio::time::sleep(lifetime.mul_f64(fastrand::f64().mul_add(SPREAD, EARLIEST))).await;
        let Some(shared) = shared.upgrade() else { return };
        // Kafka demands that nothing else is in flight. Waiting tasks get the result.
        let all = u32::try_from(in_flight_max).unwrap_or(u32::MAX);
        let Ok(_all) = shared.in_flight.acquire_many(all).await else { return };
        match authenticate_again(&shared, &sasl).await {
            Ok(Some(next)) => lifetime = next,
            Ok(None) => return,
            Err(error) => {
                tracing::warn!(address = %shared.address, %error, "re-authentication failed");
                // The first failure counts.
                drop(shared.failure.set(error));
                shared.in_flight.close();
                return;
            }
        }
    }
}

async fn authenticate_again(shared: &Shared, sasl: &SaslClient) -> Result<Option<Duration>> {
    let failed = |error| sasl_error(error, &shared.address, sasl);
    let mut exchange = sasl.begin().await.map_err(failed)?;
    let version = SaslExchange::HANDSHAKE_VERSION;
    let response = call(shared, &exchange.handshake(), version).await?;
    let mut request = exchange.chosen(&response).map_err(failed)?;
    let version =
        shared.version(SaslAuthenticateRequest::KEY, SaslAuthenticateRequest::VERSIONS)?;
    loop {
        let response = call(shared, &request, version).await?;
        match exchange.answered(&response).map_err(failed)? {
            SaslStep::Send(next) => request = next,
            SaslStep::Done { lifetime } => return Ok(lifetime),
        }
    }
}

async fn call<R: Request>(shared: &Shared, request: &R, version: i16) -> Result<R::Response> {
    let permit = Permit { _held: None };
    let frame = shared.call_with(permit, request, version, shared.request_timeout).await?;
    wire::decode_answer(&frame, R::KEY, version, &shared.address)
}

/// Part of a lifetime after which it is renewed at the earliest, and by how much that is spread so
/// that many connections do not do it at once; Kafka's own figures.
const EARLIEST: f64 = 0.85;
const SPREAD: f64 = 0.10;
