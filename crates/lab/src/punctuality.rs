//! Whether the generator kept the schedule of a run, and what the run's figures are worth if not.
//!
//! | run | latencies | processor time |
//! |---|---|---|
//! | in time | count | counts |
//! | late: 1 in 100 operations or more, or the machine is not the experiment's | none | counts |
//! | bunched: late with 1 in 10 operations or more | none | none |
//! | saturated: the target cannot keep up | none | counts |
//!
//! Processor time follows bytes and requests. What comes late comes together with what is due then,
//! so that fewer requests carry it. Where nine tenths come in time, that can be a tenth of the
//! requests at most.

use moldau_load::run::{RunRecord, WorkerRecord};
use moldau_load::workload::Pace;
use moldau_measure::cpu::GENERATOR_ROLE;
use moldau_measure::cpu::{HostUsage, TICK_NS};
use moldau_measure::histograms::{Latencies, Summary};
use moldau_measure::statistics::{PAIRS_MIN, float};

/// Schedule lag that never matters, ns.
pub(crate) const LAG_NS_MIN: u64 = 1_000_000;

/// Schedule lag in relation to the response time that it is part of, at the 99th percentile.
const LAG_SHARE_MAX: f64 = 0.05;

/// Share of what was offered inside the window that a target which keeps up has acknowledged there;
/// the last few ms of records are acknowledged after it.
const KEPT_UP_SHARE_MIN: f64 = 0.97;

/// Share of the machine's processors that the measured processes have to take together for whatever
/// is late to be late because of them, and not because of something else on the machine.
const OWN_SHARE_MIN: f64 = 0.9;

/// Share of the machine that something else and the hypervisor may take together: beyond it,
/// waiting for a processor is part of every latency, however punctual the generator is. The
/// kernel's own work for the network and the disk, which no process is charged for, is some
/// percent.
pub(crate) const FOREIGN_SHARE_MAX: f64 = 0.2;

/// The same of a run without a schedule, whose systems take all that is left. It is more, since the
/// kernel's work for the disk alone was up to a fifth in cold scans.
pub(crate) const FOREIGN_SHARE_MAX_UNPACED: f64 = 0.3;

/// Whether a run has intended times.
pub(crate) fn is_scheduled(run: &RunRecord) -> bool {
    matches!(run.workload.pace, Pace::Scheduled { .. })
}

/// Whether the generator itself was late in a run, or something else took its processors or those
/// of the target, so that its latencies say nothing of the target.
pub(crate) fn is_late(run: &RunRecord) -> bool {
    let Some((lag, allowed)) = lag_and_limit(run) else { return false };
    lag >= allowed || is_disturbed(run)
}

/// Whether other processes took so much of a machine that they may be the reason for slow answers.
pub(crate) fn is_disturbed(run: &RunRecord) -> bool {
    let stolen = run.workers.iter().map(|worker| worker.host.steal_share());
    let stolen = stolen.fold(run.host.steal_share(), f64::max);
    let most = if is_scheduled(run) { FOREIGN_SHARE_MAX } else { FOREIGN_SHARE_MAX_UNPACED };
    taken_share(run).unwrap_or(stolen) >= most
}

/// Whether most of the runs of one arm and case were left alone by others, so that their median is
/// not what these left of the machine.
pub(crate) fn are_enough_left_alone(runs: &[&RunRecord]) -> bool {
    2 * runs.iter().filter(|run| !is_disturbed(run)).count() > runs.len()
}

/// Whether the latencies of a run are the target's.
pub(crate) fn has_latencies(run: &RunRecord) -> bool {
    run.latency.is_some() && !is_late(run) && !is_saturated(run)
}

/// Whether so much came late that the requests were others than those of the schedule, and so their
/// cost. Not for a target that cannot keep up: that is what it costs there.
pub(crate) fn is_bunched(run: &RunRecord) -> bool {
    let own = run.latency.iter().map(|it| (&it.lag.summary, &it.response.summary));
    let workers = run.workers.iter().map(|worker| (&worker.lag, &worker.response));
    let is_late = |(lag, response): (&Summary, &Summary)| {
        float(lag.p90_ns) >= lag_limit_ns(float(response.p99_ns))
    };
    own.chain(workers).any(is_late) && !is_saturated(run)
}

