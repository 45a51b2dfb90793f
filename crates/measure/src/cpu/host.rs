//! Counters of the machine as a whole.
//!
//! The kernel adds up the time for which a processor is idle, and samples at its ticks what it does
//! otherwise: work that begins at a tick, as that of timers does, is counted for the whole tick or
//! not at all. So busy time is the window minus idle and stolen time
//! (`Documentation/filesystems/proc.rst` and `kernel/sched/cputime.c` of Linux).

use std::time::Instant;

use super::{HostUsage, read};
use crate::error::Error;

/// Length of a tick of `/proc/stat`.
const TICK_MS: u128 = 10;

/// What `/proc/stat` said at some moment.
#[derive(Debug)]
pub(super) struct HostCounters {
    at: Instant,
    processors: u64,
    idle_ticks: u64,
    steal_ticks: u64,
    softirq_ticks: u64,
    disk_kib: u64,
}

impl HostCounters {
    /// # Errors
    /// [`Error::Machine`] where there are none.
    pub(super) fn read() -> Result<Self, Error> {
        let mut counters = Self::parse(&read("/proc/stat")?, Instant::now());
        // If the kernel does not report it, the disk's share is 0.
        counters.disk_kib = read("/proc/vmstat").map_or(0, |text| disk_kib(&text));
        Ok(counters)
    }

    /// The first line is of all processors: user nice system idle iowait irq softirq steal. A line
    /// of each follows.
    fn parse(text: &str, at: Instant) -> Self {
        let mut ticks = [0_u64; 8];
        let line = text.lines().next().unwrap_or("");
        for (slot, word) in ticks.iter_mut().zip(line.split_ascii_whitespace().skip(1)) {
            *slot = word.parse().unwrap_or(0);
        }
        let [_, _, _, idle, iowait, _, softirq_ticks, steal_ticks] = ticks;
        let each = text.lines().skip(1).take_while(|line| line.starts_with("cpu"));
        let processors = u64::try_from(each.count()).unwrap_or(1);
        Self { at, processors, idle_ticks: idle + iowait, steal_ticks, softirq_ticks, disk_kib: 0 }
    }

    /// What happened since `before`.
    pub(super) fn since(&self, before: &Self) -> HostUsage {
        let elapsed = self.at.saturating_duration_since(before.at);
        let all = elapsed.as_millis() * u128::from(self.processors) / TICK_MS;
        let all = u64::try_from(all).unwrap_or(u64::MAX);
        let idle_ticks = self.idle_ticks.saturating_sub(before.idle_ticks);
        let steal_ticks = self.steal_ticks.saturating_sub(before.steal_ticks);
        HostUsage {
            busy_ticks: all.saturating_sub(idle_ticks + steal_ticks),
            idle_ticks,
            steal_ticks,
            softirq_ticks: self.softirq_ticks.saturating_sub(before.softirq_ticks),
            disk_bytes: self.disk_kib.saturating_sub(before.disk_kib) * 1024,
        }
    }
}

/// KiB that block devices were asked to read and to write, from `/proc/vmstat`.
fn disk_kib(text: &str) -> u64 {
    let moved = text.lines().filter_map(|line| {
        let (name, count) = line.split_once(' ')?;
        let is_moved = matches!(name, "pgpgin" | "pgpgout");
        is_moved.then(|| count.trim().parse::<u64>().ok()).flatten()
    });
    moved.sum()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn busy_time_is_neither_idle_nor_stolen_whatever_the_ticks_sampled() {
        let start = Instant::now();
        let before = "cpu  10 1 20 300 40 2 5 7 0 0\ncpu0 1 1 1 1\ncpu1 1 1 1 1\nintr 7\n";
        let after = "cpu  99 1 20 360 50 2 9 17 0 0\ncpu0 1 1 1 1\ncpu1 1 1 1 1\nintr 9\n";
        let end = start + Duration::from_millis(1_009);
        let used = HostCounters::parse(after, end).since(&HostCounters::parse(before, start));
        let told = HostUsage {
            busy_ticks: 121,
            idle_ticks: 70,
            steal_ticks: 10,
            softirq_ticks: 4,
            ..HostUsage::default()
        };
        assert_eq!(used, told);
        let none = HostCounters::parse(after, end).since(&HostCounters::parse(after, end));
        assert_eq!(none, HostUsage::default());
    }

    #[test]
    fn both_directions_of_block_devices_are_counted() {
        assert_eq!(disk_kib("nr_free_pages 7\npgpgin 12\npgpgout 30\npgpgoutrun 5\n"), 42);
        assert_eq!(disk_kib(""), 0);
    }

    #[test]
    fn this_machine_has_processors() {
        let counters = HostCounters::read().unwrap();
        assert!(counters.processors > 0 && counters.idle_ticks > 0, "{counters:?}");
    }
}
