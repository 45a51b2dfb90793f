//! Salvaging what is left of a data directory that is damaged.
//!
//! [`Repair::examine`] only reads. It goes on behind damaged frames, blocks and pages, and reports
//! what is lost; [`Repair::apply`] makes a directory of what is left that is opened like any other.
//!
//! What holds after a repair:
//! - Every batch outside of what is damaged is there, under its offset. Nothing is there that did
//!   not pass the checksums that it was written with.
//! - Lost offsets are accounted for as those that compaction removed: a read goes on behind them.
//!   None is given out again. Where a frame is lost and not even its entries are known, the logs
//!   that may have ended in it skip as many offsets as it had bytes.
//! - What is known of an idempotent producer is what the checkpoint and the batches that are left
//!   say. A batch that it repeats is recognised as before. If its last batches are lost it is
//!   behind: the producer may send them again, and is refused with `OUT_OF_ORDER_SEQUENCE_NUMBER`
//!   if it goes on without. So neither a repetition nor a gap enters the log unnoticed.
//! - A log keeps its start, unless that moved in a lost frame: then records come back that had been
//!   deleted, or a deleted topic does.
//! - Logs of topics whose own metadata is lost get a name, by the owner.
//! - A log that lay entirely in lost frames is unknown, and begins at offset 0 again.
//! - The files as they were stay in a directory of their own.

mod directory;
mod disk;
mod journal;
mod layout;
mod report;
mod state;
mod write;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::checkpoint::{self, CHECKPOINT_NAMES, Checkpoint};
use crate::disk::{Access, Disk, RealDisk};
use crate::format::{FrameLink, POSITION_MAX};
use crate::io::BLOCK;
use crate::{Error, LogId, Replay, TopicId};
use directory::{Directory, JournalFiles};
use journal::{DamagedFrame, Part, Walk};
use layout::{Batches, LaidRun, Plan, Segments};
use state::{Salvaged, SalvagedLog};

pub use report::{Damage, Lost, Orphan, Report};

/// The owner of the metadata, in a repair.
pub trait Salvage: Replay {
    /// The name of a topic, if the metadata that is left knows it.
    fn topic_name(&self, topic: TopicId) -> Option<String>;

    /// Makes up for metadata that may be lost: all that has logs must be known afterwards, but for
    /// what was deleted. Returns the entries that say so.
    fn make_up(&mut self, left: &Left) -> Vec<Vec<u8>>;
}

/// Facts about possibly lost metadata, taken from the logs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Left {
    /// Topics that have logs, each with its number of partitions up to the last that has one.
    pub topics: BTreeMap<TopicId, i32>,
    /// The greatest producer id of a batch.
    pub producer_id_max: Option<i64>,
}

/// A data directory that was examined, and is locked.
pub struct Repair {
    directory: Directory,
    report: Report,
    found: Option<Found>,
}

/// What is left, if no repair was interrupted.
struct Found {
    journal: JournalFiles,
    segments: Segments,
    logs: BTreeMap<LogId, (SalvagedLog, Plan)>,
    metadata: Vec<Vec<u8>>,
    next_segment: u64,
    journal_base: u64,
    sequence: u64,
}

impl Repair {
    /// Reads everything in a data directory that no broker uses, and changes nothing.
    ///
    /// # Errors
    /// [`Error::NotADataDirectory`], [`Error::Locked`], [`Error::UnknownVersion`], [`Error::Io`],
    /// and [`Error::Corrupt`] if nothing tells whose directory it is.
    pub fn examine(data_dir: &Path, owner: &mut dyn Salvage) -> Result<Repair, Error> {
        Repair::examine_on(Arc::new(RealDisk), data_dir, owner)
    }

    /// As [`Repair::examine`], on another disk.
    ///
    /// # Errors
    /// As [`Repair::examine`].
    pub fn examine_on(
        disk: Arc<dyn Disk>,
        data_dir: &Path,
        owner: &mut dyn Salvage,
    ) -> Result<Repair, Error> {
        let mut directory = Directory::open(Arc::new(disk::Lenient(disk)), data_dir)?;
        if checkpoint::is_repair_unfinished(&*directory.disk, data_dir)? {
            let report = Report { is_unfinished: true, ..Report::default() };
            return Ok(Repair { directory, report, found: None });
        }
        let journal = directory.journal_files()?;
        let (walk, fresh_from) = read_journal(&mut directory, &journal)?;
        let Walk { salvaged, damage, sequence, .. } = walk;
        let mut examination =
            Examination { directory, journal, salvaged, frames: damage, report: Report::default() };
        let unreadable = examination.verify_batches()?;
        let segments = examination.read_segments()?;
        let (segments, logs) = examination.plan(segments, fresh_from);
        let metadata = examination.restore_metadata(&logs, owner);
        examination.tell(&segments, &logs, unreadable, owner);
        let next_segment = examination.directory.next_segment()?;
        Ok(examination.into_repair(segments, logs, metadata, (sequence, next_segment)))
    }

