//! Chunks of the journal, and blocks of sorted segments, that were read back from disk.
//!
//! A block is verified when it is loaded, by the thread that loads it; a chunk of the journal has
//! no checksum of its own.
//!
//! Consumers that follow different logs at about the same place in the journal share the chunks,
//! and a reader that walks forward finds the next chunks loaded. A chunk remembers how far the
//! journal was durable when its read began: what lies beyond may have been written since and is not
//! served.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;
use std::task::Waker;

use bytes::Bytes;
use moldau_threads::{Condvar, Mutex, catch, fault_point};

use moldau_records::crc32c;

use crate::disk::{DiskFile, read_full};
use crate::files::Files;
use crate::format::round_up;
use crate::io::{BLOCK, Region, SegmentPool};
use crate::metrics::Metrics;
use crate::pace::Pace;
use crate::segment::{Block, Segment, of_address};
use crate::segments::Segments;
use crate::{Error, Options};

/// Chunks by journal position, blocks by address, and those that wait to be loaded.
pub(crate) struct ReadCache {
    chunk_bytes: u64,
    bytes_max: usize,
    files: Arc<Files>,
    segments: Arc<Segments>,
    metrics: Arc<Metrics>,
    pace: Arc<Pace>,
    pool: Arc<SegmentPool>,
    chunks: Mutex<Chunks>,
    queue: Mutex<Queue>,
    queued: Condvar,
}

#[derive(Default)]
struct Chunks {
    by_start: HashMap<u64, Listed>,
    /// Starts by last use, the oldest first. A scan has done with what it used longest ago, and
    /// will want what was loaded ahead of it.
    by_use: BTreeMap<u64, u64>,
    /// The last use of all.
    uses: u64,
    /// Memory of all that are listed.
    bytes: usize,
}

struct Listed {
    chunk: Arc<Chunk>,
    used: u64,
}

impl Chunks {
    fn get(&self, start: u64) -> Option<&Arc<Chunk>> {
        self.by_start.get(&start).map(|listed| &listed.chunk)
    }

    fn touch(&mut self, start: u64) {
        let Some(listed) = self.by_start.get_mut(&start) else { return };
        self.by_use.remove(&listed.used);
        self.uses += 1;
        listed.used = self.uses;
        self.by_use.insert(self.uses, start);
    }

    fn insert(&mut self, chunk: &Arc<Chunk>, bytes_max: usize) {
        self.remove(chunk.start);
        while self.bytes + chunk.memory > bytes_max {
            let Some((_, start)) = self.by_use.first_key_value() else { break };
            self.remove(*start);
        }
        self.bytes += chunk.memory;
        self.uses += 1;
        self.by_use.insert(self.uses, chunk.start);
        let listed = Listed { chunk: Arc::clone(chunk), used: self.uses };
        self.by_start.insert(chunk.start, listed);
    }

    fn remove(&mut self, start: u64) {
        let Some(listed) = self.by_start.remove(&start) else { return };
        self.by_use.remove(&listed.used);
        self.bytes -= listed.chunk.memory;
    }
}

#[derive(Default)]
struct Queue {
    waiting: VecDeque<Arc<Chunk>>,
    closed: bool,
}

/// A stretch of one journal file, or a block of a segment.
pub(crate) struct Chunk {
    pub(crate) start: u64,
    bytes: usize,
    /// Memory that the chunk takes.
    pub(crate) memory: usize,
    /// Durable position when the chunk was asked for: what lies before it is in the chunk.
    durable: u64,
    /// Checksum of a block.
    crc: Option<u32>,
    state: Mutex<State>,
}

enum State {
    Loading(Vec<Waker>),
    Loaded(Bytes),
    Failed(Error),
    /// The file was retired: no log refers to it any more.
    Gone,
}

/// Content of a chunk.
pub(crate) enum Loaded {
    /// The bytes from the chunk's start on.
    Bytes(Bytes),
    /// Not yet.
    Loading,
    /// The file is not part of the journal any more.
    Gone,
}

