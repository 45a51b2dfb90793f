//! Which batch is sent when, and what follows from its outcome.
//!
//! No I/O and no clock: the time comes in with each call.

mod outcomes;

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Instant;

use moldau_records::{BATCH_HEADER_LEN, BatchBuilder, Compressor};

use super::partition::{Batch, PartitionQueue, ProducerId};
use super::plan::{Adding, Appended, Extent, Outbound, Plan, Report, Transaction};
use super::{ProducerOptions, Record};
use crate::cluster::ClusterOptions;
use crate::metadata::{Metadata, TopicRef};
use crate::{Error, Result};

/// Token lists kept for reuse; enough for the batches that a few requests hold.
const SPARE_TOKENS_MAX: usize = 256;

/// What is known of a broker.
#[derive(Debug, Default)]
struct Node {
    connected: bool,
    in_flight: usize,
}

/// What callers wait for: room, or that all they appended has its outcome.
#[derive(Debug, Default)]
struct Backlog {
    /// Records without an outcome, before compression.
    bytes: usize,
    /// Outcomes that the sink has not received yet.
    reports_undelivered: usize,
    /// Callers that wait for all outcomes, so that no batch lingers.
    flushes: usize,
    /// Whether the producer closes and takes no more records.
    refusing: bool,
}

pub(super) struct Accumulator {
    options: ProducerOptions,
    cluster_options: ClusterOptions,
    partitions: Vec<PartitionQueue>,
    by_name: HashMap<(Arc<str>, i32), usize>,
    /// Partitions with an open or waiting batch; those that were served last come last.
    active: VecDeque<usize>,
    /// Those of them that have a batch in the requests that are being planned.
    served: Vec<usize>,
    nodes: HashMap<i32, Node>,
    compressor: Compressor,
    spare_tokens: Vec<Vec<u64>>,
    producer: Option<ProducerId>,
    /// A sequence number is lost: go on with a fresh epoch once nothing is in flight, and where
    /// there is a transaction, once that has ended.
    renewing_producer: bool,
    transaction: Transaction,
    /// Of the transaction that is open.
    adding: Adding,
    extent: Extent,
    metadata_generation: u64,
    in_flight: usize,
    requests_made: u64,
    next_serial: u64,
    backlog: Backlog,
    needs_metadata: bool,
}

impl Accumulator {
    pub(super) fn new(options: ProducerOptions, cluster_options: ClusterOptions) -> Self {
        let is_transactional = options.transactional_id.is_some();
        let transaction =
            if is_transactional { Transaction::Between } else { Transaction::Without };
        Self {
            transaction,
            adding: Adding::Beforehand,
            extent: Extent::Empty,
            options,
            cluster_options,
            partitions: Vec::new(),
            by_name: HashMap::new(),
            active: VecDeque::new(),
            served: Vec::new(),
            nodes: HashMap::new(),
            compressor: Compressor::default(),
            spare_tokens: Vec::new(),
            producer: None,
            renewing_producer: false,
            metadata_generation: 0,
            in_flight: 0,
            requests_made: 0,
            next_serial: 0,
            backlog: Backlog::default(),
            needs_metadata: false,
        }
    }

    pub(super) fn partition(&mut self, topic: &TopicRef, index: i32) -> usize {
        // The leader is looked up with the next plan.
        self.metadata_generation = 0;
        let partitions = &mut self.partitions;
        *self.by_name.entry((topic.name.clone(), index)).or_insert_with(|| {
            partitions.push(PartitionQueue::new(topic.clone(), index));
            partitions.len() - 1
        })
    }

    pub(super) fn producer_id(&self) -> Option<ProducerId> {
        self.producer
    }

    /// Whether its sequence numbers can no longer be relied on.
    pub(super) fn is_producer_lost(&self) -> bool {
        self.renewing_producer
    }

    pub(super) fn transaction(&self) -> Transaction {
        self.transaction
    }

    pub(super) fn set_transaction(&mut self, transaction: Transaction) {
        self.transaction = transaction;
    }

    /// Opens a transaction.
    pub(super) fn begin(&mut self, adding: Adding, extent: Extent) {
        (self.transaction, self.adding, self.extent) = (Transaction::Open, adding, extent);
    }

    /// A batch or offset of the open transaction failed: it can only be aborted.
    pub(super) fn fail_transaction(&mut self) {
        self.transaction = self.transaction.after_failure();
    }

    pub(super) fn adding(&self) -> Adding {
        self.adding
    }

    pub(super) fn extent(&self) -> Extent {
        self.extent
    }

