//! A disk in memory that loses what was not synced, fails and is slow, for a process that keeps
//! its files on it. It is mounted with FUSE.
//!
//! Every write, resize and name change counts as a step; a process can be killed at a step, before
//! that step is done. When power is lost, each file keeps its last synced contents and, by the
//! seed, all, none, the first or any of the later writes, of which some are torn into sectors of
//! 512 bytes. Each directory keeps its last synced names and all, none, the first or any of the
//! later changes, renames as a whole.
//!
//! This shows that acknowledged data does not depend on what the page cache or the file system
//! would have written later: a missing sync of a file or directory, a rename before the contents
//! are synced, a torn or reordered write. It shows what becomes of a write, read or sync that the
//! disk refuses ([`Health::Failing`]), and of a disk that takes its time ([`Health::Slow`]).
//!
//! It does not show what a disk does that acknowledges a sync and loses it, flips bits, or damages
//! sectors that were not written. Space is without end. What goes through the kernel's page cache
//! on a real file system goes straight to the disk here, so the order of writes is that of the
//! calls.
//!
//! # Layout
//! | module | subject |
//! |---|---|
//! | `contents` | files and directories: what they hold, and what is synced of it |
//! | `mount` | the disk as the kernel asks for it |

mod contents;
mod mount;
#[cfg(all(test, feature = "mount"))]
mod tests;

use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use fuser::BackgroundSession;
use rustix::process::Pid;

use contents::State;

/// The disks of this process that are mounted. Guards their places.
static MOUNTED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// What was lost with the power.
#[derive(Clone, Copy, Debug, Default)]
pub struct Losses {
    /// Writes that were not synced.
    pub writes: u64,
    /// Writes of which a part was lost.
    pub torn: u64,
    /// Changes of names that were not synced.
    pub names: u64,
}

impl Losses {
    /// Adds those of another disk.
    pub fn add(&mut self, other: Self) {
        self.writes += other.writes;
        self.torn += other.torn;
        self.names += other.names;
    }
}

/// How a disk answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Health {
    /// It does what it is asked at once.
    #[default]
    Sound,
    /// By the seed, it refuses half of all steps, reads and syncs with `EIO`.
    Failing,
    /// It answers after so long, one request after the other.
    Slow(Duration),
}

/// The disk, mounted until it is dropped.
#[derive(Debug)]
pub struct LossyDisk {
    /// Guards what the disk holds; the kernel's requests change it.
    state: Arc<Mutex<State>>,
    place: PathBuf,
    _session: BackgroundSession,
}

impl LossyDisk {
    /// Mounts an empty disk on a directory.
    ///
    /// # Errors
    /// Those of the operating system: there is no `/dev/fuse`, or this process is not root's and
    /// has no `fusermount3`.
    pub fn mount(place: &Path, seed: u64) -> io::Result<Self> {
        let state = Arc::new(Mutex::new(State::new(seed)));
        let session = mount::mount(place, Arc::clone(&state))?;
        lock(&MOUNTED).push(place.to_owned());
        Ok(Self { state, place: place.to_owned(), _session: session })
    }

    /// Where it is mounted.
    #[must_use]
    pub fn place(&self) -> &Path {
        &self.place
    }

    /// What was lost with the power.
    #[must_use]
    pub fn losses(&self) -> Losses {
        lock(&self.state).losses
    }

    /// Changes how it answers from here on.
    pub fn set_health(&self, health: Health) {
        lock(&self.state).health = health;
    }

    /// Kills a process before the step that follows so many. From then on nothing changes until
    /// power is lost.
    pub fn kill_at_step(&self, process: Pid, step: u64) {
        lock(&self.state).kill = Some((step, process));
    }

    /// Loses what was not synced. Whoever used the disk must have ended.
    pub fn lose_power(&self) {
        lock(&self.state).lose_power();
    }
}

impl Drop for LossyDisk {
    fn drop(&mut self) {
        lock(&MOUNTED).retain(|place| *place != self.place);
    }
}

/// Unmounts every disk, even if it is in use: for a process that is about to end without dropping
/// them.
pub fn unmount_all() {
    for place in std::mem::take(&mut *lock(&MOUNTED)) {
        // Root has the first program, other users have the second.
        for (program, options) in [("umount", "-l"), ("fusermount3", "-uz")] {
            let mut command = Command::new(program);
            command.arg(options).arg(&place).stdin(Stdio::null());
            command.stdout(Stdio::null()).stderr(Stdio::null());
            if command.status().is_ok_and(|status| status.success()) {
                break;
            }
        }
    }
}

fn lock<T>(guarded: &Mutex<T>) -> MutexGuard<'_, T> {
    guarded.lock().unwrap_or_else(PoisonError::into_inner)
}
