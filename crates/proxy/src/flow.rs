//! One direction of a session: reads, has the bytes scanned where they lie, and writes them on.
//!
//! ```text
//! 0      start          pass_end   resume        end        capacity
//! | gone | to be written | dropped  | not scanned | free      |
//!                        ^ the insert is written here
//! ```
//!
//! Bytes that pass are written from the buffer into which they were read. Only where an answer is
//! rewritten, or a filter has its say, does an insert take the place of the bytes that are dropped.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::chain::FilterFailed;
use crate::error::Malformed;
use crate::in_flight::InFlight;
use crate::pool::{self, BUFFER_BYTES};

/// An insert larger than this gives its memory back once it is written.
const INSERT_BYTES_KEPT: usize = 64 * 1024;

/// What a scanner says to the bytes that it sees.
#[derive(Debug, Eq, PartialEq)]
pub(crate) enum Step {
    /// More bytes must arrive before anything can be said.
    Starved,
    /// Nothing more is taken: until answers have come, or ever, as the scanner knows.
    Held,
    /// So many bytes, at least one, may be written on.
    Pass(usize),
    /// `pass` bytes are written on, then the insert, and the `skip` bytes after them are dropped.
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
#[derive(Debug, Default)]
pub(crate) struct Flow {
    /// Held only while bytes are in it.
    buffer: Option<Box<[u8]>>,
    start: usize,
    pass_end: usize,
    resume: usize,
    end: usize,
    insert: Vec<u8>,
    insert_at: usize,
    ended: bool,
    /// Bytes read and written since [`take_counts`](Self::take_counts).
    counts: (u64, u64),
}

impl Drop for Flow {
    fn drop(&mut self) {
        if let Some(buffer) = self.buffer.take() {
            pool::give(buffer);
        }
    }
}

impl Flow {
    /// Whether everything that may be written was written.
    pub(crate) fn is_written(&self) -> bool {
        self.start == self.pass_end && self.insert.is_empty()
    }

    /// Bytes read and written since the last call.
    pub(crate) fn take_counts(&mut self) -> (u64, u64) {
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
                return Ok(Still::Idle);
            }
        }
    }

    /// Scans up to the first insert or gap, or as far as the scanner takes bytes.
    fn scan(
        &mut self,
        cx: &mut Context<'_>,
        scanner: &mut impl Scan,
        in_flight: &mut InFlight,
    ) -> Result<Scanned, Broken> {
        while self.pass_end == self.resume && self.insert.is_empty() {
            match scanner.poll_insert(cx, &mut self.insert, in_flight) {
                Poll::Pending => return Ok(Scanned::Held),
                Poll::Ready(polled) => polled?,
            }
            if !self.insert.is_empty() {
                break;
            }
            let buffer = self.buffer.as_deref_mut().unwrap_or_default();
            let bytes = buffer.get_mut(self.resume..self.end).unwrap_or_default();
            if bytes.is_empty() {
                return Ok(Scanned::Dry);
            }
            let available = bytes.len();
            match scanner.scan(bytes, &mut self.insert, in_flight)? {
                Step::Starved => return Ok(Scanned::Dry),
                Step::Held => return Ok(Scanned::Held),
                Step::Pass(count) => {
                    assert!(0 < count && count <= available, "a scanner passes what it saw");
                    self.pass_end += count;
                    self.resume = self.pass_end;
                }
                Step::Replace { pass, skip } => {
                    assert!(pass + skip <= available, "a scanner replaces what it saw");
                    self.pass_end += pass;
                    self.resume = self.pass_end + skip;
                }
            }
        }
        Ok(Scanned::Full)
    }

    /// Ready once all that may be written was written.
    fn poll_write<W: AsyncWrite + Unpin>(
        &mut self,
        cx: &mut Context<'_>,
        to: &mut W,
    ) -> Result<Poll<()>, Broken> {
        while !self.is_written() {
            let buffer = self.buffer.as_deref().unwrap_or_default();
            let passing = buffer.get(self.start..self.pass_end).unwrap_or_default();
            let inserted = self.insert.get(self.insert_at..).unwrap_or_default();
            let polled = if inserted.is_empty() {
                Pin::new(&mut *to).poll_write(cx, passing)
            } else {
                let slices = [IoSlice::new(passing), IoSlice::new(inserted)];
                Pin::new(&mut *to).poll_write_vectored(cx, &slices)
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
        self.counts.1 += count as u64;
        let passed = count.min(self.pass_end - self.start);
        self.start += passed;
        self.insert_at += count - passed;
        if self.insert_at == self.insert.len() {
            self.insert.clear();
            self.insert_at = 0;
            if self.insert.capacity() > INSERT_BYTES_KEPT {
                self.insert = Vec::new();
            }
        }
    }

    /// Gives the buffer back if no bytes are in it.
    fn give_back(&mut self) {
        if self.end == 0
            && let Some(buffer) = self.buffer.take()
        {
            pool::give(buffer);
        }
    }

    /// After everything was written: closes the gap.
    fn settle(&mut self) {
        if self.resume == self.end {
            (self.start, self.pass_end, self.resume, self.end) = (0, 0, 0, 0);
        } else {
            (self.start, self.pass_end) = (self.resume, self.resume);
        }
    }

    fn poll_read<R: AsyncRead + Unpin>(
        &mut self,
        cx: &mut Context<'_>,
        from: &mut R,
    ) -> Result<Poll<()>, Broken> {
        let buffer = self.buffer.get_or_insert_with(pool::take);
        if self.resume > 0 {
            // What is left is a header that is not whole yet, or a frame small enough to wait for.
            buffer.copy_within(self.resume..self.end, 0);
            self.end -= self.resume;
            (self.start, self.pass_end, self.resume) = (0, 0, 0);
        }
        let free = buffer.get_mut(self.end..).unwrap_or_default();
        assert!(!free.is_empty(), "a scanner does not wait for more than {BUFFER_BYTES} bytes");
        let mut free = ReadBuf::new(free);
        let polled = Pin::new(from).poll_read(cx, &mut free);
        let count = free.filled().len();
        match polled {
            Poll::Ready(Ok(())) if count > 0 => {
                self.end += count;
                self.counts.0 += count as u64;
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
