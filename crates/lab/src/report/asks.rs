//! The answers of surveys that are asked how latency grows with the load, or which codec to take.

use super::grid::Grid;
use super::table::NONE;
use crate::asks::{
    self, Choice, Knee, Reached, choose, codecs, cpu, cpu_of_all, estimate, rates, reached,
    stored_share, typical,
};
use crate::checks::THREAD_SHARE_MAX;
use crate::metric::Metric;
use crate::punctuality::{has_latencies, is_scheduled};
use crate::result::{LatencyRecord, RunRecord, RunResult};
use crate::survey::{Asks, CompressionQuestion, Estimate, SurveyRecord};
use moldau_load::workload::Codec;
use moldau_measure::cpu::GENERATOR_ROLE;
use moldau_measure::histograms::Summary;
use moldau_measure::numbers::Unit;
use moldau_measure::numbers::{number, plain, thousands};
use moldau_measure::statistics::{float, median};

/// The answer, in a sentence or two for each system.
pub(super) fn sentence(result: &RunResult, record: &SurveyRecord, asks: &Asks) -> String {
    let answers = result.arms.iter().filter_map(|arm| match asks {
        Asks::Latency(_) => latency(result, record, &arm.name),
        Asks::Compression(asked) => compression(result, record, asked, &arm.name),
    });
    let answers: Vec<String> = answers.collect();
    if answers.is_empty() { "There was nothing to compare.".into() } else { answers.join(" ") }
}

/// The tables, one for each system.
pub(super) fn grids(result: &RunResult, record: &SurveyRecord, asks: &Asks) -> Vec<Grid> {
    let of_system = |system: &str| match asks {
        Asks::Latency(_) => latency_grid(result, record, system),
        Asks::Compression(asked) => compression_grid(result, record, asked, system),
    };
    result.arms.iter().map(|arm| of_system(&arm.name)).collect()
}

fn latency(result: &RunResult, record: &SurveyRecord, system: &str) -> Option<String> {
    let rates = rates(record, &result.runs);
    let points: Vec<Reached> =
        rates.iter().map(|(_, case)| reached(&result.runs, case, system, result.seed)).collect();
    let at = |place: usize| rates.get(place).copied();
    let times = |place: usize, over: usize| {
        let cases = [at(place)?.1, at(over)?.1];
        asks::ratio(&result.runs, cases, system, result.seed, |run| Metric::ResponseP99.of(run))
    };
    let knee = Knee::of(&points, times)?;
    let of = |case: &str, metric: Metric| {
        let found = latency_of(result, case, system, metric);
        found.map_or_else(|| "an unknown time".into(), |it| with_interval(it, metric.unit(), "ms"))
    };
    let (lowest, case) = at(knee.lowest)?;
    let (within, _) = at(knee.within)?;
    let mut text = format!(
        "On {system} 99 % of the records are acknowledged within {} and delivered within {} of \
         when they were due at {} records/s, where that is shortest",
        of(case, Metric::ResponseP99),
        of(case, Metric::EndToEndP99),
        thousands(lowest),
    );
    text += &format!(
        "; publishing stays within twice that up to {} records/s{}",
        thousands(within),
        share(result, record, system, within)
    );
    let beyond = knee.beyond.and_then(|place| Some((place, at(place)?, points.get(place)?)));
    text += &match beyond {
        Some((place, (rate, case), Reached::Ms(_))) => {
            let p99 = of(case, Metric::ResponseP99);
            let more = times(place, knee.lowest)?;
            let more = with_interval(more, Unit::Times, "");
            format!(" and takes {p99} at {}, {more} times as long.", thousands(rate))
        }
        Some((_, (rate, case), _)) => {
            let whose = busy_generator(result, case, system);
            format!(" and does not keep up with {}{whose}.", thousands(rate))
        }
        None if knee.is_open => "; above, the rounds differ too much to tell.".into(),
        None => ", the most at which its latency is known.".into(),
    };
    Some(text)
}

/// Who else may be what does not keep up.
fn busy_generator(result: &RunResult, case: &str, system: &str) -> String {
    let shares = result.runs_of(case, system).map(RunRecord::generator_thread_share);
    let busiest = shares.fold(0.0, f64::max);
    if busiest < THREAD_SHARE_MAX {
        return String::new();
    }
    let share = busiest * 1e2;
    format!(", which may be the generator's limit: its thread took {share:.0} % of a processor")
}

