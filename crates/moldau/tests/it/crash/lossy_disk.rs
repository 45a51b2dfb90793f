//! A file system that loses what was not synced, under the binary that users run.
//!
//! It lies in memory, mounted with FUSE. Every write, resize and name change counts as a step; the
//! broker is killed at a step that the seed gives, before that step is done. After its end power
//! is lost: each file keeps its last synced contents and, by the seed, all, none, the first or any
//! of the later writes, of which some are torn into sectors of 512 bytes. Each directory keeps its
//! last synced names and all, none, the first or any of the later changes, renames as a whole.
//!
//! This shows that acknowledged data does not depend on what the page cache or the file system
//! would have written later: a missing sync of a file or directory, a rename before the contents
//! are synced, a torn or reordered write.
//!
//! It does not show what a disk does that acknowledges a sync and loses it, flips bits, or damages
//! sectors that were not written; the simulation of storage covers damage. Reads never fail and
//! space is without end here. What goes through the kernel's page cache on a real file system goes
//! straight to the disk here, so the order of writes is that of the calls.

mod mount;

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

use fuser::{BackgroundSession, Errno};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use super::lives::Ground;

/// What the kernel reads and writes at once, of which blocks of zeros take no memory.
const BLOCK: usize = 4096;
const ZEROS: [u8; BLOCK] = [0; BLOCK];

/// What a disk writes as a whole.
const SECTOR: usize = 512;

const ROOT: u64 = 1;

/// What was lost with the power.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Losses {
    pub(super) writes: u64,
    pub(super) torn: u64,
    pub(super) names: u64,
}

impl Losses {
    pub(super) fn add(&mut self, other: Self) {
        self.writes += other.writes;
        self.torn += other.torn;
        self.names += other.names;
    }
}

/// The disk, mounted until it is dropped.
pub(super) struct LossyDisk {
    state: Arc<Mutex<State>>,
    // Dropped before its directory.
    _session: BackgroundSession,
    dir: TempDir,
}

impl LossyDisk {
    pub(super) fn mount(seed: u64) -> Self {
        let state = Arc::new(Mutex::new(State::new(seed)));
        let dir = tempfile::tempdir().unwrap();
        let session = mount::mount(dir.path(), Arc::clone(&state));
        let session = session.expect("/dev/fuse is there, and root or fusermount3 may mount");
        Self { state, _session: session, dir }
    }

    pub(super) fn losses(&self) -> Losses {
        self.state().losses
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no panic under the lock")
    }
}

impl Ground for LossyDisk {
    fn data_dir(&self) -> PathBuf {
        Path::new(self.dir.path()).join("data")
    }

    fn kill_at_step(&self, process: u32, step: u64) -> bool {
        let process = i32::try_from(process).ok().and_then(Pid::from_raw).expect("a process id");
        self.state().kill = Some((step, process));
        true
    }

    fn lose_power(&self) {
        self.state().lose_power();
    }
}

/// Files and directories by their numbers.
struct State {
    random: fastrand::Rng,
    nodes: BTreeMap<u64, Node>,
    /// No number is used twice, as the kernel may still know it.
    next_node: u64,
    /// The process to kill, and the steps before that.
    kill: Option<(u64, Pid)>,
    /// From the kill to the loss of power, nothing changes.
    is_dead: bool,
    losses: Losses,
}

enum Node {
    File(File),
    Directory(Directory),
}

#[derive(Default)]
struct File {
    now: Contents,
    synced: Contents,
    /// In the order in which they were made.
    unsynced: Vec<Change>,
}

#[derive(Default)]
struct Directory {
    now: BTreeMap<OsString, u64>,
    synced: BTreeMap<OsString, u64>,
    unsynced: Vec<NameChange>,
}

/// Names and the nodes that they get; a rename changes two at once.
type NameChange = Vec<(OsString, Option<u64>)>;

enum Change {
    Write { at: u64, bytes: Vec<u8> },
    Grow(u64),
    Cut(u64),
}

#[derive(Clone, Default)]
struct Contents {
    len: u64,
    /// Those that are absent are zeros.
    blocks: BTreeMap<u64, Arc<[u8; BLOCK]>>,
}

/// Which of the changes that were not synced survive.
enum Fate {
    All,
    None,
    /// So many, and a part of the next.
    First(usize),
    Any,
}

