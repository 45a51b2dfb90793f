//! What is written durably of share partitions, and its binary form.
//!
//! A record is one byte of format version, one byte of kind, and the fields below. The notation is
//! that of [`crate::record`].
//!
//! | kind | fields |
//! |---|---|
//! | 1 placed | partition, initial u8, changes (the whole state) |
//! | 2 changed | partition, changes (what differs) |
//! | 3 removed | group string, topic id 16 bytes (zero for all topics) |
//!
//! A partition is: group string, topic id 16 bytes, index i32. Changes are: start offset i64,
//! [first offset i64, last offset i64, state u8, deliveries i16]. The states are Kafka's: 0
//! available, 2 acknowledged, 3 archiving, 4 archived; 5 is archiving after too many deliveries,
//! which Kafka does not tell from 3.

use std::sync::Arc;

use moldau_protocol::Uuid;

use crate::error::Error;
use crate::wire::{Put, Take, list};

/// A partition and the share group that reads it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ShareKey {
    /// The group.
    pub group_id: Arc<str>,
    /// The topic.
    pub topic_id: Uuid,
    /// The index of the partition.
    pub partition: i32,
}

/// A change of share partitions that must survive a restart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ShareRecord {
    /// A partition has exactly this state.
    Placed {
        /// The partition.
        key: ShareKey,
        /// Nothing was stored since the start offset was chosen.
        is_initial: bool,
        /// All of it.
        state: Changes,
    },
    /// Records of a partition changed.
    Changed {
        /// The partition.
        key: ShareKey,
        /// What changed.
        changes: Changes,
    },
    /// A group has no state of a topic any more, or of any.
    Removed {
        /// The group.
        group_id: Arc<str>,
        /// The topic; `None` for all.
        topic_id: Option<Uuid>,
    },
}

/// Records of a partition whose state is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Changes {
    /// The start offset before them.
    pub start: i64,
    /// The records.
    pub runs: Vec<StoredRun>,
}

/// Neighbouring records of the same state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoredRun {
    /// The first offset.
    pub first: i64,
    /// The last offset.
    pub last: i64,
    /// The state.
    pub state: StoredState,
    /// How often they were delivered.
    pub deliveries: i16,
}

/// The states that are stored; that of a delivery under way is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoredState {
    /// May be delivered.
    Available,
    /// A consumer accepted it.
    Acknowledged,
    /// To be archived once its dead-letter record is durable (KIP-1191).
    Archiving(Cause),
    /// Rejected, delivered too often, or not there.
    Archived,
}

/// Why a record becomes a dead letter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// A consumer rejected it.
    Rejected,
    /// It was delivered as often as it may be.
    Spent,
}

const FORMAT_VERSION: u8 = 1;
const KIND_PLACED: u8 = 1;
const KIND_CHANGED: u8 = 2;
const KIND_REMOVED: u8 = 3;

impl ShareRecord {
    /// Appends the binary form to `out`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let mut put = Put(out);
        put.u8(FORMAT_VERSION);
        match self {
            Self::Placed { key, is_initial, state } => {
                put.u8(KIND_PLACED);
                put_key(&mut put, key);
                put.u8(u8::from(*is_initial));
                put_changes(&mut put, state);
            }
            Self::Changed { key, changes } => {
                put.u8(KIND_CHANGED);
                put_key(&mut put, key);
                put_changes(&mut put, changes);
            }
            Self::Removed { group_id, topic_id } => {
                put.u8(KIND_REMOVED);
                put.string(group_id);
                put.uuid(topic_id.unwrap_or(Uuid::ZERO));
            }
        }
    }

    /// Reads one record, which must fill `bytes` to their end.
    ///
    /// # Errors
    ///
    /// Bytes that no version of the format allows. Nothing is allocated beyond what `bytes` hold.
    pub fn decode(bytes: &[u8]) -> Result<Self, Error> {
        let mut take = Take(bytes);
        match take.u8("format version")? {
            FORMAT_VERSION => {}
            version => return Err(Error::Version { version }),
        }
        let record = match take.u8("kind")? {
            KIND_PLACED => Self::Placed {
                key: take_key(&mut take)?,
                is_initial: match take.u8("initial")? {
                    0 => false,
                    1 => true,
                    _ => return Err(Error::Invalid { field: "initial" }),
                },
                state: take_changes(&mut take)?,
            },
            KIND_CHANGED => {
                Self::Changed { key: take_key(&mut take)?, changes: take_changes(&mut take)? }
            }
            KIND_REMOVED => Self::Removed {
                group_id: take.string("group")?.into(),
                topic_id: Some(take.uuid("topic id")?).filter(|id| *id != Uuid::ZERO),
            },
            kind => return Err(Error::Kind { kind }),
        };
        take.end()?;
        Ok(record)
    }
}

fn put_key(put: &mut Put<'_>, key: &ShareKey) {
    put.string(&key.group_id);
    put.uuid(key.topic_id);
    put.i32(key.partition);
}

fn take_key(take: &mut Take<'_>) -> Result<ShareKey, Error> {
    Ok(ShareKey {
        group_id: take.string("group")?.into(),
        topic_id: take.uuid("topic id")?,
        partition: take.i32("partition")?,
    })
}

fn put_changes(put: &mut Put<'_>, changes: &Changes) {
    put.i64(changes.start);
    put.count(changes.runs.len());
    for run in &changes.runs {
        put.i64(run.first);
        put.i64(run.last);
        put.u8(match run.state {
            StoredState::Available => 0,
            StoredState::Acknowledged => 2,
            StoredState::Archiving(Cause::Rejected) => 3,
            StoredState::Archived => 4,
            StoredState::Archiving(Cause::Spent) => 5,
        });
        put.i16(run.deliveries);
    }
}

fn take_changes(take: &mut Take<'_>) -> Result<Changes, Error> {
    let start = offset(take, "start offset")?;
    let runs = list(take, "records", |take| {
        let run = StoredRun {
            first: offset(take, "first offset")?,
            last: offset(take, "last offset")?,
            state: match take.u8("state")? {
                0 => StoredState::Available,
                2 => StoredState::Acknowledged,
                3 => StoredState::Archiving(Cause::Rejected),
                4 => StoredState::Archived,
                5 => StoredState::Archiving(Cause::Spent),
                _ => return Err(Error::Invalid { field: "state" }),
            },
            deliveries: take.i16("deliveries")?,
        };
        let is_sound = run.first <= run.last && run.deliveries >= 0;
        is_sound.then_some(run).ok_or(Error::Invalid { field: "records" })
    })?;
    let is_ascending = runs.is_sorted_by(|one, next| one.last < next.first);
    is_ascending.then_some(Changes { start, runs }).ok_or(Error::Invalid { field: "records" })
}

/// An offset that has one behind it.
fn offset(take: &mut Take<'_>, field: &'static str) -> Result<i64, Error> {
    let offset = take.i64(field)?;
    (0..i64::MAX).contains(&offset).then_some(offset).ok_or(Error::Invalid { field })
}
