//! A made-up result for the tests of the reports.

use crate::ceiling::search::{Outcome, Search};
use crate::ceiling::{CeilingRecord, Demand, Growth, Miss, SearchRecord, Trial};
use crate::checks;
use crate::environment::Environment;
use crate::explain::{self, About, Cause, Change, Explanation, Finding};
use crate::metric::compare;
use crate::result::{Arm, Experiment, ExplainRecord, LatencyRecord, RunRecord, RunResult, Slot};
use crate::survey::Setting;
use moldau_load::clocks::ClockRecord;
use moldau_load::ledger::{Audit, self_test};
use moldau_load::payload::Filler;
use moldau_load::run::{Requests, WorkerRecord};
use moldau_load::schedule::Arrivals;
use moldau_load::workload::{Pace, Tuning, Workload};
use moldau_measure::cpu::{HostUsage, ProcessUsage};
use moldau_measure::histograms::{HistogramRecord, Latencies};
use moldau_measure::statistics::Interval;

pub(crate) const FIXED: &str = "Fixed rate, produced and consumed";

/// A result in which the proxy is about a third slower.
pub(crate) fn result() -> RunResult {
    let arms = ["direct", "proxy"]
        .map(|name| Arm::of(name, format!("the {name} path, <with> a \"description\"")));
    let mut runs = Vec::new();
    for pair in 0..6_u32 {
        for arm in ["direct", "proxy"] {
            runs.push(fixed(arm, pair));
        }
    }
    for pair in 0..3_u32 {
        for arm in ["direct", "proxy"] {
            runs.push(full_speed(arm, pair));
        }
    }
    let audit = runs.iter().fold(Audit::default(), |sum, run| sum.plus(run.audit));
    let checks = checks::all(&runs, &audit, &self_test(1, 50).unwrap());
    let comparisons =
        [FIXED, "Produce at full speed"].map(|case| compare(&runs, case, "direct", "proxy", 1));
    let environment = Environment::inspect("0.1.0", std::path::Path::new("/"));
    RunResult {
        elapsed_ms: 131_000,
        seed: 42,
        quick: true,
        arms: arms.to_vec(),
        runs,
        comparisons: comparisons.concat(),
        audit,
        ..RunResult::bare(Experiment::SideBySide, 1_769_903_999_000, environment, checks)
    }
}

/// A search whose ceiling is 100,000 records per second and a little less for each producer.
pub(crate) fn search(arm: &str, producers: u16) -> SearchRecord {
    let each = 100_000.0 / (1.0 + 0.05 * (f64::from(producers) - 1.0));
    let ceiling = each * f64::from(producers);
    let mut state = Search::new(ceiling * 1.2);
    let mut trials = Vec::new();
    while let Some(rate) = state.next_rate() {
        let is_sustained = rate <= ceiling;
        let outcome = if is_sustained { Outcome::Sustained } else { Outcome::Missed };
        state.note(rate, outcome);
        trials.push(Trial {
            rate,
            outcome,
            misses: if is_sustained { Vec::new() } else { vec![Miss::Response, Miss::Backlog] },
            p99_ms: if is_sustained { 12.0 } else { 240.0 },
            growth: Some(Growth {
                ms_per_second: 0.5,
                interval_95: Interval { low: -0.2, high: 1.2 },
            }),
            reached: 0.998,
            generator_thread: 0.4,
            taken: 0.01,
        });
    }
    SearchRecord {
        arm: arm.into(),
        producers,
        record_bytes: 1024,
        full_speed: ceiling * 1.2,
        trials,
        found: state.found(),
    }
}

/// A search over numbers of producers on two systems.
pub(crate) fn ceiling() -> RunResult {
    let searches = [1, 2, 4, 8]
        .into_iter()
        .flat_map(|producers| ["moldau", "kafka"].map(|arm| search(arm, producers)));
    let record = CeilingRecord { demand: Demand { p99_ms: 50.0 }, searches: searches.collect() };
    RunResult {
        experiment: Experiment::Ceiling,
        arms: ["moldau", "kafka"].map(|name| Arm::of(name, "")).to_vec(),
        comparisons: Vec::new(),
        ceiling: Some(record),
        ..result()
    }
}

/// A result in which a window explains a rate, after something else did not.
pub(crate) fn explained() -> RunResult {
    let finding = |cause, change, says: &str| Finding {
        cause,
        share: 0.98,
        says: says.into(),
        change,
        expected: 2.0,
    };
    let (thread, window) = ("the thread <x> was busy 90 % of the time", "5 requests of 16.0 KB");
    let trials = vec![
        explain::Trial::of(
            finding(Cause::Thread, Change::DoubleProducers, thread),
            vec![(10.0, 10.5), (10.0, 10.4), (10.0, 10.6)],
        ),
        explain::Trial::of(
            finding(Cause::Window, Change::DoubleInFlight, window),
            vec![(10.0, 19.0), (10.0, 19.1), (10.0, 18.9)],
        ),
    ];
    let explanation = Explanation { about: About::Rate, figure: 9_990.0, trials };
    let load = vec![Setting { key: "partitions".into(), value: "1".into() }];
    let record = ExplainRecord { system: "moldau".into(), load, explanation };
    let mut result = result();
    result.experiment = Experiment::Explain(record);
    result
}

