//! Memory that the sessions of a thread share: receive buffers, and frames that filters hold.
//!
//! A receive buffer has a permit of the memory budget, which it keeps while it waits for the next
//! session. Where none is to be had, sessions go on with small buffers, which the limit of
//! connections bounds.
//!
//! Returned buffers are kept for the next use, so that a busy thread works in memory that is mapped
//! and in its cache. For a fresh frame of a MB the kernel makes each page in a fault of its own.
//! That costs more than sealing the frame's content. Buffers that were unused for a while are
//! freed, so that a thread without traffic keeps none.

use std::cell::RefCell;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use moldau_net::{MemoryAccount, MemoryUse, Permit};
use tokio::runtime::Handle;

/// Size of a receive buffer. One read takes what a socket commonly holds; more does not lower the
/// cost per byte and falls out of the processor's second-level cache.
pub(crate) const BUFFER_BYTES: usize = 256 * 1024;

/// Size of a buffer where memory is scarce: an answer that waits in it until it is whole fits.
pub(crate) const SMALL_BUFFER_BYTES: usize = 32 * 1024;

/// Bytes of receive buffers that a thread keeps for each direction.
const BUFFERS_KEPT_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Bytes of frames that a thread keeps: two times what a consumer fetches of ten partitions by
/// default, as it comes and as it is sent on, with the half that a growing vector has to spare.
const FRAMES_KEPT_BYTES_MAX: usize = 32 * 1024 * 1024;

/// The same where less memory is planned for it.
static FRAMES_KEPT_BYTES_PLANNED: AtomicUsize = AtomicUsize::new(FRAMES_KEPT_BYTES_MAX);

/// The smallest frame that is worth keeping. The allocator has such small pieces at hand.
const FRAME_KEPT_BYTES_MIN: usize = 16 * 1024;

/// How often unused buffers are freed: much longer than the time between two messages of a busy
/// connection, much shorter than an operator's look at the memory of an idle one.
const UNUSED_FREED_INTERVAL: Duration = Duration::from_secs(1);

thread_local! {
    static POOL: RefCell<Pool> = const { RefCell::new(Pool::new()) };
}

/// Plans with so many bytes of frames that each thread keeps at most.
pub(crate) fn plan_frames_kept(bytes: usize) {
    FRAMES_KEPT_BYTES_PLANNED.store(bytes.min(FRAMES_KEPT_BYTES_MAX), Ordering::Relaxed);
}

/// A receive buffer.
#[derive(Debug)]
pub(crate) struct Buffer {
    bytes: Box<[u8]>,
    /// Of a buffer of full size.
    permit: Option<Permit>,
    /// The permit is the thread's own, so that the buffer can be kept.
    is_shared: bool,
}

impl Buffer {
    /// A full-size buffer with the permit of a session.
    pub(crate) fn with_permit(permit: Permit) -> Self {
        let bytes = vec![0; BUFFER_BYTES].into_boxed_slice();
        Self { bytes, permit: Some(permit), is_shared: false }
    }

    fn small() -> Self {
        let bytes = vec![0; SMALL_BUFFER_BYTES].into_boxed_slice();
        Self { bytes, permit: None, is_shared: false }
    }

    /// Whether there are larger ones.
    pub(crate) fn is_small(&self) -> bool {
        self.permit.is_none()
    }
}

impl Deref for Buffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.bytes
    }
}

/// A buffer of [`BUFFER_BYTES`] if there is memory for it, else a small one. A connection holds one
/// only while bytes are in it, so that idle connections cost none and busy ones share few, which
/// stay in the cache. Where a runtime is at work, the caller is a task of a local set, and another
/// frees what is unused.
pub(crate) fn take_buffer(memory: &MemoryAccount, of: MemoryUse) -> Buffer {
    if POOL.with_borrow(|pool| !pool.freeing) && Handle::try_current().is_ok() {
        POOL.with_borrow_mut(|pool| pool.freeing = true);
        tokio::task::spawn_local(free_unused(Freeing));
    }
    let kept = POOL.with_borrow_mut(|pool| {
        pool.buffers_out += 1;
        pool.buffers(of).take(BUFFER_BYTES)
    });
    kept.unwrap_or_else(|| fresh_buffer(memory, of))
}

#[cold]
fn fresh_buffer(memory: &MemoryAccount, of: MemoryUse) -> Buffer {
    let permit = POOL.with_borrow_mut(|pool| {
        let account = pool.account.get_or_insert_with(|| memory.budget().account());
        account.try_acquire_spare(of, BUFFER_BYTES)
    });
    match permit {
        Some(permit) => Buffer { is_shared: true, ..Buffer::with_permit(permit) },
        None => Buffer::small(),
    }
}

