//! Where the batches of one log lie in the journal.
//!
//! Batches of a log follow each other without holes, so a batch ends where the next begins. Rows
//! are 16 bytes: a chunk keeps the full values of its first batch and rows hold distances from
//! them. A distance that does not fit begins another chunk, so nothing is ever rounded.

//!
//! In a checkpoint an index is: offset of the first batch, or the end offset if there is none, i64;
//! number of batches, u64; and for each batch, as variable-length integers, the number of offsets
//! it takes, the distance of its journal position from the batch before, its length, and the
//! zigzag distance of its timestamp from the batch before. The batch before the first is at
//! position 0 and time 0.

use std::collections::VecDeque;

use moldau_records::{BATCH_HEADER_LEN, varint};

use crate::format::{Fields, POSITION_MAX};
use crate::io::BLOCK;

/// One batch of a log in the journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Extent {
    pub(crate) base_offset: i64,
    /// Offset after the batch's last.
    pub(crate) next_offset: i64,
    /// Journal position of the batch's first byte.
    pub(crate) position: u64,
    pub(crate) bytes: u32,
    pub(crate) max_timestamp: i64,
}

/// All batches of one log, by offset.
#[derive(Debug, Default)]
pub(crate) struct Index {
    chunks: VecDeque<Chunk>,
    /// Rows of the first chunk that are no longer part of the log.
    skipped: usize,
    end_offset: i64,
    bytes: u64,
}

#[derive(Debug)]
struct Chunk {
    base_offset: i64,
    position: u64,
    timestamp: i64,
    /// Largest timestamp of all rows, skipped ones included.
    max_timestamp: i64,
    rows: Vec<Row>,
}

#[derive(Debug, Clone, Copy)]
struct Row {
    offset_delta: u32,
    position_delta: u32,
    bytes: u32,
    timestamp_delta: i32,
}

impl Chunk {
    fn of(extent: &Extent) -> Chunk {
        Chunk {
            base_offset: extent.base_offset,
            position: extent.position,
            timestamp: extent.max_timestamp,
            max_timestamp: extent.max_timestamp,
            rows: Vec::new(),
        }
    }

    fn row_of(&self, extent: &Extent) -> Option<Row> {
        Some(Row {
            offset_delta: u32::try_from(extent.base_offset.checked_sub(self.base_offset)?).ok()?,
            position_delta: u32::try_from(extent.position.checked_sub(self.position)?).ok()?,
            bytes: extent.bytes,
            timestamp_delta: i32::try_from(extent.max_timestamp.checked_sub(self.timestamp)?)
                .ok()?,
        })
    }

    fn base_offset_of(&self, row: &Row) -> i64 {
        self.base_offset + i64::from(row.offset_delta)
    }
}

impl Index {
    /// Offset that the next batch gets.
    pub(crate) fn end_offset(&self) -> i64 {
        self.end_offset
    }

    /// Bytes of all batches.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Journal position after the last batch, 0 if there is none.
    pub(crate) fn end_position(&self) -> u64 {
        let last = self.starting_at(self.end_offset).next();
        last.map_or(0, |last| last.position + u64::from(last.bytes))
    }

    /// Sets the end of a log that holds no batch.
    pub(crate) fn start_at(&mut self, offset: i64) {
        assert!(self.chunks.is_empty(), "an end offset follows from the last batch");
        self.end_offset = offset;
    }

    /// Adds the batch that follows the last one.
    pub(crate) fn push(&mut self, extent: Extent) {
        assert!(extent.base_offset == self.end_offset || self.chunks.is_empty());
        assert!(extent.next_offset > extent.base_offset);
        let fitting = match self.chunks.back() {
            Some(chunk) if chunk.rows.len() < ROWS_PER_CHUNK => chunk.row_of(&extent),
            _ => None,
        };
        let row = fitting.unwrap_or_else(|| {
            self.chunks.push_back(Chunk::of(&extent));
            Row { offset_delta: 0, position_delta: 0, bytes: extent.bytes, timestamp_delta: 0 }
        });
        let chunk = self.chunks.back_mut().expect("pushed above if there was none");
        chunk.max_timestamp = chunk.max_timestamp.max(extent.max_timestamp);
        chunk.rows.push(row);
        self.end_offset = extent.next_offset;
        self.bytes += u64::from(extent.bytes);
    }

