//! Topics that this process has to delete from clusters that it did not start.

use std::collections::BTreeSet;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use moldau_client::Security;

/// Guards what is to be deleted. No change of it leaves it half done.
static OWED: Mutex<Owed> =
    Mutex::new(Owed { clusters: Vec::new(), in_the_making: 0, is_refused: false });

/// Wakes the tasks that wait until no topic is being made.
static MADE: Condvar = Condvar::new();

struct Owed {
    clusters: Vec<OnCluster>,
    /// Calls under way that make topics.
    in_the_making: u32,
    is_refused: bool,
}

/// What one cluster holds.
pub(super) struct OnCluster {
    pub(super) bootstrap: String,
    pub(super) security: Security,
    /// Topics that are there, or may be.
    pub(super) topics: BTreeSet<String>,
    /// Topics that were there when they were to be made, perhaps by an attempt without an answer.
    pub(super) doubtful: Vec<String>,
}

fn lock() -> MutexGuard<'static, Owed> {
    OWED.lock().unwrap_or_else(PoisonError::into_inner)
}

fn of<'a>(owed: &'a mut Owed, bootstrap: &str) -> Option<&'a mut OnCluster> {
    owed.clusters.iter_mut().find(|it| it.bootstrap == bootstrap)
}

/// A call that makes topics is under way.
#[must_use]
pub(in crate::experiments) struct Making(());

impl Drop for Making {
    fn drop(&mut self) {
        lock().in_the_making -= 1;
        MADE.notify_all();
    }
}

/// Remembers topics that are about to be made; `None` where no more may be.
pub(super) fn make(bootstrap: &str, security: &Security, topics: &[String]) -> Option<Making> {
    let mut owed = lock();
    if owed.is_refused {
        return None;
    }
    owed.in_the_making += 1;
    match of(&mut owed, bootstrap) {
        Some(it) => it.topics.extend(topics.iter().cloned()),
        None => owed.clusters.push(OnCluster {
            bootstrap: bootstrap.to_owned(),
            security: security.clone(),
            topics: topics.iter().cloned().collect(),
            doubtful: Vec::new(),
        }),
    }
    Some(Making(()))
}

/// Forgets topics that are deleted.
pub(super) fn forget(bootstrap: &str, topics: &[String]) {
    if let Some(it) = of(&mut lock(), bootstrap) {
        for topic in topics {
            it.topics.remove(topic);
        }
    }
}

/// A topic was there when it was to be made: it may belong to another user, and is not deleted.
pub(super) fn doubt(bootstrap: &str, topic: &str) {
    if let Some(it) = of(&mut lock(), bootstrap) {
        it.topics.remove(topic);
        it.doubtful.push(topic.to_owned());
    }
}

/// From now on no topic is made; waits a while for topics that are being made.
pub(super) fn refuse(within: Duration) {
    let mut owed = lock();
    owed.is_refused = true;
    let waited = MADE.wait_timeout_while(owed, within, |owed| owed.in_the_making > 0);
    drop(waited);
}

/// Takes the list of topics to delete and clears it.
pub(super) fn take() -> Vec<OnCluster> {
    std::mem::take(&mut lock().clusters)
}
