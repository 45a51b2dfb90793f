//! `cargo xtask test`: every check that a change must pass, in order, up to the first that fails.
//!
//! The cheap checks come first. Clippy and the documentation check one selection of packages and
//! features, the tests build one: with another, cargo would compile the dependencies once more. The
//! client matrix runs the release binary that a user would run.

use std::env;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail};
use moldau_conformance::peers::Peers;

use crate::{codegen, kubernetes, peers, tidy, workspace};

/// Arguments of `cargo xtask test`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Build first what takes long to build, so that nothing is left out: HashiCorp Vault.
    #[arg(long)]
    full: bool,
}

/// How many tests a step ran, and how many of them failed.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Count {
    passed: usize,
    failed: usize,
    /// Sets of tests that were left out, since what they need is not there.
    not_run: usize,
}

impl Count {
    const ONE: Self = Self { passed: 1, failed: 0, not_run: 0 };

    fn add(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.not_run += other.not_run;
    }
}

/// Features of tests that need a peer: Python's Kafka client, and HashiCorp Vault.
const REAL_CLIENTS: &str = "moldau/real-clients";
const REAL_VAULT: &str = "moldau-encryption/real-vault,moldau/real-vault";

type Step = (&'static str, fn(&Arguments) -> Result<Count>);

const STEPS: [Step; 18] = [
    ("fmt", |_| fmt()),
    ("tidy", |_| tidy::run().map(|()| Count::ONE)),
    ("clippy", |_| clippy()),
    ("documentation", |_| documentation()),
    ("codegen", |_| codegen::check().map(|()| Count::ONE)),
    ("peers", install_peers),
    ("tests", tests),
    ("release build", |_| release_build()),
    ("Kubernetes", |_| kubernetes::check(&Peers::locate()?).map(|()| Count::ONE)),
    ("client matrix", |_| client_matrix()),
    ("authorization", |_| counted(conformance("moldau-authorization"))),
    ("secured clients", |_| counted(conformance("moldau-security"))),
    ("broker outages", |_| succeed(conformance("moldau-outages"))),
    ("tenants", |_| counted(conformance("moldau-tenants"))),
    ("reloads", |_| reloads()),
    ("crowd", |_| counted(conformance("moldau-crowd"))),
    ("reports in a browser", |_| counted(conformance("moldau-reports"))),
    ("Kroxylicious", kroxylicious),
];

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let started = Instant::now();
    let mut total = Count::default();
    let mut failure = None;
    for (number, (name, step)) in STEPS.iter().enumerate() {
        println!("\n[{}/{}] {name}", number + 1, STEPS.len());
        let step_started = Instant::now();
        let result = step(arguments);
        let seconds = step_started.elapsed().as_secs_f64();
        match result {
            Ok(count) if count.failed == 0 => {
                let word = match count {
                    Count { not_run: 0, .. } => "ok",
                    Count { passed: 0, .. } => "not run",
                    _ => "ok, partly not run",
                };
                println!("[{}/{}] {name}: {word}, {seconds:.1} s", number + 1, STEPS.len());
                total.add(count);
            }
            Ok(count) => {
                total.add(count);
                failure = Some(format!("{name} failed after {seconds:.1} s"));
            }
            Err(error) => {
                total.add(Count { failed: 1, ..Count::default() });
                failure = Some(format!("{name} failed after {seconds:.1} s: {error}"));
            }
        }
        if failure.is_some() {
            break;
        }
    }
    println!("\n{:.0} s in all", started.elapsed().as_secs_f64());
    if let Some(failure) = &failure {
        println!("{failure}");
    }
    println!("{} passed, {} failed, {} not run", total.passed, total.failed, total.not_run);
    if failure.is_some() {
        std::process::exit(1);
    }
    Ok(())
}

fn fmt() -> Result<Count> {
    succeed(cargo(&["fmt", "--all", "--check"]))
}

fn clippy() -> Result<Count> {
    let mut clippy = cargo(&["clippy", "--workspace", "--all-targets"]);
    clippy.args(["--features", REAL_CLIENTS, "--features", REAL_VAULT]);
    clippy.args(["--", "-D", "warnings"]);
    succeed(clippy)
}

/// All tests of the workspace, those against real peers included.
fn tests(_: &Arguments) -> Result<Count> {
    let peers = Peers::locate()?;
    let has_vault = peers::has_vault(&peers)?;
    let mut tests = cargo(&["test", "--workspace", "--no-fail-fast", "--features", REAL_CLIENTS]);
    tests.env("MOLDAU_PYTHON", peers.python());
    if has_vault {
        tests.args(["--features", REAL_VAULT]).env("MOLDAU_VAULT", peers.vault());
    } else {
        println!("HashiCorp Vault is not there or outdated: `cargo xtask peers vault` builds it");
    }
    let mut count = counted(tests)?;
    count.not_run = usize::from(!has_vault);
    Ok(count)
}

