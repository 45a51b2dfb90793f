//! The findings, tables and pages of a made-up result.

use super::finding::Outcome;
use super::*;
use crate::page::{html, markdown};
use crate::partitions::{
    ArmLimits, Batching, Created, Creation, Failure, Filling, Growth, GrowthStep, How, IdleCpu,
    LimitKind, Omitted, Part, PartitionsRecord, Reassignment, Restart, Wall, fixed_rate_case,
    full_speed_case,
};
use crate::result::{Experiment, RunResult};
use crate::sample;
use moldau_load::ledger::Audit;
use moldau_measure::resources::{Limits, Resources};

const COUNTS: [u32; 4] = [10, 1_000, 10_000, 1_000_000];

fn held(partitions: u32, is_frugal: bool) -> Resources {
    let per_partition = if is_frugal { 0 } else { u64::from(partitions) };
    Resources {
        resident_bytes: (150 << 20) + per_partition * 30_000,
        anonymous_bytes: 140 << 20,
        cache_bytes: is_frugal.then_some(128 << 20),
        descriptors: 30 + per_partition,
        maps: 100 + 2 * per_partition,
        threads: 8,
    }
}

fn refusal() -> Failure {
    Failure {
        during: "creating the topic".into(),
        how: How::Refused { code: "POLICY_VIOLATION".into() },
        words: "Unable to perform <excessively> large batch operation.".into(),
        wall: Some(Wall {
            limit: LimitKind::ControllerBatch,
            used: None,
            of: Some(10_000),
            evidence: "excessively large".into(),
        }),
    }
}

fn point(arm: &str, partitions: u32) -> CurvePoint {
    let is_frugal = arm == "moldau";
    let batching =
        Batching { records: 160_000, batches: 10_000, requests: 200, bytes: 163_840_000 };
    CurvePoint {
        arm: arm.into(),
        partitions,
        written: u16::try_from(partitions.min(10_000)).unwrap(),
        creation: Some(Creation { answered_ns: 1_000_000, usable_ns: 2_000_000, requests: 1 }),
        fresh: Some(held(partitions, is_frugal)),
        loaded: Some(held(partitions, is_frugal)),
        idle: Some(held(partitions, is_frugal)),
        idle_cpu: Some(IdleCpu {
            cpu_ns: 15_000_000,
            window_ns: 1_500_000_000,
            after_ns: 9_000_000_000,
        }),
        first_write_ns: Some(12_000_000),
        filling: Some(Filling { bytes: 5_000_000, took_ns: 40_000_000 }),
        full_speed: Some(batching),
        fixed_rate: Some(batching),
        disk_bytes: Some(1 << 30),
        ..CurvePoint::default()
    }
}

fn growth(arm: &str, failure: Option<Failure>) -> Growth {
    let step = |index: u32| GrowthStep {
        total: index * 1_000,
        answered_ns: 500_000,
        usable_ns: 1_000_000 * u64::from(index),
    };
    Growth {
        arm: arm.into(),
        step: 1_000,
        intended: 10_000,
        steps: (1..=10).map(step).collect(),
        failure,
        ..Growth::default()
    }
}

/// A result in which one system goes to the end and the other is refused at 10,000.
fn result() -> RunResult {
    let mut result = sample::result();
    let sampled = std::mem::take(&mut result.runs);
    result.experiment = Experiment::Partitions;
    result.comparisons.clear();
    let mut record = PartitionsRecord::default();
    for (arm, counts) in [("moldau", &COUNTS[..]), ("kafka", &COUNTS[..2])] {
        let limits = Limits { descriptors: Some(20_000), maps: Some(65_530), heap_bytes: None };
        record.limits.push(ArmLimits { arm: arm.into(), limits });
        for partitions in counts {
            record.curve.push(point(arm, *partitions));
            let scheduled = sampled.iter().find(|run| run.latency.is_some()).unwrap().clone();
            let mut unpaced = sampled.iter().find(|run| run.latency.is_none()).unwrap().clone();
            (unpaced.case, unpaced.arm) = (full_speed_case(*partitions), arm.into());
            let mut scheduled = scheduled;
            (scheduled.case, scheduled.arm) = (fixed_rate_case(*partitions), arm.into());
            result.runs.extend([unpaced, scheduled]);
        }
    }
    record.curve.push(CurvePoint {
        arm: "kafka".into(),
        partitions: 10_000,
        written: 10_000,
        failure: Some(refusal()),
        ..CurvePoint::default()
    });
    let creation = Creation { answered_ns: 400_000_000, usable_ns: 2_100_000_000, requests: 1 };
    record.at_once = vec![
        Created {
            arm: "moldau".into(),
            partitions: 1_000_000,
            creation: Some(creation),
            ..Created::default()
        },
        Created {
            arm: "kafka".into(),
            partitions: 10_000,
            failure: Some(refusal()),
            ..Created::default()
        },
    ];
    record.grown = vec![growth("moldau", None), growth("kafka", Some(refusal()))];
    let audit = Audit { sent: 5, acked: 5, delivered: 5, ..Audit::default() };
    record.restarts.push(Restart {
        arm: "moldau".into(),
        partitions: 1_000_000,
        written: 10_000,
        bytes: 10 << 30,
        port_ns: Some(900_000_000),
        produced_ns: Some(1_200_000_000),
        audit: Some(audit),
        ..Restart::default()
    });
    record.reassignments.push(Reassignment {
        arm: "kafka".into(),
        brokers: 3,
        partitions: 10_000,
        requests: 10,
        answered_ns: Some(1),
        moved_ns: Some(64_000_000_000),
        ..Reassignment::default()
    });
    let reason = "there is nowhere to move to".to_string();
    record.omitted.push(Omitted { arm: "moldau".into(), part: Part::Reassignment, reason });
    for (arm, name) in result.arms.iter_mut().zip(["moldau", "kafka"]) {
        arm.name = name.into();
    }
    result.partitions = Some(record);
    result
}

