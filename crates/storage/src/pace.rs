//! How fast cold reads and work in the background may use the disk.
//!
//! Both share the disk with the journal, whose flushes producers wait for. A disk that is asked for
//! all it can read lets a flush wait for a hundred milliseconds. So while the journal is in use,
//! reads begin at a rate that falls when flushes take longer than they do alone, and rises
//! otherwise. Sorting, merging, cleaning and checkpoints get a part of it, and a fixed rate while
//! the disk is in use. While it is idle nothing is limited.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use moldau_threads::Mutex;

use crate::metrics::Metrics;

/// The rates of one storage.
pub(crate) struct Pace {
    metrics: Arc<Metrics>,
    /// Bytes a second of the background while the disk is in use; zero for no limit.
    rate: u64,
    /// Nothing is held back, so that every run with the same inputs is the same.
    is_stepped: bool,
    state: Mutex<State>,
    reads: Mutex<Reads>,
    /// Reads and pieces of work that began, and those that ended.
    begun: AtomicU64,
    ended: AtomicU64,
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

/// What the reads may do, as the flushes tell.
struct Reads {
    /// Bytes a second.
    rate: u64,
    /// When the next read may begin.
    free: Instant,
    /// When the journal last flushed.
    flushed: Option<Instant>,
    /// When the rate was last changed.
    adjusted: Instant,
    /// Bytes of a flush, as a moving average, and when that was last more than a journal writes
    /// whose producers need not wait for each other.
    flushed_bytes: u64,
    crowded: Option<Instant>,
    /// What a flush of nothing takes while nothing else uses the disk, and beside other uses: ns,
    /// as a moving average.
    alone: u64,
    beside: u64,
}

/// A flush that is under way.
pub(crate) struct Flush {
    started: Instant,
    begun: u64,
    is_alone: bool,
}

impl Pace {
    pub(crate) fn new(metrics: Arc<Metrics>, rate: u64, is_stepped: bool) -> Pace {
        let state = State { urgency: 1, uses: 0, used: None, debt: Duration::ZERO };
        Pace {
            metrics,
            rate,
            is_stepped,
            state: Mutex::new(state),
            reads: Mutex::new(Reads::new(Instant::now())),
            begun: AtomicU64::new(0),
            ended: AtomicU64::new(0),
            stopped: AtomicBool::new(false),
        }
    }

    /// Asks all work that is under way to end.
    pub(crate) fn stop(&self) {
        self.stopped.store(true, Ordering::Release);
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Acquire)
    }

    pub(crate) fn set_urgency(&self, urgency: u64) {
        self.state.lock().urgency = urgency.max(1);
    }

    /// Called before a flush of the journal.
    pub(crate) fn begin_flush(&self) -> Flush {
        let begun = self.begun.load(Ordering::Acquire);
        let is_alone = begun == self.ended.load(Ordering::Acquire);
        Flush { started: Instant::now(), begun, is_alone }
    }

    /// Called after a flush of `bytes` bytes, its writing included.
    pub(crate) fn end_flush(&self, flush: &Flush, bytes: usize) {
        let now = Instant::now();
        let is_alone = flush.is_alone && flush.begun == self.begun.load(Ordering::Acquire);
        self.reads.lock().learn(now, now - flush.started, bytes, is_alone);
    }

    /// Whether producers have lately asked for more than the journal could write at once, so that
    /// what takes the disk from it takes it from them.
    pub(crate) fn is_crowded(&self, now: Instant) -> bool {
        let crowded = self.reads.lock().crowded;
        crowded.is_some_and(|crowded| now.saturating_duration_since(crowded) < CROWDED_FOR)
    }

    /// Does a cold read of `bytes` bytes when its turn comes.
    pub(crate) fn read<T>(&self, bytes: usize, read: impl FnOnce() -> T) -> T {
        if !self.is_stepped && !self.is_stopped() {
            let now = Instant::now();
            let wait = self.reads.lock().turn(now, bytes);
            if !wait.is_zero() {
                thread::sleep(wait);
            }
        }
        self.counted(read)
    }

    /// Does one piece of work that moves `bytes` bytes, and rests for as long as the rates ask.
    pub(crate) fn work<T>(&self, bytes: usize, work: impl FnOnce() -> T) -> T {
        if self.is_stepped {
            return work();
        }
        let started = Instant::now();
        let done = self.counted(work);
        let uses = self.metrics.frames.value() + self.metrics.chunk_reads.value();
        let rest = self.rest(bytes, started, uses);
        if !rest.is_zero() {
            thread::sleep(rest);
        }
        done
    }

