//! Verdicts of made-up experiments, good ones and broken ones.

use super::*;
use crate::histograms::Latencies;
use crate::ledger::self_test;
use crate::report::sample;
use crate::result::LatencyRecord;

fn verdict_after(change: impl Fn(&mut RunRecord)) -> Verdict {
    let mut result = sample::result();
    result.runs.iter_mut().take(1).for_each(change);
    let audit = result.runs.iter().fold(Audit::default(), |sum, run| sum.plus(run.audit));
    Verdict::of(&all(&result.runs, &result.set_aside, &audit, &self_test(1, 20).unwrap()))
}

#[test]
fn a_good_experiment_passes() {
    assert_eq!(verdict_after(|_| ()), Verdict::Ok);
    assert_eq!(Verdict::Ok.exit_code(), 0);
}

#[test]
fn a_lost_record_weighs_more_than_an_invalid_run() {
    let verdict = verdict_after(|run| {
        run.audit.lost = 1;
        run.shed = 1;
    });
    assert_eq!((verdict, verdict.exit_code()), (Verdict::RecordsLost, 2));
}

#[test]
fn a_target_that_counts_otherwise_is_not_believed() {
    assert_eq!(verdict_after(|run| run.held_records += 1), Verdict::RecordsLost);
    let unanswered = verdict_after(|run| {
        run.audit.sent += 2;
        run.audit.unknown = 2;
        run.held_records += 1;
    });
    assert_eq!(unanswered, Verdict::Ok);
}

#[test]
fn a_generator_at_its_limit_is_refused() {
    let verdict = verdict_after(|run| {
        for usage in &mut run.processes {
            usage.busiest_thread_ns = run.window_ns / 100 * 85;
        }
    });
    assert_eq!((verdict, verdict.exit_code()), (Verdict::Invalid, 3));
}

#[test]
fn a_late_generator_is_refused() {
    assert_eq!(verdict_after(late), Verdict::Invalid);
}

#[test]
fn lag_that_drowns_in_the_response_time_is_accepted() {
    let verdict = verdict_after(|run| {
        let mut latencies = Latencies::default();
        latencies.response.record(0, 900_000_000, 100);
        latencies.lag.record(0, 20_000_000, 100);
        run.latency = LatencyRecord::of(&latencies).ok();
    });
    assert_eq!(verdict, Verdict::Ok);
}

#[test]
fn unanswered_and_shed_operations_are_refused() {
    assert_eq!(verdict_after(|run| run.answered = run.offered * 98 / 100), Verdict::Invalid);
    assert_eq!(verdict_after(|run| run.shed = 1), Verdict::Invalid);
}

#[test]
fn an_experiment_without_records_proves_nothing() {
    let checks = all(&[], &[], &Audit::default(), &self_test(1, 20).unwrap());
    assert_eq!(Verdict::of(&checks), Verdict::RecordsLost);
}

#[test]
fn a_run_is_late_exactly_when_the_schedule_check_says_so() {
    let mut result = sample::result();
    let run = result.runs.first_mut().unwrap();
    assert!(!is_late(run));
    let latency = run.latency.as_mut().unwrap();
    latency.lag.summary.p99_ns = 20 * latency.response.summary.p99_ns.max(LAG_NS_MIN);
    assert!(is_late(run));
    let checks = all(&result.runs, &[], &result.audit, &self_test(1, 20).unwrap());
    let check = checks.iter().find(|check| check.name.starts_with("the schedule")).unwrap();
    assert!(!check.passed);
}

#[test]
fn limits_may_be_found_without_a_record_but_no_figures() {
    let detection = self_test(1, 20).unwrap();
    let nothing = Audit::default();
    assert_eq!(Verdict::of(&of_limits(&[], &[], &nothing, &detection)), Verdict::Ok);
    let runs = sample::result().runs;
    assert_eq!(Verdict::of(&of_limits(&runs, &[], &nothing, &detection)), Verdict::Invalid);
    let lost = Audit { sent: 2, acked: 2, delivered: 1, lost: 1, ..nothing };
    assert_eq!(Verdict::of(&of_limits(&runs, &[], &lost, &detection)), Verdict::RecordsLost);
}

/// The verdict and the saturated arms of an experiment whose arms may be slower than their rate.
fn of_arms_after(change: impl Fn(&mut RunRecord)) -> (Verdict, String) {
    let mut result = sample::result();
    result.runs.iter_mut().take(1).for_each(change);
    let audit = result.runs.iter().fold(Audit::default(), |sum, run| sum.plus(run.audit));
    let checks = of_arms(&result.runs, &[], &audit, &self_test(1, 20).unwrap());
    let note = checks.iter().find(|check| check.name.contains("keep up")).unwrap();
    assert_eq!((note.passed, note.weight), (note.found == "none", Weight::Note));
    (Verdict::of(&checks), note.found.clone())
}

fn late(run: &mut RunRecord) {
    let mut latencies = Latencies::default();
    latencies.response.record(0, 9_000_000, 100);
    latencies.lag.record(0, 1_100_000, 100);
    run.latency = LatencyRecord::of(&latencies).ok();
}

#[test]
fn an_arm_that_cannot_keep_up_is_a_finding() {
    assert_eq!(of_arms_after(|_| ()), (Verdict::Ok, "none".into()));
    let saturated = format!("direct ({}, 1 of 6 runs)", sample::FIXED);
    let behind = of_arms_after(|run| {
        run.produced_records = run.offered / 2;
        run.answered = run.offered / 2;
        run.shed = 10;
    });
    assert_eq!(behind, (Verdict::Ok, saturated.clone()));
    let without_processors = of_arms_after(|run| {
        late(run);
        run.processes[0].cpu_ns = 11_000_000_000;
    });
    assert_eq!(without_processors, (Verdict::Ok, saturated));
}

#[test]
fn what_an_arm_is_not_to_blame_for_is_refused_all_the_same() {
    assert_eq!(of_arms_after(late).0, Verdict::Invalid);
    // Something else had the processors.
    let crowded = of_arms_after(|run| {
        late(run);
        run.host.idle_ticks = 0;
    });
    assert_eq!(crowded.0, Verdict::Invalid);
    assert_eq!(of_arms_after(|run| run.shed = 1).0, Verdict::Invalid);
    let generator_limited = of_arms_after(|run| {
        run.produced_records = 0;
        for usage in &mut run.processes {
            usage.busiest_thread_ns = run.window_ns / 100 * 85;
        }
    });
    assert_eq!(generator_limited.0, Verdict::Invalid);
    let lost = of_arms_after(|run| {
        run.produced_records = 0;
        run.audit.lost = 1;
    });
    assert_eq!(lost.0, Verdict::RecordsLost);
}
