//! What a proxy is made of while it runs: listeners and virtual clusters, and how a configuration
//! takes the place of another.
//!
//! A configuration is first checked, its listeners are bound and its entrances made. Only when
//! nothing can fail any more is anything changed, so that a wrong one leaves everything as it was.
//! What is then to run on a thread is gathered, and handed over once the lock on all this is free:
//! the thread may be waiting for that lock, to write a page of the admin port.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use moldau_net::{BearerToken, Listener, ListenerLimits, NetworkHandle, Phase};

use crate::cluster::Cluster;
use crate::config::{Config, Gateway, VirtualCluster};
use crate::discovery;
use crate::error::Error;
use crate::expected::FILTERS_MAX;
use crate::filter::Filter;
use crate::front::{self, Front, Route};
use crate::gateway::{Entrance, Hosts};
use crate::metrics::Metrics;
use crate::sasl::SaslFilter;
use crate::traces::Tracer;

/// What a reload did with each virtual cluster, by name, in the order of the configuration.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Reloaded {
    /// Those that were not there before.
    pub added: Vec<String>,
    /// Those that are no longer there; their connections are being drained.
    pub removed: Vec<String>,
    /// Those to which clients connect elsewhere; connections that stand were kept.
    pub moved: Vec<String>,
    /// Those whose sessions go on through other filters.
    pub refiltered: Vec<String>,
}

/// Tasks that a configuration begins, which the caller of [`Running::apply`] hands over.
#[derive(Default)]
#[must_use]
pub(crate) struct Begun(Vec<Start>);

type Start = Box<dyn FnOnce() -> Pin<Box<dyn Future<Output = ()>>> + Send>;

impl Begun {
    fn push<F, Fut>(&mut self, start: F)
    where
        F: FnOnce() -> Fut + Send + 'static,
        Fut: Future<Output = ()> + 'static,
    {
        self.0.push(Box::new(move || Box::pin(start())));
    }

    /// Begins the tasks on the first thread, in their order. Blocks while its queue is full, so the
    /// caller must not hold a lock that the thread wants.
    ///
    /// # Errors
    /// The threads have stopped.
    pub(crate) fn hand_over(self, net: &NetworkHandle) -> Result<(), Error> {
        let own = net.clone();
        let begin = move || async move {
            for start in self.0 {
                own.spawn_here("a task of a virtual cluster", async move { start().await });
            }
        };
        Ok(net.spawn_on_blocking(0, "a configuration that begins", begin)?)
    }
}

impl fmt::Debug for Begun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Begun({})", self.0.len())
    }
}

/// A virtual cluster of a configuration that has been checked.
struct Planned {
    config: VirtualCluster,
    entrance: Entrance,
}

/// Listeners that are bound for a configuration.
type Bound = BTreeMap<FrontKey, (Listener, ListenerLimits)>;

/// A listener by its address, and if the system chooses its port by the only virtual cluster that
/// it can have.
type FrontKey = (SocketAddr, Option<String>);

/// Listeners and virtual clusters.
#[derive(Debug)]
pub(crate) struct Running {
    net: NetworkHandle,
    metrics: Arc<Metrics>,
    tracer: Arc<Tracer>,
    fronts: BTreeMap<FrontKey, Arc<Front>>,
    /// Stands behind the operator's filters in each cluster.
    sasl: Arc<dyn Filter>,
    /// In the order of the configuration, each with its gateway.
    clusters: Vec<(Arc<Cluster>, Gateway)>,
    pub(crate) drain_timeout: Duration,
    /// Of those who may have the configuration taken anew.
    pub(crate) reload_token: Option<BearerToken>,
}

impl Running {
    pub(crate) fn new(net: NetworkHandle, metrics: Arc<Metrics>, tracer: Arc<Tracer>) -> Self {
        let (fronts, clusters) = (BTreeMap::new(), Vec::new());
        let sasl = Arc::new(SaslFilter);
        let (drain_timeout, reload_token) = (Duration::ZERO, None);
        Self { net, metrics, tracer, fronts, sasl, clusters, drain_timeout, reload_token }
    }

    pub(crate) fn clusters(&self) -> impl Iterator<Item = &Arc<Cluster>> {
        self.clusters.iter().map(|(cluster, _)| cluster)
    }

    /// Name and address of each virtual cluster.
    pub(crate) fn bootstrap_addresses(&self) -> Vec<(String, SocketAddr)> {
        let address = |(cluster, gateway): &(Arc<Cluster>, Gateway)| {
            let front = self.fronts.get(&front_key(cluster.name(), gateway))?;
            Some((cluster.name().to_owned(), front.address))
        };
        self.clusters.iter().filter_map(address).collect()
    }

