//! The checkpoint: all state but the batches, so that recovery reads little of the journal.
//!
//! It is written to a file of its own, `checkpoint`, and the one before stays as
//! `checkpoint.previous`, together with the journal from its position on: where the newest is
//! damaged, recovery reads more of the journal and loses nothing. Both change their names by
//! renames, so that a crash at any point leaves one that is whole.
//!
//! It is taken while everything goes on: each log's state and the owner's metadata name the journal
//! position up to which they are complete, and recovery skips what the journal says of them before
//! it.
//!
//! Header, the first block of the file, padded with zeros to 4096 bytes:
//!
//! | bytes | field |
//! |---|---|
//! | 0..8 | magic `MOLDAUCP` |
//! | 8..12 | format version, u32 |
//! | 12..16 | header CRC of the frame before the position at 32, u32 |
//! | 16..32 | cluster id |
//! | 32..40 | journal position at which recovery begins, a frame's or the journal's end, u64 |
//! | 40..48 | sequence number of the frame before that position, u64 |
//! | 48..56 | length of the file in bytes, u64 |
//! | 56..60 | zero |
//! | 60..64 | CRC32C of bytes 0..60 |
//!
//! Pages follow (see `paged`) of entries: kind, u8; length of the payload, u32; payload.
//!
//! | kind | meaning | payload |
//! |---|---|---|
//! | 1 | segments | next segment number, u64; numbers of those that count, u64 each |
//! | 2 | position | journal position up to which the metadata is complete, u64 |
//! | 3 | metadata | opaque to storage |
//! | 4 | log state | topic id; partition, i32; position up to which it is complete, u64; state |
//!
//! The state of a log: start offset, i64; first offset that was never cleaned, i64; the journal's
//! batches of the log (see `index`); leader epochs: count, u32, then epoch, i32, and start offset,
//! i64, each; producers: count, u32, then id, i64, epoch, i16, number of batches, u8, last
//! timestamp, i64, each, and for each of its batches first and last sequence, i32, base and last
//! offset, i64; and, where the log has any, its transactions (see `transactions`).

use std::collections::{BTreeSet, HashMap};
use std::io::ErrorKind;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::block_on;
use crate::disk::{Access, Disk, DiskFile};
use crate::format::{FORMAT_VERSION, Fields, FrameLink, POSITION_MAX, open_header, seal_header};
use crate::io::BLOCK;
use crate::journal::{Cut, Journal};
use crate::log::LogState;
use crate::pace::Pace;
use crate::paged::{FileWriter, PageBuffer, Pages};
use crate::segment::NUMBER_MAX;
use crate::topics::Topics;
use crate::window::Window;
use crate::{Drive, Durability, Error, LogId, Lsn, Replay, TopicId};

/// Takes the owner's metadata for a checkpoint.
///
/// The owner keeps its metadata locked from [`CheckpointWriter::begin`] until its last write: an
/// entry that it appends in between would be replayed twice or not at all.
pub struct CheckpointWriter<'a> {
    journal: &'a Journal,
    begun: Option<u64>,
    /// Encoded entries. The owner's locks must not wait for the disk, and the metadata is in memory
    /// once already.
    entries: Vec<u8>,
}

impl CheckpointWriter<'_> {
    /// Begins: what is written stands for all metadata that was appended before this point. The
    /// first write does so too, which is too late for an owner that may have nothing to write.
    pub fn begin(&mut self) {
        self.begun.get_or_insert_with(|| self.journal.end().0);
    }

    /// Writes one entry; it is handed to [`crate::Replay::metadata`] like any other.
    pub fn metadata(&mut self, bytes: &[u8]) {
        self.begin();
        self.entries.extend_from_slice(&entry_head(METADATA, bytes.len()));
        self.entries.extend_from_slice(bytes);
    }
}

/// The newest checkpoint that is whole.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Newest {
    /// Where recovery begins with it; 0 if there is none.
    pub(crate) position: u64,
    /// Whether it is the file of that name, and not the one before.
    has_name: bool,
}

