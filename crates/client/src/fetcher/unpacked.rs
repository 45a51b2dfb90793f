//! Records as views that stay valid together: batches are unpacked into buffers of a pool.
//!
//! Views of an uncompressed batch lie in the answer itself. Nothing is allocated per record, and
//! nothing per batch once the buffers of the pool have grown.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use moldau_records::{BatchView, Compression, Decompressor, RecordView, Records, iter_batches};

use super::Fetched;
use crate::Result;

/// Buffers for unpacked batches. Clones share them; each reader has its own while it uses it.
#[derive(Clone, Debug)]
pub struct UnpackPool {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    bytes_max: usize,
    /// Guards the buffers that nobody uses.
    idle: Mutex<Vec<Scratch>>,
}

/// What one reader works with.
#[derive(Debug, Default)]
struct Scratch {
    decompressor: Decompressor,
    buffers: Vec<Vec<u8>>,
    parts: Vec<Part>,
}

/// One batch.
#[derive(Clone, Copy, Debug)]
struct Part {
    /// Where it lies among the fetched bytes.
    start: usize,
    end: usize,
    payload: Payload,
}

#[derive(Clone, Copy, Debug)]
enum Payload {
    AsFetched,
    /// In this buffer.
    Unpacked(usize),
}

/// Consecutive batches of a [`Fetched`], unpacked. Its buffers go back to the pool with it.
#[derive(Debug)]
pub struct Unpacked<'f> {
    fetched: &'f Fetched,
    position: i64,
    next_position: i64,
    scratch: Scratch,
    pool: UnpackPool,
}

/// The records of an [`Unpacked`], in order; from [`Unpacked::iter`]. It ends after an error.
#[derive(Debug)]
pub struct RecordViews<'u> {
    unpacked: &'u Unpacked<'u>,
    next_part: usize,
    records: Option<Records<'u>>,
}

impl UnpackPool {
    /// A pool whose readers unpack at most `bytes_max` bytes of a batch, and stop after the batch
    /// with which they have reached that many.
    #[must_use]
    pub fn new(bytes_max: usize) -> Self {
        Self { shared: Arc::new(Shared { bytes_max, idle: Mutex::default() }) }
    }

    fn take(&self) -> Scratch {
        self.lock().pop().unwrap_or_default()
    }

    fn put(&self, mut scratch: Scratch) {
        scratch.parts.clear();
        let mut kept = 0_usize;
        scratch.buffers.retain(|buffer| {
            kept = kept.saturating_add(buffer.capacity());
            kept <= KEPT_BYTES_MAX
        });
        let mut idle = self.lock();
        if idle.len() < IDLE_MAX {
            idle.push(scratch);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Scratch>> {
        self.shared.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Fetched {
    /// Unpacks batches from `position` on, one that begins before it included, as many as the pool
    /// says. Reading goes on at [`Unpacked::next_position`], up to
    /// [`next_position`](Self::next_position). Each CRC is checked. Control batches, and those of
    /// aborted transactions where committed records alone are read, are left out.
    ///
    /// # Errors
    /// A batch is damaged or too large.
    pub fn unpack(&self, position: i64, pool: &UnpackPool) -> Result<Unpacked<'_>> {
        let scratch = pool.take();
        let next_position = self.next_position;
        let pool = pool.clone();
        let mut unpacked = Unpacked { fetched: self, position, next_position, scratch, pool };
        unpacked.fill()?;
        Ok(unpacked)
    }
}

impl Unpacked<'_> {
    fn fill(&mut self) -> Result<()> {
        let bytes_max = self.pool.shared.bytes_max;
        let Scratch { decompressor, buffers, parts } = &mut self.scratch;
        let mut aborted = self.fetched.aborted.clone();
        let (mut end, mut used, mut bytes) = (0, 0, 0_usize);
        for batch in iter_batches(&self.fetched.bytes) {
            let batch = batch?;
            let start = end;
            end = start + batch.bytes().len();
            let is_aborted = aborted.covers(&batch);
            if is_aborted || batch.is_control() || batch.next_offset() <= self.position {
                continue;
            }
            if bytes >= bytes_max {
                self.next_position = batch.base_offset();
                break;
            }
            batch.check_crc()?;
            let payload = match batch.compression()? {
                Compression::None => Payload::AsFetched,
                codec => {
                    if buffers.len() == used {
                        buffers.push(Vec::new());
                    }
                    if let Some(buffer) = buffers.get_mut(used) {
                        decompressor.decompress_into(codec, batch.payload(), bytes_max, buffer)?;
                        bytes += buffer.len();
                    }
                    used += 1;
                    Payload::Unpacked(used - 1)
                }
            };
            parts.push(Part { start, end, payload });
        }
        Ok(())
    }

    /// Offset from which reading goes on.
    #[must_use]
    pub fn next_position(&self) -> i64 {
        self.next_position
    }

    /// The records from the position on. Views may be kept as long as this.
    #[must_use]
    pub fn iter(&self) -> RecordViews<'_> {
        RecordViews { unpacked: self, next_part: 0, records: None }
    }

    fn records(&self, part: Part) -> Result<Records<'_>> {
        let bytes = self.fetched.bytes.get(part.start..part.end).unwrap_or_default();
        let batch = BatchView::parse(bytes)?;
        let payload = match part.payload {
            Payload::AsFetched => batch.payload(),
            Payload::Unpacked(buffer) => self.scratch.buffers.get(buffer).map_or(&[][..], |it| it),
        };
        Ok(batch.records_of_payload(payload)?)
    }
}

impl<'u> IntoIterator for &'u Unpacked<'_> {
    type Item = Result<RecordView<'u>>;
    type IntoIter = RecordViews<'u>;

    fn into_iter(self) -> RecordViews<'u> {
        self.iter()
    }
}

impl<'u> Iterator for RecordViews<'u> {
    type Item = Result<RecordView<'u>>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(records) = &mut self.records {
                match records.next() {
                    Some(Ok(record)) if record.offset() < self.unpacked.position => continue,
                    Some(Ok(record)) => return Some(Ok(record)),
                    Some(Err(error)) => return Some(Err(self.end(error.into()))),
                    None => {}
                }
            }
            let part = *self.unpacked.scratch.parts.get(self.next_part)?;
            self.next_part += 1;
            match self.unpacked.records(part) {
                Ok(records) => self.records = Some(records),
                Err(error) => return Some(Err(self.end(error))),
            }
        }
    }
}

impl RecordViews<'_> {
    fn end(&mut self, error: crate::Error) -> crate::Error {
        self.next_part = self.unpacked.scratch.parts.len();
        self.records = None;
        error
    }
}

impl Drop for Unpacked<'_> {
    fn drop(&mut self) {
        self.pool.put(std::mem::take(&mut self.scratch));
    }
}

/// Readers whose buffers are kept for others: more than there are threads that read at a time.
const IDLE_MAX: usize = 64;

/// Bytes of buffers that a reader leaves to the next one; ordinary answers unpack into less.
const KEPT_BYTES_MAX: usize = 8 * 1024 * 1024;

#[cfg(test)]
mod tests;