    /// Puts a configuration in the place of the one that is in force.
    ///
    /// # Errors
    /// The configuration is wrong, or an address cannot be had; nothing was changed.
    pub(crate) fn apply(&mut self, config: Config) -> Result<(Reloaded, Begun), Error> {
        check(&config.virtual_clusters)?;
        self.check_kept(&config.virtual_clusters)?;
        let bound = self.bind(&config.virtual_clusters)?;
        let planned = self.plan(config.virtual_clusters, &bound)?;
        let (mut reloaded, mut begun) = (Reloaded::default(), Begun::default());
        let clusters = planned
            .into_iter()
            .map(|planned| {
                let gateway = planned.config.gateway.clone();
                (self.put(planned, &mut reloaded, &mut begun), gateway)
            })
            .collect();
        let before = std::mem::replace(&mut self.clusters, clusters);
        self.drain_timeout = config.drain_timeout;
        self.tracer.replace(config.traces);
        self.reload_token = config.admin.and_then(|admin| admin.reload_token);
        self.open(bound, &mut begun);
        for (cluster, _) in before {
            if !self.clusters().any(|kept| Arc::ptr_eq(kept, &cluster)) {
                reloaded.removed.push(cluster.name().to_owned());
                self.retire(cluster, &mut begun);
            }
        }
        Ok((reloaded, begun))
    }

    /// Refuses what a listener that stays cannot take over.
    fn check_kept(&self, configs: &[VirtualCluster]) -> Result<(), Error> {
        for config in configs {
            let key = front_key(&config.name, &config.gateway);
            let kept = self.clusters.iter().find(|(cluster, gateway)| {
                front_key(cluster.name(), gateway) == key && cluster.name() == config.name
            });
            let Some((cluster, _)) = kept else { continue };
            let settings = cluster.settings();
            if config.proxy_protocol != settings.config.proxy_protocol {
                return Err(Error::NeedsRestart { key: "proxy_protocol" });
            }
            let (limits, known) = (&config.limits.listener, &settings.config.limits.listener);
            if limits.connections_max != known.connections_max
                || limits.connections_per_address_max != known.connections_per_address_max
            {
                return Err(Error::NeedsRestart { key: "limits" });
            }
        }
        Ok(())
    }

    /// Binds the listeners that are not there yet.
    fn bind(&self, configs: &[VirtualCluster]) -> Result<Bound, Error> {
        let mut bound = BTreeMap::new();
        for config in configs {
            let key = front_key(&config.name, &config.gateway);
            if !self.fronts.contains_key(&key) && !bound.contains_key(&key) {
                let limits = config.limits.listener.clone();
                let listener = Listener::bind(key.0)?.with_proxy_protocol(config.proxy_protocol);
                bound.insert(key, (listener, limits));
            }
        }
        Ok(bound)
    }

    /// Makes the entrances of virtual clusters whose listeners are bound.
    fn plan(&self, configs: Vec<VirtualCluster>, bound: &Bound) -> Result<Vec<Planned>, Error> {
        let plan = |config: VirtualCluster| {
            let key = front_key(&config.name, &config.gateway);
            let address = match bound.get(&key) {
                Some((listener, _)) => listener.local_addr(),
                None => self.fronts.get(&key).map_or(key.0, |front| front.address),
            };
            let before = self.known(&config.name).map(|(cluster, _)| cluster.settings());
            let before = before.as_ref().map(|settings| &settings.entrance);
            let mode = config.proxy_protocol;
            match Entrance::new(&config.gateway, address, mode, before) {
                Ok(entrance) => Ok(Planned { config, entrance }),
                Err(reason) => Err(Error::Gateway { cluster: config.name, reason }),
            }
        };
        configs.into_iter().map(plan).collect()
    }

    fn known(&self, name: &str) -> Option<&(Arc<Cluster>, Gateway)> {
        self.clusters.iter().find(|(cluster, _)| cluster.name() == name)
    }

    /// The cluster of a configuration: the one that is known by its name, or another.
    fn put(&self, planned: Planned, reloaded: &mut Reloaded, begun: &mut Begun) -> Arc<Cluster> {
        let Planned { mut config, entrance } = planned;
        config.filters.push(Arc::clone(&self.sasl));
        let (name, net) = (config.name.clone(), self.net.clone());
        let Some((cluster, gateway)) = self.known(&name) else {
            let (own, metrics) = (self.net.clone(), Arc::clone(&self.metrics));
            let tracer = Arc::clone(&self.tracer);
            let cluster = Cluster::new(config, entrance, front::serve, own, metrics, tracer);
            let (chain, discovered) = (cluster.chains().current(), Arc::clone(&cluster));
            begun.push(move || chain.background(net));
            begun.push(move || discovery::run(discovered));
            reloaded.added.push(name);
            return cluster;
        };
        let has_moved = config.gateway != *gateway;
        if let Some(chain) = cluster.replace(config, entrance) {
            begun.push(move || chain.background(net));
            reloaded.refiltered.push(name.clone());
        }
        if has_moved {
            reloaded.moved.push(name);
            let moved = Arc::clone(cluster);
            begun.push(move || async move { moved.open_all() });
        }
        // Servers may be others.
        cluster.want_discovery();
        Arc::clone(cluster)
    }

