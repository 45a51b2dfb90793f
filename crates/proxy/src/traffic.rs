//! What every request and every turn of a session counts: requests by API, and bytes. Each thread
//! has counters of its own, so that adding takes a load and a store and no thread takes the line
//! of another's cache.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, ThreadId};

use moldau_threads::Mutex;

/// API keys with a counter of their own; Kafka 4.4 ends at 94. The last one stands for those that
/// are not known.
const API_KEYS: usize = 128;

/// The counters of all threads.
#[derive(Debug, Default)]
pub(crate) struct Traffic {
    /// Guards which threads have counters; held when a session begins, and to read them.
    by_thread: Mutex<Vec<(ThreadId, Arc<ThreadTraffic>)>>,
}

/// Counters of the sessions on one thread. No other thread writes them.
#[derive(Debug)]
pub(crate) struct ThreadTraffic {
    requests: [AtomicU64; API_KEYS],
    downstream: Bytes<AtomicU64>,
    upstream: Bytes<AtomicU64>,
}

/// Bytes of one side.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Bytes<T> {
    pub(crate) received: T,
    pub(crate) sent: T,
}

/// The sums over all threads.
#[derive(Debug)]
pub(crate) struct Counted {
    /// By API key; the last one stands for those that are not known.
    pub(crate) requests: [u64; API_KEYS],
    pub(crate) downstream: Bytes<u64>,
    pub(crate) upstream: Bytes<u64>,
}

impl Traffic {
    /// The counters of this thread.
    pub(crate) fn here(&self) -> Arc<ThreadTraffic> {
        let mut by_thread = self.by_thread.lock();
        let here = thread::current().id();
        if let Some((_, counters)) = by_thread.iter().find(|(thread, _)| *thread == here) {
            return Arc::clone(counters);
        }
        let counters = Arc::new(ThreadTraffic {
            requests: std::array::from_fn(|_| AtomicU64::new(0)),
            downstream: Bytes::default(),
            upstream: Bytes::default(),
        });
        by_thread.push((here, Arc::clone(&counters)));
        counters
    }

    pub(crate) fn read(&self) -> Counted {
        let (downstream, upstream) = (Bytes::default(), Bytes::default());
        let mut sum = Counted { requests: [0; API_KEYS], downstream, upstream };
        for (_, counters) in &*self.by_thread.lock() {
            for (sum, count) in sum.requests.iter_mut().zip(&counters.requests) {
                *sum += count.load(Ordering::Relaxed);
            }
            counters.downstream.add_to(&mut sum.downstream);
            counters.upstream.add_to(&mut sum.upstream);
        }
        sum
    }
}

impl ThreadTraffic {
    /// Counts a request of the thread's own sessions.
    #[inline(never)]
    pub(crate) fn request(&self, api_key: i16) {
        let key = usize::try_from(api_key).map_or(API_KEYS, |key| key).min(API_KEYS - 1);
        if let Some(counter) = self.requests.get(key) {
            add_alone(counter, 1);
        }
    }

    /// Counts what a turn moved of requests and of responses.
    #[inline(never)]
    pub(crate) fn moved(&self, requests: Bytes<u64>, responses: Bytes<u64>) {
        add_alone(&self.downstream.received, requests.received);
        add_alone(&self.upstream.sent, requests.sent);
        add_alone(&self.upstream.received, responses.received);
        add_alone(&self.downstream.sent, responses.sent);
    }
}

impl Bytes<AtomicU64> {
    fn add_to(&self, sum: &mut Bytes<u64>) {
        sum.received += self.received.load(Ordering::Relaxed);
        sum.sent += self.sent.load(Ordering::Relaxed);
    }
}

/// Adds to a counter that only this thread changes.
pub(crate) fn add_alone(counter: &AtomicU64, amount: u64) {
    counter.store(counter.load(Ordering::Relaxed) + amount, Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_threads_are_read_together() {
        let traffic = Traffic::default();
        let count = || {
            let here = traffic.here();
            here.request(3);
            here.request(i16::MAX);
            here.request(-1);
            let (requests, responses) =
                (Bytes { received: 1, sent: 2 }, Bytes { received: 3, sent: 4 });
            here.moved(requests, responses);
            assert!(Arc::ptr_eq(&here, &traffic.here()));
        };
        thread::scope(|scope| {
            scope.spawn(count);
            scope.spawn(count);
        });
        let sum = traffic.read();
        assert_eq!((sum.requests[3], sum.requests[API_KEYS - 1]), (2, 4));
        assert_eq!(sum.requests.iter().sum::<u64>(), 6);
        assert_eq!(sum.downstream, Bytes { received: 2, sent: 8 });
        assert_eq!(sum.upstream, Bytes { received: 6, sent: 4 });
    }
}
