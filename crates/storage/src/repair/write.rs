//! Writes the repaired files, and puts them into use.
//!
//! Everything is written under names that end in `.repaired`, which `open` ignores. With
//! `checkpoint.repaired`, the last of them, the repair is decided: while it is there the directory
//! is not opened, and what is left to do follows from the names that are left. What was there
//! before goes to a directory of its own, and when all of it has gone the checkpoint gets its name.
//! Each step can be done again.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use moldau_records::{BatchBuilder, BatchOptions, Compression, Compressor, NO_TIMESTAMP, crc32c};

use super::directory::Directory;
use super::layout::{Batches, LaidRun, Plan, Segments};
use super::state::SalvagedLog;
use crate::checkpoint::{self, CHECKPOINT_NAMES, Repaired};
use crate::disk::{Access, read_full, write_all};
use crate::files::{self, Files, JOURNAL_SUFFIX};
use crate::format::{FILE_HEADER_BYTES, FileHeader};
use crate::io::BLOCK;
use crate::pace::Pace;
use crate::paged::TEMPORARY_SUFFIX;
use crate::segment::{self, Block, SEGMENT_SUFFIX, Segment, SegmentWriter};
use crate::{Error, LogId, meta};

/// Sources of the files to write.
pub(super) struct Stage<'a> {
    pub(super) directory: &'a Directory,
    pub(super) files: &'a Files,
    pub(super) segments: &'a Segments,
    pub(super) logs: &'a BTreeMap<LogId, (SalvagedLog, Plan)>,
    pub(super) metadata: &'a [Vec<u8>],
    pub(super) next_segment: u64,
    /// Number and journal position of the journal file that goes on.
    pub(super) journal_number: u64,
    pub(super) journal_base: u64,
    /// Greater than every sequence number that was used.
    pub(super) sequence: u64,
}

