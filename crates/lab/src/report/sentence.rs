//! The answer in one sentence.

use super::table::comparisons;
use crate::checks::{Check, Verdict, Weight};
use crate::metric::{Comparison, Metric};
use crate::result::{Experiment, RunResult};
use moldau_load::workload::Pace;
use moldau_measure::numbers::Unit;
use moldau_measure::numbers::{number, signed, thousands};

/// The answer to the experiment's question, or why there is none.
#[must_use]
pub fn sentence(result: &RunResult) -> String {
    match result.verdict {
        Verdict::RecordsLost => format!(
            "Acknowledged records did not come back as they were sent: {} lost, {} duplicated, \
             {} damaged, {} out of order or place, of {} acknowledged.",
            thousands(result.audit.lost),
            thousands(result.audit.duplicated),
            thousands(result.audit.damaged + result.audit.foreign),
            thousands(
                result.audit.reordered
                    + result.audit.misplaced
                    + result.audit.misrouted
                    + result.audit.offset_gaps
                    + result.audit.offset_regressions
            ),
            thousands(result.audit.acked),
        ),
        Verdict::Invalid | Verdict::Environment => {
            format!("The figures do not hold: {}.", failures(result).join("; "))
        }
        Verdict::Ok | Verdict::ObjectiveFailed => {
            let answer = match &result.experiment {
                Experiment::Overhead => overhead(result),
                Experiment::SideBySide => side_by_side(result),
                Experiment::Partitions => super::partitions::sentence(result),
                Experiment::Ceiling => super::ceiling::sentence(result),
                Experiment::Storage => goals(result).trim_start().to_string(),
                Experiment::SelfTest(_) => objectives(result),
                Experiment::Cores => super::sizing::sentence(result),
                Experiment::Explain(record) => super::explain::sentence(record),
                Experiment::Survey(record) => super::survey::sentence(result, record),
                Experiment::Soak(record) => super::soak::sentence(result, record),
                Experiment::Faults(record) => super::faults::sentence(result, record),
                Experiment::Imported(record) => super::imported::sentence(result, record),
                Experiment::Threads(record) => super::threads::sentence(result, record),
                Experiment::File(file) => {
                    format!("Expected: {} Found: {}", file.hypothesis.trim(), objectives(result))
                }
            };
            if result.audit.acked == 0 {
                return answer;
            }
            format!(
                "{answer} All {} acknowledged records were read back.",
                thousands(result.audit.acked)
            )
        }
    }
}

/// What was to be shown, each with what was found.
fn objectives(result: &RunResult) -> String {
    let wishes = result.checks.iter().filter(|check| check.weight == Weight::Objective);
    let parts: Vec<String> = wishes
        .map(|check| {
            let word = if check.passed { "as demanded" } else { "missed" };
            format!("{}: {} ({word}, {})", check.name, check.found, check.demanded)
        })
        .collect();
    if parts.is_empty() { "There was nothing to show.".into() } else { parts.join("; ") + "." }
}

fn failures(result: &RunResult) -> Vec<String> {
    let failed = result.checks.iter().filter(|c| !c.passed && c.weight == Weight::Validity);
    let words =
        |check: &Check| format!("{}: {} (demanded: {})", check.name, check.found, check.demanded);
    failed.map(words).collect()
}

