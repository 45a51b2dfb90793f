//! Aligned memory for direct I/O, the only unsafe code of the crate.
//!
//! A [`Segment`] is one aligned allocation. A [`Region`] is exclusive ownership of a part of it, as
//! `BytesMut` is of a buffer: it can be written, split in two disjoint regions, and frozen. A
//! frozen region is immutable for as long as anyone holds its `Bytes`, so the bytes that were
//! written to disk serve as the tail cache without a copy. When the last region and the last
//! `Bytes` of a segment are gone, its memory returns to the [`SegmentPool`] and is used again.

#![expect(unsafe_code, reason = "aligned memory shared in disjoint parts")]

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use moldau_threads::Mutex;

/// Alignment of memory, file offsets and lengths for direct I/O: the largest logical block size of
/// disks in use.
pub(crate) const BLOCK: usize = 4096;

/// Hands out segments of one size and keeps a bounded number of unused ones.
pub(crate) struct SegmentPool {
    layout: Layout,
    unused_max: usize,
    unused: Mutex<Vec<Memory>>,
    /// Bytes of the segments in use.
    used_bytes: Arc<AtomicUsize>,
}

/// An allocation of the pool's layout; freed when dropped outside the pool.
struct Memory {
    start: NonNull<u8>,
    layout: Layout,
}

// SAFETY: `Memory` owns its allocation; the pointer is not tied to a thread.
unsafe impl Send for Memory {}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: `start` came from `alloc_zeroed` with this layout and is freed only here.
        unsafe { dealloc(self.start.as_ptr(), self.layout) }
    }
}

impl SegmentPool {
    /// A pool of segments of `segment_bytes`, a multiple of [`BLOCK`], that keeps at most
    /// `unused_max` unused ones.
    pub(crate) fn new(segment_bytes: usize, unused_max: usize) -> Arc<SegmentPool> {
        SegmentPool::counting(segment_bytes, unused_max, Arc::default())
    }

    /// One segment of another length, not kept when it is not used, but counted among those of this
    /// pool.
    pub(crate) fn take_of(&self, segment_bytes: usize) -> Region {
        SegmentPool::counting(segment_bytes, 0, Arc::clone(&self.used_bytes)).take()
    }

    fn counting(
        segment_bytes: usize,
        unused_max: usize,
        used_bytes: Arc<AtomicUsize>,
    ) -> Arc<SegmentPool> {
        assert!(segment_bytes > 0 && segment_bytes.is_multiple_of(BLOCK));
        let layout = Layout::from_size_align(segment_bytes, BLOCK)
            .expect("a segment is far smaller than the address space");
        Arc::new(SegmentPool { layout, unused_max, unused: Mutex::new(Vec::new()), used_bytes })
    }

    /// Bytes of the segments in use, also if only a slice of one is held.
    pub(crate) fn used_bytes(&self) -> usize {
        self.used_bytes.load(Ordering::Relaxed)
    }

    /// Length of a segment.
    pub(crate) fn segment_bytes(&self) -> usize {
        self.layout.size()
    }

    /// A whole segment, exclusively owned. Its bytes are initialised, their values are arbitrary.
    pub(crate) fn take(self: &Arc<Self>) -> Region {
        let reused = self.unused.lock().pop();
        let memory = reused.unwrap_or_else(|| self.allocate());
        self.used_bytes.fetch_add(self.layout.size(), Ordering::Relaxed);
        let segment = Segment { memory: Some(memory), pool: Arc::clone(self) };
        Region { segment: Arc::new(segment), start: 0, end: self.layout.size() }
    }

    fn allocate(&self) -> Memory {
        // SAFETY: the layout has a size above zero, asserted in `new`.
        let start = unsafe { alloc_zeroed(self.layout) };
        match NonNull::new(start) {
            Some(start) => Memory { start, layout: self.layout },
            None => handle_alloc_error(self.layout),
        }
    }
}