/// Writes a checkpoint and keeps the one before. Returns the journal position before which neither
/// needs anything.
pub(crate) fn write(
    journal: &Journal,
    newest: &mut Newest,
    cluster_id: [u8; 16],
    topics: &Topics,
    snapshot: impl FnOnce(&mut CheckpointWriter<'_>) -> Result<(), Error>,
) -> Result<u64, Error> {
    let Cut { position, last } = journal.cut()?;
    let mut metadata = CheckpointWriter { journal, begun: None, entries: Vec::new() };
    snapshot(&mut metadata)?;
    metadata.begin();
    let mut complete_to = metadata.begun.unwrap_or_default();
    let disk = journal.files.disk();
    let access = journal.files.access();
    let dir = &journal.options.data_dir;
    let mut file = FileWriter::create(disk, &journal.pace, dir, CHECKPOINT_NAME, access)?;
    let mut pages = PageBuffer::default();
    let (numbers, next) = journal.segments.numbers();
    let numbers: Vec<u8> =
        std::iter::once(next).chain(numbers).flat_map(u64::to_le_bytes).collect();
    pages.entry(&[&entry_head(SEGMENTS, numbers.len()), &numbers], &mut file)?;
    let from = complete_to.to_le_bytes();
    pages.entry(&[&entry_head(POSITION, from.len()), &from], &mut file)?;
    let mut rest = metadata.entries.as_slice();
    while !rest.is_empty() {
        let (entry, further) = split_entry(rest).expect("encoded by this process");
        pages.entry(&[entry], &mut file)?;
        rest = further;
    }
    drop(metadata);
    let states = write_states(journal, topics, &mut pages, &mut file)?;
    complete_to = complete_to.max(states.complete_to);
    pages.end(&mut file)?;
    // A journal that has stopped has dropped what was not written, which the states may speak of.
    if let Some(cause) = journal.poisoned() {
        return Err(Error::Poisoned { cause });
    }
    // What the states name must be there before they count, and so must the deletion of topics
    // that are left out.
    complete_to = {
        let _none = journal.deleting.lock();
        complete_to.max(journal.end().0)
    };
    wait(journal, Lsn(complete_to))?;
    if journal.options.durability == Durability::Os {
        journal.files.sync_all()?;
    }
    let header = header_of(position, last, cluster_id, file.position());
    file.finish_after(&header, |path| {
        // One that is damaged must not take the place of the one before.
        if newest.has_name {
            disk.rename(path, &path.with_file_name(PREVIOUS_NAME))?;
            newest.has_name = false;
        }
        Ok(())
    })?;
    // Of the batches before its own position that the one before names, those that this one does
    // not name any more are sorted or deleted, which the journal behind that position says.
    let needed_from = states.live_from.min(newest.position);
    *newest = Newest { position, has_name: true };
    Ok(needed_from)
}

/// What a repair found out, for its checkpoint.
pub(crate) struct Repaired<'a> {
    /// Where the journal goes on, and a sequence number above all that were used.
    pub(crate) position: u64,
    pub(crate) sequence: u64,
    pub(crate) segments: &'a [u64],
    pub(crate) next_segment: u64,
    pub(crate) metadata: &'a [Vec<u8>],
}

/// Writes the checkpoint of a repair, whose logs have all their batches in segments: each gets the
/// offsets at which it starts and ends.
pub(crate) fn write_repaired<'a>(
    disk: &dyn Disk,
    pace: &Pace,
    dir: &Path,
    cluster_id: [u8; 16],
    repaired: &Repaired<'_>,
    logs: impl Iterator<Item = (LogId, &'a LogState, Range<i64>)>,
) -> Result<(), Error> {
    let mut file = FileWriter::create(disk, pace, dir, REPAIRED_NAME, Access::Buffered)?;
    let mut pages = PageBuffer::default();
    let numbers = std::iter::once(&repaired.next_segment).chain(repaired.segments);
    let numbers: Vec<u8> = numbers.flat_map(|number| number.to_le_bytes()).collect();
    pages.entry(&[&entry_head(SEGMENTS, numbers.len()), &numbers], &mut file)?;
    let position = repaired.position.to_le_bytes();
    pages.entry(&[&entry_head(POSITION, position.len()), &position], &mut file)?;
    for bytes in repaired.metadata {
        pages.entry(&[&entry_head(METADATA, bytes.len()), bytes], &mut file)?;
    }
    let mut state_bytes = Vec::new();
    for (id, state, offsets) in logs {
        state_bytes.clear();
        state_bytes.extend_from_slice(&id.topic.0);
        state_bytes.extend_from_slice(&id.partition.to_le_bytes());
        state_bytes.extend_from_slice(&position);
        state.encode_sorted(offsets, &mut state_bytes);
        pages.entry(&[&entry_head(LOG_STATE, state_bytes.len()), &state_bytes], &mut file)?;
    }
    pages.end(&mut file)?;
    let last = FrameLink { sequence: repaired.sequence, header_crc: 0 };
    let header = header_of(repaired.position, last, cluster_id, file.position());
    file.finish(&header).map(drop)
}

