//! Faults between apps and their broker: connections that end, fetches that are slow, heartbeats
//! that do not get through.
//!
//! A relay on a thread of its own, started by the first who asks for it. The broker has a listener
//! for it, which names the relay's address to clients.

use std::collections::HashMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener as StdListener};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use crate::Clock;

/// Disturbs the connections of apps that reach the broker by [`address`](Self::address).
#[derive(Debug)]
pub struct Faults {
    address: SocketAddr,
    rules: watch::Sender<Rules>,
    thread: Option<JoinHandle<()>>,
}

/// Fetch answers are held until it is dropped.
#[derive(Debug)]
#[must_use = "dropping it lets the answers go"]
pub struct HeldFetches<'a>(&'a Faults);

/// Answers of heartbeats are held until it is dropped.
#[derive(Debug)]
#[must_use = "dropping it lets the answers go"]
pub struct HeldHeartbeats<'a>(&'a Faults);

/// What the relay does.
#[derive(Clone, Copy, Debug, Default)]
struct Rules {
    /// Connections that are older end.
    generation: u64,
    fetches_held: usize,
    heartbeats_held: usize,
    fetch_delay: Duration,
    /// Whether the broker is gone.
    is_over: bool,
}

impl Faults {
    /// A listener for the relay, which does not listen yet.
    pub(super) fn bind() -> StdListener {
        StdListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port is free")
    }

    pub(super) fn start(listener: StdListener, broker: SocketAddr, clock: Clock) -> Self {
        let address = listener.local_addr().expect("it is bound");
        let rules = watch::Sender::new(Rules::default());
        let mut changes = rules.subscribe();
        listener.set_nonblocking(true).expect("a listener can be set so");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.expect("a runtime starts");
        let run = move || {
            runtime.block_on(async {
                let listener = TcpListener::from_std(listener).expect("a runtime takes it");
                let over = changes.clone();
                tokio::select! {
                    () = accept(&listener, broker, &over, &clock) => {}
                    _ = changes.wait_for(|rules| rules.is_over) => {}
                }
            });
        };
        let thread = thread::Builder::new().name("moldau-faults".to_owned()).spawn(run);
        Self { address, rules, thread: Some(thread.expect("a thread starts")) }
    }

    /// Where apps connect to be disturbed: `host:port`.
    #[must_use]
    pub fn address(&self) -> String {
        self.address.to_string()
    }

    /// Ends all connections. Apps connect again.
    pub fn disconnect(&self) {
        self.rules.send_modify(|rules| rules.generation += 1);
    }

    /// Holds the answers of fetches, also of those of share groups.
    pub fn hold_fetches(&self) -> HeldFetches<'_> {
        self.rules.send_modify(|rules| rules.fetches_held += 1);
        HeldFetches(self)
    }

    /// Holds the answers of heartbeats. A member sends none before the last was answered, so its
    /// group puts it out after the session timeout.
    pub fn hold_heartbeats(&self) -> HeldHeartbeats<'_> {
        self.rules.send_modify(|rules| rules.heartbeats_held += 1);
        HeldHeartbeats(self)
    }

    /// Delays each answer of a fetch by this time of the broker's clock.
    pub fn delay_fetches(&self, by: Duration) {
        self.rules.send_modify(|rules| rules.fetch_delay = by);
    }
}

impl Drop for HeldFetches<'_> {
    fn drop(&mut self) {
        self.0.rules.send_modify(|rules| rules.fetches_held -= 1);
    }
}

impl Drop for HeldHeartbeats<'_> {
    fn drop(&mut self) {
        self.0.rules.send_modify(|rules| rules.heartbeats_held -= 1);
    }
}

impl Drop for Faults {
    fn drop(&mut self) {
        self.rules.send_modify(|rules| rules.is_over = true);
        if let Some(thread) = self.thread.take() {
            // A panic of it has been printed.
            drop(thread.join());
        }
    }
}

