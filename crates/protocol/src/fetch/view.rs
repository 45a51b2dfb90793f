//! A borrowed view of a Fetch response.

use crate::elements::{Borrowed, Elements};
use crate::error::DecodeError;
use crate::message::Message;
use crate::messages::FetchResponse;
use crate::messages::fetch_response::{
    AbortedTransaction, EpochEndOffset, FetchableTopicResponse, LeaderIdAndEpoch, NodeEndpoint,
    PartitionData,
};
use crate::reader::{FromWire, Reader};
use crate::uuid::Uuid;

use super::{
    LOG_START_OFFSET_SINCE, NODE_ENDPOINTS_SINCE, PREFERRED_READ_REPLICA_SINCE, SESSION_SINCE,
    TOPIC_ID_SINCE,
};

/// A Fetch response in the bytes that it came in, its structure checked.
#[derive(Clone)]
pub struct FetchResponseView<'a> {
    /// How long the broker throttles the client, in milliseconds.
    pub throttle_time_ms: i32,
    /// An error of the whole request, 0 before version 7.
    pub error_code: i16,
    /// The fetch session, 0 for none.
    pub session_id: i32,
    /// The addresses of the leaders that partitions name (KIP-951).
    pub node_endpoints: Vec<NodeEndpoint>,
    topics: Elements<'a, TopicView<'a>>,
}

/// What was fetched of one topic.
#[derive(Clone)]
pub struct TopicView<'a> {
    /// The topic's name, in versions up to 12.
    pub name: Option<&'a str>,
    /// The topic's id, from version 13 on.
    pub id: Option<Uuid>,
    partitions: Elements<'a, PartitionView<'a>>,
}

/// What was fetched of one partition.
#[derive(Clone, Debug, PartialEq)]
pub struct PartitionView<'a> {
    /// The partition.
    pub index: i32,
    /// The outcome.
    pub error_code: i16,
    /// The offset after the last record that consumers may see.
    pub high_watermark: i64,
    /// The offset after the last record of a decided transaction.
    pub last_stable_offset: i64,
    /// The first offset that is left, -1 before version 5.
    pub log_start_offset: i64,
    /// Aborted transactions whose records lie within; `None` unless asked for.
    pub aborted_transactions: Option<Vec<AbortedTransaction>>,
    /// The replica to read from instead, -1 for none.
    pub preferred_read_replica: i32,
    /// Record batches, the last of which may be cut off.
    pub records: Option<&'a [u8]>,
    /// Where the client's log leaves the leader's (KIP-595).
    pub diverging_epoch: EpochEndOffset,
    /// The leader, if it is another broker (KIP-951).
    pub current_leader: LeaderIdAndEpoch,
}

impl<'a> FetchResponseView<'a> {
    /// Reads the structure to its end and leaves the records alone.
    ///
    /// # Errors
    /// The version does not exist, or the response is broken.
    pub fn parse(body: &'a [u8], version: i16) -> Result<Self, DecodeError> {
        if !FetchResponse::VERSIONS.contains(version) {
            return Err(DecodeError::UnsupportedVersion { message: FetchResponse::NAME, version });
        }
        let flexible = version >= FetchResponse::FLEXIBLE_FROM;
        let mut reader = Reader::new(body);
        let throttle_time_ms = reader.i32()?;
        let (error_code, session_id) =
            if version >= SESSION_SINCE { (reader.i16()?, reader.i32()?) } else { (0, 0) };
        let topics = Elements::peek(&reader, version, flexible)?;
        let mut node_endpoints = Vec::new();
        let mut reader = Elements::<TopicView<'_>>::end(topics.clone())?;
        if flexible {
            reader.tagged_fields(&mut Vec::new(), |reader, tag| match tag {
                0 if version >= NODE_ENDPOINTS_SINCE => {
                    node_endpoints = reader.array(version, flexible)?;
                    Ok(true)
                }
                _ => Ok(false),
            })?;
        }
        reader.finish()?;
        Ok(Self { throttle_time_ms, error_code, session_id, node_endpoints, topics })
    }

    /// The topics. [`parse`](Self::parse) has read them before, so that no error occurs.
    #[must_use]
    pub fn topics(&self) -> Elements<'a, TopicView<'a>> {
        self.topics.clone()
    }
}

impl<'a> TopicView<'a> {
    /// The partitions. They have been read before, so that no error occurs.
    #[must_use]
    pub fn partitions(&self) -> Elements<'a, PartitionView<'a>> {
        self.partitions.clone()
    }
}

impl<'a> Borrowed<'a> for TopicView<'a> {
    const SIZE_MIN: usize = FetchableTopicResponse::SIZE_MIN;

    fn read(reader: &mut Reader<'a>, version: i16, flexible: bool) -> Result<Self, DecodeError> {
        let (name, id) = if version >= TOPIC_ID_SINCE {
            (None, Some(reader.uuid()?))
        } else {
            (reader.str(flexible, false)?, None)
        };
        let partitions = Elements::peek(reader, version, flexible)?;
        *reader = partitions.clone().end()?;
        if flexible {
            reader.skip_tagged_fields()?;
        }
        Ok(Self { name, id, partitions })
    }
}

impl<'a> Borrowed<'a> for PartitionView<'a> {
    const SIZE_MIN: usize = PartitionData::SIZE_MIN;

    fn read(reader: &mut Reader<'a>, version: i16, flexible: bool) -> Result<Self, DecodeError> {
        let mut view = Self {
            index: reader.i32()?,
            error_code: reader.i16()?,
            high_watermark: reader.i64()?,
            last_stable_offset: reader.i64()?,
            log_start_offset: if version >= LOG_START_OFFSET_SINCE { reader.i64()? } else { -1 },
            aborted_transactions: reader.nullable_array(version, flexible, true)?,
            preferred_read_replica: if version >= PREFERRED_READ_REPLICA_SINCE {
                reader.i32()?
            } else {
                -1
            },
            records: reader.slice(flexible, true)?,
            diverging_epoch: EpochEndOffset::default(),
            current_leader: LeaderIdAndEpoch::default(),
        };
        if flexible {
            reader.tagged_fields(&mut Vec::new(), |reader, tag| {
                match tag {
                    0 => view.diverging_epoch = FromWire::read(reader, version, flexible)?,
                    1 => view.current_leader = FromWire::read(reader, version, flexible)?,
                    _ => return Ok(false),
                }
                Ok(true)
            })?;
        }
        Ok(view)
    }
}
