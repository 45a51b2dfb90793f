//! Transactions and producers of a log.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::sequencer::{
    AbortedTransaction, ExpiredProducers, LogId, LogProducer, OpenTransaction, ProducerPlace,
};
use crate::{Answer, Error};

use super::state::{Log, Producer, State};

impl Log {
    pub(super) fn last_stable_offset(&self) -> i64 {
        let open = self.transactions.open.values().min().copied();
        open.unwrap_or(self.next_offset).max(self.start_offset)
    }
}

impl State {
    /// As [`crate::Sequencer::aborted`].
    ///
    /// # Errors
    /// [`Error::UnknownLog`]; [`Error::OffsetOutOfRange`].
    pub fn aborted(&self, id: LogId, from: i64, to: i64) -> Answer<Vec<AbortedTransaction>> {
        let Some(log) = self.log(id)? else {
            return if from < 0 { Err(Error::OffsetOutOfRange(from)) } else { Ok(vec![]) };
        };
        if from < log.start_offset {
            return Err(Error::OffsetOutOfRange(from));
        }
        let rows = log.transactions.aborted.range(from..);
        let rows = rows.filter(|(_, (_, first_offset))| *first_offset < to);
        let mut aborted: Vec<_> = rows
            .map(|(last, (producer_id, first_offset))| AbortedTransaction {
                producer_id: *producer_id,
                first_offset: *first_offset,
                last_offset: *last,
            })
            .collect();
        aborted.sort_unstable_by_key(|aborted| aborted.first_offset);
        Ok(aborted)
    }

    /// As [`crate::Sequencer::producers`].
    ///
    /// # Errors
    /// [`Error::UnknownLog`].
    pub fn producers(&self, id: LogId) -> Answer<Vec<LogProducer>> {
        let Some(log) = self.log(id)? else { return Ok(vec![]) };
        let producers = log.producers.iter().map(|(id, producer)| LogProducer {
            id: *id,
            epoch: producer.epoch,
            last_sequence: producer.marks.last().map_or(-1, |mark| mark.last_sequence),
            last_timestamp: producer.last_timestamp,
            transaction_start: log.transactions.open.get(id).copied(),
        });
        Ok(producers.collect())
    }

    /// As [`crate::Sequencer::expire_producers`].
    pub fn expire_producers(
        &mut self,
        after: Option<ProducerPlace>,
        age: Duration,
        producers_max: usize,
    ) -> ExpiredProducers {
        let all = self.logs.iter().flat_map(|(log, known)| {
            let ids = known.producers.keys();
            ids.map(|producer_id| ProducerPlace { log: *log, producer_id: *producer_id })
        });
        let looked: Vec<_> = all.filter(|place| Some(*place) > after).take(producers_max).collect();
        let mut forgotten = 0;
        for ProducerPlace { log, producer_id } in &looked {
            let is_served = self.exists(*log);
            let Some(log) = self.logs.get_mut(log).filter(|_| is_served) else { continue };
            let is_open = log.transactions.open.contains_key(producer_id);
            let clock = self.clock;
            let is_old = |producer: &Producer| clock - producer.appended_at >= age;
            if is_open || !log.producers.get(producer_id).is_some_and(is_old) {
                continue;
            }
            forgotten += 1;
            let ended = log.producers.remove(producer_id).and_then(|producer| producer.ended);
            if let Some((decision, _)) = ended {
                let fence = self.fences.entry(*producer_id).or_default();
                fence.decision = fence.decision.max(Some(decision));
            }
        }
        ExpiredProducers { last: looked.last().copied(), forgotten }
    }

    /// As [`crate::Sequencer::fence`].
    pub fn fence(&mut self, producer_id: i64, epoch: i16) -> Vec<LogId> {
        let fence = self.fences.entry(producer_id).or_default();
        fence.epoch = epoch.max(fence.epoch);
        let open = self.all_open().filter(|open| open.producer_id == producer_id);
        open.map(|open| open.log).collect()
    }

    /// As [`crate::Sequencer::fences`].
    #[must_use]
    pub fn fences(&self, after: Option<i64>, producers_max: usize) -> Vec<i64> {
        let behind = self.fences.keys().filter(|producer_id| Some(**producer_id) > after);
        behind.take(producers_max).copied().collect()
    }

    /// As [`crate::Sequencer::remove_fences`].
    pub fn remove_fences(&mut self, producers: &[i64]) {
        self.fences.retain(|producer_id, _| !producers.contains(producer_id));
    }

    /// As [`crate::Sequencer::open_transactions`].
    #[must_use]
    pub fn open_transactions(
        &self,
        after: Option<OpenTransaction>,
        transactions_max: usize,
    ) -> Vec<OpenTransaction> {
        let all: BTreeSet<_> = self.all_open().filter(|open| Some(*open) > after).collect();
        all.into_iter().take(transactions_max).collect()
    }

    /// In order of the logs.
    fn all_open(&self) -> impl Iterator<Item = OpenTransaction> + '_ {
        let logs = self.logs.iter().filter(|(id, _)| self.exists(**id));
        logs.flat_map(|(id, log)| {
            let producers = log.transactions.open.keys();
            producers.map(|producer_id| OpenTransaction { producer_id: *producer_id, log: *id })
        })
    }

    /// The log, or none if it was never used.
    fn log(&self, id: LogId) -> Answer<Option<&Log>> {
        if self.exists(id) { Ok(self.logs.get(&id)) } else { Err(Error::UnknownLog) }
    }
}
