//! Files and directories: what they hold, what is synced of it, and what survives a loss of power.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::sync::Arc;
use std::time::Duration;

use fuser::Errno;
use rustix::process::{Pid, Signal, kill_process};

use crate::{Health, Losses};

/// What the kernel reads and writes at once, of which blocks of zeros take no memory.
pub(crate) const BLOCK: usize = 4096;
const ZEROS: [u8; BLOCK] = [0; BLOCK];

/// What a disk writes as a whole.
pub(crate) const SECTOR: usize = 512;

pub(crate) const ROOT: u64 = 1;

/// Files and directories by their numbers.
#[derive(Debug)]
pub(crate) struct State {
    random: fastrand::Rng,
    pub(crate) nodes: BTreeMap<u64, Node>,
    /// No number is used twice, as the kernel may still know it.
    next_node: u64,
    /// The process to kill, and the steps before that.
    pub(crate) kill: Option<(u64, Pid)>,
    /// From the kill to the loss of power, nothing changes.
    is_dead: bool,
    pub(crate) losses: Losses,
    pub(crate) health: Health,
}

#[derive(Debug)]
pub(crate) enum Node {
    File(File),
    Directory(Directory),
}

#[derive(Debug, Default)]
pub(crate) struct File {
    pub(crate) now: Contents,
    synced: Contents,
    /// In the order in which they were made.
    unsynced: Vec<Change>,
}

#[derive(Debug, Default)]
pub(crate) struct Directory {
    pub(crate) now: BTreeMap<OsString, u64>,
    synced: BTreeMap<OsString, u64>,
    unsynced: Vec<NameChange>,
}

/// Names and the nodes that they get; a rename changes two at once.
type NameChange = Vec<(OsString, Option<u64>)>;

#[derive(Debug)]
pub(crate) enum Change {
    Write { at: u64, bytes: Vec<u8> },
    Grow(u64),
    Cut(u64),
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Contents {
    pub(crate) len: u64,
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
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            random: fastrand::Rng::with_seed(seed),
            nodes: BTreeMap::from([(ROOT, Node::Directory(Directory::default()))]),
            next_node: ROOT + 1,
            kill: None,
            is_dead: false,
            losses: Losses::default(),
            health: Health::default(),
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
        if self.is_dead { Err(Errno::EIO) } else { self.fail() }
    }

    /// Refuses what a failing disk does not do.
    fn fail(&mut self) -> Result<(), Errno> {
        let is_refused = self.health == Health::Failing && self.random.bool();
        if is_refused { Err(Errno::EIO) } else { Ok(()) }
    }

    /// How long the disk takes for a request.
    pub(crate) fn delay(&self) -> Option<Duration> {
        match self.health {
            Health::Slow(delay) => Some(delay),
            Health::Sound | Health::Failing => None,
        }
    }

    pub(crate) fn read(&mut self, node: u64, at: u64, bytes: usize) -> Result<Vec<u8>, Errno> {
        self.fail()?;
        Ok(self.file(node)?.now.read(at, bytes))
    }

    pub(crate) fn file(&mut self, node: u64) -> Result<&mut File, Errno> {
        match self.nodes.get_mut(&node) {
            Some(Node::File(file)) => Ok(file),
            Some(Node::Directory(_)) => Err(Errno::EISDIR),
            None => Err(Errno::ENOENT),
        }
    }

    pub(crate) fn directory(&mut self, node: u64) -> Result<&mut Directory, Errno> {
        match self.nodes.get_mut(&node) {
            Some(Node::Directory(directory)) => Ok(directory),
            Some(Node::File(_)) => Err(Errno::ENOTDIR),
            None => Err(Errno::ENOENT),
        }
    }

    pub(crate) fn find(&mut self, parent: u64, name: &OsStr) -> Result<u64, Errno> {
        self.directory(parent)?.now.get(name).copied().ok_or(Errno::ENOENT)
    }

    pub(crate) fn make(&mut self, parent: u64, name: &OsStr, node: Node) -> Result<u64, Errno> {
        self.step()?;
        let number = self.next_node;
        self.directory(parent)?.change(vec![(name.to_owned(), Some(number))]);
        self.nodes.insert(number, node);
        self.next_node += 1;
        Ok(number)
    }

    pub(crate) fn remove(&mut self, parent: u64, name: &OsStr) -> Result<(), Errno> {
        self.step()?;
        self.find(parent, name)?;
        self.directory(parent)?.change(vec![(name.to_owned(), None)]);
        Ok(())
    }

    pub(crate) fn remove_directory(&mut self, parent: u64, name: &OsStr) -> Result<(), Errno> {
        let node = self.find(parent, name)?;
        match self.directory(node)?.now.is_empty() {
            true => self.remove(parent, name),
            false => Err(Errno::ENOTEMPTY),
        }
    }

    /// Within a directory: nothing else is asked for.
    pub(crate) fn rename(&mut self, parent: u64, from: &OsStr, to: &OsStr) -> Result<(), Errno> {
        self.step()?;
        let node = self.find(parent, from)?;
        let change = vec![(from.to_owned(), None), (to.to_owned(), Some(node))];
        self.directory(parent)?.change(change);
        Ok(())
    }

    pub(crate) fn change(&mut self, node: u64, change: Change) -> Result<(), Errno> {
        self.step()?;
        let file = self.file(node)?;
        file.now.apply(&change);
        file.unsynced.push(change);
        Ok(())
    }

    /// What is synced survives from here on.
    pub(crate) fn sync(&mut self, node: u64) -> Result<(), Errno> {
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

    pub(crate) fn lose_power(&mut self) {
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

    pub(crate) fn read(&self, at: u64, bytes: usize) -> Vec<u8> {
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
