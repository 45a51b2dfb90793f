//! Transactions of producers (KIP-98, KIP-447, KIP-890) as a pure state machine.
//!
//! A request is decided from the state alone: what comes out are the changes to be written. Once
//! the journal has taken them, [`Transactions::apply`] makes them part of the state, as it does
//! with what is replayed. So the state is never ahead of the journal, and live and replayed state
//! cannot differ.
//!
//! Where one broker holds all partitions, a transaction ends in one step: the change, the markers
//! of all its partitions and the offsets that it commits are written together, or none of them is.
//! Where partitions are elsewhere ([`TransactionConfig::markers_follow`]), markers follow the
//! change ([`Unmarked`]), in Kafka's states `PrepareCommit` and `PrepareAbort`.
//!
//! | state | left by |
//! |---|---|
//! | Empty | partitions or offsets are added: Ongoing; expiration |
//! | Ongoing | its end, its timeout, or a producer that takes over: CompleteCommit, CompleteAbort |
//! | PrepareCommit, PrepareAbort | all markers are written: as below |
//! | CompleteCommit, CompleteAbort | as Empty; a producer that takes over: Empty |

mod markers;
mod record;
mod transaction;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use moldau_protocol::{ErrorCode, Uuid};

use crate::config::NAME_BYTES_MAX;
use crate::producer_ids::ProducerIdentity;
use crate::record::TopicOffsets;

pub use record::{Outcome, TransactionChange, TransactionRecord};
pub use transaction::Unmarked;
use transaction::{
    NO_PRODUCER, Ongoing, Transaction, added_ending_bytes, by_topic, is_exhausted, next_epoch,
};

/// Settings of [`Transactions`], named after Kafka's broker configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransactionConfig {
    /// `transaction.max.timeout.ms`: longer timeouts are refused.
    pub timeout_ms_max: i32,
    /// `transactional.id.expiration.ms`: an id without an open transaction is forgotten after this.
    pub id_expiration_ms: i64,
    /// Transactional ids that may exist at once.
    pub ids_max: usize,
    /// Partitions and pending offsets of all open transactions together.
    pub open_entries_max: usize,
    /// Bytes that the end of one transaction may take in the journal, where it is one frame.
    pub ending_bytes_max: usize,
    /// Whether markers are written behind the decision.
    pub markers_follow: bool,
}

/// Default of [`TransactionConfig::ids_max`]: an id without an open transaction costs some hundred
/// bytes.
pub const TRANSACTIONAL_IDS_MAX: usize = 100_000;

/// Default of [`TransactionConfig::open_entries_max`]: an entry costs a few hundred bytes at most
/// with usual names.
pub const OPEN_ENTRIES_MAX: usize = 1_000_000;

impl Default for TransactionConfig {
    fn default() -> Self {
        Self {
            timeout_ms_max: 15 * 60 * 1_000,
            id_expiration_ms: 7 * 24 * 60 * 60 * 1_000,
            ids_max: TRANSACTIONAL_IDS_MAX,
            open_entries_max: OPEN_ENTRIES_MAX,
            ending_bytes_max: 16 << 20,
            markers_follow: false,
        }
    }
}

/// What a request comes to.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "changes that are not written make the reply a lie"]
pub struct Decision<T> {
    /// To be given once the changes are durable.
    pub reply: Result<T, ErrorCode>,
    /// To be written in one frame, then applied in this order.
    pub changes: Vec<Change>,
}

/// One change and what has to be written with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// For the journal, and for [`Transactions::apply`].
    pub record: TransactionRecord,
    /// Present where a transaction ends.
    pub ending: Option<Ending>,
}

/// What the end of a transaction means for partitions and groups.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ending {
    /// The producer whose records the markers decide on, with the epoch of the markers.
    pub producer: ProducerIdentity,
    /// How the transaction ends.
    pub outcome: Outcome,
    /// Those that get a marker.
    pub partitions: Vec<(Uuid, i32)>,
    /// Groups and the offsets that are committed; none with an abort.
    pub offsets: Vec<(String, TopicOffsets)>,
}

/// Where a transactional id stands, as ListTransactions and DescribeTransactions name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransactionState {
    /// A producer has the id and did not begin a transaction.
    Empty,
    /// A transaction is open.
    Ongoing,
    /// The last transaction is committed, and its markers are being written.
    PrepareCommit,
    /// The last transaction is aborted, and its markers are being written.
    PrepareAbort,
    /// The last transaction was committed.
    CompleteCommit,
    /// The last transaction was aborted.
    CompleteAbort,
}

