//! Batches of aborted transactions, which readers of committed records pass over.

use moldau_protocol::messages::fetch_response::AbortedTransaction;
use moldau_records::BatchView;

/// The aborted transactions of a fetched stretch of a log, as they are passed on the way through
/// it.
#[derive(Clone, Debug, Default)]
pub(super) struct Aborted {
    /// Those that begin further on: first offset and producer id, the next one last.
    ahead: Vec<(i64, i64)>,
    /// Producers whose aborted transaction has begun and not ended.
    open: Vec<i64>,
}

impl Aborted {
    pub(super) fn of(transactions: Vec<AbortedTransaction>) -> Self {
        let begins = |it: AbortedTransaction| (it.first_offset, it.producer_id);
        let mut ahead: Vec<(i64, i64)> = transactions.into_iter().map(begins).collect();
        ahead.sort_unstable_by(|one, other| other.cmp(one));
        Self { ahead, open: Vec::new() }
    }

    /// Whether the next batch belongs to one of them. A control batch ends that of its producer.
    pub(super) fn covers(&mut self, batch: &BatchView<'_>) -> bool {
        let end = batch.next_offset();
        while let Some((_, producer)) = self.ahead.pop_if(|(first, _)| *first < end) {
            self.open.push(producer);
        }
        let producer = batch.producer_id();
        if batch.is_control() {
            self.open.retain(|open| *open != producer);
            return false;
        }
        batch.is_transactional() && self.open.contains(&producer)
    }
}

#[cfg(test)]
mod tests {
    use moldau_records::{
        Attributes, BatchBuilder, BatchOptions, Compression, Compressor, Producer, iter_batches,
    };

    use super::*;

    /// A batch of two records, or of one marker.
    fn batch(base_offset: i64, id: i64, attributes: Attributes) -> Vec<u8> {
        let base_sequence = if attributes.is_control() { -1 } else { 0 };
        let producer = Some(Producer { id, epoch: 0, base_sequence });
        let options = BatchOptions { base_offset, attributes, producer, ..BatchOptions::default() };
        let mut builder = BatchBuilder::new(options);
        for _ in 0..if attributes.is_control() { 1 } else { 2 } {
            builder.append(1, Some(b"key"), Some(b"value"), []).unwrap();
        }
        builder.finish(Compression::None, &mut Compressor::default()).unwrap().to_vec()
    }

    fn transactional() -> Attributes {
        Attributes::default().with_transactional(true)
    }

    /// The base offsets of what is left of a log.
    fn left(log: &[u8], aborted: &[(i64, i64)]) -> Vec<i64> {
        let transaction = |&(first_offset, producer_id): &(i64, i64)| AbortedTransaction {
            producer_id,
            first_offset,
            ..Default::default()
        };
        let mut aborted = Aborted::of(aborted.iter().map(transaction).collect());
        let batches = iter_batches(log).map(Result::unwrap);
        batches.filter(|it| !aborted.covers(it)).map(|it| it.base_offset()).collect()
    }

    #[test]
    fn batches_of_an_aborted_transaction_are_passed_over_until_it_ends() {
        let marker = transactional().with_control(true);
        let log = [
            batch(0, 1, transactional()),
            batch(2, 2, transactional()),
            batch(4, 1, transactional()),
            batch(6, 3, Attributes::default()),
            batch(8, 1, marker),
            batch(9, 1, transactional()),
            batch(11, 2, marker),
            batch(12, 1, marker),
        ]
        .concat();
        assert_eq!(left(&log, &[]), [0, 2, 4, 6, 8, 9, 11, 12]);
        // Both transactions of producer 1, and the second alone.
        assert_eq!(left(&log, &[(9, 1), (0, 1)]), [2, 6, 8, 11, 12]);
        assert_eq!(left(&log, &[(9, 1)]), [0, 2, 4, 6, 8, 11, 12]);
        // A producer that is not transactional has nothing to abort.
        assert_eq!(left(&log, &[(0, 3)]), [0, 2, 4, 6, 8, 9, 11, 12]);
    }
}
