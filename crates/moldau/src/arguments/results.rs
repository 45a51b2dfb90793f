//! The arguments of `moldau lab omb`, `import`, `compare`, `history` and `page`.

use std::path::PathBuf;

use clap::Args;

use super::run::ExternalOptions;
use super::{OutputOptions, PeerOptions, WorkersOptions};

#[derive(Args, Clone, Debug)]
pub(crate) struct OmbOptions {
    /// Workload files of the benchmark.
    #[arg(required = true, value_name = "WORKLOAD.yaml")]
    pub(crate) workloads: Vec<PathBuf>,
    /// Driver files of the benchmark for Kafka: client settings, and the cluster unless --system
    /// names one.
    #[arg(short, long = "drivers", value_name = "DRIVER.yaml", value_delimiter = ',')]
    pub(crate) drivers: Vec<PathBuf>,
    /// Systems to start and measure, by name or file [default: moldau without a driver].
    #[arg(long = "system", value_name = "SYSTEM", value_delimiter = ',')]
    pub(crate) systems: Vec<String>,
    /// Only list the runs, and the unsupported parts.
    #[arg(long)]
    pub(crate) check: bool,
    /// Runs of each workload. Intervals need 3.
    #[arg(long, default_value_t = 1)]
    pub(crate) rounds: u32,
    /// Run seconds instead of minutes.
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
    /// OpenMessaging Benchmark. Several files of one kind count as repetitions.
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Name of the measured system [default: the name in the output].
    #[arg(long, value_name = "NAME")]
    pub(crate) arm: Option<String>,
    /// Name of the load [default: the name in the output].
    #[arg(long, value_name = "NAME")]
    pub(crate) case: Option<String>,
    #[command(flatten)]
    pub(crate) output: OutputOptions,
}

/// The exit code is 1 if a figure is worse (at the 5 % level over all figures) or missing, and 3
/// if no figure can be compared.
#[derive(Args, Clone, Debug)]
pub(crate) struct CompareOptions {
    /// The baseline: a result file or its directory.
    pub(crate) first: PathBuf,
    /// The result to judge.
    pub(crate) second: PathBuf,
    /// A case of each result to compare, if their names differ.
    #[arg(long, num_args = 2, value_names = ["FIRST", "SECOND"])]
    pub(crate) cases: Vec<String>,
    /// An arm of each result to compare, if their names differ.
    #[arg(long, num_args = 2, value_names = ["FIRST", "SECOND"])]
    pub(crate) arms: Vec<String>,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct HistoryOptions {
    /// Directory with one subdirectory for each result.
    pub(crate) dir: PathBuf,
    /// File for the page with charts [default: history.html in the directory].
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct PageOptions {
    /// Result files or directories, in the order of the page.
    #[arg(required = true)]
    pub(crate) results: Vec<PathBuf>,
    /// File for the page; its links are relative to it [default: stdout].
    #[arg(long, value_name = "FILE.md")]
    pub(crate) out: Option<PathBuf>,
}
