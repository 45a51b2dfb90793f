//! What limits a load on a system? One run with evidence gives findings. Each finding names a
//! change, which is tested in pairs of runs without and with it, until one is confirmed.

mod investigation;
mod page;

use std::slice;

use super::bench::Bench;
use super::survey::Settings;
use super::{Conditions, Progress};
use crate::checks::{self, Check};
use crate::explain::About;
use crate::result::{Arm, Experiment, ExplainRecord, RunResult};
use crate::systems::{Installations, SystemFile, keep_records};
use moldau_load::run::RunRecord;
use moldau_load::workload::Workload;
use moldau_measure::Error;

pub use page::page;

pub(super) use investigation::{Investigation, Subject};

/// Everything that an explanation needs to know.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Name of the system.
    pub name: String,
    /// The system.
    pub system: SystemFile,
    /// What is offered to it.
    pub load: Settings,
    /// What is to be explained; by the load if left out.
    pub about: Option<About>,
    /// What is there to start it from.
    pub installations: Installations,
    /// Under what conditions it is carried out.
    pub conditions: Conditions,
}

/// How long runs are, and how many pairs of them a finding is tested by.
#[derive(Clone, Copy, Debug)]
pub(super) struct Extent {
    pub(super) warmup_ms: u64,
    pub(super) window_ms: u64,
    pub(super) pairs: u32,
}

const FULL: Extent = Extent { warmup_ms: 1_000, window_ms: 4_000, pairs: 4 };
const QUICK: Extent = Extent { warmup_ms: 500, window_ms: 1_500, pairs: 3 };

/// Runs the experiment.
///
/// # Errors
/// [`Error::Plan`] where the system is not there or the load impossible, otherwise as
/// [`super::overhead::run`].
pub fn run(plan: &Plan, progress: &mut dyn Progress) -> Result<RunResult, Error> {
    plan.system.check()?;
    plan.load.check()?;
    if let Some(reason) = plan.system.missing(&plan.installations) {
        return Err(Error::Plan(format!("{}: {reason}", plan.name)));
    }
    keep_records(slice::from_ref(&plan.name), slice::from_ref(&plan.system))?;
    let extent = if plan.conditions.quick { QUICK } else { FULL };
    let warmup_ms = plan.load.warmup_ms.unwrap_or(extent.warmup_ms);
    let window_ms = plan.load.window_ms.unwrap_or(extent.window_ms);
    let workload: Workload = plan.load.workload(warmup_ms, window_ms);
    workload.check()?;
    let subject = Subject {
        name: plan.name.clone(),
        file: plan.system.clone(),
        installations: plan.installations.clone(),
        directory: plan.conditions.work_directory.join("system"),
        workload,
        about: plan.about,
        pairs: extent.pairs,
    };
    let mut bench = Bench::new(&plan.conditions, investigation::steps(&subject), progress);
    let mut investigation = Investigation::begin(&mut bench, &subject)?;
    let explanation = investigation.explain()?;
    let (runs, changes) = investigation.end()?;
    if let Some(check) = punctuality(explanation.about, &runs, &plan.name) {
        bench.note(check);
    }
    for run in runs {
        bench.add(run);
    }
    let base = Arm::of(&plan.name, plan.system.description.trim());
    let changed = changes.iter().map(|change| Arm::of(change, format!("the same with {change}")));
    let record = ExplainRecord { system: plan.name.clone(), load: plan.load.named(), explanation };
    let arms = std::iter::once(base).chain(changed).collect();
    bench.finish(Experiment::Explain(record), arms, checks::of_limits)
}

/// Whether the latencies that are explained, those of an arm without a change, are the target's.
fn punctuality(about: About, runs: &[RunRecord], arm: &str) -> Option<Check> {
    let base: Vec<&RunRecord> = runs.iter().filter(|run| run.arm == arm).collect();
    (about == About::Latency).then(|| checks::schedule_is_kept(&base))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::Weight;
    use crate::sample;

    #[test]
    fn latencies_of_a_late_generator_are_not_explained() {
        let mut runs = sample::result().runs;
        runs.retain(|run| run.latency.is_some());
        let is_kept = |runs: &[RunRecord]| {
            let check = punctuality(About::Latency, runs, "direct");
            check.map(|check| (check.passed, check.weight))
        };
        assert_eq!(is_kept(&runs), Some((true, Weight::Validity)));
        let late = |runs: &mut [RunRecord], arm: &str| {
            for run in runs.iter_mut().filter(|run| run.arm == arm) {
                run.host.busy_ticks += 1_000;
            }
        };
        late(&mut runs, "proxy");
        assert_eq!(is_kept(&runs), Some((true, Weight::Validity)));
        late(&mut runs, "direct");
        assert_eq!(is_kept(&runs), Some((false, Weight::Validity)));
        assert!(punctuality(About::Rate, &runs, "direct").is_none());
    }
}
