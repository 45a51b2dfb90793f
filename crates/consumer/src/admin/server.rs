//! Connections of the admin port, and the thread that serves them.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::net::TcpListener as StdListener;
use std::sync::Arc;
use std::time::Duration;
use std::{io, thread};

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::AbortHandle;

use super::site::Site;
use crate::background::{Lifecycle, Stage};

/// Serves the site on a thread of its own until the app has ended.
///
/// # Errors
/// The thread could not start, or ended by a panic.
pub(super) async fn serve(
    listener: StdListener,
    site: Site,
    mut lifecycle: Lifecycle,
) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (sender, ended) = oneshot::channel();
    let run = move || {
        let served = runtime.block_on(async {
            let listener = TcpListener::from_std(listener)?;
            let site = Arc::new(site);
            tokio::select! {
                () = accept_all(listener, &site) => {}
                () = site.watch_app() => {}
                () = site.watch_ends() => {}
                () = lifecycle.reached(Stage::Ended) => {}
            }
            Ok(())
        });
        // An app that is dropped does not wait for it.
        drop(sender.send(served));
    };
    thread::Builder::new().name(THREAD.to_owned()).spawn(run)?;
    ended.await.unwrap_or_else(|_| Err(io::Error::other("its thread panicked")))
}

async fn accept_all(listener: TcpListener, site: &Arc<Site>) {
    // The oldest first.
    let mut open = VecDeque::<AbortHandle>::new();
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                open.retain(|connection| !connection.is_finished());
                if open.len() >= CONNECTIONS_MAX
                    && let Some(oldest) = open.pop_front()
                {
                    oldest.abort();
                }
                let task = tokio::spawn(connection(Arc::clone(site), stream));
                open.push_back(task.abort_handle());
            }
            Err(error) => {
                tracing::warn!(%error, "accept failed at the admin port");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

async fn connection(site: Arc<Site>, stream: TcpStream) {
    let service = service_fn(move |request| {
        let site = Arc::clone(&site);
        async move { Ok::<_, Infallible>(site.answer(request).await) }
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

/// Open connections: of a scraper, probes, some people. A further one closes the oldest, so that
/// slow clients cannot keep probes away.
const CONNECTIONS_MAX: usize = 64;

/// A client that takes longer than this for the header of a request is disconnected.
const HEADER_TIMEOUT: Duration = Duration::from_secs(10);

/// Pause after a failed accept: there may be no file descriptor left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Name of the thread.
const THREAD: &str = "moldau-admin";
