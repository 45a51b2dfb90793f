//! A steady client among many that do nothing, and among some that mean harm.
//!
//! Idle clients have asked once what the server offers, so that each has its connection upstream
//! too. What they take is the difference in the proxy's resident memory, with a process that has
//! served one client before. How long the steady client waits for acknowledgements is told with
//! them and without them, in turns, and judged by whoever reads it.

mod connections;

use std::fmt::Write as _;
use std::fs;
use std::net::Ipv4Addr;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use rustix::process::{Resource, getrlimit};
use serde_json::{Value, json};

use self::connections::{Crowd, Hostile};
use crate::certificates::Certificates;
use crate::check::Check;
use crate::client::Library;
use crate::connection::Connection;
use crate::moldau::Moldau;
use crate::peers::Peers;
use crate::process::{free_ports, loopback};
use crate::steady::{Latency, Steady};

/// Most resident bytes that an idle connection may take.
const PLAIN_BYTES_MAX: u64 = 20 * 1024;

/// The same with TLS.
const TLS_BYTES_MAX: u64 = 60 * 1024;

/// Most resident bytes by which a hostile connection may let the proxy or the broker grow while it
/// is open: the room that is made on the word of a length field, and what a connection takes.
const HOSTILE_BYTES_MAX: u64 = 80 * 1024;

/// By how much a process may grow for other reasons.
const OTHER_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// The broker keeps so much of what the steady client writes in memory, MiB.
const TAIL_CACHE_MIB: u64 = 128;

/// Descriptors of the proxy that no client has.
const OWN_DESCRIPTORS: u64 = 200;

/// Records a second of the steady client.
const RATE: u32 = 1000;

/// How long what has to happen may take on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(60);

/// After how long connections that do nothing are closed where some mean harm. Members of groups
/// say something every 3 s.
const IDLE_TIMEOUT_MS: u64 = 6000;

const CONNECTIONS_OPEN: &str = "moldau_proxy_connections_open";

/// How much is done.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    /// Idle connections. Each takes two descriptors of the proxy, which may limit them.
    pub count: usize,
    /// How often the steady client runs without and with them.
    pub rounds: u32,
    /// How long it runs.
    pub window: Duration,
}

/// What came of it.
#[derive(Debug, Default)]
pub struct Outcome {
    /// What held and what did not.
    pub checks: Vec<Check>,
    /// The figures, for people.
    pub words: String,
}

/// A proxy before a broker, both without any past.
struct Gateway {
    broker: Moldau,
    proxy: Moldau,
    port: u16,
    authority: Option<String>,
}

/// Runs all parts, with files in `directory`.
pub fn run(binary: &Path, peers: &Peers, directory: &Path, size: Size) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    let descriptors = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    let most = usize::try_from(descriptors.saturating_sub(OWN_DESCRIPTORS) / 2)?;
    let size = Size { count: size.count.min(most), ..size };
    for is_tls in [false, true] {
        let directory = directory.join(if is_tls { "tls" } else { "plain" });
        fs::create_dir(&directory)?;
        let gateway = Gateway::start(binary, &directory, is_tls, json!({}))?;
        idle(&gateway, size, peers, &directory, &mut outcome)
            .with_context(|| gateway.proxy.tail())?;
        gateway.stop()?;
    }
    let directory = directory.join("hostile");
    fs::create_dir(&directory)?;
    let each = size.count / 5;
    let limits = json!({
        "connections_max_idle_ms": IDLE_TIMEOUT_MS,
        "max_connections_per_ip": each,
    });
    let gateway = Gateway::start(binary, &directory, false, limits)?;
    hostile(&gateway, each, peers, &directory, &mut outcome)
        .with_context(|| gateway.proxy.tail())?;
    gateway.stop()?;
    Ok(outcome)
}

