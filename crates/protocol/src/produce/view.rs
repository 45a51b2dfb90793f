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

use crate::error::DecodeError;
use crate::message::Message;
use crate::message::Wire;
use crate::messages::ProduceRequest;
use crate::messages::produce_request::{PartitionProduceData, TopicProduceData};
use crate::reader::Reader;
use crate::uuid::Uuid;

/// The first version that names topics by id (KIP-516).
const TOPIC_ID_SINCE: i16 = 13;

/// A Produce request in the bytes that it came in.
#[derive(Clone)]
pub struct ProduceRequestView<'a> {
    transactional_id: Option<&'a str>,
    acks: i16,
    timeout_ms: i32,
    topics: Topics<'a>,
}

/// The records for one topic.
#[derive(Clone)]
pub struct TopicRecords<'a> {
    /// The topic's name, in versions up to 12.
    pub name: Option<&'a str>,
    /// The topic's id, from version 13 on.
    pub id: Option<Uuid>,
    partitions: Partitions<'a>,
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
        let left = reader.count(flexible, false, TopicProduceData::SIZE_MIN)?.unwrap_or_default();
        let topics = Topics { reader, left, version, flexible };
        Ok(Self { transactional_id, acks, timeout_ms, topics })
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
    pub fn topics(&self) -> impl Iterator<Item = Result<TopicRecords<'a>, DecodeError>> + use<'a> {
        self.topics.clone()
    }

    /// Checks the whole structure, after which no iteration over it fails.
    ///
    /// # Errors
    /// A topic or partition is broken, or bytes are left over.
    pub fn check(&self) -> Result<(), DecodeError> {
        let mut topics = self.topics.clone();
        for topic in &mut topics {
            topic?;
        }
        if topics.flexible {
            topics.reader.skip_tagged_fields()?;
        }
        topics.reader.finish()
    }
}

impl<'a> TopicRecords<'a> {
    /// The partitions. Errors do not occur, since the topic was read to its end to find the next.
    #[must_use]
    pub fn partitions(
        &self,
    ) -> impl Iterator<Item = Result<PartitionRecords<'a>, DecodeError>> + use<'a> {
        self.partitions.clone()
    }
}

#[derive(Clone)]
struct Topics<'a> {
    reader: Reader<'a>,
    left: usize,
    version: i16,
    flexible: bool,
}

impl<'a> Topics<'a> {
    fn read(&mut self) -> Result<TopicRecords<'a>, DecodeError> {
        let (name, id) = if self.version >= TOPIC_ID_SINCE {
            (None, Some(self.reader.uuid()?))
        } else {
            (self.reader.str(self.flexible, false)?, None)
        };
        let left = self.reader.count(self.flexible, false, PartitionProduceData::SIZE_MIN)?;
        let left = left.unwrap_or_default();
        let partitions = Partitions { reader: self.reader.clone(), left, flexible: self.flexible };
        let mut skipped = partitions.clone();
        for partition in &mut skipped {
            partition?;
        }
        self.reader = skipped.reader;
        if self.flexible {
            self.reader.skip_tagged_fields()?;
        }
        Ok(TopicRecords { name, id, partitions })
    }
}

impl<'a> Iterator for Topics<'a> {
    type Item = Result<TopicRecords<'a>, DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        let topic = self.read();
        if topic.is_err() {
            self.left = 0;
        }
        Some(topic)
    }
}

#[derive(Clone)]
struct Partitions<'a> {
    reader: Reader<'a>,
    left: usize,
    flexible: bool,
}

impl<'a> Partitions<'a> {
    fn read(&mut self) -> Result<PartitionRecords<'a>, DecodeError> {
        let index = self.reader.i32()?;
        let records = self.reader.slice(self.flexible, true)?;
        if self.flexible {
            self.reader.skip_tagged_fields()?;
        }
        Ok(PartitionRecords { index, records })
    }
}

impl<'a> Iterator for Partitions<'a> {
    type Item = Result<PartitionRecords<'a>, DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        let partition = self.read();
        if partition.is_err() {
            self.left = 0;
        }
        Some(partition)
    }
}
