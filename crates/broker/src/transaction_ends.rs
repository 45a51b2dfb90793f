//! The end of transactions in a cluster, where other brokers write to partitions too.
//!
//! A produce opens a transaction in the log of its partition, whichever broker it comes to. So who
//! decides a transaction holds its producer off first, and takes up where it has written. The
//! decision is a frame of the shared log; the markers follow, and only then does the producer get
//! its answer. A broker that becomes the controller writes the markers that may be missing. A log
//! takes the marker of a decision once.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use moldau_coordinator::producer_ids::ProducerIdentity;
use moldau_coordinator::transactions::{Outcome, TransactionVersion, Unmarked};
use moldau_protocol::ErrorCode;
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};

use crate::clock::wall_clock_ms;
use crate::config::DURABLE_WITHIN;
use crate::logs::{ClusterLogs, Logs, Lsn};
use crate::state::State;
use crate::transaction_service::{Stores, TransactionService};

/// How often the logs are asked for transactions that began there: a timeout may be late by this.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// The pause after a request without an answer.
const RETRY_PAUSE: Duration = Duration::from_millis(200);

impl TransactionService {
    /// Holds off the open transaction of an id with the epoch of its markers, and adds the
    /// partitions that it has written to.
    ///
    /// # Errors
    /// `COORDINATOR_NOT_AVAILABLE`, or what the state machine says.
    pub(crate) async fn gather(
        &self,
        stores: &Stores<'_>,
        id: &str,
        marker: ProducerIdentity,
    ) -> Result<(), ErrorCode> {
        let Logs::Cluster(logs) = stores.logs else { return Ok(()) };
        let Some((producer, decision)) = self.view(|known| known.undecided(id)) else {
            return Ok(());
        };
        let open = logs.fence(marker).await.map_err(|_away| ErrorCode::CoordinatorNotAvailable)?;
        let found = (producer.id, decision);
        let (added, _) =
            self.decide(stores, |known, now_ms| known.add_found(now_ms, id, found, &open));
        added
    }

    /// Waits until no marker of the id may be missing.
    ///
    /// # Errors
    /// `NOT_COORDINATOR`; `CONCURRENT_TRANSACTIONS` if it takes too long.
    async fn marked(&self, stores: &Stores<'_>, id: &str) -> Result<(), ErrorCode> {
        let mut changes = self.changes();
        let marked = async {
            loop {
                changes.borrow_and_update();
                stores.storage.coordinate().map_err(|refusal| refusal.code)?;
                if !self.view(|known| known.is_unmarked(id)) {
                    return Ok::<(), ErrorCode>(());
                }
                changes.changed().await.map_err(|_closed| ErrorCode::CoordinatorNotAvailable)?;
            }
        };
        let marked = timeout(DURABLE_WITHIN, marked).await;
        marked.unwrap_or(Err(ErrorCode::ConcurrentTransactions))
    }

    /// Waits until a decision about an id is durable and its markers are written.
    async fn settled(
        &self,
        stores: &Stores<'_>,
        id: &str,
        decided: Option<Lsn>,
    ) -> Result<(), ErrorCode> {
        if let Some(lsn) = decided {
            let durable = timeout(DURABLE_WITHIN, stores.storage.wait_durable(lsn)).await;
            let is_durable = durable.is_ok_and(|durable| durable.is_ok());
            is_durable.then_some(()).ok_or(ErrorCode::CoordinatorNotAvailable)?;
        }
        self.marked(stores, id).await
    }
}

/// EndTxn in a cluster. Gives the identity to go on with.
///
/// # Errors
/// The code for the producer.
pub(crate) async fn end(
    state: &State,
    id: &str,
    producer: ProducerIdentity,
    how: (TransactionVersion, Outcome),
) -> Result<ProducerIdentity, ErrorCode> {
    let (service, stores) = (&state.transactions, state.stores());
    stores.storage.coordinate().map_err(|refusal| refusal.code)?;
    let marker = match how.0 {
        TransactionVersion::V1 => producer,
        TransactionVersion::V2 => next_epoch(producer),
    };
    let owner = service.view(|known| known.undecided(id));
    if owner.is_some_and(|(owner, _)| owner == producer) {
        service.gather(&stores, id, marker).await?;
    }
    let (reply, decided) = service.decide(&stores, |known, now_ms| {
        known.end(now_ms, id, producer, how, || state.fresh_producer_id())
    });
    let next = reply?;
    service.settled(&stores, id, decided).await?;
    Ok(next)
}

