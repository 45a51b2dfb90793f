//! Reading batches back, from memory or from disk.
//!
//! [`Log::read`] answers at once with what is in memory. Where the first batch is not, it gives a
//! [`PendingRead`], a future that needs no runtime: the reader threads load the chunks and wake it.
//! Batches that come from disk are verified each time they are handed out.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use moldau_records::{BatchView, Crc32c, Decompressor};

use crate::cache::{Chunk, Loaded};
use crate::index::Extent;
use crate::sync::block_on;
use crate::tail::slice_parts;
use crate::{Drive, Error, Log};

/// Batches of a log from an offset on.
#[derive(Debug, Clone)]
pub struct Read {
    /// Whole batches in offset order, with their offsets and leader epochs: the bytes of one batch
    /// are one slice, or several that follow each other. The first batch may begin before the
    /// offset asked for.
    pub batches: Vec<Bytes>,
    /// Bytes of `batches`.
    pub bytes: usize,
    /// Offset after the last record of `batches`, or the offset asked for if there is none.
    pub next_offset: i64,
    /// Offset after the last durable record at the time of the read.
    pub high_watermark: i64,
    /// Log start offset at the time of the read.
    pub start_offset: i64,
}

/// What [`Log::read`] gives.
#[derive(Debug)]
pub enum ReadOutcome {
    /// The batches, or none if the offset is the high watermark.
    Ready(Read),
    /// They must be loaded from disk.
    Pending(PendingRead),
}

impl ReadOutcome {
    /// The batches, after waiting on this thread if they must be loaded.
    ///
    /// # Errors
    /// As [`PendingRead`].
    pub fn wait(self) -> Result<Read, Error> {
        match self {
            ReadOutcome::Ready(read) => Ok(read),
            ReadOutcome::Pending(pending) => pending.wait(),
        }
    }
}

/// Answer to a lookup by timestamp.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimestampOffset {
    /// Offset of the record.
    pub offset: i64,
    /// Its timestamp in ms since 1970.
    pub timestamp: i64,
    /// Leader epoch of its batch.
    pub leader_epoch: i32,
}

/// A read that waits for the disk. Resolves with the batches.
///
/// # Errors
/// [`Error::Corrupt`] if a batch is not what was written, [`Error::Io`] if the disk refuses,
/// [`Error::OffsetOutOfRange`] if the batches were deleted in the meantime.
pub struct PendingRead {
    log: Arc<Log>,
    from: i64,
    extents: Vec<Extent>,
    chunks: Vec<Arc<Chunk>>,
    high_watermark: i64,
    start_offset: i64,
}

impl std::fmt::Debug for PendingRead {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PendingRead").field("log", &self.log).field("from", &self.from).finish()
    }
}

impl Log {
    /// Reads durable batches from the one that holds `from` on, up to `bytes_max` bytes; with
    /// `min_one` the first batch is returned even if it is larger (KIP-74). What is in memory is
    /// returned at once, even if it is less.
    ///
    /// # Errors
    /// [`Error::OffsetOutOfRange`] below the log start or above the log end, [`Error::Deleted`],
    /// [`Error::Corrupt`].
    pub fn read(
        self: &Arc<Self>,
        from: i64,
        bytes_max: usize,
        min_one: bool,
    ) -> Result<ReadOutcome, Error> {
        let high_watermark = self.high_watermark();
        let (start_offset, extents) = self.with_state(|state| {
            if state.is_deleted {
                return Err(Error::Deleted);
            }
            let (start, end) = (state.start_offset, state.index.end_offset());
            if from < start || from > end {
                return Err(Error::OffsetOutOfRange { start, end: high_watermark });
            }
            let mut wanted = Vec::new();
            if from < high_watermark {
                let extents = state.index.starting_at(from);
                collect(extents, high_watermark, bytes_max, min_one, &mut wanted);
            }
            Ok((start, wanted))
        })?;
        let mut read = PendingRead {
            log: Arc::clone(self),
            from,
            extents,
            chunks: Vec::new(),
            high_watermark,
            start_offset,
        };
        if read.extents.is_empty() {
            return Ok(ReadOutcome::Ready(read.finish(Vec::new())));
        }
        let mut slices = Vec::with_capacity(read.extents.len());
        let found = self.journal().tail.find(read.extents.iter().map(range), &mut slices);
        if found > 0 {
            self.journal().metrics.tail_batches.add(found);
            read.extents.truncate(found);
            return Ok(ReadOutcome::Ready(read.finish(slices)));
        }
        read.start_cold()
    }

