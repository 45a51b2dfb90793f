//! Sorted segments: batches of many logs in order of log and offset, in a file that never changes.
//!
//! All integers are little-endian; `docs/formats.md` draws the same tables for readers of the disk.
//!
//! Header, the first block of the file, padded with zeros to 4096 bytes:
//!
//! | bytes | field |
//! |---|---|
//! | 0..8 | magic `MOLDAUSG` |
//! | 8..12 | format version, u32 |
//! | 12..16 | level, u32: how often the data was merged |
//! | 16..32 | cluster id |
//! | 32..40 | segment number, u64, never used twice |
//! | 40..48 | offset of the footer, u64 |
//! | 48..56 | length of the file in bytes, u64 |
//! | 56..60 | zero |
//! | 60..64 | CRC32C of bytes 0..60 |
//!
//! Data blocks follow, each at a multiple of 4096 and padded with zeros: whole batches without
//! gaps, those of one log together. The footer is pages (see `paged`) of rows of one kind; the
//! first four bytes of a page's payload name the kind, 1 for blocks, 2 for runs.
//!
//! | bytes of a block row | field |
//! |---|---|
//! | 0..4 | offset of the block in the file divided by 4096, u32 |
//! | 4..8 | length in bytes without padding, u32 |
//! | 8..12 | CRC32C of the block without padding |
//! | 12..20 | base offset of the first batch, i64 |
//! | 20..28 | largest timestamp of the block's batches, i64 |
//!
//! | bytes of a run row | field |
//! |---|---|
//! | 0..16 | topic id |
//! | 16..20 | partition, i32 |
//! | 20..24 | number of the block in which the run begins, u32 |
//! | 24..28 | number of the block in which it ends, u32 |
//! | 28..32 | where it begins in its first block, u32 |
//! | 32..40 | first offset that the run accounts for, i64 |
//! | 40..48 | offset after the last, i64 |
//! | 48..56 | bytes of its batches, u64 |
//! | 56..64 | largest timestamp of its batches, i64 |
//!
//! A run without batches says that nothing of these offsets is left.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use moldau_records::Crc32c;

use crate::disk::{Access, Disk};
use crate::format::{FORMAT_VERSION, Fields, open_header, round_up, seal_header};
use crate::io::BLOCK;
use crate::pace::Pace;
use crate::paged::{FileWriter, PageBuffer, Pages};
use crate::window::Window;
use crate::{Error, LogId, TopicId};

/// A stretch of a segment that is read and verified as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Block {
    /// Offset in the file divided by 4096.
    place: u32,
    pub(crate) bytes: u32,
    pub(crate) crc: u32,
    /// Base offset of the first batch.
    pub(crate) first_offset: i64,
    pub(crate) max_timestamp: i64,
}

impl Block {
    pub(crate) fn offset(&self) -> u64 {
        u64::from(self.place) * BLOCK as u64
    }
}

/// One log's data in a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) log: LogId,
    pub(crate) first_block: u32,
    pub(crate) last_block: u32,
    /// Where the run begins in its first block.
    pub(crate) start: u32,
    pub(crate) base_offset: i64,
    /// Offset after the last that the run accounts for.
    pub(crate) next_offset: i64,
    pub(crate) bytes: u64,
    pub(crate) max_timestamp: i64,
}

/// An open segment: its footer in memory.
#[derive(Debug)]
pub(crate) struct Segment {
    pub(crate) number: u64,
    pub(crate) level: u32,
    pub(crate) path: PathBuf,
    pub(crate) file_bytes: u64,
    pub(crate) blocks: Vec<Block>,
    /// In order of log, at most one of each.
    pub(crate) runs: Vec<Run>,
    /// Bytes of the runs that logs refer to.
    live_bytes: AtomicU64,
    live_runs: AtomicU64,
    is_damaged: AtomicBool,
}

impl Segment {
    /// Whether a block could not be read when it was to be merged: the segment stays as it is.
    pub(crate) fn is_damaged(&self) -> bool {
        self.is_damaged.load(Ordering::Acquire)
    }

