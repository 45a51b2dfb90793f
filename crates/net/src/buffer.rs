//! Bytes from a socket, cut into frames.
//!
//! ```text
//! offset 0        4
//!        | length | frame: `length` bytes                     | next frame ...
//!        | i32 be | api_key i16, api_version i16, ...         |
//! ```

use std::future::Future;
use std::io;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};

use bytes::{Buf, BufMut, Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt, ReadBuf};

/// Bytes of the length prefix before each frame.
pub const LENGTH_PREFIX_BYTES: usize = 4;

/// Largest frame accepted unless configured otherwise: Kafka's `socket.request.max.bytes`.
pub const FRAME_BYTES_MAX_DEFAULT: usize = 100 * 1024 * 1024;

/// Reads of a connection at first: a handshake and several small requests fit.
pub(crate) const READ_BYTES_MIN: usize = 16 * 1024;

/// Read of a connection that has been quiet, onto the stack: most requests fit.
const FIRST_READ_BYTES: usize = 1024;

/// Most bytes asked of the kernel at once between frames; more does not lower the cost per byte
/// and would sit idle in each of many connections.
pub(crate) const READ_BYTES_MAX: usize = 256 * 1024;

/// Room made for a frame on the word of its length field alone.
const AHEAD_BYTES_DEFAULT: usize = 64 * 1024;

/// How often the buffer must run empty before its size is compared with what was needed.
const SHRINK_WINDOW: u32 = 256;

/// A length prefix that no frame may have.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum FrameError {
    /// The length is below zero.
    #[error("frame length {length} is negative")]
    Negative {
        /// The length field.
        length: i32,
    },
    /// The length is zero: not even a request header.
    #[error("frame length is zero")]
    Empty,
    /// The length is above the limit.
    #[error("frame length {length} is above the limit of {max} bytes")]
    Oversized {
        /// The length field.
        length: usize,
        /// The limit that applies.
        max: usize,
    },
}

/// One reusable read buffer that yields frames.
///
/// It grows as bytes arrive, never by more than `ahead_bytes_max` on the word of a length field,
/// and shrinks again when large frames stop coming. Three ways to use it:
///
/// - borrow a whole frame with [`frame`](Self::frame), then [`consume_frame`](Self::consume_frame);
/// - take a whole frame as shared bytes with [`take_frame`](Self::take_frame), without a copy;
/// - look at the start of a frame with [`peek`](Self::peek), then stream the rest through with
///   [`take_up_to`](Self::take_up_to) without ever holding the frame.
#[derive(Debug)]
pub struct FrameBuffer {
    bytes: BytesMut,
    frame_bytes_max: usize,
    ahead_bytes_max: usize,
    /// Most bytes that are held at once.
    memory_max: usize,
    read_bytes: usize,
    /// Most bytes held at once since the last look at the size.
    peak_bytes: usize,
    times_emptied: u32,
    capacity_seen: usize,
    /// Nothing is held and nothing has come since then: waiting for it takes no memory.
    quiet: bool,
}

impl FrameBuffer {
    /// A buffer that accepts frames of up to `frame_bytes_max` bytes; no memory until first use.
    #[must_use]
    pub fn new(frame_bytes_max: usize) -> Self {
        Self {
            bytes: BytesMut::new(),
            frame_bytes_max,
            ahead_bytes_max: AHEAD_BYTES_DEFAULT,
            memory_max: usize::MAX,
            read_bytes: READ_BYTES_MIN,
            peak_bytes: 0,
            times_emptied: 0,
            capacity_seen: 0,
            quiet: true,
        }
    }

    /// Accepts frames of up to `frame_bytes_max` bytes from here on.
    pub fn set_frame_bytes_max(&mut self, frame_bytes_max: usize) {
        self.frame_bytes_max = frame_bytes_max;
    }

    /// Holds at most so many bytes from here on, at least [`READ_BYTES_MIN`]. Until that is raised,
    /// a longer frame cannot become whole.
    pub(crate) fn set_memory_max(&mut self, memory_max: usize) {
        self.memory_max = memory_max.max(READ_BYTES_MIN);
    }

    /// Bytes that are held at most with what is to be read next: a whole frame, or what reads bring
    /// between frames.
    pub(crate) fn memory_wanted(&self) -> usize {
        let frame = match self.frame_len() {
            Ok(Some(length)) => length + LENGTH_PREFIX_BYTES,
            Ok(None) | Err(_) => 0,
        };
        frame.max(self.read_bytes)
    }

    /// Gives back room for more than what is held.
    pub(crate) fn shrink(&mut self) {
        if self.bytes.is_empty() {
            self.release();
        } else {
            self.bytes = BytesMut::from(self.peek());
            self.read_bytes = READ_BYTES_MIN;
            self.capacity_seen = 0;
        }
    }

    /// Whether there is no memory to hold bytes in.
    pub(crate) fn is_released(&self) -> bool {
        self.bytes.capacity() == 0
    }

