//! Loops over one file that show what the disk gives to a program that does nothing else: a write
//! and `fdatasync` at a fixed schedule, and a sequential reading, both past the page cache.
//!
//! A loop runs as a process of its own, like the systems that are held against it, and answers
//! with one JSON document. [`measure`] starts it; [`run`] is what that process does.
//!
//! A third loop has a loopback connection between the schedule and the disk. It shows the
//! connection's part of a server's response time.
//!
//! The file is allocated and written once before, as a broker's log files are, so that no flush
//! has to allocate blocks. What is written is random, so that no layer below can shorten it.

mod file;
mod serving;
mod writing;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::run::{LatencyRecord, Slot};
use crate::schedule::Arrivals;
use crate::workload::{Pace, Workload};
use moldau_measure::Error;
use moldau_measure::cpu::{CpuMeter, HostUsage, ProcessUsage};

use file::{Aligned, File};

/// Role of the loop among the measured processes.
pub const ROLE: &str = "loop";

/// Arguments under which the program runs a loop; the task follows as JSON.
pub const ARGUMENTS: [&str; 2] = ["lab", "bare-disk"];

/// Alignment of memory, offsets and lengths: the largest logical block of disks in use.
pub const BLOCK: usize = 4096;

/// Size of one read and of one write of the preparation.
pub const STEP_BYTES: usize = 1 << 20;

/// Largest write of a loop: no broker flushes more at once.
const WRITE_BYTES_MAX: usize = 64 << 20;

/// Most reads at a time: each is a thread.
const DEPTH_MAX: u16 = 64;

/// Most bytes of one write when the loop is late: what the broker puts into one flush.
const GATHERED_BYTES_MAX: usize = 4 << 20;

/// How far a loop may be behind its schedule before it gives up.
const LATE_MAX: Duration = Duration::from_secs(10);

/// What a process does.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Task {
    /// The file.
    pub path: PathBuf,
    /// Its size, a multiple of [`STEP_BYTES`].
    pub file_bytes: u64,
    /// What to do with it.
    pub work: Work,
}

/// The loops.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Work {
    /// Allocate the file, fill it, flush it.
    Prepare,
    /// Write and flush at the intended times of the workload, `record_bytes` each, a multiple of
    /// [`BLOCK`]; what falls due during a flush is written at once after it, as a broker does.
    Write(Workload),
    /// The same behind a loopback connection: an operation is sent at its intended time, and done
    /// when its answer has come back.
    Serve(Workload),
    /// Read it from start to end, that many reads of [`STEP_BYTES`] at a time.
    Read {
        /// Reads at a time.
        depth: u16,
    },
}

/// What a loop gave.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Outcome {
    /// From the start of the loop to that of the measured window, ns.
    pub before_window_ns: u64,
    /// The measured window, ns.
    pub window_ns: u64,
    /// Operations intended inside the window.
    pub offered: u64,
    /// Those that came to their end.
    pub answered: u64,
    /// Histograms of a scheduled loop.
    pub latency: Option<LatencyRecord>,
    /// The course of the window.
    pub series: Vec<Slot>,
    /// What the process used inside the window.
    pub process: ProcessUsage,
    /// What the machine did inside the window.
    pub host: HostUsage,
}

impl Task {
    /// Reads a task and refuses what cannot be done.
    ///
    /// # Errors
    /// [`Error::Document`] and [`Error::Plan`].
    pub fn from_json(text: &str) -> Result<Self, Error> {
        let task: Self =
            serde_json::from_str(text).map_err(|error| Error::Document(error.to_string()))?;
        task.check()?;
        Ok(task)
    }

    fn check(&self) -> Result<(), Error> {
        let refuse = |text: &str| Err(Error::Plan(text.to_string()));
        if self.file_bytes == 0 || !self.file_bytes.is_multiple_of(STEP_BYTES as u64) {
            return refuse("the file of a bare loop must be a multiple of 1 MiB");
        }
        match &self.work {
            Work::Prepare => Ok(()),
            Work::Read { depth } if (1..=DEPTH_MAX).contains(depth) => Ok(()),
            Work::Read { .. } => refuse("a bare loop reads 1 to 64 times at once"),
            Work::Write(workload) | Work::Serve(workload) => {
                let bytes = workload.record_bytes;
                if bytes == 0 || bytes > WRITE_BYTES_MAX || !bytes.is_multiple_of(BLOCK) {
                    return refuse("a bare loop writes multiples of 4096 up to 64 MiB");
                }
                if bytes as u64 > self.file_bytes || workload.window_ms == 0 {
                    return refuse("a bare loop needs a file and a window");
                }
                match workload.pace {
                    Pace::Scheduled { per_second: 1.., .. } => Ok(()),
                    _ => refuse("a bare loop writes at a schedule"),
                }
            }
        }
    }
}