    fn counted<T>(&self, use_disk: impl FnOnce() -> T) -> T {
        /// Counts also what a panic ends.
        struct Use<'a>(&'a AtomicU64);
        impl Drop for Use<'_> {
            fn drop(&mut self) {
                self.0.fetch_add(1, Ordering::AcqRel);
            }
        }
        self.begun.fetch_add(1, Ordering::AcqRel);
        let _use = Use(&self.ended);
        use_disk()
    }

    fn rest(&self, bytes: usize, started: Instant, uses: u64) -> Duration {
        let beside_flushes = self.reads.lock().background_rate(started);
        let mut state = self.state.lock();
        if state.uses != uses {
            (state.uses, state.used) = (uses, Some(started));
        }
        let is_used = state.used.is_some_and(|used| used.elapsed() < IN_USE);
        let limit = if self.rate == 0 { u64::MAX } else { self.rate };
        let rate = limit.min(beside_flushes).saturating_mul(state.urgency);
        if !is_used || rate == u64::MAX {
            state.debt = Duration::ZERO;
            return Duration::ZERO;
        }
        state.debt += duration_of(bytes, rate);
        state.debt = state.debt.saturating_sub(started.elapsed());
        if state.debt < REST_MIN {
            return Duration::ZERO;
        }
        std::mem::take(&mut state.debt).min(REST_MAX)
    }
}

impl Reads {
    fn new(now: Instant) -> Reads {
        let alone = u64::try_from(ALONE_AT_FIRST.as_nanos()).unwrap_or(u64::MAX);
        Reads {
            rate: READ_RATE_AT_FIRST,
            free: now,
            flushed: None,
            adjusted: now,
            flushed_bytes: 0,
            crowded: None,
            alone,
            beside: alone,
        }
    }

    fn learn(&mut self, now: Instant, took: Duration, bytes: usize, is_alone: bool) {
        self.flushed = Some(now);
        self.flushed_bytes = (self.flushed_bytes * 15 + bytes as u64) / 16;
        if self.flushed_bytes >= CROWDED_BYTES {
            self.crowded = Some(now);
        }
        let nanos = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        let cost = nanos / (1 + bytes as u64 / FLUSH_BYTES_FREE);
        if is_alone {
            self.alone = (self.alone * 15 + cost) / 16;
            return;
        }
        self.beside = (self.beside * 3 + cost) / 4;
        if now - self.adjusted < ADJUST_EVERY {
            return;
        }
        self.adjusted = now;
        let bearable = self.alone.saturating_mul(SLOWER_MAX).saturating_add(SLOWER_NS);
        let rate = match self.beside / bearable {
            0 => self.rate + self.rate / 32,
            1..4 => self.rate / 4 * 3,
            _ => self.rate / 2,
        };
        if rate < self.rate {
            // Earlier measurements say nothing about the lower rate.
            self.beside = self.alone;
        }
        self.rate = rate.clamp(READ_RATE_MIN, READ_RATE_MAX);
    }

    fn is_beside_flushes(&self, now: Instant) -> bool {
        self.flushed.is_some_and(|flushed| now.saturating_duration_since(flushed) < FLUSHING)
    }

    /// How long a read of `bytes` bytes waits.
    fn turn(&mut self, now: Instant, bytes: usize) -> Duration {
        if !self.is_beside_flushes(now) {
            return Duration::ZERO;
        }
        let begin = self.free.max(now);
        self.free = begin + duration_of(bytes, self.rate);
        begin - now
    }

    fn background_rate(&self, now: Instant) -> u64 {
        if self.is_beside_flushes(now) { self.rate / 2 } else { u64::MAX }
    }
}

fn duration_of(bytes: usize, rate: u64) -> Duration {
    Duration::from_nanos((bytes as u64).saturating_mul(1_000_000_000) / rate.max(1))
}

