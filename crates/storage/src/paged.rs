//! Files that are written once, from their start to their end: segments and checkpoints.
//!
//! What is not record data in them stands in pages: whole entries with a checksum each, so that
//! damage is found before anything of the page counts, and is named with its place.
//!
//! | bytes of a page | field |
//! |---|---|
//! | 0..4 | length of the payload, u32 |
//! | 4..8 | CRC32C of bytes 8..16 and the payload |
//! | 8..16 | offset of the page in its file, u64 |
//! | 16.. | payload, zeros up to a multiple of 4096 |

use std::path::{Path, PathBuf};
use std::sync::Arc;

use moldau_records::{Crc32c, crc32c};

use crate::Error;
use crate::disk::{Access, Disk, DiskFile, write_all};
use crate::format::{Fields, round_up};
use crate::io::{BLOCK, Region, SegmentPool};
use crate::pace::Pace;
use crate::window::Window;

/// Writes a file under a temporary name and gives it its own when it is whole.
pub(crate) struct FileWriter<'a> {
    disk: &'a dyn Disk,
    pace: &'a Pace,
    file: Arc<dyn DiskFile>,
    temporary: PathBuf,
    buffer: Region,
    filled: usize,
    /// Where the buffer goes.
    offset: u64,
    is_finished: bool,
}

impl<'a> FileWriter<'a> {
    /// Begins `name` in `dir`; its first block is left for [`FileWriter::finish`].
    pub(crate) fn create(
        disk: &'a dyn Disk,
        pace: &'a Pace,
        dir: &Path,
        name: &str,
        access: Access,
    ) -> Result<FileWriter<'a>, Error> {
        let temporary = dir.join(format!("{name}.{TEMPORARY_SUFFIX}"));
        // What an attempt before this one left behind would lengthen the file.
        match disk.remove(&temporary) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(Error::io("remove", &temporary, error));
            }
            _ => {}
        }
        let file = disk.open(&temporary, access, true);
        let file = file.map_err(|error| Error::io("create", &temporary, error))?;
        let mut buffer = SegmentPool::new(BUFFER_BYTES, 0).take();
        buffer.as_mut()[..BLOCK].fill(0);
        Ok(FileWriter {
            disk,
            pace,
            file,
            temporary,
            buffer,
            filled: BLOCK,
            offset: 0,
            is_finished: false,
        })
    }

    /// Offset of the next byte.
    pub(crate) fn position(&self) -> u64 {
        self.offset + self.filled as u64
    }

    pub(crate) fn write(&mut self, mut bytes: &[u8]) -> Result<(), Error> {
        while !bytes.is_empty() {
            let count = bytes.len().min(self.buffer.len() - self.filled);
            let (fitting, further) = bytes.split_at(count);
            self.buffer.as_mut()[self.filled..self.filled + count].copy_from_slice(fitting);
            self.filled += count;
            bytes = further;
            if self.filled == self.buffer.len() {
                self.write_buffer()?;
            }
        }
        Ok(())
    }

    /// Writes zeros up to the next block.
    pub(crate) fn align(&mut self) -> Result<(), Error> {
        let rest = round_up(self.filled) - self.filled;
        self.write(&[0; BLOCK][..rest])
    }

    fn write_buffer(&mut self) -> Result<(), Error> {
        if self.pace.is_stopped() {
            return Err(Error::Closed);
        }
        if self.filled == 0 {
            return Ok(());
        }
        let bytes = &self.buffer.as_slice()[..self.filled];
        let written =
            self.pace.work(bytes.len(), || write_all(&*self.file, &[bytes], self.offset, BLOCK));
        written.map_err(|error| Error::io("write", &self.temporary, error))?;
        self.offset += self.filled as u64;
        self.filled = 0;
        Ok(())
    }

    /// Writes the first block and makes the file durable under its name, replacing what had it.
    pub(crate) fn finish(self, header: &[u8; 64]) -> Result<PathBuf, Error> {
        self.finish_after(header, |_| Ok(()))
    }

    /// As [`FileWriter::finish`]; `make_way` gets the name before the file does.
    pub(crate) fn finish_after(
        mut self,
        header: &[u8; 64],
        make_way: impl FnOnce(&Path) -> std::io::Result<()>,
    ) -> Result<PathBuf, Error> {
        self.align()?;
        self.write_buffer()?;
        let block = &mut self.buffer.as_mut()[..BLOCK];
        block.fill(0);
        block[..header.len()].copy_from_slice(header);
        let path = self.temporary.with_extension("");
        let dir = path.parent().unwrap_or(Path::new("."));
        let finished = write_all(&*self.file, &[block], 0, BLOCK)
            .and_then(|()| self.file.sync_data())
            .and_then(|()| make_way(&path))
            .and_then(|()| self.disk.rename(&self.temporary, &path))
            .and_then(|()| {
                self.is_finished = true;
                self.disk.sync_dir(dir)
            });
        finished.map_err(|error| Error::io("write", &path, error))?;
        Ok(path)
    }
}

