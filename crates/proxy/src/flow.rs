//! One direction of a session: reads, has the bytes scanned where they lie, and writes them on.
//!
//! ```text
//! 0           resume        end        capacity
//! | scanned   | not scanned | free      |
//! ```
//!
//! What was scanned becomes pieces that are to be written: ranges of the very buffer into which
//! the bytes were read, and inserts where an answer is rewritten or a filter has its say. The
//! pieces of all that was read are written at once.

use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::ops::Range;
use std::pin::Pin;
use std::task::{Context, Poll};

use moldau_net::{Acquire, MemoryAccount, MemoryExceeded, MemoryUse, Permit};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::chain::FilterFailed;
use crate::error::Malformed;
use crate::in_flight::InFlight;
use crate::pool::{self, BUFFER_BYTES, Buffer};
use crate::traffic::Bytes;
use crate::upstream::FilterError;

/// Bytes of inserts from which on they are written before more is scanned: what one read brings at
/// most. One insert may exceed it.
const INSERT_BYTES_MAX: usize = BUFFER_BYTES;

/// Pieces that one call of the kernel takes. A full buffer of requests of 1 KB has more, for which
/// another call costs little.
const PIECES_MAX: usize = 64;

/// A scanner's decision about the bytes that it sees.
#[derive(Debug, Eq, PartialEq)]
pub(crate) enum Step {
    /// More bytes must arrive before anything can be said.
    Starved,
    /// Nothing more is taken: until answers have come, or ever, as the scanner knows.
    Held,
    /// So many bytes, at least one, may be written on.
    Pass(usize),
    /// `pass` bytes are written on, then the insert if there is any; the `skip` bytes after them
    /// are dropped.
    Replace { pass: usize, skip: usize },
}

/// Finds the frames in the bytes of one direction.
pub(crate) trait Scan {
    /// Fills the empty `insert` with what must be written before any further byte is looked at, if
    /// anything. Pending while a filter is at work, which wakes the task.
    fn poll_insert(
        &mut self,
        cx: &mut Context<'_>,
        insert: &mut Vec<u8>,
        in_flight: &mut InFlight,
    ) -> Poll<Result<(), Broken>>;

    /// Looks at bytes that are not empty and follow those of the previous step. May change them,
    /// and fills the empty `insert` for a [`Step::Replace`]. Asked again with more bytes after
    /// [`Step::Starved`].
    fn scan(
        &mut self,
        bytes: &mut [u8],
        insert: &mut Vec<u8>,
        in_flight: &mut InFlight,
    ) -> Result<Step, Malformed>;

    /// The permit for the memory of the insert that was filled last, if it has one.
    fn take_permit(&mut self) -> Option<Permit> {
        None
    }
}

/// Why a flow stands still.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Still {
    /// The sender has sent nothing more yet; all that could be passed on was.
    Idle,
    /// The receiver takes no more yet.
    Blocked,
    /// The scanner takes no more, or waits for a filter; all that it passed was written.
    Held,
    /// The sender has ended; all that could be passed on was.
    Ended {
        /// Bytes were left that are no whole header.
        truncated: bool,
    },
}

/// Why a flow cannot go on.
#[derive(Debug)]
pub(crate) enum Broken {
    Malformed(Malformed),
    Filter(FilterFailed),
    /// A message is longer than the memory budget ever has room for.
    Memory(MemoryExceeded),
    /// The cluster did not let the proxy authenticate anew.
    Renewal(FilterError),
    Read(io::Error),
    Write(io::Error),
}

impl From<Malformed> for Broken {
    fn from(malformed: Malformed) -> Self {
        Self::Malformed(malformed)
    }
}

/// Why a scan came to an end.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Scanned {
    /// More bytes must arrive.
    Dry,
    /// The scanner takes no more.
    Held,
    /// What was found must be written before the scan can go on.
    Full,
}

/// Bytes on their way from one socket to the other.
#[derive(Debug)]
pub(crate) struct Flow {
    /// Held only while bytes are in it.
    buffer: Option<Buffer>,
    memory: MemoryAccount,
    of: MemoryUse,
    /// A larger buffer is waited for.
    growing: Option<Acquire>,
    resume: usize,
    end: usize,
    /// Buffers to write, in order; none is empty.
    pieces: VecDeque<Piece>,
    /// Bytes of the first piece that are written.
    first_written: usize,
    insert_bytes: usize,
    /// Bytes of inserts that have permits.
    permit_bytes: usize,
    /// The begin of a message has come, and the scanner needs more of it.
    is_starved: bool,
    ended: bool,
    /// Bytes read and written since [`take_counts`](Self::take_counts).
    counts: Bytes<u64>,
}