fn header_of(position: u64, last: FrameLink, cluster_id: [u8; 16], length: u64) -> [u8; 64] {
    seal_header(&[
        &MAGIC,
        &FORMAT_VERSION.to_le_bytes(),
        &last.header_crc.to_le_bytes(),
        &cluster_id,
        &position.to_le_bytes(),
        &last.sequence.to_le_bytes(),
        &length.to_le_bytes(),
    ])
}

/// What the states of the logs need of the journal.
struct States {
    /// They are complete up to here, at most.
    complete_to: u64,
    /// The first batch that they describe.
    live_from: u64,
}

fn write_states(
    journal: &Journal,
    topics: &Topics,
    pages: &mut PageBuffer,
    file: &mut FileWriter<'_>,
) -> Result<States, Error> {
    let mut states = States { complete_to: 0, live_from: u64::MAX };
    let mut state_bytes = Vec::new();
    // Logs that appear after the cut may be missing from this: the journal has all of them.
    for log in topics.all() {
        // The journal's end is taken under the log's lock: batches before it are part of the
        // state, batches after it are not.
        let is_written = log.with_state(|state| {
            state_bytes.clear();
            if state.is_deleted || state.is_pristine() {
                return false;
            }
            let end = journal.end().0;
            states.complete_to = states.complete_to.max(end);
            state_bytes.extend_from_slice(&log.id().topic.0);
            state_bytes.extend_from_slice(&log.id().partition.to_le_bytes());
            state_bytes.extend_from_slice(&end.to_le_bytes());
            state.encode(&mut state_bytes);
            let first = state.index.iter().next();
            let first = first.map_or(u64::MAX, |first| first.position);
            states.live_from = states.live_from.min(first);
            true
        });
        if is_written {
            pages.entry(&[&entry_head(LOG_STATE, state_bytes.len()), &state_bytes], file)?;
        }
    }
    Ok(states)
}

/// Waits until the journal is durable up to a position.
pub(crate) fn wait(journal: &Journal, lsn: Lsn) -> Result<(), Error> {
    if journal.options.drive == Drive::Stepped {
        while journal.flush_one() {}
        // No other thread flushes: what is not durable now never will be.
        if journal.durable.position() < lsn.0 {
            let cause = journal.poisoned();
            return Err(cause.map_or(Error::Closed, |cause| Error::Poisoned { cause }));
        }
    }
    block_on(journal.durable.wait(lsn))
}

/// A log as far as it has been recovered.
#[derive(Default)]
pub(crate) struct RecoveredLog {
    pub(crate) state: LogState,
    /// Entries of the journal before this position are part of the state.
    pub(crate) complete_to: u64,
    /// Its first batches are missing, as they may be if the log is found to be deleted later.
    pub(crate) starts_late: bool,
}

pub(crate) type Logs = HashMap<TopicId, HashMap<i32, RecoveredLog>>;

/// Content of a checkpoint.
#[derive(Default)]
pub(crate) struct Checkpoint {
    /// Where recovery begins.
    pub(crate) position: u64,
    /// The frame before that.
    pub(crate) last: FrameLink,
    pub(crate) segments: BTreeSet<u64>,
    pub(crate) next_segment: u64,
    /// Metadata before this position is part of the checkpoint.
    pub(crate) metadata_from: u64,
    /// What the owner wrote, with the offset of its page each.
    pub(crate) metadata: Vec<(u64, Vec<u8>)>,
    pub(crate) logs: Logs,
    /// The file that it was read from.
    pub(crate) path: PathBuf,
    /// What is wrong with a newer one, or with all of them if this one is empty.
    pub(crate) damage: Option<Error>,
}

/// Reads the newest checkpoint of a data directory that is whole. Without one it is empty.
///
/// # Errors
/// [`Error::UnknownVersion`], and what is not damage.
pub(crate) fn read(
    disk: &dyn Disk,
    dir: &Path,
    access: Access,
    cluster_id: [u8; 16],
) -> Result<(Checkpoint, Newest), Error> {
    let mut damage = None;
    for name in CHECKPOINT_NAMES {
        match read_file(disk, dir.join(name), access, cluster_id) {
            Ok(Some(checkpoint)) => {
                let has_name = name == CHECKPOINT_NAME;
                let newest = Newest { position: checkpoint.position, has_name };
                return Ok((Checkpoint { damage, ..checkpoint }, newest));
            }
            Ok(None) => {}
            Err(error) if error.is_damage() => damage = damage.or(Some(error)),
            Err(error) => return Err(error),
        }
    }
    Ok((Checkpoint { damage, ..Checkpoint::default() }, Newest::default()))
}

