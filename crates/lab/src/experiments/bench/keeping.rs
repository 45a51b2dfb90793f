//! What a bench keeps for a later sitting of its experiment, and takes from an earlier one.

use std::time::{Duration, Instant};

use super::{Bench, Path, unix_ms};
use crate::error::Error;
use crate::experiments::Progress;
use crate::workload::{Pace, Workload};

/// When an experiment began: ms since 1970, and by the clock of this process.
pub(super) fn begun(progress: &mut dyn Progress) -> (u64, Instant) {
    let sittings = progress.sittings().map(|sittings| sittings.started());
    let (started_unix_ms, since) = sittings.unwrap_or_else(|| (unix_ms(), Duration::ZERO));
    let present = Instant::now();
    // A machine that was started since has no clock that reaches back so far.
    (started_unix_ms, present.checked_sub(since).unwrap_or(present))
}

impl Bench<'_> {
    /// Takes the runs of a case that an earlier sitting finished; whether there are such.
    pub(in crate::experiments) fn recall(&mut self, case: &str, arm: &str, pair: u32) -> bool {
        let recalled = self.progress.sittings().and_then(|it| it.recall(case, arm, pair));
        let Some(runs) = recalled else { return false };
        self.step(&format!("{case}: {arm}, {}, finished before", pair + 1));
        self.runs.extend(runs);
        true
    }

    /// Keeps the runs after the first `known` for a later sitting.
    pub(in crate::experiments) fn keep(
        &mut self,
        case: &str,
        arm: &str,
        pair: u32,
        known: usize,
    ) -> Result<(), Error> {
        let runs = self.runs.get(known..).unwrap_or_default();
        self.progress.sittings().map_or(Ok(()), |it| it.keep(case, arm, pair, runs))
    }

    /// Records per second that a path takes at full speed, for choosing a rate; not recorded.
    pub(in crate::experiments) fn calibrate(
        &mut self,
        path: &Path,
        workload: &Workload,
    ) -> Result<f64, Error> {
        let sittings = self.progress.sittings();
        if let Some(known) = sittings.and_then(|it| it.recall_full_speed(&path.arm)) {
            self.step(&format!("Calibrate: {}, finished before", path.arm));
            return Ok(known);
        }
        let workload = Workload { pace: Pace::Unpaced, consume: true, ..workload.clone() };
        let measured = self.probe(path, &workload)?;
        let records = u32::try_from(measured.produced_records).unwrap_or(u32::MAX);
        let per_second = f64::from(records) / workload.window().as_secs_f64();
        let sittings = self.progress.sittings();
        sittings.map_or(Ok(()), |it| it.keep_full_speed(&path.arm, per_second))?;
        Ok(per_second)
    }

    /// A name for a topic that no run has.
    pub(in crate::experiments) fn topic(&mut self) -> String {
        self.next_run += 1;
        format!("lab-{}", self.next_run - 1)
    }
}