    /// Lets a length field alone make room for up to `ahead_bytes_max` bytes. For peers that are
    /// trusted to send what they announce: a client reading large responses avoids regrowing.
    #[must_use]
    pub fn with_ahead_bytes_max(mut self, ahead_bytes_max: usize) -> Self {
        self.ahead_bytes_max = ahead_bytes_max;
        self
    }

    /// Reads what `io` has, as much as fits one call. `Ok(0)` is the end of the stream.
    /// Cancelling the future loses nothing.
    ///
    /// # Errors
    /// Those of `io`.
    pub async fn fill<R: AsyncRead + Unpin>(&mut self, io: &mut R) -> io::Result<usize> {
        std::future::poll_fn(|cx| self.poll_fill(cx, io)).await
    }

    /// The polling form of [`fill`](Self::fill).
    ///
    /// # Errors
    /// Those of `io`.
    pub fn poll_fill<R: AsyncRead + Unpin>(
        &mut self,
        cx: &mut Context<'_>,
        io: &mut R,
    ) -> Poll<io::Result<usize>> {
        if self.quiet {
            return self.poll_first(cx, io);
        }
        self.make_room();
        let room = self.bytes.capacity().min(self.memory_max).saturating_sub(self.bytes.len());
        assert!(room > 0, "a frame that is longer than all that may be held is never read on");
        let polled = pin!(io.read_buf(&mut (&mut self.bytes).limit(room))).poll(cx);
        if let Poll::Ready(Ok(count)) = polled {
            self.peak_bytes = self.peak_bytes.max(self.bytes.len());
            if count == room {
                self.read_bytes = (self.read_bytes * 2).min(READ_BYTES_MAX);
            }
        }
        polled
    }

    /// Length of the frame at the front, prefix excluded, once its prefix has arrived.
    ///
    /// # Errors
    /// The prefix holds a length that no frame may have.
    pub fn frame_len(&self) -> Result<Option<usize>, FrameError> {
        let Some(prefix) = self.bytes.first_chunk::<LENGTH_PREFIX_BYTES>() else {
            return Ok(None);
        };
        let length = i32::from_be_bytes(*prefix);
        let Ok(unsigned) = usize::try_from(length) else {
            return Err(FrameError::Negative { length });
        };
        match unsigned {
            0 => Err(FrameError::Empty),
            n if n > self.frame_bytes_max => {
                Err(FrameError::Oversized { length: n, max: self.frame_bytes_max })
            }
            n => Ok(Some(n)),
        }
    }

    /// The whole frame at the front, prefix excluded, once all of it has arrived.
    ///
    /// # Errors
    /// The prefix holds a length that no frame may have.
    pub fn frame(&self) -> Result<Option<&[u8]>, FrameError> {
        let Some(length) = self.frame_len()? else { return Ok(None) };
        Ok(self.bytes.get(LENGTH_PREFIX_BYTES..LENGTH_PREFIX_BYTES + length))
    }

    /// Drops the whole frame at the front with its prefix. Does nothing unless
    /// [`frame`](Self::frame) yields one.
    pub fn consume_frame(&mut self) {
        if let Ok(Some(frame)) = self.frame() {
            let total = frame.len() + LENGTH_PREFIX_BYTES;
            self.consume(total);
        }
    }

    /// Takes the whole frame at the front, prefix excluded, as shared bytes. They keep the
    /// buffer's memory alive; the next fill then uses fresh memory.
    ///
    /// # Errors
    /// The prefix holds a length that no frame may have.
    pub fn take_frame(&mut self) -> Result<Option<Bytes>, FrameError> {
        let Some(frame) = self.frame()? else { return Ok(None) };
        let length = frame.len();
        self.bytes.advance(LENGTH_PREFIX_BYTES);
        Ok(Some(self.bytes.split_to(length).freeze()))
    }

    /// All bytes that have arrived and were not consumed.
    #[must_use]
    pub fn peek(&self) -> &[u8] {
        &self.bytes
    }

    /// Takes at most `count` bytes from the front as shared bytes, for streaming a frame on.
    pub fn take_up_to(&mut self, count: usize) -> Bytes {
        let count = count.min(self.bytes.len());
        self.bytes.split_to(count).freeze()
    }

    /// Drops `count` bytes from the front, or all if there are fewer.
    pub fn consume(&mut self, count: usize) {
        let count = count.min(self.bytes.len());
        self.bytes.advance(count);
        if self.bytes.is_empty() {
            self.settle();
        }
    }

    /// Gives all memory back if nothing is held, for connections that have gone quiet.
    pub fn release(&mut self) {
        if self.bytes.is_empty() {
            self.bytes = BytesMut::new();
            self.read_bytes = READ_BYTES_MIN;
            self.capacity_seen = 0;
            self.quiet = true;
        }
    }

    /// Waits for bytes without memory to put them in: most connections are silent at most times.
    fn poll_first<R: AsyncRead + Unpin>(
        &mut self,
        cx: &mut Context<'_>,
        io: &mut R,
    ) -> Poll<io::Result<usize>> {
        let mut first = [0; FIRST_READ_BYTES];
        let mut first = ReadBuf::new(&mut first);
        ready!(Pin::new(io).poll_read(cx, &mut first))?;
        let read = first.filled();
        if !read.is_empty() {
            self.quiet = false;
            self.make_room();
            self.bytes.extend_from_slice(read);
            self.peak_bytes = self.peak_bytes.max(self.bytes.len());
        }
        Poll::Ready(Ok(read.len()))
    }

