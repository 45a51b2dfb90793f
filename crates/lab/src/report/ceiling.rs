//! The report of a search for the highest rate: the ceilings, their trials, and how they scale.

mod drawing;

use super::grid::Grid;
use crate::ceiling::search::{Bounds, Found};
use crate::ceiling::{CeilingRecord, Miss, Repeats, SearchRecord, Trial, producers_in_words};
use crate::result::RunResult;
use moldau_load::workload::BYTES_PER_MB;
use moldau_measure::numbers::Unit;
use moldau_measure::numbers::{number, percent, plain};
use moldau_measure::statistics::PairedEffect;
use moldau_measure::statistics::scalability::{Coefficient, Scalability};

/// In tables, where there is nothing to say.
const NONE: &str = "-";

/// What each system sustains, with its interval.
pub(super) fn sentence(result: &RunResult) -> String {
    let Some(record) = &result.ceiling else { return "There was nothing to search.".into() };
    let first = record.searches.first();
    let repeats = record.repeats(result.seed);
    let mut parts: Vec<String> =
        repeats.iter().map(|group| of_repeats(group, &repeats, result.seed)).collect();
    for search in &record.searches {
        let ratio = first.filter(|first| first.producers == search.producers);
        if !repeats.iter().any(|group| group.has(search)) {
            parts.push(of_search(search, ratio));
        }
    }
    let demand = format!(
        "99 % are answered within {} ms of their intended time, and no backlog grows.",
        plain(record.demand.p99_ms)
    );
    let laws = record.laws(result).into_iter().map(|(arm, law)| scaling(&arm, &law));
    let laws: Vec<String> = laws.collect();
    [format!("{}: {demand}", parts.join("; "))]
        .into_iter()
        .chain(laws)
        .chain(super::held::sentences(result))
        .collect::<Vec<_>>()
        .join(" ")
}

/// What searches of one load say together, and in relation to the first system of `all` with as
/// many producers.
fn of_repeats(group: &Repeats<'_>, all: &[Repeats<'_>], seed: u64) -> String {
    let Some(search) = group.searches.first() else { return String::new() };
    let [rate, low, high] = rates(group);
    let (lowest, highest) = group.ends();
    let mut text = format!(
        "{} sustains {} records/s [{}, {}], {} MB/s, by {} searches from {} to {}, at most {} from \
         their median",
        who(search),
        whole(rate),
        whole(low),
        whole(high),
        plain(megabytes(search, rate)),
        group.searches.len(),
        whole(lowest),
        whole(highest),
        apart(group),
    );
    if let Some((ratio, other)) = to_first(group, all, seed) {
        text += &format!(", {ratio} times {other}");
    }
    text
}

/// The mean rate of repeats and the ends of its interval.
fn rates(group: &Repeats<'_>) -> [f64; 3] {
    let PairedEffect { mean, interval_95, .. } = group.ln_rate;
    [mean, interval_95.low, interval_95.high].map(f64::exp)
}

/// How far the furthest of repeats is from their median.
fn apart(group: &Repeats<'_>) -> String {
    format!("{} %", plain(100.0 * group.apart()))
}

/// How many times the rate of the first system of `all` with as many producers a group has, with
/// the interval, and that system; `None` of itself.
fn to_first<'a>(group: &Repeats<'_>, all: &[Repeats<'a>], seed: u64) -> Option<(String, &'a str)> {
    let search = group.searches.first()?;
    let firsts = all.iter().filter_map(|other| Some((other, *other.searches.first()?)));
    let (other, first) = firsts.into_iter().find(|it| it.1.producers == search.producers)?;
    let effect = group.ln_ratio(other, seed).filter(|_| first.arm != search.arm)?;
    let [ratio, low, high] =
        [effect.mean, effect.interval_95.low, effect.interval_95.high].map(|ln| plain(ln.exp()));
    Some((format!("{ratio} [{low}, {high}]"), &first.arm))
}

/// A system and its producers.
fn who(search: &SearchRecord) -> String {
    format!("{} with {}", search.arm, producers_in_words(search.producers))
}

