//! Java clients of our broker under faults, whose history `moldau lab check` judges.
//!
//! The clients connect through our proxy. The broker is killed and stopped. The proxy is killed,
//! which cuts all connections. At the end one acknowledged record is taken out of all polls of the
//! history, and the loss must be found.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use fastrand::Rng;
use serde_json::{Value, json};

use crate::check::Check;
use crate::moldau::Moldau;
use crate::peers::Peers;
use crate::process::{Process, free_ports, loopback};

/// How long clients may take to begin on a busy machine.
const START_TIMEOUT: Duration = Duration::from_secs(60);

/// Clients try a request for 15 s; then open transactions end, and the last client reads for up to
/// a minute each.
const END_TIMEOUT: Duration = Duration::from_secs(180);

/// How long the judgement may take.
const JUDGE_TIMEOUT: Duration = Duration::from_secs(60);

/// Time from one fault to the next, ms.
const GAP_MS: std::ops::Range<u64> = 500..2_500;

/// Time for which the broker is stopped, ms: clients wait 2 s for an answer.
const STOP_MS: std::ops::Range<u64> = 500..4_000;

/// Exit code of `moldau lab check` if records were lost.
const RECORDS_LOST: i32 = 2;

#[derive(Clone, Copy, Debug)]
enum Fault {
    /// The broker is killed and restarted.
    Kill,
    /// The broker is stopped for a time.
    Stop,
    /// The proxy is killed and restarted, so that all connections are cut.
    Cut,
}

/// Runs the clients for `length` with faults by `seed`, and judges their history.
pub fn run(
    binary: &Path,
    peers: &Peers,
    directory: &Path,
    length: Duration,
    seed: u64,
) -> Result<Vec<Check>> {
    let mut cluster = Cluster::start(binary, directory)?;
    let [file, stop] = ["history.jsonl", "stop"].map(|name| directory.join(name));
    let mut command = peers.java_tool("HistorySession")?;
    command.args([cluster.proxy.bootstrap(), "history"]).args([&file, &stop]);
    let mut session = Process::spawn(command, "session", directory)?;
    let outcome = harass(&mut cluster, &mut session, length, &mut Rng::with_seed(seed));
    fs::write(&stop, "")?;
    let ended = session.exits_within(END_TIMEOUT)?;
    let faults = outcome.with_context(|| session.tail())?;
    ensure!(ended.is_some(), "the session does not end:\n{}", session.tail());
    let mut checks = Check::parse_lines(&session.stdout_text()).with_context(|| session.tail())?;
    cluster.proxy.stop()?;
    cluster.broker.stop()?;
    checks.push(Check::new("each kind of fault strikes", faults >= 3, &faults.to_string()));
    checks.push(judge(binary, &file, directory)?);
    checks.push(judge_with_a_loss(binary, &file, directory)?);
    Ok(checks)
}

/// Strikes until the time is up, each kind in turn in a random order; gives how many faults.
fn harass(
    cluster: &mut Cluster,
    session: &mut Process,
    length: Duration,
    random: &mut Rng,
) -> Result<usize> {
    session.await_ready(START_TIMEOUT, |session| {
        session.last_line("progress ").is_ok_and(|line| line.is_some_and(|it| is_under_way(&it)))
    })?;
    let end = Instant::now() + length;
    let mut count = 0;
    let mut faults = Vec::new();
    while Instant::now() < end {
        if faults.is_empty() {
            faults.extend([Fault::Kill, Fault::Stop, Fault::Cut]);
            random.shuffle(&mut faults);
        }
        pause(session, Duration::from_millis(random.u64(GAP_MS)))?;
        match faults.pop() {
            Some(Fault::Kill) => cluster.restart_broker()?,
            Some(Fault::Stop) => {
                cluster.broker.process().suspend()?;
                let paused = pause(session, Duration::from_millis(random.u64(STOP_MS)));
                cluster.broker.process().resume()?;
                paused?;
            }
            Some(Fault::Cut) => cluster.restart_proxy()?,
            None => {}
        }
        count += 1;
    }
    Ok(count)
}

/// Whether transactions were committed and records polled.
fn is_under_way(progress: &str) -> bool {
    let mut counts = progress.split(' ').map(|count| count.parse().unwrap_or(0_u64));
    counts.clone().count() == 2 && counts.all(|count| count > 0)
}

/// Lets time go by; an error if the clients end meanwhile.
fn pause(session: &mut Process, time: Duration) -> Result<()> {
    match session.exits_within(time)? {
        Some(status) => bail!("the session ended with {status}:\n{}", session.tail()),
        None => Ok(()),
    }
}

/// The history must be sound. Otherwise it is kept, as the directory goes with the run.
fn judge(binary: &Path, file: &Path, directory: &Path) -> Result<Check> {
    let (status, words) = lab_check(binary, file, directory)?;
    let name = "the history breaks no promise of Kafka";
    if status == 0 {
        return Ok(Check::new(name, true, ""));
    }
    let kept = std::env::temp_dir().join(format!("moldau-history-{}.jsonl", std::process::id()));
    fs::copy(file, &kept)?;
    let detail = format!("exit code {status} for {}:\n{words}", kept.display());
    Ok(Check::new(name, false, &detail))
}