/// A latency over the rounds.
fn latency_of(result: &RunResult, case: &str, system: &str, metric: Metric) -> Option<Estimate> {
    typical(&result.runs, case, system, result.seed, |run| metric.of(run))
}

/// What part of full speed a rate is, where that was measured.
fn share(result: &RunResult, record: &SurveyRecord, system: &str, rate: u64) -> String {
    full_speed(result, record, system).map_or_else(String::new, |full| {
        format!(", {:.0} % of full speed,", float(rate) / full * 1e2)
    })
}

fn full_speed(result: &RunResult, record: &SurveyRecord, system: &str) -> Option<f64> {
    let is_free = |case: &str| result.runs_of(case, system).all(|run| !is_scheduled(run));
    let cell = record.cells.iter().find(|cell| is_free(&cell.name))?;
    Some(of_metric(result, &cell.name, system, Metric::ProduceRecords)?.mean)
}

fn latency_grid(result: &RunResult, record: &SurveyRecord, system: &str) -> Grid {
    let rows = rates(record, &result.runs).into_iter().map(|(rate, case)| {
        let middle = |metric: Metric| {
            let found = latency_of(result, case, system, metric);
            found.map_or(NONE.into(), |it| number(it.mean, Unit::Milliseconds))
        };
        let spread = |metric: Metric| {
            let found = latency_of(result, case, system, metric);
            found.map_or(NONE.into(), |it| with_interval(it, Unit::Milliseconds, ""))
        };
        let full = full_speed(result, record, system);
        vec![
            thousands(rate),
            full.map_or(NONE.into(), |full| format!("{:.0} %", float(rate) / full * 1e2)),
            middle(Metric::ResponseP50),
            spread(Metric::ResponseP99),
            middle(Metric::ResponseP999),
            longest(result, case, system, |latency| latency.response.summary),
            middle(Metric::EndToEndP50),
            spread(Metric::EndToEndP99),
            middle(Metric::EndToEndP999),
            longest(result, case, system, |latency| latency.end_to_end.summary),
            match reached(&result.runs, case, system, result.seed) {
                Reached::Ms(_) => "kept up".into(),
                Reached::Saturated => "not kept up".into(),
                Reached::Unknown => "the generator was late".into(),
            },
        ]
    });
    Grid::of(
        &format!("Latency over the load on {system}, ms"),
        "Open loop: from when a record was due to its acknowledgement (publish) and to its \
         delivery (end to end). Geometric means over the rounds, the 99th percentile with its 95 % \
         interval; the longest is that of all rounds.",
        &[
            "records/s",
            "of full speed",
            "publish p50",
            "publish p99",
            "publish p99.9",
            "longest",
            "end to end p50",
            "end to end p99",
            "end to end p99.9",
            "longest",
            "rate",
        ],
        rows,
    )
}

fn longest(
    result: &RunResult,
    case: &str,
    system: &str,
    latency: impl Fn(&LatencyRecord) -> Summary,
) -> String {
    let runs = result.runs_of(case, system).filter(|run| has_latencies(run));
    let found = runs.filter_map(|run| run.latency.as_ref()).map(|it| latency(it).max_ns).max();
    found.map_or(NONE.into(), |ns| number(float(ns) / 1e6, Unit::Milliseconds))
}

fn compression(
    result: &RunResult,
    record: &SurveyRecord,
    asked: &CompressionQuestion,
    system: &str,
) -> Option<String> {
    let loads = codecs(record, &result.runs, true);
    let (runs, seed) = (&result.runs, result.seed);
    let bytes = choose(runs, &loads, system, seed, stored_share)?;
    let processor = choose(runs, &loads, system, seed, cpu_of_all)?;
    let price = choose(runs, &loads, system, seed, |run| asked.price(run))?;
    Some(format!(
        "On {system} take {}: where a GB less to send and to store is worth {} s of processor \
         time, a GB of these values comes to the least with it, {} s. Fewest bytes: {}, {} % of \
         the values; least processor time: {}, {} for clients and brokers together.",
        named(&price),
        asked.gigabyte_is_worth_cpu_s,
        with_interval_plain(price.found, 1.0),
        named(&bytes),
        with_interval_plain(bytes.found, 100.0),
        named(&processor),
        with_interval(processor.found, Unit::CpuMillisecondsPerMegabyte, "CPU-ms/MB"),
    ))
}

