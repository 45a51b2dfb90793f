//! What does a proxy cost? One broker reached directly, through a bare relay, through our proxy
//! with each thing that it can do, and through Kroxylicious.
//!
//! All of them run through the whole experiment. Each round of a case goes through all, forwards
//! and backwards in turn, and all runs of a round offer the same bytes at the same intended times.
//! Sizes of batches and rates differ between cases, since what a proxy costs follows requests more
//! than bytes. An arm that cannot keep up with a rate is a finding, not a failure.

mod added;
mod loads;
mod page;
mod plan;
mod run;
#[cfg(test)]
mod tests;

pub use page::page;
pub use plan::{Plan, Planted, Scope};
pub use run::run;
