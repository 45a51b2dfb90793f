//! Development tasks: `cargo xtask <task>`.

mod codegen;
mod kubernetes;
mod maven;
mod peers;
mod simulate;
mod test;
mod tidy;
mod workspace;

use clap::{Parser, Subcommand};

/// Development tasks of the Moldau workspace.
#[derive(Parser)]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Generates the protocol crate's messages from Kafka's message definitions.
    Codegen(codegen::Arguments),
    /// Installs Apache Kafka and the client libraries that the tests need, outside the checkout.
    Peers(peers::Arguments),
    /// Runs the simulation of storage on many seeds.
    Simulate(simulate::Arguments),
    /// Checks the rules of the house: crate edges, import circles, sizes, comments, names.
    Tidy,
    /// Runs every check that a change must pass, in order, up to the first that fails.
    Test(test::Arguments),
}

fn main() -> anyhow::Result<()> {
    match Arguments::parse().task {
        Task::Codegen(arguments) => codegen::run(&arguments),
        Task::Peers(arguments) => peers::run(&arguments),
        Task::Simulate(arguments) => simulate::run(&arguments),
        Task::Tidy => tidy::run(),
        Task::Test(arguments) => test::run(&arguments),
    }
}
