//! The proxy's configuration file.
//!
//! ```yaml
//! admin: 127.0.0.1:9645
//! virtual_clusters:
//!   - name: main
//!     bootstrap: 127.0.0.1:19092
//!     upstream: [127.0.0.1:9092]
//!     broker_port_start: 19093
//! ```

use std::collections::HashSet;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use moldau_filters::MultiTenant;
use moldau_net::ListenerLimits;
use moldau_net::proxy_protocol::Mode;
use moldau_proxy::{Config, Gateway, Limits, MEMORY_BYTES_MIN, Sasl, Security, VirtualCluster};
use serde::Deserialize;

use super::admin::{self, AdminPort};
use super::filters::{self, FilterEntry, multi_tenant};
use super::gateway::{self, GatewayKeys};
use super::problem::At;
use super::{Problem, Sources, limits, ports, sasl, tls, traces, upstream};

/// The keys of the file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct File {
    /// Where the admin pages are, or a mapping with that and more. Default `127.0.0.1:9645`.
    #[serde(default = "admin::default")]
    admin: At<AdminPort>,
    /// Bytes of memory for requests and answers. Default: five eighths of the machine's memory, or
    /// of its control group's.
    memory_max_bytes: Option<At<usize>>,
    /// Threads that serve connections. Default: one for each core.
    network_threads: Option<At<usize>>,
    /// Where traces of requests go. Default: nothing is traced.
    traces: Option<traces::Keys>,
    /// Milliseconds that requests in flight may take after SIGTERM. Default 10000.
    #[serde(default = "default_drain_timeout_ms")]
    drain_timeout_ms: u64,
    /// What clients see. At least one.
    virtual_clusters: At<Vec<Cluster>>,
}

/// One virtual cluster.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Cluster {
    /// Names the cluster in logs and metrics.
    name: At<String>,
    /// Where clients connect first. Short for `gateway: {ports: {bootstrap: ...}}`.
    bootstrap: Option<At<SocketAddr>>,
    /// Host for clients. Short for the key of `ports`.
    advertised_host: Option<At<String>>,
    /// Brokers get ports from here on. Short for the key of `ports`.
    broker_port_start: Option<At<u16>>,
    /// Where clients connect, in place of the three before.
    gateway: Option<At<GatewayKeys>>,
    /// TLS towards clients. Default: none.
    tls: Option<At<tls::Server>>,
    /// Who authenticates clients. Default: the cluster.
    sasl: Option<sasl::Downstream>,
    /// Bootstrap servers of the real cluster, each `host:port`, or with what secures the way there.
    upstream: At<upstream::Upstream>,
    /// Whether a load balancer in front tells the address of the client. Default `disabled`.
    #[serde(default)]
    proxy_protocol: ProxyProtocol,
    /// Limits of clients.
    #[serde(default)]
    limits: LimitKeys,
    /// What looks at messages or changes them, from the client's side on. Default: nothing.
    #[serde(default)]
    filters: Vec<At<FilterEntry>>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum ProxyProtocol {
    #[default]
    Disabled,
    Allowed,
    Required,
}

/// Limits of clients.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LimitKeys {
    /// Kafka's `max.connections`, over all listeners of the process. Default: 16384, or one for
    /// each 256 KiB of `memory_max_bytes`.
    max_connections: Option<At<usize>>,
    /// Kafka's `max.connections.per.ip`. Default: no limit.
    max_connections_per_ip: Option<At<usize>>,
    /// Milliseconds for PROXY protocol, TLS and SASL together. Default 10000.
    handshake_timeout_ms: Option<At<u64>>,
    /// Kafka's `connections.max.idle.ms`. Default 600000.
    connections_max_idle_ms: Option<At<u64>>,
    /// Kafka's `socket.request.max.bytes`. Default 104857600.
    socket_request_max_bytes: Option<At<usize>>,
    /// Milliseconds in which a client must move 1 KiB a second of a waiting answer, or of a request
    /// that it began. Default 60000.
    slow_reader_timeout_ms: Option<At<u64>>,
}

fn default_drain_timeout_ms() -> u64 {
    10_000
}

