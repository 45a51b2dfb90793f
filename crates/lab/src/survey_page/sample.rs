//! Made-up surveys: a system whose latency doubles at a known rate, and codecs of known price.

use crate::result::{Arm, Experiment, LatencyRecord, RunResult};
use crate::sample;
use crate::survey::{Asks, Cell, CompressionQuestion, LatencyQuestion, Setting, SurveyRecord};
use moldau_load::run::RunRecord;
use moldau_load::schedule::Arrivals;
use moldau_load::workload::{Codec, Pace};
use moldau_measure::cpu::GENERATOR_ROLE;
use moldau_measure::histograms::Latencies;
use moldau_measure::statistics::float;

fn cell(name: &str, from: Option<&str>) -> Cell {
    let settings = vec![Setting { key: "key".into(), value: "value".into() }];
    Cell { name: name.into(), settings, from: from.map(Into::into) }
}

fn survey(cells: Vec<Cell>, asks: Asks, runs: Vec<RunRecord>) -> RunResult {
    let record = SurveyRecord {
        question: "What <is> asked?".into(),
        hypothesis: "Nothing.".into(),
        source: None,
        pairs: Vec::new(),
        cells,
        claims: Vec::new(),
        totals: Vec::new(),
        asks: Some(asks),
        remarks: Vec::new(),
        left_out: Vec::new(),
    };
    RunResult {
        experiment: Experiment::Survey(record),
        arms: vec![Arm::of("ours", "a system")],
        comparisons: Vec::new(),
        runs,
        ..sample::result()
    }
}

fn run(case: &str, pair: u32, pace: Pace) -> RunRecord {
    let result = sample::result();
    let mut run = result.runs[0].clone();
    (run.case, run.arm, run.pair) = (case.into(), "ours".into(), pair);
    run.workload.pace = pace;
    run
}

fn at_rate(per_second: u64) -> Pace {
    Pace::Scheduled { per_second, arrivals: Arrivals::Constant }
}

/// A run at a rate that is kept up, with this 99th percentile.
fn kept(case: &str, pair: u32, per_second: u64, p99_us: u64) -> RunRecord {
    let mut run = run(case, pair, at_rate(per_second));
    let mut latencies = Latencies::default();
    latencies.lag.record(0, 1_000, 1_000);
    for (durations, us) in
        [(&mut latencies.response, p99_us), (&mut latencies.end_to_end, p99_us + 500)]
    {
        durations.record(0, us * 500, 950);
        durations.record(0, us * 1_000, 50);
    }
    run.latency = LatencyRecord::of(&latencies).ok();
    run
}

/// Rates. The latencies of the lowest two are within twice the lowest latency.
pub(crate) fn curve() -> RunResult {
    let mut runs = Vec::new();
    for pair in 0..4_u32 {
        let mut full = run("full speed", pair, Pace::Unpaced);
        (full.produced_records, full.window_ns) = (100_000, 1_000_000_000);
        full.latency = None;
        runs.push(full);
        for (per_second, p99_us) in [(10_000, 2_000), (50_000, 3_000), (80_000, 9_000)] {
            let p99_us = p99_us + u64::from(pair);
            runs.push(kept(&format!("at {per_second}"), pair, per_second, p99_us));
        }
        let mut over = run("at 95000", pair, at_rate(95_000));
        over.produced_records = over.offered / 2;
        runs.push(over);
    }
    let from = Some("full speed");
    let names = ["at 10000", "at 50000", "at 80000", "at 95000"];
    let cells = std::iter::once(cell("full speed", None))
        .chain(names.map(|name| cell(name, from)))
        .collect();
    survey(cells, Asks::Latency(LatencyQuestion::default()), runs)
}

/// Codecs at a rate: processor time of the clients in ms, of the broker, and bytes as a share.
pub(crate) fn codecs_survey() -> RunResult {
    let figures = [
        (Codec::None, 100, 50, 1.02),
        (Codec::Lz4, 130, 40, 0.5),
        (Codec::Snappy, 130, 40, 0.51),
        (Codec::Zstd, 180, 30, 0.3),
    ];
    let mut runs = Vec::new();
    let mut cells = Vec::new();
    for (codec, clients, broker, share) in figures {
        for (scenario, pace) in [("at a rate", at_rate(1_024)), ("free", Pace::Unpaced)] {
            let case = format!("{scenario}, {}", codec_word(codec));
            let from = (codec != Codec::None).then_some(scenario);
            cells.push(cell(&case, from));
            for pair in 0..4_u32 {
                let mut run = kept(&case, pair, 1_024, 2_000);
                run.workload.pace = pace;
                run.workload.tuning.compression = codec;
                run.produced_records = 10 * 1_024;
                run.offered = run.produced_records;
                let bytes = float(run.audit.delivered * 1_024) * (share + 0.002 * f64::from(pair));
                run.stored_bytes = format!("{bytes:.0}").parse().unwrap();
                for usage in &mut run.processes {
                    let ms = if usage.role == GENERATOR_ROLE { clients } else { broker };
                    // The same in every codec of a round, so that ratios are exact.
                    usage.cpu_ns = ms * 1_000_000;
                }
                if pace == Pace::Unpaced {
                    run.latency = None;
                }
                runs.push(run);
            }
        }
    }
    let asked = CompressionQuestion { gigabyte_is_worth_cpu_s: 100 };
    survey(cells, Asks::Compression(asked), runs)
}

fn codec_word(codec: Codec) -> String {
    format!("{codec:?}").to_lowercase()
}
