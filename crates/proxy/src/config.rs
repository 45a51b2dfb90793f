use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use crate::filter::Filter;

/// What a proxy is to do.
#[derive(Clone, Debug)]
pub struct Config {
    /// Where the admin pages are served, if anywhere.
    pub admin: Option<SocketAddr>,
    /// Threads that serve connections; 0 counts as 1.
    pub network_threads: usize,
    /// How long requests in flight may take once the drain has begun.
    pub drain_timeout: Duration,
    /// The clusters that clients see.
    pub virtual_clusters: Vec<VirtualCluster>,
}

/// One cluster as clients see it, and where it really is.
#[derive(Clone, Debug)]
pub struct VirtualCluster {
    /// Names the cluster in logs.
    pub name: String,
    /// Where clients connect first.
    pub bootstrap: SocketAddr,
    /// The host that clients are told to connect to; otherwise the address that each came by.
    pub advertised_host: Option<String>,
    /// Bootstrap servers of the real cluster as `host:port`, tried in this order.
    pub upstream: Vec<String>,
    /// Brokers get consecutive ports from here on, in the order in which they are discovered;
    /// 0 lets the system choose every port.
    pub broker_port_start: u16,
    /// What looks at messages or changes them; the first stands next to the client.
    pub filters: Vec<Arc<dyn Filter>>,
}
