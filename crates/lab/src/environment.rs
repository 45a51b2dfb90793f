//! Where a result was measured: enough to judge it, nothing that names the machine or its owner.

use std::fs;
use std::path::Path;

use rustix::process::{Resource, getrlimit};
use serde::{Deserialize, Serialize};

use moldau_load::generator::niceness;
use moldau_load::run::RunRecord;
use moldau_measure::cpu::GENERATOR_ROLE;

/// The machine, its kernel and the limits that the processes ran under.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Environment {
    /// Version of the binary, with its git revision where it knows one.
    pub binary_version: String,
    /// Model name of the first processor.
    pub cpu_model: String,
    /// Those of the flags that matter to codecs and checksums.
    pub cpu_flags: Vec<String>,
    /// Processors that this process may use.
    pub processors: usize,
    /// Memory of the machine, bytes.
    pub memory_bytes: u64,
    /// Kernel release.
    pub kernel: String,
    /// File system of the data directory.
    pub file_system: String,
    /// Kind of the device below it, such as `vda1`.
    pub device: String,
    /// Clock that the kernel measures time with.
    pub clock_source: String,
    /// Most open files, soft limit; `None` is without limit.
    pub open_files_max: Option<u64>,
    /// Processor limit of the control group, such as `200000 100000`; empty where there is none.
    pub cgroup_cpu_max: String,
    /// Memory limit of the control group; empty where there is none.
    pub cgroup_memory_max: String,
    /// Frequency policy; empty where the machine has none.
    pub frequency_governor: String,
    /// Whether generator and systems under test share this machine; `None` where a cluster that
    /// runs already may be anywhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shared_host: Option<bool>,
    /// Niceness of generator threads whose load has intended times; `None` where it was not
    /// measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generator_niceness: Option<i32>,
}

/// Flags worth recording.
const FLAGS: [&str; 10] = [
    "sse4_2",
    "pclmulqdq",
    "aes",
    "avx2",
    "avx512f",
    "vaes",
    "vpclmulqdq",
    "crc32",
    "pmull",
    "sve",
];

