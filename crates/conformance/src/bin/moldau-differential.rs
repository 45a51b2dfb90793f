//! Compares what Apache Kafka and our broker answer to the same requests of every API, and checks
//! or writes docs/compatibility.md: `cargo run -p moldau-conformance --bin moldau-differential`.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;
use moldau_conformance::differential;
use moldau_conformance::moldau::find_binary;
use moldau_conformance::peers::Peers;

/// The same requests to Apache Kafka and to our broker.
#[derive(Parser)]
struct Arguments {
    /// The moldau binary; else the release or debug build beside this program.
    #[arg(long, env = "MOLDAU_BIN")]
    binary: Option<PathBuf>,
    /// Writes docs/compatibility.md instead of checking it.
    #[arg(long)]
    write: bool,
    /// Asks three brokers of a cluster instead of one broker.
    #[arg(long, conflicts_with = "write")]
    cluster: bool,
}

fn main() -> Result<ExitCode> {
    let arguments = Arguments::parse();
    let peers = Peers::locate()?;
    let binary = find_binary(arguments.binary)?;
    let directory = tempfile::Builder::new().prefix("moldau-differential-").tempdir()?;
    let outcome = match arguments.cluster {
        true => differential::run_cluster(&peers, &binary, directory.path())?,
        false => differential::run(&peers, &binary, directory.path(), arguments.write)?,
    };
    for check in outcome.checks.iter().filter(|check| !check.ok) {
        println!("{}\n{}\n", check.name, check.detail);
    }
    println!("{} requests compared", outcome.requests);
    if !outcome.without_case.is_empty() {
        println!("served and not compared: {}", outcome.without_case.join(", "));
    }
    let failed = outcome.checks.iter().filter(|check| !check.ok).count();
    println!("{} passed, {failed} failed", outcome.checks.len() - failed);
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
