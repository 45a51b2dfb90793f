//! The task that owns a connection's socket.

use std::collections::VecDeque;
use std::future::Future;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use moldau_net::{FrameBuffer, Stream, TlsError};
use moldau_protocol::ApiKey;
use tokio::io::AsyncWrite;
use tokio::sync::mpsc;
use tokio::time::{Instant, Sleep};

use super::security::tls_error;
use super::{OnReply, Outgoing, Permit};
use crate::Error;

/// Segments given to one `writev`; a produce request has two per partition.
const WRITE_SEGMENTS_MAX: usize = 64;

/// Room made for an answer on the word of its length: the broker was chosen by the operator, and
/// untouched memory costs nothing.
const AHEAD_BYTES_MAX: usize = 8 * 1024 * 1024;

/// A request that was handed over and is not answered.
struct Waiting {
    api: ApiKey,
    correlation_id: i32,
    deadline: Instant,
    on_reply: OnReply,
    permit: Permit,
}

/// A request without an answer whose bytes are not all with the operating system.
struct Unanswered {
    api: ApiKey,
    deadline: Instant,
    /// Position in the stream of bytes after the request's last byte.
    end: u64,
    on_reply: OnReply,
    permit: Permit,
}

struct Io {
    stream: Stream,
    address: Arc<str>,
    inbox: mpsc::Receiver<Outgoing>,
    inbox_closed: bool,
    waiting: VecDeque<Waiting>,
    unanswered: VecDeque<Unanswered>,
    write_queue: VecDeque<Bytes>,
    queued_bytes: u64,
    written_bytes: u64,
    /// Whether everything written is with the operating system; a TLS stream may hold some back.
    flushed: bool,
    buffer: FrameBuffer,
    /// Fires at or before the oldest deadline.
    timer: Pin<Box<Sleep>>,
    armed_for: Option<Instant>,
}

/// Serves the socket until the peer or all owners are gone.
pub(super) async fn run(
    stream: Stream,
    address: Arc<str>,
    frame_bytes_max: usize,
    inbox: mpsc::Receiver<Outgoing>,
) {
    let mut io = Io {
        stream,
        address,
        inbox,
        inbox_closed: false,
        waiting: VecDeque::new(),
        unanswered: VecDeque::new(),
        write_queue: VecDeque::new(),
        queued_bytes: 0,
        written_bytes: 0,
        flushed: true,
        buffer: FrameBuffer::new(frame_bytes_max).with_ahead_bytes_max(AHEAD_BYTES_MAX),
        timer: Box::pin(tokio::time::sleep_until(Instant::now())),
        armed_for: None,
    };
    let error = std::future::poll_fn(|cx| io.poll(cx)).await;
    io.fail_all(&error).await;
}