impl Environment {
    /// Describes this machine. What it does not report stays empty; nothing fails.
    #[must_use]
    pub fn inspect(binary_version: &str, data_directory: &Path) -> Self {
        let cpu = text("/proc/cpuinfo");
        let mounts = text("/proc/self/mountinfo");
        let directory = fs::canonicalize(data_directory).unwrap_or_else(|_| "/".into());
        let (file_system, device) = mount_of(&mounts, &directory).unwrap_or_default();
        let governor = "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor";
        Self {
            binary_version: binary_version.to_string(),
            cpu_model: after_colon(&cpu, "model name").unwrap_or_default(),
            cpu_flags: known_flags(&cpu),
            processors: std::thread::available_parallelism().map_or(0, Into::into),
            memory_bytes: memory_bytes(&text("/proc/meminfo")),
            kernel: text("/proc/sys/kernel/osrelease"),
            file_system,
            device,
            clock_source: text("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
            open_files_max: getrlimit(Resource::Nofile).current,
            cgroup_cpu_max: text("/sys/fs/cgroup/cpu.max"),
            cgroup_memory_max: text("/sys/fs/cgroup/memory.max"),
            frequency_governor: text(governor),
            shared_host: Some(true),
            generator_niceness: niceness::granted(),
        }
    }

    /// The same for runs on systems that may run elsewhere. A system without a measured process may
    /// be on any machine.
    #[must_use]
    pub(crate) fn of_runs(self, runs: &[RunRecord]) -> Self {
        let is_apart = |run: &RunRecord| run.workers.iter().any(|worker| worker.machine != 0);
        let is_seen = |run: &RunRecord| run.processes.iter().any(|it| it.role != GENERATOR_ROLE);
        let shared_host = match runs.iter().any(is_apart) {
            true => Some(false),
            false => runs.iter().all(is_seen).then_some(true),
        };
        // Workers are scheduled as their own machine grants it.
        let is_alone = runs.iter().all(|run| run.workers.is_empty());
        let generator_niceness = self.generator_niceness.filter(|_| is_alone);
        Self { shared_host, generator_niceness, ..self }
    }

    /// Where the generator ran as seen from the systems, for people, and how it was scheduled
    /// there.
    #[must_use]
    pub(crate) fn co_location(&self) -> String {
        let place = match self.shared_host {
            Some(true) => "on the same machine",
            Some(false) => "on different machines",
            None => "perhaps on different machines",
        };
        match self.generator_niceness {
            Some(niceness) if niceness != 0 => {
                format!("{place}, threads with intended times at niceness {niceness}")
            }
            _ => place.into(),
        }
    }
}

fn text(path: &str) -> String {
    fs::read_to_string(path).map(|text| text.trim().to_string()).unwrap_or_default()
}

fn after_colon(text: &str, name: &str) -> Option<String> {
    let line = text.lines().find(|line| line.starts_with(name))?;
    line.split_once(':').map(|(_, value)| value.trim().to_string())
}

fn known_flags(cpu: &str) -> Vec<String> {
    let line = after_colon(cpu, "flags").or_else(|| after_colon(cpu, "Features"));
    let present = line.unwrap_or_default();
    let is_present = |flag: &&str| present.split_ascii_whitespace().any(|word| word == *flag);
    FLAGS.iter().filter(|flag| is_present(flag)).map(ToString::to_string).collect()
}

fn memory_bytes(meminfo: &str) -> u64 {
    let line = after_colon(meminfo, "MemTotal").unwrap_or_default();
    let kilobytes = line.split_ascii_whitespace().next().and_then(|word| word.parse::<u64>().ok());
    kilobytes.unwrap_or(0) * 1024
}

/// File system type and device name of the mount that holds `directory`: in `mountinfo` the mount
/// point is the fifth word, and the type and source follow a lone hyphen.
fn mount_of(mounts: &str, directory: &Path) -> Option<(String, String)> {
    let mut best: Option<(usize, (String, String))> = None;
    for line in mounts.lines() {
        let Some((left, right)) = line.split_once(" - ") else { continue };
        let Some(point) = left.split_ascii_whitespace().nth(4) else { continue };
        let mut right = right.split_ascii_whitespace();
        let (Some(kind), Some(source)) = (right.next(), right.next()) else { continue };
        let is_longer = best.as_ref().is_none_or(|(length, _)| point.len() >= *length);
        if directory.starts_with(point) && is_longer {
            let device = source.rsplit('/').next().unwrap_or_default();
            best = Some((point.len(), (kind.to_string(), device.to_string())));
        }
    }
    best.map(|(_, found)| found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    #[test]
    fn the_longest_mount_point_wins() {
        let mounts = "21 1 254:1 / / rw - ext4 /dev/vda1 rw\n\
                      30 21 0:25 / /data rw shared:1 - xfs /dev/mapper/vg-fast rw\n\
                      31 21 0:26 / /database rw - tmpfs tmpfs rw";
        let of = |path| mount_of(mounts, Path::new(path));
        assert_eq!(of("/data/x"), Some(("xfs".into(), "vg-fast".into())));
        assert_eq!(of("/home"), Some(("ext4".into(), "vda1".into())));
    }

    #[test]
    fn this_machine_is_described_without_its_name() {
        let environment = Environment::inspect("0.1.0", Path::new("/tmp"));
        assert!(environment.processors > 0 && environment.memory_bytes > 0);
        assert!(!environment.kernel.is_empty() && !environment.file_system.is_empty());
        let all = serde_json::to_string(&environment).unwrap();
        let name = text("/proc/sys/kernel/hostname");
        assert!(name.len() < 4 || !all.contains(&name), "{all}");
        assert!(!all.contains("/tmp"));
    }

    #[test]
    fn systems_on_other_machines_do_not_count_as_co_located() {
        let shared = |runs: &[RunRecord]| Environment::default().of_runs(runs).shared_host;
        let mut run = sample::result().runs.remove(0);
        assert_eq!(shared(&[run.clone()]), Some(true));
        run.processes.retain(|usage| usage.role == GENERATOR_ROLE);
        assert_eq!(shared(&[run]), None);
    }

    #[test]
    fn reported_niceness_is_that_of_the_load_generator() {
        let here = Environment { generator_niceness: Some(-20), ..Environment::default() };
        let mut run = sample::result().runs.remove(0);
        let told = |run: &RunRecord| here.clone().of_runs(std::slice::from_ref(run)).co_location();
        let words = "on the same machine, threads with intended times at niceness -20";
        assert_eq!(told(&run), words);
        run.workers = sample::workers(&run, 0);
        assert!(!told(&run).contains("niceness"));
    }
}
