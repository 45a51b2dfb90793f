//! A broker and a proxy in control groups of 256 MiB, under clients that take all the memory that
//! they can get.
//!
//! 200 connections ask for everything that is on disk: some read as fast as it comes, some slowly,
//! some never. Others stop before the end of large requests. Those that are disconnected come
//! again. A steady client that writes at a rate and reads it shows whether others are served.

mod control_group;
mod flood;

use std::fmt::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde_json::json;

use self::control_group::ControlGroup;
use self::flood::{Flood, Kind};
use crate::check::Check;
use crate::client::Library;
use crate::connection::Connection;
use crate::moldau::Moldau;
use crate::peers::Peers;
use crate::process::{free_ports, loopback};
use crate::steady::Steady;

/// The memory of each control group.
const GROUP_BYTES: u64 = 256 << 20;

/// Records of 1,000 bytes that are on disk before, more than the memory holds.
const RECORDS: u64 = 400_000;

/// The topic that holds them.
const BIG: &str = "big";

/// Records a second of the steady client.
const RATE: u32 = 500;

/// Connections of each kind.
const CONNECTIONS: [(Kind, usize); 5] = [
    (Kind::Greedy, 60),
    (Kind::Slow, 70),
    (Kind::Silent, 70),
    (Kind::Stalled, 10),
    (Kind::Oversized, 10),
];

/// After so long, who holds memory for nothing has been disconnected.
const PRESSED: Duration = Duration::from_secs(20);

/// How long what has to happen may take on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(120);

/// The steady client has to get through this part of its records while the others are there.
const SERVED_PART: u64 = 2;

/// What came of it.
#[derive(Debug, Default)]
pub struct Outcome {
    /// What held and what did not.
    pub checks: Vec<Check>,
    /// The figures, for people.
    pub words: String,
}

/// Runs the flood for `window`, half of it against a broker and half against a proxy before it,
/// with files in `directory`.
pub fn run(binary: &Path, peers: &Peers, directory: &Path, window: Duration) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    let group = ControlGroup::make("broker", GROUP_BYTES);
    let broker = start_broker(binary, directory, group.as_ref())?;
    fill(&broker, peers, directory)?;
    let broker = Limited { name: "broker", server: broker, group };
    broker.withstand(peers, directory, window / 2, &mut outcome)?;

    let group = ControlGroup::make("proxy", GROUP_BYTES);
    let proxy = start_proxy(binary, directory, &broker.server, group.as_ref())?;
    let proxy = Limited { name: "proxy", server: proxy, group };
    proxy.withstand(peers, directory, window / 2, &mut outcome)?;
    proxy.stop(&mut outcome)?;
    broker.stop(&mut outcome)?;
    Ok(outcome)
}

fn start_broker(binary: &Path, directory: &Path, group: Option<&ControlGroup>) -> Result<Moldau> {
    let port = free_ports(2)?;
    let mut config = json!({
        "log.dirs": directory.join("memory-data"),
        "listeners": format!("PLAINTEXT://{}", loopback(port)),
        "admin": loopback(port + 1),
        "journal_file_mib": 64,
        "disk_reserve_mib": 0,
    });
    if group.is_none() {
        config["memory.max.bytes"] = json!(GROUP_BYTES / 8 * 5);
    }
    let within = group.map(ControlGroup::directory);
    Moldau::configured_within(within, "broker", binary, &config, directory, (port, port + 1))
}

fn start_proxy(
    binary: &Path,
    directory: &Path,
    broker: &Moldau,
    group: Option<&ControlGroup>,
) -> Result<Moldau> {
    let port = free_ports(2)?;
    let cluster = json!({
        "name": "main",
        "bootstrap": loopback(port),
        "broker_port_start": 0,
        "upstream": [broker.bootstrap()],
        // A filter that claims Produce and Fetch, so that these are held.
        "filters": [{"audit": {"file": directory.join("audit.jsonl")}}],
    });
    let mut config = json!({"admin": loopback(port + 1), "virtual_clusters": [cluster]});
    if group.is_none() {
        config["memory_max_bytes"] = json!(GROUP_BYTES / 8 * 5);
    }
    let within = group.map(ControlGroup::directory);
    Moldau::configured_within(within, "proxy", binary, &config, directory, (port, port + 1))
}

/// Writes records as fast as a client can.
fn fill(broker: &Moldau, peers: &Peers, directory: &Path) -> Result<()> {
    let connection = Connection::plain(broker.bootstrap());
    let mut client = Steady::start(Library::Franz, BIG, 0, &connection, peers, directory)?;
    client.await_progress(TIMEOUT, |progress| progress.acknowledged >= RECORDS)?;
    client.finish()?;
    Ok(())
}