#[derive(Debug)]
enum Piece {
    /// Bytes of the buffer.
    Pass(Range<usize>),
    /// Bytes in the place of others, and the permit for them if they have one.
    Insert(Vec<u8>, Option<Permit>),
}

impl Piece {
    fn bytes<'a>(&'a self, buffer: &'a [u8]) -> &'a [u8] {
        match self {
            Self::Pass(range) => buffer.get(range.clone()).unwrap_or_default(),
            Self::Insert(bytes, _) => bytes,
        }
    }
}

impl Drop for Flow {
    fn drop(&mut self) {
        if let Some(buffer) = self.buffer.take() {
            pool::give_buffer(buffer, self.of);
        }
    }
}

impl Flow {
    /// A flow of requests or of answers, with memory of this account.
    pub(crate) fn new(memory: MemoryAccount, of: MemoryUse) -> Self {
        Self {
            buffer: None,
            memory,
            of,
            growing: None,
            resume: 0,
            end: 0,
            pieces: VecDeque::new(),
            first_written: 0,
            insert_bytes: 0,
            permit_bytes: 0,
            is_starved: false,
            ended: false,
            counts: Bytes::default(),
        }
    }

    /// Bytes that are to be written and have permits.
    pub(crate) fn permit_bytes(&self) -> usize {
        self.permit_bytes
    }

    /// Whether everything that may be written was written.
    pub(crate) fn is_written(&self) -> bool {
        self.pieces.is_empty()
    }

    /// Whether the begin of a message waits for what follows it.
    pub(crate) fn is_starved(&self) -> bool {
        self.is_starved
    }

    /// Bytes read and written since the last call.
    pub(crate) fn take_counts(&mut self) -> Bytes<u64> {
        std::mem::take(&mut self.counts)
    }

    /// Moves bytes until it must stand still; the sockets wake the task when it may go on.
    pub(crate) fn poll<R, W>(
        &mut self,
        cx: &mut Context<'_>,
        from: &mut R,
        to: &mut W,
        scanner: &mut impl Scan,
        in_flight: &mut InFlight,
    ) -> Result<Still, Broken>
    where
        R: AsyncRead + Unpin,
        W: AsyncWrite + Unpin,
    {
        self.is_starved = false;
        loop {
            let scanned = self.scan(cx, scanner, in_flight)?;
            if self.poll_write(cx, to)?.is_pending() {
                return Ok(Still::Blocked);
            }
            self.settle();
            match scanned {
                Scanned::Full => continue,
                Scanned::Held => {
                    self.give_back();
                    return Ok(Still::Held);
                }
                Scanned::Dry => {}
            }
            if self.ended {
                return Ok(Still::Ended { truncated: self.end > 0 });
            }
            if self.poll_read(cx, from)?.is_pending() {
                self.is_starved = self.end > 0;
                return Ok(Still::Idle);
            }
        }
    }

    /// Scans as far as the scanner takes bytes and the pieces are not too many.
    fn scan(
        &mut self,
        cx: &mut Context<'_>,
        scanner: &mut impl Scan,
        in_flight: &mut InFlight,
    ) -> Result<Scanned, Broken> {
        while self.pieces.len() < PIECES_MAX && self.insert_bytes < INSERT_BYTES_MAX {
            let mut insert = Vec::new();
            match scanner.poll_insert(cx, &mut insert, in_flight) {
                Poll::Pending => return Ok(Scanned::Held),
                Poll::Ready(polled) => polled?,
            }
            if !insert.is_empty() {
                self.insert(insert, scanner);
                continue;
            }
            let buffer = self.buffer.as_deref_mut().unwrap_or_default();
            let bytes = buffer.get_mut(self.resume..self.end).unwrap_or_default();
            if bytes.is_empty() {
                return Ok(Scanned::Dry);
            }
            let available = bytes.len();
            match scanner.scan(bytes, &mut insert, in_flight)? {
                Step::Starved => return Ok(Scanned::Dry),
                Step::Held => return Ok(Scanned::Held),
                Step::Pass(count) => {
                    assert!(0 < count && count <= available, "a scanner passes what it saw");
                    self.pass(count);
                }
                Step::Replace { pass, skip } => {
                    assert!(pass + skip <= available, "a scanner replaces what it saw");
                    self.pass(pass);
                    self.insert(insert, scanner);
                    self.resume += skip;
                }
            }
        }
        Ok(Scanned::Full)
    }

    fn pass(&mut self, count: usize) {
        let range = self.resume..self.resume + count;
        self.resume = range.end;
        match self.pieces.back_mut() {
            Some(Piece::Pass(before)) if before.end == range.start => before.end = range.end,
            _ if range.is_empty() => {}
            _ => self.pieces.push_back(Piece::Pass(range)),
        }
    }