    /// Something becomes part of the open transaction.
    pub(super) fn extend_transaction(&mut self) {
        self.extent = Extent::Begun;
    }

    /// Topic and number of a partition.
    pub(super) fn place(&self, partition: usize) -> Option<(&Arc<str>, i32)> {
        self.partitions.get(partition).map(|queue| (&queue.topic.name, queue.index))
    }

    pub(super) fn buffered_bytes(&self) -> usize {
        self.backlog.bytes
    }

    /// Bytes that a record may take of the buffer: its own bytes, and a batch that is opened for
    /// it.
    pub(super) fn takes(record: &Record<'_>) -> usize {
        let headers = record.headers.iter().copied();
        let size = BatchBuilder::record_size_max(record.key, record.value, headers);
        size + BATCH_HEADER_LEN
    }

    pub(super) fn has_room(&self, bytes: usize) -> bool {
        self.backlog.bytes == 0 || self.backlog.bytes + bytes <= self.options.buffer_bytes_max
    }

    pub(super) fn is_idle(&self) -> bool {
        self.backlog.bytes == 0 && self.backlog.reports_undelivered == 0
    }

    pub(super) fn requests_made(&self) -> u64 {
        self.requests_made
    }

    pub(super) fn begin_flush(&mut self) {
        self.backlog.flushes += 1;
    }

    pub(super) fn end_flush(&mut self) {
        self.backlog.flushes -= 1;
    }

    pub(super) fn refuse_records(&mut self) {
        self.backlog.refusing = true;
    }

    pub(super) fn set_connected(&mut self, node: i32, connected: bool) {
        self.nodes.entry(node).or_default().connected = connected;
    }

    /// Puts a record into its partition's batch; whether the sending task should look.
    #[inline]
    pub(super) fn append(&mut self, partition: usize, record: &Record<'_>) -> Result<bool> {
        let headers = record.headers.iter().copied();
        let size = BatchBuilder::record_size_max(record.key, record.value, headers.clone());
        if size + BATCH_HEADER_LEN > self.options.request_bytes_max {
            let bytes_max = self.options.request_bytes_max;
            return Err(Error::RecordTooLarge { record_bytes: size, bytes_max });
        }
        if self.backlog.refusing {
            return Err(Error::Closed);
        }
        let is_transactional = match self.transaction {
            Transaction::Without => false,
            Transaction::Open => true,
            Transaction::Between | Transaction::Failed => return Err(Error::NoTransaction),
        };
        if !self.has_room(size + BATCH_HEADER_LEN) {
            return Err(Error::BufferFull);
        }
        let queue = self.partitions.get_mut(partition).ok_or(Error::Closed)?;
        let mut wake = false;
        let limit = self.options.batch_bytes.min(self.options.request_bytes_max);
        if queue.opened_at.is_some() && queue.builder.estimated_size() + size > limit {
            self.seal(partition)?;
            wake = true;
        }
        let queue = self.partitions.get_mut(partition).ok_or(Error::Closed)?;
        if queue.opened_at.is_none() {
            queue.open(self.producer, is_transactional, Instant::now());
            self.backlog.bytes += queue.builder.estimated_size();
            wake |= !queue.listed;
            if !queue.listed {
                queue.listed = true;
                self.active.push_back(partition);
            }
        }
        if is_transactional && self.adding == Adding::Implicit {
            self.extent = Extent::Begun;
        }
        let before = queue.builder.estimated_size();
        queue.builder.append(record.timestamp, record.key, record.value, headers)?;
        queue.tokens.push(record.token);
        self.backlog.bytes += queue.builder.estimated_size() - before;
        Ok(wake)
    }

    pub(super) fn seal(&mut self, partition: usize) -> Result<()> {
        let Some(queue) = self.partitions.get_mut(partition) else { return Ok(()) };
        let spare = self.spare_tokens.pop().unwrap_or_default();
        self.next_serial += 1;
        let (compression, compressor) = (self.options.compression, &mut self.compressor);
        queue.seal(self.next_serial, compression, compressor, spare)
    }