fn said(result: &RunResult, part: Part, arm: &str) -> (Outcome, String) {
    let all = findings(result);
    let found = all.into_iter().find(|finding| finding.part == part && finding.arm == arm);
    found.map(|finding| (finding.outcome, finding.sentence)).unwrap()
}

#[test]
fn a_system_that_goes_to_the_end_is_held_against_its_few_partitions() {
    let (outcome, sentence) = said(&result(), Part::Curve, "moldau");
    assert_eq!(outcome, Outcome::Whole);
    assert!(sentence.starts_with("1,000,000 partitions of which 10,000 are written"), "{sentence}");
    assert!(sentence.contains("100 % of what 10 take"), "{sentence}");
    assert!(sentence.contains("30 descriptors"), "{sentence}");
}

#[test]
fn a_failure_names_its_point_and_its_wall() {
    let (outcome, sentence) = said(&result(), Part::Curve, "kafka");
    assert_eq!(outcome, Outcome::Failed);
    assert!(sentence.starts_with("1,000 partitions take"), "{sentence}");
    for part in ["fails at 10,000", "refused with POLICY_VIOLATION", "one operation, 10,000"] {
        assert!(sentence.contains(part), "{part} in {sentence}");
    }
    let (outcome, sentence) = said(&result(), Part::Creation, "kafka");
    assert_eq!(outcome, Outcome::Failed);
    assert!(sentence.contains("1.50 ms a step at first, 9.50 ms at last (6.3x)"), "{sentence}");
}

#[test]
fn lost_records_after_a_restart_outweigh_its_speed() {
    let mut result = result();
    assert_eq!(said(&result, Part::Restart, "moldau").0, Outcome::Whole);
    let restarts = &mut result.partitions.as_mut().unwrap().restarts;
    restarts[0].audit.as_mut().unwrap().lost = 2;
    let (outcome, sentence) = said(&result, Part::Restart, "moldau");
    assert_eq!(outcome, Outcome::Lost);
    assert!(sentence.contains("2 faults"), "{sentence}");
}

#[test]
fn skipped_points_have_a_reason() {
    let (outcome, sentence) = said(&result(), Part::Reassignment, "moldau");
    assert_eq!((outcome, sentence.as_str()), (Outcome::Omitted, "there is nowhere to move to."));
}

#[test]
fn a_late_generator_leaves_no_latency() {
    let mut result = result();
    assert!(said(&result, Part::Curve, "moldau").1.contains("p99"));
    for point in &mut result.partitions.as_mut().unwrap().curve {
        point.is_late = true;
    }
    assert!(!said(&result, Part::Curve, "moldau").1.contains("p99"));
    let table = page(&result).table.unwrap();
    assert!(table.rows.iter().any(|row| row.contains(&"late".to_owned())), "{:?}", table.rows);
}

#[test]
fn the_page_has_every_table_and_charts_over_partitions() {
    let page = page(&result());
    let titles: Vec<&str> = page.details.iter().map(|detail| detail.title.as_str()).collect();
    for title in ["Findings", "What the broker holds", "Made at once", "How systems failed"] {
        assert!(titles.contains(&title), "{title} in {titles:?}");
    }
    let ids: Vec<&str> = page.charts.iter().map(|chart| chart.id.as_str()).collect();
    assert_eq!(ids, ["throughput", "p99", "memory", "cpu"]);
    assert!(page.answer[0].starts_with("moldau: 1,000,000"), "{:?}", page.answer);
    assert!(page.answer[1].starts_with("kafka: 1,000"), "{:?}", page.answer);
    let html = html(&page);
    assert!(html.contains("&lt;excessively&gt;") && !html.contains("<excessively>"));
    assert!(markdown(&page).contains("64.0 s"));
}

#[test]
fn the_document_of_another_experiment_has_no_partitions() {
    let plain = sample::result().to_json().unwrap();
    assert!(!plain.contains("\"partitions\":{"));
    let result = result();
    let back = RunResult::from_json(&result.to_json().unwrap()).unwrap();
    assert!(back == result);
}