    fn insert(&mut self, insert: Vec<u8>, scanner: &mut impl Scan) {
        if !insert.is_empty() {
            let permit = scanner.take_permit();
            self.insert_bytes += insert.len();
            self.permit_bytes += permit.as_ref().map_or(0, Permit::bytes);
            self.pieces.push_back(Piece::Insert(insert, permit));
        }
    }

    /// Ready once all that may be written was written.
    fn poll_write<W: AsyncWrite + Unpin>(
        &mut self,
        cx: &mut Context<'_>,
        to: &mut W,
    ) -> Result<Poll<()>, Broken> {
        while let Some(first) = self.pieces.front() {
            let buffer = self.buffer.as_deref().unwrap_or_default();
            let first = first.bytes(buffer).get(self.first_written..).unwrap_or_default();
            let polled = if self.pieces.len() == 1 {
                Pin::new(&mut *to).poll_write(cx, first)
            } else {
                let mut slices = [IoSlice::new(first); PIECES_MAX];
                let count = self.pieces.len().min(PIECES_MAX);
                for (slice, piece) in slices.iter_mut().zip(&self.pieces).skip(1) {
                    *slice = IoSlice::new(piece.bytes(buffer));
                }
                let slices = slices.get(..count).unwrap_or_default();
                Pin::new(&mut *to).poll_write_vectored(cx, slices)
            };
            match polled {
                Poll::Pending => return Ok(Poll::Pending),
                Poll::Ready(Ok(0)) => return Err(Broken::Write(io::ErrorKind::WriteZero.into())),
                Poll::Ready(Ok(count)) => self.written(count),
                Poll::Ready(Err(error)) => return Err(Broken::Write(error)),
            }
        }
        Ok(Poll::Ready(()))
    }

    fn written(&mut self, count: usize) {
        self.counts.sent += count as u64;
        self.first_written += count;
        let buffer = self.buffer.as_deref().unwrap_or_default();
        while let Some(first) = self.pieces.front() {
            let length = first.bytes(buffer).len();
            if self.first_written < length {
                return;
            }
            self.first_written -= length;
            if let Some(Piece::Insert(insert, permit)) = self.pieces.pop_front() {
                self.insert_bytes -= insert.len();
                self.permit_bytes -= permit.as_ref().map_or(0, Permit::bytes);
                pool::give_frame(insert);
            }
        }
    }

    /// Gives the buffer back if no bytes are in it.
    fn give_back(&mut self) {
        if self.end == 0
            && let Some(buffer) = self.buffer.take()
        {
            pool::give_buffer(buffer, self.of);
        }
    }

    /// After everything was written: makes a buffer empty that was scanned to its end.
    fn settle(&mut self) {
        if self.resume == self.end {
            (self.resume, self.end) = (0, 0);
        }
    }

    fn poll_read<R: AsyncRead + Unpin>(
        &mut self,
        cx: &mut Context<'_>,
        from: &mut R,
    ) -> Result<Poll<()>, Broken> {
        let buffer = self.buffer.get_or_insert_with(|| pool::take_buffer(&self.memory, self.of));
        if self.resume > 0 {
            // What is left is a header that is not whole yet, or a frame small enough to wait for.
            buffer.copy_within(self.resume..self.end, 0);
            self.end -= self.resume;
            self.resume = 0;
        }
        if self.end == buffer.len() && buffer.is_small() {
            let acquire = || self.memory.acquire(self.of, BUFFER_BYTES..=BUFFER_BYTES);
            let growing = match &mut self.growing {
                Some(growing) => growing,
                None => self.growing.insert(acquire().map_err(Broken::Memory)?),
            };
            let Poll::Ready(permit) = Pin::new(growing).poll(cx) else { return Ok(Poll::Pending) };
            self.growing = None;
            let small = std::mem::replace(buffer, Buffer::with_permit(permit));
            buffer.iter_mut().zip(small.iter()).for_each(|(to, from)| *to = *from);
        }
        let free = buffer.get_mut(self.end..).unwrap_or_default();
        assert!(!free.is_empty(), "a scanner does not wait for more than {BUFFER_BYTES} bytes");
        let mut free = ReadBuf::new(free);
        let polled = Pin::new(from).poll_read(cx, &mut free);
        let count = free.filled().len();
        match polled {
            Poll::Ready(Ok(())) if count > 0 => {
                self.end += count;
                self.counts.received += count as u64;
                return Ok(Poll::Ready(()));
            }
            Poll::Ready(Ok(())) => self.ended = true,
            Poll::Ready(Err(error)) => return Err(Broken::Read(error)),
            Poll::Pending => {}
        }
        self.give_back();
        Ok(if self.ended { Poll::Ready(()) } else { Poll::Pending })
    }
}

#[cfg(test)]
mod tests;
