//! The pages of an admin port: `/metrics` (OpenMetrics), `/livez`, `/readyz`.
//!
//! They are served while the process lives, also while it drains, and whatever becomes of the
//! clients: their connections are none of the network threads' limits and hold up no drain.
//! `/readyz` is 503 until the process can serve, and again when a drain begins, so that a load
//! balancer looks elsewhere before connections are closed.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use std::{fmt, io};

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

use crate::Error;
use crate::listener::{ACCEPT_PAUSE, Listener};
use crate::shutdown::{Phase, Shutdown};
use crate::threads::NetworkHandle;

/// Open connections of an admin port, above which further ones are closed at once: a scraper, a few
/// probes, a person.
const CONNECTIONS_MAX: usize = 64;

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
    handle.spawn_on_blocking(0, move || async move {
        let address = listener.local_addr();
        if let Err(error) = accept_all(listener, pages).await {
            tracing::error!(%address, %error, "the admin port cannot be served");
        }
    })
}

/// Accepts connections until the thread stops.
async fn accept_all<P: AdminPages>(listener: Listener, pages: Arc<Pages<P>>) -> io::Result<()> {
    let listener = TcpListener::from_std(listener.socket)?;
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                let Ok(place) = Arc::clone(&places).try_acquire_owned() else { continue };
                let pages = Arc::clone(&pages);
                tokio::task::spawn_local(async move {
                    serve(pages, stream).await;
                    drop(place);
                });
            }
            Err(error) => {
                tracing::warn!(%error, "accept failed at the admin port");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
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

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpStream as StdStream;
    use std::time::Instant;

    use super::*;
    use crate::listener::ListenerLimits;
    use crate::threads::NetworkThreads;

    /// Scrapers held up the drain, and a process that drained looked dead to its supervisor.
    #[test]
    fn pages_are_served_through_a_drain_that_they_do_not_hold_up() {
        let network = NetworkThreads::start("admin", 1).unwrap();
        let handle = network.handle();
        let bind = || Listener::bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let (clients, admin) = (bind(), bind());
        let (client_port, admin_port) = (clients.local_addr(), admin.local_addr());
        let serve = |mut stream: TcpStream, _, _| async move {
            drop(tokio::io::AsyncReadExt::read(&mut stream, &mut [0; 1]).await);
        };
        handle.serve(clients, ListenerLimits::default(), serve).unwrap();
        serve_admin(&handle, admin, || Ok(String::new())).unwrap();

        let client = StdStream::connect(client_port).unwrap();
        let patience = Instant::now() + Duration::from_secs(60);
        let in_time = || assert!(Instant::now() < patience, "it takes too long");
        while handle.connections_open() == 0 {
            in_time();
        }
        let scraper = StdStream::connect(admin_port).unwrap();
        assert!(page(admin_port, "/readyz").starts_with("HTTP/1.1 200"));
        let draining = std::thread::spawn(move || network.drain(Duration::from_secs(60)));
        while handle.shutdown().phase() == Phase::Running {
            in_time();
        }
        assert!(page(admin_port, "/livez").starts_with("HTTP/1.1 200"));
        assert!(page(admin_port, "/readyz").starts_with("HTTP/1.1 503"));
        assert_eq!(handle.connections_open(), 1);
        drop(client);
        assert_eq!(draining.join().unwrap(), 0);
        drop(scraper);
    }

    fn page(address: std::net::SocketAddr, path: &str) -> String {
        let mut stream = StdStream::connect(address).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }
}
