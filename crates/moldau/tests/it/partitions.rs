//! The partition experiment with a plan of seconds, against a broker that it starts itself and
//! against a cluster that runs already.

use std::time::Duration;

use moldau_lab::checks::Verdict;
use moldau_lab::experiments::Silent;
use moldau_lab::experiments::partitions::{
    CreationPlan, CurvePlan, Plan, ReassignmentPlan, RestartPlan, run,
};
use moldau_lab::experiments::side_by_side::System;
use moldau_lab::pages::save;
use moldau_lab::partitions::Part;
use moldau_lab::result::RunResult;
use moldau_lab::systems::Durability;

use crate::world::{Process, conditions, moldau};

const OWN: &str = "moldau";
const OTHER: &str = "other";

/// Some partitions, made in every way.
pub(crate) fn creation() -> CreationPlan {
    CreationPlan {
        at_once: vec![1, 30],
        increment: 10,
        grown_to: 30,
        topics: 6,
        topics_per_request: 3,
        limit: Duration::from_mins(1),
    }
}

fn plan(work: &std::path::Path, other: &Process) -> Plan {
    let own = System::Moldau { program: moldau().into(), durability: Durability::Os };
    let external = System::External { name: OTHER.into(), bootstrap: other.address.to_string() };
    let plan = Plan::usual(vec![own, external], conditions(work));
    Plan {
        curve: plan.curve.map(|curve| CurvePlan {
            // More partitions than are written to need a spread of their own.
            partitions: vec![1, 40, 25_000],
            per_second: 500,
            filling_bytes: 1_024,
            warmup_ms: 50,
            full_speed_ms: 100,
            fixed_rate_ms: 300,
            idle_ms: 50,
            ..curve
        }),
        creation: Some(creation()),
        restart: Some(RestartPlan { points: vec![(20, 1)], limit: Duration::from_mins(1) }),
        reassignment: Some(ReassignmentPlan {
            partitions: 10,
            per_request: 10,
            brokers: 3,
            limit: Duration::from_mins(1),
        }),
        ..plan
    }
}

#[test]
fn partition_experiment_completes_without_loss() {
    let directory = tempfile::tempdir().unwrap();
    let data = tempfile::tempdir().unwrap();
    let other = Process::broker(data.path(), &[]);
    let result = run(&plan(directory.path(), &other), &mut Silent).unwrap();
    assert_eq!(result.verdict, Verdict::Ok, "{:#?}", result.checks);
    assert!(result.audit.acked > 0 && result.audit.is_clean(), "{:?}", result.audit);

    let found = result.partitions.as_ref().unwrap();
    assert!(found.curve.iter().all(|point| point.failure.is_none()), "{:#?}", found.curve);
    for (arm, is_seen) in [(OWN, true), (OTHER, false)] {
        let points: Vec<_> = found.curve.iter().filter(|point| point.arm == arm).collect();
        let shapes: Vec<_> = points.iter().map(|p| (p.partitions, p.written)).collect();
        assert_eq!(shapes, [(1, 1), (40, 40), (25_000, 10_000)]);
        assert!(points.iter().all(|point| point.loaded.is_some() == is_seen));
        for growth in found.grown.iter().filter(|growth| growth.arm == arm) {
            let totals: Vec<u32> = growth.steps.iter().map(|step| step.total).collect();
            assert_eq!((totals.as_slice(), growth.time_was_up), (&[10, 20, 30][..], false));
        }
        let made = found.at_once.iter().filter(|made| made.arm == arm);
        assert_eq!(made.filter(|made| made.creation.is_some()).count(), 2);
    }
    // Batches are whole whatever the number of partitions; only the last of a run is not.
    for batching in found.curve.iter().filter_map(|point| point.full_speed) {
        assert!(batching.records.abs_diff(16 * batching.batches) <= 16, "{batching:?}");
    }
    let [restart] = found.restarts.as_slice() else { panic!("{:?}", found.restarts) };
    assert!(restart.audit.is_some_and(|audit| audit.is_clean() && audit.acked > 0));
    assert!(restart.produced_ns >= restart.port_ns && restart.port_ns.is_some());
    let omitted: Vec<_> = found.omitted.iter().map(|left| (left.arm.as_str(), left.part)).collect();
    let expected = [(OTHER, Part::Restart), (OWN, Part::Reassignment), (OTHER, Part::Reassignment)];
    assert_eq!(omitted, expected);

    // The systems' data is gone, and the report is made from the document alone.
    assert!(!directory.path().join(OWN).exists());
    let back = RunResult::from_json(&result.to_json().unwrap()).unwrap();
    save(&back, directory.path()).unwrap();
    let page = std::fs::read_to_string(directory.path().join("report.html")).unwrap();
    assert!(page.contains("25,000 partitions of which 10,000 are written"));
}
