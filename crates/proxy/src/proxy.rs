//! A proxy as a whole: its listeners, what runs beside its sessions, start and drain.

use std::fmt;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use moldau_net::{Listener, ListenerLimits, NetworkThreads, serve_admin};
use tokio::net::TcpStream;

use crate::chain::Chain;
use crate::cluster::{Cluster, Destination};
use crate::config::Config;
use crate::error::Error;
use crate::metrics::{self, Metrics};
use crate::{discovery, session};

/// A running proxy. Dropping it stops everything at once; [`Proxy::drain`] does it gently.
pub struct Proxy {
    threads: NetworkThreads,
    drain_timeout: Duration,
    bootstrap: Vec<(String, SocketAddr)>,
    admin: Option<SocketAddr>,
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Proxy").field("bootstrap", &self.bootstrap).finish_non_exhaustive()
    }
}

impl Proxy {
    /// Binds every address of `config` and starts to relay. Whether the clusters can be reached
    /// is not checked.
    ///
    /// # Errors
    /// See [`Error`]: an address in use, or a virtual cluster without an upstream server.
    pub fn start(config: Config) -> Result<Self, Error> {
        let admin = config.admin.map(Listener::bind).transpose()?;
        let mut listeners = Vec::new();
        let mut chains = Vec::new();
        for mut cluster in config.virtual_clusters {
            if cluster.upstream.is_empty() {
                return Err(Error::NoUpstream { cluster: cluster.name });
            }
            chains.push(Chain::new(&cluster.name, std::mem::take(&mut cluster.filters)));
            listeners.push((Listener::bind(cluster.bootstrap)?, cluster));
        }
        let threads = NetworkThreads::start("moldau-proxy", config.network_threads)?;
        let handle = threads.handle();
        let own_metrics = Arc::new(Metrics::default());
        let admin_address = admin.as_ref().map(Listener::local_addr);
        if let Some(listener) = admin {
            let (own, net) = (Arc::clone(&own_metrics), Arc::clone(handle.metrics()));
            let chains = chains.clone();
            serve_admin(&handle, listener, move || {
                let of_filters = chains.iter().flat_map(|chain: &Arc<Chain>| chain.metrics());
                metrics::open_metrics(&own, &net, of_filters.collect())
            })?;
        }
        let mut bootstrap = Vec::new();
        for ((listener, virtual_cluster), chain) in listeners.into_iter().zip(chains) {
            bootstrap.push((virtual_cluster.name.clone(), listener.local_addr()));
            let (net, own) = (handle.clone(), Arc::clone(&own_metrics));
            let background = Arc::clone(&chain).background();
            handle.spawn_on_blocking(0, move || background)?;
            let cluster = Cluster::new(virtual_cluster, chain, serve, net, own);
            let discovered = Arc::clone(&cluster);
            handle.spawn_on_blocking(0, move || discovery::run(discovered))?;
            handle.serve(listener, ListenerLimits::default(), move |stream, peer| {
                serve(Arc::clone(&cluster), Destination::Bootstrap, stream, peer)
            })?;
        }
        let drain_timeout = config.drain_timeout;
        Ok(Self { threads, drain_timeout, bootstrap, admin: admin_address })
    }

    /// Name and bootstrap address of each virtual cluster, in the order of the configuration.
    #[must_use]
    pub fn bootstrap_addresses(&self) -> Vec<(String, SocketAddr)> {
        self.bootstrap.clone()
    }

    /// Where the admin pages are.
    #[must_use]
    pub fn admin_address(&self) -> Option<SocketAddr> {
        self.admin
    }

    /// Stops accepting and lets requests in flight finish for as long as the configuration allows.
    /// Returns the number of connections that had to be cut off.
    #[must_use]
    pub fn drain(self) -> usize {
        self.threads.drain(self.drain_timeout)
    }
}

fn serve(
    cluster: Arc<Cluster>,
    destination: Destination,
    stream: TcpStream,
    peer: SocketAddr,
) -> Pin<Box<dyn Future<Output = ()>>> {
    Box::pin(session::serve(cluster, destination, stream, peer))
}
