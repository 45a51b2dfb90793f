//! The broker as a whole: opens the journal, listens, answers, drains.

use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};

use moldau_net::{
    ConnectionLimits, Listener, NetworkThreads, Principal, Reply, Response, Service, serve_admin,
    serve_connection,
};
use moldau_storage::{Admission, Admit, Options, Replay, Storage};
use tokio::net::TcpStream;

use crate::authorizer::Subject;
use crate::call::Later;
use crate::clock::wall_clock_ms;
use crate::config::{Config, ListenerConfig, NODE_ID};
use crate::dispatch::{self, CallSite};
use crate::error::Error;
use crate::metrics;
use crate::rights::Access;
use crate::state::{Restored, State};
use crate::{compaction, retention};

/// A running broker. Dropping it stops everything; [`Broker::drain`] does it gently.
pub struct Broker {
    state: Arc<State>,
    threads: NetworkThreads,
    addresses: Vec<SocketAddr>,
    admin_address: Option<SocketAddr>,
}

impl Broker {
    /// Opens the data directory, replays the journal and starts to listen.
    ///
    /// # Errors
    /// See [`Error`]: an address in use, a data directory that is held by another process, of
    /// another format or damaged.
    pub fn start(config: Config) -> Result<Self, Error> {
        let listeners = config.listeners.iter().map(|it| Listener::bind(it.address));
        let listeners = listeners.collect::<Result<Vec<_>, _>>()?;
        let admin_listener = config.admin.map(Listener::bind).transpose()?;
        let threads = NetworkThreads::start("moldau-net", config.network_threads)?;
        let now_ms = wall_clock_ms();
        let mut restored = Restored::new(&config, now_ms);
        let storage = Storage::open(options(&config), &mut restored)?;
        let state = Arc::new(State::new(config, storage, restored, now_ms));
        state.delete_orphaned_logs().map_err(|refusal| Error::Metadata(refusal.message))?;
        let addresses = listeners.iter().map(Listener::local_addr).collect();
        let admin_address = admin_listener.as_ref().map(Listener::local_addr);
        let broker = Self { state, threads, addresses, admin_address };
        for (config, listener) in broker.state.config.listeners.iter().zip(listeners) {
            broker.serve_clients(config, listener)?;
        }
        if let Some(listener) = admin_listener {
            broker.serve_admin(listener)?;
        }
        broker.start_timers()?;
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

    /// Resolves with the failure that stopped the journal, if ever. Nothing is acknowledged from
    /// then on, and the process should end.
    pub fn stopped(&self) -> impl Future<Output = String> + 'static {
        let stopped = self.state.storage.stopped();
        async move { stopped.await.to_string() }
    }

    /// Stops accepting, lets requests in flight finish for as long as the configuration allows,
    /// and flushes. Returns the number of connections that had to be cut off.
    pub fn drain(self) -> usize {
        let cut_off = self.threads.drain(self.state.config.drain_timeout);
        // The next start then has next to nothing to read.
        if let Err(error) = self.state.checkpoint() {
            tracing::warn!(%error, "no checkpoint was written");
        }
        if let Err(error) = self.state.storage.close() {
            tracing::error!(%error, "the journal was not closed cleanly");
        }
        cut_off
    }

    fn serve_clients(&self, config: &ListenerConfig, listener: Listener) -> Result<(), Error> {
        let handle = self.threads.handle();
        let (state, net) = (Arc::clone(&self.state), handle.clone());
        let config = Arc::new(config.clone());
        handle.serve(listener, config.limits.clone(), move |stream, peer| {
            let (state, net, config) = (Arc::clone(&state), net.clone(), Arc::clone(&config));
            async move { serve_client(state, net, config, stream, peer).await }
        })?;
        Ok(())
    }

    fn serve_admin(&self, listener: Listener) -> Result<(), Error> {
        let handle = self.threads.handle();
        let (state, net) = (Arc::clone(&self.state), Arc::clone(handle.metrics()));
        serve_admin(&handle, listener, move || metrics::open_metrics(&state, &net))?;
        Ok(())
    }

