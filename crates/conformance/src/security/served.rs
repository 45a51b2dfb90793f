//! The broker, and the proxy before a broker that asks nothing, each with five secured listeners.

use std::fs;
use std::path::Path;

use anyhow::{Result, ensure};
use clap::ValueEnum;
use serde_json::{Value, json};

use super::renewal::SESSION;
use super::{Issuer, Listener, PASSWORD, USER};
use crate::certificates::Certificates;
use crate::moldau::Moldau;
use crate::peers::Peers;
use crate::process::{Process, free_ports, loopback};

/// What terminates the security of clients.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub enum Gateway {
    /// The broker itself.
    Broker,
    /// The proxy, and the broker behind it knows nobody.
    Proxy,
}

/// A running server with its listeners.
#[derive(Debug)]
pub struct Served {
    gateway: Gateway,
    /// Each listener's port, in the order of [`LISTENERS`].
    ports: Vec<u16>,
    /// The one that clients come to first.
    processes: Vec<Moldau>,
}

const LISTENERS: [Listener; 5] =
    [Listener::Tls, Listener::MutualTls, Listener::SaslTls, Listener::Sasl, Listener::ShortSasl];

const MECHANISMS: [&str; 4] = ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"];

/// Ports between the addresses of virtual clusters; where there are fewer, the proxy warns.
const PORTS_OF_CLUSTER: u16 = 17;

/// How long Kafka's tool may take.
const TOOL_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(60);

impl Served {
    /// Starts it with its files in `directory`.
    pub fn start(
        gateway: Gateway,
        certificates: &Certificates,
        issuer: &Issuer,
        binary: &Path,
        peers: &Peers,
        directory: &Path,
    ) -> Result<Self> {
        match gateway {
            Gateway::Broker => Self::broker(certificates, issuer, binary, peers, directory),
            Gateway::Proxy => Self::proxy(certificates, issuer, binary, directory),
        }
    }

    /// Its name in results.
    pub fn name(&self) -> &'static str {
        self.gateway.name()
    }

    /// Where clients connect to a listener.
    pub fn address(&self, listener: Listener) -> String {
        let place = LISTENERS.iter().position(|other| *other == listener);
        let port = place.and_then(|place| self.ports.get(place)).copied().unwrap_or_default();
        loopback(port).to_string()
    }

    /// The last lines of its output.
    pub fn tail(&self) -> String {
        self.processes.iter().map(Moldau::tail).collect::<Vec<_>>().join("\n")
    }

    /// Ends it; an error where it does not end well.
    pub fn stop(self) -> Result<()> {
        self.processes.into_iter().try_for_each(Moldau::stop)
    }

    fn broker(
        certificates: &Certificates,
        issuer: &Issuer,
        binary: &Path,
        peers: &Peers,
        directory: &Path,
    ) -> Result<Self> {
        let first = free_ports(7)?;
        let (plain, admin) = (first, first + 1);
        let ports: Vec<u16> = (first + 2..first + 7).collect();
        let users = directory.join("plain-users");
        fs::write(&users, format!("{USER}:{PASSWORD}\n"))?;
        let mut listeners = vec![json!({"name": "PLAIN", "address": loopback(plain)})];
        for (listener, port) in LISTENERS.iter().zip(&ports) {
            let mut settings = listener.security(certificates, issuer, &users);
            settings["name"] = json!(format!("{listener:?}"));
            settings["address"] = json!(loopback(*port));
            listeners.push(settings);
        }
        let config = json!({
            "log.dirs": directory.join("data"),
            "admin": loopback(admin),
            "listeners": listeners,
        });
        let broker = Moldau::configured("broker", binary, &config, directory, plain, admin)?;
        add_scram_users(&loopback(plain).to_string(), peers, directory)?;
        Ok(Self { gateway: Gateway::Broker, ports, processes: vec![broker] })
    }

    fn proxy(
        certificates: &Certificates,
        issuer: &Issuer,
        binary: &Path,
        directory: &Path,
    ) -> Result<Self> {
        let broker = Moldau::broker(binary, directory)?;
        let first = free_ports(1 + PORTS_OF_CLUSTER * 5)?;
        let users = directory.join("users");
        // Of a password in clear the proxy makes whatever SCRAM needs.
        fs::write(&users, format!("{USER}:{PASSWORD}\n"))?;
        let ports: Vec<u16> = (0..5).map(|place| first + 1 + place * PORTS_OF_CLUSTER).collect();
        let mut clusters = Vec::new();
        for (listener, port) in LISTENERS.iter().zip(&ports) {
            let mut settings = listener.security(certificates, issuer, &users);
            if let Some(sasl) = settings.get_mut("sasl") {
                *sasl = json!({"terminate": sasl.take()});
            }
            settings["name"] = json!(format!("{listener:?}"));
            settings["bootstrap"] = json!(loopback(*port));
            settings["broker_port_start"] = json!(port + 1);
            settings["upstream"] = json!([broker.bootstrap()]);
            clusters.push(settings);
        }
        let config = json!({"admin": loopback(first), "virtual_clusters": clusters});
        let port = ports.first().copied().unwrap_or_default();
        let proxy = Moldau::configured("proxy", binary, &config, directory, port, first)?;
        Ok(Self { gateway: Gateway::Proxy, ports, processes: vec![proxy, broker] })
    }
}

impl Gateway {
    /// Its name in results.
    pub fn name(self) -> &'static str {
        match self {
            Self::Broker => "broker",
            Self::Proxy => "proxy",
        }
    }
}

impl Listener {
    fn security(self, certificates: &Certificates, issuer: &Issuer, users: &Path) -> Value {
        let identity = json!({
            "certificate_file": certificates.server(),
            "key_file": certificates.server_key(),
        });
        let sasl = json!({
            "mechanisms": MECHANISMS,
            "users_file": users,
            "oauthbearer": issuer.settings(),
        });
        match self {
            Self::Tls => json!({"tls": identity}),
            Self::MutualTls => {
                let mut mutual = identity;
                mutual["trust_file"] = json!(certificates.authority());
                mutual["client_authentication"] = json!("required");
                json!({"tls": mutual})
            }
            Self::SaslTls => json!({"tls": identity, "sasl": sasl}),
            Self::Sasl => json!({"sasl": sasl}),
            Self::ShortSasl => {
                let mut short = sasl;
                short["max_reauthentication_ms"] = json!(SESSION.as_millis());
                json!({"sasl": short})
            }
        }
    }
}

/// The broker keeps SCRAM users itself; Kafka's own tool makes them.
fn add_scram_users(bootstrap: &str, peers: &Peers, directory: &Path) -> Result<()> {
    // Kafka refuses to change two credentials of a user in one request.
    for mechanism in ["SCRAM-SHA-256", "SCRAM-SHA-512"] {
        let mut tool = peers.java_tool("org.apache.kafka.tools.ConfigCommand")?;
        let credential = format!("{mechanism}=[iterations=4096,password={PASSWORD}]");
        tool.args(["--bootstrap-server", bootstrap, "--alter", "--entity-type", "users"]);
        tool.args(["--entity-name", USER, "--add-config", &credential]);
        let finished = Process::run(tool, mechanism, directory, "", TOOL_TIMEOUT)?;
        ensure!(finished.success(), "no user by {mechanism}: {}", finished.explanation());
    }
    Ok(())
}