/// Gives a buffer back.
pub(crate) fn give_buffer(buffer: Buffer, of: MemoryUse) {
    POOL.with_borrow_mut(|pool| {
        pool.buffers_out -= 1;
        if buffer.is_shared {
            pool.buffers(of).give(buffer, BUFFERS_KEPT_BYTES_MAX);
        }
    });
}

/// An empty vector for a frame of so many bytes, with room for them if one is kept. If none is, it
/// has no room: a length alone allocates nothing.
pub(crate) fn take_frame(bytes: usize) -> Vec<u8> {
    if bytes < FRAME_KEPT_BYTES_MIN {
        return Vec::new();
    }
    POOL.with_borrow_mut(|pool| pool.frames.take(bytes)).unwrap_or_default()
}

/// Gives back what a frame was in.
pub(crate) fn give_frame(mut frame: Vec<u8>) {
    if frame.capacity() >= FRAME_KEPT_BYTES_MIN {
        frame.clear();
        let kept_max = FRAMES_KEPT_BYTES_PLANNED.load(Ordering::Relaxed);
        POOL.with_borrow_mut(|pool| pool.frames.give(frame, kept_max));
    }
}

/// What a thread keeps.
struct Pool {
    request_buffers: Kept<Buffer>,
    answer_buffers: Kept<Buffer>,
    frames: Kept<Vec<u8>>,
    /// Whose permits the buffers have.
    account: Option<MemoryAccount>,
    /// Buffers that will be given back.
    buffers_out: usize,
    /// Whether a task frees what is unused.
    freeing: bool,
}

impl Pool {
    const fn new() -> Self {
        Self {
            request_buffers: Kept::new(),
            answer_buffers: Kept::new(),
            frames: Kept::new(),
            account: None,
            buffers_out: 0,
            freeing: false,
        }
    }

    fn buffers(&mut self, of: MemoryUse) -> &mut Kept<Buffer> {
        match of {
            MemoryUse::Request => &mut self.request_buffers,
            MemoryUse::Answer | MemoryUse::Work => &mut self.answer_buffers,
        }
    }

    /// Frees what was not needed since the last call; whether there will be something to free.
    fn free_unused(&mut self) -> bool {
        self.request_buffers.free_unused();
        self.answer_buffers.free_unused();
        self.frames.free_unused();
        let buffers = self.request_buffers.pieces.len() + self.answer_buffers.pieces.len();
        self.buffers_out + buffers + self.frames.pieces.len() > 0
    }
}

/// Pieces of memory, those that were given last at the end.
struct Kept<T> {
    pieces: Vec<T>,
    bytes: usize,
    /// The fewest pieces that were there since unused ones were freed.
    fewest: usize,
}

trait Piece {
    fn room(&self) -> usize;
}

impl Piece for Buffer {
    fn room(&self) -> usize {
        self.len()
    }
}

impl Piece for Vec<u8> {
    fn room(&self) -> usize {
        self.capacity()
    }
}

impl<T: Piece> Kept<T> {
    const fn new() -> Self {
        Self { pieces: Vec::new(), bytes: 0, fewest: 0 }
    }

    /// The smallest piece with room for so many bytes, of these the last given.
    fn take(&mut self, bytes: usize) -> Option<T> {
        let fitting = self.pieces.iter().enumerate().rev().filter(|(_, it)| it.room() >= bytes);
        let (place, _) = fitting.min_by_key(|(_, piece)| piece.room())?;
        let piece = self.pieces.remove(place);
        self.bytes -= piece.room();
        self.fewest = self.fewest.min(self.pieces.len());
        Some(piece)
    }

    /// Keeps a piece in the place of the oldest ones if need be.
    fn give(&mut self, piece: T, bytes_max: usize) {
        if piece.room() > bytes_max {
            return;
        }
        self.bytes += piece.room();
        self.pieces.push(piece);
        while self.bytes > bytes_max {
            self.free_oldest();
        }
    }

    fn free_unused(&mut self) {
        for _ in 0..self.fewest {
            self.free_oldest();
        }
        self.fewest = self.pieces.len();
    }

    fn free_oldest(&mut self) {
        let oldest = self.pieces.remove(0);
        self.bytes -= oldest.room();
        self.fewest = self.fewest.min(self.pieces.len());
    }
}

/// Says in the end that no task frees what is unused, also if its runtime ends before it.
struct Freeing;

impl Drop for Freeing {
    fn drop(&mut self) {
        // A thread that ends has no pool left.
        let _gone = POOL.try_with(|pool| pool.borrow_mut().freeing = false);
    }
}

