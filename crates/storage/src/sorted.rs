//! The part of one log that lies in sorted segments.
//!
//! The runs of a log follow each other without a hole in what they account for; the journal goes on
//! where they end. Cleaning may have removed any of their records, so a run need not have a batch
//! for every offset.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use crate::segment::{Block, Run, Segment};

/// A run of a log, which counts in its segment for as long as this exists.
#[derive(Debug)]
struct RunRef {
    segment: Arc<Segment>,
    at: usize,
}

impl RunRef {
    fn new(segment: &Arc<Segment>, at: usize) -> RunRef {
        segment.retain(segment.run(at));
        RunRef { segment: Arc::clone(segment), at }
    }

    fn run(&self) -> &Run {
        self.segment.run(self.at)
    }

    /// The block numbers of the run, none if it has no batch.
    fn blocks(&self) -> Range<usize> {
        let run = self.run();
        let end = if run.bytes == 0 { run.first_block } else { run.last_block + 1 };
        run.first_block as usize..end as usize
    }

    fn block(&self, number: usize) -> &Block {
        &self.segment.blocks[number]
    }

    /// Part of the run in one of its blocks.
    fn piece(&self, number: usize) -> Piece {
        let run = self.run();
        let block = self.block(number);
        let start = if number == run.first_block as usize { run.start as usize } else { 0 };
        let is_last = number == run.last_block as usize;
        let (end, next_offset) = if is_last {
            // Blocks before this one belong to the run to their ends.
            let before: u64 = self.segment.blocks[run.first_block as usize..number]
                .iter()
                .map(|block| u64::from(block.bytes))
                .sum();
            let end = u64::from(run.start) + run.bytes - before;
            (usize::try_from(end).unwrap_or(usize::MAX), run.next_offset)
        } else {
            (block.bytes as usize, self.block(number + 1).first_offset)
        };
        let is_first = number == run.first_block as usize;
        Piece {
            segment: Arc::clone(&self.segment),
            block: *block,
            within: start..end,
            base_offset: if is_first { run.base_offset } else { block.first_offset },
            next_offset,
            max_timestamp: block.max_timestamp.min(run.max_timestamp),
        }
    }

    /// The pieces from the one that accounts for `offset` on.
    fn pieces_from(&self, offset: i64) -> impl Iterator<Item = Piece> {
        let Range { start, end } = self.blocks();
        // The first block begins with another log's batches, or with this one's first.
        let later = (start + 1).min(end)..end;
        let after = partition(later, |number| self.block(number).first_offset <= offset);
        let first = after.saturating_sub(1).max(start);
        (first..end).map(|number| self.piece(number))
    }
}

impl Drop for RunRef {
    fn drop(&mut self) {
        self.segment.release(self.run());
    }
}

