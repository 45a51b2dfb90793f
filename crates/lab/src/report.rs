//! Reports, made from a result document alone: for a terminal, as Markdown, and as one HTML file
//! that needs no network. Beside them: comparisons, histories and reference pages of several
//! results, and the raw course of a result for other tools.

mod answers;
mod chart;
mod compared;
mod explain;
mod faults;
mod grid;
mod history;
mod html;
mod imported;
mod logs;
mod markdown;
mod partitions;
mod profiles;
mod reference;
mod self_test;
mod sentence;
mod shapes;
mod sizing;
mod soak;
mod survey;
mod table;
mod text;
mod threads;
mod transactions;
mod workers;

use crate::page::Detail;
use crate::result::{Experiment, RunResult};
use grid::Grid;

/// The tables that put all arms side by side, for experiments that have such.
fn grids(result: &RunResult) -> Vec<Grid> {
    match &result.experiment {
        Experiment::Survey(record) => survey::grids(result, record),
        Experiment::Threads(record) => threads::grids(result, record),
        Experiment::Soak(record) => soak::grids(result, record),
        Experiment::Faults(record) => faults::grids(result, record),
        Experiment::Imported(_) => imported::grids(result),
        Experiment::Explain(_) => explain::grids(result),
        _ => Vec::new(),
    }
}

/// Whether tables of its own say all of it, so that those of one load after the other, two arms at
/// a time, would only say the same at greater length.
fn is_told_by_tables(result: &RunResult) -> bool {
    let by_files = result.survey().is_some() || result.threads().is_some();
    by_files || result.faults().is_some() || result.soak().is_some()
}

/// What runs of any experiment may have beside their figures: records of different sizes,
/// transactions, workers, and what the CPU time is spent on.
#[must_use]
pub fn details(result: &RunResult) -> Vec<Detail> {
    let detail = |title: &str, grids: Vec<Grid>| {
        Detail::of(title, Vec::new(), grids.iter().map(Grid::table).collect())
    };
    let details = [
        detail("Records of different sizes and keys", shapes::grid(result).into_iter().collect()),
        detail("Transactions", transactions::grid(result).into_iter().collect()),
        detail("Workers", vec![workers::grid(result)]),
        detail("What the CPU time is spent on", profiles::tables(result)),
    ];
    details.into_iter().filter(|detail| !detail.is_empty()).collect()
}

/// The flame graphs of a result, as a page of its own.
#[must_use]
pub fn flames(result: &RunResult) -> Option<String> {
    let body = profiles::flames_html(result)?;
    Some(html::page("Flame graphs", &body, &format!("Made by moldau lab from {}.", result.id), &[]))
}

#[cfg(test)]
pub(crate) mod sample;

pub use compared::compared;
pub use history::{history, history_html};
pub use html::html;
pub use logs::{histogram_log, series_csv};
pub use markdown::markdown;
pub use reference::reference_page;
pub use sentence::sentence;
pub use sizing::sizing;
pub use text::text;

#[cfg(test)]
mod tests;