/// What survives of one change.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Survival {
    Whole,
    Torn,
    Lost,
}

impl Fate {
    fn of(changes: usize, random: &mut fastrand::Rng) -> Self {
        match random.u8(0..4) {
            0 => Self::All,
            1 => Self::None,
            2 => Self::First(random.usize(0..=changes)),
            _ => Self::Any,
        }
    }

    fn of_change(&self, index: usize, random: &mut fastrand::Rng) -> Survival {
        match self {
            Self::All => Survival::Whole,
            Self::First(count) if index < *count => Survival::Whole,
            Self::First(count) if index == *count => Survival::Torn,
            Self::None | Self::First(_) => Survival::Lost,
            Self::Any => {
                let all = [Survival::Whole, Survival::Torn, Survival::Lost];
                all[random.usize(0..all.len())]
            }
        }
    }
}

impl State {
    fn new(seed: u64) -> Self {
        Self {
            random: fastrand::Rng::with_seed(seed),
            nodes: BTreeMap::from([(ROOT, Node::Directory(Directory::default()))]),
            next_node: ROOT + 1,
            kill: None,
            is_dead: false,
            losses: Losses::default(),
        }
    }

    /// Counts a step, which is not done if the process dies at it.
    fn step(&mut self) -> Result<(), Errno> {
        match &mut self.kill {
            Some((0, process)) => {
                // An error means that it has ended by itself, which its owner sees.
                kill_process(*process, Signal::KILL).unwrap_or_default();
                self.is_dead = true;
                self.kill = None;
            }
            Some((steps, _)) => *steps -= 1,
            None => {}
        }
        if self.is_dead { Err(Errno::EIO) } else { Ok(()) }
    }

    fn file(&mut self, node: u64) -> Result<&mut File, Errno> {
        match self.nodes.get_mut(&node) {
            Some(Node::File(file)) => Ok(file),
            Some(Node::Directory(_)) => Err(Errno::EISDIR),
            None => Err(Errno::ENOENT),
        }
    }

    fn directory(&mut self, node: u64) -> Result<&mut Directory, Errno> {
        match self.nodes.get_mut(&node) {
            Some(Node::Directory(directory)) => Ok(directory),
            Some(Node::File(_)) => Err(Errno::ENOTDIR),
            None => Err(Errno::ENOENT),
        }
    }

    fn find(&mut self, parent: u64, name: &OsStr) -> Result<u64, Errno> {
        self.directory(parent)?.now.get(name).copied().ok_or(Errno::ENOENT)
    }

    fn make(&mut self, parent: u64, name: &OsStr, node: Node) -> Result<u64, Errno> {
        self.step()?;
        let number = self.next_node;
        self.directory(parent)?.change(vec![(name.to_owned(), Some(number))]);
        self.nodes.insert(number, node);
        self.next_node += 1;
        Ok(number)
    }

    fn remove(&mut self, parent: u64, name: &OsStr) -> Result<(), Errno> {
        self.step()?;
        self.find(parent, name)?;
        self.directory(parent)?.change(vec![(name.to_owned(), None)]);
        Ok(())
    }

    /// Within a directory: nothing else is asked for.
    fn rename(&mut self, parent: u64, from: &OsStr, to: &OsStr) -> Result<(), Errno> {
        self.step()?;
        let node = self.find(parent, from)?;
        let change = vec![(from.to_owned(), None), (to.to_owned(), Some(node))];
        self.directory(parent)?.change(change);
        Ok(())
    }

    fn change(&mut self, node: u64, change: Change) -> Result<(), Errno> {
        self.step()?;
        let file = self.file(node)?;
        file.now.apply(&change);
        file.unsynced.push(change);
        Ok(())
    }

    /// What is synced survives from here on.
    fn sync(&mut self, node: u64) -> Result<(), Errno> {
        self.step()?;
        match self.nodes.get_mut(&node).ok_or(Errno::ENOENT)? {
            Node::File(file) => {
                for change in file.unsynced.drain(..) {
                    file.synced.apply(&change);
                }
            }
            Node::Directory(directory) => {
                directory.synced = directory.now.clone();
                directory.unsynced.clear();
            }
        }
        Ok(())
    }