/// Runs a task in a process of its own and waits for its end.
///
/// # Errors
/// [`Error::Machine`] when the process cannot be started, [`Error::Target`] when it fails.
pub fn measure(program: &Path, task: &Task) -> Result<Outcome, Error> {
    task.check()?;
    let broken = |error: serde_json::Error| Error::Document(error.to_string());
    let output = Command::new(program)
        .args(ARGUMENTS)
        .arg(serde_json::to_string(task).map_err(broken)?)
        .stdin(Stdio::null())
        .output()
        .map_err(Error::machine(format!("starting {}", program.display())))?;
    if !output.status.success() {
        return Err(Error::Target {
            action: "running a bare loop".into(),
            reason: String::from_utf8_lossy(&output.stderr).trim().to_string(),
        });
    }
    serde_json::from_slice(&output.stdout).map_err(broken)
}

/// Does a task in this process.
///
/// # Errors
/// [`Error::Plan`] for an impossible task, [`Error::Machine`] when the disk refuses.
pub fn run(task: &Task) -> Result<Outcome, Error> {
    task.check()?;
    let file = File::open(&task.path)?;
    match &task.work {
        Work::Prepare => prepare(&file, task.file_bytes),
        Work::Write(workload) => writing::run(&file, task.file_bytes, workload),
        Work::Serve(workload) => serving::run(&file, task.file_bytes, workload),
        Work::Read { depth } => read(&file, task.file_bytes, *depth),
    }
}

fn prepare(file: &File, file_bytes: u64) -> Result<Outcome, Error> {
    let started = Instant::now();
    file.allocate(file_bytes)?;
    let meter = CpuMeter::start(&me())?;
    let mut buffer = Aligned::random(STEP_BYTES);
    for position in (0..file_bytes).step_by(STEP_BYTES) {
        // Each block differs, so that none can be stored as another.
        let (head, _) = buffer.bytes().split_first_chunk_mut().expect("a step is longer");
        *head = position.to_le_bytes();
        file.write(buffer.bytes(), position)?;
    }
    file.flush()?;
    finish(meter, nanos(started.elapsed()), file_bytes / STEP_BYTES as u64)
}