/// The disk is in use for as long as there was a frame or a read within this time.
const IN_USE: Duration = Duration::from_millis(200);
/// A sleep is not exact; short ones are saved up.
const REST_MIN: Duration = Duration::from_millis(2);
/// A piece of work is at most a few MiB; a rate that asks for longer rests is not meant.
const REST_MAX: Duration = Duration::from_millis(500);
/// Producers count as at work for this long after a flush.
const FLUSHING: Duration = Duration::from_secs(1);
/// Long enough that a change of the rate shows in the flushes.
const ADJUST_EVERY: Duration = Duration::from_millis(10);
/// A flush of this size takes about twice as long as one of nothing.
const FLUSH_BYTES_FREE: u64 = 256 << 10;
/// A journal in time writes what has come during one flush, of a millisecond or two.
const CROWDED_BYTES: u64 = 1 << 20;
/// A burst of producers is over for good after this.
const CROWDED_FOR: Duration = Duration::from_secs(30);
/// Assumed time of a flush until it has been measured.
const ALONE_AT_FIRST: Duration = Duration::from_micros(500);
/// A flush beside reads may take this many times longer than alone, and a little.
const SLOWER_MAX: u64 = 2;
const SLOWER_NS: u64 = 100_000;
const READ_RATE_AT_FIRST: u64 = 256 << 20;
/// Consumers make progress under any load from producers.
const READ_RATE_MIN: u64 = 32 << 20;
/// No disk of this class gives more.
const READ_RATE_MAX: u64 = 8 << 30;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_rests_only_while_others_use_the_disk() {
        let pace = Pace::new(Arc::default(), 1 << 20, false);
        let begun = Instant::now();
        assert_eq!(pace.rest(1 << 30, begun, 0), Duration::ZERO);
        assert_eq!(pace.rest(1 << 30, Instant::now(), 1), REST_MAX);
        // 1 KiB at 1 MiB/s is just under a millisecond, which is saved up.
        let begun = Instant::now() + Duration::from_secs(3600);
        let rests: Vec<_> = (2..6).map(|frames| pace.rest(1 << 10, begun, frames)).collect();
        assert_eq!(rests[..2], [Duration::ZERO; 2]);
        assert!(rests[2] >= REST_MIN && rests[3].is_zero(), "{rests:?}");
    }

    #[test]
    fn a_journal_whose_frames_have_grown_is_crowded_until_long_after() {
        let (begun, pace) = (Instant::now(), Pace::new(Arc::default(), 0, false));
        let flush = |bytes| pace.reads.lock().learn(begun, Duration::from_millis(1), bytes, true);
        (0..100).for_each(|_| flush(512 << 10));
        // One large request is no crowd.
        flush(4 << 20);
        assert!(!pace.is_crowded(begun));
        (0..8).for_each(|_| flush(4 << 20));
        assert!(pace.is_crowded(begun));
        (0..100).for_each(|_| flush(4 << 10));
        assert!(pace.is_crowded(begun + CROWDED_FOR / 2));
        assert!(!pace.is_crowded(begun + CROWDED_FOR));
    }

    /// A disk whose flushes take a millisecond alone, and longer the more is read beside them.
    fn flush_beside(reads: &mut Reads, now: Instant, rate_borne: u64) {
        let took = match reads.rate > rate_borne {
            true => Duration::from_millis(20),
            false => Duration::from_millis(1),
        };
        reads.learn(now, took, 4096, false);
    }

    #[test]
    fn reads_come_down_to_what_the_flushes_bear_and_go_up_again() {
        let begun = Instant::now();
        let mut reads = Reads::new(begun);
        let mut now = begun;
        let mut run = |reads: &mut Reads, rate_borne: u64, flushes: u32| {
            for _ in 0..flushes {
                now += ADJUST_EVERY;
                reads.learn(now, Duration::from_millis(1), 4096, true);
                flush_beside(reads, now, rate_borne);
                now += ADJUST_EVERY;
                flush_beside(reads, now, rate_borne);
            }
            now
        };
        run(&mut reads, 64 << 20, 400);
        assert!(reads.rate < 128 << 20, "{}", reads.rate);
        assert!(reads.rate >= READ_RATE_MIN);
        let now = run(&mut reads, 512 << 20, 400);
        assert!(reads.rate > 256 << 20, "{}", reads.rate);
        // Reads follow each other at the rate, and at once when the producers rest.
        reads.rate = 100 << 20;
        assert_eq!(reads.turn(now, 1 << 20), Duration::ZERO);
        assert_eq!(reads.turn(now, 1 << 20), Duration::from_millis(10));
        assert_eq!(reads.turn(now, 1 << 20), Duration::from_millis(20));
        assert_eq!(reads.turn(now + FLUSHING, 1 << 20), Duration::ZERO);
    }
}
