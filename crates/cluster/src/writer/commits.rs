//! Objects on their way: uploads side by side, commits one after the other.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::Error;
use crate::retry::insist;
use crate::sequencer::{Answer, BatchEntry, Commit, LogId, ObjectKey, Outcome, Sequencer};
use crate::store::{Store, upload};
use crate::wakes::Wakes;

use super::{Waiter, WriterMetrics};

/// A collected object that is being put.
pub(super) struct Sealed {
    pub(super) upload: Uploaded,
    pub(super) batches: Vec<BatchEntry>,
    pub(super) waiters: Vec<Waiter>,
    pub(super) deadline: Instant,
}

/// An upload, and its object in case that it must be put under another key.
pub(super) struct Uploaded {
    object: Bytes,
    task: JoinHandle<Answer<ObjectKey>>,
}

impl Uploaded {
    pub(super) fn start<Q: Sequencer, S: Store>(
        sequencer: Arc<Q>,
        store: Arc<S>,
        object: Bytes,
        deadline: Instant,
    ) -> Self {
        let bytes = object.clone();
        let task = tokio::spawn(async move { upload(&*sequencer, &*store, bytes, deadline).await });
        Self { object, task }
    }
}

/// Commits objects in their order, and answers their appends.
pub(super) struct Commits<Q, S> {
    pub(super) sequencer: Arc<Q>,
    pub(super) store: Arc<S>,
    pub(super) wakes: Arc<Wakes>,
    pub(super) metrics: Arc<WriterMetrics>,
    pub(super) timeout: Duration,
}

impl<Q: Sequencer, S: Store> Commits<Q, S> {
    pub(super) async fn run(self, mut order: mpsc::Receiver<Sealed>) {
        while let Some(sealed) = order.recv().await {
            let Sealed { upload: Uploaded { object, task }, batches, waiters, deadline } = sealed;
            let key = task.await.unwrap_or(Err(Error::Stopped));
            // Time for the commit itself, even if the upload took all of it.
            let deadline = deadline.max(Instant::now() + self.timeout / 4);
            let logs: BTreeSet<LogId> = batches.iter().map(|batch| batch.log).collect();
            let outcomes = match key {
                Ok(key) => self.commit(Commit { key, batches }, object, deadline).await,
                Err(error) => Err(error),
            };
            // Also in doubt: whoever looks up a log in vain waits on.
            self.wakes.announce(logs);
            self.answer(outcomes, waiters);
        }
    }

    async fn commit(
        &self,
        mut commit: Commit,
        object: Bytes,
        deadline: Instant,
    ) -> Answer<Vec<Outcome>> {
        let (sequencer, store) = (&*self.sequencer, &*self.store);
        loop {
            let began = Instant::now();
            let outcomes = insist(deadline, || sequencer.commit(&commit)).await;
            if outcomes.is_ok() {
                self.metrics.commits.add(began.elapsed());
            }
            if !matches!(outcomes, Err(Error::ObjectDead(_))) {
                return outcomes;
            }
            if Instant::now() >= deadline {
                let collected =
                    "objects were collected before their commit until the time was over";
                return Err(Error::StoreAway(collected.into()));
            }
            // Nothing was appended, so the batches may go under another key.
            commit.key = upload(sequencer, store, object.clone(), deadline).await?;
        }
    }

    /// Gives each waiter its part of the outcomes.
    fn answer(&self, outcomes: Answer<Vec<Outcome>>, waiters: Vec<Waiter>) {
        let (now, mut rest) = (Instant::now(), outcomes.map(Vec::into_iter));
        for waiter in waiters {
            let part = match &mut rest {
                Ok(rest) => {
                    self.metrics.appends.add(now.duration_since(waiter.arrived));
                    Ok(rest.take(waiter.batches_count).collect())
                }
                Err(error) => Err(error.clone()),
            };
            // Whoever does not wait any longer needs no answer.
            drop(waiter.answer.send(part));
        }
    }
}