impl TransactionState {
    /// Kafka's name of the state.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Empty => "Empty",
            Self::Ongoing => "Ongoing",
            Self::PrepareCommit => "PrepareCommit",
            Self::PrepareAbort => "PrepareAbort",
            Self::CompleteCommit => "CompleteCommit",
            Self::CompleteAbort => "CompleteAbort",
        }
    }
}

/// A transactional id as DescribeTransactions shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransactionDescription {
    /// Where it stands.
    pub state: TransactionState,
    /// Who may use it.
    pub producer: ProducerIdentity,
    /// How long a transaction may stay open.
    pub timeout_ms: i32,
    /// When the open transaction began, or the last one; -1 without one.
    pub start_ms: i64,
    /// Partitions of the open transaction, by topic.
    pub partitions: Vec<(Uuid, Vec<i32>)>,
}

impl TransactionDescription {
    /// Whether a transaction is open.
    pub fn is_open(&self) -> bool {
        self.state == TransactionState::Ongoing
    }
}

/// Which version of the protocol a producer speaks (KIP-890).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransactionVersion {
    /// The epoch stays over the end of a transaction.
    V1,
    /// Each end of a transaction gives the producer another epoch.
    V2,
}

/// All transactional ids of a broker.
#[derive(Debug)]
pub struct Transactions {
    config: TransactionConfig,
    by_id: HashMap<String, Transaction>,
    /// The deadline of each id.
    deadlines: BTreeSet<(i64, String)>,
    /// Ids whose open transaction commits offsets of a group.
    by_group: BTreeMap<String, BTreeSet<String>>,
    /// Ids of which markers may be missing.
    unmarked_ids: BTreeSet<String>,
    /// Partitions and pending offsets of all open transactions.
    open_entries: usize,
}

impl Transactions {
    /// Without any id.
    pub fn new(config: TransactionConfig) -> Self {
        Self {
            config,
            by_id: HashMap::new(),
            deadlines: BTreeSet::new(),
            by_group: BTreeMap::new(),
            unmarked_ids: BTreeSet::new(),
            open_entries: 0,
        }
    }

    /// InitProducerId with a transactional id. `current` is what the producer has (version 3 and
    /// later, KIP-360). An open transaction is aborted in the same step. `fresh_id` gives a
    /// producer id that was never given out.
    pub fn init(
        &self,
        now_ms: i64,
        id: &str,
        timeout_ms: i32,
        current: Option<ProducerIdentity>,
        fresh_id: impl FnOnce() -> Result<i64, ErrorCode>,
    ) -> Decision<ProducerIdentity> {
        if id.is_empty() || id.len() > NAME_BYTES_MAX {
            return Decision::refused(ErrorCode::InvalidRequest);
        }
        if timeout_ms <= 0 || timeout_ms > self.config.timeout_ms_max {
            return Decision::refused(ErrorCode::InvalidTransactionTimeout);
        }
        let Some(known) = self.by_id.get(id) else {
            if self.by_id.len() >= self.config.ids_max {
                return Decision::refused(ErrorCode::PolicyViolation);
            }
            return match fresh_id() {
                Ok(fresh) => {
                    let producer = ProducerIdentity { id: fresh, epoch: 0 };
                    initialized(now_ms, id, (producer, NO_PRODUCER), timeout_ms, Vec::new())
                }
                Err(error) => Decision::refused(error),
            };
        };
        if let Some(current) = current.filter(|current| *current != known.producer) {
            // The answer to the same request was lost.
            let is_retry = current == known.previous && known.ongoing().is_none();
            return match is_retry {
                true if known.unmarked.is_some() => {
                    Decision::refused(ErrorCode::ConcurrentTransactions)
                }
                true => Decision::unchanged(known.producer),
                false => Decision::refused(ErrorCode::ProducerFenced),
            };
        }
        if known.unmarked.is_some() {
            return Decision::refused(ErrorCode::ConcurrentTransactions);
        }
        let mut taken_over = known.producer;
        let mut changes = Vec::new();
        if known.ongoing().is_some() {
            let fenced = next_epoch(known.producer);
            let next = (fenced, NO_PRODUCER);
            changes.push(self.ended(now_ms, id, known, fenced, next, Outcome::Abort));
            taken_over = fenced;
        }
        let previous = current.unwrap_or(NO_PRODUCER);
        let producer = if is_exhausted(taken_over) {
            match fresh_id() {
                Ok(id) => ProducerIdentity { id, epoch: 0 },
                Err(error) => return Decision::refused(error),
            }
        } else {
            next_epoch(taken_over)
        };
        initialized(now_ms, id, (producer, previous), timeout_ms, changes)
    }

