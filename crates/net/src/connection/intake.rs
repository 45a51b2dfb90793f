//! What a connection has read and not handed over, within the memory that it has a permit for.
//!
//! [`READ_BYTES_MIN`] bytes need no permit: the limit of connections bounds them. A frame above
//! that needs a permit for all of it before more of it is read.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::AsyncRead;

use crate::buffer::{FrameBuffer, LENGTH_PREFIX_BYTES, READ_BYTES_MAX, READ_BYTES_MIN};
use crate::memory::{Acquire, MemoryAccount, MemoryExceeded, MemoryUse, Permit};

/// Memory that is kept for the frames that follow: Kafka's clients send frames of up to 1 MiB by
/// default, and fresh memory costs more than to fill it.
const KEPT_BYTES_MAX: usize = 2 * 1024 * 1024;

/// A read buffer with its permit.
pub(super) struct Intake {
    pub(super) buffer: FrameBuffer,
    memory: MemoryAccount,
    permit: Option<Permit>,
    /// The next permit is waited for.
    acquiring: Option<Acquire>,
}

/// Why nothing more can be read.
pub(super) enum IntakeError {
    Io(io::Error),
    /// A frame can never be held.
    Exceeded(MemoryExceeded),
}

impl Intake {
    pub(super) fn new(frame_bytes_max: usize, memory: MemoryAccount) -> Self {
        let mut buffer = FrameBuffer::new(frame_bytes_max);
        buffer.set_memory_max(READ_BYTES_MIN);
        Self { buffer, memory, permit: None, acquiring: None }
    }

    /// Whether a frame waits for memory.
    pub(super) fn waits_for_memory(&self) -> bool {
        self.acquiring.is_some()
    }

    /// Bytes that others wait for.
    pub(super) fn pressed_bytes(&self) -> usize {
        match &self.permit {
            Some(permit) if self.memory.is_pressed(MemoryUse::Request) => permit.bytes(),
            _ => 0,
        }
    }

    /// Reads what `io` has, once there is memory for it.
    pub(super) fn poll_fill<R: AsyncRead + Unpin>(
        &mut self,
        cx: &mut Context<'_>,
        io: &mut R,
    ) -> Poll<Result<usize, IntakeError>> {
        ready!(self.poll_memory(cx)).map_err(IntakeError::Exceeded)?;
        self.buffer.poll_fill(cx, io).map_err(IntakeError::Io)
    }

    fn poll_memory(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), MemoryExceeded>> {
        if let Some(acquiring) = &mut self.acquiring {
            let permit = ready!(Pin::new(acquiring).poll(cx));
            self.acquiring = None;
            self.set_permit(Some(permit));
        }
        let held = self.permit.as_ref().map_or(READ_BYTES_MIN, Permit::bytes);
        let wanted = self.buffer.memory_wanted();
        if wanted <= held {
            return Poll::Ready(Ok(()));
        }
        if self.frame_bytes() > held {
            // What is held meanwhile is the begin of the frame, as reads brought it.
            self.permit = None;
            self.acquiring =
                Some(self.memory.acquire(MemoryUse::Request, wanted..=READ_BYTES_MAX)?);
            return self.poll_memory(cx);
        }
        // Larger reads cost less, but can do without.
        if let Some(permit) = self.memory.try_acquire(MemoryUse::Request, READ_BYTES_MAX) {
            self.set_permit(Some(permit));
        }
        Poll::Ready(Ok(()))
    }

    /// After frames were taken: gives back memory that the next frames need not, or that others
    /// wait for.
    pub(super) fn settle(&mut self) {
        let Some(permit) = &self.permit else { return };
        let is_kept = permit.bytes() <= KEPT_BYTES_MAX && self.pressed_bytes() == 0;
        let needed = self.buffer.peek().len().max(self.frame_bytes());
        if self.buffer.is_released() || (!is_kept && needed <= READ_BYTES_MIN) {
            self.buffer.shrink();
            self.set_permit(None);
        }
    }

    /// Length of the frame at the front with its prefix, as far as that is known.
    fn frame_bytes(&self) -> usize {
        let length = self.buffer.frame_len().unwrap_or_default();
        length.map_or(0, |length| length + LENGTH_PREFIX_BYTES)
    }

    /// Gives all memory back if nothing is held, for connections that have gone quiet.
    pub(super) fn release(&mut self) {
        self.buffer.release();
        self.settle();
    }

    fn set_permit(&mut self, permit: Option<Permit>) {
        self.buffer.set_memory_max(permit.as_ref().map_or(READ_BYTES_MIN, Permit::bytes));
        self.permit = permit;
    }
}
