//! What carries connections between two parts of a system, and can be disturbed: a relay in this
//! process, as a network that fails between processes of one machine.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use moldau_measure::Error;

use super::POLL_INTERVAL;

/// Bytes that are carried at a time.
const PORTION_BYTES: usize = 64 * 1024;

/// Most connections at a time, as each has two threads: a broker has a dozen, a client a few.
const CONNECTIONS_MAX: usize = 256;

/// How long the part that a link leads to may take to accept.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a request that is answered with 503 may take to arrive.
const REQUEST_TIMEOUT: Duration = Duration::from_millis(200);

/// The answer of a store that is overloaded.
const UNAVAILABLE: &[u8] =
    b"HTTP/1.1 503 Slow Down\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";

/// How connections fare while a link is disturbed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disturbance {
    /// They are closed, and so are those that are made meanwhile.
    Refused,
    /// Nothing arrives. What was sent arrives after the disturbance.
    Held,
    /// Requests arrive, their replies do not. Then the connections are closed.
    RepliesLost,
    /// They are closed. Those that are made meanwhile get status 503 of HTTP.
    Unavailable,
    /// Each portion arrives later.
    Delayed(Duration),
}

/// A link that carries connections until it is dropped, which closes them.
#[derive(Debug)]
pub struct Link {
    shared: Arc<Shared>,
    listen: SocketAddr,
}

#[derive(Debug)]
struct Shared {
    /// Guards the connections and how they fare.
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    upstream: SocketAddr,
    disturbance: Option<Disturbance>,
    is_over: bool,
    last: u64,
    /// Both streams of each connection.
    open: BTreeMap<u64, [TcpStream; 2]>,
}

/// Which way bytes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    There,
    Back,
}

impl Link {
    /// Carries what connects to `listen` to `upstream`.
    ///
    /// # Errors
    /// [`Error::Machine`] if the address is taken or no thread can be started.
    pub fn start(listen: SocketAddr, upstream: SocketAddr) -> Result<Self, Error> {
        let listening = || Error::machine(format!("listening on {listen}"));
        let listener = TcpListener::bind(listen).map_err(listening())?;
        let listen = listener.local_addr().map_err(listening())?;
        let open = BTreeMap::new();
        let state = State { upstream, disturbance: None, is_over: false, last: 0, open };
        let shared = Arc::new(Shared { state: Mutex::new(state), changed: Condvar::new() });
        let own = Arc::clone(&shared);
        let started = thread::Builder::new().spawn(move || accept(&listener, &own));
        started.map_err(Error::machine("starting a thread"))?;
        Ok(Self { shared, listen })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.listen
    }

    /// Disturbs the connections until [`restore`](Self::restore).
    pub fn disturb(&self, disturbance: Disturbance) {
        self.set(Some(disturbance));
    }

    /// Ends the disturbance.
    pub fn restore(&self) {
        self.set(None);
    }

    /// Whether it carries a connection.
    #[must_use]
    pub fn is_used(&self) -> bool {
        !self.shared.lock().open.is_empty()
    }

    /// Leads elsewhere from here on. All connections are closed.
    pub fn lead_to(&self, upstream: SocketAddr) {
        let mut state = self.shared.lock();
        state.upstream = upstream;
        state.close_all();
    }

    /// Closes all connections. Others may be made at once.
    pub fn cut(&self) {
        self.shared.lock().close_all();
    }