impl Chunk {
    /// The bytes, if they are there; otherwise wakes `waker` when they are.
    pub(crate) fn poll(&self, waker: Option<&Waker>) -> Result<Loaded, Error> {
        match &mut *self.state.lock() {
            State::Loaded(bytes) => Ok(Loaded::Bytes(bytes.clone())),
            State::Failed(error) => Err(error.clone()),
            State::Gone => Ok(Loaded::Gone),
            State::Loading(wakers) => {
                wakers.extend(waker.cloned());
                Ok(Loaded::Loading)
            }
        }
    }

    fn end(&self) -> u64 {
        self.start + self.bytes as u64
    }

    /// Whether what the chunk covers of the journal up to `position` was durable before it was
    /// read.
    fn holds_to(&self, position: u64) -> bool {
        position.min(self.end()) <= self.durable
    }

    fn finish(&self, state: State) {
        let before = std::mem::replace(&mut *self.state.lock(), state);
        if let State::Loading(wakers) = before {
            wakers.into_iter().for_each(Waker::wake);
        }
    }
}

impl ReadCache {
    pub(crate) fn new(
        options: &Options,
        (files, segments): (Arc<Files>, Arc<Segments>),
        metrics: Arc<Metrics>,
        pace: Arc<Pace>,
    ) -> ReadCache {
        let chunk_bytes = CHUNK_BYTES.min(options.file_bytes);
        let memory = usize::try_from(chunk_bytes).expect("at most CHUNK_BYTES");
        let bytes_max = options.read_cache_bytes.max(CHUNKS_MIN * memory);
        ReadCache {
            chunk_bytes,
            bytes_max,
            files,
            segments,
            metrics,
            pace,
            pool: SegmentPool::new(memory, bytes_max / memory),
            chunks: Mutex::default(),
            queue: Mutex::default(),
            queued: Condvar::new(),
        }
    }

    /// Memory of the chunks that are listed, be they loaded or not.
    pub(crate) fn bytes(&self) -> usize {
        self.chunks.lock().bytes
    }

