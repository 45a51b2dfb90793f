//! Resources that a process holds at one moment, and their limits.

use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

/// What a process holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Resources {
    /// Resident memory, bytes.
    pub resident_bytes: u64,
    /// Part of it that is no file's.
    pub anonymous_bytes: u64,
    /// Record batches that it keeps for readers, where it says so itself.
    pub cache_bytes: Option<u64>,
    /// Open descriptors.
    pub descriptors: u64,
    /// Memory maps: lines of `/proc/<pid>/maps`.
    pub maps: u64,
    /// Threads.
    pub threads: u64,
}

/// What a process may hold at most; `None` is without a limit or unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// Open descriptors, soft limit.
    pub descriptors: Option<u64>,
    /// Memory maps, `vm.max_map_count`.
    pub maps: Option<u64>,
    /// Heap of a JVM, bytes.
    pub heap_bytes: Option<u64>,
}

impl Resources {
    /// Looks at a process; `None` once it is gone.
    #[must_use]
    pub fn of(pid: u32) -> Option<Self> {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        let maps = fs::read_to_string(format!("/proc/{pid}/maps")).ok()?;
        let descriptors = fs::read_dir(format!("/proc/{pid}/fd")).ok()?.count();
        let kilobytes = |name| number_after(&status, name).unwrap_or(0) * 1024;
        Some(Self {
            resident_bytes: kilobytes("VmRSS:"),
            anonymous_bytes: kilobytes("RssAnon:"),
            cache_bytes: None,
            descriptors: u64::try_from(descriptors).unwrap_or(u64::MAX),
            maps: u64::try_from(maps.lines().count()).unwrap_or(u64::MAX),
            threads: number_after(&status, "Threads:").unwrap_or(0),
        })
    }

    /// With that of another process.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        let either = self.cache_bytes.is_some() || other.cache_bytes.is_some();
        let cache = self.cache_bytes.unwrap_or(0) + other.cache_bytes.unwrap_or(0);
        Self {
            resident_bytes: self.resident_bytes + other.resident_bytes,
            anonymous_bytes: self.anonymous_bytes + other.anonymous_bytes,
            cache_bytes: either.then_some(cache),
            descriptors: self.descriptors + other.descriptors,
            maps: self.maps + other.maps,
            threads: self.threads + other.threads,
        }
    }

    /// Resident memory without what it keeps for readers.
    #[must_use]
    pub fn less_cache_bytes(&self) -> u64 {
        self.resident_bytes.saturating_sub(self.cache_bytes.unwrap_or(0))
    }
}

impl Limits {
    /// The limits of a process and of its machine.
    #[must_use]
    pub fn of(pid: u32) -> Self {
        let limits = fs::read_to_string(format!("/proc/{pid}/limits")).unwrap_or_default();
        let maps = fs::read_to_string("/proc/sys/vm/max_map_count").unwrap_or_default();
        Self {
            descriptors: number_after(&limits, "Max open files"),
            maps: maps.trim().parse().ok(),
            heap_bytes: None,
        }
    }
}

/// The number that follows `name` at the start of a line.
fn number_after(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_ascii_whitespace().next()?.parse().ok()
}

/// The sum of the gauges of a page of metrics whose names end with `suffix`, if there is one.
pub fn gauge(page: &str, suffix: &str) -> Option<u64> {
    let lines = page.lines().filter(|line| !line.starts_with('#'));
    let pairs = lines.filter_map(|line| line.split_once(' '));
    let named = pairs.filter(|(name, _)| name.ends_with(suffix));
    let mut values = named.map(|(_, value)| value.trim().parse::<u64>().ok());
    let first = values.next()??;
    values.try_fold(first, |sum, value| sum.checked_add(value?))
}

/// Bytes that the files below a directory occupy on the disk. What vanishes meanwhile is left out.
#[must_use]
pub fn occupied_bytes(directory: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt as _;
    /// Size of the blocks that the kernel counts in, whatever those of the file system are.
    const BLOCK_BYTES: u64 = 512;
    let mut bytes = 0;
    let mut open = vec![directory.to_path_buf()];
    while let Some(directory) = open.pop() {
        let Ok(entries) = fs::read_dir(directory) else { continue };
        for entry in entries.flatten() {
            let Ok(metadata) = entry.metadata() else { continue };
            if metadata.is_dir() {
                open.push(entry.path());
            }
            bytes += metadata.blocks() * BLOCK_BYTES;
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_holds_something_below_its_limits() {
        let pid = std::process::id();
        let found = Resources::of(pid).unwrap();
        let limits = Limits::of(pid);
        assert!(found.resident_bytes > found.anonymous_bytes && found.anonymous_bytes > 0);
        assert!(found.descriptors >= 3 && found.maps > 10 && found.threads > 0);
        assert!(limits.descriptors.is_none_or(|limit| limit >= found.descriptors));
        assert!(Resources::of(u32::MAX >> 2).is_none());
    }

    #[test]
    fn limits_and_gauges_are_read_by_name() {
        let limits = "Limit   Soft Limit  Hard Limit  Units\n\
                      Max open files    20000      20000      files\n\
                      Max processes     unlimited  unlimited  processes";
        assert_eq!(number_after(limits, "Max open files"), Some(20_000));
        assert_eq!(number_after(limits, "Max processes"), None);
        let page = "# TYPE moldau_tail_cache_bytes gauge\nmoldau_tail_cache_bytes 4096\nother 7\n\
                    moldau_read_cache_bytes 1000\n";
        assert_eq!(gauge(page, "cache_bytes"), Some(5_096));
        assert_eq!(gauge(page, "absent"), None);
    }

    #[test]
    fn a_directory_occupies_what_its_files_do() {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir(directory.path().join("below")).unwrap();
        fs::write(directory.path().join("below/file"), vec![7; 100_000]).unwrap();
        assert!(occupied_bytes(directory.path()) >= 100_000);
        assert_eq!(occupied_bytes(&directory.path().join("absent")), 0);
    }
}
