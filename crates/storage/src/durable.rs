//! How far the journal is durable, and who waits for it.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Waker};

use moldau_threads::Mutex;

use crate::Error;

/// Log sequence number: the journal position after an entry. The entry is durable when the durable
/// position has reached it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Hash)]
pub struct Lsn(pub u64);

/// The durable position and its waiters: of the journal, or of what an owner keeps elsewhere.
pub struct Durable {
    position: AtomicU64,
    waiting: Mutex<Waiting>,
}

#[derive(Default)]
struct Waiting {
    wakers: BTreeMap<(u64, u64), Waker>,
    tickets: u64,
    failure: Option<Error>,
    /// Woken by the failure alone.
    observers: Vec<Waker>,
}

impl Durable {
    /// Everything up to a position is durable.
    pub fn new(position: u64) -> Arc<Durable> {
        Arc::new(Durable { position: AtomicU64::new(position), waiting: Mutex::default() })
    }

    /// The durable position.
    pub fn position(&self) -> u64 {
        self.position.load(Ordering::Acquire)
    }

    /// Moves the durable position and wakes those who waited for it.
    pub fn advance(&self, position: u64) {
        let reached = {
            let mut waiting = self.waiting.lock();
            self.position.store(position, Ordering::Release);
            if waiting.wakers.first_key_value().is_none_or(|((lsn, _), _)| *lsn > position) {
                return;
            }
            let later = waiting.wakers.split_off(&(position + 1, 0));
            std::mem::replace(&mut waiting.wakers, later)
        };
        reached.into_values().for_each(Waker::wake);
    }

    /// Ends all waiting, present and future, for what is not durable.
    pub fn fail(&self, error: Error) {
        let (wakers, observers) = {
            let mut waiting = self.waiting.lock();
            waiting.failure.get_or_insert(error);
            (std::mem::take(&mut waiting.wakers), std::mem::take(&mut waiting.observers))
        };
        wakers.into_values().for_each(Waker::wake);
        observers.into_iter().for_each(Waker::wake);
    }

    /// The first failure, if there was one.
    pub fn failure(&self) -> Option<Error> {
        self.waiting.lock().failure.clone()
    }

    /// Resolves when `lsn` is durable, or cannot become so.
    pub fn wait(self: &Arc<Self>, lsn: Lsn) -> WaitDurable {
        WaitDurable { durable: Arc::clone(self), lsn, ticket: None }
    }

    /// Resolves with the failure, if ever.
    pub fn wait_failure(self: &Arc<Self>) -> WaitFailure {
        WaitFailure { durable: Arc::clone(self) }
    }
}

/// Resolves when an [`Lsn`] is durable, or with the failure that keeps it from becoming so.
pub struct WaitDurable {
    durable: Arc<Durable>,
    lsn: Lsn,
    ticket: Option<u64>,
}

impl Future for WaitDurable {
    type Output = Result<(), Error>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        if this.durable.position() >= this.lsn.0 {
            return Poll::Ready(Ok(()));
        }
        let mut waiting = this.durable.waiting.lock();
        // The position moves under the lock, so that a move between the two looks is not missed.
        if this.durable.position() >= this.lsn.0 {
            return Poll::Ready(Ok(()));
        }
        if let Some(error) = &waiting.failure {
            return Poll::Ready(Err(error.clone()));
        }
        let ticket = *this.ticket.get_or_insert_with(|| {
            waiting.tickets += 1;
            waiting.tickets
        });
        waiting.wakers.insert((this.lsn.0, ticket), context.waker().clone());
        Poll::Pending
    }
}

impl Drop for WaitDurable {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket {
            self.durable.waiting.lock().wakers.remove(&(self.lsn.0, ticket));
        }
    }
}

/// Resolves with the failure that stopped the journal, if ever.
pub struct WaitFailure {
    durable: Arc<Durable>,
}

impl Future for WaitFailure {
    type Output = Error;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Error> {
        let mut waiting = self.durable.waiting.lock();
        if let Some(error) = &waiting.failure {
            return Poll::Ready(error.clone());
        }
        if !waiting.observers.iter().any(|waker| waker.will_wake(context.waker())) {
            waiting.observers.push(context.waker().clone());
        }
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block_on;
    use std::task::Wake;

    struct Count(AtomicU64);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn a_waiter_is_woken_once_and_only_when_its_position_is_reached() {
        let durable = Durable::new(0);
        let count = Arc::new(Count(AtomicU64::new(0)));
        let waker = Waker::from(Arc::clone(&count));
        let mut wait = durable.wait(Lsn(10));
        let mut poll = || Pin::new(&mut wait).poll(&mut Context::from_waker(&waker));
        assert!(poll().is_pending());
        assert!(poll().is_pending());
        durable.advance(9);
        assert_eq!(count.0.load(Ordering::Relaxed), 0);
        durable.advance(10);
        durable.advance(11);
        assert_eq!(count.0.load(Ordering::Relaxed), 1);
        assert!(poll().is_ready());
    }

    #[test]
    fn what_is_durable_stays_so_after_a_failure() {
        let durable = Durable::new(5);
        durable.fail(Error::Closed);
        assert!(block_on(durable.wait(Lsn(5))).is_ok());
        assert!(block_on(durable.wait(Lsn(6))).is_err());
        assert!(matches!(block_on(durable.wait_failure()), Error::Closed));
    }

    #[test]
    fn a_dropped_waiter_leaves_nothing_behind() {
        let durable = Durable::new(0);
        let mut wait = durable.wait(Lsn(1));
        assert!(Pin::new(&mut wait).poll(&mut Context::from_waker(Waker::noop())).is_pending());
        drop(wait);
        assert!(durable.waiting.lock().wakers.is_empty());
    }
}
