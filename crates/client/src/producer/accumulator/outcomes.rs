//! What comes back from brokers: outcomes of batches, and fresh ids and epochs.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use moldau_protocol::ErrorCode;

use super::super::Acks;
use super::super::partition::{Batch, ProducerId};
use super::super::plan::{Appended, Report, Transaction, Verdict};
use super::Accumulator;
use crate::{Error, Result};

impl Accumulator {
    /// One request of `node` has an outcome; those of its batches follow.
    pub(in crate::producer) fn request_returned(&mut self, node: i32) {
        if let Some(node) = self.nodes.get_mut(&node) {
            node.in_flight = node.in_flight.saturating_sub(1);
        }
    }

    /// A batch has come back from `now`'s request with `outcome`.
    pub(in crate::producer) fn returned(
        &mut self,
        partition: usize,
        serial: u64,
        outcome: Result<Appended>,
        now: Instant,
        out: &mut Vec<Report>,
    ) {
        let Some(queue) = self.partitions.get_mut(partition) else { return };
        let Some(mut batch) = queue.returned(serial) else { return };
        self.in_flight -= 1;
        let error = match outcome {
            Ok(appended) => {
                queue.established = true;
                self.report(partition, batch, Ok(appended), out);
                self.settle(partition);
                return;
            }
            Err(error) => error,
        };
        batch.attempts += 1;
        batch.ambiguous |= error.is_ambiguous();
        let expired = batch.opened_at + self.options.delivery_timeout <= now;
        match self.verdict(partition, serial, &error) {
            Verdict::Delivered => {
                let appended = Appended { base_offset: None, log_append_time_ms: None };
                self.report(partition, batch, Ok(appended), out);
            }
            Verdict::Retry { renew_producer } if !expired => {
                self.renewing_producer |= renew_producer;
                self.retry(partition, batch, &error, now);
            }
            Verdict::Retry { renew_producer } | Verdict::GiveUp { renew_producer } => {
                self.renewing_producer |= renew_producer;
                self.give_up(partition, batch, error, out);
            }
        }
        self.settle(partition);
    }

    fn verdict(&self, partition: usize, serial: u64, error: &Error) -> Verdict {
        let idempotent = self.producer.is_some();
        match error.code() {
            Some(ErrorCode::DuplicateSequenceNumber) if idempotent => Verdict::Delivered,
            Some(ErrorCode::OutOfOrderSequenceNumber | ErrorCode::UnknownProducerId)
                if idempotent =>
            {
                let queue = self.partitions.get(partition);
                let follows = queue.is_some_and(|queue| {
                    queue.has_older_than(serial) || queue.renumber_from.is_some()
                });
                // A fresh epoch would end the transaction, and not wait for what it had sent.
                match self.transaction {
                    Transaction::Without => Verdict::Retry { renew_producer: !follows },
                    _ if follows => Verdict::Retry { renew_producer: false },
                    _ => Verdict::GiveUp { renew_producer: true },
                }
            }
            // Another has the transactional id: a fresh epoch would end what that one does.
            Some(ErrorCode::InvalidProducerEpoch) if self.transaction != Transaction::Without => {
                Verdict::GiveUp { renew_producer: false }
            }
            Some(ErrorCode::InvalidProducerEpoch) if idempotent => {
                Verdict::Retry { renew_producer: true }
            }
            _ if error.is_retriable() && self.options.acks != Acks::None => {
                Verdict::Retry { renew_producer: false }
            }
            _ => Verdict::GiveUp { renew_producer: false },
        }
    }

    fn retry(&mut self, partition: usize, batch: Batch, error: &Error, now: Instant) {
        let Some(queue) = self.partitions.get_mut(partition) else { return };
        let follows_a_failure = matches!(
            error.code(),
            Some(ErrorCode::OutOfOrderSequenceNumber | ErrorCode::UnknownProducerId)
        );
        if !follows_a_failure {
            let factor = 1_u32 << batch.attempts.saturating_sub(1).min(16);
            let pause = self.cluster_options.retry_backoff.saturating_mul(factor);
            let pause = pause.min(self.cluster_options.retry_backoff_max);
            queue.not_before = Some(now + pause.max(Duration::from_millis(1)));
            self.needs_metadata = true;
        }
        queue.put_back(batch);
        if !queue.listed {
            queue.listed = true;
            self.active.push_back(partition);
        }
    }

    /// Ends the draining of a partition that has nothing in flight any more.
    pub(super) fn settle(&mut self, partition: usize) {
        let Some(queue) = self.partitions.get_mut(partition) else { return };
        if !queue.in_flight.is_empty() {
            return;
        }
        queue.draining = false;
        let Some((serial, sequence)) = queue.renumber_from.take() else { return };
        let Some(producer) = self.producer else { return };
        // A batch that cannot be compressed stays open, and is given up when its turn comes.
        if self.seal(partition).is_ok()
            && let Some(queue) = self.partitions.get_mut(partition)
        {
            queue.renumber(producer, serial, sequence);
        }
    }

    /// Goes on with a fresh id or epoch: all sequence numbers start again at 0.
    pub(in crate::producer) fn set_producer_id(&mut self, id: i64, epoch: i16) -> Vec<Report> {
        let mut reports = Vec::new();
        let producer = ProducerId { id, epoch };
        for partition in 0..self.partitions.len() {
            // As in `settle`.
            if self.seal(partition).is_err() {
                continue;
            }
            let Some(queue) = self.partitions.get_mut(partition) else { continue };
            let waiting = std::mem::take(&mut queue.sealed);
            let (unknown, rest): (VecDeque<_>, VecDeque<_>) =
                waiting.into_iter().partition(|batch| batch.ambiguous);
            queue.sealed = rest;
            queue.renumber_from = None;
            queue.established = false;
            queue.renumber(producer, 0, 0);
            let topic = queue.topic.name.clone();
            let error = Error::DeliveryTimedOut { topic, partition: queue.index };
            // Under the fresh epoch the broker could not tell a duplicate of these.
            for batch in unknown {
                self.report(partition, batch, Err(error.clone()), &mut reports);
            }
        }
        self.producer = Some(producer);
        self.renewing_producer = false;
        reports
    }
}
