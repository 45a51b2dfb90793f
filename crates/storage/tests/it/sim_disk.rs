//! A disk in memory that forgets, tears and reorders what was not flushed, fails on command, runs
//! full, and dies at any operation.
//!
//! Names are kept apart from contents: a name that was made, changed or removed since the last
//! flush of its directory may be lost with the power, alone or with all that came later. Between
//! two operations of storage's background work a test may do something else, as other threads do.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, IoSlice};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use moldau_storage::{Access, Disk, DiskFile};

/// Shared by the test and the storage under test.
#[derive(Clone)]
pub(crate) struct SimDisk(Arc<Mutex<State>>);

pub(crate) struct State {
    rng: fastrand::Rng,
    files: Vec<Contents>,
    names: BTreeMap<PathBuf, usize>,
    durable_names: BTreeMap<PathBuf, usize>,
    name_changes: Vec<NameChange>,
    operations: u64,
    /// The operation at which the disk dies.
    pub(crate) dies_at: Option<u64>,
    /// An operation of this name fails when the count before it has run out.
    pub(crate) fault: Option<(&'static str, u32)>,
    /// Nothing can be opened for want of descriptors.
    pub(crate) has_no_descriptors: bool,
    /// Where a file cannot be read.
    unreadable: Vec<(usize, usize)>,
    /// Trouble that comes within this many operations.
    pub(crate) trouble: Option<(u64, Trouble)>,
    /// Whether trouble has come since this was last set.
    pub(crate) has_failed: bool,
    pub(crate) free_bytes: u64,
    /// Takes half of each write of more than a block.
    pub(crate) has_short_writes: bool,
    /// What is done between two operations of work in the background, one time in so many.
    pub(crate) interrupt: Option<(fn(), u32)>,
    /// What was done since this was last cleared: operation and kind of file.
    pub(crate) done: Vec<(&'static str, Kind)>,
    /// Directories that were synced since this was last cleared; none is ever lost here.
    pub(crate) synced_dirs: BTreeSet<PathBuf>,
    /// The most bytes that were given back of a file between two flushes of it.
    pub(crate) untold_max: usize,
    is_dead: bool,
    locked: Arc<AtomicBool>,
}

/// How an operation fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trouble {
    Error,
    NoSpace,
    ShortWrite,
}

/// Role of a file in storage, by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Journal,
    Spare,
    Segment,
    Checkpoint,
    Other,
}

impl Kind {
    fn of(path: &Path) -> Kind {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let is_in = |dir| path.parent().is_some_and(|parent| parent.ends_with(dir));
        if name.ends_with(".spare") {
            Kind::Spare
        } else if is_in("journal") {
            Kind::Journal
        } else if is_in("segments") {
            Kind::Segment
        } else if name.starts_with("checkpoint") {
            Kind::Checkpoint
        } else {
            Kind::Other
        }
    }
}

#[derive(Default)]
struct Contents {
    seen: Vec<u8>,
    durable: Vec<u8>,
    /// Writes of at most a block each, in order.
    unflushed: Vec<(usize, Vec<u8>)>,
    /// Bytes given back since the last flush.
    untold: usize,
}

impl Contents {
    /// Some of what was not flushed reaches the disk, whole or in sectors.
    fn lose(&mut self, rng: &mut fastrand::Rng) {
        for (offset, bytes) in std::mem::take(&mut self.unflushed) {
            match rng.u8(..4) {
                0 => {}
                1 => {
                    let end = bytes.len().min(rng.usize(..=BLOCK / SECTOR) * SECTOR);
                    put(&mut self.durable, offset, &bytes[..end]);
                }
                2 => {
                    for (at, sector) in bytes.chunks(SECTOR).enumerate() {
                        if rng.bool() {
                            put(&mut self.durable, offset + at * SECTOR, sector);
                        }
                    }
                }
                _ => put(&mut self.durable, offset, &bytes),
            }
        }
    }
}

#[derive(Debug)]
enum NameChange {
    Create(PathBuf, usize),
    Rename(PathBuf, PathBuf, usize),
    Remove(PathBuf),
}

