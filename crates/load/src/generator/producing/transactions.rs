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
    /// Those that end in it are told, ns since the start of the run.
    window: Range<u64>,
    /// Partitions of each, to which its end is written.
    partitions: u64,
    outcome: Outcome,
}

/// What it brings home.
#[derive(Debug, Default)]
pub struct Outcome {
    /// From the last record's hand-over until the commit is acknowledged.
    pub commit: Durations,
    /// From there until the next transaction takes records.
    pub begin: Durations,
    /// Ends that the target wrote to partitions in the whole run, each at an offset of its own.
    pub markers: u64,
}

impl Outcome {
    /// Adds those of another producer.
    pub fn merge(&mut self, other: &Self) {
        self.commit.merge(&other.commit);
        self.begin.merge(&other.begin);
        self.markers += other.markers;
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
        let partitions = partitions as u64;
        Self { records_max, records: 0, window, partitions, outcome: Outcome::default() }
    }

    /// Whether the open one has all its records.
    pub(super) fn is_full(&self) -> bool {
        self.records >= self.records_max
    }

    pub(super) fn sent(&mut self) {
        self.records += 1;
    }

    pub(super) fn turned(&mut self, turned: &Turned) {
        let Turned { full_ns, committed_ns, begun_ns } = *turned;
        if self.window.contains(&committed_ns) {
            self.outcome.commit.record(full_ns, committed_ns, 1);
            self.outcome.begin.record(committed_ns, begun_ns, 1);
        }
        self.records = 0;
        self.outcome.markers += self.partitions;
    }

    /// The last has ended.
    pub(super) fn ended(&mut self) {
        self.outcome.markers += self.partitions;
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
