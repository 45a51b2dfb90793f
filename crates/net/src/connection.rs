//! Serves one connection: reads bursts of frames, hands them over, writes answers in order.
//!
//! One task does all of it. A wake runs this cycle until nothing moves any more: hand over every
//! frame that has arrived, poll the answers that woke, move finished ones from the front to the
//! write queue, write the queue with as few calls as possible, read again. A burst of pipelined
//! requests thus costs one read and one write.

use std::collections::VecDeque;
use std::fmt;
use std::future::Future;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use bytes::{Buf, Bytes};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::{Instant, Interval, MissedTickBehavior, Sleep, interval_at, sleep};

use crate::buffer::{FRAME_BYTES_MAX_DEFAULT, FrameBuffer, FrameError, LENGTH_PREFIX_BYTES};
use crate::metrics::{Metrics, add};
use crate::notice::Notice;
use crate::refusal::Refusal;
use crate::sasl::AUTHENTICATION_BYTES_MAX;
use crate::service::{Reply, Response, Service};
use crate::shutdown::{Phase, Shutdown, ShutdownListener};

/// Segments given to one `writev`. Far below the kernel's 1024 so that the array stays on the
/// stack; 64 segments of a fetch answer are a megabyte and more.
const WRITE_SEGMENTS_MAX: usize = 64;

/// Most bytes written before other connections of the thread get their turn. The kernel copies
/// them in a fraction of a millisecond, against which the turn costs nothing; an answer of many
/// megabytes to a peer that reads as fast would else keep everyone waiting.
const WRITE_BYTES_PER_TURN: usize = 512 * 1024;

/// Most bytes read and requests handed over in one turn, for the same reason: a peer that sends as
/// fast as it is read never ends the turn by itself.
const READ_BYTES_PER_TURN: usize = 1024 * 1024;
const REQUESTS_PER_TURN: usize = 1024;

/// The shorter one of the idle and slow-reader timeouts is measured in this many steps.
const STEPS_MIN: u32 = 8;

/// An unfinished frame that gains fewer bytes than this in one step counts as idle, and an answer
/// that loses fewer as not being read, so that a peer cannot hold a connection byte by byte.
const STEP_BYTES_MIN: usize = 64 * 1024;

/// Limits of one connection.
#[derive(Clone, Debug)]
pub struct ConnectionLimits {
    /// Largest frame; Kafka's `socket.request.max.bytes`.
    pub frame_bytes_max: usize,
    /// Requests taken from the connection and not yet answered. Java clients keep 5 in flight;
    /// 64 leaves room for a multiplexing peer and bounds what one connection can make us hold.
    pub in_flight_requests_max: usize,
    /// Answered bytes waiting for a peer that reads slowly or for an answer before them, above
    /// which no more requests are taken. One answer may exceed it.
    pub answer_bytes_max: usize,
    /// A connection on which the peer does nothing for this long is closed; Kafka's
    /// `connections.max.idle.ms`.
    pub idle_timeout: Duration,
    /// A connection whose peer takes next to nothing of an answer for this long is closed, so that
    /// answers are not held in memory for those who do not want them.
    pub slow_reader_timeout: Duration,
    /// Longest time until a peer that has to prove who it is has done so: what earlier steps (TLS)
    /// have left of [`ListenerLimits::handshake_timeout`](crate::ListenerLimits).
    pub authentication_timeout: Duration,
}

impl Default for ConnectionLimits {
    fn default() -> Self {
        Self {
            frame_bytes_max: FRAME_BYTES_MAX_DEFAULT,
            in_flight_requests_max: 64,
            answer_bytes_max: 4 * 1024 * 1024,
            idle_timeout: Duration::from_mins(10),
            slow_reader_timeout: Duration::from_mins(2),
            authentication_timeout: Duration::from_secs(10),
        }
    }
}

