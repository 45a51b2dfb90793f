//! The most recently flushed part of the journal, in the memory that it was written from.
//!
//! A reader that falls out of it must read from the disk. Producers at full speed leave too little
//! disk bandwidth for the reader to catch up. So the tail holds more while a reader lags, within a
//! limit.
//!
//! Readers get slices of the very memory, which stays as long as they hold them, also when it has
//! left the tail. The tail then holds less itself. If that does not suffice, readers get copies.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use moldau_threads::Mutex;

use crate::Options;
use crate::io::SegmentPool;

/// Flushed frames, newest last.
pub(crate) struct Tail {
    /// Bytes that are held with or without readers.
    kept: usize,
    /// Bytes that are held at most, while readers lag.
    most: usize,
    /// Where the memory is from.
    pool: Arc<SegmentPool>,
    /// Bytes of the pool that may be in use: those that are held here at most, and those of frames
    /// that are not flushed.
    memory_max: usize,
    parts: Mutex<Parts>,
}

#[derive(Default)]
struct Parts {
    /// Journal position and bytes, ascending and without overlap; there is a gap where the journal
    /// went on in the next file.
    parts: VecDeque<(u64, Bytes)>,
    bytes: usize,
    lag: Lag,
}

/// How far behind the newest byte readers have been lately, in bytes.
#[derive(Default)]
struct Lag {
    /// At most, since `flushed` was last zero, and in the time before.
    current: u64,
    former: u64,
    flushed: usize,
}

impl Tail {
    /// An empty tail of frames from `pool`.
    pub(crate) fn new(options: &Options, pool: Arc<SegmentPool>) -> Tail {
        let kept = options.tail_cache_bytes;
        let most = options.tail_cache_bytes_max.max(kept);
        let others = options.unflushed_bytes_max.saturating_add(2 * pool.segment_bytes());
        let memory_max = most.saturating_add(others);
        Tail { kept, most, pool, memory_max, parts: Mutex::default() }
    }

    /// Bytes that are held.
    pub(crate) fn bytes(&self) -> usize {
        self.parts.lock().bytes
    }

    /// Memory of all frames in use, flushed or not.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.pool.used_bytes()
    }

    /// Adds a frame that was flushed, in parts that follow each other from `position` on.
    pub(crate) fn push(&self, mut position: u64, frame: Vec<Bytes>) {
        let mut dropped = Vec::new();
        let mut tail = self.parts.lock();
        let before = tail.bytes;
        for part in frame {
            let bytes = part.len();
            tail.bytes += bytes;
            tail.parts.push_back((position, part));
            position += bytes as u64;
        }
        let flushed = tail.bytes - before;
        tail.lag.flushed(flushed, self.kept);
        // Memory that lagging readers needed is released slowly: it may soon be needed again, and
        // getting it back from the system is expensive.
        let wanted = tail.wanted(self.kept).max(before.saturating_sub(SHRINK_BYTES));
        let limit = wanted.min(self.most);
        let mut excess = self.excess();
        while tail.bytes > limit || (excess > 0 && tail.bytes > self.kept.min(KEPT_MIN)) {
            let Some((_, part)) = tail.parts.pop_front() else { break };
            tail.bytes -= part.len();
            excess = excess.saturating_sub(part.len());
            dropped.push(part);
        }
        drop(tail);
        // Memory is given back outside the lock.
        drop(dropped);
    }

    /// Adds to `out` the slices of each range, a journal position and a length, up to the first
    /// that is not here, or a copy of them all. Returns the number of ranges that were found.
    pub(crate) fn find(
        &self,
        ranges: impl Iterator<Item = (u64, usize)>,
        out: &mut Vec<Bytes>,
    ) -> usize {
        let (mark, mut found) = (out.len(), 0);
        let mut tail = self.parts.lock();
        for (position, bytes) in ranges {
            if found == 0 {
                tail.note_read(position, self.most);
            }
            let after = tail.parts.partition_point(|(start, _)| *start <= position);
            let Some(at) = after.checked_sub(1) else { break };
            if !slice_parts(tail.parts.range(at..), position, bytes, out) {
                break;
            }
            found += 1;
        }
        drop(tail);
        if found > 0 && self.excess() > 0 {
            let copy = out.get(mark..).unwrap_or_default().concat();
            out.truncate(mark);
            out.push(Bytes::from(copy));
        }
        found
    }

    /// Bytes by which too much of the memory is in use.
    fn excess(&self) -> usize {
        self.pool.used_bytes().saturating_sub(self.memory_max)
    }

    /// Journal position from which on everything durable is here; `None` if nothing is.
    pub(crate) fn start(&self) -> Option<u64> {
        self.parts.lock().parts.front().map(|(start, _)| *start)
    }
}

