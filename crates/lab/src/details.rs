//! Details that runs of any experiment may have beside their figures: record sizes, transactions,
//! workers, and CPU profiles.

mod profiles;
mod shapes;
mod transactions;
mod workers;

use crate::page::Detail;
use crate::result::RunResult;

pub(crate) use profiles::flames;
pub(crate) use shapes::words as shape_in_words;

/// The parts of a page that a result has of these.
pub(crate) fn details(result: &RunResult) -> Vec<Detail> {
    let mut tables: Vec<_> = shapes::table(result).into_iter().collect();
    tables.extend(transactions::table(result));
    tables.push(workers::table(result));
    let mut details: Vec<Detail> = tables.into_iter().map(Detail::table).collect();
    details.push(Detail::of("What the CPU time is spent on", Vec::new(), profiles::tables(result)));
    details.retain(|detail| !detail.is_empty());
    details
}
