//! Scrubbing: what was written is read back now and then, so that damage is found while there is
//! still another copy of the data.
//!
//! A pass verifies every block and footer of the segments, every durable frame of the journal, and
//! the checkpoints.
//! It changes nothing: damage is counted and logged with the offsets that it affects.

use std::io::ErrorKind;
use std::path::Path;
use std::time::{Duration, Instant};

use moldau_records::crc32c;
use moldau_threads::fault_point;

use crate::checkpoint::{self, CHECKPOINT_NAMES};
use crate::disk::read_full;
use crate::format::{FILE_HEADER_BYTES, FrameLink, round_up};
use crate::io::{Region, SegmentPool};
use crate::journal::Journal;
use crate::scan::{Place, Scan};
use crate::segment::Segment;
use crate::topics::Topics;
use crate::{Drive, Error, LogId};

/// The thread that does it.
pub(crate) fn run(journal: &Journal, topics: &Topics) {
    if journal.options.scrub_rate == 0 {
        return;
    }
    fault_point("scrub");
    let mut wait = FIRST_PASS_AFTER;
    while !journal.scrub.stops_within(wait) {
        let begun = Instant::now();
        match journal.confined("scrubbing", || pass(journal, topics)) {
            Ok(_) => {}
            Err(Error::Closed) => return,
            Err(error) => tracing::error!(%error, "scrubbing stops until its next pass"),
        }
        wait = PASS_INTERVAL.saturating_sub(begun.elapsed());
    }
}

/// Reads everything once; returns how many damaged blocks, frames and checkpoints there are.
pub(crate) fn pass(journal: &Journal, topics: &Topics) -> Result<usize, Error> {
    let mut pass = Pass { journal, topics, damaged: 0 };
    let mut region = SegmentPool::new(BLOCK_BYTES, 0).take();
    let (numbers, _) = journal.segments.numbers();
    // One at a time: what is held is not given back gently.
    for segment in numbers.into_iter().filter_map(|number| journal.segments.get(number)) {
        match pass.segment(&segment, &mut region) {
            // It was removed meanwhile.
            Err(Error::Io { source, .. })
                if source.kind() == ErrorKind::NotFound
                    && journal.segments.get(segment.number).is_none() => {}
            other => other?,
        }
    }
    pass.frames()?;
    pass.checkpoints()?;
    Ok(pass.damaged)
}

struct Pass<'a> {
    journal: &'a Journal,
    topics: &'a Topics,
    damaged: usize,
}

