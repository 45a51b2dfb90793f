//! Made-up surveys: a system whose latency doubles at a known rate, and codecs of known price.

use super::*;
use crate::report::{html, markdown, sample, sentence, text};
use crate::result::{Arm, Experiment};
use crate::survey::{Cell, LatencyQuestion, Setting};
use moldau_load::schedule::Arrivals;
use moldau_load::workload::Pace;
use moldau_measure::histograms::Latencies;

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

fn curve() -> RunResult {
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

#[test]
fn the_answer_on_latency_names_the_lowest_the_knee_and_what_is_beyond() {
    let told = sentence(&curve());
    for part in [
        "On ours 99 % of the records are acknowledged within 2.00 ms [2.00, 2.0",
        "delivered within 2.50 ms",
        "at 10,000 records/s, where that is shortest",
        "stays within twice that up to 50,000 records/s, 50 % of full speed, and takes 9.00 ms",
        "at 80,000, 4.5",
        "times as long.",
    ] {
        assert!(told.contains(part), "{part}: {told}");
    }
}

#[test]
fn a_rate_that_is_not_kept_up_names_the_generator_if_that_was_busy() {
    let mut result = curve();
    result.runs.retain(|run| run.case != "at 80000");
    assert!(sentence(&result).contains("and does not keep up with 95,000."));
    for run in result.runs.iter_mut().filter(|run| run.case == "at 95000") {
        let generator = run.processes.iter_mut().find(|it| it.role == GENERATOR_ROLE).unwrap();
        generator.busiest_thread_ns = run.window_ns / 100 * 97;
    }
    let named = "95,000, which may be the generator's limit: its thread took 97 % of a processor.";
    let told = sentence(&result);
    assert!(told.contains(named), "{told}");
}

#[test]
fn every_rate_has_its_row_whether_it_was_kept_up_or_not() {
    let result = curve();
    let record = result.survey().unwrap();
    let [grid] = grids(&result, record, record.asks.as_ref().unwrap()).try_into().ok().unwrap();
    let words: Vec<[&str; 3]> =
        grid.rows.iter().map(|row| [&*row[0], &*row[1], &*row[10]]).collect();
    assert_eq!(words[1], ["50,000", "50 %", "kept up"]);
    assert_eq!(words[3], ["95,000", "95 %", "not kept up"]);
    assert_eq!(grid.rows[3][3], NONE);
    assert_eq!(grid.rows[2][5], "9.00");
    for report in [markdown(&result), text(&result), html(&result).unwrap()] {
        assert!(report.contains("Latency over the load on ours"), "{report}");
    }
}

#[test]
fn where_the_generator_was_late_everywhere_there_is_no_knee() {
    let mut result = curve();
    for run in &mut result.runs {
        sample::make_late(run, 2_000_000, 10);
    }
    assert!(sentence(&result).starts_with("There was nothing to compare."));
}

/// Codecs at a rate: processor time of the clients in ms, of the broker, and bytes as a share.
fn codecs_survey() -> RunResult {
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
            let case = format!("{scenario}, {}", word(codec));
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

#[test]
fn a_codec_is_recommended_by_bytes_by_processor_time_and_by_both() {
    let told = sentence(&codecs_survey());
    // 10 MB took 150, 170, 170 and 210 ms: 15.4, 17.4, 17.4 and 21.5 s for each GB.
    for part in [
        "On ours take zstd: where a GB less to send and to store is worth 100 s",
        "with it, 51.8 [51",
        "Fewest bytes: zstd, 30.3 [29.9",
        "least processor time: no codec, 15.0 CPU-ms/MB",
    ] {
        assert!(told.contains(part), "{part}: {told}");
    }
}

#[test]
fn codecs_that_cost_the_same_are_not_told_apart() {
    let mut result = codecs_survey();
    result.runs.retain(|run| !matches!(run.workload.tuning.compression, Codec::None | Codec::Zstd));
    let told = sentence(&result);
    assert!(told.contains("least processor time: lz4 (not told apart from snappy)"), "{told}");
    // A share of bytes is told apart however small the difference.
    assert!(told.contains("Fewest bytes: lz4, 50"), "{told}");
}

#[test]
fn the_table_of_codecs_has_ratios_to_no_codec_and_full_speed() {
    let result = codecs_survey();
    let record = result.survey().unwrap();
    let [grid] = grids(&result, record, record.asks.as_ref().unwrap()).try_into().ok().unwrap();
    let zstd = grid.rows.iter().find(|row| row[0] == "zstd").unwrap();
    assert_eq!(
        (&*zstd[3], &*zstd[4], &*zstd[5]),
        ("18.0 [18.0, 18.0]", "3.00 [3.00, 3.00]", "1.40 [1.40, 1.40]")
    );
    assert_eq!((&*zstd[8], &*grid.rows[0][5]), ("1.67", NONE));
    assert!(markdown(&result).contains("## Codecs on ours"));
}
