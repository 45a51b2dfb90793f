//! What limits a load, the evidence, and the effects of the changes, as a page.

use crate::explain::{About, Explanation, Outcome, Trial};
use crate::page::{Axis, Cell, Chart, Detail, Group, Mark, Page, Plot, Scale, Series, Table};
use crate::result::{ExplainRecord, RunResult};
use crate::result_page;
use moldau_measure::numbers::Unit;
use moldau_measure::numbers::{number, plain};
use moldau_measure::statistics::Interval;

/// The page of an explanation.
pub fn page(result: &RunResult, record: &ExplainRecord) -> Page {
    let mut page = result_page::answered(result, "What limits it?", vec![sentence(record)]);
    page.table = Some(table(record));
    page.charts.extend(chart(record));
    page.details = vec![
        Detail::table(evidence(record)),
        result_page::comparisons(result),
        result_page::audit(result),
    ];
    page.details.retain(|detail| !detail.is_empty());
    page
}

/// What limits the load, or what does not.
fn sentence(record: &ExplainRecord) -> String {
    let ExplainRecord { system, explanation, .. } = record;
    let figure = figure(explanation);
    let what = match explanation.about {
        About::Rate => format!("{system} takes {figure}"),
        About::Latency => format!("{system} has a median latency of {figure}"),
    };
    match explanation.confirmed() {
        Some(trial) => format!("{what}; the limit is {}.", told(trial)),
        None => match explanation.trials.first() {
            Some(_) if is_undecided(explanation) => format!(
                "{what}; nothing that was tried is sure to explain it: the figure varies too much."
            ),
            Some(_) => format!("{what}; nothing that was tried explains it."),
            None => format!("{what}; nothing speaks for any limit."),
        },
    }
}

fn is_undecided(explanation: &Explanation) -> bool {
    explanation.trials.iter().any(|trial| matches!(trial.outcome, Outcome::Undecided(_)))
}

/// The changes tried, and their effects.
fn table(record: &ExplainRecord) -> Table {
    let columns = ["finding", "change", "expected, x", "found, x", "outcome"];
    Table::of("", "", &columns, record.explanation.trials.iter().map(row))
}

/// What spoke for each finding.
fn evidence(record: &ExplainRecord) -> Table {
    let load = record.load.iter().map(|setting| format!("{} {}", setting.key, setting.value));
    let load = load.collect::<Vec<_>>().join(", ");
    let about = format!(
        "Findings in the order in which each would explain those behind it. One is confirmed if \
         the figure moves at least half of the way to what is expected, as a logarithm, in the \
         mean over pairs of runs without and with the change, and the 95 % interval excludes that \
         it does not move. Load: {}.",
        if load.is_empty() { "as usual".into() } else { load }
    );
    let row =
        |trial: &Trial| vec![trial.finding.cause.words().to_owned(), trial.finding.says.clone()];
    let rows = record.explanation.trials.iter().map(row);
    Table::of("What speaks for it", &about, &["finding", "evidence"], rows)
}

/// What was expected of each change beside what it did.
fn chart(record: &ExplainRecord) -> Option<Chart> {
    let group = |trial: &Trial| {
        let found = trial.outcome.factor()?;
        let interval = trial.interval_95().map(|it| (it.low, it.high));
        let found = crate::page::Estimate { value: found, interval };
        let cells = vec![Cell::Figure(trial.finding.expected.into()), Cell::Figure(found)];
        Some(Group { name: trial.finding.change.words(), cells })
    };
    let groups: Vec<Group> = record.explanation.trials.iter().filter_map(group).collect();
    let series = [("expected", 0), ("found", 1)];
    (!groups.is_empty()).then(|| Chart {
        id: "changes".into(),
        title: "What each change did".into(),
        about:
            "The figure with the change by that without it. At 1 it does not move; whiskers are \
                95 % intervals."
                .into(),
        series: series.map(|(name, tone)| Series { name: name.into(), tone }).to_vec(),
        plot: Plot::Bars {
            axis: Axis::new("figure with the change by that without", "x", Scale::Log),
            mark: Mark::Dot,
            groups,
        },
    })
}

fn figure(explanation: &Explanation) -> String {
    let unit = match explanation.about {
        About::Rate => Unit::RecordsPerSecond,
        About::Latency => Unit::Milliseconds,
    };
    format!("{} {}", number(explanation.figure, unit), unit.symbol())
}

/// The confirmed cause and its evidence.
fn told(trial: &Trial) -> String {
    let Trial { finding, outcome, .. } = trial;
    let mut told = format!("{}: {}", finding.cause.words(), finding.says);
    if let Some(by) = outcome.factor() {
        told += &format!(
            ". With {} it is {} times that, where {} was expected",
            finding.change.words(),
            number(by, Unit::Times),
            number(finding.expected, Unit::Times)
        );
    }
    told
}

fn row(trial: &Trial) -> Vec<String> {
    let Trial { finding, outcome, .. } = trial;
    let mut found = outcome.factor().map_or_else(|| "-".into(), plain);
    if let Some(Interval { low, high }) = trial.interval_95() {
        found += &format!(" ({} to {})", plain(low), plain(high));
    }
    vec![
        finding.cause.words(),
        finding.change.words(),
        plain(finding.expected),
        found,
        outcome.words(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    #[test]
    fn the_page_shows_what_limits_and_what_does_not() {
        let result = sample::explained();
        let page = page(&result, result.explained().unwrap());
        let said = &page.answer[0];
        assert!(said.contains("the window of requests in flight: 5 requests"), "{said}");
        assert!(said.contains("1.90 times that, where 2.00 was expected"), "{said}");
        let rows = &page.table.as_ref().unwrap().rows;
        let outcomes: Vec<&str> =
            rows.iter().filter_map(|row| row.last()).map(|it| &**it).collect();
        assert!(outcomes.iter().any(|it| it.starts_with("rejected")), "{outcomes:?}");
        assert!(outcomes.iter().any(|it| it.starts_with("confirmed")), "{outcomes:?}");
        assert!(rows.iter().any(|row| row[1].contains("twice the requests in flight")));
        assert_eq!(page.charts[0].id, "changes");
    }

    #[test]
    fn an_explanation_survives_its_document() {
        let result = sample::explained();
        let back = RunResult::from_json(&result.to_json().unwrap()).unwrap();
        assert_eq!(back, result);
    }
}