    pub(crate) fn mark_damaged(&self) {
        self.is_damaged.store(true, Ordering::Release);
    }

    pub(crate) fn run(&self, at: usize) -> &Run {
        &self.runs[at]
    }

    /// Address of the first byte of a block, see [`address_of`].
    pub(crate) fn address(&self, block: &Block) -> u64 {
        address_of(self.number, block.offset())
    }

    /// Bytes of all runs, as written.
    pub(crate) fn bytes(&self) -> u64 {
        self.runs.iter().map(|run| run.bytes).sum()
    }

    pub(crate) fn live_bytes(&self) -> u64 {
        self.live_bytes.load(Ordering::Acquire)
    }

    pub(crate) fn live_runs(&self) -> u64 {
        self.live_runs.load(Ordering::Acquire)
    }

    /// Counts a run that a log refers to from here on.
    pub(crate) fn retain(&self, run: &Run) {
        self.live_bytes.fetch_add(run.bytes, Ordering::AcqRel);
        self.live_runs.fetch_add(1, Ordering::AcqRel);
    }

    /// The opposite of [`Segment::retain`].
    pub(crate) fn release(&self, run: &Run) {
        let bytes = self.live_bytes.fetch_sub(run.bytes, Ordering::AcqRel);
        let runs = self.live_runs.fetch_sub(1, Ordering::AcqRel);
        assert!(bytes >= run.bytes && runs > 0, "a run is released as often as it was retained");
    }

    /// Opens a segment and verifies its header and footer.
    pub(crate) fn open(
        disk: &dyn Disk,
        path: PathBuf,
        access: Access,
        cluster_id: [u8; 16],
    ) -> Result<Segment, Error> {
        let failed = |error| Error::io("open", &path, error);
        let file = disk.open(&path, access, false).map_err(failed)?;
        let length = file.length().map_err(failed)?;
        let mut window = Window::new(BLOCK);
        let header = window.get(&*file, &path, 0, BLOCK, length)?.unwrap_or_default();
        let header = Header::decode(header, &path)?;
        let damaged = |reason: &str| Error::corrupt(&path, 0, reason);
        if header.cluster_id != cluster_id {
            return Err(damaged("the segment belongs to another data directory"));
        }
        let is_in_file = (BLOCK as u64..=length).contains(&header.footer);
        if header.file_bytes != length || !is_in_file || !is_of_blocks(header.footer) {
            return Err(damaged("the segment is not as long as its header says"));
        }
        let mut pages = Pages::new(&*file, &path, header.footer, header.file_bytes);
        let (mut blocks, mut runs) = (Vec::new(), Vec::new());
        let mut offset = pages.offset();
        while let Some(page) = pages.next()? {
            let rows = take_rows(page, &mut blocks, &mut runs);
            rows.ok_or_else(|| Error::corrupt(&path, offset, "rows that cannot be read"))?;
            offset = pages.offset();
        }
        let is_sound = is_ordered(&blocks, header.footer)
            && runs.is_sorted_by(|one, next| one.log < next.log)
            && runs.iter().all(|run| holds(run, &blocks));
        if !is_sound {
            let reason = "the footer contradicts itself";
            return Err(Error::corrupt(&path, header.footer, reason));
        }
        Ok(Segment {
            number: header.number,
            level: header.level,
            file_bytes: header.file_bytes,
            path,
            blocks,
            runs,
            live_bytes: AtomicU64::new(0),
            live_runs: AtomicU64::new(0),
            is_damaged: AtomicBool::new(false),
        })
    }
}

struct Header {
    level: u32,
    cluster_id: [u8; 16],
    number: u64,
    footer: u64,
    file_bytes: u64,
}

impl Header {
    fn encode(&self) -> [u8; 64] {
        seal_header(&[
            &MAGIC,
            &FORMAT_VERSION.to_le_bytes(),
            &self.level.to_le_bytes(),
            &self.cluster_id,
            &self.number.to_le_bytes(),
            &self.footer.to_le_bytes(),
            &self.file_bytes.to_le_bytes(),
        ])
    }