impl Stage<'_> {
    /// Writes everything; nothing of it counts before its last step.
    pub(super) fn write(mut self) -> Result<(), Error> {
        let pace = Pace::new(Arc::default(), 0, false);
        remove_staged(self.directory)?;
        let rewritten = &self.segments.rewritten;
        let mut numbers: Vec<u64> = self.segments.by_number.keys().copied().collect();
        numbers.retain(|number| !rewritten.contains(number));
        for number in rewritten {
            numbers.extend(self.rewrite(*number, &pace)?);
        }
        let fills = self.logs.values().map(|(_, plan)| plan.fills.len()).max().unwrap_or(0);
        for nth in 0..fills {
            numbers.extend(self.fill(nth, &pace)?);
        }
        self.journal_file()?;
        let repaired = Repaired {
            position: self.journal_base,
            sequence: self.sequence,
            segments: &numbers,
            next_segment: self.next_segment,
            metadata: self.metadata,
        };
        let logs = self.logs.iter().filter(|(_, (_, plan))| plan.offsets.end > 0);
        let logs = logs.map(|(id, (log, plan))| (*id, &log.state, plan.offsets.clone()));
        let Directory { disk, path, cluster_id, .. } = self.directory;
        checkpoint::write_repaired(&**disk, &pace, path, *cluster_id, &repaired, logs)
    }

    /// Writes a segment anew with the runs that are part of their logs, and what is whole of them.
    fn rewrite(&mut self, number: u64, pace: &Pace) -> Result<Option<u64>, Error> {
        let Some(segment) = self.segments.by_number.get(&number) else { return Ok(None) };
        let mut output = None;
        let mut block: Option<(u64, Vec<u8>)> = None;
        for (at, run) in segment.runs.iter().enumerate() {
            let Some((log, plan)) = self.logs.get(&run.log) else { continue };
            let is_it = |laid: &LaidRun| laid.segment.number == number && laid.at == at;
            let Some(laid) = plan.runs.iter().find(|laid| is_it(laid)) else { continue };
            let next = &mut self.next_segment;
            let writer = begun(&mut output, self.directory, pace, segment.level, next)?;
            writer.begin_run(run.log, run.base_offset);
            let mut next_offset = run.base_offset;
            for piece in laid.pieces().iter().filter(|piece| !self.segments.is_bad(piece)) {
                let offset = piece.block.offset();
                let known = block.take().filter(|(known, _)| *known == offset);
                let (_, bytes) = match known {
                    Some(known) => block.insert(known),
                    None => {
                        let bytes = read_block(self.directory, segment, &piece.block)?;
                        block.insert((offset, bytes))
                    }
                };
                let batches = bytes.get(piece.within.clone()).unwrap_or_default();
                for batch in moldau_records::iter_batches(batches).flatten() {
                    // A batch that does not come after the one before is not one.
                    if batch.base_offset() >= next_offset && batch.next_offset() <= run.next_offset
                    {
                        writer.push(batch.bytes(), batch.base_offset(), batch.max_timestamp())?;
                        next_offset = batch.next_offset();
                    }
                }
            }
            close_run(writer, log, plan, next_offset, run.next_offset)?;
        }
        output.map(|(number, writer)| writer.finish().map(|_| number)).transpose()
    }

    /// Writes the nth of the fills of each log.
    fn fill(&mut self, nth: usize, pace: &Pace) -> Result<Option<u64>, Error> {
        let mut output = None;
        let mut batches = Batches::new(self.files);
        for (id, (log, plan)) in self.logs {
            let Some(fill) = plan.fills.get(nth) else { continue };
            let next = &mut self.next_segment;
            let writer = begun(&mut output, self.directory, pace, 0, next)?;
            writer.begin_run(*id, fill.offsets.start);
            let mut next_offset = fill.offsets.start;
            for extent in &fill.extents {
                let batch = batches.read(*id, extent)?.ok_or_else(|| {
                    let reason = "a batch that was there when the journal was read is not any more";
                    Error::corrupt(self.files.dir(), extent.position, reason)
                })?;
                writer.push(batch, extent.base_offset, extent.max_timestamp)?;
                next_offset = extent.next_offset;
            }
            close_run(writer, log, plan, next_offset, fill.offsets.end)?;
        }
        output.map(|(number, writer)| writer.finish().map(|_| number)).transpose()
    }

    /// Begins the journal file that goes on.
    fn journal_file(&self) -> Result<(), Error> {
        let Directory { disk, path, node_id, cluster_id, .. } = self.directory;
        let header = FileHeader {
            node_id: *node_id,
            cluster_id: *cluster_id,
            number: self.journal_number,
            base: self.journal_base,
            file_bytes: JOURNAL_FILE_BYTES,
            frame_bytes_max: u32::try_from(JOURNAL_FILE_BYTES).unwrap_or(u32::MAX),
        };
        let dir = path.join("journal");
        let name = files::file_name(self.journal_number) + STAGED_SUFFIX;
        let (path, temporary) = (dir.join(&name), dir.join(format!("{name}.{TEMPORARY_SUFFIX}")));
        let mut block = [0; FILE_HEADER_BYTES];
        let encoded = header.encode();
        block[..encoded.len()].copy_from_slice(&encoded);
        let written = disk.open(&temporary, Access::Buffered, true).and_then(|file| {
            file.allocate(JOURNAL_FILE_BYTES)?;
            write_all(&*file, &[&block], 0, BLOCK)?;
            file.sync_data()?;
            disk.rename(&temporary, &path)?;
            disk.sync_dir(&dir)
        });
        written.map_err(|error| Error::io("write", &path, error))
    }
}