/// The memory of idle connections, and what they are to a client that is busy.
fn idle(
    gateway: &Gateway,
    size: Size,
    peers: &Peers,
    directory: &Path,
    outcome: &mut Outcome,
) -> Result<()> {
    let (what, bytes_max) = match gateway.authority {
        None => ("without TLS", PLAIN_BYTES_MAX),
        Some(_) => ("with TLS", TLS_BYTES_MAX),
    };
    let mut run = 0;
    let mut steady = |outcome: &mut Outcome| {
        run += 1;
        gateway.steady(&format!("steady-{run}"), size.window, peers, directory, outcome)
    };
    // Whatever a process takes once, it takes for the first client.
    steady(outcome)?;
    for round in 0..size.rounds {
        let alone = steady(outcome)?;
        let before = gateway.proxy.process().resident_bytes()?;
        let crowd = gateway.crowd(size.count)?;
        let after = gateway.proxy.process().resident_bytes()?;
        if round == 0 {
            let each = after.saturating_sub(before) / size.count as u64;
            let descriptors = gateway.proxy.process().descriptors()?;
            writeln!(
                outcome.words,
                "{} idle connections {what}: {each} bytes each, from {} to {}, {descriptors} \
                 descriptors",
                size.count,
                mib(before),
                mib(after),
            )?;
            outcome.checks.push(Check::new(
                &format!("an idle connection {what} takes at most {} KiB", bytes_max / 1024),
                each <= bytes_max,
                &format!("{each} bytes"),
            ));
        }
        let among = steady(outcome)?;
        writeln!(
            outcome.words,
            "acknowledgements {what}: p50 {} us alone and {} us among them, p99 {} us and {} us, \
             {:.2} times",
            alone.p50.as_micros(),
            among.p50.as_micros(),
            alone.p99.as_micros(),
            among.p99.as_micros(),
            among.p99.as_secs_f64() / alone.p99.as_secs_f64(),
        )?;
        drop(crowd);
        gateway.proxy.await_metric(CONNECTIONS_OPEN, |open| open < size.count as u64 / 2)?;
    }
    Ok(())
}

/// Connections that send a byte at a time, frames that none may be, and far too many connections,
/// while a client goes on.
fn hostile(
    gateway: &Gateway,
    count: usize,
    peers: &Peers,
    directory: &Path,
    outcome: &mut Outcome,
) -> Result<()> {
    let connection = gateway.connection();
    let mut client = Steady::start(Library::Franz, "steady", RATE, &connection, peers, directory)?;
    let going = |client: &mut Steady| {
        let read = client.progress()?.read;
        client.await_progress(TIMEOUT, |progress| progress.read >= read + u64::from(RATE))
    };
    going(&mut client)?;
    let sizes = || -> Result<[u64; 2]> {
        Ok([gateway.proxy.process().resident_bytes()?, gateway.broker.process().resident_bytes()?])
    };
    let before = sizes()?;
    let mut peak = before;
    let mut look = |words: &mut String, what: &str| -> Result<()> {
        let [proxy, broker] = sizes()?;
        peak = [peak[0].max(proxy), peak[1].max(broker)];
        Ok(writeln!(words, "{what}: proxy {}, broker {}", mib(proxy), mib(broker))?)
    };
    look(&mut outcome.words, "before those that mean harm")?;

    let mut slow = Hostile::slow(gateway.port, count, Ipv4Addr::new(127, 0, 0, 11))?;
    for _ in 0..3 {
        slow.send_a_byte()?;
        going(&mut client)?;
    }
    look(&mut outcome.words, &format!("{count} connections that send a byte at a time"))?;
    let closed = slow.closed_within(TIMEOUT);
    let told = format!("{closed} of {count}");
    outcome.checks.push(Check::new("who sends byte by byte is closed", closed == count, &told));

    let oversized = Hostile::oversized(gateway.port, count, Ipv4Addr::new(127, 0, 0, 12))?;
    look(&mut outcome.words, &format!("{count} connections with frames that none may be"))?;
    let closed = oversized.closed_within(TIMEOUT);
    let told = format!("{closed} of {count}");
    outcome.checks.push(Check::new("who sends such a frame is closed", closed == count, &told));
    going(&mut client)?;

    let flood = count * 5;
    let refused = "moldau_proxy_refusals_total{cause=\"address_limit\"}";
    let kept = Hostile::flood(gateway.port, flood, Ipv4Addr::new(127, 0, 0, 13))?;
    look(&mut outcome.words, &format!("{flood} connections at once of one address"))?;
    going(&mut client)?;
    let over = (flood - count) as u64;
    gateway.proxy.await_metric(refused, |refused| refused >= over)?;
    let counted = gateway.proxy.metric(refused)?;
    outcome.checks.push(Check::new(
        "connections of an address are refused beyond its limit",
        counted == over,
        &format!("{counted}, not {over}"),
    ));
    drop(kept);
    going(&mut client)?;
    look(&mut outcome.words, "after them")?;

    let most = HOSTILE_BYTES_MAX * count as u64 + OTHER_BYTES_MAX;
    let processes = [("proxy", most), ("broker", most + TAIL_CACHE_MIB * 1024 * 1024)];
    for (place, (name, most)) in processes.into_iter().enumerate() {
        let grown = peak[place].saturating_sub(before[place]);
        let statement = format!("the {name} grows by less than {}", mib(most));
        outcome.checks.push(Check::new(&statement, grown < most, &mib(grown)));
    }
    outcome.checks.extend(client.finish()?.0);
    Ok(())
}

