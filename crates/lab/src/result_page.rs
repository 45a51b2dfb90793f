//! What the pages of all results share: verdict, warnings, records, checks, environment, raw data.

use crate::checks::{Check, Verdict, Weight};
use crate::metric::Comparison;
use crate::page::{CheckRow, Column, Detail, Link, Outcome, Page, Standing, Table};
use crate::result::RunResult;
use moldau_load::ledger::Audit;
use moldau_measure::numbers::{bytes, many, number, percent, plain, signed, thousands};
use moldau_measure::statistics::{Interval, Likeness, PairedEffect};

/// Most failed checks that an answer names.
const FAILURES_TOLD_MAX: usize = 2;

/// Letters of a warning.
const WARNING_LETTERS_MAX: usize = 150;

/// The page of a result without what its experiment adds. Its answer is why there is none, where
/// the figures do not hold.
pub(crate) fn blank(result: &RunResult, title: &str) -> Page {
    Page {
        title: title.to_owned(),
        about: about(result),
        standing: standing(result.verdict),
        answer: refusal(result),
        warnings: warnings(&result.checks),
        table: None,
        charts: Vec::new(),
        details: Vec::new(),
        checks: result.checks.iter().map(check_row).collect(),
        facts: facts(result),
        links: links(result),
    }
}

/// Sentences of an answer beside that on the records.
const TOLD_MAX: usize = 2;

/// The page of a result with these sentences as its answer, the first [`TOLD_MAX`] of them ahead
/// and all of them folded where they are more.
pub(crate) fn answered(result: &RunResult, title: &str, told: Vec<String>) -> Page {
    let mut page = blank(result, title);
    if page.standing.has_figures() {
        page.answer = told.iter().take(TOLD_MAX).cloned().chain(records(result)).collect();
        if told.len() > TOLD_MAX {
            page.details.push(Detail::words("Every answer", told));
        }
    }
    page
}

/// The checks of a weight, a row for each of what is called `noun`.
pub(crate) fn judged_table(result: &RunResult, weight: Weight, noun: &str) -> Table {
    let row = |check: &Check| {
        let word = if check.passed { "reached" } else { "missed" };
        vec![check.name.clone(), check.found.clone(), check.demanded.clone(), word.into()]
    };
    let judged = result.checks.iter().filter(|check| check.weight == weight);
    Table {
        title: String::new(),
        about: String::new(),
        columns: [noun, "found", "demanded", ""].map(Column::words).to_vec(),
        rows: judged.map(row).collect(),
    }
}

/// How many goals are reached, and one that is not.
pub(crate) fn goals(result: &RunResult) -> String {
    let judged = || result.checks.iter().filter(|check| check.weight == Weight::Objective);
    let all = judged().count();
    let missed: Vec<&Check> = judged().filter(|check| !check.passed).collect();
    match missed.first() {
        _ if all == 0 => "No goal was set.".into(),
        None if all == 1 => "The goal is reached.".into(),
        None => format!("All {all} goals are reached."),
        Some(check) => format!(
            "{} of {all} goals are reached; missed: {}, {}.",
            all - missed.len(),
            check.name,
            check.found
        ),
    }
}

/// What the logarithm of a ratio shows, in a few words: that both sides are equivalent, that they
/// differ, or what difference would have shown.
pub(crate) fn shows(log_ratio: &PairedEffect) -> String {
    match log_ratio.likeness() {
        Likeness::Equivalent { percent } => format!("equal within {percent} %"),
        Likeness::Different => "differs".into(),
        Likeness::Open { detectable_percent } => {
            format!("open, {} % would show", plain(detectable_percent))
        }
    }
}

/// Every record of the result, in one sentence; nothing where none was read back.
pub(crate) fn records(result: &RunResult) -> Option<String> {
    let acked = result.audit.acked;
    (acked > 0).then(|| format!("All {} records were read back.", many(acked)))
}

