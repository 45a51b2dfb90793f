//! The arguments of the lab's self-tests, and of its own targets.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::OutputOptions;

#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct RelayOptions {
    /// Address to listen on.
    #[arg(long, value_name = "IP:PORT")]
    pub(crate) listen: SocketAddr,
    /// Address to relay connections to.
    #[arg(long, value_name = "IP:PORT")]
    pub(crate) to: SocketAddr,
}

#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct NullSinkOptions {
    /// Address to listen on.
    #[arg(long, value_name = "IP:PORT")]
    pub(crate) listen: SocketAddr,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct SelftestOptions {
    /// The self-test to run.
    #[arg(value_enum)]
    pub(crate) test: SelftestChoice,
    /// Take fewer and shorter runs.
    #[arg(long)]
    pub(crate) quick: bool,
    /// Seed of all random choices.
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Python with confluent-kafka, to run librdkafka for `drivers` [default: python/bin/python in
    /// the cache].
    #[arg(long, value_name = "FILE")]
    pub(crate) python: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) output: OutputOptions,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SelftestChoice {
    /// Stop the target for a second: every latency must match its calculated value.
    Stall,
    /// Alternate with librdkafka on one schedule: both must measure the same latencies.
    Drivers,
}