    /// The batches from the one that holds `offset` on.
    pub(crate) fn starting_at(&self, offset: i64) -> Extents<'_> {
        let after = self.chunks.partition_point(|chunk| chunk.base_offset <= offset);
        let chunk = after.saturating_sub(1);
        let row = self.chunks.get(chunk).map_or(0, |chunk| {
            let after = chunk.rows.partition_point(|row| chunk.base_offset_of(row) <= offset);
            after.saturating_sub(1)
        });
        let row = if chunk == 0 { row.max(self.skipped) } else { row };
        Extents { index: self, chunk, row }
    }

    /// All batches.
    pub(crate) fn iter(&self) -> Extents<'_> {
        Extents { index: self, chunk: 0, row: self.skipped }
    }

    /// The first batch that may hold a record with at least this timestamp.
    pub(crate) fn first_with_timestamp(&self, timestamp: i64) -> Option<Extent> {
        let candidates = self.chunks.iter().enumerate();
        for (at, chunk) in candidates.filter(|(_, chunk)| chunk.max_timestamp >= timestamp) {
            let row = if at == 0 { self.skipped } else { 0 };
            let mut extents =
                Extents { index: self, chunk: at, row }.take(chunk.rows.len().saturating_sub(row));
            if let Some(found) = extents.find(|extent| extent.max_timestamp >= timestamp) {
                return Some(found);
            }
        }
        None
    }

    /// Largest timestamp below `bound` of all batches that end at or before `end_offset`.
    pub(crate) fn max_timestamp(&self, end_offset: i64, bound: i64) -> Option<i64> {
        let within = self.iter().take_while(|extent| extent.next_offset <= end_offset);
        within.map(|extent| extent.max_timestamp).filter(|timestamp| *timestamp < bound).max()
    }

    /// Appends all batches to `out`.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        let first = self.iter().next().map_or(self.end_offset, |first| first.base_offset);
        out.extend_from_slice(&first.to_le_bytes());
        let skipped = self.skipped as u64;
        let count = self.chunks.iter().map(|chunk| chunk.rows.len() as u64).sum::<u64>() - skipped;
        out.extend_from_slice(&count.to_le_bytes());
        let (mut position, mut timestamp) = (0u64, 0i64);
        for extent in self.iter() {
            varint::write_u64(out, extent.next_offset.abs_diff(extent.base_offset));
            varint::write_u64(out, extent.position - position);
            varint::write_u32(out, extent.bytes);
            varint::write_i64(out, extent.max_timestamp.wrapping_sub(timestamp));
            (position, timestamp) = (extent.position, extent.max_timestamp);
        }
    }

    /// Reads what [`Index::encode`] wrote.
    pub(crate) fn decode(fields: &mut Fields<'_>) -> Option<Index> {
        let mut index = Index::default();
        let first = fields.i64().filter(|first| *first >= 0)?;
        index.start_at(first);
        let count = fields.u64()?;
        let (mut position, mut timestamp) = (0u64, 0i64);
        // A file header, a frame header and the entry's header lie before a batch.
        let mut end = BLOCK as u64 + 1;
        for _ in 0..count {
            let offsets = i64::try_from(varint::read_u64(&mut fields.0).ok()?).ok()?;
            let base_offset = index.end_offset;
            position = position.checked_add(varint::read_u64(&mut fields.0).ok()?)?;
            let bytes = varint::read_u32(&mut fields.0).ok()?;
            timestamp = timestamp.wrapping_add(varint::read_i64(&mut fields.0).ok()?);
            let next_offset = base_offset.checked_add(offsets).filter(|_| offsets > 0)?;
            let is_place = position >= end && position < POSITION_MAX;
            if !is_place || (bytes as usize) < BATCH_HEADER_LEN {
                return None;
            }
            end = position + u64::from(bytes);
            let max_timestamp = timestamp;
            index.push(Extent { base_offset, next_offset, position, bytes, max_timestamp });
        }
        Some(index)
    }

    /// Drops the batches that end at or before `offset`.
    pub(crate) fn trim_to(&mut self, offset: i64) {
        while let Some(first) = self.iter().next() {
            if first.next_offset > offset {
                return;
            }
            self.bytes -= u64::from(first.bytes);
            self.skipped += 1;
            if self.chunks.front().is_some_and(|chunk| chunk.rows.len() == self.skipped) {
                self.chunks.pop_front();
                self.skipped = 0;
            }
        }
    }
}

