//! Runs the same commands of Kafka's tools against Apache Kafka, our broker and the proxy, and
//! checks or writes docs/tools.md: `cargo run -p moldau-conformance --bin moldau-tools`.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;
use moldau_conformance::command_line;
use moldau_conformance::moldau::find_binary;
use moldau_conformance::peers::Peers;

/// The same commands to Apache Kafka, to our broker and through the proxy.
#[derive(Parser)]
struct Arguments {
    /// The moldau binary; else the release or debug build beside this program.
    #[arg(long, env = "MOLDAU_BIN")]
    binary: Option<PathBuf>,
    /// Writes docs/tools.md instead of checking it.
    #[arg(long)]
    write: bool,
    /// Prints what every command printed against Apache Kafka.
    #[arg(long)]
    verbose: bool,
}

fn main() -> Result<ExitCode> {
    let arguments = Arguments::parse();
    let peers = Peers::locate()?;
    let binary = find_binary(arguments.binary)?;
    let directory = tempfile::Builder::new().prefix("moldau-tools-").tempdir()?;
    let outcome = command_line::run(&peers, &binary, directory.path(), arguments.write)?;
    if arguments.verbose {
        println!("{}", outcome.transcript);
    }
    for check in outcome.checks.iter().filter(|check| !check.ok) {
        println!("{}\n{}\n", check.name, check.detail);
    }
    let failed = outcome.checks.iter().filter(|check| !check.ok).count();
    println!("{} passed, {failed} failed", outcome.checks.len() - failed);
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