/// A codec, with those that it is not told apart from.
fn named(choice: &Choice<Codec>) -> String {
    let alike: Vec<&str> = choice.alike.iter().map(|codec| word(*codec)).collect();
    match alike.as_slice() {
        [] => word(choice.best).into(),
        alike => format!("{} (not told apart from {})", word(choice.best), alike.join(", ")),
    }
}

fn word(codec: Codec) -> &'static str {
    match codec {
        Codec::None => "no codec",
        Codec::Gzip => "gzip",
        Codec::Snappy => "snappy",
        Codec::Lz4 => "lz4",
        Codec::Zstd => "zstd",
    }
}

fn compression_grid(
    result: &RunResult,
    record: &SurveyRecord,
    asked: &CompressionQuestion,
    system: &str,
) -> Grid {
    let (runs, seed) = (&result.runs, result.seed);
    let at_full_speed = codecs(record, runs, false);
    let loads = codecs(record, runs, true);
    let without = loads.iter().find(|(codec, _)| *codec == Codec::None).map(|(_, case)| *case);
    let rows = loads.iter().map(|(codec, case)| {
        let figure = |figure: &dyn Fn(&RunRecord) -> Option<f64>, scale: f64| {
            let found = estimate(runs, case, system, seed, figure);
            found.map_or(NONE.into(), |it| with_interval_plain(it, scale))
        };
        let more = without
            .filter(|without| *without != *case)
            .and_then(|without| asks::ratio(runs, [*case, without], system, seed, cpu_of_all));
        let full = at_full_speed.iter().find(|(other, _)| other == codec).and_then(|(_, case)| {
            let found = result.runs_of(case, system);
            let found: Vec<f64> =
                found.filter_map(|run| Metric::ProduceThroughput.of(run)).collect();
            (!found.is_empty()).then(|| median(&found))
        });
        vec![
            word(*codec).into(),
            figure(&|run| Metric::CompressionRatio.of(run), 1.0),
            figure(&stored_share, 100.0),
            figure(&|run| cpu(run, GENERATOR_ROLE), 1.0),
            figure(&|run| cpu(run, "broker"), 1.0),
            more.map_or(NONE.into(), |it| with_interval(it, Unit::Times, "")),
            figure(&|run| asked.price(run), 1.0),
            latency_of(result, case, system, Metric::ResponseP99)
                .map_or(NONE.into(), |it| with_interval_plain(it, 1.0)),
            full.map_or(NONE.into(), |it| number(it, Unit::MegabytesPerSecond)),
        ]
    });
    Grid::of(
        &format!("Codecs on {system}"),
        "Means over the rounds with 95 % intervals, of latencies geometric ones, at the fixed rate \
         but for the last column. \
         Batches are stored as they are sent, so that their bytes are those of the wire and of the \
         disk. Processor time is that for each MB of values that was produced and read once; \
         clients are those of the laboratory with all that they do besides, which is the same for \
         every codec. The price of a GB of values is its processor time and what its bytes are \
         worth.",
        &[
            "codec",
            "values by bytes, x",
            "bytes, % of the values",
            "clients, CPU-ms/MB",
            "brokers, CPU-ms/MB",
            "both, by those without a codec",
            "price of a GB, CPU-s",
            "publish p99, ms",
            "most, MB/s",
        ],
        rows,
    )
}

fn of_metric(result: &RunResult, case: &str, system: &str, metric: Metric) -> Option<Estimate> {
    estimate(&result.runs, case, system, result.seed, |run| metric.of(run))
}

/// A mean with its interval, and its unit between them unless that stands elsewhere.
fn with_interval(found: Estimate, unit: Unit, symbol: &str) -> String {
    let mean = number(found.mean, unit);
    let mean = if symbol.is_empty() { mean } else { format!("{mean} {symbol}") };
    found.interval.map_or(mean.clone(), |it| {
        format!("{mean} [{}, {}]", number(it.low, unit), number(it.high, unit))
    })
}

fn with_interval_plain(found: Estimate, scale: f64) -> String {
    let mean = plain(found.mean * scale);
    found.interval.map_or(mean.clone(), |it| {
        format!("{mean} [{}, {}]", plain(it.low * scale), plain(it.high * scale))
    })
}

#[cfg(test)]
mod tests;