    /// What was found.
    pub fn report(&self) -> &Report {
        &self.report
    }

    /// Writes what is left, and puts the files as they were into `aside`, a directory of this name
    /// in the data directory. Ends a repair that was interrupted. Returns where the files are, or
    /// `None` if there was nothing to repair.
    ///
    /// # Errors
    /// [`Error::Io`]: if it comes before the repair was decided nothing has changed, otherwise the
    /// repair must be applied once more before the directory is opened. [`Error::Corrupt`] if what
    /// was there a moment ago is not any more.
    pub fn apply(self, aside: &str) -> Result<Option<PathBuf>, Error> {
        if self.report.is_sound() {
            return Ok(None);
        }
        if let Some(found) = &self.found {
            let stage = write::Stage {
                directory: &self.directory,
                files: &found.journal.files,
                segments: &found.segments,
                logs: &found.logs,
                metadata: &found.metadata,
                next_segment: found.next_segment,
                journal_number: found.journal.next_number,
                journal_base: found.journal_base,
                sequence: found.sequence,
            };
            let staged = stage.write();
            if staged.is_err() {
                // The next repair handles files that cannot be removed.
                write::abandon(&self.directory).ok();
            }
            staged?;
        }
        write::finish(&self.directory, aside).map(Some)
    }
}

/// Reads the checkpoints and the journal. Returns what they say, and the number of the first
/// segment that the checkpoint does not know.
fn read_journal<'a>(
    directory: &mut Directory,
    journal: &'a JournalFiles,
) -> Result<(Walk<'a>, u64), Error> {
    let (disk, cluster_id) = (Arc::clone(&directory.disk), directory.cluster_id);
    let mut whole: Option<Checkpoint> = None;
    let mut is_damaged = false;
    for name in CHECKPOINT_NAMES {
        let path = directory.path.join(name);
        match checkpoint::read_file(&*disk, path, Access::Buffered, cluster_id) {
            Ok(Some(checkpoint)) => {
                whole.get_or_insert(checkpoint);
            }
            Ok(None) => {}
            Err(Error::Corrupt { path, offset, reason }) => {
                directory.damaged(&path, offset, &reason);
                is_damaged = true;
            }
            Err(error) => return Err(error),
        }
    }
    let mut salvaged = Salvaged::default();
    let begins = journal.files.all().first().map_or(0, |first| first.base);
    // What neither a checkpoint nor an older file has spoken of begins in this journal.
    salvaged.knows_starts = whole.is_some() || begins == 0;
    let all = Part { last: FrameLink::default(), until: u64::MAX, durable_to: 0 };
    let Some(checkpoint) = whole else {
        if begins > 0 {
            // The oldest first: what newer pages say replaces it.
            for name in CHECKPOINT_NAMES.iter().rev() {
                let path = directory.path.join(name);
                let pages = checkpoint::read_pages(&*disk, &path, Access::Buffered)?;
                salvaged.take_checkpoint(pages);
            }
            salvaged.has_lost_entries = true;
            if !is_damaged {
                let reason = "the checkpoint that stands for what came before is missing";
                directory.damaged(&directory.path.join(CHECKPOINT_NAMES[0]), 0, reason);
            }
        }
        let mut walk = Walk::new(journal, salvaged);
        walk.read(0, all)?;
        return Ok((walk, 0));
    };
    let (position, last, durable_to) =
        (checkpoint.position, checkpoint.last, checkpoint.stands_for());
    (salvaged.position, salvaged.metadata_from) = (position, checkpoint.metadata_from);
    let fresh_from = checkpoint.next_segment;
    salvaged.take_checkpoint(checkpoint);
    let mut walk = Walk::new(journal, salvaged);
    // What lies before the checkpoint's position changes nothing, but may be damaged.
    walk.read(0, Part { until: position, durable_to: position, ..all })?;
    walk.sequence = last.sequence;
    walk.read(position, Part { last, durable_to, ..all })?;
    Ok((walk, fresh_from))
}

