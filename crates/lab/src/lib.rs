//! The laboratory.

pub mod cpu;
pub mod environment;
pub mod error;
pub mod histograms;
pub mod ledger;
pub mod payload;
pub mod schedule;
pub mod stall;
pub mod statistics;

pub use error::Error;
