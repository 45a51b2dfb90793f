//! Transactions of a producer thread, one after the other, each over all partitions of its topic.

use std::ops::Range;

use moldau_client::{PartitionHandle, Producer};

use crate::generator::clock::RunClock;
use crate::generator::target;
use moldau_measure::Error;
use moldau_measure::histograms::Durations;

/// What a producer thread knows of its transactions. One is open until the last ends.
pub(super) struct Transactions {
    records_max: u32,
    /// Records of the one that is open.
    records: u32,
    /// Transactions that end in it are recorded, ns since the start of the run.
    window: Range<u64>,
    /// Of each partition of the topic whether it has records of the one that is open.
    written: Vec<bool>,
    outcome: Outcome,
}

/// What it brings home.
#[derive(Debug, Default)]
pub struct Outcome {
    /// From the last record's hand-over until the commit is acknowledged.
    pub commit: Durations,
    /// From there until the next transaction takes records.
    pub begin: Durations,
    /// Ends of transactions in partitions with records of theirs in the whole run, each at an
    /// offset of its own.
    pub markers: u64,
    /// Partitions of transactions without a record in them. Kafka writes ends there too, Moldau
    /// does not.
    pub without_records: u64,
}

impl Outcome {
    /// Adds those of another producer.
    pub fn merge(&mut self, other: &Self) {
        self.commit.merge(&other.commit);
        self.begin.merge(&other.begin);
        self.markers += other.markers;
        self.without_records += other.without_records;
    }
}

/// When the turn from one transaction to the next was where, ns since the start of the run.
pub(super) struct Turned {
    full_ns: u64,
    committed_ns: u64,
    begun_ns: u64,
}

impl Transactions {
    pub(super) fn new(records_max: u32, partitions: usize, window: Range<u64>) -> Self {
        let written = vec![false; partitions];
        Self { records_max, records: 0, window, written, outcome: Outcome::default() }
    }

    /// Whether the open one has all its records.
    pub(super) fn is_full(&self) -> bool {
        self.records >= self.records_max
    }

    /// A record went to a partition of the topic.
    pub(super) fn sent(&mut self, partition: usize) {
        self.records += 1;
        if let Some(written) = self.written.get_mut(partition) {
            *written = true;
        }
    }

    pub(super) fn turned(&mut self, turned: &Turned) {
        let Turned { full_ns, committed_ns, begun_ns } = *turned;
        if self.window.contains(&committed_ns) {
            self.outcome.commit.record(full_ns, committed_ns, 1);
            self.outcome.begin.record(committed_ns, begun_ns, 1);
        }
        self.ended();
    }

    /// The one that was open has ended.
    pub(super) fn ended(&mut self) {
        self.records = 0;
        for written in &mut self.written {
            let count = match std::mem::take(written) {
                true => &mut self.outcome.markers,
                false => &mut self.outcome.without_records,
            };
            *count += 1;
        }
    }

    pub(super) fn into_outcome(self) -> Outcome {
        self.outcome
    }
}

pub(super) async fn begin(client: &Producer, handles: &[PartitionHandle]) -> Result<(), Error> {
    client.begin_transaction(handles).await.map_err(target("beginning a transaction"))
}

pub(super) async fn commit(client: &Producer) -> Result<(), Error> {
    client.commit_transaction().await.map_err(target("committing a transaction"))
}

/// Commits the open transaction and begins the next.
pub(super) async fn turn(
    client: &Producer,
    handles: &[PartitionHandle],
    clock: &RunClock,
) -> Result<Turned, Error> {
    let full_ns = clock.now_ns();
    commit(client).await?;
    let committed_ns = clock.now_ns();
    begin(client, handles).await?;
    Ok(Turned { full_ns, committed_ns, begun_ns: clock.now_ns() })
}
