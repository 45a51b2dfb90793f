//! Counters of the journal and its caches.

use std::sync::atomic::{AtomicU64, Ordering};

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// Counters since the storage was opened; all only grow.
        #[derive(Debug, Default)]
        pub(crate) struct Metrics {
            $(pub(crate) $name: Counter,)*
        }

        /// The counters at one moment.
        #[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
        pub struct MetricsSnapshot {
            $($(#[$doc])* pub $name: u64,)*
        }

        impl Metrics {
            pub(crate) fn snapshot(&self) -> MetricsSnapshot {
                MetricsSnapshot { $($name: self.$name.0.load(Ordering::Relaxed),)* }
            }
        }
    };
}

counters! {
    /// Frames written to the journal.
    frames,
    /// Bytes of frames, headers and padding included.
    frame_bytes,
    /// Flushes of the journal (`fdatasync`).
    flushes,
    /// Nanoseconds spent in writing and flushing frames.
    flush_nanos,
    /// Batches appended.
    batches,
    /// Bytes of batches appended.
    batch_bytes,
    /// Batches that a producer sent again.
    duplicates,
    /// Metadata entries appended.
    metadata_entries,
    /// Journal files that came into use.
    files_started,
    /// Journal files recycled or removed.
    files_retired,
    /// Batches served from memory that was just flushed.
    tail_batches,
    /// Batches served from chunks of the read cache.
    cold_batches,
    /// Chunks found in the read cache.
    chunk_hits,
    /// Chunks read from disk.
    chunk_reads,
    /// Bytes read from disk for readers.
    chunk_read_bytes,
    /// Batches that failed verification when they were read back.
    corrupt_batches,
    /// Appends refused because the disk is full.
    disk_full,
    /// Checkpoints written.
    checkpoints,
    /// Sorted segments written.
    segments_written,
    /// Bytes of sorted segments written.
    segment_bytes_written,
    /// Sorted segments removed.
    segments_removed,
    /// Bytes of segments and frames that scrubbing has verified.
    scrubbed_bytes,
    /// Blocks and frames that scrubbing found damaged, in each pass again.
    scrub_damaged,
    /// Loads and passes of scrubbing that a defect ended.
    defects,
}

/// One counter.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn add(&self, count: usize) {
        self.0.fetch_add(count as u64, Ordering::Relaxed);
    }

    pub(crate) fn value(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}
