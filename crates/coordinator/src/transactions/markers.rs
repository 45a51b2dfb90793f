//! The end of transactions whose partitions are written elsewhere, as in a cluster.
//!
//! The decision is a record, and its markers follow. Until all of them are written, the id takes no
//! request: whoever owns the state next writes them again, and a log takes the marker of a decision
//! once. What a producer wrote is known to the logs before it is known here: it is added before a
//! transaction is decided, and now and then, so that its timeout runs.

use std::collections::{BTreeSet, HashMap};

use moldau_protocol::{ErrorCode, Uuid};

use super::record::{TransactionChange, TransactionRecord};
use super::transaction::{Unmarked, by_topic};
use super::{Change, Decision, Transactions};
use crate::producer_ids::ProducerIdentity;

impl Transactions {
    /// All decisions whose markers may be missing.
    pub fn unmarked(&self) -> impl Iterator<Item = (&str, &Unmarked)> + '_ {
        let ids = self.unmarked_ids.iter();
        ids.filter_map(|id| Some((id.as_str(), self.by_id.get(id)?.unmarked.as_ref()?)))
    }

    /// Whether markers of the id may be missing.
    pub fn is_unmarked(&self, id: &str) -> bool {
        self.unmarked_ids.contains(id)
    }

    /// All markers of a decision are written.
    pub fn marked(&self, now_ms: i64, id: &str, decision: i64) -> Decision<()> {
        let unmarked = self.by_id.get(id).and_then(|known| known.unmarked.as_ref());
        if unmarked.is_none_or(|unmarked| unmarked.decision != decision) {
            return Decision::unchanged(());
        }
        let change = TransactionChange::Marked { decision };
        let record = TransactionRecord { transactional_id: id.to_owned(), time_ms: now_ms, change };
        Decision { reply: Ok(()), changes: vec![Change { record, ending: None }] }
    }

    /// The producer of an id and its last decision, if no markers of that may be missing.
    pub fn undecided(&self, id: &str) -> Option<(ProducerIdentity, i64)> {
        let known = self.by_id.get(id)?;
        known.unmarked.is_none().then_some((known.producer, known.decision))
    }

    /// The ids of producers and their last decisions, where no markers of that may be missing.
    pub fn undecided_producers(&self) -> HashMap<i64, (String, i64)> {
        let undecided = self.by_id.iter().filter(|(_, known)| known.unmarked.is_none());
        undecided.map(|(id, known)| (known.producer.id, (id.clone(), known.decision))).collect()
    }

    /// Adds partitions in which logs hold a transaction of the producer that is open, as it was
    /// behind its last `decision`: it may be decided by now.
    pub fn add_found(
        &self,
        now_ms: i64,
        id: &str,
        (producer_id, decision): (i64, i64),
        partitions: &[(Uuid, i32)],
    ) -> Decision<()> {
        let is_same = |(producer, last): &(ProducerIdentity, i64)| {
            (producer.id, *last) == (producer_id, decision)
        };
        if self.undecided(id).filter(is_same).is_none() {
            return Decision::refused(ErrorCode::ConcurrentTransactions);
        }
        let ongoing = self.by_id.get(id).and_then(|known| known.ongoing());
        let is_in = |at: &&(Uuid, i32)| ongoing.is_some_and(|it| it.partitions.contains(at));
        let added: BTreeSet<_> = partitions.iter().filter(|at| !is_in(at)).copied().collect();
        if added.is_empty() {
            return Decision::unchanged(());
        }
        // No limit holds here: the records are written, and their transaction must end.
        let change = TransactionChange::PartitionsAdded(by_topic(added.into_iter()));
        let record = TransactionRecord { transactional_id: id.to_owned(), time_ms: now_ms, change };
        Decision { reply: Ok(()), changes: vec![Change { record, ending: None }] }
    }

    /// Those of some producers that no id has, and whose markers are written. They get no id later.
    pub fn strangers(&self, producers: Vec<i64>) -> BTreeSet<i64> {
        let mut strangers: BTreeSet<i64> = producers.into_iter().collect();
        for known in self.by_id.values() {
            let marked = known.unmarked.as_ref().map(|unmarked| unmarked.producer);
            for producer in [known.producer, known.previous].into_iter().chain(marked) {
                strangers.remove(&producer.id);
            }
        }
        strangers
    }

    /// Whether the producer may be the one of the id: another broker asks, whose state may be old.
    pub fn may_be(&self, id: &str, producer: ProducerIdentity) -> bool {
        let known = self.by_id.get(id).map(|known| known.producer);
        known.is_some_and(|known| known.id == producer.id && known.epoch >= producer.epoch)
    }
}
