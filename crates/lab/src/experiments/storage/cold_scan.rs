//! Reading old records: against a bare sequential reading, and beside producers.

use std::net::SocketAddr;
use std::path::Path as FsPath;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::durable::{counter, megabytes_per_second, record};
use super::{BROKER, PROBE_WINDOW_MS_MAX, Plan, System, in_order};
use crate::checks::{Check, Weight};
use crate::experiments::bench::{Bench, Named, Path};
use crate::experiments::rounds;
use crate::systems::http_get;
use moldau_load::bare_disk::{self, STEP_BYTES, Work};
use moldau_load::generator::{Measured, Scan, Scanned, produce, scan, slot_ms};
use moldau_load::run::RunRecord;
use moldau_load::schedule::Arrivals;
use moldau_load::workload::{Pace, Workload};
use moldau_measure::Error;
use moldau_measure::statistics::{float, median};

/// The bare readings.
pub(super) const DISK_16: &str = "disk, 16 reads";
pub(super) const DISK_2: &str = "disk, 2 reads";

/// The broker with a scan beside its producers.
pub(super) const SCANNED: &str = "broker, scanned";

/// Bytes that a second of the filling offers: less than a broker on a disk takes at full speed.
const FILL_BYTES_PER_SECOND: u64 = 128 << 20;

/// Slowest filling that is waited for, and the shortest wait.
const FILL_BYTES_PER_SECOND_MIN: u64 = 16 << 20;
const FILL_TIME_MIN: Duration = Duration::from_secs(10);

/// Bytes that a filling offers, as a multiple of those that the plan scans: what a broker does not
/// acknowledge in time may be on its disk nevertheless.
const FILL_OFFERED_MAX: u64 = 2;

/// Runs of a filling in which every record is acknowledged, at most, and the shortest of them.
const FILL_RUNS: u64 = 256;
const FILL_WINDOW_MS_MIN: u64 = 50;

/// A broker that has written no segment for this long has no more to sort.
const RESTED: Duration = Duration::from_secs(4);
const REST_WAIT_MAX: Duration = Duration::from_mins(2);
const REST_POLL: Duration = Duration::from_millis(200);

pub(super) fn run(plan: &Plan, bench: &mut Bench<'_>, system: &mut System) -> Result<(), Error> {
    let path = system.path(BROKER)?;
    let (scan, workload) = fill(plan, bench, &path)?;
    let gigabytes = workload.megabytes(scan.records) / 1024.0;
    let cold = format!("Cold scan of {gigabytes:.1} GiB");
    // What was written last lies in the broker's memory; a run without records of the scan's takes
    // its place there.
    let window_ms = plan.durable.window_ms.min(PROBE_WINDOW_MS_MAX);
    bench.warm_up(&path, &Workload { warmup_ms: 0, window_ms, ..workload.clone() })?;
    bench.step("Cold scan: the broker sorts what was written");
    await_rest(system.admin);
    for round in 0..plan.scan_rounds {
        run_round(plan, bench, system, (&scan, &workload), (&cold, round))?;
        system.broker.check_alive()?;
    }
    let beside =
        format!("Produce at {:.0} MB/s beside a cold scan", megabytes_per_second(&plan.durable));
    let rates = beside_scans(plan, bench, system, &scan, &beside)?;
    path.control.delete_topic(&scan.topic)?;
    let rates: Vec<f64> = rates.iter().map(|records| workload.megabytes(1) * records).collect();
    bench.note(Check {
        name: format!("{beside}: rate of the scan, from before the warm-up to after the audit"),
        passed: !rates.is_empty() && rates.iter().all(|rate| *rate > 0.0),
        weight: Weight::Note,
        found: format!("{:.0} MB/s", median(&rates)),
        demanded: "a scan beside every run".into(),
    });
    Ok(())
}

/// Waits until the broker has sorted what was written. What is scanned is old data then, and
/// neither the scan nor the bare readings share the disk with that work. A broker that goes on for
/// longer is scanned as it is.
fn await_rest(admin: SocketAddr) {
    let begun = Instant::now();
    let mut changed = (None, begun);
    while changed.1.elapsed() < RESTED && begun.elapsed() < REST_WAIT_MAX {
        let page = http_get(admin, "/metrics").unwrap_or_default();
        let written = counter(&page, "moldau_segments_written_total ");
        if written != changed.0 {
            changed = (written, Instant::now());
        }
        thread::sleep(REST_POLL);
    }
}