fn of_search(search: &SearchRecord, first: Option<&SearchRecord>) -> String {
    let who = who(search);
    let Found { rate, bracket, unstable, bounds } = search.found;
    let between = format!("[{}, {}]", whole(bracket.low), whole(bracket.high));
    let mut text = match bounds {
        Bounds::Both => format!(
            "{who} sustains {} records/s {between}, {} MB/s",
            whole(rate),
            plain(megabytes(search, rate))
        ),
        Bounds::Above => {
            let most = search.trials.iter().map(|trial| trial.rate).fold(0.0, f64::max);
            format!("{who} sustains every rate that was tried, up to {} records/s", whole(most))
        }
        Bounds::Below => {
            let least = search.trials.iter().map(|trial| trial.rate).fold(f64::MAX, f64::min);
            format!("{who} sustains no rate that was tried, down to {} records/s", whole(least))
        }
        Bounds::Neither => format!("no trial tells what {who} sustains"),
    };
    if let Some(first) = first.filter(|first| first.arm != search.arm)
        && bounds == Bounds::Both
        && first.found.bounds == Bounds::Both
    {
        text += &format!(", {} times {}", plain(rate / first.found.rate), first.arm);
    }
    if let Some(band) = unstable {
        let ends = format!("{} and {}", whole(band.low), whole(band.high));
        text += &format!(" (between {ends} it was sustained once and missed once)");
    }
    text
}

fn scaling(arm: &str, law: &Scalability) -> String {
    let most = match (law.peak(), law.throughput_max()) {
        (Some(peak), Some(most)) => {
            format!("at most {} records/s with {} producers", whole(most), whole(peak))
        }
        (None, Some(most)) => format!("no more than {} records/s", whole(most)),
        _ => "no end that was seen".into(),
    };
    format!(
        "By the universal scalability law {arm} comes to {most} (contention {}, coherence {}).",
        share(&law.contention),
        share(&law.coherence),
    )
}

/// The tables; none of another experiment.
pub(super) fn grids(result: &RunResult) -> Vec<Grid> {
    let Some(record) = &result.ceiling else { return Vec::new() };
    let repeats = record.repeats(result.seed);
    let mut grids = vec![ceilings(record)];
    if !repeats.is_empty() {
        grids.push(of_all_repeats(&repeats, result.seed));
    }
    let laws = record.laws(result);
    if !laws.is_empty() {
        grids.push(scalability(&laws));
    }
    grids.extend(record.searches.iter().map(|search| trials(search, record.demand.p99_ms)));
    grids
}

/// The sections of the page.
pub(super) fn html(result: &RunResult) -> String {
    let Some(record) = &result.ceiling else { return String::new() };
    let mut html =
        drawing::cards(record, &record.repeats(result.seed)) + &drawing::searches(record);
    html.extend(grids(result).iter().map(Grid::html));
    html
}

impl CeilingRecord {
    /// The law of each system that was searched with enough numbers of producers.
    fn laws(&self, result: &RunResult) -> Vec<(String, Scalability)> {
        let law = |arm: &str| Some((arm.to_string(), self.scalability(arm, result.seed)?));
        result.arms.iter().filter_map(|arm| law(&arm.name)).collect()
    }
}

fn ceilings(record: &CeilingRecord) -> Grid {
    let row = |search: &SearchRecord| {
        let Found { rate, bracket, unstable, bounds } = search.found;
        let interval = format!("{} to {}", whole(bracket.low), whole(bracket.high));
        let [rate_words, interval, megabytes] = match bounds {
            Bounds::Both => [whole(rate), interval, plain(megabytes(search, rate))],
            Bounds::Above => ["higher than tried".into(), NONE.into(), NONE.into()],
            Bounds::Below => ["lower than tried".into(), NONE.into(), NONE.into()],
            Bounds::Neither => ["not told".into(), NONE.into(), NONE.into()],
        };
        vec![
            search.arm.clone(),
            search.producers.to_string(),
            rate_words,
            interval,
            megabytes,
            unstable
                .map_or(NONE.into(), |band| format!("{} to {}", whole(band.low), whole(band.high))),
            whole(search.full_speed),
            (search.trials.len() + 1).to_string(),
        ]
    };
    Grid::of(
        "Ceilings",
        &format!(
            "The highest rate at which two trials were sustained, and the lowest above it at which \
             two were missed: the ceiling lies between them. Sustained: 99 % are answered within \
             {} ms of their intended time, the backlog does not grow, consumers keep up, and \
             nothing is lost. Unstable are rates at which trials went both ways. Full speed is \
             what one run took without a schedule, and counts as a trial. MB are 2^20 bytes of \
             record values.",
            plain(record.demand.p99_ms),
        ),
        &[
            "system",
            "producers",
            "records/s",
            "ceiling between",
            "MB/s",
            "unstable",
            "full speed, records/s",
            "trials",
        ],
        record.searches.iter().map(row),
    )
}

