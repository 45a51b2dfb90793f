//! Tools for any measurement: statistics, histograms, and the accounting of processes.
//!
//! # Layout
//! - [`statistics`]: medians, intervals, paired and unpaired differences, fits.
//! - [`histograms`]: latencies in nanoseconds, mergeable, and as they are stored.
//! - [`cpu`], [`resources`]: processor time of processes and the machine over a window, and what a
//!   process holds.
//! - [`control_group`]: the limit of processor time that a process has from the kernel.
//! - [`profile`]: where processes spend their time, as folded stacks.
//! - [`numbers`]: how figures and their units are written.
//!
//! # Invariants
//! - Nothing here knows Kafka, prints, or reads arguments and the environment.
//! - No sample is dropped: one that is not positive is counted, one that is too long is recorded as
//!   the longest.

pub mod control_group;
pub mod cpu;
mod error;
pub mod histograms;
pub mod numbers;
pub mod profile;
pub mod resources;
pub mod statistics;

pub use error::Error;
