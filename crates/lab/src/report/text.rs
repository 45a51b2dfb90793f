//! The report for a terminal.

use std::fmt::Write as _;

use super::grid::Grid;
use super::sentence;
use super::table::{Contrast, Row, comparisons, contrasts, offered, runs_counted};
use crate::checks::Weight;
use crate::result::RunResult;

/// One sentence, then a table per case, then what did not pass.
#[must_use]
pub fn text(result: &RunResult) -> String {
    let mut text = format!("{}\n", wrapped(&sentence(result), 96));
    text += &super::partitions::text(result);
    text += &super::sizing::text(result);
    text.extend(super::ceiling::grids(result).iter().map(Grid::text));
    text.extend(super::self_test::grids(result).iter().map(Grid::text));
    text.extend(result.survey().map(|record| super::survey::words(result, record).text()));
    text.extend(result.threads().map(|record| super::threads::words(result, record).text()));
    let grids = super::grids(result);
    text.extend(grids.iter().map(Grid::text));
    // Tables of two arms at a time say the same at greater length where all stand side by side.
    let by_tables = super::is_told_by_tables(result);
    let is_told = !grids.is_empty() && (result.arms.len() > 2 || by_tables);
    for case in result.cases().into_iter().filter(|_| !is_told) {
        for contrast in contrasts(result, case) {
            let Contrast { baseline, arm } = contrast;
            let rows: Vec<Row> = comparisons(result, case, arm).map(Row::of).collect();
            let Some(run) = result.runs_of(case, arm).next() else { continue };
            let runs = runs_counted(result, case, contrast);
            append(&mut text, format_args!("\n{case}\n  {}, {runs}\n\n", offered(run)));
            append_table(&mut text, baseline, arm, &rows);
        }
    }
    text.extend(super::shapes::grid(result).iter().map(Grid::text));
    text.extend(super::transactions::grid(result).iter().map(Grid::text));
    text.extend(super::profiles::grids(result).iter().map(Grid::text));
    text.push('\n');
    for check in &result.checks {
        let mark = match (check.passed, check.weight) {
            (true, _) => "ok",
            (false, Weight::Note) => "note",
            (false, _) => "FAILED",
        };
        append(
            &mut text,
            format_args!(
                "  {mark:<6}  {}: {} (demanded: {})\n",
                check.name, check.found, check.demanded
            ),
        );
    }
    text
}

fn append_table(text: &mut String, baseline: &str, arm: &str, rows: &[Row]) {
    append(
        text,
        format_args!(
            "  {:<28} {baseline:>12} {arm:>12} {:>12}   {:<20} {:>9}   {}\n",
            "median over runs", "difference", "95 % interval", "ratio", "shows"
        ),
    );
    for row in rows {
        append(
            text,
            format_args!(
                "  {:<28} {:>12} {:>12} {:>12}   {:<20} {:>9}   {}\n",
                row.figure,
                row.baseline,
                row.arm,
                row.difference,
                row.interval,
                row.ratio,
                row.shows
            ),
        );
    }
}

fn append(text: &mut String, arguments: std::fmt::Arguments<'_>) {
    text.write_fmt(arguments).expect("writing to a String does not fail");
}

pub(super) fn wrapped(sentence: &str, width: usize) -> String {
    let mut text = String::new();
    let mut column = 0;
    for word in sentence.split(' ') {
        if column > 0 && column + 1 + word.len() > width {
            text.push('\n');
            column = 0;
        } else if column > 0 {
            text.push(' ');
            column += 1;
        }
        text.push_str(word);
        column += word.len();
    }
    text
}
