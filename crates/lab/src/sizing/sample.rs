//! A made-up measurement whose coefficients are known.

use super::{Load, Observation, SizingRecord, TERMS};

/// Coefficients of the made-up arms, ns per count.
pub(crate) const PASSTHROUGH: [f64; TERMS] =
    [200_000.0, 30_000.0, 25_000.0, 0.0, 900.0, 0.0, 0.0, 0.3, 0.4];
pub(crate) const ENCRYPTION: [f64; TERMS] =
    [200_000.0, 35_000.0, 28_000.0, 6_000.0, 5_000.0, 700.0, 600.0, 1.1, 0.9];

pub(crate) const REFERENCE: &str = "1024 B x 16, 1 in 1, 10 partitions, 1 groups";

/// Record size, records in a batch, batches in a request, partitions, groups, batches per second.
const CASES: [(u64, u64, u64, u16, u16, u64); 16] = [
    (1_024, 16, 1, 10, 1, 1_250),
    (1_024, 1, 1, 1, 1, 1_000),
    (1_024, 1, 1, 10, 0, 3_000),
    (100, 1, 1, 10, 3, 1_500),
    (1_024, 16, 1, 10, 3, 600),
    (1_024, 16, 1, 10, 0, 2_500),
    (100, 160, 1, 10, 1, 400),
    (100, 160, 1, 10, 3, 200),
    (100, 160, 1, 1, 0, 500),
    (10_240, 12, 1, 10, 1, 330),
    (1_024, 128, 1, 10, 3, 120),
    (10_240, 1, 1, 10, 1, 1_000),
    (1_024, 1, 12, 100, 1, 9_600),
    (100, 4, 20, 100, 3, 5_000),
    (1_024, 1, 16, 100, 0, 16_000),
    (100, 1, 20, 100, 2, 16_000),
];

/// The load that the made-up measurement was asked for.
pub(crate) fn load() -> Load {
    Load {
        produce_bytes_per_second: 100.0 * 1_048_576.0,
        record_bytes: 1_024,
        batch_bytes: 16_384,
        groups: 3,
        partitions: 10,
        batches_per_request: None,
        batches_per_fetch: None,
    }
}

/// Three rounds over all cases, with this much noise on the processor time of each run.
pub(crate) fn record(noise: f64) -> SizingRecord {
    record_of(noise, 11)
}

/// As [`record`], with other noise.
pub(crate) fn record_of(noise: f64, seed: u64) -> SizingRecord {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut observations = Vec::new();
    for (arm, coefficients) in [("passthrough", PASSTHROUGH), ("encryption", ENCRYPTION)] {
        for round in 0..3 {
            observations.push(priced(idle(arm, round), &coefficients, 1.0));
            for case in CASES {
                let factor = 1.0 + noise * (2.0 * random.f64() - 1.0);
                observations.push(priced(of(case, arm, round), &coefficients, factor));
            }
        }
    }
    SizingRecord { load: load(), reference: REFERENCE.into(), observations }
}

fn idle(arm: &str, round: u32) -> Observation {
    let (window_ns, counted_ns) = (2_000_000_000, 2_000_000_000);
    let (case, arm) = ("idle".into(), arm.into());
    Observation { case, arm, round, window_ns, counted_ns, ..Observation::default() }
}

fn of(case: (u64, u64, u64, u16, u16, u64), arm: &str, round: u32) -> Observation {
    let (record_bytes, records, packed, partitions, groups, per_second) = case;
    let name = format!(
        "{record_bytes} B x {records}, {packed} in 1, {partitions} partitions, {groups} groups"
    );
    let (batches, readers) = (2 * per_second, u64::from(groups));
    Observation {
        case: name,
        partitions,
        groups,
        produce_requests: batches / packed,
        // Fetches find a little more than one request brought.
        fetch_requests: readers * batches * 10 / (packed * 13),
        produced_batches: batches,
        consumed_batches: readers * batches,
        produced_records: batches * records,
        consumed_records: readers * batches * records,
        produced_bytes: batches * records * record_bytes,
        consumed_bytes: readers * batches * records * record_bytes,
        ..idle(arm, round)
    }
}

fn priced(run: Observation, coefficients: &[f64; TERMS], factor: f64) -> Observation {
    let cpu = run.rates().cores(coefficients) * 2e9 * factor;
    Observation { cpu_ns: format!("{cpu:.0}").parse().expect("a whole number"), ..run }
}
