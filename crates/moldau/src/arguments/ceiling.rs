//! The arguments of `moldau lab ceiling`.

use clap::Args;

use super::run::ExternalOptions;
use super::{OutputOptions, PeerOptions, ProfileOptions, at_least_one};
use crate::units;

#[derive(Args, Clone, Debug)]
pub(crate) struct CeilingOptions {
    /// Shorter runs: an answer in two minutes for each system and number of producers.
    #[arg(long)]
    pub(crate) quick: bool,
    /// The system, by its name or by the path of its file, which ends in `.yaml` [default:
    /// moldau].
    #[arg(long, value_name = "SYSTEM")]
    pub(crate) system: Option<String>,
    /// Systems to put beside it, such as `kafka`, which `cargo xtask peers` fetches.
    #[arg(long, value_name = "SYSTEM", value_delimiter = ',')]
    pub(crate) against: Vec<String>,
    /// Search for the highest rate at which 99 % of the records are acknowledged within this time
    /// of when they were due.
    #[arg(long, value_name = "TIME", default_value = "50ms", value_parser = units::milliseconds)]
    pub(crate) p99: f64,
    /// Size of a record's value.
    #[arg(long, value_name = "BYTES", default_value = "1KB", value_parser = units::byte_count)]
    pub(crate) record: u64,
    /// Largest batch of a producer, its batch.size.
    #[arg(long, value_name = "BYTES", default_value = "128KB", value_parser = units::byte_count)]
    pub(crate) batch: u64,
    /// Partitions of the topic.
    #[arg(long, value_name = "COUNT", default_value_t = 10, value_parser = at_least_one())]
    pub(crate) partitions: u16,
    /// Producers, each over a connection of its own; several numbers, as 1,2,4,8, get a search
    /// each, and a law of how the rate follows them; the same one, as 2,2,2, is searched again.
    #[arg(
        long,
        value_name = "COUNT",
        value_delimiter = ',',
        default_value = "2",
        value_parser = at_least_one()
    )]
    pub(crate) producers: Vec<u16>,
    /// Compare throughput at full speed in several shapes, catching up, and latency at 50 MB/s
    /// instead of searching.
    #[arg(
        long,
        conflicts_with_all = [
            "p99", "record", "batch", "partitions", "producers", "system", "external"
        ]
    )]
    pub(crate) full_speed: bool,
    #[command(flatten)]
    pub(crate) peers: PeerOptions,
    #[command(flatten)]
    pub(crate) cluster: ExternalOptions,
    #[command(flatten)]
    pub(crate) profiles: ProfileOptions,
    #[command(flatten)]
    pub(crate) output: OutputOptions,
}
