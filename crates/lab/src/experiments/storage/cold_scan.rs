//! Reading old records: against a bare sequential reading, and beside producers.

use std::net::SocketAddr;
use std::path::Path as FsPath;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::durable::{counter, megabytes_per_second, record};
use super::{BROKER, PROBE_WINDOW_MS_MAX, Plan, System, in_order};
use crate::checks::{Check, Weight};
use crate::experiments::bench::{Bench, Path};
use crate::metric::Metric;
use crate::objective::{Bound, Objective};
use crate::systems::http_get;
use moldau_load::bare_disk::{self, STEP_BYTES, Work};
use moldau_load::generator::{Scan, Scanned, scan, slot_ms};
use moldau_load::ledger::Audit;
use moldau_load::run::{Requests, RunRecord};
use moldau_load::workload::{Pace, Workload};
use moldau_measure::Error;
use moldau_measure::numbers::whole;
use moldau_measure::statistics::{float, median};

/// The bare readings.
pub(super) const DISK_16: &str = "disk, 16 reads";
pub(super) const DISK_2: &str = "disk, 2 reads";

/// The broker with a scan beside its producers.
pub(super) const SCANNED: &str = "broker, scanned";

/// Smallest ratio of the scan's rate to the disk's.
const RATE_RATIO_MIN: f64 = 0.8;

/// Largest ratio of the produce p99 with a scan to that without.
const P99_RATIO_MAX: f64 = 2.0;

/// Room for what a calibration cannot know: the fill takes a little longer than it says.
const FILL_MARGIN: f64 = 1.1;

/// A broker that has written no segment for this long has no more to sort.
const RESTED: Duration = Duration::from_secs(4);
const REST_WAIT_MAX: Duration = Duration::from_mins(2);
const REST_POLL: Duration = Duration::from_millis(200);

/// Attempts to produce as much as is asked for; the last one is scanned whatever it has.
const FILLS_MAX: u32 = 3;

pub(super) fn run(
    plan: &Plan,
    bench: &mut Bench<'_>,
    system: &mut System,
) -> Result<Vec<Objective>, Error> {
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
    let objective = |name: &str, case: &str, arm: &str, metric, bound| Objective {
        name: format!("{case}: {name}"),
        case: case.into(),
        metric,
        arm: arm.into(),
        bound,
    };
    let at_least =
        |baseline: &str| Bound::RatioAtLeast { baseline: baseline.into(), ratio: RATE_RATIO_MIN };
    let at_most = Bound::RatioAtMost { baseline: BROKER.into(), ratio: P99_RATIO_MAX };
    let rates: Vec<f64> = rates.iter().map(|records| workload.megabytes(1) * records).collect();
    bench.note(Check {
        name: format!("{beside}: rate of the scan, from before the warm-up to after the audit"),
        passed: !rates.is_empty() && rates.iter().all(|rate| *rate > 0.0),
        weight: Weight::Note,
        found: format!("{:.0} MB/s", median(&rates)),
        demanded: "a scan beside every run".into(),
    });
    Ok(vec![
        objective("rate", &cold, BROKER, Metric::ConsumeThroughput, at_least(DISK_16)),
        objective("rate", &cold, BROKER, Metric::ConsumeThroughput, at_least(DISK_2)),
        objective("p99", &beside, SCANNED, Metric::ResponseP99, at_most),
    ])
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

/// Produces the records that are scanned, and audits them.
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
    let bytes_of = |records: u64| float(records.max(1)) * float(shape.record_bytes as u64);
    let measured = bench.probe(path, &shape)?;
    let mut workload = shape.clone();
    let mut bytes = bytes_of(measured.produced_records);
    let mut attempt = 0;
    let (topic, records) = loop {
        let windows = float(plan.scan_bytes) / bytes * FILL_MARGIN;
        workload.window_ms = whole((windows * float(workload.window_ms)).ceil());
        let case = "Produce what is scanned, at full speed";
        let (setup, records) = bench.produce_and_audit(path, case, attempt, &workload)?;
        bytes = bytes_of(records);
        attempt += 1;
        if bytes >= float(plan.scan_bytes) || attempt == FILLS_MAX {
            break (setup.topic, records);
        }
        path.control.delete_topic(&setup.topic)?;
    };
    let scan = Scan {
        bootstrap: path.bootstrap.clone(),
        topic,
        partitions: workload.partitions,
        records,
        processes: path.processes.clone(),
    };
    Ok((scan, workload))
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
        bench.rest()?;
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
        // Told in records of the broker's size, so that the arms have one unit.
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
    RunRecord {
        case: case.into(),
        arm: BROKER.into(),
        pair: round,
        window_start_ms: at_ms,
        window_ns: scanned.elapsed_ns,
        offered: 0,
        shed: 0,
        produced_records: 0,
        produced_batches: 0,
        answered: 0,
        consumed_records: scanned.records,
        stored_bytes: 0,
        latency: None,
        slot_ms: slot_ms(&workload),
        series: Vec::new(),
        longest_silence_ns: 0,
        processes: scanned.processes,
        host: scanned.host,
        // The records were audited when they were produced.
        held_records: 0,
        requests: Requests::default(),
        transactions: None,
        skew: None,
        evidence: None,
        workers: Vec::new(),
        audit: Audit::default(),
        workload,
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
    for pair in 0..plan.scanned_pairs {
        loop {
            for path in in_order([&paths[0], &paths[1]], pair) {
                let produce = |bench: &mut Bench<'_>| {
                    let (setup, _) = bench.produce_and_audit(path, case, pair, &plan.durable)?;
                    path.control.delete_topic(&setup.topic)
                };
                if path.arm == SCANNED {
                    bench.rest()?;
                    drop_page_cache(&system.data)?;
                    rates.push(while_scanning(scan, || produce(bench))?);
                } else {
                    produce(bench)?;
                }
                system.broker.check_alive()?;
            }
            if !bench.must_repeat(case, pair) {
                break;
            }
        }
    }
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
