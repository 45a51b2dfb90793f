//! `cargo xtask simulate`: a seeded simulation for as long as is wanted.
//!
//! The seeds run in portions on all processors; the test prints those that fail.

use std::env;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};

use crate::workspace;

/// What is simulated.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub(crate) enum Subject {
    /// Storage on a disk that fails.
    Storage,
    /// Groups of the consumer protocol.
    ConsumerGroups,
    /// Share groups.
    ShareGroups,
    /// Deliveries of share groups.
    SharePartitions,
    /// Streams groups.
    StreamsGroups,
    /// Schedulers and ledgers of a consumer app.
    ConsumerApps,
    /// Brokers on an object store that loses answers.
    Cluster,
}

/// Which seeds, and for how long.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// What is simulated.
    #[arg(long, value_enum, default_value = "storage")]
    pub(crate) of: Subject,
    /// First seed.
    #[arg(long, default_value_t = 0)]
    pub(crate) from: u64,
    /// Number of seeds.
    #[arg(long, default_value_t = 10_000)]
    pub(crate) count: u64,
    /// Ends after this time, however many seeds are left.
    #[arg(long)]
    pub(crate) seconds: Option<u64>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let started = Instant::now();
    let mut build = arguments.of.tests();
    if !build.arg("--no-run").status().context("cannot start cargo")?.success() {
        bail!("the simulation does not build");
    }
    let mut list = arguments.of.tests();
    let listed = list.args([arguments.of.test(), "--", "--list"]).output()?;
    ensure!(String::from_utf8_lossy(&listed.stdout).contains(": test"), "the simulation is gone");
    let end = arguments.from.saturating_add(arguments.count);
    let mut failed = Vec::new();
    let mut from = arguments.from;
    let is_late = || arguments.seconds.is_some_and(|limit| started.elapsed().as_secs() >= limit);
    while from < end && !is_late() {
        let count = PORTION.min(end - from);
        let mut portion = arguments.of.tests();
        portion.args([arguments.of.test(), "--", "--nocapture"]);
        portion.env(SEED, from.to_string()).env("MOLDAU_SIMULATION_COUNT", count.to_string());
        println!("seeds {from} to {}", from + count - 1);
        if !portion.status().context("cannot start the simulation")?.success() {
            failed.push(from..from + count);
        }
        from += count;
    }
    let (lived, seconds) = (from - arguments.from, started.elapsed().as_secs());
    println!("{lived} schedules in {seconds} s, portions with failures: {failed:?}");
    if !failed.is_empty() {
        bail!("the seeds that failed are printed above; {SEED} runs one again");
    }
    Ok(())
}

impl Subject {
    /// The tests among which the simulation is.
    fn tests(self) -> Command {
        let (package, target) = match self {
            Self::Storage => ("moldau-storage", ["--test", "it"].as_slice()),
            Self::ConsumerGroups
            | Self::ShareGroups
            | Self::SharePartitions
            | Self::StreamsGroups => ("moldau-coordinator", ["--test", "it"].as_slice()),
            Self::ConsumerApps => ("moldau-consumer", ["--lib"].as_slice()),
            Self::Cluster => ("moldau-cluster", ["--test", "it"].as_slice()),
        };
        let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        command.current_dir(workspace::root());
        command.args(["test", "--quiet", "--package", package]).args(target);
        command
    }

    /// The name of the simulation.
    fn test(self) -> &'static str {
        match self {
            Self::Storage => "storage_keeps_its_guarantees_under_disk_faults",
            Self::ConsumerGroups => "random_lives_keep_the_promises_of_the_consumer_protocol",
            Self::ShareGroups => "random_lives_keep_the_promises_of_share_groups",
            Self::StreamsGroups => "random_lives_keep_the_promises_of_streams_groups",
            Self::ConsumerApps => "random_lives_handle_every_record_in_order",
            Self::Cluster => "random_lives_of_a_cluster_lose_no_acknowledged_record",
            Self::SharePartitions => "random_consumers_share_a_partition_without_losing_records",
        }
    }
}

const SEED: &str = "MOLDAU_SIMULATION_SEED";
/// Some seconds of work.
const PORTION: u64 = 1_000;
