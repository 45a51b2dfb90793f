//! The finding of each part, in one sentence per system.

use super::table::{ends, outcome, reached};
use super::{latency, of_run, size, time};
use crate::metric::Metric;
use crate::partitions::{CurvePoint, Failure, Part, PartitionsRecord, full_speed_case};
use crate::result::RunResult;
use moldau_measure::numbers::Unit;
use moldau_measure::numbers::{number, thousands};
use moldau_measure::statistics::float;

/// Partitions of the point that larger ones are held against: a handful of partitions is where
/// systems are at their best.
const REFERENCE_PARTITIONS: u32 = 10;

/// Whether a part went to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// The whole plan was carried out.
    Whole,
    /// The system failed at some point.
    Failed,
    /// Records that had been acknowledged did not come back.
    Lost,
    /// It was not run.
    Omitted,
}

impl Outcome {
    /// In a table.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Whole => "done",
            Self::Failed => "failed",
            Self::Lost => "lost records",
            Self::Omitted => "not run",
        }
    }
}

/// The finding of a part for one system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Finding {
    pub(super) part: Part,
    pub(super) arm: String,
    pub(super) outcome: Outcome,
    pub(super) sentence: String,
}

impl Part {
    /// Its name in reports.
    pub(super) fn words(self) -> &'static str {
        match self {
            Self::Curve => "load over partitions",
            Self::Creation => "making partitions",
            Self::Restart => "kill and restart",
            Self::Reassignment => "reassignment",
        }
    }
}

/// The findings of a result, part by part.
pub(super) fn findings(result: &RunResult) -> Vec<Finding> {
    let Some(record) = &result.partitions else { return Vec::new() };
    let mut findings = Vec::new();
    for part in [Part::Curve, Part::Creation, Part::Restart, Part::Reassignment] {
        for arm in &result.arms {
            let of_part = |omitted: &&crate::partitions::Omitted| {
                omitted.part == part && omitted.arm == arm.name
            };
            let found = match record.omitted.iter().find(of_part) {
                Some(omitted) => Some((Outcome::Omitted, format!("{}.", omitted.reason))),
                None => match part {
                    Part::Curve => curve(result, record, &arm.name),
                    Part::Creation => creation(record, &arm.name),
                    Part::Restart => restart(record, &arm.name),
                    Part::Reassignment => reassignment(record, &arm.name),
                },
            };
            let Some((outcome, sentence)) = found else { continue };
            findings.push(Finding { part, arm: arm.name.clone(), outcome, sentence });
        }
    }
    findings
}

type Found = Option<(Outcome, String)>;

fn curve(result: &RunResult, record: &PartitionsRecord, arm: &str) -> Found {
    let points: Vec<&CurvePoint> = record.curve.iter().filter(|point| point.arm == arm).collect();
    let failed = points.iter().find(|point| point.failure.is_some());
    let held = points.iter().rev().find(|point| point.failure.is_none());
    let reference = points.iter().find(|point| point.partitions >= REFERENCE_PARTITIONS);
    let mut parts = Vec::new();
    if let Some(last) = held {
        parts.push(load(result, last, reference.copied()));
    }
    if let Some((point, failure)) = failed.and_then(|point| Some((point, point.failure.as_ref()?)))
    {
        let partitions = thousands(point.partitions.into());
        parts.push(format!("It fails at {partitions} partitions, {}.", told(failure)));
    }
    let outcome = if failed.is_some() { Outcome::Failed } else { Outcome::Whole };
    (!parts.is_empty()).then(|| (outcome, parts.join(" ")))
}

/// The largest point that held, against the reference.
fn load(result: &RunResult, last: &CurvePoint, reference: Option<&CurvePoint>) -> String {
    let speed = |point: &CurvePoint| {
        let case = full_speed_case(point.partitions);
        of_run(result, &case, point, Metric::ProduceThroughput)
    };
    let mut text = format!("{} partitions", thousands(last.partitions.into()));
    if last.partitions > last.written.into() {
        text += &format!(" of which {} are written", thousands(last.written.into()));
    }
    if let Some(found) = speed(last) {
        text += &format!(" take {} MB/s", number(found, Unit::MegabytesPerSecond));
        let other = reference.filter(|point| point.partitions < last.partitions);
        if let Some((point, base)) = other.and_then(|point| Some((point, speed(point)?))) {
            let share = found / base * 100.0;
            text += &format!(", {share:.0} % of what {} take", thousands(point.partitions.into()));
        }
    }
    if let Some(p99) = latency(result, last, Metric::ResponseP99) {
        text += &format!(", p99 {} ms", number(p99, Unit::Milliseconds));
        let other = reference.filter(|point| point.partitions < last.partitions);
        let base = other.and_then(|point| latency(result, point, Metric::ResponseP99));
        if let Some(base) = base {
            text += &format!(" against {} ms", number(base, Unit::Milliseconds));
        }
    }
    if let Some(held) = last.loaded {
        let (memory, descriptors) = (size(Some(held.resident_bytes)), thousands(held.descriptors));
        text += &format!(", with {memory} resident, {descriptors} descriptors");
        text += &format!(" and {} maps", thousands(held.maps));
    }
    text + "."
}

