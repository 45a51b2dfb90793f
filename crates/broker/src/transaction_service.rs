//! The transaction coordinator as the handlers use it: the state machine, its place in the journal,
//! and the timer that aborts what takes too long.
//!
//! A transaction ends in one frame of the journal: the coordinator's record, a marker in each
//! partition that was written, and the offsets that the groups get. In a cluster the markers follow
//! ([`crate::transaction_ends`]).

use std::collections::HashSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use moldau_coordinator::TopicOffsets;
use moldau_coordinator::producer_ids::ProducerIdentity;
use moldau_coordinator::transactions::{
    Change, Decision, Outcome, TransactionRecord, TransactionVersion, Transactions, Unmarked,
};
use moldau_protocol::{ErrorCode, Uuid};
use moldau_records::{Marker, MarkerBatch};
use moldau_storage::{LogMarker, Lsn};
use tokio::sync::{Notify, watch};

use crate::catalog::Catalog;
use crate::clock::Clock;
use crate::config::LEADER_EPOCH;
use crate::error::{Refusal, append_refusal};
use crate::fetch_session::lock;
use crate::group_service::GroupService;
use crate::logs::Logs;
use crate::metadata_record::MetadataRecord;
use crate::storage::Storage;
use crate::troubles::Troubles;

/// Longest sleep of the timer while there is nothing to wait for.
const TIMER_SLEEP_MAX: Duration = Duration::from_secs(60);

/// How long the timer waits before it tries a journal again that takes nothing.
const RETRY_PAUSE: Duration = Duration::from_secs(1);

/// All transactions of the broker.
pub(crate) struct TransactionService {
    /// Guards the state machine and the order in which its records and the batches of transactions
    /// enter the journal. Taken before the locks of the catalog, of groups, of producer ids and of
    /// logs.
    inner: Mutex<Inner>,
    /// Told when the earliest deadline may have moved.
    rescheduled: Notify,
    /// Told of each change.
    changed: watch::Sender<()>,
    clock: Clock,
}

struct Inner {
    transactions: Transactions,
    /// Position of the last record; an answer goes out when this is durable.
    written: Option<Lsn>,
}

/// What the end of a transaction is written to.
#[derive(Clone, Copy)]
pub(crate) struct Stores<'a> {
    pub(crate) storage: &'a Storage,
    pub(crate) logs: &'a Logs,
    pub(crate) catalog: &'a Catalog,
    pub(crate) groups: &'a GroupService,
}

/// A batch of a transaction that is to be appended.
pub(crate) struct TransactionalBatch<'a> {
    pub(crate) transactional_id: &'a str,
    pub(crate) producer: ProducerIdentity,
    pub(crate) partition: (Uuid, i32),
    /// Version 2 adds the partition to the transaction; before that it must have been added.
    pub(crate) version: TransactionVersion,
}

impl TransactionService {
    /// Transactions restored by replay, from `now_ms` on.
    pub(crate) fn start(transactions: Transactions, now_ms: i64) -> Self {
        Self {
            inner: Mutex::new(Inner { transactions, written: None }),
            rescheduled: Notify::new(),
            changed: watch::Sender::default(),
            clock: Clock::start(now_ms),
        }
    }

    /// Decides a request, and writes and applies what was decided. The answer is true once the
    /// position beside it is durable.
    pub(crate) fn decide<T>(
        &self,
        stores: &Stores<'_>,
        request: impl FnOnce(&Transactions, i64) -> Decision<T>,
    ) -> (Result<T, ErrorCode>, Option<Lsn>) {
        if let Err(refusal) = stores.storage.coordinate() {
            return (Err(refusal.code), None);
        }
        let mut inner = lock(&self.inner);
        let Decision { reply, changes } = request(&inner.transactions, self.clock.now_ms());
        let is_change = !changes.is_empty();
        if let Err(refusal) = inner.write(stores, changes) {
            tracing::warn!(problem = refusal.message, "failed to write a transaction");
            // Clients ask again, as they do where a record of Kafka's coordinator is not written.
            return (Err(ErrorCode::CoordinatorNotAvailable), None);
        }
        let written = inner.written;
        drop(inner);
        if is_change {
            self.rescheduled.notify_one();
            self.changed.send_replace(());
        }
        (reply, written)
    }

