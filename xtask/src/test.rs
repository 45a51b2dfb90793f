//! `cargo xtask test`: every check that a change must pass, in order, up to the first that fails.
//!
//! The cheap checks come first. Everything that runs is built once, by the step `build`: the
//! programs of the conformance crate drive the binary that the tests drive. They wait for other
//! processes most of the time, so several run side by side. With `--full` come what takes too long
//! for each change: a real HashiCorp Vault, the release binary under the same programs and on a
//! disk that loses what was not synced, and long simulations.

use std::env;
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use moldau_conformance::peers::Peers;

use crate::simulate::Subject;
use crate::{codegen, kubernetes, peers, simulate, tidy, workspace};

/// Arguments of `cargo xtask test`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Also the checks that take too long for each change: HashiCorp Vault, which is built first,
    /// the release binary under real clients and on a disk that loses writes, and long simulations.
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

/// Features of tests that need a peer: Python's Kafka client, a browser, and HashiCorp Vault.
const REAL_CLIENTS: &str = "moldau/real-clients,moldau-consumer/real-browser";
const REAL_VAULT: &str = "moldau-encryption/real-vault,moldau/real-vault";

/// The feature of the test that kills brokers on a disk that loses what was not synced.
const LOSSY_DISK: &str = "moldau/lossy-disk";
const LOSSY_DISK_TEST: &str = "kills_lose_no_acknowledged_record_on_a_lossy_disk";

/// Conformance programs that run at a time: the clients of one start while those of another wait.
const PROGRAMS_AT_A_TIME: usize = 2;

/// Test threads of a binary. Tests wait for processes, disks and timers more than they compute.
const TEST_THREADS: &str = "3";

/// Seeds of the simulation of storage with `--full`.
const FULL_SEEDS: u64 = 20_000;

/// Seeds of each simulation of groups with `--full`.
const FULL_GROUP_SEEDS: u64 = 10_000;

/// Kills of the release binary on the disk that loses, with `--full`.
const FULL_KILLS: &str = "500";

