//! Wakes reads that wait for records.
//!
//! A wake is a hint: whoever is woken looks up the log. One that is lost costs a poll interval, and
//! one too many costs a lookup. So what brokers tell one another needs no order and no answer.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::futures::Notified;
use tokio::sync::{Notify, watch};

use crate::sequencer::LogId;

/// Which logs have more records, as far as one broker was told.
#[derive(Debug, Default)]
pub struct Wakes {
    /// Guards the logs that reads wait for, with the number of these reads.
    waiting: Mutex<HashMap<LogId, (usize, Arc<Notify>)>>,
    /// Guards what other brokers were not told yet.
    untold: Mutex<Untold>,
    /// There is something to tell.
    announced: Notify,
    /// Counts the wakes of those that follow the frames.
    frames: watch::Sender<u64>,
    /// Counts the wakes of those that wait for requests or answers.
    requests: watch::Sender<u64>,
    /// Guards which logs were woken since [`Wakes::woken`] was answered.
    heard: Mutex<Heard>,
    /// There is something heard.
    woken: Notify,
}

/// Logs that were woken.
#[derive(Debug, Default)]
struct Heard {
    logs: BTreeSet<LogId>,
    /// Others as well; it is unknown which.
    others: bool,
}

/// What other brokers are to be told.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Untold {
    /// Logs that have more records.
    pub(crate) logs: BTreeSet<LogId>,
    /// There are more frames, or another owner.
    pub(crate) frames: bool,
    /// There are requests to the owner, or answers.
    pub(crate) requests: bool,
}

/// What a wake is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Wake {
    /// Logs that have more records.
    Logs(Vec<LogId>),
    /// More frames, or another owner of them.
    Frames,
    /// Requests to the owner of the frames, or answers.
    Requests,
    /// Some of all that; it is unknown what.
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
        untold.logs.extend(&logs);
        // Nobody tells them: then nobody else is there, or they poll.
        if untold.logs.len() > UNTOLD_MAX {
            untold.logs.clear();
        }
        drop(untold);
        self.announced.notify_one();
        self.wake(&Wake::Logs(logs));
    }

    /// Frames were appended, or their log was claimed: wakes those that follow it, as
    /// [`Wakes::announce`] does.
    pub fn announce_frames(&self) {
        lock(&self.untold).frames = true;
        self.announced.notify_one();
        self.wake(&Wake::Frames);
    }

    /// Changes with each wake of those that follow the frames.
    pub fn frames(&self) -> watch::Receiver<u64> {
        self.frames.subscribe()
    }

    /// Requests were left to the owner of the frames, or answered: wakes those that wait for them,
    /// as [`Wakes::announce`] does.
    pub fn announce_requests(&self) {
        lock(&self.untold).requests = true;
        self.announced.notify_one();
        self.wake(&Wake::Requests);
    }

    /// Changes with each wake of those that wait for requests or answers.
    pub fn requests(&self) -> watch::Receiver<u64> {
        self.requests.subscribe()
    }

    /// Wakes the reads of this broker.
    pub(crate) fn wake(&self, wake: &Wake) {
        self.hear(wake);
        if matches!(wake, Wake::Frames | Wake::All) {
            self.frames.send_modify(|wakes| *wakes += 1);
        }
        if matches!(wake, Wake::Requests | Wake::All) {
            self.requests.send_modify(|wakes| *wakes += 1);
        }
        let waiting = lock(&self.waiting);
        match wake {
            Wake::Frames | Wake::Requests => {}
            Wake::Logs(logs) => {
                for (_, notify) in logs.iter().filter_map(|log| waiting.get(log)) {
                    notify.notify_waiters();
                }
            }
            Wake::All => waiting.values().for_each(|(_, notify)| notify.notify_waiters()),
        }
    }

    /// Waits until logs are woken, and gives those that were since the last answer; `None` if it is
    /// unknown which. For one task, which looks at logs for many reads.
    pub async fn woken(&self) -> Option<BTreeSet<LogId>> {
        loop {
            let Heard { logs, others } = std::mem::take(&mut *lock(&self.heard));
            if others {
                return None;
            }
            if !logs.is_empty() {
                return Some(logs);
            }
            self.woken.notified().await;
        }
    }

    /// Keeps a wake for [`Wakes::woken`].
    fn hear(&self, wake: &Wake) {
        let mut heard = lock(&self.heard);
        match wake {
            Wake::Frames | Wake::Requests => return,
            Wake::Logs(logs) => heard.logs.extend(logs),
            Wake::All => heard.others = true,
        }
        if heard.logs.len() > UNTOLD_MAX {
            *heard = Heard { logs: BTreeSet::new(), others: true };
        }
        drop(heard);
        self.woken.notify_one();
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
    pub(crate) async fn untold(&self) -> Untold {
        loop {
            let untold = std::mem::take(&mut *lock(&self.untold));
            if untold != Untold::default() {
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
