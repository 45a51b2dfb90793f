//! What the coordinator writes durably, and its binary form.
//!
//! A record is self-contained: one byte of format version, one byte of kind, then the fields in the
//! order below. `string`, `bytes` and `[..]` carry their length or count as an unsigned LEB128
//! varint; `string?` carries the length plus one, or 0 where absent; integers are big endian.
//!
//! | kind | fields after `group string` |
//! |---|---|
//! | 1 offsets committed | [topic string, [partition i32, offset]] |
//! | 2 offsets deleted | [topic string, [partition i32]] |
//! | 3 group metadata | generation i32, type, protocol, leader (string? each), time i64, [member] |
//! | 4 group deleted | |
//! | 5 group of the consumer protocol changed | see `consumer_record` |
//! | 6 group configured | [key string, value string] |
//! | 7 share group changed | see `share_record` |
//! | 8 streams group changed | see `streams_record` |
//!
//! An offset is: offset i64, leader epoch i32, metadata string, commit time i64, flag u8, and the
//! expire time i64 where the flag is 1.
//!
//! A member is: id string, instance string?, client id string, client host string, rebalance
//! timeout i32, session timeout i32, [protocol string, metadata bytes], assignment bytes.

use bytes::Bytes;

use crate::consumer_record::{self, ConsumerChange};
use crate::error::Error;
use crate::offered_protocol::Protocol;
use crate::share_record::{self, ShareChange};
use crate::streams_record::{self, StreamsChange};
pub(crate) use crate::wire::list;
use crate::wire::{Put, Take};

/// A change that must survive a restart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GroupRecord {
    /// Offsets were committed; they replace those of the same partitions.
    OffsetsCommitted {
        /// The group.
        group_id: String,
        /// What was committed.
        topics: Vec<TopicOffsets>,
    },
    /// Offsets were deleted or expired.
    OffsetsDeleted {
        /// The group.
        group_id: String,
        /// Topics and their partitions.
        topics: Vec<(String, Vec<i32>)>,
    },
    /// A generation became stable or empty; replaces all former metadata of the group.
    GroupMetadata(GroupMetadata),
    /// The group and all its offsets are gone.
    GroupDeleted {
        /// The group.
        group_id: String,
    },
    /// A group of the consumer protocol changed.
    ConsumerChanged(ConsumerChange),
    /// The group overrides exactly these configurations, whether it exists or not.
    GroupConfigured {
        /// The group.
        group_id: String,
        /// Keys and values.
        configs: Vec<(String, String)>,
    },
    /// A share group changed.
    ShareChanged(ShareChange),
    /// A streams group changed.
    StreamsChanged(Box<StreamsChange>),
}

/// Committed offsets of one topic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopicOffsets {
    /// Name of the topic.
    pub topic: String,
    /// Index of each partition and its offset.
    pub partitions: Vec<(i32, CommittedOffset)>,
}

/// A committed offset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommittedOffset {
    /// Offset of the next record to be read.
    pub offset: i64,
    /// -1 where unknown.
    pub leader_epoch: i32,
    /// Free text of the client.
    pub metadata: String,
    /// Milliseconds since the epoch.
    pub commit_timestamp_ms: i64,
    /// Set where the client named a retention of its own.
    pub expire_timestamp_ms: Option<i64>,
}

/// A group at the start of a stable or empty generation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupMetadata {
    /// The group.
    pub group_id: String,
    /// Its generation.
    pub generation: i32,
    /// Such as `consumer`.
    pub protocol_type: Option<String>,
    /// The chosen protocol; absent in an empty group.
    pub protocol_name: Option<String>,
    /// Member id of the leader; absent in an empty group.
    pub leader: Option<String>,
    /// When the group entered its state, in milliseconds since the epoch.
    pub state_timestamp_ms: i64,
    /// Empty in an empty group.
    pub members: Vec<MemberRecord>,
}

/// A member of a stable generation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberRecord {
    /// The member's id.
    pub member_id: String,
    /// Set for static members.
    pub instance_id: Option<String>,
    /// As the client named itself.
    pub client_id: String,
    /// Address of the client.
    pub client_host: String,
    /// In milliseconds.
    pub rebalance_timeout_ms: i32,
    /// In milliseconds.
    pub session_timeout_ms: i32,
    /// What the member offered.
    pub protocols: Vec<Protocol>,
    /// What the leader assigned.
    pub assignment: Bytes,
}

