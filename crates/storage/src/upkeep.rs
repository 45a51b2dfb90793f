//! What is done in the background: sorting what the journal has filled, merging, removing what is
//! dead. One piece of it at a time.

use std::sync::Arc;
use std::time::{Duration, Instant};

use moldau_threads::fault_point;

use crate::checkpoint::wait;
use crate::files::Going;
use crate::format::Kind;
use crate::journal::Journal;
use crate::segment::Segment;
use crate::topics::Topics;
use crate::workshop::{Memory, Work, Workshop};
use crate::{Compacted, Compaction, Drive, Durability, Error, Log, LogId, Lsn, clean, merge, sort};

/// The thread that does it.
pub(crate) fn run(journal: &Journal, topics: &Topics) {
    while journal.upkeep.wait_within(LOOK_EVERY) {
        loop {
            fault_point("upkeep");
            match step(journal, topics) {
                Ok(true) if !journal.pace.is_stopped() => {}
                Ok(_) | Err(Error::Closed | Error::Poisoned { .. }) => break,
                Err(error) => {
                    tracing::error!(%error, "sorting and merging stop until the next attempt");
                    break;
                }
            }
        }
        journal.rewriting.lock().memory.rest(Instant::now());
    }
}

/// Does one piece of work, and says whether there was any.
pub(crate) fn step(journal: &Journal, topics: &Topics) -> Result<bool, Error> {
    let Workshop { memory, speed, turns } = &mut *journal.rewriting.lock();
    let options = &journal.options;
    let is_real = options.drive == Drive::Threads;
    let now = Instant::now();
    let speed = speed.look(now, journal.durable.position());
    let is_faster = options.background_rate > 0 && speed > options.background_rate;
    let is_outrun = is_real && (is_faster || journal.pace.is_crowded(now));
    // Waiting work may be mostly dead data, and keeps its space as long as it waits.
    let may_wait = is_outrun && has_space(journal, FILES_OUTRUN * options.file_bytes);
    let waiting = Waiting::of(journal);
    let urgency = waiting.urgency(may_wait);
    journal.pace.set_urgency(urgency);
    let mut failed = None;
    for work in turns.order(urgency > 1) {
        let done = match work {
            Work::RemoveDead => remove_dead(journal),
            Work::Sort | Work::Merge if urgency == 0 => Ok(false),
            Work::Sort => sort_one(journal, memory, &waiting, topics),
            Work::Merge => merge_one(journal, topics),
            Work::RemoveSpare => {
                // All go where nothing else is done for want of space, and where time is not real.
                let all = !is_real || !has_space(journal, options.file_bytes);
                // Their removal takes the disk from producers, and so does the lack of them later.
                let but = if may_wait { SPARES_OUTRUN } else { 0 };
                let going = if all { Going::All } else { Going::Unused { but } };
                journal.files.remove_spare(&journal.pace, options.removed_piece(), going)
            }
        };
        match done {
            Ok(true) => {
                if let Some(error) = failed {
                    tracing::error!(%error, "a step of upkeep failed; the others go on");
                }
                turns.note(work);
                return Ok(true);
            }
            Ok(false) => {}
            Err(Error::Closed | Error::Poisoned { .. }) => return done,
            // A failure, as of a read, keeps nothing else from its turn.
            Err(error) => {
                failed.get_or_insert(error);
            }
        }
    }
    failed.map_or(Ok(false), Err)
}

/// Files of the journal that are full and not sorted.
struct Waiting {
    /// Where the oldest of them ends.
    first_end: Option<u64>,
    files: u64,
    entries: u64,
}

impl Waiting {
    /// What is still in the tail cache is left there, where consumers that keep up find it.
    fn of(journal: &Journal) -> Waiting {
        let durable = journal.durable.position();
        let limit = journal.tail.start().map_or(durable, |start| start.min(durable));
        let (from, files) = (journal.sorted_to(), journal.files.all());
        let mut waiting = Waiting { first_end: None, files: 0, entries: 0 };
        for file in files.iter().filter(|file| file.end() > from && file.end() <= limit) {
            waiting.first_end.get_or_insert(file.end());
            waiting.files += 1;
            waiting.entries += file.entries();
        }
        waiting
    }

    /// Times the rate that sorting and merging may use: the longer the queue, the more. Zero where
    /// it is short and may wait, since producers outrun the rate or the disk: sorting would
    /// take from them what it needs to follow, which it cannot, and has time when they rest.
    fn urgency(&self, may_wait: bool) -> u64 {
        let queue = self.files + self.entries / ENTRIES_LIKE_A_FILE;
        let patience = if may_wait { FILES_OUTRUN } else { 0 };
        queue.checked_sub(patience).map_or(0, |over| 1 + over / FILES_PER_URGENCY)
    }
}

/// Sorts the oldest file of the journal that waits, if its segment has space.
fn sort_one(
    journal: &Journal,
    memory: &mut Memory,
    waiting: &Waiting,
    topics: &Topics,
) -> Result<bool, Error> {
    let Some(to) = waiting.first_end else { return Ok(false) };
    if !make_space(journal, journal.options.file_bytes)? {
        return Ok(false);
    }
    let sorted = sort::sort(journal, memory, topics.all(), to)?;
    journal.set_sorted_to(to);
    if let Some(segment) = sorted {
        publish(journal, segment, topics)?;
    }
    Ok(true)
}

/// Merges the segments that are due.
fn merge_one(journal: &Journal, topics: &Topics) -> Result<bool, Error> {
    let Some(plan) = merge::due(&journal.segments.all()) else { return Ok(false) };
    let bytes = plan.inputs.iter().map(|input| input.live_bytes()).sum();
    if !make_space(journal, bytes)? {
        return Ok(false);
    }
    if let Some(segment) = merge::merge(journal, &plan, |id| topics.find(id))? {
        publish(journal, segment, topics)?;
    }
    Ok(true)
}

