//! What a cluster does to its objects beside reading and writing them: retention, sorting,
//! compaction, and the deletion of those that are not needed. It also forgets producers.
//!
//! The controller does it, only so that not all brokers do the same at a time: nothing breaks where
//! two do.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use moldau_cluster::compactor::{CompactOptions, Compacted, Dirty, compact};
use moldau_cluster::sorter::{SortOptions, Sorted, sort};
use moldau_cluster::{Answer, Error, LogId, ObjectKey, Retention, Sequencer, Store, garbage};
use moldau_storage::Compaction;
use tokio::time::sleep;
use uuid::Uuid;

use crate::catalog::Topic;
use crate::clock::wall_clock_ms;
use crate::forgetting::{Forgetting, Look};
use crate::state::State;
use crate::troubles::{NamedLog, Troubles};

/// An object that nobody commits for so long is an orphan. One that is committed later is put
/// again under another key.
const ORPHAN_AGE: Duration = Duration::from_hours(1);

/// Memory for the keys of a log while it is compacted: some 700,000.
const KEYS_BYTES: usize = 16 << 20;

/// Bytes of a log that are rewritten at a time, and so in memory.
const COMPACTED_BYTES: usize = 32 << 20;

/// A reader reads whole extents.
const EXTENT_BYTES: usize = 1 << 20;

/// For the PUT and the swap of what was compacted.
const COMPACT_TIMEOUT: Duration = Duration::from_secs(60);

/// Where the next round goes on.
#[derive(Default)]
pub(crate) struct Rounds {
    /// The last key among which orphans were looked for.
    listed_to: Option<ObjectKey>,
    /// First offsets of compacted logs that are dirty. Another controller reads the logs again.
    cleaned_to: HashMap<LogId, i64>,
    producers: Look,
    troubles: Troubles,
}

fn id_of(topic: &Topic) -> Uuid {
    Uuid::from_bytes(topic.id.into_bytes())
}

fn options_of(compaction: Compaction) -> CompactOptions {
    CompactOptions {
        min_lag_ms: compaction.min_lag_ms,
        max_lag_ms: compaction.max_lag_ms,
        delete_retention_ms: compaction.delete_retention_ms,
        min_dirty_ratio: compaction.min_dirty_ratio,
        map_bytes: KEYS_BYTES,
        object_bytes: COMPACTED_BYTES,
        extent_bytes: EXTENT_BYTES,
        timeout: COMPACT_TIMEOUT,
        seed: fastrand::u64(..),
    }
}

/// Upkeep of a cluster by one broker.
pub(crate) struct Upkeep<Q, S> {
    pub(crate) sequencer: Arc<Q>,
    pub(crate) store: Arc<S>,
    pub(crate) state: Arc<State>,
}

impl<Q: Sequencer, S: Store> Upkeep<Q, S> {
    /// Does what is due now and then, until another database owns the objects: what brokers of this
    /// one append would be deleted.
    pub(crate) async fn run(&self) -> Error {
        let mut rounds = Rounds::default();
        loop {
            sleep(self.state.config.log_retention_check_interval).await;
            if let Err(error @ (Error::StoreOwned { .. } | Error::StoreTakenOver { .. })) =
                self.store.expect_owned().await
            {
                return error;
            }
            if !self.state.storage.decides() {
                continue;
            }
            let kept = self.round(&mut rounds, wall_clock_ms()).await;
            // The next round does what this one could not.
            drop(rounds.troubles.note("finish the upkeep of the cluster's objects", kept));
        }
    }

    /// One round.
    pub(crate) async fn round(&self, rounds: &mut Rounds, now_ms: i64) -> Answer<()> {
        for topic in self.state.catalog.all() {
            self.retain(&topic, now_ms).await?;
        }
        let forgetting = Forgetting { sequencer: &*self.sequencer, state: &self.state };
        forgetting.abort_strangers(now_ms).await;
        forgetting.forget_producers(&mut rounds.producers, now_ms).await?;
        let (sequencer, store) = (&*self.sequencer, &*self.store);
        while let Sorted::Swapped { sources, targets, damaged } =
            sort(sequencer, store, SortOptions::default()).await?
        {
            tracing::info!(sources, targets, damaged, "sorted objects");
            if let Some(cluster) = &self.state.cluster {
                let ranges = u64::try_from(sources).unwrap_or(u64::MAX);
                cluster.ranges_sorted.fetch_add(ranges, Ordering::Relaxed);
            }
        }
        self.compact(rounds, now_ms).await;
        let deleted = garbage::collect(sequencer, store).await?;
        if deleted > 0 {
            tracing::info!(deleted, "deleted objects");
        }
        let orphans =
            garbage::collect_orphans(sequencer, store, rounds.listed_to, ORPHAN_AGE).await?;
        rounds.listed_to = orphans.last;
        Ok(())
    }

    /// Cleans the logs of compacted topics that are due. One that cannot be cleaned hinders no
    /// other.
    async fn compact(&self, rounds: &mut Rounds, now_ms: i64) {
        let Rounds { cleaned_to, troubles, .. } = rounds;
        let catalog = &self.state.catalog;
        cleaned_to.retain(|log, _| {
            let id = moldau_protocol::Uuid::from_bytes(log.topic.into_bytes());
            catalog.by_id(id).is_some_and(|topic| topic.config.compaction.is_some())
        });
        for topic in catalog.all() {
            let Some(options) = topic.config.compaction.map(options_of) else { continue };
            for partition in 0..topic.partitions_end() {
                let log = LogId { topic: id_of(&topic), partition };
                let dirty = Dirty { log, offset: cleaned_to.get(&log).copied().unwrap_or(0) };
                let (sequencer, store) = (&*self.sequencer, &*self.store);
                let compacted = compact(sequencer, store, dirty, &options, now_ms).await;
                let is_away = compacted.as_ref().is_err_and(Error::is_retriable);
                let named = NamedLog { topic: &topic.name, id: log };
                troubles.note_of("compact a log", (!is_away).then_some(named), &compacted);
                match compacted {
                    Err(_) | Ok(Compacted::Nothing | Compacted::Outrun) => {}
                    Ok(Compacted::Cleaned { records_read, records_retained, dirty_offset }) => {
                        let topic = &*topic.name;
                        tracing::info!(
                            topic,
                            partition,
                            read = records_read,
                            retained = records_retained,
                            "compacted a log"
                        );
                        self.state.counters.compacted_log(records_read, records_retained);
                        cleaned_to.insert(log, dirty_offset);
                    }
                }
            }
        }
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
            let log = LogId { topic: id_of(topic), partition };
            match self.sequencer.retain(log, keep).await {
                // The topic was deleted a moment ago.
                Ok(_) | Err(Error::UnknownLog) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}