/// The segment that is being written, begun if need be.
fn begun<'w, 'a>(
    output: &'w mut Option<(u64, SegmentWriter<'a>)>,
    directory: &'a Directory,
    pace: &'a Pace,
    level: u32,
    next_segment: &mut u64,
) -> Result<&'w mut SegmentWriter<'a>, Error> {
    if output.is_none() {
        let number = *next_segment;
        if number >= segment::NUMBER_MAX {
            let reason = "there are no segment numbers left";
            return Err(Error::corrupt(&directory.path, 0, reason));
        }
        *next_segment += 1;
        let name = segment::file_name(number) + STAGED_SUFFIX;
        let identity = (number, level, directory.cluster_id);
        let dir = directory.path.join("segments");
        let (disk, access) = (&*directory.disk, Access::Buffered);
        let writer = SegmentWriter::create(disk, pace, (&dir, &name), access, identity)?;
        *output = Some((number, writer));
    }
    let (_, writer) = output.as_mut().expect("begun above");
    Ok(writer)
}

/// Ends a run. Where the last offsets of the log are lost, an empty batch takes their place: a
/// consumer gets to the end of the log by it.
fn close_run(
    writer: &mut SegmentWriter<'_>,
    log: &SalvagedLog,
    plan: &Plan,
    next_offset: i64,
    end: i64,
) -> Result<(), Error> {
    let base_offset = next_offset.max(plan.offsets.start);
    let missing = i32::try_from(end - base_offset).unwrap_or(0);
    if end == plan.offsets.end && missing > 0 {
        let mut builder = BatchBuilder::new(BatchOptions {
            base_offset,
            partition_leader_epoch: log.state.epochs.latest().unwrap_or(0),
            last_offset_delta: Some(missing - 1),
            ..BatchOptions::default()
        });
        let batch = builder.finish(Compression::None, &mut Compressor::default());
        let batch = batch.expect("a batch without records fits everywhere");
        writer.push(batch, base_offset, NO_TIMESTAMP)?;
    }
    writer.end_run(end);
    Ok(())
}

fn read_block(directory: &Directory, segment: &Segment, block: &Block) -> Result<Vec<u8>, Error> {
    let failed = |error| Error::io("read", &segment.path, error);
    let file = directory.disk.open(&segment.path, Access::Buffered, false).map_err(failed)?;
    let mut bytes = vec![0; block.bytes as usize];
    read_full(&*file, &mut bytes, block.offset()).map_err(failed)?;
    if crc32c(&bytes) != block.crc {
        let reason = "a block that was whole when it was read is not any more";
        return Err(Error::corrupt(&segment.path, block.offset(), reason));
    }
    Ok(bytes)
}

/// Takes back what was written. A repair that may be decided keeps all that it is made of.
pub(super) fn abandon(directory: &Directory) -> Result<(), Error> {
    let path = directory.path.join(checkpoint::REPAIRED_NAME);
    let removed = match directory.disk.remove(&path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        other => other,
    };
    let removed = removed.and_then(|()| directory.disk.sync_dir(&directory.path));
    removed.map_err(|error| Error::io("remove", &path, error))?;
    remove_staged(directory)
}

/// Removes what a repair left behind that was not decided.
fn remove_staged(directory: &Directory) -> Result<(), Error> {
    for (dir, suffix) in [("journal", JOURNAL_SUFFIX), ("segments", SEGMENT_SUFFIX)] {
        let dir_path = directory.path.join(dir);
        let created = directory.disk.create_dir(&dir_path);
        created.map_err(|error| Error::io("create", &dir_path, error))?;
        for (_, path) in directory.numbered(dir, &format!("{suffix}{STAGED_SUFFIX}"))? {
            let removed = directory.disk.remove(&path);
            removed.map_err(|error| Error::io("remove", &path, error))?;
        }
    }
    Ok(())
}

