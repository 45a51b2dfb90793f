//! Opening a journal: which files there are, what their frames say, where writing goes on.
//!
//! Frames are read in order and verified whole before anything in them counts. The first place
//! without a valid frame that follows the last one is the end of the journal, unless a later frame
//! says that what is missing had been flushed: that is damage, and the journal is not opened. What
//! lies behind the end was never acknowledged and cannot come back: a frame counts only if it names
//! the frame before it, and the sequence numbers that follow were never used.
//!
//! It begins where the checkpoint was taken. What the checkpoint says of a log, or of the owner's
//! metadata, is complete up to a position of its own, and entries before that are skipped. Then the
//! sorted segments that count are laid over the logs: a run takes the place of everything older
//! that it accounts for, so it does not matter which of it the journal still names.
//!
//! Recovery writes nothing to journal files, so that it can be repeated after a crash at any point.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use moldau_records::BatchView;

use crate::checkpoint::{Checkpoint, Logs, RecoveredLog};
use crate::files::{Files, JOURNAL_SUFFIX, JournalFile, SPARE_SUFFIX, SpaceFor, file_name};
use crate::format::{
    FILE_HEADER_BYTES, FORMAT_VERSION, Fields, FileHeader, FileHeaderRead, FrameLink, Kind,
    POSITION_MAX,
};
use crate::io::BLOCK;
use crate::paged::TEMPORARY_SUFFIX;
use crate::scan::{Entry, Place, Scan};
use crate::segment::NUMBER_MAX;
use crate::segments::Segments;
use crate::window::Window;
use crate::{Error, LogId};

/// Takes the owner's metadata back during [`crate::Storage::open`].
pub trait Replay {
    /// One metadata entry, in journal order, after all entries that preceded it.
    ///
    /// # Errors
    /// Why the entry cannot be understood; the storage is then not opened.
    fn metadata(&mut self, bytes: &[u8]) -> Result<(), String>;
}

/// What a journal held.
pub(crate) struct Recovered {
    pub(crate) logs: Logs,
    /// The sorted segments that count.
    pub(crate) segments: BTreeSet<u64>,
    /// Greater than every segment number that was ever used.
    pub(crate) next_segment: u64,
    pub(crate) last: FrameLink,
    /// Highest sequence number that may have been used.
    pub(crate) sequence: u64,
    /// Where the next frame goes.
    pub(crate) next: u64,
    pub(crate) file_end: u64,
    pub(crate) frames: u64,
}

/// Lists the files of a journal and removes what a crash left half made.
pub(crate) fn list_files(files: &Files, cluster_id: [u8; 16]) -> Result<(), Error> {
    let dir = files.dir();
    let names = files.disk().list(dir).map_err(|error| Error::io("list", dir, error))?;
    let mut found = Vec::new();
    for name in names {
        let path = dir.join(&name);
        let failed = |error| Error::io("open", &path, error);
        match name.rsplit_once('.').map(|(_, suffix)| suffix) {
            Some(TEMPORARY_SUFFIX) => files.disk().remove(&path).map_err(failed)?,
            Some(SPARE_SUFFIX) => {
                let spare = files.disk().open(&path, files.access(), false).map_err(failed)?;
                let length = spare.length().map_err(failed)?;
                files.add_spare(path.clone(), length).map_err(failed)?;
            }
            Some(JOURNAL_SUFFIX) => found.push(read_file_header(files, path, cluster_id)?),
            _ => {}
        }
    }
    found.sort_by_key(|file| file.base);
    let mut end = None;
    for file in found {
        // The journal begins with whichever file was not retired.
        if let Some(base) = end.filter(|end| *end != file.base) {
            let reason = format!("the file before it, at journal position {base}, is missing");
            return Err(Error::corrupt(&file.path, 0, reason));
        }
        end = Some(file.end());
        files.add(file);
    }
    Ok(())
}