type Step = (&'static str, fn() -> Result<Count>);

const STEPS: [Step; 10] = [
    ("fmt", fmt),
    ("tidy", || tidy::run().map(|()| Count::ONE)),
    ("clippy", clippy),
    ("documentation", documentation),
    ("codegen", || codegen::check().map(|()| Count::ONE)),
    ("peers", || peers::install(&Peers::locate()?).map(|()| Count::ONE)),
    ("build", build),
    ("tests", tests),
    ("examples in documents", examples_in_documents),
    ("Kubernetes", || kubernetes::check(&Peers::locate()?).map(|()| Count::ONE)),
];

const FULL_STEPS: [Step; 4] = [
    ("fuzz targets", fuzz_targets),
    ("release build", release_build),
    ("long simulations", long_simulations),
    ("kills on a disk that loses", kills),
];

/// The programs of the conformance crate, with their arguments; the longest come first, so that
/// the last does not run alone for long.
const PROGRAMS: [(&str, &str, &[&str]); 16] = [
    ("client matrix", "moldau-conformance", &[]),
    ("clients of a cluster", "moldau-conformance", &CLUSTER),
    ("broker outages", "moldau-outages", &[]),
    ("Kroxylicious", "moldau-interop", &[]),
    ("reports in a browser", "moldau-reports", &[]),
    ("histories of Java clients", "moldau-history", &[]),
    ("commands of tools", "moldau-tools", &[]),
    ("authorization", "moldau-authorization", &[]),
    ("secured clients", "moldau-security", &[]),
    ("tenants", "moldau-tenants", &[]),
    // A load that any machine bears.
    ("reloads", "moldau-reloads", &["--rate", "1000"]),
    ("odd produces", "moldau-odd-produces", &[]),
    ("differences from Kafka", "moldau-differential", &[]),
    ("differences of a cluster", "moldau-differential", &["--cluster"]),
    ("metrics of clients", "moldau-telemetry", &[]),
    ("crowd", "moldau-crowd", &[]),
];

/// What is most unlike a broker with a journal: changes at any broker, groups and transactions at
/// the controller, and the redirection of share groups to it.
const CLUSTER: [&str; 14] = [
    "--target",
    "cluster",
    "--scenario",
    "admin",
    "--scenario",
    "group",
    "--scenario",
    "transactions",
    "--scenario",
    "kip-932",
    "--scenario",
    "streams-exactly-once",
    "--scenario",
    "api-versions",
];

/// What came of all steps so far.
#[derive(Default)]
struct Tally {
    total: Count,
    failures: Vec<String>,
}

impl Tally {
    fn add(&mut self, name: &str, started: Instant, result: Result<Count>) {
        let seconds = started.elapsed().as_secs_f64();
        let count = match result {
            Ok(count) => count,
            Err(error) => {
                println!("{error:#}");
                Count { failed: 1, ..Count::default() }
            }
        };
        let word = match count {
            Count { failed: 1.., .. } => "FAILED",
            Count { not_run: 0, .. } => "ok",
            Count { passed: 0, .. } => "not run",
            _ => "ok, partly not run",
        };
        println!("[{name}] {word}, {seconds:.1} s");
        if count.failed > 0 {
            self.failures.push(format!("{name} failed after {seconds:.1} s"));
        }
        self.total.add(count);
    }
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let started = Instant::now();
    let mut tally = Tally::default();
    if arguments.full {
        peers::install_vault(&Peers::locate()?)?;
    }
    let full_steps = if arguments.full { &FULL_STEPS[..] } else { &[] };
    for (name, step) in STEPS.iter().chain(full_steps) {
        println!("\n[{name}]");
        let started = Instant::now();
        tally.add(name, started, step());
        if !tally.failures.is_empty() {
            break;
        }
    }
    if tally.failures.is_empty() {
        let profile = if arguments.full { "release" } else { "debug" };
        side_by_side(programs(profile)?, &mut tally)?;
    }
    println!("\n{:.0} s in all", started.elapsed().as_secs_f64());
    for failure in &tally.failures {
        println!("{failure}");
    }
    let Count { passed, failed, not_run } = tally.total;
    println!("{passed} passed, {failed} failed, {not_run} not run");
    if !tally.failures.is_empty() {
        std::process::exit(1);
    }
    Ok(())
}

fn fmt() -> Result<Count> {
    succeed(cargo(&["fmt", "--all", "--check"]))
}

/// The fuzz targets are a workspace of their own, which no other step builds. Each is run with its
/// seeds: inputs that reach most of what the target can reach, and those that once failed.
fn fuzz_targets() -> Result<Count> {
    let target = "target/fuzz";
    let built = ["build", "--manifest-path", "fuzz/Cargo.toml", "--bins", "--target-dir", target];
    let mut count = succeed(cargo(&built))?;
    let root = workspace::root();
    for seeds in fs::read_dir(root.join("fuzz/seeds"))? {
        let seeds = seeds?;
        let mut run = Command::new(root.join(target).join("debug").join(seeds.file_name()));
        for seed in fs::read_dir(seeds.path())? {
            run.arg(seed?.path());
        }
        count.add(succeed(run)?);
    }
    Ok(count)
}

fn clippy() -> Result<Count> {
    let mut clippy = cargo(&["clippy", "--workspace", "--all-targets"]);
    clippy.args(["--features", REAL_CLIENTS, "--features", REAL_VAULT, "--features", LOSSY_DISK]);
    clippy.args(["--", "-D", "warnings"]);
    succeed(clippy)
}

/// What all tests of the workspace are built and run with, those against real peers included.
fn with_peers(mut command: Command, peers: &Peers, has_vault: bool) -> Command {
    command.args(["--features", REAL_CLIENTS]).env("MOLDAU_PYTHON", peers.python());
    command.env("PEER_BROWSER", peers.browser());
    // Every JVM maps the archive if its class path is Kafka's, and starts without it otherwise.
    let archive = format!("{} -Xlog:disable -Xlog:all=error", peers.class_archive_flag());
    command.env("JDK_JAVA_OPTIONS", archive);
    if has_vault {
        command.args(["--features", REAL_VAULT]).env("MOLDAU_VAULT", peers.vault());
    }
    if can_mount() {
        command.args(["--features", LOSSY_DISK]);
    }
    command
}

/// Whether a file system in user space can be mounted here.
fn can_mount() -> bool {
    let has_device = File::options().read(true).write(true).open("/dev/fuse").is_ok();
    let is_root = fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0);
    let has_helper = || Command::new("fusermount3").arg("--version").output().is_ok();
    has_device && (is_root || has_helper())
}

/// Builds the tests and the programs in one go. Asked for examples as well, of which there are
/// none, cargo gives the programs the features that tests ask of the dependencies.
fn build() -> Result<Count> {
    let peers = Peers::locate()?;
    let targets = ["build", "--workspace", "--lib", "--bins", "--tests", "--examples"];
    succeed(with_peers(cargo(&targets), &peers, peers::has_vault(&peers)?))
}

