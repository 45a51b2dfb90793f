//! The file operations that storage needs, as traits, and their implementation on a real disk.
//!
//! Everything that storage does to a disk passes through [`Disk`] and [`DiskFile`], so that a test
//! can lose, tear and reorder writes and fail any operation. Writes and reads on a file opened with
//! [`Access::Direct`] have offset, length and memory aligned to 4096 bytes.

use std::fs;
use std::io::{self, IoSlice};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;

use moldau_threads::may_block;
use rustix::fs::{FallocateFlags, FlockOperation, Mode, OFlags};

use crate::pace::Pace;

/// How a file's bytes reach the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Past the page cache (`O_DIRECT`).
    Direct,
    /// Through the page cache.
    Buffered,
}

/// A directory tree on a disk.
pub trait Disk: Send + Sync + 'static {
    /// Creates a directory and its parents; it may exist already.
    fn create_dir(&self, path: &Path) -> io::Result<()>;
    /// Names of the entries of a directory, in any order.
    fn list(&self, path: &Path) -> io::Result<Vec<String>>;
    /// Opens a file for reading and writing; with `create`, an absent file is created.
    fn open(&self, path: &Path, access: Access, create: bool) -> io::Result<Arc<dyn DiskFile>>;
    /// Renames a file, replacing the target.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Removes a file.
    fn remove(&self, path: &Path) -> io::Result<()>;
    /// Makes creations, renames and removals in a directory durable.
    fn sync_dir(&self, path: &Path) -> io::Result<()>;
    /// Bytes that can still be allocated on the disk of `path`.
    fn free_bytes(&self, path: &Path) -> io::Result<u64>;
    /// Takes the exclusive lock on a file, creating it; `None` if another holder has it. The lock
    /// is held until the returned value is dropped.
    fn lock(&self, path: &Path) -> io::Result<Option<Box<dyn Send + Sync>>>;
}

/// An open file.
pub trait DiskFile: Send + Sync {
    /// Reads at `offset` into `buffer`; fewer bytes than asked for only at the end of the file or
    /// after an interruption.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize>;
    /// Writes `buffers` one after the other at `offset` and returns how many bytes were taken.
    fn write_at(&self, buffers: &[IoSlice<'_>], offset: u64) -> io::Result<usize>;
    /// Makes all completed writes durable (`fdatasync`).
    fn sync_data(&self) -> io::Result<()>;
    /// Reserves space for the first `bytes` bytes and makes the file that long.
    fn allocate(&self, bytes: u64) -> io::Result<()>;
    /// Gives back what lies behind the first `bytes` bytes.
    fn shorten(&self, bytes: u64) -> io::Result<()>;
    /// Length of the file in bytes.
    fn length(&self) -> io::Result<u64>;
}

/// The disk of this machine.
#[derive(Debug, Default, Clone, Copy)]
pub struct RealDisk;

struct RealFile(OwnedFd);

impl Disk for RealDisk {
    fn create_dir(&self, path: &Path) -> io::Result<()> {
        may_block("create_dir");
        fs::create_dir_all(path)
    }

    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        may_block("list");
        let mut names = Vec::new();
        for entry in fs::read_dir(path)? {
            // A name that is not UTF-8 is none of ours.
            if let Ok(name) = entry?.file_name().into_string() {
                names.push(name);
            }
        }
        Ok(names)
    }

    fn open(&self, path: &Path, access: Access, create: bool) -> io::Result<Arc<dyn DiskFile>> {
        may_block("open");
        let mut flags = OFlags::RDWR | OFlags::CLOEXEC;
        flags.set(OFlags::DIRECT, access == Access::Direct);
        flags.set(OFlags::CREATE, create);
        let file = rustix::fs::open(path, flags, Mode::RUSR | Mode::WUSR | Mode::RGRP)?;
        Ok(Arc::new(RealFile(file)))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        may_block("rename");
        fs::rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        may_block("remove");
        fs::remove_file(path)
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        may_block("sync_dir");
        fs::File::open(path)?.sync_all()
    }

    fn free_bytes(&self, path: &Path) -> io::Result<u64> {
        may_block("free_bytes");
        let stat = rustix::fs::statvfs(path)?;
        Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
    }

    fn lock(&self, path: &Path) -> io::Result<Option<Box<dyn Send + Sync>>> {
        may_block("lock");
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::CLOEXEC;
        let file = rustix::fs::open(path, flags, Mode::RUSR | Mode::WUSR)?;
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(Box::new(file))),
            Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

impl DiskFile for RealFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        may_block("read_at");
        Ok(rustix::io::pread(&self.0, buffer, offset)?)
    }

