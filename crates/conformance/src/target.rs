//! What the clients connect to: a server, or a proxy before one, in processes of their own.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use clap::ValueEnum;

use crate::kafka::Kafka;
use crate::peers::Peers;
use crate::process::{Process, free_ports, loopback};

/// Our processes start in milliseconds; the rest is for a busy machine.
const START_TIMEOUT: Duration = Duration::from_secs(20);

/// Ports that a proxy may use for the brokers of its cluster; the clusters here have one.
const BROKER_PORTS: u16 = 4;

/// Which server is under test.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd, ValueEnum)]
pub enum Kind {
    /// Apache Kafka: proves the clients' checks themselves.
    Kafka,
    /// The broker, directly.
    Broker,
    /// The proxy before the broker.
    Proxy,
    /// The proxy before Apache Kafka.
    KafkaProxy,
}

impl Kind {
    /// The word for it on the command line and in names of topics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Kafka => "kafka",
            Self::Broker => "broker",
            Self::Proxy => "proxy",
            Self::KafkaProxy => "kafka-proxy",
        }
    }

    /// Whether the answers come from our broker, so that its list of APIs is to be exact.
    pub fn is_ours(self) -> bool {
        matches!(self, Self::Broker | Self::Proxy)
    }
}

/// A running target; dropped, all its processes are stopped, the proxy first.
#[derive(Debug)]
pub struct Target {
    kind: Kind,
    proxy: Option<Moldau>,
    upstream: Upstream,
    bootstrap: String,
}

#[derive(Debug)]
enum Upstream {
    Kafka(Kafka),
    Broker(Moldau),
    /// Started by somebody else, at the address given.
    External,
}

impl Target {
    /// Starts a target with its files in `directory`; `binary` is the `moldau` binary.
    pub fn start(kind: Kind, binary: &Path, peers: &Peers, directory: &Path) -> Result<Self> {
        let (upstream, address) = match kind {
            Kind::Kafka | Kind::KafkaProxy => {
                let kafka = Kafka::start(peers, directory)?;
                let address = kafka.bootstrap().to_owned();
                (Upstream::Kafka(kafka), address)
            }
            Kind::Broker | Kind::Proxy => {
                let broker = Moldau::broker(binary, directory)?;
                let address = broker.bootstrap.clone();
                (Upstream::Broker(broker), address)
            }
        };
        let proxy = match kind {
            Kind::Kafka | Kind::Broker => None,
            Kind::Proxy | Kind::KafkaProxy => Some(Moldau::proxy(binary, directory, &address)?),
        };
        let bootstrap = proxy.as_ref().map_or(address, |proxy| proxy.bootstrap.clone());
        Ok(Self { kind, proxy, upstream, bootstrap })
    }

    /// A server that runs already at `bootstrap` and is taken for one of `kind`.
    pub fn external(kind: Kind, bootstrap: &str) -> Self {
        Self { kind, proxy: None, upstream: Upstream::External, bootstrap: bootstrap.to_owned() }
    }

    /// Which server this is.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The address that clients connect to.
    pub fn bootstrap(&self) -> &str {
        &self.bootstrap
    }

    /// Ends all processes with SIGTERM; an error where one of ours does not exit with 0.
    pub fn stop(self) -> Result<()> {
        for ours in [self.proxy, self.upstream.into_ours()].into_iter().flatten() {
            ours.stop()?;
        }
        Ok(())
    }

    /// The last lines that the servers wrote, for a report of failures.
    pub fn tail(&self) -> String {
        let upstream = match &self.upstream {
            Upstream::Kafka(kafka) => kafka.tail(),
            Upstream::Broker(broker) => broker.process.tail(),
            Upstream::External => String::new(),
        };
        let proxy = self.proxy.as_ref().map_or(String::new(), |proxy| proxy.process.tail());
        format!("{upstream}\n{proxy}").trim().to_owned()
    }
}

impl Upstream {
    fn into_ours(self) -> Option<Moldau> {
        match self {
            Self::Broker(broker) => Some(broker),
            Self::Kafka(_) | Self::External => None,
        }
    }
}

/// A process of the `moldau` binary that answers on an admin port.
#[derive(Debug)]
struct Moldau {
    process: Process,
    name: &'static str,
    bootstrap: String,
}

impl Moldau {
    fn broker(binary: &Path, directory: &Path) -> Result<Self> {
        let port = free_ports(2)?;
        let mut command = Command::new(binary);
        command
            .args(["broker", "--data-dir"])
            .arg(directory.join("broker-data"))
            .args(["--listen", &loopback(port).to_string()])
            .args(["--admin", &loopback(port + 1).to_string()]);
        Self::start("broker", command, directory, port, port + 1)
    }

    fn proxy(binary: &Path, directory: &Path, upstream: &str) -> Result<Self> {
        let port = free_ports(2 + BROKER_PORTS)?;
        let file = directory.join("proxy.yaml");
        fs::write(&file, proxy_config(port, upstream))?;
        let mut command = Command::new(binary);
        command.args(["proxy", "--config"]).arg(file);
        Self::start("proxy", command, directory, port, port + 1)
    }

    fn start(
        name: &'static str,
        command: Command,
        directory: &Path,
        port: u16,
        admin: u16,
    ) -> Result<Self> {
        let mut process = Process::spawn(command, name, directory)?;
        process.await_ready(START_TIMEOUT, |_| is_ready(admin))?;
        Ok(Self { process, name, bootstrap: loopback(port).to_string() })
    }

    fn stop(mut self) -> Result<()> {
        let status = self.process.stop()?;
        ensure!(
            status.success(),
            "the {} ended with {status} after SIGTERM:\n{}",
            self.name,
            self.process.tail()
        );
        Ok(())
    }
}

fn proxy_config(port: u16, upstream: &str) -> String {
    format!(
        "admin: {}
virtual_clusters:
  - name: main
    bootstrap: {}
    upstream: [\"{upstream}\"]
    broker_port_start: {}
",
        loopback(port + 1),
        loopback(port),
        port + 2
    )
}

/// Whether `GET /readyz` on the admin port answers 200.
fn is_ready(port: u16) -> bool {
    let ask = || -> std::io::Result<String> {
        let mut stream = TcpStream::connect(loopback(port))?;
        stream.set_read_timeout(Some(Duration::from_secs(1)))?;
        stream
            .write_all(b"GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer)
    };
    ask().is_ok_and(|answer| answer.starts_with("HTTP/1.1 200"))
}

/// The `moldau` binary: the one given, or the release build, or the debug build.
pub fn find_binary(given: Option<PathBuf>) -> Result<PathBuf> {
    if let Some(binary) = given {
        ensure!(binary.is_file(), "there is no binary {}", binary.display());
        return Ok(binary);
    }
    let own = std::env::current_exe().context("the path of this program is unknown")?;
    let target = own.ancestors().nth(2).context("this program is not in a target directory")?;
    for profile in ["release", "debug"] {
        let binary = target.join(profile).join("moldau");
        if binary.is_file() {
            return Ok(binary);
        }
    }
    bail!("no moldau binary in {}: run `cargo build --release` first", target.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_that_nobody_listens_on_is_not_ready() {
        assert!(!is_ready(free_ports(1).unwrap()));
    }

    #[test]
    fn the_proxy_gets_distinct_ports() {
        let config = proxy_config(1000, "127.0.0.1:9092");
        for port in ["admin: 127.0.0.1:1001", "bootstrap: 127.0.0.1:1000", "start: 1002"] {
            assert!(config.contains(port), "{config}");
        }
    }
}
