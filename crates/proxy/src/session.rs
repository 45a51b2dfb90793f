//! One client's connection and its connection to the cluster, served by one task.
//!
//! Both directions move in one turn: what was read is scanned and written before more is read. A
//! receiver that takes no more thus stops the sender, and so does a filter that waits; no byte
//! waits for another task.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::task::{Context, Poll};
use std::time::Duration;

use moldau_net::{Phase, Principal, Shutdown};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::{Sleep, sleep};

use crate::chain::FilterFailed;
use crate::cluster::{Cluster, Destination};
use crate::context::SessionContext;
use crate::error::Malformed;
use crate::flow::{Broken, Flow, Still};
use crate::in_flight::InFlight;
use crate::metrics::{Metrics, Side, add};
use crate::requests::RequestScanner;
use crate::responses::ResponseScanner;
use crate::rewrite::Rewriter;

/// How long answers in flight are still relayed to a client that has closed its sending side. A
/// client that is gone altogether resets the connection at the first answer.
const HALF_CLOSED_MAX: Duration = Duration::from_secs(30);

/// Why a session ended.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Ended {
    #[error("the client closed and all its requests were answered")]
    ByClient,
    #[error("the cluster closed")]
    ByUpstream,
    #[error("the client closed and its answers did not come in time")]
    Abandoned,
    #[error("the proxy is draining")]
    Drained,
    #[error("a filter closed it and all requests were answered")]
    ByFilter,
    #[error(transparent)]
    Filter(FilterFailed),
    #[error("{0:?} socket: {1}")]
    Io(Side, io::Error),
    #[error("{0:?} broke the protocol: {1}")]
    Malformed(Side, Malformed),
}

/// Serves a client that came to the listener of `destination`, to its end.
pub(crate) async fn serve(
    cluster: Arc<Cluster>,
    destination: Destination,
    downstream: TcpStream,
    peer: SocketAddr,
) {
    let Ok(local) = downstream.local_addr() else { return };
    let shutdown = cluster.net().shutdown().clone();
    let upstream = tokio::select! {
        upstream = cluster.connect(destination) => upstream,
        () = shutdown.reached(Phase::Draining) => None,
    };
    let Some(upstream) = upstream else { return };
    let context = SessionContext::new(cluster.name(), peer, Principal::anonymous());
    let rewriter = Rewriter::new(Arc::clone(&cluster), local.ip());
    let session = Session::new(downstream, upstream, rewriter, &context);
    let ended = session.run(&shutdown).await;
    tracing::debug!(cluster = cluster.name(), %peer, ?destination, %ended, "session ended");
}

/// The state of both directions.
pub(crate) struct Session<D, U> {
    downstream: D,
    upstream: U,
    requests: Flow,
    responses: Flow,
    request_scanner: RequestScanner,
    response_scanner: ResponseScanner,
    in_flight: InFlight,
    metrics: Arc<Metrics>,
    /// Set when the client has closed its sending side.
    half_closed: Option<Pin<Box<Sleep>>>,
    draining: bool,
}

