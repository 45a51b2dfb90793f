//! A consumer in a process of its own, for comparisons of client libraries: reads a backlog, runs a
//! handler for each record, and says how long it took.
//!
//! All compared consumers take the same arguments and print the same line ([`Outcome`]), so that
//! the lab runs them alike. Three are here: the client without a framework, and the framework with
//! handlers of batches and of records. The first quarter of the records, or of the time, is not
//! measured: connections, group membership and the compilers of other runtimes need it.

mod meter;
mod raw;
mod workers;

use std::sync::Arc;
use std::time::Duration;

use moldau_lab::reader::{Handling, Outcome};
use moldau_measure::Error;

use meter::Meter;

/// Which consumer reads.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Reader {
    /// The client, without group and framework: each thread reads its share of the partitions.
    Raw,
    /// The framework; its handler takes batches.
    Batch,
    /// The framework; its handler takes one record at a time, in order of each partition.
    Record,
    /// The framework; records of one key in order, different keys beside each other.
    Key,
}

/// What is read, and how.
#[derive(Clone, Debug)]
pub(super) struct Reading {
    /// Which consumer reads.
    pub(super) reader: Reader,
    /// Where the cluster is reached, `host:port`.
    pub(super) bootstrap: String,
    /// The consumer group.
    pub(super) group: String,
    /// The topics are `{prefix}0`, `{prefix}1` and so on.
    pub(super) prefix: String,
    /// Number of topics.
    pub(super) topics: u32,
    /// Threads that read and handle.
    pub(super) threads: u16,
    /// Records of all topics.
    pub(super) records: u64,
    /// What is done with each record.
    pub(super) handling: Handling,
    /// The reading ends this time after its first record if records are left.
    pub(super) within: Duration,
}

/// Handles a record.
async fn handle(handling: Handling) {
    match handling {
        Handling::Nothing => {}
        Handling::Compute(time) => {
            let end = std::time::Instant::now() + time;
            while std::time::Instant::now() < end {
                std::hint::spin_loop();
            }
        }
        Handling::Wait(time) => tokio::time::sleep(time).await,
    }
}

/// Reads.
///
/// # Errors
/// [`Error::Target`] if the cluster fails, [`Error::Plan`] for a reading of nothing, and
/// [`Error::Machine`] without a runtime.
pub(super) fn read(reading: &Reading) -> Result<Outcome, Error> {
    if reading.records == 0 || reading.topics == 0 || reading.threads == 0 {
        return Err(Error::Plan("topics, threads, records: at least 1".into()));
    }
    let meter = Arc::new(Meter::new(reading.records, reading.within));
    match reading.reader {
        Reader::Raw => raw::read(reading, &meter)?,
        Reader::Batch | Reader::Record | Reader::Key => workers::read(reading, &meter)?,
    }
    meter.outcome()
}

impl Reading {
    fn topic_names(&self) -> impl Iterator<Item = String> + '_ {
        (0..self.topics).map(|index| format!("{}{index}", self.prefix))
    }
}
