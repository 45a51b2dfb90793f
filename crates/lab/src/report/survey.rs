//! The report of a survey: what became of each claim in a sentence, then what every load did on
//! every system, one setting at a time beside what was published.

mod administration;
mod drawing;
mod littles_law;
mod pairs;
mod proxies;
mod repeats;
mod sweeps;
mod totals;

use super::answers::Answers;
use super::asks;
use super::grid::Grid;
use super::held;
use super::html::escape;
use super::table::{NONE, shows};
use super::workers;
use crate::checks::Verdict;
use crate::metric::Metric;
use crate::punctuality::is_scheduled;
use crate::result::{RunRecord, RunResult};
use crate::survey::{Cell, Claim, Contrast, Estimate, Finding, Outcome, SurveyRecord};
use moldau_measure::numbers::Unit;
use moldau_measure::numbers::number;
use moldau_measure::statistics::{float, median};

/// Settings that are numbers of something that works at once.
const SCALES: [&str; 4] = ["outstanding", "producers", "partitions", "consumers"];

/// What the totals of others are worth and how the claims came out, in a sentence each.
pub(super) fn sentence(result: &RunResult, record: &SurveyRecord) -> String {
    if let Some(asked) = &record.asks {
        return asks::sentence(result, record, asked);
    }
    let found = outcomes(result, record);
    if found.is_empty() && record.totals.is_empty() || !holds(result) {
        let (loads, systems) = (record.cells.len(), systems(result).join(" and "));
        return format!("{loads} loads were measured on {systems}.");
    }
    let mut told: Vec<String> = totals::lead(result, record).into_iter().collect();
    for outcome in [Outcome::Reproduced, Outcome::Corrected, Outcome::NotReproduced] {
        let says = found.iter().filter(|(_, it)| *it == Some(outcome)).map(|(says, _)| *says);
        let says: Vec<&str> = says.collect();
        if !says.is_empty() {
            told.push(format!("{}: {}.", capital(outcome.word()), says.join("; ")));
        }
    }
    for (of, word) in
        [(Some(Outcome::Undecided), "Not decided"), (None, "Not the same on all systems")]
    {
        let count = found.iter().filter(|(_, it)| *it == of).count();
        if count > 0 {
            told.push(format!("{word}: {count} of {} claims.", found.len()));
        }
    }
    told.join(" ")
}

fn capital(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

/// What each claim came to, if it is the same on all systems.
fn outcomes<'a>(
    result: &'a RunResult,
    record: &'a SurveyRecord,
) -> Vec<(&'a str, Option<Outcome>)> {
    let of_load = |claim: &'a Claim| (claim.says.as_str(), outcome_of(&findings(result, claim)));
    let of_administration = result.administration.iter().flat_map(|it| {
        it.claims.iter().map(|claim| {
            let found = it.findings(claim, &record.pairs, result.seed);
            (claim.says.as_str(), outcome_of(&found))
        })
    });
    record.claims.iter().map(of_load).chain(of_administration).collect()
}

/// Whether figures may be put in sentences: those of a refused survey stay in tables.
fn holds(result: &RunResult) -> bool {
    matches!(result.verdict, Verdict::Ok | Verdict::ObjectiveFailed)
}

/// What became of each claim, and what else is to be said.
fn answers(result: &RunResult, record: &SurveyRecord) -> Vec<String> {
    if !holds(result) {
        return Vec::new();
    }
    let claims = record.claims.iter().map(|claim| answer(result, record, claim));
    let first = direct_answers(result, record).into_iter();
    first.chain(claims).chain(findings_beside(result, record)).collect()
}

/// What is asked beside the claims: Little's law, pairs of systems, partitions made and moved.
fn direct_answers(result: &RunResult, record: &SurveyRecord) -> Vec<String> {
    let law = result.littles_law.iter().flat_map(|it| littles_law::answers(it, result.seed));
    let administration = result.administration.iter();
    let administration =
        administration.flat_map(|it| administration::answers(it, &record.pairs, result.seed));
    law.chain(pairs::answers(result, record)).chain(administration).collect()
}