    /// Decides what to send at `now`.
    pub(super) fn plan(&mut self, now: Instant, metadata: &Metadata) -> Plan {
        self.follow_metadata(metadata);
        let mut plan = Plan::default();
        if self.transaction == Transaction::Failed {
            // The rest of the transaction is to be discarded, and this with it.
            self.discard_all(&mut plan.reports);
            return plan;
        }
        if self.renewing_producer {
            plan.needs_producer_id = self.in_flight == 0;
            for partition in 0..self.partitions.len() {
                self.expire(partition, now, &mut plan.reports);
            }
            wake_at(&mut plan, now + self.cluster_options.retry_backoff_max);
            return plan;
        }
        let mut building: HashMap<i32, (Vec<Outbound>, usize)> = HashMap::new();
        loop {
            let mut is_any_taken = false;
            for _ in 0..self.active.len() {
                let Some(partition) = self.active.pop_front() else { break };
                self.expire(partition, now, &mut plan.reports);
                let is_taken = self.take(partition, now, &mut building, &mut plan);
                is_any_taken |= is_taken;
                let Some(queue) = self.partitions.get_mut(partition) else { continue };
                queue.listed = queue.opened_at.is_some() || !queue.sealed.is_empty();
                match (queue.listed, is_taken) {
                    (true, true) => self.served.push(partition),
                    (true, false) => self.active.push_back(partition),
                    (false, _) => {}
                }
            }
            // A request may have no place for all: who had one comes last next time.
            self.active.extend(self.served.drain(..));
            for (node, (batches, _)) in building.drain() {
                self.request(node, batches, &mut plan);
            }
            // A second request may carry the next batch of the same partitions.
            if !is_any_taken || self.renewing_producer {
                break;
            }
        }
        plan.needs_metadata |= std::mem::take(&mut self.needs_metadata);
        plan
    }

    fn request(&mut self, node: i32, batches: Vec<Outbound>, plan: &mut Plan) {
        self.nodes.entry(node).or_default().in_flight += 1;
        self.requests_made += 1;
        plan.requests.push((node, batches));
    }

    /// Takes one batch of a partition into its broker's request, if it is time for it.
    fn take(
        &mut self,
        partition: usize,
        now: Instant,
        building: &mut HashMap<i32, (Vec<Outbound>, usize)>,
        plan: &mut Plan,
    ) -> bool {
        let Some(queue) = self.partitions.get(partition) else { return false };
        let sealed_at = queue.sealed.front().map(|batch| batch.opened_at);
        if let Some(oldest) = sealed_at.or(queue.opened_at) {
            wake_at(plan, oldest + self.options.delivery_timeout);
        }
        let ready_at = match (queue.sealed.is_empty(), queue.opened_at) {
            (false, _) => now,
            (true, Some(_)) if self.backlog.flushes > 0 || self.is_tight() => now,
            (true, Some(opened_at)) => opened_at + self.options.linger,
            (true, None) => return false,
        };
        let ready_at = ready_at.max(queue.not_before.unwrap_or(now));
        if ready_at > now {
            wake_at(plan, ready_at);
            return false;
        }
        if queue.draining || !(queue.established || queue.in_flight.is_empty()) {
            return false;
        }
        let Some(leader) = queue.leader else {
            plan.needs_metadata = true;
            return false;
        };
        let node = self.nodes.entry(leader.node).or_default();
        if !node.connected {
            if !plan.unconnected.contains(&leader.node) {
                plan.unconnected.push(leader.node);
            }
            return false;
        }
        if node.in_flight >= self.options.in_flight_max {
            return false;
        }
        if queue.sealed.is_empty()
            && let Err(error) = self.seal(partition)
        {
            self.give_up_open(partition, error, &mut plan.reports);
            return false;
        }
        self.take_sealed(partition, leader.node, building, plan)
    }

    fn take_sealed(
        &mut self,
        partition: usize,
        node: i32,
        building: &mut HashMap<i32, (Vec<Outbound>, usize)>,
        plan: &mut Plan,
    ) -> bool {
        let Some(queue) = self.partitions.get_mut(partition) else { return false };
        let Some(batch) = queue.sealed.pop_front() else { return false };
        let (batches, bytes) = building.entry(node).or_default();
        if !batches.is_empty() && *bytes + batch.bytes.len() > self.options.request_bytes_max {
            // The request is full: it goes, and this batch waits for the next round.
            let batches = std::mem::take(batches);
            building.remove(&node);
            queue.sealed.push_front(batch);
            self.request(node, batches, plan);
            return false;
        }
        *bytes += batch.bytes.len();
        batches.push(Outbound {
            partition,
            serial: batch.serial,
            topic: queue.topic.clone(),
            index: queue.index,
            bytes: batch.bytes.clone(),
        });
        queue.in_flight.push_back(batch);
        self.in_flight += 1;
        true
    }

    /// Whether little of the buffer is left, so that lingering would stop the caller.
    fn is_tight(&self) -> bool {
        self.backlog.bytes + self.options.batch_bytes > self.options.buffer_bytes_max
    }