/// InitProducerId with a transactional id in a cluster.
///
/// # Errors
/// The code for the producer.
pub(crate) async fn init(
    state: &State,
    id: &str,
    timeout_ms: i32,
    current: Option<ProducerIdentity>,
) -> Result<ProducerIdentity, ErrorCode> {
    let (service, stores) = (&state.transactions, state.stores());
    stores.storage.coordinate().map_err(|refusal| refusal.code)?;
    // Nobody is held off by a request that is refused or that repeats another.
    let takes_over = service.view(|known| {
        let decision = known.init(wall_clock_ms(), id, timeout_ms, current, || Ok(0));
        let (owner, _) = known.undecided(id)?;
        (decision.reply.is_ok() && !decision.changes.is_empty()).then_some(owner)
    });
    if let Some(owner) = takes_over {
        service.gather(&stores, id, next_epoch(owner)).await?;
    }
    let (reply, decided) = service.decide(&stores, |known, now_ms| {
        known.init(now_ms, id, timeout_ms, current, || state.fresh_producer_id())
    });
    let producer = reply?;
    service.settled(&stores, id, decided).await?;
    Ok(producer)
}

fn next_epoch(producer: ProducerIdentity) -> ProducerIdentity {
    ProducerIdentity { epoch: producer.epoch.saturating_add(1), ..producer }
}

/// Writes markers, and looks for transactions that began in the logs, while this broker is the
/// controller.
pub(crate) struct Marking {
    pub(crate) state: Arc<State>,
    pub(crate) logs: Arc<dyn ClusterLogs>,
}

/// A decision about an id.
type Decided = (String, i64);

impl Marking {
    /// Does what is due, for as long as the returned future is polled.
    pub(crate) async fn run(&self) {
        let service = &self.state.transactions;
        let mut changes = service.changes();
        let mut looks = interval(LOOK_INTERVAL);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (mut under_way, mut tasks) = (HashSet::<Decided>::new(), JoinSet::new());
        loop {
            changes.borrow_and_update();
            if self.state.storage.decides() {
                let (unmarked, written) = service.unmarked(&under_way);
                for (id, unmarked) in unmarked {
                    under_way.insert((id.clone(), unmarked.decision));
                    let (state, logs) = (Arc::clone(&self.state), Arc::clone(&self.logs));
                    tasks.spawn(async move {
                        mark(&state, &*logs, &id, &unmarked, written).await;
                        (id, unmarked.decision)
                    });
                }
            }
            tokio::select! {
                changed = changes.changed() => {
                    changed.expect("the state has the sender");
                }
                Some(marked) = tasks.join_next() => {
                    let marked = marked.expect("a task that writes markers does not panic");
                    under_way.remove(&marked);
                }
                _ = looks.tick() => self.look().await,
            }
        }
    }

    /// Adds the partitions of transactions that began in the logs: their timeouts run from here on.
    async fn look(&self) {
        if !self.state.storage.decides() {
            return;
        }
        let (service, stores) = (&self.state.transactions, self.state.stores());
        // Known before the logs are asked, so that what is decided meanwhile is told from it.
        let producers = service.view(|known| known.undecided_producers());
        if producers.is_empty() {
            return;
        }
        let Ok(open) = self.logs.open_transactions().await else { return };
        for (producer_id, partitions) in open {
            let Some((id, decision)) = producers.get(&producer_id) else { continue };
            let found = (producer_id, *decision);
            // Refused where the transaction was decided meanwhile.
            let (_decided, _) = service
                .decide(&stores, |known, now_ms| known.add_found(now_ms, id, found, &partitions));
        }
    }
}

/// Writes the markers of a decision once it is durable, and notes that.
async fn mark(
    state: &State,
    logs: &dyn ClusterLogs,
    id: &str,
    unmarked: &Unmarked,
    written: Option<Lsn>,
) {
    if let Some(lsn) = written
        && state.storage.wait_durable(lsn).await.is_err()
    {
        // Another broker knows what was decided.
        return;
    }
    while state.storage.decides() {
        if logs.mark(unmarked, wall_clock_ms()).await.is_err() {
            sleep(RETRY_PAUSE).await;
            continue;
        }
        let decision = unmarked.decision;
        let (_noted, _) = state
            .transactions
            .decide(&state.stores(), |known, now_ms| known.marked(now_ms, id, decision));
        return;
    }
}
