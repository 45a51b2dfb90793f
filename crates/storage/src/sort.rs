//! Sorting: the oldest files of the journal, rewritten in order of log and offset.
//!
//! The index knows where every batch lies, so that its place in the segment is known before it is
//! read: the journal is read in its own order, a window of the segment is filled in memory, and the
//! window is written. The memory is bounded; the price is that small batches of other windows are
//! read with those between which they lie.

use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use crate::disk::{DiskFile, read_full};
use crate::files::JournalFile;
use crate::format::{ENTRY_HEADER_BYTES, EntryHeader, Kind, round_up};
use crate::index::Extent;
use crate::io::{BLOCK, Region, SegmentPool};
use crate::journal::Journal;
use crate::read::is_batch_of;
use crate::segment::{Segment, SegmentWriter};
use crate::workshop::Memory;
use crate::{Error, Log, LogId};

/// One log's data in the part of the journal that is sorted.
struct Share {
    log: Arc<Log>,
    base_offset: i64,
    next_offset: i64,
}

/// A batch and where it goes in the window.
#[derive(Clone, Copy)]
struct Placed {
    extent: Extent,
    share: usize,
    target: usize,
}

/// Writes a segment of all batches that lie before `to` in the journal, which is durable up to
/// there; `None` if there are none.
pub(crate) fn sort(
    journal: &Journal,
    memory: &mut Memory,
    logs: Vec<Arc<Log>>,
    to: u64,
) -> Result<Option<Segment>, Error> {
    let mut shares: Vec<Share> = logs.into_iter().filter_map(|log| share_of(log, to)).collect();
    if shares.is_empty() {
        return Ok(None);
    }
    shares.sort_unstable_by_key(|share| share.log.id());
    let mut windows = Windows {
        memory: journal.options.sort_memory_bytes,
        shares: &shares,
        at: 0,
        from: i64::MIN,
        placed: Vec::new(),
        bytes: 0,
    };
    let mut source = Source::new(journal);
    let mut writer = journal.segments.create(&journal.pace, 0)?;
    let mut open: Option<usize> = None;
    while windows.fill() {
        let bytes = memory.window(windows.bytes, windows.memory);
        source.read(&mut windows, bytes)?;
        for placed in &windows.placed {
            if open != Some(placed.share) {
                end_run(&mut writer, &shares, open);
                let share = &shares[placed.share];
                writer.begin_run(share.log.id(), share.base_offset);
                open = Some(placed.share);
            }
            let batch = &bytes[placed.target..placed.target + placed.extent.bytes as usize];
            writer.push(batch, placed.extent.base_offset, placed.extent.max_timestamp)?;
        }
    }
    end_run(&mut writer, &shares, open);
    memory.note_use(Instant::now());
    // Everything may have been deleted since the beginning.
    if open.is_none() { Ok(None) } else { writer.finish().map(Some) }
}

fn share_of(log: Arc<Log>, to: u64) -> Option<Share> {
    let range = log.with_state(|state| {
        let before = state.index.iter().take_while(|extent| extent.position < to);
        let (first, last) = before.fold((None, None), |(first, _), extent| {
            (first.or(Some(extent.base_offset)), Some(extent.next_offset))
        });
        first.zip(last).filter(|_| !state.is_deleted && !state.is_damaged)
    });
    range.map(|(base_offset, next_offset)| Share { log, base_offset, next_offset })
}

fn end_run(writer: &mut SegmentWriter<'_>, shares: &[Share], open: Option<usize>) {
    if let Some(share) = open.and_then(|open| shares.get(open)) {
        writer.end_run(share.next_offset);
    }
}

/// Walks all batches in order, a window at a time.
struct Windows<'a> {
    memory: usize,
    shares: &'a [Share],
    /// The share that comes next, and the offset in it from which on its batches are left.
    at: usize,
    from: i64,
    placed: Vec<Placed>,
    bytes: usize,
}

