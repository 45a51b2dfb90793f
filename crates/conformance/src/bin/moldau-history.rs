//! Java clients of our broker under faults, and what `moldau lab check` makes of their history:
//! `cargo run -p moldau-conformance --bin moldau-history`.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use clap::Parser;
use moldau_conformance::check::Tally;
use moldau_conformance::history;
use moldau_conformance::moldau::find_binary;
use moldau_conformance::peers::Peers;

/// No promise of Kafka's protocol is broken while the broker is killed and stopped.
#[derive(Parser)]
struct Arguments {
    /// The moldau binary; else the release or debug build beside this program.
    #[arg(long, env = "MOLDAU_BIN")]
    binary: Option<PathBuf>,
    /// For how many seconds faults strike.
    #[arg(long, default_value_t = 30)]
    seconds: u64,
    /// Seed of the faults; else a random one, which is printed.
    #[arg(long)]
    seed: Option<u64>,
}

fn main() -> Result<ExitCode> {
    let arguments = Arguments::parse();
    let (peers, binary) = (Peers::locate()?, find_binary(arguments.binary)?);
    let directory = tempfile::Builder::new().prefix("moldau-history-").tempdir()?;
    let seed = arguments.seed.unwrap_or_else(|| fastrand::u32(..).into());
    println!("seed {seed}");
    let length = Duration::from_secs(arguments.seconds);
    let mut tally = Tally::default();
    tally.add("history", history::run(&binary, &peers, directory.path(), length, seed));
    Ok(tally.finish())
}
