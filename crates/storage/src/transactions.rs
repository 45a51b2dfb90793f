//! Transactions of one log: which are open, from where on nothing is decided yet, and which parts
//! of the log were aborted (KIP-98).
//!
//! The last stable offset is the first offset of a transaction that is open, or whose marker is not
//! durable yet: what a consumer has read as committed must stay so after a crash.
//!
//! In a checkpoint the transactions of a log follow its producers, where it has any: number of open
//! transactions, u32, and for each producer id and first offset, i64 each; number of aborted ones,
//! u32, and for each producer id, first offset and offset of the marker, i64 each.

use std::collections::{BTreeSet, HashMap, VecDeque};

use moldau_records::{BatchView, Marker};

use crate::AppendError;
use crate::format::Fields;

/// What of a log a reader is to see.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Isolation {
    /// Everything durable.
    ReadUncommitted,
    /// What lies before the last stable offset, with the aborted transactions named.
    ReadCommitted,
}

/// A part of a log that belongs to an aborted transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AbortedTransaction {
    /// Whose batches they are.
    pub producer_id: i64,
    /// Offset of the first record.
    pub first_offset: i64,
    /// Offset of the marker.
    pub last_offset: i64,
}

/// All transactions of a log that matter to its readers.
#[derive(Debug, Default)]
pub(crate) struct Transactions {
    /// First offset of the open transaction of a producer.
    open: HashMap<i64, i64>,
    /// First offset and producer of the same.
    firsts: BTreeSet<(i64, i64)>,
    /// First offset and marker of transactions whose marker may not be durable, in order of marker.
    ending: VecDeque<(i64, i64)>,
    /// In order of marker, with the first offset that was open after it.
    aborted: Vec<(AbortedTransaction, i64)>,
}

impl Transactions {
    /// Whether the batch may be appended as far as transactions go.
    pub(crate) fn check(&self, batch: &BatchView<'_>) -> Result<(), AppendError> {
        if !batch.has_producer_id() || batch.is_control() {
            return Ok(());
        }
        match (batch.is_transactional(), self.open.contains_key(&batch.producer_id())) {
            (false, true) => Err(AppendError::InTransaction),
            (true, false) if self.aborted.len() + self.open.len() >= TRANSACTIONS_MAX => {
                Err(AppendError::TooManyTransactions)
            }
            _ => Ok(()),
        }
    }

    /// Takes up a batch that was appended with this base offset.
    pub(crate) fn note(&mut self, batch: &BatchView<'_>, base_offset: i64) {
        let producer_id = batch.producer_id();
        if !batch.is_transactional() {
            return;
        }
        if !batch.is_control() {
            // Batches that cleaning has emptied decide nothing.
            if batch.records_count() > 0 && !self.open.contains_key(&producer_id) {
                self.open.insert(producer_id, base_offset);
                self.firsts.insert((base_offset, producer_id));
            }
            return;
        }
        let Some(marker) = batch.marker() else { return };
        let Some(first_offset) = self.open.remove(&producer_id) else { return };
        self.firsts.remove(&(first_offset, producer_id));
        self.ending.push_back((first_offset, base_offset));
        if marker == Marker::Abort {
            let last_offset = base_offset;
            let aborted = AbortedTransaction { producer_id, first_offset, last_offset };
            let first_open = self.firsts.first().map_or(i64::MAX, |(first, _)| *first);
            self.aborted.push((aborted, first_open));
        }
    }

    /// Last stable offset: the first offset that is not decided yet.
    pub(crate) fn last_stable_offset(&mut self, start_offset: i64, high_watermark: i64) -> i64 {
        self.settle(high_watermark);
        let open = self.firsts.first().map_or(high_watermark, |(first, _)| *first);
        let ending = self.ending.iter().map(|(first, _)| *first).min();
        open.min(ending.unwrap_or(open)).min(high_watermark).max(start_offset)
    }

    /// Forgets that markers below the high watermark were not durable.
    pub(crate) fn settle(&mut self, high_watermark: i64) {
        while self.ending.front().is_some_and(|(_, marker)| *marker < high_watermark) {
            self.ending.pop_front();
        }
    }

    pub(crate) fn is_open(&self, producer_id: i64) -> bool {
        self.open.contains_key(&producer_id)
    }

    /// First offset of the producer's open transaction.
    pub(crate) fn first_offset(&self, producer_id: i64) -> Option<i64> {
        self.open.get(&producer_id).copied()
    }

