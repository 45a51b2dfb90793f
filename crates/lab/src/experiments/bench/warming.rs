//! Warm-up of the systems before anything is measured. A JVM compiles what it runs often, and the
//! first runs should not pay for that. Nothing is recorded. Every sitting of an experiment repeats
//! the warm-up.

use std::thread;

use super::{Bench, Path};
use moldau_load::generator::{self, Measured, Setup};
use moldau_load::workload::{Pace, Workload};
use moldau_measure::Error;

/// Paths that are warmed up at the same time. Their latencies do not matter.
const ABREAST: usize = 2;

impl Bench<'_> {
    /// What a path does with a workload at full speed.
    pub(in crate::experiments) fn warm_up(
        &mut self,
        path: &Path,
        workload: &Workload,
    ) -> Result<Measured, Error> {
        let workload = Workload { pace: Pace::Unpaced, consume: true, ..workload.clone() };
        self.probe(path, &workload)
    }

    /// Has every path do a workload at its own pace, two at a time. Workers offer to one path at a
    /// time.
    pub(in crate::experiments) fn warm_up_abreast(
        &mut self,
        paths: &[&Path],
        workload: &Workload,
    ) -> Result<(), Error> {
        if self.workers.is_some() {
            return paths.iter().try_for_each(|path| self.probe(path, workload).map(drop));
        }
        for paths in paths.chunks(ABREAST) {
            let mut setups: Vec<Setup> = Vec::new();
            for path in paths {
                self.step(&format!("Warm up {}", path.arm));
                let setup = self.setup(path, 0, workload);
                path.control.create_topics(&setup.topics(), workload.partitions)?;
                setups.push(setup);
            }
            offer_abreast(&setups)?;
            for (path, setup) in paths.iter().zip(&setups) {
                path.control.delete_topics(&setup.topics())?;
            }
        }
        Ok(())
    }
}

/// Every load at once; the first error, once all have ended.
fn offer_abreast(setups: &[Setup]) -> Result<(), Error> {
    thread::scope(|scope| {
        let offering: Vec<_> =
            setups.iter().map(|setup| scope.spawn(|| generator::produce(setup))).collect();
        let offered: Vec<Result<Measured, Error>> = offering
            .into_iter()
            .map(|it| it.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect();
        offered.into_iter().try_for_each(|measured| measured.map(drop))
    })
}