impl Io {
    /// Ready with the reason when the connection is over.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Error> {
        self.take_requests(cx);
        if let Err(error) = self.poll_write(cx) {
            return Poll::Ready(self.broken(error));
        }
        if self.is_done() {
            return Poll::Ready(Error::Closed);
        }
        if let Poll::Ready(error) = self.poll_read(cx) {
            return Poll::Ready(error);
        }
        if self.is_done() {
            return Poll::Ready(Error::Closed);
        }
        self.poll_deadline(cx)
    }

    fn is_done(&self) -> bool {
        self.inbox_closed && self.waiting.is_empty() && self.write_queue.is_empty() && self.flushed
    }

    fn take_requests(&mut self, cx: &mut Context<'_>) {
        while !self.inbox_closed {
            match self.inbox.poll_recv(cx) {
                Poll::Ready(Some(outgoing)) => self.queue(outgoing),
                Poll::Ready(None) => self.inbox_closed = true,
                Poll::Pending => return,
            }
        }
    }

    fn queue(&mut self, outgoing: Outgoing) {
        for segment in outgoing.segments {
            self.queued_bytes += segment.len() as u64;
            if !segment.is_empty() {
                self.write_queue.push_back(segment);
            }
        }
        let Outgoing { api, correlation_id, deadline, on_reply, permit, .. } = outgoing;
        if outgoing.answered {
            self.waiting.push_back(Waiting { api, correlation_id, deadline, on_reply, permit });
        } else {
            let end = self.queued_bytes;
            self.unanswered.push_back(Unanswered { api, deadline, end, on_reply, permit });
        }
    }

    fn poll_write(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        while !self.write_queue.is_empty() {
            let mut slices = [IoSlice::new(&[]); WRITE_SEGMENTS_MAX];
            let mut count = 0;
            for (slice, segment) in slices.iter_mut().zip(&self.write_queue) {
                *slice = IoSlice::new(segment);
                count += 1;
            }
            let slices = slices.get(..count).unwrap_or_default();
            match Pin::new(&mut self.stream).poll_write_vectored(cx, slices) {
                Poll::Ready(Ok(0)) => return Err(io::ErrorKind::WriteZero.into()),
                Poll::Ready(written) => self.written(written?),
                Poll::Pending => return Ok(()),
            }
        }
        if !self.flushed {
            match Pin::new(&mut self.stream).poll_flush(cx) {
                Poll::Ready(flushed) => flushed?,
                Poll::Pending => return Ok(()),
            }
            self.flushed = true;
        }
        Ok(())
    }

    fn written(&mut self, count: usize) {
        self.written_bytes += count as u64;
        self.flushed = false;
        let mut left = count;
        while let Some(front) = self.write_queue.front_mut() {
            if left < front.len() {
                front.advance(left);
                break;
            }
            left -= front.len();
            self.write_queue.pop_front();
        }
        while self.unanswered.front().is_some_and(|request| request.end <= self.written_bytes) {
            if let Some(request) = self.unanswered.pop_front() {
                drop(request.permit);
                (request.on_reply)(Ok(Bytes::new()));
            }
        }
    }

    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<Error> {
        loop {
            match ready!(self.buffer.poll_fill(cx, &mut self.stream)) {
                Ok(0) => return Poll::Ready(self.disconnected("end of stream")),
                Ok(_) => {}
                Err(error) => return Poll::Ready(self.broken(error)),
            }
            loop {
                match self.buffer.take_frame() {
                    Ok(Some(frame)) => {
                        if let Err(error) = self.answer(frame) {
                            return Poll::Ready(error);
                        }
                    }
                    Ok(None) => break,
                    Err(error) => return Poll::Ready(self.malformed(&error.to_string())),
                }
            }
        }
    }

    fn answer(&mut self, frame: Bytes) -> Result<(), Error> {
        let Some(id) = frame.first_chunk().copied().map(i32::from_be_bytes) else {
            return Err(self.malformed("an answer without a correlation id"));
        };
        let Some(request) = self.waiting.pop_front_if(|oldest| oldest.correlation_id == id) else {
            return Err(self.malformed("an answer to a request that was not sent"));
        };
        drop(request.permit);
        (request.on_reply)(Ok(frame));
        Ok(())
    }

    /// Ready when the oldest request has waited too long, for its answer or for its turn to be
    /// written.
    fn poll_deadline(&mut self, cx: &mut Context<'_>) -> Poll<Error> {
        while let Some((deadline, api)) = self.oldest_deadline() {
            if self.armed_for.is_none_or(|armed| deadline < armed) {
                self.timer.as_mut().reset(deadline);
                self.armed_for = Some(deadline);
            }
            ready!(self.timer.as_mut().poll(cx));
            self.armed_for = None;
            if Instant::now() >= deadline {
                return Poll::Ready(Error::TimedOut { address: self.address.clone(), api });
            }
        }
        Poll::Pending
    }

    fn oldest_deadline(&self) -> Option<(Instant, ApiKey)> {
        let waiting = self.waiting.front().map(|request| (request.deadline, request.api));
        let unanswered = self.unanswered.front().map(|request| (request.deadline, request.api));
        waiting.into_iter().chain(unanswered).min_by_key(|(deadline, _)| *deadline)
    }

    fn disconnected(&self, reason: &str) -> Error {
        Error::Disconnected { address: self.address.clone(), reason: reason.into() }
    }

    /// The socket failed, or the peer refuses us in the words of TLS.
    fn broken(&self, error: io::Error) -> Error {
        match TlsError::from(error) {
            TlsError::Io(error) => self.disconnected(&error.to_string()),
            refused => tls_error(refused, &self.address),
        }
    }

    fn malformed(&self, reason: &str) -> Error {
        Error::Malformed { address: self.address.clone(), reason: reason.into() }
    }

    async fn fail_all(mut self, error: &Error) {
        self.inbox.close();
        for request in self.waiting.drain(..) {
            drop(request.permit);
            (request.on_reply)(Err(error.clone()));
        }
        for request in self.unanswered.drain(..) {
            drop(request.permit);
            (request.on_reply)(Err(error.clone()));
        }
        while let Some(outgoing) = self.inbox.recv().await {
            drop(outgoing.permit);
            (outgoing.on_reply)(Err(error.clone()));
        }
    }
}
