//! Produce requests, versions 3-13, as segments: records reach the socket without a copy.

use bytes::Bytes;

use crate::error::EncodeError;
use crate::frame;
use crate::message::{Message, Request};
use crate::messages::ProduceRequest;
use crate::segments::SegmentWriter;
use crate::uuid::Uuid;

use super::view::TOPIC_ID_SINCE;

/// Structure bytes expected for one partition; more only costs another allocation.
const PARTITION_STRUCTURE_SIZE: usize = 32;

/// A Produce request to send.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProduceRequestEncoder {
    /// The producer's transactional id.
    pub transactional_id: Option<String>,
    /// How many replicas must have the records: 0, 1, or -1 for all in sync.
    pub acks: i16,
    /// How long the broker may wait for them, in milliseconds.
    pub timeout_ms: i32,
    /// The records by topic.
    pub topics: Vec<TopicBatches>,
}

/// The records for one topic.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TopicBatches {
    /// The topic's name, sent in versions up to 12.
    pub name: String,
    /// The topic's id, sent from version 13 on.
    pub topic_id: Uuid,
    /// The records by partition.
    pub partitions: Vec<PartitionBatches>,
}

/// The records for one partition.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PartitionBatches {
    /// The partition.
    pub index: i32,
    /// Finished record batches, which follow one another on the wire.
    pub records: Vec<Bytes>,
}

impl ProduceRequestEncoder {
    /// The whole frame, header and length included.
    ///
    /// # Errors
    /// The version does not exist, or a name or the frame is too long.
    pub fn encode(
        &self,
        version: i16,
        correlation_id: i32,
        client_id: Option<&str>,
    ) -> Result<Vec<Bytes>, EncodeError> {
        if !ProduceRequest::VERSIONS.contains(version) {
            return Err(EncodeError::UnsupportedVersion { message: ProduceRequest::NAME, version });
        }
        let f = version >= ProduceRequest::FLEXIBLE_FROM;
        let partitions: usize = self.topics.iter().map(|topic| topic.partitions.len()).sum();
        let mut out = SegmentWriter::new(PARTITION_STRUCTURE_SIZE * (partitions + 2));
        let key = ProduceRequest::KEY;
        frame::write_request_header(out.buffer(), key, version, correlation_id, client_id)?;
        let mut w = out.writer();
        w.nullable_string(self.transactional_id.as_deref(), f, true, "TransactionalId")?;
        w.i16(self.acks);
        w.i32(self.timeout_ms);
        w.length(self.topics.len(), f, "array")?;
        for topic in &self.topics {
            write_topic(&mut out, topic, version, f)?;
        }
        if f {
            out.writer().u8(0);
        }
        out.finish()
    }
}

fn write_topic(
    out: &mut SegmentWriter,
    topic: &TopicBatches,
    version: i16,
    f: bool,
) -> Result<(), EncodeError> {
    let mut w = out.writer();
    if version >= TOPIC_ID_SINCE {
        w.uuid(topic.topic_id);
    } else {
        w.string(&topic.name, f)?;
    }
    w.length(topic.partitions.len(), f, "array")?;
    for partition in &topic.partitions {
        out.writer().i32(partition.index);
        out.bytes(partition.records.iter(), f)?;
        if f {
            out.writer().u8(0);
        }
    }
    if f {
        out.writer().u8(0);
    }
    Ok(())
}
