//! Control groups of the kernel, as far as they limit processor time: of version 2 (`cpu.max`) and
//! of version 1 (`cpu.cfs_quota_us`).

use std::fs;
use std::path::{Path, PathBuf};

use crate::error::Error;

/// Where they are mounted.
const MOUNT: &str = "/sys/fs/cgroup";

/// Length of a period of the groups that are made here, microseconds: the kernel's own default.
const PERIOD_US: u64 = 100_000;

/// A control group that has processors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ControlGroup {
    directory: PathBuf,
    version: Version,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    One,
    Two,
}

/// Periods in which the processor time of a group was limited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Periods {
    pub(crate) all: u64,
    pub(crate) throttled: u64,
}

impl ControlGroup {
    /// That of a process; `None` where there are no control groups.
    pub(crate) fn of(pid: u32) -> Option<Self> {
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

    /// Makes a group with this share of one processor for a process, which is moved there.
    ///
    /// # Errors
    /// [`Error::Machine`] where the machine does not allow that.
    pub(crate) fn around(pid: u32, processor_share: f64) -> Result<Self, Error> {
        let missing = || Error::Plan("this machine has no control groups".into());
        let parent = Self::of(pid).ok_or_else(missing)?;
        let directory = parent.directory.join(format!("moldau-lab-{pid}"));
        fs::create_dir(&directory)
            .map_err(Error::machine(format!("making {}", directory.display())))?;
        let group = Self { directory, version: parent.version };
        let share = (processor_share * 100.0).clamp(1.0, 100.0);
        let hundredths = (1..=100_u32).rev().find(|it| f64::from(*it) <= share).unwrap_or(1);
        let quota_us = PERIOD_US * u64::from(hundredths) / 100;
        let limited = group
            .set_quota_us(quota_us)
            .and_then(|()| group.write("cgroup.procs", &pid.to_string()));
        limited.inspect_err(|_| group.remove())?;
        Ok(group)
    }

    /// Removes the group, whose processes have ended.
    pub(crate) fn remove(&self) {
        if let Err(error) = fs::remove_dir(&self.directory) {
            tracing::warn!(group = %self.directory.display(), %error, "a control group remains");
        }
    }

    /// Processor time that it may use in a period, microseconds; `None` without a limit.
    pub(crate) fn quota_us(&self) -> Option<u64> {
        let file = match self.version {
            Version::One => "cpu.cfs_quota_us",
            Version::Two => "cpu.max",
        };
        // What is no number is `max` or -1, no limit both.
        let text = fs::read_to_string(self.directory.join(file)).ok()?;
        text.split_ascii_whitespace().next()?.parse().ok()
    }

    /// Limits it.
    ///
    /// # Errors
    /// [`Error::Machine`] where the machine does not allow that.
    pub(crate) fn set_quota_us(&self, quota_us: u64) -> Result<(), Error> {
        match self.version {
            Version::One => self.write("cpu.cfs_quota_us", &quota_us.to_string()),
            // The period stays as it is.
            Version::Two => self.write("cpu.max", &quota_us.to_string()),
        }
    }

    /// What it tells of its limits so far.
    pub(crate) fn periods(&self) -> Periods {
        let text = fs::read_to_string(self.directory.join("cpu.stat")).unwrap_or_default();
        parse_periods(&text)
    }

    fn write(&self, file: &str, text: &str) -> Result<(), Error> {
        let path = self.directory.join(file);
        fs::write(&path, text).map_err(Error::machine(format!("writing {}", path.display())))
    }
}

fn parse_periods(statistics: &str) -> Periods {
    let field = |name: &str| {
        let value = statistics.lines().find_map(|line| line.strip_prefix(name));
        value.and_then(|value| value.trim().parse().ok()).unwrap_or(0)
    };
    Periods { all: field("nr_periods "), throttled: field("nr_throttled ") }
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

    #[test]
    fn periods_are_read_by_name() {
        let text = "usage_usec 5\nnr_periods 40\nnr_throttled 30\nthrottled_usec 9\n";
        assert_eq!(parse_periods(text), Periods { all: 40, throttled: 30 });
        assert_eq!(parse_periods(""), Periods::default());
    }
}
