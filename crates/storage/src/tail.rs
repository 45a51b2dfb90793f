//! The most recently flushed part of the journal, in the memory that it was written from.

use std::collections::VecDeque;
use std::sync::Mutex;

use bytes::Bytes;

use crate::sync::lock;

/// Flushed frames, newest last, up to a number of bytes.
pub(crate) struct Tail {
    capacity: usize,
    parts: Mutex<Parts>,
}

#[derive(Default)]
struct Parts {
    /// Journal position and bytes, ascending and without overlap; there is a gap where the journal
    /// went on in the next file.
    parts: VecDeque<(u64, Bytes)>,
    bytes: usize,
}

impl Tail {
    pub(crate) fn new(capacity: usize) -> Tail {
        Tail { capacity, parts: Mutex::default() }
    }

    /// Bytes that are held.
    pub(crate) fn bytes(&self) -> usize {
        lock(&self.parts).bytes
    }

    /// Adds a frame that was flushed, in parts that follow each other from `position` on.
    pub(crate) fn push(&self, mut position: u64, frame: Vec<Bytes>) {
        let mut dropped = Vec::new();
        let mut tail = lock(&self.parts);
        for part in frame {
            let bytes = part.len();
            tail.bytes += bytes;
            tail.parts.push_back((position, part));
            position += bytes as u64;
        }
        while tail.bytes > self.capacity {
            let Some((_, part)) = tail.parts.pop_front() else { break };
            tail.bytes -= part.len();
            dropped.push(part);
        }
        drop(tail);
        // Memory is given back outside the lock.
        drop(dropped);
    }

    /// Adds to `out` the slices of each range, a journal position and a length, up to the first
    /// that is not here. Returns the number of ranges that were found.
    pub(crate) fn find(
        &self,
        ranges: impl Iterator<Item = (u64, usize)>,
        out: &mut Vec<Bytes>,
    ) -> usize {
        let tail = lock(&self.parts);
        let mut found = 0;
        for (position, bytes) in ranges {
            let after = tail.parts.partition_point(|(start, _)| *start <= position);
            let Some(at) = after.checked_sub(1) else { break };
            if !slice_parts(tail.parts.range(at..), position, bytes, out) {
                break;
            }
            found += 1;
        }
        found
    }

    /// Journal position from which on everything durable is here; `None` if nothing is.
    pub(crate) fn start(&self) -> Option<u64> {
        lock(&self.parts).parts.front().map(|(start, _)| *start)
    }
}

/// Adds to `out` the slices that make up `bytes` bytes from `position` on; adds nothing and says so
/// if `parts`, which ascend, do not hold all of them.
pub(crate) fn slice_parts<'a>(
    parts: impl Iterator<Item = &'a (u64, Bytes)>,
    mut position: u64,
    bytes: usize,
    out: &mut Vec<Bytes>,
) -> bool {
    let mark = out.len();
    let mut rest = bytes;
    for (start, part) in parts {
        let skip = position.checked_sub(*start).and_then(|skip| usize::try_from(skip).ok());
        let Some(skip) = skip.filter(|skip| *skip < part.len()) else { break };
        let count = rest.min(part.len() - skip);
        out.push(part.slice(skip..skip + count));
        position += count as u64;
        rest -= count;
        if rest == 0 {
            return true;
        }
    }
    out.truncate(mark);
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(tail: &Tail, position: u64, bytes: usize) -> Option<Vec<u8>> {
        let mut out = Vec::new();
        (tail.find([(position, bytes)].into_iter(), &mut out) == 1).then(|| out.concat())
    }

    #[test]
    fn ranges_are_found_across_parts_and_not_across_gaps() {
        let tail = Tail::new(100);
        tail.push(10, vec![Bytes::from_static(b"abc"), Bytes::from_static(b"def")]);
        tail.push(20, vec![Bytes::from_static(b"ghi")]);
        assert_eq!(find(&tail, 11, 4).as_deref(), Some(&b"bcde"[..]));
        assert_eq!(find(&tail, 20, 3).as_deref(), Some(&b"ghi"[..]));
        assert_eq!(find(&tail, 15, 2), None);
        assert_eq!(find(&tail, 9, 2), None);
        assert_eq!(find(&tail, 22, 2), None);
    }

    #[test]
    fn the_oldest_parts_go_when_the_capacity_is_reached() {
        let tail = Tail::new(6);
        tail.push(0, vec![Bytes::from_static(b"abc"), Bytes::from_static(b"def")]);
        tail.push(6, vec![Bytes::from_static(b"gh")]);
        assert_eq!((tail.start(), find(&tail, 0, 3)), (Some(3), None));
        assert_eq!(find(&tail, 4, 4).as_deref(), Some(&b"efgh"[..]));
    }
}