fn of_all_repeats(repeats: &[Repeats<'_>], seed: u64) -> Grid {
    let row = |group: &Repeats<'_>| {
        let search = group.searches.first();
        let [rate, low, high] = rates(group).map(whole);
        let (lowest, highest) = group.ends();
        vec![
            search.map_or(NONE.into(), |search| search.arm.clone()),
            search.map_or(NONE.into(), |search| search.producers.to_string()),
            group.searches.len().to_string(),
            rate,
            format!("[{low}, {high}]"),
            whole(lowest),
            whole(highest),
            apart(group),
            to_first(group, repeats, seed)
                .map_or(NONE.into(), |(ratio, other)| format!("{ratio} times {other}")),
        ]
    };
    Grid::of(
        "Repeats",
        "What searches of the same load say together: the geometric mean of their rates, with the \
         interval at 95 % that their scatter leaves it, and how far the furthest of them is from \
         their median. They took turns, trial by trial, so that each met the same machine, and a \
         ratio is the mean of those of searches that were made beside one another.",
        &[
            "system",
            "producers",
            "searches",
            "records/s",
            "95 % interval",
            "lowest",
            "highest",
            "furthest",
            "ratio",
        ],
        repeats.iter().map(row),
    )
}

fn scalability(laws: &[(String, Scalability)]) -> Grid {
    let row = |(arm, law): &(String, Scalability)| {
        let Coefficient { value, interval_95 } = law.rate;
        let ends = format!("[{}, {}]", whole(interval_95.low), whole(interval_95.high));
        vec![
            arm.clone(),
            format!("{} {ends}", whole(value)),
            share(&law.contention),
            share(&law.coherence),
            law.peak().map_or(NONE.into(), plain),
            law.throughput_max().map_or(NONE.into(), whole),
            percent(law.error.ln_1p()),
        ]
    };
    Grid::of(
        "Universal scalability law",
        "Ceilings over producers N as rate N / (1 + contention (N - 1) + coherence N (N - 1)). \
         Contention is the share of the work that only one does at a time, coherence what each \
         pair costs. Intervals at 95 % draw each ceiling anew from its own interval, further \
         apart where ceilings miss the law by more than these tell.",
        &["system", "one alone, records/s", "contention", "coherence", "peak at", "most", "error"],
        laws.iter().map(row),
    )
}

fn trials(search: &SearchRecord, p99_ms: f64) -> Grid {
    let row = |(number, trial): (usize, &Trial)| {
        let growth = trial.growth.map_or(NONE.into(), |growth| {
            let [slope, low, high] =
                [growth.ms_per_second, growth.interval_95.low, growth.interval_95.high].map(plain);
            format!("{slope} [{low}, {high}]")
        });
        let misses: Vec<&str> = trial.misses.iter().map(|miss| Miss::words(*miss)).collect();
        vec![
            number.to_string(),
            whole(trial.rate),
            trial.outcome.word().into(),
            plain(trial.p99_ms),
            growth,
            format!("{:.1} %", trial.reached * 100.0),
            format!("{:.0} %", trial.taken * 100.0),
            format!("{:.0} %", trial.generator_thread * 100.0),
            if misses.is_empty() { NONE.into() } else { misses.join(", ") },
        ]
    };
    Grid::of(
        &format!("Trials: {}, {}", search.arm, producers_in_words(search.producers)),
        &format!(
            "In their order; the first was at full speed. Demanded of p99: {} ms. The backlog is \
             the median response time, and its growth the slope over the window with its interval \
             at 95 %. Taken: the machine's share of other processes and of the hypervisor; where \
             it is large, the trial says nothing.",
            plain(p99_ms)
        ),
        &[
            "trial",
            "records/s",
            "outcome",
            "p99, ms",
            "backlog grows by, ms/s",
            "reached",
            "taken",
            "generator thread",
            "missed by",
        ],
        (2..).zip(&search.trials).map(row),
    )
}

