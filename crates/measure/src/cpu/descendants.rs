//! The processes that a process started, and those that these started.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

/// The descendants of each process of `pids`, without those of this process, and without a process
/// of `pids` and its descendants below another. The files `/proc/<pid>/task/<tid>/children` are
/// not used: they leave children out while others end.
pub(super) fn of_each(pids: &[u32]) -> Vec<BTreeSet<u32>> {
    let own = std::process::id();
    if pids.iter().all(|pid| *pid == own) {
        return vec![BTreeSet::new(); pids.len()];
    }
    let children = children();
    let descendants = |pid: &u32| {
        let mut found = BTreeSet::new();
        let mut parents = if *pid == own { Vec::new() } else { vec![*pid] };
        while let Some(parent) = parents.pop() {
            let of_parent = children.get(&parent).into_iter().flatten();
            for child in of_parent.filter(|child| !pids.contains(child)) {
                if found.insert(*child) {
                    parents.push(*child);
                }
            }
        }
        found
    };
    pids.iter().map(descendants).collect()
}

/// All processes of the machine, by their parents. One that ends meanwhile is left out.
fn children() -> BTreeMap<u32, Vec<u32>> {
    let mut children: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        let parent = fs::read(entry.path().join("stat")).ok().and_then(|stat| parent(&stat));
        if let Some(parent) = parent {
            children.entry(parent).or_default().push(pid);
        }
    }
    children
}

/// The fourth field of `/proc/<pid>/stat`.
fn parent(stat: &[u8]) -> Option<u32> {
    let text = String::from_utf8_lossy(stat);
    let (_, rest) = text.rsplit_once(')')?;
    rest.split_ascii_whitespace().nth(1)?.parse().ok()
}
