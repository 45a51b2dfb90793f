//! A borrowed view of a Produce request, versions 3-13.
//!
//! ```text
//! transactional_id nullable string | acks int16 | timeout_ms int32
//! topics: array of
//!     name string (to 12) or topic_id uuid (from 13)
//!     partitions: array of
//!         index int32 | records nullable bytes | tagged fields (from 9)
//!     tagged fields (from 9)
//! tagged fields (from 9)
//! ```

use crate::elements::{Borrowed, Elements};
use crate::error::DecodeError;
use crate::message::Message;
use crate::messages::ProduceRequest;
use crate::messages::produce_request::{PartitionProduceData, TopicProduceData};
use crate::reader::{FromWire, Reader};
use crate::uuid::Uuid;

/// The first version that names topics by id (KIP-516).
pub(crate) const TOPIC_ID_SINCE: i16 = 13;

/// A Produce request in the bytes that it came in.
#[derive(Clone)]
pub struct ProduceRequestView<'a> {
    transactional_id: Option<&'a str>,
    acks: i16,
    timeout_ms: i32,
    topics: Elements<'a, TopicRecords<'a>>,
    flexible: bool,
}

/// The records for one topic.
#[derive(Clone)]
pub struct TopicRecords<'a> {
    /// The topic's name, in versions up to 12.
    pub name: Option<&'a str>,
    /// The topic's id, from version 13 on.
    pub id: Option<Uuid>,
    partitions: Elements<'a, PartitionRecords<'a>>,
}

/// The records for one partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartitionRecords<'a> {
    /// The partition.
    pub index: i32,
    /// Record batches, as yet unchecked.
    pub records: Option<&'a [u8]>,
}

impl<'a> ProduceRequestView<'a> {
    /// Reads the fields before the topics. What follows is read when it is iterated over; see
    /// [`check`](Self::check).
    ///
    /// # Errors
    /// The version does not exist, or the fields are broken.
    pub fn parse(body: &'a [u8], version: i16) -> Result<Self, DecodeError> {
        if !ProduceRequest::VERSIONS.contains(version) {
            return Err(DecodeError::UnsupportedVersion { message: ProduceRequest::NAME, version });
        }
        let flexible = version >= ProduceRequest::FLEXIBLE_FROM;
        let mut reader = Reader::new(body);
        let transactional_id = reader.str(flexible, true)?;
        let acks = reader.i16()?;
        let timeout_ms = reader.i32()?;
        let topics = Elements::peek(&reader, version, flexible)?;
        Ok(Self { transactional_id, acks, timeout_ms, topics, flexible })
    }

    /// The producer's transactional id.
    #[must_use]
    pub const fn transactional_id(&self) -> Option<&'a str> {
        self.transactional_id
    }

    /// How many replicas must have the records: 0, 1, or -1 for all in sync.
    #[must_use]
    pub const fn acks(&self) -> i16 {
        self.acks
    }

    /// How long the broker may wait for them, in milliseconds.
    #[must_use]
    pub const fn timeout_ms(&self) -> i32 {
        self.timeout_ms
    }

    /// The topics; after an error there are no more.
    #[must_use]
    pub fn topics(&self) -> Elements<'a, TopicRecords<'a>> {
        self.topics.clone()
    }

    /// Checks the whole structure, after which no iteration over it fails. Bytes that follow it are
    /// ignored, as Kafka does.
    ///
    /// # Errors
    /// A topic or partition is broken.
    pub fn check(&self) -> Result<(), DecodeError> {
        let mut reader = self.topics.clone().end()?;
        if self.flexible {
            reader.skip_tagged_fields()?;
        }
        Ok(())
    }
}

impl<'a> TopicRecords<'a> {
    /// The partitions. They were read before when the end of the topic was looked for, so that no
    /// error occurs.
    #[must_use]
    pub fn partitions(&self) -> Elements<'a, PartitionRecords<'a>> {
        self.partitions.clone()
    }
}

impl<'a> Borrowed<'a> for TopicRecords<'a> {
    const SIZE_MIN: usize = TopicProduceData::SIZE_MIN;

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

impl<'a> Borrowed<'a> for PartitionRecords<'a> {
    const SIZE_MIN: usize = PartitionProduceData::SIZE_MIN;

    fn read(reader: &mut Reader<'a>, _: i16, flexible: bool) -> Result<Self, DecodeError> {
        let index = reader.i32()?;
        let records = reader.slice(flexible, true)?;
        if flexible {
            reader.skip_tagged_fields()?;
        }
        Ok(Self { index, records })
    }
}
