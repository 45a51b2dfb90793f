//! Reading batches back, from memory or from disk.
//!
//! [`Log::read`] answers at once with what is in memory. Where the first batch is not, it gives a
//! [`PendingRead`], a future that needs no runtime: the reader threads load the chunks and wake it.
//!
//! What is sorted is verified block by block when it is loaded; a batch of the journal is verified
//! each time it is handed out. While a read waits, its batches may move from the journal to a
//! segment or from one segment to another: it then looks again.

mod request;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use moldau_records::{BatchView, Crc32c};

use crate::block_on;
use crate::cache::{Chunk, Loaded};
use crate::index::Extent;
use crate::sorted::Piece;
use crate::tail::slice_parts;
use crate::transactions::{AbortedTransaction, Isolation};
use crate::{Drive, Error, Log};

pub use self::request::ReadLimits;
use self::request::{LENGTH_END, Plan, Request, range};

/// Batches of a log from an offset on.
#[derive(Debug, Clone)]
pub struct Read {
    /// Whole batches in offset order, with their offsets and leader epochs: a slice holds several
    /// batches, or a batch takes several slices that follow each other. The first batch may begin
    /// before the offset asked for.
    pub batches: Vec<Bytes>,
    /// Bytes of `batches`.
    pub bytes: usize,
    /// Memory that `batches` keep in use: what was read back from disk with them, say.
    pub memory: usize,
    /// Offset after the last that was read, or the offset asked for if nothing was. Where records
    /// were cleaned away it may lie above the last record of `batches`.
    pub next_offset: i64,
    /// Offset after the last durable record at the time of the read.
    pub high_watermark: i64,
    /// Log start offset at the time of the read.
    pub start_offset: i64,
    /// Offset before which every transaction has ended, at the time of the read.
    pub last_stable_offset: i64,
    /// The aborted transactions that `batches` hold parts of, in order of their first offset; none
    /// unless only what is committed is read.
    pub aborted: Vec<AbortedTransaction>,
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

/// A read that waits for the disk. Resolves with the batches.
///
/// # Errors
/// [`Error::Corrupt`] if a batch is not what was written, [`Error::Io`] if the disk refuses,
/// [`Error::OffsetOutOfRange`] if the batches were deleted in the meantime, [`Error::Deleted`].
pub struct PendingRead {
    log: Arc<Log>,
    request: Request,
    cold: Cold,
}

/// What must be loaded.
enum Cold {
    Journal { extents: Vec<Extent>, chunks: Vec<Arc<Chunk>> },
    Sorted { pieces: Vec<Piece>, chunks: Vec<Arc<Chunk>> },
}

/// How far a read has come.
enum Progress {
    Done(Read),
    Loading(Cold),
    /// The batches have moved, or all of them were cleaned away: look from this offset on.
    Again(i64),
}

impl std::fmt::Debug for PendingRead {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let from = &self.request.from;
        f.debug_struct("PendingRead").field("log", &self.log).field("from", from).finish()
    }
}

