//! Reads: offsets below the high watermark, through a cache of byte ranges.

mod cache;
mod lookup;

use std::ops::Range;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep_until};

use crate::Error;
use crate::object;
use crate::sequencer::{
    AbortedTransaction, Answer, Extent, Find, Found, LogId, ObjectKey, Sequencer,
};
use crate::store::Store;
use crate::wakes::Wakes;

use self::cache::Cache;

pub use self::lookup::{Lookup, TimedRecord};

/// Limits of reads.
#[derive(Debug, Clone, Copy)]
pub struct ReaderOptions {
    /// Bytes of objects in memory.
    pub cache_bytes: usize,
    /// Bytes that are read at once of an object that is not sorted, for the readers of all its
    /// logs.
    pub block_bytes: u64,
    /// A read that waits for records looks them up this often, whether it is woken or not.
    pub poll: Duration,
    /// Reads of recent objects at a time.
    pub tail_reads_max: usize,
    /// Reads of sorted objects at a time, so that they do not delay those of recent ones.
    pub cold_reads_max: usize,
}

impl Default for ReaderOptions {
    fn default() -> Self {
        Self {
            cache_bytes: 512 << 20,
            block_bytes: 16 << 20,
            poll: Duration::from_millis(500),
            tail_reads_max: 64,
            cold_reads_max: 8,
        }
    }
}

/// Records of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Records {
    /// First offset that can be read.
    pub start_offset: i64,
    /// Offset behind the last record.
    pub high_watermark: i64,
    /// Offset before which every transaction has ended.
    pub last_stable_offset: i64,
    /// Leader epoch of the log.
    pub leader_epoch: i32,
    /// Whole batches with their offsets, from the one that holds the wanted offset. Empty at the
    /// high watermark, and at the last stable offset if only what is committed is read.
    pub batches: Vec<Bytes>,
    /// Offset behind the batches, or the wanted one if there are none.
    pub next_offset: i64,
    /// The aborted transactions that the batches hold parts of, in order of their first offsets;
    /// none unless only what is committed is read.
    pub aborted: Vec<AbortedTransaction>,
}

/// What is counted of reads.
#[derive(Debug)]
pub struct ReaderMetrics {
    /// Ranges of objects that were in the cache, or on their way into it.
    pub hits: AtomicU64,
    /// Those that were not.
    pub misses: AtomicU64,
    /// Bytes in the cache.
    pub cached_bytes: AtomicUsize,
    /// Their limit.
    pub cached_bytes_max: usize,
    /// Reads that met an object which is damaged or lost.
    pub damaged: AtomicU64,
}

impl ReaderMetrics {
    fn new(cached_bytes_max: usize) -> Self {
        Self {
            hits: AtomicU64::new(0),
            misses: AtomicU64::new(0),
            cached_bytes: AtomicUsize::new(0),
            cached_bytes_max,
            damaged: AtomicU64::new(0),
        }
    }

    /// Counts an object that is damaged or lost.
    fn note<T>(&self, answer: Answer<T>) -> Answer<T> {
        if matches!(answer, Err(Error::Damaged { .. })) {
            self.damaged.fetch_add(1, Ordering::Relaxed);
        }
        answer
    }
}

/// What of a log a reader is to see.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum View {
    All,
    Committed,
}

/// Reads of one broker.
#[derive(Debug)]
pub struct Reader<Q, S> {
    sequencer: Arc<Q>,
    store: Arc<S>,
    block_bytes: u64,
    poll: Duration,
    cache: Cache,
    metrics: Arc<ReaderMetrics>,
    tail_reads: Semaphore,
    cold_reads: Semaphore,
}

