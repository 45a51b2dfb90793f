//! Opens the reports of published results in a real browser:
//! `cargo run -p moldau-conformance --bin moldau-reports`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;
use moldau_conformance::moldau::find_binary;
use moldau_conformance::peers::Peers;
use moldau_conformance::reports;

/// Every report opens without network and error, and draws what it holds.
#[derive(Parser)]
struct Arguments {
    /// The moldau binary; else the release or debug build beside this program.
    #[arg(long, env = "MOLDAU_BIN")]
    binary: Option<PathBuf>,
    /// The directory below which results lie, each in a directory of its own; else those that are
    /// published.
    results: Option<PathBuf>,
}

fn main() -> Result<ExitCode> {
    let arguments = Arguments::parse();
    let (peers, binary) = (Peers::locate()?, find_binary(arguments.binary)?);
    let published = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/results");
    let results = arguments.results.unwrap_or_else(published);
    let directory = tempfile::Builder::new().prefix("moldau-reports-").tempdir()?;
    let checks = reports::run(&binary, &peers, &results, directory.path())?;
    for check in &checks {
        let verdict = if check.ok { "ok" } else { "FAILED" };
        println!("{:50} {verdict} {}", check.name, check.detail);
    }
    let failed = checks.iter().filter(|check| !check.ok).count();
    println!("{} passed, {failed} failed", checks.len() - failed);
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