fn release_build() -> Result<Count> {
    succeed(cargo(&["build", "--release"]))
}

fn install_peers(arguments: &Arguments) -> Result<Count> {
    let peers = Peers::locate()?;
    peers::install(&peers)?;
    if arguments.full {
        peers::install_vault(&peers)?;
    }
    Ok(Count::ONE)
}

fn client_matrix() -> Result<Count> {
    counted(conformance("moldau-conformance"))
}

/// Reloads under a load that any machine bears.
fn reloads() -> Result<Count> {
    let mut reloads = conformance("moldau-reloads");
    reloads.args(["--rate", "1000"]);
    counted(reloads)
}

/// A program of the conformance crate, with the release binary.
fn conformance(program: &str) -> Command {
    let target = env::var_os("CARGO_TARGET_DIR")
        .map_or_else(|| workspace::root().join("target"), std::path::PathBuf::from);
    let mut command =
        cargo(&["run", "--quiet", "--package", "moldau-conformance", "--bin", program, "--"]);
    command.env("MOLDAU_BIN", target.join("release").join("moldau"));
    command
}

/// Record encryption, with a real Kroxylicious and in both directions.
fn kroxylicious(_: &Arguments) -> Result<Count> {
    let mut interop = conformance("moldau-interop");
    let has_vault = peers::has_vault(&Peers::locate()?)?;
    if !has_vault {
        println!("only with keys in memory: HashiCorp Vault is not there or outdated");
        interop.args(["--service", "memory"]);
    }
    let mut count = counted(interop)?;
    count.not_run = usize::from(!has_vault);
    Ok(count)
}

fn documentation() -> Result<Count> {
    // Asked for examples as well, of which there are none, cargo counts the features that tests ask
    // of the dependencies, as clippy's selection does.
    let mut doc = cargo(&["doc", "--workspace", "--no-deps", "--lib", "--bins", "--examples"]);
    doc.args(["--features", REAL_CLIENTS, "--features", REAL_VAULT]);
    doc.env("RUSTDOCFLAGS", "-D warnings");
    succeed(doc)
}

fn cargo(arguments: &[&str]) -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(workspace::root()).args(arguments);
    command
}

/// Runs a command for which success is the only result.
fn succeed(mut command: Command) -> Result<Count> {
    let status = command.status().with_context(|| format!("cannot start {command:?}"))?;
    if !status.success() {
        bail!("{command:?} ended with {status}");
    }
    Ok(Count::ONE)
}

/// Runs a command that says how many tests it ran, passing its output on.
fn counted(mut command: Command) -> Result<Count> {
    command.stdout(Stdio::piped());
    let mut child = command.spawn().with_context(|| format!("cannot start {command:?}"))?;
    let output = child.stdout.take().context("the output is piped")?;
    let mut count = Count::default();
    for line in BufReader::new(output).lines() {
        let line = line?;
        println!("{line}");
        if let Some(found) = parse_count(&line) {
            count.add(found);
        }
    }
    let status = child.wait()?;
    if count.passed == 0 || (!status.success() && count.failed == 0) {
        bail!("{command:?} ended with {status} after {} tests", count.passed);
    }
    Ok(count)
}

/// Reads `test result: ok. 3 passed; 1 failed; ...` and `3 passed, 1 failed`.
fn parse_count(line: &str) -> Option<Count> {
    let is_libtest = line.starts_with("test result:");
    let is_matrix = line.starts_with(|first: char| first.is_ascii_digit());
    let before = |word: &str| -> Option<usize> {
        line.split(word)
            .next()?
            .split([' ', '.', ';', ','])
            .rfind(|part| !part.is_empty())?
            .parse()
            .ok()
    };
    if !(is_libtest || is_matrix) || !line.contains(" passed") || !line.contains(" failed") {
        return None;
    }
    Some(Count { passed: before(" passed")?, failed: before(" failed")?, not_run: 0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_of_a_summary_are_read() {
        let libtest = "test result: FAILED. 25 passed; 1 failed; 0 ignored; 0 measured";
        let count = |passed, failed| Some(Count { passed, failed, not_run: 0 });
        assert_eq!(parse_count(libtest), count(25, 1));
        assert_eq!(parse_count("52 passed, 3 failed"), count(52, 3));
        assert_eq!(parse_count("test a_frame_passed_twice_failed ... ok"), None);
        assert_eq!(parse_count("running 3 tests"), None);
    }

    #[test]
    fn a_command_that_fails_fails_its_step() {
        assert!(succeed(Command::new("false")).is_err());
        assert!(counted(Command::new("false")).is_err());
        assert_eq!(succeed(Command::new("true")).unwrap(), Count::ONE);
    }
}