    fn decode(bytes: &[u8], path: &Path) -> Result<Header, Error> {
        let damaged = || Error::corrupt(path, 0, "the header's magic or checksum does not hold");
        let mut fields = open_header(bytes, MAGIC).ok_or_else(damaged)?;
        let found = fields.u32().ok_or_else(damaged)?;
        if found != FORMAT_VERSION {
            let (path, known) = (path.to_path_buf(), FORMAT_VERSION);
            return Err(Error::UnknownVersion { path, found, known });
        }
        let header = || {
            Some(Header {
                level: fields.u32()?,
                cluster_id: fields.take()?,
                number: fields.u64()?,
                footer: fields.u64()?,
                file_bytes: fields.u64()?,
            })
        };
        header_in_range(header).ok_or_else(damaged)
    }
}

fn header_in_range(header: impl FnOnce() -> Option<Header>) -> Option<Header> {
    header().filter(|header| header.number < NUMBER_MAX && header.file_bytes <= SEGMENT_BYTES_MAX)
}

fn take_rows(page: &[u8], blocks: &mut Vec<Block>, runs: &mut Vec<Run>) -> Option<()> {
    let mut fields = Fields(page);
    match fields.u32()? {
        BLOCK_ROWS => {
            while !fields.0.is_empty() {
                blocks.push(Block {
                    place: fields.u32()?,
                    bytes: fields.u32()?,
                    crc: fields.u32()?,
                    first_offset: fields.i64()?,
                    max_timestamp: fields.i64()?,
                });
            }
        }
        RUN_ROWS => {
            while !fields.0.is_empty() {
                runs.push(Run {
                    log: LogId { topic: TopicId(fields.take()?), partition: fields.i32()? },
                    first_block: fields.u32()?,
                    last_block: fields.u32()?,
                    start: fields.u32()?,
                    base_offset: fields.i64()?,
                    next_offset: fields.i64()?,
                    bytes: fields.u64()?,
                    max_timestamp: fields.i64()?,
                });
            }
        }
        _ => return None,
    }
    Some(())
}

/// Whether the blocks follow each other between header and footer.
fn is_ordered(blocks: &[Block], footer: u64) -> bool {
    let mut end = BLOCK as u64;
    blocks.iter().all(|block| {
        let follows = block.offset() == end && block.bytes > 0;
        end = block.offset() + round_up(block.bytes as usize) as u64;
        follows
    }) && end == footer
}

/// Whether a run lies in the blocks that it names.
fn holds(run: &Run, blocks: &[Block]) -> bool {
    if run.base_offset < 0 || run.base_offset > run.next_offset {
        return false;
    }
    if run.bytes == 0 {
        return true;
    }
    let Some(of_run) = blocks.get(run.first_block as usize..=run.last_block as usize) else {
        return false;
    };
    let bytes = of_run.iter().map(|block| u64::from(block.bytes)).sum::<u64>();
    let last = of_run.last().map_or(0, |last| u64::from(last.bytes));
    // A reader gets on from block to block, so that offsets must too.
    let mut before = run.base_offset;
    let within = of_run.iter().skip(1).all(|block| {
        let follows = before < block.first_offset && block.first_offset < run.next_offset;
        before = block.first_offset;
        follows
    });
    within
        && of_run.first().is_some_and(|first| run.start < first.bytes)
        && run
            .bytes
            .checked_add(u64::from(run.start))
            .is_some_and(|end| (bytes - last + 1..=bytes).contains(&end))
}

fn is_of_blocks(offset: u64) -> bool {
    offset.is_multiple_of(BLOCK as u64)
}

/// Writes a segment, log by log in order.
pub(crate) struct SegmentWriter<'a> {
    file: FileWriter<'a>,
    header: Header,
    blocks: Vec<Block>,
    runs: Vec<Run>,
    block_crc: Crc32c,
    block_is_open: bool,
}