impl Gateway {
    fn start(binary: &Path, directory: &Path, is_tls: bool, limits: Value) -> Result<Self> {
        let port = free_ports(2)?;
        let config = json!({
            "log.dirs": directory.join("broker-data"),
            "listeners": format!("PLAINTEXT://{}", loopback(port)),
            "admin": loopback(port + 1),
            "tail_cache_mib": TAIL_CACHE_MIB,
        });
        let broker = Moldau::configured("broker", binary, &config, directory, port, port + 1)?;
        let port = free_ports(2)?;
        let mut cluster = json!({
            "name": "main",
            "bootstrap": loopback(port),
            "broker_port_start": 0,
            "upstream": [broker.bootstrap()],
            "limits": limits,
        });
        let mut authority = None;
        if is_tls {
            let certificates = Certificates::make(directory)?;
            authority = Some(certificates.authority());
            cluster["tls"] = json!({
                "certificate_file": certificates.server(),
                "key_file": certificates.server_key(),
            });
        }
        let config = json!({"admin": loopback(port + 1), "virtual_clusters": [cluster]});
        let proxy = Moldau::configured("proxy", binary, &config, directory, port, port + 1)?;
        Ok(Self { broker, proxy, port, authority })
    }

    fn connection(&self) -> Connection {
        Connection {
            authority: self.authority.clone(),
            ..Connection::plain(self.proxy.bootstrap())
        }
    }

    /// Runs a client for some time and tells how long its acknowledgements took.
    fn steady(
        &self,
        topic: &str,
        window: Duration,
        peers: &Peers,
        directory: &Path,
        outcome: &mut Outcome,
    ) -> Result<Latency> {
        let connection = self.connection();
        let mut client = Steady::start(Library::Franz, topic, RATE, &connection, peers, directory)?;
        let records = u64::try_from(window.as_millis())? * u64::from(RATE) / 1000;
        client.await_progress(TIMEOUT + window, |progress| progress.read >= records)?;
        let (checks, latency) = client.finish()?;
        outcome.checks.extend(checks);
        latency.context("the program tells how long its acknowledgements took")
    }

    /// Idle connections, each with its answer.
    fn crowd(&self, count: usize) -> Result<Crowd> {
        let authority = self.authority.as_deref().map(Path::new);
        let crowd = Crowd::open(self.port, count, authority)?;
        self.proxy.await_metric(CONNECTIONS_OPEN, |open| open >= count as u64)?;
        Ok(crowd)
    }

    fn stop(self) -> Result<()> {
        self.proxy.stop()?;
        self.broker.stop()
    }
}

fn mib(bytes: u64) -> String {
    format!("{:.1} MiB", bytes as f64 / 1048576.0)
}
