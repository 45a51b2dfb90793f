//! Development tasks: `cargo xtask <task>`.

mod codegen;
mod maven;

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
}

fn main() -> anyhow::Result<()> {
    match Arguments::parse().task {
        Task::Codegen(arguments) => codegen::run(&arguments),
    }
}
