//! Chunks of the journal that were read back from disk.
//!
//! Consumers that follow different logs at about the same place in the journal share the chunks,
//! and a reader that walks forward finds the next chunks loaded. A chunk remembers how far the
//! journal was durable when its read began: what lies beyond may have been written since and is not
//! served.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::task::Waker;

use bytes::Bytes;

use crate::disk::read_full;
use crate::files::Files;
use crate::io::SegmentPool;
use crate::metrics::Metrics;
use crate::sync::lock;
use crate::{Error, Options};

/// Chunks by journal position, and those that wait to be loaded.
pub(crate) struct ReadCache {
    chunk_bytes: u64,
    chunks_max: usize,
    files: Arc<Files>,
    metrics: Arc<Metrics>,
    pool: Arc<SegmentPool>,
    chunks: Mutex<Chunks>,
    queue: Mutex<Queue>,
    queued: Condvar,
}

#[derive(Default)]
struct Chunks {
    by_start: HashMap<u64, Arc<Chunk>>,
    /// Order of arrival, for eviction with a second chance.
    order: VecDeque<Arc<Chunk>>,
}

#[derive(Default)]
struct Queue {
    waiting: VecDeque<Arc<Chunk>>,
    closed: bool,
}

/// A stretch of one journal file.
pub(crate) struct Chunk {
    pub(crate) start: u64,
    bytes: usize,
    /// Durable position when the chunk was asked for: what lies before it is in the chunk.
    durable: u64,
    used: AtomicBool,
    state: Mutex<State>,
}

enum State {
    Loading(Vec<Waker>),
    Loaded(Bytes),
    Failed(Error),
    /// The file was retired: no log refers to it any more.
    Gone,
}

/// What a chunk holds.
pub(crate) enum Loaded {
    /// The bytes from the chunk's start on.
    Bytes(Bytes),
    /// Not yet.
    Loading,
    /// The file is not part of the journal any more.
    Gone,
}

impl Chunk {
    pub(crate) fn loaded(&self) -> Result<Loaded, Error> {
        self.poll(None)
    }

    /// As [`Chunk::loaded`]; wakes `waker` when loading ends.
    pub(crate) fn poll(&self, waker: Option<&Waker>) -> Result<Loaded, Error> {
        match &mut *lock(&self.state) {
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
        let before = std::mem::replace(&mut *lock(&self.state), state);
        if let State::Loading(wakers) = before {
            wakers.into_iter().for_each(Waker::wake);
        }
    }
}

impl ReadCache {
    pub(crate) fn new(options: &Options, files: Arc<Files>, metrics: Arc<Metrics>) -> ReadCache {
        let chunk_bytes = CHUNK_BYTES.min(options.file_bytes);
        let segment_bytes = usize::try_from(chunk_bytes).expect("at most CHUNK_BYTES");
        let chunks_max = (options.read_cache_bytes / segment_bytes).max(CHUNKS_MIN);
        ReadCache {
            chunk_bytes,
            chunks_max,
            files,
            metrics,
            pool: SegmentPool::new(segment_bytes, chunks_max),
            chunks: Mutex::default(),
            queue: Mutex::default(),
            queued: Condvar::new(),
        }
    }