impl NameChange {
    fn apply(&self, names: &mut BTreeMap<PathBuf, usize>) {
        match self {
            NameChange::Create(path, file) => {
                names.insert(path.clone(), *file);
            }
            // The file keeps its identity, regardless of other losses.
            NameChange::Rename(from, to, file) => {
                if names.get(from) == Some(file) {
                    names.remove(from);
                }
                names.insert(to.clone(), *file);
            }
            NameChange::Remove(path) => {
                names.remove(path);
            }
        }
    }

    fn file(&self) -> Option<usize> {
        match self {
            NameChange::Create(_, file) | NameChange::Rename(_, _, file) => Some(*file),
            NameChange::Remove(_) => None,
        }
    }

    fn path(&self) -> &Path {
        match self {
            NameChange::Create(path, _)
            | NameChange::Rename(_, path, _)
            | NameChange::Remove(path) => path,
        }
    }
}

impl SimDisk {
    pub(crate) fn new(seed: u64) -> SimDisk {
        SimDisk(Arc::new(Mutex::new(State {
            rng: fastrand::Rng::with_seed(seed),
            files: Vec::new(),
            names: BTreeMap::new(),
            durable_names: BTreeMap::new(),
            name_changes: Vec::new(),
            operations: 0,
            dies_at: None,
            fault: None,
            has_no_descriptors: false,
            unreadable: Vec::new(),
            trouble: None,
            has_failed: false,
            free_bytes: u64::MAX,
            has_short_writes: false,
            interrupt: None,
            done: Vec::new(),
            synced_dirs: BTreeSet::new(),
            untold_max: 0,
            is_dead: false,
            locked: Arc::default(),
        })))
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }

    pub(crate) fn is_dead(&self) -> bool {
        self.state().is_dead
    }

    /// Lets the disk die within this many operations.
    pub(crate) fn die_within(&self, operations: u64) {
        let mut state = self.state();
        state.dies_at = Some(state.operations + operations);
    }

    /// The machine starts again; with a loss of power, what was not flushed is lost in part.
    pub(crate) fn restart(&self, is_power_lost: bool) {
        let mut state = self.state();
        state.is_dead = false;
        state.dies_at = None;
        state.trouble = None;
        state.has_failed = false;
        let State { rng, files, names, durable_names, name_changes, .. } = &mut *state;
        if is_power_lost {
            let changes = std::mem::take(name_changes);
            if rng.bool() {
                let kept = rng.usize(..=changes.len());
                changes.iter().take(kept).for_each(|change| change.apply(durable_names));
            } else {
                let kept = changes.iter().filter(|_| rng.bool());
                kept.for_each(|change| change.apply(durable_names));
            }
            names.clone_from(durable_names);
            for file in files.iter_mut() {
                file.lose(rng);
                file.seen.clone_from(&file.durable);
            }
        }
        // A file without a name is gone: there is no process left that has it open.
        let mut named: BTreeSet<usize> =
            names.values().chain(durable_names.values()).copied().collect();
        named.extend(name_changes.iter().filter_map(NameChange::file));
        for (at, file) in files.iter_mut().enumerate() {
            if !named.contains(&at) {
                *file = Contents::default();
            }
        }
    }

    /// The bytes of a file as they would be read.
    pub(crate) fn bytes(&self, path: &Path) -> Vec<u8> {
        let state = self.state();
        state.files[state.names[path]].seen.clone()
    }

    /// Changes the bytes of a file behind the storage's back.
    pub(crate) fn change(&self, path: &Path, change: impl FnOnce(&mut Vec<u8>)) {
        let mut state = self.state();
        let file = state.names[path];
        let contents = &mut state.files[file];
        change(&mut contents.seen);
        contents.durable.clone_from(&contents.seen);
        contents.unflushed.clear();
    }

    /// Makes the disk fail to read a byte of a file.
    pub(crate) fn break_at(&self, path: &Path, offset: usize) {
        let mut state = self.state();
        let file = state.names[path];
        state.unreadable.push((file, offset));
    }

    pub(crate) fn names(&self) -> Vec<PathBuf> {
        self.state().names.keys().cloned().collect()
    }