/// Whether the target could not keep up with the rate of a run: it acknowledged less than was
/// offered, or left the generator without a processor, so that it was late. Runs that other
/// processes on the machine slowed do not count.
pub(crate) fn is_saturated(run: &RunRecord) -> bool {
    let is_behind = float(run.produced_records) < KEPT_UP_SHARE_MIN * float(run.offered);
    let own_ns = own_ns(run, 0);
    let ticks = run.host.ticks();
    let has_all = float(own_ns) >= OWN_SHARE_MIN * TICK_NS * float(ticks);
    is_scheduled(run) && !is_disturbed(run) && (is_behind || has_all && is_late(run))
}

/// Share of the machine that something else took inside the window of a run: neither the measured
/// processes nor the hypervisor. Of several machines, the largest share. It is unknown for a
/// cluster that ran already, which may be on any of them.
pub(crate) fn foreign_share(run: &RunRecord) -> Option<f64> {
    largest_share(run, foreign_share_of)
}

/// The same with what the hypervisor took for others.
pub(crate) fn taken_share(run: &RunRecord) -> Option<f64> {
    largest_share(run, taken_share_of)
}

/// The largest share of a machine of a run, each by what it did and what the measured processes
/// took there.
fn largest_share(run: &RunRecord, share: impl Fn(HostUsage, u64) -> f64) -> Option<f64> {
    let mut systems = run.processes.iter().filter(|usage| usage.role != GENERATOR_ROLE);
    systems.next()?;
    let workers = run.workers.iter().filter(|worker| worker.machine != 0);
    let there = workers.map(|it| share(it.host, own_ns(run, it.machine)));
    Some(there.fold(share(run.host, own_ns(run, 0)), f64::max))
}

/// Processor time that the measured processes took on a machine of a run; 0 is the lab's own.
fn own_ns(run: &RunRecord, machine: u16) -> u64 {
    let workers = run.workers.iter().filter(|worker| worker.machine == machine);
    let workers: u64 = workers.map(|worker| worker.usage.cpu_ns).sum();
    // The generator is the workers together, wherever they are.
    let is_here = |role: &str| machine == 0 && (run.workers.is_empty() || role != GENERATOR_ROLE);
    let here = run.processes.iter().filter(|usage| is_here(&usage.role));
    workers + here.map(|usage| usage.cpu_ns).sum::<u64>()
}

/// The same where the measured processes took `own_ns` of processor time.
pub(crate) fn foreign_share_of(host: HostUsage, own_ns: u64) -> f64 {
    let ticks = host.ticks();
    let foreign_ns = TICK_NS * float(host.busy_ticks) - float(own_ns);
    (foreign_ns / (TICK_NS * float(ticks.max(1)))).max(0.0)
}

/// The same with what the hypervisor took for others.
pub(crate) fn taken_share_of(host: HostUsage, own_ns: u64) -> f64 {
    foreign_share_of(host, own_ns) + host.steal_share()
}

/// Whether the target cannot keep up with the rate of all these runs: at least half say so.
pub(crate) fn cannot_keep_up(runs: &[&RunRecord]) -> bool {
    let saturated = runs.iter().filter(|run| is_saturated(run)).count();
    saturated > 0 && 2 * saturated >= runs.len()
}

/// Whether enough of the runs of one arm and case are in time for a claim about latencies: so many
/// as an interval takes, where there are as many, and no fewer than those that are late. Those that
/// are in time on a machine on which most are not would be a choice of its best moments.
pub(crate) fn are_enough_in_time(runs: &[&RunRecord]) -> bool {
    let in_time = runs.iter().filter(|run| !is_late(run)).count();
    in_time >= PAIRS_MIN.min(runs.len()) && 2 * in_time >= runs.len()
}

/// Whether an arm that keeps up with the rate of a case has no latencies there, since the generator
/// was late in too many of its runs.
pub(crate) fn latencies_are_withheld(runs: &[&RunRecord]) -> bool {
    let kept: Vec<&RunRecord> = runs.iter().copied().filter(|run| !is_saturated(run)).collect();
    !cannot_keep_up(runs) && !are_enough_in_time(&kept)
}

/// Whether an arm has no latency in a case. If it, or the generator, keeps up in a few runs only,
/// these show the machine's best moments.
pub(crate) fn tells_no_latencies(runs: &[&RunRecord]) -> bool {
    cannot_keep_up(runs) || latencies_are_withheld(runs)
}

