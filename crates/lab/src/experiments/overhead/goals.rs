//! What the fronts should reach: our proxy against a bare relay and against Kroxylicious. A goal
//! whose arms are not all there, or none of whose cases is, is not judged.

use super::{CATCH_UP, FULL_SPEED, Plan, SINGLE, batch_name};
use crate::checks::{Check, Weight};
use crate::experiments::fronts::Front;
use crate::metric::Metric;
use crate::objective::{Bound, Objective};
use crate::punctuality::cannot_keep_up;
use crate::result::Arm;
use moldau_load::run::RunRecord;
use moldau_load::workload::BYTES_PER_MB;
use moldau_measure::statistics::float;

/// Memory of our proxy before anything passed through it, MB.
const IDLE_MB_MAX: f64 = 20.0;

/// The most that a batch of this size may cost the proxy with encryption: CPU-ms per MB, and its
/// share of what Kroxylicious takes.
const ENCRYPTION: [(usize, f64, f64); 2] = [(16, 2.5, 0.2), (128, 1.6, 0.5)];

/// The most that the proxy without a filter may cost, in multiples of a bare relay.
const PASSTHROUGH_RELAYS_MAX: f64 = 1.5;

/// The least share of the direct reading rate that readers get who catch up through the proxy.
const CATCH_UP_MIN: [(Front, f64); 2] = [(Front::PASSTHROUGH, 0.95), (Front::ENCRYPTION, 0.7)];

/// The most that encryption may add to the median latency of single-record requests.
const SINGLE_RATIO_MAX: f64 = 1.5;

/// One thing to reach, in every case whose name contains a word.
struct Goal {
    name: String,
    cases: String,
    metric: Metric,
    front: Front,
    bound: Bound,
    /// The front in the bound.
    baseline: Option<Front>,
}

/// Every goal that can be judged.
pub(super) fn checks(plan: &Plan, runs: &[RunRecord], arms: &[Arm]) -> Vec<Check> {
    let is_there = |front: Front| arms.iter().any(|arm| arm.name == front.name());
    let cases = plan.cases();
    let names: Vec<&str> = cases.iter().flat_map(super::Case::names).collect();
    let goals = goals().into_iter().filter(|goal| {
        let has_arms = is_there(goal.front) && goal.baseline.is_none_or(is_there);
        has_arms && names.iter().any(|case| goal.covers(case))
    });
    let judged = goals.map(|goal| goal.check(&names, runs, plan.conditions.seed));
    judged.chain(arms.iter().filter_map(idle)).collect()
}

fn goals() -> Vec<Goal> {
    let mut goals = Vec::new();
    for (kilobytes, most, share) in ENCRYPTION {
        let batches = batch_name(kilobytes);
        let cpu = |name: String, front, bound, baseline| Goal {
            name: format!("{name}, {batches}"),
            cases: batches.clone(),
            metric: Metric::ProxyCpu,
            front,
            bound,
            baseline,
        };
        let at_most = |front: Front, ratio| {
            (Bound::RatioAtMost { baseline: front.name().into(), ratio }, Some(front))
        };
        let (bound, relay) = at_most(Front::RELAY, PASSTHROUGH_RELAYS_MAX);
        let name = "passthrough CPU, of a bare relay's".into();
        goals.push(cpu(name, Front::PASSTHROUGH, bound, relay));
        let bound = Bound::FigureAtMost(most);
        goals.push(cpu("encryption CPU".into(), Front::ENCRYPTION, bound, None));
        let (bound, peer) = at_most(Front::KROXYLICIOUS_ENCRYPTION, share);
        let name = "encryption CPU, of Kroxylicious's".into();
        goals.push(cpu(name, Front::ENCRYPTION, bound, peer));
    }
    for (front, ratio) in CATCH_UP_MIN {
        goals.push(Goal {
            name: format!("{front}, catching up, of the direct rate"),
            cases: CATCH_UP.into(),
            metric: Metric::ConsumeThroughput,
            front,
            bound: Bound::RatioAtLeast { baseline: Front::DIRECT.name().into(), ratio },
            baseline: Some(Front::DIRECT),
        });
    }
    let baseline = Front::PASSTHROUGH;
    goals.push(Goal {
        name: format!("encryption p50, of {baseline}'s, {SINGLE}"),
        cases: SINGLE.into(),
        metric: Metric::ResponseP50,
        front: Front::ENCRYPTION,
        bound: Bound::RatioAtMost { baseline: baseline.name().into(), ratio: SINGLE_RATIO_MAX },
        baseline: Some(baseline),
    });
    goals
}