/// Every figure of every arm beside that of the first, a table for each case.
pub(crate) fn comparisons(result: &RunResult) -> Detail {
    let of_case = |case: &str| Table {
        title: case.to_owned(),
        about: String::new(),
        columns: vec![
            Column::words("figure"),
            Column::words("path"),
            Column::figures("first", ""),
            Column::figures("own", ""),
            Column::figures("difference", "95 % interval"),
            Column::figures("ratio", ""),
            Column::words("shows"),
        ],
        rows: result.comparisons.iter().filter(|it| it.case == case).map(comparison).collect(),
    };
    let tables = result.cases().into_iter().map(of_case).filter(|table| !table.rows.is_empty());
    Detail {
        title: "Every figure".into(),
        text: vec![
            "Medians over the runs. Differences and ratios are means over pairs of neighbouring \
             runs with smoothed bootstrap intervals. Publish latency counts from the intended \
             time of a record to its acknowledgement, end-to-end latency to its delivery."
                .into(),
        ],
        charts: Vec::new(),
        tables: tables.collect(),
    }
}

fn comparison(comparison: &Comparison) -> Vec<String> {
    let unit = comparison.metric.unit();
    let value = |value: Option<f64>| value.map_or("-".into(), |value| number(value, unit));
    let mut cells = vec![
        format!("{}, {}", comparison.metric.label(), unit.symbol()),
        comparison.arm.clone(),
        value(comparison.baseline_median),
        value(comparison.arm_median),
    ];
    let effect = comparison.effect.as_ref();
    cells.extend(effect.map_or(["-"; 3].map(String::from), |effect| {
        let Interval { low, high } = effect.difference.interval_95;
        let [mean, low, high] = [effect.difference.mean, low, high].map(|it| signed(it, unit));
        [
            format!("{mean} [{low}, {high}]"),
            percent(effect.log_ratio.mean),
            shows(&effect.log_ratio),
        ]
    }));
    cells
}

/// The audit of all records as a folded table.
pub(crate) fn audit(result: &RunResult) -> Detail {
    let Audit { sent, acked, failed, unknown, delivered, lost, duplicated, reordered, .. } =
        result.audit;
    let Audit { damaged, misrouted, foreign, misplaced, offset_gaps, offset_regressions, .. } =
        result.audit;
    let rows = [
        ("sent", sent),
        ("acknowledged", acked),
        ("refused", failed),
        ("without an answer", unknown),
        ("read back", delivered),
        ("lost", lost),
        ("duplicated", duplicated),
        ("out of order", reordered),
        ("damaged", damaged),
        ("of another run", foreign),
        ("in another partition", misrouted),
        ("at another offset", misplaced),
        ("gaps between offsets", offset_gaps),
        ("steps back of offsets", offset_regressions),
    ];
    let title = "Records".to_owned();
    let table = Table {
        title: title.clone(),
        about: "Every record carries its producer, partition, number and checksum. What is read \
                back is compared with what was acknowledged."
            .into(),
        columns: vec![Column::words("records"), Column::figures("count", "")],
        rows: rows.map(|(name, count)| vec![name.to_owned(), thousands(count)]).to_vec(),
    };
    Detail { title, text: Vec::new(), charts: Vec::new(), tables: vec![table] }
}

fn standing(verdict: Verdict) -> Standing {
    match verdict {
        Verdict::Ok => Standing::Holds,
        Verdict::ObjectiveFailed => Standing::GoalMissed,
        Verdict::RecordsLost => Standing::RecordsLost,
        Verdict::Invalid | Verdict::Environment => Standing::Invalid,
    }
}

fn about(result: &RunResult) -> String {
    let seconds = result.elapsed_ms / 1_000;
    let form = if result.quick { ", short form" } else { "" };
    format!("{} UTC, {} min {:02} s{form}", result.id, seconds / 60, seconds % 60)
}

/// Why a result has no answer.
fn refusal(result: &RunResult) -> Vec<String> {
    match result.verdict {
        Verdict::Ok | Verdict::ObjectiveFailed => Vec::new(),
        Verdict::RecordsLost => vec![lost(&result.audit, &result.checks)],
        Verdict::Invalid | Verdict::Environment => {
            let failed = of_weight(&result.checks, Weight::Validity);
            let mut told: Vec<String> =
                failed.iter().take(FAILURES_TOLD_MAX).map(|check| in_words(check)).collect();
            let more = failed.len().saturating_sub(FAILURES_TOLD_MAX);
            if more > 0 {
                told.push(format!("{more} more checks failed."));
            }
            told
        }
    }
}

