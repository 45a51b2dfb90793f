//! Transactions and producers of a log.

use std::collections::BTreeSet;

use crate::sequencer::{AbortedTransaction, LogId, LogProducer, OpenTransaction};
use crate::{Answer, Error};

use super::state::{Log, State};

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

    /// As [`crate::Sequencer::fence`].
    pub fn fence(&mut self, producer_id: i64, epoch: i16) -> Vec<LogId> {
        let fence = self.fences.entry(producer_id).or_insert(epoch);
        *fence = epoch.max(*fence);
        let open = self.all_open().filter(|open| open.producer_id == producer_id);
        open.map(|open| open.log).collect()
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