impl Goal {
    /// Whether a case is one of its own. Reading back is judged apart from what is produced at a
    /// rate or at full speed.
    fn covers(&self, case: &str) -> bool {
        let is_catch_up = |case: &str| case.starts_with(CATCH_UP);
        case.contains(&self.cases) && is_catch_up(case) == is_catch_up(&self.cases)
    }

    /// What was found in each of its cases; all have to hold.
    fn check(&self, cases: &[&str], runs: &[RunRecord], seed: u64) -> Check {
        let judged: Vec<(&str, Check)> = cases
            .iter()
            .filter(|case| self.covers(case))
            .map(|case| {
                let objective = Objective {
                    name: self.name.clone(),
                    case: (*case).into(),
                    metric: self.metric,
                    arm: self.front.name().into(),
                    bound: self.bound.clone(),
                };
                let mut check = objective.check(runs, seed);
                if self.metric == Metric::ResponseP50 && self.is_saturated(case, runs) {
                    (check.passed, check.found) = (false, "saturated".into());
                }
                (*case, check)
            })
            .collect();
        let found = judged.iter().map(|(case, check)| match judged.len() {
            1 => check.found.clone(),
            _ => format!("{} {}", load_name(case), check.found),
        });
        Check {
            name: self.name.clone(),
            passed: judged.iter().all(|(_, check)| check.passed),
            weight: Weight::Objective,
            found: found.collect::<Vec<_>>().join(", "),
            demanded: judged.first().map_or_else(String::new, |(_, check)| check.demanded.clone()),
        }
    }

    /// Whether the front cannot keep up with the rate of a case, so that it has no latencies.
    fn is_saturated(&self, case: &str, runs: &[RunRecord]) -> bool {
        let of_front = |run: &&RunRecord| run.case == case && run.arm == self.front.name();
        cannot_keep_up(&runs.iter().filter(of_front).collect::<Vec<_>>())
    }
}

/// The part of a case's name that differs within a size of batches.
fn load_name(case: &str) -> &str {
    let load = case.split(',').next().unwrap_or(case);
    match load.strip_prefix(CATCH_UP) {
        Some(whence) => whence.trim_start(),
        None if load == FULL_SPEED => "full speed",
        None => load,
    }
}

