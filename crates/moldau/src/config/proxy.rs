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

use moldau_proxy::{Config, Gateway, VirtualCluster};
use serde::Deserialize;

use super::ports::{self, Ports};
use super::problem::{At, nowhere};
use super::{Problem, Sources, record_encryption};

/// The keys of the file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct File {
    /// Where the admin pages are. Default `127.0.0.1:9645`.
    #[serde(default = "default_admin")]
    admin: At<SocketAddr>,
    /// Threads that serve connections. Default: one for each core.
    network_threads: Option<At<usize>>,
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
    /// Where clients connect first.
    bootstrap: At<SocketAddr>,
    /// Host that clients are told to connect to. Default: the address that each came by.
    advertised_host: Option<String>,
    /// Bootstrap servers of the real cluster, each `host:port`.
    upstream: At<Vec<At<String>>>,
    /// Brokers get ports from here on as they are discovered. Default: the port after `bootstrap`.
    broker_port_start: Option<u16>,
    /// What looks at messages or changes them, from the client's side on. Default: nothing.
    #[serde(default)]
    filters: Vec<FilterEntry>,
}

/// A filter by its type.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum FilterEntry {
    RecordEncryption(record_encryption::Settings),
}

fn default_admin() -> At<SocketAddr> {
    nowhere(SocketAddr::from(([127, 0, 0, 1], 9645)))
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
    let network_threads = super::threads(file.network_threads)?.unwrap_or(cores);
    let mut clusters = file.virtual_clusters;
    if clusters.value.is_empty() {
        return Err(Problem::at(&clusters, "virtual_clusters: at least one is needed"));
    }
    check_names(&clusters.value)?;
    let listened = clusters.value.iter().map(Cluster::ports).collect::<Result<Vec<_>, _>>()?;
    ports::check(Some(&file.admin), &listened, sources)?;
    let clusters = std::mem::take(&mut clusters.value);
    let clusters = clusters.into_iter().map(|cluster| virtual_cluster(cluster, sources));
    Ok(Config {
        admin: Some(file.admin.value),
        network_threads,
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

impl Cluster {
    fn ports(&self) -> Result<Ports<'_>, Problem> {
        let broker_port_start = Some(self.broker_port_start()?);
        Ok(Ports { cluster: &self.name.value, bootstrap: &self.bootstrap, broker_port_start })
    }

    fn broker_port_start(&self) -> Result<u16, Problem> {
        // A port that the system chooses has no known successor, so the others are its choice too.
        let next_port = match self.bootstrap.value.port() {
            0 => Some(0),
            port => port.checked_add(1),
        };
        let is_missing = || Problem::at(&self.bootstrap, "broker_port_start: is needed");
        self.broker_port_start.or(next_port).ok_or_else(is_missing)
    }
}

fn virtual_cluster(cluster: Cluster, sources: &mut Sources) -> Result<VirtualCluster, Problem> {
    if cluster.upstream.value.is_empty() {
        return Err(Problem::at(&cluster.upstream, "upstream: names no server"));
    }
    for server in &cluster.upstream.value {
        super::host_port("upstream", server)?;
    }
    let broker_port_start = cluster.broker_port_start()?;
    let filters = cluster.filters.into_iter().map(|entry| match entry {
        FilterEntry::RecordEncryption(settings) => record_encryption::filter(settings, sources),
    });
    let gateway = Gateway::Ports {
        bootstrap: cluster.bootstrap.value,
        advertised_host: cluster.advertised_host,
        broker_port_start,
    };
    let servers = cluster.upstream.value.into_iter().map(|server| server.value).collect();
    Ok(VirtualCluster {
        filters: filters.collect::<Result<_, _>>()?,
        ..VirtualCluster::plain(&cluster.name.value, gateway, servers)
    })
}
