//! Checks of the laboratory itself, before it publishes a figure.
//!
//! A generator that was itself the limit, a schedule that was not kept, a record that did not
//! come back: each makes the figures of a run worthless, so the run is refused instead.

mod fetches;
mod machine;
mod workers;

use serde::{Deserialize, Serialize};

use crate::punctuality::{
    FOREIGN_SHARE_MAX_UNPACED, are_enough_in_time, are_enough_left_alone, by_arm, cannot_keep_up,
    is_bunched, is_disturbed, is_late, is_saturated, is_scheduled, lag_and_limit,
};
use moldau_load::ledger::{Audit, Detection};
use moldau_load::run::RunRecord;
use moldau_load::workload::Pace;
use moldau_measure::statistics::{PAIRS_MIN, float};

/// Share of one processor that a generator thread may use: above it, a thread may have been late
/// because of itself.
pub(crate) const THREAD_SHARE_MAX: f64 = 0.8;

/// Share of the intended operations that must have been answered.
const ANSWERED_SHARE_MIN: f64 = 0.99;

/// The verdict on the experiment, with the exit code of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The figures hold.
    Ok,
    /// The figures hold and an objective was missed.
    ObjectiveFailed,
    /// An acknowledged record was lost, damaged, duplicated, reordered or misplaced.
    RecordsLost,
    /// The figures do not hold.
    Invalid,
    /// The environment kept the experiment from happening.
    Environment,
}

impl Verdict {
    /// The exit code of `moldau lab`.
    #[must_use]
    pub fn exit_code(self) -> u8 {
        match self {
            Self::Ok => 0,
            Self::ObjectiveFailed => 1,
            Self::RecordsLost => 2,
            Self::Invalid => 3,
            Self::Environment => 4,
        }
    }

    /// The verdict that follows from `checks`. Lost records weigh more than an invalid run, since
    /// they are a fact about the target whatever the figures are worth.
    #[must_use]
    pub fn of(checks: &[Check]) -> Self {
        let failed = |weight| checks.iter().any(|check| !check.passed && check.weight == weight);
        if failed(Weight::Records) {
            Self::RecordsLost
        } else if failed(Weight::Validity) {
            Self::Invalid
        } else if failed(Weight::Objective) {
            Self::ObjectiveFailed
        } else {
            Self::Ok
        }
    }
}

/// What a failed check means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Weight {
    /// Records were lost or damaged.
    Records,
    /// The figures do not hold.
    Validity,
    /// A wish of the operator was not met.
    Objective,
    /// A note for the reader. The figures hold.
    Note,
}

/// One check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Check {
    /// What was checked.
    pub name: String,
    /// Whether it holds.
    pub passed: bool,
    /// What a failure means.
    pub weight: Weight,
    /// What was found, at its worst.
    pub found: String,
    /// What was demanded.
    pub demanded: String,
}

/// All checks of an experiment.
#[must_use]
pub fn all(runs: &[RunRecord], audit: &Audit, self_test: &Detection) -> Vec<Check> {
    let mut checks = demands(runs, Saturation::Refused, audit, self_test);
    checks.extend(fetches::check(runs, Weight::Validity));
    checks
}

/// How runs are treated whose target cannot keep up with the rate.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Saturation {
    /// They are judged like all other runs.
    Refused,
    /// They are a finding. Their latencies are not published.
    Told,
    /// They are the goal: rates rise until the machine is full. From then on the generator may be
    /// late or busy beside any arm.
    LookedFor,
}

