//! The report of the sizing model: cores for the load that was asked for, what they are made of,
//! and how far the model can be believed.

mod chart;

use super::grid::Grid;
use super::html::escape;
use super::table::NONE;
use crate::result::RunResult;
use crate::sizing::{
    Answer, Beyond, Estimate, Finding, HeldOut, Kind, Load, Term, UTILISATION_MAX, errors,
};
use moldau_measure::numbers::Unit;
use moldau_measure::numbers::{bytes, digits, number, thousands};
use moldau_measure::statistics::Interval;

/// The answer of all arms.
pub(super) fn sentence(result: &RunResult) -> String {
    let Some(record) = &result.sizing else { return NOTHING.into() };
    let findings = record.findings(result.seed);
    if findings.is_empty() {
        return NOTHING.into();
    }
    let each = |tell: &dyn Fn(&Finding) -> String| {
        findings.iter().map(tell).collect::<Vec<_>>().join(", ")
    };
    let needed = each(&|finding| {
        let cores = finding.answer.planned;
        format!("{cores} core{} for {}", if cores == 1 { "" } else { "s" }, finding.arm)
    });
    format!(
        "{} need {needed}: {}, and no more than {:.0} % of them should be busy.{} {} {}",
        described(&record.load),
        each(&|finding| format!("{} keeps {} busy", finding.arm, cores(&finding.answer))),
        UTILISATION_MAX * 100.0,
        reach(&findings),
        findings.iter().map(reason).collect::<Vec<_>>().join(" "),
        findings.iter().map(trust).collect::<Vec<_>>().join("; ") + ".",
    )
}

const NOTHING: &str = "There were too few cases for a model.";

/// What a load costs, for one that was asked for afterwards: the answer, its parts, the prices.
#[must_use]
pub fn sizing(result: &RunResult) -> String {
    let Some(record) = &result.sizing else { return NOTHING.into() };
    let findings = record.findings(result.seed);
    let mut text = format!("{}\n", super::text::wrapped(&sentence(result), 96));
    let tables = [answers(&findings), shares(&findings), beyond(&findings)];
    for table in tables.iter().filter(|table| !table.rows.is_empty()) {
        text += &table.text();
    }
    for note in notes(&findings) {
        text += &format!("\n{}\n", super::text::wrapped(&note, 96));
    }
    text
}

/// The part of the terminal's report.
pub(super) fn text(result: &RunResult) -> String {
    let Some(record) = &result.sizing else { return String::new() };
    let findings = record.findings(result.seed);
    let mut text = String::new();
    for note in notes(&findings) {
        text += &format!("\n{}\n", super::text::wrapped(&note, 96));
    }
    for table in tables(&findings) {
        text += &table.text();
    }
    text
}

/// The lines of the Markdown page.
pub(super) fn markdown(result: &RunResult) -> Vec<String> {
    let Some(record) = &result.sizing else { return Vec::new() };
    let findings = record.findings(result.seed);
    let mut lines = Vec::new();
    for note in notes(&findings) {
        lines.extend([String::new(), note]);
    }
    for table in tables(&findings) {
        lines.extend(table.markdown());
    }
    lines
}

/// The sections of the page.
pub(super) fn html(result: &RunResult) -> String {
    let Some(record) = &result.sizing else { return String::new() };
    let findings = record.findings(result.seed);
    let mut html = chart::cards(&findings);
    html += &chart::stacks(&findings);
    for note in notes(&findings) {
        html += &format!("<p class=\"about\">{}</p>", escape(&note));
    }
    html += &chart::predictions(&findings);
    for table in tables(&findings) {
        html += &table.html();
    }
    html
}

fn tables(findings: &[Finding]) -> Vec<Grid> {
    let mut tables = vec![answers(findings), shares(findings), beyond(findings)];
    tables.extend([prices(findings), accuracy(findings)]);
    tables.extend(findings.iter().map(cases));
    tables.retain(|table| !table.rows.is_empty());
    tables
}

/// The load in words.
fn described(load: &Load) -> String {
    format!(
        "{} of {} records in batches of {} over {} partition{}, read by {} consumer group{}",
        per_second(load.produce_bytes_per_second),
        size(load.record_bytes),
        size(load.batch_bytes),
        thousands(load.partitions.into()),
        if load.partitions == 1 { "" } else { "s" },
        load.groups,
        if load.groups == 1 { "" } else { "s" },
    )
}

/// What most of it is, and what can be done.
fn reason(finding: &Finding) -> String {
    let answer = &finding.answer;
    let Some((kinds, share)) = answer.kinds().into_iter().next() else { return String::new() };
    let lever = match &answer.lever {
        Some(lever) => format!("{} would save {}", lever.action.words(), percent(lever.saving)),
        None => "neither larger batches nor fewer requests would save much".into(),
    };
    let (share, arm) = (percent(share), &finding.arm);
    format!("{share} of {arm} is {} work; {lever}.", joined(&kinds))
}

