//! One client's connection and its connection to the cluster, served by one task.
//!
//! Both directions move in one turn: what was read is scanned and written before more is read. A
//! receiver that takes no more thus stops the sender, and so does a filter that waits; no byte
//! waits for another task.

use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use moldau_net::{
    Awaited, MemoryAccount, MemoryExceeded, MemoryUse, PeerWatch, Phase, Pressed, Refusal,
    Shutdown, Silence,
};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::time::{Sleep, sleep, timeout};

use crate::chain::FilterFailed;
use crate::context::SessionContext;
use crate::error::Malformed;
use crate::flow::{Broken, Flow, Still};
use crate::in_flight::InFlight;
use crate::latency::{Micros, SessionLatencies};
use crate::metrics::{Metrics, Side, add};
use crate::requests::RequestScanner;
use crate::responses::ResponseScanner;
use crate::rewrite::Rewriter;
use crate::sasl::Renewal;
use crate::traffic::ThreadTraffic;
use crate::upstream::FilterError;

/// How long answers in flight are still relayed to a client that has closed its sending side. A
/// client that is gone altogether resets the connection at the first answer.
const HALF_CLOSED_MAX: Duration = Duration::from_secs(30);

/// How long either side may take to hear of the end of the session, and to take what comes before.
const CLOSE_WITHIN: Duration = Duration::from_secs(1);

/// Why a session ended.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Ended {
    #[error("the client closed after all responses")]
    ByClient,
    #[error("the cluster closed")]
    ByUpstream,
    #[error("the client closed and the responses timed out")]
    Abandoned,
    #[error("the proxy is draining")]
    Drained,
    #[error("a filter closed it after all responses")]
    ByFilter,
    #[error("the client was too slow: {0}")]
    Silent(Silence),
    #[error(transparent)]
    Memory(MemoryExceeded),
    #[error("the virtual cluster was removed")]
    Stopped,
    #[error(transparent)]
    Filter(FilterFailed),
    #[error("the cluster refused to reauthenticate the proxy: {0}")]
    Renewal(FilterError),
    #[error("{0:?} socket: {1}")]
    Io(Side, io::Error),
    #[error("{0:?} broke the protocol: {1}")]
    Malformed(Side, Malformed),
}

impl Ended {
    /// The refusal to count, if the client was refused.
    pub(crate) fn cause(&self) -> Option<Refusal> {
        match self {
            Self::Silent(silence) => Some((*silence).into()),
            Self::Memory(_) => Some(Refusal::MemoryBudget),
            Self::Malformed(Side::Downstream, _) => Some(Refusal::FrameRefused),
            _ => None,
        }
    }
}

