//! An S3 server in memory that answers late, refuses, loses answers, and lists what was.
//!
//! `s3s` checks signatures and reads and writes the protocol. The server creates an object under
//! `If-None-Match: *` atomically.

mod objects;

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use moldau_cluster::{Addressing, Bucket, BucketSettings, Credentials, ObjectKey};
use s3s::service::{S3Service, S3ServiceBuilder};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use super::faults::pass;

use self::objects::{Keys, Objects};

/// What happens to a request.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Fate {
    Served,
    /// Is served after some time.
    Delayed(Duration),
    /// Is refused with this status and code, without effect.
    Refused(u16, &'static str),
    /// The connection is cut before it takes effect.
    Lost,
    /// It takes effect, and the connection is cut.
    Silent,
    /// The connection is cut, and it takes effect after some time.
    Late(Duration),
}

pub(crate) const SLOW_DOWN: Fate = Fate::Refused(503, "SlowDown");

/// A running server; it ends with this.
pub(crate) struct S3Server {
    address: SocketAddr,
    shared: Arc<Shared>,
    accepting: JoinHandle<()>,
}

struct Shared {
    service: S3Service,
    objects: Objects,
    faults: Mutex<Faults>,
}

#[derive(Default)]
struct Faults {
    /// Fates of the next requests.
    next: VecDeque<Fate>,
    /// Of all behind them.
    lasting: Option<Fate>,
    /// Chooses those behind them.
    random: Option<fastrand::Rng>,
    requests: usize,
}

impl S3Server {
    pub(crate) async fn start() -> Self {
        Self::serve(Objects::default(), ([127, 0, 0, 1], 0).into()).await
    }

    /// A server at this address, whose objects are in a directory: they outlast its process.
    pub(crate) async fn start_on(address: SocketAddr, directory: PathBuf) -> Self {
        Self::serve(Objects::of(directory), address).await
    }

    async fn serve(objects: Objects, address: SocketAddr) -> Self {
        let mut builder = S3ServiceBuilder::new(objects.clone());
        builder.set_auth(Keys);
        let faults = Mutex::default();
        let shared = Arc::new(Shared { service: builder.build(), objects, faults });
        let listener = TcpListener::bind(address).await.unwrap();
        let address = listener.local_addr().unwrap();
        let accepting = tokio::spawn(accept(listener, shared.clone()));
        Self { address, shared, accepting }
    }

    /// How to reach the server, with keys that it knows.
    pub(crate) fn settings(&self) -> BucketSettings {
        BucketSettings {
            endpoint: Some(format!("http://{}", self.address)),
            region: "us-east-1".into(),
            bucket: BUCKET.into(),
            addressing: Addressing::Path,
            prefix: "cluster/objects".into(),
            trust: None,
            credentials: Credentials::keys(ACCESS_KEY, SECRET_KEY, None),
            timeout: Duration::from_secs(10),
            deadline: Duration::from_secs(20),
        }
    }

    pub(crate) fn bucket(&self) -> Bucket {
        Bucket::open(&self.settings()).unwrap()
    }

    /// The next requests, in order of their arrival, have these fates.
    pub(crate) fn next<const N: usize>(&self, fates: [Fate; N]) {
        self.with(|faults| faults.next.extend(fates));
    }

    /// All requests have this fate from here on.
    pub(crate) fn always(&self, fate: Fate) {
        self.with(|faults| faults.lasting = Some(fate));
    }

    /// A seed chooses fates from here on, and lists are stale.
    pub(crate) fn storm(&self, seed: u64) {
        self.with(|faults| faults.random = Some(fastrand::Rng::with_seed(seed)));
        self.shared.objects.list_stale(true);
    }

    /// No faults from here on.
    pub(crate) fn calm(&self) {
        self.with(|faults| {
            (faults.random, faults.lasting, faults.next) = (None, None, VecDeque::new());
        });
        self.shared.objects.list_stale(false);
    }

