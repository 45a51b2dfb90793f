//! Reading the journal from its start: frames, verified whole.

use std::sync::Arc;

use moldau_records::{BatchView, Crc32c, crc32c};

use crate::Error;
use crate::files::{Files, JournalFile};
use crate::format::{
    ENTRY_HEADER_BYTES, EntryHeader, FILE_HEADER_BYTES, FRAME_HEADER_BYTES, Fields, FrameHeader,
    FrameLink, Kind, POSITION_MAX, round_up,
};
use crate::io::BLOCK;
use crate::window::Window;

/// A journal position and the file that it lies in.
pub(crate) struct Place {
    pub(crate) base: u64,
    pub(crate) file: Arc<JournalFile>,
}

impl Place {
    pub(crate) fn offset(&self) -> u64 {
        self.base - self.file.base
    }
}

/// A frame that was verified.
pub(crate) struct Frame<'a> {
    pub(crate) link: FrameLink,
    pub(crate) frame_bytes: u32,
    pub(crate) entries: Vec<Entry<'a>>,
}

/// A frame that is damaged, but not in the headers of its entries.
pub(crate) struct DamagedFrame<'a> {
    /// The next frame's record of it, if that part of the frame is intact.
    pub(crate) link: FrameLink,
    pub(crate) bytes: usize,
    pub(crate) entries: Vec<ReadEntry<'a>>,
}

/// An entry whose header is as it was written.
pub(crate) struct ReadEntry<'a> {
    pub(crate) entry: Entry<'a>,
    /// Whether its payload is, too.
    pub(crate) is_whole: bool,
}

pub(crate) struct Entry<'a> {
    pub(crate) header: EntryHeader,
    pub(crate) payload: &'a [u8],
    /// Journal position of the payload.
    pub(crate) position: u64,
}

/// Reads frames where they are expected.
pub(crate) struct Scan<'a> {
    files: &'a Files,
    window: Window,
}

impl Scan<'_> {
    pub(crate) fn new(files: &Files) -> Scan<'_> {
        Scan { files, window: Window::new(READ_STEP.min(files.file_bytes())) }
    }

    fn bytes(&mut self, at: &Place, count: usize) -> Result<Option<&[u8]>, Error> {
        let handle = self.files.handle(&at.file)?;
        self.window.get(&*handle, &at.file.path, at.offset(), count, at.file.file_bytes)
    }

    /// The header of the frame that begins at a place, if one does, and its CRC.
    pub(crate) fn header(&mut self, at: &Place) -> Result<Option<(FrameHeader, u32)>, Error> {
        let bytes = self.bytes(at, BLOCK)?;
        let header = bytes.and_then(FrameHeader::decode);
        let is_here =
            |header: &FrameHeader| header.position == at.base && header.sequence < POSITION_MAX;
        Ok(header.filter(|(header, _)| is_here(header)))
    }

    /// The frame at a place that follows `last`, or why there is none.
    pub(crate) fn frame(
        &mut self,
        at: &Place,
        last: FrameLink,
    ) -> Result<Result<Frame<'_>, String>, Error> {
        let Some((header, header_crc)) = self.header(at)? else {
            return Ok(Err("no frame of this place begins here".to_owned()));
        };
        if last.sequence != 0 && header.previous != last {
            return Ok(Err("the frame does not follow the one before it".to_owned()));
        }
        let is_whole_blocks = (header.frame_bytes as usize).is_multiple_of(BLOCK);
        if !is_whole_blocks || header.frame_bytes == 0 || header.sequence <= last.sequence {
            return Ok(Err("the frame's length or sequence number cannot be".to_owned()));
        }
        let Some(bytes) = self.bytes(at, header.frame_bytes as usize)? else {
            return Ok(Err("the frame reaches beyond its file".to_owned()));
        };
        Ok(entries_of(bytes, &header).map(|entries| Frame {
            link: FrameLink { sequence: header.sequence, header_crc },
            frame_bytes: header.frame_bytes,
            entries,
        }))
    }

    /// The start of the file after `file` that begins with the frame that follows `last`. Files in
    /// between are empty: they were too short for that frame.
    pub(crate) fn continuation(
        &mut self,
        file: &JournalFile,
        last: FrameLink,
    ) -> Result<Option<Place>, Error> {
        let mut end = file.end();
        while let Some(next) = self.files.at(end) {
            end = next.end();
            let place = Place { base: next.base + FILE_HEADER_BYTES as u64, file: next };
            let header = self.header(&place)?;
            if header.is_some_and(|(header, _)| last.sequence != 0 && header.previous == last) {
                return Ok(Some(place));
            }
        }
        Ok(None)
    }

    /// The next place before `end` and behind a damaged one where a frame begins that `is_wanted`.
    pub(crate) fn resumption(
        &mut self,
        damaged: &Place,
        end: u64,
        is_wanted: impl Fn(&FrameHeader) -> bool,
    ) -> Result<Option<Place>, Error> {
        for file in self.files.all().into_iter().filter(|file| file.end() > damaged.base) {
            let first = file.base + FILE_HEADER_BYTES as u64;
            let mut place = Place { base: first.max(damaged.base + BLOCK as u64), file };
            while place.base < end.min(place.file.end()) {
                match self.header(&place) {
                    Ok(Some((header, _))) if is_wanted(&header) => return Ok(Some(place)),
                    Err(error) if !error.is_damage() => return Err(error),
                    _ => {}
                }
                place.base += BLOCK as u64;
            }
        }
        Ok(None)
    }

    /// The entries of a damaged frame that has at most `limit` bytes. The checksum over the entry
    /// headers says when there are no more of them; without it nothing of the frame is certain.
    pub(crate) fn damaged_frame(
        &mut self,
        at: &Place,
        limit: usize,
    ) -> Result<Option<DamagedFrame<'_>>, Error> {
        let Some(frame) = self.bytes(at, limit)? else { return Ok(None) };
        Ok(entries_of_damaged(frame, at.base))
    }

    /// Makes sure that nothing durable lies behind the end of the journal, and returns the highest
    /// sequence number that was found there.
    pub(crate) fn check_end(
        &mut self,
        end: &Place,
        sequence: u64,
        reason: String,
    ) -> Result<u64, Error> {
        let mut seen = sequence;
        let frame_bytes_max = end.file.frame_bytes_max.max(self.files.frame_bytes_max());
        let stretch = u64::from(frame_bytes_max) + BLOCK as u64;
        let stop = end.base.saturating_add(stretch);
        let mut places = Vec::new();
        for file in self.files.all().into_iter().filter(|file| file.end() > end.base) {
            let from = end.base.max(file.base + FILE_HEADER_BYTES as u64);
            let to = stop.min(file.end()).max(from + BLOCK as u64);
            places.push((from, to.min(file.end()), file));
        }
        for (from, to, file) in places {
            let mut place = Place { base: from, file };
            while place.base < to {
                if let Some((header, _)) = self.header(&place)? {
                    if header.sequence > sequence && header.flushed_sequence > sequence {
                        let (path, offset) = (&end.file.path, end.offset());
                        return Err(Error::corrupt(path, offset, reason));
                    }
                    seen = seen.max(header.sequence);
                }
                place.base += BLOCK as u64;
            }
        }
        Ok(seen)
    }
}

