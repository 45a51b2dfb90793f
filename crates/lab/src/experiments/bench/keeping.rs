//! Runs that a bench keeps for a later sitting of its experiment, or takes from an earlier one.

use std::time::{Duration, Instant};

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{Bench, Path};
use crate::experiments::Progress;
use crate::wall_clock::unix_ms;
use moldau_load::workload::Workload;
use moldau_measure::Error;

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
        // Recalled runs took no time, so the pace is measured from here.
        self.paced_from = (Instant::now(), self.steps_done);
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

    /// What `find` finds, or what an earlier sitting found under the same name; the runs that it
    /// took with it.
    pub(in crate::experiments) fn once<T: Serialize + DeserializeOwned>(
        &mut self,
        name: &str,
        find: impl FnOnce(&mut Self) -> Result<T, Error>,
    ) -> Result<T, Error> {
        self.once_if(name, |_| true, find)
    }

    /// As [`Bench::once`], where not everything that may be found is kept for a later sitting.
    pub(in crate::experiments) fn once_if<T: Serialize + DeserializeOwned>(
        &mut self,
        name: &str,
        is_kept: impl FnOnce(&T) -> bool,
        find: impl FnOnce(&mut Self) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let sittings = self.progress.sittings();
        if let Some((found, runs)) = sittings.map_or(Ok(None), |it| it.recall_found(name))? {
            self.runs.extend(runs);
            self.paced_from = (Instant::now(), self.steps_done);
            return Ok(found);
        }
        let known = self.runs.len();
        let found = find(self)?;
        if is_kept(&found) {
            let runs = self.runs.get(known..).unwrap_or_default();
            self.progress.sittings().map_or(Ok(()), |it| it.keep_found(name, &found, runs))?;
        }
        Ok(found)
    }

    /// Share of the steps that are done, 0 to 1, and the time that they took; of all but those that
    /// earlier sittings finished.
    pub(in crate::experiments) fn pace(&self) -> (f64, Duration) {
        let (since, before) = self.paced_from;
        let of = |steps: u32| f64::from(steps.saturating_sub(before));
        ((of(self.steps_done) / of(self.steps).max(1.0)).min(1.0), since.elapsed())
    }

    /// Whether the steps that are left, and `more` of them, end within `limit` after the beginning
    /// of this sitting, or after what it recalled, at the pace since.
    pub(in crate::experiments) fn ends_within(&self, limit: Duration, more: usize) -> bool {
        let (since, before) = self.paced_from;
        let done = self.steps_done.saturating_sub(before).max(1);
        let more = u32::try_from(more).unwrap_or(u32::MAX);
        let left = self.steps.saturating_sub(self.steps_done).saturating_add(more);
        since.elapsed().mul_f64(1.0 + f64::from(left) / f64::from(done)) <= limit
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
        let measured = self.warm_up(path, workload)?;
        let records = u32::try_from(measured.produced_records).unwrap_or(u32::MAX);
        let per_second = f64::from(records) / workload.window().as_secs_f64();
        let sittings = self.progress.sittings();
        sittings.map_or(Ok(()), |it| it.keep_full_speed(&path.arm, per_second))?;
        Ok(per_second)
    }

    /// A name for a topic that no run has.
    pub(in crate::experiments) fn topic(&mut self) -> String {
        self.next_run += 1;
        self.topic_of(self.next_run - 1)
    }

    pub(super) fn topic_of(&self, run: u32) -> String {
        format!("lab-{:08x}-{run}", self.mark)
    }
}