impl<Q: Sequencer, S: Store> Reader<Q, S> {
    /// An empty cache over the store.
    pub fn new(sequencer: Arc<Q>, store: Arc<S>, options: ReaderOptions) -> Self {
        let metrics = Arc::new(ReaderMetrics::new(options.cache_bytes));
        Self {
            sequencer,
            store,
            block_bytes: options.block_bytes.max(1),
            poll: options.poll.max(POLL_MIN),
            cache: Cache::new(options.cache_bytes, metrics.clone()),
            metrics,
            tail_reads: Semaphore::new(options.tail_reads_max.max(1)),
            cold_reads: Semaphore::new(options.cold_reads_max.max(1)),
        }
    }

    /// What is counted of the reads.
    pub fn metrics(&self) -> &Arc<ReaderMetrics> {
        &self.metrics
    }

    /// Reads from an offset on: the first extent, and more while they fit into `bytes_max`, up to
    /// an object that is damaged or lost.
    ///
    /// # Errors
    /// [`Error::UnknownLog`], [`Error::OffsetOutOfRange`], [`Error::Damaged`], or a retriable one.
    pub async fn read(&self, log: LogId, offset: i64, bytes_max: usize) -> Answer<Records> {
        self.read_view(log, offset, bytes_max, View::All).await
    }

