//! Reports, made from a result document alone: for a terminal, as Markdown, and as one HTML file
//! that needs no network.

mod added;
mod chart;
mod figure;
mod fronts;
mod grid;
mod html;
mod markdown;
mod partitions;
mod self_test;
mod sentence;
mod sizing;
mod survey;
mod table;
mod text;

use crate::result::RunResult;
use grid::Grid;

/// The tables that put all arms side by side, for experiments that have such.
fn grids(result: &RunResult) -> Vec<Grid> {
    match result.survey() {
        Some(record) => survey::grids(result, record),
        None => fronts::grids(result),
    }
}

#[cfg(test)]
pub(crate) mod sample;

pub use html::html;
pub use markdown::markdown;
pub use sentence::sentence;
pub use sizing::sizing;
pub use text::text;

#[cfg(test)]
mod tests;