    /// Lists are those of the time before the last list.
    pub(crate) fn list_stale(&self) {
        self.shared.objects.list_stale(true);
    }

    /// The condition of a PUT has no effect.
    pub(crate) fn ignore_conditions(&self) {
        self.shared.objects.ignore_conditions();
    }

    /// Requests that have arrived.
    pub(crate) fn requests(&self) -> usize {
        self.with(|faults| faults.requests)
    }

    /// What the store holds of the cluster.
    pub(crate) fn keys(&self) -> Vec<ObjectKey> {
        let key = |name: &str| name.rsplit('/').next()?.parse().ok().map(ObjectKey);
        self.shared.objects.names().iter().filter_map(|name| key(name)).collect()
    }

    /// Replaces or removes an object without a request.
    pub(crate) fn replace(&self, name: &str, bytes: Option<Bytes>) {
        self.shared.objects.replace(name, bytes);
    }

    fn with<T>(&self, change: impl FnOnce(&mut Faults) -> T) -> T {
        self.shared.with(change)
    }
}

impl Drop for S3Server {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

impl Shared {
    fn with<T>(&self, change: impl FnOnce(&mut Faults) -> T) -> T {
        change(&mut self.faults.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Faults {
    fn fate(&mut self) -> Fate {
        self.requests += 1;
        if let Some(fate) = self.next.pop_front() {
            return fate;
        }
        if let Some(fate) = self.lasting {
            return fate;
        }
        let Some(random) = &mut self.random else { return Fate::Served };
        let time = Duration::from_millis(random.u64(..30));
        match random.u32(..100) {
            0..8 => Fate::Lost,
            8..16 => Fate::Silent,
            16..24 => Fate::Late(time),
            24..32 => SLOW_DOWN,
            32..36 => Fate::Refused(409, "ConditionalRequestConflict"),
            36..60 => Fate::Delayed(time),
            _ => Fate::Served,
        }
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    while let Ok((stream, _)) = listener.accept().await {
        let shared = shared.clone();
        tokio::spawn(async move {
            let answer = service_fn(move |request| answer(shared.clone(), request));
            // An error of the service cuts the connection, as it should.
            drop(http1::Builder::new().serve_connection(TokioIo::new(stream), answer).await);
        });
    }
}

/// The connection is cut.
#[derive(Debug, thiserror::Error)]
#[error("cut")]
struct Cut;

async fn answer(
    shared: Arc<Shared>,
    request: Request<Incoming>,
) -> Result<Response<s3s::Body>, Cut> {
    let (head, body) = request.into_parts();
    let body = body.collect().await.map_err(|_| Cut)?.to_bytes();
    let request = Request::from_parts(head, s3s::Body::from(body));
    let fate = shared.with(Faults::fate);
    let service = shared.service.clone();
    let serve = async move { service.call(request).await.map_err(|_| Cut) };
    match fate {
        Fate::Served => serve.await,
        Fate::Delayed(time) => {
            pass(time).await;
            serve.await
        }
        Fate::Refused(status, code) => Ok(refusal(status, code)),
        Fate::Lost => Err(Cut),
        Fate::Silent => serve.await.and(Err(Cut)),
        Fate::Late(time) => {
            tokio::spawn(async move {
                pass(time).await;
                drop(serve.await);
            });
            Err(Cut)
        }
    }
}

fn refusal(status: u16, code: &str) -> Response<s3s::Body> {
    let text = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\
        <Error><Code>{code}</Code><Message>of the test</Message></Error>"
    );
    let mut response = Response::new(s3s::Body::from(text));
    *response.status_mut() = StatusCode::from_u16(status).unwrap();
    response
}

pub(crate) const BUCKET: &str = "records";
pub(crate) const ACCESS_KEY: &str = "ACCESS-KEY-OF-TEST";
pub(crate) const SECRET_KEY: &str = "SECRET-KEY-OF-TEST";