/// What is demanded of all runs, and of those at a fixed rate.
fn demands(
    runs: &[RunRecord],
    saturation: Saturation,
    audit: &Audit,
    self_test: &Detection,
) -> Vec<Check> {
    let scheduled: Vec<&RunRecord> = runs.iter().filter(|run| is_scheduled(run)).collect();
    let is_judged = |run: &&RunRecord| saturation == Saturation::Refused || !is_saturated(run);
    let kept: Vec<&RunRecord> = scheduled.iter().copied().filter(is_judged).collect();
    let arms = by_arm(&scheduled).into_iter();
    let claimed = arms.filter(|arm| saturation == Saturation::Refused || !cannot_keep_up(arm));
    let claimed: Vec<&RunRecord> = claimed.flatten().filter(is_judged).collect();
    let unpaced: Vec<&RunRecord> = runs.iter().filter(|run| !is_scheduled(run)).collect();
    let mut checks =
        vec![records_come_back(audit), totals_agree(runs), ledger_finds_faults(self_test)];
    if !scheduled.is_empty() {
        match saturation {
            Saturation::Refused => checks.push(schedule_is_kept(&claimed)),
            Saturation::Told => {
                let firsts = firsts_of_cases(&scheduled);
                let is_first = |run: &&RunRecord| firsts.contains(&(&run.case, &run.arm));
                let (firsts, others) = claimed.into_iter().partition::<Vec<_>, _>(is_first);
                checks.push(schedule_is_kept(&firsts));
                checks.push(latencies_are_known(&others));
            }
            Saturation::LookedFor => checks.push(latencies_are_known(&claimed)),
        }
        checks.push(late_runs_are_told(&kept));
        // Load from other processes is reported as lateness, unless lateness is refused at once.
        let is_own = |run: &&RunRecord| saturation == Saturation::Refused || !is_disturbed(run);
        let own: Vec<&RunRecord> = kept.iter().copied().filter(is_own).collect();
        checks.push(operations_are_answered(&own));
        checks.push(nothing_is_shed(&own));
        let weight = match saturation {
            Saturation::Refused | Saturation::Told => Weight::Validity,
            Saturation::LookedFor => Weight::Note,
        };
        checks.push(generator_has_room(&scheduled, "generator thread at a fixed rate", weight));
    }
    if !unpaced.is_empty() {
        checks.push(generator_has_room(
            &unpaced,
            "client thread at full speed (above it, throughput is a lower bound)",
            Weight::Note,
        ));
        checks.push(silent_runs_are_told(&unpaced));
        checks.push(full_speed_is_the_systems(&unpaced));
    }
    checks.extend(machine::checks(runs));
    checks.extend(workers::checks(runs));
    checks
}

/// The checks of an experiment that drives systems to their limits: points that were not
/// sustained, and those whose generator was late, are marked one by one and not shown as figures.
#[must_use]
pub fn of_limits(runs: &[RunRecord], audit: &Audit, self_test: &Detection) -> Vec<Check> {
    let unpaced: Vec<&RunRecord> = runs.iter().filter(|run| !is_scheduled(run)).collect();
    let mut checks =
        vec![records_come_back(audit), totals_agree(runs), ledger_finds_faults(self_test)];
    if audit.acked == 0 {
        // Partitions may be made only, and systems may fail before anything is read back: neither
        // loses a record, but without any the figures of runs would hold by nothing.
        checks.retain(|check| check.weight != Weight::Records);
    }
    if !runs.is_empty() {
        checks.push(something_is_read_back(runs, audit));
        checks.push(generator_has_room(
            &unpaced,
            "client thread at full speed (above it, throughput is a lower bound)",
            Weight::Note,
        ));
        checks.extend(machine::checks(runs));
    }
    checks
}

/// As [`all`], for an experiment whose arms may be slower than the rates that they are offered, or
/// take so much of the machine that the generator is late. The throughput and processor time of
/// such an arm hold. Its latencies are not shown, and a goal that needs them is not judged. The
/// first arm is the baseline, so it must have latencies.
#[must_use]
pub fn of_arms(runs: &[RunRecord], audit: &Audit, self_test: &Detection) -> Vec<Check> {
    let checks = demands(runs, Saturation::Told, audit, self_test);
    with_arms(checks, runs, Weight::Validity)
}

/// As [`of_arms`], for an experiment that repeats a published one. If its times are the wait of a
/// fetch, that is the finding.
#[must_use]
pub fn of_published(runs: &[RunRecord], audit: &Audit, self_test: &Detection) -> Vec<Check> {
    let checks = demands(runs, Saturation::Told, audit, self_test);
    with_arms(checks, runs, Weight::Note)
}

