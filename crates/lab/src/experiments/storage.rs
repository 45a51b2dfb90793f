//! How much slower than the disk is the broker? The broker against loops that do nothing but write,
//! flush and read on the same disk.
//!
//! Four questions in one run, each in interleaved pairs: produce at a fixed rate against a bare
//! `fdatasync` loop; a cold scan against a bare sequential reading; produce with and without a scan
//! beside it; and ten consumers at the tail against one.

mod cold_scan;
mod durable;
mod fan_out;
mod page;

use std::net::SocketAddr;
use std::path::PathBuf;

use super::bench::{Bench, Path};
use super::{Conditions, Progress};
use crate::checks;
use crate::result::{Arm, Experiment, RunResult};
use crate::systems::{Durability, Process, free_addresses, moldau_broker_configured};
use moldau_load::bare_disk::{self, STEP_BYTES, Task, Work};
use moldau_load::payload::Filler;
use moldau_load::schedule::Arrivals;
use moldau_load::workload::{Pace, Tuning, Workload};
use moldau_measure::Error;

pub use page::page;

/// The broker with nothing else to do.
const BROKER: &str = "broker";

/// Largest scan: the bare loops need a file of the same size beside the broker's.
const SCAN_BYTES_MAX: u64 = 1 << 40;

/// Size of the bare loops' file at least, that of a file of the broker's journal: at its end a
/// writing loop starts again from the beginning.
const BARE_FILE_BYTES_MIN: u64 = 256 << 20;

/// Longest window of a run that only chooses a rate or a length, ms.
const PROBE_WINDOW_MS_MAX: u64 = 2_000;

/// What the broker keeps of the newest data, MiB: little, since a scan is to be cold.
const TAIL_CACHE_MIB: u32 = 128;

/// Everything that an experiment needs to know.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The `moldau` executable, started as broker and as bare loop.
    pub moldau: PathBuf,
    /// Under what conditions it is carried out.
    pub conditions: Conditions,
    /// Produce at a fixed rate, every record a request of its own.
    pub durable: Workload,
    /// Pairs of the broker and the `fdatasync` loop.
    pub durable_pairs: u32,
    /// Bytes of the cold scan, record values only.
    pub scan_bytes: u64,
    /// Rounds of the cold scan and its bare readings.
    pub scan_rounds: u32,
    /// Pairs of produce without and with a scan beside it.
    pub scanned_pairs: u32,
    /// Produce under ten tail consumers at the given rate.
    pub fan_out: Workload,
    /// Pairs of one and ten consumers.
    pub fan_out_pairs: u32,
}

/// Record of [`Plan::durable`]: Kafka's default batch, so that a record is a batch and a request.
const DURABLE_RECORD_BYTES: usize = 16 * 1024;

/// Records per second of 50 MB/s in records of [`DURABLE_RECORD_BYTES`].
const DURABLE_RATE: u64 = 50 * 64;

/// Records per second of 20 MB/s of 1 KB records.
const FAN_OUT_RATE: u64 = 20 * 1024;

impl Plan {
    /// The short form takes less than four minutes; the long form has a scan of 5 GiB and ten pairs
    /// of 20 s.
    #[must_use]
    pub fn usual(moldau: PathBuf, conditions: Conditions) -> Self {
        let durable = Workload {
            pace: Pace::Scheduled { per_second: DURABLE_RATE, arrivals: Arrivals::Constant },
            record_bytes: DURABLE_RECORD_BYTES,
            filler: Filler::Text,
            partitions: 10,
            producers: 1,
            batch_bytes: DURABLE_RECORD_BYTES,
            linger_us: 0,
            consume: false,
            tails: 0,
            warmup_ms: 500,
            window_ms: 4_000,
            tuning: Tuning::default(),
        };
        let fan_out = Workload {
            pace: Pace::Scheduled { per_second: FAN_OUT_RATE, arrivals: Arrivals::Constant },
            record_bytes: 1024,
            linger_us: 1_000,
            consume: true,
            window_ms: 3_000,
            ..durable.clone()
        };
        let short = Self {
            moldau,
            conditions,
            durable,
            durable_pairs: 6,
            scan_bytes: 1 << 30,
            scan_rounds: 4,
            scanned_pairs: 4,
            fan_out,
            fan_out_pairs: 3,
        };
        if short.conditions.quick {
            return short;
        }
        let longer = |workload: &Workload| Workload {
            warmup_ms: 2_000,
            window_ms: 20_000,
            ..workload.clone()
        };
        Self {
            durable: longer(&short.durable),
            durable_pairs: 10,
            scan_bytes: 5 << 30,
            scan_rounds: 6,
            scanned_pairs: 6,
            fan_out: Workload { window_ms: 10_000, ..longer(&short.fan_out) },
            fan_out_pairs: 5,
            ..short
        }
    }

