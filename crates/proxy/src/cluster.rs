//! A running virtual cluster: settings of connections that begin, active filters, and known facts
//! about the real cluster.

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use moldau_net::{Listener, LogLimit, MemoryBudget, NetworkHandle, Shutdown};
use moldau_protocol::ApiKey;
use moldau_protocol::messages::ApiVersionsResponse;
use moldau_threads::Mutex;
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::chain::{Chain, Chains};
use crate::config::{Sasl, VirtualCluster};
use crate::gateway::{Destination, Entrance, Ports};
use crate::latency::Latencies;
use crate::metrics::{Metrics, add};
use crate::traces::Tracer;

/// Brokers that one cluster may announce. Each may take a port, so a cluster must not be able to
/// take them all.
const BROKERS_MAX: usize = 1024;

/// Serves a client that came to the port of a broker.
pub(crate) type Serve = fn(
    Arc<Cluster>,
    Destination,
    TcpStream,
    SocketAddr,
    Instant,
) -> Pin<Box<dyn Future<Output = ()>>>;

/// A virtual cluster and what is known of the real one.
#[derive(Debug)]
pub(crate) struct Cluster {
    name: Arc<str>,
    serve: Serve,
    net: NetworkHandle,
    metrics: Arc<Metrics>,
    latencies: Arc<Latencies>,
    tracer: Arc<Tracer>,
    chains: Arc<Chains>,
    /// The end of this virtual cluster, if not of the proxy.
    shutdown: Shutdown,
    /// Guards the settings of connections that begin.
    settings: Mutex<Arc<Settings>>,
    known: Known,
    pub(crate) logs: Logs,
}

/// Settings of connections that begin.
#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) config: VirtualCluster,
    pub(crate) entrance: Entrance,
}

/// What is known of the real cluster.
#[derive(Debug, Default)]
struct Known {
    /// Guards the addresses of brokers by their ids. A broker that is gone stays, since it may come
    /// back and its clients know its port.
    brokers: Mutex<BTreeMap<i32, (Arc<str>, u16)>>,
    /// Guards the answer that clients get before they have authenticated.
    api_versions: Mutex<Option<Arc<ApiVersionsResponse>>>,
    /// Position of the bootstrap server that served last.
    bootstrap_server: AtomicUsize,
    reached: AtomicBool,
    /// Clients were refused: brokers may be elsewhere.
    wanted: Notify,
    /// A broker is known, or the versions are.
    learned: Notify,
}

/// Failures that clients or the cluster can repeat at will.
#[derive(Debug, Default)]
pub(crate) struct Logs {
    port: LogLimit,
    pub(crate) connect: LogLimit,
    broken_answer: LogLimit,
}