    /// A copy of all that would be read after a restart.
    pub(crate) fn copy(&self) -> SimDisk {
        let copy = SimDisk::new(0);
        {
            let (from, mut to) = (self.state(), copy.state());
            to.names.clone_from(&from.names);
            to.durable_names.clone_from(&from.names);
            to.files.extend(from.files.iter().map(|file| Contents {
                seen: file.seen.clone(),
                durable: file.seen.clone(),
                unflushed: Vec::new(),
                untold: 0,
            }));
        }
        copy
    }

    /// Lets others do something before an operation that holds no lock.
    fn pause(&self, operation: &'static str, kind: Kind) {
        let is_free = match operation {
            // Readers of the journal in the background hold no lock, its writers do.
            "read" => matches!(kind, Kind::Journal | Kind::Segment),
            "rename" => matches!(kind, Kind::Spare | Kind::Segment | Kind::Checkpoint),
            _ => matches!(kind, Kind::Segment | Kind::Checkpoint),
        };
        let mut state = self.state();
        let Some((interrupt, one_in)) = state.interrupt.filter(|_| is_free) else { return };
        if !state.is_dead && state.rng.u32(..one_in) == 0 {
            drop(state);
            interrupt();
        }
    }
}

impl State {
    fn operation(&mut self, name: &'static str, kind: Kind) -> io::Result<()> {
        moldau_threads::may_block(name);
        self.operations += 1;
        assert!(self.operations < OPERATIONS_MAX, "storage does not come to an end");
        if self.dies_at.is_some_and(|at| at <= self.operations) {
            self.is_dead = true;
        }
        if self.is_dead {
            return Err(io::Error::other("the disk is dead"));
        }
        if !self.done.contains(&(name, kind)) {
            self.done.push((name, kind));
        }
        if let Some((operation, count)) = &mut self.fault
            && *operation == name
        {
            if *count == 0 {
                self.fault = None;
                return Err(io::Error::from_raw_os_error(EIO));
            }
            *count -= 1;
        }
        if self.has_no_descriptors && matches!(name, "open" | "create" | "list" | "sync_dir") {
            return Err(io::Error::from_raw_os_error(EMFILE));
        }
        let takes_space = matches!(name, "write" | "allocate" | "create" | "rename");
        match &mut self.trouble {
            Some((0, Trouble::Error)) => {}
            Some((0, Trouble::NoSpace)) if takes_space => {}
            Some((left, _)) => {
                *left = left.saturating_sub(1);
                return Ok(());
            }
            None => return Ok(()),
        }
        self.has_failed = true;
        let trouble = self.trouble.take().map(|(_, trouble)| trouble);
        let number = if trouble == Some(Trouble::NoSpace) { ENOSPC } else { EIO };
        Err(io::Error::from_raw_os_error(number))
    }

    fn change_names(&mut self, change: NameChange) {
        let gone = match &change {
            NameChange::Create(..) => None,
            NameChange::Rename(_, path, _) | NameChange::Remove(path) => self.names.get(path),
        };
        let gone = gone.map_or(0, |gone| self.files[*gone].seen.len());
        self.give_back(gone);
        change.apply(&mut self.names);
        self.name_changes.push(change);
    }

    fn give_back(&mut self, bytes: usize) {
        if self.free_bytes != u64::MAX {
            self.free_bytes += bytes as u64;
        }
    }

    /// How many of `bytes` bytes written at `offset` there is space for.
    fn take_space(&mut self, file: usize, offset: usize, bytes: usize) -> usize {
        let length = self.files[file].seen.len();
        let growth = (offset + bytes).saturating_sub(length) as u64;
        if self.free_bytes == u64::MAX {
            return bytes;
        }
        let granted = growth.min(self.free_bytes);
        self.free_bytes -= granted;
        bytes - (growth - granted) as usize
    }

    /// Writes the first blocks of what dies or fails half way, or all of it.
    fn write(&mut self, file: usize, offset: usize, bytes: &[u8]) {
        let contents = &mut self.files[file];
        put(&mut contents.seen, offset, bytes);
        for (at, block) in bytes.chunks(BLOCK).enumerate() {
            contents.unflushed.push((offset + at * BLOCK, block.to_vec()));
        }
    }
}

