//! Network threads: one single-threaded runtime each, connections placed by load.

use std::collections::HashMap;
use std::fmt;
use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use moldau_threads::{Condvar, Mutex, MutexGuard, Supervisor, catch_in, fault_point};
use socket2::SockRef;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};
use tokio::task::LocalSet;
use tokio::time::Instant;

use crate::error::{Error, ProxyProtocolError};
use crate::listener::{ACCEPT_PAUSE, Listener, ListenerLimits};
use crate::memory::MemoryBudget;
use crate::metrics::{Metrics, add};
use crate::proxy_protocol::{self, Mode};
use crate::refusal::Refusal;
use crate::shutdown::{Phase, Shutdown};

/// Tasks on their way to a thread. Accepting waits when it is full, and the kernel's backlog
/// holds the rest.
const HAND_OVER_MAX: usize = 256;

/// Bytes that the kernel takes ahead of what the network and the peer take. Without this limit it
/// takes 4 MiB for each peer that reads nothing, and such a peer seems to read. A busy link needs
/// no more: bytes under way do not count.
const UNSENT_BYTES_MAX: u32 = 256 * 1024;

/// Limit of connections whose PROXY protocol header is awaited. Further ones are closed at once. A
/// balancer sends the header with the first packet, so more than this is abuse. Where the header is
/// required, limits per address do not bound these connections.
const AWAITED_HEADERS_MAX: usize = 1024;

type LocalFuture = Pin<Box<dyn Future<Output = ()>>>;
type Start = Box<dyn FnOnce() -> LocalFuture + Send>;

/// What is handed over to a thread.
enum Task {
    /// A task that the threads depend on: its panic is their failure.
    Service(&'static str, Start),
    /// A connection of this peer, which a panic ends, to this address.
    Connection(SocketAddr, SocketAddr, Start),
    /// Asks for a sign of life.
    Ping(oneshot::Sender<()>),
}

/// A fixed set of threads, each running a single-threaded runtime.
///
/// A task or connection placed on a thread stays there, so it needs neither `Send` nor locks.
/// Dropping this stops everything at once; [`drain`](Self::drain) lets requests finish.
#[derive(Debug)]
pub struct NetworkThreads {
    handle: NetworkHandle,
    threads: Vec<JoinHandle<()>>,
}

/// Places tasks and listeners on the threads. Clones share them.
#[derive(Clone, Debug)]
pub struct NetworkHandle {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    inboxes: Vec<Inbox>,
    shutdown: Shutdown,
    supervisor: Supervisor,
    metrics: Arc<Metrics>,
    memory: MemoryBudget,
    open: OpenConnections,
    /// Guards the open connections of each address, of listeners that limit them.
    by_address: Mutex<HashMap<IpAddr, usize>>,
    awaited_headers: Arc<Semaphore>,
}

#[derive(Debug)]
struct Inbox {
    thread: String,
    sender: mpsc::Sender<Task>,
    connections: Arc<AtomicUsize>,
}

#[derive(Debug, Default)]
struct OpenConnections {
    /// Guards the number of open connections of all threads.
    count: Mutex<usize>,
    none_left: Condvar,
}

impl NetworkThreads {
    /// Starts `count` threads, at least one, named `name-0`, `name-1`, ...
    ///
    /// # Errors
    /// The operating system refused a thread or an event queue.
    pub fn start(name: &str, count: usize) -> Result<Self, Error> {
        Self::start_within(name, count, MemoryBudget::unlimited())
    }

