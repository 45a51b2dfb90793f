//! A disk whose unreadable blocks read as zeros, so that one of them costs no more than itself.

use std::io::{self, IoSlice};
use std::path::Path;
use std::sync::Arc;

use rustix::io::Errno;

use crate::disk::{Access, Disk, DiskFile};
use crate::io::BLOCK;

/// Reads what can be read; all else goes to the disk itself.
pub(super) struct Lenient(pub(super) Arc<dyn Disk>);

struct LenientFile(Arc<dyn DiskFile>);

impl Disk for Lenient {
    fn create_dir(&self, path: &Path) -> io::Result<()> {
        self.0.create_dir(path)
    }

    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        self.0.list(path)
    }

    fn open(&self, path: &Path, access: Access, create: bool) -> io::Result<Arc<dyn DiskFile>> {
        Ok(Arc::new(LenientFile(self.0.open(path, access, create)?)))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.0.rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.0.remove(path)
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        self.0.sync_dir(path)
    }

    fn free_bytes(&self, path: &Path) -> io::Result<u64> {
        self.0.free_bytes(path)
    }

    fn lock(&self, path: &Path) -> io::Result<Option<Box<dyn Send + Sync>>> {
        self.0.lock(path)
    }
}

impl DiskFile for LenientFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        match self.0.read_at(buffer, offset) {
            Err(error) if is_unreadable(&error) => {}
            other => return other,
        }
        // The first block alone: the rest is asked for again.
        let count = buffer.len().min(BLOCK);
        let block = &mut buffer[..count];
        match self.0.read_at(block, offset) {
            Err(error) if is_unreadable(&error) => {
                block.fill(0);
                Ok(count)
            }
            other => other,
        }
    }

    fn write_at(&self, buffers: &[IoSlice<'_>], offset: u64) -> io::Result<usize> {
        self.0.write_at(buffers, offset)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.0.sync_data()
    }

    fn allocate(&self, bytes: u64) -> io::Result<()> {
        self.0.allocate(bytes)
    }

    fn shorten(&self, bytes: u64) -> io::Result<()> {
        self.0.shorten(bytes)
    }

    fn length(&self) -> io::Result<u64> {
        self.0.length()
    }
}

/// Linux says so of a block that the medium has lost.
fn is_unreadable(error: &io::Error) -> bool {
    error.raw_os_error() == Some(Errno::IO.raw_os_error())
}