impl Log {
    /// Reads durable batches from the one that holds `from` on, up to `bytes_max` bytes; with
    /// `min_one` the first batch is returned even if it is larger (KIP-74). What is in memory is
    /// returned at once, even if more lies on disk.
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
        self.read_isolated(from, bytes_max, min_one, Isolation::ReadUncommitted)
    }

    /// As [`Log::read`], of what a reader of this isolation is to see.
    ///
    /// # Errors
    /// As [`Log::read`].
    pub fn read_isolated(
        self: &Arc<Self>,
        from: i64,
        bytes_max: usize,
        min_one: bool,
        isolation: Isolation,
    ) -> Result<ReadOutcome, Error> {
        let limits = ReadLimits { bytes_max, memory_max: usize::MAX, min_one };
        self.read_within(from, limits, isolation)
    }

    /// As [`Log::read_isolated`], with a limit of the memory that it takes.
    ///
    /// # Errors
    /// As [`Log::read`].
    pub fn read_within(
        self: &Arc<Self>,
        from: i64,
        limits: ReadLimits,
        isolation: Isolation,
    ) -> Result<ReadOutcome, Error> {
        let mut request = Request::new(from, limits, isolation, self.high_watermark());
        loop {
            let memory_of = |bytes| self.journal().cache.memory_of(bytes);
            let plan = self.with_state(|state| request.plan(state, memory_of))?;
            match self.start(&request, plan)? {
                Progress::Done(read) => return Ok(ReadOutcome::Ready(read)),
                Progress::Loading(cold) => {
                    let log = Arc::clone(self);
                    return Ok(ReadOutcome::Pending(PendingRead { log, request, cold }));
                }
                Progress::Again(from) => request.from = from,
            }
        }
    }

    fn start(&self, request: &Request, plan: Plan) -> Result<Progress, Error> {
        match plan {
            Plan::Nothing => Ok(Progress::Done(request.nothing())),
            Plan::Journal(extents) => self.start_journal(request, extents),
            Plan::Sorted { pieces, ahead } => {
                let ahead = ahead.iter().map(|piece| (&*piece.segment, &piece.block));
                let blocks = pieces.iter().map(|piece| (&*piece.segment, &piece.block));
                let chunks = self.journal().cache.blocks_of(blocks, ahead);
                self.advance(request, Cold::Sorted { pieces, chunks }, None)
            }
        }
    }

    fn start_journal(
        &self,
        request: &Request,
        mut extents: Vec<Extent>,
    ) -> Result<Progress, Error> {
        let journal = self.journal();
        let mut slices = Vec::with_capacity(extents.len());
        let found = journal.tail.find(extents.iter().map(range), &mut slices);
        if found > 0 {
            journal.metrics.tail_batches.add(found);
            extents.truncate(found);
            return Ok(Progress::Done(request.of_extents(slices, &extents)));
        }
        let tail_start = journal.tail.start().unwrap_or(u64::MAX);
        let cold = extents.iter().take_while(|extent| extent.position < tail_start).count();
        // The first batch was in neither place a moment ago; it is on disk in any case.
        extents.truncate(cold.max(1));
        let durable = journal.durable.position();
        let ranges: Vec<_> = extents.iter().map(range).collect();
        let memory_max = request.limits.memory_max;
        let Some((chunks, covered)) = journal.cache.chunks_of(&ranges, durable, memory_max) else {
            return Ok(Progress::Again(request.from));
        };
        extents.truncate(covered);
        self.advance(request, Cold::Journal { extents, chunks }, None)
    }

    /// Hands out the batches, if all that was asked for is loaded.
    fn advance(
        &self,
        request: &Request,
        mut cold: Cold,
        waker: Option<&Waker>,
    ) -> Result<Progress, Error> {
        let chunks = match &cold {
            Cold::Journal { chunks, .. } | Cold::Sorted { chunks, .. } => chunks,
        };
        let mut loaded = Vec::with_capacity(chunks.len());
        for chunk in chunks {
            match chunk.poll(waker)? {
                Loaded::Bytes(bytes) => loaded.push((chunk.start, bytes)),
                // What was asked of the disk is waited for: it may be gone from the cache before
                // the reader comes back.
                Loaded::Loading => return Ok(Progress::Loading(cold)),
                Loaded::Gone => return Ok(Progress::Again(request.from)),
            }
        }
        let is_all = loaded.len() == chunks.len();
        if loaded.is_empty() && !is_all {
            return Ok(Progress::Loading(cold));
        }
        match &mut cold {
            Cold::Journal { extents, chunks } => {
                let (slices, count) = self.verified(&loaded, extents)?;
                match extents.first() {
                    // There is nothing to wait for.
                    Some(first) if count == 0 && is_all => {
                        return Err(self.corrupt(first, "it reaches beyond its file"));
                    }
                    _ if count == 0 => return Ok(Progress::Loading(cold)),
                    _ => {}
                }
                extents.truncate(count);
                Ok(Progress::Done(request.of_extents(slices, extents).kept_of(chunks)))
            }
            Cold::Sorted { pieces, chunks } => {
                Ok(match self.of_pieces(request, pieces, &loaded)? {
                    Progress::Done(read) => Progress::Done(read.kept_of(chunks)),
                    other => other,
                })
            }
        }
    }

    /// The slices of the batches that the loaded chunks hold, each batch verified.
    fn verified(
        &self,
        loaded: &[(u64, Bytes)],
        extents: &[Extent],
    ) -> Result<(Vec<Bytes>, usize), Error> {
        let mut slices = Vec::with_capacity(extents.len());
        let mut count = 0;
        for extent in extents {
            let mark = slices.len();
            let (position, bytes) = range(extent);
            let after = loaded.partition_point(|(start, _)| *start <= position);
            let parts = loaded.iter().skip(after.saturating_sub(1));
            if !slice_parts(parts, position, bytes, &mut slices) {
                break;
            }
            let batch = slices.get(mark..).unwrap_or_default();
            let leader_epoch = self.epoch_at(extent.base_offset);
            if let Err(reason) = verify(batch, extent, leader_epoch) {
                self.journal().metrics.corrupt_batches.add(1);
                return Err(self.corrupt(extent, reason));
            }
            count += 1;
        }
        self.journal().metrics.cold_batches.add(count);
        Ok((slices, count))
    }

    fn corrupt(&self, extent: &Extent, reason: &str) -> Error {
        let id = self.id();
        let reason = format!("batch at offset {} of {id:?}: {reason}", extent.base_offset);
        match self.journal().files.at(extent.position) {
            Some(file) => Error::corrupt(&file.path, extent.position - file.base, reason),
            None => Error::corrupt(self.journal().files.dir(), extent.position, reason),
        }
    }

    /// The batches of the pieces that are loaded; each piece lies in one block, one slice of it.
    fn of_pieces(
        &self,
        request: &Request,
        pieces: &[Piece],
        loaded: &[(u64, Bytes)],
    ) -> Result<Progress, Error> {
        let mut read = request.nothing();
        let mut count = 0;
        for (piece, (_, block)) in pieces.iter().zip(loaded) {
            let damaged = || {
                let reason = format!("batches of {:?} are not where the footer says", self.id());
                Error::corrupt(&piece.segment.path, piece.block.offset(), reason)
            };
            let batches = block.get(piece.within.clone()).ok_or_else(damaged)?;
            let offsets = piece.base_offset..piece.next_offset;
            let taken = request.take(batches, offsets, read.next_offset, read.bytes);
            let taken = taken.ok_or_else(damaged)?;
            count += taken.batches;
            if taken.batches > 0 {
                let at = piece.within.start;
                let slice = block.slice(at + taken.begin..at + taken.end);
                read.bytes += slice.len();
                read.batches.push(slice);
            }
            read.next_offset = taken.next_offset;
            if !taken.is_all {
                break;
            }
            read.next_offset = piece.next_offset.max(read.next_offset);
        }
        self.journal().metrics.cold_batches.add(count);
        if read.batches.is_empty() && read.next_offset > request.from {
            return Ok(Progress::Again(read.next_offset));
        }
        Ok(Progress::Done(read))
    }
}

