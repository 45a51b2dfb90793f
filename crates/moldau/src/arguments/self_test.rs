//! The arguments of the lab's self-tests, and of its own targets.

use std::net::SocketAddr;
use std::num::{NonZeroU32, NonZeroU64};
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
    /// Delay in each direction, in microseconds.
    #[arg(long, value_name = "US", default_value_t = 0)]
    pub(crate) delay_us: u64,
    /// Most bytes per second of each connection in each direction [default: no limit].
    #[arg(long, value_name = "BYTES")]
    pub(crate) bytes_per_second: Option<NonZeroU64>,
}

#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct NullSinkOptions {
    /// Address to listen on.
    #[arg(long, value_name = "IP:PORT")]
    pub(crate) listen: SocketAddr,
    /// Processor time to use for each Produce request, in ns.
    #[arg(long, value_name = "NS", default_value_t = 0)]
    pub(crate) work_ns: u64,
    /// Most records per second to acknowledge [default: no limit].
    #[arg(long, value_name = "COUNT")]
    pub(crate) records_per_second: Option<NonZeroU32>,
    /// Time for which each batch blocks its partition, in microseconds.
    #[arg(long, value_name = "US", default_value_t = 0)]
    pub(crate) hold_us: u64,
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
    /// File with the class path of Apache Kafka. `stall` also runs its kafka-producer-perf-test, if
    /// installed [default: kafka/classpath in the cache].
    #[arg(long, value_name = "FILE")]
    pub(crate) kafka_classpath: Option<PathBuf>,
    /// Java to run it.
    #[arg(long, value_name = "FILE", default_value = "java")]
    pub(crate) java: PathBuf,
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
