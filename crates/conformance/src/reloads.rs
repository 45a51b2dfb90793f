//! Steady clients of a proxy whose filters and certificates change again and again.
//!
//! Configuration, certificate and key lie behind one symbolic link, which is moved as a whole, as
//! Kubernetes does with its volumes. A reload counts as in force once a handshake shows the new
//! certificate and every client has read a record with the header that the new filter adds.

use std::fmt::Write as _;
use std::fs;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use rustls::ClientConnection;
use rustls::pki_types::{CertificateDer, ServerName};
use serde_json::json;

use crate::certificates::{ServerIssuer, without_resumption};
use crate::check::Check;
use crate::connection::{Connection, LIBRARIES};
use crate::moldau::Moldau;
use crate::peers::Peers;
use crate::process::{free_ports, loopback};
use crate::steady::{Progress, Steady};

/// How long a reload, or clients at their start, may take on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(60);

/// How long a handshake may take.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// The maximum is found in this time, after as long for the clients to get going.
const MAXIMUM_WINDOW: Duration = Duration::from_secs(5);

/// The load in percent of the maximum.
const LOAD_PERCENT: u64 = 80;

/// Seconds of its load that a client reads before its connections are counted: by then it has
/// found its group, and librdkafka has told its statistics.
const SETTLING_S: u32 = 3;

/// What is behind the link at each moment.
const LINK: &str = "current";

const CONFIG: &str = "proxy.yaml";

/// What came of it.
#[derive(Debug)]
pub struct Outcome {
    /// What held and what did not.
    pub checks: Vec<Check>,
    /// The load and how long reloads took, for people.
    pub words: String,
}

/// A proxy before a broker, and the files that it reads.
struct Gateway {
    broker: Moldau,
    proxy: Moldau,
    files: Files,
    port: u16,
}

struct Files {
    directory: PathBuf,
    issuer: ServerIssuer,
    upstream: String,
    port: u16,
}

/// Reloads `count` times under a load of `rate` records a second and client; without a rate, under
/// 80 % of what the clients can do.
pub fn run(
    binary: &Path,
    peers: &Peers,
    directory: &Path,
    count: u32,
    rate: Option<u32>,
) -> Result<Outcome> {
    let gateway = Gateway::start(binary, directory)?;
    let mut words = String::new();
    let rates = match rate {
        Some(rate) => vec![rate; LIBRARIES.len()],
        None => {
            let maxima = maximum(&gateway, peers, directory)?;
            writeln!(words, "maximum: {} records a second", told(&maxima))?;
            let part = |maximum: &u64| u32::try_from(maximum * LOAD_PERCENT / 100);
            maxima.iter().map(part).collect::<Result<_, _>>()?
        }
    };
    let load: Vec<u64> = rates.iter().map(|rate| u64::from(*rate)).collect();
    writeln!(words, "load: {} records of 1,000 bytes a second", told(&load))?;

    let mut clients = Vec::new();
    for (library, rate) in LIBRARIES.into_iter().zip(&rates) {
        let topic = format!("{}-steady", library.name());
        let connection = gateway.connection();
        clients.push(Steady::start(library, &topic, *rate, &connection, peers, directory)?);
    }
    let reloaded = reload_all(&gateway, &mut clients, &rates, count, &mut words);
    let mut checks = match reloaded {
        Ok(checks) => checks,
        Err(error) => bail!("{error:#}\n{}", gateway.proxy.tail()),
    };
    for client in clients {
        let name = client.name().to_owned();
        for check in client.finish()?.0 {
            let statement = format!("{name}: {}", check.name);
            checks.push(Check::new(&statement, check.ok, &check.detail));
        }
    }
    gateway.proxy.stop()?;
    gateway.broker.stop()?;
    Ok(Outcome { checks, words })
}