impl<'a> SegmentWriter<'a> {
    pub(crate) fn create(
        disk: &'a dyn Disk,
        pace: &'a Pace,
        (dir, name): (&Path, &str),
        access: Access,
        (number, level, cluster_id): (u64, u32, [u8; 16]),
    ) -> Result<SegmentWriter<'a>, Error> {
        assert!(number < NUMBER_MAX, "there are more numbers than a disk can hold segments");
        let file = FileWriter::create(disk, pace, dir, name, access)?;
        Ok(SegmentWriter {
            file,
            header: Header { level, cluster_id, number, footer: 0, file_bytes: 0 },
            blocks: Vec::new(),
            runs: Vec::new(),
            block_crc: Crc32c::new(),
            block_is_open: false,
        })
    }

    /// Begins the run of a log, which must come after the one before in order, and whose offsets it
    /// accounts for from `base_offset` on.
    pub(crate) fn begin_run(&mut self, log: LogId, base_offset: i64) {
        assert!(self.runs.last().is_none_or(|last| last.log < log), "runs are in order of log");
        self.runs.push(Run {
            log,
            first_block: 0,
            last_block: 0,
            start: 0,
            base_offset,
            next_offset: base_offset,
            bytes: 0,
            max_timestamp: NO_TIMESTAMP,
        });
    }

    /// Adds a batch to the run that was begun last.
    pub(crate) fn push(
        &mut self,
        batch: &[u8],
        base_offset: i64,
        max_timestamp: i64,
    ) -> Result<(), Error> {
        let bytes = u32::try_from(batch.len()).expect("a batch length is an i32");
        let begins_run = self.runs.last().is_some_and(|run| run.bytes == 0);
        let limit = if begins_run { SHARED_BLOCK_BYTES } else { BLOCK_BYTES };
        let open = self.blocks.last().filter(|_| self.block_is_open);
        if open.is_some_and(|block| block.bytes.saturating_add(bytes) > limit) {
            self.end_block()?;
        }
        if !self.block_is_open {
            let place = self.file.position() / BLOCK as u64;
            self.blocks.push(Block {
                place: u32::try_from(place).expect("a segment is at most SEGMENT_BYTES_MAX"),
                bytes: 0,
                crc: 0,
                first_offset: base_offset,
                max_timestamp,
            });
            self.block_is_open = true;
            self.block_crc = Crc32c::new();
        }
        let at = u32::try_from(self.blocks.len() - 1).expect("fewer blocks than places");
        let block = self.blocks.last_mut().expect("begun above");
        let run = self.runs.last_mut().expect("a run was begun");
        if run.bytes == 0 {
            run.first_block = at;
            run.start = block.bytes;
        }
        run.last_block = at;
        run.bytes += u64::from(bytes);
        run.max_timestamp = run.max_timestamp.max(max_timestamp);
        block.bytes += bytes;
        block.max_timestamp = block.max_timestamp.max(max_timestamp);
        self.block_crc.update(batch);
        self.file.write(batch)
    }

    /// Ends the run that was begun last, which accounts for the offsets below `next_offset`.
    pub(crate) fn end_run(&mut self, next_offset: i64) {
        let run = self.runs.last_mut().expect("a run was begun");
        assert!(run.base_offset <= next_offset);
        run.next_offset = next_offset;
    }

    fn end_block(&mut self) -> Result<(), Error> {
        if std::mem::take(&mut self.block_is_open) {
            let block = self.blocks.last_mut().expect("open");
            block.crc = self.block_crc.value();
            self.file.align()?;
        }
        Ok(())
    }

    /// Makes the segment durable.
    pub(crate) fn finish(mut self) -> Result<Segment, Error> {
        self.end_block()?;
        self.header.footer = self.file.position();
        let mut pages = PageBuffer::default();
        for rows in self.blocks.chunks(ROWS_PER_PAGE) {
            pages.entry(&[&BLOCK_ROWS.to_le_bytes()], &mut self.file)?;
            for block in rows {
                let row: [&[u8]; 5] = [
                    &block.place.to_le_bytes(),
                    &block.bytes.to_le_bytes(),
                    &block.crc.to_le_bytes(),
                    &block.first_offset.to_le_bytes(),
                    &block.max_timestamp.to_le_bytes(),
                ];
                pages.entry(&row, &mut self.file)?;
            }
            pages.end(&mut self.file)?;
        }
        for rows in self.runs.chunks(ROWS_PER_PAGE) {
            pages.entry(&[&RUN_ROWS.to_le_bytes()], &mut self.file)?;
            rows.iter().try_for_each(|run| write_run(run, &mut pages, &mut self.file))?;
            pages.end(&mut self.file)?;
        }
        self.header.file_bytes = self.file.position();
        let path = self.file.finish(&self.header.encode())?;
        Ok(Segment {
            number: self.header.number,
            level: self.header.level,
            path,
            file_bytes: self.header.file_bytes,
            blocks: self.blocks,
            runs: self.runs,
            live_bytes: AtomicU64::new(0),
            live_runs: AtomicU64::new(0),
            is_damaged: AtomicBool::new(false),
        })
    }
}