const FORMAT_VERSION: u8 = 1;
/// Bytes of a length or a count at most.
const COUNT_BYTES_MAX: usize = 5;
const KIND_OFFSETS_COMMITTED: u8 = 1;
const KIND_OFFSETS_DELETED: u8 = 2;
const KIND_GROUP_METADATA: u8 = 3;
const KIND_GROUP_DELETED: u8 = 4;
const KIND_CONSUMER_CHANGED: u8 = 5;
const KIND_GROUP_CONFIGURED: u8 = 6;
const KIND_SHARE_CHANGED: u8 = 7;
const KIND_STREAMS_CHANGED: u8 = 8;

impl GroupRecord {
    /// The group that the record is about.
    pub fn group_id(&self) -> &str {
        match self {
            Self::OffsetsCommitted { group_id, .. }
            | Self::OffsetsDeleted { group_id, .. }
            | Self::GroupDeleted { group_id }
            | Self::GroupConfigured { group_id, .. } => group_id,
            Self::GroupMetadata(metadata) => &metadata.group_id,
            Self::ConsumerChanged(change) => &change.group_id,
            Self::ShareChanged(change) => &change.group_id,
            Self::StreamsChanged(change) => &change.group_id,
        }
    }

    /// Records of offsets that are gone, none of which takes more than `bytes_max` bytes, unless it
    /// is of one partition.
    pub(crate) fn of_deleted(
        group_id: &str,
        topics: Vec<(String, Vec<i32>)>,
        bytes_max: usize,
    ) -> Vec<Self> {
        let head = 2 + COUNT_BYTES_MAX + group_id.len() + COUNT_BYTES_MAX;
        let (mut records, mut fitting, mut bytes) = (Vec::new(), Vec::new(), head);
        let record = |topics| Self::OffsetsDeleted { group_id: group_id.to_owned(), topics };
        for (topic, mut partitions) in topics {
            let topic_bytes = COUNT_BYTES_MAX + topic.len() + COUNT_BYTES_MAX;
            while !partitions.is_empty() {
                let room = bytes_max.saturating_sub(bytes + topic_bytes) / size_of::<i32>();
                if room == 0 && !fitting.is_empty() {
                    records.push(record(std::mem::take(&mut fitting)));
                    bytes = head;
                    continue;
                }
                let rest = partitions.split_off(partitions.len().min(room.max(1)));
                bytes += topic_bytes + size_of::<i32>() * partitions.len();
                fitting.push((topic.clone(), std::mem::replace(&mut partitions, rest)));
            }
        }
        if !fitting.is_empty() {
            records.push(record(fitting));
        }
        records
    }