/// Produces the records that are scanned, run after run to one topic, and audits them.
fn fill(plan: &Plan, bench: &mut Bench<'_>, path: &Path) -> Result<(Scan, Workload), Error> {
    let shape = Workload {
        pace: Pace::Unpaced,
        record_bytes: 1024,
        batch_bytes: 128 * 1024,
        linger_us: 5_000,
        consume: false,
        warmup_ms: 0,
        window_ms: plan.durable.window_ms.min(PROBE_WINDOW_MS_MAX),
        ..plan.durable.clone()
    };
    let case = "Produce what is scanned";
    bench.step(case);
    let mut setup = bench.setup(path, 0, &shape);
    path.control.create_topic(&setup.topic, shape.partitions)?;
    let (mut filling, mut produced) = (Filling::of(plan.scan_bytes), None::<Measured>);
    let begun = Instant::now();
    while let Some(bytes) = filling.next(begun.elapsed()) {
        setup.workload = Filling::workload(&shape, bytes);
        let mut run = produce(&setup)?;
        let acked = run.acked_records.saturating_mul(shape.record_bytes as u64);
        (filling.offered, filling.acked) = (filling.offered + bytes, filling.acked + acked);
        setup.first_producer += 1;
        if let Some(before) = produced {
            run.window_ns += before.window_ns;
            run.produced_records += before.produced_records;
            run.produced_batches += before.produced_batches;
            run.sent = before.sent.into_iter().chain(run.sent).collect();
        }
        produced = Some(run);
    }
    let produced = produced.ok_or_else(|| Error::Plan("nothing is scanned".into()))?;
    setup.workload = Workload { producers: setup.first_producer, ..shape.clone() };
    setup.first_producer = 0;
    let topic = setup.topic.clone();
    bench.read_back(Named { case, path, pair: 0 }, setup, produced)?;
    let scan = Scan {
        bootstrap: path.bootstrap.clone(),
        partitions: shape.partitions,
        records: path.control.records_held(&topic, shape.partitions)?,
        topic,
        processes: path.processes.clone(),
    };
    Ok((scan, shape))
}

/// How far a topic is filled, in bytes of record values.
struct Filling {
    wanted: u64,
    offered: u64,
    acked: u64,
}

impl Filling {
    fn of(wanted: u64) -> Self {
        Self { wanted, offered: 0, acked: 0 }
    }

    /// Bytes of the next run. `None` once there is enough, and where the broker takes more bytes or
    /// more time than the plan allows: what is there is scanned then.
    fn next(&self, elapsed: Duration) -> Option<u64> {
        let allowed = self.wanted.saturating_mul(FILL_OFFERED_MAX).saturating_sub(self.offered);
        let left = self.wanted.saturating_sub(self.acked).min(allowed);
        let limit = FILL_TIME_MIN + Duration::from_secs(self.wanted / FILL_BYTES_PER_SECOND_MIN);
        let run = FILL_BYTES_PER_SECOND.max(self.wanted / FILL_RUNS);
        (left > 0 && elapsed < limit).then(|| left.min(run))
    }

    /// The load of a run that offers so many bytes and no more, however fast the broker is.
    fn workload(shape: &Workload, bytes: u64) -> Workload {
        let window_ms = (bytes * 1_000).div_ceil(FILL_BYTES_PER_SECOND).max(FILL_WINDOW_MS_MIN);
        let records = bytes.div_ceil(shape.record_bytes.max(1) as u64);
        let per_second = (records * 1_000).div_ceil(window_ms);
        let pace = Pace::Scheduled { per_second, arrivals: Arrivals::Constant };
        Workload { pace, window_ms, ..shape.clone() }
    }
}

/// The broker and both bare readings once, forwards in even rounds and backwards in odd ones.
fn run_round(
    plan: &Plan,
    bench: &mut Bench<'_>,
    system: &System,
    (target, workload): (&Scan, &Workload),
    (case, round): (&str, u32),
) -> Result<(), Error> {
    let mut arms = [DISK_16, BROKER, DISK_2];
    if !round.is_multiple_of(2) {
        arms.reverse();
    }
    for arm in arms {
        bench.step(&format!("{case}: {arm}, {}", round + 1));
        bench.rest(workload.window())?;
        let depth = match arm {
            DISK_16 => 16,
            DISK_2 => 2,
            _ => {
                drop_page_cache(&system.data)?;
                let scanned = scan(target, &AtomicBool::new(false))?;
                let at_ms = bench.at_ms(scanned.start);
                bench.add(scan_record(scanned, workload, (case, round), at_ms));
                continue;
            }
        };
        let started = Instant::now();
        let outcome = bare_disk::measure(&plan.moldau, &plan.bare(Work::Read { depth }))?;
        let at_ms = bench.at_ms(started);
        let reading = Workload { pace: Pace::ReadBack, ..workload.clone() };
        let mut run = record(outcome, reading, (case, arm, round), at_ms);
        // Counted in records of the broker's size, so that all arms have one unit.
        run.consumed_records *= (STEP_BYTES / workload.record_bytes.max(1)) as u64;
        bench.add(run);
    }
    Ok(())
}

fn scan_record(
    scanned: Scanned,
    workload: &Workload,
    (case, round): (&str, u32),
    at_ms: u64,
) -> RunRecord {
    let workload = Workload { pace: Pace::ReadBack, ..workload.clone() };
    // The records were audited when they were produced.
    RunRecord {
        pair: round,
        window_start_ms: at_ms,
        window_ns: scanned.elapsed_ns,
        consumed_records: scanned.records,
        slot_ms: slot_ms(&workload),
        processes: scanned.processes,
        host: scanned.host,
        ..RunRecord::bare(case, BROKER, workload)
    }
}