/// Takes what was written into use and puts what was there before aside, into a directory of this
/// name. Returns where that is.
pub(super) fn finish(directory: &Directory, aside: &str) -> Result<PathBuf, Error> {
    let Directory { disk, path, cluster_id, .. } = directory;
    let repaired_path = path.join(checkpoint::REPAIRED_NAME);
    let read =
        checkpoint::read_file(&**disk, repaired_path.clone(), Access::Buffered, *cluster_id)?;
    let missing = || Error::corrupt(&repaired_path, 0, "the file is missing");
    let repaired = read.ok_or_else(missing)?;
    let known = [SEGMENT_SUFFIX.to_owned(), format!("{SEGMENT_SUFFIX}{STAGED_SUFFIX}")];
    let mut absent = repaired.segments.clone();
    for suffix in known {
        directory.numbered("segments", &suffix)?.for_each(|(number, _)| {
            absent.remove(&number);
        });
    }
    if let Some(number) = absent.first() {
        let path = path.join("segments").join(segment::file_name(*number));
        return Err(Error::corrupt(&path, 0, "the segment is missing"));
    }
    let mut mover = Mover { directory, aside: path.join(aside) };
    let created = disk.create_dir(&mover.aside).and_then(|()| disk.sync_dir(path));
    created.map_err(|error| Error::io("create", &mover.aside, error))?;
    if directory.has_lost_identity {
        mover.put_aside(&path.join(meta::META_NAME))?;
        mover.sync(path)?;
        meta::write_identity(&**disk, path, directory.node_id, *cluster_id)?;
    }
    let staged: Vec<_> =
        directory.numbered("segments", &format!("{SEGMENT_SUFFIX}{STAGED_SUFFIX}"))?.collect();
    for (number, file) in directory.numbered("segments", SEGMENT_SUFFIX)? {
        if !repaired.segments.contains(&number) {
            mover.put_aside(&file)?;
        }
    }
    mover.take_into_use(&path.join("segments"), &staged)?;
    let staged: Vec<_> =
        directory.numbered("journal", &format!("{JOURNAL_SUFFIX}{STAGED_SUFFIX}"))?.collect();
    if let Some((going_on, _)) = staged.first() {
        for (number, file) in directory.numbered("journal", JOURNAL_SUFFIX)? {
            if number != *going_on {
                mover.put_aside(&file)?;
            }
        }
    }
    mover.take_into_use(&path.join("journal"), &staged)?;
    for name in CHECKPOINT_NAMES {
        mover.put_aside(&path.join(name))?;
    }
    mover.sync(path)?;
    let [name, _] = CHECKPOINT_NAMES;
    let renamed = disk.rename(&repaired_path, &path.join(name)).and_then(|()| disk.sync_dir(path));
    renamed.map_err(|error| Error::io("rename", &repaired_path, error))?;
    Ok(mover.aside)
}

struct Mover<'a> {
    directory: &'a Directory,
    aside: PathBuf,
}

impl Mover<'_> {
    /// Moves a file, if it is there, to where it is kept.
    fn put_aside(&mut self, file: &Path) -> Result<(), Error> {
        let Some(name) = file.file_name() else { return Ok(()) };
        match self.directory.disk.rename(file, &self.aside.join(name)) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                Err(Error::io("rename", file, error))
            }
            _ => Ok(()),
        }
    }

    /// Makes what was moved out of a directory durable.
    fn sync(&self, from: &Path) -> Result<(), Error> {
        let disk = &self.directory.disk;
        let synced = disk.sync_dir(&self.aside).and_then(|()| disk.sync_dir(from));
        synced.map_err(|error| Error::io("flush", from, error))
    }

    /// Gives staged files their names, after all that were in their place have gone for good.
    fn take_into_use(&self, dir: &Path, staged: &[(u64, PathBuf)]) -> Result<(), Error> {
        self.sync(dir)?;
        for (_, file) in staged {
            // `0000000001.journal.repaired` without its last part.
            let renamed = self.directory.disk.rename(file, &file.with_extension(""));
            renamed.map_err(|error| Error::io("rename", file, error))?;
        }
        self.sync(dir)
    }
}

/// Suffix of a file's name until the repair is decided.
const STAGED_SUFFIX: &str = ".repaired";
/// As small as a journal file can be: the next is as long as the broker's configuration says.
const JOURNAL_FILE_BYTES: u64 = 64 << 10;