fn joined(kinds: &[Kind]) -> String {
    kinds.iter().map(|kind| kind.words()).collect::<Vec<_>>().join(" and ")
}

/// How far the load lies beyond what any arm was measured with.
fn reach(findings: &[Finding]) -> String {
    let beyond = findings.iter().flat_map(|finding| &finding.answer.beyond);
    let farthest = beyond.max_by(|a, b| a.ratio().total_cmp(&b.ratio()));
    farthest.map_or_else(String::new, |beyond| {
        format!(
            " This lies beyond what was measured, in {} by a factor of {}.",
            beyond.what,
            digits(beyond.ratio())
        )
    })
}

/// How well held-out cases are predicted, by the model and by one coefficient.
fn trust(finding: &Finding) -> String {
    let held_out = &finding.fit.held_out;
    let (median, most) = errors(held_out.iter().map(HeldOut::error));
    let (one, one_most) = errors(held_out.iter().filter_map(HeldOut::reference_error));
    format!(
        "{}: the model misses cases that it has not seen by {} (median; at most {}), one \
         coefficient per MB by {} (at most {})",
        finding.arm,
        percent(median),
        percent(most),
        percent(one),
        percent(one_most)
    )
}

/// What the reader should know before using the answer.
fn notes(findings: &[Finding]) -> Vec<String> {
    let mut notes = vec![
        "Cores are processor time per second of the proxy's process. What clients and brokers take \
         is not in them, nor is the time that requests wait, nor what other programs take off the \
         processor's caches. Of what waits for a processor at utilisation u each waits u / (1 - u) \
         times its own work, 2.3 times at 70 % and 9 times at 90 %, and load comes in bursts: so \
         plan for 70 %."
            .to_string(),
        "Intervals are at 95 %: resampled runs, each missing as a held-out case was missed. MB are \
         2^20 bytes of record values."
            .to_string(),
    ];
    for finding in findings {
        let packing = &finding.answer.packing;
        if let Some(case) = &packing.as_in {
            notes.push(format!(
                "{}: {} batches in a produce request and {} in a fetch, as in the case that is \
                 most like this load ({case}); the clients' own figures take their place where \
                 they are given.",
                finding.arm,
                number(packing.batches_per_request, Unit::Times),
                number(packing.batches_per_fetch, Unit::Times),
            ));
        }
        notes.push(format!(
            "{}: the condition number of the cases, after scaling, is {}.",
            finding.arm,
            digits(finding.fit.condition)
        ));
        for group in finding.fit.groups().iter().filter(|group| group.len() > 1) {
            let inflations = group.iter().filter_map(|term| finding.fit.of_term(*term).inflation);
            notes.push(format!(
                "{}: the prices of {} cannot be told from one another by these cases (variance \
                 inflation {}); only their sum is shown.",
                finding.arm,
                group.iter().map(|term| term.label()).collect::<Vec<_>>().join(" and "),
                inflation(inflations.fold(0.0, f64::max)),
            ));
        }
    }
    notes
}

fn answers(findings: &[Finding]) -> Grid {
    let row = |finding: &Finding| {
        let answer = &finding.answer;
        vec![
            finding.arm.clone(),
            digits(answer.cores),
            range(answer.interval, digits),
            answer.planned.to_string(),
            answer.lever.map_or(NONE.into(), |lever| {
                format!("{}: -{}", lever.action.words(), percent(lever.saving))
            }),
        ]
    };
    Grid::of(
        "Cores",
        "For the load that was asked for. Planned are as many as keep 70 % busy at the upper end.",
        &["arm", "cores", "95 % interval", "planned", "largest lever"],
        findings.iter().map(row),
    )
}

fn shares(findings: &[Finding]) -> Grid {
    let rows = findings.iter().flat_map(|finding| {
        finding.answer.parts.iter().map(|part| {
            vec![finding.arm.clone(), labels(&part.terms), digits(part.cores), percent(part.share)]
        })
    });
    Grid::of(
        "What they are made of",
        "Cores and share of each term; terms that cannot be told apart stand together.",
        &["arm", "term", "cores", "share"],
        rows,
    )
}

fn labels(terms: &[Term]) -> String {
    terms.iter().map(|term| term.label()).collect::<Vec<_>>().join(" + ")
}

fn prices(findings: &[Finding]) -> Grid {
    let rows = findings.iter().flat_map(|finding| {
        finding.fit.estimates.iter().map(|estimate| {
            let (scale, unit) = price_unit(estimate.term);
            let (value, interval) = priced(estimate, scale);
            let inflation = estimate.inflation.map_or(NONE.into(), inflation);
            let term = estimate.term.label().to_string();
            vec![finding.arm.clone(), term, value, interval, unit.into(), inflation]
        })
    });
    Grid::of(
        "Prices",
        "Coefficients of the model, none negative, by least squares of relative errors in which \
         each case counts the same; intervals over the replicate runs. Inflation is how many times \
         the variance exceeds that of a term that stands alone; above 25 no number is given.",
        &["arm", "term", "price", "95 % interval", "unit", "inflation"],
        rows,
    )
}

