//! Brokers of Apache Kafka that are killed one after the other behind the proxy, under load, and
//! what the tools for the terminal make of partitions that went with a broker.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::check::Check;
use crate::kafka::Kafka;
use crate::moldau::Moldau;
use crate::peers::Peers;
use crate::process::Process;

const NODES: u16 = 3;

/// Records that are acknowledged and read after each change before the next: they need every
/// partition to have a leader again.
const RECORDS: u64 = 20_000;

/// How long clients may take to go on: sessions of brokers and of groups end after some 10 s.
const RECOVERY_TIMEOUT: Duration = Duration::from_secs(120);

/// The program waits as long for what it has not read.
const END_TIMEOUT: Duration = Duration::from_secs(180);

/// Kills and restarts each node while a Java producer and a consumer work through the proxy.
pub fn run(binary: &Path, peers: &Peers, directory: &Path) -> Result<Vec<Check>> {
    let mut kafka = Kafka::start_cluster(peers, directory, NODES)?;
    let proxy = Moldau::proxy(binary, directory, kafka.bootstrap())?;
    let stop = directory.join("stop");
    let mut command = peers.java_tool("Outages")?;
    command.args([proxy.bootstrap(), "outages"]).arg(&stop);
    let mut session = Process::spawn(command, "session", directory)?;
    let outcome = disturb(&mut kafka, peers, &mut session);
    fs::write(&stop, "")?;
    let ended = session.exits_within(END_TIMEOUT)?;
    outcome.with_context(|| format!("{}\n{}", proxy.tail(), session.tail()))?;
    ensure!(ended.is_some(), "the session does not end:\n{}", session.tail());
    proxy.stop()?;
    let mut checks = Check::parse_lines(&session.stdout_text())?;
    checks.extend(lose_a_leader(&mut kafka, binary, directory)?);
    Ok(checks)
}

/// Kills a node of which each topic without replicas has a partition, and asks the tools for one.
fn lose_a_leader(kafka: &mut Kafka, binary: &Path, directory: &Path) -> Result<[Check; 2]> {
    let bootstrap = kafka.bootstrap().to_owned();
    let tool = |arguments: &[&str], input: &str| {
        let mut command = Command::new(binary);
        command.args(arguments).args(["--bootstrap", &bootstrap]);
        let ended = Process::run(command, "tool", directory, input, RECOVERY_TIMEOUT)?;
        ensure!(ended.success(), "{arguments:?}: {}", ended.explanation());
        anyhow::Ok(ended.stdout)
    };
    let describe = || {
        let described: Value =
            serde_json::from_str(&tool(&["topics", "describe", "alone", "--json"], "")?)?;
        let partitions = described["partitions"].as_array().context("no partitions")?;
        anyhow::Ok(partitions.clone())
    };
    tool(&["topics", "create", "alone", "--partitions", "3"], "")?;
    tool(&["produce", "alone"], "one\ntwo\nthree\n")?;
    kafka.kill(NODES)?;
    let deadline = Instant::now() + RECOVERY_TIMEOUT;
    let partitions = loop {
        let partitions = describe()?;
        if partitions.iter().any(|partition| partition["leader"].is_null()) {
            break partitions;
        }
        ensure!(Instant::now() < deadline, "the leader is not missed: {partitions:?}");
    };
    let is_as_it_should = |partition: &&Value| match partition["leader"].as_u64() {
        Some(leader) => leader < u64::from(NODES) && partition["end_offset"] == 1,
        None => partition["start_offset"].is_null() && partition["end_offset"].is_null(),
    };
    let told = partitions.iter().filter(is_as_it_should).count();
    let told = told == 3 && partitions.iter().filter(|it| it["leader"].is_null()).count() == 1;
    let read = tool(&["consume", "alone", "--from-beginning", "-n", "2"], "")?;
    Ok([
        Check::new(
            "describe shows what has no leader, and the rest",
            told,
            &format!("{partitions:?}"),
        ),
        Check::new("consume reads what has a leader", read.lines().count() == 2, &read),
    ])
}

fn disturb(kafka: &mut Kafka, peers: &Peers, session: &mut Process) -> Result<()> {
    await_records(session)?;
    for node in 1..=NODES {
        kafka.kill(node)?;
        await_records(session).with_context(|| format!("node {node} was killed"))?;
        kafka.restart(peers, node)?;
        await_records(session).with_context(|| format!("node {node} is back"))?;
    }
    Ok(())
}

/// Waits until so many more records have been written and read.
fn await_records(session: &mut Process) -> Result<()> {
    let (written, read) = progress(session);
    session.await_ready(RECOVERY_TIMEOUT, |session| {
        let (written_now, read_now) = progress(session);
        written_now >= written + RECORDS && read_now >= read + RECORDS
    })
}

/// Records that the program has acknowledged and read.
fn progress(session: &Process) -> (u64, u64) {
    let text = session.stderr_text();
    let last = text.lines().rev().find_map(|line| line.strip_prefix("progress "));
    let numbers = last.and_then(|line| line.split_once(' '));
    numbers
        .map_or((0, 0), |(written, read)| (written.parse().unwrap_or(0), read.parse().unwrap_or(0)))
}
