//! Verdicts of made-up experiments, good ones and broken ones.

use super::*;
use crate::metric::{Metric, compare_one};
use crate::objective::{Bound, Objective};
use crate::result::LatencyRecord;
use crate::sample;
use moldau_load::ledger::self_test;
use moldau_measure::histograms::Latencies;

fn verdict_after(change: impl Fn(&mut RunRecord)) -> Verdict {
    let mut result = sample::result();
    result.runs.iter_mut().take(1).for_each(change);
    let audit = result.runs.iter().fold(Audit::default(), |sum, run| sum.plus(run.audit));
    Verdict::of(&all(&result.runs, &audit, &self_test(1, 20).unwrap()))
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
fn surplus_records_of_one_run_do_not_cover_missing_ones_of_another() {
    let mut result = sample::result();
    result.runs[0].held_records -= 5;
    result.runs[1].held_records += 5;
    let checks = all(&result.runs, &result.audit, &self_test(1, 20).unwrap());
    let told = check(&checks, "the target's own count of records agrees");
    assert!(!told.passed && told.found.ends_with("; 2 runs differ"), "{told:?}");
}

#[test]
fn a_system_that_is_silent_in_a_window_is_named() {
    let mut result = sample::result();
    let silent = result.runs.last_mut().unwrap();
    assert!(!is_scheduled(silent));
    silent.produced_records = 0;
    let named = format!("{} ({}, 1 of ", silent.arm, silent.case);
    let checks = all(&result.runs, &result.audit, &self_test(1, 20).unwrap());
    let told = check(&checks, "runs at full speed without an acknowledgement");
    assert!(!told.passed && told.found.starts_with(&named), "{told:?}");
}

#[test]
fn full_speed_runs_disturbed_by_other_processes_are_refused() {
    let after = |disturbed: usize| {
        let mut result = sample::result();
        let unpaced = result.runs.iter_mut().filter(|run| !is_scheduled(run));
        let of_arm = unpaced.filter(|run| run.arm == "proxy");
        // A third of the machine.
        of_arm.take(disturbed).for_each(|run| run.host.busy_ticks += 600);
        let checks = all(&result.runs, &result.audit, &self_test(1, 20).unwrap());
        let told = check(&checks, "runs at full speed in which hypervisor and other");
        (told.passed, told.found.clone(), Verdict::of(&checks))
    };
    let (passed, found, verdict) = after(1);
    assert_eq!((passed, found.as_str(), verdict), (true, "most of each", Verdict::Ok));
    let (passed, found, verdict) = after(usize::MAX);
    assert_eq!((passed, verdict), (false, Verdict::Invalid));
    let worst = "1 of 2 arms and cases, worst proxy (Produce at full speed, ";
    assert!(found.starts_with(worst), "{found}");
}

#[test]
fn the_run_with_most_stolen_time_is_reported() {
    let told = |steal_ticks| {
        let mut result = sample::result();
        result.runs[0].host.steal_ticks = steal_ticks;
        let checks = all(&result.runs, &result.audit, &self_test(1, 20).unwrap());
        let told = check(&checks, "time taken by the hypervisor");
        (told.passed, told.found.clone())
    };
    assert_eq!(told(200), (false, "14.3 %".into()));
    // The worst is another run then.
    assert_eq!(told(0), (true, "0.1 %".into()));
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

/// The checks after the generator was late in the first runs of either arm at a fixed rate.
fn checks_after_late_runs(direct: usize, proxy: usize) -> Vec<Check> {
    let mut result = sample::result();
    for (arm, count) in [("direct", direct), ("proxy", proxy)] {
        let of_arm = |run: &&mut RunRecord| run.arm == arm && run.latency.is_some();
        result.runs.iter_mut().filter(of_arm).take(count).for_each(late);
    }
    all(&result.runs, &result.audit, &self_test(1, 20).unwrap())
}

fn check<'a>(checks: &'a [Check], start: &str) -> &'a Check {
    checks.iter().find(|check| check.name.starts_with(start)).expect("the check is there")
}

#[test]
fn late_runs_lose_their_latencies_and_are_reported() {
    let checks = checks_after_late_runs(3, 1);
    assert_eq!(Verdict::of(&checks), Verdict::Ok);
    let kept = check(&checks, "the schedule is kept");
    assert!(kept.found.starts_with(&format!("3 of 6 runs in time ({}, direct)", sample::FIXED)));
    let told = check(&checks, "runs without latencies");
    assert!(!told.passed && told.weight == Weight::Note);
    let words = format!("4 of 12, 0 of them without processor time ({}: ", sample::FIXED);
    assert_eq!(told.found, words + "direct 3, proxy 1)");
    let none = checks_after_late_runs(0, 0);
    assert!(check(&none, "runs without latencies").passed);
    assert!(check(&none, "the schedule is kept").found.starts_with("all runs in time"));
}

