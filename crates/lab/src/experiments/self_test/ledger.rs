//! A relay damages one record in a million on its way to the consumer, and the ledger must find
//! each and name it. What the ledger costs is told by runs with and without it, in turn.

use std::time::Duration;

use super::target::{self, Target};
use super::{Findings, Plan, shape};
use crate::experiments::bench::Bench;
use crate::result::Arm;
use crate::self_test::{Cell, Table};
use moldau_load::faulty_relay::{FaultyRelay, Injected};
use moldau_load::generator::{self, Clients, Measured, Setup, produce};
use moldau_load::ledger::{Audit, Fault, SentLedger, audit, self_test};
use moldau_load::workload::{Pace, Workload};
use moldau_measure::Error;
use moldau_measure::statistics::{PairedEffect, float, log_ratios, median, paired_effect};

/// Records between two faults on average, and how often the topic is read with as many.
const READINGS: [(u64, u32); 2] = [(1_000_000, 12), (100_000, 4)];
const READINGS_QUICK: [(u64, u32); 2] = [(1_000_000, 3), (100_000, 2)];

/// Faults of a stream within the process, and the seeds it is repeated with.
const STREAM_FAULTS: u64 = 10_000;
const STREAM_SEEDS: u64 = 20;

/// Warm-up and window of a run at full speed: long beside the moments in which a disk is slow.
const RUN_MS: (u64, u64) = (1_000, 5_000);

/// Share of its throughput that the ledger may cost a run.
const COST_MAX: f64 = 0.05;

pub(super) fn steps(plan: &Plan) -> u32 {
    let readings: u32 = readings(plan).iter().map(|(_, count)| count).sum();
    2 + readings + 6 * pairs(plan)
}

pub(super) fn arms(_plan: &Plan) -> Vec<Arm> {
    target::arms()
}

fn readings(plan: &Plan) -> &'static [(u64, u32)] {
    if plan.conditions.quick { &READINGS_QUICK } else { &READINGS }
}

fn pairs(plan: &Plan) -> u32 {
    if plan.conditions.quick { 4 } else { 12 }
}

pub(super) fn run(
    plan: &Plan,
    bench: &mut Bench<'_>,
    findings: &mut Findings,
) -> Result<(), Error> {
    streams(plan, bench, findings)?;
    let broker = Target::broker(plan)?;
    let topic = Topic::fill(plan, bench, &broker)?;
    through_the_relay(plan, bench, &topic, findings)?;
    cost(plan, bench, &topic, findings)?;
    broker.path.control.delete_topic(&topic.setup.topic)
}

/// Streams within the process, as densely damaged as they can be without one fault hiding another.
fn streams(plan: &Plan, bench: &mut Bench<'_>, findings: &mut Findings) -> Result<(), Error> {
    bench.step("Streams within the process");
    let seeds = plan.conditions.seed..plan.conditions.seed + STREAM_SEEDS;
    let found = seeds.map(|seed| self_test(seed, STREAM_FAULTS)).collect::<Result<Vec<_>, _>>()?;
    let complete = found.iter().filter(|detection| detection.is_complete()).count();
    findings.promise(
        format!("streams of {STREAM_FAULTS} faults, every one found and named"),
        complete == found.len(),
        format!("{complete} of {} seeds", found.len()),
        "all",
    );
    Ok(())
}

/// A topic that is read again and again.
struct Topic {
    setup: Setup,
    sent: Vec<SentLedger>,
    /// Offsets of all its partitions.
    offsets: u64,
}

impl Topic {
    fn fill(plan: &Plan, bench: &mut Bench<'_>, broker: &Target) -> Result<Self, Error> {
        bench.step("Fill a topic");
        let window_ms = if plan.conditions.quick { 2_000 } else { 8_000 };
        let workload = Workload { window_ms, ..shape(100, 128 * 1024) };
        let mut setup = bench.setup(&broker.path, 0, &workload);
        broker.path.control.create_topic(&setup.topic, workload.partitions)?;
        let sent = produce(&setup)?.sent;
        let offsets = broker.path.control.records_held(&setup.topic, workload.partitions)?;
        setup.workload = Workload { pace: Pace::ReadBack, warmup_ms: 0, ..workload };
        Ok(Self { setup, sent, offsets })
    }
}