/// Reads the file.
///
/// # Errors
/// What is wrong and where.
pub(crate) fn load(path: &Path, sources: &mut Sources) -> anyhow::Result<Config> {
    super::load(path, sources, config)
}

/// Turns the keys of a file into the proxy's settings.
///
/// # Errors
/// Names the key.
pub(crate) fn config(file: File, sources: &mut Sources) -> Result<Config, Problem> {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    if let Some(threads) = &file.network_threads {
        super::at_least_one(threads, "network_threads")?;
    }
    let network_threads = file.network_threads.as_ref().map_or(cores, |threads| threads.value);
    let memory_bytes = super::memory(&file.memory_max_bytes, "memory_max_bytes", MEMORY_BYTES_MIN)?;
    let mut clusters = file.virtual_clusters;
    if clusters.value.is_empty() {
        return Err(Problem::at(&clusters, "virtual_clusters: at least one is needed"));
    }
    check_names(&clusters.value)?;
    check_order(&clusters.value)?;
    check_tenants(&clusters.value)?;
    let clusters = std::mem::take(&mut clusters.value);
    let gateways: Vec<At<Gateway>> =
        clusters.iter().map(Cluster::gateway).collect::<Result<_, _>>()?;
    let names = clusters.iter().map(|cluster| cluster.name.value.as_str());
    ports::check(&admin::listen(&file.admin), names.zip(&gateways), sources)?;
    let admin = admin::settings(file.admin, sources)?;
    let traces = file.traces.map(|keys| traces::settings(keys, sources)).transpose()?;
    let clusters = clusters.into_iter().zip(gateways);
    let clusters = clusters
        .map(|(cluster, gateway)| virtual_cluster(cluster, gateway.value, memory_bytes, sources));
    Ok(Config {
        admin: Some(admin),
        memory_bytes,
        network_threads,
        traces,
        drain_timeout: Duration::from_millis(file.drain_timeout_ms),
        virtual_clusters: clusters.collect::<Result<_, _>>()?,
    })
}

fn check_names(clusters: &[Cluster]) -> Result<(), Problem> {
    let mut names = HashSet::new();
    for Cluster { name, .. } in clusters {
        if name.value.is_empty() {
            return Err(Problem::at(name, "name: is empty"));
        }
        if !names.insert(name.value.as_str()) {
            let text = format!("name: {:?} is the name of another virtual cluster", name.value);
            return Err(Problem::at(name, text));
        }
    }
    Ok(())
}

/// Checks that no filter in front of `multi_tenant` depends on the names of topics: there it sees
/// the cluster's name of a topic that a client names by id, and the client's name otherwise.
fn check_order(clusters: &[Cluster]) -> Result<(), Problem> {
    for Cluster { filters, .. } in clusters {
        let is_tenants =
            |entry: &At<FilterEntry>| matches!(entry.value, FilterEntry::MultiTenant(_));
        let front = filters.iter().position(is_tenants).and_then(|at| filters.get(..at));
        let goes_by_names =
            |entry: &&At<FilterEntry>| !matches!(entry.value, FilterEntry::Audit(_));
        if let Some(entry) = front.and_then(|front| front.iter().find(goes_by_names)) {
            let text = "must not be in front of multi_tenant, where a topic has two names: the \
                        client's, and the cluster's in requests by id; put multi_tenant first";
            return Err(Problem::at(entry, text));
        }
    }
    Ok(())
}

/// Checks that no tenant of a virtual cluster can have a name of another's, where both lead to one
/// real cluster.
fn check_tenants(clusters: &[Cluster]) -> Result<(), Problem> {
    let mut checked: Vec<(&Cluster, MultiTenant)> = Vec::new();
    for cluster in clusters {
        let name = &cluster.name;
        let Some(tenants) = cluster.tenants()? else { continue };
        if !tenants.suits(&name.value) {
            let text = format!(
                "name: {:?} has characters that a prefix of topic names cannot have",
                name.value
            );
            return Err(Problem::at(name, text));
        }
        for (other, others) in &checked {
            let leads_there = |server| other.upstream.value.servers().any(|it| it == server);
            let is_same_cluster = cluster.upstream.value.servers().any(leads_there);
            if is_same_cluster && tenants.meets(&name.value, others, &other.name.value) {
                let text = format!(
                    "name: the prefixes of {:?} and {:?} overlap on their cluster, so tenants \
                     would share names",
                    name.value, other.name.value
                );
                return Err(Problem::at(name, text));
            }
        }
        checked.push((cluster, tenants));
    }
    Ok(())
}

