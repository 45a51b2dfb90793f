//! How fast work in the background may use the disk.
//!
//! Sorting, merging, cleaning and checkpoints share the disk with the journal, whose flushes
//! producers wait for, and with cold reads. While either is in use they keep to a rate; while both
//! rest they do not.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use crate::metrics::Metrics;
use crate::sync::lock;

/// The rate that all background work of one storage keeps to.
pub(crate) struct Pace {
    metrics: Arc<Metrics>,
    /// Bytes a second while the disk is in use; zero for no limit.
    rate: u64,
    state: Mutex<State>,
    stopped: AtomicBool,
}

struct State {
    /// Times the rate that may be used, since work has piled up.
    urgency: u64,
    /// Frames and cold reads when the disk was last seen in use, and when that was.
    uses: u64,
    used: Option<Instant>,
    /// Rest that is owed.
    debt: Duration,
}

impl Pace {
    pub(crate) fn new(metrics: Arc<Metrics>, rate: u64) -> Pace {
        let state = State { urgency: 1, uses: 0, used: None, debt: Duration::ZERO };
        Pace { metrics, rate, state: Mutex::new(state), stopped: AtomicBool::new(false) }
    }

    /// Asks all work that is under way to end.
    pub(crate) fn stop(&self) {
        self.stopped.store(true, Ordering::Release);
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Acquire)
    }

    pub(crate) fn set_urgency(&self, urgency: u64) {
        lock(&self.state).urgency = urgency.max(1);
    }

    /// Does one piece of work that moves `bytes` bytes, and rests for as long as the rate asks.
    pub(crate) fn work<T>(&self, bytes: usize, work: impl FnOnce() -> T) -> T {
        if self.rate == 0 {
            return work();
        }
        let started = Instant::now();
        let done = work();
        let uses = self.metrics.frames.value() + self.metrics.chunk_reads.value();
        let rest = self.rest(bytes, started, uses);
        if !rest.is_zero() {
            thread::sleep(rest);
        }
        done
    }

    fn rest(&self, bytes: usize, started: Instant, uses: u64) -> Duration {
        let mut state = lock(&self.state);
        if state.uses != uses {
            (state.uses, state.used) = (uses, Some(started));
        }
        let is_used = state.used.is_some_and(|used| used.elapsed() < IN_USE);
        if !is_used {
            state.debt = Duration::ZERO;
            return Duration::ZERO;
        }
        let rate = self.rate.saturating_mul(state.urgency);
        let due = (bytes as u64).saturating_mul(1_000_000_000) / rate;
        state.debt += Duration::from_nanos(due);
        state.debt = state.debt.saturating_sub(started.elapsed());
        if state.debt < REST_MIN {
            return Duration::ZERO;
        }
        std::mem::take(&mut state.debt).min(REST_MAX)
    }
}

/// The disk is in use for as long as there was a frame or a read within this time.
const IN_USE: Duration = Duration::from_millis(200);
/// A sleep is not exact; short ones are saved up.
const REST_MIN: Duration = Duration::from_millis(2);
/// A piece of work is at most a few MiB; a rate that asks for longer rests is not meant.
const REST_MAX: Duration = Duration::from_millis(500);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_rests_only_while_others_use_the_disk() {
        let pace = Pace::new(Arc::default(), 1 << 20);
        let begun = Instant::now();
        assert_eq!(pace.rest(1 << 30, begun, 0), Duration::ZERO);
        assert_eq!(pace.rest(1 << 30, Instant::now(), 1), REST_MAX);
        // 1 KiB at 1 MiB/s is just under a millisecond, which is saved up.
        let begun = Instant::now() + Duration::from_secs(3600);
        let rests: Vec<_> = (2..6).map(|frames| pace.rest(1 << 10, begun, frames)).collect();
        assert_eq!(rests[..2], [Duration::ZERO; 2]);
        assert!(rests[2] >= REST_MIN && rests[3].is_zero(), "{rests:?}");
    }
}