fn put(target: &mut Vec<u8>, offset: usize, bytes: &[u8]) {
    target.resize(target.len().max(offset + bytes.len()), 0);
    target[offset..offset + bytes.len()].copy_from_slice(bytes);
}

struct Unlock(Arc<AtomicBool>);

impl Drop for Unlock {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

impl Disk for SimDisk {
    fn create_dir(&self, path: &Path) -> io::Result<()> {
        self.state().operation("create_dir", Kind::of(path))
    }

    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        let mut state = self.state();
        state.operation("list", Kind::Other)?;
        let names = state.names.keys().filter(|name| name.parent() == Some(path));
        Ok(names.map(|name| name.file_name().unwrap().to_str().unwrap().to_owned()).collect())
    }

    fn open(&self, path: &Path, access: Access, create: bool) -> io::Result<Arc<dyn DiskFile>> {
        let kind = Kind::of(path);
        let mut state = self.state();
        state.operation(if create { "create" } else { "open" }, kind)?;
        let file = match state.names.get(path) {
            Some(file) => *file,
            None if create => {
                let file = state.files.len();
                state.files.push(Contents::default());
                state.change_names(NameChange::Create(path.to_owned(), file));
                file
            }
            None => return Err(io::ErrorKind::NotFound.into()),
        };
        Ok(Arc::new(SimFile { disk: self.clone(), file, kind, access }))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.pause("rename", Kind::of(to));
        let mut state = self.state();
        state.operation("rename", Kind::of(to))?;
        let file = *state.names.get(from).ok_or(io::ErrorKind::NotFound)?;
        state.change_names(NameChange::Rename(from.to_owned(), to.to_owned(), file));
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.pause("remove", Kind::of(path));
        let mut state = self.state();
        state.operation("remove", Kind::of(path))?;
        state.names.get(path).ok_or(io::ErrorKind::NotFound)?;
        state.change_names(NameChange::Remove(path.to_owned()));
        Ok(())
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        let kind = Kind::of(&path.join("any"));
        // The data directory is flushed for the checkpoint.
        let kind = if kind == Kind::Other { Kind::Checkpoint } else { kind };
        self.pause("sync_dir", kind);
        let mut state = self.state();
        state.operation("sync_dir", kind)?;
        let State { durable_names, name_changes, synced_dirs, .. } = &mut *state;
        synced_dirs.insert(path.to_owned());
        name_changes.retain(|change| {
            let is_here = change.path().parent() == Some(path);
            if is_here {
                change.apply(durable_names);
            }
            !is_here
        });
        Ok(())
    }

    fn free_bytes(&self, _path: &Path) -> io::Result<u64> {
        let mut state = self.state();
        state.operation("free_bytes", Kind::Other)?;
        Ok(state.free_bytes)
    }

    fn lock(&self, _path: &Path) -> io::Result<Option<Box<dyn Send + Sync>>> {
        let mut state = self.state();
        state.operation("lock", Kind::Other)?;
        let was_locked = state.locked.swap(true, Ordering::AcqRel);
        Ok((!was_locked).then(|| Box::new(Unlock(Arc::clone(&state.locked))) as Box<_>))
    }
}

struct SimFile {
    disk: SimDisk,
    file: usize,
    kind: Kind,
    access: Access,
}