/// One aligned allocation, shared by disjoint regions and frozen slices.
struct Segment {
    memory: Option<Memory>,
    pool: Arc<SegmentPool>,
}

// SAFETY: the bytes of a segment are reached only through `Region` (exclusive range, `&mut self` to
// write) and `Frozen` (range that no region covers any more), so no two threads can write a byte,
// or write and read it, at the same time.
unsafe impl Sync for Segment {}

impl Segment {
    fn start(&self) -> *mut u8 {
        let memory = self.memory.as_ref().expect("memory leaves a segment only in drop");
        memory.start.as_ptr()
    }
}

impl Drop for Segment {
    fn drop(&mut self) {
        let Some(memory) = self.memory.take() else { return };
        self.pool.used_bytes.fetch_sub(memory.layout.size(), Ordering::Relaxed);
        let mut unused = self.pool.unused.lock();
        if unused.len() < self.pool.unused_max {
            unused.push(memory);
        }
    }
}

/// Exclusive ownership of the bytes `start..end` of a segment.
///
/// Invariant: the ranges of all regions and frozen slices of one segment are pairwise disjoint,
/// apart from frozen slices among themselves.
pub(crate) struct Region {
    segment: Arc<Segment>,
    start: usize,
    end: usize,
}

impl Region {
    pub(crate) fn len(&self) -> usize {
        self.end - self.start
    }

    pub(crate) fn as_mut(&mut self) -> &mut [u8] {
        // SAFETY: the range lies inside the allocation, is initialised, and belongs to this region
        // alone; `&mut self` makes the borrow unique.
        unsafe { std::slice::from_raw_parts_mut(self.segment.start().add(self.start), self.len()) }
    }

    pub(crate) fn as_slice(&self) -> &[u8] {
        // SAFETY: the range lies inside the allocation, is initialised, and can be written only
        // through `&mut self`.
        unsafe { std::slice::from_raw_parts(self.segment.start().add(self.start), self.len()) }
    }

    /// Splits off the first `at` bytes; `self` keeps the rest.
    pub(crate) fn split_to(&mut self, at: usize) -> Region {
        assert!(at <= self.len());
        let head =
            Region { segment: Arc::clone(&self.segment), start: self.start, end: self.start + at };
        self.start += at;
        head
    }

    /// Gives up the right to write: the bytes stay as they are while any `Bytes` refers to them.
    pub(crate) fn freeze(self) -> Bytes {
        Bytes::from_owner(Frozen(self))
    }
}

/// A region that is never written again.
struct Frozen(Region);

impl AsRef<[u8]> for Frozen {
    fn as_ref(&self) -> &[u8] {
        self.0.as_slice()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn split_regions_are_disjoint_and_keep_their_bytes() {
        let pool = SegmentPool::new(2 * BLOCK, 1);
        let mut rest = pool.take();
        let mut head = rest.split_to(BLOCK);
        head.as_mut().fill(1);
        rest.as_mut().fill(2);
        let head = head.freeze();
        let clone = head.slice(10..20);
        drop(head);
        assert_eq!(&clone[..], &[1; 10]);
        assert_eq!(rest.as_slice(), &[2; BLOCK]);
        assert_eq!(clone.as_ptr().addr() % BLOCK, 10);
    }

    #[test]
    fn memory_is_used_again_only_when_nothing_refers_to_it() {
        let pool = SegmentPool::new(BLOCK, 1);
        let frozen = pool.take().freeze();
        let first = frozen.as_ptr();
        let other = pool.take();
        assert_ne!(other.as_slice().as_ptr(), first);
        drop(frozen);
        assert_eq!(pool.take().as_slice().as_ptr(), first);
    }

    #[test]
    fn at_most_the_given_number_of_unused_segments_is_kept() {
        let pool = SegmentPool::new(BLOCK, 1);
        drop((pool.take(), pool.take()));
        assert_eq!(pool.unused.lock().len(), 1);
    }
}