/// Settings of a session beside its filters.
pub(crate) struct Terms {
    /// Of the proxy's authentication with the cluster, if that ends.
    pub(crate) renewal: Option<Renewal>,
    pub(crate) frame_bytes_max: usize,
    pub(crate) idle_timeout: Duration,
    pub(crate) slow_reader_timeout: Duration,
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
    traffic: Arc<ThreadTraffic>,
    /// Set when the client has closed its sending side.
    half_closed: Option<Pin<Box<Sleep>>>,
    draining: bool,
    /// When the session began, from which its times count.
    start: Instant,
    watch: PeerWatch,
    memory: MemoryAccount,
    /// What wakes the session's task.
    task: Waker,
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
        terms: Terms,
    ) -> Self {
        let Terms { renewal, frame_bytes_max, idle_timeout, slow_reader_timeout } = terms;
        let cluster = rewriter.cluster();
        let (metrics, filters) = (Arc::clone(cluster.metrics()), cluster.chains().session(context));
        let latencies = SessionLatencies::new(Arc::clone(cluster.latencies()), context.clone());
        let (own, counters) = (Rc::clone(&filters), Arc::clone(&metrics));
        let traffic = metrics.traffic.here();
        let memory = context.memory();
        let (of_requests, of_answers) = (memory.clone(), memory.clone());
        Self {
            downstream,
            upstream,
            requests: Flow::new(memory.clone(), MemoryUse::Request),
            responses: Flow::new(memory.clone(), MemoryUse::Answer),
            request_scanner: RequestScanner::new(
                own,
                counters,
                of_requests,
                frame_bytes_max,
                renewal,
            ),
            response_scanner: ResponseScanner::new(
                filters,
                rewriter,
                latencies,
                of_answers,
                frame_bytes_max,
            ),
            in_flight: InFlight::default(),
            metrics,
            traffic,
            half_closed: None,
            draining: false,
            start: Instant::now(),
            watch: PeerWatch::new(idle_timeout, slow_reader_timeout),
            memory: memory.clone(),
            task: Waker::noop().clone(),
        }
    }

    /// Relays until either side ends, then closes both.
    pub(crate) async fn run(mut self, shutdown: &Shutdown) -> Ended {
        let mut drain = Box::pin(shutdown.reached(Phase::Draining));
        let mut stop = None;
        let mut poll = |cx: &mut Context<'_>| {
            if !self.draining && drain.as_mut().poll(cx).is_ready() {
                self.draining = true;
                self.request_scanner.close();
                stop = Some(Box::pin(shutdown.reached(Phase::Stopped)));
            }
            if stop.as_mut().is_some_and(|stop| stop.as_mut().poll(cx).is_ready()) {
                return Poll::Ready(Ended::Stopped);
            }
            self.in_flight.set_now(Micros::since(self.start));
            let ended = self.poll(cx);
            self.count_bytes();
            match ended {
                Poll::Pending => self.poll_watch(cx),
                ended @ Poll::Ready(_) => ended,
            }
        };
        let ended = std::future::poll_fn(&mut poll).await;
        self.count_end(&ended);
        // Sends what TLS still buffers of the last requests. A side that stops reading must not
        // block that.
        let told = async { tokio::join!(self.downstream.shutdown(), self.upstream.shutdown()) };
        drop(timeout(CLOSE_WITHIN, told).await);
        ended
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Ended> {
        if !self.task.will_wake(cx.waker()) {
            self.task = cx.waker().clone();
            self.memory.set_task(&self.task);
        }
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
            let was_waiting = self.request_scanner.waits_for_answers(&self.in_flight);
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
            if !was_waiting || self.request_scanner.waits_for_answers(&self.in_flight) {
                self.flush(cx)?;
                return Ok(None);
            }
        }
    }

    /// Sends what the streams have taken; nothing is left in a socket without TLS.
    fn flush(&mut self, cx: &mut Context<'_>) -> Result<(), Ended> {
        // Pending wakes the task as well as a write does.
        if let Poll::Ready(Err(error)) = Pin::new(&mut self.downstream).poll_flush(cx) {
            return Err(Ended::Io(Side::Downstream, error));
        }
        if let Poll::Ready(Err(error)) = Pin::new(&mut self.upstream).poll_flush(cx) {
            return Err(Ended::Io(Side::Upstream, error));
        }
        Ok(())
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
        let (requests, responses) = (self.requests.take_counts(), self.responses.take_counts());
        self.watch.received(requests.received);
        self.watch.sent(responses.sent);
        if !self.is_within_request() {
            self.watch.request_came();
        }
        if self.responses.is_written() {
            self.watch.answers_went();
        }
        self.traffic.moved(requests, responses);
    }

    /// Ends a session whose client keeps it for nothing.
    fn poll_watch(&mut self, cx: &mut Context<'_>) -> Poll<Ended> {
        while self.watch.poll_step(cx) {
            self.in_flight.settle();
            if let Some(silence) = self.watch.step(self.awaited()) {
                return Poll::Ready(Ended::Silent(silence));
            }
        }
        let pressed = self.pressed();
        if pressed == Pressed::default() {
            return Poll::Pending;
        }
        match self.watch.press(self.awaited(), pressed) {
            Some(silence) => Poll::Ready(Ended::Silent(silence)),
            None => Poll::Pending,
        }
    }

    /// True if the client has sent only a part of a request.
    fn is_within_request(&self) -> bool {
        self.requests.is_starved() || !self.request_scanner.is_between_frames()
    }

    /// What is waited for between two polls.
    fn awaited(&self) -> Awaited {
        let scanner = &self.request_scanner;
        let works = scanner.is_filtering() || scanner.waits_for_memory();
        let is_sending = !self.requests.is_written();
        Awaited {
            request: !works && !is_sending && self.is_within_request(),
            answer: !self.responses.is_written(),
            ours: works || is_sending || !self.in_flight.is_empty(),
        }
    }

    /// The memory that others wait for.
    fn pressed(&self) -> Pressed {
        let held = |of, bytes: usize| match bytes > 0 && self.memory.is_pressed(of) {
            true => bytes,
            false => 0,
        };
        let request = self.request_scanner.permit_bytes() + self.requests.permit_bytes();
        let answer = self.response_scanner.permit_bytes() + self.responses.permit_bytes();
        Pressed {
            request: held(MemoryUse::Request, request),
            answer: held(MemoryUse::Answer, answer),
        }
    }

    fn count_end(&self, ended: &Ended) {
        match ended {
            Ended::Malformed(side, _) => add(&self.metrics.side(*side).frames_malformed, 1),
            Ended::Silent(Silence::Idle) => add(&self.metrics.sessions_idle, 1),
            Ended::Silent(Silence::SlowReader) => add(&self.metrics.sessions_slow_reader, 1),
            _ => {}
        }
    }
}

fn ended(broken: Broken, from: Side, to: Side) -> Ended {
    match broken {
        Broken::Malformed(malformed) => Ended::Malformed(from, malformed),
        Broken::Filter(failed) => Ended::Filter(failed),
        Broken::Memory(error) => Ended::Memory(error),
        Broken::Renewal(error) => Ended::Renewal(error),
        Broken::Read(error) => Ended::Io(from, error),
        Broken::Write(error) => Ended::Io(to, error),
    }
}

#[cfg(test)]
mod tests;
