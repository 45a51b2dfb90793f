//! The requests of a route: settings, queue, and who waits for which answer.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, oneshot};

use super::dispatch::Dispatch;
use super::document::{Document, Form};
use super::frames::Protocol;
use super::guard::Guard;
use super::reply::Outcome;

/// How the processes of a route are started, and what they are sent.
#[derive(Debug)]
pub(crate) struct PoolSettings {
    /// Names the route in messages.
    pub(crate) name: String,
    /// Program and arguments.
    pub(crate) command: Vec<String>,
    pub(crate) directory: Option<PathBuf>,
    pub(crate) environment: BTreeMap<String, String>,
    pub(crate) processes: usize,
    pub(crate) in_flight_max: usize,
    pub(crate) protocol: Protocol,
    pub(crate) form: Form,
    /// How long a process may take to answer the oldest of its requests.
    pub(crate) timeout: Duration,
    /// How long a process may take from its start to its hello.
    pub(crate) start_timeout: Duration,
    /// How long a process may take to end once its stdin is closed, and again after SIGTERM.
    pub(crate) stop_timeout: Duration,
}

/// What came of a request.
#[derive(Debug)]
pub(super) enum Answer {
    Replied(Outcome),
    /// The process ended, which only this request can be the cause of.
    Died(String),
    /// The process did not answer in time.
    TimedOut,
}

/// A request, and who waits for its answer.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) document: Document,
    pub(super) answer: oneshot::Sender<Answer>,
}

/// What the processes of a route share.
pub(super) struct Shared {
    pub(super) settings: PoolSettings,
    /// Ends the processes if this one is killed.
    pub(super) guard: Arc<Guard>,
    /// Guards the requests.
    dispatch: Mutex<Dispatch<Call>>,
    /// Wakes each process for requests.
    pub(super) wake: Vec<Notify>,
}

impl Shared {
    pub(super) fn new(settings: PoolSettings, guard: Arc<Guard>) -> Self {
        let dispatch = Dispatch::new(settings.processes, settings.in_flight_max);
        let wake = (0..settings.processes).map(|_| Notify::new()).collect();
        Self { settings, guard, dispatch: Mutex::new(dispatch), wake }
    }

    /// Changes the requests, and wakes the processes that are to be sent some.
    pub(super) fn with<T>(&self, change: impl FnOnce(&mut Dispatch<Call>) -> T) -> T {
        let mut dispatch = self.lock();
        let changed = change(&mut dispatch);
        for (slot, wake) in self.wake.iter().enumerate() {
            if dispatch.has_outgoing(slot) {
                wake.notify_one();
            }
        }
        changed
    }

    /// Number of the first request that the process has not answered.
    pub(super) fn oldest(&self, slot: usize) -> Option<u64> {
        self.lock().oldest(slot)
    }

    fn lock(&self) -> MutexGuard<'_, Dispatch<Call>> {
        self.dispatch.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