/// Cleans the compacted logs among `logs` that are due.
pub(crate) fn compact(
    journal: &Journal,
    topics: &Topics,
    logs: &[(Arc<Log>, Compaction)],
    now_ms: i64,
) -> Result<Compacted, Error> {
    let _alone = journal.rewriting.lock();
    let due = clean::due(logs, now_ms);
    if due.is_empty() {
        return Ok(Compacted::default());
    }
    if !make_space(journal, due.iter().map(|round| round.bytes).sum())? {
        return Err(Error::DiskFull);
    }
    let mut writer = journal.segments.create(&journal.pace, 0)?;
    let written = clean::clean(journal, &mut writer, due, now_ms)?;
    if written.compacted.logs == 0 {
        return Ok(written.compacted);
    }
    publish(journal, writer.finish()?, topics)?;
    for (log, dirty_offset) in written.dirty_offsets {
        log.with_state(|state| {
            state.dirty_offset = dirty_offset;
            state.transactions.forget_aborted(dirty_offset);
        });
    }
    journal.upkeep.want();
    Ok(written.compacted)
}

/// Whether a segment can be written without the space that is kept for the journal, once files that
/// wait for later use are removed if need be. They stay if it could not all the same.
fn make_space(journal: &Journal, bytes: u64) -> Result<bool, Error> {
    if free_bytes(journal).saturating_add(journal.files.spare_bytes()) < needed(journal, bytes) {
        return Ok(false);
    }
    let piece = journal.options.removed_piece();
    while !has_space(journal, bytes) {
        if !journal.files.remove_spare(&journal.pace, piece, Going::All)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Whether there is as much space beside what is kept for the journal.
fn has_space(journal: &Journal, bytes: u64) -> bool {
    free_bytes(journal) >= needed(journal, bytes)
}

fn needed(journal: &Journal, bytes: u64) -> u64 {
    bytes.saturating_add(journal.options.reserve()).saturating_add(journal.options.file_bytes)
}

/// None where the disk does not say.
fn free_bytes(journal: &Journal) -> u64 {
    journal.files.disk().free_bytes(journal.files.dir()).unwrap_or(0)
}

/// Makes a segment count, in the journal and then in its logs.
pub(crate) fn publish(journal: &Journal, segment: Segment, topics: &Topics) -> Result<(), Error> {
    journal.metrics.segments_written.add(1);
    journal.metrics.segment_bytes_written.add(usize::try_from(segment.file_bytes).unwrap_or(0));
    let number = segment.number;
    let (segment, lsn) =
        journal.segments.add(segment, || append_change(journal, &[number], &[]))?;
    wait(journal, lsn)?;
    for (at, run) in segment.runs.iter().enumerate() {
        if let Some(log) = topics.find(run.log) {
            log.install(&segment, at);
        }
    }
    Ok(())
}

/// Removes a segment that no log refers to, if there is one. Its file is removed once no reader
/// uses it.
fn remove_dead(journal: &Journal) -> Result<bool, Error> {
    if remove_unread(journal)? {
        return Ok(true);
    }
    let mut segments = journal.segments.all().into_iter();
    let Some(dead) = segments.find(|segment| segment.live_runs() == 0) else { return Ok(false) };
    // Recovery must not find a topic without its segments.
    journal.append_deletions()?;
    let removed = || append_change(journal, &[], &[dead.number]);
    let lsn = journal.segments.drop_from_list(dead.number, removed)?;
    wait(journal, lsn)?;
    if journal.options.durability == Durability::Os {
        journal.files.sync_all()?;
    }
    journal.segments.give_up(dead);
    remove_unread(journal)?;
    Ok(true)
}

fn remove_unread(journal: &Journal) -> Result<bool, Error> {
    let piece = journal.options.removed_piece();
    let is_removed = journal.segments.remove_unread(&journal.pace, piece)?;
    journal.metrics.segments_removed.add(usize::from(is_removed));
    Ok(is_removed)
}

fn append_change(journal: &Journal, added: &[u64], removed: &[u64]) -> Result<Lsn, Error> {
    let count = u32::try_from(added.len()).expect("one at a time");
    let numbers = added.iter().chain(removed).flat_map(|number| number.to_le_bytes());
    let payload: Vec<u8> = count.to_le_bytes().into_iter().chain(numbers).collect();
    Ok(journal.append_entry(Kind::Segments, LogId::default(), &payload)?)
}

/// What is due with time is found within this.
const LOOK_EVERY: Duration = Duration::from_secs(10);
/// With so many files waiting the rate doubles.
const FILES_PER_URGENCY: u64 = 16;
/// So many may wait for producers to rest. What is not sorted is slower to read.
const FILES_OUTRUN: u64 = 64;
/// So many used files of the journal may wait for them too.
const SPARES_OUTRUN: usize = 64;
/// So many entries count as another file: their index takes a megabyte of memory.
const ENTRIES_LIKE_A_FILE: u64 = 1 << 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sorting_waits_for_producers_that_outrun_it_until_much_waits() {
        let urgency = |files, entries, may_wait| {
            Waiting { first_end: Some(1), files, entries }.urgency(may_wait)
        };
        assert_eq!((urgency(1, 1000, false), urgency(1, 1000, true)), (1, 0));
        assert_eq!((urgency(63, 1000, false), urgency(63, 1000, true)), (4, 0));
        assert_eq!((urgency(80, 1000, false), urgency(80, 1000, true)), (6, 2));
        // A million partitions fill few files with many batches.
        assert_eq!(urgency(20, 5 << 20, true), 3);
    }
}
