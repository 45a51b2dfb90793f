//! How the memory that the operator grants is divided.
//!
//! What is not for records on their way to and from the disk, or for work in the background, is the
//! budget of the connections. Memory beside all of it (code, stacks, indexes, what the allocator
//! keeps, buffers of the kernel) comes on top.

const MIB: usize = 1 << 20;

/// The least memory that a broker runs in.
pub const MEMORY_BYTES_MIN: usize = 64 * MIB;

/// The parts of a broker's memory, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MemoryPlan {
    /// Of the tail cache, while readers keep up.
    pub(crate) tail_cache: usize,
    /// Of the tail cache, while readers lag.
    pub(crate) tail_cache_max: usize,
    pub(crate) read_cache: usize,
    pub(crate) unflushed: usize,
    pub(crate) sort: usize,
    pub(crate) clean: usize,
    /// For requests, answers and work on them.
    pub(crate) budget: usize,
}

impl MemoryPlan {
    /// Each part has a size that is of use, and a share of the memory where that is smaller.
    pub(crate) fn new(bytes: usize, tail_cache: Option<usize>) -> Self {
        let bytes = bytes.max(MEMORY_BYTES_MIN);
        let lagging = (bytes / 4).min(1024 * MIB);
        let tail_cache = tail_cache.unwrap_or_else(|| (256 * MIB).min(lagging / 4));
        let tail_cache_max = lagging.min(tail_cache.saturating_mul(4)).max(tail_cache);
        let read_cache = (64 * MIB).min(bytes / 16);
        let unflushed = (64 * MIB).min(bytes / 8);
        let sort = (128 * MIB).min(bytes / 8);
        let clean = (32 * MIB).min(bytes / 32);
        // Chunks that answers held are kept for the next reads, as many as the cache has.
        let planned = tail_cache_max + 2 * read_cache + unflushed + sort + clean;
        let budget = bytes.saturating_sub(planned).max(bytes / 8);
        Self { tail_cache, tail_cache_max, read_cache, unflushed, sort, clean, budget }
    }
}