fn share(coefficient: &Coefficient) -> String {
    let Coefficient { value, interval_95 } = coefficient;
    let [value, low, high] = [*value, interval_95.low, interval_95.high].map(plain);
    format!("{value} [{low}, {high}]")
}

#[expect(clippy::cast_precision_loss, reason = "bytes of a record")]
fn megabytes(search: &SearchRecord, rate: f64) -> f64 {
    rate * search.record_bytes as f64 / BYTES_PER_MB
}

fn whole(rate: f64) -> String {
    number(rate, Unit::RecordsPerSecond)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{html, markdown, sample, text};
    use moldau_measure::statistics::Interval;

    #[test]
    fn every_form_of_the_report_tells_ceilings_and_trials() {
        let result = sample::ceiling();
        let told = sentence(&result);
        let rate = whole(result.ceiling.as_ref().unwrap().searches[0].found.rate);
        assert!(told.starts_with(&format!("moldau with 1 producer sustains {rate}")), "{told}");
        assert!(told.contains("within 50.0 ms") && told.contains("times moldau"), "{told}");
        assert!(told.contains("universal scalability law moldau comes to"), "{told}");
        assert!(text(&result).contains("backlog grows by, ms/s"));
        let page = markdown(&result);
        assert!(page.contains("## Ceilings") && page.contains("## Trials: kafka, 4 producers"));
        let page = html(&result).unwrap();
        assert!(page.contains("Which rate is sustained?") && page.contains("<svg"));
        assert!(page.len() < 2_000_000);
    }

    #[test]
    fn what_was_seen_from_one_side_is_called_so() {
        let mut result = sample::ceiling();
        let searches = &mut result.ceiling.as_mut().unwrap().searches;
        searches.truncate(1);
        searches[0].found.bounds = Bounds::Above;
        assert!(sentence(&result).contains("sustains every rate that was tried, up to"));
        let found = &mut result.ceiling.as_mut().unwrap().searches[0].found;
        *found = Found {
            bounds: Bounds::Both,
            unstable: Some(Interval { low: 1_000.0, high: 2_000.0 }),
            ..*found
        };
        let told = sentence(&result);
        assert!(told.contains("between 1,000 and 2,000 it was sustained once"), "{told}");
    }

    #[test]
    fn searches_of_the_same_load_are_told_together() {
        let mut result = sample::ceiling();
        assert!(!text(&result).contains("Repeats"));
        let pair = |factor: f64| {
            ["moldau", "kafka"].map(|arm| {
                let mut search = sample::search(arm, 2);
                search.found.rate = 100_000.0 * if arm == "kafka" { factor / 2.0 } else { factor };
                search
            })
        };
        result.ceiling.as_mut().unwrap().searches =
            [1.0, 1.02, 0.97, 1.0].into_iter().flat_map(pair).collect();
        let told = sentence(&result);
        assert!(told.starts_with("moldau with 2 producers sustains 99,7"), "{told}");
        assert!(told.contains("by 4 searches from 97,000 to 102,000, at most 3.00 %"), "{told}");
        assert!(told.contains("0.500 [0.500, 0.500] times moldau"), "{told}");
        assert_eq!(told.matches("sustains").count(), 2, "each system once: {told}");
        let told = text(&result);
        assert!(told.contains("Repeats") && told.contains("furthest"), "{told}");
        let page = html(&result).unwrap();
        assert_eq!(page.matches("<div class=\"name\">moldau").count(), 1, "one card for all");
    }

    #[test]
    fn a_search_survives_its_document() {
        let result = sample::ceiling();
        let back = RunResult::from_json(&result.to_json().unwrap()).unwrap();
        assert_eq!(back.ceiling, result.ceiling);
    }
}
