//! Options of `moldau lab overhead`.

use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::{Args, ValueEnum};
use moldau_lab::experiments::fronts::Front;

use super::{OutputOptions, ProfileOptions};

#[derive(Args, Clone, Debug)]
pub(crate) struct OverheadOptions {
    /// Take two minutes (`gateway` seven), with fewer loads, shorter runs and wider intervals. The
    /// full form adds large batches at fixed rates, single-record requests, catching up from
    /// memory, and two rounds.
    #[arg(long)]
    pub(crate) quick: bool,
    /// Paths to compare; the first is the baseline. `all` is every arm up to
    /// `kroxylicious-encryption`; `gateway` is the proxy with each of its features, at 20 MB/s.
    #[arg(
        long,
        value_name = "ARM",
        value_parser = PossibleValuesParser::new(Front::words()),
        value_delimiter = ',',
        default_values = ["direct", "passthrough", "encryption"]
    )]
    pub(crate) arms: Vec<String>,
    /// Records of 1 KiB per second at the fixed rate [default: 20 and 50 MB/s].
    #[arg(long, value_name = "COUNT")]
    pub(crate) rate: Option<u64>,
    /// Directory of Kroxylicious, as `cargo xtask peers` installs it: jars in `lib`, and the class
    /// `KroxyliciousLauncher` in `classes` [default: kroxylicious in the cache].
    #[arg(long, value_name = "DIR")]
    pub(crate) kroxylicious: Option<PathBuf>,
    /// Java to run Kroxylicious.
    #[arg(long, value_name = "FILE", default_value = "java")]
    pub(crate) java: PathBuf,
    /// Add one run with a fault, to check that the lab detects it.
    #[arg(long, value_enum, value_name = "FAULT")]
    pub(crate) plant: Option<PlantChoice>,
    #[command(flatten)]
    pub(crate) profiles: ProfileOptions,
    #[command(flatten)]
    pub(crate) output: OutputOptions,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PlantChoice {
    /// Stop the broker for a second: the time series of the run shows it.
    Stall,
    /// Delete acknowledged records before they are read back: exit code 2.
    Loss,
    /// Demand more of the load generator than it can offer: exit code 3.
    Generator,
}
