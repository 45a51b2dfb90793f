//! A request on its way through a handler: where it came from, what the handler makes of it, and
//! the bytes of the answer.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use moldau_net::{MemoryAccount, Principal, Reply, Response};
use moldau_protocol::frame::{self, RequestHeader};
use moldau_protocol::messages::ApiVersionsRequest;
use moldau_protocol::{ApiKey, ErrorCode, Message};
use moldau_storage::{Admission, Lsn};
use tokio::runtime::Handle;

pub(crate) use crate::config::DURABLE_WITHIN;
use crate::config::ListenerConfig;
use crate::error::Refusal;
use crate::nodes::Members;
use crate::quotas::QuotaClient;
use crate::rights::Rights;
use crate::share_session::ConnectionId;
use crate::state::State;
use crate::storage::Storage;

/// An answer that takes time.
pub(crate) type Later<T> = Pin<Box<dyn Future<Output = T>>>;

/// What a handler makes of a request.
pub(crate) enum Outcome<R> {
    /// The answer is there.
    Now(R),
    /// The answer waits for the disk, for data or for other members of a group.
    Later(Later<R>),
}

/// A request and where it came from.
pub(crate) struct Call<'a> {
    pub(crate) state: &'a Arc<State>,
    /// Who the client is.
    pub(crate) principal: &'a Principal,
    pub(crate) version: i16,
    pub(crate) client_id: &'a str,
    /// The client's address.
    pub(crate) peer: SocketAddr,
    /// The address that the client connected to.
    pub(crate) local: SocketAddr,
    /// The listener by which the client came.
    pub(crate) listener: &'a ListenerConfig,
    /// Quotas of the client.
    pub(crate) client: &'a Rc<QuotaClient>,
    /// What the client runs on.
    pub(crate) software: &'a RefCell<Software>,
    /// For how long what the request did throttles the client.
    pub(crate) throttle_ms: Cell<i32>,
    /// What the client may do.
    pub(crate) rights: Rights,
    /// Milliseconds since the epoch when the request arrived.
    pub(crate) now_ms: i64,
    /// The place of the request's bytes under the limit of unflushed bytes. Who appends them takes
    /// it by [`Appended`].
    pub(crate) admission: Cell<Option<Admission>>,
    /// Whom memory for the request is given to: its connection.
    pub(crate) memory: &'a MemoryAccount,
    /// The connection itself.
    pub(crate) connection: ConnectionId,
}

/// The software of a client (KIP-511).
#[derive(Clone, Debug)]
pub(crate) struct Software {
    pub(crate) name: Box<str>,
    pub(crate) version: Box<str>,
}

impl Software {
    /// What a request for versions says of it.
    pub(crate) fn of(request: &ApiVersionsRequest, version: i16) -> Option<Self> {
        let is_named = !request.client_software_name.is_empty() && request.names_software(version);
        is_named.then(|| Self {
            name: request.client_software_name.as_str().into(),
            version: request.client_software_version.as_str().into(),
        })
    }
}

/// Kafka's words for what is not known.
impl Default for Software {
    fn default() -> Self {
        Self { name: "unknown".into(), version: "unknown".into() }
    }
}

/// Where clients reach the broker.
pub(crate) struct Endpoint {
    pub(crate) host: String,
    pub(crate) port: i32,
}

impl Call<'_> {
    /// Throttles the client for so many milliseconds, if it is not for longer.
    pub(crate) fn throttle(&self, throttle_ms: i32) {
        self.throttle_ms.set(self.throttle_ms.get().max(throttle_ms));
    }

    /// Counts partitions that the client is about to create or delete. From version `strict_since`
    /// on, it must not have exceeded its quota before (KIP-599).
    ///
    /// # Errors
    /// `THROTTLING_QUOTA_EXCEEDED`.
    pub(crate) fn mutate(&self, partitions: u32, strict_since: i16) -> Result<(), Refusal> {
        let is_strict = self.version >= strict_since;
        let partitions = f64::from(partitions);
        let counted =
            self.client.record_mutations(self.client_id, partitions, is_strict, self.now_ms);
        let (throttle_ms, counted) = match counted {
            Ok(throttle_ms) => (throttle_ms, Ok(())),
            Err((throttle_ms, refusal)) => (throttle_ms, Err(refusal)),
        };
        self.throttle(throttle_ms);
        counted
    }

    /// The brokers that the client is told of.
    pub(crate) fn members(&self) -> Arc<Members> {
        self.state.nodes.members(|| {
            let Endpoint { host, port } = self.endpoint();
            (host, port)
        })
    }

    /// The listener's advertised address, or else the address over which this client came, since
    /// that one certainly works for it.
    pub(crate) fn endpoint(&self) -> Endpoint {
        match &self.listener.advertised {
            Some(advertised) => {
                Endpoint { host: advertised.host.clone(), port: i32::from(advertised.port) }
            }
            None => Endpoint {
                host: self.local.ip().to_canonical().to_string(),
                port: i32::from(self.local.port()),
            },
        }
    }
}

/// The place of a request's bytes under the limit of unflushed bytes from their append on. It is
/// kept until they are durable, whoever drops this: they wait in memory also where no answer is
/// wanted and where the client has gone.
pub(crate) struct Appended {
    state: Arc<State>,
    admission: Option<Admission>,
    /// What was appended last.
    pub(crate) lsn: Lsn,
}

impl Appended {
    /// Takes the admission of the call.
    pub(crate) fn of(call: &Call<'_>, lsn: Lsn) -> Self {
        Self::new(Arc::clone(call.state), call.admission.take(), lsn)
    }