fn partition(range: Range<usize>, mut is_before: impl FnMut(usize) -> bool) -> usize {
    let (mut low, mut high) = (range.start, range.end);
    while low < high {
        let middle = low + (high - low) / 2;
        if is_before(middle) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}

/// The part of a run that lies in one block.
#[derive(Debug, Clone)]
pub(crate) struct Piece {
    pub(crate) segment: Arc<Segment>,
    pub(crate) block: Block,
    /// The batches of the run in the block.
    pub(crate) within: Range<usize>,
    pub(crate) base_offset: i64,
    /// Offset after the last that the piece accounts for.
    pub(crate) next_offset: i64,
    /// No batch of the piece has a larger timestamp.
    pub(crate) max_timestamp: i64,
}

impl Piece {
    pub(crate) fn bytes(&self) -> usize {
        self.within.len()
    }
}

/// A log's contiguous data in some segments.
pub(crate) struct Share {
    pub(crate) base_offset: i64,
    pub(crate) next_offset: i64,
    pub(crate) pieces: Vec<Piece>,
}

/// All runs of one log, by offset.
#[derive(Debug, Default)]
pub(crate) struct Sorted {
    runs: VecDeque<RunRef>,
    /// Bytes of all runs, what lies below the log start included.
    bytes: u64,
}

impl Sorted {
    /// Offset after the last that the runs account for.
    pub(crate) fn end_offset(&self) -> Option<i64> {
        self.runs.back().map(|last| last.run().next_offset)
    }

    /// Where the run ends that accounts for `offset`, if one does.
    pub(crate) fn end_of_run(&self, offset: i64) -> Option<i64> {
        let at = partition(0..self.runs.len(), |at| self.runs[at].run().next_offset <= offset);
        let run = self.runs.get(at)?.run();
        (run.base_offset <= offset).then_some(run.next_offset)
    }

    /// Offset of the first that the runs account for.
    pub(crate) fn base_offset(&self) -> Option<i64> {
        self.runs.front().map(|first| first.run().base_offset)
    }

    /// Bytes of the batches from about `start_offset` on: pieces count as a whole.
    pub(crate) fn bytes_from(&self, start_offset: i64) -> u64 {
        let Some(first) = self.runs.front() else { return 0 };
        let live: usize = first.pieces_from(start_offset).map(|piece| piece.bytes()).sum();
        self.bytes - first.run().bytes + live as u64
    }

    /// Takes up a run in place of those whose offsets it accounts for, and says where it ends.
    pub(crate) fn install(&mut self, segment: &Arc<Segment>, at: usize) -> i64 {
        let run = *segment.run(at);
        let from =
            partition(0..self.runs.len(), |at| self.runs[at].run().base_offset < run.base_offset);
        let to = partition(from..self.runs.len(), |at| {
            self.runs[at].run().next_offset <= run.next_offset
        });
        for replaced in self.runs.drain(from..to) {
            self.bytes -= replaced.run().bytes;
        }
        self.bytes += run.bytes;
        self.runs.insert(from, RunRef::new(segment, at));
        run.next_offset
    }

    /// Whether the runs account for every offset from `start_offset` to their end.
    pub(crate) fn is_gapless(&self, start_offset: i64) -> bool {
        let begins = self.base_offset().is_none_or(|base| base <= start_offset);
        let follow = self.runs.iter().zip(self.runs.iter().skip(1));
        begins
            && follow
                .map(|(one, next)| (one.run().next_offset, next.run().base_offset))
                .all(|(end, base)| end == base)
    }

    /// Drops the runs that end at or before `offset`.
    pub(crate) fn trim_to(&mut self, offset: i64) {
        while self.runs.front().is_some_and(|first| first.run().next_offset <= offset) {
            if let Some(first) = self.runs.pop_front() {
                self.bytes -= first.run().bytes;
            }
        }
    }

    pub(crate) fn clear(&mut self) {
        self.runs.clear();
        self.bytes = 0;
    }

    /// The pieces from the one that accounts for `offset` on.
    pub(crate) fn pieces_from(&self, offset: i64) -> impl Iterator<Item = Piece> {
        let first = partition(0..self.runs.len(), |at| self.runs[at].run().next_offset <= offset);
        self.runs.range(first..).flat_map(move |run| run.pieces_from(offset))
    }

    /// The largest timestamp of the batches from about `start_offset` on, if it is below `bound`;
    /// otherwise the largest of a piece that is.
    pub(crate) fn max_timestamp(&self, start_offset: i64, bound: i64) -> Option<i64> {
        let of_run = |run: &RunRef| {
            let whole = run.run();
            if whole.base_offset >= start_offset && whole.max_timestamp < bound {
                return (whole.bytes > 0).then_some(whole.max_timestamp);
            }
            let pieces = run.pieces_from(start_offset).map(|piece| piece.max_timestamp);
            pieces.filter(|timestamp| *timestamp < bound).max()
        };
        self.runs.iter().filter_map(of_run).max()
    }

    /// What the segments hold of the log, as far as it follows each other; `None` if nothing.
    pub(crate) fn share_of(&self, segments: &[Arc<Segment>]) -> Option<Share> {
        let is_in = |run: &&RunRef| segments.iter().any(|one| Arc::ptr_eq(one, &run.segment));
        let mut runs = self.runs.iter().skip_while(|run| !is_in(run)).take_while(is_in);
        let first = runs.next()?;
        let mut share = Share {
            base_offset: first.run().base_offset,
            next_offset: first.run().next_offset,
            pieces: first.pieces_from(i64::MIN).collect(),
        };
        for run in runs {
            share.next_offset = run.run().next_offset;
            share.pieces.extend(run.pieces_from(i64::MIN));
        }
        Some(share)
    }
}