    fn follow_metadata(&mut self, metadata: &Metadata) {
        if metadata.generation == self.metadata_generation {
            return;
        }
        self.metadata_generation = metadata.generation;
        for queue in &mut self.partitions {
            queue.leader = metadata.leader(&queue.topic.name, queue.index);
            // A topic that was deleted and created again has another id.
            if let Some(topic) = metadata.topics.get(&queue.topic.name) {
                queue.topic.id = topic.topic.id;
            }
        }
    }

    /// Gives up the batches that have waited for longer than the delivery timeout, the open one
    /// too: without a leader that can be reached it never gets its turn.
    fn expire(&mut self, partition: usize, now: Instant, reports: &mut Vec<Report>) {
        loop {
            let timeout = self.options.delivery_timeout;
            let Some(queue) = self.partitions.get(partition) else { return };
            let is_open_due = queue.opened_at.is_some_and(|opened_at| opened_at + timeout <= now);
            if is_open_due && let Err(error) = self.seal(partition) {
                self.give_up_open(partition, error, reports);
            }
            let Some(queue) = self.partitions.get_mut(partition) else { return };
            let expired = queue.sealed.pop_front_if(|oldest| oldest.opened_at + timeout <= now);
            let Some(batch) = expired else { return };
            let topic = queue.topic.name.clone();
            let error = Error::DeliveryTimedOut { topic, partition: queue.index };
            self.give_up(partition, batch, error, reports);
        }
    }

    /// Gives up all that waits, the newest first: what lies behind a batch that is given up would
    /// be numbered anew.
    fn discard_all(&mut self, reports: &mut Vec<Report>) {
        for partition in 0..self.partitions.len() {
            if let Err(error) = self.seal(partition) {
                self.give_up_open(partition, error, reports);
            }
            let Some(queue) = self.partitions.get_mut(partition) else { continue };
            queue.listed = false;
            let waiting = std::mem::take(&mut queue.sealed);
            for batch in waiting.into_iter().rev() {
                self.give_up(partition, batch, Error::NoTransaction, reports);
            }
        }
        self.active.clear();
    }

    /// The open batch cannot be compressed; its records can never be sent.
    fn give_up_open(&mut self, partition: usize, error: Error, reports: &mut Vec<Report>) {
        let Some(queue) = self.partitions.get_mut(partition) else { return };
        queue.opened_at = None;
        let tokens = std::mem::take(&mut queue.tokens);
        self.backlog.bytes -= queue.builder.estimated_size();
        self.backlog.reports_undelivered += 1;
        self.transaction = self.transaction.after_failure();
        reports.push(Report {
            topic: queue.topic.name.clone(),
            partition: queue.index,
            tokens,
            outcome: Err(error),
        });
    }

    fn give_up(&mut self, partition: usize, batch: Batch, error: Error, out: &mut Vec<Report>) {
        if self.producer.is_some() {
            let Some(queue) = self.partitions.get_mut(partition) else { return };
            if batch.ambiguous {
                // Whether the broker has this sequence number cannot be known: start afresh.
                self.renewing_producer = true;
            } else {
                let given_up = (batch.serial, batch.sequence);
                let from = queue.renumber_from.get_or_insert(given_up);
                if given_up.0 < from.0 {
                    *from = given_up;
                }
                queue.draining = !queue.in_flight.is_empty();
            }
        }
        self.report(partition, batch, Err(error), out);
        self.settle(partition);
    }

    fn report(
        &mut self,
        partition: usize,
        batch: Batch,
        outcome: Result<Appended>,
        out: &mut Vec<Report>,
    ) {
        let Some(queue) = self.partitions.get(partition) else { return };
        self.backlog.bytes -= batch.buffered_bytes;
        self.backlog.reports_undelivered += 1;
        if outcome.is_err() {
            self.transaction = self.transaction.after_failure();
        }
        let (topic, partition) = (queue.topic.name.clone(), queue.index);
        out.push(Report { topic, partition, tokens: batch.tokens, outcome });
    }

    /// Takes back the token lists of reports that were delivered.
    pub(super) fn recycle(&mut self, reports: Vec<Report>) {
        self.backlog.reports_undelivered -= reports.len();
        for mut report in reports {
            if self.spare_tokens.len() < SPARE_TOKENS_MAX {
                report.tokens.clear();
                self.spare_tokens.push(report.tokens);
            }
        }
    }
}

fn wake_at(plan: &mut Plan, at: Instant) {
    plan.wake_at = Some(plan.wake_at.map_or(at, |known| known.min(at)));
}

#[cfg(test)]
mod tests;