impl Windows<'_> {
    /// Fills the next window; false if there is none.
    fn fill(&mut self) -> bool {
        self.placed.clear();
        self.bytes = 0;
        while let Some(share) = self.shares.get(self.at) {
            let from = self.from.max(share.base_offset);
            let is_taken = share.log.with_state(|state| {
                if state.is_deleted {
                    return true;
                }
                let rest = state.index.starting_at(from);
                self.place(rest.take_while(|extent| extent.next_offset <= share.next_offset))
            });
            if !is_taken {
                break;
            }
            (self.at, self.from) = (self.at + 1, i64::MIN);
        }
        !self.placed.is_empty()
    }

    /// Places batches of the current share; false if the window is full before their end.
    fn place(&mut self, extents: impl Iterator<Item = Extent>) -> bool {
        for extent in extents {
            let bytes = extent.bytes as usize;
            let is_full =
                self.bytes + bytes > self.memory || self.placed.len() >= BATCHES_PER_WINDOW;
            if is_full && !self.placed.is_empty() {
                return false;
            }
            self.from = extent.next_offset;
            self.placed.push(Placed { extent, share: self.at, target: self.bytes });
            self.bytes += bytes;
        }
        true
    }
}

/// Reads the journal forward.
pub(crate) struct Source<'a> {
    journal: &'a Journal,
    region: Region,
    file: Option<(Arc<JournalFile>, Arc<dyn DiskFile>)>,
    /// Journal position of the region's first byte.
    start: u64,
    filled: usize,
}

