//! The findings of a self-test, as a page.

use crate::checks::Weight;
use crate::page::{self, Axis, Chart, Detail, Line, Page, Plot, Point, Scale, Series, Style};
use crate::result::RunResult;
use crate::result_page;
use crate::run_charts::slug;
use crate::self_test::{Cell, Curves, SelfTest, SelfTestRecord, Table};
use moldau_measure::numbers::plain;

/// The page of a self-test.
pub fn page(result: &RunResult, test: SelfTest) -> Page {
    let kept = result.checks.iter().filter(|check| check.weight == Weight::Validity).count();
    let told = vec![format!("All {kept} promises are kept.")];
    let mut page = result_page::answered(result, test.question(), told);
    page.table = Some(result_page::judged_table(result, Weight::Validity, "promise"));
    let nothing = SelfTestRecord::default();
    let record = result.self_test.as_ref().unwrap_or(&nothing);
    page.charts = record.curves.iter().map(chart).collect();
    page.details.extend(record.tables.iter().map(|table| Detail::table(grid(table))));
    page
}

/// Latency by percentile.
fn chart(curves: &Curves) -> Chart {
    let series = (0..).zip(&curves.lines);
    let series = series.map(|(tone, line)| Series { name: line.name.clone(), tone }).collect();
    let line = |(series, line): (usize, &crate::self_test::Line)| {
        let points = curves.quantiles.iter().zip(&line.ms);
        let points = points.map(|(x, ms)| Point { x: *x, y: (*ms).into() }).collect();
        Line { series, style: Style::Curve, points }
    };
    Chart {
        id: format!("latency-{}", slug(&curves.title)),
        title: format!("Latency, {}", curves.title),
        about: String::new(),
        series,
        plot: Plot::Lines {
            x: Axis::new("percentile", "", Scale::Percentile),
            y: Axis::new("latency", "ms", Scale::Log),
            lines: curves.lines.iter().enumerate().map(line).collect(),
            guides: Vec::new(),
        },
    }
}

fn grid(table: &Table) -> page::Table {
    let row = |cells: &Vec<Cell>| {
        let words = cells.iter().map(|cell| match cell {
            Cell::Figure(figure) => plain(*figure),
            Cell::Words(words) => words.clone(),
        });
        words.collect()
    };
    page::Table::of(&table.title, &table.about, &table.columns, table.rows.iter().map(row))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::Experiment;
    use crate::sample;
    use crate::self_test::Line;

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
    fn the_page_has_the_tables_and_the_curves() {
        let page = page(&result(), SelfTest::Stall);
        assert_eq!(page.title, "Does a stop of the target show in full?");
        let table = &page.details[0].tables[0];
        assert_eq!(table.rows, [["arithmetic", "12,346"].map(String::from)]);
        assert_eq!(page.charts[0].id, "latency-sink");
    }

    #[test]
    fn a_self_test_survives_its_document() {
        let result = result();
        let back = RunResult::from_json(&result.to_json().unwrap()).unwrap();
        assert_eq!(back.self_test, result.self_test);
        assert_eq!(back.experiment, result.experiment);
    }
}
