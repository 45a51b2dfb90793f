//! Findings follow from evidence as it was recorded, whatever machine recorded it.

use super::*;
use crate::sample;
use moldau_load::run::{LatencyRecord, Requests};
use moldau_load::schedule::Arrivals;
use moldau_load::workload::{Codec, Tuning};
use moldau_measure::cpu::{HostUsage, ProcessUsage};
use moldau_measure::evidence::Flushes;
use moldau_measure::histograms::Latencies;

const WINDOW_NS: u64 = 1_000_000_000;

fn thread(name: &str, busy_percent: u64, wait_percent: u64) -> ThreadEvidence {
    ThreadEvidence {
        name: name.into(),
        cpu_ns: busy_percent * WINDOW_NS / 100,
        wait_ns: wait_percent * WINDOW_NS / 100,
    }
}

fn process(role: &str, threads: Vec<ThreadEvidence>) -> ProcessEvidence {
    ProcessEvidence { role: role.into(), threads, ..ProcessEvidence::default() }
}

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
    let broker = process("broker", vec![thread("worker", 8, 0)]);
    let generator = process(GENERATOR_ROLE, vec![thread("lab-producer-0", 10, 0)]);
    run.evidence = Some(Evidence {
        elapsed_ns: WINDOW_NS,
        processes: vec![broker, generator],
        runnable: 0.3,
        ..Evidence::default()
    });
    run
}

fn evidence(run: &mut RunRecord) -> &mut Evidence {
    run.evidence.as_mut().unwrap()
}

fn broker(run: &mut RunRecord) -> &mut ProcessEvidence {
    &mut evidence(run).processes[0]
}

