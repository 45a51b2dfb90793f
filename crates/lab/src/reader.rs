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

use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use moldau_measure::Error;
use serde::{Deserialize, Serialize};

use meter::Meter;

/// Which consumer reads.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Reader {
    /// The client, without group and framework: each thread reads its share of the partitions.
    Raw,
    /// The framework; its handler takes batches.
    Batch,
    /// The framework; its handler takes one record at a time, in order of each partition.
    Record,
    /// The framework; records of one key in order, different keys beside each other.
    Key,
}

/// What a handler does with each record.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Handling {
    /// Nothing.
    Nothing,
    /// Occupies the processor.
    Compute(Duration),
    /// Waits, as for the answer of a database.
    Wait(Duration),
}

/// What is read, and how.
#[derive(Clone, Debug)]
pub struct Reading {
    /// Which consumer reads.
    pub reader: Reader,
    /// Where the cluster is reached, `host:port`.
    pub bootstrap: String,
    /// The consumer group.
    pub group: String,
    /// The topics are `{prefix}0`, `{prefix}1` and so on.
    pub prefix: String,
    /// Number of topics.
    pub topics: u32,
    /// Threads that read and handle.
    pub threads: u16,
    /// Records of all topics.
    pub records: u64,
    /// What is done with each record.
    pub handling: Handling,
    /// The reading ends this time after its first record if records are left.
    pub within: Duration,
}

/// What was read after the first quarter. Every compared consumer prints it as one line of JSON.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Outcome {
    /// Records whose handler has returned.
    pub records: u64,
    /// Time by the clock, ns.
    pub wall_ns: u64,
    /// Processor time of the process, ns.
    pub cpu_ns: u64,
}

impl FromStr for Handling {
    type Err = String;

    /// `nothing`, or `compute:US` and `wait:US` with microseconds.
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is none of nothing, compute:US, wait:US");
        let Some((kind, us)) = text.split_once(':') else {
            return if text == "nothing" { Ok(Self::Nothing) } else { Err(wrong()) };
        };
        let time = Duration::from_micros(us.parse().map_err(|_| wrong())?);
        match kind {
            "compute" => Ok(Self::Compute(time)),
            "wait" => Ok(Self::Wait(time)),
            _ => Err(wrong()),
        }
    }
}

impl Handling {
    /// Handles a record.
    async fn handle(self) {
        match self {
            Self::Nothing => {}
            Self::Compute(time) => {
                let end = std::time::Instant::now() + time;
                while std::time::Instant::now() < end {
                    std::hint::spin_loop();
                }
            }
            Self::Wait(time) => tokio::time::sleep(time).await,
        }
    }
}

/// Reads.
///
/// # Errors
/// [`Error::Target`] if the cluster fails, [`Error::Plan`] for a reading of nothing, and
/// [`Error::Machine`] without a runtime.
pub fn read(reading: &Reading) -> Result<Outcome, Error> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handling_is_read_from_an_argument() {
        assert_eq!("nothing".parse(), Ok(Handling::Nothing));
        assert_eq!("wait:1000".parse(), Ok(Handling::Wait(Duration::from_millis(1))));
        assert_eq!("compute:10".parse(), Ok(Handling::Compute(Duration::from_micros(10))));
        for wrong in ["", "wait", "wait:", "wait:-1", "sleep:1"] {
            assert!(wrong.parse::<Handling>().is_err(), "{wrong}");
        }
    }
}