    /// The first record with a timestamp of at least `timestamp`, as ListOffsets asks; `None` if
    /// there is none below the high watermark.
    ///
    /// # Errors
    /// As [`PendingRead`].
    pub async fn offset_for_timestamp(
        self: &Arc<Self>,
        timestamp: i64,
    ) -> Result<Option<TimestampOffset>, Error> {
        let mut searched_to = i64::MIN;
        loop {
            // The batch's header may claim a later timestamp than its records have: then the search
            // goes on behind it.
            let found = self.with_state(|state| {
                if searched_to == i64::MIN {
                    return state.index.first_with_timestamp(timestamp);
                }
                let mut rest = state.index.starting_at(searched_to);
                rest.find(|extent| {
                    extent.base_offset >= searched_to && extent.max_timestamp >= timestamp
                })
            });
            let Some(extent) = found.filter(|found| found.next_offset <= self.high_watermark())
            else {
                return Ok(None);
            };
            let start_offset = self.start_offset();
            let batch = self.batch_at(&extent).await?;
            let matching = record_of(&batch, |offset, record_timestamp| {
                offset >= start_offset && record_timestamp >= timestamp
            });
            if let Some(found) = matching {
                return Ok(Some(found));
            }
            searched_to = extent.next_offset;
        }
    }

    /// The first record with the largest timestamp of the log (KIP-734); `None` if the log is
    /// empty.
    ///
    /// # Errors
    /// As [`PendingRead`].
    pub async fn offset_of_max_timestamp(
        self: &Arc<Self>,
    ) -> Result<Option<TimestampOffset>, Error> {
        let high_watermark = self.high_watermark();
        let largest = self.with_state(|state| state.index.max_timestamp(high_watermark));
        match largest {
            Some(largest) => self.offset_for_timestamp(largest).await,
            None => Ok(None),
        }
    }

    async fn batch_at(self: &Arc<Self>, extent: &Extent) -> Result<Vec<u8>, Error> {
        let from = extent.base_offset.max(self.start_offset());
        let read = match self.read(from, 0, true)? {
            ReadOutcome::Ready(read) => read,
            ReadOutcome::Pending(pending) => pending.await?,
        };
        Ok(read.batches.concat())
    }
}

impl PendingRead {
    /// Waits on this thread.
    ///
    /// # Errors
    /// As the future.
    pub fn wait(self) -> Result<Read, Error> {
        let journal = Arc::clone(self.log.journal());
        if journal.options.drive == Drive::Stepped {
            while journal.cache.load_one() {}
        }
        block_on(self)
    }

    fn start_cold(mut self) -> Result<ReadOutcome, Error> {
        let journal = Arc::clone(self.log.journal());
        let tail_start = journal.tail.start().unwrap_or(u64::MAX);
        let cold = self.extents.iter().take_while(|extent| extent.position < tail_start).count();
        // The first batch was in neither place a moment ago; it is on disk in any case.
        self.extents.truncate(cold.max(1));
        let durable = journal.durable.position();
        let ranges = self.extents.iter().map(range);
        let Some((chunks, covered)) = journal.cache.chunks_of(ranges, durable) else {
            return Err(self.gone());
        };
        self.chunks = chunks;
        self.extents.truncate(covered);
        let mut loaded = Vec::with_capacity(self.chunks.len());
        for chunk in &self.chunks {
            match chunk.loaded()? {
                Loaded::Bytes(bytes) => loaded.push((chunk.start, bytes)),
                Loaded::Loading => break,
                Loaded::Gone => return Err(self.gone()),
            }
        }
        if loaded.is_empty() {
            return Ok(ReadOutcome::Pending(self));
        }
        let (slices, count) = self.verified(&loaded)?;
        if count == 0 {
            return Ok(ReadOutcome::Pending(self));
        }
        self.extents.truncate(count);
        Ok(ReadOutcome::Ready(self.finish(slices)))
    }

    /// The slices of the batches that the loaded chunks hold, each batch verified.
    fn verified(&self, loaded: &[(u64, Bytes)]) -> Result<(Vec<Bytes>, usize), Error> {
        let mut slices = Vec::with_capacity(self.extents.len());
        let mut count = 0;
        for extent in &self.extents {
            let mark = slices.len();
            let (position, bytes) = range(extent);
            let after = loaded.partition_point(|(start, _)| *start <= position);
            let parts = loaded.iter().skip(after.saturating_sub(1));
            if !slice_parts(parts, position, bytes, &mut slices) {
                break;
            }
            let batch = slices.get(mark..).unwrap_or_default();
            if let Err(reason) = verify(batch, extent) {
                self.log.journal().metrics.corrupt_batches.add(1);
                return Err(self.corrupt(extent, reason));
            }
            count += 1;
        }
        self.log.journal().metrics.cold_batches.add(count);
        Ok((slices, count))
    }