/// As [`of_arms`], for an experiment whose rates rise as far as arms can follow, or whose codecs
/// take the generator's own time: no arm must have latencies, and a load without any is reported
/// without them.
#[must_use]
pub fn of_curves(runs: &[RunRecord], audit: &Audit, self_test: &Detection) -> Vec<Check> {
    let checks = demands(runs, Saturation::LookedFor, audit, self_test);
    with_arms(checks, runs, Weight::Validity)
}

/// The checks, with notes on arms that cannot keep up and on fetches that wait.
fn with_arms(mut checks: Vec<Check>, runs: &[RunRecord], of_fetches: Weight) -> Vec<Check> {
    checks.push(arms_keep_up(runs));
    checks.extend(fetches::check(runs, of_fetches));
    checks
}

fn arms_keep_up(runs: &[RunRecord]) -> Check {
    let mut arms: Vec<(&str, &str)> = Vec::new();
    for run in runs.iter().filter(|run| is_saturated(run)) {
        if !arms.contains(&(&run.arm, &run.case)) {
            arms.push((&run.arm, &run.case));
        }
    }
    let words = arms.into_iter().map(|(arm, case)| {
        let of_arm: Vec<&RunRecord> =
            runs.iter().filter(|run| run.arm == arm && run.case == case).collect();
        let count = of_arm.iter().filter(|run| is_saturated(run)).count();
        format!("{arm} ({case}, {count} of {} runs)", of_arm.len())
    });
    let found: Vec<String> = words.collect();
    Check {
        name: "arms that cannot keep up with a rate".into(),
        passed: found.is_empty(),
        weight: Weight::Note,
        found: if found.is_empty() { "none".into() } else { found.join("; ") },
        demanded: "none".into(),
    }
}

/// The checks of an experiment whose figures are processor times at given rates: a late generator
/// changes when operations come, not how many, and no latency is reported.
#[must_use]
pub fn of_costs(runs: &[RunRecord], audit: &Audit, self_test: &Detection) -> Vec<Check> {
    let scheduled: Vec<&RunRecord> = runs.iter().filter(|run| is_scheduled(run)).collect();
    let mut checks = vec![
        records_come_back(audit),
        totals_agree(runs),
        ledger_finds_faults(self_test),
        operations_are_answered(&scheduled),
        nothing_is_shed(&scheduled),
    ];
    checks.extend(machine::checks(runs));
    checks
}

fn something_is_read_back(runs: &[RunRecord], audit: &Audit) -> Check {
    Check {
        name: "the records of at least one run are read back".into(),
        passed: audit.acked > 0,
        weight: Weight::Validity,
        found: format!("{} runs, {} records audited", runs.len(), audit.acked),
        demanded: "a record of any run".into(),
    }
}

pub(crate) fn records_come_back(audit: &Audit) -> Check {
    let all_back = audit.is_clean() && audit.acked > 0;
    Check {
        name: "every acknowledged record is read back once, intact, in order, at its offset".into(),
        passed: all_back,
        weight: Weight::Records,
        found: format!("{} acknowledged, {} faults", audit.acked, audit.faults()),
        demanded: "0 faults".into(),
    }
}

/// The target's own count is independent of everything that the generator knows. Records without
/// an answer may or may not be in it. What one run holds too many makes up for no other.
fn totals_agree(runs: &[RunRecord]) -> Check {
    let agrees =
        |Audit { acked, unknown, .. }: Audit, held| (acked..=acked + unknown).contains(&held);
    let differing = runs.iter().filter(|run| !agrees(run.audit, run.held_records)).count();
    let sum = |of: fn(&RunRecord) -> u64| runs.iter().map(of).sum::<u64>();
    let (held, acked) = (sum(|run| run.held_records), sum(|run| run.audit.acked));
    Check {
        name: "the target's own count of records agrees".into(),
        passed: differing == 0,
        weight: Weight::Records,
        found: match differing {
            0 => format!("{held} by its end offsets"),
            runs => format!("{held} by its end offsets; {runs} runs differ"),
        },
        demanded: match sum(|run| run.audit.unknown) {
            0 => format!("{acked} acknowledged"),
            unknown => format!("{acked} acknowledged, or {unknown} more without an answer"),
        },
    }
}

