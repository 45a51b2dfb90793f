//! Runs tenants with the same names against one Apache Kafka behind the proxy:
//! `cargo run -p moldau-conformance --bin moldau-tenants`.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;
use moldau_conformance::check::Tally;
use moldau_conformance::moldau::find_binary;
use moldau_conformance::peers::Peers;
use moldau_conformance::tenants;

/// Tenants never see each other, whatever they call their topics, groups and transactional ids.
#[derive(Parser)]
struct Arguments {
    /// The moldau binary; else the release or debug build beside this program.
    #[arg(long, env = "MOLDAU_BIN")]
    binary: Option<PathBuf>,
}

fn main() -> Result<ExitCode> {
    let arguments = Arguments::parse();
    let (peers, binary) = (Peers::locate()?, find_binary(arguments.binary)?);
    let directory = tempfile::Builder::new().prefix("moldau-tenants-").tempdir()?;
    let mut tally = Tally::default();
    for (program, checks) in tenants::run(&binary, &peers, directory.path())? {
        tally.add(&program, checks);
    }
    Ok(tally.finish())
}