impl<D, U> Session<D, U>
where
    D: AsyncRead + AsyncWrite + Unpin,
    U: AsyncRead + AsyncWrite + Unpin,
{
    pub(crate) fn new(
        downstream: D,
        upstream: U,
        rewriter: Rewriter,
        context: &SessionContext,
    ) -> Self {
        let metrics = Arc::clone(rewriter.cluster().metrics());
        let filters = rewriter.cluster().chain().session(context);
        Self {
            downstream,
            upstream,
            requests: Flow::default(),
            responses: Flow::default(),
            request_scanner: RequestScanner::new(Rc::clone(&filters), Arc::clone(&metrics)),
            response_scanner: ResponseScanner::new(filters, rewriter),
            in_flight: InFlight::default(),
            metrics,
            half_closed: None,
            draining: false,
        }
    }

    /// Relays until either side ends, then closes both.
    pub(crate) async fn run(mut self, shutdown: &Shutdown) -> Ended {
        let mut drain = Box::pin(shutdown.reached(Phase::Draining));
        let mut poll = |cx: &mut Context<'_>| {
            if !self.draining && drain.as_mut().poll(cx).is_ready() {
                self.draining = true;
                self.request_scanner.close();
            }
            let ended = self.poll(cx);
            self.count_bytes();
            ended
        };
        let ended = std::future::poll_fn(&mut poll).await;
        self.count_end(&ended);
        ended
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Ended> {
        match self.relay(cx) {
            Ok(None) => Poll::Pending,
            Ok(Some(ended)) => Poll::Ready(ended),
            Err(ended) => Poll::Ready(ended),
        }
    }

    /// Moves both directions as far as they go.
    fn relay(&mut self, cx: &mut Context<'_>) -> Result<Option<Ended>, Ended> {
        loop {
            let requests = self.relay_requests(cx)?;
            let was_full = self.in_flight.is_full();
            let responses = self.relay_responses(cx)?;
            if let Still::Ended { truncated } = responses {
                if truncated || !self.response_scanner.is_between_frames() {
                    add(&self.metrics.side(Side::Upstream).frames_truncated, 1);
                }
                return Ok(Some(Ended::ByUpstream));
            }
            if self.is_finished(requests) {
                return Ok(Some(match self.half_closed {
                    Some(_) => Ended::ByClient,
                    None if self.draining => Ended::Drained,
                    None => Ended::ByFilter,
                }));
            }
            if let Some(patience) = &mut self.half_closed
                && patience.as_mut().poll(cx).is_ready()
            {
                return Ok(Some(Ended::Abandoned));
            }
            if !was_full || self.in_flight.is_full() {
                return Ok(None);
            }
        }
    }

    fn relay_requests(&mut self, cx: &mut Context<'_>) -> Result<Still, Ended> {
        if self.takes_no_more() {
            return Ok(Still::Held);
        }
        let (from, to) = (&mut self.downstream, &mut self.upstream);
        let scanner = &mut self.request_scanner;
        let still = self
            .requests
            .poll(cx, from, to, scanner, &mut self.in_flight)
            .map_err(|broken| ended(broken, Side::Downstream, Side::Upstream))?;
        if let Still::Ended { truncated } = still
            && self.half_closed.is_none()
        {
            if truncated || !self.request_scanner.is_between_frames() {
                add(&self.metrics.side(Side::Downstream).frames_truncated, 1);
            }
            self.half_closed = Some(Box::pin(sleep(HALF_CLOSED_MAX)));
        }
        Ok(still)
    }

    fn relay_responses(&mut self, cx: &mut Context<'_>) -> Result<Still, Ended> {
        let (from, to) = (&mut self.upstream, &mut self.downstream);
        let scanner = &mut self.response_scanner;
        self.responses
            .poll(cx, from, to, scanner, &mut self.in_flight)
            .map_err(|broken| ended(broken, Side::Upstream, Side::Downstream))
    }

    /// Whether no request will come and all that came were answered.
    fn is_finished(&self, requests: Still) -> bool {
        let last_came = matches!(requests, Still::Ended { .. }) || self.takes_no_more();
        let cut_short = !self.request_scanner.is_between_frames();
        last_came
            && !self.request_scanner.is_filtering()
            && (cut_short || self.in_flight.is_empty())
            && self.response_scanner.is_between_frames()
            && self.responses.is_written()
    }

    /// Whether the requests that were taken are sent, and none will be taken.
    fn takes_no_more(&self) -> bool {
        let scanner = &self.request_scanner;
        scanner.is_closing() && scanner.is_between_frames() && self.requests.is_written()
    }

    fn count_bytes(&mut self) {
        let (downstream, upstream) =
            (self.metrics.side(Side::Downstream), self.metrics.side(Side::Upstream));
        let (received, sent) = self.requests.take_counts();
        add_some(&downstream.bytes_in, received);
        add_some(&upstream.bytes_out, sent);
        let (received, sent) = self.responses.take_counts();
        add_some(&upstream.bytes_in, received);
        add_some(&downstream.bytes_out, sent);
    }

    fn count_end(&self, ended: &Ended) {
        if let Ended::Malformed(side, _) = ended {
            add(&self.metrics.side(*side).frames_malformed, 1);
        }
    }
}

/// Spares the shared cache line where nothing moved.
fn add_some(counter: &AtomicU64, amount: u64) {
    if amount > 0 {
        add(counter, amount);
    }
}

fn ended(broken: Broken, from: Side, to: Side) -> Ended {
    match broken {
        Broken::Malformed(malformed) => Ended::Malformed(from, malformed),
        Broken::Filter(failed) => Ended::Filter(failed),
        Broken::Read(error) => Ended::Io(from, error),
        Broken::Write(error) => Ended::Io(to, error),
    }
}

#[cfg(test)]
mod tests;
