//! Kills a system with SIGKILL while it holds data, and starts it again.

use std::time::{Duration, Instant};

use super::curve::{read_back, setup};
use super::operator::{Trouble, nanos};
use super::subject::Subject;
use super::{OfFailure, Plan, RestartPlan, announce, make_topic, omit, on_a_system, spread};
use crate::experiments::bench::{Bench, Named};
use crate::partitions::{Part, PartitionsRecord, Restart};
use moldau_load::generator;
use moldau_load::payload::Filler;
use moldau_load::workload::{Pace, Tuning, Workload};
use moldau_measure::Error;

/// Length of one run of the writing, ms; runs follow until the bytes are there.
const RUN_MS: u64 = 2_500;

/// Runs of the writing at most. A system that takes less than some 45 MB/s at full speed holds
/// less than what was intended, and the record says how much.
const RUNS_MAX: u16 = 96;

/// What the data of one system may occupy on the disk; the record says how much was written.
const DISK_BYTES_MAX: u64 = 25 << 30;

pub(super) fn run(
    plan: &Plan,
    restart: &RestartPlan,
    bench: &mut Bench<'_>,
    record: &mut PartitionsRecord,
) -> Result<(), Error> {
    for system in &plan.systems {
        let mut has_failed = false;
        for (partitions, bytes) in &restart.points {
            let what = format!("Restart: {}, {partitions} partitions", system.name());
            announce(bench, &what, RestartPlan::seconds((*partitions, *bytes)));
            if has_failed {
                continue;
            }
            let failure: OfFailure<Option<Restart>> = |point| point.as_ref()?.failure.as_ref();
            let measure = |bench: &mut Bench<'_>, subject: &mut Subject| {
                if !subject.is_ours() {
                    return Ok(None);
                }
                let mut point = Restart {
                    arm: system.name().to_string(),
                    partitions: *partitions,
                    written: spread(*partitions).0,
                    ..Restart::default()
                };
                if let Err(trouble) = measure(restart, *bytes, bench, subject, &mut point) {
                    point.failure = Some(subject.failure(during(&point), &trouble));
                }
                Ok(Some(point))
            };
            let found = on_a_system(system, plan, bench, record, &what, failure, measure)?;
            let Some(point) = found else {
                omit(record, system.name(), Part::Restart, "the cluster is not the laboratory's");
                break;
            };
            has_failed = point.failure.is_some();
            record.restarts.push(point);
        }
    }
    Ok(())
}

fn during(point: &Restart) -> &'static str {
    match point {
        Restart { before: None, .. } => "writing the data",
        Restart { port_ns: None, .. } => "starting again",
        Restart { produced_ns: None, .. } => "producing after the start",
        _ => "reading the data after the start",
    }
}

fn measure(
    plan: &RestartPlan,
    bytes: u64,
    bench: &mut Bench<'_>,
    subject: &mut Subject,
    point: &mut Restart,
) -> Result<(), Trouble> {
    let topic = subject.topic("large");
    make_topic(subject, &topic, point.partitions, false)?;
    // The topic of one partition whose first record after the start is waited for.
    let probe = subject.topic("probe");
    subject.operate(|operator, alive| operator.create(&probe, 1, alive))?;
    let workload = Workload {
        pace: Pace::Unpaced,
        record_bytes: 4 * 1024,
        filler: Filler::Text,
        partitions: point.written,
        producers: 1,
        batch_bytes: 64 * 1024,
        linger_us: 1_000_000,
        consume: false,
        tails: 0,
        warmup_ms: 0,
        window_ms: RUN_MS,
        tuning: Tuning::default(),
    };
    let mut setup = setup(bench, subject, &topic, point.partitions, &workload);
    let mut sent = Vec::new();
    let mut last = None;
    while point.bytes < bytes && setup.first_producer < RUNS_MAX {
        let left = bytes - point.bytes;
        setup.workload.window_ms = run_ms(point.bytes, setup.first_producer, left);
        let mut measured = generator::produce(&setup)?;
        point.bytes += measured.acked_records * 4 * 1024;
        sent.append(&mut measured.sent);
        last = Some((setup.workload.clone(), measured));
        setup.first_producer += 1;
        if subject.disk_bytes().is_some_and(|bytes| bytes > DISK_BYTES_MAX) {
            break;
        }
    }
    point.before = subject.look();

    let (started, port) = subject.kill_and_launch(plan.limit)?;
    point.port_ns = Some(nanos(port));
    point.produced_ns = Some(nanos(first_produce(subject, &probe, started)?));
    point.after = subject.look();
    let (audit, held) = read_back(subject, &setup, &sent, plan.limit)?;
    point.audit = Some(audit);
    if let Some((workload, measured)) = last {
        let case = format!("Data of {} partitions, killed and started", point.partitions);
        let named = Named { case: &case, path: &subject.path, pair: 0 };
        bench.record(named, &workload, &measured, audit, held)?;
    }
    // The record is none of the ledger's, so it comes after the reading.
    point.produced_large_ns = Some(nanos(first_produce(subject, &topic, Instant::now())?));
    Ok(())
}

fn first_produce(subject: &mut Subject, topic: &str, since: Instant) -> Result<Duration, Trouble> {
    subject.operate(|operator, alive| operator.first_produce(topic, since, alive))
}

/// Length of the next run, ms, so that the last one does not write far more than is `left`.
fn run_ms(written: u64, runs: u16, left: u64) -> u64 {
    /// What a system is taken to write per second before it has shown it.
    const BYTES_PER_SECOND: u64 = 400 << 20;
    let ms = if runs == 0 {
        left.saturating_mul(1_000) / BYTES_PER_SECOND
    } else {
        // A system that wrote nothing at all gets a whole run.
        left.saturating_mul(RUN_MS) / (written / u64::from(runs)).max(1)
    };
    // A run of a few records would be all warming up.
    ms.clamp(100, RUN_MS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_run_writes_about_the_remaining_records() {
        assert_eq!(run_ms(0, 0, 1 << 30), RUN_MS);
        assert_eq!(run_ms(0, 0, 1), 100);
        assert_eq!(run_ms(0, 1, 1), RUN_MS);
        assert_eq!(run_ms(400 << 20, 1, 1 << 30), RUN_MS);
        assert_eq!(run_ms(800 << 20, 2, 80 << 20), RUN_MS / 5);
        assert_eq!(run_ms(800 << 20, 2, 1), 100);
    }
}
