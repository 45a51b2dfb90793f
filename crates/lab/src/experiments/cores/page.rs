//! How many cores a proxy needs, as a page: the cores for the requested load, the parts of that
//! sum, and the error of the model.

use crate::page::{
    self, At, Axis, Cell, Chart, Detail, Group, Guide, Line, Mark, Page, Plot, Point, Scale,
    Series, Style, Table,
};
use crate::result::RunResult;
use crate::result_page;
use crate::run_charts::{slug, tone};
use crate::run_figures::NONE;
use crate::sizing::{
    Answer, Beyond, Estimate, Finding, HeldOut, Kind, Load, SizingRecord, Term, UTILISATION_MAX,
    errors,
};
use moldau_measure::numbers::Unit;
use moldau_measure::numbers::{bytes, digits, number, rough, thousands};
use moldau_measure::statistics::Interval;

const BYTES_PER_MB: f64 = moldau_load::workload::BYTES_PER_MB;

const NOTHING: &str = "There were too few cases for a model.";

/// Points of a line over the load, and how many times the load that was asked for the last one is.
const LOADS: u32 = 10;
const LOAD_TIMES_MAX: f64 = 2.0;

/// The page of the model of cores.
pub fn page(result: &RunResult) -> Page {
    const TITLE: &str = "How many cores does the proxy need?";
    let nothing = || result_page::answered(result, TITLE, vec![NOTHING.into()]);
    let Some(record) = &result.sizing else { return nothing() };
    let findings = record.findings(result.seed);
    if findings.is_empty() {
        return nothing();
    }
    let mut page = result_page::answered(result, TITLE, sentences(&record.load, &findings));
    page.table = Some(answers(&findings));
    page.charts = vec![over_load(result, record, &findings), parts(&findings)];
    let predictions = findings.iter().map(predictions).collect();
    page.details = vec![
        Detail::table(shares(&findings)),
        Detail::table(beyond(&findings)),
        Detail::words("What the model says and does not", reasons(&findings)),
        Detail::table(prices(&findings)),
        Detail::of("Error on held-out cases", predictions, vec![accuracy(&findings)]),
    ];
    page.details.extend(findings.iter().map(|finding| Detail::table(cases(finding))));
    page.details.push(result_page::audit(result));
    page.details.retain(|detail| !detail.is_empty());
    page
}

/// Cores to plan, how busy they are, and whether that lies beyond what was measured.
fn sentences(load: &Load, findings: &[Finding]) -> Vec<String> {
    let each = |tell: &dyn Fn(&Finding) -> String| {
        findings.iter().map(tell).collect::<Vec<_>>().join(", ")
    };
    let planned = each(&|finding| {
        let cores = finding.answer.planned;
        format!("{cores} core{} for {}", if cores == 1 { "" } else { "s" }, finding.arm)
    });
    let busy =
        each(&|finding| format!("{} keeps {} busy", finding.arm, rough(finding.answer.cores)));
    vec![
        format!("{} need {planned}.", described(load)),
        format!(
            "Of these, {busy}; plan for {:.0} % at most.{}",
            UTILISATION_MAX * 100.0,
            reach(findings)
        ),
    ]
}

/// What most of it is and what can be done, how far the model is to be believed, and what a reader
/// should know before using it.
fn reasons(findings: &[Finding]) -> Vec<String> {
    let reasons = findings.iter().map(reason).filter(|reason| !reason.is_empty());
    let trust = findings.iter().map(|finding| trust(finding) + ".");
    reasons.chain(trust).chain(notes(findings)).collect()
}

