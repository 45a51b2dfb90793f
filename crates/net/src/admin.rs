//! The pages of an admin port: `/metrics` (OpenMetrics), `/livez`, `/readyz`.
//!
//! They are served while the process lives. `/readyz` turns to 503 when a drain begins, so that a
//! load balancer looks elsewhere before connections are closed.

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

/// Serves the admin pages on `listener`; `metrics` writes the page of the counters.
///
/// # Errors
/// The threads have stopped.
pub fn serve_admin<M>(handle: &NetworkHandle, listener: Listener, metrics: M) -> Result<(), Error>
where
    M: Fn() -> Result<String, fmt::Error> + Send + Sync + 'static,
{
    let pages = Arc::new(Pages { metrics, shutdown: handle.shutdown().clone() });
    let connections_max = ListenerLimits::default().connections_max + CONNECTIONS_RESERVED;
    let limits = ListenerLimits { connections_max, ..ListenerLimits::default() };
    handle.serve(listener, limits, move |stream, _peer| serve(Arc::clone(&pages), stream))
}

/// What the pages report on.
struct Pages<M> {
    metrics: M,
    shutdown: Shutdown,
}

async fn serve<M>(pages: Arc<Pages<M>>, stream: TcpStream)
where
    M: Fn() -> Result<String, fmt::Error> + 'static,
{
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

impl<M: Fn() -> Result<String, fmt::Error>> Pages<M> {
    fn answer(&self, request: &Request<Incoming>) -> Response<Full<Bytes>> {
        if request.method() != Method::GET {
            return text(StatusCode::METHOD_NOT_ALLOWED, "only GET is answered\n".to_owned());
        }
        match request.uri().path() {
            "/livez" => text(StatusCode::OK, "ok\n".to_owned()),
            "/readyz" if self.shutdown.phase() == Phase::Running => {
                text(StatusCode::OK, "ready\n".to_owned())
            }
            "/readyz" => text(StatusCode::SERVICE_UNAVAILABLE, "draining\n".to_owned()),
            "/metrics" => match (self.metrics)() {
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