/// What is found beside the claims: totals of others, sizing, and which load is best for what.
fn findings_beside(result: &RunResult, record: &SurveyRecord) -> Vec<String> {
    let mut found = totals::sentences(result, record);
    found.extend(proxies::sizing(result));
    found.extend(held::sentences(result));
    if record.asks.is_none() {
        found.extend(systems(result).iter().filter_map(|it| recommendation(result, it)));
    }
    found
}

/// The statement, what became of it, and the figures.
fn answer(result: &RunResult, record: &SurveyRecord, claim: &Claim) -> String {
    let findings = findings(result, claim);
    let word = match outcome_of(&findings) {
        Some(outcome) => outcome.word().to_string(),
        None if findings.is_empty() => "not tested".into(),
        None => {
            let each = findings.iter().map(|it| format!("{} on {}", it.outcome.word(), it.system));
            each.collect::<Vec<_>>().join(", ")
        }
    };
    let on_each = |of: &dyn Fn(&Finding) -> Option<Estimate>, contrast: &Contrast| {
        let each = findings.iter().map(|finding| {
            format!("{} {}", finding.system, estimate(of(finding), claim, contrast))
        });
        each.collect::<Vec<_>>().join(", ")
    };
    let published = match claim.published {
        Some(value) => format!("published: {}", figure(value, claim, &claim.measured)),
        None => "published without a figure".into(),
    };
    let mut text = format!("{}: {word} ({published}).", claim.says);
    if findings.is_empty() {
        return text;
    }
    let changed = changed(record, &claim.measured);
    let measured = on_each(&|finding| finding.measured, &claim.measured);
    text += &match changed {
        0 | 1 => format!(" Measured: {measured}."),
        _ => format!(" Measured the same way, {changed} settings changed at once: {measured}."),
    };
    for (index, contrast) in claim.isolated.iter().enumerate() {
        let found = on_each(&|finding| finding.isolated.get(index).copied().flatten(), contrast);
        text += &format!(" One setting alone, {}: {found}.", described(record, contrast));
    }
    for left_out in record.left_out.iter().filter(|_| claim.pair.is_none()) {
        if claim.systems.is_empty() || claim.systems.contains(&left_out.system) {
            text += &format!(" Not tested on {}.", left_out.system);
        }
    }
    text
}

/// In how many settings the two loads of a contrast differ.
fn changed(record: &SurveyRecord, contrast: &Contrast) -> usize {
    let settings = |name: &str| -> Vec<(&str, &str)> {
        let Some(cell) = record.cells.iter().find(|cell| cell.name == name) else {
            return Vec::new();
        };
        let from = cell.from.iter().flat_map(|from| {
            record.cells.iter().filter(move |it| it.name == *from).flat_map(|it| &it.settings)
        });
        let own = |key: &str| cell.settings.iter().any(|it| it.key == key);
        let inherited = from.filter(|it| !own(&it.key));
        let all = cell.settings.iter().chain(inherited);
        all.map(|it| (it.key.as_str(), it.value.as_str())).collect()
    };
    let Some(over) = &contrast.over else { return 0 };
    let (of, over) = (settings(&contrast.of), settings(over));
    let differs = |(key, value): &&(&str, &str), all: &[(&str, &str)]| {
        !all.iter().any(|(other, same)| other == key && same == value)
    };
    let only_over = over.iter().filter(|(key, _)| !of.iter().any(|(other, _)| other == key));
    of.iter().filter(|it| differs(it, &over)).count() + only_over.count()
}

/// A contrast by the one setting in which its loads differ, or by their names.
fn described(record: &SurveyRecord, contrast: &Contrast) -> String {
    let Contrast { of, over } = contrast;
    let cell = record.cells.iter().find(|cell| cell.name == *of);
    match (cell, over) {
        (Some(Cell { settings, from: Some(from), .. }), Some(over)) if from == over => {
            let words = settings.iter().map(|it| format!("{} {}", it.key, it.value));
            format!("{} from {from}", words.collect::<Vec<_>>().join(", "))
        }
        (_, Some(over)) => format!("{of} over {over}"),
        (_, None) => of.clone(),
    }
}