    /// As [`start`](Self::start), for connections that share this budget.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub fn start_within(name: &str, count: usize, memory: MemoryBudget) -> Result<Self, Error> {
        let (shutdown, supervisor) = (Shutdown::new(), Supervisor::default());
        let metrics = Arc::<Metrics>::default();
        let mut inboxes = Vec::new();
        let mut threads = Vec::new();
        for index in 0..count.max(1) {
            let refused = |source| Error::Thread { index, source };
            let runtime = Builder::new_current_thread().enable_all().build().map_err(refused)?;
            let (sender, inbox) = mpsc::channel(HAND_OVER_MAX);
            let follows = Follows {
                shutdown: shutdown.clone(),
                supervisor: supervisor.clone(),
                metrics: Arc::clone(&metrics),
            };
            let thread = format!("{name}-{index}");
            let run = move || run(&runtime, inbox, &follows);
            threads.push(supervisor.spawn(&thread, run).map_err(refused)?);
            inboxes.push(Inbox { thread, sender, connections: Arc::default() });
        }
        let open = OpenConnections::default();
        let by_address = Mutex::default();
        let awaited_headers = Arc::new(Semaphore::new(AWAITED_HEADERS_MAX));
        let inner = Inner {
            inboxes,
            shutdown,
            supervisor,
            metrics,
            memory,
            open,
            by_address,
            awaited_headers,
        };
        Ok(Self { handle: NetworkHandle { inner: Arc::new(inner) }, threads })
    }

    /// Places tasks and listeners on these threads.
    #[must_use]
    pub fn handle(&self) -> NetworkHandle {
        self.handle.clone()
    }

    /// Stops accepting, lets requests in flight finish and closes connections as they become
    /// idle; what is still open after `patience` is cut off. Blocks the calling thread, which
    /// must not be one of these. Returns the number of connections that were cut off.
    pub fn drain(self, patience: Duration) -> usize {
        self.finish(patience)
    }

    /// The same for callers that have something to do on the threads after it: what is still open
    /// is cut off when this is dropped.
    pub fn finish(&self, patience: Duration) -> usize {
        let inner = &self.handle.inner;
        inner.shutdown.advance(Phase::Draining);
        let deadline = Instant::now() + patience;
        let left = deadline.saturating_duration_since(Instant::now());
        let none_left = &inner.open.none_left;
        *none_left.wait_timeout_while(inner.open.lock(), left, |count| *count > 0)
    }
}

impl Drop for NetworkThreads {
    fn drop(&mut self) {
        self.handle.inner.shutdown.advance(Phase::Stopped);
        for thread in self.threads.drain(..) {
            thread.join().expect("a panic of it was caught");
        }
    }
}

impl NetworkHandle {
    /// Number of threads.
    #[must_use]
    pub fn thread_count(&self) -> usize {
        self.inner.inboxes.len()
    }

    /// The signal that connections and tasks of these threads follow.
    #[must_use]
    pub fn shutdown(&self) -> &Shutdown {
        &self.inner.shutdown
    }

    /// Counters of these threads.
    #[must_use]
    pub fn metrics(&self) -> &Arc<Metrics> {
        &self.inner.metrics
    }

    /// Memory limit of all connections of these threads.
    #[must_use]
    pub fn memory(&self) -> &MemoryBudget {
        &self.inner.memory
    }

    /// Connections open at this moment.
    #[must_use]
    pub fn connections_open(&self) -> usize {
        *self.inner.open.lock()
    }

    /// Keeps the failure of these threads and of their tasks: the panic of one that they must not
    /// go on without, or one under a lock.
    #[must_use]
    pub fn supervisor(&self) -> &Supervisor {
        &self.inner.supervisor
    }

    /// The threads that give no sign of life within `patience`.
    pub async fn silent_threads(&self, patience: Duration) -> Vec<&str> {
        let deadline = Instant::now() + patience;
        let pings = self.inner.inboxes.iter().map(|inbox| {
            let (ping, answered) = oneshot::channel();
            let sent = inbox.sender.try_send(Task::Ping(ping));
            (inbox, sent.map(|()| answered))
        });
        let mut silent = Vec::new();
        for (inbox, ping) in pings.collect::<Vec<_>>() {
            let is_alive = match ping {
                Ok(answered) => {
                    matches!(tokio::time::timeout_at(deadline, answered).await, Ok(Ok(())))
                }
                // It shows by taking anything of what is handed over.
                Err(_) => tokio::time::timeout_at(deadline, inbox.sender.reserve()).await.is_ok(),
            };
            if !is_alive {
                silent.push(inbox.thread.as_str());
            }
        }
        silent
    }