    /// AddPartitionsToTxn, or the part of a Produce that does the same (version 12 and later).
    pub fn add_partitions(
        &self,
        now_ms: i64,
        id: &str,
        producer: ProducerIdentity,
        partitions: &[(Uuid, i32)],
    ) -> Decision<()> {
        let known = match self.owned(id, producer) {
            Ok(known) => known,
            Err(error) => return Decision::refused(error),
        };
        let is_in = |partition: &&(Uuid, i32)| {
            known.ongoing().is_some_and(|ongoing| ongoing.partitions.contains(partition))
        };
        let added: BTreeSet<_> = partitions.iter().filter(|at| !is_in(at)).copied().collect();
        if added.is_empty() {
            return Decision::unchanged(());
        }
        let entries = added.len();
        let change = TransactionChange::PartitionsAdded(by_topic(added.into_iter()));
        self.extended(now_ms, id, known, change, entries)
    }

    /// Whether a transaction that is open has the partition, as Produce asks before version 12.
    ///
    /// # Errors
    ///
    /// What Kafka answers where it has not.
    pub fn verify_partition(
        &self,
        id: &str,
        producer: ProducerIdentity,
        partition: (Uuid, i32),
    ) -> Result<(), ErrorCode> {
        let ongoing = self.owned(id, producer)?.ongoing();
        match ongoing.is_some_and(|ongoing| ongoing.partitions.contains(&partition)) {
            true => Ok(()),
            false => Err(ErrorCode::TransactionAbortable),
        }
    }

    /// AddOffsetsToTxn.
    pub fn add_group(
        &self,
        now_ms: i64,
        id: &str,
        producer: ProducerIdentity,
        group_id: &str,
    ) -> Decision<()> {
        let known = match self.owned(id, producer) {
            Ok(known) => known,
            Err(error) => return Decision::refused(error),
        };
        if known.ongoing().is_some_and(|ongoing| ongoing.groups.contains_key(group_id)) {
            return Decision::unchanged(());
        }
        let change = TransactionChange::GroupAdded(group_id.to_owned());
        self.extended(now_ms, id, known, change, 1)
    }

    /// TxnOffsetCommit. In version 2 of the protocol it adds the group to the transaction; before
    /// that the group must have been added. Whether the member may commit, and what the offsets'
    /// texts may be, is for the caller to check.
    pub fn commit_offsets(
        &self,
        now_ms: i64,
        id: &str,
        producer: ProducerIdentity,
        version: TransactionVersion,
        (group_id, topics): (&str, Vec<TopicOffsets>),
    ) -> Decision<()> {
        let known = match self.owned(id, producer) {
            Ok(known) => known,
            Err(error) => return Decision::refused(error),
        };
        let has_group =
            known.ongoing().is_some_and(|ongoing| ongoing.groups.contains_key(group_id));
        if !has_group && version == TransactionVersion::V1 {
            return Decision::refused(ErrorCode::TransactionAbortable);
        }
        let entries = topics.iter().map(|topic| topic.partitions.len()).sum();
        let change = TransactionChange::OffsetsPending { group_id: group_id.to_owned(), topics };
        self.extended(now_ms, id, known, change, entries)
    }

    /// EndTxn. The reply is the identity to go on with.
    pub fn end(
        &self,
        now_ms: i64,
        id: &str,
        producer: ProducerIdentity,
        (version, outcome): (TransactionVersion, Outcome),
        fresh_id: impl FnOnce() -> Result<i64, ErrorCode>,
    ) -> Decision<ProducerIdentity> {
        let Some(known) = self.by_id.get(id) else {
            return Decision::refused(unknown_id(id));
        };
        if version == TransactionVersion::V2 && producer == known.previous {
            // The answer to the same request was lost, or else this is late.
            return match (known.state(), outcome) {
                (TransactionState::CompleteCommit, Outcome::Commit)
                | (TransactionState::CompleteAbort, Outcome::Abort) => {
                    Decision::unchanged(known.producer)
                }
                (TransactionState::CompleteCommit | TransactionState::CompleteAbort, _) => {
                    Decision::refused(ErrorCode::InvalidTxnState)
                }
                (TransactionState::PrepareCommit | TransactionState::PrepareAbort, _) => {
                    Decision::refused(ErrorCode::ConcurrentTransactions)
                }
                (TransactionState::Empty | TransactionState::Ongoing, _) => {
                    Decision::refused(ErrorCode::ProducerFenced)
                }
            };
        }
        if let Err(error) = owns(known, producer) {
            return Decision::refused(error);
        }
        match (version, known.state(), outcome) {
            (_, TransactionState::PrepareCommit | TransactionState::PrepareAbort, _) => {
                return Decision::refused(ErrorCode::ConcurrentTransactions);
            }
            (TransactionVersion::V1, TransactionState::CompleteCommit, Outcome::Commit)
            | (TransactionVersion::V1, TransactionState::CompleteAbort, Outcome::Abort) => {
                return Decision::unchanged(known.producer);
            }
            (_, TransactionState::Ongoing, _) | (TransactionVersion::V2, _, Outcome::Abort) => {}
            _ => return Decision::refused(ErrorCode::InvalidTxnState),
        }
        let (marker, next) = match version {
            TransactionVersion::V1 => (known.producer, (known.producer, known.previous)),
            TransactionVersion::V2 if is_exhausted(known.producer) => match fresh_id() {
                Ok(id) => (
                    next_epoch(known.producer),
                    (ProducerIdentity { id, epoch: 0 }, known.producer),
                ),
                Err(error) => return Decision::refused(error),
            },
            TransactionVersion::V2 => {
                (next_epoch(known.producer), (next_epoch(known.producer), known.producer))
            }
        };
        let change = self.ended(now_ms, id, known, marker, next, outcome);
        Decision { reply: Ok(next.0), changes: vec![change] }
    }