/// Whether the runs of a case should go on: an arm that keeps up has latencies in fewer than
/// `wanted` of them.
pub(crate) fn lacks_latencies(runs: &[&RunRecord], wanted: usize) -> bool {
    let scheduled: Vec<&RunRecord> = runs.iter().copied().filter(|run| is_scheduled(run)).collect();
    by_arm(&scheduled).iter().any(|of_arm| {
        let count = of_arm.iter().filter(|run| has_latencies(run)).count();
        count < wanted && !cannot_keep_up(of_arm)
    })
}

/// The runs of each arm of each case, in the order of their first ones.
pub(crate) fn by_arm<'a>(runs: &[&'a RunRecord]) -> Vec<Vec<&'a RunRecord>> {
    let mut groups: Vec<Vec<&RunRecord>> = Vec::new();
    for run in runs {
        let is_of = |group: &&mut Vec<&RunRecord>| {
            group.first().is_some_and(|first| (&first.case, &first.arm) == (&run.case, &run.arm))
        };
        match groups.iter_mut().find(is_of) {
            Some(group) => group.push(run),
            None => groups.push(vec![run]),
        }
    }
    groups
}

/// As [`is_late`], of a run that is not recorded yet.
pub(crate) fn lag_is_late(latencies: &Latencies) -> bool {
    let [lag, response] =
        [&latencies.lag, &latencies.response].map(|durations| float(durations.quantile_ns(0.99)));
    lag >= lag_limit_ns(response)
}

/// The 99th percentile of the schedule lag from which on a run is late, by that of the response
/// time.
pub(crate) fn lag_limit_ns(response_p99_ns: f64) -> f64 {
    (LAG_SHARE_MAX * response_p99_ns).max(float(LAG_NS_MIN))
}

/// The 99th percentile of the schedule lag and what is allowed, in ns; of several workers those of
/// the latest.
pub(crate) fn lag_and_limit(run: &RunRecord) -> Option<(f64, f64)> {
    let latency = run.latency.as_ref()?;
    let latest = latest_worker(run);
    let (lag, response) = latest
        .map_or((&latency.lag.summary, &latency.response.summary), |it| (&it.lag, &it.response));
    Some((float(lag.p99_ns), lag_limit_ns(float(response.p99_ns))))
}

