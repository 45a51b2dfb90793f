//! Which partition is next.

use moldau_client::partition_for_key;

use crate::generator::{Layout, Setup};

/// Where a record goes.
#[derive(Clone, Copy)]
pub(super) struct Place {
    /// Among the partitions of the topic that take part.
    pub(super) partition: u16,
    /// In the ledger, which has a lane for each partition of each topic.
    pub(super) lane: u16,
}

/// Which partition is next: one batch to each in turn, so that batches fill at low rates too, or
/// one record to each where they are scattered.
pub(super) struct Turn {
    /// The lane of the first partition of the topic.
    first_lane: u16,
    partition: u16,
    partitions: u16,
    records: usize,
    records_per_turn: usize,
    opened_ns: u64,
    linger_ns: u64,
}

impl Turn {
    /// Producers begin at different partitions.
    pub(super) fn new(setup: &Setup, producer: u16) -> Self {
        let workload = &setup.workload;
        let batch = (workload.batch_bytes / workload.record_bytes).max(1);
        Self {
            first_lane: setup.first_lane(setup.topic_of(producer)),
            partition: producer / workload.tuning.topics % workload.partitions,
            partitions: workload.partitions,
            records: 0,
            records_per_turn: if setup.layout == Layout::Scattered { 1 } else { batch },
            opened_ns: 0,
            linger_ns: workload.linger_us * 1_000,
        }
    }

    pub(super) fn place(&mut self, now_ns: u64) -> Place {
        let is_full = self.is_full();
        let is_old = self.records > 0 && now_ns.saturating_sub(self.opened_ns) >= self.linger_ns;
        if is_full || is_old {
            self.partition = (self.partition + 1) % self.partitions;
            self.records = 0;
        }
        Place { partition: self.partition, lane: self.first_lane + self.partition }
    }

    /// Where Kafka's clients send records with this key.
    pub(super) fn place_of(&self, key: &[u8]) -> Place {
        let partition = partition_for_key(key, self.partitions.into());
        let partition = u16::try_from(partition).unwrap_or(0);
        Place { partition, lane: self.first_lane + partition }
    }

    pub(super) fn is_full(&self) -> bool {
        self.records >= self.records_per_turn
    }

    pub(super) fn advance(&mut self, now_ns: u64) {
        if self.records == 0 {
            self.opened_ns = now_ns;
        }
        self.records += 1;
    }
}
