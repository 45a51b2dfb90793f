//! The frame that fills while the one before it is being flushed.
//!
//! Offsets and journal positions are final from the moment an entry is pushed, so a log can index
//! its batch at once. What only the journal thread knows (sequence number, link to the frame
//! before) is written into the frame's header when the journal thread takes it.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use moldau_records::Crc32c;

use crate::files::{Files, SpaceFor};
use crate::format::{
    ENTRY_HEADER_BYTES, EntryHeader, FILE_HEADER_BYTES, FRAME_HEADER_BYTES, FrameHeader, FrameLink,
    round_up,
};
use crate::io::{BLOCK, Region, SegmentPool};
use crate::{AppendError, Error, Log};

/// Everything that appends change, guarded by one lock. A log's own lock is taken before it, never
/// after.
pub(crate) struct Fill {
    /// Journal position at which the next frame starts.
    next: u64,
    /// Journal position at which the file of `next` ends.
    file_end: u64,
    open: Option<Frame>,
    sealed: VecDeque<Frame>,
    /// The segment that the open frame fills, from where the frame before it ended.
    rest: Option<Region>,
    /// Bytes of `rest` that the open frame has filled.
    filled: usize,
    pool: Arc<SegmentPool>,
    frame_target: usize,
    frames_opened: u64,
    /// The current file has the space kept for metadata.
    in_reserve: bool,
    /// Whether the journal thread sleeps and must be woken.
    pub(crate) idle: bool,
    stop: Stop,
}

/// Why an entry found no room.
pub(crate) enum Unready<E> {
    /// It cannot have any.
    Refused(E),
    /// It has some once the disk was asked, see [`crate::journal::Journal::provide`], which no lock
    /// is held for.
    Wants(Wanted),
}

/// Space or a file that the disk is asked for.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Wanted {
    /// The file that starts at this position.
    File { base: u64, space: SpaceFor },
    /// Whether there is space for data.
    Space,
}

impl Unready<AppendError> {
    /// The same where more can be wrong.
    pub(crate) fn into_error(self) -> Unready<Error> {
        match self {
            Self::Refused(error) => Unready::Refused(error.into()),
            Self::Wants(wanted) => Unready::Wants(wanted),
        }
    }
}

impl<E> From<E> for Unready<E> {
    fn from(error: E) -> Self {
        Self::Refused(error)
    }
}

/// Whether appends are taken.
enum Stop {
    Running,
    Closed,
    Poisoned(Arc<str>),
}

/// A frame under construction or waiting for the journal thread.
pub(crate) struct Frame {
    position: u64,
    bytes: usize,
    entries: u32,
    entries_crc: Crc32c,
    regions: Vec<Region>,
    touched: Vec<Touched>,
}

/// A log that has batches in a frame, and where the log ends once the frame is durable.
pub(crate) struct Touched {
    pub(crate) log: Arc<Log>,
    pub(crate) end_offset: i64,
}

/// Where a log noted its end offset in the open frame, so that it is noted once per frame.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct TouchedSlot {
    frame: u64,
    slot: usize,
}

/// A frame with its final bytes.
pub(crate) struct SealedFrame {
    pub(crate) position: u64,
    pub(crate) parts: Vec<Bytes>,
    pub(crate) touched: Vec<Touched>,
    pub(crate) link: FrameLink,
    pub(crate) bytes: usize,
    pub(crate) entries: u32,
}

impl Fill {
    /// `next` is where the first frame goes; the file there ends at `file_end`.
    pub(crate) fn new(next: u64, file_end: u64, pool: Arc<SegmentPool>, target: usize) -> Fill {
        Fill {
            next,
            file_end,
            open: None,
            sealed: VecDeque::new(),
            rest: None,
            filled: 0,
            pool,
            frame_target: target,
            frames_opened: 0,
            in_reserve: false,
            idle: false,
            stop: Stop::Running,
        }
    }

    /// Allocator of frame memory.
    pub(crate) fn pool(&self) -> &Arc<SegmentPool> {
        &self.pool
    }

    /// Makes room for an entry with `payload` bytes: its push cannot fail.
    pub(crate) fn reserve(
        &mut self,
        payload: usize,
        space: SpaceFor,
        files: &Files,
    ) -> Result<(), Unready<AppendError>> {
        match &self.stop {
            Stop::Running => {}
            Stop::Closed => return Err(AppendError::Closed.into()),
            Stop::Poisoned(cause) => {
                return Err(AppendError::Poisoned(Arc::clone(cause)).into());
            }
        }
        if self.in_reserve && space == SpaceFor::Data {
            return Err(Unready::Wants(Wanted::Space));
        }
        let need = ENTRY_HEADER_BYTES + payload;
        if let Some(open) = &self.open {
            let bytes = open.bytes + need;
            let end = open.position + round_up(bytes) as u64;
            if bytes <= self.frame_target && end <= self.file_end {
                return Ok(());
            }
            self.seal_open();
        }
        let frame_bytes = round_up(FRAME_HEADER_BYTES + need) as u64;
        // A file that another process made may be shorter than this one's limits suppose.
        while self.next + frame_bytes > self.file_end {
            let base = self.file_end;
            let file = files.at(base).ok_or(Unready::Wants(Wanted::File { base, space }))?;
            self.in_reserve = file.is_of_reserve;
            self.next = file.base + FILE_HEADER_BYTES as u64;
            self.file_end = file.end();
        }
        self.open_frame();
        Ok(())
    }

    /// Notes that there is space for data again.
    pub(crate) fn leave_reserve(&mut self) {
        self.in_reserve = false;
    }