fn overhead(result: &RunResult) -> String {
    let scheduled = result.runs.iter().find_map(|run| match run.workload.pace {
        Pace::Scheduled { per_second, .. } => Some((run, per_second)),
        Pace::Closed { .. } | Pace::Unpaced | Pace::ReadBack => None,
    });
    let ours = ["passthrough", "proxy"];
    let (baseline, others) = result.arms.split_first().unzip();
    let mut others = others.into_iter().flatten();
    let first = others.clone().next();
    let arm = others.find(|arm| ours.contains(&arm.name.as_str())).or(first);
    let (Some((run, per_second)), Some(arm)) = (scheduled, arm) else {
        return format!("There is nothing to compare at a fixed rate.{}", goals(result));
    };
    let against = match baseline.map_or("direct", |arm| arm.name.as_str()) {
        "direct" => String::new(),
        other => format!(", against {other},"),
    };
    let who = if ours.contains(&arm.name.as_str()) { "the proxy" } else { &arm.name };
    let find = |metric| {
        comparisons(result, &run.case, &arm.name).find(|comparison| comparison.metric == metric)
    };
    let effect = |metric| find(metric).map_or_else(String::new, change);
    let cost = find(Metric::ProxyCpu).and_then(|comparison| comparison.arm_median);
    let rate = run.megabytes(per_second);
    format!(
        "At {} MB/s{against} {who} {} the median publish latency, {} its 99th percentile, and \
         takes {} of processor time per MB that passes through it.",
        number(rate, Unit::MegabytesPerSecond),
        effect(Metric::ResponseP50),
        effect(Metric::ResponseP99),
        cost.map_or("an unknown amount".into(), |ms| {
            format!("{} ms", number(ms, Unit::CpuMillisecondsPerMegabyte))
        }),
    ) + &goals(result)
}

/// How many goals are reached, and which are not.
fn goals(result: &RunResult) -> String {
    let goals = || result.checks.iter().filter(|check| check.weight == Weight::Objective);
    let all = goals().count();
    let missed: Vec<String> = goals()
        .filter(|check| !check.passed)
        .map(|check| format!("{}: {} ({})", check.name, check.found, check.demanded))
        .collect();
    match (all, missed.is_empty()) {
        (0, _) => String::new(),
        (_, true) => format!(" All {all} goals are reached."),
        (_, false) => format!(
            " {} of {all} goals are reached; missed: {}.",
            all - missed.len(),
            missed.join("; ")
        ),
    }
}

/// What an arm does to a latency, with its interval or its bound.
fn change(comparison: &Comparison) -> String {
    let unit = comparison.metric.unit();
    let Some(effect) = &comparison.effect else {
        return "has an unknown effect on".into();
    };
    let difference = &effect.difference;
    if !difference.is_different() {
        return format!(
            "makes no difference above {} {} to",
            number(difference.equivalence_bound(), unit),
            unit.symbol()
        );
    }
    let (verb, preposition) = if difference.mean > 0.0 { ("adds", "to") } else { ("takes", "off") };
    let (mut low, mut high) = (difference.interval_95.low, difference.interval_95.high);
    if difference.mean < 0.0 {
        (low, high) = (-high, -low);
    }
    format!(
        "{verb} {} {} [{}, {}] {preposition}",
        number(difference.mean.abs(), unit),
        unit.symbol(),
        number(low, unit),
        number(high, unit)
    )
}

fn side_by_side(result: &RunResult) -> String {
    let (Some(baseline), Some(arm)) = (result.arms.first(), result.arms.get(1)) else {
        return "There was nothing to compare.".into();
    };
    let best = result.cases().into_iter().find_map(|case| {
        let find = |metric| {
            let found = comparisons(result, case, &arm.name).find(|c| c.metric == metric)?;
            Some((found.baseline_median?, found.arm_median?))
        };
        let (theirs, ours) = find(Metric::ProduceThroughput)?;
        let (their_cpu, our_cpu) = find(Metric::BrokerCpu)?;
        Some(format!(
            "{case}: {} takes {} MB/s at {} CPU-ms/MB, {} {} MB/s at {} CPU-ms/MB ({} of processor \
             time per MB).",
            arm.name,
            number(ours, Unit::MegabytesPerSecond),
            number(our_cpu, Unit::CpuMillisecondsPerMegabyte),
            baseline.name,
            number(theirs, Unit::MegabytesPerSecond),
            number(their_cpu, Unit::CpuMillisecondsPerMegabyte),
            signed((our_cpu / their_cpu - 1.0) * 100.0, Unit::MegabytesPerSecond) + " %",
        ))
    });
    best.unwrap_or_else(|| "No case has figures of both systems.".into())
}
