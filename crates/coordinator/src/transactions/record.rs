//! What is written durably of transactions, and its binary form.
//!
//! A record is one byte of format version, one byte of kind, and `transactional id string, time
//! i64`, followed by the fields below. The notation is that of [`crate::record`].
//!
//! | kind | fields after id and time |
//! |---|---|
//! | 1 initialized | producer, previous producer, timeout i32 |
//! | 2 partitions added | [topic id 16 bytes, [partition i32]] |
//! | 3 group added | group string |
//! | 4 offsets pending | group string, [topic string, [partition i32, offset]] |
//! | 5 ended | outcome u8 (0 abort, 1 commit), producer, previous producer |
//! | 6 forgotten | |
//! | 7 decided | outcome u8, producer, previous producer, producer of the markers, decision i64 |
//! | 8 marked | decision i64 |
//!
//! A producer is: id i64, epoch i16. An offset is that of the group records.

use moldau_protocol::Uuid;

use crate::error::Error;
use crate::producer_ids::ProducerIdentity;
use crate::record::{TopicOffsets, list, put_committed, take_committed};
use crate::wire::{Put, Take};

/// A change of one transactional id that must survive a restart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransactionRecord {
    /// The id.
    pub transactional_id: String,
    /// When it changed, in milliseconds since the epoch. The first change of a transaction begins
    /// it.
    pub time_ms: i64,
    /// What changed.
    pub change: TransactionChange,
}

/// What changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TransactionChange {
    /// A producer took the id over. No transaction is open.
    Initialized {
        /// Who may use the id.
        producer: ProducerIdentity,
        /// Who asked, if it had an identity: it may ask again.
        previous: ProducerIdentity,
        /// How long a transaction may stay open.
        timeout_ms: i32,
    },
    /// The transaction writes to partitions.
    PartitionsAdded(Vec<(Uuid, Vec<i32>)>),
    /// The transaction commits offsets of a group.
    GroupAdded(String),
    /// Offsets that the group has once the transaction is committed.
    OffsetsPending {
        /// The group.
        group_id: String,
        /// What is to be committed.
        topics: Vec<TopicOffsets>,
    },
    /// The transaction ended.
    Ended {
        /// How.
        outcome: Outcome,
        /// Who may use the id from here on.
        producer: ProducerIdentity,
        /// Who ended it, if its identity was replaced: it may ask again.
        previous: ProducerIdentity,
    },
    /// The transaction ended, and markers follow.
    Decided {
        /// How.
        outcome: Outcome,
        /// Who may use the id from here on.
        producer: ProducerIdentity,
        /// Who ended it, if its identity was replaced: it may ask again.
        previous: ProducerIdentity,
        /// The producer of the records, with the epoch of the markers.
        marker: ProducerIdentity,
        /// Greater than that of each decision about the producer before.
        decision: i64,
    },
    /// All markers of a decision are written.
    Marked {
        /// Which.
        decision: i64,
    },
    /// The id was not used for so long that it is gone.
    Forgotten,
}

/// How a transaction ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Nothing of it counts.
    Abort,
    /// All of it counts.
    Commit,
}

const FORMAT_VERSION: u8 = 1;
const KIND_INITIALIZED: u8 = 1;
const KIND_PARTITIONS_ADDED: u8 = 2;
const KIND_GROUP_ADDED: u8 = 3;
const KIND_OFFSETS_PENDING: u8 = 4;
const KIND_ENDED: u8 = 5;
const KIND_FORGOTTEN: u8 = 6;
const KIND_DECIDED: u8 = 7;
const KIND_MARKED: u8 = 8;

