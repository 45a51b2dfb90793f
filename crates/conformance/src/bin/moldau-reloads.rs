//! Changes filters and certificates of a proxy under load:
//! `cargo run -p moldau-conformance --bin moldau-reloads`.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;
use moldau_conformance::check::Tally;
use moldau_conformance::moldau::find_binary;
use moldau_conformance::peers::Peers;
use moldau_conformance::reloads;

/// Clients do not notice that the proxy takes other filters and certificates.
#[derive(Parser)]
struct Arguments {
    /// How many reloads.
    #[arg(long, default_value_t = 100)]
    count: u32,

    /// Records a second of each client; else 80 % of what they can do at most.
    #[arg(long)]
    rate: Option<u32>,

    /// The moldau binary; else the release or debug build beside this program.
    #[arg(long, env = "MOLDAU_BIN")]
    binary: Option<PathBuf>,
}

fn main() -> Result<ExitCode> {
    let arguments = Arguments::parse();
    let (peers, binary) = (Peers::locate()?, find_binary(arguments.binary)?);
    let directory = tempfile::Builder::new().prefix("moldau-reloads-").tempdir()?;
    let (count, rate) = (arguments.count, arguments.rate);
    let outcome = reloads::run(&binary, &peers, directory.path(), count, rate)?;
    print!("{}", outcome.words);
    let mut tally = Tally::default();
    tally.add("reloads", Ok(outcome.checks));
    Ok(tally.finish())
}
