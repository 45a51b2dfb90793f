//! What is done in the background: sorting what the journal has filled, merging, removing what is
//! dead. One piece of it at a time.

use std::sync::Arc;

use crate::checkpoint::wait;
use crate::format::Kind;
use crate::journal::Journal;
use crate::segment::Segment;
use crate::sync::lock;
use crate::topics::Topics;
use crate::{Compacted, Compaction, Durability, Error, Log, LogId, Lsn, clean, merge, sort};

/// The thread that does it.
pub(crate) fn run(journal: &Journal, topics: &Topics) {
    while journal.upkeep.wait() {
        loop {
            match step(journal, topics) {
                Ok(true) if !journal.pace.is_stopped() => {}
                Ok(_) | Err(Error::Closed | Error::Poisoned { .. }) => break,
                Err(error) => {
                    tracing::error!(%error, "sorting and merging stop until the next attempt");
                    break;
                }
            }
        }
    }
}

/// Does one piece of work, and says whether there was any.
pub(crate) fn step(journal: &Journal, topics: &Topics) -> Result<bool, Error> {
    let _alone = lock(&journal.rewriting);
    if remove_dead(journal)? || sort_one(journal, topics)? || merge_one(journal, topics)? {
        return Ok(true);
    }
    // They come last, while the journal may still have use for them, and where nothing else is done
    // for want of space.
    journal.files.remove_spare(&journal.pace, journal.options.removed_piece())
}

/// Sorts the oldest file of the journal that is due.
fn sort_one(journal: &Journal, topics: &Topics) -> Result<bool, Error> {
    let Some(to) = sortable_to(journal) else { return Ok(false) };
    let sorted = sort::sort(journal, topics.all(), to)?;
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
    if !has_space(journal, bytes) {
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
    let _alone = lock(&journal.rewriting);
    let bytes = logs.iter().map(|(log, _)| log.bytes()).sum();
    if !has_space(journal, bytes) {
        return Err(Error::DiskFull);
    }
    let mut writer = journal.segments.create(&journal.pace, 0)?;
    let written = clean::clean(journal, &mut writer, logs, now_ms)?;
    if written.compacted.logs == 0 {
        return Ok(written.compacted);
    }
    publish(journal, writer.finish()?, topics)?;
    for (log, dirty_offset) in written.dirty_offsets {
        log.with_state(|state| state.dirty_offset = dirty_offset);
    }
    journal.upkeep.want();
    Ok(written.compacted)
}

/// The end of the oldest file that is full and not sorted, if its segment has space. What is still
/// in the tail cache is left there, where consumers that keep up find it.
fn sortable_to(journal: &Journal) -> Option<u64> {
    let durable = journal.durable.position();
    let limit = journal.tail.start().map_or(durable, |start| start.min(durable));
    let (from, files) = (journal.sorted_to(), journal.files.all());
    let mut full = files.iter().filter(|file| file.end() > from && file.end() <= limit);
    let to = full.next()?.end();
    // The longer the queue, the more of the disk the sorting may use.
    journal.pace.set_urgency(1 + full.count() as u64 / FILES_PER_URGENCY);
    has_space(journal, journal.options.file_bytes).then_some(to)
}

/// Whether a segment can be written without the space that is kept for the journal.
fn has_space(journal: &Journal, bytes: u64) -> bool {
    let options = &journal.options;
    let kept = options.reserve_bytes.saturating_add(options.file_bytes);
    let free = journal.files.disk().free_bytes(journal.files.dir()).unwrap_or(0);
    free >= bytes.saturating_add(kept)
}

/// Makes a segment count, in the journal and then in its logs.
pub(crate) fn publish(journal: &Journal, segment: Segment, topics: &Topics) -> Result<(), Error> {
    journal.metrics.segments_written.add(1);
    journal.metrics.segment_bytes_written.add(usize::try_from(segment.file_bytes).unwrap_or(0));
    // It is on the list before it is in the journal: a checkpoint that is taken in between either
    // names it or begins before the entry.
    let segment = journal.segments.add(segment);
    let lsn = append_change(journal, &[segment.number], &[])?;
    wait(journal, lsn)?;
    for (at, run) in segment.runs.iter().enumerate() {
        if let Some(log) = topics.find(run.log) {
            log.install(&segment, at);
        }
    }
    Ok(())
}

/// Removes the segments that no log refers to.
fn remove_dead(journal: &Journal) -> Result<bool, Error> {
    let mut dead = journal.segments.all();
    dead.retain(|segment| segment.live_runs() == 0);
    if dead.is_empty() {
        return Ok(false);
    }
    let numbers: Vec<u64> = dead.iter().map(|segment| segment.number).collect();
    // They are off the list before they are in the journal: a checkpoint that is taken in between
    // either does not name them or begins before the entry.
    numbers.iter().for_each(|number| journal.segments.drop_from_list(*number));
    let lsn = append_change(journal, &[], &numbers)?;
    wait(journal, lsn)?;
    if journal.options.durability == Durability::Os {
        journal.files.sync_all()?;
    }
    for segment in dead {
        journal.segments.remove(segment, &journal.pace, journal.options.removed_piece())?;
    }
    journal.metrics.segments_removed.add(numbers.len());
    Ok(true)
}

fn append_change(journal: &Journal, added: &[u64], removed: &[u64]) -> Result<Lsn, Error> {
    let count = u32::try_from(added.len()).expect("one at a time");
    let numbers = added.iter().chain(removed).flat_map(|number| number.to_le_bytes());
    let payload: Vec<u8> = count.to_le_bytes().into_iter().chain(numbers).collect();
    Ok(journal.append_entry(Kind::Segments, LogId::default(), &payload)?)
}

/// With this many files waiting the rate doubles. What is not sorted takes memory for its index and
/// is slower to read, but the disk is left to those who wait for it.
const FILES_PER_URGENCY: u64 = 16;
