//! Which part of a log lies where, and which is lost.
//!
//! Runs are laid over each other as recovery does. What no run accounts for, between the start and
//! the end of a log, is filled by further runs, from the batches that the journal still has.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

use moldau_records::crc32c;

use super::state::SalvagedLog;
use crate::disk::{Access, Disk, read_full};
use crate::files::Files;
use crate::format::{ENTRY_HEADER_BYTES, EntryHeader, Kind};
use crate::index::Extent;
use crate::read::is_batch_of;
use crate::segment::{Run, Segment};
use crate::sorted::{Piece, Sorted};
use crate::{Error, LogId};

/// The segments that count, and what is wrong with them.
#[derive(Default)]
pub(super) struct Segments {
    pub(super) by_number: BTreeMap<u64, Arc<Segment>>,
    /// Offsets of the blocks that are damaged, by segment.
    pub(super) bad_blocks: BTreeMap<u64, BTreeSet<u64>>,
    /// Those that are to be written anew, without what is damaged.
    pub(super) rewritten: BTreeSet<u64>,
}

/// A run that is part of its log.
#[derive(Clone)]
pub(super) struct LaidRun {
    pub(super) segment: Arc<Segment>,
    pub(super) at: usize,
}

impl LaidRun {
    pub(super) fn run(&self) -> &Run {
        self.segment.run(self.at)
    }

    /// The parts of the run that have batches.
    pub(super) fn pieces(&self) -> Vec<Piece> {
        let mut sorted = Sorted::default();
        sorted.install(&self.segment, self.at);
        sorted.pieces_from(i64::MIN).collect()
    }
}

/// Offsets that no run accounts for, and the batches that the journal has of them.
pub(super) struct Fill {
    pub(super) offsets: Range<i64>,
    pub(super) extents: Vec<Extent>,
}

/// A log as it is to be.
pub(super) struct Plan {
    pub(super) offsets: Range<i64>,
    pub(super) runs: Vec<LaidRun>,
    pub(super) fills: Vec<Fill>,
    pub(super) lost: Vec<Range<i64>>,
    /// Offsets from here on are not known to have been given out.
    pub(super) certain_end: i64,
    /// Bytes of the batches that stay.
    pub(super) bytes: u64,
}

impl Segments {
    /// Reads every block of a segment, and takes it up.
    pub(super) fn take(&mut self, disk: &dyn Disk, segment: Segment) -> Result<(), Error> {
        let failed = |error| Error::io("read", &segment.path, error);
        let file = disk.open(&segment.path, Access::Buffered, false).map_err(failed)?;
        let mut bytes = Vec::new();
        let mut bad = BTreeSet::new();
        for block in &segment.blocks {
            bytes.resize(block.bytes as usize, 0);
            read_full(&*file, &mut bytes, block.offset()).map_err(failed)?;
            if crc32c(&bytes) != block.crc {
                bad.insert(block.offset());
            }
        }
        if !bad.is_empty() {
            self.rewritten.insert(segment.number);
            self.bad_blocks.insert(segment.number, bad);
        }
        self.by_number.insert(segment.number, Arc::new(segment));
        Ok(())
    }

    pub(super) fn is_bad(&self, piece: &Piece) -> bool {
        let bad = self.bad_blocks.get(&piece.segment.number);
        bad.is_some_and(|bad| bad.contains(&piece.block.offset()))
    }

    /// The runs of each log, by offset.
    pub(super) fn lay(&self) -> BTreeMap<LogId, Vec<LaidRun>> {
        let mut laid: BTreeMap<LogId, Vec<LaidRun>> = BTreeMap::new();
        // In order of number, so that a run replaces what it was made from.
        for segment in self.by_number.values() {
            for (at, run) in segment.runs.iter().enumerate() {
                let runs = laid.entry(run.log).or_default();
                let is_within = |other: &Run| {
                    run.base_offset <= other.base_offset && other.next_offset <= run.next_offset
                };
                runs.retain(|other| !is_within(other.run()));
                let before = |other: &LaidRun| other.run().base_offset < run.base_offset;
                let place = runs.partition_point(before);
                runs.insert(place, LaidRun { segment: Arc::clone(segment), at });
            }
        }
        laid
    }

