//! Control groups of the kernel, as far as they limit processor time: of version 2 (`cpu.max`) and
//! of version 1 (`cpu.cfs_quota_us`).

use std::fs;
use std::path::{Path, PathBuf};

/// Where they are mounted.
const MOUNT: &str = "/sys/fs/cgroup";

/// A control group that has processors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ControlGroup {
    directory: PathBuf,
    version: Version,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    One,
    Two,
}

impl ControlGroup {
    /// That of a process; `None` where there are no control groups.
    pub fn of(pid: u32) -> Option<Self> {
        Self::parse(&fs::read_to_string(format!("/proc/{pid}/cgroup")).ok()?)
    }

    /// Lines of `number:controllers:path`; those of version 2 name no controllers.
    fn parse(groups: &str) -> Option<Self> {
        let lines = groups.lines().filter_map(|line| {
            let mut parts = line.splitn(3, ':').skip(1);
            Some((parts.next()?, parts.next()?.trim_start_matches('/')))
        });
        let has_processors = |(names, _): &(&str, &str)| names.split(',').any(|it| it == "cpu");
        let group = |names: &str, path: &str, version| {
            let directory = Path::new(MOUNT).join(names).join(path);
            Self { directory, version }
        };
        if let Some((names, path)) = lines.clone().find(has_processors) {
            return Some(group(names, path, Version::One));
        }
        let (names, path) = lines.clone().find(|(names, _)| names.is_empty())?;
        Some(group(names, path, Version::Two))
    }

    /// Processor time that it may use in a period, microseconds; `None` without a limit.
    pub fn quota_us(&self) -> Option<u64> {
        let file = match self.version {
            Version::One => "cpu.cfs_quota_us",
            Version::Two => "cpu.max",
        };
        // What is no number is `max` or -1, no limit both.
        let text = fs::read_to_string(self.directory.join(file)).ok()?;
        text.split_ascii_whitespace().next()?.parse().ok()
    }

    /// Time for which a limit has kept its processes from processors so far, ns; `None` without a
    /// limit.
    pub fn throttled_ns(&self) -> Option<u64> {
        parse_throttled(&self.limiting(Path::new(MOUNT))?.statistics()?)
    }

    fn statistics(&self) -> Option<String> {
        fs::read_to_string(self.directory.join("cpu.stat")).ok()
    }

    /// The nearest group with a limit: this one, or one around it up to `top`. In a container a
    /// process may see the path of its group on the host. Only the last directories of that path
    /// exist there.
    fn limiting(&self, top: &Path) -> Option<Self> {
        let around = self.directory.ancestors().skip(1).take_while(|it| it.starts_with(top));
        let group = |directory: &Path| Self { directory: directory.into(), version: self.version };
        std::iter::once(self.directory.as_path())
            .chain(around)
            .map(group)
            .find(|it| it.quota_us().is_some())
    }

    /// Page cache that it is charged for, bytes; `None` of the root, whose figure is that of the
    /// whole machine, and of version 1, where memory has groups of its own.
    pub fn page_cache_bytes(&self) -> Option<u64> {
        // A file that the root has not.
        fs::metadata(self.directory.join("memory.current")).ok()?;
        number(&fs::read_to_string(self.directory.join("memory.stat")).ok()?, "file ")
    }

    /// A group of version 2 whose files are those of any directory.
    #[cfg(test)]
    pub fn in_directory(directory: PathBuf) -> Self {
        Self { directory, version: Version::Two }
    }
}

/// Version 2 reports microseconds, version 1 nanoseconds.
fn parse_throttled(statistics: &str) -> Option<u64> {
    let of_version_2 = number(statistics, "throttled_usec ").map(|us| us.saturating_mul(1_000));
    of_version_2.or_else(|| number(statistics, "throttled_time "))
}

/// The number that follows `name` at the start of a line.
fn number(statistics: &str, name: &str) -> Option<u64> {
    statistics.lines().find_map(|line| line.strip_prefix(name))?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_group_of_either_version_is_found() {
        let group = |text| {
            let found = ControlGroup::parse(text)?;
            Some((found.directory.display().to_string(), found.version))
        };
        let unified = ("/sys/fs/cgroup/system.slice/a.service".to_string(), Version::Two);
        assert_eq!(group("0::/system.slice/a.service\n"), Some(unified));
        let mixed = "4:memory:/a\n3:cpuset:/b\n1:cpu,cpuacct:/c\n0::/d\n";
        let of_version_1 = ("/sys/fs/cgroup/cpu,cpuacct/c".to_string(), Version::One);
        assert_eq!(group(mixed), Some(of_version_1));
        assert_eq!(group("nothing"), None);
    }

    fn write(group: &ControlGroup, file: &str, text: &str) {
        fs::write(group.directory.join(file), text).unwrap();
    }

    /// A group in a directory of its own below another.
    fn limited(parent: &Path, name: &str, limit: &str) -> ControlGroup {
        let group = ControlGroup::in_directory(parent.join(name));
        fs::create_dir(&group.directory).unwrap();
        write(&group, "cpu.max", limit);
        group
    }

    #[test]
    fn only_a_limited_group_reports_throttled_time() {
        let directory = tempfile::tempdir().unwrap();
        let group = limited(directory.path(), "unit", "max 100000\n");
        write(&group, "cpu.stat", "usage_usec 5\nnr_throttled 30\nthrottled_usec 9\n");
        assert_eq!(group.throttled_ns(), None);
        write(&group, "cpu.max", "50000 100000\n");
        assert_eq!(group.throttled_ns(), Some(9_000));
        assert_eq!(parse_throttled("nr_throttled 30\nthrottled_time 9\n"), Some(9));
        assert_eq!(parse_throttled("usage_usec 5\n"), None);
    }

    #[test]
    fn the_limit_of_a_group_around_one_holds_it_too() {
        let directory = tempfile::tempdir().unwrap();
        let slice = limited(directory.path(), "slice", "50000 100000\n");
        let unit = limited(&slice.directory, "unit", "max 100000\n");
        // The path in a container that sees only its own group.
        let told = ControlGroup::in_directory(slice.directory.join("docker/7"));
        for group in [&unit, &told, &slice] {
            assert_eq!(group.limiting(directory.path()).as_ref(), Some(&slice));
        }
        assert_eq!(unit.limiting(&unit.directory), None);
    }

    #[test]
    fn the_page_cache_of_the_whole_machine_is_no_groups() {
        let directory = tempfile::tempdir().unwrap();
        let group = limited(directory.path(), "unit", "max 100000\n");
        write(&group, "memory.stat", "anon 1\nfile_mapped 4096\nfile 8192\n");
        assert_eq!(group.page_cache_bytes(), None);
        write(&group, "memory.current", "12288\n");
        assert_eq!(group.page_cache_bytes(), Some(8_192));
    }
}
