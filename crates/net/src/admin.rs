//! The pages of an admin port: `/metrics` (OpenMetrics), `/livez`, `/readyz`.
//!
//! They are served while the process lives. `/readyz` is 503 until the process can serve, and again
//! when a drain begins, so that a load balancer looks elsewhere before connections are closed.

use std::convert::Infallible;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpStream;

use crate::Error;
use crate::listener::{Listener, ListenerLimits};
use crate::shutdown::{Phase, Shutdown};
use crate::threads::NetworkHandle;

/// Connections that an admin port may open beyond the limit of the clients, which counts all
/// connections of the threads: a scraper, a few probes, a person.
const CONNECTIONS_RESERVED: usize = 64;

/// A client that takes longer than this to send its request header is disconnected.
const HEADER_TIMEOUT: Duration = Duration::from_secs(10);

const OPEN_METRICS: HeaderValue =
    HeaderValue::from_static("application/openmetrics-text; version=1.0.0; charset=utf-8");

/// What the admin pages show. A function that writes the metrics is always ready.
pub trait AdminPages: Send + Sync + 'static {
    /// The page of the counters.
    ///
    /// # Errors
    /// The encoder's own.
    fn metrics(&self) -> Result<String, fmt::Error>;

    /// Why the process cannot serve yet; `None` if it can.
    fn not_ready(&self) -> Option<String> {
        None
    }
}

impl<F> AdminPages for F
where
    F: Fn() -> Result<String, fmt::Error> + Send + Sync + 'static,
{
    fn metrics(&self) -> Result<String, fmt::Error> {
        self()
    }
}

/// Serves the admin pages on `listener`.
///
/// # Errors
/// The threads have stopped.
pub fn serve_admin<P: AdminPages>(
    handle: &NetworkHandle,
    listener: Listener,
    pages: P,
) -> Result<(), Error> {
    let pages = Arc::new(Pages { pages, shutdown: handle.shutdown().clone() });
    let connections_max = ListenerLimits::default().connections_max + CONNECTIONS_RESERVED;
    let limits = ListenerLimits { connections_max, ..ListenerLimits::default() };
    handle.serve(listener, limits, move |stream, _, _| serve(Arc::clone(&pages), stream))
}

/// What the pages report on.
struct Pages<P> {
    pages: P,
    shutdown: Shutdown,
}

async fn serve<P: AdminPages>(pages: Arc<Pages<P>>, stream: TcpStream) {
    let service = service_fn(move |request| {
        let pages = Arc::clone(&pages);
        async move { Ok::<_, Infallible>(pages.answer(&request)) }
    });
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIMEOUT)
        .serve_connection(TokioIo::new(stream), service)
        .await;
    if let Err(error) = served {
        tracing::debug!(%error, "an admin connection broke");
    }
}

impl<P: AdminPages> Pages<P> {
    fn answer(&self, request: &Request<Incoming>) -> Response<Full<Bytes>> {
        if request.method() != Method::GET {
            return text(StatusCode::METHOD_NOT_ALLOWED, "only GET is answered\n".to_owned());
        }
        match request.uri().path() {
            "/livez" => text(StatusCode::OK, "ok\n".to_owned()),
            "/readyz" if self.shutdown.phase() == Phase::Running => match self.pages.not_ready() {
                None => text(StatusCode::OK, "ready\n".to_owned()),
                Some(why) => text(StatusCode::SERVICE_UNAVAILABLE, format!("{why}\n")),
            },
            "/readyz" => text(StatusCode::SERVICE_UNAVAILABLE, "draining\n".to_owned()),
            "/metrics" => match self.pages.metrics() {
                Ok(page) => {
                    let mut response = text(StatusCode::OK, page);
                    response.headers_mut().insert(CONTENT_TYPE, OPEN_METRICS);
                    response
                }
                Err(error) => text(StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")),
            },
            _ => text(StatusCode::NOT_FOUND, "try /metrics, /livez or /readyz\n".to_owned()),
        }
    }
}

fn text(status: StatusCode, body: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = status;
    response
}
