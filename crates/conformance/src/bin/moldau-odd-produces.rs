//! Compares what Apache Kafka and our broker make of odd produces:
//! `cargo run -p moldau-conformance --bin moldau-odd-produces`.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;
use moldau_conformance::moldau::find_binary;
use moldau_conformance::odd_produces;
use moldau_conformance::peers::Peers;

/// The same requests to Apache Kafka and to our broker.
#[derive(Parser)]
struct Arguments {
    /// The moldau binary; else the release or debug build beside this program.
    #[arg(long, env = "MOLDAU_BIN")]
    binary: Option<PathBuf>,
}

fn main() -> Result<ExitCode> {
    let arguments = Arguments::parse();
    let peers = Peers::locate()?;
    let binary = find_binary(arguments.binary)?;
    let directory = tempfile::Builder::new().prefix("moldau-odd-produces-").tempdir()?;
    let checks = odd_produces::run(&peers, &binary, directory.path())?;
    for check in checks.iter().filter(|check| !check.ok) {
        println!("{}\n{}\n", check.name, check.detail);
    }
    let failed = checks.iter().filter(|check| !check.ok).count();
    println!("{} passed, {failed} failed", checks.len() - failed);
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