impl Cluster {
    pub(crate) fn new(
        config: VirtualCluster,
        entrance: Entrance,
        serve: Serve,
        net: NetworkHandle,
        metrics: Arc<Metrics>,
        tracer: Arc<Tracer>,
    ) -> Arc<Self> {
        let name = Arc::from(&*config.name);
        let chains = Chains::new(&name, config.filters.clone());
        Arc::new(Self {
            name,
            serve,
            net,
            metrics,
            latencies: Arc::default(),
            tracer,
            chains,
            shutdown: Shutdown::new(),
            settings: Mutex::new(Arc::new(Settings { config, entrance })),
            known: Known::default(),
            logs: Logs::default(),
        })
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The name, to be shared.
    pub(crate) fn shared_name(&self) -> Arc<str> {
        Arc::clone(&self.name)
    }

    /// The filters of the cluster.
    pub(crate) fn chains(&self) -> &Arc<Chains> {
        &self.chains
    }

    /// Counters of all connections of clients.
    pub(crate) fn net_metrics(&self) -> &moldau_net::Metrics {
        self.net.metrics()
    }

    /// Memory limit of sessions.
    pub(crate) fn memory(&self) -> &MemoryBudget {
        self.net.memory()
    }

    pub(crate) fn metrics(&self) -> &Arc<Metrics> {
        &self.metrics
    }

    pub(crate) fn latencies(&self) -> &Arc<Latencies> {
        &self.latencies
    }

    pub(crate) fn tracer(&self) -> &Arc<Tracer> {
        &self.tracer
    }

    /// The end of this virtual cluster.
    pub(crate) fn shutdown(&self) -> &Shutdown {
        &self.shutdown
    }

    /// Settings of a connection that begins at this moment.
    pub(crate) fn settings(&self) -> Arc<Settings> {
        Arc::clone(&self.settings.lock())
    }

    /// Applies other settings to connections that begin. Established connections take only the
    /// filters. Returns the filter chain if it changed; the caller starts the chain's background
    /// tasks.
    pub(crate) fn replace(
        &self,
        mut config: VirtualCluster,
        entrance: Entrance,
    ) -> Option<Arc<Chain>> {
        let filters = config.filters.clone();
        // Those that stand authenticate anew by it too (KIP-368).
        if let (Sasl::Terminate(before), Sasl::Terminate(next)) =
            (&self.settings().config.downstream.sasl, &mut config.downstream.sasl)
        {
            before.take_over(next);
            *next = Arc::clone(before);
        }
        let before = {
            let settings = Arc::new(Settings { config, entrance });
            std::mem::replace(&mut *self.settings.lock(), settings)
        };
        before.entrance.close(Some(&self.settings().entrance));
        self.chains.replace(&filters)
    }

    /// Where a client that came by `local` finds the broker `node_id` at `host:port`. A broker that
    /// was not known gets a place, and its listener accepts before this returns. `None` if that
    /// cannot be. Must be called on a network thread.
    pub(crate) fn advertise(
        self: &Arc<Self>,
        node_id: i32,
        host: &str,
        port: i32,
        local: IpAddr,
    ) -> Option<(String, u16)> {
        let port = u16::try_from(port).ok().filter(|port| *port > 0)?;
        self.learn(node_id, host, port)?;
        self.place(node_id, local)
    }

    /// The advertised host and port of a broker, at which its listener accepts.
    fn place(self: &Arc<Self>, node_id: i32, local: IpAddr) -> Option<(String, u16)> {
        match &self.settings().entrance {
            Entrance::Ports { ports, advertised_host } => {
                let host = advertised_host.clone();
                let host = host.unwrap_or_else(|| local.to_canonical().to_string());
                Some((host, self.open(ports, node_id)?))
            }
            Entrance::Sni { hosts, advertised_port } => {
                Some((hosts.broker(node_id), *advertised_port))
            }
        }
    }

    /// The port of a broker, whose listener accepts before this returns.
    fn open(self: &Arc<Self>, ports: &Arc<Ports>, node_id: i32) -> Option<u16> {
        let (port, listener) = match ports.open(node_id) {
            Ok(place) => place?,
            Err(error) => {
                add(&self.metrics.broker_port_errors, 1);
                self.logs.port.log(|unlogged| {
                    let cluster = self.name();
                    tracing::error!(cluster, node_id, %error, unlogged, "no port for a broker");
                });
                return None;
            }
        };
        let Some(listener) = listener else { return Some(port) };
        tracing::info!(cluster = self.name(), node_id, port, "a broker has a port");
        let (cluster, ports) = (Arc::clone(self), Arc::clone(ports));
        self.net.spawn_here("the listener of a broker", async move {
            tokio::select! {
                () = cluster.accept(listener, node_id) => {}
                () = ports.closed() => {}
            }
        });
        Some(port)
    }

    fn learn(&self, node_id: i32, host: &str, port: u16) -> Option<()> {
        let mut brokers = self.known.brokers.lock();
        let cluster = self.name();
        let address = (Arc::from(host), port);
        let is_full = brokers.len() >= BROKERS_MAX;
        match brokers.get_mut(&node_id) {
            Some(known) if *known == address => return Some(()),
            Some(known) => {
                tracing::info!(cluster, node_id, host, port, "a broker moved");
                *known = address;
            }
            None if is_full => return None,
            None => {
                tracing::info!(cluster, node_id, host, port, "discovered a broker");
                brokers.insert(node_id, address);
            }
        }
        drop(brokers);
        self.known.learned.notify_waiters();
        Some(())
    }

    /// Opens the places of all brokers that are known. Must be called on a network thread.
    pub(crate) fn open_all(self: &Arc<Self>) {
        let node_ids: Vec<i32> = self.known.brokers.lock().keys().copied().collect();
        for node_id in node_ids {
            // A broker without a port was logged and counted.
            let _place = self.place(node_id, IpAddr::from([0, 0, 0, 0]));
        }
    }

    /// Accepts clients at the port of a broker.
    async fn accept(self: Arc<Self>, listener: Listener, node_id: i32) {
        let (net, limits) = (self.net.clone(), self.settings().config.limits.listener.clone());
        let serve = move |stream, peer, deadline| {
            (self.serve)(Arc::clone(&self), Destination::Broker(node_id), stream, peer, deadline)
        };
        net.serve_here(listener, limits, serve).await;
    }

    /// Servers of a destination as `host:port`, in the order in which they are to be tried.
    pub(crate) fn servers(&self, destination: Destination) -> Vec<String> {
        let brokers = self.known.brokers.lock();
        match destination {
            Destination::Broker(node_id) => brokers.get(&node_id).map(server).into_iter().collect(),
            Destination::Bootstrap => {
                let mut servers = self.settings().config.upstream.servers.clone();
                let first = self.known.bootstrap_server.load(Ordering::Relaxed);
                let count = servers.len().max(1);
                servers.rotate_left(first % count);
                // Bootstrap servers may be gone for good while brokers that came later serve.
                servers.extend(brokers.values().map(server));
                servers
            }
        }
    }

    /// Remembers which bootstrap server could be reached.
    pub(crate) fn served(&self, server: &str) {
        let settings = self.settings();
        let mut servers = settings.config.upstream.servers.iter();
        if let Some(position) = servers.position(|known| known == server) {
            self.known.bootstrap_server.store(position, Ordering::Relaxed);
        }
    }

    /// Waits until the address of a broker is known.
    pub(crate) async fn knows(&self, node_id: i32) {
        loop {
            let learned = self.known.learned.notified();
            tokio::pin!(learned);
            learned.as_mut().enable();
            if self.known.brokers.lock().contains_key(&node_id) {
                return;
            }
            self.want_discovery();
            learned.await;
        }
    }

    /// A client was refused since a server could not be reached or is not known.
    pub(crate) fn want_discovery(&self) {
        self.known.wanted.notify_one();
    }

    /// Waits until a client was refused.
    pub(crate) async fn discovery_wanted(&self) {
        self.known.wanted.notified().await;
    }

    /// The cluster's answer about the versions that it serves, once known.
    pub(crate) async fn api_versions(&self) -> Arc<ApiVersionsResponse> {
        loop {
            let learned = self.known.learned.notified();
            tokio::pin!(learned);
            learned.as_mut().enable();
            if let Some(api_versions) = &*self.known.api_versions.lock() {
                return Arc::clone(api_versions);
            }
            self.want_discovery();
            learned.await;
        }
    }

    /// The cluster has answered.
    pub(crate) fn reached(&self, api_versions: ApiVersionsResponse) {
        *self.known.api_versions.lock() = Some(Arc::new(api_versions));
        self.known.reached.store(true, Ordering::Relaxed);
        self.known.learned.notify_waiters();
    }

    /// Whether the cluster has answered since the start.
    pub(crate) fn was_reached(&self) -> bool {
        self.known.reached.load(Ordering::Relaxed)
    }

    /// Logs that an answer of the cluster was broken.
    pub(crate) fn log_unreadable(&self, api: ApiKey, version: i16, refusal: &dyn fmt::Display) {
        self.logs.broken_answer.log(|unlogged| {
            let cluster = self.name();
            tracing::warn!(cluster, %api, version, error = %refusal, unlogged, "a broken answer");
        });
    }
}

fn server((host, port): &(Arc<str>, u16)) -> String {
    if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
}
