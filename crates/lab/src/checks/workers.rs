//! Checks of workers, in addition to those of every generator.

use super::{Check, THREAD_SHARE_MAX, Weight};
use crate::punctuality::{is_late, is_scheduled, latest_worker};
use moldau_load::run::{CLOCK_SHARE_INVERSE, RunRecord};
use moldau_measure::statistics::float;

/// The checks of runs that workers offered; none of runs that they did not.
pub(super) fn checks(runs: &[RunRecord]) -> Vec<Check> {
    let runs: Vec<&RunRecord> = runs.iter().filter(|run| !run.workers.is_empty()).collect();
    if runs.is_empty() {
        return Vec::new();
    }
    vec![late_workers_are_told(&runs), busy_workers_are_told(&runs), clocks_are_close(&runs)]
}

/// Names the workers that made a run late. The schedule itself is judged by the general checks.
fn late_workers_are_told(runs: &[&RunRecord]) -> Check {
    let mut names: Vec<(&str, usize)> = Vec::new();
    for run in runs.iter().filter(|run| is_late(run)) {
        let Some(worker) = latest_worker(run) else { continue };
        match names.iter_mut().find(|(name, _)| *name == worker.name) {
            Some((_, count)) => *count += 1,
            None => names.push((&worker.name, 1)),
        }
    }
    let words = names.iter().map(|(name, count)| format!("{name} in {count} of {}", runs.len()));
    Check {
        name: "workers that were the latest of a late run".into(),
        passed: names.is_empty(),
        weight: Weight::Note,
        found: if names.is_empty() { "none".into() } else { words.collect::<Vec<_>>().join(", ") },
        demanded: "none".into(),
    }
}

/// Names the workers without spare time. Whether that voids the figures is judged by the general
/// checks.
fn busy_workers_are_told(runs: &[&RunRecord]) -> Check {
    let shares = runs.iter().flat_map(|run| {
        let of_window = move |thread_ns: u64| float(thread_ns) / float(run.window_ns.max(1));
        run.workers.iter().map(move |it| (&it.name, of_window(it.usage.busiest_thread_ns)))
    });
    let worst = shares.max_by(|(_, one), (_, other)| one.total_cmp(other));
    let share = worst.as_ref().map_or(0.0, |(_, share)| *share);
    let name = worst.map_or("", |(name, _)| name);
    Check {
        name: "busiest worker thread of all runs".into(),
        passed: share < THREAD_SHARE_MAX,
        weight: Weight::Note,
        found: format!("{:.0} % of a processor ({name})", share * 100.0),
        demanded: format!("< {:.0} %", THREAD_SHARE_MAX * 100.0),
    }
}