impl Request {
    fn nothing(&self) -> Read {
        Read {
            batches: Vec::new(),
            bytes: 0,
            memory: 0,
            next_offset: self.from,
            high_watermark: self.high_watermark,
            start_offset: self.start_offset,
            last_stable_offset: self.last_stable_offset,
            aborted: self.aborted.clone(),
        }
    }

    fn of_extents(&self, batches: Vec<Bytes>, extents: &[Extent]) -> Read {
        let bytes = batches.iter().map(Bytes::len).sum();
        Read {
            bytes,
            memory: bytes,
            batches,
            next_offset: extents.last().map_or(self.from, |extent| extent.next_offset),
            ..self.nothing()
        }
    }
}

impl Read {
    /// What is read of chunks. Where that is a small part of them, it is copied: who sends it
    /// slowly shall not hold the rest.
    fn kept_of(mut self, chunks: &[Arc<Chunk>]) -> Read {
        self.memory = memory_of(chunks);
        if self.bytes > 0 && self.bytes < self.memory / COPIED_PART {
            self.batches = vec![Bytes::from(self.batches.concat())];
        }
        if self.bytes < self.memory / COPIED_PART {
            self.memory = self.bytes;
        }
        self
    }
}

impl PendingRead {
    /// Memory that is in use until the batches are there.
    pub fn memory(&self) -> usize {
        match &self.cold {
            Cold::Journal { chunks, .. } | Cold::Sorted { chunks, .. } => memory_of(chunks),
        }
    }

