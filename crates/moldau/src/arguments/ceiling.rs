//! The arguments of `moldau lab ceiling`.

use clap::Args;

use super::run::ExternalOptions;
use super::{OutputOptions, PeerOptions, ProfileOptions, at_least_one};
use crate::units;

#[derive(Args, Clone, Debug)]
pub(crate) struct CeilingOptions {
    /// Take two minutes for each system and number of producers, with shorter runs.
    #[arg(long)]
    pub(crate) quick: bool,
    /// The system: a name, or the path of a system file (`.yaml`) [default: moldau].
    #[arg(long, value_name = "SYSTEM")]
    pub(crate) system: Option<String>,
    /// Systems to compare with, such as `kafka`, which `cargo xtask peers` installs.
    #[arg(long, value_name = "SYSTEM", value_delimiter = ',')]
    pub(crate) against: Vec<String>,
    /// Find the highest rate at which 99 % of the records are acknowledged within this time after
    /// their intended time.
    #[arg(long, value_name = "TIME", default_value = "50ms", value_parser = units::milliseconds)]
    pub(crate) p99: f64,
    /// Size of a record's value.
    #[arg(long, value_name = "BYTES", default_value = "1KB", value_parser = units::byte_count)]
    pub(crate) record: u64,
    /// Largest batch of a producer (batch.size).
    #[arg(long, value_name = "BYTES", default_value = "128KB", value_parser = units::byte_count)]
    pub(crate) batch: u64,
    /// Partitions of the topic.
    #[arg(long, value_name = "COUNT", default_value_t = 10, value_parser = at_least_one())]
    pub(crate) partitions: u16,
    /// Producers, each with its own connection. A list such as 1,2,4,8 runs a search for each
    /// number.
    #[arg(
        long,
        value_name = "COUNT",
        value_delimiter = ',',
        default_value = "2",
        value_parser = at_least_one()
    )]
    pub(crate) producers: Vec<u16>,
    /// Instead of a search, compare systems at full speed in several shapes, when consumers catch
    /// up, and at 50 MB/s.
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