impl DiskFile for SimFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.disk.pause("read", self.kind);
        let mut state = self.disk.state();
        state.operation("read", self.kind)?;
        let seen = &state.files[self.file].seen;
        let from = (offset as usize).min(seen.len());
        let count = buffer.len().min(seen.len() - from);
        let is_read =
            |(file, at): &(usize, usize)| *file == self.file && (from..from + count).contains(at);
        if state.unreadable.iter().any(is_read) {
            return Err(io::Error::from_raw_os_error(EIO));
        }
        buffer[..count].copy_from_slice(&seen[from..from + count]);
        Ok(count)
    }

    fn write_at(&self, buffers: &[IoSlice<'_>], offset: u64) -> io::Result<usize> {
        self.disk.pause("write", self.kind);
        let mut state = self.disk.state();
        let was_dead = state.is_dead;
        let outcome = state.operation("write", self.kind);
        let mut bytes = buffers.iter().map(|buffer| &buffer[..]).collect::<Vec<_>>().concat();
        let (offset, asked) = (offset as usize, bytes.len());
        if outcome.is_err() {
            // What dies or fails may have happened, or its first blocks.
            let blocks = state.rng.usize(..=asked.div_ceil(BLOCK));
            bytes.truncate(blocks * BLOCK);
            if !was_dead {
                state.write(self.file, offset, &bytes);
            }
            return outcome.map(|()| 0);
        }
        if state.has_short_writes && asked > BLOCK {
            bytes.truncate((asked / 2).next_multiple_of(BLOCK));
        }
        if matches!(state.trouble, Some((0, Trouble::ShortWrite))) {
            (state.trouble, state.has_failed) = (None, true);
            bytes.truncate(state.rng.usize(..=asked / SECTOR) * SECTOR);
        }
        let granted = state.take_space(self.file, offset, bytes.len());
        if granted == 0 && !bytes.is_empty() {
            return Err(io::Error::from_raw_os_error(ENOSPC));
        }
        bytes.truncate(granted);
        state.write(self.file, offset, &bytes);
        Ok(bytes.len())
    }

    fn sync_data(&self) -> io::Result<()> {
        self.disk.pause("sync", self.kind);
        let mut state = self.disk.state();
        let was_dead = state.is_dead;
        let outcome = state.operation("sync", self.kind);
        let State { rng, files, .. } = &mut *state;
        let contents = &mut files[self.file];
        if outcome.is_ok() {
            let Contents { durable, unflushed, .. } = contents;
            unflushed.drain(..).for_each(|(offset, bytes)| put(durable, offset, &bytes));
            durable.resize(contents.seen.len(), 0);
            contents.untold = 0;
        } else if !was_dead && self.access == Access::Buffered {
            // The page cache forgets that what could not be written is missing on the disk.
            contents.lose(rng);
        }
        outcome
    }

    fn allocate(&self, bytes: u64) -> io::Result<()> {
        let mut state = self.disk.state();
        state.operation("allocate", self.kind)?;
        let length = state.files[self.file].seen.len() as u64;
        let growth = bytes.saturating_sub(length);
        if state.free_bytes < growth {
            return Err(io::Error::from_raw_os_error(ENOSPC));
        }
        if state.free_bytes != u64::MAX {
            state.free_bytes -= growth;
        }
        let contents = &mut state.files[self.file];
        let length = contents.seen.len().max(bytes as usize);
        contents.seen.resize(length, 0);
        contents.durable.resize(length, 0);
        Ok(())
    }

    fn shorten(&self, bytes: u64) -> io::Result<()> {
        self.disk.pause("shorten", self.kind);
        let mut state = self.disk.state();
        state.operation("shorten", self.kind)?;
        let State { rng, files, untold_max, .. } = &mut *state;
        let contents = &mut files[self.file];
        let given_back = contents.seen.len() - bytes as usize;
        contents.untold += given_back;
        *untold_max = contents.untold.max(*untold_max);
        contents.seen.truncate(bytes as usize);
        contents.unflushed.retain(|(offset, written)| offset + written.len() <= bytes as usize);
        // What was not flushed is remembered or not when the power goes.
        if rng.bool() {
            contents.durable.truncate(bytes as usize);
        }
        state.give_back(given_back);
        Ok(())
    }

    fn length(&self) -> io::Result<u64> {
        let mut state = self.disk.state();
        state.operation("length", self.kind)?;
        Ok(state.files[self.file].seen.len() as u64)
    }
}

const BLOCK: usize = 4096;
/// What a disk writes as a whole.
const SECTOR: usize = 512;
const EIO: i32 = 5;
const ENOSPC: i32 = 28;
const EMFILE: i32 = 24;
/// Far more than a test needs.
const OPERATIONS_MAX: u64 = 20_000_000;
