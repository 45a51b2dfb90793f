//! Merging: several segments rewritten as one, so that a log's batches lie together and what is
//! dead takes no space.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use moldau_records::crc32c;

use crate::disk::read_full;
use crate::format::round_up;
use crate::io::SegmentPool;
use crate::journal::Journal;
use crate::segment::{Run, Segment};
use crate::sorted::Piece;
use crate::{Error, Log, LogId};

/// Which segments are to become one, and its level.
pub(crate) struct Merge {
    pub(crate) inputs: Vec<Arc<Segment>>,
    pub(crate) level: u32,
}

/// The merge that is due, if any: a level with enough segments with short runs, or a mostly dead
/// segment.
pub(crate) fn due(segments: &[Arc<Segment>]) -> Option<Merge> {
    let mut levels: BTreeMap<u32, Vec<Arc<Segment>>> = BTreeMap::new();
    for segment in segments.iter().filter(|segment| !segment.is_damaged()) {
        match Fit::of(segment.bytes(), segment.live_bytes(), segment.live_runs()) {
            Fit::Alone => {
                return Some(Merge { inputs: vec![Arc::clone(segment)], level: segment.level });
            }
            Fit::WithOthers => levels.entry(segment.level).or_default().push(Arc::clone(segment)),
            Fit::Stays => {}
        }
    }
    let (level, mut inputs) = levels.into_iter().find(|(_, found)| found.len() >= FAN_IN)?;
    inputs.truncate(FAN_IN);
    Some(Merge { inputs, level: level + 1 })
}

/// Uses that a segment is fit for.
#[derive(Debug, PartialEq, Eq)]
enum Fit {
    /// It has no short runs, or is too large.
    Stays,
    /// Most of it is dead.
    Alone,
    /// Its runs are short.
    WithOthers,
}

impl Fit {
    /// The two counts may contradict each other: retention releases runs while they are read.
    fn of(bytes: u64, live_bytes: u64, live_runs: u64) -> Self {
        let Some(run_bytes) = live_bytes.checked_div(live_runs) else { return Self::Stays };
        if live_bytes < bytes / 2 && live_bytes > 0 {
            return Self::Alone;
        }
        let is_short = run_bytes < RUN_BYTES_ENOUGH && live_bytes <= INPUT_BYTES_MAX;
        if is_short { Self::WithOthers } else { Self::Stays }
    }
}

/// Writes the live batches of the inputs to one segment; `None` if there are none.
pub(crate) fn merge(
    journal: &Journal,
    plan: &Merge,
    find: impl Fn(LogId) -> Option<Arc<Log>>,
) -> Result<Option<Segment>, Error> {
    let mut writer = journal.segments.create(&journal.pace, plan.level)?;
    let mut blocks = Blocks::new(journal);
    let mut next = vec![0; plan.inputs.len()];
    let mut is_empty = true;
    while let Some(id) = first_of(&plan.inputs, &next) {
        for (input, next) in plan.inputs.iter().zip(&mut next) {
            *next += usize::from(input.runs.get(*next).is_some_and(|run| run.log == id));
        }
        let Some(log) = find(id) else { continue };
        let share = log.with_state(|state| {
            let start_offset = state.start_offset;
            state
                .sorted
                .share_of(&plan.inputs)
                .filter(|_| !state.is_deleted)
                .map(|share| (share, start_offset))
        });
        let Some((share, start_offset)) = share else { continue };
        writer.begin_run(id, share.base_offset);
        for piece in &share.pieces {
            let bytes = blocks.piece(piece)?;
            for batch in moldau_records::iter_batches(&bytes).flatten() {
                if batch.next_offset() > start_offset {
                    let (base_offset, timestamp) = (batch.base_offset(), batch.max_timestamp());
                    writer.push(batch.bytes(), base_offset, timestamp)?;
                }
            }
        }
        writer.end_run(share.next_offset);
        is_empty = false;
    }
    if is_empty { Ok(None) } else { writer.finish().map(Some) }
}