/// What each client reads in a second while all of them write as fast as they can.
fn maximum(gateway: &Gateway, peers: &Peers, directory: &Path) -> Result<Vec<u64>> {
    let mut clients = Vec::new();
    for library in LIBRARIES {
        let topic = format!("{}-maximum", library.name());
        let connection = gateway.connection();
        clients.push(Steady::start(library, &topic, 0, &connection, peers, directory)?);
    }
    for client in &mut clients {
        client.await_progress(TIMEOUT, |progress| progress.read > 0)?;
    }
    let mut readings = Vec::new();
    for _ in 0..3 {
        let until = Instant::now() + MAXIMUM_WINDOW;
        for client in &mut clients {
            client.await_progress(TIMEOUT, |_| Instant::now() >= until)?;
        }
        let reading = clients.iter().map(Steady::progress).collect::<Result<Vec<_>>>()?;
        readings.push((Instant::now(), reading));
    }
    let [_, (begin, first), (end, last)] = &readings[..] else { bail!("three readings") };
    let ms = u64::try_from((*end - *begin).as_millis())?.max(1);
    let rate = |(first, last): (&Progress, &Progress)| (last.read - first.read) * 1000 / ms;
    let rates = first.iter().zip(last).map(rate).collect();
    for client in clients {
        client.finish()?;
    }
    // What these clients leave behind is not to be taken for what the others have.
    gateway.proxy.await_metric(CONNECTIONS_OPEN, |open| open == 0)?;
    Ok(rates)
}

/// Reloads one after the other, each once the one before is in force.
fn reload_all(
    gateway: &Gateway,
    clients: &mut [Steady],
    rates: &[u32],
    count: u32,
    words: &mut String,
) -> Result<Vec<Check>> {
    for (client, rate) in clients.iter_mut().zip(rates) {
        let settled = u64::from(*rate) * u64::from(SETTLING_S);
        client.await_progress(TIMEOUT, |progress| progress.read >= settled)?;
    }
    let made_before = connections(clients)?;
    let open_before = gateway.proxy.metric(CONNECTIONS_OPEN)?;
    let accepted_before = gateway.proxy.metric(CONNECTIONS)?;

    let started = Instant::now();
    let mut slowest = Duration::ZERO;
    let mut handshakes = 0;
    for generation in 1..=count {
        let begun = Instant::now();
        handshakes += gateway.reload(generation, clients)?;
        slowest = slowest.max(begun.elapsed());
    }
    let took = started.elapsed();
    writeln!(words, "{count} reloads in {:.1} s", took.as_secs_f64())?;
    writeln!(words, "slowest until all clients saw it: {} ms", slowest.as_millis())?;

    let made = connections(clients)?;
    let accepted = gateway.proxy.metric(CONNECTIONS)? - accepted_before;
    let open = gateway.proxy.metric(CONNECTIONS_OPEN)?;
    let failures = gateway.proxy.metric("moldau_proxy_reload_failures_total")?;
    let reloads = gateway.proxy.metric("moldau_proxy_reloads_total")?;
    let equal = |name: &str, found: u64, wanted: u64| {
        Check::new(name, found == wanted, &format!("{found}, not {wanted}"))
    };
    let opened = format!("{open}, before {open_before}");
    let reconnects = format!("{made:?} connections, before {made_before:?}");
    Ok(vec![
        Check::new("no client has made another connection", made == made_before, &reconnects),
        equal("the proxy accepted none but those that look", accepted, handshakes),
        Check::new("no more connections are open than before", open <= open_before, &opened),
        equal("no reload is refused", failures, 0),
        Check::new("each reload is counted", reloads >= u64::from(count), &reloads.to_string()),
    ])
}

/// How many connections each client has made.
fn connections(clients: &[Steady]) -> Result<Vec<u64>> {
    clients.iter().map(|client| Ok(client.progress()?.connections)).collect()
}

const CONNECTIONS: &str = "moldau_proxy_connections_total";
const CONNECTIONS_OPEN: &str = "moldau_proxy_connections_open";

impl Gateway {
    fn start(binary: &Path, directory: &Path) -> Result<Self> {
        let broker = Moldau::broker(binary, directory)?;
        let port = free_ports(2)?;
        let issuer = ServerIssuer::make(&directory.join("authority.pem"))?;
        let (directory, upstream) = (directory.to_owned(), broker.bootstrap().to_owned());
        let files = Files { directory, issuer, upstream, port };
        files.replace(0)?;
        let config = files.directory.join(LINK).join(CONFIG);
        let proxy =
            Moldau::with_file("proxy", binary, &config, &files.directory, port, files.admin())?;
        Ok(Self { broker, proxy, files, port })
    }

