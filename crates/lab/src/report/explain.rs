//! The report of an explanation: what limits the load, what spoke for it, and what became of the
//! changes.

use super::grid::Grid;
use crate::explain::{About, Explanation, Outcome, Trial};
use crate::result::{ExplainRecord, RunResult};
use moldau_measure::numbers::Unit;
use moldau_measure::numbers::{number, plain};
use moldau_measure::statistics::Interval;

/// What limits the load, or what does not.
pub(super) fn sentence(record: &ExplainRecord) -> String {
    let ExplainRecord { system, explanation, .. } = record;
    let figure = figure(explanation);
    let what = match explanation.about {
        About::Rate => format!("{system} takes {figure}"),
        About::Latency => format!("{system} has a median latency of {figure}"),
    };
    match explanation.confirmed() {
        Some(trial) => format!("{what}; what limits it is {}.", told(trial)),
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

/// The tables.
pub(super) fn grids(result: &RunResult) -> Vec<Grid> {
    let Some(record) = result.explained() else { return Vec::new() };
    let load = record.load.iter().map(|setting| format!("{} {}", setting.key, setting.value));
    let load = load.collect::<Vec<_>>().join(", ");
    let about = format!(
        "Findings in the order in which each would explain those behind it. One is confirmed if \
         the figure moves at least half of the way to what is expected, as a logarithm, in the \
         mean over pairs of runs without and with the change, whose 95 % interval (in brackets) \
         leaves out that it does not move. Load: {}.",
        if load.is_empty() { "as usual".into() } else { load }
    );
    let columns = ["finding", "evidence", "change", "expected", "found", "outcome"];
    let rows = record.explanation.trials.iter().map(row);
    vec![Grid::of("What limits it", &about, &columns, rows)]
}

fn figure(explanation: &Explanation) -> String {
    let unit = match explanation.about {
        About::Rate => Unit::RecordsPerSecond,
        About::Latency => Unit::Milliseconds,
    };
    format!("{} {}", number(explanation.figure, unit), unit.symbol())
}

/// What was confirmed, and by what.
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
        finding.cause.words().into(),
        finding.says.clone(),
        finding.change.words(),
        plain(finding.expected),
        found,
        outcome.words(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{html, markdown, sample, sentence, text};

    #[test]
    fn every_form_of_the_report_shows_what_limits_and_what_does_not() {
        let result = sample::explained();
        let said = sentence(&result);
        assert!(said.contains("the window of requests in flight: 5 requests"), "{said}");
        assert!(said.contains("1.90 times that, where 2.00 was expected"), "{said}");
        for shown in [text(&result), markdown(&result), html(&result).unwrap()] {
            assert!(shown.contains("rejected") && shown.contains("confirmed"));
            assert!(shown.contains("twice the requests in flight"));
        }
    }

    #[test]
    fn an_explanation_survives_its_document() {
        let result = sample::explained();
        let back = RunResult::from_json(&result.to_json().unwrap()).unwrap();
        assert_eq!(back, result);
    }
}