    /// Appends a batch of a transaction, which cannot end meanwhile.
    ///
    /// # Errors
    /// The code of a batch that is not part of its transaction, or those of `append`.
    pub(crate) fn append<T>(
        &self,
        stores: &Stores<'_>,
        batch: &TransactionalBatch<'_>,
        append: impl FnOnce() -> Result<T, Refusal>,
    ) -> Result<T, Refusal> {
        let TransactionalBatch { transactional_id: id, producer, partition, version } = *batch;
        let mut inner = lock(&self.inner);
        let known = &inner.transactions;
        let decision = match version {
            TransactionVersion::V1 => Decision {
                reply: known.verify_partition(id, producer, partition),
                changes: Vec::new(),
            },
            TransactionVersion::V2 => {
                known.add_partitions(self.clock.now_ms(), id, producer, &[partition])
            }
        };
        decision.reply.map_err(|code| {
            Refusal::new(code, "the batch is not part of an open transaction of its producer")
        })?;
        let begins = !decision.changes.is_empty();
        inner.write(stores, decision.changes)?;
        let appended = append();
        drop(inner);
        if begins {
            self.rescheduled.notify_one();
        }
        appended
    }

    /// Whether the producer of a batch may be that of its transactional id. The log of a cluster
    /// knows whether its epoch is held off.
    ///
    /// # Errors
    /// `INVALID_PRODUCER_ID_MAPPING`; a code with which producers send again where this broker may
    /// not have heard of the producer yet.
    pub(crate) fn admit(
        &self,
        storage: &Storage,
        id: &str,
        producer: ProducerIdentity,
    ) -> Result<(), Refusal> {
        if self.view(|known| known.may_be(id, producer)) {
            return Ok(());
        }
        let (code, message) = match storage.decides() {
            true => (ErrorCode::InvalidProducerIdMapping, "it is not the producer of its id"),
            false => (ErrorCode::NotEnoughReplicas, "this broker does not know the producer yet"),
        };
        Err(Refusal::new(code, message))
    }

    /// Applies a record that the owner of the shared log wrote.
    pub(crate) fn replay(&self, record: TransactionRecord) {
        lock(&self.inner).transactions.apply(record);
    }

    /// Takes other transactions in place of these.
    pub(crate) fn replace(&self, transactions: Transactions) {
        let mut inner = lock(&self.inner);
        (inner.transactions, inner.written) = (transactions, None);
        drop(inner);
        self.changed.send_replace(());
    }

    /// This broker coordinates transactions from here on.
    pub(crate) fn awake(&self) {
        self.rescheduled.notify_one();
        self.changed.send_replace(());
    }

    /// Tells of each change.
    pub(crate) fn changes(&self) -> watch::Receiver<()> {
        self.changed.subscribe()
    }

    /// The decisions whose markers may be missing, except some, and the position up to which they
    /// must be durable before.
    pub(crate) fn unmarked(
        &self,
        except: &HashSet<(String, i64)>,
    ) -> (Vec<(String, Unmarked)>, Option<Lsn>) {
        let inner = lock(&self.inner);
        let unmarked = inner.transactions.unmarked().map(|(id, it)| (id.to_owned(), it));
        let unmarked = unmarked.filter(|(id, it)| !except.contains(&(id.clone(), it.decision)));
        (unmarked.map(|(id, it)| (id, it.clone())).collect(), inner.written)
    }

    /// Reads the state without changing it.
    pub(crate) fn view<T>(&self, view: impl FnOnce(&Transactions) -> T) -> T {
        view(&lock(&self.inner).transactions)
    }

    /// Position of the last record that is part of what [`TransactionService::view`] shows.
    pub(crate) fn written(&self) -> Option<Lsn> {
        lock(&self.inner).written
    }

    /// Hands over the records that rebuild all transactions, which do not change meanwhile.
    pub(crate) fn with_snapshot<T>(&self, take: impl FnOnce(Vec<MetadataRecord>) -> T) -> T {
        let inner = lock(&self.inner);
        take(inner.transactions.snapshot().map(|record| metadata_record(&record)).collect())
    }

