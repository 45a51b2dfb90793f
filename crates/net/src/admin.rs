//! The pages of an admin port: `/metrics` (OpenMetrics), `/livez`, `/readyz`, `/profile`, and where
//! an operator gave a token, `/reload`.
//!
//! They are served while the process lives, also while it drains, independently of client
//! connections. Admin connections do not count towards the network threads' limits and do not delay
//! a drain. `/readyz` is 503 until the process can serve, and again when a drain begins, so that a
//! load balancer looks elsewhere before connections are closed. `/livez` is 503 once a thread has
//! failed or gives no sign of life.

mod profile;
mod reload;

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use std::{fmt, io};

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{ALLOW, CONTENT_TYPE, HeaderValue, WWW_AUTHENTICATE};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use moldau_threads::catch_in;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

pub use self::reload::{BearerToken, ReloadPage, ReloadWanted};

use crate::Error;
use crate::listener::{ACCEPT_PAUSE, Listener};
use crate::refusal::Refusal;
use crate::shutdown::Phase;
use crate::threads::NetworkHandle;

/// Open connections of an admin port, above which further ones are closed at once: a scraper, a few
/// probes, a person.
const CONNECTIONS_MAX: usize = 64;

/// A client that takes longer than this to send its request header is disconnected.
const HEADER_TIMEOUT: Duration = Duration::from_secs(10);

/// A network thread that gives no sign of life for so long is stuck: its longest pieces of work
/// take milliseconds.
const SILENT_FOR: Duration = Duration::from_secs(5);

const OPEN_METRICS: HeaderValue =
    HeaderValue::from_static("application/openmetrics-text; version=1.0.0; charset=utf-8");

/// Content of the admin pages. A function that writes the metrics is always ready.
pub trait AdminPages: Send + Sync + 'static {
    /// The page of the counters.
    ///
    /// # Errors
    /// The encoder's own.
    fn metrics(&self) -> Result<String, fmt::Error>;

    /// Which failure beside the network threads the process does not get over; `None` if there is
    /// none.
    fn failure(&self) -> Option<String> {
        None
    }

    /// Why the process cannot serve at the moment; `None` if it can.
    fn not_ready(&self) -> Option<String> {
        None
    }

    /// The page that reloads the configuration; `None` if reloads are off.
    fn reload(&self) -> Option<ReloadPage> {
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
    let net = handle.clone();
    let pages = Arc::new(Pages { pages, net });
    handle.spawn_on_blocking(0, "the admin port", move || async move {
        let (address, supervisor) = (listener.local_addr(), pages.net.supervisor().clone());
        if let Err(error) = accept_all(listener, pages).await {
            supervisor.fail(format_args!("the admin port {address} cannot be served: {error}"));
        }
    })
}

