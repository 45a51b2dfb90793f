//! Throughput, latency, memory and descriptors over the number of partitions of one topic.

use std::thread;
use std::time::{Duration, Instant};

use super::operator::{Trouble, nanos};
use super::subject::Subject;
use super::{CurvePlan, OfFailure, Plan, announce, make_topic, on_a_system, spread};
use crate::experiments::bench::{Bench, Named};
use crate::experiments::side_by_side::System;
use crate::partitions::{
    Batching, CurvePoint, Filling, How, IdleCpu, PartitionsRecord, fixed_rate_case, full_speed_case,
};
use crate::punctuality::lag_is_late;
use moldau_load::generator::{self, Measured, Setup};
use moldau_load::ledger::{Audit, SentLedger, audit};
use moldau_load::workload::{Pace, Workload};
use moldau_measure::Error;
use moldau_measure::cpu::CpuMeter;

/// Runs at the fixed rate of one point at most: another is made when the generator was late.
const FIXED_RATE_RUNS_MAX: u16 = 2;

pub(super) fn run(
    plan: &Plan,
    curve: &CurvePlan,
    bench: &mut Bench<'_>,
    record: &mut PartitionsRecord,
) -> Result<(), Error> {
    for partitions in &curve.partitions {
        for system in &plan.systems {
            let what = format!("Curve: {}, {partitions} partitions", system.name());
            announce(bench, &what, curve.seconds());
            let has_failed = |point: &CurvePoint| point.arm == system.name() && is_the_end(point);
            if record.curve.iter().any(has_failed) {
                continue;
            }
            let measure = |bench: &mut Bench<'_>, subject: &mut Subject| {
                let mut point = point_of(system, *partitions);
                if let Err(trouble) = measure(plan, curve, bench, subject, &mut point) {
                    point.failure = Some(subject.failure(during(&point), &trouble));
                }
                Ok(point)
            };
            let failure: OfFailure<CurvePoint> = |point| point.failure.as_ref();
            let point = on_a_system(system, plan, bench, record, &what, failure, measure)?;
            record.curve.push(point);
        }
    }
    Ok(())
}

fn point_of(system: &System, partitions: u32) -> CurvePoint {
    let (written, _) = spread(partitions);
    CurvePoint { arm: system.name().to_string(), partitions, written, ..CurvePoint::default() }
}

/// Whether larger points of the same system are pointless. A system that took its load and only
/// serves it too slowly goes on.
fn is_the_end(point: &CurvePoint) -> bool {
    point.failure.as_ref().is_some_and(|failure| {
        point.fixed_rate.is_none() || matches!(failure.how, How::Ended { .. })
    })
}

/// What a point that failed was about to do.
fn during(point: &CurvePoint) -> &'static str {
    match point {
        CurvePoint { creation: None, .. } => "creating the topic",
        CurvePoint { first_write_ns: None, .. } => "writing to every partition once",
        CurvePoint { full_speed: None, .. } => "producing at full speed",
        CurvePoint { fixed_rate: None, .. } => "producing at the fixed rate",
        _ => "reading everything back",
    }
}

fn measure(
    plan: &Plan,
    curve: &CurvePlan,
    bench: &mut Bench<'_>,
    subject: &mut Subject,
    point: &mut CurvePoint,
) -> Result<(), Trouble> {
    let topic = subject.topic("large");
    let creation = make_topic(subject, &topic, point.partitions, curve.grows_when_refused)?;
    point.creation = Some(creation);
    point.fresh = subject.look();
    let mut sent = Vec::new();

    let workload = plan.first_writes(curve, point.written);
    let setup = setup(bench, subject, &topic, point.partitions, &workload);
    let measured = generator::produce(&setup)?;
    point.first_write_ns = Some(measured.latencies.response.quantile_ns(1.0));
    sent.extend(measured.sent);

    let workload = plan.full_speed(curve, point.written);
    let setup = Setup { workload: workload.clone(), first_producer: 1, ..setup };
    let setup = fill(curve, subject, setup, point, &mut sent)?;
    let measured = generator::produce(&setup)?;
    point.full_speed = Some(batching(&measured, &workload));
    let case = full_speed_case(point.partitions);
    let named = Named { case: &case, path: &subject.path, pair: 0 };
    bench.record(named, &workload, &measured, Audit::default(), 0)?;
    sent.extend(measured.sent);

    let (workload, measured) = fixed_rate(plan, curve, subject, &setup, point, &mut sent)?;
    point.loaded = subject.look();
    watch_idle(curve, subject, point)?;
    point.disk_bytes = subject.disk_bytes();
    let audited = read_back(subject, &setup, &sent, plan.read_limit);
    let (audit, held) = *audited.as_ref().unwrap_or(&(Audit::default(), 0));
    let case = fixed_rate_case(point.partitions);
    let named = Named { case: &case, path: &subject.path, pair: 0 };
    bench.record(named, &workload, &measured, audit, held)?;
    audited.map(|_| ())
}

/// Produces at full speed until every partition has its share or time is up; gives back the setup
/// for the next run. A new partition costs a system more than one that it has written to: at 1,000
/// of them Apache Kafka takes half a minute for the first 100 KB of each.
fn fill(
    curve: &CurvePlan,
    subject: &mut Subject,
    mut setup: Setup,
    point: &mut CurvePoint,
    sent: &mut Vec<SentLedger>,
) -> Result<Setup, Trouble> {
    let wanted = curve.filling_bytes * u64::from(point.written);
    let begun = Instant::now();
    let mut bytes = 0;
    while bytes < wanted && begun.elapsed() < FILLING_TIME_MAX {
        let workload =
            Workload { warmup_ms: 0, window_ms: FILLING_RUN_MS, ..setup.workload.clone() };
        let measured = generator::produce(&Setup { workload, ..setup.clone() })?;
        bytes += batching(&measured, &setup.workload).bytes;
        point.filling = Some(Filling { bytes, took_ns: nanos(begun.elapsed()) });
        sent.extend(measured.sent);
        setup.first_producer += 1;
        subject.operate(|_, alive| Ok(alive()?))?;
    }
    Ok(setup)
}

