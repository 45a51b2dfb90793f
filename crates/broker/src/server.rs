//! The broker as a whole: opens the journal, listens, answers, drains.

use std::fmt;
use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use moldau_cluster::{Sequencer, Store};
use moldau_net::{AdminPages, Listener, NetworkThreads, serve_admin};
use moldau_storage::Replay;
use moldau_threads::Supervisor;
use tokio::runtime::Runtime;

use crate::client_service::{Entrance, Terms};
use crate::clock::wall_clock_ms;
use crate::config::{Config, ListenerConfig};
use crate::error::Error;
use crate::joining::{ClusterSettings, Joined, Membership, Services, runtime};
use crate::metrics;
use crate::state::{Restored, State};
use crate::{compaction, dead_letters, retention};

/// Answers of a broker that failed may take this long. It ends as soon as none is owed.
const ANSWERED_WITHIN: Duration = Duration::from_secs(5);

/// A flush that lasts this long is no slow one: the disk does not answer.
const FLUSH_STALLED: Duration = Duration::from_secs(5);

/// A running broker. Dropping it stops everything; [`Broker::drain`] does it gently.
pub struct Broker {
    pub(crate) state: Arc<State>,
    pub(crate) threads: NetworkThreads,
    /// Of each listener, in the order of the configuration.
    entrances: Vec<Arc<Entrance>>,
    addresses: Vec<SocketAddr>,
    admin_address: Option<SocketAddr>,
    /// Of a broker of a cluster. The last to be dropped: what is in flight needs it.
    _membership: Option<Membership>,
}

/// The sockets of a broker that starts.
struct Sockets {
    clients: Vec<Listener>,
    admin: Option<Listener>,
}

impl Sockets {
    fn bind(config: &Config) -> Result<Self, Error> {
        let clients = config.listeners.iter().map(|it| Listener::bind(it.address));
        let clients = clients.collect::<Result<Vec<_>, _>>()?;
        Ok(Self { clients, admin: config.admin.map(Listener::bind).transpose()? })
    }
}

impl Broker {
    /// Opens the data directory, replays the journal and starts to listen.
    ///
    /// # Errors
    /// See [`Error`]: an address in use, a data directory that is held by another process, of
    /// another format or damaged.
    pub fn start(config: Config) -> Result<Self, Error> {
        let sockets = Sockets::bind(&config)?;
        let threads = NetworkThreads::start("moldau-net", config.network_threads)?;
        let now_ms = wall_clock_ms();
        let mut restored = Restored::new(&config, now_ms);
        let journal = moldau_storage::Storage::open(config.storage(), &mut restored)?;
        let state = Arc::new(State::new(config, journal, restored, now_ms));
        state.delete_orphaned_logs().map_err(|refusal| Error::Metadata(refusal.message))?;
        let ended = state.end_orphaned_transactions(now_ms);
        ended.map_err(|refusal| Error::Metadata(refusal.message))?;
        let broker = Self::serve(state, threads, sockets, None)?;
        broker.start_timers()?;
        broker.start_journal_timers()?;
        Ok(broker)
    }

    /// Joins a cluster, whose records and metadata are elsewhere, and starts to listen. The data
    /// directory of the configuration is not used.
    ///
    /// # Errors
    /// See [`Error`]: an address in use, a database or a bucket that is away or refuses.
    pub fn start_in_cluster(config: Config, settings: &ClusterSettings) -> Result<Self, Error> {
        let runtime = runtime()?;
        let services = runtime.block_on(Services::connect(settings))?;
        Self::start_on(services, config, settings, runtime)
    }

    /// Joins a cluster on these services.
    pub(crate) fn start_on<Q: Sequencer, S: Store>(
        services: Services<Q, S>,
        config: Config,
        settings: &ClusterSettings,
        runtime: Runtime,
    ) -> Result<Self, Error> {
        let sockets = Sockets::bind(&config)?;
        let address = sockets.clients.first().map(Listener::local_addr);
        let address = address.expect("a broker starts with a listener");
        let threads = NetworkThreads::start("moldau-net", config.network_threads)?;
        let joined = runtime.block_on(Joined::of(services, settings, config, address))?;
        let state = Arc::clone(&joined.member.state);
        let supervisor = threads.handle().supervisor().clone();
        let membership = Membership::begin(joined, runtime, &supervisor)?;
        let broker = Self::serve(state, threads, sockets, Some(membership))?;
        broker.start_timers()?;
        Ok(broker)
    }

    fn serve(
        state: Arc<State>,
        threads: NetworkThreads,
        sockets: Sockets,
        _membership: Option<Membership>,
    ) -> Result<Self, Error> {
        let addresses = sockets.clients.iter().map(Listener::local_addr).collect();
        let admin_address = sockets.admin.as_ref().map(Listener::local_addr);
        let entrances = Vec::with_capacity(sockets.clients.len());
        let mut broker = Self { state, threads, entrances, addresses, admin_address, _membership };
        let state = Arc::clone(&broker.state);
        for (config, listener) in state.config.listeners.iter().zip(sockets.clients) {
            broker.serve_clients(config, listener)?;
        }
        if let Some(listener) = sockets.admin {
            broker.serve_admin(listener)?;
        }
        Ok(broker)
    }

    /// Where Kafka clients connect: the address of the first listener.
    pub fn address(&self) -> SocketAddr {
        *self.addresses.first().expect("a broker starts with a listener")
    }

    /// The addresses of all listeners.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Where the admin pages are.
    pub fn admin_address(&self) -> Option<SocketAddr> {
        self.admin_address
    }