/// The header of a checkpoint and the file behind it.
struct Opened {
    file: Arc<dyn DiskFile>,
    length: u64,
    position: u64,
    last: FrameLink,
}

fn open(
    disk: &dyn Disk,
    path: &Path,
    access: Access,
    cluster_id: [u8; 16],
) -> Result<Option<Opened>, Error> {
    let file = match disk.open(path, access, false) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Error::io("open", path, error)),
    };
    let length = file.length().map_err(|error| Error::io("open", path, error))?;
    let damaged = |reason: &str| Error::corrupt(path, 0, reason);
    let mut window = Window::new(BLOCK);
    let header = window.get(&*file, path, 0, BLOCK, length)?.unwrap_or_default();
    let mut fields = open_header(header, MAGIC)
        .ok_or_else(|| damaged("the header's magic or checksum does not hold"))?;
    let found = fields.u32().unwrap_or_default();
    if found != FORMAT_VERSION {
        let (path, known) = (path.to_owned(), FORMAT_VERSION);
        return Err(Error::UnknownVersion { path, found, known });
    }
    let header_crc = fields.u32().unwrap_or_default();
    if fields.take() != Some(cluster_id) {
        return Err(damaged("the checkpoint belongs to another data directory"));
    }
    let position = fields.u64().unwrap_or_default();
    let sequence = fields.u64().unwrap_or_default();
    if fields.u64() != Some(length) {
        return Err(damaged("the checkpoint is not as long as its header says"));
    }
    if position >= POSITION_MAX
        || sequence >= POSITION_MAX
        || !position.is_multiple_of(BLOCK as u64)
    {
        return Err(damaged("the checkpoint names a journal position that cannot be"));
    }
    let last = FrameLink { sequence, header_crc };
    Ok(Some(Opened { file, length, position, last }))
}

/// Reads one checkpoint, if it is there.
pub(crate) fn read_file(
    disk: &dyn Disk,
    path: PathBuf,
    access: Access,
    cluster_id: [u8; 16],
) -> Result<Option<Checkpoint>, Error> {
    let Some(opened) = open(disk, &path, access, cluster_id)? else { return Ok(None) };
    let Opened { file, length, position, last } = opened;
    let mut checkpoint = Checkpoint { position, last, ..Checkpoint::default() };
    let mut pages = Pages::new(&*file, &path, BLOCK as u64, length);
    let mut offset = pages.offset();
    while let Some(page) = pages.next()? {
        let taken = checkpoint.take_page(offset, page);
        taken.ok_or_else(|| Error::corrupt(&path, offset, "an entry that cannot be read"))?;
        offset = pages.offset();
    }
    checkpoint.path = path;
    Ok(Some(checkpoint))
}

/// Whether a repair has been decided and not come to its end.
pub(crate) fn is_repair_unfinished(disk: &dyn Disk, dir: &Path) -> Result<bool, Error> {
    let path = dir.join(REPAIRED_NAME);
    match disk.open(&path, Access::Buffered, false) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(Error::io("open", &path, error)),
    }
}

/// Until a repair has come to its end the directory is neither what it was nor what it will be.
pub(crate) fn refuse_unfinished_repair(disk: &dyn Disk, dir: &Path) -> Result<(), Error> {
    match is_repair_unfinished(disk, dir)? {
        true => Err(Error::RepairUnfinished { path: dir.join(REPAIRED_NAME) }),
        false => Ok(()),
    }
}

/// Reads the intact pages of a checkpoint; others may be damaged.
pub(crate) fn read_pages(
    disk: &dyn Disk,
    path: &Path,
    access: Access,
) -> Result<Checkpoint, Error> {
    let mut checkpoint = Checkpoint::default();
    let file = match disk.open(path, access, false) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(checkpoint),
        Err(error) => return Err(Error::io("open", path, error)),
    };
    let length = file.length().map_err(|error| Error::io("open", path, error))?;
    let mut offset = BLOCK as u64;
    while offset < length {
        let mut pages = Pages::new(&*file, path, offset, length);
        offset += BLOCK as u64;
        loop {
            let at = pages.offset();
            let page = match pages.next() {
                Ok(page) => page,
                Err(Error::Corrupt { .. }) => break,
                Err(error) => return Err(error),
            };
            let Some(page) = page else { return Ok(checkpoint) };
            // Of a page that is whole and yet cannot be read the entries before that are taken.
            let _is_read = checkpoint.take_page(at, page).is_some();
            offset = pages.offset();
        }
    }
    Ok(checkpoint)
}

