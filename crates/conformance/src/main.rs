//! Runs the matrix of client programs and Kafka's tools: `cargo run -p moldau-conformance`.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, ensure};
use clap::{Parser, ValueEnum};
use moldau_conformance::client::{Library, Scenario};
use moldau_conformance::matrix::{self, Cell, Outcome};
use moldau_conformance::moldau::find_binary;
use moldau_conformance::peers::Peers;
use moldau_conformance::target::{Kind, Target};
use moldau_conformance::tools::Family;

/// Real Kafka clients in five languages, and Kafka's own tools, against the broker, a cluster and
/// the proxy.
#[derive(Parser)]
struct Arguments {
    /// What to test; may be given more than once.
    #[arg(long, value_enum, default_values = ["broker", "proxy", "sni"])]
    target: Vec<Kind>,

    /// Only these programs: a client library, or kafka-tools.
    #[arg(long)]
    program: Vec<String>,

    /// Only these scenarios: a codec, group, idempotent, admin, offsets, compacted, kip-848,
    /// migration, kip-932, kip-1071, streams, streams-exactly-once, connect, mirror,
    /// large-topic, or a family of tools.
    #[arg(long)]
    scenario: Vec<String>,

    /// A server that runs already, instead of starting the target.
    #[arg(long, env = "MOLDAU_CONFORMANCE_BOOTSTRAP")]
    bootstrap: Option<String>,

    /// The moldau binary; else the release or debug build beside this program.
    #[arg(long, env = "MOLDAU_BIN")]
    binary: Option<PathBuf>,

    /// How many programs run at a time.
    #[arg(long, default_value_t = 4)]
    jobs: usize,
}

fn main() -> Result<ExitCode> {
    let arguments = Arguments::parse();
    let peers = Peers::locate()?;
    peers.kafka_classpath()?;
    let cells = cells(&arguments);
    ensure!(!cells.is_empty(), "no program and scenario of these names");

    let mut outcomes = Vec::new();
    let mut broken_targets = Vec::new();
    for &kind in &arguments.target {
        if let Err(error) = run_target(&arguments, &peers, kind, &cells, &mut outcomes) {
            broken_targets.push(format!("{}: {error:#}", kind.name()));
        }
    }
    println!("\n{}{}", matrix::table(&outcomes), matrix::faults(&outcomes));
    for fault in &broken_targets {
        println!("{fault}");
    }
    let passed = outcomes.iter().filter(|outcome| outcome.passed()).count();
    let failed = outcomes.len() - passed + broken_targets.len();
    println!("{passed} passed, {failed} failed");
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn run_target(
    arguments: &Arguments,
    peers: &Peers,
    kind: Kind,
    cells: &[Cell],
    outcomes: &mut Vec<Outcome>,
) -> Result<()> {
    let directory = tempfile::Builder::new().prefix("moldau-conformance-").tempdir()?;
    let target = match (&arguments.bootstrap, kind) {
        (Some(bootstrap), _) => Target::external(kind, bootstrap),
        (None, Kind::Kafka) => Target::start(kind, &PathBuf::new(), peers, directory.path())?,
        (None, _) => {
            let binary = find_binary(arguments.binary.clone())?;
            Target::start(kind, &binary, peers, directory.path())?
        }
    };
    let found = matrix::run(peers, &target, cells, arguments.jobs, directory.path(), report);
    if found.iter().any(|outcome| !outcome.passed()) {
        eprintln!("the last words of the {}:\n{}", kind.name(), target.tail());
    }
    outcomes.extend(found);
    target.stop().context("it does not stop well")
}

fn report(outcome: &Outcome) {
    let verdict = if outcome.passed() { "ok" } else { "FAILED" };
    eprintln!(
        "{:12} {:13} {:13} {verdict:7} {:3} checks {:5.1} s",
        outcome.kind.name(),
        outcome.cell.program(),
        outcome.cell.scenario(),
        outcome.checks,
        outcome.took.as_secs_f64()
    );
}

/// The chosen cells; the long ones come first, so that no worker ends with one alone.
fn cells(arguments: &Arguments) -> Vec<Cell> {
    let tools = Family::value_variants().iter().map(|&family| Cell::Tools(family));
    let clients = Library::value_variants()
        .iter()
        .flat_map(|&library| Scenario::ALL.map(|scenario| (library, scenario)))
        .filter(|(library, scenario)| scenario.is_for(*library))
        .map(|(library, scenario)| Cell::Client(library, scenario));
    let is_long = |cell: &Cell| {
        [
            Scenario::Group,
            Scenario::ConsumerProtocol,
            Scenario::Migration,
            Scenario::ShareGroups,
            Scenario::Compacted,
            Scenario::Streams,
            Scenario::StreamsExactlyOnce,
            Scenario::StreamsGroup,
            Scenario::Connect,
            Scenario::Mirror,
            Scenario::LargeTopic,
        ]
        .iter()
        .any(|scenario| cell.scenario() == scenario.name())
    };
    let (long, rest): (Vec<Cell>, Vec<Cell>) = clients.partition(is_long);
    let chosen = |names: &[String], name: &str| names.is_empty() || names.iter().any(|n| n == name);
    tools
        .chain(long)
        .chain(rest)
        .filter(|cell| chosen(&arguments.program, cell.program()))
        .filter(|cell| chosen(&arguments.scenario, cell.scenario()))
        .collect()
}