impl Drop for FileWriter<'_> {
    fn drop(&mut self) {
        if !self.is_finished {
            // It is removed with the next opening if it cannot be removed here.
            self.disk.remove(&self.temporary).ok();
        }
    }
}

/// Gathers entries into pages.
#[derive(Debug, Default)]
pub(crate) struct PageBuffer {
    payload: Vec<u8>,
}

impl PageBuffer {
    /// Adds an entry, which is never split; writes the page if it is long enough.
    pub(crate) fn entry(&mut self, parts: &[&[u8]], to: &mut FileWriter<'_>) -> Result<(), Error> {
        parts.iter().for_each(|part| self.payload.extend_from_slice(part));
        if self.payload.len() >= PAGE_BYTES { self.end(to) } else { Ok(()) }
    }

    /// Writes what was gathered, if anything was.
    pub(crate) fn end(&mut self, to: &mut FileWriter<'_>) -> Result<(), Error> {
        if self.payload.is_empty() {
            return Ok(());
        }
        let offset = to.position().to_le_bytes();
        let mut crc = Crc32c::new();
        crc.update(&offset);
        crc.update(&self.payload);
        let bytes = u32::try_from(self.payload.len()).expect("an entry is below 1 GiB");
        to.write(&bytes.to_le_bytes())?;
        to.write(&crc.value().to_le_bytes())?;
        to.write(&offset)?;
        to.write(&self.payload)?;
        self.payload.clear();
        to.align()
    }
}

/// Reads the pages from `offset` to `end` of a file.
pub(crate) struct Pages<'a> {
    file: &'a dyn DiskFile,
    path: &'a Path,
    window: Window,
    offset: u64,
    end: u64,
}

impl<'a> Pages<'a> {
    pub(crate) fn new(file: &'a dyn DiskFile, path: &'a Path, offset: u64, end: u64) -> Pages<'a> {
        Pages { file, path, window: Window::new(READ_BYTES), offset, end }
    }

    /// Offset of the page that [`Pages::next`] gives.
    pub(crate) fn offset(&self) -> u64 {
        self.offset
    }

    /// The payload of the next page.
    pub(crate) fn next(&mut self) -> Result<Option<&[u8]>, Error> {
        if self.offset >= self.end {
            return Ok(None);
        }
        let (offset, path) = (self.offset, self.path);
        let damaged = |reason| Error::corrupt(path, offset, reason);
        let header = self.window.get(self.file, path, offset, BLOCK, self.end)?;
        let mut fields = Fields(header.unwrap_or_default());
        let bytes = fields.u32().ok_or_else(|| damaged("a page that is not whole"))? as usize;
        let crc = fields.u32();
        let whole = round_up(PAGE_HEADER_BYTES + bytes);
        if bytes == 0 || offset + whole as u64 > self.end {
            return Err(damaged("a page whose length cannot be"));
        }
        let page = self.window.get(self.file, path, offset, whole, self.end)?;
        let checked = page.and_then(|page| page.get(8..PAGE_HEADER_BYTES + bytes));
        let checked = checked.ok_or_else(|| damaged("a page that is not whole"))?;
        let (place, payload) = checked.split_at(8);
        if place != offset.to_le_bytes() || Some(crc32c(checked)) != crc {
            return Err(damaged("a page whose checksum does not hold"));
        }
        self.offset += whole as u64;
        Ok(Some(payload))
    }
}

pub(crate) const TEMPORARY_SUFFIX: &str = "tmp";
const PAGE_HEADER_BYTES: usize = 16;
/// A page is checked as a whole before it is used, and damage is named by page.
const PAGE_BYTES: usize = 256 << 10;
/// Large enough that the disk gives its sequential rate, small enough that a flush of the journal
/// never waits for long behind it.
const BUFFER_BYTES: usize = 512 << 10;
const READ_BYTES: usize = 1 << 20;