async fn accept(
    listener: &TcpListener,
    broker: SocketAddr,
    rules: &watch::Receiver<Rules>,
    clock: &Clock,
) {
    loop {
        let Ok((client, _)) = listener.accept().await else { return };
        let (mut rules, clock) = (rules.clone(), clock.clone());
        let generation = rules.borrow().generation;
        tokio::spawn(async move {
            let mut changes = rules.clone();
            tokio::select! {
                biased;
                // An answer that was held until then does not get through.
                _ = changes.wait_for(|rules| rules.generation > generation) => {}
                // Whoever is at the other end notices.
                ended = relay(client, broker, &mut rules, &clock) => drop(ended),
            }
        });
    }
}

/// APIs of the requests whose answers have not come, by correlation id.
type Asked = Arc<Mutex<HashMap<[u8; 4], [u8; 2]>>>;

async fn relay(
    client: TcpStream,
    broker: SocketAddr,
    rules: &mut watch::Receiver<Rules>,
    clock: &Clock,
) -> io::Result<()> {
    let broker = TcpStream::connect(broker).await?;
    client.set_nodelay(true)?;
    broker.set_nodelay(true)?;
    let ((from_client, to_client), (from_broker, to_broker)) =
        (client.into_split(), broker.into_split());
    let asked = Asked::default();
    tokio::select! {
        ended = requests(from_client, to_broker, &asked) => ended,
        ended = answers(from_broker, to_client, &asked, rules, clock) => ended,
    }
}

async fn requests(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    asked: &Asked,
) -> io::Result<()> {
    loop {
        let frame = frame(&mut from).await?;
        // Length, API key, API version, correlation id.
        if let Some([_, _, _, _, api_0, api_1, _, _, id @ ..]) = frame.first_chunk::<12>() {
            let mut asked = asked.lock().unwrap_or_else(PoisonError::into_inner);
            asked.insert(*id, [*api_0, *api_1]);
        }
        to.write_all(&frame).await?;
    }
}

async fn answers(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    asked: &Asked,
    rules: &mut watch::Receiver<Rules>,
    clock: &Clock,
) -> io::Result<()> {
    loop {
        let frame = frame(&mut from).await?;
        let id: Option<[u8; 4]> = frame.get(4..8).and_then(|id| id.try_into().ok());
        let api =
            id.and_then(|id| asked.lock().unwrap_or_else(PoisonError::into_inner).remove(&id));
        if api.is_some_and(|api| FETCHES.contains(&api)) {
            let delay = rules.borrow().fetch_delay;
            clock.sleep_until(clock.now() + delay).await;
            // The rules live as long as the relay.
            drop(rules.wait_for(|rules| rules.fetches_held == 0).await);
        }
        if api.is_some_and(|api| HEARTBEATS.contains(&api)) {
            drop(rules.wait_for(|rules| rules.heartbeats_held == 0).await);
        }
        to.write_all(&frame).await?;
    }
}

/// A frame with its length before it.
async fn frame(from: &mut OwnedReadHalf) -> io::Result<Vec<u8>> {
    let len = from.read_u32().await?;
    let mut frame = len.to_be_bytes().to_vec();
    let end = usize::try_from(len).map_err(io::Error::other)?.saturating_add(frame.len());
    if end > FRAME_BYTES_MAX {
        return Err(io::Error::other("the frame is too large"));
    }
    frame.resize(end, 0);
    from.read_exact(frame.get_mut(4..).unwrap_or_default()).await?;
    Ok(frame)
}

/// API keys of Fetch and ShareFetch.
const FETCHES: [[u8; 2]; 2] = [[0, 1], [0, 78]];

/// API keys of Heartbeat, ConsumerGroupHeartbeat and ShareGroupHeartbeat.
const HEARTBEATS: [[u8; 2]; 3] = [[0, 12], [0, 68], [0, 76]];

/// Largest frame: above what the broker takes, and what its clients fetch at once.
const FRAME_BYTES_MAX: usize = 100 << 20;
