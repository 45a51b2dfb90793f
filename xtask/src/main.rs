//! Development tasks: `cargo xtask <task>`.

mod codegen;
mod maven;
mod peers;
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
}

fn main() -> anyhow::Result<()> {
    match Arguments::parse().task {
        Task::Codegen(arguments) => codegen::run(&arguments),
        Task::Peers(arguments) => peers::run(&arguments),
    }
}
