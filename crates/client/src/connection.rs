//! One pipelined connection to a broker.
//!
//! Callers on any task submit requests; one task owns the socket, writes them in order with
//! vectored writes and matches answers by position and correlation id. An answer that does not
//! come in time, or that answers something else, ends the connection and fails all that wait,
//! since order is all that relates requests and answers.

mod io;
mod security;

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use moldau_protocol::messages::{ApiVersionsRequest, ApiVersionsResponse};
use moldau_protocol::{ApiKey, Request, VersionRange};
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};
use tokio::task::AbortHandle;
use tokio::time::Instant;

pub use self::security::Security;
use crate::wire::{self, Address};
use crate::{Error, Result};

/// Called once with the answer's frame, or with the reason why there is none.
pub(crate) type OnReply = Box<dyn FnOnce(Result<Bytes>) + Send>;

/// Limits and identity of connections.
#[derive(Clone, Debug)]
pub struct ConnectionOptions {
    /// Kafka's `client.id`, shown in broker logs and quotas.
    pub client_id: String,
    /// How the connection is secured, and who we say we are.
    pub security: Security,
    /// Longest wait for a connection, TLS and SASL included; Kafka's
    /// `socket.connection.setup.timeout.ms`.
    pub connect_timeout: Duration,
    /// Longest wait for an answer, unless a request names another; Kafka's `request.timeout.ms`.
    pub request_timeout: Duration,
    /// Requests sent and not answered. Kafka's producer keeps 5; brokers keep order for any number
    /// but an idempotent producer must not exceed 5.
    pub in_flight_max: usize,
    /// Largest answer that is accepted.
    pub frame_bytes_max: usize,
}

impl Default for ConnectionOptions {
    fn default() -> Self {
        Self {
            client_id: "moldau".to_owned(),
            security: Security::default(),
            connect_timeout: Duration::from_secs(10),
            request_timeout: Duration::from_secs(30),
            in_flight_max: 5,
            frame_bytes_max: moldau_net::FRAME_BYTES_MAX_DEFAULT,
        }
    }
}

/// A connection that negotiated its versions. Clones share it; it closes when the last clone is
/// dropped and all answers have come.
#[derive(Clone)]
pub struct Connection {
    shared: Arc<Shared>,
}

struct Shared {
    address: Arc<str>,
    client_id: String,
    request_timeout: Duration,
    next_correlation_id: AtomicI32,
    in_flight: Arc<Semaphore>,
    outbox: mpsc::Sender<Outgoing>,
    served: Served,
    /// The task that authenticates again, if the broker demands that; ended with the connection.
    reauthentication: OnceLock<AbortHandle>,
    /// Why that failed, upon which no more requests are taken.
    failure: OnceLock<Error>,
}

/// What the broker says that it serves.
#[derive(Debug, Default)]
struct Served {
    /// Lowest and highest version of each API.
    versions: HashMap<i16, (i16, i16)>,
    /// Finalized level of each feature of the cluster (KIP-584).
    levels: HashMap<String, i16>,
}

/// The right to have one more request in flight.
#[derive(Debug)]
pub(crate) struct Permit {
    /// `None` for one who holds them all.
    _held: Option<OwnedSemaphorePermit>,
}

/// A request on its way to the task that owns the socket.
pub(crate) struct Outgoing {
    pub(crate) api: ApiKey,
    pub(crate) correlation_id: i32,
    /// Length prefix, header and body.
    pub(crate) segments: Vec<Bytes>,
    /// Without an answer to come (produce with `acks=0`), `on_reply` is called with no bytes once
    /// the request is with the operating system.
    pub(crate) answered: bool,
    pub(crate) deadline: Instant,
    pub(crate) on_reply: OnReply,
    pub(crate) permit: Permit,
}

