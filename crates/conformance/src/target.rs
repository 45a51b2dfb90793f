//! What the clients connect to: a server, or a proxy before one, in processes of their own.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;
use clap::ValueEnum;
use serde_json::json;

use crate::certificates::Certificates;
use crate::cluster::{BROKERS, Cluster};
use crate::kafka::Kafka;
use crate::moldau::Moldau;
use crate::peers::Peers;
use crate::process::{free_ports, loopback};

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
    /// The proxy before the broker, which tells brokers apart by the host names of TLS.
    Sni,
    /// Three brokers of a cluster, directly.
    Cluster,
    /// The proxy before a cluster.
    ClusterProxy,
}

impl Kind {
    /// The word for it on the command line and in names of topics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Kafka => "kafka",
            Self::Broker => "broker",
            Self::Proxy => "proxy",
            Self::KafkaProxy => "kafka-proxy",
            Self::Sni => "sni",
            Self::Cluster => "cluster",
            Self::ClusterProxy => "cluster-proxy",
        }
    }

    /// Whether the answers come from our broker, so that its list of APIs is to be exact.
    pub fn is_ours(self) -> bool {
        matches!(self, Self::Broker | Self::Proxy | Self::Sni) || self.is_cluster()
    }

    /// How many brokers clients find.
    pub fn brokers(self) -> usize {
        if self.is_cluster() { BROKERS.len() } else { 1 }
    }

    /// Whether the answers come from brokers without disks of their own.
    pub fn is_cluster(self) -> bool {
        matches!(self, Self::Cluster | Self::ClusterProxy)
    }
}

/// What a client has to know to connect by TLS to hosts that no name server knows.
#[derive(Debug)]
pub struct Hosts {
    authority: PathBuf,
    /// Lines of `/etc/hosts`.
    file: PathBuf,
}

impl Hosts {
    /// The same command, in a mount namespace of its own in which the hosts are known.
    pub fn known_to(&self, command: &Command) -> Command {
        let mut wrapped = Command::new("unshare");
        wrapped.args(["--map-root-user", "--mount", "sh", "-c"]);
        wrapped.arg("mount --bind \"$0\" /etc/hosts && exec \"$@\"").arg(&self.file);
        wrapped.arg(command.get_program()).args(command.get_args());
        for (name, value) in command.get_envs() {
            if let Some(value) = value {
                wrapped.env(name, value);
            }
        }
        wrapped.env("CONFORMANCE_AUTHORITY", &self.authority);
        wrapped
    }
}

/// A running target; dropped, all its processes are stopped, the proxy first.
#[derive(Debug)]
pub struct Target {
    kind: Kind,
    proxy: Option<Moldau>,
    upstream: Upstream,
    bootstrap: String,
    hosts: Option<Hosts>,
}

/// Hosts of the gateway, for which the server's certificate is good.
const BOOTSTRAP_HOST: &str = "bootstrap.gateway.test";
const BROKER_HOST: &str = "broker-$(nodeId).gateway.test";

/// Brokers have ids from 0 to this.
const NODE_ID_MAX: u16 = 3;

#[derive(Debug)]
enum Upstream {
    Kafka(Kafka),
    Broker(Moldau),
    Cluster(Cluster),
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
            Kind::Broker | Kind::Proxy | Kind::Sni => {
                let broker = Moldau::broker(binary, directory)?;
                let address = broker.bootstrap().to_owned();
                (Upstream::Broker(broker), address)
            }
            Kind::Cluster | Kind::ClusterProxy => {
                let cluster = Cluster::start(binary, directory)?;
                let addresses = cluster.bootstrap();
                (Upstream::Cluster(cluster), addresses)
            }
        };
        if kind == Kind::Sni {
            return Self::by_host(upstream, &address, binary, directory);
        }
        let proxy = match kind {
            Kind::Proxy | Kind::KafkaProxy | Kind::ClusterProxy => {
                Some(Moldau::proxy(binary, directory, &address)?)
            }
            Kind::Kafka | Kind::Broker | Kind::Sni | Kind::Cluster => None,
        };
        let bootstrap = proxy.as_ref().map_or(address, |proxy| proxy.bootstrap().to_owned());
        Ok(Self { kind, proxy, upstream, bootstrap, hosts: None })
    }

    /// A gateway by host names before `upstream` at `address`.
    fn by_host(upstream: Upstream, address: &str, binary: &Path, directory: &Path) -> Result<Self> {
        let certificates = Certificates::make(directory)?;
        let first = free_ports(2)?;
        let (port, admin) = (first, first + 1);
        let config = json!({
            "admin": loopback(admin),
            "virtual_clusters": [{
                "name": "main",
                "gateway": {"sni": {
                    "listen": loopback(port),
                    "bootstrap_host": BOOTSTRAP_HOST,
                    "broker_host": BROKER_HOST,
                }},
                "tls": {
                    "certificate_file": certificates.server(),
                    "key_file": certificates.server_key(),
                },
                "upstream": [address],
            }],
        });
        let proxy = Moldau::configured("proxy", binary, &config, directory, port, admin)?;
        let mut lines = format!("127.0.0.1 localhost {BOOTSTRAP_HOST}");
        for node in 0..=NODE_ID_MAX {
            write!(lines, " {}", BROKER_HOST.replace("$(nodeId)", &node.to_string()))?;
        }
        let file = directory.join("hosts");
        fs::write(&file, lines + "\n")?;
        let hosts = Hosts { authority: certificates.authority().into(), file };
        let bootstrap = format!("{BOOTSTRAP_HOST}:{port}");
        Ok(Self { kind: Kind::Sni, proxy: Some(proxy), upstream, bootstrap, hosts: Some(hosts) })
    }

    /// A server that runs already at `bootstrap` and is taken for one of `kind`.
    pub fn external(kind: Kind, bootstrap: &str) -> Self {
        let (upstream, bootstrap) = (Upstream::External, bootstrap.to_owned());
        Self { kind, proxy: None, upstream, bootstrap, hosts: None }
    }

    /// Which server this is.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The address that clients connect to, or those of all brokers.
    pub fn bootstrap(&self) -> &str {
        &self.bootstrap
    }

    /// The hosts of a gateway that goes by them.
    pub fn hosts(&self) -> Option<&Hosts> {
        self.hosts.as_ref()
    }

    /// Ends all processes with SIGTERM; an error where one of ours does not exit with 0.
    pub fn stop(self) -> Result<()> {
        self.proxy.map_or(Ok(()), Moldau::stop)?;
        match self.upstream {
            Upstream::Broker(broker) => broker.stop(),
            Upstream::Cluster(cluster) => cluster.stop(),
            Upstream::Kafka(_) | Upstream::External => Ok(()),
        }
    }

    /// The last lines that the servers wrote, for a report of failures.
    pub fn tail(&self) -> String {
        let upstream = match &self.upstream {
            Upstream::Kafka(kafka) => kafka.tail(),
            Upstream::Broker(broker) => broker.tail(),
            Upstream::Cluster(cluster) => cluster.tail(),
            Upstream::External => String::new(),
        };
        let proxy = self.proxy.as_ref().map_or(String::new(), |proxy| proxy.tail());
        format!("{upstream}\n{proxy}").trim().to_owned()
    }
}
