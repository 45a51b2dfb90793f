//! The arguments of `moldau lab run` and `moldau lab explain`, and those of several commands.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use moldau_lab::goals::Goal;

use super::WorkersOptions;

/// Output of an experiment.
#[derive(Args, Clone, Debug)]
pub(crate) struct OutputOptions {
    /// Directory for results. Measured systems keep their data on the same disk.
    #[arg(long, value_name = "DIR", default_value = "lab-runs")]
    pub(crate) out: PathBuf,
    /// Print the result as one JSON document.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) goals: GoalOptions,
    /// The directory of an interrupted experiment to resume.
    #[arg(skip)]
    pub(crate) resumed: Option<PathBuf>,
}

/// Goals of figures, and the extent of the terminal output.
#[derive(Args, Clone, Debug)]
pub(crate) struct GoalOptions {
    /// Goal for a figure, such as 'encryption cpu_ms_per_mb <= 2'. The exit code is 1 if it is
    /// missed. May be repeated.
    #[arg(long = "goal", value_name = "GOAL")]
    pub(crate) goals: Vec<Goal>,
    /// File with one goal per line.
    #[arg(long = "goals", value_name = "FILE")]
    pub(crate) goals_file: Option<PathBuf>,
    /// Show all tables and checks instead of 30 lines.
    #[arg(long)]
    pub(crate) verbose: bool,
}

impl OutputOptions {
    /// The directory of the result with this name.
    pub(crate) fn directory(&self, id: &str) -> PathBuf {
        self.resumed.clone().unwrap_or_else(|| self.out.join(id))
    }
}

/// Installed systems of others. Experiments leave out absent ones.
#[derive(Args, Clone, Debug)]
pub(crate) struct PeerOptions {
    /// File with the class path of Apache Kafka [default: kafka/classpath in the cache].
    #[arg(long, value_name = "FILE")]
    pub(crate) kafka_classpath: Option<PathBuf>,
    /// Directory of Kroxylicious [default: kroxylicious in the cache].
    #[arg(long, value_name = "DIR")]
    pub(crate) kroxylicious: Option<PathBuf>,
    /// Java to run them.
    #[arg(long, value_name = "FILE", default_value = "java")]
    pub(crate) java: PathBuf,
}

/// A cluster that this machine does not run.
#[derive(Args, Clone, Debug)]
pub(crate) struct ExternalOptions {
    /// Bootstrap server of a running cluster, for `external` systems.
    #[arg(long, value_name = "HOST:PORT")]
    pub(crate) external: Option<String>,
}

/// Profiles.
#[derive(Args, Clone, Debug)]
pub(crate) struct ProfileOptions {
    /// After the measured runs, profile the processes of each case and arm in a separate run, with
    /// tables and flame graphs.
    #[arg(long)]
    pub(crate) profile: bool,
    /// Profiler of Java processes [default: async-profiler/libasyncProfiler.so in the cache].
    #[arg(long, value_name = "FILE", requires = "profile")]
    pub(crate) async_profiler: Option<PathBuf>,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct RunOptions {
    /// Experiment file (YAML), or the name of a published experiment in `moldau lab list`.
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) peers: PeerOptions,
    #[command(flatten)]
    pub(crate) cluster: ExternalOptions,
    #[command(flatten)]
    pub(crate) profiles: ProfileOptions,
    #[command(flatten)]
    pub(crate) workers: WorkersOptions,
    /// Take half the rounds and a quarter of each window.
    #[arg(long)]
    pub(crate) quick: bool,
    #[command(flatten)]
    pub(crate) output: OutputOptions,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct ExplainOptions {
    /// The system: a name, or the path of a system file (`.yaml`).
    #[arg(long, value_name = "SYSTEM", default_value = "moldau")]
    pub(crate) system: String,
    /// Settings of the load, as in a survey: "producers: 4, batch_bytes: 65536". Without a rate,
    /// the load runs at full speed.
    #[arg(long, value_name = "SETTINGS", default_value = "")]
    pub(crate) load: String,
    /// Figure to explain [default: the latency if the system sustains the rate, else the rate].
    #[arg(long, value_enum)]
    pub(crate) about: Option<AboutChoice>,
    #[command(flatten)]
    pub(crate) peers: PeerOptions,
    #[command(flatten)]
    pub(crate) cluster: ExternalOptions,
    /// Take fewer and shorter runs.
    #[arg(long)]
    pub(crate) quick: bool,
    #[command(flatten)]
    pub(crate) output: OutputOptions,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum AboutChoice {
    /// The limit of the rate.
    Rate,
    /// The parts of the median latency.
    Latency,
}