    fn check(&self) -> Result<(), Error> {
        self.durable.check()?;
        self.fan_out.check()?;
        if self.scan_bytes == 0 || self.scan_bytes > SCAN_BYTES_MAX {
            return Err(Error::Plan("a scan has at least one byte and at most 1 TiB".into()));
        }
        let counts = [self.durable_pairs, self.scan_rounds, self.scanned_pairs, self.fan_out_pairs];
        if counts.contains(&0) {
            return Err(Error::Plan("at least one pair of each kind".into()));
        }
        Ok(())
    }

    fn steps(&self) -> u32 {
        let pairs = self.scanned_pairs + self.fan_out_pairs;
        4 + 2 * pairs + 3 * (self.durable_pairs + self.scan_rounds)
    }

    /// The file of the bare loops.
    fn bare(&self, work: Work) -> Task {
        let step = STEP_BYTES as u64;
        let file_bytes = self.scan_bytes.max(BARE_FILE_BYTES_MIN).div_ceil(step) * step;
        Task { path: self.conditions.work_directory.join("bare"), file_bytes, work }
    }
}

/// Runs the experiment.
///
/// # Errors
/// As [`super::overhead::run`].
pub fn run(plan: &Plan, progress: &mut dyn Progress) -> Result<RunResult, Error> {
    plan.check()?;
    let mut bench = Bench::new(&plan.conditions, plan.steps(), progress);
    bench.step("Start the broker");
    let mut system = System::start(plan)?;
    bench.step("Write the file of the bare loops");
    bare_disk::measure(&plan.moldau, &plan.bare(Work::Prepare))?;
    durable::run(plan, &mut bench, &mut system)?;
    cold_scan::run(plan, &mut bench, &mut system)?;
    fan_out::run(plan, &mut bench, &mut system)?;
    system.broker.stop()?;
    bench.finish(Experiment::Storage, arms(), checks::all)
}

/// The first of a case that has runs in it is what the others are held against.
fn arms() -> Vec<Arm> {
    vec![
        Arm::of(
            durable::LOOP,
            "a process that writes and flushes (O_DIRECT, fdatasync) as many bytes at a time, as \
             many times a second, as the broker does, and all at once that fell due during a \
             flush; into a file that was written before",
        ),
        Arm::of(
            durable::SERVED,
            "the same loop behind a loopback connection: a thread sends, one writes, flushes and \
             answers, one takes the answers",
        ),
        Arm::of(
            cold_scan::DISK_16,
            "a process that reads a file of the same size from start to end, O_DIRECT, 1 MiB, 16 \
             reads at a time",
        ),
        Arm::of(
            cold_scan::DISK_2,
            "the same, 2 reads at a time, as many as the broker has readers",
        ),
        Arm::of(
            BROKER,
            format!(
                "moldau broker, acknowledging after the flush to the disk, with {TAIL_CACHE_MIB} \
                 MiB of the newest data in memory"
            ),
        ),
        Arm::of(cold_scan::SCANNED, "the same broker while a consumer reads old records"),
        Arm::of(fan_out::ONE, "the same broker with one consumer at the tail"),
        Arm::of(fan_out::TEN, "the same broker with ten, each over a connection of its own"),
    ]
}

/// The broker and how it is reached.
struct System {
    broker: Process,
    bootstrap: String,
    admin: SocketAddr,
    data: PathBuf,
}

impl System {
    fn start(plan: &Plan) -> Result<Self, Error> {
        let [listen, admin] = free_addresses()?;
        let data = plan.conditions.work_directory.join("data");
        let directory = &plan.conditions.work_directory;
        let lines = format!("listeners: PLAINTEXT://{listen}\ntail_cache_mib: {TAIL_CACHE_MIB}\n");
        let spec =
            moldau_broker_configured(&plan.moldau, directory, admin, Durability::Fsync, &lines)?;
        let broker = Process::start(&spec, directory)?;
        Ok(Self { broker, bootstrap: listen.to_string(), admin, data })
    }

    /// The broker as an arm of that name.
    fn path(&self, arm: &str) -> Result<Path, Error> {
        let broker = (self.broker.role().to_string(), self.broker.pid());
        Path::to(arm, self.bootstrap.clone(), vec![broker])
    }
}

/// Two arms in the order of a pair: AB, BA, AB and so on.
fn in_order<T>(arms: [T; 2], pair: u32) -> [T; 2] {
    let [first, second] = arms;
    if pair.is_multiple_of(2) { [first, second] } else { [second, first] }
}
