//! Runs a client through the proxy among many that do nothing or mean harm:
//! `cargo run -p moldau-conformance --bin moldau-crowd`.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use clap::Parser;
use moldau_conformance::check::Tally;
use moldau_conformance::crowd::{self, Size};
use moldau_conformance::moldau::find_binary;
use moldau_conformance::peers::Peers;

/// Idle connections cost little memory, hostile ones not much more, and whoever works is served.
#[derive(Parser)]
struct Arguments {
    /// 10,000 idle connections in place of 1,000, or as many as descriptors allow, and several
    /// longer runs with and without them.
    #[arg(long)]
    full: bool,

    /// The moldau binary; else the release or debug build beside this program.
    #[arg(long, env = "MOLDAU_BIN")]
    binary: Option<PathBuf>,
}

fn main() -> Result<ExitCode> {
    let arguments = Arguments::parse();
    let (peers, binary) = (Peers::locate()?, find_binary(arguments.binary)?);
    let directory = tempfile::Builder::new().prefix("moldau-crowd-").tempdir()?;
    let size = match arguments.full {
        true => Size { count: 10_000, rounds: 3, window: Duration::from_secs(8) },
        false => Size { count: 1_000, rounds: 1, window: Duration::from_secs(2) },
    };
    let outcome = crowd::run(&binary, &peers, directory.path(), size)?;
    print!("{}", outcome.words);
    let mut tally = Tally::default();
    tally.add("crowd", Ok(outcome.checks));
    Ok(tally.finish())
}