    /// Lets clients that connect from here on meet what these listeners say of TLS, SASL and the
    /// advertised address. Connections that stand are kept, and authenticate anew by it too
    /// (KIP-368). A listener is known by its name; one that the broker was not started with is
    /// passed over, and where a listener listens stays as it is.
    ///
    /// # Errors
    /// Mechanisms that a listener cannot offer; nothing was changed.
    pub fn reload(&self, listeners: &[ListenerConfig]) -> Result<(), Error> {
        let made = listeners.iter().map(|listener| {
            let entrance = self.entrances.iter().find(|it| it.name() == listener.name);
            Ok(entrance.zip(Some(Terms::new(&self.state, listener)?)))
        });
        let made = made.collect::<Result<Vec<_>, Error>>().inspect_err(|_| {
            self.count_refused_reload();
        })?;
        for (entrance, terms) in made.into_iter().flatten() {
            entrance.replace(terms);
        }
        self.state.counters.reloads.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// Counts a reload whose configuration could not be read.
    pub fn count_refused_reload(&self) {
        self.state.counters.reload_failures.fetch_add(1, Ordering::Relaxed);
    }

    /// Keeps the failures of the network threads, and of other work that the broker needs.
    pub fn supervisor(&self) -> Supervisor {
        self.threads.handle().supervisor().clone()
    }

    /// Resolves with the failure that the broker does not get over, if ever: of the journal, or of
    /// a thread. The process should answer what waits, by [`Broker::stop`], and end.
    pub fn stopped(&self) -> impl Future<Output = String> + 'static {
        let (stopped, failed) = (self.state.storage.stopped(), self.supervisor().failed());
        async move {
            tokio::select! {
                failure = stopped => failure.to_string(),
                cause = failed => cause.to_string(),
            }
        }
    }

    /// Stops accepting after a failure, and gives what waits a few seconds for its answers: those
    /// that wait for a failed journal get its error at once. The process ends next; what a disk or
    /// a thread that hangs holds is not waited for.
    pub fn stop(&self) {
        self.threads.finish(ANSWERED_WITHIN);
    }

    /// Stops accepting, lets requests in flight finish for as long as the configuration allows,
    /// and flushes. Returns the number of connections that had to be cut off.
    pub fn drain(self) -> usize {
        let cut_off = self.threads.drain(self.state.config.drain_timeout);
        // The next start then has next to nothing to read.
        if let Err(error) = self.state.checkpoint() {
            tracing::warn!(%error, "failed to write a checkpoint");
        }
        if let Err(error) = self.state.storage.close() {
            tracing::error!(%error, "failed to close the journal");
        }
        cut_off
    }

    fn serve_clients(&mut self, config: &ListenerConfig, listener: Listener) -> Result<(), Error> {
        let handle = self.threads.handle();
        let terms = Terms::new(&self.state, config)?;
        let entrance = Entrance::new(&self.state, terms, handle.clone());
        self.entrances.push(Arc::clone(&entrance));
        handle.serve(listener, config.limits.clone(), move |stream, peer, deadline| {
            Arc::clone(&entrance).serve(stream, peer, deadline)
        })?;
        Ok(())
    }

    fn serve_admin(&self, listener: Listener) -> Result<(), Error> {
        let handle = self.threads.handle();
        let (state, net) = (Arc::clone(&self.state), Arc::clone(handle.metrics()));
        serve_admin(&handle, listener, Pages { state, net })?;
        Ok(())
    }

    fn start_timers(&self) -> Result<(), Error> {
        let handle = self.threads.handle();
        let state = Arc::clone(&self.state);
        handle.spawn_on_blocking(0, "the timer of groups", move || async move {
            state.run_group_timer().await;
        })?;
        let state = Arc::clone(&self.state);
        handle.spawn_on_blocking(0, "the timer of transactions", move || async move {
            state.transactions.run_timer(&state.stores()).await;
        })?;
        let state = Arc::clone(&self.state);
        handle.spawn_on_blocking(0, "the timer of share groups", move || async move {
            state.shares.run_timer(&state.storage, &state.groups).await;
        })?;
        let state = Arc::clone(&self.state);
        handle.spawn_on_blocking(0, "dead letters of share groups", move || async move {
            dead_letters::run(&state).await;
        })?;
        let state = Arc::clone(&self.state);
        handle.spawn_on_blocking(0, "the way of metrics to the collector", move || async move {
            state.telemetry.forwarder.run().await;
        })?;
        Ok(())
    }

    fn start_journal_timers(&self) -> Result<(), Error> {
        let handle = self.threads.handle();
        let state = Arc::clone(&self.state);
        handle.spawn_on_blocking(0, "the timer of retention", move || async move {
            retention::run(&state).await;
        })?;
        let state = Arc::clone(&self.state);
        handle.spawn_on_blocking(0, "the timer of compaction", move || async move {
            compaction::run(&state).await;
        })?;
        Ok(())
    }
}

/// What the admin port shows.
struct Pages {
    state: Arc<State>,
    net: Arc<moldau_net::Metrics>,
}

impl AdminPages for Pages {
    fn metrics(&self) -> Result<String, fmt::Error> {
        metrics::open_metrics(&self.state, &self.net)
    }

    fn failure(&self) -> Option<String> {
        self.state.storage.failure().map(|failure| failure.to_string())
    }

    fn not_ready(&self) -> Option<String> {
        if let Some(cluster) = &self.state.cluster {
            return cluster.not_ready();
        }
        let waited = self.state.storage.flushing_for().filter(|waited| *waited >= FLUSH_STALLED)?;
        Some(format!("the journal has waited for the disk for {} s", waited.as_secs()))
    }
}

impl Replay for Restored {
    fn metadata(&mut self, bytes: &[u8]) -> Result<(), String> {
        self.replay(bytes)
    }
}
