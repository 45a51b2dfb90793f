//! What the laboratory's tests of itself take, and the targets that it brings along.

use std::net::SocketAddr;
use std::num::{NonZeroU32, NonZeroU64};
use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::OutputOptions;

#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct RelayOptions {
    /// Where clients connect.
    #[arg(long, value_name = "IP:PORT")]
    pub(crate) listen: SocketAddr,
    /// Where their connections lead.
    #[arg(long, value_name = "IP:PORT")]
    pub(crate) to: SocketAddr,
    /// Time that everything takes in each direction, microseconds.
    #[arg(long, value_name = "US", default_value_t = 0)]
    pub(crate) delay_us: u64,
    /// Bytes per second that each connection carries in each direction [default: no limit].
    #[arg(long, value_name = "BYTES")]
    pub(crate) bytes_per_second: Option<NonZeroU64>,
}

#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct NullSinkOptions {
    /// Where clients connect.
    #[arg(long, value_name = "IP:PORT")]
    pub(crate) listen: SocketAddr,
    /// Processor time to burn for each Produce request, ns.
    #[arg(long, value_name = "NS", default_value_t = 0)]
    pub(crate) work_ns: u64,
    /// Records per second to acknowledge at most [default: as many as come].
    #[arg(long, value_name = "COUNT")]
    pub(crate) records_per_second: Option<NonZeroU32>,
    /// Time for which each batch keeps all others from its partition, microseconds.
    #[arg(long, value_name = "US", default_value_t = 0)]
    pub(crate) hold_us: u64,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct SelftestOptions {
    /// The promise that is put to the test.
    #[arg(value_enum)]
    pub(crate) test: SelftestChoice,
    /// Fewer and shorter runs.
    #[arg(long)]
    pub(crate) quick: bool,
    /// Seed of everything random.
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    pub(crate) seed: u64,
    /// File with the class path of Apache Kafka, whose kafka-producer-perf-test goes through the
    /// same stop; left out where there is none [default: kafka/classpath in the cache].
    #[arg(long, value_name = "FILE")]
    pub(crate) kafka_classpath: Option<PathBuf>,
    /// Java that runs it.
    #[arg(long, value_name = "FILE", default_value = "java")]
    pub(crate) java: PathBuf,
    /// Python with confluent-kafka, through which librdkafka offers the same as the generator
    /// [default: python/bin/python in the cache].
    #[arg(long, value_name = "FILE")]
    pub(crate) python: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) output: OutputOptions,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SelftestChoice {
    /// The target stops for a second: every latency must be the one that arithmetic says.
    Stall,
    /// librdkafka offers the same schedule in turns: both must tell the same of the broker.
    Drivers,
}
