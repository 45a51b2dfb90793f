//! The files of the journal: which exist, the next one, and used ones that wait to be used again.
//!
//! A file gets its name only when its header is durable and its space is allocated, so a file named
//! `NNNNNNNNNN.journal` is always whole. Names that end in `.tmp` or `.spare` hold nothing.

mod spares;

use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use bytes::Bytes;
use moldau_threads::{Mutex, MutexGuard};
use rustix::io::Errno;

use crate::Error;
use crate::disk::{Access, Disk, DiskFile, remove_gently, write_all};
use crate::format::{FILE_HEADER_BYTES, FileHeader};
use crate::io::{BLOCK, SegmentPool};
use crate::pace::Pace;
use crate::paged::TEMPORARY_SUFFIX;
pub(crate) use spares::Going;
use spares::{SPARES_MIN, Spares};

/// A file of the journal.
#[derive(Debug)]
pub(crate) struct JournalFile {
    pub(crate) number: u64,
    /// Journal position of the first byte of the file.
    pub(crate) base: u64,
    pub(crate) file_bytes: u64,
    pub(crate) frame_bytes_max: u32,
    pub(crate) path: PathBuf,
    /// Whether its space was taken from the reserve.
    pub(crate) is_of_reserve: bool,
    zeroing: Mutex<Zeroing>,
    /// Whether frames were written to it, or will not be any more.
    is_begun: AtomicBool,
    /// Entries of all frames that this process wrote.
    entries: AtomicU64,
}

/// How far a file was written with zeros before its use.
#[derive(Debug)]
enum Zeroing {
    /// Bytes up to here are written.
    UpTo(u64),
    /// The file is in use, or was before it was recycled.
    Finished,
}

impl JournalFile {
    /// A file that exists on disk.
    pub(crate) fn existing(header: &FileHeader, path: PathBuf) -> JournalFile {
        JournalFile {
            number: header.number,
            base: header.base,
            file_bytes: header.file_bytes,
            frame_bytes_max: header.frame_bytes_max,
            path,
            is_of_reserve: false,
            zeroing: Mutex::held_across_io(Zeroing::Finished),
            is_begun: AtomicBool::new(true),
            entries: AtomicU64::new(0),
        }
    }

    /// Journal position after the last byte of the file.
    pub(crate) fn end(&self) -> u64 {
        self.base + self.file_bytes
    }

    fn holds(&self, position: u64) -> bool {
        (self.base..self.end()).contains(&position)
    }

    /// Notes that a frame was written.
    pub(crate) fn add_entries(&self, entries: u32) {
        self.entries.fetch_add(u64::from(entries), Ordering::Relaxed);
    }

    /// Entries of the frames that this process wrote.
    pub(crate) fn entries(&self) -> u64 {
        self.entries.load(Ordering::Relaxed)
    }

    /// Ends the writing of zeros; must come before the first frame.
    pub(crate) fn begin_use(&self) {
        *self.zeroing.lock() = Zeroing::Finished;
        self.is_begun.store(true, Ordering::Relaxed);
    }

    fn is_begun(&self) -> bool {
        self.is_begun.load(Ordering::Relaxed)
    }
}

/// What an append needs space for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SpaceFor {
    /// Batches: the reserve stays free.
    Data,
    /// Metadata may use the reserve.
    Metadata,
}

/// State shared by all files of a journal.
#[derive(Debug, Clone)]
pub(crate) struct FilesSetup {
    pub(crate) dir: PathBuf,
    pub(crate) access: Access,
    pub(crate) node_id: i32,
    pub(crate) cluster_id: [u8; 16],
    pub(crate) file_bytes: u64,
    pub(crate) frame_bytes_max: u32,
    pub(crate) reserve_bytes: u64,
}

/// The files of a journal.
pub(crate) struct Files {
    disk: Arc<dyn Disk>,
    setup: FilesSetup,
    /// Memory for headers and zeros.
    pool: Arc<SegmentPool>,
    /// What fresh files are written with, made when first needed.
    zeros: OnceLock<Bytes>,
    /// Taken while a file is created, before `listed`; readers of `listed` do not wait for the
    /// disk.
    creating: Mutex<Creating>,
    /// Not held while a task waits for the disk.
    spares: Mutex<Spares>,
    listed: Mutex<Listed>,
}