    fn corrupt(&self, extent: &Extent, reason: &str) -> Error {
        let id = self.log.id();
        match self.log.journal().files.at(extent.position) {
            Some(file) => Error::corrupt(
                &file.path,
                extent.position - file.base,
                format!("batch at offset {} of {id:?}: {reason}", extent.base_offset),
            ),
            None => self.gone(),
        }
    }

    /// The journal holds the batches no more, as the log start has passed them.
    fn gone(&self) -> Error {
        Error::OffsetOutOfRange { start: self.log.start_offset(), end: self.high_watermark }
    }

    fn finish(&self, batches: Vec<Bytes>) -> Read {
        Read {
            bytes: batches.iter().map(Bytes::len).sum(),
            batches,
            next_offset: self.extents.last().map_or(self.from, |extent| extent.next_offset),
            high_watermark: self.high_watermark,
            start_offset: self.start_offset,
        }
    }
}

impl Future for PendingRead {
    type Output = Result<Read, Error>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        let mut loaded = Vec::with_capacity(this.chunks.len());
        for chunk in &this.chunks {
            match chunk.poll(Some(context.waker()))? {
                Loaded::Bytes(bytes) => loaded.push((chunk.start, bytes)),
                Loaded::Loading => return Poll::Pending,
                Loaded::Gone => return Poll::Ready(Err(this.gone())),
            }
        }
        let (slices, count) = this.verified(&loaded)?;
        this.extents.truncate(count);
        Poll::Ready(Ok(this.finish(slices)))
    }
}

fn range(extent: &Extent) -> (u64, usize) {
    // A length is an u32, which a usize holds wherever this runs.
    (extent.position, usize::try_from(extent.bytes).unwrap_or(usize::MAX))
}

fn collect(
    extents: impl Iterator<Item = Extent>,
    high_watermark: i64,
    bytes_max: usize,
    min_one: bool,
    wanted: &mut Vec<Extent>,
) {
    let mut bytes = 0usize;
    for extent in extents.take(BATCHES_PER_READ_MAX) {
        let (_, length) = range(&extent);
        bytes = bytes.saturating_add(length);
        let is_allowed = bytes <= bytes_max || (min_one && wanted.is_empty());
        if extent.next_offset > high_watermark || !is_allowed {
            return;
        }
        wanted.push(extent);
    }
}

/// Whether the slices are the batch that the index means, as it was written.
fn verify(slices: &[Bytes], extent: &Extent) -> Result<(), &'static str> {
    let mut header = [0; CRC_START];
    let bytes = slices.iter().flat_map(|slice| slice.iter());
    header.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
    let (base_offset, rest) = header.split_at(8);
    let (length, rest) = rest.split_at(4);
    let (_leader_epoch, rest) = rest.split_at(4);
    let (magic, crc) = rest.split_at(1);
    if base_offset != extent.base_offset.to_be_bytes() {
        return Err("its base offset is another");
    }
    if length != extent.bytes.saturating_sub(LENGTH_END).to_be_bytes() || magic != [2] {
        return Err("its length or magic is another");
    }
    let mut computed = Crc32c::new();
    let mut skip = CRC_START;
    for slice in slices {
        let here = skip.min(slice.len());
        skip -= here;
        computed.update(slice.get(here..).unwrap_or_default());
    }
    if computed.value().to_be_bytes() != crc {
        return Err("its CRC32C does not hold");
    }
    Ok(())
}

fn record_of(batch: &[u8], mut matches: impl FnMut(i64, i64) -> bool) -> Option<TimestampOffset> {
    let view = BatchView::parse(batch).ok()?;
    let mut decompressor = Decompressor::default();
    let records = view.records(&mut decompressor, DECOMPRESSED_BYTES_MAX).ok()?;
    for record in records {
        let record = record.ok()?;
        if matches(record.offset(), record.timestamp()) {
            let (offset, timestamp) = (record.offset(), record.timestamp());
            let leader_epoch = view.partition_leader_epoch();
            return Some(TimestampOffset { offset, timestamp, leader_epoch });
        }
    }
    None
}

/// First byte of a batch that its CRC covers.
const CRC_START: usize = 21;
/// A batch's length field counts what follows it.
const LENGTH_END: u32 = 12;
/// Slices that one vectored write to a socket takes (Linux `UIO_MAXIOV`).
const BATCHES_PER_READ_MAX: usize = 1024;
/// A batch that unpacks to more than this is not searched for a timestamp.
const DECOMPRESSED_BYTES_MAX: usize = 256 << 20;