    /// The chunks that hold the ranges (journal position and length), in order and each once, and
    /// the number of ranges they cover. Loading begins for those that are not here, and for a few
    /// that follow. At least the first range is covered, then as many as a bounded number of chunks
    /// holds. `None` if a file is not part of the journal any more.
    pub(crate) fn chunks_of(
        &self,
        ranges: impl Iterator<Item = (u64, usize)>,
        durable: u64,
    ) -> Option<(Vec<Arc<Chunk>>, usize)> {
        let mut found: Vec<Arc<Chunk>> = Vec::new();
        let mut wanted = Vec::new();
        let mut covered = 0;
        let mut chunks = lock(&self.chunks);
        for (position, bytes) in ranges {
            if covered > 0 && found.len() >= CHUNKS_PER_READ {
                break;
            }
            let end = position + bytes as u64;
            // A chunk may hold the ranges before and have been read too early for this one, which
            // the next read then asks for alone.
            if found.last().is_some_and(|last| position < last.end() && !last.holds_to(end)) {
                break;
            }
            let mut at = found.last().map_or(position, |chunk| chunk.end().max(position));
            while at < end {
                let chunk = self.chunk(&mut chunks, at, end, durable, &mut wanted)?;
                at = chunk.end();
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
        if let Some(chunk) = chunks.by_start.get(&start) {
            let is_fresh = chunk.holds_to(needed_to);
            let is_failed = matches!(*lock(&chunk.state), State::Failed(_));
            if is_fresh && !is_failed {
                chunk.used.store(true, Ordering::Relaxed);
                self.metrics.chunk_hits.add(1);
                return Some(Arc::clone(chunk));
            }
        }
        let bytes = self.chunk_bytes.min(file.end() - start);
        let chunk = Arc::new(Chunk {
            start,
            bytes: usize::try_from(bytes).expect("at most CHUNK_BYTES"),
            durable,
            used: AtomicBool::new(false),
            state: Mutex::new(State::Loading(Vec::new())),
        });
        self.insert(chunks, &chunk);
        wanted.push(Arc::clone(&chunk));
        Some(chunk)
    }

    fn insert(&self, chunks: &mut Chunks, chunk: &Arc<Chunk>) {
        while chunks.order.len() >= self.chunks_max {
            let Some(oldest) = chunks.order.pop_front() else { break };
            let is_listed = chunks.by_start.get(&oldest.start);
            let is_listed = is_listed.is_some_and(|listed| Arc::ptr_eq(listed, &oldest));
            if is_listed && oldest.used.swap(false, Ordering::Relaxed) {
                chunks.order.push_back(oldest);
            } else if is_listed {
                chunks.by_start.remove(&oldest.start);
            }
        }
        chunks.order.push_back(Arc::clone(chunk));
        chunks.by_start.insert(chunk.start, Arc::clone(chunk));
    }

    fn read_ahead(
        &self,
        chunks: &mut Chunks,
        mut position: u64,
        durable: u64,
        wanted: &mut Vec<Arc<Chunk>>,
    ) {
        for _ in 0..READ_AHEAD {
            let Some(file) = self.files.at(position) else { return };
            let end = (position + self.chunk_bytes).min(file.end());
            if end > durable {
                return;
            }
            if !chunks.by_start.contains_key(&position) {
                self.chunk(chunks, position, end, durable, wanted);
            }
            position = end;
        }
    }

    fn enqueue(&self, wanted: Vec<Arc<Chunk>>) {
        if wanted.is_empty() {
            return;
        }
        let mut queue = lock(&self.queue);
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
        let next = lock(&self.queue).waiting.pop_front();
        let Some(chunk) = next else { return false };
        self.load(&chunk);
        true
    }

    fn load(&self, chunk: &Chunk) {
        let Some(file) = self.files.at(chunk.start) else {
            chunk.finish(State::Gone);
            return;
        };
        let mut region = self.pool.take().split_to(chunk.bytes);
        let read = self.files.handle(&file).and_then(|handle| {
            read_full(&*handle, region.as_mut(), chunk.start - file.base)
                .map_err(|error| Error::io("read", &file.path, error))
        });
        self.metrics.chunk_reads.add(1);
        self.metrics.chunk_read_bytes.add(chunk.bytes);
        chunk.finish(match read {
            Ok(()) => State::Loaded(region.freeze()),
            Err(_) if self.files.at(chunk.start).is_none() => State::Gone,
            Err(error) => State::Failed(error),
        });
    }

    /// A reader thread.
    pub(crate) fn run_loads(&self) {
        loop {
            let chunk = {
                let mut queue = lock(&self.queue);
                loop {
                    if queue.closed {
                        return;
                    }
                    if let Some(chunk) = queue.waiting.pop_front() {
                        break chunk;
                    }
                    queue = self
                        .queued
                        .wait(queue)
                        .expect("a thread that panicked under the lock left it half changed");
                }
            };
            self.load(&chunk);
        }
    }

    /// Ends the reader threads; whoever waits for a chunk is told.
    pub(crate) fn close(&self) {
        let waiting = {
            let mut queue = lock(&self.queue);
            queue.closed = true;
            std::mem::take(&mut queue.waiting)
        };
        self.queued.notify_all();
        waiting.iter().for_each(|chunk| chunk.finish(State::Failed(Error::Closed)));
    }
}

/// Large enough that the disk gives its sequential rate, small enough that a reader of one log
/// among many does not wait for much that it does not want.
const CHUNK_BYTES: u64 = 1 << 20;
/// A read and what is read ahead for it fit into the smallest cache.
const CHUNKS_MIN: usize = 8;
/// Bounds what one fetch can ask of the disk before it gets an answer.
const CHUNKS_PER_READ: usize = 8;
/// Chunks loaded ahead of a reader: two threads stay busy while the reader sends what it has.
const READ_AHEAD: usize = 4;
/// Threads that read chunks: the device needs more than one request at a time for its full rate.
pub(crate) const READER_THREADS: usize = 2;