    /// Waits on this thread.
    ///
    /// # Errors
    /// As the future.
    pub fn wait(mut self) -> Result<Read, Error> {
        let journal = Arc::clone(self.log.journal());
        if journal.options.drive != Drive::Stepped {
            return block_on(self);
        }
        loop {
            while journal.cache.load_one() {}
            let polled = Pin::new(&mut self).poll(&mut Context::from_waker(Waker::noop()));
            if let Poll::Ready(read) = polled {
                return read;
            }
        }
    }
}

impl Future for PendingRead {
    type Output = Result<Read, Error>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        let empty = Cold::Journal { extents: Vec::new(), chunks: Vec::new() };
        let mut cold = std::mem::replace(&mut this.cold, empty);
        loop {
            match this.log.advance(&this.request, cold, Some(context.waker()))? {
                Progress::Done(read) => return Poll::Ready(Ok(read)),
                Progress::Loading(waiting) => {
                    this.cold = waiting;
                    return Poll::Pending;
                }
                Progress::Again(from) => {
                    let Request { limits, isolation, .. } = this.request;
                    match this.log.read_within(from, limits, isolation)? {
                        ReadOutcome::Ready(read) => return Poll::Ready(Ok(read)),
                        ReadOutcome::Pending(again) => {
                            this.request = again.request;
                            cold = again.cold;
                        }
                    }
                }
            }
        }
    }
}

fn memory_of(chunks: &[Arc<Chunk>]) -> usize {
    chunks.iter().map(|chunk| chunk.memory).sum()
}

/// Whether the slices are the batch that the index means, as it was written.
fn verify(
    slices: &[Bytes],
    extent: &Extent,
    leader_epoch: Option<i32>,
) -> Result<(), &'static str> {
    let mut header = [0; CRC_START];
    let bytes = slices.iter().flat_map(|slice| slice.iter());
    header.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
    let (base_offset, rest) = header.split_at(8);
    let (length, rest) = rest.split_at(4);
    let (epoch, rest) = rest.split_at(4);
    let (magic, crc) = rest.split_at(1);
    // The batch's own checksum leaves out what the broker assigns.
    if leader_epoch.is_some_and(|known| epoch != known.to_be_bytes()) {
        return Err("its leader epoch is another");
    }
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

/// Whether `bytes` are the one batch that the index means, as it was written.
pub(crate) fn is_batch_of(bytes: &[u8], extent: &Extent) -> bool {
    BatchView::parse(bytes).is_ok_and(|batch| {
        batch.bytes().len() == bytes.len()
            && batch.base_offset() == extent.base_offset
            && batch.next_offset() == extent.next_offset
            && batch.check_crc().is_ok()
    })
}

/// Less than this part of what is loaded is copied.
const COPIED_PART: usize = 2;
/// First byte of a batch that its CRC covers.
const CRC_START: usize = 21;