    /// Lets time pass for the transactions, for as long as the returned future is polled.
    pub(crate) async fn run_timer(&self, stores: &Stores<'_>) {
        let troubles = Troubles::default();
        loop {
            let deadline_ms = match stores.storage.decides() {
                true => self.view(Transactions::next_deadline).unwrap_or(i64::MAX),
                false => i64::MAX,
            };
            let left_ms = deadline_ms.saturating_sub(self.clock.now_ms());
            let left = Duration::from_millis(u64::try_from(left_ms).unwrap_or(0));
            tokio::select! {
                () = tokio::time::sleep(left.min(TIMER_SLEEP_MAX)) => {}
                () = self.rescheduled.notified() => continue,
            }
            if !stores.storage.decides() {
                continue;
            }
            let ticked = self.tick(stores).await;
            if troubles.note("end transactions", ticked).is_err() {
                tokio::time::sleep(RETRY_PAUSE).await;
            }
        }
    }

    /// Aborts or forgets what is due, one after the other.
    async fn tick(&self, stores: &Stores<'_>) -> Result<(), Refusal> {
        loop {
            let due = self.view(|known| known.due(self.clock.now_ms()));
            if let Some(Change { record, ending: Some(ending) }) = due {
                let gathered = self.gather(stores, &record.transactional_id, ending.producer);
                let refusal = |code| Refusal::new(code, "its partitions cannot be gathered");
                gathered.await.map_err(refusal)?;
            }
            {
                let mut inner = lock(&self.inner);
                let Some(change) = inner.transactions.due(self.clock.now_ms()) else {
                    return Ok(());
                };
                inner.write(stores, vec![change])?;
            }
            self.changed.send_replace(());
            tokio::task::yield_now().await;
        }
    }
}

impl Inner {
    /// Writes changes in one frame, with all that the end of a transaction means, and applies them.
    fn write(&mut self, stores: &Stores<'_>, changes: Vec<Change>) -> Result<(), Refusal> {
        if changes.is_empty() {
            return Ok(());
        }
        let mut records = Vec::new();
        let (mut markers, mut offsets) = (Vec::new(), Vec::new());
        for change in &changes {
            records.push(metadata_record(&change.record).encode());
            let Some(ending) = &change.ending else { continue };
            markers.extend(ending.partitions.iter().filter_map(|partition| {
                marker(stores, *partition, ending.producer, ending.outcome, change.record.time_ms)
            }));
            let exists = |topic: &TopicOffsets| stores.catalog.by_name(&topic.topic).is_some();
            offsets.extend(ending.offsets.iter().filter(|(_, topic)| exists(topic)).cloned());
        }
        let append = |records: &[Vec<u8>]| {
            let appended = stores.storage.append_together(records, &markers, LEADER_EPOCH);
            appended.map_err(|error| append_refusal(&error))
        };
        let lsn = if offsets.is_empty() {
            append(&records)?
        } else {
            stores.groups.commit_transaction(stores.storage, offsets, |groups| {
                records.extend(groups.iter().map(MetadataRecord::encode));
                append(&records)
            })?
        };
        self.written = Some(lsn);
        for change in changes {
            self.transactions.apply(change.record);
        }
        Ok(())
    }
}

/// The marker for a partition; none if its topic is gone or nothing was written to it.
fn marker(
    stores: &Stores<'_>,
    (topic, partition): (Uuid, i32),
    producer: ProducerIdentity,
    outcome: Outcome,
    time_ms: i64,
) -> Option<LogMarker> {
    let log = stores.catalog.by_id(topic)?.logs.find(partition)?;
    let log = Arc::clone(log.of_journal()?);
    let marker = match outcome {
        Outcome::Abort => Marker::Abort,
        Outcome::Commit => Marker::Commit,
    };
    let batch = MarkerBatch::new(producer.id, producer.epoch, marker, time_ms);
    Some(LogMarker { log, batch })
}

fn metadata_record(record: &TransactionRecord) -> MetadataRecord {
    let mut bytes = Vec::new();
    record.encode(&mut bytes);
    MetadataRecord::Transaction(bytes)
}