fn through_the_relay(
    plan: &Plan,
    bench: &mut Bench<'_>,
    topic: &Topic,
    findings: &mut Findings,
) -> Result<(), Error> {
    let upstream = topic.setup.bootstrap.parse().map_err(|_| {
        Error::Plan(format!("{} is no address of this machine", topic.setup.bootstrap))
    })?;
    let mut rows = Vec::new();
    let mut seed = plan.conditions.seed;
    for (distance, count) in readings(plan) {
        let (mut sum, mut found_all, mut found) = (Injected::default(), 0, Audit::default());
        for _ in 0..*count {
            bench.step(&format!("One fault in {distance} records, seed {seed}"));
            let relay = FaultyRelay::start(upstream, seed, *distance)?;
            seed += 1;
            let bootstrap = relay.address().to_string();
            let clients = Clients { bootstrap_only: true, ..Clients::default() };
            let setup = Setup { bootstrap, clients, ..topic.setup.clone() };
            let read = generator::read_back_offsets(&setup, topic.offsets, Duration::MAX)?;
            let delivered = read.delivered.as_ref().expect("a reading delivers");
            let audited = audit(&topic.sent, delivered);
            let injected = relay.injected();
            found_all += u32::from(faults_of(audited) == injected.expected);
            found = found.plus(faults_of(audited));
            sum.add(injected);
        }
        let faults: u64 = sum.counts.iter().sum();
        findings.promise(
            format!("one record in {distance} damaged by a relay: readings with every fault named"),
            found_all == *count && faults > 0 && found == sum.expected,
            format!("{found_all} of {count}, {faults} faults in {} records", sum.records),
            "all",
        );
        rows.extend(Fault::ALL.iter().zip(sum.counts).map(|(fault, count)| {
            let (symptom, expected, found) = symptom(*fault, &sum.expected, &found);
            vec![
                Cell::from(format!("1 in {distance}")),
                Cell::from(format!("{fault:?}")),
                Cell::from(float(count)),
                Cell::from(symptom),
                Cell::from(float(expected)),
                Cell::from(float(found)),
            ]
        }));
    }
    findings.record.tables.push(Table {
        title: "Faults that a relay made between broker and consumer".into(),
        about:
            "The relay re-encodes batches with right checksums. Losses, flips and misroutes all \
                show as lost records as well; a swap puts two records in wrong places."
                .into(),
        columns: ["density", "fault", "made", "named as", "expected", "found"]
            .map(String::from)
            .to_vec(),
        rows,
    });
    Ok(())
}

/// What stands in the audit for each kind of fault.
fn symptom(fault: Fault, expected: &Audit, found: &Audit) -> (&'static str, u64, u64) {
    let of = |figure: fn(&Audit) -> u64| (figure(expected), figure(found));
    let (name, (expected, found)) = match fault {
        Fault::Loss => ("offset gaps", of(|audit| audit.offset_gaps)),
        Fault::Duplicate => ("duplicated", of(|audit| audit.duplicated)),
        Fault::Swap => ("reordered", of(|audit| audit.reordered)),
        Fault::BitFlip => ("damaged", of(|audit| audit.damaged)),
        Fault::Misroute => ("misrouted", of(|audit| audit.misrouted)),
    };
    (name, expected, found)
}

/// An audit without what is no fault.
fn faults_of(audit: Audit) -> Audit {
    Audit { sent: 0, acked: 0, failed: 0, unknown: 0, delivered: 0, ..audit }
}

/// Pairs of a figure without the ledger and with it.
type Pairs = Vec<(f64, f64)>;