fn read_file_header(
    files: &Files,
    path: PathBuf,
    cluster_id: [u8; 16],
) -> Result<JournalFile, Error> {
    let mut window = Window::new(BLOCK);
    let file = files.disk().open(&path, files.access(), false);
    let file = file.map_err(|error| Error::io("open", &path, error))?;
    let length = file.length().map_err(|error| Error::io("open", &path, error))?;
    let bytes = window.get(&*file, &path, 0, FILE_HEADER_BYTES, length)?;
    let damaged = |reason: &str| Err(Error::corrupt(&path, 0, reason));
    match FileHeader::decode(bytes.unwrap_or_default()) {
        FileHeaderRead::Damaged => damaged("the header's magic or checksum does not hold"),
        FileHeaderRead::OtherVersion(found) => {
            Err(Error::UnknownVersion { path, found, known: FORMAT_VERSION })
        }
        FileHeaderRead::Known(header) if header.cluster_id != cluster_id => {
            damaged("the file belongs to another data directory")
        }
        FileHeaderRead::Known(header) if header.file_bytes != length => {
            damaged("the file is not as long as its header says")
        }
        FileHeaderRead::Known(header)
            if header.base >= POSITION_MAX || !header.base.is_multiple_of(BLOCK as u64) =>
        {
            damaged("the file begins at a journal position that cannot be")
        }
        FileHeaderRead::Known(header) if !is_named(&path, header.number) => {
            damaged("the file has another's name")
        }
        FileHeaderRead::Known(header) => Ok(JournalFile::existing(&header, path)),
    }
}

fn is_named(path: &Path, number: u64) -> bool {
    path.file_name().is_some_and(|name| name == file_name(number).as_str())
}

/// Reads the journal from the checkpoint on and replays it; the files are listed already, the first
/// is created if there is none.
pub(crate) fn recover(
    files: &Files,
    mut checkpoint: Checkpoint,
    replay: &mut dyn Replay,
) -> Result<Recovered, Error> {
    let mut last = checkpoint.last;
    let mut at = first_place(files, &checkpoint)?;
    if let Some(damage) = &checkpoint.damage {
        tracing::warn!(%damage, position = checkpoint.position,
            "the newest checkpoint is not used; the one before it and the journal say all it did");
    }
    checkpoint.replay(replay)?;
    let mut scan = Scan::new(files);
    let mut rebuild = Rebuild { checkpoint, replay };
    let mut frames = 0;
    loop {
        let reason = match scan.frame(&at, last)? {
            Ok(frame) => {
                rebuild.apply(&at, &frame.entries)?;
                last = frame.link;
                frames += 1;
                at.base += u64::from(frame.frame_bytes);
                continue;
            }
            Err(reason) => reason,
        };
        if let Some(next) = scan.continuation(&at.file, last)? {
            at = next;
            continue;
        }
        let seen = scan.check_end(&at, last.sequence, reason)?;
        let sequence = last.sequence.max(seen).saturating_add(SEQUENCE_GAP);
        let (next, file_end) = (at.base, at.file.end());
        if rebuild.checkpoint.stands_for() > next {
            let reason = "the journal ends before what the checkpoint stands for";
            return Err(Error::corrupt(&at.file.path, at.offset(), reason));
        }
        let Checkpoint { logs, segments, next_segment, .. } = rebuild.checkpoint;
        return Ok(Recovered {
            logs,
            segments,
            next_segment,
            last,
            sequence,
            next,
            file_end,
            frames,
        });
    }
}

/// Where the journal is read from: the checkpoint's position, or the first frame if there is none.
fn first_place(files: &Files, checkpoint: &Checkpoint) -> Result<Place, Error> {
    let position = checkpoint.position;
    if position == 0 {
        let file = match files.all().into_iter().next() {
            Some(first) if first.base > 0 => {
                let reason = "the checkpoint that stands for what came before it is missing";
                let missing = || Error::corrupt(&first.path, 0, reason);
                return Err(checkpoint.damage.clone().unwrap_or_else(missing));
            }
            _ => files.starting_at(0, SpaceFor::Metadata)?,
        };
        return Ok(Place { base: FILE_HEADER_BYTES as u64, file });
    }
    // The journal's end may lie behind the last byte of its last file.
    let file = files.at(position).or_else(|| files.at(position - 1));
    let file = file.ok_or_else(|| {
        let reason = format!("the file that holds journal position {position} is missing");
        Error::corrupt(files.dir(), 0, reason)
    })?;
    let first = file.base + FILE_HEADER_BYTES as u64;
    Ok(Place { base: position.max(first), file })
}

