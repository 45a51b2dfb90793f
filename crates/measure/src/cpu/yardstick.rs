//! How fast the processors are at the moment, by a fixed piece of work.
//!
//! A processor of a virtual machine is most often half of a core, and what it does in its time
//! depends on whether others have the other half. No counter of the guest tells: the hypervisor
//! takes no time away, and processor time of the guest's own processes just buys less. So a thread
//! on each processor does the same work again and again, a thousandth of the time or less, and says
//! how long it took.

use std::hint::black_box;
use std::sync::mpsc::{self, RecvTimeoutError, SyncSender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// Time between two samples of a processor.
const EVERY: Duration = Duration::from_millis(20);

/// Rounds of the work in a sample: some 10 us.
const ROUNDS: u32 = 8_000;

/// A sample that took so many times the shortest was interrupted. Half a core does not make it
/// that slow.
const INTERRUPTED: f64 = 2.5;

/// Processors that are looked at, at most.
const PROCESSORS_MAX: usize = 64;

/// Samples that are needed to tell.
const SAMPLES_MIN: u32 = 10;

/// Threads that take samples until they are asked.
#[derive(Debug)]
pub(super) struct Yardstick {
    /// Each thread ends once its own is dropped.
    threads: Vec<(SyncSender<()>, JoinHandle<Samples>)>,
}

/// What samples told, added up.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Samples {
    count: u32,
    sum_ns: f64,
}

impl Yardstick {
    /// Begins on each processor that this process may use.
    pub(super) fn begin() -> Self {
        let allowed = sched_getaffinity(None).unwrap_or_default();
        let processors = (0..CpuSet::MAX_CPU).filter(|at| allowed.is_set(*at));
        let threads = processors.take(PROCESSORS_MAX).filter_map(|at| {
            let (stop, stopped) = mpsc::sync_channel(0);
            let measuring = move || {
                let mut only = CpuSet::new();
                only.set(at);
                // Elsewhere it tells less, and nothing wrong.
                let _ = sched_setaffinity(None, &only);
                let mut samples = Samples::default();
                // The first may be interrupted, and nothing before them tells.
                let mut shortest_ns = (0..3).map(|_| sample_ns()).fold(f64::INFINITY, f64::min);
                while stopped.recv_timeout(EVERY) == Err(RecvTimeoutError::Timeout) {
                    let ns = sample_ns();
                    shortest_ns = shortest_ns.min(ns);
                    samples.add(ns, shortest_ns);
                }
                samples
            };
            let thread = thread::Builder::new().name("yardstick".into()).spawn(measuring);
            thread.ok().map(|thread| (stop, thread))
        });
        Self { threads: threads.collect() }
    }

    /// Mean time of a sample, ns; 0 where there were too few.
    pub(super) fn end(self) -> u64 {
        let (stops, threads): (Vec<_>, Vec<_>) = self.threads.into_iter().unzip();
        drop(stops);
        let samples = threads.into_iter().filter_map(|thread| thread.join().ok());
        samples.reduce(Samples::plus).unwrap_or_default().mean_ns()
    }
}

impl Samples {
    fn add(&mut self, ns: f64, shortest_ns: f64) {
        if ns <= INTERRUPTED * shortest_ns {
            self.count = self.count.saturating_add(1);
            self.sum_ns += ns;
        }
    }

    fn plus(self, more: Self) -> Self {
        Self { count: self.count.saturating_add(more.count), sum_ns: self.sum_ns + more.sum_ns }
    }

    fn mean_ns(self) -> u64 {
        if self.count < SAMPLES_MIN {
            return 0;
        }
        let mean = Duration::from_secs_f64(self.sum_ns / f64::from(self.count) / 1e9);
        u64::try_from(mean.as_nanos()).unwrap_or(u64::MAX)
    }
}

/// The time of the work once, ns: sums and shifts in eight chains, as many at once as a whole core
/// can do.
fn sample_ns() -> f64 {
    let mut chains: [u64; 8] = black_box([1, 2, 3, 4, 5, 6, 7, 8]);
    let began = Instant::now();
    for _ in 0..ROUNDS {
        let [a, b, c, d, e, f, g, h] = &mut chains;
        *a = a.wrapping_add(*a >> 3);
        *b ^= *b << 1;
        *c = c.wrapping_add(*c >> 5);
        *d ^= *d << 2;
        *e = e.wrapping_add(*e >> 1);
        *f ^= *f << 3;
        *g = g.wrapping_add(*g >> 2);
        *h ^= *h << 4;
    }
    black_box(chains);
    began.elapsed().as_secs_f64() * 1e9
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_is_of_samples_that_nothing_interrupted() {
        let mut samples = Samples::default();
        (0..9).for_each(|_| samples.add(100.0, 100.0));
        assert_eq!(samples.mean_ns(), 0);
        samples.add(251.0, 100.0);
        assert_eq!(samples.mean_ns(), 0);
        samples.add(200.0, 100.0);
        assert_eq!(samples.mean_ns(), 110);
        let mut other = Samples::default();
        (0..10).for_each(|_| other.add(140.0, 140.0));
        assert_eq!(samples.plus(other).mean_ns(), 125);
        assert_eq!(Samples::default().plus(Samples::default()).mean_ns(), 0);
    }

    #[test]
    fn work_takes_its_time_on_every_processor() {
        let yardstick = Yardstick::begin();
        let allowed = sched_getaffinity(None).unwrap().count();
        assert_eq!(yardstick.threads.len(), PROCESSORS_MAX.min(allowed as usize));
        yardstick.end();
        let measured = |samples: u32| {
            let (yardstick, began) = (Yardstick::begin(), Instant::now());
            while began.elapsed() < EVERY * samples {
                sample_ns();
            }
            yardstick.end()
        };
        let ns = (1..).map(measured).find(|ns| *ns > 0).unwrap();
        assert!(ns > 100, "{ns} ns");
    }
}
