//! What the logs of a cluster forget of producers.
//!
//! A log forgets an idempotent producer that has been silent for long. A fence goes with the
//! transactional id of its producer: producer ids are not used again, so only batches that a paused
//! broker sends late can follow. One may open a transaction in a log then, which no client ends: it
//! is aborted.
//!
//! The controller knows all transactional ids. So it asks the sequencer for producers first, then
//! looks for their ids, and then makes sure that it still is the controller.

use std::time::Duration;

use moldau_cluster::{Answer, ProducerPlace, Sequencer};
use moldau_coordinator::producer_ids::ProducerIdentity;
use moldau_coordinator::transactions::{Outcome, Unmarked};

use crate::logs::Logs;
use crate::retention::PRODUCER_EXPIRATION_MS;
use crate::state::State;

/// How often producers are looked at: each look reads all rows.
const LOOK_INTERVAL_MS: u64 = 3_600_000;

/// Appends to the logs of those that are forgotten wait meanwhile, some ms.
const PRODUCERS_AT_A_TIME: i32 = 500;

const FENCES_AT_A_TIME: i64 = 10_000;

/// Where the next look goes on.
#[derive(Default)]
pub(crate) struct Look {
    /// When the last one ended.
    looked_at_ms: Option<i64>,
    producers_to: Option<ProducerPlace>,
    fences_to: Option<i64>,
}

impl Look {
    fn is_due(&self, now_ms: i64) -> bool {
        // Also if the clock was set back.
        self.looked_at_ms.is_none_or(|looked| looked.abs_diff(now_ms) >= LOOK_INTERVAL_MS)
    }
}

/// A round of the controller.
pub(crate) struct Forgetting<'a, Q> {
    pub(crate) sequencer: &'a Q,
    pub(crate) state: &'a State,
}

impl<Q: Sequencer> Forgetting<'_, Q> {
    /// Forgets producers and fences if a look at them is due.
    pub(crate) async fn forget_producers(&self, look: &mut Look, now_ms: i64) -> Answer<()> {
        if !look.is_due(now_ms) {
            return Ok(());
        }
        let age = Duration::from_millis(PRODUCER_EXPIRATION_MS.unsigned_abs());
        let mut forgotten = 0;
        loop {
            let after = look.producers_to;
            let expired = self.sequencer.expire_producers(after, age, PRODUCERS_AT_A_TIME).await?;
            forgotten += expired.forgotten;
            look.producers_to = expired.last;
            if expired.last.is_none() {
                break;
            }
        }
        if forgotten > 0 {
            tracing::info!(forgotten, "forgot producers that were silent in a partition");
        }
        while self.remove_fences(look).await? {}
        look.looked_at_ms = Some(now_ms);
        Ok(())
    }

    /// Removes some fences of producers without a transactional id; whether there may be more.
    async fn remove_fences(&self, look: &mut Look) -> Answer<bool> {
        let Some(confirmed) = self.state.storage.confirm() else { return Ok(false) };
        let found = self.sequencer.fences(look.fences_to, FENCES_AT_A_TIME).await?;
        let last = found.last().copied();
        let strangers = self.state.transactions.view(|known| known.strangers(found));
        if !strangers.is_empty() {
            // What another broker decided meanwhile is unknown here.
            if !confirmed.await {
                return Ok(false);
            }
            let strangers: Vec<i64> = strangers.into_iter().collect();
            self.sequencer.remove_fences(&strangers).await?;
        }
        look.fences_to = last;
        Ok(last.is_some())
    }

    /// Aborts transactions of producers without a transactional id.
    pub(crate) async fn abort_strangers(&self, now_ms: i64) {
        let Logs::Cluster(logs) = &self.state.logs else { return };
        let Some(confirmed) = self.state.storage.confirm() else { return };
        // The logs note their troubles themselves.
        let Ok(mut open) = logs.open_transactions().await else { return };
        let producers = open.keys().copied().collect();
        let strangers = self.state.transactions.view(|known| known.strangers(producers));
        if strangers.is_empty() || !confirmed.await {
            return;
        }
        for producer_id in strangers {
            let partitions = open.remove(&producer_id).into_iter().flatten().collect();
            tracing::warn!(
                producer_id,
                ?partitions,
                "aborts a transaction whose transactional id has expired"
            );
            // No epoch and no decision of it is later.
            let producer = ProducerIdentity { id: producer_id, epoch: i16::MAX };
            let (decision, outcome) = (i64::MAX, Outcome::Abort);
            let end = Unmarked { decision, outcome, producer, partitions };
            if logs.mark(&end, now_ms).await.is_err() {
                return;
            }
        }
    }
}
