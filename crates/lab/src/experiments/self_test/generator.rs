//! What the generator can offer where nothing behind it is the limit.

use std::time::Duration;

use super::target::{self, Target};
use super::{Findings, Plan, shape};
use crate::experiments::bench::Bench;
use crate::result::Arm;
use crate::self_test::{Cell, Table};
use moldau_load::generator::Measured;
use moldau_load::workload::Workload;
use moldau_measure::Error;
use moldau_measure::cpu::GENERATOR_ROLE;
use moldau_measure::statistics::{float, median};

/// Sizes of records and of the batches that they go out in.
const LOADS: [(&str, usize, usize); 3] =
    [("100 B", 100, 128 * 1024), ("1 KB", 1024, 128 * 1024), ("64 KB", 65_536, 1 << 20)];

const COLUMNS: [&str; 9] = [
    "records",
    "records/s",
    "MB/s (10^6)",
    "records/s per core",
    "records per batch",
    "KB per batch",
    "requests/s",
    "generator, cores",
    "sink, cores",
];

/// Records per second of a core at 100 B.
const RECORDS_MIN: f64 = 1e6;

/// Bytes per second at 64 KB.
const BYTES_MIN: f64 = 2e9;

pub(super) fn steps(plan: &Plan) -> u32 {
    3 * repeats(plan)
}

pub(super) fn arms(_plan: &Plan) -> Vec<Arm> {
    target::arms().into_iter().take(1).collect()
}

fn repeats(plan: &Plan) -> u32 {
    if plan.conditions.quick { 3 } else { 7 }
}

pub(super) fn run(
    plan: &Plan,
    bench: &mut Bench<'_>,
    findings: &mut Findings,
) -> Result<(), Error> {
    let sink = Target::sink(plan, Duration::ZERO)?;
    let mut rows = Vec::new();
    for (name, record_bytes, batch_bytes) in LOADS {
        let workload = shape(record_bytes, batch_bytes);
        let mut found = Vec::new();
        for _ in 0..repeats(plan) {
            bench.step(&format!("Offer records of {name}"));
            let measured = sink.run(bench, findings, &workload, &mut || ())?;
            found.push(Figures::of(&workload, &measured));
        }
        let of =
            |figure: fn(&Figures) -> f64| median(&found.iter().map(figure).collect::<Vec<_>>());
        let per_core = of(|found| found.records / found.cores);
        let bytes = of(|found| found.bytes);
        match record_bytes {
            100 => findings.promise(
                "records of 100 B per second of a core of the generator".into(),
                per_core >= RECORDS_MIN,
                format!("{:.2} M", per_core / 1e6),
                ">= 1 M",
            ),
            65_536 => findings.promise(
                "bytes per second in records of 64 KB, one thread".into(),
                bytes >= BYTES_MIN,
                format!("{:.2} GB/s", bytes / 1e9),
                ">= 2 GB/s",
            ),
            _ => {}
        }
        let figures = [
            of(|found| found.records),
            bytes / 1e6,
            per_core,
            of(|found| found.records_per_batch),
            of(|found| found.records_per_batch) * float(record_bytes as u64) / 1024.0,
            of(|found| found.requests),
            of(|found| found.cores),
            of(|found| found.sink_cores),
        ];
        rows.push(std::iter::once(Cell::from(name)).chain(figures.map(Cell::from)).collect());
    }
    findings.record.tables.push(Table {
        title: "One producer thread against a null sink".into(),
        about: format!(
            "Medians of {} runs, as fast as it goes. Every record has its header and checksum, and \
             every acknowledgement is booked. Per core: by the generator's own processor time, the \
             kernel's part in it.",
            repeats(plan)
        ),
        columns: COLUMNS.map(String::from).to_vec(),
        rows,
    });
    Ok(())
}

/// What one run gave, per second.
struct Figures {
    records: f64,
    bytes: f64,
    records_per_batch: f64,
    requests: f64,
    cores: f64,
    sink_cores: f64,
}

impl Figures {
    fn of(workload: &Workload, measured: &Measured) -> Self {
        let seconds = float(measured.window_ns.max(1)) / 1e9;
        let cores = |role: &str| {
            let usage = measured.processes.iter().find(|usage| usage.role == role);
            float(usage.map_or(0, |usage| usage.cpu_ns)) / 1e9 / seconds
        };
        let records = float(measured.produced_records) / seconds;
        let batches = float(measured.produced_batches.max(1));
        let whole = workload.length().as_secs_f64();
        Self {
            records,
            bytes: records * float(workload.record_bytes as u64),
            records_per_batch: float(measured.produced_records) / batches,
            requests: float(measured.requests) / whole,
            cores: cores(GENERATOR_ROLE).max(f64::MIN_POSITIVE),
            sink_cores: cores("sink"),
        }
    }
}
