//! Reading a journal on behind what is damaged.
//!
//! A frame counts if it follows the one before, as in recovery. Where one does not, the next that
//! says that something behind the last one had been flushed shows that what lies between was
//! durable and is damaged: without such a frame this is the end of the journal, torn or not. Of a
//! damaged frame the entries that are whole still count if its entry headers are.

use std::path::PathBuf;

use super::directory::JournalFiles;
use super::state::Salvaged;
use crate::Error;
use crate::files::Files;
use crate::format::{FILE_HEADER_BYTES, FrameHeader, FrameLink};
use crate::io::BLOCK;
use crate::scan::{Place, Scan};

/// A place in the journal that is not as it was written, with the offsets known to lie in it.
pub(super) struct DamagedFrame {
    pub(super) path: PathBuf,
    pub(super) offset: u64,
    pub(super) reason: String,
    pub(super) lost: Vec<(crate::LogId, std::ops::Range<i64>)>,
}

/// Reads frames and takes up what they say.
pub(super) struct Walk<'a> {
    journal: &'a JournalFiles,
    files: &'a Files,
    scan: Scan<'a>,
    pub(super) salvaged: Salvaged,
    pub(super) damage: Vec<DamagedFrame>,
    /// Highest sequence number of a frame that counts.
    pub(super) sequence: u64,
}

/// Which part of the journal is read.
#[derive(Clone, Copy)]
pub(super) struct Part {
    /// The frame before it.
    pub(super) last: FrameLink,
    /// Frames from this position on are left.
    pub(super) until: u64,
    /// The checkpoint stands for everything before this position, so it was durable.
    pub(super) durable_to: u64,
}

impl<'a> Walk<'a> {
    pub(super) fn new(journal: &'a JournalFiles, salvaged: Salvaged) -> Walk<'a> {
        let files = &journal.files;
        let (scan, damage) = (Scan::new(files), Vec::new());
        Walk { journal, files, scan, salvaged, damage, sequence: 0 }
    }

    /// Reads the frames from `position` on.
    pub(super) fn read(&mut self, position: u64, part: Part) -> Result<(), Error> {
        let Part { mut last, until, durable_to } = part;
        let Some(mut at) = self.place_from(position) else {
            // The journal's end may lie behind the last byte of its last file.
            if position < durable_to {
                self.lose_files(position..durable_to);
            }
            return Ok(());
        };
        // Files that were retired before the checkpoint are not missed.
        if position > 0 && at.file.base > position {
            self.lose_files(position..at.base);
            last = FrameLink::default();
        }
        self.sequence = self.sequence.max(last.sequence);
        let mut follows_damage = false;
        while at.base < until {
            let reason = match self.scan.frame(&at, last)? {
                Ok(frame) if frame.link.sequence > self.sequence => {
                    self.salvaged.take_frame(&frame.entries);
                    last = frame.link;
                    self.sequence = last.sequence;
                    at.base += u64::from(frame.frame_bytes);
                    follows_damage = false;
                    continue;
                }
                Ok(_) => "the frame is older than the one before it".to_owned(),
                Err(reason) => reason,
            };
            if let Some(next) = self.scan.continuation(&at.file, last)? {
                at = next;
                continue;
            }
            let floor = self.sequence;
            let is_vouched = |header: &FrameHeader| {
                let is_durable = header.flushed_sequence > floor || header.position < durable_to;
                header.sequence > floor && is_durable
            };
            let here = self.scan.header(&at)?.filter(|(header, _)| is_vouched(header));
            let is_whole = self.scan.frame(&at, FrameLink::default())?.is_ok();
            if here.is_some() && is_whole && last.sequence != 0 {
                if !follows_damage {
                    self.report(&at, reason, Vec::new());
                    self.salvaged.lose_frames(at.base..at.base + 1);
                }
                last = FrameLink::default();
                continue;
            }
            let Some(next) = self.scan.resumption(&at, until, is_vouched)? else {
                return self.end(&at, part, reason);
            };
            follows_damage = true;
            (at, last) = self.salvage(at, next, last, reason)?;
        }
        Ok(())
    }

    /// Nothing counts from `at` on. That is damage where more is known to have been there, or where
    /// the file has lost its end and the frames go on to that.
    fn end(&mut self, at: &Place, part: Part, reason: String) -> Result<(), Error> {
        let durable_to = part.durable_to.min(part.until);
        if at.base < durable_to {
            self.report(at, reason, Vec::new());
        }
        let is_cut = at.base + BLOCK as u64 >= at.file.end() || self.scan.header(at)?.is_some();
        let cut = self.journal.cut.get(&at.file.base).filter(|_| is_cut);
        let lost_to = cut.map_or(durable_to, |end| durable_to.max(*end));
        if at.base < lost_to {
            self.salvaged.lose_frames(at.base..lost_to);
        }
        Ok(())
    }

    /// Takes up what is whole of the frame at `at`; `next` is the first behind it that counts.
    /// Returns where to go on, and the frame before that.
    fn salvage(
        &mut self,
        at: Place,
        next: Place,
        last: FrameLink,
        reason: String,
    ) -> Result<(Place, FrameLink), Error> {
        let limit = next.base.min(at.file.end()).saturating_sub(at.base);
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let Some(damaged) = self.scan.damaged_frame(&at, limit)? else {
            self.salvaged.lose_frames(at.base..next.base);
            self.report(&at, reason, Vec::new());
            return Ok((next, FrameLink::default()));
        };
        let lost = self.salvaged.take_entries(&damaged.entries);
        let (link, bytes) = (damaged.link, damaged.bytes);
        self.report(&at, reason, lost);
        let follows =
            link.sequence > last.sequence && link.sequence < next_sequence(&mut self.scan, &next)?;
        if follows {
            self.sequence = self.sequence.max(link.sequence);
        }
        let base = at.base + bytes as u64;
        let link = if follows { link } else { FrameLink::default() };
        Ok((Place { base, ..at }, link))
    }

    /// The position itself, or the first frame behind it.
    fn place_from(&self, position: u64) -> Option<Place> {
        let file = self.files.all().into_iter().find(|file| file.end() > position)?;
        let first = file.base + FILE_HEADER_BYTES as u64;
        let base = position.max(first).next_multiple_of(BLOCK as u64);
        Some(Place { base, file })
    }

    fn lose_files(&mut self, positions: std::ops::Range<u64>) {
        let (path, offset) = (self.files.dir().to_owned(), 0);
        let reason = format!("the file that holds journal position {} is missing", positions.start);
        self.damage.push(DamagedFrame { path, offset, reason, lost: Vec::new() });
        self.salvaged.lose_frames(positions);
    }

    fn report(
        &mut self,
        at: &Place,
        reason: String,
        lost: Vec<(crate::LogId, std::ops::Range<i64>)>,
    ) {
        let (path, offset) = (at.file.path.clone(), at.offset());
        self.damage.push(DamagedFrame { path, offset, reason, lost });
    }
}

fn next_sequence(scan: &mut Scan<'_>, next: &Place) -> Result<u64, Error> {
    Ok(scan.header(next)?.map_or(0, |(header, _)| header.sequence))
}
