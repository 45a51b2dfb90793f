//! A survey as a page: the outcome of each claim in a sentence, then what every load did on every
//! system, one setting at a time beside what was published.

mod administration;
mod charts;
mod littles_law;
mod pairs;
mod proxies;
mod sweeps;
mod totals;

use crate::metric::Metric;
use crate::page::{Detail, Page, Table};
use crate::punctuality::is_scheduled;
use crate::result::{RunRecord, RunResult};
use crate::result_page::{self, shows};
use crate::run_figures::NONE;
use crate::survey::{Cell, Claim, Contrast, Estimate, Finding, Outcome, SurveyRecord};
use crate::survey_page;
use moldau_measure::numbers::Unit;
use moldau_measure::numbers::number;
use moldau_measure::statistics::{float, median};

/// The page of a survey.
pub fn page(result: &RunResult, record: &SurveyRecord) -> Page {
    let mut page = result_page::answered(result, &record.question, sentences(result, record));
    let mut tables = tables(result, record).into_iter();
    page.table = Some(summary(result, record));
    if page.standing.has_figures() {
        let mut shown = charts::all(result, record);
        let folded = shown.split_off(shown.len().min(charts::SHOWN_MAX));
        page.charts = shown;
        page.details.push(Detail::words("Answers", answers(result, record)));
        page.details.push(Detail::of("Sweeps", folded, Vec::new()));
    }
    page.details.push(survey_page::question(record));
    page.details.extend(tables.by_ref().map(Detail::table));
    page.details.push(result_page::audit(result));
    page.details.retain(|detail| !detail.is_empty());
    page
}

/// What the totals of others are worth and how the claims came out, in a sentence each.
fn sentences(result: &RunResult, record: &SurveyRecord) -> Vec<String> {
    let found = outcomes(result, record);
    if found.is_empty() && record.totals.is_empty() {
        let systems = systems(result);
        let told: Vec<String> =
            systems.iter().filter_map(|system| recommendation(result, system)).collect();
        if !told.is_empty() {
            return told;
        }
        let loads = record.cells.len();
        return vec![format!("{loads} loads were measured on {}.", systems.join(" and "))];
    }
    let mut told: Vec<String> = totals::lead(result, record).into_iter().collect();
    let counts = [
        (Some(Outcome::Reproduced), "reproduced"),
        (Some(Outcome::Corrected), "corrected"),
        (Some(Outcome::NotReproduced), "not reproduced"),
        (Some(Outcome::Undecided), "not decided"),
        (None, "not the same on all systems"),
    ];
    let counts = counts.map(|(of, word)| (found.iter().filter(|(_, it)| *it == of).count(), word));
    let counts: Vec<String> = counts
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, word)| format!("{count} {word}"))
        .collect();
    if !counts.is_empty() {
        told.push(format!("Of {} claims: {}.", found.len(), counts.join(", ")));
    }
    told
}

/// The small table: the outcome of each claim, or what the loads did where nothing was claimed.
fn summary(result: &RunResult, record: &SurveyRecord) -> Table {
    let claims = outcomes(result, record);
    if claims.is_empty() {
        let rows = systems(result).into_iter().flat_map(|system| {
            matrix(result, system).rows.into_iter().map(move |mut row| {
                row.insert(1, system.to_owned());
                row.truncate(6);
                row
            })
        });
        let columns = ["load", "system", "records/s", "MB/s", "p50, ms", "p99, ms"];
        return Table::of("", "Medians over the rounds.", &columns, rows);
    }
    let row = |(says, outcome): (&str, Option<Outcome>)| {
        let word = outcome.map_or("differs between systems", Outcome::word);
        vec![word.to_owned(), says.to_owned()]
    };
    Table::of("", "", &["outcome", "claim"], claims.into_iter().map(row))
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

/// What became of each claim, and what else is to be said.
fn answers(result: &RunResult, record: &SurveyRecord) -> Vec<String> {
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
    found.extend(systems(result).iter().filter_map(|it| recommendation(result, it)));
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

fn tables(result: &RunResult, record: &SurveyRecord) -> Vec<Table> {
    let mut tables = vec![claims(result, record)];
    tables.extend(totals::tables(result, record));
    tables.extend(result.littles_law.iter().map(|it| littles_law::table(it, result.seed)));
    tables.push(pairs::table(result, record));
    let administration = result.administration.iter();
    tables.extend(
        administration.flat_map(|it| administration::tables(it, &record.pairs, result.seed)),
    );
    tables.extend([proxies::added(result, record), proxies::coefficients(result)]);
    let systems = systems(result);
    tables.extend(systems.iter().map(|system| matrix(result, system)));
    tables.push(one_at_a_time(result, record, &systems));
    tables.into_iter().filter(|table| !table.rows.is_empty()).collect()
}

fn claims(result: &RunResult, record: &SurveyRecord) -> Table {
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
    Table::of(
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
fn matrix(result: &RunResult, system: &str) -> Table {
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
        ]
    });
    Table::of(
        &format!("Loads on {system}"),
        "Medians over the rounds. Latency of a load with records outstanding is from sending to \
         acknowledgement, and says nothing of how long records wait that cannot be sent yet; at a \
         fixed rate it is from the intended time. Stored: bytes of values by bytes of their \
         batches as consumers get them.",
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
        ],
        rows,
    )
}

/// Each load that differs from a scenario in one setting, as a ratio to it.
fn one_at_a_time(result: &RunResult, record: &SurveyRecord, systems: &[&str]) -> Table {
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
    Table::of(
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