fn ledger_finds_faults(self_test: &Detection) -> Check {
    let Detection { expected, found } = self_test;
    Check {
        name: "the ledger finds planted faults".into(),
        passed: self_test.is_complete(),
        weight: Weight::Validity,
        found: format!("{} of {} signs", found.faults(), expected.faults()),
        demanded: "all, and no other".into(),
    }
}

/// Latencies are claimed for each of these arms in its case. The check reports the arm with the
/// fewest runs for them.
pub(crate) fn schedule_is_kept(runs: &[&RunRecord]) -> Check {
    let in_time = |of_arm: &[&RunRecord]| of_arm.iter().filter(|run| !is_late(run)).count();
    let arms = by_arm(runs);
    let few = arms.iter().find(|of_arm| !are_enough_in_time(of_arm));
    let worst = few.or_else(|| {
        let late = arms.iter().filter(|of_arm| in_time(of_arm) < of_arm.len());
        late.min_by_key(|of_arm| 1000 * in_time(of_arm) / of_arm.len())
    });
    let all_are_late = runs.iter().all(|run| is_late(run));
    let told = runs.iter().filter(|run| all_are_late || !is_late(run));
    let lag =
        told.filter_map(|run| lag_and_limit(run)).map(|(lag, _)| lag).fold(0.0, f64::max) / 1e6;
    let found = match worst.and_then(|of_arm| Some((of_arm, of_arm.first()?))) {
        Some((of_arm, RunRecord { case, arm, .. })) => {
            format!("{} of {} runs in time ({case}, {arm})", in_time(of_arm), of_arm.len())
        }
        None => "all runs in time".into(),
    };
    Check {
        name: "the schedule is kept: runs of each arm and case that have latencies".into(),
        passed: few.is_none(),
        weight: Weight::Validity,
        found: format!("{found}; lag of their generator, p99: {lag:.2} ms at most"),
        demanded: format!("{PAIRS_MIN} if there are as many, and half of them"),
    }
}

/// Case and arm of each baseline: the arm that the others of its case are compared with.
fn firsts_of_cases<'a>(runs: &[&'a RunRecord]) -> Vec<(&'a String, &'a String)> {
    let mut firsts: Vec<(&String, &String)> = Vec::new();
    for run in runs {
        if firsts.iter().all(|(case, _)| *case != &run.case) {
            firsts.push((&run.case, &run.arm));
        }
    }
    firsts
}

/// Arms that have too few runs in time for latencies are shown without.
fn latencies_are_known(runs: &[&RunRecord]) -> Check {
    let arms = by_arm(runs);
    let few = arms.iter().filter(|of_arm| !are_enough_in_time(of_arm));
    let words: Vec<String> = few
        .filter_map(|of_arm| {
            let RunRecord { case, arm, .. } = of_arm.first()?;
            let late = of_arm.iter().filter(|run| is_late(run)).count();
            Some(format!("{arm} ({case}, late in {late} of {} runs)", of_arm.len()))
        })
        .collect();
    Check {
        name: "arms without latencies, since the generator was late beside them".into(),
        passed: words.is_empty(),
        weight: Weight::Note,
        found: if words.is_empty() { "none".into() } else { words.join("; ") },
        demanded: "none".into(),
    }
}

/// Latencies cover fewer runs than were made. The report says how many each arm lacks.
fn late_runs_are_told(runs: &[&RunRecord]) -> Check {
    let late: Vec<&RunRecord> = runs.iter().copied().filter(|run| is_late(run)).collect();
    let mut cases: Vec<(&str, Vec<String>)> = Vec::new();
    for of_arm in by_arm(&late) {
        let Some(RunRecord { case, arm, .. }) = of_arm.first() else { continue };
        let words = format!("{arm} {}", of_arm.len());
        match cases.iter_mut().find(|(of, _)| of == case) {
            Some((_, arms)) => arms.push(words),
            None => cases.push((case, vec![words])),
        }
    }
    let words = cases.into_iter().map(|(case, arms)| format!("{case}: {}", arms.join(", ")));
    let bunched = late.iter().filter(|run| is_bunched(run)).count();
    let found = match late.len() {
        0 => "none".into(),
        count => format!(
            "{count} of {}, {bunched} of them without processor time ({})",
            runs.len(),
            words.collect::<Vec<_>>().join("; ")
        ),
    };
    Check {
        name: "runs without latencies because the generator was late".into(),
        passed: late.is_empty(),
        weight: Weight::Note,
        found,
        demanded: "none".into(),
    }
}

