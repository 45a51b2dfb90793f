//! Configuration of a proxy, as plain settings.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use moldau_net::proxy_protocol::Mode;
use moldau_net::sasl::{SaslClient, SaslServer};
use moldau_net::tls::{ClientTls, ServerTls};
use moldau_net::{BearerToken, FRAME_BYTES_MAX_DEFAULT, ListenerLimits};

use crate::filter::Filter;
use crate::traces::Traces;

/// The least memory that a proxy runs in.
pub const MEMORY_BYTES_MIN: usize = 64 * 1024 * 1024;

/// Configuration of a proxy.
#[derive(Clone, Debug)]
pub struct Config {
    /// The admin pages, if there are any.
    pub admin: Option<Admin>,
    /// Bytes of memory for what clients and clusters make the proxy hold, at least
    /// [`MEMORY_BYTES_MIN`]. A reload cannot change it.
    pub memory_bytes: usize,
    /// Threads that serve connections; 0 counts as 1. A reload cannot change it.
    pub network_threads: usize,
    /// Where traces of requests go; nothing is traced without.
    pub traces: Option<Traces>,
    /// How long requests in flight may take once a drain has begun.
    pub drain_timeout: Duration,
    /// The clusters that clients see, each with a name of its own.
    pub virtual_clusters: Vec<VirtualCluster>,
}

/// The admin pages.
#[derive(Clone, Debug)]
pub struct Admin {
    /// Where they are served. A reload cannot change it.
    pub listen: SocketAddr,
    /// Token that permits a reload. Without it reloads are off.
    pub reload_token: Option<BearerToken>,
}

/// One cluster as clients see it, and where it really is.
#[derive(Clone, Debug)]
pub struct VirtualCluster {
    /// Names the cluster in logs and metrics. By it a reload knows the cluster again.
    pub name: String,
    /// Where clients connect.
    pub gateway: Gateway,
    /// How clients and the proxy authenticate to each other.
    pub downstream: Security,
    /// The real cluster.
    pub upstream: UpstreamSettings,
    /// Whether a load balancer in front tells the address of the client. A reload cannot change it.
    pub proxy_protocol: Mode,
    /// Limits of one client.
    pub limits: Limits,
    /// What looks at messages or changes them; the first stands next to the client.
    pub filters: Vec<Arc<dyn Filter>>,
}

impl VirtualCluster {
    /// A cluster in plain text with no filters, as most begin.
    #[must_use]
    pub fn plain(name: &str, gateway: Gateway, servers: Vec<String>) -> Self {
        Self {
            name: name.to_owned(),
            gateway,
            downstream: Security::default(),
            upstream: UpstreamSettings { servers, ..UpstreamSettings::default() },
            proxy_protocol: Mode::default(),
            limits: Limits::default(),
            filters: Vec::new(),
        }
    }
}

/// Where clients of a virtual cluster connect, and how they tell its brokers apart.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Gateway {
    /// Each broker has a port.
    Ports {
        /// Where clients connect first.
        bootstrap: SocketAddr,
        /// The host advertised to clients; otherwise the address that each connected to.
        advertised_host: Option<String>,
        /// Brokers get consecutive ports from here on, in the order in which they are discovered;
        /// 0 lets the system choose every port.
        broker_port_start: u16,
    },
    /// Each broker has a host name, which clients tell in their TLS handshake (RFC 6066). Virtual
    /// clusters of the same address share one listener.
    Sni {
        /// Where clients connect to all these hosts.
        listen: SocketAddr,
        /// The host by which clients connect first.
        bootstrap_host: String,
        /// The host of a broker, with `$(nodeId)` in the place of its id.
        broker_host: String,
        /// The port advertised to clients; otherwise that of the listener.
        advertised_port: Option<u16>,
    },
}

/// Security of the connections of clients.
#[derive(Clone, Debug, Default)]
pub struct Security {
    /// The proxy's certificates and trusted authorities; plain text without.
    pub tls: Option<Arc<ServerTls>>,
    /// Who handles SASL.
    pub sasl: Sasl,
}

/// Who handles the SASL of clients.
#[derive(Clone, Debug, Default)]
pub enum Sasl {
    /// The cluster. The proxy only notes which principal it accepted.
    #[default]
    Passthrough,
    /// The proxy; nothing of a client reaches the cluster before it has authenticated.
    Terminate(Arc<SaslServer>),
}

/// The real cluster and how to connect to it.
#[derive(Clone, Debug, Default)]
pub struct UpstreamSettings {
    /// Bootstrap servers as `host:port`. The one that served last is tried first.
    pub servers: Vec<String>,
    /// Trusted authorities and the proxy's own certificate; plain text without.
    pub tls: Option<Arc<ClientTls>>,
    /// The credentials of the proxy; none are sent without.
    pub sasl: Option<Arc<SaslClient>>,
    /// True if the proxy sends the client's address to servers (PROXY protocol, version 2).
    pub proxy_protocol: bool,
}

/// Limits of one client or one address in a virtual cluster.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Those of each listener, for connections that have not begun. Of the virtual clusters that
    /// share a listener, the first one's count. A reload can change `handshake_timeout` only.
    pub listener: ListenerLimits,
    /// Largest request; Kafka's `socket.request.max.bytes`.
    pub frame_bytes_max: usize,
    /// A client that does nothing and waits for nothing for this long is disconnected; Kafka's
    /// `connections.max.idle.ms`.
    pub idle_timeout: Duration,
    /// A client that takes next to nothing of a waiting answer for this long, or sends next to
    /// nothing of a request that it began, is disconnected.
    pub slow_reader_timeout: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            listener: ListenerLimits::default(),
            frame_bytes_max: FRAME_BYTES_MAX_DEFAULT,
            idle_timeout: Duration::from_mins(10),
            slow_reader_timeout: Duration::from_mins(1),
        }
    }
}
