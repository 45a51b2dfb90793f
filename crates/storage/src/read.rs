//! Reading batches back, from memory or from disk.
//!
//! [`Log::read`] answers at once with what is in memory. Where the first batch is not, it gives a
//! [`PendingRead`], a future that needs no runtime: the reader threads load the chunks and wake it.
//!
//! What is sorted is verified block by block when it is loaded; a batch of the journal is verified
//! each time it is handed out. While a read waits, its batches may move from the journal to a
//! segment or from one segment to another: it then looks again.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use moldau_records::{BATCH_HEADER_LEN, BatchView, Crc32c};

use crate::block_on;
use crate::cache::{Chunk, Loaded};
use crate::index::Extent;
use crate::log::LogState;
use crate::sorted::Piece;
use crate::tail::slice_parts;
use crate::transactions::{AbortedTransaction, Isolation};
use crate::{Drive, Error, Log};

/// Batches of a log from an offset on.
#[derive(Debug, Clone)]
pub struct Read {
    /// Whole batches in offset order, with their offsets and leader epochs: a slice holds several
    /// batches, or a batch takes several slices that follow each other. The first batch may begin
    /// before the offset asked for.
    pub batches: Vec<Bytes>,
    /// Bytes of `batches`.
    pub bytes: usize,
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

/// What is asked of a log.
#[derive(Debug, Clone)]
struct Request {
    from: i64,
    bytes_max: usize,
    min_one: bool,
    isolation: Isolation,
    high_watermark: i64,
    start_offset: i64,
    last_stable_offset: i64,
    /// Of what is planned to be read. Taken with the plan: cleaning takes the records of aborted
    /// transactions away, and then forgets that there were any.
    aborted: Vec<AbortedTransaction>,
}

/// Where the batches lie.
enum Plan {
    Nothing,
    Journal(Vec<Extent>),
    Sorted { pieces: Vec<Piece>, ahead: Vec<Piece> },
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
        let high_watermark = self.high_watermark();
        let mut request = Request {
            from,
            bytes_max,
            min_one,
            isolation,
            high_watermark,
            start_offset: 0,
            last_stable_offset: 0,
            aborted: Vec::new(),
        };
        loop {
            let plan = self.with_state(|state| request.plan(state))?;
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
        let Some((chunks, covered)) = journal.cache.chunks_of(&ranges, durable) else {
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
            Cold::Journal { extents, .. } => {
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
                Ok(Progress::Done(request.of_extents(slices, extents)))
            }
            Cold::Sorted { pieces, .. } => self.of_pieces(request, pieces, &loaded),
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
            let taken = request.take(batches, &read).ok_or_else(damaged)?;
            count += taken.batches;
            if taken.batches > 0 {
                let at = piece.within.start;
                let slice = block.slice(at + taken.begin..at + taken.end);
                read.bytes += slice.len();
                read.batches.push(slice);
                read.next_offset = taken.next_offset;
            }
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

/// What is taken of some batches that follow each other.
struct Taken {
    begin: usize,
    end: usize,
    batches: usize,
    next_offset: i64,
    /// Nothing was left out behind what was taken.
    is_all: bool,
}

impl Request {
    fn plan(&mut self, state: &mut LogState) -> Result<Plan, Error> {
        let plan = self.plan_batches(state)?;
        if self.isolation == Isolation::ReadCommitted {
            let end = match &plan {
                Plan::Nothing => self.from,
                Plan::Journal(extents) => extents.last().map_or(self.from, |last| last.next_offset),
                Plan::Sorted { pieces, .. } => {
                    pieces.last().map_or(self.from, |last| last.next_offset)
                }
            };
            self.aborted = state.transactions.aborted_in(self.from, end.min(self.end()));
        }
        Ok(plan)
    }

    /// Nothing at or above this is read.
    fn end(&self) -> i64 {
        match self.isolation {
            Isolation::ReadUncommitted => self.high_watermark,
            Isolation::ReadCommitted => self.last_stable_offset,
        }
    }

    fn plan_batches(&mut self, state: &mut LogState) -> Result<Plan, Error> {
        if state.is_deleted {
            return Err(Error::Deleted);
        }
        let (start, end) = (state.start_offset, state.index.end_offset());
        if self.from < start || self.from > end {
            return Err(Error::OffsetOutOfRange { start, end: self.high_watermark });
        }
        self.start_offset = start;
        self.last_stable_offset = state.last_stable_offset(self.high_watermark);
        // A fetch that is full still asks each partition for its watermark.
        let takes_nothing = self.bytes_max == 0 && !self.min_one;
        if self.from >= self.end() || takes_nothing {
            return Ok(Plan::Nothing);
        }
        let mut pieces = Vec::new();
        let mut bytes = 0usize;
        let mut rest = state.sorted.pieces_from(self.from);
        for piece in rest.by_ref() {
            bytes = bytes.saturating_add(piece.bytes());
            pieces.push(piece);
            // The first piece may hold little from the offset on.
            if (bytes > self.bytes_max && pieces.len() > 1) || pieces.len() >= PIECES_PER_READ {
                break;
            }
        }
        if !pieces.is_empty() {
            // Blocks that several logs share are read by the one that asks.
            let is_whole = |piece: &Piece| piece.bytes() == piece.block.bytes as usize;
            let count = (PIECES_AHEAD + 2).saturating_sub(pieces.len());
            let ahead = rest.take(count).take_while(is_whole).collect();
            return Ok(Plan::Sorted { pieces, ahead });
        }
        self.from = self.from.max(state.sorted_end());
        let mut extents = Vec::new();
        self.collect(state.index.starting_at(self.from), &mut extents);
        Ok(if extents.is_empty() { Plan::Nothing } else { Plan::Journal(extents) })
    }

    fn collect(&self, extents: impl Iterator<Item = Extent>, wanted: &mut Vec<Extent>) {
        let mut bytes = 0usize;
        for extent in extents.take(BATCHES_PER_READ_MAX) {
            let (_, length) = range(&extent);
            bytes = bytes.saturating_add(length);
            let is_allowed = bytes <= self.bytes_max || (self.min_one && wanted.is_empty());
            if extent.next_offset > self.end() || !is_allowed {
                return;
            }
            wanted.push(extent);
        }
    }

    /// Which of `batches`, the part of a run in one block, belong to the read; `None` if they are
    /// not batches.
    fn take(&self, batches: &[u8], read: &Read) -> Option<Taken> {
        let next_offset = read.next_offset;
        let mut taken = Taken { begin: 0, end: 0, batches: 0, next_offset, is_all: true };
        let mut at = 0;
        while at < batches.len() {
            let (next_offset, length) = next_and_length(batches.get(at..)?)?;
            let end = at.checked_add(length).filter(|end| *end <= batches.len())?;
            if next_offset > self.from {
                if taken.batches == 0 {
                    (taken.begin, taken.end) = (at, at);
                }
                let bytes = read.bytes + (end - taken.begin);
                let is_first = read.bytes == 0 && taken.batches == 0;
                let is_open = next_offset > self.end();
                if is_open || (bytes > self.bytes_max && !(self.min_one && is_first)) {
                    taken.is_all = false;
                    break;
                }
                taken.batches += 1;
                taken.end = end;
                taken.next_offset = next_offset;
            }
            at = end;
        }
        Some(taken)
    }

    fn nothing(&self) -> Read {
        Read {
            batches: Vec::new(),
            bytes: 0,
            next_offset: self.from,
            high_watermark: self.high_watermark,
            start_offset: self.start_offset,
            last_stable_offset: self.last_stable_offset,
            aborted: self.aborted.clone(),
        }
    }

    fn of_extents(&self, batches: Vec<Bytes>, extents: &[Extent]) -> Read {
        Read {
            bytes: batches.iter().map(Bytes::len).sum(),
            batches,
            next_offset: extents.last().map_or(self.from, |extent| extent.next_offset),
            ..self.nothing()
        }
    }
}

impl PendingRead {
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
                    let Request { bytes_max, min_one, isolation, .. } = this.request;
                    match this.log.read_isolated(from, bytes_max, min_one, isolation)? {
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

fn range(extent: &Extent) -> (u64, usize) {
    // A length is an u32, which a usize holds wherever this runs.
    (extent.position, usize::try_from(extent.bytes).unwrap_or(usize::MAX))
}

/// Offset after the first batch of `bytes`, and the batch's length.
fn next_and_length(bytes: &[u8]) -> Option<(i64, usize)> {
    let header: &[u8; BATCH_HEADER_LEN] = bytes.first_chunk()?;
    let (base_offset, rest) = header.split_first_chunk()?;
    let (length, rest) = rest.split_first_chunk()?;
    let (last_offset_delta, _) = rest.get(11..)?.split_first_chunk()?;
    let delta = i64::from(i32::from_be_bytes(*last_offset_delta));
    let next_offset = i64::from_be_bytes(*base_offset).checked_add(delta)?.checked_add(1)?;
    let length = usize::try_from(i32::from_be_bytes(*length)).ok()?;
    Some((next_offset, length.checked_add(LENGTH_END as usize)?))
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

/// First byte of a batch that its CRC covers.
const CRC_START: usize = 21;
/// A batch's length field counts what follows it.
const LENGTH_END: u32 = 12;
/// Slices that one vectored write to a socket takes (Linux `UIO_MAXIOV`).
const BATCHES_PER_READ_MAX: usize = 1024;
/// Bounds what one fetch can ask of the disk before it gets an answer.
const PIECES_PER_READ: usize = 8;
/// Pieces loaded ahead of a reader that asks for no more than two: the reader threads stay busy
/// while it sends what it has. Who asks for more keeps them busy anyway.
const PIECES_AHEAD: usize = 2;