/// Runs with the ledger and without: producing and reading at once as fast as the broker lets, and
/// each alone as fast as the generator can.
fn cost(
    plan: &Plan,
    bench: &mut Bench<'_>,
    topic: &Topic,
    findings: &mut Findings,
) -> Result<(), Error> {
    let broker = Target::flushing_broker(plan)?;
    let sink = Target::sink(plan, Duration::ZERO)?;
    let workload = shape(100, 128 * 1024);
    let (mut runs, mut producing, mut reading) = (Pairs::new(), Pairs::new(), Pairs::new());
    for pair in 0..pairs(plan) {
        runs.push(in_turn(pair, |is_accounted| {
            bench.step(&format!("Produce and read with the ledger: {is_accounted}"));
            let (warmup_ms, window_ms) = RUN_MS;
            let workload = Workload { consume: true, warmup_ms, window_ms, ..workload.clone() };
            let setup = Setup { is_accounted, ..bench.setup(&broker.path, pair, &workload) };
            broker.path.control.create_topic(&setup.topic, workload.partitions)?;
            let measured = produce(&setup)?;
            broker.path.control.delete_topic(&setup.topic)?;
            // Whichever side is slower.
            let records = measured.produced_records.min(measured.consumed_records);
            Ok(float(records) * 1e9 / float(measured.window_ns.max(1)))
        })?);
        producing.push(in_turn(pair, |is_accounted| {
            bench.step(&format!("Produce with the ledger: {is_accounted}"));
            let setup = Setup { is_accounted, ..bench.setup(&sink.path, pair, &workload) };
            produce(&setup).map(|measured| per_core(&measured, measured.produced_records))
        })?);
        reading.push(in_turn(pair, |is_accounted| {
            bench.step(&format!("Read with the ledger: {is_accounted}"));
            let setup = Setup { is_accounted, ..topic.setup.clone() };
            let measured = generator::read_back_offsets(&setup, topic.offsets, Duration::MAX)?;
            Ok(per_core(&measured, measured.consumed_records))
        })?);
    }
    let effect = paired_effect(&log_ratios(&runs), plan.conditions.seed);
    findings.promise(
        "share of its throughput that the ledger costs a run at full speed".into(),
        effect.is_some_and(|effect| -effect.mean.exp_m1() <= COST_MAX),
        effect.map_or("too few runs".into(), |effect| words(&effect)),
        "<= 5 %",
    );
    let cases = [
        ("producing and reading at once, by the clock", runs),
        ("producing to a sink, per core", producing),
        ("reading, per core", reading),
    ];
    findings.record.tables.push(Table {
        title: "What the ledger costs".into(),
        about:
            "Records of 100 B as fast as it goes: both at once through the broker that flushes, \
                and one thread of the generator alone, by its processor time. Without the ledger \
                records hold filler alone and are merely counted when they come back: no header, \
                no checksum, no account of sequence numbers and offsets."
                .into(),
        columns: [
            "case",
            "without, records/s",
            "with, records/s",
            "cost",
            "the same, ns per record",
        ]
        .map(String::from)
        .to_vec(),
        rows: cases.map(|(name, pairs)| cost_row(name, &pairs, plan.conditions.seed)).to_vec(),
    });
    Ok(())
}

fn cost_row(name: &str, pairs: &[(f64, f64)], seed: u64) -> Vec<Cell> {
    let side = |side: fn(&(f64, f64)) -> f64| median(&pairs.iter().map(side).collect::<Vec<_>>());
    let (without, with) = (side(|pair| pair.0), side(|pair| pair.1));
    let effect = paired_effect(&log_ratios(pairs), seed);
    vec![
        Cell::from(name),
        Cell::from(without),
        Cell::from(with),
        Cell::from(effect.map_or("too few runs".into(), |effect| words(&effect))),
        Cell::from(1e9 / with - 1e9 / without),
    ]
}

/// The figure without the ledger and with it, in an order that turns from pair to pair.
fn in_turn(
    pair: u32,
    mut run: impl FnMut(bool) -> Result<f64, Error>,
) -> Result<(f64, f64), Error> {
    if pair.is_multiple_of(2) {
        let without = run(false)?;
        Ok((without, run(true)?))
    } else {
        let with = run(true)?;
        Ok((run(false)?, with))
    }
}

fn words(effect: &PairedEffect) -> String {
    let percent = |log_ratio: f64| -100.0 * log_ratio.exp_m1();
    let (low, high) = (percent(effect.interval_95.high), percent(effect.interval_95.low));
    format!("{:.1} % [{low:.1}, {high:.1}]", percent(effect.mean))
}

/// Records per second of the generator's own processor time: its throughput per core, which what
/// else runs on the machine does not touch.
fn per_core(measured: &Measured, records: u64) -> f64 {
    let generator = moldau_measure::cpu::generator_among(&measured.processes);
    float(records) * 1e9 / float(generator.map_or(1, |usage| usage.cpu_ns.max(1)))
}