    /// Gives each listener its route, begins to accept at those that are bound, and closes those
    /// that no cluster has any more.
    fn open(&mut self, mut bound: Bound, begun: &mut Begun) {
        let mut routes: BTreeMap<FrontKey, Vec<Arc<Cluster>>> = BTreeMap::new();
        let mut by_host = BTreeSet::new();
        for (cluster, gateway) in &self.clusters {
            let key = front_key(cluster.name(), gateway);
            if matches!(gateway, Gateway::Sni { .. }) {
                by_host.insert(key.clone());
            }
            routes.entry(key).or_default().push(Arc::clone(cluster));
        }
        self.fronts.retain(|key, front| {
            let is_kept = routes.contains_key(key);
            if !is_kept {
                front.closed.advance(Phase::Stopped);
            }
            is_kept
        });
        for (key, clusters) in routes {
            let route = match clusters.first() {
                Some(cluster) if !by_host.contains(&key) => Route::Bootstrap(Arc::clone(cluster)),
                _ => Route::Hosts(clusters.into()),
            };
            if let Some(front) = self.fronts.get(&key) {
                front.set_route(route);
            } else if let Some((listener, limits)) = bound.remove(&key) {
                let metrics = Arc::clone(&self.metrics);
                let front = Front::new(listener.local_addr(), route, metrics);
                self.accept(listener, limits, Arc::clone(&front), begun);
                self.fronts.insert(key, front);
            }
        }
    }

    fn accept(
        &self,
        listener: Listener,
        limits: ListenerLimits,
        front: Arc<Front>,
        begun: &mut Begun,
    ) {
        let net = self.net.clone();
        begun.push(move || async move {
            let closed = front.closed.clone();
            let serve = move |stream, peer, deadline| front.serve(stream, peer, deadline);
            tokio::select! {
                () = net.serve_here(listener, limits, serve) => {}
                () = closed.reached(Phase::Stopped) => {}
            }
        });
    }

    /// Lets the sessions of a cluster end.
    fn retire(&self, cluster: Arc<Cluster>, begun: &mut Begun) {
        cluster.settings().entrance.close(None);
        cluster.shutdown().advance(Phase::Draining);
        let patience = self.drain_timeout;
        begun.push(move || async move {
            tokio::time::sleep(patience).await;
            cluster.shutdown().advance(Phase::Stopped);
            cluster.chains().current().retire();
        });
    }
}

fn front_key(name: &str, gateway: &Gateway) -> FrontKey {
    match gateway {
        Gateway::Ports { bootstrap, .. } if bootstrap.port() == 0 => {
            (*bootstrap, Some(name.to_owned()))
        }
        Gateway::Ports { bootstrap, .. } => (*bootstrap, None),
        Gateway::Sni { listen, .. } => (*listen, None),
    }
}

/// Finds what is wrong with virtual clusters by themselves and together.
fn check(configs: &[VirtualCluster]) -> Result<(), Error> {
    let mut seen: Vec<(&VirtualCluster, Option<Hosts>)> = Vec::new();
    for config in configs {
        let cluster = config.name.clone();
        if config.upstream.servers.is_empty() {
            return Err(Error::NoUpstream { cluster });
        }
        // One place is for SASL, behind the operator's.
        let max = FILTERS_MAX - 1;
        if config.filters.len() > max {
            return Err(Error::TooManyFilters { cluster, max });
        }
        let wrong = |reason| Error::Gateway { cluster: cluster.clone(), reason };
        let hosts = match &config.gateway {
            Gateway::Ports { .. } => None,
            Gateway::Sni { .. } if config.downstream.tls.is_none() => {
                return Err(wrong("an SNI gateway needs TLS for its listener"));
            }
            Gateway::Sni { bootstrap_host, broker_host, .. } => {
                Some(Hosts::parse(bootstrap_host, broker_host).map_err(wrong)?)
            }
        };
        let key = front_key(&config.name, &config.gateway);
        for (other, other_hosts) in &seen {
            let (cluster, other_name) = (cluster.clone(), other.name.clone());
            if other.name == cluster {
                return Err(Error::DuplicateName { cluster });
            }
            if front_key(&other.name, &other.gateway) != key {
                continue;
            }
            let other = other_name;
            match (&hosts, other_hosts) {
                (Some(hosts), Some(other_hosts)) if !hosts.overlap(other_hosts) => {}
                (Some(_), Some(_)) => return Err(Error::SharedHost { cluster, other }),
                _ => return Err(Error::SharedAddress { cluster, other, address: key.0 }),
            }
        }
        seen.push((config, hosts));
    }
    Ok(())
}