/// A server in a control group, if the machine has such.
struct Limited {
    name: &'static str,
    server: Moldau,
    group: Option<ControlGroup>,
}

impl Limited {
    /// Runs the flood and the steady client, and notes what came of them.
    fn withstand(
        &self,
        peers: &Peers,
        directory: &Path,
        window: Duration,
        outcome: &mut Outcome,
    ) -> Result<()> {
        let name = self.name;
        let connection = Connection::plain(self.server.bootstrap());
        let topic = format!("steady-{name}");
        let mut client =
            Steady::start(Library::Franz, &topic, RATE, &connection, peers, directory)?;
        client.await_progress(TIMEOUT, |progress| progress.read >= u64::from(RATE))?;
        // The topic's records lie on one broker, which both serve.
        let flood = Flood::begin(self.server.bootstrap(), BIG, &CONNECTIONS)?;
        let seen = self.watch(&mut client, window).with_context(|| self.server.tail());
        let flooded = flood.end();
        let Seen { served, longest, peak } = seen?;
        let expected = u64::from(RATE) * window.as_secs();
        writeln!(
            outcome.words,
            "{name}: at most {} MiB resident, {}; the steady client read {served} of {expected} \
             records in {} s and waited {:.1} s at most; the others read {} MiB and were \
             disconnected {} times; {:?} slow readers, slow writers and requests that never fit",
            peak >> 20,
            self.group.as_ref().map_or("no control group".to_owned(), ControlGroup::words),
            window.as_secs(),
            longest.as_secs_f64(),
            flooded.bytes >> 20,
            flooded.disconnected,
            ["slow_reader", "slow_writer", "memory_budget"].map(|cause| self.refused(cause)),
        )?;
        let mut check = |statement: &str, holds: bool, told: &str| {
            outcome.checks.push(Check::new(&format!("the {name} {statement}"), holds, told));
        };
        check("stays within 256 MiB", peak <= GROUP_BYTES, &format!("{} MiB", peak >> 20));
        let told = format!("{served} of {expected} records");
        check("serves the steady client", served * SERVED_PART >= expected, &told);
        let told = format!("{} bytes", flooded.bytes);
        check("serves the others as well", flooded.bytes > 16 << 20, &told);
        check("names what can never fit", self.refused("memory_budget") > 0, "0 refusals");
        if window >= PRESSED {
            let slow = [self.refused("slow_reader"), self.refused("slow_writer")];
            let told = format!("{slow:?} readers and writers");
            check("disconnects who holds memory for nothing", slow.iter().all(|&it| it > 0), &told);
        }
        outcome.checks.extend(client.finish()?.0);
        Ok(())
    }

    /// Looks at the server and at the client for so long.
    fn watch(&self, client: &mut Steady, window: Duration) -> Result<Seen> {
        let (begun, before) = (Instant::now(), client.progress()?.read);
        let (mut longest, mut peak) = (Duration::ZERO, 0);
        let mut last = (begun, before);
        while begun.elapsed() < window {
            client.pause(Duration::from_millis(100))?;
            peak = peak.max(self.server.process().resident_bytes()?);
            let read = client.progress()?.read;
            longest = longest.max(last.0.elapsed());
            if read > last.1 {
                last = (Instant::now(), read);
            }
        }
        Ok(Seen { served: last.1 - before, longest, peak })
    }

    /// Connections that were refused for this cause. A counter is not there before it counts.
    fn refused(&self, cause: &str) -> u64 {
        let prefix = if self.name == "proxy" { "moldau_proxy" } else { "moldau" };
        let metric = format!("{prefix}_refusals_total{{cause=\"{cause}\"}}");
        self.server.metric(&metric).unwrap_or(0)
    }

    /// Stops the server, which has run all the time.
    fn stop(self, outcome: &mut Outcome) -> Result<()> {
        let Self { name, server, group } = self;
        server.stop()?;
        if let Some(group) = group {
            let statement = format!("the {name} was never killed for want of memory");
            outcome.checks.push(Check::new(&statement, group.kills() == 0, &group.words()));
        }
        Ok(())
    }
}

/// What a server and its steady client did.
struct Seen {
    /// Records that the client read.
    served: u64,
    /// The longest time between two.
    longest: Duration,
    /// Bytes of the server's resident memory.
    peak: u64,
}