    fn make_room(&mut self) {
        let held = self.bytes.len();
        let missing = match self.frame_len() {
            Ok(Some(length)) => (length + LENGTH_PREFIX_BYTES).saturating_sub(held),
            Ok(None) | Err(_) => 0,
        };
        let justified = held.max(self.ahead_bytes_max);
        let wanted = missing.min(justified).max(self.read_bytes);
        self.bytes.reserve(wanted.min(self.memory_max.saturating_sub(held)).max(1));
        self.capacity_seen = self.capacity_seen.max(self.bytes.capacity());
    }

    /// Called when empty: every so often, a buffer much larger than what it held is given back.
    fn settle(&mut self) {
        self.times_emptied += 1;
        if self.times_emptied < SHRINK_WINDOW {
            return;
        }
        if self.capacity_seen > READ_BYTES_MIN && self.peak_bytes < self.capacity_seen / 4 {
            self.release();
        }
        self.times_emptied = 0;
        self.peak_bytes = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    async fn feed(buffer: &mut FrameBuffer, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            buffer.fill(&mut bytes).await.unwrap();
        }
    }

    fn framed(frames: &[Vec<u8>]) -> Vec<u8> {
        let mut stream = Vec::new();
        for frame in frames {
            stream.extend(u32::try_from(frame.len()).unwrap().to_be_bytes());
            stream.extend(frame);
        }
        stream
    }

    fn block_on<F: Future>(future: F) -> F::Output {
        tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
    }

    #[test]
    fn length_fields_out_of_range_are_refused() {
        for (length, error) in [
            (-1, FrameError::Negative { length: -1 }),
            (i32::MIN, FrameError::Negative { length: i32::MIN }),
            (0, FrameError::Empty),
            (101, FrameError::Oversized { length: 101, max: 100 }),
            (i32::MAX, FrameError::Oversized { length: 0x7fff_ffff, max: 100 }),
        ] {
            let mut buffer = FrameBuffer::new(100);
            block_on(feed(&mut buffer, &length.to_be_bytes()));
            assert_eq!(buffer.frame(), Err(error));
            assert_eq!(buffer.take_frame(), Err(error));
        }
    }

    #[test]
    fn announced_length_alone_reserves_little() {
        let mut buffer = FrameBuffer::new(FRAME_BYTES_MAX_DEFAULT);
        block_on(feed(&mut buffer, &90_000_000_i32.to_be_bytes()));
        block_on(feed(&mut buffer, &[0; 10]));
        assert!(buffer.bytes.capacity() < 4 * AHEAD_BYTES_DEFAULT);
    }

    #[test]
    fn buffer_shrinks_after_large_frames_stop() {
        let mut buffer = FrameBuffer::new(FRAME_BYTES_MAX_DEFAULT);
        block_on(feed(&mut buffer, &framed(&[vec![1; 4_000_000]])));
        buffer.consume_frame();
        for _ in 0..2 * SHRINK_WINDOW {
            block_on(feed(&mut buffer, &framed(&[vec![1; 100]])));
            buffer.consume_frame();
        }
        assert!(buffer.bytes.capacity() <= 2 * READ_BYTES_MAX);
    }

    #[test]
    fn steady_small_frames_reuse_the_same_memory() {
        let mut buffer = FrameBuffer::new(FRAME_BYTES_MAX_DEFAULT);
        let stream = framed(&[vec![1; 100]]);
        let mut bases = std::collections::HashSet::new();
        for _ in 0..10_000 {
            block_on(feed(&mut buffer, &stream));
            bases.insert(buffer.capacity_seen);
            buffer.consume_frame();
        }
        assert_eq!(bases.len(), 1);
    }

    proptest! {
        #[test]
        fn any_chunking_yields_the_same_frames(
            frames in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..5_000), 1..20),
            cuts in prop::collection::vec(1_usize..20_000, 1..50),
            shared in any::<bool>(),
        ) {
            let stream = framed(&frames);
            let mut buffer = FrameBuffer::new(5_000);
            let mut seen = Vec::new();
            let mut rest = stream.as_slice();
            for cut in cuts.iter().cycle() {
                let (chunk, tail) = rest.split_at((*cut).min(rest.len()));
                rest = tail;
                block_on(feed(&mut buffer, chunk));
                while let Some(frame) = buffer.frame().unwrap().map(<[u8]>::to_vec) {
                    if shared {
                        prop_assert_eq!(&buffer.take_frame().unwrap().unwrap()[..], &frame[..]);
                    } else {
                        buffer.consume_frame();
                    }
                    seen.push(frame);
                }
                if rest.is_empty() {
                    break;
                }
            }
            prop_assert_eq!(seen, frames);
            prop_assert!(buffer.peek().is_empty());
        }
    }
}
