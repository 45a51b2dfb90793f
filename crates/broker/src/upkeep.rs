//! What a cluster does to its objects beside reading and writing them: retention, sorting, and the
//! deletion of those that nobody needs.
//!
//! The controller does it, only so that not all brokers do the same at a time: nothing breaks where
//! two do.

use std::sync::Arc;
use std::time::Duration;

use moldau_cluster::sorter::{SortOptions, Sorted, sort};
use moldau_cluster::{Answer, Error, LogId, ObjectKey, Retention, Sequencer, Store, garbage};
use tokio::time::sleep;
use uuid::Uuid;

use crate::catalog::Topic;
use crate::clock::wall_clock_ms;
use crate::state::State;

/// An object that nobody commits for so long is an orphan. One that is committed later is put
/// again under another key.
const ORPHAN_AGE: Duration = Duration::from_hours(1);

/// Upkeep of a cluster by one broker.
pub(crate) struct Upkeep<Q, S> {
    pub(crate) sequencer: Arc<Q>,
    pub(crate) store: Arc<S>,
    pub(crate) state: Arc<State>,
}

impl<Q: Sequencer, S: Store> Upkeep<Q, S> {
    /// Does what is due now and then, for as long as the returned future is polled.
    pub(crate) async fn run(&self) {
        let mut listed_to = None;
        loop {
            sleep(self.state.config.log_retention_check_interval).await;
            if !self.state.storage.decides() {
                continue;
            }
            if let Err(error) = self.round(&mut listed_to, wall_clock_ms()).await {
                tracing::warn!(%error, "the upkeep of the cluster's objects was not finished");
            }
        }
    }

    /// One round; orphans are looked for behind the last key of the round before.
    pub(crate) async fn round(&self, listed_to: &mut Option<ObjectKey>, now_ms: i64) -> Answer<()> {
        for topic in self.state.catalog.all() {
            self.retain(&topic, now_ms).await?;
        }
        let (sequencer, store) = (&*self.sequencer, &*self.store);
        while let Sorted::Swapped { sources, targets, damaged } =
            sort(sequencer, store, SortOptions::default()).await?
        {
            tracing::info!(sources, targets, damaged, "sorted objects");
        }
        let deleted = garbage::collect(sequencer, store).await?;
        if deleted > 0 {
            tracing::info!(deleted, "deleted objects");
        }
        let orphans = garbage::collect_orphans(sequencer, store, *listed_to, ORPHAN_AGE).await?;
        *listed_to = orphans.last;
        Ok(())
    }

    async fn retain(&self, topic: &Topic, now_ms: i64) -> Answer<()> {
        let config = &topic.config;
        let before_timestamp = config.retention_ms.map(|ms| now_ms.saturating_sub(ms));
        let bytes = config.retention_bytes.and_then(|bytes| i64::try_from(bytes).ok());
        if !config.deletes || (before_timestamp.is_none() && bytes.is_none()) {
            return Ok(());
        }
        let keep = Retention { before_timestamp, bytes };
        for partition in 0..topic.partitions_end() {
            let log = LogId { topic: Uuid::from_bytes(topic.id.into_bytes()), partition };
            match self.sequencer.retain(log, keep).await {
                // The topic was deleted a moment ago.
                Ok(_) | Err(Error::UnknownLog) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}