    /// When [`Transactions::due`] has something to decide.
    pub fn next_deadline(&self) -> Option<i64> {
        self.deadlines.first().map(|(at_ms, _)| *at_ms)
    }

    /// What has to be done about the id whose deadline came first: its transaction is aborted and
    /// its producer fenced, or it is forgotten. `None` where no deadline has come.
    pub fn due(&self, now_ms: i64) -> Option<Change> {
        let (_, id) = self.deadlines.first().filter(|(at_ms, _)| *at_ms <= now_ms)?;
        let known = self.by_id.get(id)?;
        if known.ongoing().is_none() {
            let transactional_id = id.clone();
            let change = TransactionChange::Forgotten;
            let record = TransactionRecord { transactional_id, time_ms: now_ms, change };
            return Some(Change { record, ending: None });
        }
        let fenced = next_epoch(known.producer);
        let next = (fenced, NO_PRODUCER);
        Some(self.ended(now_ms, id, known, fenced, next, Outcome::Abort))
    }

    /// Whether an open transaction is to commit an offset of this partition: what the group has
    /// committed may then change at any time.
    pub fn has_pending_offset(&self, group_id: &str, topic: &str, partition: i32) -> bool {
        let ids = self.by_group.get(group_id).into_iter().flatten();
        let mut open = ids.filter_map(|id| self.by_id.get(id)?.ongoing());
        open.any(|ongoing| {
            let offsets = ongoing.groups.get(group_id);
            offsets.is_some_and(|offsets| offsets.get(topic, partition).is_some())
        })
    }

