//! What a read asks of a log: which batches it may take, and where those lie.

use std::ops::Range;

use moldau_records::BATCH_HEADER_LEN;

use crate::Error;
use crate::index::Extent;
use crate::log::LogState;
use crate::sorted::Piece;
use crate::transactions::{AbortedTransaction, Isolation};

/// How much is read at once.
#[derive(Debug, Clone, Copy)]
pub struct ReadLimits {
    /// Bytes of batches.
    pub bytes_max: usize,
    /// Memory that is in use until the batches are there, where they must be loaded from disk.
    pub memory_max: usize,
    /// The first batch is read at any length, with all that must be loaded for it (KIP-74).
    pub min_one: bool,
}

/// What is asked of a log.
#[derive(Debug, Clone)]
pub(super) struct Request {
    pub(super) from: i64,
    pub(super) limits: ReadLimits,
    pub(super) isolation: Isolation,
    pub(super) high_watermark: i64,
    pub(super) start_offset: i64,
    pub(super) last_stable_offset: i64,
    /// Of what is planned to be read. Taken with the plan: cleaning takes the records of aborted
    /// transactions away, and then forgets that there were any.
    pub(super) aborted: Vec<AbortedTransaction>,
}

/// Where the batches lie.
pub(super) enum Plan {
    Nothing,
    Journal(Vec<Extent>),
    Sorted { pieces: Vec<Piece>, ahead: Vec<Piece> },
}

/// What is taken of some batches that follow each other.
pub(super) struct Taken {
    pub(super) begin: usize,
    pub(super) end: usize,
    pub(super) batches: usize,
    pub(super) next_offset: i64,
    /// Nothing was left out behind what was taken.
    pub(super) is_all: bool,
}

impl Request {
    pub(super) fn new(
        from: i64,
        limits: ReadLimits,
        isolation: Isolation,
        high_watermark: i64,
    ) -> Self {
        Self {
            from,
            limits,
            isolation,
            high_watermark,
            start_offset: 0,
            last_stable_offset: 0,
            aborted: Vec::new(),
        }
    }

    pub(super) fn plan(
        &mut self,
        state: &mut LogState,
        memory_of: impl Fn(usize) -> usize,
    ) -> Result<Plan, Error> {
        let plan = self.plan_batches(state, memory_of)?;
        if self.isolation == Isolation::ReadCommitted {
            let end = match &plan {
                Plan::Nothing => self.from,
                Plan::Journal(extents) => extents.last().map_or(self.from, |last| last.next_offset),
                Plan::Sorted { pieces, .. } => {
                    pieces.last().map_or(self.from, |last| last.next_offset)
                }
            };
            self.aborted = state.transactions.aborted_in(self.from, end.min(self.end()));
        }
        Ok(plan)
    }

    /// Nothing at or above this is read.
    fn end(&self) -> i64 {
        match self.isolation {
            Isolation::ReadUncommitted => self.high_watermark,
            Isolation::ReadCommitted => self.last_stable_offset,
        }
    }

