//! What struck a system while it was under load, and what became of its records and its clients.
//!
//! Everything follows from the runs, whose case is the fault. The schedule never stops: a record
//! that is due during an outage waits until the system answers again. So the longest wait is the
//! outage that clients see.

use serde::{Deserialize, Serialize};

use crate::survey::{Estimate, LeftOut};
use moldau_load::ledger::Audit;
use moldau_load::run::RunRecord;
use moldau_measure::statistics::float;

/// What such an experiment was about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FaultsRecord {
    /// When a run's fault strikes, ms after the start of its window.
    pub after_ms: u64,
    /// How long a process stands still where it is stopped, ms.
    pub stop_ms: u64,
    /// Systems that were not there, or have no process that could be struck.
    pub left_out: Vec<LeftOut>,
}

/// What strikes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Nothing.
    Nothing,
    /// All connections end, and new ones are taken at once.
    Cut,
    /// The broker stands still for a while (SIGSTOP).
    Stopped,
    /// The broker is killed (SIGKILL) and started again.
    Killed,
}

impl Fault {
    /// All, in the order of tables.
    pub const ALL: [Self; 4] = [Self::Nothing, Self::Cut, Self::Stopped, Self::Killed];

    /// Name of the case.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Nothing => "undisturbed",
            Self::Cut => "connections cut",
            Self::Stopped => "broker stopped",
            Self::Killed => "broker killed",
        }
    }

    /// The runs of this fault on a system.
    pub fn runs<'a>(
        self,
        runs: &'a [RunRecord],
        system: &'a str,
    ) -> impl Iterator<Item = &'a RunRecord> {
        runs.iter().filter(move |run| run.arm == system && run.case == self.name())
    }
}

/// What became of every record of some runs.
#[must_use]
pub fn audit<'a>(runs: impl Iterator<Item = &'a RunRecord>) -> Audit {
    runs.fold(Audit::default(), |sum, run| sum.plus(run.audit))
}

/// The longest time from when a record was due to its acknowledgement, seconds: the mean over the
/// runs. Whatever the share of late operations, the longest is the system's where it is long.
#[must_use]
pub fn longest_s<'a>(runs: impl Iterator<Item = &'a RunRecord>, seed: u64) -> Option<Estimate> {
    let longest = runs.filter_map(|run| run.latency.as_ref());
    let seconds: Vec<f64> = longest.map(|it| float(it.response.summary.max_ns) / 1e9).collect();
    Estimate::of(&seconds, seed, |value| value)
}