fn creation(record: &PartitionsRecord, arm: &str) -> Found {
    let mut parts = Vec::new();
    let mut has_failed = false;
    let made = record.at_once.iter().filter(|made| made.arm == arm);
    let (largest, refused) = made.fold((None, None), |(largest, refused), made| {
        (made.creation.map(|found| (made, found)).or(largest), refused.or(made.failure.as_ref()))
    });
    if let Some((made, creation)) = largest {
        parts.push(format!(
            "{} partitions at once are answered in {} and usable in {}.",
            thousands(made.partitions.into()),
            time(creation.answered_ns),
            time(creation.usable_ns)
        ));
    }
    if let Some(failure) = refused {
        has_failed = true;
        parts.push(format!("More at once fail, {}.", told(failure)));
    }
    for (growths, noun) in [(&record.grown, "partitions"), (&record.topics, "topics")] {
        let Some(growth) = growths.iter().find(|growth| growth.arm == arm) else { continue };
        let total = thousands(reached(growth).into());
        let step = thousands(growth.step.into());
        let mut text = format!("{total} {noun} in steps of {step}");
        if let Some([first, last]) = ends(growth) {
            let (first_time, last_time) = (time(first), time(last));
            let times = float(last) / float(first.max(1));
            text += &format!(": {first_time} a step at first, {last_time} at last ({times:.1}x)");
        }
        if let Some(failure) = &growth.failure {
            has_failed = true;
            text += &format!("; then it fails, {}", told(failure));
        } else if growth.time_was_up {
            text += &format!("; time was up before {}", thousands(growth.intended.into()));
        }
        parts.push(text + ".");
    }
    let outcome = if has_failed { Outcome::Failed } else { Outcome::Whole };
    (!parts.is_empty()).then(|| (outcome, parts.join(" ")))
}

fn restart(record: &PartitionsRecord, arm: &str) -> Found {
    let restarts: Vec<_> = record.restarts.iter().filter(|restart| restart.arm == arm).collect();
    let mut outcome = Outcome::Whole;
    let mut parts = Vec::new();
    for restart in &restarts {
        let (partitions, data) = (thousands(restart.partitions.into()), size(Some(restart.bytes)));
        let what = format!("{partitions} partitions and {data}");
        if let Some(failure) = &restart.failure {
            outcome = Outcome::Failed;
            parts.push(format!("With {what} it fails, {}.", told(failure)));
        } else if let (Some(port), Some(first)) = (restart.port_ns, restart.produced_ns) {
            let (port, first) = (time(port), time(first));
            parts.push(format!("With {what}: port open after {port}, first record {first}."));
        }
    }
    let audits = || restarts.iter().filter_map(|restart| restart.audit.as_ref());
    if audits().any(|audit| !audit.is_clean()) {
        outcome = Outcome::Lost;
        let faults: u64 = audits().map(|audit| audit.faults()).sum();
        parts.push(format!("{} faults in what was read back.", thousands(faults)));
    }
    (!parts.is_empty()).then(|| (outcome, parts.join(" ")))
}

fn reassignment(record: &PartitionsRecord, arm: &str) -> Found {
    let found = record.reassignments.iter().find(|moved| moved.arm == arm)?;
    let partitions = thousands(found.partitions.into());
    if let Some(failure) = &found.failure {
        let left = thousands(found.left);
        let text = format!("{partitions} partitions: it fails, {}; {left} left.", told(failure));
        return Some((Outcome::Failed, text));
    }
    let moved = found.moved_ns.map_or_else(|| "an unknown time".into(), time);
    let brokers = found.brokers;
    let text = format!("{partitions} empty partitions moved between {brokers} brokers in {moved}.");
    Some((Outcome::Whole, text))
}

fn told(failure: &Failure) -> String {
    format!("{}: {}", failure.during, outcome(failure))
}