impl Parts {
    /// Takes note of a read, unless it lags by more than could ever be held. One that has just
    /// fallen out counts: it comes back if nothing goes until it has.
    fn note_read(&mut self, position: u64, limit: usize) {
        let end = self.parts.back().map_or(0, |(start, part)| start + part.len() as u64);
        let lag = end.saturating_sub(position);
        if lag <= limit as u64 {
            self.lag.current = self.lag.current.max(lag);
        }
    }

    /// Bytes to hold: a reader that lags will lag by a little more when it reads next.
    fn wanted(&self, kept: usize) -> usize {
        let lag = self.lag.current.max(self.lag.former).saturating_mul(2);
        usize::try_from(lag).unwrap_or(usize::MAX).max(kept)
    }
}

impl Lag {
    fn flushed(&mut self, bytes: usize, period: usize) {
        self.flushed += bytes;
        if self.flushed >= period {
            *self = Lag { current: 0, former: self.current, flushed: 0 };
        }
    }
}

/// Adds to `out` the slices of `bytes` bytes from `position` on. Adds nothing and returns false if
/// the ascending `parts` do not hold all of them.
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

/// Minimum kept for readers at the end of the journal, regardless of what others hold.
const KEPT_MIN: usize = 4 << 20;
/// By how much less is held after a frame than before it, at most.
const SHRINK_BYTES: usize = 128 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    /// A tail that keeps so many bytes, and four times as many while readers lag.
    fn tail_of(kept: usize, pool: &Arc<SegmentPool>) -> Tail {
        let options = Options {
            tail_cache_bytes: kept,
            tail_cache_bytes_max: 4 * kept,
            unflushed_bytes_max: 0,
            ..Options::new("")
        };
        Tail::new(&options, Arc::clone(pool))
    }

    /// A tail whose memory is not of its pool.
    fn tail(kept: usize) -> Tail {
        tail_of(kept, &SegmentPool::new(SEGMENT, 0))
    }

    const SEGMENT: usize = 64 << 10;

    fn find(tail: &Tail, position: u64, bytes: usize) -> Option<Vec<u8>> {
        let mut out = Vec::new();
        (tail.find([(position, bytes)].into_iter(), &mut out) == 1).then(|| out.concat())
    }

    #[test]
    fn ranges_are_found_across_parts_and_not_across_gaps() {
        let tail = tail(100);
        tail.push(10, vec![Bytes::from_static(b"abc"), Bytes::from_static(b"def")]);
        tail.push(20, vec![Bytes::from_static(b"ghi")]);
        assert_eq!(find(&tail, 11, 4).as_deref(), Some(&b"bcde"[..]));
        assert_eq!(find(&tail, 20, 3).as_deref(), Some(&b"ghi"[..]));
        assert_eq!(find(&tail, 15, 2), None);
        assert_eq!(find(&tail, 9, 2), None);
        assert_eq!(find(&tail, 22, 2), None);
    }

    #[test]
    fn the_oldest_parts_go_when_there_are_enough() {
        let tail = tail(6);
        tail.push(0, vec![Bytes::from_static(b"abc"), Bytes::from_static(b"def")]);
        tail.push(6, vec![Bytes::from_static(b"gh")]);
        assert_eq!((tail.start(), find(&tail, 0, 3)), (Some(3), None));
        assert_eq!(find(&tail, 4, 4).as_deref(), Some(&b"efgh"[..]));
    }

    const MIB: usize = 1 << 20;

    /// A tail that keeps 4 MiB, with 4 MiB in it, and what pushes the next MiB.
    fn full() -> (Tail, impl FnMut(&Tail) -> usize) {
        let tail = tail(4 * MIB);
        let mut position = 0;
        let mut push = move |tail: &Tail| {
            tail.push(position, vec![Bytes::from(vec![0; MIB])]);
            position += MIB as u64;
            tail.bytes() / MIB
        };
        (0..4).for_each(|_| _ = push(&tail));
        (tail, push)
    }

    #[test]
    fn a_reader_that_lags_finds_what_it_reads_next() {
        let (tail, mut push) = full();
        assert!(find(&tail, 0, MIB).is_some());
        // Two MiB are flushed for each that it reads, so that it falls further behind.
        for read in 1..=12 {
            push(&tail);
            let held = push(&tail);
            assert!(find(&tail, (read * MIB) as u64, MIB).is_some(), "{read} of {held} MiB");
            assert_eq!(held, (4 + 2 * read).min(16));
        }
        // At four times what is kept, it has lost.
        push(&tail);
        assert_eq!(push(&tail), 16);
        assert_eq!(find(&tail, 13 * MIB as u64, MIB), None);
    }

    /// Slices that slow readers held kept memory beyond every limit.
    #[test]
    fn memory_that_readers_hold_counts_as_the_tails_own() {
        let pool = SegmentPool::new(SEGMENT, 0);
        let kept = 4 * MIB;
        let tail = tail_of(kept, &pool);
        let most = 4 * kept + 2 * SEGMENT;
        let mut slices = Vec::new();
        for at in 0..1000 {
            let position = (at * SEGMENT) as u64;
            tail.push(position, vec![pool.take().freeze()]);
            // A byte is enough to hold a segment.
            assert_eq!(tail.find([(position, 1)].into_iter(), &mut slices), 1);
            assert!(pool.used_bytes() <= most + KEPT_MIN, "{} at {at}", pool.used_bytes());
        }
        assert_eq!(slices.len(), 1000);
        assert!(tail.bytes() <= KEPT_MIN, "{}", tail.bytes());
        drop(slices);
        let last = 1000 * SEGMENT as u64;
        tail.push(last, vec![pool.take().freeze()]);
        let mut slices = Vec::new();
        tail.find([(last, 1)].into_iter(), &mut slices);
        assert_eq!(tail.bytes(), pool.used_bytes());
        drop(tail);
        assert_eq!(pool.used_bytes(), SEGMENT, "once there is room, readers get slices");
    }

    #[test]
    fn a_reader_that_just_fell_out_keeps_what_is_left_from_going() {
        let (tail, mut push) = full();
        (0..3).for_each(|_| _ = push(&tail));
        assert_eq!((tail.start(), find(&tail, 2 * MIB as u64, MIB)), (Some(3 * MIB as u64), None));
        (0..3).for_each(|_| _ = push(&tail));
        assert!(find(&tail, 3 * MIB as u64, MIB).is_some());
    }

    #[test]
    fn memory_is_given_back_slowly_when_readers_have_caught_up() {
        let (tail, mut push) = full();
        assert!(find(&tail, 0, MIB).is_some());
        let most = (0..4).map(|_| push(&tail)).max();
        assert_eq!(most, Some(8));
        // Readers that keep up need nothing beyond what is kept.
        let held: Vec<_> = (8..100u64)
            .map(|at| {
                let held = push(&tail);
                assert!(find(&tail, at * MIB as u64, MIB).is_some());
                held
            })
            .collect();
        let falls_slowly = held.is_sorted_by(|before, after| before - after <= 1);
        assert!(falls_slowly && held.last() == Some(&4), "{held:?}");
    }
}
