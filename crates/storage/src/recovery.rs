//! Opening a journal: which files there are, what their frames say, where writing goes on.
//!
//! Frames are read in order and verified whole before anything in them counts. The first place
//! without a valid frame that follows the last one is the end of the journal, unless a later frame
//! says that what is missing had been flushed: that is damage, and the journal is not opened. What
//! lies behind the end was never acknowledged and cannot come back: a frame counts only if it names
//! the frame before it, and the sequence numbers that follow were never used.
//!
//! Recovery writes nothing to journal files, so that it can be repeated after a crash at any point.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;

use moldau_records::BatchView;

use crate::files::{Files, JOURNAL_SUFFIX, JournalFile, SPARE_SUFFIX, SpaceFor, TEMPORARY_SUFFIX};
use crate::format::{
    FILE_HEADER_BYTES, FORMAT_VERSION, Fields, FileHeader, FileHeaderRead, FrameLink, Kind,
};
use crate::io::BLOCK;
use crate::log::LogState;
use crate::meta::Anchor;
use crate::scan::{Entry, Place, Scan, Window};
use crate::{Error, LogId, TopicId};

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
    pub(crate) last: FrameLink,
    /// Highest sequence number that may have been used.
    pub(crate) sequence: u64,
    /// Where the next frame goes.
    pub(crate) next: u64,
    pub(crate) file_end: u64,
    pub(crate) frames: u64,
}

pub(crate) type Logs = HashMap<TopicId, HashMap<i32, LogState>>;

/// Lists the files of a journal that count, retires those before the anchor, removes what a crash
/// left half made.
pub(crate) fn list_files(files: &Files, cluster_id: [u8; 16], anchor: Anchor) -> Result<(), Error> {
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
    let mut base = 0;
    for file in found {
        if file.end() > anchor.start && file.base != base.max(anchor.start) {
            let reason = format!("the file before it, at journal position {base}, is missing");
            return Err(Error::corrupt(&file.path, 0, reason));
        }
        base = file.end();
        files.add(file);
    }
    files.retire_to(anchor.start)?;
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
        FileHeaderRead::Known(header) => Ok(JournalFile::existing(&header, path)),
    }
}

/// Reads the journal and replays it; the files are listed already, the first is created if there is
/// none.
pub(crate) fn recover(
    files: &Files,
    anchor: Anchor,
    replay: &mut dyn Replay,
) -> Result<Recovered, Error> {
    let first = files.starting_at(anchor.start, SpaceFor::Metadata)?;
    let mut scan = Scan::new(files);
    let mut rebuild = Rebuild::new(anchor, replay);
    let mut last = FrameLink::default();
    let mut frames = 0;
    let mut at = Place { base: first.base + FILE_HEADER_BYTES as u64, file: first };
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
        return Ok(Recovered { logs: rebuild.logs, last, sequence, next, file_end, frames });
    }
}

/// The logs as far as the journal has been read.
struct Rebuild<'a> {
    anchor: Anchor,
    logs: Logs,
    /// Position of the snapshot whose entries are being read.
    snapshot: Option<u64>,
    /// Logs that the snapshot in effect must name, or else they were deleted before it.
    unconfirmed: HashSet<LogId>,
    replay: &'a mut dyn Replay,
}

impl<'a> Rebuild<'a> {
    fn new(anchor: Anchor, replay: &'a mut dyn Replay) -> Rebuild<'a> {
        let (logs, unconfirmed) = (Logs::new(), HashSet::new());
        Rebuild { anchor, logs, snapshot: None, unconfirmed, replay }
    }

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
        let log = entry.header.log;
        let counts = entry.position >= self.anchor.snapshot;
        let in_effect = self.snapshot == Some(self.anchor.snapshot);
        match entry.header.kind {
            Kind::Batch => self.batch(entry)?,
            Kind::DeleteTopic => {
                self.logs.remove(&log.topic);
            }
            Kind::Metadata if counts => {
                self.replay.metadata(entry.payload).map_err(Refusal::Owner)?;
            }
            Kind::LogStart if counts => {
                let start = Fields(entry.payload).i64();
                let start = start.ok_or(Refusal::Damaged("a log start without an offset"))?;
                self.log(log).trim_to(start);
            }
            Kind::SnapshotBegin => {
                self.snapshot = Some(entry.position);
                if entry.position == self.anchor.snapshot {
                    self.unconfirmed = self.ids().collect();
                }
            }
            Kind::SnapshotMetadata if in_effect => {
                self.replay.metadata(entry.payload).map_err(Refusal::Owner)?;
            }
            Kind::LogState if in_effect => {
                let replaced = self.log(log).replace(entry.payload);
                replaced.ok_or(Refusal::Damaged("a log state that contradicts its batches"))?;
                self.unconfirmed.remove(&log);
            }
            Kind::SnapshotEnd if in_effect => {
                for LogId { topic, partition } in std::mem::take(&mut self.unconfirmed) {
                    if let Some(logs) = self.logs.get_mut(&topic) {
                        logs.remove(&partition);
                    }
                }
            }
            // Replaced by the snapshot, or part of one that never came into effect.
            Kind::Metadata
            | Kind::LogStart
            | Kind::LogState
            | Kind::SnapshotEnd
            | Kind::SnapshotMetadata => {}
        }
        Ok(())
    }

    fn ids(&self) -> impl Iterator<Item = LogId> {
        self.logs.iter().flat_map(|(topic, logs)| {
            let topic = *topic;
            logs.keys().map(move |partition| LogId { topic, partition: *partition })
        })
    }

    fn log(&mut self, id: LogId) -> &mut LogState {
        self.logs.entry(id.topic).or_default().entry(id.partition).or_default()
    }

    fn batch(&mut self, entry: &Entry<'_>) -> Result<(), Refusal> {
        let is_whole = entry.position >= self.anchor.snapshot;
        let batch = BatchView::parse(entry.payload)
            .map_err(|_| Refusal::Damaged("a batch that cannot be read"))?;
        let state = self.log(entry.header.log);
        let (base_offset, end_offset) = (batch.base_offset(), state.index.end_offset());
        // Before the snapshot the first batches of a log may be gone.
        let may_start_here = !is_whole && state.index.bytes() == 0;
        if base_offset < 0 || base_offset != end_offset && !may_start_here {
            return Err(Refusal::Damaged("a batch that does not follow the log's last"));
        }
        state.note(&batch, base_offset, batch.partition_leader_epoch(), entry.position);
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