/// Verifies the checksums of one checkpoint. Returns its length, or `None` if it is not there.
pub(crate) fn verify(
    disk: &dyn Disk,
    path: &Path,
    access: Access,
    cluster_id: [u8; 16],
) -> Result<Option<u64>, Error> {
    let Some(opened) = open(disk, path, access, cluster_id)? else { return Ok(None) };
    let mut pages = Pages::new(&*opened.file, path, BLOCK as u64, opened.length);
    while pages.next()?.is_some() {}
    Ok(Some(opened.length))
}

impl Checkpoint {
    /// The journal is at least this long.
    pub(crate) fn stands_for(&self) -> u64 {
        let logs = self.logs.values().flat_map(HashMap::values);
        logs.map(|log| log.complete_to).max().unwrap_or(0).max(self.metadata_from)
    }

    /// Hands the owner's metadata over.
    pub(crate) fn replay(&mut self, replay: &mut dyn Replay) -> Result<(), Error> {
        for (offset, bytes) in std::mem::take(&mut self.metadata) {
            let path = &self.path;
            replay.metadata(&bytes).map_err(|reason| {
                let path = path.clone();
                Error::Replay { path, offset, reason }
            })?;
        }
        Ok(())
    }

    /// Takes up the entries of the page at `offset`.
    fn take_page(&mut self, offset: u64, mut page: &[u8]) -> Option<()> {
        while !page.is_empty() {
            let (entry, further) = split_entry(page)?;
            let (head, payload) = entry.split_at(ENTRY_HEAD_BYTES);
            match head.first() {
                Some(&METADATA) => self.metadata.push((offset, payload.to_vec())),
                _ => self.take(head, payload)?,
            }
            page = further;
        }
        Some(())
    }

    fn take(&mut self, head: &[u8], payload: &[u8]) -> Option<()> {
        let mut fields = Fields(payload);
        match *head.first()? {
            SEGMENTS => {
                self.next_segment = fields.u64().filter(|next| *next <= NUMBER_MAX)?;
                while !fields.0.is_empty() {
                    self.segments.insert(fields.u64().filter(|number| *number < NUMBER_MAX)?);
                }
            }
            POSITION => self.metadata_from = fields.u64()?,
            LOG_STATE => {
                let id = LogId { topic: TopicId(fields.take()?), partition: fields.i32()? };
                let complete_to = fields.u64()?;
                let state = LogState::decode(&mut fields)?;
                if state.index.end_position() > complete_to {
                    return None;
                }
                let log = RecoveredLog { state, complete_to, starts_late: false };
                self.logs.entry(id.topic).or_default().insert(id.partition, log);
            }
            _ => return None,
        }
        fields.0.is_empty().then_some(())
    }
}

fn entry_head(kind: u8, payload_bytes: usize) -> [u8; ENTRY_HEAD_BYTES] {
    let mut head = [kind; ENTRY_HEAD_BYTES];
    let bytes = u32::try_from(payload_bytes).expect("an entry is far below 4 GiB");
    head[1..].copy_from_slice(&bytes.to_le_bytes());
    head
}

/// The first entry with its head, and what follows it.
fn split_entry(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let payload_bytes = Fields(bytes.get(1..)?).u32()? as usize;
    bytes.split_at_checked(ENTRY_HEAD_BYTES + payload_bytes)
}

/// The checkpoint of a repair until that has come to its end.
pub(crate) const REPAIRED_NAME: &str = "checkpoint.repaired";
/// The newest first.
pub(crate) const CHECKPOINT_NAMES: [&str; 2] = [CHECKPOINT_NAME, PREVIOUS_NAME];
const CHECKPOINT_NAME: &str = "checkpoint";
const PREVIOUS_NAME: &str = "checkpoint.previous";
const MAGIC: [u8; 8] = *b"MOLDAUCP";
const ENTRY_HEAD_BYTES: usize = 5;
const SEGMENTS: u8 = 1;
const POSITION: u8 = 2;
const METADATA: u8 = 3;
const LOG_STATE: u8 = 4;
