//! The drain signal: one atomic that connections read for free, and a list of tasks to wake.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::{Context, Poll, Waker};

use moldau_threads::{Mutex, MutexGuard};

/// How far a shutdown has come.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
#[repr(u8)]
pub enum Phase {
    /// Requests are served.
    Running = 0,
    /// No new connections and no new requests; those in flight are finished.
    Draining = 1,
    /// Everything ends at once.
    Stopped = 2,
}

/// Tells many tasks on many threads to drain, then to stop. Clones share the signal.
#[derive(Clone, Debug, Default)]
pub struct Shutdown {
    inner: Arc<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    phase: AtomicU8,
    /// Guards the wakers of everyone who listens.
    listeners: Mutex<Wakers>,
}

#[derive(Debug, Default)]
struct Wakers {
    next_id: u64,
    by_id: HashMap<u64, Waker>,
}

impl Shutdown {
    /// A signal in [`Phase::Running`].
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The phase at this moment.
    #[must_use]
    pub fn phase(&self) -> Phase {
        match self.inner.phase.load(Ordering::Acquire) {
            0 => Phase::Running,
            1 => Phase::Draining,
            _ => Phase::Stopped,
        }
    }

    /// Moves on to `phase` and wakes everyone; phases never go back.
    pub fn advance(&self, phase: Phase) {
        self.inner.phase.fetch_max(phase as u8, Ordering::AcqRel);
        let wakers: Vec<Waker> = self.inner.lock().by_id.values().cloned().collect();
        for waker in wakers {
            waker.wake();
        }
    }

    /// Completes once the phase is at least `phase`.
    pub async fn reached(&self, phase: Phase) {
        let mut listener = self.listen();
        std::future::poll_fn(|cx| {
            if listener.phase(cx) >= phase { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }

    /// A place on the list of those to wake.
    pub(crate) fn listen(&self) -> ShutdownListener {
        ShutdownListener { shutdown: self.clone(), registered: None }
    }
}

impl Inner {
    fn lock(&self) -> MutexGuard<'_, Wakers> {
        self.listeners.lock()
    }
}

/// Wakes its task when the phase changes; leaves the list when dropped.
#[derive(Debug)]
pub(crate) struct ShutdownListener {
    shutdown: Shutdown,
    registered: Option<(u64, Waker)>,
}

impl ShutdownListener {
    /// The phase at this moment; the task of `cx` is woken when it changes.
    pub(crate) fn phase(&mut self, cx: &Context<'_>) -> Phase {
        let known = self.registered.as_ref().is_some_and(|(_, w)| w.will_wake(cx.waker()));
        if !known {
            let mut wakers = self.shutdown.inner.lock();
            let id = match self.registered {
                Some((id, _)) => id,
                None => {
                    wakers.next_id += 1;
                    wakers.next_id
                }
            };
            wakers.by_id.insert(id, cx.waker().clone());
            self.registered = Some((id, cx.waker().clone()));
        }
        self.shutdown.phase()
    }
}

impl Drop for ShutdownListener {
    fn drop(&mut self) {
        if let Some((id, _)) = self.registered {
            self.shutdown.inner.lock().by_id.remove(&id);
        }
    }
}
