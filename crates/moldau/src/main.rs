//! The `moldau` binary: reads arguments and configuration files, wires the crates together, and
//! decides the exit code.
//!
//! Results go to stdout, everything else to stderr. Exit codes: 0 done, 1 failed; `lab` adds
//! 2 records lost or damaged, 3 the run is invalid, 4 the environment. 141: nobody reads stdout.

#[macro_use]
mod output;

mod arguments;
mod commands;
mod config;
mod import;
mod logging;
mod memory;
mod run;
mod units;

use std::process::ExitCode;

use clap::Parser;
use moldau_lab::checks::Verdict;

use crate::arguments::{Arguments, BrokerAction, BrokerArguments, Command, ProxyAction};

fn main() -> ExitCode {
    output::until_reader_is_gone(run_command)
}

fn run_command() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => return not_understood(&error),
    };
    let loggers = logging::start(arguments.log_level);
    let faults = moldau_threads::arm_faults(|| std::env::var("MOLDAU_FAULTS").ok());
    faults.expect("a test names faults that there are");
    let outcome = match arguments.command {
        Command::Broker(BrokerArguments {
            action: Some(BrokerAction::Repair(options)), ..
        }) => commands::repair::run(&options),
        Command::Broker(BrokerArguments {
            action: Some(BrokerAction::Import(options)), ..
        }) => commands::broker_import::run(&options),
        Command::Broker(BrokerArguments { action: None, options }) => {
            commands::broker::run(&options, loggers)
        }
        Command::Cluster(action) => commands::cluster::run(&action),
        Command::Proxy(options) => match (options.action, options.config) {
            (Some(ProxyAction::Keys(action)), _) => commands::proxy_keys::run(&action),
            (Some(ProxyAction::Import(options)), _) => commands::proxy_import::run(&options),
            (None, config) => commands::proxy::run(&config.expect("clap requires it")),
        },
        Command::Lab(question) => commands::lab::run(question),
        Command::Topics(options) => commands::topics::run(options),
        Command::Produce(options) => commands::produce::run(&options),
        Command::Consume(options) => commands::consume::run(&options),
        Command::Run(options) => commands::run::run(&options),
        Command::RunGuard => Ok(run::guard::run()),
        Command::Groups(options) => commands::groups::run(options),
        Command::Users { action } => commands::users::run(&action),
        Command::Config { action: arguments::ConfigAction::Check { file } } => {
            commands::config_check::run(&file)
        }
    };
    match outcome {
        Ok(code) => code,
        Err(error) => {
            eprintln!("moldau: {}", commands::one_line(&error));
            ExitCode::FAILURE
        }
    }
}

/// Tells what is wrong with a command line, or the help that it asks for. Of the laboratory, 2 says
/// that records were lost, and 4 that nothing could be run.
fn not_understood(error: &clap::Error) -> ExitCode {
    let of_lab = std::env::args_os().any(|argument| argument == "lab");
    // Where even that cannot be written, the code tells it.
    let _ = error.print();
    match (error.use_stderr(), of_lab) {
        (false, _) => ExitCode::SUCCESS,
        (true, true) => ExitCode::from(Verdict::Environment.exit_code()),
        (true, false) => ExitCode::from(2),
    }
}