/// Frees what is unused until there is nothing more.
async fn free_unused(_freeing: Freeing) {
    loop {
        tokio::time::sleep(UNUSED_FREED_INTERVAL).await;
        if !POOL.with_borrow_mut(Pool::free_unused) {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KB: usize = 1024;

    fn frame(bytes: usize) -> Vec<u8> {
        Vec::with_capacity(bytes)
    }

    fn rooms(kept: &Kept<Vec<u8>>) -> Vec<usize> {
        kept.pieces.iter().map(Vec::capacity).collect()
    }

    #[test]
    fn a_frame_goes_on_in_the_memory_of_another() {
        let mut first = frame(100 * KB);
        first.push(1);
        let place = first.as_ptr();
        give_frame(first);
        let second = take_frame(80 * KB);
        assert_eq!((second.as_ptr(), second.len()), (place, 0));
        assert_eq!(take_frame(80 * KB).capacity(), 0);
    }

    #[test]
    fn a_length_alone_allocates_nothing() {
        let allocated = allocation_counter::measure(|| {
            assert_eq!(take_frame(usize::MAX).capacity(), 0);
        });
        assert_eq!(allocated.count_total, 0);
    }

    #[test]
    fn small_frames_are_not_kept() {
        give_frame(frame(FRAME_KEPT_BYTES_MIN - 1));
        give_frame(frame(FRAME_KEPT_BYTES_MIN));
        POOL.with_borrow(|pool| assert_eq!(rooms(&pool.frames), [FRAME_KEPT_BYTES_MIN]));
        assert_eq!(take_frame(FRAME_KEPT_BYTES_MIN - 1).capacity(), 0);
    }

    #[test]
    fn the_smallest_that_fits_is_taken() {
        let mut kept = Kept::new();
        for bytes in [40, 20, 30] {
            kept.give(frame(bytes), 100);
        }
        assert_eq!(kept.take(25).map(|piece| piece.capacity()), Some(30));
        assert_eq!(kept.take(41), None);
        assert_eq!((rooms(&kept), kept.bytes), (vec![40, 20], 60));
    }

    /// Sessions whose clients took nothing held 256 KiB each, however many they were.
    #[test]
    fn buffers_are_small_where_memory_is_scarce() {
        let budget = moldau_net::MemoryBudget::new(32 << 20);
        let memory = budget.account();
        let take = |of| (0..100).map(|_| take_buffer(&memory, of)).collect::<Vec<_>>();
        let answers = take(MemoryUse::Answer);
        let requests = take(MemoryUse::Request);
        for (of, buffers) in [(MemoryUse::Answer, answers), (MemoryUse::Request, requests)] {
            let large = buffers.iter().filter(|buffer| !buffer.is_small()).count();
            let reading = budget.read(of);
            assert!(large > 2 && reading.used == large * BUFFER_BYTES, "{large}: {reading:?}");
            assert!(reading.used <= reading.limit && large < 50, "{large}: {reading:?}");
            let small = buffers.iter().filter(|buffer| buffer.len() == SMALL_BUFFER_BYTES).count();
            assert_eq!(small, 100 - large);
            buffers.into_iter().for_each(|buffer| give_buffer(buffer, of));
            // They are kept with their permits, and freed with them.
            let kept = budget.read(of).used;
            assert!(kept > 0 && kept <= BUFFERS_KEPT_BYTES_MAX, "{kept}");
            assert!(!take_buffer(&memory, of).is_small());
        }
        POOL.with_borrow_mut(|pool| while pool.free_unused() && pool.buffers_out > 2 {});
    }

    #[test]
    fn what_is_kept_is_bounded_and_the_oldest_make_room() {
        let mut kept = Kept::new();
        for bytes in [40, 20, 30, 50] {
            kept.give(frame(bytes), 100);
        }
        assert_eq!((rooms(&kept), kept.bytes), (vec![20, 30, 50], 100));
        kept.give(frame(101), 100);
        assert_eq!(kept.pieces.len(), 3);
        kept.give(frame(100), 100);
        assert_eq!(rooms(&kept), [100]);
    }

    #[test]
    fn what_was_not_needed_between_two_looks_is_freed() {
        let mut pool = Pool::new();
        for bytes in [10, 20, 30] {
            pool.frames.give(frame(bytes), 100);
        }
        // All came since the look before.
        assert!(pool.free_unused());
        let needed = pool.frames.take(30).expect("it is kept");
        pool.frames.give(needed, 100);
        assert!(pool.free_unused());
        assert_eq!((rooms(&pool.frames), pool.frames.bytes), (vec![30], 30));
        assert!(!pool.free_unused());
        assert_eq!(pool.frames.bytes, 0);
    }

    #[test]
    fn a_thread_goes_on_freeing_while_a_buffer_is_out() {
        let mut pool = Pool { buffers_out: 1, ..Pool::new() };
        assert!(pool.free_unused());
        pool.buffers_out = 0;
        assert!(!pool.free_unused());
    }
}
