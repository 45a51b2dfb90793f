//! A control group with little memory, where the machine lets us make one.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::process::pause;

/// Where they are mounted.
const MOUNT: &str = "/sys/fs/cgroup";

/// A control group of version 1 or 2, removed when it is dropped.
#[derive(Debug)]
pub(super) struct ControlGroup {
    directory: PathBuf,
    files: Files,
}

/// What its files are called.
#[derive(Clone, Copy, Debug)]
struct Files {
    limit: &'static str,
    peak: &'static str,
    /// Counts processes that were killed for want of memory.
    kills: &'static str,
}

const VERSION_1: Files = Files {
    limit: "memory.limit_in_bytes",
    peak: "memory.max_usage_in_bytes",
    kills: "memory.oom_control",
};

const VERSION_2: Files = Files { limit: "memory.max", peak: "memory.peak", kills: "memory.events" };

impl ControlGroup {
    /// A group beside this process; `None`, after a line that says so, where none can be made.
    pub(super) fn make(name: &str, bytes: u64) -> Option<Self> {
        let name = format!("moldau-{name}-{}", std::process::id());
        let made = own_group().and_then(|(parent, files)| {
            let group = Self { directory: parent.join(name), files };
            fs::create_dir(&group.directory).ok()?;
            fs::write(group.directory.join(files.limit), bytes.to_string()).ok()?;
            Some(group)
        });
        if made.is_none() {
            println!("no control group can be made: the memory is what the process says");
        }
        made
    }

    /// Where processes are put in it.
    pub(super) fn directory(&self) -> &Path {
        &self.directory
    }

    /// Processes that were killed.
    pub(super) fn kills(&self) -> u64 {
        let text = self.read(self.files.kills);
        text.lines().find_map(|line| line.strip_prefix("oom_kill ")?.parse().ok()).unwrap_or(0)
    }

    /// The most that it held, with the pages of files.
    pub(super) fn words(&self) -> String {
        let peak: u64 = self.read(self.files.peak).trim().parse().unwrap_or(0);
        format!("{} MiB with files, {} killed", peak >> 20, self.kills())
    }

    fn read(&self, file: &str) -> String {
        fs::read_to_string(self.directory.join(file)).unwrap_or_default()
    }
}

impl Drop for ControlGroup {
    fn drop(&mut self) {
        // It stays for as long as a process is in it: those go to the group around it.
        let parent = self.directory.parent().map(|parent| parent.join("cgroup.procs"));
        for process in self.read("cgroup.procs").lines() {
            if let Some(parent) = &parent {
                let _moved = fs::write(parent, process);
            }
        }
        for _ in 0..100 {
            if fs::remove_dir(&self.directory).is_ok() {
                return;
            }
            pause(Duration::from_millis(20));
        }
        eprintln!("cannot remove {}", self.directory.display());
    }
}

/// The group of this process that has memory.
fn own_group() -> Option<(PathBuf, Files)> {
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    let lines = groups.lines().filter_map(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        Some((parts.next()?, parts.next()?.trim_start_matches('/')))
    });
    let has_memory = |(names, _): &(&str, &str)| names.split(',').any(|it| it == "memory");
    if let Some((_, path)) = lines.clone().find(has_memory) {
        return Some((Path::new(MOUNT).join("memory").join(path), VERSION_1));
    }
    let (_, path) = lines.clone().find(|(names, _)| names.is_empty())?;
    Some((Path::new(MOUNT).join(path), VERSION_2))
}