impl<'a> Source<'a> {
    pub(crate) fn new(journal: &'a Journal) -> Source<'a> {
        let region = SegmentPool::new(READ_BYTES, 0).take();
        Source { journal, region, file: None, start: 0, filled: 0 }
    }

    /// Brings the batches of a window to their places, and leaves out those that were deleted.
    fn read(&mut self, windows: &mut Windows<'_>, window: &mut [u8]) -> Result<(), Error> {
        let mut by_position: Vec<usize> = (0..windows.placed.len()).collect();
        by_position.sort_unstable_by_key(|at| windows.placed[*at].extent.position);
        let mut has_gone = false;
        let mut stretch = 0..0;
        for (rank, at) in by_position.iter().copied().enumerate() {
            let Placed { extent, share, target } = windows.placed[at];
            let log = &windows.shares[share].log;
            if entry_of(&extent).end > stretch.end {
                let rest = by_position[rank..].iter().map(|at| &windows.placed[*at].extent);
                stretch = stretch_of(rest);
            }
            match self.batch_before(stretch.end, log.id(), &extent) {
                Ok(Some(batch)) => window[target..target + batch.len()].copy_from_slice(batch),
                Ok(None) => {
                    windows.placed[at].share = GONE;
                    has_gone = true;
                }
                Err(error) => {
                    if error.is_damage() {
                        log.with_state(|state| state.is_damaged = true);
                    }
                    return Err(error);
                }
            }
        }
        if has_gone {
            windows.placed.retain(|placed| placed.share != GONE);
        }
        Ok(())
    }

    /// The batch that the index means, verified; `None` if its file is gone, which is only so when
    /// the batch was deleted.
    pub(crate) fn batch(&mut self, log: LogId, extent: &Extent) -> Result<Option<&[u8]>, Error> {
        self.batch_before(extent.position + READ_BYTES as u64, log, extent)
    }

    /// The same, where nothing behind `to` is of use.
    fn batch_before(
        &mut self,
        to: u64,
        log: LogId,
        extent: &Extent,
    ) -> Result<Option<&[u8]>, Error> {
        let Range { start, end } = entry_of(extent);
        let is_here = start >= self.start && end <= self.start + self.filled as u64;
        if !is_here {
            // What the disk cannot read may lie behind the batch.
            let loaded = self.load(start, to.max(end)).or_else(|_| self.load(start, end));
            if !loaded? {
                return Ok(None);
            }
        }
        let [at, to] = [start, end]
            .map(|position| usize::try_from(position - self.start).unwrap_or(usize::MAX));
        let entry = self.region.as_slice()[..self.filled].get(at..to).unwrap_or_default();
        match entry.split_at_checked(ENTRY_HEADER_BYTES) {
            Some((header, batch)) if is_entry_of(header, batch, log, extent) => Ok(Some(batch)),
            _ => Err(corrupt(self.journal, log, extent)),
        }
    }

    /// Reads from `position` to `to`, or to the end of the file.
    fn load(&mut self, position: u64, to: u64) -> Result<bool, Error> {
        let files = &self.journal.files;
        let known =
            self.file.take().filter(|(file, _)| file.base <= position && position < file.end());
        let (file, handle) = match known {
            Some(known) => known,
            None => {
                let Some(file) = files.at(position) else { return Ok(false) };
                let handle = files.handle(&file)?;
                (file, handle)
            }
        };
        let skip = (position - file.base) % BLOCK as u64;
        self.start = position - skip;
        let wanted = usize::try_from(to.min(file.end()) - self.start).unwrap_or(usize::MAX);
        // Files end with a block.
        self.filled = round_up(wanted);
        if self.filled > self.region.len() {
            self.region = SegmentPool::new(self.filled, 0).take();
        }
        let buffer = &mut self.region.as_mut()[..self.filled];
        let offset = self.start - file.base;
        let read = self.journal.pace.work(buffer.len(), || read_full(&*handle, buffer, offset));
        if let Err(error) = read {
            self.filled = 0;
            return Err(Error::io("read", &file.path, error));
        }
        self.file = Some((file, handle));
        Ok(true)
    }
}

/// Where the entry of a batch lies in the journal.
fn entry_of(extent: &Extent) -> Range<u64> {
    extent.position - ENTRY_HEADER_BYTES as u64..extent.position + u64::from(extent.bytes)
}

/// The stretch of the journal that is best read at once for the first of `extents`, which are in
/// order of position.
fn stretch_of<'a>(mut extents: impl Iterator<Item = &'a Extent>) -> Range<u64> {
    let Some(first) = extents.next() else { return 0..0 };
    let mut stretch = entry_of(first);
    for entry in extents.map(entry_of) {
        let is_near = entry.start <= stretch.end + GAP_BYTES_MAX;
        if !is_near || entry.end > stretch.start + READ_BYTES as u64 {
            break;
        }
        stretch.end = entry.end;
    }
    stretch
}

fn corrupt(journal: &Journal, log: LogId, extent: &Extent) -> Error {
    journal.metrics.corrupt_batches.add(1);
    let reason = format!("the batch at offset {} of {log:?} is not there", extent.base_offset);
    match journal.files.at(extent.position) {
        Some(file) => Error::corrupt(&file.path, extent.position - file.base, reason),
        None => Error::corrupt(journal.files.dir(), extent.position, reason),
    }
}

/// Whether an entry is the batch that the index means, as it was written. The batch's first bytes,
/// which its own checksum leaves out, stand in the entry's header as well.
fn is_entry_of(header: &[u8], batch: &[u8], log: LogId, extent: &Extent) -> bool {
    EntryHeader::decode(header).is_some_and(|header| {
        header.kind == Kind::Batch
            && header.log == log
            && header.payload_bytes == extent.bytes
            && batch.starts_with(&header.batch_prefix)
    }) && is_batch_of(batch, extent)
}

/// The share of a batch that was deleted.
const GONE: usize = usize::MAX;
/// The state of a batch in a window takes about 60 bytes.
const BATCHES_PER_WINDOW: usize = 1 << 18;
const READ_BYTES: usize = 1 << 20;
/// Disks read on over this much in about the time of another request.
const GAP_BYTES_MAX: u64 = 128 << 10;
