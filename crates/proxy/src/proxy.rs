//! A proxy as a whole: start, reload, readiness and drain.

use std::fmt;
use std::future::{pending, poll_fn};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::Duration;

use moldau_net::{
    AdminPages, Listener, MemoryBudget, NetworkHandle, NetworkThreads, Phase, ReloadPage,
    ReloadWanted, serve_admin,
};
use moldau_threads::{Mutex, Supervisor};
use tokio::sync::mpsc;

use crate::config::{Config, MEMORY_BYTES_MIN};
use crate::error::Error;
use crate::metrics::{self, ClusterReading, Metrics, add};
use crate::pool;
use crate::running::{Reloaded, Running};
use crate::traces::Tracer;

/// How long the last traces may take to reach the collector, beyond the drain. Supervisors that
/// stop the process wait little longer than the drain.
const LAST_TRACES_WITHIN: Duration = Duration::from_secs(2);

/// Requests in flight of a proxy that failed may take this long.
const ANSWERED_WITHIN: Duration = Duration::from_secs(5);

/// A running proxy. Dropping it stops everything at once; [`Proxy::drain`] does it gently.
pub struct Proxy {
    threads: NetworkThreads,
    network_threads: usize,
    memory_bytes: usize,
    running: Arc<Mutex<Running>>,
    metrics: Arc<Metrics>,
    /// As it was configured, and as it was bound.
    admin: Option<(SocketAddr, SocketAddr)>,
    /// Guards the queue of those who ask for a reload; held while it is looked at.
    reloads_wanted: Mutex<mpsc::Receiver<ReloadWanted>>,
    tracer: Arc<Tracer>,
    /// Guards what is disconnected once the traces that waited at the end are sent.
    exported: Mutex<Receiver<()>>,
    /// Held while a configuration is put in force and what it begins is handed over, so that these
    /// keep their order. No network thread wants it.
    reloading: Mutex<()>,
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bootstrap = self.bootstrap_addresses();
        f.debug_struct("Proxy").field("bootstrap", &bootstrap).finish_non_exhaustive()
    }
}

impl Proxy {
    /// Binds every address of `config` and starts to relay. Whether the clusters can be reached
    /// is not waited for; the admin page `/readyz` tells.
    ///
    /// # Errors
    /// See [`Error`]: an address in use, or a virtual cluster that cannot be served.
    pub fn start(config: Config) -> Result<Self, Error> {
        let admin = config.admin.as_ref().map(|admin| admin.listen);
        let listener = admin.map(Listener::bind).transpose()?;
        let (network_threads, memory_bytes) = (config.network_threads, config.memory_bytes);
        let memory = plan_memory(memory_bytes, network_threads);
        let threads = NetworkThreads::start_within("moldau-proxy", network_threads, memory)?;
        let (handle, metrics) = (threads.handle(), Arc::new(Metrics::default()));
        let (tracer, spans) = Tracer::new(Arc::clone(&metrics));
        let (exporting, of_running) = (Arc::clone(&tracer), Arc::clone(&tracer));
        let running = Running::new(handle.clone(), Arc::clone(&metrics), of_running);
        let running = Arc::new(Mutex::new(running));
        let admin = admin.zip(listener.as_ref().map(Listener::local_addr));
        let (_, begun) = running.lock().apply(config)?;
        begun.hand_over(&handle)?;
        let (exports, exported) = sync_channel(0);
        handle.spawn_on_blocking(0, "the export of traces", move || async move {
            exporting.export(spans).await;
            drop(exports);
        })?;
        let (reload, reloads_wanted) = ReloadWanted::channel();
        if let Some(listener) = listener {
            let (running, own) = (Arc::clone(&running), Arc::clone(&metrics));
            let pages = Pages { running, own, net: handle.clone(), reload };
            serve_admin(&handle, listener, pages)?;
        }
        Ok(Self {
            threads,
            network_threads,
            memory_bytes,
            running,
            metrics,
            admin,
            reloads_wanted: Mutex::new(reloads_wanted),
            tracer,
            exported: Mutex::new(exported),
            reloading: Mutex::default(),
        })
    }

    /// Waits for a reload request with the token at the admin port. The requester waits for the
    /// result.
    pub async fn reload_wanted(&self) -> ReloadWanted {
        match poll_fn(|cx| self.reloads_wanted.lock().poll_recv(cx)).await {
            Some(wanted) => wanted,
            // There are no admin pages.
            None => pending().await,
        }
    }