impl Pass<'_> {
    fn segment(&mut self, segment: &Segment, region: &mut Region) -> Result<(), Error> {
        match self.journal.segments.reopen(segment) {
            Err(Error::Corrupt { path, offset, reason }) => {
                self.report(&path, offset, &reason, offsets_of(segment));
            }
            Err(error) if error.is_damage() => {
                self.report(&segment.path, 0, &error.to_string(), offsets_of(segment));
            }
            other => drop(other?),
        }
        let handle = self.journal.segments.handle(segment)?;
        for (number, block) in (0u32..).zip(&segment.blocks) {
            let count = block.bytes as usize;
            if region.len() < count {
                *region = SegmentPool::new(round_up(count), 0).take();
            }
            let buffer = &mut region.as_mut()[..round_up(count)];
            let read =
                self.journal.pace.work(count, || read_full(&*handle, buffer, block.offset()));
            let reason = match read {
                Ok(()) if crc32c(&buffer[..count]) == block.crc => None,
                Ok(()) => Some("the checksum of a block does not hold".to_owned()),
                Err(error) => Some(format!("a block cannot be read: {error}")),
            };
            if let Some(reason) = reason {
                self.report(&segment.path, block.offset(), &reason, offsets_in(segment, number));
            }
            self.rest(count)?;
        }
        Ok(())
    }

    /// Reads the journal from its first file to what was durable at the beginning.
    fn frames(&mut self) -> Result<(), Error> {
        let files = &self.journal.files;
        let end = self.journal.durable.position();
        let mut scan = Scan::new(files);
        let mut next = self.first_place(0);
        let mut last = FrameLink::default();
        while let Some(mut at) = next.filter(|at| at.base < end) {
            let read = match scan.frame(&at, last) {
                Ok(read) => read.map(|frame| (frame.link, frame.frame_bytes)),
                // The file was retired meanwhile.
                Err(Error::Io { .. }) if files.at(at.base).is_none() => {
                    next = self.first_place(at.base);
                    last = FrameLink::default();
                    continue;
                }
                Err(error) if error.is_damage() => Err(error.to_string()),
                Err(error) => return Err(error),
            };
            let reason = match read {
                Ok((link, frame_bytes)) => {
                    last = link;
                    at.base += u64::from(frame_bytes);
                    next = Some(at);
                    self.rest(frame_bytes as usize)?;
                    continue;
                }
                Err(reason) => reason,
            };
            next = scan.continuation(&at.file, last)?;
            if next.is_some() {
                continue;
            }
            next = scan.resumption(&at, end, |header| header.sequence > last.sequence)?;
            let until = next.as_ref().map_or(end, |next| next.base);
            let is_in_file = next.as_ref().is_some_and(|next| next.file.base == at.file.base);
            // A file that is too short for the first frame after it holds none.
            if last.sequence != 0 || is_in_file {
                let lost = self.batches_between(at.base, until);
                self.report(&at.file.path, at.offset(), &reason, lost);
            }
            last = FrameLink::default();
        }
        Ok(())
    }

    fn checkpoints(&mut self) -> Result<(), Error> {
        let (files, cluster_id) = (&self.journal.files, self.journal.segments.cluster_id());
        for name in CHECKPOINT_NAMES {
            let path = self.journal.options.data_dir.join(name);
            match checkpoint::verify(files.disk(), &path, files.access(), cluster_id) {
                Ok(length) => self.rest(usize::try_from(length.unwrap_or(0)).unwrap_or(0))?,
                Err(Error::Corrupt { path, offset, reason }) => {
                    self.report(&path, offset, &reason, Vec::new());
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// The first frame of the first file that ends behind a position.
    fn first_place(&self, position: u64) -> Option<Place> {
        let file = self.journal.files.all().into_iter().find(|file| file.end() > position)?;
        Some(Place { base: file.base + FILE_HEADER_BYTES as u64, file })
    }

    /// The offsets whose batches lie in a part of the journal.
    fn batches_between(&self, from: u64, to: u64) -> Vec<(LogId, std::ops::Range<i64>)> {
        let lost = self.topics.all().into_iter().filter_map(|log| {
            log.with_state(|state| {
                let mut lost = state.index.iter().filter(|it| (from..to).contains(&it.position));
                let first = lost.next()?;
                let next_offset = lost.last().map_or(first.next_offset, |last| last.next_offset);
                Some((log.id(), first.base_offset..next_offset))
            })
        });
        lost.collect()
    }

    fn report(
        &mut self,
        path: &Path,
        offset: u64,
        reason: &str,
        lost: Vec<(LogId, std::ops::Range<i64>)>,
    ) {
        self.damaged += 1;
        self.journal.metrics.scrub_damaged.add(1);
        let path = path.display();
        tracing::error!(%path, offset, reason, logs = lost.len(),
            "scrubbing found damage; `moldau broker repair` shows what is lost");
        for (log, offsets) in lost.iter().take(LOGS_NAMED_MAX) {
            let topic = u128::from_be_bytes(log.topic.0);
            let (partition, from, to) = (log.partition, offsets.start, offsets.end - 1);
            tracing::error!(%path, topic = %format_args!("{topic:032x}"), partition, from, to,
                "offsets that lie in the damage");
        }
    }

    fn rest(&self, bytes: usize) -> Result<(), Error> {
        self.journal.metrics.scrubbed_bytes.add(bytes);
        let options = &self.journal.options;
        if options.drive == Drive::Stepped || options.scrub_rate == 0 {
            return Ok(());
        }
        let nanos = (bytes as u64).saturating_mul(1_000_000_000) / options.scrub_rate;
        match self.journal.scrub.stops_within(Duration::from_nanos(nanos)) {
            true => Err(Error::Closed),
            false => Ok(()),
        }
    }
}

/// The offsets of each log that lie in a segment.
fn offsets_of(segment: &Segment) -> Vec<(LogId, std::ops::Range<i64>)> {
    segment.runs.iter().map(|run| (run.log, run.base_offset..run.next_offset)).collect()
}

/// The offsets of each log that lie in a block.
fn offsets_in(segment: &Segment, number: u32) -> Vec<(LogId, std::ops::Range<i64>)> {
    let first_offset = |number: u32| segment.blocks.get(number as usize).map(|it| it.first_offset);
    let runs = segment
        .runs
        .iter()
        .filter(|run| run.bytes > 0 && (run.first_block..=run.last_block).contains(&number));
    let ranges = runs.map(|run| {
        let is_first = number == run.first_block;
        let from = if is_first { None } else { first_offset(number) };
        let to = if number == run.last_block { None } else { first_offset(number + 1) };
        (run.log, from.unwrap_or(run.base_offset)..to.unwrap_or(run.next_offset))
    });
    ranges.collect()
}

/// As long as most blocks are.
const BLOCK_BYTES: usize = 1 << 20;
/// Recovery and the first clients come before it.
const FIRST_PASS_AFTER: Duration = Duration::from_secs(600);
/// A disk forgets slowly.
const PASS_INTERVAL: Duration = Duration::from_secs(24 * 3600);
/// A block may hold thousands of logs; these show where it is.
const LOGS_NAMED_MAX: usize = 8;