/// Whether our proxy needs little memory when nothing passes through it.
fn idle(arm: &Arm) -> Option<Check> {
    let is_ours = [Front::PASSTHROUGH, Front::ENCRYPTION].iter().any(|f| f.name() == arm.name);
    let megabytes = float(arm.idle.filter(|_| is_ours)?.resident_bytes) / BYTES_PER_MB;
    Some(Check {
        name: format!("{}, memory when idle", arm.name),
        passed: megabytes <= IDLE_MB_MAX,
        weight: Weight::Objective,
        found: format!("{megabytes:.1} MB"),
        demanded: format!("<= {IDLE_MB_MAX} MB"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiments::Conditions;
    use crate::report::sample;
    use moldau_measure::cpu::ProcessUsage;
    use moldau_measure::resources::Resources;

    /// Three rounds of every case, in which an arm takes so much of a processor per MB, and reads
    /// back so many records in the time that all have.
    fn runs(plan: &Plan, fronts: &[(Front, u64, u64)]) -> Vec<RunRecord> {
        let sample = sample::result().runs.swap_remove(0);
        let mut runs = Vec::new();
        for case in plan.cases() {
            for name in case.names() {
                for (round, (front, cpu_ms, records)) in
                    (0..3).flat_map(|round| fronts.iter().map(move |front| (round, front)))
                {
                    let mut run = sample.clone();
                    (run.case, run.arm, run.pair) = (name.into(), front.name().into(), round);
                    (run.produced_records, run.consumed_records) = (0, *records);
                    // Nothing was offered that it could be behind with.
                    run.offered = 0;
                    let cpu_ns = cpu_ms * 1_000_000 * records / 1024;
                    let role = crate::systems::FRONT_ROLE.into();
                    run.processes = vec![ProcessUsage { role, cpu_ns, ..ProcessUsage::default() }];
                    runs.push(run);
                }
            }
        }
        runs
    }

    fn arms(fronts: &[(Front, u64, u64)], idle_mb: u64) -> Vec<Arm> {
        let idle = Resources { resident_bytes: idle_mb << 20, ..Resources::default() };
        let arm = |front: &Front| Arm { idle: Some(idle), ..Arm::of(front.name(), "") };
        fronts.iter().map(|(front, ..)| arm(front)).collect()
    }

    fn judged(fronts: &[(Front, u64, u64)], idle_mb: u64) -> Vec<(String, bool)> {
        let plan = Plan::usual("moldau".into(), Conditions::of_tests());
        let checks = checks(&plan, &runs(&plan, fronts), &arms(fronts, idle_mb));
        checks.into_iter().map(|check| (check.name, check.passed)).collect()
    }

    #[test]
    fn all_is_reached_when_our_proxy_is_cheap() {
        let all = [
            (Front::DIRECT, 0, 102_400),
            (Front::RELAY, 1, 102_400),
            (Front::PASSTHROUGH, 1, 102_400),
            (Front::ENCRYPTION, 1, 81_920),
            (Front::KROXYLICIOUS_ENCRYPTION, 9, 20_480),
        ];
        let found = judged(&all, 8);
        assert_eq!(found.len(), 6 + 2 + 1 + 2);
        let missed: Vec<&String> =
            found.iter().filter(|(_, passed)| !passed).map(|(name, _)| name).collect();
        assert!(missed.is_empty(), "{missed:?}");
    }

    #[test]
    fn nothing_is_reached_when_it_is_dear() {
        let all = [
            (Front::DIRECT, 0, 102_400),
            (Front::RELAY, 1, 102_400),
            (Front::PASSTHROUGH, 2, 92_160),
            (Front::ENCRYPTION, 9, 61_440),
            (Front::KROXYLICIOUS_ENCRYPTION, 9, 20_480),
        ];
        let reached: Vec<String> =
            judged(&all, 21).into_iter().filter(|(_, passed)| *passed).map(|(n, _)| n).collect();
        // All runs of the sample have the same latencies.
        assert_eq!(reached, ["encryption p50, of passthrough's, single-record requests"]);
    }

    #[test]
    fn latencies_of_an_arm_that_cannot_keep_up_reach_nothing() {
        let plan = Plan::usual("moldau".into(), Conditions::of_tests());
        let fronts = [(Front::PASSTHROUGH, 1, 1024), (Front::ENCRYPTION, 1, 1024)];
        let mut runs = runs(&plan, &fronts);
        let single = |check: &Check| check.name.contains(SINGLE);
        let judged = |runs: &[RunRecord]| {
            let checks = checks(&plan, runs, &arms(&fronts, 8));
            checks.into_iter().find(single).map(|check| (check.passed, check.found))
        };
        assert!(judged(&runs).is_some_and(|(passed, _)| passed));
        // Two rounds of three say so.
        let is_single = |run: &&mut RunRecord| run.case.contains(SINGLE) && run.arm == "encryption";
        for run in runs.iter_mut().filter(is_single).take(2) {
            run.offered = 1_000_000;
        }
        assert_eq!(judged(&runs), Some((false, "saturated".into())));
    }

    #[test]
    fn what_is_not_measured_is_not_judged() {
        let plan = Plan::usual("moldau".into(), Conditions::of_tests()).gateway();
        let fronts = [(Front::DIRECT, 0, 1024), (Front::PASSTHROUGH, 1, 1024)];
        let checks = checks(&plan, &runs(&plan, &fronts), &arms(&fronts, 8));
        let names: Vec<&str> = checks.iter().map(|check| check.name.as_str()).collect();
        assert_eq!(names, ["passthrough, memory when idle"]);
    }

    #[test]
    fn what_cannot_be_compared_is_not_judged() {
        let names = |fronts: &[(Front, u64, u64)]| -> Vec<String> {
            judged(fronts, 8).into_iter().map(|(name, _)| name).collect()
        };
        assert_eq!(
            names(&[(Front::ENCRYPTION, 1, 1024)]),
            [
                "encryption CPU, 16 KB batches",
                "encryption CPU, 128 KB batches",
                "encryption, memory when idle"
            ]
        );
        assert!(names(&[(Front::DIRECT, 0, 1024), (Front::RELAY, 1, 1024)]).is_empty());
    }
}
