//! Kinds of anomalies, and the evidence of one.

use serde::{Deserialize, Serialize};

/// What went wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// An acknowledged record is missing although a client polled its offset or a later one.
    LostWrite,
    /// No client polled an acknowledged record: the last of its partition, or one whose offset is
    /// unknown.
    Unseen,
    /// One record at several offsets.
    Duplicate,
    /// One offset with several values.
    InconsistentOffset,
    /// A client polled a record of an aborted transaction (Adya's G1a).
    AbortedRead,
    /// A client polled a record before its client asked to commit it.
    PrecommittedRead,
    /// A client polled a value that no client sent.
    UnwrittenRead,
    /// The polls of a client passed over a record.
    PollSkip,
    /// The polls of a client went back.
    NonmonotonicPoll,
    /// The group committed an offset behind an acknowledged record that no member polled.
    LostDelivery,
    /// A member read back a committed offset that is older than the last acknowledged one, or that
    /// no member committed.
    LostCommit,
    /// The group's committed offset went back, without an assignment of the partition in between.
    NonmonotonicCommit,
    /// A client sent two records one after the other, and the second has the lower offset.
    NonmonotonicSend,
    /// Operations that precede each other by their writes alone (Adya's G0).
    WriteCycle,
    /// Operations that precede each other by what they wrote and polled (Adya's G1c).
    MixedCycle,
    /// Operations that polled from each other (Adya's G1c, without writes).
    ReadCycle,
}

impl Kind {
    /// All of them, the worst first.
    pub const ALL: [Self; 16] = [
        Self::LostWrite,
        Self::Unseen,
        Self::Duplicate,
        Self::InconsistentOffset,
        Self::AbortedRead,
        Self::PrecommittedRead,
        Self::UnwrittenRead,
        Self::PollSkip,
        Self::NonmonotonicPoll,
        Self::LostDelivery,
        Self::LostCommit,
        Self::NonmonotonicCommit,
        Self::NonmonotonicSend,
        Self::WriteCycle,
        Self::MixedCycle,
        Self::ReadCycle,
    ];

    /// Its short name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::LostWrite => "lost write",
            Self::Unseen => "unseen",
            Self::Duplicate => "duplicate",
            Self::InconsistentOffset => "inconsistent offset",
            Self::AbortedRead => "aborted read (G1a)",
            Self::PrecommittedRead => "precommitted read",
            Self::UnwrittenRead => "unwritten read",
            Self::PollSkip => "poll skip",
            Self::NonmonotonicPoll => "non-monotonic poll",
            Self::LostDelivery => "lost delivery",
            Self::LostCommit => "lost commit",
            Self::NonmonotonicCommit => "non-monotonic commit",
            Self::NonmonotonicSend => "non-monotonic send",
            Self::WriteCycle => "write cycle (G0)",
            Self::MixedCycle => "write and read cycle (G1c)",
            Self::ReadCycle => "read cycle (G1c)",
        }
    }

    /// What it means, as one sentence.
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::LostWrite => {
                "An acknowledged record is missing, although a client polled its offset or a later \
                 one."
            }
            Self::Unseen => {
                "No client polled an acknowledged record, the last of its partition or one whose \
                 offset is unknown."
            }
            Self::Duplicate => "One record is at several offsets.",
            Self::InconsistentOffset => "One offset has several values.",
            Self::AbortedRead => "A client polled a record of an aborted transaction.",
            Self::PrecommittedRead => {
                "A client polled a record before its producer asked to commit it."
            }
            Self::UnwrittenRead => "A client polled a value that no client sent.",
            Self::PollSkip => "The polls of a client passed over a record.",
            Self::NonmonotonicPoll => "The polls of a client went back.",
            Self::LostDelivery => {
                "The group committed an offset behind a record that no member polled."
            }
            Self::LostCommit => {
                "A member read back an offset older than the last acknowledged commit, or one that \
                 no member committed."
            }
            Self::NonmonotonicCommit => {
                "The group's committed offset went back, without a new assignment of the partition."
            }
            Self::NonmonotonicSend => "The later of two sends of a client has the lower offset.",
            Self::WriteCycle => "Transactions and sends have records before each other's.",
            Self::MixedCycle => "A transaction polled from one that has a record behind its own.",
            Self::ReadCycle => "Transactions polled from each other.",
        }
    }

    /// Why Kafka's protocol permits it, if it does.
    pub const fn permitted(self) -> Option<&'static str> {
        match self {
            Self::WriteCycle | Self::MixedCycle => Some(
                "Kafka appends a record when it arrives, and a transaction locks no partition, so \
                 two transactions may interleave.",
            ),
            _ => None,
        }
    }
}

/// One anomaly with its evidence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Anomaly {
    /// What went wrong.
    pub kind: Kind,
    /// Where, unless it is about several partitions.
    pub partition: Option<u32>,
    /// The offsets that show it, ascending or in the order polled.
    pub offsets: Vec<i64>,
    /// The value that it is about, if it is about one.
    pub value: Option<u64>,
    /// The operations that show it, by their place in the history.
    pub operations: Vec<usize>,
    /// How they precede each other, where it is a cycle.
    pub edges: Vec<Edge>,
}

/// One operation precedes another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Edge {
    /// The earlier operation.
    pub from: usize,
    /// The later one.
    pub to: usize,
    /// Why.
    pub relation: Relation,
    /// The partition that shows it.
    pub partition: u32,
    /// The offset of the later one's record, or of the record that it polled.
    pub offset: i64,
}

/// Why an operation precedes another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Relation {
    /// It wrote the record before the other's in a partition (ww).
    Wrote,
    /// The other polled its record (wr).
    Polled,
}
