//! A disk in memory that forgets, tears and reorders what was not flushed, and dies on command.

use std::collections::BTreeMap;
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
    pub(crate) free_bytes: u64,
    /// Takes half of each write of more than a block.
    pub(crate) has_short_writes: bool,
    is_dead: bool,
    locked: Arc<AtomicBool>,
}

#[derive(Default)]
struct Contents {
    seen: Vec<u8>,
    durable: Vec<u8>,
    /// Writes of at most a block each, in order.
    unflushed: Vec<(usize, Vec<u8>)>,
}

enum NameChange {
    Create(PathBuf, usize),
    Rename(PathBuf, PathBuf),
    Remove(PathBuf),
}

impl NameChange {
    fn apply(&self, names: &mut BTreeMap<PathBuf, usize>) {
        match self {
            NameChange::Create(path, file) => {
                names.insert(path.clone(), *file);
            }
            NameChange::Rename(from, to) => {
                if let Some(file) = names.remove(from) {
                    names.insert(to.clone(), file);
                }
            }
            NameChange::Remove(path) => {
                names.remove(path);
            }
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
            free_bytes: u64::MAX,
            has_short_writes: false,
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
        if !is_power_lost {
            return;
        }
        let State { rng, files, names, durable_names, name_changes, .. } = &mut *state;
        let kept = rng.usize(..=name_changes.len());
        name_changes.drain(..).take(kept).for_each(|change| change.apply(durable_names));
        names.clone_from(durable_names);
        for file in files {
            for (offset, mut bytes) in std::mem::take(&mut file.unflushed) {
                match rng.u8(..4) {
                    0 => continue,
                    1 => bytes.truncate(bytes.len().min(rng.usize(..=8) * 512)),
                    _ => {}
                }
                put(&mut file.durable, offset, &bytes);
            }
            file.seen.clone_from(&file.durable);
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
            }));
        }
        copy
    }
}

impl State {
    fn operation(&mut self, name: &'static str) -> io::Result<()> {
        self.operations += 1;
        if self.dies_at == Some(self.operations) {
            self.is_dead = true;
        }
        if self.is_dead {
            return Err(io::Error::other("the disk is dead"));
        }
        if let Some((operation, count)) = &mut self.fault
            && *operation == name
        {
            if *count == 0 {
                self.fault = None;
                return Err(io::Error::from_raw_os_error(5));
            }
            *count -= 1;
        }
        Ok(())
    }

    fn change_names(&mut self, change: NameChange) {
        change.apply(&mut self.names);
        self.name_changes.push(change);
    }
}

fn put(target: &mut Vec<u8>, offset: usize, bytes: &[u8]) {
    if target.len() < offset + bytes.len() {
        target.resize(offset + bytes.len(), 0);
    }
    target[offset..offset + bytes.len()].copy_from_slice(bytes);
}

struct Unlock(Arc<AtomicBool>);

impl Drop for Unlock {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

impl Disk for SimDisk {
    fn create_dir(&self, _path: &Path) -> io::Result<()> {
        self.state().operation("create_dir")
    }

    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        let mut state = self.state();
        state.operation("list")?;
        let names = state.names.keys().filter(|name| name.parent() == Some(path));
        Ok(names.map(|name| name.file_name().unwrap().to_str().unwrap().to_owned()).collect())
    }

    fn open(&self, path: &Path, _access: Access, create: bool) -> io::Result<Arc<dyn DiskFile>> {
        let mut state = self.state();
        state.operation("open")?;
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
        Ok(Arc::new(SimFile { disk: self.clone(), file }))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = self.state();
        state.operation("rename")?;
        state.change_names(NameChange::Rename(from.to_owned(), to.to_owned()));
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let mut state = self.state();
        state.operation("remove")?;
        state.change_names(NameChange::Remove(path.to_owned()));
        Ok(())
    }

    fn sync_dir(&self, _path: &Path) -> io::Result<()> {
        let mut state = self.state();
        state.operation("sync_dir")?;
        state.name_changes.clear();
        state.durable_names = state.names.clone();
        Ok(())
    }

    fn free_bytes(&self, _path: &Path) -> io::Result<u64> {
        let mut state = self.state();
        state.operation("free_bytes")?;
        Ok(state.free_bytes)
    }

    fn lock(&self, _path: &Path) -> io::Result<Option<Box<dyn Send + Sync>>> {
        let mut state = self.state();
        state.operation("lock")?;
        let was_locked = state.locked.swap(true, Ordering::AcqRel);
        Ok((!was_locked).then(|| Box::new(Unlock(Arc::clone(&state.locked))) as Box<_>))
    }
}

struct SimFile {
    disk: SimDisk,
    file: usize,
}

impl DiskFile for SimFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut state = self.disk.state();
        state.operation("read")?;
        let seen = &state.files[self.file].seen;
        let from = (offset as usize).min(seen.len());
        let count = buffer.len().min(seen.len() - from);
        buffer[..count].copy_from_slice(&seen[from..from + count]);
        Ok(count)
    }

    fn write_at(&self, buffers: &[IoSlice<'_>], offset: u64) -> io::Result<usize> {
        let mut state = self.disk.state();
        let outcome = state.operation("write");
        let mut bytes = buffers.iter().map(|buffer| &buffer[..]).collect::<Vec<_>>().concat();
        if state.has_short_writes && bytes.len() > 4096 {
            bytes.truncate((bytes.len() / 2).next_multiple_of(4096));
        }
        let contents = &mut state.files[self.file];
        // A write during which the disk dies may have happened as well.
        for (at, block) in bytes.chunks(4096).enumerate() {
            let offset = offset as usize + at * 4096;
            if outcome.is_ok() {
                put(&mut contents.seen, offset, block);
            }
            contents.unflushed.push((offset, block.to_vec()));
        }
        outcome.map(|()| bytes.len())
    }

    fn sync_data(&self) -> io::Result<()> {
        let mut state = self.disk.state();
        state.operation("sync")?;
        let contents = &mut state.files[self.file];
        contents.unflushed.clear();
        contents.durable.clone_from(&contents.seen);
        Ok(())
    }

    fn allocate(&self, bytes: u64) -> io::Result<()> {
        let mut state = self.disk.state();
        state.operation("allocate")?;
        if state.free_bytes < bytes {
            return Err(io::Error::from_raw_os_error(28));
        }
        if state.free_bytes != u64::MAX {
            state.free_bytes -= bytes;
        }
        let contents = &mut state.files[self.file];
        let mut allocated = vec![0; bytes as usize];
        allocated[..contents.seen.len()].copy_from_slice(&contents.seen);
        contents.seen.clone_from(&allocated);
        contents.durable = allocated;
        Ok(())
    }

    fn length(&self) -> io::Result<u64> {
        let mut state = self.disk.state();
        state.operation("length")?;
        Ok(state.files[self.file].seen.len() as u64)
    }
}
