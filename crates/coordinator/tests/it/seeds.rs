//! Runs a simulation for many seeds on all processors.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// Runs `simulate` with each seed, and returns how many there were and what they saw. Names the
/// seed that panics.
///
/// `MOLDAU_SIMULATION_SEED` runs one seed, or as many from it on as `MOLDAU_SIMULATION_COUNT` says.
pub(crate) fn run<T: Send>(schedules: u64, simulate: fn(u64) -> T) -> (u64, Vec<T>) {
    let number = |name| std::env::var(name).ok().map(|text| text.parse().expect("a number"));
    let from: Option<u64> = number("MOLDAU_SIMULATION_SEED");
    let count =
        number("MOLDAU_SIMULATION_COUNT").unwrap_or(if from.is_some() { 1 } else { schedules });
    let from = from.unwrap_or(0);
    let (next, seen) = (AtomicU64::new(from), Mutex::new(Vec::new()));
    let work = || {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= from + count {
                return;
            }
            match std::panic::catch_unwind(|| simulate(seed)) {
                Ok(of_seed) => seen.lock().expect("nothing panics under it").push(of_seed),
                Err(_) => panic!("failed with MOLDAU_SIMULATION_SEED={seed}, see above"),
            }
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| (0..threads).for_each(|_| drop(scope.spawn(work))));
    (count, seen.into_inner().expect("nothing panics under it"))
}