fn write_run(run: &Run, pages: &mut PageBuffer, file: &mut FileWriter<'_>) -> Result<(), Error> {
    let row: [&[u8]; 9] = [
        &run.log.topic.0,
        &run.log.partition.to_le_bytes(),
        &run.first_block.to_le_bytes(),
        &run.last_block.to_le_bytes(),
        &run.start.to_le_bytes(),
        &run.base_offset.to_le_bytes(),
        &run.next_offset.to_le_bytes(),
        &run.bytes.to_le_bytes(),
        &run.max_timestamp.to_le_bytes(),
    ];
    pages.entry(&row, file)
}

/// The address of a byte of a segment. Addresses of segments and positions of the journal never
/// meet, so that both are found in one cache.
pub(crate) fn address_of(number: u64, offset: u64) -> u64 {
    debug_assert!(number < NUMBER_MAX && offset < SEGMENT_BYTES_MAX);
    SEGMENT_BIT | number << OFFSET_BITS | offset
}

/// The segment number and offset of an address, or `None` for a position of the journal.
pub(crate) fn of_address(address: u64) -> Option<(u64, u64)> {
    (address & SEGMENT_BIT != 0).then(|| {
        let number = (address & !SEGMENT_BIT) >> OFFSET_BITS;
        (number, address & (SEGMENT_BYTES_MAX - 1))
    })
}

pub(crate) fn file_name(number: u64) -> String {
    format!("{number:010}.{SEGMENT_SUFFIX}")
}

pub(crate) const SEGMENT_SUFFIX: &str = "segment";
const MAGIC: [u8; 8] = *b"MOLDAUSG";
const BLOCK_ROWS: u32 = 1;
const RUN_ROWS: u32 = 2;
/// 64 bytes a row: a page stays below the length at which it ends by itself.
const ROWS_PER_PAGE: usize = 4000;
/// As the records crate has it for a batch without records.
const NO_TIMESTAMP: i64 = -1;
/// What one read of the disk brings, and what is verified at once: long enough for the disk's
/// sequential rate, short enough for a reader of one small log.
const BLOCK_BYTES: u32 = 1 << 20;
/// A block of several short runs takes no further run from here on, as a reader of one of them
/// reads all. A row of the footer costs a thousandth of this.
const SHARED_BLOCK_BYTES: u32 = 32 << 10;
/// The largest segment: an address has this many bits for the offset.
pub(crate) const SEGMENT_BYTES_MAX: u64 = 1 << OFFSET_BITS;
const OFFSET_BITS: u32 = 38;
const SEGMENT_BIT: u64 = 1 << 63;
pub(crate) const NUMBER_MAX: u64 = 1 << (63 - OFFSET_BITS);