fn entries_of_damaged(frame: &[u8], position: u64) -> Option<DamagedFrame<'_>> {
    let (header, mut rest) = frame.split_at_checked(FRAME_HEADER_BYTES)?;
    let sequence = Fields(header.get(24..)?).u64()?;
    let mut checks = Fields(header.get(56..)?);
    let (entries_crc, header_crc) = (checks.u32()?, checks.u32()?);
    let mut entries = Vec::new();
    let mut headers_crc = Crc32c::new();
    while entries.is_empty() || headers_crc.value() != entries_crc {
        let (encoded, behind) = rest.split_at_checked(ENTRY_HEADER_BYTES)?;
        headers_crc.update(encoded);
        let header = EntryHeader::decode(encoded)?;
        let (payload, behind) = behind.split_at_checked(header.payload_bytes as usize)?;
        let position = position + (frame.len() - behind.len() - payload.len()) as u64;
        let is_whole = payload_holds(&header, payload);
        entries.push(ReadEntry { entry: Entry { header, payload, position }, is_whole });
        rest = behind;
    }
    let bytes = round_up(frame.len() - rest.len());
    Some(DamagedFrame { link: FrameLink { sequence, header_crc }, bytes, entries })
}

/// The entries of a frame, if all of the frame is as it was written.
fn entries_of<'a>(frame: &'a [u8], header: &FrameHeader) -> Result<Vec<Entry<'a>>, String> {
    let damaged = |what: &str| Err(format!("frame {}: {what}", header.sequence));
    let mut rest = frame.get(FRAME_HEADER_BYTES..).unwrap_or_default();
    let mut entries = Vec::new();
    let mut headers_crc = Crc32c::new();
    for _ in 0..header.entries {
        let Some((encoded, behind)) = rest.split_at_checked(ENTRY_HEADER_BYTES) else {
            return damaged("an entry reaches beyond the frame");
        };
        headers_crc.update(encoded);
        let Some(entry) = EntryHeader::decode(encoded) else {
            return damaged("an entry header cannot be read");
        };
        let Some((payload, behind)) = behind.split_at_checked(entry.payload_bytes as usize) else {
            return damaged("an entry reaches beyond the frame");
        };
        if !payload_holds(&entry, payload) {
            return damaged("the checksum of an entry's payload does not hold");
        }
        let position = header.position + (frame.len() - behind.len() - payload.len()) as u64;
        entries.push(Entry { header: entry, payload, position });
        rest = behind;
    }
    if headers_crc.value() != header.entries_crc {
        return damaged("the checksum of the entry headers does not hold");
    }
    if !ZEROS.starts_with(rest) {
        return damaged("the padding is not zero");
    }
    Ok(entries)
}

fn payload_holds(entry: &EntryHeader, payload: &[u8]) -> bool {
    if entry.kind != Kind::Batch {
        return crc32c(payload) == entry.payload_crc;
    }
    payload.starts_with(&entry.batch_prefix)
        && BatchView::parse(payload).is_ok_and(|batch| {
            batch.bytes().len() == payload.len()
                && batch.last_offset_delta() >= 0
                && batch.check_crc().is_ok()
        })
}

/// What follows the last entry in its block is the start of this.
const ZEROS: [u8; BLOCK - 1] = [0; BLOCK - 1];
/// Large enough that the disk gives its sequential rate, small enough for a quick start.
const READ_STEP: usize = 2 << 20;
