//! What transactions, rebalances and share groups cost with our broker and with Apache Kafka, side
//! by side: `cargo run --release -p moldau-conformance --bin moldau-costs`.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, ensure};
use clap::Parser;
use moldau_conformance::kafka::Kafka;
use moldau_conformance::moldau::{Moldau, find_binary};
use moldau_conformance::peers::Peers;
use moldau_conformance::process::Process;

/// The same Java clients with both brokers, in turn. Nothing is judged.
#[derive(Parser)]
struct Arguments {
    /// The moldau binary; else the release or debug build beside this program.
    #[arg(long, env = "MOLDAU_BIN")]
    binary: Option<PathBuf>,
    /// How often each part is measured with each broker.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Only these parts.
    #[arg(default_values = ["transactions", "rebalance", "share"])]
    parts: Vec<String>,
}

const TIMEOUT: Duration = Duration::from_secs(300);

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let (peers, binary) = (Peers::locate()?, find_binary(arguments.binary)?);
    let directory = tempfile::Builder::new().prefix("moldau-costs-").tempdir()?;
    let kafka = Kafka::start(&peers, directory.path())?;
    let moldau = Moldau::broker(&binary, directory.path())?;
    let brokers = [("Kafka", kafka.bootstrap()), ("Moldau", moldau.bootstrap())];
    for part in &arguments.parts {
        println!("{part}");
        for round in 0..arguments.rounds {
            for (broker, bootstrap) in brokers {
                let name = format!("{part}-{round}");
                let mut command = peers.large_java_tool("Costs")?;
                command.args([bootstrap, part, &name]);
                let ended = Process::run(command, &name, directory.path(), "", TIMEOUT)?;
                ensure!(ended.success(), "{}", ended.explanation());
                println!("  {broker:6} {}", ended.stdout.trim());
            }
        }
    }
    moldau.stop()
}