/// Busy cores over the produced load, and how many to plan for it.
fn over_load(result: &RunResult, record: &SizingRecord, findings: &[Finding]) -> Chart {
    let asked = record.load.produce_bytes_per_second;
    let mut lines = Vec::new();
    for (series, finding) in findings.iter().enumerate() {
        let observations = record.of_arm(&finding.arm);
        let (mut busy, mut planned) = (Vec::new(), Vec::new());
        for step in 1..=LOADS {
            let produced = asked * LOAD_TIMES_MAX * f64::from(step) / f64::from(LOADS);
            let load = Load { produce_bytes_per_second: produced, ..record.load };
            let answer = Answer::of(&finding.fit, &observations, &load);
            let (x, Interval { low, high }) = (produced / BYTES_PER_MB, answer.interval);
            let y = page::Estimate { value: answer.cores, interval: Some((low, high)) };
            busy.push(Point { x, y });
            planned.push(Point { x, y: (high / UTILISATION_MAX).into() });
        }
        lines.push(Line { series, style: Style::Curve, points: busy });
        lines.push(Line { series, style: Style::Dashed, points: planned });
    }
    let series = findings.iter();
    let series = series.map(|it| Series { name: it.arm.clone(), tone: tone(result, &it.arm) });
    Chart {
        id: "cores".into(),
        title: "Cores over the load".into(),
        about: "Solid: busy cores with their 95 % intervals. Dashed: cores with headroom, 70 % \
                busy at the upper end."
            .into(),
        series: series.collect(),
        plot: Plot::Lines {
            x: Axis::new("produced", "MB/s", Scale::Linear),
            y: Axis::new("cores", "", Scale::Linear),
            lines,
            guides: vec![Guide { name: "asked for".into(), at: At::X(asked / BYTES_PER_MB) }],
        },
    }
}

/// What the cores of each arm are made of.
fn parts(findings: &[Finding]) -> Chart {
    let group = |finding: &Finding| {
        let cores = |kind: Kind| {
            let of = finding.answer.parts.iter().filter(|part| part.term.kind() == kind);
            Cell::Figure(of.map(|part| part.cores).sum::<f64>().into())
        };
        Group { name: finding.arm.clone(), cells: Kind::ALL.map(cores).to_vec() }
    };
    let series = (0..).zip(Kind::ALL);
    let series = series.map(|(tone, kind)| Series { name: kind.words().into(), tone });
    Chart {
        id: "parts".into(),
        title: "What the cores are made of".into(),
        about: String::new(),
        series: series.collect(),
        plot: Plot::Bars {
            axis: Axis::new("busy cores", "", Scale::Linear),
            mark: Mark::Bar,
            groups: findings.iter().map(group).collect(),
        },
    }
}

/// Held-out cases as predicted over as measured, by the model and by one coefficient.
fn predictions(finding: &Finding) -> Chart {
    let line = |(series, predicted): (usize, fn(&HeldOut) -> Option<f64>)| {
        let point = |case: &HeldOut| {
            let y = predicted(case).filter(|value| *value > 0.0 && case.measured > 0.0)?;
            Some(Point { x: case.measured, y: y.into() })
        };
        let points = finding.fit.held_out.iter().filter_map(point).collect();
        Line { series, style: Style::Points, points }
    };
    let by: [fn(&HeldOut) -> Option<f64>; 2] =
        [|case| Some(case.predicted), |case| case.by_reference];
    let mut lines: Vec<Line> = by.into_iter().enumerate().map(line).collect();
    let measured = finding.fit.held_out.iter().map(|case| case.measured).filter(|it| *it > 0.0);
    let (low, high) =
        measured.fold((f64::INFINITY, 0.0_f64), |(low, high), it| (low.min(it), high.max(it)));
    if low < high {
        let points = [low, high].map(|it| Point { x: it, y: it.into() }).to_vec();
        lines.push(Line { series: 2, style: Style::Dashed, points });
    }
    let series = [("this model", 1), ("one coefficient per MB", 2), ("measured", 0)];
    Chart {
        id: format!("predictions-{}", slug(&finding.arm)),
        title: format!("Predicted against measured, {}", finding.arm),
        about: "Each case is predicted from all others. On the dashed line a prediction is right."
            .into(),
        series: series.map(|(name, tone)| Series { name: name.into(), tone }).to_vec(),
        plot: Plot::Lines {
            x: Axis::new("measured cores", "", Scale::Log),
            y: Axis::new("predicted cores", "", Scale::Log),
            lines,
            guides: Vec::new(),
        },
    }
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
    let Some((kind, share)) = answer.kinds().into_iter().next() else { return String::new() };
    let lever = match &answer.lever {
        Some(lever) => format!("{} would save {}", lever.action.words(), percent(lever.saving)),
        None => "neither larger batches nor fewer requests would save much".into(),
    };
    let (share, arm) = (percent(share), &finding.arm);
    format!("{share} of {arm} is {} work; {lever}.", kind.words())
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

/// Limits of the answer.
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
    }
    notes
}