    /// All ids, for ListTransactions.
    pub fn list(&self) -> impl Iterator<Item = (&str, TransactionDescription)> + '_ {
        self.by_id.iter().map(|(id, known)| (id.as_str(), description(known)))
    }

    /// One id, for DescribeTransactions; `None` where it is not known.
    pub fn describe(&self, id: &str) -> Option<TransactionDescription> {
        self.by_id.get(id).map(description)
    }

    /// Makes a change part of the state. It must have been decided on the state as it is, or be
    /// replayed in the order in which it was written.
    pub fn apply(&mut self, record: TransactionRecord) {
        let TransactionRecord { transactional_id: id, time_ms, change } = record;
        if let Some(before) = self.by_id.get(&id) {
            self.deadlines.remove(&(before.deadline(self.config.id_expiration_ms), id.clone()));
            let ongoing = before.ongoing();
            self.open_entries -= ongoing.map_or(0, entries_of);
            for group_id in ongoing.into_iter().flat_map(|ongoing| ongoing.groups.keys()) {
                if let Some(ids) = self.by_group.get_mut(group_id) {
                    ids.remove(&id);
                    if ids.is_empty() {
                        self.by_group.remove(group_id);
                    }
                }
            }
        }
        self.unmarked_ids.remove(&id);
        if change == TransactionChange::Forgotten {
            self.by_id.remove(&id);
            return;
        }
        let new = || Transaction::new(NO_PRODUCER, 0, time_ms);
        let known = self.by_id.entry(id.clone()).or_insert_with(new);
        known.apply(time_ms, change);
        self.open_entries += known.ongoing().map_or(0, entries_of);
        for group_id in known.ongoing().into_iter().flat_map(|ongoing| ongoing.groups.keys()) {
            self.by_group.entry(group_id.clone()).or_default().insert(id.clone());
        }
        if known.unmarked.is_some() {
            self.unmarked_ids.insert(id.clone());
        }
        self.deadlines.insert((known.deadline(self.config.id_expiration_ms), id));
    }

    /// Records that restore all ids, for compaction: they stand for all records before.
    pub fn snapshot(&self) -> impl Iterator<Item = TransactionRecord> + '_ {
        self.by_id.iter().flat_map(|(id, known)| known.snapshot(id))
    }

    fn owned(&self, id: &str, producer: ProducerIdentity) -> Result<&Transaction, ErrorCode> {
        let known = self.by_id.get(id).ok_or_else(|| unknown_id(id))?;
        owns(known, producer)?;
        match known.unmarked {
            Some(_) => Err(ErrorCode::ConcurrentTransactions),
            None => Ok(known),
        }
    }

    /// The end of the open transaction, if there is one, by a marker of `marker`'s epoch.
    fn ended(
        &self,
        now_ms: i64,
        id: &str,
        known: &Transaction,
        marker: ProducerIdentity,
        (producer, previous): (ProducerIdentity, ProducerIdentity),
        outcome: Outcome,
    ) -> Change {
        let decision = known.decision.saturating_add(1);
        let change = match known.ongoing() {
            Some(_) if self.config.markers_follow => {
                TransactionChange::Decided { outcome, producer, previous, marker, decision }
            }
            _ => TransactionChange::Ended { outcome, producer, previous },
        };
        let record = TransactionRecord { transactional_id: id.to_owned(), time_ms: now_ms, change };
        let ending = known.ongoing().is_some().then(|| known.ending(marker, outcome));
        Change { record, ending }
    }

    /// A change that makes the open transaction, or one that it begins, larger by so many entries.
    fn extended(
        &self,
        now_ms: i64,
        id: &str,
        known: &Transaction,
        change: TransactionChange,
        entries: usize,
    ) -> Decision<()> {
        let before = known.ongoing().map_or(0, Ongoing::ending_bytes);
        if before.saturating_add(added_ending_bytes(&change)) > self.config.ending_bytes_max {
            return Decision::refused(ErrorCode::PolicyViolation);
        }
        if self.open_entries.saturating_add(entries) > self.config.open_entries_max {
            // Clients wait for others to end and try again.
            return Decision::refused(ErrorCode::ConcurrentTransactions);
        }
        let record = TransactionRecord { transactional_id: id.to_owned(), time_ms: now_ms, change };
        Decision { reply: Ok(()), changes: vec![Change { record, ending: None }] }
    }
}

impl<T> Decision<T> {
    fn refused(error: ErrorCode) -> Self {
        Self { reply: Err(error), changes: Vec::new() }
    }

    fn unchanged(reply: T) -> Self {
        Self { reply: Ok(reply), changes: Vec::new() }
    }
}

fn unknown_id(id: &str) -> ErrorCode {
    if id.is_empty() { ErrorCode::InvalidRequest } else { ErrorCode::InvalidProducerIdMapping }
}

/// Strictly equal: a larger epoch than the known one was never given out.
fn owns(known: &Transaction, producer: ProducerIdentity) -> Result<(), ErrorCode> {
    if producer.id != known.producer.id {
        Err(ErrorCode::InvalidProducerIdMapping)
    } else if producer.epoch != known.producer.epoch {
        Err(ErrorCode::ProducerFenced)
    } else {
        Ok(())
    }
}

fn initialized(
    now_ms: i64,
    id: &str,
    (producer, previous): (ProducerIdentity, ProducerIdentity),
    timeout_ms: i32,
    mut changes: Vec<Change>,
) -> Decision<ProducerIdentity> {
    let change = TransactionChange::Initialized { producer, previous, timeout_ms };
    let record = TransactionRecord { transactional_id: id.to_owned(), time_ms: now_ms, change };
    changes.push(Change { record, ending: None });
    Decision { reply: Ok(producer), changes }
}

fn entries_of(ongoing: &Ongoing) -> usize {
    ongoing.partitions.len() + ongoing.groups.len() + ongoing.offsets_count()
}

fn description(known: &Transaction) -> TransactionDescription {
    let ongoing = known.ongoing();
    let partitions = ongoing.into_iter().flat_map(|ongoing| ongoing.partitions.iter().copied());
    TransactionDescription {
        state: known.state(),
        producer: known.producer,
        timeout_ms: known.timeout_ms,
        start_ms: known.start_ms(),
        partitions: by_topic(partitions),
    }
}