    /// Plans a log that ends at the second of `ends` at least, and certainly had the offsets below
    /// the first. Segments with contradictory runs must be written anew, so that no later repair
    /// lays them again.
    pub(super) fn plan(
        &mut self,
        log: &SalvagedLog,
        (certain_end, end): (i64, i64),
        runs: Vec<LaidRun>,
    ) -> Plan {
        let first = runs.first().map(|first| first.run().base_offset);
        let first_extent = log.extents.first().map(|first| first.base_offset);
        let sorted_end = runs.last().map_or(0, |last| last.run().next_offset);
        let (certain_end, end) = (certain_end.max(sorted_end), end.max(sorted_end));
        let start = match log.is_start_known {
            true => log.state.start_offset,
            // What came before is not known to have been there.
            false => first.into_iter().chain(first_extent).min().unwrap_or(end),
        };
        let start = start.clamp(0, end);
        let mut plan = Plan {
            offsets: start..end,
            runs: Vec::new(),
            fills: Vec::new(),
            lost: Vec::new(),
            certain_end,
            bytes: 0,
        };
        let mut at = start;
        for laid in runs.into_iter().filter(|laid| laid.run().next_offset > start) {
            let (base, next) = (laid.run().base_offset, laid.run().next_offset);
            if base < at && !plan.runs.is_empty() {
                self.rewritten.insert(laid.segment.number);
                continue;
            }
            plan.fill(log, at..base);
            for piece in laid.pieces().into_iter().filter(|piece| piece.next_offset > start) {
                if self.is_bad(&piece) {
                    plan.lost.push(piece.base_offset.max(start)..piece.next_offset);
                } else {
                    plan.bytes += piece.bytes() as u64;
                }
            }
            plan.runs.push(laid);
            at = next;
        }
        plan.fill(log, at..end);
        plan.lost.sort_unstable_by_key(|lost| lost.start);
        plan
    }
}

impl Plan {
    fn fill(&mut self, log: &SalvagedLog, offsets: Range<i64>) {
        if offsets.is_empty() {
            return;
        }
        let from = log.extents.partition_point(|extent| extent.base_offset < offsets.start);
        let within = log.extents.get(from..).unwrap_or_default().iter();
        let within = within.take_while(|extent| extent.next_offset <= offsets.end);
        let extents: Vec<Extent> = within.copied().collect();
        let mut at = offsets.start;
        for extent in &extents {
            if extent.base_offset > at {
                self.lost.push(at..extent.base_offset);
            }
            at = extent.next_offset;
            self.bytes += u64::from(extent.bytes);
        }
        let certain_end = self.certain_end.clamp(at, offsets.end);
        let rest = [at..certain_end, certain_end..offsets.end];
        self.lost.extend(rest.into_iter().filter(|lost| !lost.is_empty()));
        self.fills.push(Fill { offsets, extents });
    }
}

/// Reads batches of the journal one by one.
pub(super) struct Batches<'a> {
    files: &'a Files,
    bytes: Vec<u8>,
}

impl<'a> Batches<'a> {
    pub(super) fn new(files: &'a Files) -> Batches<'a> {
        Batches { files, bytes: Vec::new() }
    }

    /// The batch that an extent means, if it is there.
    pub(super) fn read(&mut self, log: LogId, extent: &Extent) -> Result<Option<&[u8]>, Error> {
        let header_bytes = ENTRY_HEADER_BYTES as u64;
        let Some(position) = extent.position.checked_sub(header_bytes) else { return Ok(None) };
        let Some(file) = self.files.at(position) else { return Ok(None) };
        let end = position.saturating_add(header_bytes + u64::from(extent.bytes));
        if end > file.end() {
            return Ok(None);
        }
        let handle = self.files.handle(&file)?;
        self.bytes.resize(ENTRY_HEADER_BYTES + extent.bytes as usize, 0);
        read_full(&*handle, &mut self.bytes, position - file.base)
            .map_err(|error| Error::io("read", &file.path, error))?;
        let Some((header, batch)) = self.bytes.split_at_checked(ENTRY_HEADER_BYTES) else {
            return Ok(None);
        };
        let is_entry = EntryHeader::decode(header).is_some_and(|header| {
            header.kind == Kind::Batch
                && header.log == log
                && header.payload_bytes == extent.bytes
                && batch.starts_with(&header.batch_prefix)
        });
        Ok((is_entry && is_batch_of(batch, extent)).then_some(batch))
    }
}
