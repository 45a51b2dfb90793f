//! Runs a broker and a proxy with little memory under clients that want all of it:
//! `cargo run -p moldau-conformance --bin moldau-memory`.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use clap::Parser;
use moldau_conformance::check::Tally;
use moldau_conformance::memory;
use moldau_conformance::moldau::find_binary;
use moldau_conformance::peers::Peers;

/// In a control group of 256 MiB, broker and proxy serve a steady client among 200 connections that
/// ask for everything.
#[derive(Parser)]
struct Arguments {
    /// How long it takes in all.
    #[arg(long, conflicts_with = "seconds")]
    minutes: Option<u64>,

    /// The same in seconds.
    #[arg(long, default_value_t = 60)]
    seconds: u64,

    /// The moldau binary; else the release or debug build beside this program.
    #[arg(long, env = "MOLDAU_BIN")]
    binary: Option<PathBuf>,
}

fn main() -> Result<ExitCode> {
    let arguments = Arguments::parse();
    let (peers, binary) = (Peers::locate()?, find_binary(arguments.binary)?);
    let directory = tempfile::Builder::new().prefix("moldau-memory-").tempdir()?;
    let seconds = Duration::from_secs(arguments.seconds);
    let window = arguments.minutes.map_or(seconds, Duration::from_mins);
    let outcome = memory::run(&binary, &peers, directory.path(), window)?;
    print!("{}", outcome.words);
    let mut tally = Tally::default();
    tally.add("memory", Ok(outcome.checks));
    Ok(tally.finish())
}