#[derive(Debug, Default)]
struct Creating {
    /// Free space at the time when allocation failed although enough seemed free. There is no point
    /// in another attempt before that changes.
    refused_at_free: Option<u64>,
}

#[derive(Default)]
struct Listed {
    /// By position.
    files: VecDeque<Arc<JournalFile>>,
    /// Open descriptors by file number, used last at the back.
    handles: VecDeque<(u64, Arc<dyn DiskFile>)>,
}

impl Listed {
    fn file(&self, number: u64) -> Option<&JournalFile> {
        let first = self.files.front()?.number;
        let place = usize::try_from(number.checked_sub(first)?).ok()?;
        self.files.get(place).map(|file| &**file).filter(|file| file.number == number)
    }

    fn keep_open(&mut self, number: u64, handle: Arc<dyn DiskFile>) {
        if self.handles.len() == HANDLES_MAX {
            // Beginning a file must not wait for a descriptor.
            let begun = |number: &u64| self.file(*number).is_none_or(|file| file.is_begun());
            let idle = self.handles.iter().position(|(number, _)| begun(number));
            self.handles.remove(idle.unwrap_or(0));
        }
        self.handles.push_back((number, handle));
    }
}

impl Files {
    pub(crate) fn new(disk: Arc<dyn Disk>, setup: FilesSetup) -> Files {
        let zero_bytes =
            usize::try_from(setup.file_bytes).map_or(ZERO_BYTES, |n| n.min(ZERO_BYTES));
        Files {
            disk,
            setup,
            pool: SegmentPool::new(zero_bytes, 1),
            zeros: OnceLock::new(),
            creating: Mutex::held_across_io(Creating::default()),
            spares: Mutex::default(),
            listed: Mutex::default(),
        }
    }

    pub(crate) fn dir(&self) -> &Path {
        &self.setup.dir
    }

    pub(crate) fn disk(&self) -> &dyn Disk {
        &*self.disk
    }

    pub(crate) fn access(&self) -> Access {
        self.setup.access
    }

    /// Length of a file that this process creates.
    pub(crate) fn file_bytes(&self) -> usize {
        usize::try_from(self.setup.file_bytes).expect("checked to be at most 1 GiB")
    }

    /// Largest frame that this process writes.
    pub(crate) fn frame_bytes_max(&self) -> u32 {
        self.setup.frame_bytes_max
    }

    /// Adds a file that was found on disk; files are added in order.
    pub(crate) fn add(&self, file: JournalFile) {
        self.listed.lock().files.push_back(Arc::new(file));
    }

    /// Adds a file for later use; one of another length is removed.
    pub(crate) fn add_spare(&self, path: PathBuf, file_bytes: u64) -> io::Result<()> {
        if file_bytes != self.setup.file_bytes {
            return self.disk.remove(&path);
        }
        self.spares.lock().paths.push(path);
        Ok(())
    }