    /// Producers with an open transaction.
    pub(crate) fn open(&self) -> impl Iterator<Item = i64> + '_ {
        self.open.keys().copied()
    }

    /// Aborted transactions with anything from `from` on and before `to`, in order of first offset.
    pub(crate) fn aborted_in(&self, from: i64, to: i64) -> Vec<AbortedTransaction> {
        let skipped = self.aborted.partition_point(|(aborted, _)| aborted.last_offset < from);
        let mut found = Vec::new();
        for (aborted, first_open) in self.aborted.iter().skip(skipped) {
            if aborted.first_offset < to {
                found.push(*aborted);
            }
            // All that ended later began there or behind.
            if *first_open >= to && aborted.last_offset >= to {
                break;
            }
        }
        found.sort_unstable_by_key(|aborted| aborted.first_offset);
        found
    }

    /// Drops what lies below a start offset. A transaction that is open stays so until its marker.
    pub(crate) fn trim_to(&mut self, start_offset: i64) {
        self.forget_aborted(start_offset);
    }

    /// Forgets the aborted transactions that ended before an offset: nothing of them is left.
    pub(crate) fn forget_aborted(&mut self, before: i64) {
        let gone = self.aborted.partition_point(|(aborted, _)| aborted.last_offset < before);
        self.aborted.drain(..gone);
        if self.aborted.is_empty() {
            self.aborted = Vec::new();
        }
    }

    /// Appends the state to `out`, or nothing where there is none.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        if self.open.is_empty() && self.aborted.is_empty() {
            return;
        }
        put_count(out, self.firsts.len());
        for (first_offset, producer_id) in &self.firsts {
            out.extend_from_slice(&producer_id.to_le_bytes());
            out.extend_from_slice(&first_offset.to_le_bytes());
        }
        put_count(out, self.aborted.len());
        for (aborted, _) in &self.aborted {
            out.extend_from_slice(&aborted.producer_id.to_le_bytes());
            out.extend_from_slice(&aborted.first_offset.to_le_bytes());
            out.extend_from_slice(&aborted.last_offset.to_le_bytes());
        }
    }

    /// Reads what [`Transactions::encode`] wrote, which ends the state of a log.
    pub(crate) fn decode(fields: &mut Fields<'_>) -> Option<Transactions> {
        let mut transactions = Transactions::default();
        if fields.0.is_empty() {
            return Some(transactions);
        }
        for _ in 0..fields.u32()? {
            let (producer_id, first_offset) = (fields.i64()?, fields.i64()?);
            let is_first = transactions.open.insert(producer_id, first_offset).is_none();
            if !is_first || !transactions.firsts.insert((first_offset, producer_id)) {
                return None;
            }
        }
        let mut before = i64::MIN;
        for _ in 0..fields.u32()? {
            let aborted = AbortedTransaction {
                producer_id: fields.i64()?,
                first_offset: fields.i64()?,
                last_offset: fields.i64()?,
            };
            if aborted.last_offset <= before {
                return None;
            }
            before = aborted.last_offset;
            transactions.aborted.push((aborted, i64::MAX));
        }
        transactions.find_first_open();
        Some(transactions)
    }

    /// For each known aborted transaction, the first offset that was open after it. Transactions
    /// that committed since then are in no list.
    fn find_first_open(&mut self) {
        let mut first_open = self.firsts.first().map_or(i64::MAX, |(first, _)| *first);
        for (aborted, later) in self.aborted.iter_mut().rev() {
            *later = first_open;
            first_open = first_open.min(aborted.first_offset);
        }
    }
}

fn put_count(out: &mut Vec<u8>, count: usize) {
    let count = u32::try_from(count).expect("bounded by TRANSACTIONS_MAX");
    out.extend_from_slice(&count.to_le_bytes());
}

/// Transactions of one log that are open or aborted and not deleted, 40 to 100 bytes each. Kafka
/// keeps the aborted ones in files; here a log that has so many takes no further transaction until
/// retention or compaction has removed some.
const TRANSACTIONS_MAX: usize = 1 << 16;

#[cfg(test)]
mod tests {
    use moldau_records::{
        Attributes, BatchBuilder, BatchOptions, Compression, Compressor, MarkerBatch, Producer,
    };

    use super::*;

