//! Operations of clients, and their file: one JSON document in each line.

use std::io::{self, BufRead, Write};

use serde::{Deserialize, Serialize};

/// What all clients did, in any order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct History {
    /// The operations. An anomaly names them by their place here.
    pub operations: Vec<Operation>,
}

/// A transaction of one client, or a send, poll, assignment or commit of offsets outside of one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Operation {
    /// The client. It carries out one operation after another.
    pub client: u32,
    /// When the client asked to commit, µs. `None`: not a transaction, or never asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit_us: Option<u64>,
    /// Whether it took effect.
    pub outcome: Outcome,
    /// Its steps, in order.
    pub steps: Vec<Step>,
}

/// Whether an operation took effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// The cluster acknowledged it.
    Committed,
    /// It failed for certain, or was aborted.
    Aborted,
    /// The client never learned it.
    Unknown,
}

/// One request of an operation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// When the client began it, µs.
    pub from_us: u64,
    /// When the client had the result, or gave up, µs.
    pub to_us: u64,
    /// What it did.
    #[serde(flatten)]
    pub action: Action,
}

/// What a step did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Action {
    /// Sent one record.
    Send {
        /// The partition, numbered over all topics of the history.
        partition: u32,
        /// The value; no other send of the history has it.
        value: u64,
        /// The offset that the cluster returned, if it did.
        offset: Option<i64>,
    },
    /// Received records of one partition, with `isolation.level=read_committed`.
    Poll {
        /// The partition.
        partition: u32,
        /// The records, in the order received.
        records: Vec<Seen>,
    },
    /// The position in a partition changed other than by a poll: an assignment or a seek. The next
    /// poll may begin anywhere.
    Position {
        /// The partition.
        partition: u32,
    },
    /// A partition was assigned to the client, a member of the group, which read the committed
    /// offset and goes on from there. From then on its polls are those of the group.
    Resume {
        /// The partition.
        partition: u32,
        /// The committed offset. Without one, the group begins at the start.
        offset: Option<i64>,
    },
    /// A member committed the group's offset in a partition.
    Commit {
        /// The partition.
        partition: u32,
        /// The offset: of the next record to poll.
        offset: i64,
    },
    /// The client has polled a partition from its start to its end, after the last send of the
    /// history. Without one, no record of the partition counts as missing.
    End {
        /// The partition.
        partition: u32,
    },
}

/// One received record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Seen {
    /// Its offset.
    pub offset: i64,
    /// Its value.
    pub value: u64,
}

/// Why a history cannot be checked.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The history is to blame.
    #[error("value {0} is sent twice; each value of a history must be unique")]
    SentTwice(u64),
    /// The file is to blame.
    #[error("line {line} is not an operation: {source}")]
    Line {
        /// Its number, from 1.
        line: usize,
        /// What is wrong.
        source: serde_json::Error,
    },
    /// The file cannot be read.
    #[error("reading the history: {0}")]
    Io(#[from] io::Error),
}

impl History {
    /// Reads a file of [`History::write`].
    ///
    /// # Errors
    ///
    /// [`Error::Line`] for a line that is not an operation, [`Error::Io`] of the reader.
    pub fn read(source: impl BufRead) -> Result<Self, Error> {
        let mut operations = Vec::new();
        for (number, line) in (1..).zip(source.lines()) {
            let operation = serde_json::from_str(&line?)
                .map_err(|source| Error::Line { line: number, source })?;
            operations.push(operation);
        }
        Ok(Self { operations })
    }

    /// Writes one line for each operation.
    ///
    /// # Errors
    ///
    /// Those of the writer.
    pub fn write(&self, mut target: impl Write) -> io::Result<()> {
        for operation in &self.operations {
            serde_json::to_writer(&mut target, operation)?;
            target.write_all(b"\n")?;
        }
        target.flush()
    }
}