/// An examination under way.
struct Examination {
    directory: Directory,
    journal: JournalFiles,
    salvaged: Salvaged,
    frames: Vec<DamagedFrame>,
    report: Report,
}

/// Offsets of a log that lie at a place of a file.
struct Unreadable {
    log: LogId,
    offsets: std::ops::Range<i64>,
    path: PathBuf,
    offset: u64,
}

impl Examination {
    /// Reads the batches that only the checkpoint has spoken of, and leaves out those that are not
    /// there.
    fn verify_batches(&mut self) -> Result<Vec<Unreadable>, Error> {
        let files = &self.journal.files;
        let mut batches = Batches::new(files);
        let mut missing = Vec::new();
        for (id, log) in &mut self.salvaged.logs {
            let known = log.extents.split_off(log.unread);
            for extent in std::mem::replace(&mut log.extents, Vec::with_capacity(known.len())) {
                if batches.read(*id, &extent)?.is_some() {
                    log.extents.push(extent);
                    continue;
                }
                let offsets = extent.base_offset..extent.next_offset;
                let (path, offset) = match files.at(extent.position) {
                    Some(file) => (file.path.clone(), extent.position - file.base),
                    None => (files.dir().to_owned(), extent.position),
                };
                missing.push(Unreadable { log: *id, offsets, path, offset });
            }
            log.extents.extend(known);
        }
        Ok(missing)
    }

    /// Opens and reads the segments that count, or may.
    fn read_segments(&mut self) -> Result<Segments, Error> {
        let Salvaged { segments: counted, removed, has_lost_entries, .. } = &self.salvaged;
        // Segments that a lost frame added are present; those it removed conflict with none.
        let counts = |number: u64| {
            counted.contains(&number) || *has_lost_entries && !removed.contains(&number)
        };
        let (found, misnamed) = self.directory.segments(counts)?;
        let missing = self.salvaged.segments.iter().filter(|number| !found.contains_key(number));
        for number in missing {
            let path =
                self.directory.path.join("segments").join(crate::segment::file_name(*number));
            if !self.directory.damage.iter().any(|damage| damage.path == path) {
                self.directory.damaged(&path, 0, "the segment is missing");
            }
        }
        let mut segments = Segments { rewritten: misnamed, ..Segments::default() };
        for segment in found.into_values() {
            segments.take(&*self.directory.disk, segment)?;
        }
        Ok(segments)
    }

    /// Lays the segments over the logs. Logs that only segments know are taken up if they can have
    /// begun where metadata is lost.
    fn plan(
        &mut self,
        mut segments: Segments,
        fresh_from: u64,
    ) -> (Segments, BTreeMap<LogId, (SalvagedLog, Plan)>) {
        let mut laid = segments.lay();
        for (id, runs) in &laid {
            let is_fresh = runs.iter().any(|run| run.segment.number >= fresh_from);
            let is_gone = self.salvaged.deleted.contains(&id.topic);
            if self.salvaged.has_lost_entries && is_fresh && !is_gone {
                self.salvaged.logs.entry(*id).or_default();
            }
        }
        let mut plans = BTreeMap::new();
        for (id, mut log) in std::mem::take(&mut self.salvaged.logs) {
            log.is_start_known |= self.salvaged.knows_starts;
            let ends = self.salvaged.ends_of(&log);
            let runs: Vec<LaidRun> = laid.remove(&id).unwrap_or_default();
            let plan = segments.plan(&log, ends, runs);
            plans.insert(id, (log, plan));
        }
        (segments, plans)
    }

    /// Hands the metadata that is left to the owner, and makes topics known that have logs only.
    /// Returns the entries that follow from each other.
    fn restore_metadata(
        &mut self,
        logs: &BTreeMap<LogId, (SalvagedLog, Plan)>,
        owner: &mut dyn Salvage,
    ) -> Vec<Vec<u8>> {
        let mut metadata = std::mem::take(&mut self.salvaged.metadata);
        let entries = metadata.len();
        metadata.retain(|entry| owner.metadata(entry).is_ok());
        self.report.metadata_refused = entries - metadata.len();
        self.report.is_metadata_uncertain = self.salvaged.has_lost_entries;
        if !self.salvaged.has_lost_entries {
            return metadata;
        }
        let mut left = Left::default();
        for (id, (log, _)) in logs.iter().filter(|(_, (_, plan))| plan.offsets.end > 0) {
            let partitions = left.topics.entry(id.topic).or_default();
            *partitions = id.partition.saturating_add(1).max(*partitions);
            left.producer_id_max = left.producer_id_max.max(log.state.producers.id_max());
        }
        let mut orphans: Vec<_> =
            left.topics.iter().map(|(topic, count)| (*topic, *count)).collect();
        orphans.retain(|(topic, _)| owner.topic_name(*topic).is_none());
        metadata.extend(owner.make_up(&left));
        for (topic, partitions) in orphans {
            if let Some(name) = owner.topic_name(topic) {
                self.report.orphans.push(Orphan { topic, name, partitions });
            }
        }
        metadata
    }