/// Walks the batches of an [`Index`].
pub(crate) struct Extents<'a> {
    index: &'a Index,
    chunk: usize,
    row: usize,
}

impl Iterator for Extents<'_> {
    type Item = Extent;

    fn next(&mut self) -> Option<Extent> {
        let chunk = self.index.chunks.get(self.chunk)?;
        let row = chunk.rows.get(self.row)?;
        self.row += 1;
        let next_offset = match chunk.rows.get(self.row) {
            Some(next) => chunk.base_offset_of(next),
            None => {
                self.chunk += 1;
                self.row = 0;
                let next = self.index.chunks.get(self.chunk);
                next.map_or(self.index.end_offset, |chunk| chunk.base_offset)
            }
        };
        Some(Extent {
            base_offset: chunk.base_offset_of(row),
            next_offset,
            position: chunk.position + u64::from(row.position_delta),
            bytes: row.bytes,
            max_timestamp: chunk.timestamp + i64::from(row.timestamp_delta),
        })
    }
}

/// Few enough that a chunk is cheap for a log of a few batches, enough that the chunk's own fields
/// do not count.
const ROWS_PER_CHUNK: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn extents(steps: &[(u16, u32, i64)]) -> Vec<Extent> {
        let (mut offset, mut end) = (0, 4097);
        let mut extents = Vec::new();
        for &(records, gap, timestamp) in steps {
            let next_offset = offset + i64::from(records) + 1;
            let position = end + u64::from(gap) * 4096;
            extents.push(Extent {
                base_offset: offset,
                next_offset,
                position,
                bytes: u32::from(records) + 61,
                max_timestamp: timestamp,
            });
            offset = next_offset;
            end = position + u64::from(records) + 61;
        }
        extents
    }

    fn index_of(extents: &[Extent]) -> Index {
        let mut index = Index::default();
        extents.iter().for_each(|extent| index.push(*extent));
        index
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn index_answers_as_a_list_does(
            steps in prop::collection::vec((any::<u16>(), any::<u32>(), any::<i64>()), 1..700),
            probe in any::<prop::sample::Index>(),
            trim in any::<prop::sample::Index>(),
        ) {
            let mut list = extents(&steps);
            let mut index = index_of(&list);
            let end = index.end_offset();
            let at = |share: prop::sample::Index| {
                i64::try_from(share.index(usize::try_from(end).unwrap())).unwrap()
            };
            index.trim_to(at(trim));
            list.retain(|extent| extent.next_offset > at(trim));
            prop_assert_eq!(index.iter().collect::<Vec<_>>(), list.clone());
            let mut encoded = Vec::new();
            index.encode(&mut encoded);
            let decoded = Index::decode(&mut Fields(&encoded)).unwrap();
            prop_assert_eq!(decoded.iter().collect::<Vec<_>>(), list.clone());
            prop_assert_eq!(decoded.end_offset(), index.end_offset());
            prop_assert!(Index::decode(&mut Fields(&encoded[..encoded.len() - 1])).is_none());
            prop_assert_eq!(index.bytes(), list.iter().map(|e| u64::from(e.bytes)).sum::<u64>());
            let offset = at(probe).max(at(trim));
            let expected: Vec<_> =
                list.iter().copied().filter(|e| e.next_offset > offset).collect();
            prop_assert_eq!(index.starting_at(offset).collect::<Vec<_>>(), expected);
            let timestamp = list.first().map_or(0, |e| e.max_timestamp).saturating_add(1);
            let expected = list.iter().copied().find(|e| e.max_timestamp >= timestamp);
            prop_assert_eq!(index.first_with_timestamp(timestamp), expected);
        }
    }

    #[test]
    fn trimming_everything_keeps_the_end_offset() {
        let mut index = index_of(&extents(&[(9, 0, 5), (9, 0, 6)]));
        index.trim_to(20);
        assert_eq!((index.iter().count(), index.end_offset(), index.bytes()), (0, 20, 0));
        assert_eq!(index.starting_at(20).next(), None);
    }
}