impl Cluster {
    /// The filter that gives names the beginning that they have on the cluster.
    fn tenants(&self) -> Result<Option<MultiTenant>, Problem> {
        let keys = self.filters.iter().rev().find_map(|entry| match &entry.value {
            FilterEntry::MultiTenant(keys) => Some(keys),
            _ => None,
        });
        keys.map(multi_tenant::Keys::filter).transpose()
    }

    fn gateway(&self) -> Result<At<Gateway>, Problem> {
        let (host, start) = (self.advertised_host.as_ref(), self.broker_port_start.as_ref());
        match (&self.gateway, &self.bootstrap) {
            (Some(gateway), None) => {
                if let Some(stray) = host {
                    return Err(Problem::at(
                        stray,
                        "advertised_host: cannot be combined with gateway",
                    ));
                }
                if let Some(stray) = start {
                    return Err(Problem::at(
                        stray,
                        "broker_port_start: cannot be combined with gateway",
                    ));
                }
                let made = gateway::gateway(gateway, self.tls.is_some())?;
                Ok(gateway.with(made))
            }
            (None, Some(bootstrap)) => {
                let made = gateway::ports(bootstrap, host, start)?;
                Ok(bootstrap.with(made))
            }
            (Some(_), Some(stray)) => {
                Err(Problem::at(stray, "bootstrap: cannot be combined with gateway"))
            }
            (None, None) => {
                Err(Problem::at(&self.name, "the key \"bootstrap\" is missing, or gateway"))
            }
        }
    }
}

fn virtual_cluster(
    cluster: Cluster,
    gateway: Gateway,
    memory_bytes: usize,
    sources: &mut Sources,
) -> Result<VirtualCluster, Problem> {
    let tls = cluster.tls.as_ref().map(|tls| tls::server(tls, sources)).transpose()?;
    let sasl = match &cluster.sasl {
        None => Sasl::Passthrough,
        Some(keys) => Sasl::Terminate(sasl::server(&keys.terminate, sources)?),
    };
    let upstream = upstream::settings(cluster.upstream, sources)?;
    let name = cluster.name.value;
    let filters = cluster.filters.into_iter();
    let filters = filters.map(|entry| filters::kept_or_made(&name, entry, sources));
    Ok(VirtualCluster {
        filters: filters.collect::<Result<_, _>>()?,
        downstream: Security { tls, sasl },
        proxy_protocol: match cluster.proxy_protocol {
            ProxyProtocol::Disabled => Mode::Disabled,
            ProxyProtocol::Allowed => Mode::Allowed,
            ProxyProtocol::Required => Mode::Required,
        },
        limits: cluster.limits.limits(memory_bytes)?,
        name,
        gateway,
        upstream,
    })
}

impl LimitKeys {
    fn limits(&self, memory_bytes: usize) -> Result<Limits, Problem> {
        let mut limits = Limits {
            listener: limits::listener(
                &ListenerLimits::within(memory_bytes),
                ("max_connections", self.max_connections.as_ref()),
                ("max_connections_per_ip", self.max_connections_per_ip.as_ref()),
                self.handshake_timeout_ms.as_ref(),
            )?,
            ..Limits::default()
        };
        if let Some(value) = &self.socket_request_max_bytes {
            super::at_least_one(value, "socket_request_max_bytes")?;
            limits.frame_bytes_max = value.value;
        }
        for (key, value, limit) in [
            ("connections_max_idle_ms", &self.connections_max_idle_ms, &mut limits.idle_timeout),
            (
                "slow_reader_timeout_ms",
                &self.slow_reader_timeout_ms,
                &mut limits.slow_reader_timeout,
            ),
        ] {
            if let Some(value) = value {
                super::at_least_one(value, key)?;
                *limit = Duration::from_millis(value.value);
            }
        }
        Ok(limits)
    }
}