    /// Memory of all chunks in use: those in the cache's list, and those that readers hold.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.pool.used_bytes()
    }

    /// The chunks of the blocks, in order. Loading begins for those that are not here, and for the
    /// blocks of `ahead`.
    pub(crate) fn blocks_of<'a>(
        &self,
        blocks: impl Iterator<Item = (&'a Segment, &'a Block)>,
        ahead: impl Iterator<Item = (&'a Segment, &'a Block)>,
    ) -> Vec<Arc<Chunk>> {
        let mut wanted = Vec::new();
        let mut chunks = self.chunks.lock();
        let found = blocks.map(|block| self.block(&mut chunks, block, &mut wanted)).collect();
        for (segment, block) in ahead {
            if chunks.get(segment.address(block)).is_none() {
                self.block(&mut chunks, (segment, block), &mut wanted);
            }
        }
        drop(chunks);
        self.enqueue(wanted);
        found
    }

    fn block(
        &self,
        chunks: &mut Chunks,
        (segment, block): (&Segment, &Block),
        wanted: &mut Vec<Arc<Chunk>>,
    ) -> Arc<Chunk> {
        let start = segment.address(block);
        let bytes = block.bytes as usize;
        if let Some(chunk) = self.known(chunks, start, start + bytes as u64) {
            return chunk;
        }
        // A block does not change, so all of it is durable.
        let chunk = self.fresh(start, bytes, u64::MAX, Some(block.crc));
        chunks.insert(&chunk, self.bytes_max);
        wanted.push(Arc::clone(&chunk));
        chunk
    }

    /// The chunk that begins at `start`, if it reaches to `needed_to` and is of use.
    fn known(&self, chunks: &mut Chunks, start: u64, needed_to: u64) -> Option<Arc<Chunk>> {
        let chunk = Arc::clone(chunks.get(start)?);
        let is_fit = chunk.end() >= needed_to && chunk.holds_to(needed_to);
        if !is_fit || matches!(*chunk.state.lock(), State::Failed(_) | State::Gone) {
            return None;
        }
        chunks.touch(start);
        self.metrics.chunk_hits.add(1);
        Some(chunk)
    }

    /// Memory that a chunk of so many bytes takes: what nearly fills a segment of the pool takes
    /// one.
    pub(crate) fn memory_of(&self, bytes: usize) -> usize {
        let (usual, exact) = (self.pool.segment_bytes(), round_up(bytes));
        let is_usual = exact <= usual && exact > usual / 2;
        if is_usual { usual } else { exact }
    }

    fn fresh(&self, start: u64, bytes: usize, durable: u64, crc: Option<u32>) -> Arc<Chunk> {
        Arc::new(Chunk {
            start,
            bytes,
            memory: self.memory_of(bytes),
            durable,
            crc,
            state: Mutex::new(State::Loading(Vec::new())),
        })
    }

    /// The chunks that hold the ranges (journal position and length), in order, and the number of
    /// ranges they cover. Loading begins for those that are not here. At least the first range is
    /// covered, then as many as a bounded number of chunks holds that take no more than
    /// `memory_max`. `None` if a file is not part of the journal any more.
    ///
    /// Ranges that lie close together are read in whole chunks, and a few that follow with them;
    /// ranges that are spread, as those of one log among thousands, are read each for itself.
    pub(crate) fn chunks_of(
        &self,
        ranges: &[(u64, usize)],
        durable: u64,
        memory_max: usize,
    ) -> Option<(Vec<Arc<Chunk>>, usize)> {
        if is_spread(ranges) {
            return self.exact_chunks_of(ranges, durable, memory_max);
        }
        let mut memory = 0;
        let mut found: Vec<Arc<Chunk>> = Vec::new();
        let mut wanted = Vec::new();
        let mut covered = 0;
        let mut chunks = self.chunks.lock();
        for (position, bytes) in ranges {
            if covered > 0 && found.len() >= CHUNKS_PER_READ {
                break;
            }
            let end = position + *bytes as u64;
            // A chunk may hold the ranges before and have been read too early for this one, which
            // the next read then asks for alone.
            if found.last().is_some_and(|last| *position < last.end() && !last.holds_to(end)) {
                break;
            }
            let mut at = found.last().map_or(*position, |chunk| chunk.end().max(*position));
            let begins_within = found.last().is_some_and(|chunk| chunk.end() < at);
            let more = end.saturating_sub(at).next_multiple_of(self.chunk_bytes)
                + if begins_within { self.chunk_bytes } else { 0 };
            if covered > 0 && memory_max as u64 - memory < more {
                break;
            }
            while at < end {
                let chunk = match self.chunk(&mut chunks, at, end, durable, &mut wanted) {
                    Some(chunk) => chunk,
                    // A batch that reaches beyond the journal is found out when it is verified.
                    None if at > *position => break,
                    None => return None,
                };
                at = chunk.end();
                memory = (memory + chunk.memory as u64).min(memory_max as u64);
                found.push(chunk);
            }
            covered += 1;
        }
        let last = found.last()?.end();
        self.read_ahead(&mut chunks, last, durable, &mut wanted);
        drop(chunks);
        self.enqueue(wanted);
        Some((found, covered))
    }

    fn exact_chunks_of(
        &self,
        ranges: &[(u64, usize)],
        durable: u64,
        memory_max: usize,
    ) -> Option<(Vec<Arc<Chunk>>, usize)> {
        let mut found: Vec<Arc<Chunk>> = Vec::new();
        let mut wanted = Vec::new();
        let mut memory = 0;
        let mut chunks = self.chunks.lock();
        for (position, bytes) in ranges.iter().take(EXACT_CHUNKS_PER_READ) {
            memory += found.last().map_or(0, |chunk| chunk.memory);
            let more = self.memory_of(bytes + BLOCK);
            if !found.is_empty() && memory.saturating_add(more) > memory_max {
                break;
            }
            let file = self.files.at(*position)?;
            let (skip, end) = (position - file.base, file.end().min(position + *bytes as u64));
            let whole = position - skip % self.chunk_bytes;
            let start = position - skip % BLOCK as u64;
            let known = self.known(&mut chunks, whole, end);
            let known = known.or_else(|| self.known(&mut chunks, start, end));
            found.push(known.unwrap_or_else(|| {
                let bytes = usize::try_from(end - start).unwrap_or(usize::MAX);
                let chunk = self.fresh(start, round_up(bytes), durable, None);
                chunks.insert(&chunk, self.bytes_max);
                wanted.push(Arc::clone(&chunk));
                chunk
            }));
        }
        drop(chunks);
        self.enqueue(wanted);
        let covered = found.len();
        Some((found, covered))
    }

    fn chunk(
        &self,
        chunks: &mut Chunks,
        position: u64,
        needed_to: u64,
        durable: u64,
        wanted: &mut Vec<Arc<Chunk>>,
    ) -> Option<Arc<Chunk>> {
        let file = self.files.at(position)?;
        let start = position - (position - file.base) % self.chunk_bytes;
        let bytes = self.chunk_bytes.min(file.end() - start);
        if let Some(chunk) = self.known(chunks, start, needed_to.min(start + bytes)) {
            return Some(chunk);
        }
        let bytes = usize::try_from(bytes).expect("at most CHUNK_BYTES");
        let chunk = self.fresh(start, bytes, durable, None);
        chunks.insert(&chunk, self.bytes_max);
        wanted.push(Arc::clone(&chunk));
        Some(chunk)
    }

    fn read_ahead(
        &self,
        chunks: &mut Chunks,
        mut position: u64,
        durable: u64,
        wanted: &mut Vec<Arc<Chunk>>,
    ) {
        for _ in 0..self.read_ahead_max() {
            let Some(file) = self.files.at(position) else { return };
            let end = (position + self.chunk_bytes).min(file.end());
            if end > durable {
                return;
            }
            if chunks.get(position).is_none() {
                self.chunk(chunks, position, end, durable, wanted);
            }
            position = end;
        }
    }

    /// Chunks that are loaded ahead of a reader: what others read shall not go for them.
    fn read_ahead_max(&self) -> usize {
        READ_AHEAD.min(self.bytes_max / self.pool.segment_bytes() / READ_AHEAD_PART)
    }

    fn enqueue(&self, wanted: Vec<Arc<Chunk>>) {
        if wanted.is_empty() {
            return;
        }
        let mut queue = self.queue.lock();
        if queue.closed {
            drop(queue);
            wanted.iter().for_each(|chunk| chunk.finish(State::Failed(Error::Closed)));
            return;
        }
        let count = wanted.len();
        queue.waiting.extend(wanted);
        drop(queue);
        if count == 1 { self.queued.notify_one() } else { self.queued.notify_all() }
    }

    /// Loads the chunk that waits for longest, if one does.
    pub(crate) fn load_one(&self) -> bool {
        let next = self.queue.lock().waiting.pop_front();
        let Some(chunk) = next else { return false };
        self.load_wanted(&chunk);
        true
    }

    /// Loads a chunk, unless it has left the cache meanwhile and no reader waits for it.
    fn load_wanted(&self, chunk: &Arc<Chunk>) {
        if Arc::strong_count(chunk) > 1 {
            self.load(chunk);
        }
    }

    fn load(&self, chunk: &Chunk) {
        let loaded = catch(|| {
            fault_point("reader");
            self.pace.read(chunk.bytes, || self.read(chunk))
        });
        self.metrics.chunk_reads.add(1);
        self.metrics.chunk_read_bytes.add(chunk.bytes);
        match loaded {
            Ok(Ok(Some(bytes))) => chunk.finish(State::Loaded(bytes)),
            Ok(Ok(None)) => chunk.finish(State::Gone),
            Ok(Err(_)) if self.is_gone(chunk) => chunk.finish(State::Gone),
            Ok(Err(error)) => chunk.finish(State::Failed(error)),
            Err(panic) => {
                self.metrics.defects.add(1);
                let is_confined = !panic.has_left_half_changed();
                let error = Error::Defect { operation: "a read from disk", panic };
                tracing::error!(%error, "a read failed; its waiters get an error");
                chunk.finish(State::Failed(error));
                assert!(is_confined, "a read from disk left something half changed");
            }
        }
    }

    fn is_gone(&self, chunk: &Chunk) -> bool {
        match of_address(chunk.start) {
            Some((number, _)) => self.segments.get(number).is_none(),
            None => self.files.at(chunk.start).is_none(),
        }
    }

    /// The bytes of a chunk, or `None` if its file is gone.
    fn read(&self, chunk: &Chunk) -> Result<Option<Bytes>, Error> {
        let region = || match chunk.memory == self.pool.segment_bytes() {
            true => self.pool.take(),
            false => self.pool.take_of(chunk.memory),
        };
        let Some((number, offset)) = of_address(chunk.start) else {
            let Some(file) = self.files.at(chunk.start) else { return Ok(None) };
            let handle = self.files.handle(&file)?;
            let region = region().split_to(chunk.bytes);
            let read = fill(region, &*handle, chunk.start - file.base);
            return read.map(Some).map_err(|error| Error::io("read", &file.path, error));
        };
        let Some(segment) = self.segments.get(number) else { return Ok(None) };
        let handle = self.segments.handle(&segment)?;
        let region = region().split_to(round_up(chunk.bytes));
        let read = fill(region, &*handle, offset);
        let bytes = read.map_err(|error| Error::io("read", &segment.path, error))?;
        let bytes = bytes.slice(..chunk.bytes);
        if chunk.crc != Some(crc32c(&bytes)) {
            self.metrics.corrupt_batches.add(1);
            let reason = "the checksum of a block does not hold";
            return Err(Error::corrupt(&segment.path, offset, reason));
        }
        Ok(Some(bytes))
    }

    /// A reader thread.
    pub(crate) fn run_loads(&self) {
        loop {
            let chunk = {
                let mut queue = self.queue.lock();
                loop {
                    if queue.closed {
                        return;
                    }
                    if let Some(chunk) = queue.waiting.pop_front() {
                        break chunk;
                    }
                    queue = self.queued.wait(queue);
                }
            };
            self.load_wanted(&chunk);
        }
    }

    /// Ends the reader threads; tasks that wait for a chunk get an error.
    pub(crate) fn close(&self) {
        let waiting = {
            let mut queue = self.queue.lock();
            queue.closed = true;
            std::mem::take(&mut queue.waiting)
        };
        self.queued.notify_all();
        waiting.iter().for_each(|chunk| chunk.finish(State::Failed(Error::Closed)));
    }
}