    /// As [`Self::read`], but up to the last stable offset, with the aborted transactions named.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub async fn read_committed(
        &self,
        log: LogId,
        offset: i64,
        bytes_max: usize,
    ) -> Answer<Records> {
        self.read_view(log, offset, bytes_max, View::Committed).await
    }

    async fn read_view(
        &self,
        log: LogId,
        offset: i64,
        bytes_max: usize,
        view: View,
    ) -> Answer<Records> {
        let mut missing = None;
        for _ in 0..LOOKUPS_MAX {
            match self.read_once(log, offset, bytes_max, view).await {
                // The extents were trimmed or swapped after the lookup.
                Err(Error::ObjectMissing(key)) => missing = Some(key),
                answer => return self.metrics.note(answer),
            }
        }
        let key = missing.expect("a read ends, or misses an object");
        self.metrics.note(Err(Error::Damaged { key, reason: LOST }))
    }

    /// As [`Self::read`], but at the high watermark it waits for records until the deadline.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub async fn read_next(
        &self,
        log: LogId,
        offset: i64,
        bytes_max: usize,
        wakes: &Wakes,
        deadline: Instant,
    ) -> Answer<Records> {
        let waiting = wakes.wait(log);
        loop {
            let mut woken = pin!(waiting.woken());
            // A wake during the lookup counts.
            woken.as_mut().enable();
            let records = self.read(log, offset, bytes_max).await?;
            let now = Instant::now();
            if !records.batches.is_empty() || now >= deadline {
                return Ok(records);
            }
            let poll = deadline.min(now + self.poll);
            tokio::select! {
                () = woken => {}
                () = sleep_until(poll) => {}
            }
        }
    }

    async fn read_once(
        &self,
        log: LogId,
        offset: i64,
        bytes_max: usize,
        view: View,
    ) -> Answer<Records> {
        let find = Find { log, offset, extents_max: EXTENTS_MAX };
        let found = self.find(find).await?;
        if offset < found.start_offset || offset > found.high_watermark {
            return Err(Error::OffsetOutOfRange(offset));
        }
        let end = match view {
            View::All => found.high_watermark,
            View::Committed => found.last_stable_offset,
        };
        let mut records = Records {
            start_offset: found.start_offset,
            high_watermark: found.high_watermark,
            last_stable_offset: found.last_stable_offset,
            leader_epoch: found.leader_epoch,
            batches: Vec::new(),
            next_offset: offset,
            aborted: Vec::new(),
        };
        let mut room = bytes_max;
        let is_wanted = |extent: &&Extent| offset < end && extent.base_offset < end;
        let extents = found.extents.iter().filter(is_wanted);
        for extent in extents {
            let size = usize::try_from(extent.size).unwrap_or(usize::MAX);
            if !records.batches.is_empty() && size > room {
                break;
            }
            let bytes = match self.extent(extent, size).await {
                // The next read begins there, and fails if the object is still missing.
                Err(Error::Damaged { .. } | Error::ObjectMissing(_))
                    if !records.batches.is_empty() =>
                {
                    break;
                }
                bytes => bytes?,
            };
            room = room.saturating_sub(size);
            // An extent may begin with batches below the offset, or have none behind it, and go on
            // behind the end.
            let wanted = within(&bytes, offset, end);
            if !wanted.is_empty() {
                records.batches.push(wanted);
            }
            records.next_offset = end.min(extent.last_offset + 1).max(offset);
        }
        if view == View::Committed && found.has_aborted && !records.batches.is_empty() {
            // Of a batch that holds the offset, what is before it is deleted or read already.
            records.aborted = self.sequencer.aborted(log, offset, records.next_offset).await?;
        }
        Ok(records)
    }

    async fn find(&self, find: Find) -> Answer<Found> {
        self.sequencer.find(&[find]).await?.pop().flatten().ok_or(Error::UnknownLog)
    }

    /// The batches of an extent.
    async fn extent(&self, extent: &Extent, size: usize) -> Answer<Bytes> {
        let damaged = |reason| Error::Damaged { key: extent.object, reason };
        let start = u64::try_from(extent.position).map_err(|_| damaged("a negative position"))?;
        let end = start.saturating_add(u64::try_from(size).unwrap_or(u64::MAX));
        let bytes = if extent.sorted {
            self.range(extent.object, start..end, &self.cold_reads).await?
        } else {
            self.blocks(extent.object, start..end).await?
        };
        if bytes.len() != size {
            return Err(damaged("shorter than its extents"));
        }
        object::batches(&bytes, extent).map_err(|damage| damaged(damage.0))
    }

    /// A range through the blocks that the readers of other logs use as well.
    async fn blocks(&self, key: ObjectKey, wanted: Range<u64>) -> Answer<Bytes> {
        let mut out = BytesMut::new();
        let mut at = wanted.start;
        while at < wanted.end {
            let first = at / self.block_bytes * self.block_bytes;
            let block = self
                .range(key, first..first.saturating_add(self.block_bytes), &self.tail_reads)
                .await?;
            let within = |offset: u64| usize::try_from(offset - first).unwrap_or(usize::MAX);
            let until = within(wanted.end).min(block.len());
            if within(at) >= until {
                break;
            }
            if at == wanted.start && first + self.block_bytes >= wanted.end {
                return Ok(block.slice(within(at)..until));
            }
            out.extend_from_slice(&block[within(at)..until]);
            at = first.saturating_add(self.block_bytes);
        }
        Ok(out.freeze())
    }

    async fn range(&self, key: ObjectKey, range: Range<u64>, reads: &Semaphore) -> Answer<Bytes> {
        let load = async {
            let _read = reads.acquire().await.map_err(|_| Error::Stopped)?;
            self.store.get(key, range.clone()).await
        };
        self.cache.get(key, range.start, load).await
    }
}

/// The batches from the one that holds the offset on, as far as they begin before the end.
fn within(bytes: &Bytes, offset: i64, end: i64) -> Bytes {
    let (mut from, mut until) = (0, 0);
    for batch in moldau_records::iter_batches(bytes).flatten() {
        if batch.base_offset() >= end {
            break;
        }
        until += batch.bytes().len();
        if batch.last_offset() < offset {
            from = until;
        }
    }
    bytes.slice(from..until)
}

/// Why an object is damaged that is not there after several lookups.
const LOST: &str = "the store has lost it";
/// A lookup takes about a millisecond.
const POLL_MIN: Duration = Duration::from_millis(10);
/// An object that is missing was trimmed or swapped since its lookup, which is rare.
const LOOKUPS_MAX: usize = 4;
/// Extents of one lookup: a fetch of some MiB, even from small batches.
const EXTENTS_MAX: i64 = 64;
