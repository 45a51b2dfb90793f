//! The arguments of `moldau lab run` and `moldau lab explain`, and what several commands share.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::WorkersOptions;

/// Where the result of an experiment goes.
#[derive(Args, Clone, Debug)]
pub(crate) struct OutputOptions {
    /// Directory under which the result's own directory is made, and on whose disk systems keep
    /// their data meanwhile.
    #[arg(long, value_name = "DIR", default_value = "lab-runs")]
    pub(crate) out: PathBuf,
    /// Print the result as one JSON document.
    #[arg(long)]
    pub(crate) json: bool,
    /// The directory of an experiment that was interrupted, which goes on there.
    #[arg(skip)]
    pub(crate) resumed: Option<PathBuf>,
}

impl OutputOptions {
    /// Where the result of this name goes.
    pub(crate) fn directory(&self, id: &str) -> PathBuf {
        self.resumed.clone().unwrap_or_else(|| self.out.join(id))
    }
}

/// Where systems of others lie. What is not there is left out of an experiment.
#[derive(Args, Clone, Debug)]
pub(crate) struct PeerOptions {
    /// File with the class path of Apache Kafka [default: kafka/classpath in the cache].
    #[arg(long, value_name = "FILE")]
    pub(crate) kafka_classpath: Option<PathBuf>,
    /// Directory of Kroxylicious [default: kroxylicious in the cache].
    #[arg(long, value_name = "DIR")]
    pub(crate) kroxylicious: Option<PathBuf>,
    /// Java that runs them.
    #[arg(long, value_name = "FILE", default_value = "java")]
    pub(crate) java: PathBuf,
}

/// A cluster of somebody else, for commands that start, stop and look at no process of it.
#[derive(Args, Clone, Debug)]
pub(crate) struct ExternalOptions {
    /// A cluster that runs already, for systems that are `external`.
    #[arg(long, value_name = "HOST:PORT")]
    pub(crate) external: Option<String>,
}

/// Where the processor time goes.
#[derive(Args, Clone, Debug)]
pub(crate) struct ProfileOptions {
    /// After the measured runs, profile the processes of each case and arm in a run of its own:
    /// tables of what the processor time is spent on, and flame graphs.
    #[arg(long)]
    pub(crate) profile: bool,
    /// Library that profiles Java machines [default: async-profiler/libasyncProfiler.so in the
    /// cache].
    #[arg(long, value_name = "FILE", requires = "profile")]
    pub(crate) async_profiler: Option<PathBuf>,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct RunOptions {
    /// The experiment file (YAML), or the name of a published experiment, which `moldau lab list`
    /// shows behind `run`.
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) peers: PeerOptions,
    #[command(flatten)]
    pub(crate) cluster: ExternalOptions,
    #[command(flatten)]
    pub(crate) profiles: ProfileOptions,
    #[command(flatten)]
    pub(crate) workers: WorkersOptions,
    /// Half the rounds and a quarter of the windows.
    #[arg(long)]
    pub(crate) quick: bool,
    #[command(flatten)]
    pub(crate) output: OutputOptions,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct ExplainOptions {
    /// The system, by its name or by the path of its file, which ends in `.yaml`.
    #[arg(long, value_name = "SYSTEM", default_value = "moldau")]
    pub(crate) system: String,
    /// Settings of the load as in a survey, such as "producers: 4, batch_bytes: 65536"; without a
    /// rate it is offered as fast as it goes.
    #[arg(long, value_name = "SETTINGS", default_value = "")]
    pub(crate) load: String,
    /// What is explained [default: the latency where the rate is kept up, else the rate].
    #[arg(long, value_enum)]
    pub(crate) about: Option<AboutChoice>,
    #[command(flatten)]
    pub(crate) peers: PeerOptions,
    #[command(flatten)]
    pub(crate) cluster: ExternalOptions,
    /// Fewer and shorter runs.
    #[arg(long)]
    pub(crate) quick: bool,
    #[command(flatten)]
    pub(crate) output: OutputOptions,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum AboutChoice {
    /// Why it is not faster.
    Rate,
    /// What the median latency is made of.
    Latency,
}