    /// Puts `config` in the place of the one that is in force. Connections that stand are kept but
    /// for those of virtual clusters that are gone, which are drained: sessions take other filters
    /// between two requests, and requests in flight go on through the filters that they began with.
    /// All else holds for connections that begin. Blocks; must not be called on a network thread.
    ///
    /// # Errors
    /// What is wrong with `config`; nothing was changed.
    pub fn reload(&self, config: Config) -> Result<Reloaded, Error> {
        let reloading = self.reloading.lock();
        let reloaded = self.check_constant(&config).and_then(|()| self.apply(config));
        drop(reloading);
        let counter =
            if reloaded.is_ok() { &self.metrics.reloads } else { &self.metrics.reload_failures };
        add(counter, 1);
        reloaded
    }

    /// Counts a configuration that was refused before it could be handed over.
    pub fn count_refused_reload(&self) {
        add(&self.metrics.reload_failures, 1);
    }

    /// Name and bootstrap address of each virtual cluster, in the order of the configuration.
    #[must_use]
    pub fn bootstrap_addresses(&self) -> Vec<(String, SocketAddr)> {
        self.running.lock().bootstrap_addresses()
    }

    /// Where the admin pages are.
    #[must_use]
    pub fn admin_address(&self) -> Option<SocketAddr> {
        self.admin.map(|(_, bound)| bound)
    }

    /// Keeps the failure that the proxy does not get over: of a thread, or of a task that it must
    /// not go on without. The process should then call [`Proxy::stop`] and end.
    #[must_use]
    pub fn supervisor(&self) -> Supervisor {
        self.threads.handle().supervisor().clone()
    }

    /// Stops accepting after a failure, and gives requests in flight a few seconds. The process
    /// ends next; a thread that hangs is not waited for.
    pub fn stop(&self) {
        self.begin_drain();
        self.threads.finish(ANSWERED_WITHIN);
    }

    /// Stops accepting and lets requests in flight finish for as long as the configuration allows.
    /// Pending traces are sent then, within two seconds. Returns the number of connections that had
    /// to be cut off.
    #[must_use]
    pub fn drain(self) -> usize {
        let drain_timeout = self.begin_drain();
        let cut_off = self.threads.finish(drain_timeout);
        self.tracer.end();
        // A stuck collector must not keep the process from its end. An error here means that the
        // other side is gone.
        let _sent = self.exported.lock().recv_timeout(LAST_TRACES_WITHIN);
        cut_off
    }

    fn begin_drain(&self) -> Duration {
        let running = self.running.lock();
        for cluster in running.clusters() {
            cluster.shutdown().advance(Phase::Draining);
        }
        running.drain_timeout
    }

    fn apply(&self, config: Config) -> Result<Reloaded, Error> {
        let (reloaded, begun) = self.running.lock().apply(config)?;
        begun.hand_over(&self.threads.handle())?;
        Ok(reloaded)
    }

    /// What a reload cannot change.
    fn check_constant(&self, config: &Config) -> Result<(), Error> {
        let admin = config.admin.as_ref().map(|admin| admin.listen);
        if admin != self.admin.map(|(configured, _)| configured) {
            return Err(Error::NeedsRestart { key: "admin" });
        }
        if config.network_threads != self.network_threads {
            return Err(Error::NeedsRestart { key: "network_threads" });
        }
        if config.memory_bytes != self.memory_bytes {
            return Err(Error::NeedsRestart { key: "memory_max_bytes" });
        }
        Ok(())
    }
}

/// The budget of all sessions. A part of the memory is for frames that threads keep for the next.
fn plan_memory(bytes: usize, network_threads: usize) -> MemoryBudget {
    let bytes = bytes.max(MEMORY_BYTES_MIN);
    pool::plan_frames_kept(bytes / 8 / network_threads.max(1));
    MemoryBudget::new(bytes / 8 * 7)
}

/// What the admin port shows.
struct Pages {
    running: Arc<Mutex<Running>>,
    own: Arc<Metrics>,
    net: NetworkHandle,
    reload: mpsc::Sender<ReloadWanted>,
}

impl AdminPages for Pages {
    fn metrics(&self) -> Result<String, fmt::Error> {
        let running = self.running.lock();
        let clusters = running.clusters().map(|cluster| ClusterReading {
            name: cluster.name().to_owned(),
            filters: cluster.chains().current().metrics(),
            latencies: cluster.latencies().read(),
            was_reached: cluster.was_reached(),
        });
        let clusters = clusters.collect();
        drop(running);
        metrics::open_metrics(&self.own, &self.net, clusters)
    }

    /// The listeners stand since the proxy started, so only clusters can be missing.
    fn not_ready(&self) -> Option<String> {
        let running = self.running.lock();
        let missing = running.clusters().filter(|cluster| !cluster.was_reached());
        let missing: Vec<&str> = missing.map(|cluster| cluster.name()).collect();
        (!missing.is_empty()).then(|| format!("not reached: {}", missing.join(", ")))
    }

    fn reload(&self) -> Option<ReloadPage> {
        let token = self.running.lock().reload_token.clone()?;
        Some(ReloadPage::new(token, self.reload.clone()))
    }
}
