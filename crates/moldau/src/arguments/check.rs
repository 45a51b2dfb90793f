//! The arguments of `moldau lab check`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use moldau_lab::experiments::check::{CLIENTS, PARTITIONS};

use super::run::ExternalOptions;
use super::{OutputOptions, PeerOptions};
use crate::units;

#[derive(Args, Clone, Debug)]
pub(crate) struct CheckOptions {
    /// The system: a name, or the path of a system file (`.yaml`) [default: moldau, or the cluster
    /// of --external].
    #[arg(long, value_name = "SYSTEM")]
    pub(crate) system: Option<String>,
    #[command(flatten)]
    pub(crate) cluster: ExternalOptions,
    #[command(flatten)]
    pub(crate) peers: PeerOptions,
    /// Faults to strike with [default: all of the kind of system].
    #[arg(long, value_enum, value_delimiter = ',', value_name = "FAULT")]
    pub(crate) faults: Option<Vec<FaultChoice>>,
    /// Duration of the faults [default: 105s, with --quick 30s].
    #[arg(long = "for", value_name = "TIME", value_parser = units::duration)]
    pub(crate) length: Option<Duration>,
    /// Take less than a minute.
    #[arg(long)]
    pub(crate) quick: bool,
    /// Clients at a time, 4 to 64.
    #[arg(long, value_name = "COUNT", default_value_t = CLIENTS)]
    pub(crate) clients: u16,
    /// Partitions of the topic, 1 to 64.
    #[arg(long, value_name = "COUNT", default_value_t = PARTITIONS)]
    pub(crate) partitions: u16,
    /// Seed of all random choices [default: a random one, which the report names].
    #[arg(long, value_name = "SEED")]
    pub(crate) seed: Option<u64>,
    /// Check a history that is there already, without a cluster.
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with_all = ["system", "external", "faults", "length", "quick", "seed"]
    )]
    pub(crate) history: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) output: OutputOptions,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum FaultChoice {
    /// No fault.
    None,
    /// The broker is killed and restarted.
    Kill,
    /// The broker is stopped for up to five seconds.
    Stop,
    /// All connections are cut.
    Cut,
    /// A client ends in the middle of its work.
    Client,
    /// The broker is killed, and its disk loses what was not synced.
    Power,
    /// The broker's disk fails for up to five seconds, then power is lost.
    Disk,
    /// The broker's disk is slow for up to five seconds.
    Slow,
    /// The broker's clock jumps by up to an hour, and back after up to five seconds.
    Clock,
    /// The database of a cluster is restarted.
    Database,
    /// A standby takes the place of the database of a cluster, once.
    Failover,
    /// A broker of a cluster is cut off from the database for up to five seconds.
    DatabaseCut,
    /// A broker of a cluster is cut off from the store for up to five seconds.
    StoreCut,
    /// The store of a cluster refuses, is late or loses replies for up to five seconds.
    Store,
}