fn inflation(value: f64) -> String {
    /// Above it, variance is as good as infinite.
    const SHOWN_MAX: f64 = 1e6;
    if value > SHOWN_MAX { "> 1,000,000".into() } else { digits(value) }
}

fn beyond(findings: &[Finding]) -> Grid {
    let rows = findings.iter().flat_map(|finding| {
        finding.answer.beyond.iter().map(|beyond| {
            let amount = |value| number(value, Unit::RecordsPerSecond);
            let Beyond { what, load, measured } = beyond;
            vec![finding.arm.clone(), what.clone(), amount(*load), amount(*measured)]
        })
    });
    Grid::of(
        "Beyond what was measured",
        "Counts of the load that lie above the largest, or sizes below the smallest, of all cases: \
         there the model is an extrapolation, which no held-out case has tried.",
        &["arm", "count", "load", "measured"],
        rows,
    )
}

/// A price and its interval, or why there are none.
fn priced(estimate: &Estimate, scale: f64) -> (String, String) {
    match (estimate.inflation, estimate.tied_with) {
        (None, _) => ("not measured".into(), NONE.into()),
        (_, Some(other)) => (format!("with {}", other.label()), NONE.into()),
        _ => (
            digits(estimate.value * scale),
            range(estimate.interval, |value| digits(value * scale)),
        ),
    }
}

/// What a coefficient in ns is multiplied by, and the unit that it then has.
fn price_unit(term: Term) -> (f64, &'static str) {
    match term.kind() {
        Kind::Idle => (1e-6, "ms/s"),
        Kind::Request | Kind::Batch | Kind::Record => (1e-3, "us"),
        Kind::Byte => (1_048_576.0 / 1e6, "CPU-ms/MB"),
    }
}

fn accuracy(findings: &[Finding]) -> Grid {
    let rows = findings.iter().flat_map(|finding| {
        let held_out = &finding.fit.held_out;
        let row = |name: &str, (median, most): (f64, f64)| {
            vec![finding.arm.clone(), name.into(), percent(median), percent(most)]
        };
        [
            row("this model", errors(held_out.iter().map(HeldOut::error))),
            row(
                "CPU-ms/MB of the reference case",
                errors(held_out.iter().filter_map(HeldOut::reference_error)),
            ),
            row(
                "best CPU-ms/MB of all other cases",
                errors(held_out.iter().map(HeldOut::best_error)),
            ),
        ]
    });
    Grid::of(
        "Error on held-out cases",
        "Each case is predicted from all others. One coefficient is what a load costs per MB \
         produced and consumed, taken from one case as such figures are published, or from all \
         others as favourably as can be.",
        &["arm", "predicted by", "median", "largest"],
        rows,
    )
}

fn cases(finding: &Finding) -> Grid {
    let row = |case: &HeldOut| {
        let per_mb = |cores: f64| digits(cores * 1e3 / (case.rates.bytes() / 1_048_576.0));
        vec![
            case.case.clone(),
            number(case.rates.of(Term::ProduceRequests), Unit::RecordsPerSecond),
            number(case.rates.of(Term::FetchRequests), Unit::RecordsPerSecond),
            number(case.rates.of(Term::ProducedBatches), Unit::RecordsPerSecond),
            digits(case.measured),
            per_mb(case.measured),
            digits(case.predicted),
            signed_percent(case.error()),
            case.reference_error().map_or(NONE.into(), signed_percent),
        ]
    };
    Grid::of(
        &format!("Cases, {}", finding.arm),
        "Means of the runs. Requests are the broker's count, batches the clients'.",
        &[
            "case",
            "produce requests/s",
            "fetch requests/s",
            "batches/s",
            "cores",
            "CPU-ms/MB",
            "predicted",
            "error",
            "one coefficient",
        ],
        finding.fit.held_out.iter().map(row),
    )
}

/// Cores with their interval.
fn cores(answer: &Answer) -> String {
    format!("{} {} cores", digits(answer.cores), range(answer.interval, digits))
}

fn range(interval: Interval, tell: impl Fn(f64) -> String) -> String {
    format!("[{}, {}]", tell(interval.low), tell(interval.high))
}

fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent.abs() < 9.95 { format!("{percent:.1} %") } else { format!("{percent:.0} %") }
}

fn signed_percent(share: f64) -> String {
    let sign = if share < 0.0 { "-" } else { "+" };
    format!("{sign}{}", percent(share.abs()))
}

fn size(value: u64) -> String {
    bytes(value)
}

fn per_second(value: f64) -> String {
    format!("{} MB/s", digits(value / 1_048_576.0))
}

#[cfg(test)]
mod tests;
