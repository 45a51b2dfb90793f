//! Seeded lives of a storage on a disk that loses, tears, reorders, fails and dies, compared with a
//! model: no acknowledged record is lost, nothing deleted comes back, no offset is used twice.
//!
//! `MOLDAU_SIMULATION_SEED` runs one seed, or as many from it on as `MOLDAU_SIMULATION_COUNT` says;
//! `cargo xtask simulate` runs for a given time.

mod actions;
mod life;
mod model;
mod reader;

use std::panic::catch_unwind;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use life::Coverage;

#[test]
fn storage_keeps_its_guarantees_under_disk_faults() {
    let number = |name| std::env::var(name).ok().map(|number| number.parse::<u64>().unwrap());
    let from = number("MOLDAU_SIMULATION_SEED");
    let count = number("MOLDAU_SIMULATION_COUNT");
    let count = count.unwrap_or(if from.is_some() { 1 } else { SCHEDULES });
    let (coverage, failed) = simulate(from.unwrap_or(0), count);
    println!("{coverage:#?}");
    assert!(failed.is_empty(), "failed with MOLDAU_SIMULATION_SEED of {failed:?}");
    if count >= SCHEDULES {
        let missed: Vec<_> =
            PLACES.iter().filter(|place| !coverage.contains_key(**place)).collect();
        assert!(missed.is_empty(), "never reached: {missed:?}");
    }
}

/// Runs the seeds on all processors; returns what happened and the first seeds that failed.
fn simulate(from: u64, count: u64) -> (Coverage, Vec<u64>) {
    let next = AtomicU64::new(from);
    let outcome = Mutex::new((Coverage::new(), Vec::new()));
    let work = || {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= from + count || outcome.lock().unwrap().1.len() >= FAILURES_MAX {
                return;
            }
            let lived = catch_unwind(|| life::run(seed));
            let mut outcome = outcome.lock().unwrap();
            match lived {
                Ok(coverage) => {
                    for (what, times) in coverage {
                        *outcome.0.entry(what).or_default() += times;
                    }
                    let lived = outcome.0.get("schedules").copied().unwrap_or_default();
                    if lived % 500 == 0 {
                        eprintln!("{lived} schedules, {} failed", outcome.1.len());
                    }
                }
                Err(_) => {
                    eprintln!("failed with MOLDAU_SIMULATION_SEED={seed}");
                    outcome.1.push(seed);
                }
            }
        }
    };
    let threads = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        for _ in 1..threads {
            scope.spawn(work);
        }
        work();
    });
    outcome.into_inner().unwrap()
}

/// What the seeds together must have reached.
const PLACES: [&str; 26] = [
    "burst over 500 partitions of a topic",
    "checkpoint",
    "checkpoint beside upkeep",
    "cleaning",
    "crash beside other work",
    "crash in a checkpoint",
    "crash in cleaning",
    "crash in giving back",
    "crash in merging",
    "crash in recovery",
    "crash in removal",
    "crash in retiring",
    "crash in sorting",
    "delete records",
    "delete topic",
    "deletion lost",
    "disk fails",
    "disk runs full",
    "lookup by time",
    "merge",
    "newest checkpoint damaged",
    "read that went on",
    "removal",
    "retention",
    "retired",
    "sort",
];
/// Enough to reach every place many times, within a minute on two processors.
const SCHEDULES: u64 = 3_000;
const FAILURES_MAX: usize = 20;
