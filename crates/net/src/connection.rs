//! Serves one connection: reads bursts of frames, hands them over, writes answers in order.
//!
//! One task does all of it. A wake runs this cycle until nothing moves any more: hand over every
//! frame that has arrived, poll the answers that woke, move finished ones from the front to the
//! write queue, write the queue with as few calls as possible, read again. A burst of pipelined
//! requests thus costs one read and one write.

mod closed;
mod intake;

use std::any::Any;
use std::collections::VecDeque;
use std::future::Future;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::{Buf, Bytes};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::{Sleep, sleep};

pub use self::closed::Closed;
use self::intake::{Intake, IntakeError};
use crate::buffer::{FRAME_BYTES_MAX_DEFAULT, LENGTH_PREFIX_BYTES};
use crate::memory::{MemoryAccount, MemoryBudget, MemoryUse};
use crate::metrics::{Metrics, add};
use crate::notice::Notice;
use crate::sasl::AUTHENTICATION_BYTES_MAX;
use crate::service::{Reply, Response, Service};
use crate::shutdown::{Phase, Shutdown, ShutdownListener};
use crate::watch::{Awaited, PeerWatch, Pressed};

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

/// Bytes of answers without a permit that wait to be written, above which no more requests are
/// taken; a longer answer gets a permit.
const LOOSE_BYTES_MAX: usize = 16 * 1024;

/// Bytes of requests that are kept until they are answered, above which no more are taken: room for
/// tens of commits and heartbeats that are sent ahead. One request may exceed it.
pub const KEPT_REQUEST_BYTES_MAX: usize = 4 * 1024;

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
    /// A connection whose peer takes next to nothing of an answer for this long, or sends next to
    /// nothing of a request that it began, is closed, so that neither is held in memory for those
    /// who do not want it. The time is shorter while others wait for that memory.
    pub slow_reader_timeout: Duration,
    /// Longest time until a peer that has to prove who it is has done so: what earlier steps (TLS)
    /// have left of [`ListenerLimits::handshake_timeout`](crate::ListenerLimits).
    pub authentication_timeout: Duration,
    /// Account that the connection's memory is charged to.
    pub memory: MemoryAccount,
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
            memory: MemoryBudget::unlimited().account(),
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
    /// An answer to come, and the bytes of its request that are kept until then.
    Pending(F, usize),
}

/// An answer in the write queue.
struct Queued {
    /// Bytes that are not written.
    bytes: usize,
    /// Bytes that no permit covers.
    loose: usize,
    _holds: Option<Box<dyn Any>>,
}

