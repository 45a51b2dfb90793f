//! A relay that damages a few of the records that consumers fetch through it, and knows which.
//!
//! It drops records, repeats them, swaps neighbours, flips bits and puts records into the wrong
//! partition, at random with a known mean distance, and sets the checksums of batches right
//! again, so that nothing but the records themselves tells of it. All else passes as it is. The
//! ledger must find every fault and name its kind.

mod damage;

use std::collections::HashMap;
use std::io::{ErrorKind, Read, Write as _};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use moldau_protocol::{ApiKey, frame};

use damage::Damage;
use moldau_measure::Error;

pub use damage::Injected;

/// Largest frame: an answer of 10 MB and what stands around it, as the client asks for at most.
const FRAME_BYTES_MAX: usize = 64 << 20;

/// Requests without an answer on one connection; the client has a handful.
const PENDING_MAX: usize = 1_024;

/// How long the target may take to accept.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// A relay that listens; dropping it ends its listening, and connections end with their client.
pub struct FaultyRelay {
    address: SocketAddr,
    stopping: Arc<AtomicBool>,
    shared: Arc<Shared>,
}

struct Shared {
    upstream: SocketAddr,
    /// Guards the choice of faults and what is known of them.
    damage: Mutex<Damage>,
}

impl Shared {
    fn damage(&self) -> MutexGuard<'_, Damage> {
        self.damage.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl FaultyRelay {
    /// A relay before `upstream` with one fault in `distance` records on average.
    ///
    /// # Errors
    /// [`Error::Machine`] when it cannot listen.
    pub fn start(upstream: SocketAddr, seed: u64, distance: u64) -> Result<Self, Error> {
        let action = "starting a relay";
        let listener =
            TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(Error::machine(action))?;
        let address = listener.local_addr().map_err(Error::machine(action))?;
        let damage = Mutex::new(Damage::new(seed, distance));
        let shared = Arc::new(Shared { upstream, damage });
        let stopping = Arc::new(AtomicBool::new(false));
        let (of_thread, is_stopping) = (Arc::clone(&shared), Arc::clone(&stopping));
        let accepting = move || accept(&listener, &of_thread, &is_stopping);
        thread::Builder::new().spawn(accepting).map_err(Error::machine(action))?;
        Ok(Self { address, stopping, shared })
    }

    /// The address that it listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The faults so far.
    pub fn injected(&self) -> Injected {
        self.shared.damage().injected()
    }
}

impl Drop for FaultyRelay {
    fn drop(&mut self) {
        self.stopping.store(true, Ordering::SeqCst);
        // Wakes the thread that accepts; where that fails it has ended.
        drop(TcpStream::connect_timeout(&self.address, CONNECT_TIMEOUT));
    }
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>, stopping: &AtomicBool) {
    while let Ok((client, _)) = listener.accept() {
        if stopping.load(Ordering::SeqCst) {
            return;
        }
        let shared = Arc::clone(shared);
        let carried = thread::Builder::new().spawn(move || {
            if let Err(error) = carry(&client, &shared) {
                tracing::debug!(%error, "a connection through the faulty relay ended");
            }
        });
        if let Err(error) = carried {
            tracing::warn!(%error, "a connection is closed for want of a thread");
        }
    }
}

/// API and version of the requests without an answer, by correlation id.
type Pending = Mutex<HashMap<i32, (i16, i16)>>;

/// Carries one connection to its end.
fn carry(client: &TcpStream, shared: &Shared) -> std::io::Result<()> {
    let upstream = TcpStream::connect_timeout(&shared.upstream, CONNECT_TIMEOUT)?;
    client.set_nodelay(true)?;
    upstream.set_nodelay(true)?;
    let pending = Pending::default();
    thread::scope(|scope| {
        let back = thread::Builder::new().spawn_scoped(scope, || {
            let answered = carry_answers(&upstream, client, shared, &pending);
            // Whichever side is gone already cannot be closed again.
            drop(client.shutdown(Shutdown::Both));
            answered
        })?;
        let asked = carry_requests(client, &upstream, &pending);
        drop(upstream.shutdown(Shutdown::Both));
        asked.and(back.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })
}

fn carry_requests(
    mut client: &TcpStream,
    mut upstream: &TcpStream,
    pending: &Pending,
) -> std::io::Result<()> {
    while let Some(framed) = read_frame(&mut client)? {
        let peeked = frame::peek(framed.get(4..).unwrap_or_default()).map_err(invalid)?;
        {
            let mut pending = pending.lock().unwrap_or_else(PoisonError::into_inner);
            if pending.len() >= PENDING_MAX {
                return Err(invalid("too many requests without an answer"));
            }
            pending.insert(peeked.correlation_id, (peeked.api_key, peeked.api_version));
        }
        upstream.write_all(&framed)?;
    }
    Ok(())
}

fn carry_answers(
    mut upstream: &TcpStream,
    mut client: &TcpStream,
    shared: &Shared,
    pending: &Pending,
) -> std::io::Result<()> {
    while let Some(framed) = read_frame(&mut upstream)? {
        let answer = framed.get(4..).unwrap_or_default();
        let correlation = frame::correlation_id(answer).map_err(invalid)?;
        let asked = pending.lock().unwrap_or_else(PoisonError::into_inner).remove(&correlation);
        let damaged = match asked {
            Some((api, version)) if api == ApiKey::Fetch.key() => {
                shared.damage().apply(answer, version).map_err(invalid)?
            }
            _ => None,
        };
        match damaged {
            Some(damaged) => client.write_all(&damaged)?,
            None => client.write_all(&framed)?,
        }
    }
    Ok(())
}

/// The next frame with its length, or `None` at the end.
fn read_frame(input: &mut impl Read) -> std::io::Result<Option<Vec<u8>>> {
    let mut length = [0; 4];
    match input.read_exact(&mut length) {
        Ok(()) => {}
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(None),
        Err(error) => return Err(error),
    }
    let body = usize::try_from(u32::from_be_bytes(length)).unwrap_or(usize::MAX);
    if body > FRAME_BYTES_MAX {
        return Err(invalid("a frame beyond the limit"));
    }
    let mut framed = vec![0; length.len() + body];
    let (prefix, rest) = framed.split_at_mut(length.len());
    prefix.copy_from_slice(&length);
    input.read_exact(rest)?;
    Ok(Some(framed))
}

fn invalid(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> std::io::Error {
    std::io::Error::new(ErrorKind::InvalidData, error)
}
