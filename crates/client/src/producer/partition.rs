//! One partition's batches: the open one, those that wait, those in flight.
//!
//! ```text
//! send -> builder (open) -> sealed, oldest first -> in_flight, oldest first -> outcome
//!                                 ^---- retriable failure ----|
//! ```

use std::collections::VecDeque;
use std::time::Instant;

use bytes::{Bytes, BytesMut};
use moldau_records::{
    Attributes, BatchBuilder, BatchOptions, Compression, Compressor, Producer as ProducerFields,
    set_producer,
};

use crate::Result;
use crate::metadata::{Leader, TopicRef};

/// Id and epoch of an idempotent producer.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct ProducerId {
    pub(super) id: i64,
    pub(super) epoch: i16,
}

/// A batch that takes no more records.
#[derive(Debug)]
pub(super) struct Batch {
    /// Rises with every batch of the producer; orders the batches of a partition.
    pub(super) serial: u64,
    pub(super) bytes: Bytes,
    pub(super) tokens: Vec<u64>,
    /// Bytes that the records count in the buffer limit.
    pub(super) buffered_bytes: usize,
    /// When its first record came.
    pub(super) opened_at: Instant,
    /// Sequence number of its first record.
    pub(super) sequence: i32,
    pub(super) attempts: u32,
    /// Whether an attempt may have been appended without our knowing.
    pub(super) ambiguous: bool,
}

#[derive(Debug)]
pub(super) struct PartitionQueue {
    pub(super) topic: TopicRef,
    pub(super) index: i32,
    pub(super) leader: Option<Leader>,
    pub(super) builder: BatchBuilder,
    pub(super) tokens: Vec<u64>,
    /// When the first record of the open batch came; `None` while it is empty.
    pub(super) opened_at: Option<Instant>,
    pub(super) sealed: VecDeque<Batch>,
    pub(super) in_flight: VecDeque<Batch>,
    /// Sequence number of the open batch's first record.
    pub(super) next_sequence: i32,
    /// Whether the leader has taken a batch of this producer. Until then one is in flight at a
    /// time: a leader that knows nothing of a producer takes whichever batch reaches it first, so
    /// a refusal of the first could put the second before it.
    pub(super) established: bool,
    /// Nothing is sent until all in flight have returned, so that retries keep the order.
    pub(super) draining: bool,
    /// The oldest numbered batch that was given up, by its serial, and its sequence number, with
    /// which those behind it go on after draining.
    pub(super) renumber_from: Option<(u64, i32)>,
    /// Nothing is sent before, after a failure.
    pub(super) not_before: Option<Instant>,
    /// Whether it stands in the accumulator's list of partitions with something to send.
    pub(super) listed: bool,
}

impl PartitionQueue {
    pub(super) fn new(topic: TopicRef, index: i32) -> Self {
        Self {
            topic,
            index,
            leader: None,
            builder: BatchBuilder::new(BatchOptions::default()),
            tokens: Vec::new(),
            opened_at: None,
            sealed: VecDeque::new(),
            in_flight: VecDeque::new(),
            next_sequence: 0,
            established: false,
            draining: false,
            renumber_from: None,
            not_before: None,
            listed: false,
        }
    }

    /// Readies the builder for the first record of a batch.
    pub(super) fn open(
        &mut self,
        producer: Option<ProducerId>,
        is_transactional: bool,
        now: Instant,
    ) {
        let base_sequence = self.next_sequence;
        let producer =
            producer.map(|ProducerId { id, epoch }| ProducerFields { id, epoch, base_sequence });
        let attributes = Attributes::default().with_transactional(is_transactional);
        self.builder.start(BatchOptions { producer, attributes, ..BatchOptions::default() });
        self.opened_at = Some(now);
    }