    fn plan_batches(
        &mut self,
        state: &mut LogState,
        memory_of: impl Fn(usize) -> usize,
    ) -> Result<Plan, Error> {
        if state.is_deleted {
            return Err(Error::Deleted);
        }
        let (start, end) = (state.start_offset, state.index.end_offset());
        if self.from < start || self.from > end {
            return Err(Error::OffsetOutOfRange { start, end: self.high_watermark });
        }
        self.start_offset = start;
        self.last_stable_offset = state.last_stable_offset(self.high_watermark);
        // A fetch that is full still asks each partition for its watermark.
        let ReadLimits { bytes_max, memory_max, min_one } = self.limits;
        let takes_nothing = bytes_max == 0 && !min_one;
        if self.from >= self.end() || takes_nothing {
            return Ok(Plan::Nothing);
        }
        let mut pieces: Vec<Piece> = Vec::new();
        let (mut bytes, mut memory) = (0usize, 0usize);
        let mut rest = state.sorted.pieces_from(self.from).peekable();
        while let Some(piece) = rest.peek() {
            memory = memory.saturating_add(memory_of(piece.block.bytes as usize));
            if memory > memory_max && !pieces.is_empty() {
                break;
            }
            bytes = bytes.saturating_add(piece.bytes());
            pieces.extend(rest.next());
            // The first piece may hold little from the offset on.
            if (bytes > bytes_max && pieces.len() > 1) || pieces.len() >= PIECES_PER_READ {
                break;
            }
        }
        if !pieces.is_empty() {
            // Blocks that several logs share are read by the one that asks.
            let is_whole = |piece: &Piece| piece.bytes() == piece.block.bytes as usize;
            let count = (PIECES_AHEAD + 2).saturating_sub(pieces.len());
            let ahead = rest.take(count).take_while(is_whole).collect();
            return Ok(Plan::Sorted { pieces, ahead });
        }
        self.from = self.from.max(state.sorted_end());
        let mut extents = Vec::new();
        self.collect(state.index.starting_at(self.from), &mut extents);
        Ok(if extents.is_empty() { Plan::Nothing } else { Plan::Journal(extents) })
    }

    fn collect(&self, extents: impl Iterator<Item = Extent>, wanted: &mut Vec<Extent>) {
        let mut bytes = 0usize;
        for extent in extents.take(BATCHES_PER_READ_MAX) {
            let (_, length) = range(&extent);
            bytes = bytes.saturating_add(length);
            let is_allowed =
                bytes <= self.limits.bytes_max || (self.limits.min_one && wanted.is_empty());
            if extent.next_offset > self.end() || !is_allowed {
                return;
            }
            wanted.push(extent);
        }
    }

    /// Which of `batches`, the part of a run in one block that accounts for `offsets`, belong to
    /// the read, which has come to this offset with so many bytes; `None` if they are not batches
    /// of these offsets.
    pub(super) fn take(
        &self,
        batches: &[u8],
        offsets: Range<i64>,
        next_offset: i64,
        bytes_before: usize,
    ) -> Option<Taken> {
        let mut taken = Taken { begin: 0, end: 0, batches: 0, next_offset, is_all: true };
        let mut at = 0;
        while at < batches.len() {
            let (base_offset, next_offset, length) = place(batches.get(at..)?)?;
            let end = at.checked_add(length).filter(|end| *end <= batches.len())?;
            let is_across_end = base_offset < self.end() && next_offset > self.end();
            if is_across_end || base_offset < offsets.start || next_offset > offsets.end {
                // Batches end where a reader may have to stop. A reader of one that does not would
                // get nothing, again and again.
                return None;
            }
            if next_offset > self.from {
                if taken.batches == 0 {
                    (taken.begin, taken.end) = (at, at);
                }
                let bytes = bytes_before + (end - taken.begin);
                let is_first = bytes_before == 0 && taken.batches == 0;
                let is_open = next_offset > self.end();
                let ReadLimits { bytes_max, min_one, .. } = self.limits;
                if is_open || (bytes > bytes_max && !(min_one && is_first)) {
                    taken.is_all = false;
                    if is_open && taken.batches == 0 {
                        // Compaction has removed what was before it.
                        taken.next_offset = self.end();
                    }
                    break;
                }
                taken.batches += 1;
                taken.end = end;
                taken.next_offset = next_offset;
            }
            at = end;
        }
        Some(taken)
    }
}

/// Where a batch lies in the journal, and its length.
pub(super) fn range(extent: &Extent) -> (u64, usize) {
    // A length is an u32, which a usize holds wherever this runs.
    (extent.position, usize::try_from(extent.bytes).unwrap_or(usize::MAX))
}

