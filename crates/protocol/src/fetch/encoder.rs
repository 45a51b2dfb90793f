//! Fetch responses as segments: records reach the socket without a copy.

use bytes::Bytes;

use crate::error::EncodeError;
use crate::frame;
use crate::message::{Message, Response};
use crate::messages::FetchResponse;
use crate::messages::fetch_response::{
    EpochEndOffset, LeaderIdAndEpoch, NodeEndpoint, PartitionData, SnapshotId,
};
use crate::segments::SegmentWriter;
use crate::uuid::Uuid;
use crate::writer::ToWire;

use super::{
    LOG_START_OFFSET_SINCE, NODE_ENDPOINTS_SINCE, PREFERRED_READ_REPLICA_SINCE, SESSION_SINCE,
    TOPIC_ID_SINCE,
};

/// Structure bytes expected for one partition; more only costs another allocation.
const PARTITION_STRUCTURE_SIZE: usize = 64;

/// A Fetch response to send.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FetchResponseEncoder {
    /// How long the client was or shall be throttled, in milliseconds.
    pub throttle_time_ms: i32,
    /// An error of the whole request, sent from version 7 on.
    pub error_code: i16,
    /// The fetch session, 0 for none.
    pub session_id: i32,
    /// What was fetched, by topic.
    pub topics: Vec<FetchedTopic>,
    /// The addresses of the leaders that partitions name, from version 16 on (KIP-951).
    pub node_endpoints: Vec<NodeEndpoint>,
}

/// What was fetched of one topic.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FetchedTopic {
    /// The topic's name, sent in versions up to 12.
    pub name: String,
    /// The topic's id, sent from version 13 on.
    pub topic_id: Uuid,
    /// What was fetched, by partition.
    pub partitions: Vec<FetchedPartition>,
}

/// What was fetched of one partition.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FetchedPartition {
    /// Everything but the records. If it has records, they come first.
    pub data: PartitionData,
    /// Record batches, which follow one another on the wire. No records are sent as no bytes,
    /// not as null, as Kafka does.
    pub records: Vec<Bytes>,
}

impl FetchResponseEncoder {
    /// The whole frame, header and length included.
    ///
    /// # Errors
    /// The version does not exist or cannot express the response, or the frame is too long.
    pub fn encode(&self, version: i16, correlation_id: i32) -> Result<Vec<Bytes>, EncodeError> {
        if !FetchResponse::VERSIONS.contains(version) {
            return Err(EncodeError::UnsupportedVersion { message: FetchResponse::NAME, version });
        }
        let f = version >= FetchResponse::FLEXIBLE_FROM;
        let partitions: usize = self.topics.iter().map(|topic| topic.partitions.len()).sum();
        let mut out = SegmentWriter::new(PARTITION_STRUCTURE_SIZE * (partitions + 1));
        frame::write_response_header(out.buffer(), FetchResponse::KEY, version, correlation_id);
        let mut w = out.writer();
        w.i32(self.throttle_time_ms);
        if version >= SESSION_SINCE {
            w.i16(self.error_code);
            w.i32(self.session_id);
        } else if self.session_id != 0 {
            return Err(EncodeError::absent("FetchResponse.SessionId", version));
        }
        w.length(self.topics.len(), f, "array")?;
        for topic in &self.topics {
            write_topic(&mut out, topic, version, f)?;
        }
        self.write_tagged_fields(&mut out, version, f)?;
        out.finish()
    }

    fn write_tagged_fields(
        &self,
        out: &mut SegmentWriter,
        version: i16,
        f: bool,
    ) -> Result<(), EncodeError> {
        if version < NODE_ENDPOINTS_SINCE && !self.node_endpoints.is_empty() {
            return Err(EncodeError::absent("FetchResponse.NodeEndpoints", version));
        }
        if !f {
            return Ok(());
        }
        let mut w = out.writer();
        let mut tags = w.tagged_fields(&[]);
        if !self.node_endpoints.is_empty() {
            tags.field(0, |w| w.array(&self.node_endpoints, version, f))?;
        }
        tags.finish()
    }
}

fn write_topic(
    out: &mut SegmentWriter,
    topic: &FetchedTopic,
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
        write_partition(out, partition, version, f)?;
    }
    if f {
        out.writer().u8(0);
    }
    Ok(())
}

fn write_partition(
    out: &mut SegmentWriter,
    partition: &FetchedPartition,
    version: i16,
    f: bool,
) -> Result<(), EncodeError> {
    let data = &partition.data;
    let mut w = out.writer();
    w.i32(data.partition_index);
    w.i16(data.error_code);
    w.i64(data.high_watermark);
    w.i64(data.last_stable_offset);
    if version >= LOG_START_OFFSET_SINCE {
        w.i64(data.log_start_offset);
    }
    let aborted = data.aborted_transactions.as_deref();
    w.nullable_array(aborted, version, f, true, "AbortedTransactions")?;
    if version >= PREFERRED_READ_REPLICA_SINCE {
        w.i32(data.preferred_read_replica);
    } else if data.preferred_read_replica != -1 {
        return Err(EncodeError::absent("PartitionData.PreferredReadReplica", version));
    }
    out.bytes(data.records.iter().chain(&partition.records), f)?;
    write_partition_tags(out, data, version, f)
}

fn write_partition_tags(
    out: &mut SegmentWriter,
    data: &PartitionData,
    version: i16,
    f: bool,
) -> Result<(), EncodeError> {
    let diverging_epoch = data.diverging_epoch != EpochEndOffset::default();
    let current_leader = data.current_leader != LeaderIdAndEpoch::default();
    let snapshot_id = data.snapshot_id != SnapshotId::default();
    if !f {
        return match diverging_epoch || current_leader || snapshot_id {
            true => Err(EncodeError::absent("PartitionData's tagged fields", version)),
            false => Ok(()),
        };
    }
    let mut w = out.writer();
    let mut tags = w.tagged_fields(&data.unknown_tagged_fields);
    if diverging_epoch {
        tags.field(0, |w| data.diverging_epoch.write(w, version, f))?;
    }
    if current_leader {
        tags.field(1, |w| data.current_leader.write(w, version, f))?;
    }
    if snapshot_id {
        tags.field(2, |w| data.snapshot_id.write(w, version, f))?;
    }
    tags.finish()
}