/// Lays the sorted segments over the logs, and makes sure that no log has a hole.
pub(crate) fn lay_segments(
    logs: &mut Logs,
    segments: &Segments,
    files: &Files,
) -> Result<(), Error> {
    // In order of number, so that a run replaces what it was made from.
    for segment in segments.all() {
        for (at, run) in segment.runs.iter().enumerate() {
            let logs = logs.get_mut(&run.log.topic);
            if let Some(log) = logs.and_then(|logs| logs.get_mut(&run.log.partition)) {
                log.state.install(&segment, at);
            }
        }
    }
    for (topic, logs) in logs {
        for (partition, log) in logs {
            let state = &mut log.state;
            state.sorted.trim_to(state.start_offset);
            // The journal may begin too late for what the checkpoint says of the log.
            let first = state.index.iter().next();
            let is_there = first.is_none_or(|first| files.at(first.position).is_some());
            if log.starts_late || !is_there || !state.is_whole() {
                let id = LogId { topic: *topic, partition: *partition };
                let reason = format!("batches of {id:?} are missing");
                return Err(Error::corrupt(files.dir(), 0, reason));
            }
        }
    }
    Ok(())
}

/// The state as far as the journal has been read.
struct Rebuild<'a> {
    checkpoint: Checkpoint,
    replay: &'a mut dyn Replay,
}

impl Rebuild<'_> {
    fn apply(&mut self, at: &Place, entries: &[Entry<'_>]) -> Result<(), Error> {
        for entry in entries {
            let offset = entry.position - at.file.base;
            let damaged = |reason: &str| Error::corrupt(&at.file.path, offset, reason);
            self.entry(entry).map_err(|refusal| match refusal {
                Refusal::Damaged(reason) => damaged(reason),
                Refusal::Owner(reason) => {
                    Error::Replay { path: at.file.path.clone(), offset, reason }
                }
            })?;
        }
        Ok(())
    }

    fn entry(&mut self, entry: &Entry<'_>) -> Result<(), Refusal> {
        let id = entry.header.log;
        match entry.header.kind {
            Kind::Metadata if entry.position >= self.checkpoint.metadata_from => {
                self.replay.metadata(entry.payload).map_err(Refusal::Owner)?;
            }
            // Part of the checkpoint.
            Kind::Metadata => {}
            Kind::DeleteTopic => {
                self.checkpoint.logs.remove(&id.topic);
            }
            Kind::Segments => {
                let changed = self.segments(entry.payload);
                changed.ok_or(Refusal::Damaged("segments that cannot be read"))?;
            }
            Kind::Batch | Kind::LogStart => {
                let log = self.log(id);
                if entry.position < log.complete_to {
                } else if entry.header.kind == Kind::Batch {
                    log.batch(entry)?;
                } else {
                    let start = Fields(entry.payload).i64();
                    let start = start.ok_or(Refusal::Damaged("a log start without an offset"))?;
                    log.state.trim_to(start);
                }
            }
        }
        Ok(())
    }

    fn log(&mut self, id: LogId) -> &mut RecoveredLog {
        self.checkpoint.logs.entry(id.topic).or_default().entry(id.partition).or_default()
    }

    fn segments(&mut self, payload: &[u8]) -> Option<()> {
        let mut fields = Fields(payload);
        for _ in 0..fields.u32()? {
            let number = fields.u64().filter(|number| *number < NUMBER_MAX)?;
            self.checkpoint.segments.insert(number);
            self.checkpoint.next_segment = self.checkpoint.next_segment.max(number + 1);
        }
        while !fields.0.is_empty() {
            self.checkpoint.segments.remove(&fields.u64()?);
        }
        Some(())
    }
}

impl RecoveredLog {
    fn batch(&mut self, entry: &Entry<'_>) -> Result<(), Refusal> {
        let batch = BatchView::parse(entry.payload)
            .map_err(|_| Refusal::Damaged("a batch that cannot be read"))?;
        let (base_offset, end_offset) = (batch.base_offset(), self.state.index.end_offset());
        let last_offset = base_offset.checked_add(i64::from(batch.last_offset_delta()));
        if last_offset.is_none_or(|last| last == i64::MAX) {
            return Err(Refusal::Damaged("a batch whose offsets cannot be"));
        }
        if base_offset != end_offset {
            // The checkpoint leaves out a log that was deleted while it was taken.
            if base_offset < 0 || !self.state.is_pristine() {
                return Err(Refusal::Damaged("a batch that does not follow the log's last"));
            }
            self.starts_late = true;
            self.state.index.start_at(base_offset);
        }
        self.state.note(&batch, base_offset, batch.partition_leader_epoch(), entry.position);
        Ok(())
    }
}

/// Why an entry cannot be replayed.
enum Refusal {
    Damaged(&'static str),
    Owner(String),
}

/// Sequence numbers left out after each opening, more than a process can have used for frames that
/// are not found any more.
const SEQUENCE_GAP: u64 = 1 << 32;
