//! Findings follow from a run as it was recorded, whatever machine recorded it.

use super::*;
use crate::sample;
use moldau_load::run::{LatencyRecord, Requests};
use moldau_load::schedule::Arrivals;
use moldau_load::workload::Tuning;
use moldau_measure::cpu::{GENERATOR_ROLE, HostUsage, ProcessUsage};
use moldau_measure::histograms::Latencies;

const WINDOW_NS: u64 = 1_000_000_000;

/// 5 requests of 16 KB and 3.5 ms each on a machine of two processors with little to do.
fn waiting() -> RunRecord {
    let mut run = sample::result().runs.pop().unwrap();
    run.window_ns = WINDOW_NS;
    run.workload.producers = 1;
    run.workload.partitions = 1;
    run.workload.consume = false;
    run.workload.tuning = Tuning::default();
    run.produced_records = 22_856;
    run.requests = Requests {
        returned: 1_428,
        in_flight_ns: 5 * WINDOW_NS - 10_000_000,
        throttled_ns: 0,
        in_flight_max: 5,
    };
    run.host = HostUsage { busy_ticks: 30, idle_ticks: 170, ..HostUsage::default() };
    let usage = |role: &str| ProcessUsage {
        role: role.into(),
        cpu_ns: WINDOW_NS / 10,
        ..ProcessUsage::default()
    };
    run.processes = vec![usage("broker"), usage(GENERATOR_ROLE)];
    run
}

fn causes(run: &RunRecord, about: About) -> Vec<Cause> {
    of(run, about, None).into_iter().map(|finding| finding.cause).collect()
}

/// A rate that is kept up, with these times of a record in ms and of a request in a run.
fn scheduled(service: u64, response: u64, end_to_end: u64, round_trip: u64) -> RunRecord {
    let mut run = waiting();
    run.workload.pace = Pace::Scheduled { per_second: 400, arrivals: Arrivals::Constant };
    (run.offered, run.produced_records, run.workload.consume) = (400, 400, true);
    run.requests.returned = 400;
    run.requests.in_flight_ns = 400 * round_trip * 1_000_000;
    let mut latencies = Latencies::default();
    latencies.lag.record(0, 1_000, 400);
    latencies.service.record(0, service * 1_000_000, 400);
    latencies.response.record(0, response * 1_000_000, 400);
    latencies.end_to_end.record(0, end_to_end * 1_000_000, 400);
    run.latency = LatencyRecord::of(&latencies).ok();
    run
}

#[test]
fn a_full_window_is_reported_with_its_arithmetic() {
    let found = of(&waiting(), About::Rate, None).remove(0);
    assert_eq!((found.cause, found.change), (Cause::Window, Change::DoubleInFlight));
    assert_eq!(
        found.says,
        "5 requests of 16.0 KB on their way and 3.49 ms for each round trip allow 22.4 MB/s; \
         measured 22.3"
    );
}

#[test]
fn a_busy_thread_explains_the_window_before_it_and_is_named() {
    let mut run = waiting();
    run.processes[0].busiest_thread_ns = WINDOW_NS * 97 / 100;
    let found = of(&run, About::Rate, None);
    assert_eq!((found[0].cause.clone(), found[1].cause.clone()), (Cause::Thread, Cause::Window));
    assert_eq!(found[0].says, "the busiest thread of the broker was busy 97 % of the time");
    run.processes[1].busiest_thread_ns = WINDOW_NS;
    run.processes[1].busiest_thread = "lab-producer-0".into();
    let found = of(&run, About::Rate, None).remove(0);
    assert!(found.says.starts_with("the thread lab-producer-0 of the generator"), "{found:?}");
    assert_eq!(found.change, Change::DoubleProducers);
}

#[test]
fn processors_that_the_run_has_all_come_before_its_threads() {
    let mut run = waiting();
    for usage in &mut run.processes {
        (usage.cpu_ns, usage.busiest_thread_ns) = (WINDOW_NS * 95 / 100, WINDOW_NS * 95 / 100);
    }
    let found = of(&run, About::Rate, None);
    assert_eq!(found[0].cause, Cause::Processors);
    assert_eq!((&found[0].change, found[0].expected), (&Change::BusyProcesses(2), 0.5));
    assert_eq!(found[1].cause, Cause::Thread);
}

#[test]
fn a_sustained_rate_is_limited_by_the_offered_load() {
    let run = scheduled(2, 2, 2, 2);
    assert_eq!(usual(&run), About::Latency);
    assert_eq!(causes(&run, About::Rate), [Cause::Offered]);
    assert_eq!(usual(&waiting()), About::Rate);
}

