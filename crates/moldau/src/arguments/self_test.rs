//! The arguments of the lab's self-tests, and of its own targets.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use moldau_lab::reader::Handling;

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

#[derive(Args, Clone, Debug)]
pub(crate) struct DatabaseOptions {
    /// Directory of its data, made at the first start.
    #[arg(long, value_name = "DIR")]
    pub(crate) data_dir: PathBuf,
    /// Address to listen on.
    #[arg(long, value_name = "IP:PORT")]
    pub(crate) listen: SocketAddr,
    /// File with the password of its user, `moldau`.
    #[arg(long, value_name = "FILE")]
    pub(crate) password_file: PathBuf,
    /// Flush each commit to disk.
    #[arg(long)]
    pub(crate) flush: bool,
    /// Commit only what a standby has.
    #[arg(long)]
    pub(crate) synchronous: bool,
    /// Be a standby of the server at this address.
    #[arg(long, value_name = "IP:PORT")]
    pub(crate) standby_of: Option<SocketAddr>,
    /// Let the standby that runs in the directory be one no more.
    #[arg(long)]
    pub(crate) promote: bool,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct StoreOptions {
    /// Address to listen on.
    #[arg(long, value_name = "IP:PORT")]
    pub(crate) listen: SocketAddr,
    /// File with the access key.
    #[arg(long, value_name = "FILE")]
    pub(crate) access_key_file: PathBuf,
    /// Directory of the objects, which must not exist.
    #[arg(long, value_name = "DIR")]
    pub(crate) data_dir: PathBuf,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct ReaderOptions {
    /// The client that reads.
    #[arg(value_enum)]
    pub(crate) reader: ReaderChoice,
    /// Where the cluster is reached.
    #[arg(long, value_name = "HOST:PORT")]
    pub(crate) bootstrap: String,
    /// Consumer group.
    #[arg(long, value_name = "GROUP")]
    pub(crate) group: String,
    /// The topics are PREFIX0, PREFIX1 and so on.
    #[arg(long, value_name = "PREFIX")]
    pub(crate) topic_prefix: String,
    /// Number of topics.
    #[arg(long, value_name = "NUMBER")]
    pub(crate) topics: u32,
    /// Threads that read and handle.
    #[arg(long, value_name = "NUMBER")]
    pub(crate) threads: u16,
    /// Records of all topics.
    #[arg(long, value_name = "NUMBER")]
    pub(crate) records: u64,
    /// What is done with each record: nothing, compute:US, or wait:US.
    #[arg(long, value_name = "WORK")]
    pub(crate) handling: Handling,
    /// End so many ms after the first record if records are left.
    #[arg(long, value_name = "MS")]
    pub(crate) within_ms: u64,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum ReaderChoice {
    /// The client without a framework.
    Raw,
    /// The framework with a handler of batches.
    Batch,
    /// The framework with a handler of records, in order of partitions.
    Record,
    /// The framework with a handler of records, in order of keys.
    Key,
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