fn judge_with_a_loss(binary: &Path, file: &Path, directory: &Path) -> Result<Check> {
    let lossy = directory.join("lossy.jsonl");
    fs::write(&lossy, without_a_record(&fs::read_to_string(file)?)?)?;
    let (status, words) = lab_check(binary, &lossy, directory)?;
    Ok(Check::new(
        "a record that is taken out of the history is found lost",
        status == RECORDS_LOST && words.contains("lost write"),
        &format!("exit code {status}:\n{words}"),
    ))
}

/// The exit code and the words of `moldau lab check`.
fn lab_check(binary: &Path, file: &Path, directory: &Path) -> Result<(i32, String)> {
    let mut command = Command::new(binary);
    command.args(["lab", "check", "--history"]).arg(file);
    command.arg("--out").arg(directory.join("out"));
    let ended = Process::run(command, "judge", directory, "", JUDGE_TIMEOUT)?;
    let status = ended.status.and_then(|status| status.code());
    let status = status.with_context(|| ended.explanation())?;
    Ok((status, format!("{}{}", ended.stdout, ended.stderr)))
}

/// The operations without the first acknowledged record of partition 0 in any poll.
fn without_a_record(history: &str) -> Result<String> {
    let mut operations = history
        .lines()
        .map(|line| serde_json::from_str(line).with_context(|| line.to_owned()))
        .collect::<Result<Vec<Value>>>()?;
    let committed = operations.iter().filter(|operation| operation["outcome"] == "committed");
    let sends = steps(committed, "send").filter(|send| send["partition"] == 0);
    let first = sends.filter(|send| send["offset"].is_u64()).min_by_key(|it| it["offset"].as_u64());
    let lost = first.context("no record of partition 0 was acknowledged")?["value"].clone();
    for operation in &mut operations {
        for step in operation["steps"].as_array_mut().into_iter().flatten() {
            let records = step.pointer_mut("/poll/records").and_then(Value::as_array_mut);
            if let Some(records) = records {
                records.retain(|record| record["value"] != lost);
            }
        }
    }
    Ok(operations.iter().map(|operation| format!("{operation}\n")).collect())
}

/// The steps of one kind of some operations.
fn steps<'a>(
    operations: impl Iterator<Item = &'a Value>,
    kind: &'a str,
) -> impl Iterator<Item = &'a Value> {
    operations
        .filter_map(|operation| operation["steps"].as_array())
        .flatten()
        .filter_map(move |step| step.get(kind))
}

/// A broker and the proxy before it, at addresses that they keep.
struct Cluster {
    binary: PathBuf,
    directory: PathBuf,
    /// The first of [`PORTS`](Self::PORTS).
    port: u16,
    broker: Moldau,
    proxy: Moldau,
}

impl Cluster {
    /// Two of the broker, two of the proxy, and those of the proxy for brokers by their ids.
    const PORTS: u16 = 8;

    fn start(binary: &Path, directory: &Path) -> Result<Self> {
        let port = free_ports(Self::PORTS)?;
        let broker = broker(binary, directory, port)?;
        let proxy = proxy(binary, directory, port)?;
        let (binary, directory) = (binary.to_owned(), directory.to_owned());
        Ok(Self { binary, directory, port, broker, proxy })
    }

    fn restart_broker(&mut self) -> Result<()> {
        self.broker.kill()?;
        self.broker = broker(&self.binary, &self.directory, self.port)?;
        Ok(())
    }

    fn restart_proxy(&mut self) -> Result<()> {
        self.proxy.kill()?;
        self.proxy = proxy(&self.binary, &self.directory, self.port)?;
        Ok(())
    }
}

fn broker(binary: &Path, directory: &Path, port: u16) -> Result<Moldau> {
    let config = json!({
        "log.dirs": directory.join("data"),
        "listeners": format!("PLAINTEXT://{}", loopback(port)),
        "admin": loopback(port + 1),
    });
    Moldau::configured("broker", binary, &config, directory, port, port + 1)
}

fn proxy(binary: &Path, directory: &Path, port: u16) -> Result<Moldau> {
    let config = json!({
        "admin": loopback(port + 2),
        "virtual_clusters": [{
            "name": "main",
            "bootstrap": loopback(port + 3),
            "upstream": [loopback(port)],
            "broker_port_start": port + 4,
        }],
    });
    Moldau::configured("proxy", binary, &config, directory, port + 3, port + 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_acknowledged_record_is_taken_out_of_all_polls() {
        let sent = |value: u64, offset: u64, outcome: &str| {
            let send = json!({"partition": 0, "value": value, "offset": offset});
            json!({"outcome": outcome, "steps": [{"send": send}]})
        };
        let records = json!([{"offset": 1, "value": 6}, {"offset": 2, "value": 7}]);
        let polled = json!({"steps": [{"poll": {"partition": 0, "records": records}}]});
        let all = [sent(5, 0, "aborted"), sent(7, 2, "committed"), sent(6, 1, "committed"), polled];
        let history: String = all.iter().map(|operation| format!("{operation}\n")).collect();
        let lossy = without_a_record(&history).unwrap();
        let left: Value = serde_json::from_str(lossy.lines().last().unwrap()).unwrap();
        assert_eq!(left["steps"][0]["poll"]["records"], json!([{"offset": 2, "value": 7}]));
        let kept: Vec<&str> = lossy.lines().take(3).collect();
        assert_eq!(kept, history.lines().take(3).collect::<Vec<_>>());
    }

    #[test]
    fn clients_are_under_way_once_they_commit_and_poll() {
        assert!(is_under_way("1 2") && !is_under_way("0 2") && !is_under_way("1"));
    }
}