fn read(file: &File, file_bytes: u64, depth: u16) -> Result<Outcome, Error> {
    let steps = file_bytes / STEP_BYTES as u64;
    let next = AtomicU64::new(0);
    let meter = CpuMeter::start(&me())?;
    let started = Instant::now();
    thread::scope(|scope| {
        let reader = || {
            let mut buffer = Aligned::random(STEP_BYTES);
            loop {
                let step = next.fetch_add(1, Ordering::Relaxed);
                if step >= steps {
                    return Ok(());
                }
                file.read(buffer.bytes(), step * STEP_BYTES as u64)?;
            }
        };
        let readers: Vec<_> = (0..depth).map(|_| scope.spawn(reader)).collect();
        readers.into_iter().try_for_each(|reader| {
            reader.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    })?;
    finish(meter, nanos(started.elapsed()), steps)
}

fn finish(meter: CpuMeter, window_ns: u64, operations: u64) -> Result<Outcome, Error> {
    let (mut processes, host) = meter.stop()?;
    Ok(Outcome {
        before_window_ns: 0,
        window_ns,
        offered: operations,
        answered: operations,
        latency: None,
        series: Vec::new(),
        process: processes.pop().unwrap_or_default(),
        host,
    })
}

/// The schedule of a loop that writes `record_bytes` that many times a second.
#[must_use]
pub fn write_workload(like: &Workload, record_bytes: usize, per_second: u64) -> Workload {
    Workload {
        pace: Pace::Scheduled { per_second, arrivals: Arrivals::Constant },
        record_bytes,
        batch_bytes: record_bytes,
        linger_us: 0,
        partitions: 1,
        producers: 1,
        consume: false,
        tails: 0,
        ..like.clone()
    }
}

fn me() -> [(String, u32); 1] {
    [(ROLE.to_string(), std::process::id())]
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::payload::Filler;
    use crate::workload::Tuning;

    const FILE_BYTES: u64 = 4 << 20;

    fn workload(record_bytes: usize, per_second: u64) -> Workload {
        let like = Workload {
            pace: Pace::Unpaced,
            record_bytes: 1024,
            filler: Filler::Random,
            partitions: 10,
            producers: 2,
            batch_bytes: 16_384,
            linger_us: 1_000,
            consume: true,
            tails: 9,
            warmup_ms: 10,
            window_ms: 50,
            tuning: Tuning::default(),
        };
        write_workload(&like, record_bytes, per_second)
    }

    fn task(directory: &tempfile::TempDir, work: Work) -> Task {
        Task { path: directory.path().join("bare"), file_bytes: FILE_BYTES, work }
    }

    #[test]
    fn every_intended_write_of_the_window_is_booked_once() {
        let directory = tempfile::tempdir().unwrap();
        run(&task(&directory, Work::Prepare)).unwrap();
        for work in [Work::Write, Work::Serve] {
            let outcome = run(&task(&directory, work(workload(8192, 1_000)))).unwrap();
            assert_eq!((outcome.offered, outcome.answered), (50, 50));
            let latency = outcome.latency.unwrap();
            assert_eq!(latency.response.summary.count, 50);
            assert!(latency.response.summary.p50_ns >= latency.service.summary.p50_ns / 2);
            assert_eq!(outcome.series.iter().map(|slot| slot.produced_records).sum::<u64>(), 50);
            assert_eq!(outcome.before_window_ns, 10_000_000);
        }
    }

    #[test]
    fn operations_that_come_faster_than_the_disk_takes_them_are_all_answered() {
        let directory = tempfile::tempdir().unwrap();
        run(&task(&directory, Work::Prepare)).unwrap();
        let outcome = run(&task(&directory, Work::Serve(workload(1 << 20, 20_000)))).unwrap();
        assert_eq!((outcome.offered, outcome.answered), (1_000, 1_000));
    }

    #[test]
    fn a_reading_covers_the_file_at_every_depth() {
        let directory = tempfile::tempdir().unwrap();
        run(&task(&directory, Work::Prepare)).unwrap();
        assert_eq!(std::fs::metadata(directory.path().join("bare")).unwrap().len(), FILE_BYTES);
        for depth in [1, 3, 16] {
            let outcome = run(&task(&directory, Work::Read { depth })).unwrap();
            assert_eq!(outcome.answered, 4, "depth {depth}");
            assert_eq!(outcome.process.role, ROLE);
        }
    }

    #[test]
    fn a_file_that_is_too_short_is_an_error() {
        let directory = tempfile::tempdir().unwrap();
        run(&task(&directory, Work::Prepare)).unwrap();
        let longer =
            Task { file_bytes: 2 * FILE_BYTES, ..task(&directory, Work::Read { depth: 2 }) };
        assert!(matches!(run(&longer), Err(Error::Machine { .. })));
    }

    #[test]
    fn impossible_tasks_are_refused() {
        let directory = tempfile::tempdir().unwrap();
        let of = |work| task(&directory, work);
        for broken in [
            Task { file_bytes: 0, ..of(Work::Prepare) },
            Task { file_bytes: 4096, ..of(Work::Prepare) },
            of(Work::Read { depth: 0 }),
            of(Work::Read { depth: 65 }),
            of(Work::Write(workload(1000, 10))),
            of(Work::Write(workload(0, 10))),
            of(Work::Write(workload(8 << 20, 10))),
            of(Work::Write(workload(4096, 0))),
            of(Work::Write(Workload { pace: Pace::Unpaced, ..workload(4096, 1) })),
        ] {
            assert!(matches!(run(&broken), Err(Error::Plan(_))), "{broken:?}");
        }
    }

    #[test]
    fn a_task_survives_its_document_and_unknown_keys_are_refused() {
        let directory = tempfile::tempdir().unwrap();
        let write = task(&directory, Work::Write(workload(4096, 1)));
        let text = serde_json::to_string(&write).unwrap();
        assert_eq!(Task::from_json(&text).unwrap(), write);
        assert!(Task::from_json(&text.replacen("file_bytes", "file_size", 1)).is_err());
    }
}
