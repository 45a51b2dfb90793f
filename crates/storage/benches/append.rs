//! Measures the journal on the disk of a directory: appends from several threads, each waiting for
//! its own flush; then the same bytes read back.
//!
//! `cargo bench -p moldau-storage --bench append -- [DIR] [MIB]`: a directory on the disk to
//! measure (default: the system's temporary directory) and the volume of each case in MiB (default
//! 1024, a sixteenth of it where each append waits alone).
//! CPU-ms/MB is user and system time of the whole process, CRC validation by the caller left out.

#![expect(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    reason = "figures for people"
)]

use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use moldau_records::{
    AppendRules, BatchBuilder, BatchOptions, Compression, Compressor, Error as RecordsError,
    ValidBatch, Validator,
};
use moldau_storage::{Access, Disk, Options, RealDisk, Replay, Storage, TopicId, block_on};

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

struct NoMetadata;

impl Replay for NoMetadata {
    fn metadata(&mut self, _bytes: &[u8]) -> Result<(), String> {
        Ok(())
    }
}

/// A way to append.
struct Case {
    name: &'static str,
    record_bytes: usize,
    records_per_batch: usize,
    threads: usize,
    /// Appends that a thread has in flight.
    depth: usize,
}

const CASES: [Case; 5] = [
    Case {
        name: "1 thread, 4 KB",
        record_bytes: 3_900,
        records_per_batch: 1,
        threads: 1,
        depth: 1,
    },
    Case {
        name: "4 threads, 16 KB",
        record_bytes: 1024,
        records_per_batch: 16,
        threads: 4,
        depth: 1,
    },
    Case {
        name: "4 x 16, 16 KB",
        record_bytes: 1024,
        records_per_batch: 16,
        threads: 4,
        depth: 16,
    },
    Case {
        name: "4 threads, 1 MB",
        record_bytes: 1024,
        records_per_batch: 1000,
        threads: 4,
        depth: 1,
    },
    Case { name: "2 x 4, 1 MB", record_bytes: 1024, records_per_batch: 1000, threads: 2, depth: 4 },
];

fn main() -> Outcome<()> {
    // Cargo hands `--bench` through.
    let mut arguments = std::env::args().skip(1).filter(|argument| !argument.starts_with("--"));
    let dir = arguments.next().map_or_else(std::env::temp_dir, PathBuf::from);
    let mib: usize = arguments.next().map_or(Ok(1024), |text| text.parse())?;
    bare_flushes(&dir)?;
    empty_start(&dir)?;
    for case in &CASES {
        let data_dir = dir.join(format!("moldau-bench-{}", std::process::id()));
        let measured = measure(case, &data_dir, mib << 20);
        std::fs::remove_dir_all(&data_dir)?;
        measured?;
    }
    Ok(())
}

/// A file of 4 KiB writes, each flushed, on blocks that were written before: what the disk can do.
fn bare_flushes(dir: &Path) -> Outcome<()> {
    let path = dir.join(format!("moldau-bench-{}", std::process::id()));
    let file = RealDisk.open(&path, Access::Buffered, true)?;
    let block = [1; 4096];
    for pass in 0..2 {
        let mut latencies = Vec::new();
        for at in 0..1000 {
            let started = Instant::now();
            file.write_at(&[std::io::IoSlice::new(&block)], at * 4096)?;
            file.sync_data()?;
            latencies.push(started.elapsed());
        }
        if pass == 1 {
            println!("bare write + fdatasync of 4 KiB: {}", percentiles(latencies));
        }
    }
    std::fs::remove_file(&path)?;
    Ok(())
}

/// From nothing to the first durable record.
fn empty_start(dir: &Path) -> Outcome<()> {
    let data_dir = dir.join(format!("moldau-bench-{}", std::process::id()));
    let mut builder = BatchBuilder::new(BatchOptions::default());
    builder.append(0, None, Some(b"first"), [])?;
    let batch = builder.finish(Compression::None, &mut Compressor::default())?.to_vec();
    let started = Instant::now();
    let storage = Storage::open(Options::new(&data_dir), &mut NoMetadata)?;
    let appended =
        storage.log(TopicId([1; 16]), 0).append(&valid(&mut Validator::default(), &batch)?, 0)?;
    block_on(storage.wait_durable(appended.lsn))?;
    println!("empty start to the first durable record: {} us", started.elapsed().as_micros());
    drop(storage);
    Ok(std::fs::remove_dir_all(&data_dir)?)
}

