//! The limit of bytes that were taken from clients and are not durable.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use moldau_threads::Mutex;

/// Hands out bytes up to a limit, in the order in which they were asked for.
pub struct Admissions {
    limit: usize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    used: usize,
    tickets: u64,
    queue: VecDeque<Ticket>,
}

struct Ticket {
    number: u64,
    bytes: usize,
    waker: Waker,
    granted: bool,
}

impl State {
    /// A request above the limit is admitted alone, otherwise it could never be.
    fn fits(&self, bytes: usize, limit: usize) -> bool {
        self.used == 0 || self.used.saturating_add(bytes) <= limit
    }

    /// Grants what fits from the head of the queue, and returns the tasks to wake.
    fn grant(&mut self, limit: usize) -> Vec<Waker> {
        let mut wakers = Vec::new();
        let first = self.queue.partition_point(|ticket| ticket.granted);
        for at in first..self.queue.len() {
            let Some(bytes) = self.queue.get(at).map(|ticket| ticket.bytes) else { break };
            if !self.fits(bytes, limit) {
                break;
            }
            self.used += bytes;
            if let Some(ticket) = self.queue.get_mut(at) {
                ticket.granted = true;
                wakers.push(ticket.waker.clone());
            }
        }
        wakers
    }
}

impl Admissions {
    /// Nothing is handed out yet.
    pub fn new(limit: usize) -> Arc<Admissions> {
        Arc::new(Admissions { limit, state: Mutex::default() })
    }

    /// Admits at once or not at all; does not overtake waiters.
    pub fn admit(self: &Arc<Self>, bytes: usize) -> Option<Admission> {
        let mut state = self.state.lock();
        if !state.queue.is_empty() || !state.fits(bytes, self.limit) {
            return None;
        }
        state.used += bytes;
        Some(Admission { admissions: Arc::clone(self), bytes })
    }

    /// Admits when it is the turn of this request.
    pub fn wait(self: &Arc<Self>, bytes: usize) -> Admit {
        Admit { admissions: Arc::clone(self), bytes, ticket: None }
    }

    fn release(&self, bytes: usize) {
        let wakers = {
            let mut state = self.state.lock();
            state.used -= bytes;
            state.grant(self.limit)
        };
        wakers.into_iter().for_each(Waker::wake);
    }
}

/// Bytes that count against the limit until this is dropped, which the holder does when they are
/// durable.
pub struct Admission {
    admissions: Arc<Admissions>,
    bytes: usize,
}

impl Drop for Admission {
    fn drop(&mut self) {
        self.admissions.release(self.bytes);
    }
}

/// Resolves when the bytes are admitted.
pub struct Admit {
    admissions: Arc<Admissions>,
    bytes: usize,
    ticket: Option<u64>,
}

impl Future for Admit {
    type Output = Admission;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Admission> {
        let this = &mut *self;
        let admissions = Arc::clone(&this.admissions);
        let Some(number) = this.ticket else {
            if let Some(admission) = admissions.admit(this.bytes) {
                return Poll::Ready(admission);
            }
            let mut state = admissions.state.lock();
            state.tickets += 1;
            let number = state.tickets;
            let waker = context.waker().clone();
            state.queue.push_back(Ticket { number, bytes: this.bytes, waker, granted: false });
            this.ticket = Some(number);
            // A release between the two locks would otherwise be missed.
            let wakers = state.grant(admissions.limit);
            drop(state);
            wakers.into_iter().for_each(Waker::wake);
            return Poll::Pending;
        };
        let mut state = admissions.state.lock();
        let at = state.queue.iter().position(|ticket| ticket.number == number);
        let at = at.expect("a ticket is in the queue until it is taken here");
        if let Some(ticket) = state.queue.get_mut(at).filter(|ticket| !ticket.granted) {
            ticket.waker.clone_from(context.waker());
            return Poll::Pending;
        }
        state.queue.remove(at);
        this.ticket = None;
        drop(state);
        Poll::Ready(Admission { admissions, bytes: this.bytes })
    }
}

impl Drop for Admit {
    fn drop(&mut self) {
        let Some(number) = self.ticket else { return };
        let mut state = self.admissions.state.lock();
        let at = state.queue.iter().position(|ticket| ticket.number == number);
        let gone = at.and_then(|at| state.queue.remove(at));
        let granted = gone.is_some_and(|ticket| ticket.granted);
        drop(state);
        self.admissions.release(if granted { self.bytes } else { 0 });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn poll(admit: &mut Admit) -> Option<Admission> {
        match Pin::new(admit).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(admission) => Some(admission),
            Poll::Pending => None,
        }
    }

    #[test]
    fn a_request_above_the_limit_is_admitted_alone() {
        let admissions = Admissions::new(10);
        let large = admissions.admit(50).unwrap();
        assert!(admissions.admit(1).is_none());
        drop(large);
        assert!(admissions.admit(1).is_some());
    }

    #[test]
    fn a_small_request_does_not_overtake_a_large_one() {
        let admissions = Admissions::new(10);
        let first = admissions.admit(8).unwrap();
        let mut large = admissions.wait(9);
        assert!(poll(&mut large).is_none());
        assert!(admissions.admit(1).is_none());
        drop(first);
        let large = poll(&mut large).unwrap();
        assert!(admissions.admit(2).is_none());
        drop(large);
        assert!(admissions.admit(2).is_some());
    }

    #[test]
    fn a_waiter_that_gives_up_lets_the_next_pass() {
        let admissions = Admissions::new(10);
        let first = admissions.admit(10).unwrap();
        let (mut gone, mut next) = (admissions.wait(10), admissions.wait(4));
        assert!(poll(&mut gone).is_none() && poll(&mut next).is_none());
        drop(first);
        drop(gone);
        assert!(poll(&mut next).is_some());
        assert_eq!(admissions.state.lock().used, 0);
    }

    proptest! {
        #[test]
        fn use_never_passes_the_limit_and_returns_to_zero(
            sizes in prop::collection::vec(1usize..15, 1..60),
        ) {
            let admissions = Admissions::new(10);
            let mut held = VecDeque::new();
            let mut waiting = VecDeque::new();
            for size in sizes {
                let mut admit = admissions.wait(size);
                match poll(&mut admit) {
                    Some(admission) => held.push_back(admission),
                    None => waiting.push_back(admit),
                }
                let used = admissions.state.lock().used;
                prop_assert!(used <= 10 || held.len() == 1, "{used}");
                if size % 3 == 0 {
                    held.pop_front();
                }
                while let Some(admission) = waiting.front_mut().and_then(poll) {
                    waiting.pop_front();
                    held.push_back(admission);
                }
            }
            held.clear();
            while let Some(mut admit) = waiting.pop_front() {
                prop_assert!(poll(&mut admit).is_some());
            }
            prop_assert_eq!(admissions.state.lock().used, 0);
        }
    }
}