    fn open_frame(&mut self) {
        self.frames_opened += 1;
        self.open = Some(Frame {
            position: self.next,
            bytes: 0,
            entries: 0,
            entries_crc: Crc32c::new(),
            regions: Vec::new(),
            touched: Vec::new(),
        });
        self.write(&[0; FRAME_HEADER_BYTES]);
    }

    /// Adds an entry and returns the journal position of its payload, which is `head` and `tail`
    /// one after the other. Must follow a [`Fill::reserve`] that covers it.
    pub(crate) fn push(&mut self, header: &EntryHeader, head: &[u8], tail: &[u8]) -> u64 {
        let encoded = header.encode();
        self.write(&encoded);
        let frame = self.frame();
        frame.entries += 1;
        frame.entries_crc.update(&encoded);
        let position = frame.position + frame.bytes as u64;
        self.write(head);
        self.write(tail);
        position
    }

    /// Journal position after the last entry: durable up to here means that the entry is.
    pub(crate) fn end(&self) -> u64 {
        self.open.as_ref().map_or(self.next, |frame| frame.position + frame.bytes as u64)
    }

    /// Journal position of the oldest frame that is not with the journal thread, or of the next.
    pub(crate) fn first_position(&self) -> u64 {
        let oldest = self.sealed.front().or(self.open.as_ref());
        oldest.map_or(self.next, |frame| frame.position)
    }

    /// Notes where a log ends with the entries pushed so far.
    pub(crate) fn touch(&mut self, log: &Arc<Log>, end_offset: i64, noted: &mut TouchedSlot) {
        let opened = self.frames_opened;
        let touched = &mut self.frame().touched;
        if noted.frame == opened
            && let Some(slot) = touched.get_mut(noted.slot)
        {
            slot.end_offset = end_offset;
            return;
        }
        *noted = TouchedSlot { frame: opened, slot: touched.len() };
        touched.push(Touched { log: Arc::clone(log), end_offset });
    }

    fn frame(&mut self) -> &mut Frame {
        self.open.as_mut().expect("reserve opened a frame")
    }

    fn write(&mut self, mut bytes: &[u8]) {
        let frame = self.open.as_mut().expect("reserve opened a frame");
        frame.bytes += bytes.len();
        while !bytes.is_empty() {
            let mut region = self.rest.take().unwrap_or_else(|| self.pool.take());
            let count = bytes.len().min(region.len() - self.filled);
            let (fitting, further) = bytes.split_at(count);
            region.as_mut()[self.filled..self.filled + count].copy_from_slice(fitting);
            bytes = further;
            self.filled += count;
            if self.filled == region.len() {
                frame.regions.push(region);
                self.filled = 0;
            } else {
                self.rest = Some(region);
            }
        }
    }

    fn seal_open(&mut self) {
        let bytes = self.frame().bytes;
        self.write(&[0; BLOCK][..round_up(bytes) - bytes]);
        let mut frame = self.open.take().expect("written to above");
        if let Some(rest) = self.rest.as_mut().filter(|_| self.filled > 0) {
            frame.regions.push(rest.split_to(self.filled));
        }
        self.filled = 0;
        self.next = frame.position + frame.bytes as u64;
        self.sealed.push_back(frame);
    }

    /// The oldest frame that waits, if any.
    pub(crate) fn take(&mut self) -> Option<Frame> {
        if self.sealed.is_empty() && self.open.is_some() {
            self.seal_open();
        }
        self.sealed.pop_front()
    }

    /// Whether an append would be flushed by the next pass, or the journal is at rest.
    pub(crate) fn is_empty(&self) -> bool {
        self.open.is_none() && self.sealed.is_empty()
    }

    /// Takes no further append; what was pushed is still flushed.
    pub(crate) fn close(&mut self) {
        if matches!(self.stop, Stop::Running) {
            self.stop = Stop::Closed;
        }
    }

    pub(crate) fn is_stopped(&self) -> bool {
        !matches!(self.stop, Stop::Running)
    }

    /// Takes no further append and drops what waits.
    pub(crate) fn poison(&mut self, cause: &Arc<str>) {
        if self.poisoned().is_none() {
            self.stop = Stop::Poisoned(Arc::clone(cause));
        }
        self.open = None;
        self.sealed.clear();
    }

    pub(crate) fn poisoned(&self) -> Option<Arc<str>> {
        match &self.stop {
            Stop::Poisoned(cause) => Some(Arc::clone(cause)),
            Stop::Running | Stop::Closed => None,
        }
    }
}

impl Frame {
    /// Completes the header. `sequence` is this frame's number, `flushed` the highest that is known
    /// to be on disk.
    pub(crate) fn seal(mut self, sequence: u64, previous: FrameLink, flushed: u64) -> SealedFrame {
        let header = FrameHeader {
            frame_bytes: u32::try_from(self.bytes).expect("a file is at most 1 GiB"),
            position: self.position,
            sequence,
            previous,
            flushed_sequence: flushed,
            entries: self.entries,
            entries_crc: self.entries_crc.value(),
        };
        let encoded = header.encode();
        let first = self.regions.first_mut().expect("a sealed frame has at least one block");
        first.as_mut()[..FRAME_HEADER_BYTES].copy_from_slice(&encoded);
        let mut crc_bytes = [0; 4];
        crc_bytes.copy_from_slice(&encoded[FRAME_HEADER_BYTES - 4..]);
        SealedFrame {
            position: self.position,
            parts: self.regions.into_iter().map(Region::freeze).collect(),
            touched: self.touched,
            link: FrameLink { sequence, header_crc: u32::from_le_bytes(crc_bytes) },
            bytes: self.bytes,
            entries: self.entries,
        }
    }
}
