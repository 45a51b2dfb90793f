//! What a measurement needs, whatever is measured: statistics, histograms, and the accounting of
//! processes.
//!
//! # Layout
//! - [`statistics`]: medians, intervals, paired and unpaired differences, fits, scalability.
//! - [`histograms`]: latencies in nanoseconds, mergeable, and as they are stored.
//! - [`cpu`], [`resources`], [`evidence`]: processor time of processes and the machine over a
//!   window, what a process holds, and what it waits for.
//! - [`control_group`]: the kernel's limit of processor time for a process.
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
pub mod evidence;
pub mod histograms;
pub mod numbers;
pub mod profile;
pub mod resources;
pub mod statistics;

pub use error::Error;