fn operations_are_answered(runs: &[&RunRecord]) -> Check {
    let share = |run: &&RunRecord| float(run.answered) / float(run.offered.max(1));
    let worst = runs.iter().map(share).fold(1.0, f64::min);
    Check {
        name: "the intended rate is reached".into(),
        passed: worst >= ANSWERED_SHARE_MIN,
        weight: Weight::Validity,
        found: format!("{:.2} % of the operations answered", worst * 100.0),
        demanded: format!(">= {:.0} %", ANSWERED_SHARE_MIN * 100.0),
    }
}

fn nothing_is_shed(runs: &[&RunRecord]) -> Check {
    let shed: u64 = runs.iter().map(|run| run.shed).sum();
    Check {
        name: "the rate is sustained: operations that were never offered".into(),
        passed: shed == 0,
        weight: Weight::Validity,
        found: shed.to_string(),
        demanded: "0".into(),
    }
}

fn generator_has_room(runs: &[&RunRecord], what: &str, weight: Weight) -> Check {
    let worst = runs.iter().map(|run| run.generator_thread_share()).fold(0.0, f64::max);
    Check {
        name: format!("busiest {what}"),
        passed: worst < THREAD_SHARE_MAX,
        weight,
        found: format!("{:.0} % of a processor", worst * 100.0),
        demanded: format!("< {:.0} %", THREAD_SHARE_MAX * 100.0),
    }
}

/// A rate of nothing is in no median and in no ratio, so that those would be of the other runs
/// alone.
fn silent_runs_are_told(runs: &[&RunRecord]) -> Check {
    let is_silent =
        |run: &&RunRecord| run.produced_records == 0 && run.workload.pace != Pace::ReadBack;
    let silent: Vec<&RunRecord> = runs.iter().copied().filter(is_silent).collect();
    let words = by_arm(&silent).into_iter().filter_map(|of_arm| {
        let RunRecord { case, arm, .. } = of_arm.first()?;
        let all = runs.iter().filter(|run| (&run.case, &run.arm) == (case, arm)).count();
        Some(format!("{arm} ({case}, {} of {all} runs)", of_arm.len()))
    });
    let found: Vec<String> = words.collect();
    Check {
        name:
            "runs at full speed without an acknowledgement in their window, which no figure holds"
                .into(),
        passed: found.is_empty(),
        weight: Weight::Note,
        found: if found.is_empty() { "none".into() } else { found.join("; ") },
        demanded: "none".into(),
    }
}

/// A rate beside other busy processes does not show what a system can do.
fn full_speed_is_the_systems(runs: &[&RunRecord]) -> Check {
    let arms = by_arm(runs);
    let share = |of_arm: &[&RunRecord]| {
        let disturbed = of_arm.iter().filter(|run| is_disturbed(run)).count();
        (1_000 * disturbed / of_arm.len().max(1), disturbed)
    };
    let mut few: Vec<_> = arms.iter().filter(|of_arm| !are_enough_left_alone(of_arm)).collect();
    few.sort_by_key(|of_arm| std::cmp::Reverse(share(of_arm)));
    let words = few.iter().filter_map(|of_arm| {
        let (RunRecord { case, arm, .. }, (_, disturbed)) = (of_arm.first()?, share(of_arm));
        Some(format!("{arm} ({case}, {disturbed} of {} runs disturbed)", of_arm.len()))
    });
    // The worst first, since a short page may cut the rest.
    let found = format!(
        "{} of {} arms and cases, worst {}",
        few.len(),
        arms.len(),
        words.collect::<Vec<_>>().join("; ")
    );
    Check {
        name: format!(
            "runs at full speed in which hypervisor and other processes took less than {:.0} % \
             of the machine",
            FOREIGN_SHARE_MAX_UNPACED * 100.0
        ),
        passed: few.is_empty(),
        weight: Weight::Validity,
        found: if few.is_empty() { "most of each".into() } else { found },
        demanded: "most of each arm and case".into(),
    }
}

#[cfg(test)]
mod tests;
