//! Metrics of real clients in `/metrics` and at a collector:
//! `cargo run -p moldau-conformance --bin moldau-telemetry`.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;
use moldau_conformance::check::Tally;
use moldau_conformance::moldau::find_binary;
use moldau_conformance::peers::Peers;
use moldau_conformance::telemetry;

/// The Java client and librdkafka push their metrics, directly and through the proxy.
#[derive(Parser)]
struct Arguments {
    /// The moldau binary; else the release or debug build beside this program.
    #[arg(long, env = "MOLDAU_BIN")]
    binary: Option<PathBuf>,
}

fn main() -> Result<ExitCode> {
    let arguments = Arguments::parse();
    let (peers, binary) = (Peers::locate()?, find_binary(arguments.binary)?);
    let directory = tempfile::Builder::new().prefix("moldau-telemetry-").tempdir()?;
    let checks = telemetry::run(&binary, &peers, directory.path())?;
    let mut tally = Tally::default();
    tally.add("telemetry", Ok(checks));
    Ok(tally.finish())
}