    fn lose_power(&mut self) {
        (self.is_dead, self.kill) = (false, None);
        for node in self.nodes.values_mut() {
            match node {
                Node::File(file) => file.lose_power(&mut self.random, &mut self.losses),
                Node::Directory(directory) => {
                    directory.lose_power(&mut self.random, &mut self.losses);
                }
            }
        }
        self.forget_unnamed();
    }

    fn forget_unnamed(&mut self) {
        let (mut named, mut next) = (BTreeMap::new(), vec![ROOT]);
        while let Some(number) = next.pop() {
            let Some(node) = self.nodes.remove(&number) else { continue };
            if let Node::Directory(directory) = &node {
                next.extend(directory.now.values());
            }
            named.insert(number, node);
        }
        self.nodes = named;
    }
}

impl Directory {
    fn change(&mut self, change: NameChange) {
        apply(&mut self.now, &change);
        self.unsynced.push(change);
    }

    fn lose_power(&mut self, random: &mut fastrand::Rng, losses: &mut Losses) {
        let fate = Fate::of(self.unsynced.len(), random);
        for (index, change) in self.unsynced.drain(..).enumerate() {
            match fate.of_change(index, random) {
                Survival::Whole => apply(&mut self.synced, &change),
                Survival::Torn | Survival::Lost => losses.names += 1,
            }
        }
        self.now = self.synced.clone();
    }
}

fn apply(names: &mut BTreeMap<OsString, u64>, change: &NameChange) {
    for (name, node) in change {
        match node {
            Some(node) => drop(names.insert(name.clone(), *node)),
            None => drop(names.remove(name)),
        }
    }
}

impl File {
    fn lose_power(&mut self, random: &mut fastrand::Rng, losses: &mut Losses) {
        if self.unsynced.is_empty() {
            return;
        }
        let fate = Fate::of(self.unsynced.len(), random);
        for (index, change) in self.unsynced.drain(..).enumerate() {
            match (fate.of_change(index, random), change) {
                (Survival::Lost, _) => losses.writes += 1,
                (Survival::Torn, Change::Write { at, bytes }) => {
                    losses.torn += 1;
                    for (sector, at) in bytes.chunks(SECTOR).zip((at..).step_by(SECTOR)) {
                        if random.bool() {
                            self.synced.write(at, sector);
                        }
                    }
                }
                (_, change) => self.synced.apply(&change),
            }
        }
        self.now = self.synced.clone();
    }
}

impl Contents {
    fn apply(&mut self, change: &Change) {
        match change {
            Change::Write { at, bytes } => self.write(*at, bytes),
            Change::Grow(len) => self.len = self.len.max(*len),
            Change::Cut(len) => self.cut(*len),
        }
    }

    fn write(&mut self, at: u64, bytes: &[u8]) {
        let mut rest = bytes;
        let mut position = at;
        while !rest.is_empty() {
            let (block, start) = place(position);
            let (part, behind) = rest.split_at(rest.len().min(BLOCK - start));
            if part == ZEROS {
                self.blocks.remove(&block);
            } else {
                let block = self.blocks.entry(block).or_insert_with(|| Arc::new(ZEROS));
                Arc::make_mut(block)[start..start + part.len()].copy_from_slice(part);
            }
            position += part.len() as u64;
            rest = behind;
        }
        self.len = self.len.max(position);
    }

    fn cut(&mut self, len: u64) {
        if len < self.len {
            let (block, start) = place(len);
            self.blocks.split_off(&(block + 1));
            if let Some(block) = self.blocks.get_mut(&block) {
                Arc::make_mut(block)[start..].fill(0);
            }
        }
        self.len = len;
    }

    fn read(&self, at: u64, bytes: usize) -> Vec<u8> {
        let end = self.len.min(at.saturating_add(bytes as u64));
        let mut out = Vec::with_capacity(bytes);
        let mut position = at;
        while position < end {
            let (block, start) = place(position);
            let left = usize::try_from(end - position).expect("no more than was asked for");
            let part = start..start + left.min(BLOCK - start);
            position += part.len() as u64;
            out.extend_from_slice(&self.blocks.get(&block).map_or(&ZEROS, |block| &**block)[part]);
        }
        out
    }
}

/// The block of a position, and where in it that is.
fn place(position: u64) -> (u64, usize) {
    let start = position % BLOCK as u64;
    (position / BLOCK as u64, usize::try_from(start).expect("less than a block"))
}

#[cfg(test)]
mod tests;
