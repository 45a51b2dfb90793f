//! Figures of each worker, for runs that several workers offered together.

use crate::page::Table;
use crate::punctuality::{is_late, latest_worker};
use crate::result::{RunRecord, RunResult};
use moldau_load::run::WorkerRecord;
use moldau_measure::statistics::{float, median};

/// A row for each worker; none where the laboratory offered the loads itself.
pub(super) fn table(result: &RunResult) -> Table {
    let mut names: Vec<&str> = Vec::new();
    for worker in result.runs.iter().flat_map(|run| &run.workers) {
        if !names.contains(&worker.name.as_str()) {
            names.push(&worker.name);
        }
    }
    Table::of(
        "Workers",
        "Produced and consumed: medians of the runs. Busiest thread, lag (99th percentile), clock \
         bound and drift: of the run in which they were largest. A time from one worker to another \
         may be off by the bounds of both; end-to-end times of which that is more than a tenth of \
         the median are no figures. Drift is what a clock gained on that of the laboratory during \
         a run, and part of the bound.",
        &[
            "worker",
            "machine",
            "produced/s",
            "consumed/s",
            "busiest thread",
            "lag, ms",
            "latest of late runs",
            "clock bound, us",
            "drift, us",
            "round trip, us",
        ],
        names.into_iter().map(|name| row(result, name)),
    )
}

fn row(result: &RunResult, name: &str) -> Vec<String> {
    let of_run = |run| WorkerRecord::find(run, name).map(|worker| (run, worker));
    let runs: Vec<(&RunRecord, &WorkerRecord)> = result.runs.iter().filter_map(of_run).collect();
    let rate = |records: fn(&WorkerRecord) -> u64| {
        let rates = runs.iter().map(|(run, it)| 1e9 * share(records(it), run.window_ns));
        format!("{:.0}", median(&rates.collect::<Vec<_>>()))
    };
    let most = |figure: &dyn Fn(&RunRecord, &WorkerRecord) -> f64| {
        runs.iter().map(|(run, it)| figure(run, it)).fold(0.0, f64::max)
    };
    let is_latest = |run: &RunRecord| latest_worker(run).is_some_and(|it| it.name == name);
    let latest = runs.iter().filter(|(run, _)| is_late(run) && is_latest(run)).count();
    let machine = match runs.first().map(|(_, worker)| worker.machine) {
        Some(0) | None => "here".to_string(),
        Some(number) => format!("{number}"),
    };
    let round_trip = runs.iter().map(|(_, it)| it.clock.round_trip_ns).min().unwrap_or(0);
    let thread = most(&|run, it| share(it.usage.busiest_thread_ns, run.window_ns));
    vec![
        name.to_string(),
        machine,
        rate(|it| it.produced_records),
        rate(|it| it.consumed_records),
        format!("{:.0} %", 100.0 * thread),
        format!("{:.2}", most(&|_, it| float(it.lag.p99_ns)) / 1e6),
        format!("{latest} of {}", runs.len()),
        format!("{:.1}", most(&|_, it| float(it.clock.bound_ns)) / 1e3),
        format!("{:.1}", most(&|_, it| float(it.clock.drift_ns.unsigned_abs())) / 1e3),
        format!("{:.1}", float(round_trip) / 1e3),
    ]
}

fn share(part: u64, whole: u64) -> f64 {
    float(part) / float(whole.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    #[test]
    fn each_worker_has_a_row_with_its_clock_and_its_lateness() {
        let mut result = sample::result();
        assert!(table(&result).rows.is_empty());
        for run in &mut result.runs {
            run.workers = sample::workers(run, 40_000);
        }
        result.runs[0].workers[1].lag.p99_ns = 3_000_000;
        let rows = table(&result).rows;
        let [one, two] = rows.as_slice() else { panic!("{rows:?}") };
        assert_eq!([&one[0], &one[1], &two[0], &two[1]], ["one:7400", "here", "two:7400", "1"]);
        assert_eq!(two[5..], ["3.00", "1 of 18", "40.0", "0.2", "80.0"]);
        assert_eq!(one[6], "0 of 18");
    }
}