/// Which load took most and which answered first, of those that have no rate; `None` where a system
/// has no two of them.
fn recommendation(result: &RunResult, system: &str) -> Option<String> {
    let is_free = |case: &&str| result.runs_of(case, system).any(|run| !is_scheduled(run));
    let cases: Vec<&str> = cases(result).into_iter().filter(is_free).collect();
    if cases.len() < 2 {
        return None;
    }
    let best = |metric: Metric, is_better: fn(f64, f64) -> bool| {
        let found =
            cases.iter().filter_map(|case| Some((*case, middle(result, case, system, metric)?)));
        found.reduce(|best, next| if is_better(next.1, best.1) { next } else { best })
    };
    let (most, records) = best(Metric::ProduceRecords, |one, other| one > other)?;
    let mut text = format!(
        "For throughput on {system}: {most}, {} records/s",
        number(records, Unit::RecordsPerSecond)
    );
    if let Some(p99) = tail(result, most, system) {
        text += &format!(" with a 99th percentile of {} ms", number(p99, Unit::Milliseconds));
    }
    if let Some((first, p99)) = best(Metric::ServiceP99, |one, other| one < other) {
        let records = middle(result, first, system, Metric::ProduceRecords).unwrap_or_default();
        text += &format!(
            "; for latency: {first}, a 99th percentile of {} ms at {} records/s",
            number(p99, Unit::Milliseconds),
            number(records, Unit::RecordsPerSecond)
        );
    }
    Some(text + ".")
}

/// The tables.
pub(super) fn grids(result: &RunResult, record: &SurveyRecord) -> Vec<Grid> {
    let mut grids: Vec<Grid> =
        record.asks.iter().flat_map(|asked| asks::grids(result, record, asked)).collect();
    grids.push(claims(result, record));
    grids.extend(totals::grids(result, record));
    grids.extend(result.littles_law.iter().map(|it| littles_law::grid(it, result.seed)));
    grids.push(pairs::grid(result, record));
    let administration = result.administration.iter();
    grids.extend(
        administration.flat_map(|it| administration::grids(it, &record.pairs, result.seed)),
    );
    grids.extend([proxies::added(result, record), proxies::coefficients(result)]);
    let systems = systems(result);
    grids.extend(systems.iter().map(|system| matrix(result, system)));
    if record.asks.is_none() {
        grids.push(one_at_a_time(result, record, &systems));
    }
    grids.extend(systems.iter().map(|system| scaling(result, record, system)));
    grids.extend([sweeps::law(result, record), repeats::grid(result), workers::grid(result)]);
    grids.into_iter().filter(|grid| !grid.rows.is_empty()).collect()
}

fn claims(result: &RunResult, record: &SurveyRecord) -> Grid {
    let rows = record.claims.iter().flat_map(|claim| {
        findings(result, claim).into_iter().map(move |finding| {
            let isolated = claim.isolated.iter().zip(&finding.isolated).map(|(contrast, found)| {
                let alone = described(record, contrast);
                format!("{alone}: {}", estimate(*found, claim, contrast))
            });
            let isolated: Vec<String> = isolated.collect();
            vec![
                claim.says.clone(),
                finding.system.clone(),
                finding.outcome.word().into(),
                claim.published.map_or(NONE.into(), |it| figure(it, claim, &claim.measured)),
                estimate(finding.measured, claim, &claim.measured),
                if isolated.is_empty() { NONE.into() } else { isolated.join("; ") },
            ]
        })
    });
    Grid::of(
        "Claims",
        "Means over the rounds with 95 % intervals; x is a ratio of two loads, or of two \
         systems, of one round. \
         Reproduced: the whole interval lies where the claim holds. Corrected: a setting that the \
         claim names as the cause, changed alone, does not have that effect.",
        &[
            "claim",
            "system",
            "outcome",
            "published",
            "measured the same way",
            "one setting at a time",
        ],
        rows,
    )
}

