//! Control groups of the kernel, as far as they limit processor time: of version 2 (`cpu.max`) and
//! of version 1 (`cpu.cfs_quota_us`). What is changed in them is put back before this process ends,
//! whatever ends it.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::error::Error;

/// Where they are mounted.
const MOUNT: &str = "/sys/fs/cgroup";

/// Length of a period of the groups that are made here, microseconds: the kernel's own default.
const PERIOD_US: u64 = 100_000;

/// How long [`put_back`] tries at most: a group is kept by processes that were killed until they
/// have ended.
const PUT_BACK_MAX: Duration = Duration::from_secs(1);

/// Pause between two tries.
const PUT_BACK_INTERVAL: Duration = Duration::from_millis(5);

/// What this process has changed in control groups and not put back yet.
static UNDOS: Undos = Undos::new();

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

/// Periods in which the processor time of a group was limited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Periods {
    /// Periods so far.
    pub all: u64,
    /// Those in which the group was kept from processors.
    pub throttled: u64,
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

    /// Makes a group with this share of one processor for a process, which is moved there.
    ///
    /// # Errors
    /// [`Error::Machine`] where the machine does not allow that.
    pub fn around(pid: u32, processor_share: f64) -> Result<Self, Error> {
        let missing = || Error::Plan("this machine has no control groups".into());
        let parent = Self::of(pid).ok_or_else(missing)?;
        let directory = parent.directory.join(format!("moldau-lab-{pid}"));
        let group = Self { directory, version: parent.version };
        let making = Error::machine(format!("making {}", group.directory.display()));
        let make = || fs::create_dir(&group.directory).map_err(making);
        UNDOS.with(Undo::Remove(group.clone()), make)?;
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
    pub fn remove(&self) {
        UNDOS.undo(&Undo::Remove(self.clone()));
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

    /// Limits it.
    ///
    /// # Errors
    /// [`Error::Machine`] where the machine does not allow that.
    pub fn set_quota_us(&self, quota_us: u64) -> Result<(), Error> {
        match self.version {
            Version::One => self.write("cpu.cfs_quota_us", &quota_us.to_string()),
            // The period stays as it is.
            Version::Two => self.write("cpu.max", &quota_us.to_string()),
        }
    }

    /// What the limit that holds its processes tells so far.
    pub fn periods(&self) -> Periods {
        let limiting = self.limiting(Path::new(MOUNT));
        parse_periods(&limiting.and_then(|it| it.statistics()).unwrap_or_default())
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
    /// process may be told the path of its group on the host, of which only the end of the way up
    /// is there.
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

    fn write(&self, file: &str, text: &str) -> Result<(), Error> {
        let path = self.directory.join(file);
        fs::write(&path, text).map_err(Error::machine(format!("writing {}", path.display())))
    }

    /// A group of version 2 whose files are those of any directory.
    #[cfg(test)]
    pub fn in_directory(directory: PathBuf) -> Self {
        Self { directory, version: Version::Two }
    }
}

fn parse_periods(statistics: &str) -> Periods {
    let field = |name| number(statistics, name).unwrap_or(0);
    Periods { all: field("nr_periods "), throttled: field("nr_throttled ") }
}

/// Version 2 tells microseconds, version 1 nanoseconds.
fn parse_throttled(statistics: &str) -> Option<u64> {
    let of_version_2 = number(statistics, "throttled_usec ").map(|us| us.saturating_mul(1_000));
    of_version_2.or_else(|| number(statistics, "throttled_time "))
}

/// The number that follows `name` at the start of a line.
fn number(statistics: &str, name: &str) -> Option<u64> {
    statistics.lines().find_map(|line| line.strip_prefix(name))?.trim().parse().ok()
}

/// Limits that are changed until this is dropped, each with what it was.
#[derive(Debug)]
pub struct Quotas(Vec<(ControlGroup, u64)>);

impl Quotas {
    /// Doubles the limits of groups, which are told with them.
    ///
    /// # Errors
    /// [`Error::Machine`] where the machine does not allow that of one of them; all are as they
    /// were then.
    pub fn doubled(groups: &[(ControlGroup, u64)]) -> Result<Self, Error> {
        let mut doubled = Self(Vec::new());
        for (group, quota_us) in groups {
            let set = || group.set_quota_us(quota_us.saturating_mul(2));
            UNDOS.with(Undo::Limit(group.clone(), *quota_us), set)?;
            doubled.0.push((group.clone(), *quota_us));
        }
        Ok(doubled)
    }
}

impl Drop for Quotas {
    fn drop(&mut self) {
        // Backwards, for a group may have no more than the one around it.
        for (group, quota_us) in self.0.drain(..).rev() {
            UNDOS.undo(&Undo::Limit(group, quota_us));
        }
    }
}

/// Puts back whatever this process has changed in control groups, and lets it change no more: for
/// one that is about to end and whose processes were killed.
pub fn put_back() {
    UNDOS.undo_all();
}

/// What makes a control group as it was.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Undo {
    /// It was made.
    Remove(ControlGroup),
    /// It had this limit, microseconds.
    Limit(ControlGroup, u64),
}

impl Undo {
    fn run(&self) -> Result<(), Error> {
        match self {
            Self::Remove(ControlGroup { directory, .. }) => fs::remove_dir(directory)
                .map_err(Error::machine(format!("removing {}", directory.display()))),
            Self::Limit(group, quota_us) => group.set_quota_us(*quota_us),
        }
    }
}

/// What is to be undone, the last first; `None` once all of it was. The lock is held while a group
/// is changed, so that nothing is changed after the end or left out by it.
#[derive(Debug)]
struct Undos(Mutex<Option<Vec<Undo>>>);

impl Undos {
    const fn new() -> Self {
        Self(Mutex::new(Some(Vec::new())))
    }

    fn lock(&self) -> MutexGuard<'_, Option<Vec<Undo>>> {
        // The list is whole at every moment.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does what `undo` undoes. A change that is refused leaves nothing to undo.
    fn with(&self, undo: Undo, change: impl FnOnce() -> Result<(), Error>) -> Result<(), Error> {
        let mut all = self.lock();
        let list = all.as_mut().ok_or(Error::GivenUp)?;
        change()?;
        list.push(undo);
        Ok(())
    }

    /// Undoes something, unless the end has done that. What fails is left to the end.
    fn undo(&self, undo: &Undo) {
        let mut all = self.lock();
        let Some(list) = all.as_mut() else { return };
        let Some(at) = list.iter().rposition(|it| it == undo) else { return };
        match undo.run() {
            Ok(()) => {
                list.remove(at);
            }
            Err(error) => tracing::warn!(%error, "a control group is not as it was"),
        }
    }

    fn undo_all(&self) {
        let mut all = self.lock();
        let end = Instant::now() + PUT_BACK_MAX;
        for undo in all.take().unwrap_or_default().iter().rev() {
            while let Err(error) = undo.run() {
                if Instant::now() > end {
                    tracing::warn!(%error, "a control group is not as it was");
                    break;
                }
                thread::sleep(PUT_BACK_INTERVAL);
            }
        }
    }
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

    /// A group in a directory of its own below another.
    fn limited(parent: &Path, name: &str, limit: &str) -> ControlGroup {
        let group = ControlGroup::in_directory(parent.join(name));
        fs::create_dir(&group.directory).unwrap();
        group.write("cpu.max", limit).unwrap();
        group
    }

    /// A container was left with twice its processors.
    #[test]
    fn limits_are_as_they_were_once_the_run_is_over() {
        let directory = tempfile::tempdir().unwrap();
        let [first, second] =
            ["first", "second"].map(|name| limited(directory.path(), name, "50000 100000\n"));
        let limits = || [&first, &second].map(ControlGroup::quota_us);
        let groups = [(first.clone(), 50_000), (second.clone(), 50_000)];
        let doubled = Quotas::doubled(&groups).unwrap();
        assert_eq!(limits(), [Some(100_000), Some(100_000)]);
        drop(doubled);
        assert_eq!(limits(), [Some(50_000), Some(50_000)]);
        // The third cannot be written.
        let gone = ControlGroup::in_directory(directory.path().join("gone"));
        let [first_limit, second_limit] = groups;
        let refused = Quotas::doubled(&[first_limit, second_limit, (gone, 50_000)]).unwrap_err();
        assert!(refused.to_string().contains("gone/cpu.max"), "{refused}");
        assert_eq!(limits(), [Some(50_000), Some(50_000)]);
    }

    #[test]
    fn the_end_undoes_everything_and_lets_nothing_more_be_changed() {
        let directory = tempfile::tempdir().unwrap();
        let undos = Undos::new();
        let group = limited(directory.path(), "unit", "50000 100000\n");
        let made = ControlGroup::in_directory(directory.path().join("moldau-lab-7"));
        let limit = Undo::Limit(group.clone(), 50_000);
        let make = || fs::create_dir(&made.directory).map_err(Error::machine("making a group"));
        undos.with(limit.clone(), || group.set_quota_us(100_000)).unwrap();
        undos.with(Undo::Remove(made.clone()), make).unwrap();
        assert!(made.directory.exists() && group.quota_us() == Some(100_000));
        undos.undo_all();
        assert!(!made.directory.exists() && group.quota_us() == Some(50_000));
        let late = undos.with(limit.clone(), || group.set_quota_us(100_000));
        assert!(matches!(late, Err(Error::GivenUp)), "{late:?}");
        // Whoever has changed it sets it on its way out, and must not disturb who came after.
        group.set_quota_us(70_000).unwrap();
        undos.undo(&limit);
        undos.undo_all();
        assert_eq!(group.quota_us(), Some(70_000));
    }

    #[test]
    fn only_a_limited_group_tells_for_how_long_it_was_throttled() {
        let directory = tempfile::tempdir().unwrap();
        let group = limited(directory.path(), "unit", "max 100000\n");
        group.write("cpu.stat", "usage_usec 5\nnr_throttled 30\nthrottled_usec 9\n").unwrap();
        assert_eq!(group.throttled_ns(), None);
        group.write("cpu.max", "50000 100000\n").unwrap();
        assert_eq!(group.throttled_ns(), Some(9_000));
        assert_eq!(parse_throttled("nr_throttled 30\nthrottled_time 9\n"), Some(9));
        assert_eq!(parse_throttled("usage_usec 5\n"), None);
    }

    #[test]
    fn the_limit_of_a_group_around_one_holds_it_too() {
        let directory = tempfile::tempdir().unwrap();
        let slice = limited(directory.path(), "slice", "50000 100000\n");
        let unit = limited(&slice.directory, "unit", "max 100000\n");
        // As a container is told that sees no groups but its own.
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
        group.write("memory.stat", "anon 1\nfile_mapped 4096\nfile 8192\n").unwrap();
        assert_eq!(group.page_cache_bytes(), None);
        group.write("memory.current", "12288\n").unwrap();
        assert_eq!(group.page_cache_bytes(), Some(8_192));
    }

    #[test]
    fn periods_are_read_by_name() {
        let text = "usage_usec 5\nnr_periods 40\nnr_throttled 30\nthrottled_usec 9\n";
        assert_eq!(parse_periods(text), Periods { all: 40, throttled: 30 });
        assert_eq!(parse_periods(""), Periods::default());
    }
}
