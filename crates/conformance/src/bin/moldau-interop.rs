//! Runs the matrix of record encryption against a real Kroxylicious:
//! `cargo run -p moldau-conformance --bin moldau-interop`.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::Result;
use clap::Parser;
use moldau_conformance::interop::{self, Outcome, Service, Upstream};
use moldau_conformance::moldau::find_binary;
use moldau_conformance::peers::Peers;
use moldau_conformance::vault::Vault;

/// Kroxylicious seals and our proxy opens, and the other way around.
#[derive(Parser)]
struct Arguments {
    /// The clusters that both stand before.
    #[arg(long, value_enum, default_values = ["broker", "kafka", "kafka-cluster"])]
    upstream: Vec<Upstream>,

    /// The services that have the keys.
    #[arg(long, value_enum, default_values = ["memory", "vault"])]
    service: Vec<Service>,

    /// The moldau binary; else the release or debug build beside this program.
    #[arg(long, env = "MOLDAU_BIN")]
    binary: Option<PathBuf>,
}

fn main() -> Result<ExitCode> {
    let arguments = Arguments::parse();
    let peers = Peers::locate()?;
    let binary = find_binary(arguments.binary)?;
    let directory = tempfile::Builder::new().prefix("moldau-interop-").tempdir()?;
    let vault = if arguments.service.contains(&Service::Vault) {
        Some(Vault::start(&peers, directory.path())?)
    } else {
        None
    };
    let mut services = Vec::new();
    if arguments.service.contains(&Service::Memory) {
        services.push((Service::Memory, interop::memory_kms()));
    }
    if let Some(vault) = &vault {
        services.push((Service::Vault, interop::vault_kms(vault)?));
    }

    let (mut passed, mut failed) = (0, 0);
    for upstream in arguments.upstream {
        let started = Instant::now();
        let directory = directory.path().join(upstream.name());
        std::fs::create_dir(&directory)?;
        match interop::run(upstream, &services, &binary, &peers, &directory) {
            Ok(outcomes) => {
                print!("\n{}", interop::table(upstream, &outcomes));
                let held = outcomes.iter().filter(|outcome| Outcome::passed(outcome)).count();
                passed += held;
                failed += outcomes.len() - held;
            }
            Err(error) => {
                println!("{}: {error:#}", upstream.name());
                failed += 1;
            }
        }
        println!("{}: {:.1} s", upstream.name(), started.elapsed().as_secs_f64());
    }
    println!("{passed} passed, {failed} failed");
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