/// A system that takes longer for them is measured as it is then.
const FILLING_TIME_MAX: Duration = Duration::from_mins(1);

/// Length of one run of the filling.
const FILLING_RUN_MS: u64 = 1_000;

/// Produces at the fixed rate, again while the generator itself was late.
fn fixed_rate(
    plan: &Plan,
    curve: &CurvePlan,
    subject: &mut Subject,
    full_speed: &Setup,
    point: &mut CurvePoint,
    sent: &mut Vec<SentLedger>,
) -> Result<(Workload, Measured), Trouble> {
    let workload = plan.fixed_rate(curve, point.written);
    let mut run = 1;
    loop {
        let first_producer = full_speed.first_producer + run;
        let setup = Setup { workload: workload.clone(), first_producer, ..full_speed.clone() };
        let mut measured = generator::produce(&setup)?;
        sent.append(&mut measured.sent);
        point.is_late = lag_is_late(&measured.latencies);
        point.is_unsustained = measured.shed > 0 || measured.answered * 100 < measured.offered * 99;
        point.fixed_rate = Some(batching(&measured, &workload));
        if !point.is_late || run == FIXED_RATE_RUNS_MAX {
            return Ok((workload, measured));
        }
        run += 1;
        subject.operate(|_, alive| Ok(alive()?))?;
    }
}

/// A run over the partitions of a topic that are written to.
pub(super) fn setup(
    bench: &mut Bench<'_>,
    subject: &Subject,
    topic: &str,
    partitions: u32,
    workload: &Workload,
) -> Setup {
    let setup = bench.setup(&subject.path, 0, workload);
    let (_, layout) = spread(partitions);
    Setup { topic: topic.into(), layout, ..setup }
}

/// Reads back what all runs of a topic wrote; their audit, and the system's own count.
pub(super) fn read_back(
    subject: &mut Subject,
    setup: &Setup,
    sent: &[SentLedger],
    limit: Duration,
) -> Result<(Audit, u64), Trouble> {
    subject.operate(|_, alive| Ok(alive()?))?;
    let producers = u16::try_from(sent.len()).unwrap_or(u16::MAX);
    let workload =
        Workload { pace: Pace::ReadBack, warmup_ms: 0, producers, ..setup.workload.clone() };
    let lanes = 0..workload.partitions;
    let setup = Setup {
        workload,
        first_producer: 0,
        processes: subject.path.processes.clone(),
        ..setup.clone()
    };
    let partitions = lanes.map(|lane| setup.layout.partition(lane));
    let held = subject.operator.records_held(&setup.topic, partitions)?;
    let bytes = held.saturating_mul(setup.workload.record_bytes as u64);
    let limit = limit + Duration::from_secs(bytes / READ_BACK_BYTES_PER_SECOND);
    let read = generator::read_back_offsets(&setup, held, limit)?;
    let delivered = read.delivered.as_ref().expect("a reading delivers");
    let audit = audit(sent, delivered);
    // Less than the system says to hold, and nothing that would be a fault: it has not served all
    // in time, which loses nothing that is known.
    let is_whole = audit.delivered >= held || audit.faults() > audit.lost;
    if !is_whole {
        let last = format!("{} of {held} records were served", audit.delivered);
        return Err(Trouble::Slow { seconds: limit.as_secs(), last });
    }
    Ok((audit, held))
}

/// Systems that take a lot have more to give back.
const READ_BACK_BYTES_PER_SECOND: u64 = 100_000_000;

fn batching(measured: &Measured, workload: &Workload) -> Batching {
    let bytes = u64::try_from(workload.record_bytes).unwrap_or(u64::MAX);
    Batching {
        records: measured.acked_records,
        batches: measured.acked_batches,
        requests: measured.requests,
        bytes: measured.acked_records.saturating_mul(bytes),
    }
}

/// Measures the broker once it is idle. Work after the load, such as sorting records, does not
/// count as idle.
fn watch_idle(
    curve: &CurvePlan,
    subject: &mut Subject,
    point: &mut CurvePoint,
) -> Result<(), Trouble> {
    if !subject.is_ours() {
        return Ok(());
    }
    let window = Duration::from_millis(curve.idle_ms);
    let begun = Instant::now();
    loop {
        let after_ns = nanos(begun.elapsed());
        let meter = CpuMeter::start(&subject.path.processes)?;
        thread::sleep(window);
        let (usage, _) = meter.stop()?;
        let cpu_ns: u64 = usage.iter().map(|usage| usage.cpu_ns).sum();
        let window_ns = nanos(window);
        let is_at_rest = cpu_ns * REST_SHARE <= window_ns;
        if is_at_rest || begun.elapsed() > REST_WAIT_MAX {
            point.idle_cpu = Some(IdleCpu { cpu_ns, window_ns, after_ns });
            point.idle = subject.look();
            return Ok(());
        }
    }
}

/// A broker is at rest when it uses at most one part in this many of a processor.
const REST_SHARE: u64 = 20;

/// A broker that never rests is looked at after this long.
const REST_WAIT_MAX: Duration = Duration::from_secs(60);