/// Pairs of produce without and with a scan; gives the records per second of each scan.
fn beside_scans(
    plan: &Plan,
    bench: &mut Bench<'_>,
    system: &mut System,
    scan: &Scan,
    case: &str,
) -> Result<Vec<f64>, Error> {
    let paths = [system.path(BROKER)?, system.path(SCANNED)?];
    let mut rates = Vec::new();
    rounds::each(bench, case, plan.scanned_pairs, 2, |bench, pair| {
        for path in in_order([&paths[0], &paths[1]], pair) {
            let produce = |bench: &mut Bench<'_>| {
                let (setup, _) = bench.produce_and_audit(path, case, pair, &plan.durable)?;
                path.control.delete_topic(&setup.topic)
            };
            if path.arm == SCANNED {
                bench.rest(plan.durable.window())?;
                drop_page_cache(&system.data)?;
                rates.push(while_scanning(scan, || produce(bench))?);
            } else {
                produce(bench)?;
            }
            system.broker.check_alive()?;
        }
        Ok(())
    })?;
    Ok(rates)
}

/// Does `work` while a scan begins again and again; gives its records per second.
fn while_scanning(target: &Scan, work: impl FnOnce() -> Result<(), Error>) -> Result<f64, Error> {
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let scanning = scope.spawn(|| {
            let (mut records, mut nanos) = (0, 0);
            while !stop.load(Ordering::Relaxed) {
                let scanned = scan(target, &stop)?;
                records += scanned.records;
                nanos += scanned.elapsed_ns;
            }
            Ok(float(records) / (float(nanos.max(1)) / 1e9))
        });
        let worked = work();
        stop.store(true, Ordering::Relaxed);
        let rate = scanning.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        worked.and(rate)
    })
}

/// Gives up what the kernel holds of the broker's files, so that a reading comes from the disk
/// whichever way the broker reads.
fn drop_page_cache(directory: &FsPath) -> Result<(), Error> {
    let action = || format!("dropping the page cache of {}", directory.display());
    for entry in std::fs::read_dir(directory).map_err(Error::machine(action()))? {
        let path = entry.map_err(Error::machine(action()))?.path();
        if path.is_dir() {
            drop_page_cache(&path)?;
            continue;
        }
        let file = match std::fs::File::open(&path) {
            Ok(file) => file,
            // The broker gives files back whenever it likes.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            Err(error) => return Err(Error::machine(action())(error)),
        };
        rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed)
            .map_err(|errno| Error::machine(action())(errno.into()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A run that saw nothing of a broker on a busy machine once made the next one a quarter of an
    /// hour long, at full speed, until the disk was full.
    #[test]
    fn a_filling_offers_no_more_than_the_plan_scans_twice_however_slow_it_begins() {
        let wanted = 4 << 20;
        let filled = |acked: &dyn Fn(u64) -> u64, run: Duration| {
            let (mut filling, mut elapsed) = (Filling::of(wanted), Duration::ZERO);
            while let Some(bytes) = filling.next(elapsed) {
                filling.offered += bytes;
                filling.acked += acked(bytes);
                elapsed += run;
            }
            (filling.offered, filling.acked)
        };
        let second = Duration::from_secs(1);
        assert_eq!(filled(&|bytes| bytes, second), (wanted, wanted));
        assert_eq!(filled(&|_| 0, second), (2 * wanted, 0));
        let (offered, acked) = filled(&|_| 1_024, second);
        assert!(offered <= 2 * wanted && acked > 0, "{offered} {acked}");
        assert_eq!(filled(&|_| 0, Duration::from_mins(1)), (wanted, 0), "time is up");
    }

    #[test]
    fn a_run_of_a_filling_offers_the_bytes_that_are_left() {
        let shape =
            Workload { record_bytes: 1_024, ..crate::sample::result().runs[0].workload.clone() };
        for bytes in [1, 1_024, 4 << 20, 128 << 20, 4 << 30] {
            let load = Filling::workload(&shape, bytes);
            let Pace::Scheduled { per_second, .. } = load.pace else { panic!("{load:?}") };
            let offered = per_second * load.window_ms / 1_000 * 1_024;
            assert!(offered + 1_024 >= bytes, "{offered} of {bytes}");
            assert!(offered <= bytes + bytes / 16 + 64 * 1_024, "{offered} of {bytes}");
        }
    }

    #[test]
    fn the_page_cache_of_nested_files_is_dropped_and_their_bytes_stay() {
        let directory = tempfile::tempdir().unwrap();
        let nested = directory.path().join("a");
        std::fs::create_dir(&nested).unwrap();
        std::fs::write(nested.join("b"), b"kept").unwrap();
        drop_page_cache(directory.path()).unwrap();
        assert_eq!(std::fs::read(nested.join("b")).unwrap(), b"kept");
        assert!(drop_page_cache(&directory.path().join("absent")).is_err());
    }
}