    fn write_at(&self, buffers: &[IoSlice<'_>], offset: u64) -> io::Result<usize> {
        may_block("write_at");
        Ok(rustix::io::pwritev(&self.0, buffers, offset)?)
    }

    fn sync_data(&self) -> io::Result<()> {
        may_block("sync_data");
        Ok(rustix::fs::fdatasync(&self.0)?)
    }

    fn allocate(&self, bytes: u64) -> io::Result<()> {
        may_block("allocate");
        match rustix::fs::fallocate(&self.0, FallocateFlags::empty(), 0, bytes) {
            // A file system without allocation still gets the length; a full disk is then found by
            // a failed write.
            Err(rustix::io::Errno::OPNOTSUPP) => Ok(rustix::fs::ftruncate(&self.0, bytes)?),
            other => Ok(other?),
        }
    }

    fn shorten(&self, bytes: u64) -> io::Result<()> {
        may_block("shorten");
        Ok(rustix::fs::ftruncate(&self.0, bytes)?)
    }

    fn length(&self) -> io::Result<u64> {
        may_block("length");
        let length = rustix::fs::fstat(&self.0)?.st_size;
        u64::try_from(length).map_err(|_| io::Error::other("negative file length"))
    }
}

/// Writes all of `buffers` at `offset`. A short write is continued where it ended; a write that
/// takes nothing, or ends inside a block, is an error.
pub(crate) fn write_all(
    file: &dyn DiskFile,
    buffers: &[&[u8]],
    mut offset: u64,
    block: usize,
) -> io::Result<()> {
    let mut slices: Vec<IoSlice<'_>> = buffers.iter().map(|buffer| IoSlice::new(buffer)).collect();
    let mut rest = &mut slices[..];
    while !rest.is_empty() {
        let batch = rest.len().min(IOV_MAX);
        let written = file.write_at(&rest[..batch], offset)?;
        if written == 0 || !written.is_multiple_of(block) {
            return Err(io::Error::new(io::ErrorKind::WriteZero, "the disk took part of a block"));
        }
        offset += written as u64;
        IoSlice::advance_slices(&mut rest, written);
    }
    Ok(())
}

/// Fills `buffer` from `offset`; what lies beyond the end of the file reads as zero.
pub(crate) fn read_full(file: &dyn DiskFile, buffer: &mut [u8], offset: u64) -> io::Result<()> {
    let mut filled = 0;
    while filled < buffer.len() {
        let read = match file.read_at(&mut buffer[filled..], offset + filled as u64) {
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        if read == 0 {
            buffer[filled..].fill(0);
            return Ok(());
        }
        filled += read;
    }
    Ok(())
}

/// Removes a large file that no reader uses. A file system that reports free blocks to the device
/// (`mount -o discard`) delays every flush meanwhile, a tenth of a second for a gigabyte. So the
/// file is given back from its end, at the pace of the background as if `costs` bytes were written
/// for each `piece`. Each piece is flushed. Otherwise the file system's next commit, up to five
/// seconds away, would report all of them at once.
pub(crate) fn remove_gently(
    disk: &dyn Disk,
    pace: &Pace,
    path: &Path,
    (piece, costs): (u64, u64),
) -> io::Result<()> {
    let file = disk.open(path, Access::Buffered, false)?;
    let costs = usize::try_from(costs).unwrap_or(usize::MAX);
    let mut left = file.length()?;
    while left > piece && !pace.is_stopped() {
        left -= piece;
        pace.work(costs, || file.shorten(left).and_then(|()| file.sync_data()))?;
    }
    drop(file);
    disk.remove(path)
}

/// Most buffers that one `pwritev` takes (Linux `UIO_MAXIOV`).
const IOV_MAX: usize = 1024;