/// The worker whose schedule was kept worst, each by what its own response times allow; none where
/// the load was offered from here.
pub(crate) fn latest_worker(run: &RunRecord) -> Option<&WorkerRecord> {
    let lateness = |worker: &WorkerRecord| {
        float(worker.lag.p99_ns) / lag_limit_ns(float(worker.response.p99_ns))
    };
    run.workers.iter().max_by(|one, other| lateness(one).total_cmp(&lateness(other)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metric::Metric;
    use crate::sample::{self, make_late};
    use moldau_load::clocks::ClockRecord;

    fn run() -> RunRecord {
        sample::result().runs.swap_remove(1)
    }

    fn late(lag_ns: u64, one_in: u64) -> RunRecord {
        let mut run = run();
        make_late(&mut run, lag_ns, one_in);
        run
    }

    #[test]
    fn a_run_that_is_late_now_and_then_loses_its_latencies_alone() {
        assert!(!is_late(&run()) && !is_late(&late(900_000, 100)));
        let late = late(1_100_000, 100);
        assert!(is_late(&late) && !is_bunched(&late) && !has_latencies(&late));
        let cpu = |run: &RunRecord| Metric::ProxyCpu.of(run);
        assert_eq!((Metric::ResponseP50.of(&late), cpu(&late)), (None, cpu(&run())));
        assert!(Metric::ProduceThroughput.of(&late).is_some());
    }

    #[test]
    fn a_run_beside_which_something_else_works_is_late() {
        let beside = |foreign_ticks| {
            let mut run = run();
            let own_ns: u64 = run.processes.iter().map(|usage| usage.cpu_ns).sum();
            run.host.busy_ticks = own_ns / 10_000_000 + foreign_ticks;
            run.host.idle_ticks = 1_000 - run.host.busy_ticks - run.host.steal_ticks;
            run
        };
        assert!(!is_late(&beside(190)) && is_late(&beside(210)));
        let mut stolen = beside(100);
        stolen.host.steal_ticks = 90;
        stolen.host.idle_ticks -= 90;
        assert!(!is_late(&stolen));
        stolen.host.steal_ticks += 20;
        stolen.host.idle_ticks -= 20;
        assert!(is_late(&stolen), "what the hypervisor took is not the target's time either");
        let mut of_a_cluster = beside(210);
        of_a_cluster.processes.retain(|usage| usage.role == GENERATOR_ROLE);
        assert!(!is_late(&of_a_cluster), "the cluster's own work is not told from that of others");
    }

    #[test]
    fn a_run_that_is_late_throughout_loses_its_processor_time_too() {
        let late = late(1_100_000, 10);
        assert!(is_bunched(&late));
        assert_eq!(Metric::ProxyCpu.of(&late), None);
        assert_eq!(Metric::BrokerCpu.of(&late), None);
    }

    #[test]
    fn costs_of_a_saturated_target_count_however_late_the_generator_was() {
        let mut saturated = late(1_100_000, 10);
        saturated.produced_records = saturated.offered / 2;
        assert!(is_saturated(&saturated) && !is_bunched(&saturated));
        assert!(Metric::ProxyCpu.of(&saturated).is_some());
        assert_eq!(Metric::ResponseP50.of(&saturated), None);
    }

    #[test]
    fn a_run_slowed_by_other_processes_is_late_and_not_saturated() {
        let mut slowed = run();
        slowed.produced_records = slowed.offered / 2;
        assert!(is_saturated(&slowed) && !is_late(&slowed));
        let own_ns: u64 = slowed.processes.iter().map(|usage| usage.cpu_ns).sum();
        slowed.host.busy_ticks = own_ns / 10_000_000 + 500;
        slowed.host.idle_ticks = 1_000_u64.saturating_sub(slowed.host.busy_ticks);
        assert!(is_late(&slowed) && !is_saturated(&slowed));
    }

    #[test]
    fn a_run_is_late_if_one_of_its_workers_is_by_its_own_response_times() {
        let mut of_two = run();
        let host = of_two.host;
        let usage = of_two.processes[0].clone();
        let summary = |p99_ns| Summary { count: 1_000, p99_ns, ..Summary::default() };
        let worker = |machine, lag_ns, response_ns| WorkerRecord {
            name: format!("worker {machine}"),
            machine,
            produced_records: 1,
            consumed_records: 0,
            lag: summary(lag_ns),
            response: summary(response_ns),
            usage: usage.clone(),
            host,
            clock: ClockRecord { bound_ns: 1, drift_ns: 0, round_trip_ns: 1 },
        };
        // The first lags by more, and 5 % of its own response times.
        of_two.workers = vec![worker(0, 3_000_000, 100_000_000), worker(0, 2_000_000, 10_000_000)];
        assert!(is_late(&of_two));
        of_two.workers.pop();
        assert!(!is_late(&of_two));
    }

    #[test]
    fn an_arm_that_keeps_up_in_fewer_than_half_of_its_runs_has_no_latencies() {
        let mut runs = vec![run(); 6];
        assert!(!tells_no_latencies(&runs.iter().collect::<Vec<_>>()));
        runs.iter_mut().take(3).for_each(|run| run.produced_records = 0);
        assert!(tells_no_latencies(&runs.iter().collect::<Vec<_>>()));
    }

    #[test]
    fn a_case_goes_on_until_every_arm_that_keeps_up_has_its_latencies() {
        let mut runs = sample::result().runs;
        runs.retain(is_scheduled);
        let lacks =
            |runs: &[RunRecord], wanted| lacks_latencies(&runs.iter().collect::<Vec<_>>(), wanted);
        assert!(!lacks(&runs, 6) && lacks(&runs, 7));
        make_late(&mut runs[0], 1_100_000, 100);
        assert!(lacks(&runs, 6) && !lacks(&runs, 5));
        // The other arm is saturated in half of its runs, and no further one would help.
        let others = runs.iter_mut().filter(|run| run.arm == "proxy").take(3);
        others.for_each(|run| run.produced_records = 0);
        assert!(!lacks(&runs, 5));
    }

    #[test]
    fn a_case_at_full_speed_has_no_latencies_to_wait_for() {
        let mut runs = sample::result().runs;
        runs.retain(|run| !is_scheduled(run));
        assert!(!runs.is_empty());
        assert!(!lacks_latencies(&runs.iter().collect::<Vec<_>>(), 100));
    }
}