impl TransactionRecord {
    /// Appends the binary form to `out`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let mut put = Put(out);
        put.u8(FORMAT_VERSION);
        put.u8(self.change.kind());
        put.string(&self.transactional_id);
        put.i64(self.time_ms);
        match &self.change {
            TransactionChange::Initialized { producer, previous, timeout_ms } => {
                put_producer(&mut put, *producer);
                put_producer(&mut put, *previous);
                put.i32(*timeout_ms);
            }
            TransactionChange::PartitionsAdded(topics) => {
                put.count(topics.len());
                for (topic, partitions) in topics {
                    put.uuid(*topic);
                    put.count(partitions.len());
                    partitions.iter().for_each(|partition| put.i32(*partition));
                }
            }
            TransactionChange::GroupAdded(group_id) => put.string(group_id),
            TransactionChange::OffsetsPending { group_id, topics } => {
                put.string(group_id);
                put_committed(&mut put, topics);
            }
            TransactionChange::Ended { outcome, producer, previous } => {
                put.u8(u8::from(*outcome == Outcome::Commit));
                put_producer(&mut put, *producer);
                put_producer(&mut put, *previous);
            }
            TransactionChange::Decided { outcome, producer, previous, marker, decision } => {
                put.u8(u8::from(*outcome == Outcome::Commit));
                put_producer(&mut put, *producer);
                put_producer(&mut put, *previous);
                put_producer(&mut put, *marker);
                put.i64(*decision);
            }
            TransactionChange::Marked { decision } => put.i64(*decision),
            TransactionChange::Forgotten => {}
        }
    }

    /// Reads one record, which must fill `bytes` to their end.
    ///
    /// # Errors
    ///
    /// Bytes that no version of the format allows. Nothing is allocated beyond what `bytes` hold.
    pub fn decode(bytes: &[u8]) -> Result<Self, Error> {
        let mut take = Take(bytes);
        let version = take.u8("version")?;
        if version != FORMAT_VERSION {
            return Err(Error::Version { version });
        }
        let kind = take.u8("kind")?;
        let transactional_id = take.string("transactional id")?;
        let time_ms = take.i64("time")?;
        let change = match kind {
            KIND_INITIALIZED => TransactionChange::Initialized {
                producer: take_producer(&mut take)?,
                previous: take_producer(&mut take)?,
                timeout_ms: take.i32("timeout")?,
            },
            KIND_PARTITIONS_ADDED => {
                TransactionChange::PartitionsAdded(list(&mut take, "topics", |take| {
                    let topic = take.uuid("topic id")?;
                    Ok((topic, list(take, "partitions", |take| take.i32("partition"))?))
                })?)
            }
            KIND_GROUP_ADDED => TransactionChange::GroupAdded(take.string("group")?),
            KIND_OFFSETS_PENDING => TransactionChange::OffsetsPending {
                group_id: take.string("group")?,
                topics: take_committed(&mut take)?,
            },
            KIND_ENDED => TransactionChange::Ended {
                outcome: take_outcome(&mut take)?,
                producer: take_producer(&mut take)?,
                previous: take_producer(&mut take)?,
            },
            KIND_DECIDED => TransactionChange::Decided {
                outcome: take_outcome(&mut take)?,
                producer: take_producer(&mut take)?,
                previous: take_producer(&mut take)?,
                marker: take_producer(&mut take)?,
                decision: take.i64("decision")?,
            },
            KIND_MARKED => TransactionChange::Marked { decision: take.i64("decision")? },
            KIND_FORGOTTEN => TransactionChange::Forgotten,
            kind => return Err(Error::Kind { kind }),
        };
        take.end()?;
        Ok(Self { transactional_id, time_ms, change })
    }
}

impl TransactionChange {
    fn kind(&self) -> u8 {
        match self {
            Self::Initialized { .. } => KIND_INITIALIZED,
            Self::PartitionsAdded(_) => KIND_PARTITIONS_ADDED,
            Self::GroupAdded(_) => KIND_GROUP_ADDED,
            Self::OffsetsPending { .. } => KIND_OFFSETS_PENDING,
            Self::Ended { .. } => KIND_ENDED,
            Self::Decided { .. } => KIND_DECIDED,
            Self::Marked { .. } => KIND_MARKED,
            Self::Forgotten => KIND_FORGOTTEN,
        }
    }
}

fn take_outcome(take: &mut Take<'_>) -> Result<Outcome, Error> {
    match take.u8("outcome")? {
        0 => Ok(Outcome::Abort),
        1 => Ok(Outcome::Commit),
        _ => Err(Error::Invalid { field: "outcome" }),
    }
}

fn put_producer(put: &mut Put<'_>, producer: ProducerIdentity) {
    put.i64(producer.id);
    put.i16(producer.epoch);
}

fn take_producer(take: &mut Take<'_>) -> Result<ProducerIdentity, Error> {
    Ok(ProducerIdentity { id: take.i64("producer id")?, epoch: take.i16("producer epoch")? })
}