/// Why a connection ended.
#[derive(Debug)]
pub enum Closed {
    /// The peer closed it.
    ByPeer,
    /// The socket failed.
    Io(io::Error),
    /// The peer did nothing for the idle timeout.
    Idle,
    /// The peer took next to nothing of an answer for the slow-reader timeout.
    SlowReader,
    /// The peer did not prove who it is in time.
    Unauthenticated,
    /// The peer sent a length that no frame may have.
    Frame(FrameError),
    /// The service could not answer a frame, for this reason.
    ByService(&'static str),
    /// The service refused the peer with its last answer, for this reason.
    Refused(&'static str),
    /// The process is shutting down.
    Drained,
}

impl Closed {
    /// What it counts as, if it is a refusal that nobody has counted.
    fn cause(&self) -> Option<Refusal> {
        match self {
            Self::Idle => Some(Refusal::Idle),
            Self::SlowReader => Some(Refusal::SlowReader),
            Self::Unauthenticated => Some(Refusal::AuthenticationTimeout),
            Self::Frame(error) => Some(error.into()),
            Self::ByService(_) => Some(Refusal::FrameRefused),
            Self::Refused(_) | Self::ByPeer | Self::Io(_) | Self::Drained => None,
        }
    }
}

impl fmt::Display for Closed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ByPeer => f.write_str("it closed the connection"),
            Self::Io(error) => write!(f, "its socket failed: {error}"),
            Self::Idle => f.write_str("it did nothing for too long"),
            Self::SlowReader => f.write_str("it took nothing of its answers for too long"),
            Self::Unauthenticated => f.write_str("it did not authenticate in time"),
            Self::Frame(error) => error.fmt(f),
            Self::ByService(reason) | Self::Refused(reason) => f.write_str(reason),
            Self::Drained => f.write_str("the process is shutting down"),
        }
    }
}

/// Serves `stream` with `service` until either side ends it.
pub async fn serve_connection<S, V>(
    stream: S,
    service: V,
    limits: ConnectionLimits,
    shutdown: &Shutdown,
    metrics: Arc<Metrics>,
) -> Closed
where
    S: AsyncRead + AsyncWrite + Unpin,
    V: Service,
{
    let mut connection = Connection::new(stream, service, limits, shutdown, metrics);
    let closed = std::future::poll_fn(|cx| connection.poll(cx)).await;
    if let Some(cause) = closed.cause() {
        let (peer, at) = connection.service.peer();
        connection.metrics.refuse(cause, peer, &at, &closed);
    }
    closed
}

enum Slot<F> {
    Ready(Response),
    Pending(F),
}

struct Connection<S, V: Service> {
    stream: S,
    service: V,
    limits: ConnectionLimits,
    shutdown: ShutdownListener,
    metrics: Arc<Metrics>,
    buffer: FrameBuffer,
    /// Requests handed over whose answers have not reached the write queue, oldest first.
    slots: VecDeque<Slot<V::Future>>,
    write_queue: VecDeque<Bytes>,
    /// Bytes of answers that are there and not written: those in the queue, and behind others.
    answer_bytes: usize,
    /// Answers in the write queue; they count as in flight until the queue has run empty.
    write_queue_responses: usize,
    notice: Arc<Notice>,
    notice_waker: Waker,
    task: Option<Waker>,
    /// Set when no more requests are taken: what to return once the answers are out.
    ending: Option<Closed>,
    idle: IdleWatch,
    /// When the peer has to have proven who it is; `None` once it has.
    unauthenticated: Option<Pin<Box<Sleep>>>,
}

