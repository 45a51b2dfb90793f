//! Kills and restarts the brokers of a real Kafka behind the proxy:
//! `cargo run -p moldau-conformance --bin moldau-outages`.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;
use moldau_conformance::check::Tally;
use moldau_conformance::moldau::find_binary;
use moldau_conformance::outages;
use moldau_conformance::peers::Peers;

/// Clients go on without help, and what was acknowledged is there.
#[derive(Parser)]
struct Arguments {
    /// The moldau binary; else the release or debug build beside this program.
    #[arg(long, env = "MOLDAU_BIN")]
    binary: Option<PathBuf>,
}

fn main() -> Result<ExitCode> {
    let arguments = Arguments::parse();
    let (peers, binary) = (Peers::locate()?, find_binary(arguments.binary)?);
    let directory = tempfile::Builder::new().prefix("moldau-outages-").tempdir()?;
    let checks = outages::run(&binary, &peers, directory.path())?;
    let mut tally = Tally::default();
    tally.add("outages", Ok(checks));
    Ok(tally.finish())
}