    /// Runs a task, without which the threads must not go on, on thread `index` modulo the number
    /// of threads. `start` runs there, so the future need not be `Send`. The task is dropped when
    /// the threads stop. Blocks while the thread's hand-over queue is full; must not be called from
    /// within a runtime.
    ///
    /// # Errors
    /// The threads have stopped.
    pub fn spawn_on_blocking<F, Fut>(
        &self,
        index: usize,
        name: &'static str,
        start: F,
    ) -> Result<(), Error>
    where
        F: FnOnce() -> Fut + Send + 'static,
        Fut: Future<Output = ()> + 'static,
    {
        let inbox = self.inner.inboxes.get(index % self.thread_count()).ok_or(Error::Stopped)?;
        let start: Start = Box::new(move || Box::pin(start()));
        let sent = inbox.sender.blocking_send(Task::Service(name, start));
        sent.map_err(|_| Error::Stopped)
    }

    /// Runs a task on the thread of the caller, one of these, which must not go on without it.
    pub fn spawn_here(&self, name: &'static str, task: impl Future<Output = ()> + 'static) {
        let supervisor = self.inner.supervisor.clone();
        tokio::task::spawn_local(async move { supervisor.watch(name, task).await });
    }

    /// Accepts connections of `listener` until the drain begins. Each goes to the thread with the
    /// fewest, where `serve` makes the future that serves it: from the socket, the peer's address,
    /// and when the connection has to be ready, TLS and SASL included. Blocks only while the first
    /// thread's hand-over queue is full; must not be called from within a runtime.
    ///
    /// # Errors
    /// The threads have stopped.
    pub fn serve<F, Fut>(
        &self,
        listener: Listener,
        limits: ListenerLimits,
        serve: F,
    ) -> Result<(), Error>
    where
        F: Fn(TcpStream, SocketAddr, Instant) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = ()> + 'static,
    {
        let handle = self.clone();
        self.spawn_on_blocking(0, "a listener", move || async move {
            handle.serve_here(listener, limits, serve).await;
        })
    }

    /// [`serve`](Self::serve) for callers that run on one of these threads: accepts there, until
    /// the drain begins.
    pub async fn serve_here<F, Fut>(&self, listener: Listener, limits: ListenerLimits, serve: F)
    where
        F: Fn(TcpStream, SocketAddr, Instant) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = ()> + 'static,
    {
        let address = listener.local_addr();
        if let Err(error) = self.accept_all(listener, &limits, &Arc::new(serve)).await {
            let why = format_args!("no connection is accepted at {address}: {error}");
            self.inner.supervisor.fail(why);
        }
    }

