//! What the machine itself did to the runs.

use super::{Check, Weight};
use moldau_load::run::RunRecord;
use moldau_measure::statistics::float;

/// Share of the machine that the hypervisor may take away.
const STEAL_SHARE_MAX: f64 = 0.02;

/// How much longer the same work may take beside one run than beside another.
const UNEVEN_MAX: f64 = 0.1;

pub(super) fn checks(runs: &[RunRecord]) -> Vec<Check> {
    std::iter::once(nothing_is_stolen(runs)).chain(processors_keep_their_speed(runs)).collect()
}

fn nothing_is_stolen(runs: &[RunRecord]) -> Check {
    let of_others = |run: &&RunRecord| run.host.steal_share_of_others();
    let worst = runs.iter().max_by(|one, other| of_others(one).total_cmp(&of_others(other)));
    let (others, all) = worst.map_or((0.0, 0.0), |run| (of_others(&run), run.host.steal_share()));
    let own = match all - others {
        0.0 => String::new(),
        own => format!(", beside {:.1} % for the machine's own traffic with its disk", own * 100.0),
    };
    Check {
        name: "time taken by the hypervisor, worst run".into(),
        passed: others < STEAL_SHARE_MAX,
        weight: Weight::Note,
        found: format!("{:.1} %{own}", others * 100.0),
        demanded: format!("< {:.0} %", STEAL_SHARE_MAX * 100.0),
    }
}

/// `None` where nobody measured.
fn processors_keep_their_speed(runs: &[RunRecord]) -> Option<Check> {
    let measured = || runs.iter().map(|run| run.host.yardstick_ns).filter(|ns| *ns > 0);
    let (shortest, longest) = (float(measured().min()?), float(measured().max()?));
    let longer = longest / shortest - 1.0;
    Some(Check {
        name: "how fast processors were, slowest run beside fastest".into(),
        passed: longer < UNEVEN_MAX,
        weight: Weight::Note,
        found: format!(
            "the same work took {:.1} to {:.1} us, {:.0} % longer",
            shortest / 1e3,
            longest / 1e3,
            longer * 100.0
        ),
        demanded: format!("< {:.0} % longer", UNEVEN_MAX * 100.0),
    })
}
