//! The file of the bare loops, past the page cache, and memory that may be written to it.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{FallocateFlags, Mode, OFlags};

use super::{BLOCK, GATHERED_BYTES_MAX};
use moldau_measure::Error;

/// A file past the page cache.
pub(super) struct File {
    fd: OwnedFd,
    path: PathBuf,
}

impl File {
    pub(super) fn open(path: &Path) -> Result<Self, Error> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::DIRECT | OFlags::CLOEXEC;
        let opened = rustix::fs::open(path, flags, Mode::RUSR | Mode::WUSR);
        let action = || format!("opening {} past the page cache", path.display());
        let fd = opened.map_err(|errno| Error::machine(action())(errno.into()))?;
        Ok(Self { fd, path: path.to_path_buf() })
    }

    pub(super) fn allocate(&self, bytes: u64) -> Result<(), Error> {
        let allocated = rustix::fs::fallocate(&self.fd, FallocateFlags::empty(), 0, bytes);
        match allocated {
            // A file system that cannot allocate gets the blocks from the writing that follows.
            Err(rustix::io::Errno::OPNOTSUPP) | Ok(()) => Ok(()),
            Err(errno) => Err(self.failed("allocating", errno)),
        }
    }

    pub(super) fn write(&self, bytes: &[u8], position: u64) -> Result<(), Error> {
        match rustix::io::pwrite(&self.fd, bytes, position) {
            Ok(count) if count == bytes.len() => Ok(()),
            Ok(_) => Err(self.failed("writing all of a block to", rustix::io::Errno::IO)),
            Err(errno) => Err(self.failed("writing", errno)),
        }
    }

    pub(super) fn read(&self, bytes: &mut [u8], position: u64) -> Result<(), Error> {
        let wanted = bytes.len();
        match rustix::io::pread(&self.fd, bytes, position) {
            Ok(count) if count == wanted => Ok(()),
            Ok(_) => Err(self.failed("reading all of a block of", rustix::io::Errno::IO)),
            Err(errno) => Err(self.failed("reading", errno)),
        }
    }

    pub(super) fn flush(&self) -> Result<(), Error> {
        rustix::fs::fdatasync(&self.fd).map_err(|errno| self.failed("flushing", errno))
    }

    fn failed(&self, action: &str, errno: rustix::io::Errno) -> Error {
        Error::machine(format!("{action} {}", self.path.display()))(errno.into())
    }
}

/// The file as a loop writes it: from start to end and over again.
pub(super) struct Ring<'a> {
    file: &'a File,
    file_bytes: u64,
    position: u64,
}

impl<'a> Ring<'a> {
    pub(super) fn new(file: &'a File, file_bytes: u64) -> Self {
        Self { file, file_bytes, position: 0 }
    }

    /// Most operations of `bytes` each in one write, at least 1.
    pub(super) fn gathered_max(&self, bytes: usize) -> usize {
        let room = usize::try_from(self.file_bytes).unwrap_or(usize::MAX);
        (GATHERED_BYTES_MAX.min(room) / bytes.max(1)).max(1)
    }

    /// Writes behind what was written before, and flushes.
    pub(super) fn append(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let length = bytes.len() as u64;
        if self.position + length > self.file_bytes {
            self.position = 0;
        }
        self.file.write(bytes, self.position)?;
        self.position += length;
        self.file.flush()
    }
}

/// Memory whose start is a multiple of [`BLOCK`]: a part of an allocation that is one block longer.
pub(super) struct Aligned {
    memory: Vec<u8>,
    start: usize,
    length: usize,
}

impl Aligned {
    pub(super) fn random(length: usize) -> Self {
        let mut memory = vec![0; length + BLOCK];
        fastrand::Rng::with_seed(1).fill(&mut memory);
        let start = memory.as_ptr().align_offset(BLOCK);
        assert!(start < BLOCK, "a byte pointer can be aligned to a block");
        Self { memory, start, length }
    }

    pub(super) fn bytes(&mut self) -> &mut [u8] {
        let range = self.start..self.start + self.length;
        self.memory.get_mut(range).expect("the allocation is one block longer")
    }
}