    async fn accept_all<F, Fut>(
        &self,
        listener: Listener,
        limits: &ListenerLimits,
        serve: &Arc<F>,
    ) -> io::Result<()>
    where
        F: Fn(TcpStream, SocketAddr, Instant) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = ()> + 'static,
    {
        let (mode, address) = (listener.proxy_protocol, listener.local_addr());
        let listener = TcpListener::from_std(listener.socket)?;
        loop {
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                () = self.inner.shutdown.reached(Phase::Draining) => return Ok(()),
            };
            match accepted {
                Ok((stream, peer)) => {
                    let entry = Entry {
                        peer,
                        listener: address,
                        mode,
                        limits: limits.clone(),
                        deadline: Instant::now() + limits.handshake_timeout,
                        of_address: None,
                        awaits_header: None,
                    };
                    let Some(entry) = self.admit(entry) else { continue };
                    if let Err(error) = self.place(stream, entry, serve).await {
                        tracing::debug!(%peer, %error, "failed to assign a connection to a thread");
                    }
                }
                Err(error) => {
                    let metrics = &self.inner.metrics;
                    metrics.refuse(Refusal::AcceptError, None, &address, &error);
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }

    /// Holds a connection against the limits that can be known at accept; `None` refuses it.
    fn admit(&self, mut entry: Entry) -> Option<Entry> {
        if self.connections_open() >= entry.limits.connections_max {
            entry.refuse(&self.inner, Refusal::ConnectionLimit, &"the connection limit is reached");
            return None;
        }
        if entry.mode != Mode::Disabled {
            let Ok(place) = Arc::clone(&self.inner.awaited_headers).try_acquire_owned() else {
                let why = "too many connections have not sent a PROXY protocol header";
                entry.refuse(&self.inner, Refusal::ConnectionLimit, &why);
                return None;
            };
            entry.awaits_header = Some(place);
        }
        // Where a header is required, the socket's address is that of a balancer.
        if entry.mode != Mode::Required {
            entry.of_address = Some(OfAddress::count(&self.inner, &entry)?);
        }
        Some(entry)
    }

    async fn place<F, Fut>(&self, stream: TcpStream, entry: Entry, serve: &Arc<F>) -> io::Result<()>
    where
        F: Fn(TcpStream, SocketAddr, Instant) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = ()> + 'static,
    {
        // Small answers must not wait for the peer's delayed acknowledgement.
        stream.set_nodelay(true)?;
        SockRef::from(&stream).set_tcp_notsent_lowat(UNSENT_BYTES_MAX)?;
        let stream = stream.into_std()?;
        let inboxes = self.inner.inboxes.iter();
        let Some(inbox) = inboxes.min_by_key(|inbox| inbox.connections.load(Ordering::Relaxed))
        else {
            return Ok(());
        };
        let open = OpenConnection::new(&self.inner, &inbox.connections);
        let serve = Arc::clone(serve);
        let (peer, at) = (entry.peer, entry.listener);
        let serve = move || async move {
            let (peer, deadline) = (entry.peer, entry.deadline);
            let mut stream = match TcpStream::from_std(stream) {
                Ok(stream) => stream,
                Err(error) => return tracing::warn!(%peer, %error, "cannot watch a connection"),
            };
            if let Some((peer, _of_address)) = entry.enter(&open.inner, &mut stream).await {
                serve(stream, peer, deadline).await;
            }
            drop(open);
        };
        let start: Start = Box::new(move || Box::pin(serve()));
        let placed = inbox.sender.send(Task::Connection(peer, at, start)).await;
        placed.map_err(|_| io::Error::other(Error::Stopped))
    }
}

/// Checks that a connection must pass before it is served.
struct Entry {
    peer: SocketAddr,
    /// The address that it came to.
    listener: SocketAddr,
    mode: Mode,
    limits: ListenerLimits,
    /// When PROXY protocol, TLS and SASL have to be done.
    deadline: Instant,
    /// Its place among those of the socket's address, until a header names another.
    of_address: Option<OfAddress>,
    awaits_header: Option<OwnedSemaphorePermit>,
}

impl Entry {
    /// The peer's address and its place among those of that address; `None` refuses it.
    async fn enter(
        mut self,
        inner: &Arc<Inner>,
        stream: &mut TcpStream,
    ) -> Option<(SocketAddr, OfAddress)> {
        let reading = proxy_protocol::accept(stream, self.mode, self.peer);
        let read = tokio::time::timeout_at(self.deadline, reading).await;
        match read.unwrap_or(Err(ProxyProtocolError::TimedOut)) {
            Ok(peer) if peer != self.peer => {
                self.peer = peer;
                self.of_address = None;
            }
            Ok(_) => {}
            Err(error) => {
                self.refuse(inner, Refusal::ProxyProtocol, &error);
                return None;
            }
        }
        self.awaits_header = None;
        let of_address = match self.of_address.take() {
            Some(of_address) => of_address,
            None => OfAddress::count(inner, &self)?,
        };
        Some((self.peer, of_address))
    }

    fn refuse(&self, inner: &Inner, cause: Refusal, why: &dyn fmt::Display) {
        inner.metrics.refuse(cause, Some(self.peer), &self.listener, why);
    }
}

/// Counts a connection among those of its address, where that is limited.
struct OfAddress(Option<(Arc<Inner>, IpAddr)>);

impl OfAddress {
    /// `None` if the address has as many as it may.
    fn count(inner: &Arc<Inner>, entry: &Entry) -> Option<Self> {
        let connections_max = entry.limits.connections_per_address_max;
        if connections_max == usize::MAX {
            return Some(Self(None));
        }
        let address = entry.peer.ip().to_canonical();
        let mut by_address = inner.by_address.lock();
        let count = by_address.entry(address).or_default();
        if *count >= connections_max {
            drop(by_address);
            entry.refuse(inner, Refusal::AddressLimit, &"its address has all that it may");
            return None;
        }
        *count += 1;
        Some(Self(Some((Arc::clone(inner), address))))
    }
}

impl Drop for OfAddress {
    fn drop(&mut self) {
        let Some((inner, address)) = &self.0 else { return };
        let mut by_address = inner.by_address.lock();
        if let Some(count) = by_address.get_mut(address) {
            *count -= 1;
            if *count == 0 {
                by_address.remove(address);
            }
        }
    }
}

impl OpenConnections {
    fn lock(&self) -> MutexGuard<'_, usize> {
        self.count.lock()
    }
}

/// Counts a connection from hand-over to close.
struct OpenConnection {
    inner: Arc<Inner>,
    on_thread: Arc<AtomicUsize>,
}

impl OpenConnection {
    fn new(inner: &Arc<Inner>, on_thread: &Arc<AtomicUsize>) -> Self {
        on_thread.fetch_add(1, Ordering::Relaxed);
        *inner.open.lock() += 1;
        add(&inner.metrics.connections_open, 1);
        add(&inner.metrics.connections_total, 1);
        Self { inner: Arc::clone(inner), on_thread: Arc::clone(on_thread) }
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.on_thread.fetch_sub(1, Ordering::Relaxed);
        self.inner.metrics.connections_open.fetch_sub(1, Ordering::Relaxed);
        let mut count = self.inner.open.lock();
        *count -= 1;
        if *count == 0 {
            self.inner.open.none_left.notify_all();
        }
    }
}

/// The signals that a thread follows, and where it reports failures.
struct Follows {
    shutdown: Shutdown,
    supervisor: Supervisor,
    metrics: Arc<Metrics>,
}

fn run(runtime: &Runtime, mut inbox: mpsc::Receiver<Task>, follows: &Follows) {
    let local = LocalSet::new();
    local.block_on(runtime, async move {
        loop {
            let task = tokio::select! {
                task = inbox.recv() => task,
                () = follows.shutdown.reached(Phase::Stopped) => None,
            };
            let Some(task) = task else { return };
            fault_point("network");
            follows.begin(task);
        }
    });
}

impl Follows {
    /// Begins a task on this thread.
    fn begin(&self, task: Task) {
        let supervisor = self.supervisor.clone();
        match task {
            Task::Service(name, start) => {
                let run = async move { start().await };
                tokio::task::spawn_local(async move { supervisor.watch(name, run).await });
            }
            Task::Connection(peer, at, start) => {
                let metrics = Arc::clone(&self.metrics);
                let run = async move { start().await };
                tokio::task::spawn_local(async move {
                    let Err(panic) = catch_in(run).await else { return };
                    metrics.refuse(Refusal::Defect, Some(peer), &at, &panic);
                    if panic.has_left_half_changed() {
                        supervisor.fail(format_args!("a connection ended by a {panic}"));
                    }
                });
            }
            // The requester may have timed out.
            Task::Ping(ping) => drop(ping.send(())),
        }
    }
}

#[cfg(test)]
mod tests;