    fn spares(&self) -> MutexGuard<'_, Spares> {
        let mut spares = self.spares.lock();
        spares.settle();
        spares
    }

    /// Bytes that the files for later use would give back, but for the few that stay.
    pub(crate) fn spare_bytes(&self) -> u64 {
        let spares = self.spares().paths.len();
        spares.saturating_sub(SPARES_MIN) as u64 * self.setup.file_bytes
    }

    /// Removes one of the files for later use that may go, in pieces of `piece` bytes. Says whether
    /// there was one.
    pub(crate) fn remove_spare(
        &self,
        pace: &Pace,
        piece: u64,
        going: Going,
    ) -> Result<bool, Error> {
        let going = self.spares().take_for_removal(Instant::now(), going);
        let Some(spare) = going else { return Ok(false) };
        let removed = remove_gently(&*self.disk, pace, &spare, (piece, piece));
        removed.map(|()| true).map_err(|error| Error::io("remove", &spare, error))
    }

    /// The file that holds a journal position.
    pub(crate) fn at(&self, position: u64) -> Option<Arc<JournalFile>> {
        let listed = self.listed.lock();
        let after = listed.files.partition_point(|file| file.base <= position);
        let file = listed.files.get(after.checked_sub(1)?)?;
        file.holds(position).then(|| Arc::clone(file))
    }

    /// All files, by position.
    pub(crate) fn all(&self) -> Vec<Arc<JournalFile>> {
        self.listed.lock().files.iter().cloned().collect()
    }

    /// An open descriptor of a file. A bounded number of them is kept open.
    pub(crate) fn handle(&self, file: &JournalFile) -> Result<Arc<dyn DiskFile>, Error> {
        let mut listed = self.listed.lock();
        let known = listed.handles.iter().position(|(number, _)| *number == file.number);
        if let Some(known) = known.and_then(|at| listed.handles.remove(at)) {
            let handle = Arc::clone(&known.1);
            listed.handles.push_back(known);
            return Ok(handle);
        }
        drop(listed);
        let opened = self.disk.open(&file.path, self.setup.access, false);
        let handle = opened.map_err(|error| Error::io("open", &file.path, error))?;
        let mut listed = self.listed.lock();
        // One that was retired meanwhile is of use under another name, and another thread may have
        // opened it as well.
        let is_listed = listed.file(file.number).is_some();
        if is_listed && listed.handles.iter().all(|(number, _)| *number != file.number) {
            listed.keep_open(file.number, Arc::clone(&handle));
        }
        Ok(handle)
    }

    /// Whether there may be another file.
    pub(crate) fn has_space(&self, space: SpaceFor) -> bool {
        if !self.spares().paths.is_empty() {
            return true;
        }
        // A disk that does not answer is found out by the creation itself.
        let free = self.disk.free_bytes(&self.setup.dir).unwrap_or(u64::MAX);
        free >= self.space_needed(space)
    }

    fn space_needed(&self, space: SpaceFor) -> u64 {
        match space {
            SpaceFor::Data => self.setup.file_bytes.saturating_add(self.setup.reserve_bytes),
            SpaceFor::Metadata => self.setup.file_bytes,
        }
    }

    /// The file that starts at `base`, which is the end of the last file if it does not exist yet;
    /// created if need be.
    pub(crate) fn starting_at(
        &self,
        base: u64,
        space: SpaceFor,
    ) -> Result<Arc<JournalFile>, Error> {
        if let Some(file) = self.at(base) {
            return Ok(file);
        }
        let mut creating = self.creating.lock();
        // Another thread may have created it while this one waited.
        if let Some(file) = self.at(base) {
            return Ok(file);
        }
        let number = self.listed.lock().files.back().map_or(1, |file| file.number + 1);
        let (file, handle) = self.create(&mut creating, number, base, space)?;
        let file = Arc::new(file);
        let mut listed = self.listed.lock();
        listed.files.push_back(Arc::clone(&file));
        // Entering the file opens no descriptor.
        listed.keep_open(number, handle);
        Ok(file)
    }

    fn create(
        &self,
        creating: &mut Creating,
        number: u64,
        base: u64,
        space: SpaceFor,
    ) -> Result<(JournalFile, Arc<dyn DiskFile>), Error> {
        let header = FileHeader {
            node_id: self.setup.node_id,
            cluster_id: self.setup.cluster_id,
            number,
            base,
            file_bytes: self.setup.file_bytes,
            frame_bytes_max: self.setup.frame_bytes_max,
        };
        let path = self.setup.dir.join(file_name(number));
        let mut file = JournalFile::existing(&header, path);
        file.is_begun = AtomicBool::new(false);
        let spare = self.spares().take();
        let from = match spare {
            Some(spare) => spare,
            None => {
                file.zeroing = Mutex::held_across_io(Zeroing::UpTo(FILE_HEADER_BYTES as u64));
                file.is_of_reserve = space == SpaceFor::Metadata && !self.has_space(SpaceFor::Data);
                self.allocate(creating, number, space)?
            }
        };
        let failed = |error| Error::io("create", &file.path, error);
        let handle = self.write_header(&from, &header).map_err(|error| {
            // What has its space is of use later, though it has no header.
            self.spares.lock().paths.push(from.clone());
            failed(error)
        })?;
        let named =
            self.disk.rename(&from, &file.path).and_then(|()| self.disk.sync_dir(&self.setup.dir));
        named.map_err(failed)?;
        Ok((file, handle))
    }

    fn allocate(
        &self,
        creating: &mut Creating,
        number: u64,
        space: SpaceFor,
    ) -> Result<PathBuf, Error> {
        let path = self.setup.dir.join(format!("{number:010}.{TEMPORARY_SUFFIX}"));
        let failed = |error| Error::io("allocate", &path, error);
        let free = self.disk.free_bytes(&self.setup.dir).map_err(failed)?;
        if free < self.space_needed(space) || creating.refused_at_free == Some(free) {
            return Err(Error::DiskFull);
        }
        let allocated = self
            .disk
            .open(&path, self.setup.access, true)
            .and_then(|file| file.allocate(self.setup.file_bytes));
        let Err(error) = allocated else {
            creating.refused_at_free = None;
            return Ok(path);
        };
        if !is_disk_full(&error) {
            return Err(failed(error));
        }
        creating.refused_at_free = Some(free);
        // The partly allocated file would keep what little space there is.
        self.disk.remove(&path).map_err(failed)?;
        Err(Error::DiskFull)
    }

    fn write_header(&self, path: &Path, header: &FileHeader) -> io::Result<Arc<dyn DiskFile>> {
        let mut block = self.pool.take().split_to(FILE_HEADER_BYTES);
        block.as_mut().fill(0);
        let encoded = header.encode();
        block.as_mut()[..encoded.len()].copy_from_slice(&encoded);
        let file = self.disk.open(path, self.setup.access, false)?;
        write_all(&*file, &[block.as_slice()], 0, BLOCK)?;
        file.sync_data()?;
        Ok(file)
    }

    /// Writes zeros to the next stretch of the file after the one that holds `position`, if that is
    /// fresh, and says whether there is more to do. A file whose blocks were written once is
    /// flushed without a change to the file system's own journal.
    pub(crate) fn zero_ahead(&self, position: u64) -> Result<bool, Error> {
        let Some(file) = self.at(position).and_then(|current| self.at(current.end())) else {
            return Ok(false);
        };
        let handle = self.handle(&file)?;
        let mut zeroing = file.zeroing.lock();
        let Zeroing::UpTo(from) = *zeroing else { return Ok(false) };
        let zeros = self.zeros.get_or_init(|| {
            let mut zeros = self.pool.take();
            zeros.as_mut().fill(0);
            zeros.freeze()
        });
        let count = (file.file_bytes - from).min(zeros.len() as u64);
        let zeros = zeros.slice(..usize::try_from(count).expect("at most the length of zeros"));
        let written = write_all(&*handle, &[&zeros], from, BLOCK);
        written.map_err(|error| Error::io("write zeros to", &file.path, error))?;
        *zeroing = Zeroing::UpTo(from + count);
        if from + count < file.file_bytes {
            return Ok(true);
        }
        *zeroing = Zeroing::Finished;
        drop(zeroing);
        handle.sync_data().map_err(|error| Error::io("flush", &file.path, error))?;
        Ok(false)
    }

    /// Makes all files and their names durable, which those that a process left behind when it was
    /// killed may not be.
    pub(crate) fn sync_all(&self) -> Result<(), Error> {
        for file in self.all() {
            let synced = self.handle(&file)?.sync_data();
            synced.map_err(|error| Error::io("flush", &file.path, error))?;
        }
        self.sync_names()
    }

    fn sync_names(&self) -> Result<(), Error> {
        let synced = self.disk.sync_dir(&self.setup.dir);
        synced.map_err(|error| Error::io("flush", &self.setup.dir, error))
    }

    /// Retires the files that end at or before `position`, but for the last one: they can no longer
    /// be found, and are kept for later use. Returns how many.
    pub(crate) fn retire_to(&self, position: u64) -> Result<usize, Error> {
        let mut count = 0;
        while let Some(file) = self.take_first(position) {
            // One after the other, and a failure ends it: there must never be a hole between two
            // files, nor the old name to a file that is in use again.
            let renamed = self.sync_names().and_then(|()| {
                let renamed = self.disk.rename(&file.path, &spare_path(&file.path));
                renamed.map_err(|error| Error::io("retire", &file.path, error))
            });
            if let Err(error) = renamed {
                self.listed.lock().files.push_front(file);
                return Err(error);
            }
            self.keep_retired(file);
            count += 1;
        }
        if count > 0 {
            self.sync_names()?;
        }
        Ok(count)
    }

    /// Takes the first file off the list if it ends at or before `position` and is not the last:
    /// the journal's numbers go on from that.
    fn take_first(&self, position: u64) -> Option<Arc<JournalFile>> {
        let mut listed = self.listed.lock();
        let has_more = listed.files.len() > 1;
        listed.files.front().filter(|first| has_more && first.end() <= position)?;
        let first = listed.files.pop_front()?;
        listed.handles.retain(|(open, _)| first.number != *open);
        Some(first)
    }

    /// Keeps a file that has its new name for later use, once its readers have let go of it. What
    /// fails here costs no more than a spare.
    fn keep_retired(&self, file: Arc<JournalFile>) {
        if self.sync_names().is_err() {
            return;
        }
        if file.file_bytes == self.setup.file_bytes {
            self.spares.lock().held.push(file);
        } else {
            // Files that cannot be removed are removed at the next start.
            self.disk.remove(&spare_path(&file.path)).ok();
        }
    }
}