impl Connection {
    /// Connects to `address`, secures the connection and asks which versions it serves.
    ///
    /// # Errors
    /// [`Error::Connect`], [`Error::Tls`], [`Error::Authentication`], [`Error::TimedOut`],
    /// [`Error::Malformed`], or what ApiVersions answers.
    pub async fn connect(address: &Address, options: &ConnectionOptions) -> Result<Self> {
        let name: Arc<str> = address.to_string().into();
        let failed = |source| Error::Connect { address: name.clone(), source: Arc::new(source) };
        let connecting = async {
            let socket = TcpStream::connect((address.host.as_str(), address.port)).await;
            let socket = socket.map_err(failed)?;
            // A request must not wait for the acknowledgement of the one before it.
            socket.set_nodelay(true).map_err(failed)?;
            security::secure(socket, address, &name, options).await
        };
        let (stream, lifetime) = tokio::time::timeout(options.connect_timeout, connecting)
            .await
            .map_err(|_| failed(std::io::ErrorKind::TimedOut.into()))??;

        let in_flight_max = options.in_flight_max.max(1);
        // Each sender holds a permit, so this channel always has room.
        let (outbox, inbox) = mpsc::channel(in_flight_max);
        tokio::spawn(io::run(stream, name.clone(), options.frame_bytes_max, inbox));
        let mut shared = Shared {
            address: name,
            client_id: options.client_id.clone(),
            request_timeout: options.request_timeout,
            next_correlation_id: AtomicI32::new(0),
            in_flight: Arc::new(Semaphore::new(in_flight_max)),
            outbox,
            served: Served::default(),
            reauthentication: OnceLock::new(),
            failure: OnceLock::new(),
        };
        shared.served = shared.negotiate().await?;
        let shared = Arc::new(shared);
        if let (Some(sasl), Some(lifetime)) = (&options.security.sasl, lifetime) {
            security::keep_authenticated(&shared, Arc::clone(sasl), lifetime, in_flight_max);
        }
        Ok(Self { shared })
    }

    /// `host:port` of the broker.
    #[must_use]
    pub fn address(&self) -> &Arc<str> {
        &self.shared.address
    }

    /// Whether the connection has ended.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.shared.outbox.is_closed() || self.shared.in_flight.is_closed()
    }

    /// The highest version of `R` that both sides speak.
    ///
    /// # Errors
    /// [`Error::UnsupportedApi`].
    pub fn version_of<R: Request>(&self) -> Result<i16> {
        self.shared.version(R::KEY, R::VERSIONS)
    }

    /// Versions of `api` that the broker serves, lowest and highest.
    #[must_use]
    pub fn versions_served(&self, api: ApiKey) -> Option<(i16, i16)> {
        self.shared.served.versions.get(&api.key()).copied()
    }

    /// The level of a feature that the cluster has finalized (KIP-584), such as
    /// `transaction.version`; 0 if it has none.
    #[must_use]
    pub fn finalized_level(&self, feature: &str) -> i16 {
        self.shared.served.levels.get(feature).copied().unwrap_or(0)
    }

    /// Sends `request` in the highest common version and waits for the answer.
    ///
    /// # Errors
    /// The failure that keeps the answer from arriving. The caller checks error codes inside the
    /// answer.
    pub async fn send<R: Request>(&self, request: &R) -> Result<R::Response> {
        self.send_within(request, self.shared.request_timeout).await
    }

    /// As [`send`](Self::send), in the highest common version within `versions`, for requests
    /// whose form differs between versions.
    ///
    /// # Errors
    /// As [`send`](Self::send).
    pub async fn send_in<R: Request>(
        &self,
        request: &R,
        versions: VersionRange,
    ) -> Result<R::Response> {
        let unsupported =
            || Error::UnsupportedApi { address: self.shared.address.clone(), api: R::KEY };
        let known = R::VERSIONS.intersection(versions).ok_or_else(unsupported)?;
        let version = self.shared.version(R::KEY, known)?;
        self.shared.send_version(request, version, self.shared.request_timeout).await
    }

    /// As [`send`](Self::send), waiting at most `timeout`, for requests that the broker parks.
    ///
    /// # Errors
    /// As [`send`](Self::send).
    pub async fn send_within<R: Request>(
        &self,
        request: &R,
        timeout: Duration,
    ) -> Result<R::Response> {
        let version = self.version_of::<R>()?;
        self.shared.send_version(request, version, timeout).await
    }

    /// Waits until one more request may be in flight.
    pub(crate) async fn permit(&self) -> Result<Permit> {
        self.shared.permit().await
    }

    /// The next correlation id, for a request encoded by the caller.
    pub(crate) fn correlation_id(&self) -> i32 {
        self.shared.correlation_id()
    }

    pub(crate) fn request_timeout(&self) -> Duration {
        self.shared.request_timeout
    }

    pub(crate) fn client_id(&self) -> &str {
        &self.shared.client_id
    }

    /// Hands over an encoded request; `on_reply` is called in any case.
    pub(crate) fn submit(&self, outgoing: Outgoing) {
        self.shared.submit(outgoing);
    }
}

