//! The arguments of what `moldau lab` does with files and results of the laboratory and of others.

use std::path::PathBuf;

use clap::Args;

use super::run::ExternalOptions;
use super::{OutputOptions, PeerOptions, WorkersOptions};

#[derive(Args, Clone, Debug)]
pub(crate) struct OmbOptions {
    /// Workload files of the benchmark.
    #[arg(required = true, value_name = "WORKLOAD.yaml")]
    pub(crate) workloads: Vec<PathBuf>,
    /// Driver files of the benchmark for Kafka: settings of clients, and the cluster where no
    /// system is named.
    #[arg(short, long = "drivers", value_name = "DRIVER.yaml", value_delimiter = ',')]
    pub(crate) drivers: Vec<PathBuf>,
    /// Systems to start and measure instead, by name or file [default: moldau without a driver].
    #[arg(long = "system", value_name = "SYSTEM", value_delimiter = ',')]
    pub(crate) systems: Vec<String>,
    /// Only tell what would be run, and what cannot be.
    #[arg(long)]
    pub(crate) check: bool,
    /// How often each workload runs; an interval takes 3.
    #[arg(long, default_value_t = 1)]
    pub(crate) rounds: u32,
    /// Seconds in place of the minutes of the workloads.
    #[arg(long)]
    pub(crate) quick: bool,
    #[command(flatten)]
    pub(crate) workers: WorkersOptions,
    #[command(flatten)]
    pub(crate) peers: PeerOptions,
    #[command(flatten)]
    pub(crate) cluster: ExternalOptions,
    #[command(flatten)]
    pub(crate) output: OutputOptions,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct ResultImportOptions {
    /// Outputs of kafka-producer-perf-test, rdkafka_performance, chronik-bench or the
    /// OpenMessaging Benchmark; several of one kind are repetitions.
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// What they are outputs of, in place of what each tool calls it.
    #[arg(long, value_name = "NAME")]
    pub(crate) arm: Option<String>,
    /// What was offered, in place of what each tool calls it.
    #[arg(long, value_name = "NAME")]
    pub(crate) case: Option<String>,
    #[command(flatten)]
    pub(crate) output: OutputOptions,
}

/// Exits 1 if a figure is worse at the 5 % level over all figures together, 3 if nothing can be
/// compared.
#[derive(Args, Clone, Debug)]
pub(crate) struct CompareOptions {
    /// The result to compare with: its file or directory.
    pub(crate) first: PathBuf,
    /// The result that is better or worse.
    pub(crate) second: PathBuf,
    /// A case of the first and one of the second, where their names differ.
    #[arg(long, num_args = 2, value_names = ["FIRST", "SECOND"])]
    pub(crate) cases: Vec<String>,
    /// An arm of the first and one of the second, where their names differ.
    #[arg(long, num_args = 2, value_names = ["FIRST", "SECOND"])]
    pub(crate) arms: Vec<String>,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct HistoryOptions {
    /// Directory whose subdirectories hold results.
    pub(crate) dir: PathBuf,
    /// Where to write the page with charts [default: history.html in the directory].
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct PageOptions {
    /// Results: their files or directories, in the order of the page.
    #[arg(required = true)]
    pub(crate) results: Vec<PathBuf>,
    /// Where to write the page; links lead from there [default: stdout].
    #[arg(long, value_name = "FILE.md")]
    pub(crate) out: Option<PathBuf>,
}
