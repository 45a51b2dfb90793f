//! A virtual cluster at work: its table of brokers, their listeners, and the way to the real ones.

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use moldau_net::{Listener, ListenerLimits, NetworkHandle};
use moldau_protocol::ApiKey;
use tokio::net::TcpStream;

use crate::chain::Chain;
use crate::config::VirtualCluster;
use crate::log_limit::LogLimit;
use crate::metrics::{Metrics, add};

/// Brokers that one cluster may announce. Each takes a port, so a cluster must not be able to
/// take them all.
const BROKERS_MAX: usize = 1024;

/// A server that does not accept for this long counts as unreachable; Kafka's
/// `socket.connection.setup.timeout.ms`.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Which server a session leads to.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Destination {
    /// Any bootstrap server.
    Bootstrap,
    /// The broker with this node id.
    Broker(i32),
}

/// Serves a client that came to the listener of a destination.
pub(crate) type Serve =
    fn(Arc<Cluster>, Destination, TcpStream, SocketAddr) -> Pin<Box<dyn Future<Output = ()>>>;

/// A virtual cluster and what is known of the real one.
#[derive(Debug)]
pub(crate) struct Cluster {
    config: VirtualCluster,
    chain: Arc<Chain>,
    serve: Serve,
    net: NetworkHandle,
    metrics: Arc<Metrics>,
    /// Guards the brokers that are known; held while a listener is bound, never across a wait.
    brokers: Mutex<Brokers>,
    port_errors: LogLimit,
    connect_errors: LogLimit,
    broken_answers: LogLimit,
}

#[derive(Debug)]
struct Brokers {
    by_id: BTreeMap<i32, Broker>,
    next_port: u16,
}

#[derive(Debug)]
struct Broker {
    host: Arc<str>,
    port: u16,
    /// The port that clients are told, for the life of the process.
    local_port: u16,
    listening: bool,
}

impl Cluster {
    pub(crate) fn new(
        config: VirtualCluster,
        chain: Arc<Chain>,
        serve: Serve,
        net: NetworkHandle,
        metrics: Arc<Metrics>,
    ) -> Arc<Self> {
        let brokers = Brokers { by_id: BTreeMap::new(), next_port: config.broker_port_start };
        Arc::new(Self {
            config,
            chain,
            serve,
            net,
            metrics,
            brokers: Mutex::new(brokers),
            port_errors: LogLimit::default(),
            connect_errors: LogLimit::default(),
            broken_answers: LogLimit::default(),
        })
    }

    pub(crate) fn name(&self) -> &str {
        &self.config.name
    }

    pub(crate) fn net(&self) -> &NetworkHandle {
        &self.net
    }

    /// The filters of the cluster.
    pub(crate) fn chain(&self) -> &Arc<Chain> {
        &self.chain
    }

    pub(crate) fn metrics(&self) -> &Arc<Metrics> {
        &self.metrics
    }

    /// The host that a client is told which came by `local`.
    pub(crate) fn advertised_host(&self, local: IpAddr) -> String {
        let advertised = self.config.advertised_host.clone();
        advertised.unwrap_or_else(|| local.to_canonical().to_string())
    }

    /// The port that stands for the broker `node_id` at `host:port`. A broker that was not known
    /// gets one, and its listener accepts before this returns. `None` if that cannot be. Must be
    /// called on a network thread.
    pub(crate) fn port_of(self: &Arc<Self>, node_id: i32, host: &str, port: i32) -> Option<u16> {
        let port = u16::try_from(port).ok().filter(|port| *port > 0)?;
        let mut brokers = self.lock();
        let known = brokers.by_id.get_mut(&node_id);
        let local_port = match known {
            Some(broker) => {
                if (&*broker.host, broker.port) != (host, port) {
                    tracing::info!(cluster = self.name(), node_id, host, port, "a broker moved");
                    (broker.host, broker.port) = (host.into(), port);
                }
                if broker.listening {
                    return Some(broker.local_port);
                }
                broker.local_port
            }
            None => brokers.add(node_id, host, port)?,
        };
        let address = SocketAddr::new(self.config.bootstrap.ip(), local_port);
        let listener = match Listener::bind(address) {
            Ok(listener) => listener,
            Err(error) => {
                add(&self.metrics.broker_port_errors, 1);
                self.port_errors.log(|unlogged| {
                    let cluster = self.name();
                    tracing::error!(cluster, node_id, %error, unlogged, "a broker has no port");
                });
                return None;
            }
        };
        let local_port = listener.local_addr().port();
        if let Some(broker) = brokers.by_id.get_mut(&node_id) {
            (broker.local_port, broker.listening) = (local_port, true);
        }
        drop(brokers);
        tracing::info!(cluster = self.name(), node_id, host, port, local_port, "broker found");
        tokio::task::spawn_local(Arc::clone(self).accept(listener, node_id));
        Some(local_port)
    }

    async fn accept(self: Arc<Self>, listener: Listener, node_id: i32) {
        let net = self.net.clone();
        let serve = move |stream, peer| {
            (self.serve)(Arc::clone(&self), Destination::Broker(node_id), stream, peer)
        };
        net.serve_here(listener, ListenerLimits::default(), serve).await;
    }

    /// Connects to `destination`; bootstrap servers are tried in turn. Failures are counted and
    /// logged.
    pub(crate) async fn connect(&self, destination: Destination) -> Option<TcpStream> {
        let servers = match destination {
            Destination::Bootstrap => self.config.upstream.clone(),
            Destination::Broker(node_id) => {
                self.lock().by_id.get(&node_id).map(Broker::address).into_iter().collect()
            }
        };
        for server in servers {
            match connect_to(&server).await {
                Ok(stream) => {
                    add(&self.metrics.upstream_connects, 1);
                    return Some(stream);
                }
                Err(error) => {
                    add(&self.metrics.upstream_connect_errors, 1);
                    self.connect_errors.log(|unlogged| {
                        let cluster = self.name();
                        tracing::warn!(cluster, server, %error, unlogged, "cannot reach a server");
                    });
                }
            }
        }
        None
    }

    /// Logs that an answer of the cluster was broken.
    pub(crate) fn log_unreadable(&self, api: ApiKey, version: i16, refusal: &dyn fmt::Display) {
        self.broken_answers.log(|unlogged| {
            let cluster = self.name();
            tracing::warn!(cluster, %api, version, error = %refusal, unlogged, "a broken answer");
        });
    }

    fn lock(&self) -> MutexGuard<'_, Brokers> {
        self.brokers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Brokers {
    /// Adds a broker that does not listen yet and returns its port.
    fn add(&mut self, node_id: i32, host: &str, port: u16) -> Option<u16> {
        if self.by_id.len() >= BROKERS_MAX {
            return None;
        }
        let local_port = self.next_port;
        if local_port > 0 {
            self.next_port = local_port.checked_add(1)?;
        }
        let broker = Broker { host: host.into(), port, local_port, listening: false };
        self.by_id.insert(node_id, broker);
        Some(local_port)
    }
}

impl Broker {
    fn address(&self) -> String {
        if self.host.contains(':') {
            format!("[{}]:{}", self.host, self.port)
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }
}

async fn connect_to(server: &str) -> io::Result<TcpStream> {
    let connected = tokio::time::timeout(CONNECT_TIMEOUT, TcpStream::connect(server)).await;
    let stream = connected.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??;
    // Small requests must not wait for the server's delayed acknowledgement.
    stream.set_nodelay(true)?;
    Ok(stream)
}