/// Accepts connections until the thread stops.
async fn accept_all<P: AdminPages>(listener: Listener, pages: Arc<Pages<P>>) -> io::Result<()> {
    let listener = TcpListener::from_std(listener.socket)?;
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => {
                let Ok(place) = Arc::clone(&places).try_acquire_owned() else { continue };
                let pages = Arc::clone(&pages);
                let supervisor = pages.net.supervisor().clone();
                tokio::task::spawn_local(async move {
                    let served = catch_in(serve(pages, stream, peer)).await;
                    drop(place);
                    match served {
                        Err(panic) if panic.has_left_half_changed() => {
                            supervisor.fail(format_args!("a page ended by a {panic}"));
                        }
                        Err(panic) => tracing::error!(%peer, %panic, "an admin page failed"),
                        Ok(()) => {}
                    }
                });
            }
            Err(error) => {
                tracing::warn!(%error, "accept failed at the admin port");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

/// What is shown, and whose port it is.
struct Pages<P> {
    pages: P,
    net: NetworkHandle,
}

async fn serve<P: AdminPages>(pages: Arc<Pages<P>>, stream: TcpStream, peer: SocketAddr) {
    let service = service_fn(move |request| {
        let pages = Arc::clone(&pages);
        async move { Ok::<_, Infallible>(pages.answer(&request, peer).await) }
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

type Page = Response<Full<Bytes>>;

impl<P: AdminPages> Pages<P> {
    async fn answer(&self, request: &Request<Incoming>, peer: SocketAddr) -> Page {
        let (path, method) = (request.uri().path(), request.method());
        match (path, self.pages.reload()) {
            ("/reload", Some(_)) if method != Method::POST => only("POST"),
            ("/reload", Some(page)) if page.is_open_to(request) => {
                page.answer(self.net.shutdown()).await
            }
            ("/reload", Some(_)) => self.refuse(peer),
            ("/livez" | "/readyz" | "/metrics" | "/profile", _) if method != Method::GET => {
                only("GET")
            }
            ("/livez", _) => self.liveness().await,
            ("/readyz", _) => self.readiness(),
            ("/metrics", _) => self.metrics(),
            ("/profile", _) => profile::answer(request.uri().query()).await,
            _ => {
                let why = "try /metrics, /livez, /readyz or /profile\n";
                text(StatusCode::NOT_FOUND, why.to_owned())
            }
        }
    }

    async fn liveness(&self) -> Page {
        if let Some(cause) = self.failure() {
            return unavailable(&cause);
        }
        match self.net.silent_threads(SILENT_FOR).await.as_slice() {
            [] => text(StatusCode::OK, "ok\n".to_owned()),
            silent => unavailable(&format!("not responding: {}", silent.join(", "))),
        }
    }

    fn readiness(&self) -> Page {
        if let Some(cause) = self.failure() {
            return unavailable(&cause);
        }
        if self.net.shutdown().phase() != Phase::Running {
            return unavailable("draining");
        }
        match self.pages.not_ready() {
            None => text(StatusCode::OK, "ready\n".to_owned()),
            Some(why) => unavailable(&why),
        }
    }

    fn failure(&self) -> Option<String> {
        let of_threads = self.net.supervisor().failure();
        of_threads.map(|cause| cause.to_string()).or_else(|| self.pages.failure())
    }

    fn metrics(&self) -> Page {
        match self.pages.metrics() {
            Ok(page) => {
                let mut page = text(StatusCode::OK, page);
                page.headers_mut().insert(CONTENT_TYPE, OPEN_METRICS);
                page
            }
            Err(error) => text(StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")),
        }
    }

    /// Refuses someone who does not know the token.
    fn refuse(&self, peer: SocketAddr) -> Page {
        let why = "reload request without the token";
        self.net.metrics().refuse(Refusal::AdminToken, Some(peer), &"the admin port", &why);
        let mut page = text(StatusCode::UNAUTHORIZED, "the token is required\n".to_owned());
        page.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        page
    }
}

fn only(method: &'static str) -> Page {
    let why = format!("use {method}\n");
    let mut page = text(StatusCode::METHOD_NOT_ALLOWED, why);
    page.headers_mut().insert(ALLOW, HeaderValue::from_static(method));
    page
}

fn unavailable(why: &str) -> Page {
    text(StatusCode::SERVICE_UNAVAILABLE, format!("{why}\n"))
}

fn text(status: StatusCode, body: String) -> Page {
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = status;
    response
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpStream as StdStream;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::Instant;

    use super::*;
    use crate::listener::ListenerLimits;
    use crate::threads::NetworkThreads;

    /// A process that had lost a thread called itself alive.
    #[test]
    fn a_failure_of_a_thread_shows_on_the_pages() {
        let network = NetworkThreads::start("failing", 2).unwrap();
        let handle = network.handle();
        let listener = Listener::bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let port = listener.local_addr();
        serve_admin(&handle, listener, || Ok(String::new())).unwrap();
        assert!(page(port, "/livez").starts_with("HTTP/1.1 200"));
        handle.spawn_on_blocking(1, "a timer", || async { panic!("a defect") }).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let cause = runtime.block_on(handle.supervisor().failed());
        assert_eq!(&*cause, "a timer ended by a panic: a defect");
        for path in ["/livez", "/readyz"] {
            let answer = page(port, path);
            assert!(answer.starts_with("HTTP/1.1 503") && answer.contains(&*cause), "{answer}");
        }
    }

    #[test]
    fn a_thread_that_is_stuck_is_named() {
        let network = NetworkThreads::start("stuck", 2).unwrap();
        let handle = network.handle();
        let listener = Listener::bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let port = listener.local_addr();
        serve_admin(&handle, listener, || Ok(String::new())).unwrap();
        let (go, wait) = std::sync::mpsc::channel::<()>();
        let (begins, begun) = std::sync::mpsc::channel();
        let stuck = move || async move {
            begins.send(()).unwrap();
            assert!(wait.recv().is_err());
        };
        handle.spawn_on_blocking(1, "what is stuck", stuck).unwrap();
        begun.recv().unwrap();
        let answer = page(port, "/livez");
        assert!(answer.starts_with("HTTP/1.1 503") && answer.contains("stuck-1"), "{answer}");
        drop(go);
        assert!(page(port, "/livez").starts_with("HTTP/1.1 200"));
    }

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

    /// Pages with one that needs a token.
    struct Reloadable(BearerToken, tokio::sync::mpsc::Sender<ReloadWanted>);

    impl AdminPages for Reloadable {
        fn metrics(&self) -> Result<String, fmt::Error> {
            Ok(String::new())
        }

        fn reload(&self) -> Option<ReloadPage> {
            Some(ReloadPage::new(self.0.clone(), self.1.clone()))
        }
    }

    fn token(text: &str) -> Option<BearerToken> {
        BearerToken::new(text.to_owned().into())
    }

    #[test]
    fn a_reload_is_asked_for_by_post_with_the_token_and_in_no_other_way() {
        let network = NetworkThreads::start("admin", 1).unwrap();
        let handle = network.handle();
        let bind = || Listener::bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let (open, shut) = (bind(), bind());
        let (open_port, shut_port) = (open.local_addr(), shut.local_addr());
        let (wanted, mut asked) = ReloadWanted::channel();
        serve_admin(&handle, open, Reloadable(token("s3cret").unwrap(), wanted)).unwrap();
        serve_admin(&handle, shut, || Ok(String::new())).unwrap();
        let operator = std::thread::spawn(move || {
            for outcome in [Ok("taken\n".to_owned()), Err("2:1: wrong\n".to_owned())] {
                asked.blocking_recv().unwrap().answer(outcome);
            }
            asked.blocking_recv().is_none()
        });
        let with = |token| format!("POST /reload HTTP/1.1\r\nAuthorization: {token}");

        let answer = send(open_port, &with("Bearer s3cret"));
        assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("\r\ntaken\n"), "{answer}");
        let answer = send(open_port, &with("bearer s3cret"));
        assert!(answer.starts_with("HTTP/1.1 422"), "{answer}");
        assert!(answer.ends_with("\r\n2:1: wrong\n"), "{answer}");
        let wrong = ["Bearer s3cre", "Bearer s3cret2", "Bearer ", "s3cret", "Basic s3cret"];
        for token in wrong {
            let answer = send(open_port, &with(token));
            assert!(answer.starts_with("HTTP/1.1 401"), "{token}: {answer}");
            assert!(answer.contains("www-authenticate: Bearer\r\n"), "{answer}");
        }
        assert!(send(open_port, "POST /reload HTTP/1.1").starts_with("HTTP/1.1 401"));
        let refused = handle.metrics().refused(Refusal::AdminToken);
        assert_eq!(refused, wrong.len() as u64 + 1);
        let answer = send(open_port, "GET /reload HTTP/1.1\r\nAuthorization: Bearer s3cret");
        assert!(answer.starts_with("HTTP/1.1 405"), "{answer}");
        assert!(answer.contains("allow: POST\r\n"), "{answer}");
        assert!(send(open_port, "POST /livez HTTP/1.1").starts_with("HTTP/1.1 405"));
        assert!(send(shut_port, &with("Bearer s3cret")).starts_with("HTTP/1.1 404"));
        // The queue ends with the pages; nothing more came through it.
        drop(network);
        assert!(operator.join().unwrap());
    }

    /// Two at once would share one timer, and the first to end would stop both.
    #[test]
    fn one_profile_is_taken_at_a_time_and_names_who_works() {
        let network = NetworkThreads::start("admin", 1).unwrap();
        let admin = Listener::bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let port = admin.local_addr();
        serve_admin(&network.handle(), admin, || Ok(String::new())).unwrap();
        let is_done = Arc::new(AtomicBool::new(false));
        let works = Arc::clone(&is_done);
        let worker = std::thread::Builder::new().name("busy".into()).spawn(move || {
            while !works.load(Ordering::Relaxed) {
                std::hint::black_box(&works);
            }
        });
        let patience = Instant::now() + Duration::from_secs(60);
        let (mut taken, mut refused) = (None, None);
        // Two that ask at once may still come one after the other on a busy machine.
        while taken.is_none() || refused.is_none() {
            assert!(Instant::now() < patience, "it takes too long");
            let ask = || std::thread::spawn(move || page(port, "/profile?seconds=1"));
            for answer in [ask(), ask()].map(|asked| asked.join().unwrap()) {
                let (of_status, status) = match answer.get(..12) {
                    Some("HTTP/1.1 200") => (&mut taken, 200),
                    _ => (&mut refused, 409),
                };
                assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{answer}");
                *of_status = Some(answer);
            }
        }
        is_done.store(true, Ordering::Relaxed);
        worker.unwrap().join().unwrap();
        let profile = taken.unwrap();
        assert!(profile.lines().any(|line| line.starts_with("busy;")), "{profile}");
        assert!(profile.contains("one_profile_is_taken_at_a_time"), "{profile}");
        assert!(page(port, "/profile?seconds=x").starts_with("HTTP/1.1 400"));
        assert!(send(port, "POST /profile HTTP/1.1").starts_with("HTTP/1.1 405"));
    }

    #[test]
    fn a_token_that_no_client_can_send_is_none() {
        assert!(token("0-._~+/=").is_some());
        for wrong in ["", " ", "a b", "a\n", "\u{fc}ber"] {
            assert!(token(wrong).is_none(), "{wrong:?}");
        }
        assert_eq!(format!("{:?}", token("s3cret").unwrap()), "BearerToken { .. }");
    }

    fn page(address: SocketAddr, path: &str) -> String {
        send(address, &format!("GET {path} HTTP/1.1"))
    }

    /// Sends a request that begins so.
    fn send(address: SocketAddr, head: &str) -> String {
        let mut stream = StdStream::connect(address).unwrap();
        write!(stream, "{head}\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }
}