    /// How clients connect.
    fn connection(&self) -> Connection {
        Connection {
            authority: Some(self.files.authority().display().to_string()),
            ..Connection::plain(self.proxy.bootstrap())
        }
    }

    /// Changes everything and waits until it is in force; how many handshakes that took.
    fn reload(&self, generation: u32, clients: &mut [Steady]) -> Result<u64> {
        let certificate = self.files.replace(generation)?;
        self.proxy.process().hang_up()?;
        let deadline = Instant::now() + TIMEOUT;
        let mut handshakes = 1;
        while self.shown_certificate()? != certificate {
            ensure!(Instant::now() < deadline, "certificate {generation} is not in force");
            handshakes += 1;
        }
        let generation = generation.to_string();
        for client in clients {
            client
                .await_progress(TIMEOUT, |progress| progress.generation == generation)
                .with_context(|| format!("{}: filter {generation}", client.name()))?;
        }
        Ok(handshakes)
    }

    /// The certificate that a client is shown that connects at this moment.
    fn shown_certificate(&self) -> Result<CertificateDer<'static>> {
        let config = without_resumption(&self.files.authority())?;
        let host = ServerName::try_from("localhost")?;
        let mut handshake = ClientConnection::new(config, host)?;
        let mut stream = TcpStream::connect(loopback(self.port))?;
        stream.set_read_timeout(Some(HANDSHAKE_TIMEOUT))?;
        while handshake.is_handshaking() {
            handshake.complete_io(&mut stream)?;
        }
        let shown = handshake.peer_certificates().and_then(<[_]>::first);
        Ok(shown.context("a server shows its certificate")?.clone().into_owned())
    }
}

impl Files {
    fn authority(&self) -> PathBuf {
        self.directory.join("authority.pem")
    }

    fn admin(&self) -> u16 {
        self.port + 1
    }

    /// Puts others in the place of all files at once. Returns their certificate.
    fn replace(&self, generation: u32) -> Result<CertificateDer<'static>> {
        let place = self.directory.join(format!("generation-{generation}"));
        fs::create_dir(&place)?;
        let certificate = place.join("server.pem");
        let certificate = self.issuer.issue(&certificate, &place.join("server.key"))?;
        fs::write(place.join(CONFIG), self.config(generation).to_string())?;
        let link = self.directory.join("next");
        std::os::unix::fs::symlink(&place, &link)?;
        fs::rename(&link, self.directory.join(LINK))?;
        Ok(certificate)
    }

    fn config(&self, generation: u32) -> serde_json::Value {
        let current = self.directory.join(LINK);
        let header = json!({"key": "generation", "value": {"static": generation.to_string()}});
        json!({
            "admin": loopback(self.admin()),
            "virtual_clusters": [{
                "name": "main",
                "bootstrap": loopback(self.port),
                "broker_port_start": 0,
                "tls": {
                    "certificate_file": current.join("server.pem"),
                    "key_file": current.join("server.key"),
                },
                "upstream": [self.upstream],
                "filters": [{"header": {"rules": [
                    {"topics": ["*"], "on": "produce", "add": [header]},
                ]}}],
            }],
        })
    }
}

/// Numbers of each library.
fn told(numbers: &[u64]) -> String {
    let of_library = LIBRARIES.iter().zip(numbers);
    let words = of_library.map(|(library, number)| format!("{} {number}", library.name()));
    words.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use rustls::pki_types::pem::PemObject;

    use super::*;

    #[test]
    fn all_files_are_replaced_at_once() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().to_owned();
        let issuer = ServerIssuer::make(&path.join("authority.pem")).unwrap();
        let files = Files { directory: path, issuer, upstream: "127.0.0.1:9".to_owned(), port: 1 };
        let [first, second] = [0, 1].map(|generation| files.replace(generation).unwrap());
        assert_ne!(first, second);
        let current = files.directory.join(LINK);
        let shown = CertificateDer::from_pem_file(current.join("server.pem")).unwrap();
        assert_eq!(shown, second);
        let config = fs::read_to_string(current.join(CONFIG)).unwrap();
        assert!(config.contains("\"static\":\"1\""), "{config}");
    }
}
