//! The batches of what was read, by their headers, and the part of them that was acquired.

use bytes::Bytes;
use moldau_coordinator::share_partitions::FetchedBatch;
use moldau_protocol::messages::fetch_response::AbortedTransaction;
use moldau_records::{Attributes, BATCH_HEADER_LEN};

/// Bytes before those that the length of a batch counts.
const LENGTH_END: usize = 12;

/// A batch and its place in what was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PlacedBatch {
    pub(super) batch: FetchedBatch,
    at: usize,
    end: usize,
}

/// Finds the batches. Markers are not for delivery, and neither is what these transactions hold,
/// which are in the order of their first offset.
pub(super) fn walk(pieces: &[Bytes], aborted: &[AbortedTransaction]) -> Vec<PlacedBatch> {
    let mut headers = Headers { pieces, piece_at: 0 };
    let (mut batches, mut at) = (Vec::new(), 0);
    let mut aborted = aborted.iter().peekable();
    let mut open = Vec::new();
    while let Some(header) = headers.at(at) {
        let Some((batch, size)) = Header::parse(&header) else { break };
        while let Some(begun) = aborted.next_if(|it| it.first_offset <= batch.last) {
            open.push(begun.producer_id);
        }
        let is_aborted = batch.is_transactional && open.contains(&batch.producer_id);
        if batch.is_control {
            open.retain(|producer_id| *producer_id != batch.producer_id);
        }
        let is_delivered = !batch.is_control && !is_aborted;
        let batch = FetchedBatch { first: batch.first, last: batch.last, is_delivered };
        batches.push(PlacedBatch { batch, at, end: at + size });
        at += size;
    }
    batches
}

/// The bytes of the batches that hold offsets of a range.
pub(super) fn cut(pieces: &[Bytes], batches: &[PlacedBatch], first: i64, last: i64) -> Vec<Bytes> {
    let within = || batches.iter().filter(|it| it.batch.last >= first && it.batch.first <= last);
    let from = within().map(|it| it.at).next().unwrap_or(0);
    let to = within().map(|it| it.end).next_back().unwrap_or(0);
    let mut at = 0;
    let mut kept = Vec::new();
    for piece in pieces {
        let (begin, end) = (from.max(at), to.min(at + piece.len()));
        if begin < end {
            kept.push(piece.slice(begin - at..end - at));
        }
        at += piece.len();
    }
    kept
}

struct Header {
    first: i64,
    last: i64,
    producer_id: i64,
    is_transactional: bool,
    is_control: bool,
}

impl Header {
    /// The header, and the size of its batch.
    fn parse(bytes: &[u8; BATCH_HEADER_LEN]) -> Option<(Self, usize)> {
        let first = i64::from_be_bytes(field(bytes, 0)?);
        let length = usize::try_from(i32::from_be_bytes(field(bytes, 8)?)).ok()?;
        let attributes = Attributes::from_bits(u16::from_be_bytes(field(bytes, 21)?));
        let delta = i64::from(i32::from_be_bytes(field(bytes, 23)?));
        let header = Self {
            first,
            last: first.checked_add(delta).filter(|last| *last >= first && first >= 0)?,
            producer_id: i64::from_be_bytes(field(bytes, 43)?),
            is_transactional: attributes.is_transactional(),
            is_control: attributes.is_control(),
        };
        let size = length.checked_add(LENGTH_END).filter(|size| *size >= BATCH_HEADER_LEN)?;
        Some((header, size))
    }
}

fn field<const N: usize>(bytes: &[u8; BATCH_HEADER_LEN], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk().copied()
}

/// Reads headers at growing places in pieces that follow each other.
struct Headers<'a> {
    pieces: &'a [Bytes],
    /// Place of the first of `pieces`.
    piece_at: usize,
}

impl Headers<'_> {
    fn at(&mut self, at: usize) -> Option<[u8; BATCH_HEADER_LEN]> {
        while let Some((first, rest)) = self.pieces.split_first()
            && self.piece_at + first.len() <= at
        {
            self.piece_at += first.len();
            self.pieces = rest;
        }
        let mut header = [0; BATCH_HEADER_LEN];
        let mut filled = 0;
        let mut skip = at.checked_sub(self.piece_at)?;
        for piece in self.pieces {
            let part = piece.get(skip..)?;
            let count = part.len().min(BATCH_HEADER_LEN - filled);
            header.get_mut(filled..filled + count)?.copy_from_slice(part.get(..count)?);
            filled += count;
            skip = 0;
            if filled == BATCH_HEADER_LEN {
                return Some(header);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use moldau_records::{
        BatchBuilder, BatchOptions, Compression, Compressor, Marker, MarkerBatch, Producer,
        patch_base_offset,
    };

    use super::*;

    fn data(first: i64, records: usize, producer: Option<i64>) -> Vec<u8> {
        let options = BatchOptions {
            base_offset: first,
            attributes: Attributes::default().with_transactional(producer.is_some()),
            producer: producer.map(|id| Producer { id, epoch: 0, base_sequence: 0 }),
            ..BatchOptions::default()
        };
        let mut builder = BatchBuilder::new(options);
        for _ in 0..records {
            builder.append(0, None, Some(b"value"), std::iter::empty()).unwrap();
        }
        builder.finish_bytes(Compression::None, &mut Compressor::default()).unwrap().to_vec()
    }

    fn marker(at: i64, producer: i64) -> Vec<u8> {
        let mut bytes = MarkerBatch::new(producer, 0, Marker::Abort, 0).view().bytes().to_vec();
        patch_base_offset(&mut bytes, at).unwrap();
        bytes
    }

    fn pieces_of(bytes: &[u8], size: usize) -> Vec<Bytes> {
        bytes.chunks(size).map(Bytes::copy_from_slice).collect()
    }

    #[test]
    fn batches_are_found_however_the_bytes_are_cut() {
        let parts = [data(0, 3, None), data(3, 2, Some(7)), marker(5, 7), data(6, 1, Some(7))];
        let bytes = parts.concat();
        let aborted =
            [AbortedTransaction { producer_id: 7, first_offset: 3, ..Default::default() }];
        for size in [1, 7, 60, 61, 62, 200, bytes.len()] {
            let pieces = pieces_of(&bytes, size);
            let found = walk(&pieces, &aborted);
            let batch = |first, last, is_delivered| FetchedBatch { first, last, is_delivered };
            let expected =
                [batch(0, 2, true), batch(3, 4, false), batch(5, 5, false), batch(6, 6, true)];
            assert_eq!(found.iter().map(|it| it.batch).collect::<Vec<_>>(), expected);
            assert_eq!(cut(&pieces, &found, 1, 1).concat(), parts[0]);
            assert_eq!(cut(&pieces, &found, 4, 5).concat(), parts[1..3].concat());
            assert_eq!(cut(&pieces, &found, 0, 6).concat(), bytes);
            let all = walk(&pieces, &[]);
            assert_eq!(all.iter().filter(|it| it.batch.is_delivered).count(), 3);
        }
        assert!(walk(&pieces_of(&bytes[..60], 9), &[]).is_empty());
    }
}
