//! The report of an explanation: what limits the load, what spoke for it, and what became of the
//! changes.

use super::grid::Grid;
use crate::explain::{About, Explanation, Outcome, Trial};
use crate::metric::Unit;
use crate::numbers::{number, plain};
use crate::result::{ExplainRecord, RunResult};

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
            Some(_) => format!("{what}; nothing that was tried explains it."),
            None => format!("{what}; nothing speaks for any limit."),
        },
    }
}

/// The tables.
pub(super) fn grids(result: &RunResult) -> Vec<Grid> {
    let Some(record) = result.explained() else { return Vec::new() };
    let load = record.load.iter().map(|setting| format!("{} {}", setting.key, setting.value));
    let load = load.collect::<Vec<_>>().join(", ");
    let about = format!(
        "Findings in the order in which each would explain those behind it. One is confirmed if \
         the figure moves at least half of the way to what is expected, as a logarithm, in the \
         mean over pairs of runs without and with the change. Load: {}.",
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

fn told(Trial { finding, outcome, .. }: &Trial) -> String {
    let found = match outcome {
        Outcome::Confirmed(by) | Outcome::Rejected(by) => number(*by, Unit::Times),
        Outcome::Untested(_) => "?".into(),
    };
    format!(
        "{}: {}. With {} it is {found} times that, where {} was expected",
        finding.cause.words(),
        finding.says,
        finding.change.words(),
        number(finding.expected, Unit::Times)
    )
}

fn row(Trial { finding, outcome, .. }: &Trial) -> Vec<String> {
    let (found, outcome) = match outcome {
        Outcome::Confirmed(by) => (plain(*by), "confirmed".to_string()),
        Outcome::Rejected(by) => (plain(*by), "rejected".to_string()),
        Outcome::Untested(reason) => ("-".to_string(), format!("not tested: {reason}")),
    };
    vec![
        finding.cause.words().into(),
        finding.says.clone(),
        finding.change.words(),
        plain(finding.expected),
        found,
        outcome,
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
