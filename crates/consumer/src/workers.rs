//! How many records or batches are handled at a time: a number, or one that follows the load.

use std::time::Duration;

/// How many records or batches are handled at a time, over all topics; at least one for each shard.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Workers {
    /// So many.
    Fixed(usize),
    /// From 16 to 16,384, over all shards, chosen while the app runs. By Little's law, the rate of
    /// records times the time that one takes says how many are busy; twice as many are enough, and
    /// the number falls towards that. With records left to handle, it doubles for as long as that
    /// raises their rate by a quarter or more. If it does not, what the handlers wait for is busy,
    /// and the number falls for as long as that costs less than a fifth of the rate.
    Auto,
}

impl From<usize> for Workers {
    fn from(workers: usize) -> Self {
        Self::Fixed(workers)
    }
}

/// Chooses the number of workers of a shard. It has no clock.
#[derive(Debug)]
pub(crate) struct Tuner {
    workers_min: usize,
    workers_max: usize,
    workers: usize,
    stage: Stage,
    /// Windows for which the number is kept once neither more nor fewer workers do better.
    windows_kept: u32,
    /// Shortest time that a record took, of late: without waiting for others.
    latency: Duration,
    window: Window,
}

#[derive(Clone, Copy, Debug)]
enum Stage {
    /// The number is kept for so many windows in which more could run.
    Keeping { windows: u32 },
    /// It was raised; these were the workers and the records per second before.
    Raised { workers: usize, rate: f64 },
    /// It was lowered, to see whether fewer do as well.
    Lowered { workers: usize, rate: f64 },
}

/// What is measured before the next choice. Time in which nothing runs does not count.
#[derive(Clone, Copy, Debug, Default)]
struct Window {
    time: Duration,
    /// Part of it in which more could have run with more workers.
    short_of_workers: Duration,
    /// Time of all workers together.
    busy: Duration,
    handled_before: u64,
}

/// What a shard does at a moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Load {
    /// Records or batches that are being handled.
    pub(crate) running: usize,
    /// Whether more could run with more workers.
    pub(crate) lacks_workers: bool,
}

impl Tuner {
    pub(crate) fn new(workers_min: usize, workers_max: usize) -> Self {
        Self {
            workers_min,
            workers_max: workers_max.max(workers_min),
            workers: workers_min,
            stage: Stage::Keeping { windows: 0 },
            windows_kept: KEPT_WINDOWS_MIN,
            latency: Duration::MAX,
            window: Window::default(),
        }
    }

    /// The number that it has chosen.
    pub(crate) fn workers(&self) -> usize {
        self.workers
    }

    /// For `time`, the shard did this. Returns whether so much time was measured that
    /// [`choose`](Self::choose) is due.
    pub(crate) fn pass(&mut self, time: Duration, load: Load) -> bool {
        let window = &mut self.window;
        if load.running > 0 {
            window.time += time;
            window.busy += time * u32::try_from(load.running).unwrap_or(u32::MAX);
        }
        if load.lacks_workers {
            window.short_of_workers += time;
        }
        window.time >= WINDOW_MIN
    }

    /// Chooses anew, if enough was handled to know the rate. `handled` counts records from the
    /// start on.
    pub(crate) fn choose(&mut self, handled: u64) {
        let Window { time, short_of_workers, busy, handled_before } = self.window;
        let records = handled.saturating_sub(handled_before);
        // A shorter window would see some calls end, and miss those that began.
        if records < u64::try_from(self.workers).unwrap_or(u64::MAX) && time < WINDOW_MAX {
            return;
        }
        self.window = Window { handled_before: handled, ..Window::default() };
        if records == 0 {
            return;
        }
        let count = u32::try_from(records).unwrap_or(u32::MAX);
        // Little's law: the records in the system are the rate times the latency.
        let drifted = self.latency.saturating_add(self.latency / LATENCY_DRIFT);
        self.latency = drifted.min(busy / count);
        if short_of_workers < time / 2 {
            let busy = self.latency.saturating_mul(count).as_nanos();
            let busy = usize::try_from(busy.div_ceil(time.as_nanos().max(1)));
            self.fall(busy.unwrap_or(usize::MAX));
        } else {
            self.rise(f64::from(count) / time.as_secs_f64());
        }
    }

    /// The workers were enough: so many would have been busy if no record had waited for others.
    fn fall(&mut self, busy: usize) {
        self.stage = Stage::Keeping { windows: 0 };
        let half = self.workers / 2;
        if busy.saturating_mul(2) < half {
            self.workers = half.max(self.workers_min);
            self.windows_kept = KEPT_WINDOWS_MIN;
        }
    }

    /// More could have run.
    fn rise(&mut self, rate: f64) {
        match self.stage {
            Stage::Keeping { windows: 0 } => self.raise(rate),
            Stage::Keeping { windows } => self.stage = Stage::Keeping { windows: windows - 1 },
            Stage::Raised { rate: before, .. } if rate >= before * GAIN_MIN => {
                self.windows_kept = KEPT_WINDOWS_MIN;
                self.raise(rate);
            }
            Stage::Raised { workers, .. } => {
                self.workers = workers;
                self.lower(rate);
            }
            Stage::Lowered { rate: before, .. } if rate * GAIN_MIN >= before => self.lower(rate),
            Stage::Lowered { workers, .. } => {
                self.workers = workers;
                self.keep();
            }
        }
    }

    fn raise(&mut self, rate: f64) {
        let workers = self.workers;
        self.workers = workers.saturating_mul(2).min(self.workers_max);
        self.stage = Stage::Raised { workers, rate };
    }

    fn lower(&mut self, rate: f64) {
        let workers = self.workers;
        self.workers = (workers / 2).max(self.workers_min);
        if self.workers == workers {
            self.keep();
        } else {
            self.stage = Stage::Lowered { workers, rate };
        }
    }

    fn keep(&mut self) {
        self.stage = Stage::Keeping { windows: self.windows_kept };
        self.windows_kept = (self.windows_kept * 2).min(KEPT_WINDOWS_MAX);
    }
}

/// Bounds of [`Workers::Auto`]. Each waiting call takes some KiB.
pub(crate) const AUTO_MIN: usize = 16;
pub(crate) const AUTO_MAX: usize = 16_384;

/// Time that is measured before a choice: some round trips to a service.
const WINDOW_MIN: Duration = Duration::from_millis(100);

/// A window ends after this time even if few records were handled.
const WINDOW_MAX: Duration = Duration::from_secs(10);

/// How many times the rate of half as many workers a number must reach.
const GAIN_MIN: f64 = 1.25;

/// The shortest latency grows by this part of it in each window: a service may become slower for
/// good.
const LATENCY_DRIFT: u32 = 100;

/// Windows for which a number is kept; longer each time that it is found right again.
const KEPT_WINDOWS_MIN: u32 = 4;
const KEPT_WINDOWS_MAX: u32 = 64;

#[cfg(test)]
mod tests;
