//! What traffic with the disk costs a virtual machine in processors that it never sees.
//!
//! A hypervisor that emulates the disk does so on processors, and where these are the ones that the
//! machine was promised (Firecracker, a control group with a quota around virtual machine and
//! emulation), it takes them from the machine: steal that is nobody else's. It shows only while all
//! processors are busy. So it is measured like that, on a disk at rest and on one in use: what the
//! difference explains of a run is the machine's own.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use moldau_measure::Error;
use moldau_measure::cpu::{CpuMeter, HostUsage, TICK_NS};
use moldau_measure::statistics::float;

/// How long the processors count beside a disk at rest, and beside one in use, and how often. The
/// least counts: what others take in one round is not to excuse them in all trials.
const AT_REST: Duration = Duration::from_millis(400);
const IN_USE: Duration = Duration::from_millis(800);
const ROUNDS: usize = 3;

/// What is written at once and made durable, like a broker's frames: the shorter, the more each
/// byte costs. And after how many of them the file is written from its start again.
const WRITE_BYTES: usize = 128 << 10;
const WRITES_PER_ROUND: u64 = 256;

/// Times the measured cost that still counts as own: blocks that are given back cost as well, and
/// are not counted.
const ALLOWED: f64 = 2.0;

/// The file that is written, inside the directory of the experiment.
const FILE: &str = "disk-cost.tmp";

/// Time that the hypervisor takes for each byte between the machine and its disks.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct DiskCost {
    ns_per_byte: f64,
}

impl DiskCost {
    /// Measures it in a directory, in 4 s in which all processors are busy.
    ///
    /// # Errors
    /// [`Error::Machine`] where the counters cannot be read, or nothing can be written there.
    pub(crate) fn measure(directory: &Path) -> Result<Self, Error> {
        let path = directory.join(FILE);
        let failed = || Error::machine("write to the disk of the experiment");
        std::fs::create_dir_all(directory).map_err(failed())?;
        let file = File::create(&path).map_err(failed())?;
        let block = vec![0xA5; WRITE_BYTES];
        let write = |at: u64| {
            file.write_all_at(&block, (at % WRITES_PER_ROUND) * block.len() as u64)?;
            file.sync_data()
        };
        let round = |_| {
            let rest = counting(AT_REST, |_| {
                thread::sleep(AT_REST);
                Ok(())
            })?;
            Ok(Self::between(rest, counting(IN_USE, write)?))
        };
        let rounds: Result<Vec<Self>, Error> = (0..ROUNDS).map(round).collect();
        std::fs::remove_file(&path).map_err(failed())?;
        rounds.map(Self::least)
    }

    fn least(rounds: Vec<Self>) -> Self {
        let least = rounds.into_iter().map(|round| round.ns_per_byte).reduce(f64::min);
        Self { ns_per_byte: least.unwrap_or(0.0) }
    }

    fn between(at_rest: HostUsage, in_use: HostUsage) -> Self {
        if in_use.disk_bytes == 0 {
            return Self::default();
        }
        let more = (in_use.steal_share() - at_rest.steal_share()).max(0.0);
        let ns = more * TICK_NS * float(in_use.ticks());
        Self { ns_per_byte: ns / float(in_use.disk_bytes) }
    }

    /// What a machine did, with how much of what was taken from it is its own.
    pub(crate) fn explained(self, host: HostUsage) -> HostUsage {
        let ns = ALLOWED * self.ns_per_byte * float(host.disk_bytes);
        let own = moldau_measure::numbers::whole(ns / TICK_NS).min(host.steal_ticks);
        HostUsage { own_steal_ticks: own, ..host }
    }
}

/// What the machine did while all its processors counted and `write` was called again and again
/// with the number of its call, for some time.
fn counting(
    time: Duration,
    mut write: impl FnMut(u64) -> std::io::Result<()>,
) -> Result<HostUsage, Error> {
    let processors = thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..processors {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        let meter = CpuMeter::start(&[]);
        let began = Instant::now();
        let written = (0..).take_while(|_| began.elapsed() < time).try_for_each(&mut write);
        let used = meter.and_then(|meter| Ok(meter.stop()?.1));
        is_over.store(true, Ordering::Relaxed);
        written.map_err(Error::machine("write to the disk of the experiment"))?;
        used
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(steal_ticks: u64, disk_bytes: u64) -> HostUsage {
        HostUsage { busy_ticks: 400 - steal_ticks, steal_ticks, disk_bytes, ..HostUsage::default() }
    }

    #[test]
    fn what_the_disk_explains_is_own_and_no_more() {
        // 40 ticks of 10 ms for 400 MB are 1 ns for each byte.
        let cost = DiskCost::between(host(0, 0), host(40, 400_000_000));
        assert!((cost.ns_per_byte - 1.0).abs() < 1e-9, "{cost:?}");
        // Twice that may be own.
        let own = |host| cost.explained(host).own_steal_ticks;
        assert_eq!(own(host(60, 400_000_000)), 60);
        assert_eq!(own(host(100, 400_000_000)), 80);
        assert_eq!(own(host(60, 0)), 0);
        let others = cost.explained(host(100, 400_000_000)).steal_share_of_others();
        assert!((others - 0.05).abs() < 1e-9, "{others}");
    }

    #[test]
    fn what_is_taken_beside_a_disk_at_rest_is_no_cost_of_the_disk() {
        let cost = DiskCost::between(host(40, 0), host(40, 400_000_000));
        assert_eq!(cost, DiskCost::default());
        assert_eq!(DiskCost::between(host(0, 0), host(40, 0)), DiskCost::default());
    }

    #[test]
    fn what_others_take_in_one_round_excuses_nobody() {
        let rounds = [1.1, 0.9, 5.0].map(|ns_per_byte| DiskCost { ns_per_byte });
        assert_eq!(DiskCost::least(rounds.into()), DiskCost { ns_per_byte: 0.9 });
    }

    #[test]
    fn a_directory_is_measured_and_left_as_it_was() {
        let dir = tempfile::tempdir().unwrap();
        let cost = DiskCost::measure(dir.path()).unwrap();
        assert!(cost.ns_per_byte >= 0.0 && cost.ns_per_byte.is_finite());
        assert_eq!(dir.path().read_dir().unwrap().count(), 0);
        let file = dir.path().join("file");
        std::fs::write(&file, "").unwrap();
        assert!(matches!(DiskCost::measure(&file), Err(Error::Machine { .. })));
    }
}
