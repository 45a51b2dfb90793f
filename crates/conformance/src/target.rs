//! What the clients connect to: a server, or a proxy before one, in processes of their own.

use std::path::Path;

use anyhow::Result;
use clap::ValueEnum;

use crate::kafka::Kafka;
use crate::moldau::Moldau;
use crate::peers::Peers;

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
                let address = broker.bootstrap().to_owned();
                (Upstream::Broker(broker), address)
            }
        };
        let proxy = match kind {
            Kind::Kafka | Kind::Broker => None,
            Kind::Proxy | Kind::KafkaProxy => Some(Moldau::proxy(binary, directory, &address)?),
        };
        let bootstrap = proxy.as_ref().map_or(address, |proxy| proxy.bootstrap().to_owned());
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
            Upstream::Broker(broker) => broker.tail(),
            Upstream::External => String::new(),
        };
        let proxy = self.proxy.as_ref().map_or(String::new(), |proxy| proxy.tail());
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