pub(crate) fn file_name(number: u64) -> String {
    format!("{number:010}.{JOURNAL_SUFFIX}")
}

fn is_disk_full(error: &io::Error) -> bool {
    [Errno::NOSPC, Errno::DQUOT]
        .iter()
        .any(|full| error.raw_os_error() == Some(full.raw_os_error()))
}

/// Name of a journal file that waits for later use.
fn spare_path(path: &Path) -> PathBuf {
    path.with_extension(SPARE_SUFFIX)
}

pub(crate) const JOURNAL_SUFFIX: &str = "journal";
pub(crate) const SPARE_SUFFIX: &str = "spare";
/// Descriptors stay few however large the journal is.
const HANDLES_MAX: usize = 16;
/// Zeros written at a time: a flush waits behind at most one such write.
const ZERO_BYTES: usize = 256 << 10;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::RealDisk;

    /// To remove it at once would give all of its blocks back in one go, for which every flush
    /// waits; and it is of use as soon as it is read no more.
    #[test]
    fn a_retired_file_is_used_again_once_no_reader_uses_it() {
        let dir = tempfile::tempdir().unwrap();
        let setup = FilesSetup {
            dir: dir.path().to_owned(),
            access: Access::Buffered,
            node_id: 1,
            cluster_id: [0; 16],
            file_bytes: 64 << 10,
            frame_bytes_max: 16 << 10,
            reserve_bytes: 0,
        };
        let files = Files::new(Arc::new(RealDisk), setup);
        let starting_at = |base| files.starting_at(base, SpaceFor::Data).unwrap();
        let read = starting_at(0);
        let (path, read_to) = (read.path.clone(), read.end());
        let to = starting_at(read_to).end();
        starting_at(to);
        assert_eq!(files.retire_to(to).unwrap(), 2);
        assert!(!path.exists() && spare_path(&path).exists());
        assert_eq!(files.spares().paths.len(), 1);
        let pace = Pace::new(Arc::default(), 0, true);
        drop(read);
        assert_eq!(files.spares().paths.len(), 2);
        assert!(!files.remove_spare(&pace, 4096, Going::All).unwrap(), "few are kept");
        // Both are in use again, and the next is new.
        let again = starting_at(starting_at(to + read_to).end());
        assert!(files.spares().paths.is_empty() && !spare_path(&path).exists());
        assert_eq!(dir.path().read_dir().unwrap().count(), 3);
        starting_at(again.end());
        assert_eq!(dir.path().read_dir().unwrap().count(), 4);
    }
}
