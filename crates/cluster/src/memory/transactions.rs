//! Transactions and producers of a log.

use std::collections::BTreeMap;

use crate::sequencer::{AbortedTransaction, BatchEntry, LogId, LogProducer, Part};
use crate::{Answer, Error};

use super::state::{Log, State};

/// Transactions of a log that matter to its readers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(super) struct Transactions {
    /// First offset of the open transaction of a producer.
    pub(super) open: BTreeMap<i64, i64>,
    /// By the offset of the marker: producer and first offset.
    pub(super) aborted: BTreeMap<i64, (i64, i64)>,
}

impl Transactions {
    /// Takes up a batch that was appended at an offset.
    pub(super) fn note(&mut self, batch: &BatchEntry, base_offset: i64) {
        let Some(sent) = batch.producer else { return };
        match batch.part {
            Part::Outside => {}
            Part::Inside => {
                self.open.entry(sent.id).or_insert(base_offset);
            }
            Part::Marker(marker) => {
                let opened = self.open.remove(&sent.id);
                if let (Some(first_offset), false) = (opened, marker.commits) {
                    self.aborted.insert(base_offset, (sent.id, first_offset));
                }
            }
        }
    }
}

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

    /// The log, or none if it was never used.
    fn log(&self, id: LogId) -> Answer<Option<&Log>> {
        if self.exists(id) { Ok(self.logs.get(&id)) } else { Err(Error::UnknownLog) }
    }
}
