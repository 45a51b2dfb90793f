//! The report of a self-test: its tables, and its curves as charts.

use super::chart::{Chart, few_quantiles};
use super::grid::Grid;
use super::html::plot;
use crate::result::RunResult;
use crate::self_test::{Cell, SelfTestRecord, Table};
use moldau_measure::numbers::plain;

/// The tables; none of another experiment.
pub(super) fn grids(result: &RunResult) -> Vec<Grid> {
    result.self_test.iter().flat_map(|record| &record.tables).map(grid).collect()
}

/// The sections of the page.
pub(super) fn html(result: &RunResult, record: &SelfTestRecord, charts: &mut Vec<Chart>) -> String {
    let mut html: String = grids(result).iter().map(Grid::html).collect();
    for pair in record.curves.chunks(2) {
        html += "<div class=\"pair\">";
        for curves in pair {
            html += &plot(
                &format!("Latency by percentile: {}", curves.title),
                few_quantiles(curves),
                charts,
            );
        }
        html += "</div>";
    }
    html
}

fn grid(table: &Table) -> Grid {
    let row = |cells: &Vec<Cell>| {
        let words = cells.iter().map(|cell| match cell {
            Cell::Figure(figure) => plain(*figure),
            Cell::Words(words) => words.clone(),
        });
        words.collect()
    };
    Grid::of(&table.title, &table.about, &table.columns, table.rows.iter().map(row))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{html, markdown, sample, text};
    use crate::result::Experiment;
    use crate::self_test::{Curves, Line, SelfTest};

    fn result() -> RunResult {
        let mut result = sample::result();
        result.experiment = Experiment::SelfTest(SelfTest::Stall);
        result.runs.clear();
        result.comparisons.clear();
        result.self_test = Some(SelfTestRecord {
            tables: vec![Table {
                title: "Stopped <for> a while".into(),
                about: "At a rate.".into(),
                columns: vec!["source".into(), "p50, ms".into()],
                rows: vec![vec!["arithmetic".into(), 12_345.6.into()]],
            }],
            curves: vec![Curves {
                title: "sink".into(),
                quantiles: vec![0.5, 0.99],
                lines: vec![Line { name: "arithmetic".into(), ms: vec![1.0, 2.0] }],
            }],
        });
        result
    }

    #[test]
    fn every_form_of_the_report_shows_the_figures() {
        let result = result();
        assert!(text(&result).contains("12,346"));
        assert!(markdown(&result).contains("| arithmetic | 12,346 |"));
        let page = html(&result).unwrap();
        assert!(page.contains("Stopped &lt;for&gt; a while") && page.contains("<td>12,346</td>"));
        assert!(page.contains(r#""kind":"curve","x":[0.3010"#));
    }

    #[test]
    fn a_self_test_survives_its_document() {
        let result = result();
        let back = RunResult::from_json(&result.to_json().unwrap()).unwrap();
        assert_eq!(back.self_test, result.self_test);
        assert_eq!(back.experiment, result.experiment);
    }
}