/// Makes the generator late in a run: with one operation in a hundred, or with one in ten.
pub(crate) fn make_late(run: &mut RunRecord, lag_ns: u64, one_in: u64) {
    let mut latencies = Latencies::default();
    latencies.response.record(0, 9_000_000, 1_000);
    latencies.lag.record(0, 100_000, 1_000 - 1_000 / one_in - 10);
    latencies.lag.record(0, lag_ns, 1_000 / one_in + 10);
    run.latency = LatencyRecord::of(&latencies).ok();
}

fn workload(pace: Pace) -> Workload {
    Workload {
        pace,
        record_bytes: 1024,
        filler: Filler::Text,
        partitions: 4,
        producers: 1,
        batch_bytes: 16_384,
        linger_us: 1_000,
        consume: true,
        tails: 0,
        warmup_ms: 1_000,
        window_ms: 6_000,
        tuning: Tuning::default(),
    }
}

fn fixed(arm: &str, pair: u32) -> RunRecord {
    let is_proxy = arm == "proxy";
    let mut random = fastrand::Rng::with_seed(u64::from(pair) * 2 + u64::from(is_proxy));
    let mut latencies = Latencies::default();
    let base = if is_proxy { 850_000.0 } else { 640_000.0 } * (1.0 + 0.04 * random.f64());
    for _ in 0..40_000 {
        let tail = 1.0 / (1.0 - random.f64()).powf(0.45);
        let nanos = base * (0.6 + 0.4 * tail);
        let nanos = format!("{nanos:.0}").parse().unwrap();
        latencies.lag.record(0, random.u64(1_000..90_000), 1);
        latencies.service.record(0, nanos * 7 / 10, 1);
        latencies.response.record(0, nanos, 1);
        latencies.end_to_end.record(0, nanos + 90_000, 1);
    }
    let slot = |_| {
        let p50 = random.u64(500_000..700_000);
        Slot {
            produced_records: 10_000 + random.u64(0..300),
            consumed_records: 10_000,
            silence_ns: 0,
            response_p50_ns: p50,
            response_p99_ns: p50 * random.u64(2..6),
            response_max_ns: p50 * 9,
            end_to_end_p99_ns: p50 * 5,
        }
    };
    let series = (0..24).map(slot).collect();
    let scheduled = Pace::Scheduled { per_second: 20_000, arrivals: Arrivals::Constant };
    RunRecord {
        latency: Some(LatencyRecord::of(&latencies).unwrap()),
        series,
        ..record(FIXED, arm, pair, workload(scheduled), 120_000)
    }
}

fn full_speed(arm: &str, pair: u32) -> RunRecord {
    let records = if arm == "proxy" { 1_200_000 } else { 1_500_000 } + u64::from(pair) * 9_000;
    let mut record = record("Produce at full speed", arm, pair, workload(Pace::Unpaced), records);
    record.consumed_records = 0;
    record.window_start_ms += 90_000;
    record.series = vec![Slot { produced_records: records / 24, ..Slot::default() }; 24];
    record
}

/// Two workers that shared a run, the clocks of both known to `bound_ns`.
pub(crate) fn workers(run: &RunRecord, bound_ns: u64) -> Vec<WorkerRecord> {
    let summary = |of: fn(&LatencyRecord) -> &HistogramRecord| {
        run.latency.as_ref().map(|latency| of(latency).summary).unwrap_or_default()
    };
    let worker = |(machine, name): (u16, &str)| WorkerRecord {
        name: name.into(),
        machine,
        produced_records: run.produced_records / 2,
        consumed_records: run.consumed_records / 2,
        lag: summary(|latency| &latency.lag),
        response: summary(|latency| &latency.response),
        usage: ProcessUsage {
            role: "generator".into(),
            cpu_ns: 250_000_000,
            busiest_thread_ns: 125_000_000,
            ..ProcessUsage::default()
        },
        host: run.host,
        clock: ClockRecord { bound_ns, drift_ns: -200, round_trip_ns: 2 * bound_ns },
    };
    [(0, "one:7400"), (1, "two:7400")].map(worker).into()
}

fn record(case: &str, arm: &str, pair: u32, workload: Workload, records: u64) -> RunRecord {
    let is_proxy = arm == "proxy";
    let usage = |role: &str, cpu_ns| ProcessUsage {
        role: role.into(),
        cpu_ns,
        busiest_thread_ns: cpu_ns / 2,
        ..ProcessUsage::default()
    };
    let mut processes = vec![
        usage("broker", 300_000_000 + u64::from(pair) * 7_000_000),
        usage("generator", 500_000_000),
    ];
    if is_proxy {
        processes.push(usage("proxy", 260_000_000));
    }
    RunRecord {
        case: case.into(),
        arm: arm.into(),
        pair,
        workload,
        window_start_ms: u64::from(pair) * 15_000 + if is_proxy { 7_500 } else { 0 },
        window_ns: 6_000_000_000,
        offered: 120_000,
        shed: 0,
        produced_records: records,
        produced_batches: records / 16,
        answered: 120_000,
        consumed_records: records,
        stored_bytes: 0,
        latency: None,
        slot_ms: 250,
        series: Vec::new(),
        longest_silence_ns: 0,
        processes,
        host: HostUsage {
            busy_ticks: 120,
            idle_ticks: 1_080,
            steal_ticks: 1,
            softirq_ticks: 20,
            ..HostUsage::default()
        },
        held_records: records,
        requests: Requests::default(),
        transactions: None,
        skew: None,
        workers: Vec::new(),
        audit: Audit { sent: records, acked: records, delivered: records, ..Audit::default() },
    }
}