fn causes(run: &RunRecord, about: About) -> Vec<Cause> {
    of(run, about).into_iter().map(|finding| finding.cause).collect()
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
fn a_full_window_is_told_with_its_arithmetic() {
    let found = of(&waiting(), About::Rate);
    assert_eq!((found[0].cause, found[0].change), (Cause::Window, Change::DoubleInFlight));
    assert_eq!(
        found[0].says,
        "5 requests of 16.0 KB on their way and 3.49 ms for each round trip allow 22.4 MB/s; \
         measured 22.3"
    );
    assert_eq!(causes(&waiting(), About::Rate), [Cause::Window, Cause::Partition]);
}

#[test]
fn a_window_needs_no_evidence_of_processes() {
    let run = RunRecord { evidence: None, ..waiting() };
    assert_eq!(causes(&run, About::Rate)[0], Cause::Window);
}

#[test]
fn the_accounts_of_a_run_tell_of_a_busy_thread_that_nobody_looked_at() {
    let mut run = RunRecord { evidence: None, ..waiting() };
    run.processes[0].busiest_thread_ns = WINDOW_NS * 97 / 100;
    let found = of(&run, About::Rate);
    assert_eq!(found[0].cause, Cause::Thread);
    assert_eq!(found[0].says, "the busiest thread of the system was busy 97 % of the time");
    run.processes[0].busiest_thread_ns = 0;
    run.processes[1].busiest_thread_ns = WINDOW_NS * 97 / 100;
    assert_eq!(of(&run, About::Rate)[0].cause, Cause::Generator);
}

#[test]
fn a_thread_that_is_busy_explains_the_window_before_it() {
    let mut run = waiting();
    broker(&mut run).threads[0] = thread("worker", 97, 0);
    assert_eq!(causes(&run, About::Rate)[..2], [Cause::Thread, Cause::Window]);
    broker(&mut run).garbage_collection_ns = WINDOW_NS / 2;
    assert_eq!(causes(&run, About::Rate)[..2], [Cause::GarbageCollection, Cause::Thread]);
}

#[test]
fn bytes_that_nobody_takes_wait_for_who_should() {
    let mut run = waiting();
    evidence(&mut run).unread_bytes = 70_000.0;
    let at_the_door = [Cause::Partition, Cause::Bandwidth, Cause::Window];
    assert_eq!(causes(&run, About::Rate), at_the_door);
    evidence(&mut run).processes.push(process("proxy", Vec::new()));
    assert_eq!(causes(&run, About::Rate)[0], Cause::Bandwidth);
}

#[test]
fn a_busy_producer_makes_records_or_compresses_them() {
    let mut run = waiting();
    evidence(&mut run).processes[1].threads[0] = thread("lab-producer-0", 95, 0);
    let found = of(&run, About::Rate);
    assert_eq!((found[0].cause, found[0].change), (Cause::Generator, Change::DoubleProducers));
    run.workload.tuning.compression = Codec::Gzip;
    let found = of(&run, About::Rate);
    assert_eq!((found[0].cause, found[0].change), (Cause::Compression, Change::NoCompression));
}

#[test]
fn what_is_done_to_a_process_comes_before_what_it_does() {
    let mut run = waiting();
    broker(&mut run).threads[0] = thread("worker", 97, 0);
    broker(&mut run).throttled_share = 0.9;
    assert_eq!(causes(&run, About::Rate)[0], Cause::Throttled);
    broker(&mut run).stopped_share = 0.5;
    let found = of(&run, About::Rate);
    assert_eq!((found[0].cause, found[0].expected), (Cause::Stopped, 2.0));
    run.requests.throttled_ns = WINDOW_NS / 2;
    broker(&mut run).stopped_share = 0.0;
    broker(&mut run).throttled_share = 0.0;
    assert_eq!(causes(&run, About::Rate)[0], Cause::Quota);
}

#[test]
fn producers_and_partitions_are_those_of_all_topics() {
    let mut run = waiting();
    run.workload.tuning.topics = 10;
    let found = of(&run, About::Rate).into_iter().find(|it| it.cause == Cause::Partition).unwrap();
    assert!(found.says.contains("for 10 partitions"), "{}", found.says);
    // The producer of each topic was told to wait for half of the time.
    run.requests.throttled_ns = 10 * WINDOW_NS / 2;
    let found = of(&run, About::Rate).remove(0);
    assert_eq!(found.cause, Cause::Quota);
    assert!((found.share - 0.5).abs() < 1e-9 && found.says.contains("50 %"), "{}", found.says);
    // One of them alone, which is a twentieth of the time of all.
    run.requests.throttled_ns = WINDOW_NS / 2;
    assert!(!causes(&run, About::Rate).contains(&Cause::Quota));
}

#[test]
fn processors_are_taken_by_others_or_by_the_run_itself() {
    let mut run = waiting();
    run.host = HostUsage { busy_ticks: 200, ..run.host };
    run.host.idle_ticks = 0;
    evidence(&mut run).runnable = 7.0;
    broker(&mut run).threads[0] = thread("worker", 20, 60);
    let found = of(&run, About::Rate);
    assert_eq!(found[0].cause, Cause::OtherProcesses);
    assert_eq!(found[0].change, Change::BusyProcesses(6));
    for usage in &mut run.processes {
        usage.cpu_ns = WINDOW_NS * 95 / 100;
    }
    broker(&mut run).threads[0] = thread("worker", 60, 60);
    assert_eq!(causes(&run, About::Rate)[0], Cause::Processors);
}

#[test]
fn a_rate_that_is_kept_up_is_limited_by_what_is_offered() {
    let run = scheduled(2, 2, 2, 2);
    assert_eq!(usual(&run), About::Latency);
    assert_eq!(causes(&run, About::Rate), [Cause::Offered]);
    assert_eq!(usual(&waiting()), About::Rate);
}

#[test]
fn a_closed_loop_is_limited_by_what_it_keeps_on_its_way() {
    let mut run = scheduled(10, 10, 10, 10);
    run.workload.pace = Pace::Closed { outstanding: 4 };
    run.requests.in_flight_ns = WINDOW_NS;
    let found = of(&run, About::Rate);
    assert_eq!((found.len(), found[0].cause), (1, Cause::Outstanding));
    assert!(found[0].says.contains("allow 400 records/s; measured 400"), "{}", found[0].says);
}

#[test]
fn a_latency_is_made_of_its_longest_waits() {
    let mut lingers = scheduled(30, 30, 32, 4);
    lingers.workload.linger_us = 50_000;
    assert_eq!(causes(&lingers, About::Latency)[0], Cause::Linger);
    let fetched_late = scheduled(4, 4, 200, 4);
    let found = of(&fetched_late, About::Latency);
    assert_eq!((found[0].cause, found[0].change), (Cause::FetchWait, Change::FetchAtOnce));
    assert!((found[0].expected - 0.02).abs() < 0.001, "{found:?}");
}

#[test]
fn a_round_trip_is_made_of_flushes_followers_and_the_way() {
    let mut run = scheduled(10, 10, 11, 10);
    broker(&mut run).flushes = Some(Flushes { count: 100, ns: 100 * 8_000_000 });
    let found = of(&run, About::Latency);
    assert_eq!((found[0].cause, found.len()), (Cause::Flush, 1));
    assert!((found[0].share - 8.0 / 11.0).abs() < 0.01, "{found:?}");
    broker(&mut run).flushes = Some(Flushes::default());
    evidence(&mut run).processes.push(process("proxy", Vec::new()));
    let found = of(&run, About::Latency);
    assert_eq!((found.len(), found[0].cause), (1, Cause::Way));
    // 10 of 11 ms are left of the round trip, and half of them go with the front.
    assert!((found[0].expected - (1.0 - 5.0 / 11.0)).abs() < 0.01, "{found:?}");
    evidence(&mut run).processes.push(process("broker", Vec::new()));
    assert_eq!(causes(&run, About::Latency), [Cause::Replication, Cause::Way]);
}

#[test]
fn a_broker_that_tells_no_flushes_is_seen_waiting_for_the_disk() {
    let mut run = scheduled(10, 10, 10, 10);
    (run.requests.returned, run.requests.in_flight_ns) = (50, WINDOW_NS / 2);
    broker(&mut run).disk_wait_share = 0.45;
    assert_eq!(causes(&run, About::Latency)[0], Cause::Flush);
}

#[test]
fn half_the_way_confirms_and_less_does_not() {
    let finding = of(&waiting(), About::Rate).remove(0);
    let outcome = |with: [f64; 3]| Trial::of(finding.clone(), with.map(|it| (10.0, it)).into());
    assert!(matches!(outcome([19.0, 18.0, 17.0]).outcome, Outcome::Confirmed(by) if by > 1.7));
    assert!(matches!(outcome([13.0, 14.0, 13.5]).outcome, Outcome::Rejected(_)));
    assert!(matches!(outcome([5.0, 5.1, 4.9]).outcome, Outcome::Rejected(_)));
    let falls = Finding { expected: 0.5, ..finding.clone() };
    let pairs = [6.0, 6.1, 6.2].map(|it| (10.0, it)).into();
    assert!(matches!(Trial::of(falls, pairs).outcome, Outcome::Confirmed(_)));
}

#[test]
fn what_runs_differ_by_themselves_decides_nothing() {
    let finding = Finding { expected: 1.1, ..of(&waiting(), About::Rate).remove(0) };
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
    // Two pairs tell nothing of how far runs differ.
    let two = trial(&[(10.0, 11.0), (10.0, 11.1)]);
    assert!(matches!(two.outcome, Outcome::Undecided(_)) && two.interval_95().is_none());
    assert!(matches!(trial(&[]).outcome, Outcome::Untested(_)));
}

#[test]
fn a_wrong_cause_is_hardly_ever_confirmed_in_noise() {
    let finding = Finding { expected: 1.1, ..of(&waiting(), About::Rate).remove(0) };
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
