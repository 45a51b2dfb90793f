//! Runs clients with credentials, right and wrong, against the broker and the proxy:
//! `cargo run -p moldau-conformance --bin moldau-security`.

use std::path::PathBuf;
use std::process::ExitCode;
use std::thread;
use std::time::Instant;

use anyhow::{Result, anyhow};
use clap::Parser;
use moldau_conformance::certificates::Certificates;
use moldau_conformance::check::Tally;
use moldau_conformance::connection::LIBRARIES;
use moldau_conformance::moldau::find_binary;
use moldau_conformance::peers::Peers;
use moldau_conformance::security::{self, Gateway, Issuer, Served};

/// TLS, mutual TLS and SASL by the Java client, librdkafka and franz-go.
#[derive(Parser)]
struct Arguments {
    /// What terminates the security of clients.
    #[arg(long, value_enum, default_values = ["broker", "proxy"])]
    gateway: Vec<Gateway>,

    /// The moldau binary; else the release or debug build beside this program.
    #[arg(long, env = "MOLDAU_BIN")]
    binary: Option<PathBuf>,
}

fn main() -> Result<ExitCode> {
    let arguments = Arguments::parse();
    let peers = Peers::locate()?;
    let binary = find_binary(arguments.binary)?;
    let directory = tempfile::Builder::new().prefix("moldau-security-").tempdir()?;
    let certificates = Certificates::make(directory.path())?;
    let issuer = Issuer::start()?;
    let cases = security::cases(&certificates, &issuer);

    let mut tally = Tally::default();
    for gateway in arguments.gateway {
        let started = Instant::now();
        let directory = directory.path().join(gateway.name());
        std::fs::create_dir(&directory)?;
        let served = Served::start(gateway, &certificates, &issuer, &binary, &peers, &directory)?;
        let by_cases = thread::scope(|scope| {
            let programs = LIBRARIES.map(|library| {
                let (cases, served, peers, directory) = (&cases, &served, &peers, &directory);
                let run = move || security::run(library, cases, served, peers, directory);
                (library, scope.spawn(run))
            });
            programs.map(|(library, program)| {
                let checks = program.join().unwrap_or_else(|_| Err(anyhow!("it panicked")));
                (library.name(), checks)
            })
        });
        for (library, checks) in by_cases {
            tally.add(&format!("{} {library}", gateway.name()), checks);
        }
        for (client, checks) in security::renew(&served, &issuer, &peers, &directory) {
            tally.add(&format!("{} sessions, {client}", gateway.name()), checks);
        }
        if tally.has_failed() {
            println!("the last words of the {}:\n{}", gateway.name(), served.tail());
        }
        served.stop()?;
        println!("{}: {:.1} s", gateway.name(), started.elapsed().as_secs_f64());
    }
    Ok(tally.finish())
}
