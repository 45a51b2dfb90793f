//! Waiting for the high watermark of any of several logs.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Waker};

use moldau_threads::Mutex;

use crate::Log;

/// One waiting fetch, registered with each of its logs.
///
/// The order that misses nothing: register, read, then await [`Waiter::moved`].
#[derive(Debug, Default)]
pub struct Waiter {
    moved: AtomicBool,
    waker: Mutex<Option<Waker>>,
}

impl Waiter {
    /// A waiter that is registered nowhere.
    #[must_use]
    pub fn new() -> Arc<Waiter> {
        Arc::default()
    }

    /// Wakes the waiting task, unless it was woken already and has not looked since.
    pub fn wake(&self) {
        if self.moved.swap(true, Ordering::AcqRel) {
            return;
        }
        let waker = self.waker.lock().take();
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Resolves when a registered log has moved since the last time it resolved.
    pub fn moved(&self) -> Moved<'_> {
        Moved(self)
    }
}

/// Future of [`Waiter::moved`].
pub struct Moved<'a>(&'a Waiter);

impl Future for Moved<'_> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let mut waker = self.0.waker.lock();
        if self.0.moved.swap(false, Ordering::AcqRel) {
            return Poll::Ready(());
        }
        *waker = Some(context.waker().clone());
        Poll::Pending
    }
}

/// The waiters of one log.
#[derive(Debug, Default)]
pub(crate) struct Waiters(Mutex<Vec<Arc<Waiter>>>);

impl Waiters {
    pub(crate) fn add(&self, waiter: &Arc<Waiter>) {
        self.0.lock().push(Arc::clone(waiter));
    }

    fn remove(&self, waiter: &Arc<Waiter>) {
        let mut waiters = self.0.lock();
        if let Some(at) = waiters.iter().position(|known| Arc::ptr_eq(known, waiter)) {
            waiters.swap_remove(at);
        }
        if waiters.is_empty() {
            *waiters = Vec::new();
        }
    }

    pub(crate) fn wake(&self) {
        self.0.lock().iter().for_each(|waiter| waiter.wake());
    }
}

/// Keeps a waiter registered with a log until dropped.
#[derive(Debug)]
pub struct Registration {
    pub(crate) log: Arc<Log>,
    pub(crate) waiter: Arc<Waiter>,
}

impl Drop for Registration {
    fn drop(&mut self) {
        self.log.waiters.remove(&self.waiter);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::pin::pin;

    #[test]
    fn a_wake_between_registering_and_waiting_is_not_lost() {
        let waiter = Waiter::new();
        let mut context = Context::from_waker(Waker::noop());
        waiter.wake();
        waiter.wake();
        assert!(pin!(waiter.moved()).poll(&mut context).is_ready());
        assert!(pin!(waiter.moved()).poll(&mut context).is_pending());
    }
}