/// A latency from one machine to another holds the error of both clocks.
fn clocks_are_close(runs: &[&RunRecord]) -> Check {
    let share = |run: &RunRecord| {
        let latency = run.latency.as_ref().filter(|_| is_scheduled(run))?;
        let summary = &latency.end_to_end.summary;
        let bound = float(run.clock_bound_ns());
        (summary.count > 0).then(|| bound / float(summary.p50_ns.max(1)))
    };
    let shares = runs.iter().filter_map(|run| Some((*run, share(run)?)));
    let worst = shares.max_by(|(_, one), (_, other)| one.total_cmp(other));
    let found = worst.map(|(run, share)| {
        let widest = run.workers.iter().max_by_key(|worker| worker.clock.bound_ns);
        let RunRecord { case, arm, .. } = run;
        format!(
            "{:.1} us, {:.1} % of the median ({case}, {arm}); most of it is the clock of {}",
            float(run.clock_bound_ns()) / 1e3,
            share * 100.0,
            widest.map_or("no worker", |worker| &worker.name),
        )
    });
    Check {
        name: "bound of the workers' clocks, of the end-to-end times between them".into(),
        passed: runs.iter().all(|run| run.clocks_are_close()),
        weight: Weight::Validity,
        found: found.unwrap_or("no such times".into()),
        demanded: format!("<= {:.0} %", 100.0 / float(CLOCK_SHARE_INVERSE)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::{Verdict, of_arms};
    use crate::metric::Metric;
    use crate::sample;
    use moldau_load::ledger::{Audit, self_test};
    use moldau_load::run::WorkerRecord;

    /// Runs of two workers whose clocks are known to `bound_ns` each.
    fn runs(bound_ns: u64) -> Vec<RunRecord> {
        let mut runs = sample::result().runs;
        for run in &mut runs {
            run.workers = sample::workers(run, bound_ns);
        }
        runs
    }

    fn judged(runs: &[RunRecord]) -> (Verdict, Vec<Check>) {
        let audit = runs.iter().fold(Audit::default(), |sum, run| sum.plus(run.audit));
        let checks = of_arms(runs, &audit, &self_test(1, 100).unwrap());
        (Verdict::of(&checks), checks)
    }

    fn failed(checks: &[Check]) -> Vec<&str> {
        checks.iter().filter(|check| !check.passed).map(|check| check.found.as_str()).collect()
    }

    #[test]
    fn runs_of_workers_that_keep_the_schedule_and_have_close_clocks_hold() {
        let runs = runs(1_000);
        let (verdict, checks) = judged(&runs);
        assert_eq!((verdict, failed(&checks)), (Verdict::Ok, vec![]));
        assert!(runs.iter().any(|run| Metric::EndToEndP50.of(run).is_some()));
    }

    #[test]
    fn a_clock_bound_of_more_than_a_tenth_of_the_median_is_refused_with_the_name_of_the_clock() {
        let mut runs = runs(1_000);
        let run = runs.iter_mut().find(|run| run.latency.is_some()).unwrap();
        let median_ns = run.latency.as_ref().unwrap().end_to_end.summary.p50_ns;
        run.workers[1].clock.bound_ns = median_ns / 10;
        assert_eq!(Metric::EndToEndP50.of(run), None);
        assert!(Metric::ResponseP50.of(run).is_some(), "one clock tells those");
        let (verdict, checks) = judged(&runs);
        assert_eq!(verdict, Verdict::Invalid);
        let failed = failed(&checks);
        let [found] = failed.as_slice() else { panic!("{failed:?}") };
        assert!(found.ends_with("the clock of two:7400"), "{found}");
    }

    #[test]
    fn the_clock_of_a_lone_worker_is_at_both_ends() {
        let mut runs = runs(1_000_000_000);
        runs.iter_mut().for_each(|run| run.workers.truncate(1));
        assert_eq!(judged(&runs).0, Verdict::Ok);
    }

    #[test]
    fn one_late_worker_makes_the_run_late_and_is_named() {
        let mut runs = runs(1_000);
        for run in runs.iter_mut().filter(|run| is_scheduled(run)) {
            run.workers[1].lag.p99_ns = 2_000_000;
        }
        let (verdict, checks) = judged(&runs);
        assert_eq!(verdict, Verdict::Invalid);
        assert!(failed(&checks).iter().any(|found| found.starts_with("two:7400 in ")));
    }

    #[test]
    fn other_processes_on_the_machine_of_a_worker_make_a_run_late() {
        let mut runs = runs(1_000);
        let run = runs.iter_mut().find(|run| is_scheduled(run)).unwrap();
        assert!(!is_late(run));
        let WorkerRecord { host, usage, .. } = &mut run.workers[1];
        host.busy_ticks = usage.cpu_ns / 10_000_000 + host.idle_ticks;
        assert!(is_late(run));
    }

    #[test]
    fn two_clocks_may_be_off_each_its_own_way() {
        let mut run = runs(1_000).swap_remove(0);
        assert_eq!(run.clock_bound_ns(), 2_000);
        run.workers[1].clock.bound_ns = 5_000;
        assert_eq!(run.clock_bound_ns(), 6_000);
    }
}
