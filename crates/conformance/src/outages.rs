//! Brokers of Apache Kafka that are killed one after the other behind the proxy, under load.

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

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
    Check::parse_lines(&session.stdout_text())
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