#[test]
fn a_closed_loop_is_limited_by_its_records_in_flight() {
    let mut run = scheduled(10, 10, 10, 10);
    run.workload.pace = Pace::Closed { outstanding: 4 };
    run.requests.in_flight_ns = WINDOW_NS;
    let found = of(&run, About::Rate, None);
    assert_eq!((found.len(), &found[0].change), (1, &Change::DoubleOutstanding));
    assert!(found[0].says.contains("allow 400 records/s; measured 400"), "{}", found[0].says);
}

#[test]
fn a_latency_is_made_of_its_longest_waits() {
    let mut lingers = scheduled(30, 30, 32, 4);
    lingers.workload.linger_us = 50_000;
    assert_eq!(causes(&lingers, About::Latency), [Cause::Linger]);
    let flushes = scheduled(10, 10, 11, 10);
    let found = of(&flushes, About::Latency, Some(8.0));
    assert_eq!((&found[0].cause, found.len()), (&Cause::Flush, 1));
    assert!((found[0].share - 8.0 / 11.0).abs() < 0.01, "{found:?}");
    assert!(of(&flushes, About::Latency, Some(0.0)).is_empty());
    // A broker that does not report flush times is tested too. Half of the round trip is expected
    // to go.
    let found = of(&flushes, About::Latency, None);
    assert!((found[0].expected - (1.0 - 5.0 / 11.0)).abs() < 0.01, "{found:?}");
}

#[test]
fn causes_and_changes_of_earlier_versions_are_read() {
    let read = |text: &str| serde_json::from_str::<(Cause, Change)>(text).unwrap();
    let (cause, change) = read(r#"["garbage_collection","more_memory"]"#);
    assert_eq!(
        (cause.words(), change.words()),
        ("garbage collection".into(), "more memory".into())
    );
    let known = (Cause::Processors, Change::BusyProcesses(3));
    assert_eq!(read(r#"["processors",{"busy_processes":3}]"#), known);
    assert_eq!(serde_json::to_string(&known).unwrap(), r#"["processors",{"busy_processes":3}]"#);
}

#[test]
fn half_the_way_confirms_and_less_does_not() {
    let finding = of(&waiting(), About::Rate, None).remove(0);
    let outcome = |with: [f64; 3]| Trial::of(finding.clone(), with.map(|it| (10.0, it)).into());
    assert!(matches!(outcome([19.0, 18.0, 17.0]).outcome, Outcome::Confirmed(by) if by > 1.7));
    assert!(matches!(outcome([13.0, 14.0, 13.5]).outcome, Outcome::Rejected(_)));
    assert!(matches!(outcome([5.0, 5.1, 4.9]).outcome, Outcome::Rejected(_)));
    let falls = Finding { expected: 0.5, ..finding.clone() };
    let pairs = [6.0, 6.1, 6.2].map(|it| (10.0, it)).into();
    assert!(matches!(Trial::of(falls, pairs).outcome, Outcome::Confirmed(_)));
}

#[test]
fn differences_within_the_scatter_of_runs_decide_nothing() {
    let finding = Finding { expected: 1.1, ..of(&waiting(), About::Rate, None).remove(0) };
    let trial = |pairs: &[(f64, f64)]| Trial::of(finding.clone(), pairs.to_vec());
    // 8 % more on average, and as far apart.
    let noise = trial(&[(10.0, 12.0), (10.0, 9.8), (10.0, 10.7)]);
    assert!(matches!(noise.outcome, Outcome::Undecided(by) if by > 1.07), "{noise:?}");
    assert!(noise.interval_95().is_some_and(|it| it.low < 1.0 && it.high > 1.1));
    // Less than half of the way on average, and all of it within what is plausible.
    assert!(matches!(
        trial(&[(10.0, 11.5), (10.0, 9.0), (10.0, 10.2)]).outcome,
        Outcome::Undecided(_)
    ));
    // Two pairs do not show how far runs differ.
    let two = trial(&[(10.0, 11.0), (10.0, 11.1)]);
    assert!(matches!(two.outcome, Outcome::Undecided(_)) && two.interval_95().is_none());
    assert!(matches!(trial(&[]).outcome, Outcome::Untested(_)));
}

#[test]
fn a_wrong_cause_is_hardly_ever_confirmed_in_noise() {
    let finding = Finding { expected: 1.1, ..of(&waiting(), About::Rate, None).remove(0) };
    let mut random = fastrand::Rng::with_seed(6);
    let mut figure = || 100.0 * (1.0 + 0.1 * ((0..12).map(|_| random.f64()).sum::<f64>() - 6.0));
    let confirmed = (0..200).filter(|_| {
        let mut pairs = || (0..4).map(|_| (figure(), figure())).collect::<Vec<_>>();
        let mut trial = Trial::of(finding.clone(), pairs());
        if matches!(trial.outcome, Outcome::Undecided(_)) {
            trial = Trial::of(trial.finding, [trial.pairs, pairs()].concat());
        }
        matches!(trial.outcome, Outcome::Confirmed(_))
    });
    assert!(confirmed.count() <= 14);
}