/// What every load did on one system.
fn matrix(result: &RunResult, system: &str) -> Grid {
    let figure = |case: &str, metric: Metric| {
        let found = middle(result, case, system, metric);
        found.map_or(NONE.into(), |value| number(value, metric.unit()))
    };
    let has_runs = |case: &&str| result.runs_of(case, system).next().is_some();
    let rows = cases(result).into_iter().filter(has_runs).map(|case| {
        let latency = |service, response| match figure(case, service) {
            none if none == NONE => figure(case, response),
            found => found,
        };
        vec![
            case.to_string(),
            figure(case, Metric::ProduceRecords),
            figure(case, Metric::ProduceThroughput),
            latency(Metric::ServiceP50, Metric::ResponseP50),
            latency(Metric::ServiceP99, Metric::ResponseP99),
            latency(Metric::ServiceP999, Metric::ResponseP999),
            records_per_batch(result, case, system),
            figure(case, Metric::CompressionRatio),
            figure(case, Metric::BrokerCpu),
            held::words(result, case, system).unwrap_or(NONE).into(),
        ]
    });
    Grid::of(
        &format!("Loads on {system}"),
        "Medians over the rounds. Latency of a load with records outstanding is from sending to \
         acknowledgement, and says nothing of how long records wait that cannot be sent yet; at a \
         fixed rate it is from the intended time. Stored: bytes of values by bytes of their \
         batches as consumers get them. Held by: what limited it, as far as its runs tell \
         without a change of anything.",
        &[
            "load",
            "records/s",
            "MB/s",
            "p50, ms",
            "p99, ms",
            "p99.9, ms",
            "records a batch",
            "stored, x",
            "broker CPU-ms/MB",
            "held by",
        ],
        rows,
    )
}

/// Each load that differs from a scenario in one setting, as a ratio to it.
fn one_at_a_time(result: &RunResult, record: &SurveyRecord, systems: &[&str]) -> Grid {
    /// Of each figure as it is of one kind of load or system, or else of the other.
    const FIGURES: [[Metric; 2]; 4] = [
        [Metric::ProduceRecords; 2],
        [Metric::ServiceP50, Metric::ResponseP50],
        [Metric::ServiceP99, Metric::ResponseP99],
        [Metric::ProxyCpu, Metric::BrokerCpu],
    ];
    let changed = record.cells.iter().filter_map(|cell| {
        Some((cell, Contrast { of: cell.name.clone(), over: Some(cell.from.clone()?) }))
    });
    let pairs = changed.flat_map(|(cell, contrast)| {
        let gets = |system: &&&str| result.runs_of(&cell.name, system).next().is_some();
        let systems = systems.iter().filter(gets);
        systems.map(move |system| (contrast.clone(), *system)).collect::<Vec<_>>()
    });
    let rows = pairs.map(|(contrast, system)| {
        let figures = FIGURES.map(|metrics| {
            let of = |metric| contrast.estimate(&result.runs, system, metric, result.seed);
            let found = metrics.into_iter().find_map(of);
            let shown = found.and_then(|it| it.effect).map(|it| format!(", {}", shows(&it)));
            ratio(found) + &shown.unwrap_or_default()
        });
        [contrast.of, system.to_string()].into_iter().chain(figures).collect()
    });
    Grid::of(
        "One setting at a time",
        "Ratio to the load of the same round without the change: geometric mean and 95 % interval. \
         Equal within 5 or 10 %: the 90 % interval lies there. Open: neither that nor a difference \
         is shown, and one of so many percent would be four times in five. Times are those from \
         sending with records outstanding, and from the intended time at a fixed rate; processor \
         time is that of the proxy, where there is one, and of the broker elsewhere.",
        &["load", "system", "records/s", "p50", "p99", "processor time of each MB"],
        rows,
    )
}

