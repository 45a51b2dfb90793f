//! How much memory a process may use: that of the machine, or of the control groups around it.

use std::fs;
use std::path::Path;
use std::sync::OnceLock;

use rustix::system::sysinfo;

/// The part of it that broker and proxy plan with. The rest is for what has no plan: code, stacks,
/// indexes, what the allocator keeps, and the kernel's buffers of connections.
const PLANNED: (u64, u64) = (5, 8);

/// Where control groups are mounted.
const MOUNT: &str = "/sys/fs/cgroup";

/// Bytes that a broker or a proxy takes unless the operator chooses. They stay the same as long as
/// the process runs.
pub(crate) fn planned_bytes() -> usize {
    static BYTES: OnceLock<usize> = OnceLock::new();
    *BYTES.get_or_init(|| {
        let (part, whole) = PLANNED;
        usize::try_from(available_bytes() / whole * part).unwrap_or(usize::MAX)
    })
}

fn available_bytes() -> u64 {
    let info = sysinfo();
    let machine = info.totalram.saturating_mul(info.mem_unit.into());
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    limit_of(&groups, Path::new(MOUNT)).map_or(machine, |limit| limit.min(machine))
}

/// The lowest limit of the groups that these lines of `number:controllers:path` name, and of those
/// around them. In a container the path may be that on the host, but only the mount is visible.
fn limit_of(groups: &str, mount: &Path) -> Option<u64> {
    let limits = groups.lines().flat_map(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        let (controllers, path) = (parts.next().unwrap_or(""), parts.next().unwrap_or(""));
        let (top, file) = match controllers {
            "" => (mount.to_owned(), "memory.max"),
            _ => (mount.join("memory"), "memory.limit_in_bytes"),
        };
        let is_of_memory =
            controllers.is_empty() || controllers.split(',').any(|it| it == "memory");
        let group = top.join(path.trim_start_matches('/'));
        let around: Vec<_> = group
            .ancestors()
            .take_while(|directory| is_of_memory && directory.starts_with(&top))
            .map(|directory| directory.join(file))
            .collect();
        around.into_iter().filter_map(|file| fs::read_to_string(file).ok()?.trim().parse().ok())
    });
    limits.min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lowest_limit_around_a_process_counts() {
        let mount = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = mount.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        let limit = |groups: &str| limit_of(groups, mount.path());
        write("memory.max", "max\n");
        write("a/memory.max", "300\n");
        write("a/b/memory.max", "max\n");
        write("memory/memory.limit_in_bytes", "9223372036854771712\n");
        write("memory/a/memory.limit_in_bytes", "200\n");
        assert_eq!(limit("0::/a/b\n"), Some(300));
        assert_eq!(limit("0::/\n"), None);
        assert_eq!(limit("4:memory:/a/gone\n3:cpu:/a\n0::/\n"), Some(200));
        assert_eq!(limit("4:cpu,memory:/\n"), Some(9_223_372_036_854_771_712));
        assert_eq!(limit("4:cpu:/a\n0::/on/the/host\n"), None);
        assert_eq!(limit(""), None);
    }

    #[test]
    fn what_is_planned_is_part_of_the_machine() {
        assert!((1 << 20..1 << 50).contains(&planned_bytes()));
    }
}