#[test]
fn an_arm_that_is_late_more_often_than_not_has_no_latencies_to_tell() {
    for (direct, proxy) in [(4, 0), (0, 4), (6, 6)] {
        let checks = checks_after_late_runs(direct, proxy);
        assert!(!check(&checks, "the schedule is kept").passed);
        assert_eq!(Verdict::of(&checks), Verdict::Invalid);
    }
}

#[test]
fn an_arm_with_two_runs_in_time_has_no_latencies_to_tell() {
    let mut result = sample::result();
    result.runs.retain(|run| run.pair < 3);
    result.runs.iter_mut().take(1).for_each(late);
    let checks = all(&result.runs, &result.audit, &self_test(1, 20).unwrap());
    let kept = check(&checks, "the schedule is kept");
    assert!(!kept.passed && kept.found.starts_with("2 of 3 runs"), "{kept:?}");
}

#[test]
fn totals_of_late_runs_are_demanded_all_the_same() {
    let after = |change: fn(&mut RunRecord)| {
        verdict_after(|run| {
            late(run);
            change(run);
        })
    };
    assert_eq!(after(|_| ()), Verdict::Ok);
    assert_eq!(after(|run| run.answered = run.offered * 98 / 100), Verdict::Invalid);
    assert_eq!(after(|run| run.shed = 1), Verdict::Invalid);
    assert_eq!(after(|run| run.held_records += 1), Verdict::RecordsLost);
    assert_eq!(after(|run| run.audit.lost = 1), Verdict::RecordsLost);
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
    let checks = all(&[], &Audit::default(), &self_test(1, 20).unwrap());
    assert_eq!(Verdict::of(&checks), Verdict::RecordsLost);
}

#[test]
fn limits_may_be_found_without_a_record_but_no_figures() {
    let detection = self_test(1, 20).unwrap();
    let nothing = Audit::default();
    assert_eq!(Verdict::of(&of_limits(&[], &nothing, &detection)), Verdict::Ok);
    let runs = sample::result().runs;
    assert_eq!(Verdict::of(&of_limits(&runs, &nothing, &detection)), Verdict::Invalid);
    let lost = Audit { sent: 2, acked: 2, delivered: 1, lost: 1, ..nothing };
    assert_eq!(Verdict::of(&of_limits(&runs, &lost, &detection)), Verdict::RecordsLost);
}

/// The verdict and the saturated arms of an experiment whose arms may be slower than their rate.
fn of_arms_after(change: impl Fn(&mut RunRecord)) -> (Verdict, String) {
    let mut result = sample::result();
    result.runs.iter_mut().take(1).for_each(change);
    let audit = result.runs.iter().fold(Audit::default(), |sum, run| sum.plus(run.audit));
    let checks = of_arms(&result.runs, &audit, &self_test(1, 20).unwrap());
    let note = checks.iter().find(|check| check.name.contains("keep up")).unwrap();
    assert_eq!((note.passed, note.weight), (note.found == "none", Weight::Note));
    (Verdict::of(&checks), note.found.clone())
}

fn late(run: &mut RunRecord) {
    sample::make_late(run, 1_100_000, 100);
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
fn an_arm_beside_which_the_generator_is_late_has_no_latencies_and_the_first_must() {
    let after_late = |arm: &str| {
        let mut result = sample::result();
        for run in result.runs.iter_mut().filter(|run| run.arm == arm && run.latency.is_some()) {
            late(run);
            (run.host.busy_ticks, run.host.idle_ticks) = (500, 0);
        }
        let checks = of_arms(&result.runs, &result.audit, &self_test(1, 20).unwrap());
        (result, checks)
    };
    assert_eq!(Verdict::of(&after_late("direct").1), Verdict::Invalid);
    let (result, checks) = after_late("proxy");
    assert_eq!(Verdict::of(&checks), Verdict::Ok);
    let note = check(&checks, "arms without latencies");
    assert_eq!(note.found, format!("proxy ({}, late in 6 of 6 runs)", sample::FIXED));
    let compared = |metric| {
        compare_one(&result.runs, sample::FIXED, "direct", "proxy", metric, 1).effect.is_some()
    };
    assert!(!compared(Metric::ResponseP50) && compared(Metric::ProduceThroughput));
    let goal = |metric, arm: &str| {
        let (case, name) = (sample::FIXED.to_string(), "a goal".to_string());
        let bound = Bound::FigureAtMost(f64::MAX);
        Objective { name, case, metric, arm: arm.into(), bound }.check(&result.runs, 1)
    };
    let unknown = goal(Metric::ResponseP50, "proxy");
    assert!(!unknown.passed && unknown.weight == Weight::Validity, "{unknown:?}");
    assert!(goal(Metric::ResponseP50, "direct").passed);
    assert!(goal(Metric::ProduceThroughput, "proxy").passed);
}

#[test]
fn faults_that_an_arm_did_not_cause_are_refused() {
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