/// What happened to records that did not come back as they were sent.
fn lost(audit: &Audit, checks: &[Check]) -> String {
    let places = audit.misrouted + audit.misplaced + audit.reordered;
    let offsets = audit.offset_gaps + audit.offset_regressions;
    let faults = [
        (audit.lost, "lost"),
        (audit.duplicated, "duplicated"),
        (audit.damaged + audit.foreign, "damaged"),
        (places, "out of place or order"),
        (offsets, "offsets out of order"),
    ];
    let faults = faults.iter().filter(|(count, _)| *count > 0);
    let faults: Vec<String> =
        faults.map(|(count, what)| format!("{} {what}", thousands(*count))).collect();
    if faults.is_empty() {
        let failed = of_weight(checks, Weight::Records);
        let words = |check: &&Check| {
            format!("{}: {} (demanded: {}).", capital(&check.name), check.found, check.demanded)
        };
        return failed.iter().map(words).collect::<Vec<_>>().join(" ");
    }
    format!(
        "Of {} acknowledged records, not all came back as they were sent: {}.",
        thousands(audit.acked),
        faults.join(", ")
    )
}

fn of_weight(checks: &[Check], weight: Weight) -> Vec<&Check> {
    checks.iter().filter(|check| !check.passed && check.weight == weight).collect()
}

/// A check with what was found first; the checks have the rest of a list.
fn in_words(check: &Check) -> String {
    let found = check.found.split("; ").next().unwrap_or_default();
    format!("{}: {found} (demanded: {}).", capital(&check.name), check.demanded)
}

/// Missed goals first, then what the reader should know, each in one or two lines.
fn warnings(checks: &[Check]) -> Vec<String> {
    let goals = of_weight(checks, Weight::Objective)
        .into_iter()
        .map(|check| format!("Goal missed: {}: {}", check.name, check.found));
    let notes = of_weight(checks, Weight::Note).into_iter();
    let notes = notes.map(|check| format!("{}: {}", capital(&check.name), check.found));
    goals.chain(notes).map(|warning| cut(&warning)).collect()
}

/// A warning without the end of a long list, which the checks have whole.
fn cut(warning: &str) -> String {
    match warning.char_indices().nth(WARNING_LETTERS_MAX) {
        Some((at, _)) => {
            let (kept, _) = warning.split_at(at);
            let kept = kept.rsplit_once(' ').map_or(kept, |(words, _)| words);
            format!("{} …", kept.trim_end_matches([',', ';', ':', '(']))
        }
        None => warning.to_owned(),
    }
}

fn check_row(check: &Check) -> CheckRow {
    let outcome = match (check.passed, check.weight) {
        (true, _) => Outcome::Passed,
        (false, Weight::Note) => Outcome::Noted,
        (false, _) => Outcome::Failed,
    };
    CheckRow {
        name: check.name.clone(),
        outcome,
        found: check.found.clone(),
        demanded: check.demanded.clone(),
    }
}

fn facts(result: &RunResult) -> Vec<(String, String)> {
    let e = &result.environment;
    let memory = if e.memory_bytes > 0 { bytes(e.memory_bytes) } else { String::new() };
    let mut facts = vec![
        ("processors", format!("{} x {}", e.processors, e.cpu_model)),
        ("processor features", e.cpu_flags.join(", ")),
        ("memory", memory),
        ("kernel", format!("Linux {}", e.kernel)),
        ("data directory", format!("{} on {}", e.file_system, e.device)),
        ("clock", e.clock_source.clone()),
        ("open files", e.open_files_max.map_or("unlimited".into(), thousands)),
        ("control group", format!("{} {}", e.cgroup_cpu_max, e.cgroup_memory_max)),
        ("frequency policy", e.frequency_governor.clone()),
        ("generator and systems", e.co_location()),
        ("version", e.binary_version.clone()),
        ("seed", result.seed.to_string()),
    ];
    if result.imported().is_some() {
        // What is known of this machine says nothing of the tools.
        facts.retain(|(name, _)| *name == "version");
    }
    facts.extend(result.arms.iter().map(|arm| (arm.name.as_str(), arm.description.clone())));
    facts
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value.trim().to_owned()))
        .filter(|(_, value)| !value.is_empty())
        .collect()
}

fn links(result: &RunResult) -> Vec<Link> {
    let link = |text: &str, path: &str| Link { text: text.into(), path: path.into() };
    let mut links = vec![link("result.json", "result.json")];
    if result.runs.iter().any(|run| run.latency.is_some()) {
        links.push(link("latency histograms", "latency.hlog"));
    }
    if result.runs.iter().any(|run| !run.series.is_empty()) {
        links.push(link("course of each run", "series.csv"));
    }
    links
}

/// A text with a capital letter at its start.
pub(crate) fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}