fn measure(case: &Case, data_dir: &Path, bytes: usize) -> Outcome<()> {
    let mut builder = BatchBuilder::new(BatchOptions::default());
    let value: Vec<u8> = (0..case.record_bytes).map(|at| (at * 31 % 251) as u8).collect();
    for _ in 0..case.records_per_batch {
        builder.append(1_700_000_000_000, None, Some(&value), [])?;
    }
    let batch = builder.finish(Compression::None, &mut Compressor::default())?.to_vec();
    let storage = Storage::open(Options::new(data_dir), &mut NoMetadata)?;
    // The first file is not written with zeros beforehand; the measurement starts in the second.
    append(&storage, case, &batch, if case.threads == 1 { 1 << 20 } else { 256 << 20 })?;
    let bytes = if case.threads == 1 { bytes / 16 } else { bytes };
    let before = storage.metrics();
    let (wall, cpu, latencies) = timed(|| append(&storage, case, &batch, bytes))?;
    let after = storage.metrics();
    let mib = bytes as f64 / f64::from(1 << 20);
    let frames = after.frames - before.frames;
    println!(
        "{:18} append {:6.0} MB/s  {:.3} CPU-ms/MB  {:5.0} KB/frame  flush mean {:4.0} us  \
         append to durable {}",
        case.name,
        mib / wall.as_secs_f64(),
        cpu.as_secs_f64() * 1e3 / mib,
        (after.frame_bytes - before.frame_bytes) as f64 / frames as f64 / 1024.0,
        (after.flush_nanos - before.flush_nanos) as f64 / frames as f64 / 1e3,
        percentiles(latencies),
    );
    let (wall, cpu, read) = timed(|| read_back(&storage, case))?;
    let mib = read as f64 / f64::from(1 << 20);
    println!(
        "{:18} read   {:6.0} MB/s  {:.3} CPU-ms/MB",
        "",
        mib / wall.as_secs_f64(),
        cpu.as_secs_f64() * 1e3 / mib,
    );
    drop(storage);
    let (wall, cpu, storage) =
        timed(|| Ok(Storage::open(Options::new(data_dir), &mut NoMetadata)?))?;
    println!(
        "{:18} reopen {:6.0} ms     {:6.0} CPU-ms for {} frames",
        "",
        wall.as_secs_f64() * 1e3,
        cpu.as_secs_f64() * 1e3,
        storage.info().recovered_frames,
    );
    Ok(())
}

fn append(storage: &Storage, case: &Case, batch: &[u8], bytes: usize) -> Outcome<Vec<Duration>> {
    let left = Arc::new(AtomicUsize::new(bytes / batch.len()));
    let mut validator = Validator::default();
    let batch = valid(&mut validator, batch)?;
    let run = |partition: i32| -> Outcome<Vec<Duration>> {
        let log = storage.log(TopicId([1; 16]), partition);
        let mut latencies = Vec::new();
        let mut flying = std::collections::VecDeque::new();
        while left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(1)).is_ok()
        {
            let started = Instant::now();
            flying.push_back((started, log.append(&batch, 0)?.lsn));
            if flying.len() == case.depth
                && let Some((started, lsn)) = flying.pop_front()
            {
                block_on(storage.wait_durable(lsn))?;
                latencies.push(started.elapsed());
            }
        }
        for (_, lsn) in flying {
            block_on(storage.wait_durable(lsn))?;
        }
        Ok(latencies)
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> =
            (0..case.threads as i32).map(|at| scope.spawn(move || run(at))).collect();
        let mut latencies = Vec::new();
        for thread in threads {
            latencies.extend(thread.join().map_err(|_| "an appending thread panicked")??);
        }
        Ok(latencies)
    })
}

fn valid<'a>(
    validator: &'a mut Validator,
    batch: &'a [u8],
) -> Result<ValidBatch<'a>, RecordsError> {
    validator.check(batch, &AppendRules::LENIENT).map_err(|invalid| invalid.error)
}

fn read_back(storage: &Storage, case: &Case) -> Outcome<usize> {
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..case.threads as i32)
            .map(|at| {
                let log = storage.log(TopicId([1; 16]), at);
                scope.spawn(move || -> Outcome<usize> {
                    let (mut from, mut bytes) = (0, 0);
                    loop {
                        let read = log.read(from, 1 << 20, true)?.wait()?;
                        if read.batches.is_empty() {
                            return Ok(bytes);
                        }
                        bytes += read.bytes;
                        from = read.next_offset;
                    }
                })
            })
            .collect();
        let mut bytes = 0;
        for thread in threads {
            bytes += thread.join().map_err(|_| "a reading thread panicked")??;
        }
        Ok(bytes)
    })
}

fn timed<T>(run: impl FnOnce() -> Outcome<T>) -> Outcome<(Duration, Duration, T)> {
    let (started, cpu) = (Instant::now(), cpu_time());
    let result = run()?;
    Ok((started.elapsed(), cpu_time().saturating_sub(cpu), result))
}

fn cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or_default())
}

fn percentiles(mut latencies: Vec<Duration>) -> String {
    latencies.sort_unstable();
    let at = |share: f64| {
        let index = (latencies.len() as f64 * share) as usize;
        latencies.get(index).map_or(0, Duration::as_micros)
    };
    format!("p50 {} us, p99 {} us", at(0.5), at(0.99))
}