/// How throughput grows with what works at once.
fn scaling(result: &RunResult, record: &SurveyRecord, system: &str) -> Grid {
    let rows = record.cells.iter().filter(|cell| cell.from.is_none()).flat_map(|scenario| {
        SCALES.iter().flat_map(move |key| levels(record, scenario, key).into_iter())
    });
    let rows = rows.filter_map(|Level { cell, lowest, value, lowest_value, key }| {
        let contrast = Contrast { of: cell.to_string(), over: Some(lowest.to_string()) };
        let metric = Metric::ProduceRecords;
        let speed_up = contrast.estimate(&result.runs, system, metric, result.seed)?;
        let records = middle(result, cell, system, metric)?;
        Some(vec![
            cell.to_string(),
            format!("{key} {value}"),
            number(records, Unit::RecordsPerSecond),
            ratio(Some(speed_up)),
            format!("{:.0} %", speed_up.mean / (value / lowest_value) * 100.0),
        ])
    });
    Grid::of(
        &format!("Scaling on {system}"),
        "Speed-up over the smallest of a row's neighbours; efficiency is the speed-up by how many \
         times more work at once.",
        &["load", "at once", "records/s", "speed-up", "efficiency"],
        rows,
    )
}

/// One of several loads that differ in a number alone.
struct Level<'a> {
    cell: &'a str,
    lowest: &'a str,
    value: f64,
    lowest_value: f64,
    key: &'a str,
}

/// A scenario and what differs from it in `key`, by rising value; none where nothing does.
fn levels<'a>(record: &'a SurveyRecord, scenario: &'a Cell, key: &'a str) -> Vec<Level<'a>> {
    let value = |cell: &Cell| {
        let setting = cell.settings.iter().find(|setting| setting.key == key)?;
        setting.value.parse::<f64>().ok()
    };
    let differs = |cell: &&Cell| {
        cell.from.as_ref() == Some(&scenario.name) && cell.settings.iter().all(|it| it.key == key)
    };
    let others = record.cells.iter().filter(differs);
    let mut all: Vec<(f64, &str)> = std::iter::once(scenario)
        .chain(others)
        .filter_map(|cell| Some((value(cell)?, cell.name.as_str())))
        .collect();
    all.sort_by(|one, other| one.0.total_cmp(&other.0));
    let Some((lowest_value, lowest)) = all.first().copied().filter(|_| all.len() > 1) else {
        return Vec::new();
    };
    let level = |(value, cell)| Level { cell, lowest, value, lowest_value, key };
    all.into_iter().map(level).collect()
}

/// What stands around the tables.
pub(super) fn words<'a>(result: &RunResult, record: &'a SurveyRecord) -> Answers<'a> {
    Answers {
        answers: answers(result, record),
        hypothesis: &record.hypothesis,
        source: record.source.as_ref(),
        remarks: &record.remarks,
    }
}

/// The sections of the page.
pub(super) fn html(result: &RunResult, record: &SurveyRecord) -> String {
    let mut html = String::from("<h2>Answers</h2>");
    for text in direct_answers(result, record).into_iter().filter(|_| holds(result)) {
        html += &format!("<div class=\"card\"><p>{}</p></div>", escape(&text));
    }
    for claim in record.claims.iter().filter(|_| holds(result)) {
        let found = findings(result, claim);
        let outcome = outcome_of(&found);
        let (class, word) = match outcome {
            Some(Outcome::Reproduced) => ("good", Outcome::Reproduced.word()),
            Some(outcome @ (Outcome::Corrected | Outcome::NotReproduced)) => {
                ("bad", outcome.word())
            }
            Some(Outcome::Undecided) => ("note", Outcome::Undecided.word()),
            None => ("note", "differs"),
        };
        html += &format!(
            "<div class=\"card\"><p>{}<span class=\"badge {class}\">{word}</span></p>\
             <p class=\"soft\">{}</p></div>",
            escape(&answer(result, record, claim)),
            escape(&claim.at)
        );
    }
    for text in findings_beside(result, record).into_iter().filter(|_| holds(result)) {
        html += &format!("<div class=\"card\"><p>{}</p></div>", escape(&text));
    }
    html += &words(result, record).html();
    let drawings = [
        (
            "Ratios: published, measured the same way, one setting at a time",
            drawing::claims as Draw,
        ),
        (
            "Rates by Little's law, records/s: predicted (diamond) and measured",
            drawing::littles_law,
        ),
        ("Partitions made and moved, s, with 95 % intervals", drawing::administration),
        ("Throughput, records/s, with 95 % intervals", drawing::throughput),
        ("Latency, ms: p50 to p99 (thick) to p99.9", drawing::latency),
    ];
    for (title, draw) in drawings {
        if let Some(svg) = draw(result, record) {
            html += &format!("<div class=\"card\"><h3>{title}</h3>{svg}</div>");
        }
    }
    for (title, svg) in sweeps::charts(result, record) {
        html += &format!("<div class=\"card\"><h3>{}</h3>{svg}</div>", escape(&title));
    }
    html.extend(grids(result, record).iter().map(Grid::html));
    html
}