    fn data(transactions: &mut Transactions, producer_id: i64, offset: i64) {
        let producer = Producer { id: producer_id, epoch: 0, base_sequence: 0 };
        let attributes = Attributes::default().with_transactional(true);
        let options =
            BatchOptions { attributes, producer: Some(producer), ..BatchOptions::default() };
        let mut builder = BatchBuilder::new(options);
        builder.append(0, None, None, []).unwrap();
        let bytes = builder.finish(Compression::None, &mut Compressor::default()).unwrap();
        transactions.note(&BatchView::parse(bytes).unwrap(), offset);
    }

    fn end(transactions: &mut Transactions, producer_id: i64, marker: Marker, offset: i64) {
        transactions.note(&MarkerBatch::new(producer_id, 0, marker, 0).view(), offset);
    }

    fn aborted(producer_id: i64, first_offset: i64, last_offset: i64) -> AbortedTransaction {
        AbortedTransaction { producer_id, first_offset, last_offset }
    }

    #[test]
    fn what_is_stable_ends_at_the_first_open_transaction_and_at_a_marker_that_is_not_durable() {
        let mut transactions = Transactions::default();
        assert_eq!(transactions.last_stable_offset(0, 5), 5);
        data(&mut transactions, 1, 5);
        data(&mut transactions, 2, 6);
        data(&mut transactions, 1, 7);
        assert_eq!(transactions.last_stable_offset(0, 8), 5);
        end(&mut transactions, 1, Marker::Commit, 8);
        assert_eq!(transactions.last_stable_offset(0, 8), 5, "the marker is not durable");
        assert_eq!(transactions.last_stable_offset(0, 9), 6);
        end(&mut transactions, 2, Marker::Abort, 9);
        assert_eq!(transactions.last_stable_offset(0, 9), 6);
        assert_eq!(transactions.last_stable_offset(0, 10), 10);
        data(&mut transactions, 3, 10);
        assert_eq!(transactions.last_stable_offset(20, 30), 20, "what is deleted is not served");
    }

    #[test]
    fn aborted_transactions_are_found_by_range_in_order_of_first_offset() {
        let mut transactions = Transactions::default();
        data(&mut transactions, 1, 0);
        data(&mut transactions, 2, 1);
        end(&mut transactions, 2, Marker::Abort, 2);
        end(&mut transactions, 1, Marker::Abort, 3);
        data(&mut transactions, 2, 4);
        end(&mut transactions, 2, Marker::Commit, 5);
        data(&mut transactions, 2, 6);
        end(&mut transactions, 2, Marker::Abort, 7);
        let all = [aborted(1, 0, 3), aborted(2, 1, 2), aborted(2, 6, 7)];
        let mut bytes = Vec::new();
        transactions.encode(&mut bytes);
        let decoded = Transactions::decode(&mut Fields(&bytes)).unwrap();
        for transactions in [&transactions, &decoded] {
            assert_eq!(transactions.aborted_in(0, 8), all);
            assert_eq!(transactions.aborted_in(0, 1), all[..1]);
            assert_eq!(transactions.aborted_in(3, 6), all[..1]);
            assert_eq!(transactions.aborted_in(4, 6), []);
            assert_eq!(transactions.aborted_in(7, 9), all[2..]);
        }
        transactions.trim_to(3);
        assert_eq!(transactions.aborted_in(0, 8), [all[0], all[2]]);
    }

    #[test]
    fn the_state_comes_back_from_a_checkpoint() {
        let mut transactions = Transactions::default();
        data(&mut transactions, 1, 0);
        data(&mut transactions, 2, 1);
        end(&mut transactions, 1, Marker::Abort, 2);
        let mut bytes = Vec::new();
        transactions.encode(&mut bytes);
        #[rustfmt::skip]
        let golden = [
            1, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0,
            1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0,
        ];
        assert_eq!(bytes, golden);
        let mut decoded = Transactions::decode(&mut Fields(&bytes)).unwrap();
        assert_eq!(decoded.last_stable_offset(0, 3), 1);
        end(&mut decoded, 2, Marker::Commit, 3);
        assert_eq!(decoded.last_stable_offset(0, 4), 4);
        assert_eq!(decoded.aborted_in(0, 4), [aborted(1, 0, 2)]);
        for length in 1..bytes.len() {
            assert!(Transactions::decode(&mut Fields(&bytes[..length])).is_none());
        }
        let mut empty = Vec::new();
        Transactions::default().encode(&mut empty);
        assert_eq!(empty, [], "a log without transactions has the bytes that it always had");
    }
}