impl<S, V> Connection<S, V>
where
    S: AsyncRead + AsyncWrite + Unpin,
    V: Service,
{
    fn new(
        stream: S,
        service: V,
        limits: ConnectionLimits,
        shutdown: &Shutdown,
        metrics: Arc<Metrics>,
    ) -> Self {
        let notice = Notice::new();
        let unauthenticated = !service.is_authenticated();
        let frame_bytes_max = match unauthenticated {
            true => limits.frame_bytes_max.min(AUTHENTICATION_BYTES_MAX),
            false => limits.frame_bytes_max,
        };
        Self {
            stream,
            service,
            shutdown: shutdown.listen(),
            metrics,
            buffer: FrameBuffer::new(frame_bytes_max),
            slots: VecDeque::new(),
            write_queue: VecDeque::new(),
            answer_bytes: 0,
            write_queue_responses: 0,
            notice_waker: Waker::from(Arc::clone(&notice)),
            notice,
            task: None,
            ending: None,
            idle: IdleWatch::new(&limits),
            unauthenticated: unauthenticated
                .then(|| Box::pin(sleep(limits.authentication_timeout))),
            limits,
        }
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Closed> {
        self.follow_task(cx);
        match self.shutdown.phase(cx) {
            Phase::Running => {}
            Phase::Draining => self.end(Closed::Drained),
            Phase::Stopped => return Poll::Ready(Closed::Drained),
        }
        if let Some(closed) = self.poll_timers(cx) {
            return Poll::Ready(closed);
        }
        let mut room = WRITE_BYTES_PER_TURN;
        let (mut read_room, mut request_room) = (READ_BYTES_PER_TURN, REQUESTS_PER_TURN);
        loop {
            self.hand_over(cx, &mut request_room);
            self.poll_answers();
            self.collect();
            if let Err(error) = self.poll_write(cx, &mut room) {
                return Poll::Ready(Closed::Io(error));
            }
            if self.slots.is_empty()
                && self.write_queue.is_empty()
                && let Some(closed) = self.ending.take()
            {
                self.service.stand_back();
                return self.poll_close(cx, closed);
            }
            if read_room == 0 || request_room == 0 {
                give_way(cx);
                return Poll::Pending;
            }
            if self.may_take() && matches!(self.buffer.frame(), Ok(Some(_)) | Err(_)) {
                // The write made room for a frame that has arrived, or the service is not ready
                // for it and will wake this task.
                if self.idle.held_back {
                    return Poll::Pending;
                }
                continue;
            }
            if !self.may_take() {
                self.service.stand_back();
                return Poll::Pending;
            }
            match ready!(self.buffer.poll_fill(cx, &mut self.stream)) {
                Ok(0) => return Poll::Ready(Closed::ByPeer),
                Ok(count) => {
                    self.idle.read_bytes += count;
                    read_room = read_room.saturating_sub(count);
                    add(&self.metrics.bytes_in, count as u64);
                }
                Err(error) => return Poll::Ready(Closed::Io(error)),
            }
        }
    }

    fn follow_task(&mut self, cx: &Context<'_>) {
        if !self.task.as_ref().is_some_and(|task| task.will_wake(cx.waker())) {
            self.notice.set_task(cx.waker());
            self.task = Some(cx.waker().clone());
        }
    }

    fn end(&mut self, closed: Closed) {
        self.ending.get_or_insert(closed);
    }

    fn may_take(&self) -> bool {
        self.ending.is_none()
            && self.slots.len() + self.write_queue_responses < self.limits.in_flight_requests_max
            && self.answer_bytes < self.limits.answer_bytes_max
    }

    /// Gives every frame that has arrived to the service, within the limits and at most `room`,
    /// which is what is left of the turn.
    fn hand_over(&mut self, cx: &mut Context<'_>, room: &mut usize) {
        let mut requests = 0;
        self.idle.held_back = false;
        while self.may_take() && *room > 0 {
            let frame = match self.buffer.frame() {
                Ok(Some(frame)) => frame,
                Ok(None) => break,
                Err(error) => {
                    self.end(Closed::Frame(error));
                    break;
                }
            };
            if self.service.poll_ready(cx, frame.len()).is_pending() {
                self.idle.held_back = true;
                break;
            }
            let total = frame.len() + LENGTH_PREFIX_BYTES;
            let reply = self.service.call(frame);
            self.buffer.consume(total);
            requests += 1;
            *room -= 1;
            match reply {
                Reply::Ready(response) => self.push_ready(response),
                Reply::Later(future) => self.push_later(future),
                Reply::Last(future, reason) => {
                    self.push_later(future);
                    self.end(Closed::Refused(reason));
                }
                Reply::NoResponse => {}
                Reply::Close(reason) => self.end(Closed::ByService(reason)),
            }
            if self.unauthenticated.is_some() && self.service.is_authenticated() {
                self.unauthenticated = None;
                self.buffer.set_frame_bytes_max(self.limits.frame_bytes_max);
            }
        }
        if requests > 0 {
            self.idle.active = true;
            add(&self.metrics.requests, requests);
        }
    }

    fn push_ready(&mut self, response: Response) {
        self.answer_bytes += response.len();
        self.slots.push_back(Slot::Ready(response));
    }

    fn push_later(&mut self, mut future: V::Future) {
        let mut cx = Context::from_waker(&self.notice_waker);
        match Pin::new(&mut future).poll(&mut cx) {
            Poll::Ready(response) => self.push_ready(response),
            Poll::Pending => self.slots.push_back(Slot::Pending(future)),
        }
    }

    fn poll_answers(&mut self) {
        if !self.notice.take() {
            return;
        }
        let mut cx = Context::from_waker(&self.notice_waker);
        for slot in &mut self.slots {
            if let Slot::Pending(future) = slot
                && let Poll::Ready(response) = Pin::new(future).poll(&mut cx)
            {
                self.answer_bytes += response.len();
                *slot = Slot::Ready(response);
            }
        }
    }

    /// Moves finished answers from the front to the write queue.
    fn collect(&mut self) {
        while matches!(self.slots.front(), Some(Slot::Ready(_))) {
            let Some(Slot::Ready(response)) = self.slots.pop_front() else { return };
            if let Some(reason) = response.closes {
                // The peer would take the answers behind it for those of other requests.
                self.slots.clear();
                self.end(Closed::ByService(reason));
                break;
            }
            self.write_queue_responses += 1;
            for segment in std::iter::once(response.head).chain(response.rest) {
                if !segment.is_empty() {
                    self.write_queue.push_back(segment);
                }
            }
        }
        if self.write_queue.is_empty() {
            self.write_queue_responses = 0;
        }
    }

    /// Writes until the queue is empty, the peer takes no more or `room` is used up, which is what
    /// is left of the turn.
    fn poll_write(&mut self, cx: &mut Context<'_>, room: &mut usize) -> io::Result<()> {
        while !self.write_queue.is_empty() {
            if *room == 0 {
                give_way(cx);
                return Ok(());
            }
            let mut slices = [IoSlice::new(&[]); WRITE_SEGMENTS_MAX];
            let (mut count, mut offered) = (0, 0);
            for (slice, segment) in slices.iter_mut().zip(&self.write_queue) {
                if offered == *room {
                    break;
                }
                let segment = segment.get(..*room - offered).unwrap_or(segment);
                *slice = IoSlice::new(segment);
                count += 1;
                offered += segment.len();
            }
            let slices = slices.get(..count).unwrap_or_default();
            let written = match Pin::new(&mut self.stream).poll_write_vectored(cx, slices) {
                Poll::Ready(Ok(0)) => return Err(io::ErrorKind::WriteZero.into()),
                Poll::Ready(written) => written?,
                Poll::Pending => return Ok(()),
            };
            self.written(written);
            *room -= written;
        }
        self.write_queue_responses = 0;
        // A TLS stream may hold back what was written; a plain socket does nothing here.
        match Pin::new(&mut self.stream).poll_flush(cx) {
            Poll::Ready(flushed) => flushed,
            Poll::Pending => Ok(()),
        }
    }

    fn written(&mut self, count: usize) {
        self.idle.written_bytes += count;
        self.answer_bytes -= count;
        add(&self.metrics.bytes_out, count as u64);
        let mut left = count;
        while let Some(front) = self.write_queue.front_mut() {
            if left < front.len() {
                front.advance(left);
                return;
            }
            left -= front.len();
            self.write_queue.pop_front();
        }
    }

    fn poll_close(&mut self, cx: &mut Context<'_>, closed: Closed) -> Poll<Closed> {
        match Pin::new(&mut self.stream).poll_shutdown(cx) {
            Poll::Ready(_) => Poll::Ready(closed),
            Poll::Pending => {
                self.ending = Some(closed);
                Poll::Pending
            }
        }
    }

    /// Why the connection ends, if a time is over.
    fn poll_timers(&mut self, cx: &mut Context<'_>) -> Option<Closed> {
        if let Some(deadline) = &mut self.unauthenticated
            && deadline.as_mut().poll(cx).is_ready()
        {
            return Some(Closed::Unauthenticated);
        }
        while self.idle.interval.poll_tick(cx).is_ready() {
            let answers_wait = !self.write_queue.is_empty();
            let ours_to_move = !answers_wait && !self.slots.is_empty();
            if let Some(closed) = self.idle.step(ours_to_move, answers_wait) {
                return Some(closed);
            }
            if self.idle.idle_steps > 0 {
                self.buffer.release();
            }
        }
        None
    }
}

/// Wakes the task again once the runtime has looked at the other tasks and at the sockets.
fn give_way(cx: &mut Context<'_>) {
    // It is pending once and wakes the task on its own.
    let turn = std::pin::pin!(tokio::task::yield_now());
    assert!(turn.poll(cx).is_pending(), "the first poll of a yield is pending");
}

/// Counts steps in which the peer neither sent, nor read, nor waited for us, and those in which
/// answers waited for it.
struct IdleWatch {
    interval: Interval,
    idle_steps: u32,
    idle_steps_max: u32,
    slow_steps: u32,
    slow_steps_max: u32,
    /// A request was taken in this step.
    active: bool,
    /// The service is not ready for a frame that has arrived.
    held_back: bool,
    /// Bytes read in this step.
    read_bytes: usize,
    /// Bytes written in this step.
    written_bytes: usize,
}

impl IdleWatch {
    fn new(limits: &ConnectionLimits) -> Self {
        let (idle, slow) = (limits.idle_timeout, limits.slow_reader_timeout);
        let period = (idle.min(slow) / STEPS_MIN).max(Duration::from_millis(1));
        let mut interval = interval_at(Instant::now() + period, period);
        interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let steps = |timeout: Duration| {
            u32::try_from(timeout.as_nanos().div_ceil(period.as_nanos())).unwrap_or(u32::MAX)
        };
        Self {
            interval,
            idle_steps: 0,
            idle_steps_max: steps(idle),
            slow_steps: 0,
            slow_steps_max: steps(slow),
            active: false,
            held_back: false,
            read_bytes: 0,
            written_bytes: 0,
        }
    }

    /// Ends a step; gives why the connection ends when there have been too many in a row.
    fn step(&mut self, ours_to_move: bool, answers_wait: bool) -> Option<Closed> {
        let moved = self.active || self.written_bytes > 0 || self.read_bytes >= STEP_BYTES_MIN;
        let busy = moved || ours_to_move || self.held_back;
        self.idle_steps = if busy { 0 } else { self.idle_steps + 1 };
        let slow = answers_wait && self.written_bytes < STEP_BYTES_MIN;
        self.slow_steps = if slow { self.slow_steps + 1 } else { 0 };
        self.active = false;
        (self.read_bytes, self.written_bytes) = (0, 0);
        if self.slow_steps >= self.slow_steps_max {
            Some(Closed::SlowReader)
        } else if self.idle_steps >= self.idle_steps_max {
            Some(Closed::Idle)
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests;
