//! Tables made of runs: a row for each load, a column for each arm.

use crate::metric::Metric;
use crate::page::{Column, Table};
use crate::result::RunResult;
use crate::run_figures::{NONE, estimate, in_words, latency_in_words, runs_of, throughput};
use moldau_measure::numbers::plain;

/// A table of one figure; loads without any are left out.
pub(crate) fn by_case(
    result: &RunResult,
    cases: &[&str],
    title: &str,
    about: &str,
    cell: impl Fn(&str, &str) -> Option<String>,
) -> Table {
    let row = |case: &&str| {
        let cells: Vec<Option<String>> =
            result.arms.iter().map(|arm| cell(case, &arm.name)).collect();
        let has_any = cells.iter().any(Option::is_some);
        let cells = cells.into_iter().map(|cell| cell.unwrap_or_else(|| NONE.into()));
        has_any.then(|| std::iter::once((*case).to_owned()).chain(cells).collect())
    };
    let arms = result.arms.iter().map(|arm| Column::figures(&*arm.name, ""));
    Table {
        title: title.into(),
        about: about.into(),
        columns: std::iter::once(Column::words("load")).chain(arms).collect(),
        rows: cases.iter().filter_map(row).collect(),
    }
}

/// Publish latency at fixed rates.
pub(crate) fn latency(result: &RunResult, cases: &[&str]) -> Table {
    by_case(
        result,
        cases,
        "Publish latency, p50 / p99, ms",
        "From the intended time of a record to its acknowledgement: medians over the runs that \
         kept up with the rate and whose generator was in time, counted where that is not all of \
         them. A saturated arm does not keep up in half of its runs: the rate that it took is \
         shown instead.",
        |case, arm| latency_in_words(&runs_of(result, case, arm)),
    )
}

/// CPU time per MB.
pub(crate) fn cpu(result: &RunResult, cases: &[&str], metric: Metric, of_whom: &str) -> Table {
    by_case(
        result,
        cases,
        "CPU time per MB, ms",
        &format!(
            "User and system time of {of_whom} inside the measured window, per MB (2^20 bytes of \
             record values) produced and consumed there: means over the runs with 95 % intervals."
        ),
        |case, arm| Some(in_words(&estimate(&runs_of(result, case, arm), metric, result.seed)?)),
    )
}

/// Throughput of cases without a rate, and the share of the first arm.
pub(crate) fn throughputs(result: &RunResult, cases: &[&str]) -> Table {
    let first = result.arms.first().map_or("", |arm| arm.name.as_str());
    let rate = |case: &str, arm: &str| throughput(&runs_of(result, case, arm));
    by_case(
        result,
        cases,
        "Throughput, MB/s",
        "Medians over the runs, and the share of the first column.",
        |case, arm| {
            let own = rate(case, arm)?;
            Some(match rate(case, first).filter(|_| arm != first) {
                Some(whole) => format!("{} ({:.0} %)", plain(own), own / whole * 100.0),
                None => plain(own),
            })
        },
    )
}