    /// Puts together what was found.
    fn tell(
        &mut self,
        segments: &Segments,
        logs: &BTreeMap<LogId, (SalvagedLog, Plan)>,
        unreadable: Vec<Unreadable>,
        owner: &dyn Salvage,
    ) {
        let lost_of = |log: LogId, within: std::ops::Range<i64>| -> Vec<Lost> {
            let Some((_, plan)) = logs.get(&log) else { return Vec::new() };
            let topic = owner.topic_name(log.topic);
            let common = plan.lost.iter().map(|lost| {
                let offsets = lost.start.max(within.start)..lost.end.min(within.end);
                let is_certain = offsets.start < plan.certain_end;
                Lost { log, topic: topic.clone(), offsets, is_certain }
            });
            common.filter(|lost| !lost.offsets.is_empty()).collect()
        };
        let mut damage = std::mem::take(&mut self.directory.damage);
        for frame in std::mem::take(&mut self.frames) {
            let DamagedFrame { path, offset, reason, lost } = frame;
            let lost = lost.into_iter().flat_map(|(log, within)| lost_of(log, within)).collect();
            damage.push(Damage { path, offset, reason, lost });
        }
        for Unreadable { log, offsets, path, offset } in unreadable {
            let lost = lost_of(log, offsets);
            let in_frame = damage.iter_mut().filter(|it| it.path == path && it.offset <= offset);
            match in_frame.max_by_key(|it| it.offset) {
                Some(known) => known.lost.extend(lost),
                None => {
                    let reason = "a batch is not where the checkpoint says".to_owned();
                    damage.push(Damage { path, offset, reason, lost });
                }
            }
        }
        for (number, bad) in &segments.bad_blocks {
            let Some(segment) = segments.by_number.get(number) else { continue };
            for offset in bad {
                let runs = logs.values().flat_map(|(_, plan)| &plan.runs);
                let runs = runs.filter(|laid| laid.segment.number == *number);
                let lost = runs.flat_map(|laid| {
                    let pieces = laid.pieces().into_iter();
                    let hit = pieces.filter(|piece| piece.block.offset() == *offset);
                    hit.flat_map(|piece| {
                        lost_of(laid.run().log, piece.base_offset..piece.next_offset)
                    })
                    .collect::<Vec<_>>()
                });
                let (path, reason) =
                    (segment.path.clone(), "the checksum of a block does not hold".to_owned());
                damage.push(Damage { path, offset: *offset, reason, lost: lost.collect() });
            }
        }
        damage.sort_by(|one, other| (&one.path, one.offset).cmp(&(&other.path, other.offset)));
        self.report.damage = damage;
        for (id, (_, plan)) in logs {
            self.report.lost.extend(lost_of(*id, plan.offsets.clone()));
            self.report.logs += usize::from(plan.offsets.end > 0);
            self.report.bytes += plan.bytes;
        }
    }

    fn into_repair(
        self,
        segments: Segments,
        logs: BTreeMap<LogId, (SalvagedLog, Plan)>,
        metadata: Vec<Vec<u8>>,
        (sequence, next_segment): (u64, u64),
    ) -> Repair {
        let Examination { directory, journal, salvaged, report, .. } = self;
        // Positions and numbers that could not be counted on from are those of no sound file.
        let end = journal.end.max(salvaged.end_position()).min(POSITION_MAX / 2);
        let found = Found {
            journal_base: end.next_multiple_of(BLOCK as u64),
            sequence: sequence.saturating_add(SEQUENCE_GAP).min(POSITION_MAX - 1),
            next_segment: next_segment.max(salvaged.next_segment).max(1),
            journal,
            segments,
            logs,
            metadata,
        };
        Repair { directory, report, found: Some(found) }
    }
}

/// Sequence numbers left out, more than were used for frames that are not found any more.
const SEQUENCE_GAP: u64 = 1 << 32;