fn tests() -> Result<Count> {
    let peers = Peers::locate()?;
    let has_vault = peers::has_vault(&peers)?;
    if !has_vault {
        println!("without HashiCorp Vault: `cargo xtask peers vault` builds it");
    }
    let mut tests = cargo(&["test", "--workspace", "--no-fail-fast", "--lib", "--bins", "--tests"]);
    tests.env("RUST_TEST_THREADS", TEST_THREADS);
    let mut count = counted(with_peers(tests, &peers, has_vault))?;
    count.not_run = usize::from(!has_vault) + usize::from(!can_mount());
    Ok(count)
}

/// The code in doc comments and in the guide of the consumer framework.
fn examples_in_documents() -> Result<Count> {
    let peers = Peers::locate()?;
    let tests = cargo(&["test", "--workspace", "--no-fail-fast", "--doc"]);
    counted(with_peers(tests, &peers, peers::has_vault(&peers)?))
}

fn kills() -> Result<Count> {
    if !can_mount() {
        println!("without /dev/fuse, or without root and fusermount3");
        return Ok(Count { not_run: 1, ..Count::default() });
    }
    let peers = Peers::locate()?;
    let tests = cargo(&["test", "--workspace", "--test", "it"]);
    let mut tests = with_peers(tests, &peers, peers::has_vault(&peers)?);
    tests.args(["--", LOSSY_DISK_TEST]);
    tests.env("MOLDAU_BIN", target_directory().join("release").join("moldau"));
    tests.env("MOLDAU_CRASH_KILLS", FULL_KILLS);
    let count = counted(tests)?;
    ensure!(count.passed + count.failed > 0, "no test is called {LOSSY_DISK_TEST}");
    Ok(count)
}

fn release_build() -> Result<Count> {
    succeed(cargo(&["build", "--release"]))
}

fn long_simulations() -> Result<Count> {
    let of = |of, count| simulate::Arguments { of, from: 0, count, seconds: None };
    simulate::run(&of(Subject::Storage, FULL_SEEDS))?;
    simulate::run(&of(Subject::ConsumerGroups, FULL_GROUP_SEEDS))?;
    simulate::run(&of(Subject::ShareGroups, FULL_GROUP_SEEDS))?;
    simulate::run(&of(Subject::SharePartitions, FULL_GROUP_SEEDS))?;
    simulate::run(&of(Subject::StreamsGroups, FULL_GROUP_SEEDS))?;
    simulate::run(&of(Subject::Cluster, FULL_GROUP_SEEDS))?;
    Ok(Count { passed: 6, ..Count::default() })
}

fn documentation() -> Result<Count> {
    // Asked for examples as well, cargo counts the features that tests ask
    // of the dependencies, as clippy's selection does.
    let mut doc = cargo(&["doc", "--workspace", "--no-deps", "--lib", "--bins", "--examples"]);
    doc.args(["--features", REAL_CLIENTS, "--features", REAL_VAULT, "--features", LOSSY_DISK]);
    doc.env("RUSTDOCFLAGS", "-D warnings");
    succeed(doc)
}

/// A program of the conformance crate that is built, and what is left out of it.
struct Program {
    name: &'static str,
    command: Command,
    not_run: usize,
}

/// All programs, which drive the binary of `profile`.
fn programs(profile: &str) -> Result<Vec<Program>> {
    let target = target_directory();
    let has_vault = peers::has_vault(&Peers::locate()?)?;
    let program = |(name, binary, arguments): &(&'static str, &str, &[&str])| {
        let mut command = Command::new(target.join("debug").join(binary));
        command.current_dir(workspace::root()).args(*arguments);
        command.env("MOLDAU_BIN", target.join(profile).join("moldau"));
        let lacks_vault = *binary == "moldau-interop" && !has_vault;
        if lacks_vault {
            // Kroxylicious with keys in memory only.
            command.args(["--service", "memory"]);
        }
        Program { name, command, not_run: usize::from(lacks_vault) }
    };
    Ok(PROGRAMS.iter().map(program).collect())
}

