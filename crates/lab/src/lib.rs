//! The laboratory.

pub mod checks;
pub mod cpu;
pub mod environment;
mod error;
pub mod experiments;
pub mod generator;
pub mod histograms;
pub mod ledger;
pub mod metric;
pub mod payload;
pub mod report;
pub mod result;
pub mod schedule;
pub mod stall;
pub mod statistics;
pub mod systems;
pub mod workload;

pub use error::Error;