/// Whether so little of whole chunks is wanted that reading the ranges alone costs less. Readers of
/// other logs may use the rest, if they are at the same place; mostly they are not.
fn is_spread(ranges: &[(u64, usize)]) -> bool {
    let [(first, _), .., (last, bytes)] = ranges else { return true };
    let span = last - first + *bytes as u64;
    let cost: u64 = ranges.iter().map(|(_, bytes)| *bytes as u64 + REQUEST_COST_BYTES).sum();
    cost < span
}

fn fill(mut region: Region, file: &dyn DiskFile, offset: u64) -> std::io::Result<Bytes> {
    read_full(file, region.as_mut(), offset)?;
    Ok(region.freeze())
}

/// Large enough that the disk gives its sequential rate, small enough that a reader of one log
/// among many does not wait for much that it does not want.
const CHUNK_BYTES: u64 = 1 << 20;
/// A read and what is read ahead for it fit into the smallest cache.
const CHUNKS_MIN: usize = 8;
/// What one more request costs, as the bytes that the disk gives in a row in the same time.
const REQUEST_COST_BYTES: u64 = 32 << 10;
/// Bounds what one fetch can ask of the disk before it gets an answer.
const CHUNKS_PER_READ: usize = 8;
/// The same where a chunk is one batch.
const EXACT_CHUNKS_PER_READ: usize = 64;
/// Chunks loaded ahead of a reader, so that its next read finds all that it wants.
const READ_AHEAD: usize = CHUNKS_PER_READ;
/// The part of the cache that is loaded ahead of one reader at most.
const READ_AHEAD_PART: usize = 4;
/// Threads that read chunks: the device needs more than one request at a time for its full rate.
pub(crate) const READER_THREADS: usize = 8;
