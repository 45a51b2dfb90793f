//! Wakes reads that wait for records.
//!
//! A wake is a hint: whoever is woken looks up the log. One that is lost costs a poll interval, and
//! one too many costs a lookup. So what brokers tell one another needs no order and no answer.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use tokio::sync::futures::Notified;

use crate::sequencer::LogId;

/// Which logs have more records, as far as one broker was told.
#[derive(Debug, Default)]
pub struct Wakes {
    /// Guards the logs that reads wait for, with the number of these reads.
    waiting: Mutex<HashMap<LogId, (usize, Arc<Notify>)>>,
    /// Guards what other brokers were not told yet.
    untold: Mutex<BTreeSet<LogId>>,
    /// There is something to tell.
    announced: Notify,
}

/// What a wake is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Wake {
    /// Logs that have more records.
    Logs(Vec<LogId>),
    /// Some logs; it is unknown which.
    All,
}

/// A read that waits for a log.
pub(crate) struct Waiting<'a> {
    wakes: &'a Wakes,
    log: LogId,
    notify: Arc<Notify>,
}

impl Wakes {
    /// Records were appended to these logs: wakes the reads of this broker, and those of others if
    /// [`Postgres::tell`](crate::Postgres::tell) connects them.
    pub fn announce(&self, logs: impl IntoIterator<Item = LogId>) {
        let logs: Vec<LogId> = logs.into_iter().collect();
        if logs.is_empty() {
            return;
        }
        let mut untold = lock(&self.untold);
        untold.extend(&logs);
        // Nobody tells them: then nobody else is there, or they poll.
        if untold.len() > UNTOLD_MAX {
            untold.clear();
        }
        drop(untold);
        self.announced.notify_one();
        self.wake(&Wake::Logs(logs));
    }

    /// Wakes the reads of this broker.
    pub(crate) fn wake(&self, wake: &Wake) {
        let waiting = lock(&self.waiting);
        match wake {
            Wake::Logs(logs) => {
                for (_, notify) in logs.iter().filter_map(|log| waiting.get(log)) {
                    notify.notify_waiters();
                }
            }
            Wake::All => waiting.values().for_each(|(_, notify)| notify.notify_waiters()),
        }
    }

    /// A wake of the log counts from the next [`Waiting::woken`] on.
    pub(crate) fn wait(&self, log: LogId) -> Waiting<'_> {
        let mut waiting = lock(&self.waiting);
        let (reads, notify) = waiting.entry(log).or_default();
        *reads += 1;
        let notify = notify.clone();
        drop(waiting);
        Waiting { wakes: self, log, notify }
    }

    /// Waits until there is something to tell, and takes it.
    pub(crate) async fn untold(&self) -> BTreeSet<LogId> {
        loop {
            let untold = std::mem::take(&mut *lock(&self.untold));
            if !untold.is_empty() {
                return untold;
            }
            self.announced.notified().await;
        }
    }
}

impl Waiting<'_> {
    /// The next wake. It counts from its first poll or `enable` on.
    pub(crate) fn woken(&self) -> Notified<'_> {
        self.notify.notified()
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let mut waiting = lock(&self.wakes.waiting);
        if let Some((reads, _)) = waiting.get_mut(&self.log) {
            *reads -= 1;
            if *reads == 0 {
                waiting.remove(&self.log);
            }
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// More logs than a broker appends to while it connects to the database again.
const UNTOLD_MAX: usize = 100_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_is_forgotten_with_its_last_read() {
        let (wakes, log) = (Wakes::default(), LogId { topic: uuid::Uuid::nil(), partition: 0 });
        let (first, second) = (wakes.wait(log), wakes.wait(log));
        drop(first);
        assert_eq!(lock(&wakes.waiting).len(), 1);
        drop(second);
        assert_eq!(lock(&wakes.waiting).len(), 0);
    }
}
