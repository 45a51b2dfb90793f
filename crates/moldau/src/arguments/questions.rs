//! The arguments of `moldau lab latency`, `compression`, `threads`, `faults` and `soak`.

use std::time::Duration;

use clap::{Args, ValueEnum};

use super::run::ExternalOptions;
use super::{OutputOptions, PeerOptions, at_least_one};
use crate::units;

/// Arguments of all these questions.
#[derive(Args, Clone, Debug)]
pub(crate) struct AskedOptions {
    /// The system: a name, or the path of a system file (`.yaml`) [default: moldau; moldau-os for
    /// threads].
    #[arg(long, value_name = "SYSTEM")]
    pub(crate) system: Option<String>,
    /// Systems to compare with, such as `kafka`.
    #[arg(long, value_name = "SYSTEM", value_delimiter = ',')]
    pub(crate) against: Vec<String>,
    #[command(flatten)]
    pub(crate) peers: PeerOptions,
    /// Take a few minutes, with wider intervals.
    #[arg(long)]
    pub(crate) quick: bool,
    #[command(flatten)]
    pub(crate) output: OutputOptions,
}

/// The load.
#[derive(Args, Clone, Debug)]
pub(crate) struct OfferedOptions {
    /// Size of a record's value [default: 1KB].
    #[arg(long, value_name = "BYTES", value_parser = units::byte_count)]
    pub(crate) record: Option<u64>,
    /// Largest batch of a producer (batch.size) [default: 16KB].
    #[arg(long, value_name = "BYTES", value_parser = units::byte_count)]
    pub(crate) batch: Option<u64>,
    /// Further settings of the load, as in a survey: "producers: 4, acks: leader".
    #[arg(long, value_name = "SETTINGS", default_value = "")]
    pub(crate) load: String,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct LatencyOptions {
    #[command(flatten)]
    pub(crate) offered: OfferedOptions,
    /// Records per second, ascending [default: shares of the rate at full speed].
    #[arg(long, value_name = "COUNT", value_delimiter = ',')]
    pub(crate) rates: Vec<u64>,
    #[command(flatten)]
    pub(crate) cluster: ExternalOptions,
    #[command(flatten)]
    pub(crate) asked: AskedOptions,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct CompressionOptions {
    #[command(flatten)]
    pub(crate) offered: OfferedOptions,
    /// Content of the values.
    #[arg(long, value_enum)]
    pub(crate) payload: Option<PayloadChoice>,
    /// Bytes of values per second for the comparison.
    #[arg(long, value_name = "RATE", default_value = "10MB/s", value_parser = units::byte_rate)]
    pub(crate) rate: f64,
    /// Price of a GB to send and store, in seconds of processor time. The default follows from 0.02
    /// for a GB and 0.04 for a core and hour.
    #[arg(long, value_name = "SECONDS", default_value_t = 1800)]
    pub(crate) gigabyte_worth: u32,
    #[command(flatten)]
    pub(crate) cluster: ExternalOptions,
    #[command(flatten)]
    pub(crate) asked: AskedOptions,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PayloadChoice {
    /// JSON documents with text.
    Json,
    /// Words with natural frequencies.
    Text,
    /// Log lines of a server.
    Logs,
    /// Orders in Avro's binary format.
    Avro,
    /// Random bytes, which do not compress.
    Random,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct ThreadsOptions {
    /// Numbers of threads, ascending.
    #[arg(
        long,
        value_name = "COUNT",
        value_delimiter = ',',
        default_value = "1,2,3,4,6,8,12,16",
        value_parser = at_least_one()
    )]
    pub(crate) threads: Vec<u16>,
    /// Numbers of topics, ascending. With several, the answer is the cost of a topic.
    #[arg(
        long,
        value_name = "COUNT",
        value_delimiter = ',',
        default_value = "1",
        value_parser = at_least_one()
    )]
    pub(crate) topics: Vec<u16>,
    /// Partitions of each topic.
    #[arg(long, value_name = "COUNT", default_value_t = 48, value_parser = at_least_one())]
    pub(crate) partitions: u16,
    /// Size of a record's value.
    #[arg(long, value_name = "BYTES", default_value = "1KB", value_parser = units::byte_count)]
    pub(crate) record: u64,
    /// Time for which each record blocks its thread without using the processor, like a database
    /// call [default: 0].
    #[arg(long, value_name = "TIME", value_parser = units::milliseconds)]
    pub(crate) work: Option<f64>,
    #[command(flatten)]
    pub(crate) cluster: ExternalOptions,
    #[command(flatten)]
    pub(crate) asked: AskedOptions,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct FaultsOptions {
    /// Records per second of the load.
    #[arg(long, value_name = "COUNT", default_value_t = 10_000)]
    pub(crate) rate: u64,
    /// Size of a record's value.
    #[arg(long, value_name = "BYTES", default_value = "1KB", value_parser = units::byte_count)]
    pub(crate) record: u64,
    #[command(flatten)]
    pub(crate) asked: AskedOptions,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct SoakOptions {
    /// Duration [default: 1h, with --quick 4m].
    #[arg(long = "for", value_name = "TIME", value_parser = units::duration)]
    pub(crate) length: Option<Duration>,
    /// Bytes of values per second.
    #[arg(long, value_name = "RATE", default_value = "5MB/s", value_parser = units::byte_rate)]
    pub(crate) rate: f64,
    /// Size of a record's value.
    #[arg(long, value_name = "BYTES", default_value = "1KB", value_parser = units::byte_count)]
    pub(crate) record: u64,
    #[command(flatten)]
    pub(crate) asked: AskedOptions,
}