struct Connection<S, V: Service> {
    stream: S,
    service: V,
    limits: ConnectionLimits,
    shutdown: ShutdownListener,
    metrics: Arc<Metrics>,
    intake: Intake,
    /// Requests handed over whose answers have not reached the write queue, oldest first.
    slots: VecDeque<Slot<V::Future>>,
    /// Bytes of requests that are kept until they are answered.
    kept_bytes: usize,
    write_queue: VecDeque<Bytes>,
    /// The answers in the write queue.
    queued: VecDeque<Queued>,
    /// Bytes of answers that are there and not written: those in the queue, and behind others.
    answer_bytes: usize,
    /// Those of them that no permit covers.
    loose_bytes: usize,
    notice: Arc<Notice>,
    notice_waker: Waker,
    task: Option<Waker>,
    /// Set when no more requests are taken: what to return once the answers are out.
    ending: Option<Closed>,
    watch: PeerWatch,
    /// The service is not ready for a frame that has arrived, or memory is waited for.
    held_back: bool,
    /// The service takes nothing from the peer for a while.
    muted: bool,
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
            intake: Intake::new(frame_bytes_max, limits.memory.clone()),
            slots: VecDeque::new(),
            kept_bytes: 0,
            write_queue: VecDeque::new(),
            queued: VecDeque::new(),
            answer_bytes: 0,
            loose_bytes: 0,
            notice_waker: Waker::from(Arc::clone(&notice)),
            notice,
            task: None,
            ending: None,
            watch: PeerWatch::new(limits.idle_timeout, limits.slow_reader_timeout),
            held_back: false,
            muted: false,
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
            self.muted = self.service.poll_open(cx).is_pending();
            if self.muted {
                self.service.stand_back();
                return Poll::Pending;
            }
            if self.may_take() && matches!(self.intake.buffer.frame(), Ok(Some(_)) | Err(_)) {
                // The write made room for a frame that has arrived, or the service is not ready
                // for it and will wake this task.
                if self.held_back {
                    return Poll::Pending;
                }
                continue;
            }
            if !self.may_take() {
                self.service.stand_back();
                return Poll::Pending;
            }
            let filled = self.intake.poll_fill(cx, &mut self.stream);
            self.held_back = self.intake.waits_for_memory();
            match filled {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Ok(0)) => return Poll::Ready(Closed::ByPeer),
                Poll::Ready(Ok(count)) => {
                    self.watch.received(count as u64);
                    read_room = read_room.saturating_sub(count);
                    add(&self.metrics.bytes_in, count as u64);
                }
                Poll::Ready(Err(IntakeError::Io(error))) => return Poll::Ready(Closed::Io(error)),
                // Earlier requests are still answered.
                Poll::Ready(Err(IntakeError::Exceeded(error))) => self.end(Closed::Memory(error)),
            }
        }
    }

    fn follow_task(&mut self, cx: &Context<'_>) {
        if !self.task.as_ref().is_some_and(|task| task.will_wake(cx.waker())) {
            self.notice.set_task(cx.waker());
            self.limits.memory.set_task(cx.waker());
            self.task = Some(cx.waker().clone());
        }
    }

    fn end(&mut self, closed: Closed) {
        self.ending.get_or_insert(closed);
    }

    fn may_take(&self) -> bool {
        self.ending.is_none()
            && self.slots.len() + self.queued.len() < self.limits.in_flight_requests_max
            && self.answer_bytes < self.limits.answer_bytes_max
            && self.loose_bytes < LOOSE_BYTES_MAX
            && self.kept_bytes < KEPT_REQUEST_BYTES_MAX
    }

    /// Gives every frame that has arrived to the service, within the limits and at most `room`,
    /// which is what is left of the turn.
    fn hand_over(&mut self, cx: &mut Context<'_>, room: &mut usize) {
        let mut requests = 0;
        self.held_back = false;
        while self.may_take() && *room > 0 && self.service.poll_open(cx).is_ready() {
            let frame = match self.intake.buffer.frame() {
                Ok(Some(frame)) => frame,
                Ok(None) => break,
                Err(error) => {
                    self.end(Closed::Frame(error));
                    break;
                }
            };
            if self.service.poll_ready(cx, frame.len()).is_pending() {
                self.held_back = true;
                break;
            }
            let total = frame.len() + LENGTH_PREFIX_BYTES;
            let reply = self.service.call(frame);
            self.intake.buffer.consume(total);
            requests += 1;
            *room -= 1;
            match reply {
                Reply::Ready(response) => self.push_ready(response),
                Reply::Later(future, kept) => self.push_later(future, kept),
                Reply::Last(future, reason) => {
                    self.push_later(future, 0);
                    self.end(Closed::Refused(reason));
                }
                Reply::NoResponse => {}
                Reply::Close(reason) => self.end(Closed::ByService(reason)),
            }
            if self.unauthenticated.is_some() && self.service.is_authenticated() {
                self.unauthenticated = None;
                self.intake.buffer.set_frame_bytes_max(self.limits.frame_bytes_max);
            }
        }
        if requests > 0 {
            self.intake.settle();
            self.watch.request_came();
            add(&self.metrics.requests, requests);
        }
    }

    fn push_ready(&mut self, response: Response) {
        let response = self.counted(response);
        self.slots.push_back(Slot::Ready(response));
    }

    fn push_later(&mut self, mut future: V::Future, kept: usize) {
        let mut cx = Context::from_waker(&self.notice_waker);
        match Pin::new(&mut future).poll(&mut cx) {
            Poll::Ready(response) => self.push_ready(response),
            Poll::Pending => {
                self.kept_bytes += kept;
                self.slots.push_back(Slot::Pending(future, kept));
            }
        }
    }

    /// Counts the bytes of an answer, and sees to it that a permit covers those of a long one.
    fn counted(&mut self, mut response: Response) -> Response {
        let bytes = response.len();
        self.answer_bytes += bytes;
        if response.holds.is_none() {
            if bytes > LOOSE_BYTES_MAX {
                let permit = self.limits.memory.charge(MemoryUse::Answer, bytes);
                response.holds = Some(Box::new(permit));
            } else {
                self.loose_bytes += bytes;
            }
        }
        response
    }

    fn poll_answers(&mut self) {
        if !self.notice.take() {
            return;
        }
        let waker = self.notice_waker.clone();
        let mut cx = Context::from_waker(&waker);
        let mut slots = std::mem::take(&mut self.slots);
        for slot in &mut slots {
            if let Slot::Pending(future, kept) = slot
                && let Poll::Ready(response) = Pin::new(future).poll(&mut cx)
            {
                self.kept_bytes -= *kept;
                *slot = Slot::Ready(self.counted(response));
            }
        }
        self.slots = slots;
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
            let (bytes, Response { head, rest, holds, .. }) = (response.len(), response);
            if bytes == 0 {
                continue;
            }
            let loose = if holds.is_none() { bytes } else { 0 };
            self.queued.push_back(Queued { bytes, loose, _holds: holds });
            let segments = std::iter::once(head).chain(rest);
            self.write_queue.extend(segments.filter(|segment| !segment.is_empty()));
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
        self.watch.answers_went();
        // A TLS stream may hold back what was written; a plain socket does nothing here.
        match Pin::new(&mut self.stream).poll_flush(cx) {
            Poll::Ready(flushed) => flushed,
            Poll::Pending => Ok(()),
        }
    }

    fn written(&mut self, count: usize) {
        self.watch.sent(count as u64);
        self.answer_bytes -= count;
        add(&self.metrics.bytes_out, count as u64);
        let mut left = count;
        while let Some(answer) = self.queued.front_mut() {
            if left < answer.bytes {
                answer.bytes -= left;
                break;
            }
            left -= answer.bytes;
            self.loose_bytes -= answer.loose;
            self.queued.pop_front();
        }
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
        while self.watch.poll_step(cx) {
            if let Some(silence) = self.watch.step(self.awaited()) {
                return Some(Closed::Silent(silence));
            }
            if self.watch.is_quiet() {
                self.intake.release();
            }
        }
        let pressed = self.pressed();
        if pressed == Pressed::default() {
            return None;
        }
        self.intake.settle();
        self.watch.press(self.awaited(), pressed).map(Closed::Silent)
    }

    /// What is waited for between two polls.
    fn awaited(&self) -> Awaited {
        let is_reading = self.may_take() && !self.held_back && !self.muted;
        let has_answers = !self.write_queue.is_empty();
        Awaited {
            request: is_reading && !self.intake.buffer.peek().is_empty(),
            answer: has_answers,
            ours: self.held_back || self.muted || (!has_answers && !self.slots.is_empty()),
        }
    }

    /// The memory that others wait for.
    fn pressed(&self) -> Pressed {
        let is_pressed = self.answer_bytes > self.loose_bytes
            && self.limits.memory.is_pressed(MemoryUse::Answer);
        Pressed {
            request: self.intake.pressed_bytes(),
            answer: if is_pressed { self.answer_bytes } else { 0 },
        }
    }
}

/// Wakes the task again once the runtime has looked at the other tasks and at the sockets.
fn give_way(cx: &mut Context<'_>) {
    // It is pending once and wakes the task on its own.
    let turn = std::pin::pin!(tokio::task::yield_now());
    assert!(turn.poll(cx).is_pending(), "the first poll of a yield is pending");
}

#[cfg(test)]
mod tests;
