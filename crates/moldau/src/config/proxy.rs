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

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use anyhow::Context;
use moldau_proxy::{Config, VirtualCluster};
use serde::Deserialize;

use super::record_encryption;

/// The keys of the file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct File {
    /// Where the admin pages are. Default `127.0.0.1:9645`.
    #[serde(default = "default_admin")]
    admin: SocketAddr,
    /// Threads that serve connections. Default: one for each core.
    network_threads: Option<usize>,
    /// Milliseconds that requests in flight may take after SIGTERM. Default 10000.
    #[serde(default = "default_drain_timeout_ms")]
    drain_timeout_ms: u64,
    /// What clients see. At least one.
    virtual_clusters: Vec<Cluster>,
}

/// One virtual cluster.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Cluster {
    /// Names the cluster in logs and metrics.
    name: String,
    /// Where clients connect first.
    bootstrap: SocketAddr,
    /// Host that clients are told to connect to. Default: the address that each came by.
    advertised_host: Option<String>,
    /// Bootstrap servers of the real cluster, each `host:port`.
    upstream: Vec<String>,
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

fn default_admin() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 9645))
}

fn default_drain_timeout_ms() -> u64 {
    10_000
}

/// Reads the file.
///
/// # Errors
/// What is wrong and where.
pub(crate) fn load(path: &Path) -> anyhow::Result<Config> {
    config(super::read(path)?)
}

/// Turns the keys of a file into the proxy's settings.
///
/// # Errors
/// Names the key.
pub(crate) fn config(file: File) -> anyhow::Result<Config> {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    anyhow::ensure!(file.network_threads != Some(0), "network_threads: must be at least 1");
    anyhow::ensure!(!file.virtual_clusters.is_empty(), "virtual_clusters: at least one is needed");
    let clusters = file.virtual_clusters.into_iter().map(virtual_cluster);
    Ok(Config {
        admin: Some(file.admin),
        network_threads: file.network_threads.unwrap_or(cores),
        drain_timeout: Duration::from_millis(file.drain_timeout_ms),
        virtual_clusters: clusters.collect::<anyhow::Result<_>>()?,
    })
}

fn virtual_cluster(cluster: Cluster) -> anyhow::Result<VirtualCluster> {
    let name = &cluster.name;
    anyhow::ensure!(!cluster.upstream.is_empty(), "virtual cluster {name}: upstream: is empty");
    // A port that the system chooses has no known successor, so the others are its choice too.
    let next_port = match cluster.bootstrap.port() {
        0 => Some(0),
        port => port.checked_add(1),
    };
    let broker_port_start = cluster.broker_port_start.or(next_port);
    let broker_port_start = broker_port_start
        .ok_or_else(|| anyhow::anyhow!("virtual cluster {name}: broker_port_start: is needed"))?;
    let filters = cluster.filters.into_iter().map(|entry| match entry {
        FilterEntry::RecordEncryption(settings) => record_encryption::filter(settings)
            .with_context(|| format!("virtual cluster {name}: record_encryption")),
    });
    Ok(VirtualCluster {
        filters: filters.collect::<anyhow::Result<_>>()?,
        broker_port_start,
        name: cluster.name,
        bootstrap: cluster.bootstrap,
        advertised_host: cluster.advertised_host,
        upstream: cluster.upstream,
    })
}