/// Offset of the first batch of `bytes`, the one after it, and the batch's length.
fn place(bytes: &[u8]) -> Option<(i64, i64, usize)> {
    let header: &[u8; BATCH_HEADER_LEN] = bytes.first_chunk()?;
    let (base_offset, rest) = header.split_first_chunk()?;
    let (length, rest) = rest.split_first_chunk()?;
    let (last_offset_delta, _) = rest.get(11..)?.split_first_chunk()?;
    let delta = i64::from(i32::from_be_bytes(*last_offset_delta));
    let base_offset = i64::from_be_bytes(*base_offset);
    let next_offset = base_offset.checked_add(delta)?.checked_add(1)?;
    let length = usize::try_from(i32::from_be_bytes(*length)).ok()?;
    Some((base_offset, next_offset, length.checked_add(LENGTH_END as usize)?))
}

/// A batch's length field counts what follows it.
pub(super) const LENGTH_END: u32 = 12;
/// Slices that one vectored write to a socket takes (Linux `UIO_MAXIOV`).
const BATCHES_PER_READ_MAX: usize = 1024;
/// Bounds what one fetch can ask of the disk before it gets an answer.
const PIECES_PER_READ: usize = 8;
/// Pieces loaded ahead of a reader that asks for no more than two: the reader threads stay busy
/// while it sends what it has. Who asks for more keeps them busy anyway.
const PIECES_AHEAD: usize = 2;

#[cfg(test)]
mod tests {
    use super::*;

    /// A header alone is enough of a batch for a read.
    fn batch(base_offset: i64, last_offset_delta: i32) -> [u8; BATCH_HEADER_LEN] {
        let mut header = [0; BATCH_HEADER_LEN];
        header[..8].copy_from_slice(&base_offset.to_be_bytes());
        header[8..12].copy_from_slice(
            &(u32::try_from(BATCH_HEADER_LEN).unwrap() - LENGTH_END).to_be_bytes(),
        );
        header[23..27].copy_from_slice(&last_offset_delta.to_be_bytes());
        header
    }

    fn taken_of(
        batches: &[[u8; BATCH_HEADER_LEN]],
        offsets: Range<i64>,
        high_watermark: i64,
    ) -> Option<Taken> {
        let limits = ReadLimits { bytes_max: 1 << 20, memory_max: 1 << 20, min_one: true };
        let request = Request::new(5, limits, Isolation::ReadUncommitted, high_watermark);
        request.take(&batches.concat(), offsets, 5, 0)
    }

    fn taken(batches: &[[u8; BATCH_HEADER_LEN]], high_watermark: i64) -> Option<Taken> {
        taken_of(batches, 0..20, high_watermark)
    }

    #[test]
    fn a_read_takes_the_batches_from_its_offset_to_the_end() {
        let batches = [batch(0, 4), batch(5, 0), batch(6, 3), batch(10, 1)];
        let taken = taken(&batches, 10).unwrap();
        assert_eq!((taken.batches, taken.next_offset, taken.is_all), (2, 10, false));
        let at = BATCH_HEADER_LEN..3 * BATCH_HEADER_LEN;
        assert_eq!(taken.begin..taken.end, at);
    }

    #[test]
    fn a_batch_across_the_end_is_damaged() {
        assert!(taken(&[batch(5, 5)], 10).is_none());
        assert!(taken(&[batch(5, 4)], 10).is_some());
    }

    /// The offsets of a batch are damaged, or those that the footer has of its run.
    #[test]
    fn a_batch_outside_the_offsets_of_its_run_is_damaged() {
        assert!(taken_of(&[batch(5, 4)], 5..10, 10).is_some());
        assert!(taken_of(&[batch(5, 4)], 6..10, 10).is_none());
        assert!(taken_of(&[batch(5, 4)], 5..9, 10).is_none());
        assert!(taken_of(&[batch(12, 0)], 5..12, 12).is_none());
    }

    #[test]
    fn a_read_of_removed_records_comes_to_its_end() {
        let taken = taken(&[batch(12, 0)], 10).unwrap();
        assert_eq!((taken.batches, taken.next_offset, taken.is_all), (0, 10, false));
    }
}
