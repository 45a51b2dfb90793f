//! Reading a file forward in large steps.

use std::path::Path;
use std::sync::Arc;

use crate::Error;
use crate::disk::{DiskFile, read_full};
use crate::format::round_up;
use crate::io::{Region, SegmentPool};

/// A stretch of a file in memory, read in large steps.
pub(crate) struct Window {
    region: Region,
    step: usize,
    file: Option<Arc<Path>>,
    start: u64,
    filled: usize,
}

impl Window {
    /// A window that reads `step` bytes at a time, a multiple of the block.
    pub(crate) fn new(step: usize) -> Window {
        let region = SegmentPool::new(step, 0).take();
        Window { region, step, file: None, start: 0, filled: 0 }
    }

    /// The `count` bytes at `offset`, both multiples of the block, of a file of `length` bytes;
    /// `None` if the file ends before.
    pub(crate) fn get(
        &mut self,
        handle: &dyn DiskFile,
        path: &Path,
        offset: u64,
        count: usize,
        length: u64,
    ) -> Result<Option<&[u8]>, Error> {
        let end = offset + count as u64;
        if end > length {
            return Ok(None);
        }
        let is_same_file = self.file.as_deref() == Some(path);
        let is_near = (self.start..=self.start + self.filled as u64).contains(&offset);
        if !(is_same_file && is_near) {
            self.file = Some(Arc::from(path));
            (self.start, self.filled) = (offset, 0);
        }
        if end > self.start + self.filled as u64 {
            self.advance(offset, count);
            let wanted = (count - self.filled).max(self.step);
            let room = wanted.min(self.region.len() - self.filled);
            let left = usize::try_from(length - self.start).unwrap_or(usize::MAX) - self.filled;
            let mut read = room.min(left);
            let from = self.start + self.filled as u64;
            let target = &mut self.region.as_mut()[self.filled..self.filled + read];
            if read_full(handle, target, from).is_err() {
                // The unreadable part may lie behind the requested range.
                read = count - self.filled;
                read_full(handle, &mut target[..read], from)
                    .map_err(|error| Error::io("read", path, error))?;
            }
            self.filled += read;
        }
        let at = usize::try_from(offset - self.start).unwrap_or(usize::MAX);
        Ok(self.region.as_slice()[..self.filled].get(at..at + count))
    }

    /// Makes the window begin at `offset`, with room for `count` bytes.
    fn advance(&mut self, offset: u64, count: usize) {
        let skip = usize::try_from(offset - self.start).unwrap_or(usize::MAX);
        let kept = self.filled - skip;
        if count > self.region.len() {
            let mut region = SegmentPool::new(round_up(count), 0).take();
            region.as_mut()[..kept].copy_from_slice(&self.region.as_slice()[skip..self.filled]);
            self.region = region;
        } else {
            self.region.as_mut().copy_within(skip..self.filled, 0);
        }
        (self.start, self.filled) = (offset, kept);
    }
}
