//! The number of workers, which follows the load if the app asks for that.

use std::time::Duration;

use super::{Runtime, Share};
use crate::Workers;
use crate::workers::{AUTO_MAX, AUTO_MIN, Load, Tuner};

/// A number of workers that follows the load.
pub(super) struct Tuning {
    tuner: Tuner,
    /// What the shard has done, and since when.
    load: Load,
    since: Duration,
}

impl Tuning {
    /// None for a fixed number.
    pub(super) fn of(workers: Workers, share: Share, now: Duration) -> Option<Self> {
        (workers == Workers::Auto).then(|| Self {
            tuner: Tuner::new(share.of(AUTO_MIN), share.of(AUTO_MAX)),
            load: Load { running: 0, lacks_workers: false },
            since: now,
        })
    }
}

impl Workers {
    /// How many a shard begins with.
    pub(super) fn first(self, share: Share) -> usize {
        share.of(match self {
            Self::Fixed(workers) => workers,
            Self::Auto => AUTO_MIN,
        })
    }
}

impl Runtime {
    /// Takes what the app was told of its workers.
    pub(super) fn take_workers(&mut self) {
        let workers = *self.workers.borrow_and_update();
        self.tuning = Tuning::of(workers, self.share, self.services.clock.now());
        self.scheduler.set_workers(workers.first(self.share));
    }

    /// Lets the number of workers follow the load.
    pub(super) fn tune(&mut self) {
        let Some(Tuning { tuner, load, since }) = &mut self.tuning else { return };
        let now = self.services.clock.now();
        if tuner.pass(now.saturating_sub(*since), *load) {
            tuner.choose(self.scheduler.handled());
            self.scheduler.set_workers(tuner.workers());
        }
        *since = now;
        let (running, lacks_workers) = (self.scheduler.running(), self.scheduler.lacks_workers());
        *load = Load { running, lacks_workers };
    }
}