fn first_of(inputs: &[Arc<Segment>], next: &[usize]) -> Option<LogId> {
    let runs = inputs.iter().zip(next).filter_map(|(input, next)| input.runs.get(*next));
    runs.map(|run: &Run| run.log).min()
}

/// Reads the blocks of segments, each verified, and keeps the last of each segment: the runs of one
/// segment are asked for in their order.
pub(crate) struct Blocks<'a> {
    journal: &'a Journal,
    last: BTreeMap<u64, (u64, Bytes)>,
}

impl<'a> Blocks<'a> {
    pub(crate) fn new(journal: &'a Journal) -> Blocks<'a> {
        Blocks { journal, last: BTreeMap::new() }
    }

    /// The batches of a piece.
    pub(crate) fn piece(&mut self, piece: &Piece) -> Result<Bytes, Error> {
        let (segment, offset) = (&piece.segment, piece.block.offset());
        let known = self.last.get(&segment.number).filter(|(known, _)| *known == offset);
        let block = match known {
            Some((_, block)) => block.clone(),
            None => {
                let block = self.read(piece)?;
                self.last.insert(segment.number, (offset, block.clone()));
                block
            }
        };
        if piece.within.end > block.len() {
            let reason = "the footer and the block contradict each other";
            return Err(Error::corrupt(&segment.path, offset, reason));
        }
        Ok(block.slice(piece.within.clone()))
    }

    fn read(&self, piece: &Piece) -> Result<Bytes, Error> {
        let (segment, offset) = (&piece.segment, piece.block.offset());
        let handle = self.journal.segments.handle(segment)?;
        let count = piece.block.bytes as usize;
        let mut region = SegmentPool::new(round_up(count), 0).take();
        let pace = &self.journal.pace;
        let read = pace.work(count, || read_full(&*handle, region.as_mut(), offset));
        let block = region.freeze().slice(..count);
        let error = match read {
            Ok(()) if crc32c(&block) == piece.block.crc => return Ok(block),
            Ok(()) => {
                Error::corrupt(&segment.path, offset, "the checksum of a block does not hold")
            }
            Err(error) => Error::io("read", &segment.path, error),
        };
        if error.is_damage() {
            segment.mark_damaged();
            self.journal.metrics.corrupt_batches.add(1);
        }
        Err(error)
    }
}

/// Segments of one level that become one of the next.
const FAN_IN: usize = 4;
/// Runs of this length are read sequentially as they are.
const RUN_BYTES_ENOUGH: u64 = 4 << 20;
/// A merge needs the space of its inputs once more; larger segments stay as they are.
const INPUT_BYTES_MAX: u64 = 4 << 30;

#[cfg(test)]
mod tests {
    use super::*;

    /// The last run of a segment once went between a check and a division, and upkeep with it.
    #[test]
    fn counts_that_contradict_each_other_choose_no_merge_and_do_no_harm() {
        for live_bytes in [0, 1, 100, u64::MAX] {
            assert_eq!(Fit::of(100, live_bytes, 0), Fit::Stays);
        }
        assert_eq!(Fit::of(100, 0, 1), Fit::WithOthers);
    }

    #[test]
    fn a_segment_is_merged_if_its_runs_are_short_and_rewritten_if_most_is_dead() {
        let (short, long) = (RUN_BYTES_ENOUGH - 1, RUN_BYTES_ENOUGH);
        assert_eq!(Fit::of(short, short, 1), Fit::WithOthers);
        assert_eq!(Fit::of(long, long, 1), Fit::Stays);
        assert_eq!(Fit::of(2 * long, 2 * short, 2), Fit::WithOthers);
        assert_eq!(Fit::of(100, 50, 1), Fit::WithOthers);
        assert_eq!(Fit::of(100, 49, 1), Fit::Alone);
        let large = INPUT_BYTES_MAX + 1;
        assert_eq!(Fit::of(large, large, large), Fit::Stays);
        assert_eq!(Fit::of(3 * large, large, large), Fit::Alone);
    }
}