fn answers(findings: &[Finding]) -> Table {
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
    Table::of(
        "",
        "For the load that was asked for. Planned are as many as keep 70 % busy at the upper end.",
        &["arm", "cores", "95 % interval", "planned", "largest lever"],
        findings.iter().map(row),
    )
}

fn shares(findings: &[Finding]) -> Table {
    let rows = findings.iter().flat_map(|finding| {
        finding.answer.parts.iter().map(|part| {
            let term = part.term.label().to_owned();
            vec![finding.arm.clone(), term, digits(part.cores), percent(part.share)]
        })
    });
    Table::of(
        "What they are made of",
        "Cores and share of each term.",
        &["arm", "term", "cores", "share"],
        rows,
    )
}

fn prices(findings: &[Finding]) -> Table {
    let rows = findings.iter().flat_map(|finding| {
        finding.fit.estimates.iter().map(|estimate| {
            let (scale, unit) = price_unit(estimate.term);
            let (value, interval) = priced(estimate, scale);
            let term = estimate.term.label().to_string();
            vec![finding.arm.clone(), term, value, interval, unit.into()]
        })
    });
    Table::of(
        "Prices",
        "Coefficients of the model, none negative, by least squares of relative errors in which \
         each case counts the same; intervals over the replicate runs.",
        &["arm", "term", "price", "95 % interval", "unit"],
        rows,
    )
}

fn beyond(findings: &[Finding]) -> Table {
    let rows = findings.iter().flat_map(|finding| {
        finding.answer.beyond.iter().map(|beyond| {
            let amount = |value| number(value, Unit::RecordsPerSecond);
            let Beyond { what, load, measured } = beyond;
            vec![finding.arm.clone(), what.clone(), amount(*load), amount(*measured)]
        })
    });
    Table::of(
        "Beyond what was measured",
        "Counts of the load that lie above the largest, or sizes below the smallest, of all cases: \
         there the model is an extrapolation, which no held-out case has tried.",
        &["arm", "count", "load", "measured"],
        rows,
    )
}

/// A price and its interval, or why there are none.
fn priced(estimate: &Estimate, scale: f64) -> (String, String) {
    if !estimate.is_measured {
        return ("not measured".into(), NONE.into());
    }
    (digits(estimate.value * scale), range(estimate.interval, |value| digits(value * scale)))
}

/// What a coefficient in ns is multiplied by, and the unit that it then has.
fn price_unit(term: Term) -> (f64, &'static str) {
    match term.kind() {
        Kind::Idle => (1e-6, "ms/s"),
        Kind::Request | Kind::Batch | Kind::Record => (1e-3, "us"),
        Kind::Byte => (BYTES_PER_MB / 1e6, "CPU-ms/MB"),
    }
}

fn accuracy(findings: &[Finding]) -> Table {
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
        ]
    });
    Table::of(
        "Error on held-out cases",
        "Each case is predicted from all others. One coefficient is what a load costs per MB \
         produced and consumed, taken from one case as such figures are published.",
        &["arm", "predicted by", "median", "largest"],
        rows,
    )
}

fn cases(finding: &Finding) -> Table {
    let row = |case: &HeldOut| {
        let per_mb = |cores: f64| digits(cores * 1e3 / (case.rates.bytes() / BYTES_PER_MB));
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
    Table::of(
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
    format!("{} MB/s", digits(value / BYTES_PER_MB))
}

#[cfg(test)]
mod tests;