    fn start_timers(&self) -> Result<(), Error> {
        let handle = self.threads.handle();
        let state = Arc::clone(&self.state);
        handle.spawn_on_blocking(0, move || async move {
            state.groups.run_timer(&state.storage).await;
        })?;
        let state = Arc::clone(&self.state);
        handle.spawn_on_blocking(0, move || async move { retention::run(&state).await })?;
        let state = Arc::clone(&self.state);
        handle.spawn_on_blocking(0, move || async move { compaction::run(&state).await })?;
        Ok(())
    }
}

pub(crate) fn options(config: &Config) -> Options {
    Options {
        node_id: NODE_ID,
        durability: config.durability,
        commit_delay: config.commit_delay,
        tail_cache_bytes: config.tail_cache_bytes,
        file_bytes: config.journal_file_bytes,
        reserve_bytes: config.disk_reserve_bytes,
        scrub_rate: config.scrub_rate,
        ..Options::new(&config.data_dir)
    }
}

impl Replay for Restored {
    fn metadata(&mut self, bytes: &[u8]) -> Result<(), String> {
        self.replay(bytes)
    }
}

async fn serve_client(
    state: Arc<State>,
    net: moldau_net::NetworkHandle,
    listener: Arc<ListenerConfig>,
    stream: TcpStream,
    peer: SocketAddr,
) {
    let Ok(local) = stream.local_addr() else { return };
    let access = access(&state, &Principal::anonymous(), peer);
    let admission = AdmissionState::Idle;
    let service = ClientService { state, listener, peer, local, access, admission };
    let limits = ConnectionLimits::default();
    let metrics = Arc::clone(net.metrics());
    let closed = serve_connection(stream, service, limits, net.shutdown(), metrics).await;
    tracing::debug!(%peer, ?closed, "connection closed");
}

/// What a principal may do by a connection from `peer`; `None` for everything.
fn access(state: &State, principal: &Principal, peer: SocketAddr) -> Option<Rc<Access>> {
    let (principal, address) = (principal.to_string(), peer.ip().to_canonical());
    Access::of(&state.security, Subject { principal, address })
}

/// The broker as one connection sees it.
struct ClientService {
    state: Arc<State>,
    listener: Arc<ListenerConfig>,
    access: Option<Rc<Access>>,
    peer: SocketAddr,
    local: SocketAddr,
    admission: AdmissionState,
}

/// How far the next frame is on its way to be admitted.
enum AdmissionState {
    Idle,
    Waiting(Admit),
    Admitted(Admission),
}

impl Service for ClientService {
    type Future = Later<Response>;

    /// A frame counts against the limit of unflushed bytes until it is known not to be a produce,
    /// or until it is durable.
    fn poll_ready(&mut self, cx: &mut Context<'_>, frame_bytes: usize) -> Poll<()> {
        let mut waiting = match std::mem::replace(&mut self.admission, AdmissionState::Idle) {
            AdmissionState::Idle => self.state.storage.admit_wait(frame_bytes),
            AdmissionState::Waiting(waiting) => waiting,
            admitted @ AdmissionState::Admitted(_) => {
                self.admission = admitted;
                return Poll::Ready(());
            }
        };
        match Pin::new(&mut waiting).poll(cx) {
            Poll::Ready(admission) => {
                self.admission = AdmissionState::Admitted(admission);
                Poll::Ready(())
            }
            Poll::Pending => {
                self.admission = AdmissionState::Waiting(waiting);
                Poll::Pending
            }
        }
    }

    fn call(&mut self, frame: &[u8]) -> Reply<Self::Future> {
        let admission = match std::mem::replace(&mut self.admission, AdmissionState::Idle) {
            AdmissionState::Admitted(admission) => Some(admission),
            AdmissionState::Idle | AdmissionState::Waiting(_) => None,
        };
        let site = CallSite {
            state: &self.state,
            peer: self.peer,
            local: self.local,
            listener: &self.listener,
            access: self.access.as_ref(),
            now_ms: wall_clock_ms(),
            admission,
        };
        dispatch::dispatch(site, frame)
    }
}