impl Shared {
    async fn negotiate(&self) -> Result<Served> {
        let request = ApiVersionsRequest {
            client_software_name: "moldau".to_owned(),
            client_software_version: env!("CARGO_PKG_VERSION").to_owned(),
            ..Default::default()
        };
        let mut version = API_VERSIONS_VERSION;
        let answer = loop {
            let frame = self.call(&request, version, self.request_timeout).await?;
            // A broker that does not know the version answers in version 0 (KIP-511).
            let refused = version > 0 && wire::api_versions_refused(&frame);
            if refused {
                version = 0;
                continue;
            }
            let decoded: Result<ApiVersionsResponse> =
                wire::decode_answer(&frame, ApiKey::ApiVersions, version, &self.address);
            break decoded?;
        };
        Error::check(answer.error_code, "ApiVersions", None)?;
        let versions = answer.api_keys.iter();
        let versions = versions.map(|api| (api.api_key, (api.min_version, api.max_version)));
        let levels = answer.finalized_features.into_iter();
        let levels = levels.map(|feature| (feature.name, feature.max_version_level));
        Ok(Served { versions: versions.collect(), levels: levels.collect() })
    }

    fn version(&self, api: ApiKey, known: VersionRange) -> Result<i16> {
        let unsupported = || Error::UnsupportedApi { address: self.address.clone(), api };
        let (min, max) = self.served.versions.get(&api.key()).ok_or_else(unsupported)?;
        let version = known.max.min(*max);
        if version < known.min || version < *min { Err(unsupported()) } else { Ok(version) }
    }

    async fn send_version<R: Request>(
        &self,
        request: &R,
        version: i16,
        timeout: Duration,
    ) -> Result<R::Response> {
        let frame = self.call(request, version, timeout).await?;
        wire::decode_answer(&frame, R::KEY, version, &self.address)
    }

    async fn call<R: Request>(
        &self,
        request: &R,
        version: i16,
        timeout: Duration,
    ) -> Result<Bytes> {
        let permit = self.permit().await?;
        self.call_with(permit, request, version, timeout).await
    }

    async fn call_with<R: Request>(
        &self,
        permit: Permit,
        request: &R,
        version: i16,
        timeout: Duration,
    ) -> Result<Bytes> {
        let correlation_id = self.correlation_id();
        let frame = wire::encode_request(request, version, correlation_id, &self.client_id)?;
        let (reply, answer) = oneshot::channel();
        self.submit(Outgoing {
            api: R::KEY,
            correlation_id,
            segments: vec![frame],
            answered: true,
            deadline: Instant::now() + timeout,
            // The caller may have gone away meanwhile; the answer is then dropped.
            on_reply: Box::new(move |result| drop(reply.send(result))),
            permit,
        });
        answer.await.map_err(|_| self.disconnected("its task ended"))?
    }

    async fn permit(&self) -> Result<Permit> {
        let permit = Arc::clone(&self.in_flight).acquire_owned().await;
        permit.map(|held| Permit { _held: Some(held) }).map_err(|_| self.ended())
    }

    fn correlation_id(&self) -> i32 {
        self.next_correlation_id.fetch_add(1, Ordering::Relaxed)
    }

    fn submit(&self, outgoing: Outgoing) {
        if let Err(refused) = self.outbox.try_send(outgoing) {
            let outgoing = refused.into_inner();
            drop(outgoing.permit);
            (outgoing.on_reply)(Err(self.disconnected("it was closed before")));
        }
    }

    fn disconnected(&self, reason: &str) -> Error {
        Error::Disconnected { address: self.address.clone(), reason: reason.into() }
    }

    /// Why no more requests are taken.
    fn ended(&self) -> Error {
        self.failure.get().cloned().unwrap_or(Error::Closed)
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        if let Some(task) = self.reauthentication.get() {
            task.abort();
        }
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection")
            .field("address", &self.shared.address)
            .field("closed", &self.is_closed())
            .finish_non_exhaustive()
    }
}

/// Version of ApiVersions that is tried first: the first flexible one, served since Kafka 2.4.
const API_VERSIONS_VERSION: i16 = 3;

#[cfg(test)]
mod tests;