type Draw = fn(&RunResult, &SurveyRecord) -> Option<String>;

fn findings(result: &RunResult, claim: &Claim) -> Vec<Finding> {
    let pairs = result.survey().map_or(&[][..], |record| &record.pairs);
    claim.findings(&result.runs, &systems(result), pairs, result.seed)
}

/// What a claim came to, if it is the same on all systems.
fn outcome_of(findings: &[Finding]) -> Option<Outcome> {
    let first = findings.first()?.outcome;
    findings.iter().all(|finding| finding.outcome == first).then_some(first)
}

fn systems(result: &RunResult) -> Vec<&str> {
    result.arms.iter().map(|arm| arm.name.as_str()).collect()
}

fn cases(result: &RunResult) -> Vec<&str> {
    let Some(record) = result.survey() else { return Vec::new() };
    record.cells.iter().map(|cell| cell.name.as_str()).collect()
}

/// The median of a figure over the runs of a load on a system.
fn middle(result: &RunResult, case: &str, system: &str, metric: Metric) -> Option<f64> {
    let told = metric.told_of(result.runs_of(case, system));
    let figures: Vec<f64> = told.map(|(_, value)| value).collect();
    (!figures.is_empty()).then(|| median(&figures))
}

fn tail(result: &RunResult, case: &str, system: &str) -> Option<f64> {
    let of = |metric| middle(result, case, system, metric);
    of(Metric::ServiceP99).or_else(|| of(Metric::ResponseP99))
}

fn records_per_batch(result: &RunResult, case: &str, system: &str) -> String {
    let per_batch = |run: &RunRecord| {
        (run.produced_batches > 0)
            .then(|| float(run.produced_records) / float(run.produced_batches))
    };
    let figures: Vec<f64> = result.runs_of(case, system).filter_map(per_batch).collect();
    if figures.is_empty() { NONE.into() } else { format!("{:.1}", median(&figures)) }
}

/// A figure of a claim: a ratio where something is divided by.
fn figure(value: f64, claim: &Claim, contrast: &Contrast) -> String {
    if claim.is_ratio(contrast) {
        return format!("{} x", number(value, Unit::Times));
    }
    format!("{} {}", number(value, claim.figure.unit()), claim.figure.unit().symbol())
}

fn estimate(found: Option<Estimate>, claim: &Claim, contrast: &Contrast) -> String {
    let Some(Estimate { mean, interval, .. }) = found else { return NONE.into() };
    let unit = if claim.is_ratio(contrast) { Unit::Times } else { claim.figure.unit() };
    let mean = figure(mean, claim, contrast);
    interval.map_or_else(
        || format!("{mean} (too few rounds)"),
        |it| format!("{mean} [{}, {}]", number(it.low, unit), number(it.high, unit)),
    )
}

fn ratio(found: Option<Estimate>) -> String {
    let Some(Estimate { mean, interval, .. }) = found else { return NONE.into() };
    let mean = number(mean, Unit::Times);
    interval.map_or(mean.clone(), |it| {
        format!("{mean} [{}, {}]", number(it.low, Unit::Times), number(it.high, Unit::Times))
    })
}

#[cfg(test)]
mod tests;