/// Runs all programs, some at a time, and prints what each wrote when it ends; of those that
/// failed, after all others.
fn side_by_side(programs: Vec<Program>, tally: &mut Tally) -> Result<()> {
    let directory = tempfile::tempdir()?;
    let queue = Mutex::new(programs.into_iter().enumerate());
    let ended = Mutex::new((tally, String::new()));
    let next = || queue.lock().unwrap_or_else(PoisonError::into_inner).next();
    thread::scope(|scope| {
        for _ in 0..PROGRAMS_AT_A_TIME {
            scope.spawn(|| {
                while let Some((number, mut program)) = next() {
                    let started = Instant::now();
                    let output = directory.path().join(number.to_string());
                    let result = recorded(&mut program.command, &output)
                        .map(|count| Count { not_run: program.not_run, ..count });
                    let printed = fs::read_to_string(&output).unwrap_or_default();
                    let printed = format!("\n[{}]\n{printed}", program.name);
                    let mut ended = ended.lock().unwrap_or_else(PoisonError::into_inner);
                    let (tally, of_failed) = &mut *ended;
                    if result.as_ref().is_ok_and(|count| count.failed == 0) {
                        print!("{printed}");
                    } else {
                        of_failed.push_str(&printed);
                    }
                    tally.add(program.name, started, result);
                }
            });
        }
    });
    let (_, of_failed) = ended.into_inner().unwrap_or_else(PoisonError::into_inner);
    print!("{of_failed}");
    Ok(())
}

fn target_directory() -> PathBuf {
    env::var_os("CARGO_TARGET_DIR").map_or_else(|| workspace::root().join("target"), PathBuf::from)
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

/// Runs a command that says how many tests it ran, passing its output on. Why tests failed is
/// printed once more at the end, below the results of the other tests.
fn counted(mut command: Command) -> Result<Count> {
    command.stdout(Stdio::piped());
    let mut child = command.spawn().with_context(|| format!("cannot start {command:?}"))?;
    let output = child.stdout.take().context("the output is piped")?;
    let mut count = Count::default();
    let mut panics = Panics::default();
    for line in BufReader::new(output).lines() {
        let line = line?;
        println!("{line}");
        panics.read(&line);
        count.add(parse_count(&line).unwrap_or_default());
    }
    let status = child.wait()?;
    for line in &panics.lines {
        println!("{line}");
    }
    judged(count, status, &command)
}

/// The first lines of each panic that libtest reports.
#[derive(Debug, Default)]
struct Panics {
    lines: Vec<String>,
    /// How many lines of the current panic follow.
    remaining: usize,
}

impl Panics {
    /// Lines of one panic: its place, and a message of some lines.
    const LINES: usize = 16;

    fn read(&mut self, line: &str) {
        if line.starts_with("thread '") && line.contains(" panicked at ") {
            self.remaining = Self::LINES;
        } else if line.starts_with("---- ") || line.starts_with("test result:") {
            self.remaining = 0;
        }
        if self.remaining > 0 {
            self.remaining -= 1;
            self.lines.push(line.to_owned());
        }
    }
}

/// Runs a program with all its output in a file.
fn recorded(command: &mut Command, output: &Path) -> Result<Count> {
    let file = File::create(output)?;
    command.stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file);
    let status = command.status().with_context(|| format!("cannot start {command:?}"))?;
    let mut count = Count::default();
    for line in fs::read_to_string(output)?.lines() {
        count.add(parse_count(line).unwrap_or_default());
    }
    judged(count, status, command)
}

/// A count is what a command found only if it ran tests and ended as they did.
fn judged(count: Count, status: ExitStatus, command: &Command) -> Result<Count> {
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
    fn panics_of_failed_tests_are_collected() {
        let mut panics = Panics::default();
        let output = "test a ... FAILED\n\nfailures:\n\n---- a stdout ----\n3 records\n\n\
                      thread 'a' (7) panicked at it.rs:3:5:\nit is wrong\n\n---- b stdout ----\n\
                      thread 'b' panicked at it.rs:9:5:\nso is this\ntest result: FAILED. 0 passed";
        output.lines().for_each(|line| panics.read(line));
        let expected = ["thread 'a' (7) panicked at it.rs:3:5:", "it is wrong", ""];
        let others = ["thread 'b' panicked at it.rs:9:5:", "so is this"];
        assert_eq!(panics.lines, [&expected[..], &others].concat());
    }

    #[test]
    fn a_command_that_fails_fails_its_step() {
        assert!(succeed(Command::new("false")).is_err());
        assert!(counted(Command::new("false")).is_err());
        let directory = tempfile::tempdir().unwrap();
        let mut silent = Command::new("true");
        assert!(recorded(&mut silent, &directory.path().join("output")).is_err());
        assert_eq!(succeed(Command::new("true")).unwrap(), Count::ONE);
    }
}