    /// Closes the open batch, if it has records, and puts it behind those that wait.
    pub(super) fn seal(
        &mut self,
        serial: u64,
        compression: Compression,
        compressor: &mut Compressor,
        spare_tokens: Vec<u64>,
    ) -> Result<()> {
        let Some(opened_at) = self.opened_at else { return Ok(()) };
        let buffered_bytes = self.builder.estimated_size();
        let sequence = self.next_sequence;
        let bytes = self.builder.finish_bytes(compression, compressor)?;
        self.opened_at = None;
        let tokens = std::mem::replace(&mut self.tokens, spare_tokens);
        self.next_sequence = sequence_after(sequence, tokens.len());
        self.sealed.push_back(Batch {
            serial,
            bytes,
            tokens,
            buffered_bytes,
            opened_at,
            sequence,
            attempts: 0,
            ambiguous: false,
        });
        Ok(())
    }

    /// Puts a batch that failed back to where it was in the order.
    pub(super) fn put_back(&mut self, batch: Batch) {
        let place = self.sealed.partition_point(|other| other.serial < batch.serial);
        self.sealed.insert(place, batch);
        self.draining = !self.in_flight.is_empty();
    }

    /// Takes the batch `serial` out of those in flight.
    pub(super) fn returned(&mut self, serial: u64) -> Option<Batch> {
        let place = self.in_flight.iter().position(|batch| batch.serial == serial)?;
        self.in_flight.remove(place)
    }

    /// Whether a batch before `serial` has no outcome yet.
    pub(super) fn has_older_than(&self, serial: u64) -> bool {
        self.in_flight.front().is_some_and(|batch| batch.serial < serial)
            || self.sealed.front().is_some_and(|batch| batch.serial < serial)
    }

    /// Gives the waiting batches from `serial` on consecutive sequence numbers from `sequence`.
    /// Those before it keep theirs: a broker may have them already, and would take them again
    /// under another. The open batch must have been sealed.
    pub(super) fn renumber(&mut self, producer: ProducerId, serial: u64, sequence: i32) {
        let mut sequence = sequence;
        for batch in self.sealed.iter_mut().filter(|batch| batch.serial >= serial) {
            batch.sequence = sequence;
            let bytes = std::mem::take(&mut batch.bytes);
            let mut bytes: BytesMut =
                bytes.try_into_mut().unwrap_or_else(|shared| (&shared[..]).into());
            let ProducerId { id, epoch } = producer;
            let fields = ProducerFields { id, epoch, base_sequence: sequence };
            set_producer(&mut bytes, fields).expect("a sealed batch has a whole header");
            batch.bytes = bytes.freeze();
            sequence = sequence_after(sequence, batch.tokens.len());
        }
        self.next_sequence = sequence;
    }
}

/// Sequence numbers run from 0 to `i32::MAX` and start again at 0.
fn sequence_after(sequence: i32, records: usize) -> i32 {
    let sum = i64::from(sequence) + i64::try_from(records).unwrap_or(0);
    i32::try_from(sum % (i64::from(i32::MAX) + 1)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use moldau_protocol::Uuid;
    use moldau_records::BatchView;

    use super::*;

    #[test]
    fn renumbered_batches_are_valid_and_consecutive() {
        let topic = TopicRef { name: Arc::from("t"), id: Uuid::default() };
        let mut queue = PartitionQueue::new(topic, 0);
        let mut compressor = Compressor::default();
        for serial in 0..3 {
            queue.open(Some(ProducerId { id: 7, epoch: 0 }), true, Instant::now());
            for token in 0..4 {
                queue.builder.append(1, None, Some(b"value"), []).unwrap();
                queue.tokens.push(token);
            }
            queue.seal(serial, Compression::Lz4, &mut compressor, Vec::new()).unwrap();
        }
        queue.renumber(ProducerId { id: 9, epoch: 3 }, 0, i32::MAX - 5);
        for (batch, sequence) in queue.sealed.iter().zip([i32::MAX - 5, i32::MAX - 1, 2]) {
            let view = BatchView::parse(&batch.bytes).unwrap();
            view.check_crc().unwrap();
            assert_eq!((view.producer_id(), view.producer_epoch()), (9, 3));
            assert_eq!((view.base_sequence(), view.is_transactional()), (sequence, true));
        }
        assert_eq!(queue.next_sequence, 6);
    }
}
