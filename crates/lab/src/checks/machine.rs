//! Checks of disturbances by the machine.

use super::{Check, Weight};
use moldau_load::run::RunRecord;

/// Share of the machine that the hypervisor may take away.
const STEAL_SHARE_MAX: f64 = 0.02;

pub(super) fn checks(runs: &[RunRecord]) -> Vec<Check> {
    let worst = runs.iter().map(|run| run.host.steal_share()).fold(0.0, f64::max);
    vec![Check {
        name: "time taken by the hypervisor, worst run".into(),
        passed: worst < STEAL_SHARE_MAX,
        weight: Weight::Note,
        found: format!("{:.1} %", worst * 100.0),
        demanded: format!("< {:.0} %", STEAL_SHARE_MAX * 100.0),
    }]
}