    fn set(&self, disturbance: Option<Disturbance>) {
        let mut state = self.shared.lock();
        let before = std::mem::replace(&mut state.disturbance, disturbance);
        let closes = [Disturbance::Refused, Disturbance::Unavailable];
        // A connection without some of its bytes is of no use.
        let is_broken = before == Some(Disturbance::RepliesLost);
        if is_broken || disturbance.is_some_and(|it| closes.contains(&it)) {
            state.close_all();
        }
        drop(state);
        self.shared.changed.notify_all();
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        state.is_over = true;
        state.close_all();
        drop(state);
        self.shared.changed.notify_all();
        // Wakes the thread that accepts. If that is not possible, it has ended.
        drop(TcpStream::connect_timeout(&self.listen, CONNECT_TIMEOUT));
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits as long as nothing may arrive; gives whether a portion does.
    fn admits(&self, way: Way) -> bool {
        let mut state = self.lock();
        loop {
            match state.disturbance {
                _ if state.is_over => return false,
                Some(Disturbance::Held) => {
                    let woken = self.changed.wait(state);
                    state = woken.unwrap_or_else(PoisonError::into_inner);
                }
                Some(Disturbance::Delayed(by)) => {
                    drop(state);
                    thread::sleep(by);
                    return true;
                }
                Some(Disturbance::RepliesLost) => return way == Way::There,
                _ => return true,
            }
        }
    }
}

impl State {
    fn close_all(&mut self) {
        for stream in std::mem::take(&mut self.open).values().flatten() {
            // One that is closed already cannot be closed again.
            drop(stream.shutdown(Shutdown::Both));
        }
    }
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    loop {
        // Fails for a client that is gone again, and for want of descriptors for a while.
        let Ok((downstream, _)) = listener.accept() else {
            thread::sleep(POLL_INTERVAL);
            continue;
        };
        let state = shared.lock();
        if state.is_over {
            return;
        }
        let (disturbance, count) = (state.disturbance, state.open.len());
        drop(state);
        if disturbance == Some(Disturbance::Refused) || count >= CONNECTIONS_MAX {
            continue;
        }
        let own = Arc::clone(shared);
        let served = thread::Builder::new().spawn(move || match disturbance {
            Some(Disturbance::Unavailable) => answer_unavailable(downstream),
            _ => carry(&downstream, &own),
        });
        if let Err(error) = served {
            tracing::warn!(%error, "a connection is closed for want of a thread");
        }
    }
}

/// Reads what arrives for a moment, so that the answer is not lost with it.
fn answer_unavailable(mut stream: TcpStream) {
    let mut buffer = vec![0; PORTION_BYTES];
    // A client that is gone needs no answer.
    drop(stream.set_read_timeout(Some(REQUEST_TIMEOUT)));
    drop(stream.read(&mut buffer));
    drop(stream.write_all(UNAVAILABLE));
    drop(stream.shutdown(Shutdown::Write));
    while stream.read(&mut buffer).is_ok_and(|count| count > 0) {}
}

/// Carries one connection to its end. What cannot be connected or registered is closed.
fn carry(downstream: &TcpStream, shared: &Shared) {
    let to = shared.lock().upstream;
    let connected = TcpStream::connect_timeout(&to, CONNECT_TIMEOUT);
    let Ok(upstream) = connected else { return };
    let kept = [downstream, &upstream].map(|stream| {
        stream.set_nodelay(true)?;
        stream.try_clone()
    });
    let [Ok(down), Ok(up)] = kept else { return };
    let mut state = shared.lock();
    let closes = matches!(state.disturbance, Some(Disturbance::Refused | Disturbance::Unavailable));
    if closes || state.is_over || state.upstream != to {
        return;
    }
    state.last += 1;
    let number = state.last;
    state.open.insert(number, [down, up]);
    drop(state);
    thread::scope(|scope| {
        let there = || copy(downstream, &upstream, shared, Way::There);
        if thread::Builder::new().spawn_scoped(scope, there).is_ok() {
            copy(&upstream, downstream, shared, Way::Back);
        }
    });
    shared.lock().open.remove(&number);
}

/// Copies until `from` has no more, which `to` is shown. A failure of either ends both.
fn copy(mut from: &TcpStream, mut to: &TcpStream, shared: &Shared, way: Way) {
    let mut buffer = vec![0; PORTION_BYTES];
    let ended = loop {
        match from.read(&mut buffer) {
            Ok(0) => break to.shutdown(Shutdown::Write),
            Ok(count) if shared.admits(way) => {
                if let Err(error) = to.write_all(buffer.get(..count).unwrap_or_default()) {
                    break Err(error);
                }
            }
            Ok(_) => {}
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => break Err(error),
        }
    };
    if ended.is_err() {
        // One that is closed already cannot be closed again.
        drop(from.shutdown(Shutdown::Both));
        drop(to.shutdown(Shutdown::Both));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A link, the server behind it, and a connection with both of its ends.
    struct World {
        link: Link,
        server: TcpListener,
        client: TcpStream,
        served: TcpStream,
    }

    fn world() -> World {
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        let link = Link::start(any, server.local_addr().unwrap()).unwrap();
        let client = connect(&link);
        let (served, _) = server.accept().unwrap();
        served.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let mut world = World { link, server, client, served };
        // From here on the connection is known to the link.
        assert!(world.ask("first"));
        world
    }

    fn connect(link: &Link) -> TcpStream {
        let client = TcpStream::connect(link.address()).unwrap();
        client.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        client
    }

    impl World {
        /// Whether a word comes back.
        fn ask(&mut self, word: &str) -> bool {
            self.client.write_all(word.as_bytes()).unwrap();
            self.answer(word);
            let mut heard = vec![0; word.len()];
            self.client.read_exact(&mut heard).is_ok() && heard == word.as_bytes()
        }

        /// Waits for a word at the server, and sends it back.
        fn answer(&mut self, word: &str) {
            let mut heard = vec![0; word.len()];
            self.served.read_exact(&mut heard).unwrap();
            assert_eq!(heard, word.as_bytes());
            self.served.write_all(&heard).unwrap();
        }
    }

    fn is_closed(mut stream: &TcpStream) -> bool {
        let read = stream.read(&mut [0; 8]);
        let timed_out = |error: std::io::Error| error.kind() == std::io::ErrorKind::WouldBlock;
        read.map_or_else(|error| !timed_out(error), |count| count == 0)
    }

    #[test]
    fn what_was_sent_meanwhile_arrives_after_a_link_was_held() {
        let mut world = world();
        world.link.disturb(Disturbance::Held);
        world.client.write_all(b"late").unwrap();
        world.served.set_nonblocking(true).unwrap();
        assert!(world.served.read(&mut [0; 8]).is_err());
        world.served.set_nonblocking(false).unwrap();
        world.link.restore();
        world.answer("late");
        assert!(world.link.shared.lock().open.len() == 1);
    }

    #[test]
    fn a_request_arrives_whose_reply_is_lost() {
        let mut world = world();
        world.link.disturb(Disturbance::RepliesLost);
        world.client.write_all(b"request").unwrap();
        world.answer("request");
        // The link has taken the reply before it sees the end of the server.
        world.served.shutdown(Shutdown::Write).unwrap();
        assert!(is_closed(&world.client));
        world.link.restore();
        assert!(is_closed(&world.served));
    }

    #[test]
    fn a_link_refuses_until_it_is_restored() {
        let mut world = world();
        world.link.disturb(Disturbance::Refused);
        assert!(is_closed(&world.client) && is_closed(&world.served));
        assert!(is_closed(&connect(&world.link)));
        world.link.restore();
        world.client = connect(&world.link);
        (world.served, _) = world.server.accept().unwrap();
        assert!(world.ask("again"));
        world.link.disturb(Disturbance::Delayed(Duration::from_millis(1)));
        assert!(world.ask("later"));
        world.link.cut();
        assert!(is_closed(&world.client));
        let other = TcpListener::bind("127.0.0.1:0").unwrap();
        world.link.lead_to(other.local_addr().unwrap());
        world.client = connect(&world.link);
        (world.served, _) = other.accept().unwrap();
        assert!(world.ask("elsewhere"));
    }

    #[test]
    fn an_unavailable_store_answers_503_until_it_is_restored() {
        let world = world();
        world.link.disturb(Disturbance::Unavailable);
        let mut client = connect(&world.link);
        client.write_all(b"PUT /records/1 HTTP/1.1\r\n\r\n").unwrap();
        let mut answer = String::new();
        client.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
        assert!(is_closed(&world.client));
    }

    #[test]
    fn connections_end_with_their_link() {
        let World { link, client, served, .. } = world();
        assert!(link.is_used());
        drop(link);
        assert!(is_closed(&client) && is_closed(&served));
    }
}