    /// Appends the binary form to `out`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let mut put = Put(out);
        put.u8(FORMAT_VERSION);
        match self {
            Self::OffsetsCommitted { group_id, topics } => {
                put.u8(KIND_OFFSETS_COMMITTED);
                put.string(group_id);
                put_committed(&mut put, topics);
            }
            Self::OffsetsDeleted { group_id, topics } => {
                put.u8(KIND_OFFSETS_DELETED);
                put.string(group_id);
                put.count(topics.len());
                for (topic, partitions) in topics {
                    put.string(topic);
                    put.count(partitions.len());
                    partitions.iter().for_each(|partition| put.i32(*partition));
                }
            }
            Self::GroupMetadata(metadata) => {
                put.u8(KIND_GROUP_METADATA);
                put_metadata(&mut put, metadata);
            }
            Self::GroupDeleted { group_id } => {
                put.u8(KIND_GROUP_DELETED);
                put.string(group_id);
            }
            Self::ConsumerChanged(change) => {
                put.u8(KIND_CONSUMER_CHANGED);
                consumer_record::put_change(&mut put, change);
            }
            Self::GroupConfigured { group_id, configs } => {
                put.u8(KIND_GROUP_CONFIGURED);
                put.string(group_id);
                put.count(configs.len());
                for (key, value) in configs {
                    put.string(key);
                    put.string(value);
                }
            }
            Self::ShareChanged(change) => {
                put.u8(KIND_SHARE_CHANGED);
                share_record::put_change(&mut put, change);
            }
            Self::StreamsChanged(change) => {
                put.u8(KIND_STREAMS_CHANGED);
                streams_record::put_change(&mut put, change);
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
        let version = take.u8("version")?;
        if version != FORMAT_VERSION {
            return Err(Error::Version { version });
        }
        let record = match take.u8("kind")? {
            KIND_OFFSETS_COMMITTED => Self::OffsetsCommitted {
                group_id: take.string("group")?,
                topics: take_committed(&mut take)?,
            },
            KIND_OFFSETS_DELETED => Self::OffsetsDeleted {
                group_id: take.string("group")?,
                topics: take_deleted(&mut take)?,
            },
            KIND_GROUP_METADATA => Self::GroupMetadata(take_metadata(&mut take)?),
            KIND_GROUP_DELETED => Self::GroupDeleted { group_id: take.string("group")? },
            KIND_CONSUMER_CHANGED => {
                Self::ConsumerChanged(consumer_record::take_change(&mut take)?)
            }
            KIND_GROUP_CONFIGURED => Self::GroupConfigured {
                group_id: take.string("group")?,
                configs: list(&mut take, "configs", |take| {
                    Ok((take.string("key")?, take.string("value")?))
                })?,
            },
            KIND_SHARE_CHANGED => Self::ShareChanged(share_record::take_change(&mut take)?),
            KIND_STREAMS_CHANGED => {
                Self::StreamsChanged(Box::new(streams_record::take_change(&mut take)?))
            }
            kind => return Err(Error::Kind { kind }),
        };
        take.end()?;
        Ok(record)
    }
}

pub(crate) fn put_committed(put: &mut Put<'_>, topics: &[TopicOffsets]) {
    put.count(topics.len());
    for topic in topics {
        put.string(&topic.topic);
        put.count(topic.partitions.len());
        for (partition, committed) in &topic.partitions {
            put.i32(*partition);
            put.i64(committed.offset);
            put.i32(committed.leader_epoch);
            put.string(&committed.metadata);
            put.i64(committed.commit_timestamp_ms);
            put.u8(u8::from(committed.expire_timestamp_ms.is_some()));
            committed.expire_timestamp_ms.into_iter().for_each(|time| put.i64(time));
        }
    }
}

pub(crate) fn take_committed(take: &mut Take<'_>) -> Result<Vec<TopicOffsets>, Error> {
    list(take, "topics", |take| {
        Ok(TopicOffsets {
            topic: take.string("topic")?,
            partitions: list(take, "partitions", |take| {
                Ok((take.i32("partition")?, take_offset(take)?))
            })?,
        })
    })
}

fn take_offset(take: &mut Take<'_>) -> Result<CommittedOffset, Error> {
    Ok(CommittedOffset {
        offset: take.i64("offset")?,
        leader_epoch: take.i32("leader epoch")?,
        metadata: take.string("offset metadata")?,
        commit_timestamp_ms: take.i64("commit time")?,
        expire_timestamp_ms: match take.u8("expire flag")? {
            0 => None,
            1 => Some(take.i64("expire time")?),
            _ => return Err(Error::Invalid { field: "expire flag" }),
        },
    })
}

fn take_deleted(take: &mut Take<'_>) -> Result<Vec<(String, Vec<i32>)>, Error> {
    list(take, "topics", |take| {
        let topic = take.string("topic")?;
        Ok((topic, list(take, "partitions", |take| take.i32("partition"))?))
    })
}

fn put_metadata(put: &mut Put<'_>, metadata: &GroupMetadata) {
    put.string(&metadata.group_id);
    put.i32(metadata.generation);
    put.optional_string(metadata.protocol_type.as_deref());
    put.optional_string(metadata.protocol_name.as_deref());
    put.optional_string(metadata.leader.as_deref());
    put.i64(metadata.state_timestamp_ms);
    put.count(metadata.members.len());
    for member in &metadata.members {
        put.string(&member.member_id);
        put.optional_string(member.instance_id.as_deref());
        put.string(&member.client_id);
        put.string(&member.client_host);
        put.i32(member.rebalance_timeout_ms);
        put.i32(member.session_timeout_ms);
        put.count(member.protocols.len());
        for protocol in &member.protocols {
            put.string(&protocol.name);
            put.bytes(&protocol.metadata);
        }
        put.bytes(&member.assignment);
    }
}

fn take_metadata(take: &mut Take<'_>) -> Result<GroupMetadata, Error> {
    Ok(GroupMetadata {
        group_id: take.string("group")?,
        generation: take.i32("generation")?,
        protocol_type: take.optional_string("protocol type")?,
        protocol_name: take.optional_string("protocol")?,
        leader: take.optional_string("leader")?,
        state_timestamp_ms: take.i64("state time")?,
        members: list(take, "members", take_member)?,
    })
}

fn take_member(take: &mut Take<'_>) -> Result<MemberRecord, Error> {
    Ok(MemberRecord {
        member_id: take.string("member")?,
        instance_id: take.optional_string("instance")?,
        client_id: take.string("client id")?,
        client_host: take.string("client host")?,
        rebalance_timeout_ms: take.i32("rebalance timeout")?,
        session_timeout_ms: take.i32("session timeout")?,
        protocols: list(take, "protocols", |take| {
            Ok(Protocol {
                name: take.string("protocol")?,
                metadata: take.bytes("protocol metadata")?,
            })
        })?,
        assignment: take.bytes("assignment")?,
    })
}