    /// Of bytes that have this admission.
    pub(crate) fn new(state: Arc<State>, admission: Option<Admission>, lsn: Lsn) -> Self {
        Self { state, admission, lsn }
    }
}

impl Drop for Appended {
    fn drop(&mut self) {
        let storage = &self.state.storage;
        let Some(admission) = self.admission.take() else { return };
        // Without a runtime the thread ends, and nothing more is taken from anybody.
        let Ok(runtime) = Handle::try_current() else { return };
        if storage.durable() < self.lsn {
            let durable = storage.wait_durable(self.lsn);
            runtime.spawn(async move {
                // A journal that failed holds no bytes either.
                let _is_durable = durable.await;
                drop(admission);
            });
        }
    }
}

/// A flush may take so long whatever the client says: Kafka with one replica answers at once.
const PATIENCE_MIN: Duration = Duration::from_secs(1);

/// How long a request waits for the disk whose client gives it so many milliseconds.
pub(crate) fn patience(timeout_ms: i32) -> Duration {
    Duration::from_millis(u64::try_from(timeout_ms).unwrap_or(0)).max(PATIENCE_MIN)
}

/// Waits until what was written up to a position is durable.
///
/// # Errors
/// That of [`Storage::lost`]. `REQUEST_TIMED_OUT`, after which clients ask again, if it takes
/// longer than `patience`; it may come true later.
pub(crate) async fn durable_within(
    patience: Duration,
    storage: &Storage,
    lsn: Lsn,
) -> Result<(), Refusal> {
    match tokio::time::timeout(patience, storage.wait_durable(lsn)).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(_failed)) => Err(storage.lost()),
        Err(_elapsed) => {
            let message = "the disk did not confirm the change in time; it may still take effect";
            Err(Refusal::new(ErrorCode::RequestTimedOut, message))
        }
    }
}

/// Answers once the journal is durable up to `lsn`, or cannot be in time: see [`durable_within`].
pub(crate) fn once_durable<R: 'static>(
    call: &Call<'_>,
    lsn: Lsn,
    patience: Duration,
    answer: impl FnOnce(Result<(), Refusal>) -> R + 'static,
) -> Outcome<R> {
    let storage = call.state.storage.clone();
    Outcome::Later(Box::pin(async move { answer(durable_within(patience, &storage, lsn).await) }))
}

/// Kafka's most records of a request of an administrator.
const CHANGES_MAX: usize = 10_000;

/// What Kafka says of a request with more.
pub(crate) const TOO_MANY_CHANGES: &str = "Unable to perform excessively large batch operation.";

/// Checks how many things a request changes, since it is decided at one go. A topic counts once,
/// however many partitions it has.
///
/// # Errors
/// `POLICY_VIOLATION`.
pub(crate) fn check_changes(count: usize, message: &str) -> Result<(), Refusal> {
    match count {
        ..=CHANGES_MAX => Ok(()),
        _ => Err(Refusal::new(ErrorCode::PolicyViolation, message)),
    }
}

/// Elements of a request or an answer, such as partitions, that are gone through before other
/// connections of the thread get their turn: some tens to hundreds of microseconds of work.
const ELEMENTS_PER_TURN: usize = 4096;

/// Shares the network thread while something long is gone through.
#[derive(Default)]
pub(crate) struct Turns {
    done: usize,
}

impl Turns {
    /// Counts elements that were dealt with, and gives way once there were enough of them.
    pub(crate) async fn step(&mut self, elements: usize) {
        self.done = self.done.saturating_add(elements);
        if self.done >= ELEMENTS_PER_TURN {
            self.done = 0;
            tokio::task::yield_now().await;
        }
    }
}

/// Why a connection ends whose answer has no form. A log line names the defect.
pub(crate) const NOT_ENCODED: &str = "failed to encode the response";

/// What [`moldau_net::Service::call`] returns for a request.
pub(crate) type Served = Reply<Later<Response>>;

/// Encodes an outcome as the answer to the request of this header, of which so many bytes are kept
/// in memory until then.
pub(crate) fn answer<R: Message + 'static>(
    header: &RequestHeader<'_>,
    outcome: Outcome<R>,
    kept: usize,
) -> Served {
    let (key, version, correlation) = (header.api_key, header.api_version, header.correlation_id);
    match outcome {
        Outcome::Now(response) => encoded(key, version, correlation, &response),
        Outcome::Later(response) => {
            let answer = Box::pin(async move {
                let response = response.await;
                encode_or_close(key, version, correlation, &response)
            });
            Reply::Later(answer, kept)
        }
    }
}

/// Encodes an answer that is there.
pub(crate) fn encoded<R: Message>(
    key: ApiKey,
    version: i16,
    correlation_id: i32,
    response: &R,
) -> Served {
    match encode(key, version, correlation_id, response) {
        Some(response) => Reply::Ready(response),
        None => Reply::Close(NOT_ENCODED),
    }
}

/// The bytes of an answer, or the end of a connection that would wait for it for ever.
pub(crate) fn encode_or_close<R: Message>(
    key: ApiKey,
    version: i16,
    correlation_id: i32,
    response: &R,
) -> Response {
    let encoded = encode(key, version, correlation_id, response);
    encoded.unwrap_or_else(|| Response::closing(NOT_ENCODED))
}

/// The bytes of an answer; `None`, after a log line, if its version cannot express it.
fn encode<R: Message>(
    key: ApiKey,
    version: i16,
    correlation_id: i32,
    response: &R,
) -> Option<Response> {
    let mut out = BytesMut::new();
    match frame::encode_response(&mut out, key, version, correlation_id, response) {
        Ok(()) => Some(Response::single(out.freeze())),
        Err(error) => {
            tracing::error!(%key, version, %error, "failed to encode a response");
            None
        }
    }
}
