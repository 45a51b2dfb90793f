//! ShareFetch responses without copies: an encoder that leaves records where they are.
//!
//! A response, versions 1-2:
//!
//! ```text
//! throttle_time_ms int32 | error_code int16 | error_message nullable string
//! acquisition_lock_timeout_ms int32
//! responses: array of
//!     topic_id uuid
//!     partitions: array of
//!         index int32 | error_code int16 | error_message nullable string
//!         acknowledge_error_code int16 | acknowledge_error_message nullable string
//!         current_leader: leader_id int32, leader_epoch int32, tagged fields
//!         records bytes
//!         acquired_records: array of
//!             first_offset int64 | last_offset int64 | delivery_count int16 | tagged fields
//!         tagged fields
//!     tagged fields
//! node_endpoints: array of node_id int32, host string, port int32, rack, tagged fields
//! tagged fields
//! ```

use bytes::Bytes;

use crate::error::EncodeError;
use crate::frame;
use crate::message::{Message, Response};
use crate::messages::ShareFetchResponse;
use crate::messages::share_fetch_response::{NodeEndpoint, PartitionData};
use crate::segments::SegmentWriter;
use crate::uuid::Uuid;
use crate::writer::ToWire;

/// Structure bytes expected for one partition; more only costs another allocation.
const PARTITION_STRUCTURE_SIZE: usize = 96;

/// A ShareFetch response to send.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ShareFetchResponseEncoder {
    /// An error of the whole request.
    pub error_code: i16,
    /// What it means.
    pub error_message: Option<String>,
    /// How long the consumer holds what it got.
    pub acquisition_lock_timeout_ms: i32,
    /// What was fetched, by topic.
    pub topics: Vec<ShareFetchedTopic>,
    /// Brokers that lead partitions with an error.
    pub node_endpoints: Vec<NodeEndpoint>,
}

/// What was fetched of one topic.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ShareFetchedTopic {
    /// The topic.
    pub topic_id: Uuid,
    /// What was fetched, by partition.
    pub partitions: Vec<ShareFetchedPartition>,
}

/// What was fetched of one partition.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ShareFetchedPartition {
    /// Everything but the records. If it has records, they come first.
    pub data: PartitionData,
    /// Record batches, which follow one another on the wire.
    pub records: Vec<Bytes>,
}

impl ShareFetchResponseEncoder {
    /// The whole frame, header and length included.
    ///
    /// # Errors
    /// The version does not exist, or the frame is too long.
    pub fn encode(&self, version: i16, correlation_id: i32) -> Result<Vec<Bytes>, EncodeError> {
        if !ShareFetchResponse::VERSIONS.contains(version) {
            let message = ShareFetchResponse::NAME;
            return Err(EncodeError::UnsupportedVersion { message, version });
        }
        let partitions: usize = self.topics.iter().map(|topic| topic.partitions.len()).sum();
        let mut out = SegmentWriter::new(PARTITION_STRUCTURE_SIZE * (partitions + 1));
        let key = ShareFetchResponse::KEY;
        frame::write_response_header(out.buffer(), key, version, correlation_id);
        let mut w = out.writer();
        w.i32(0);
        w.i16(self.error_code);
        w.nullable_string(self.error_message.as_deref(), true, true, "ErrorMessage")?;
        w.i32(self.acquisition_lock_timeout_ms);
        w.length(self.topics.len(), true, "array")?;
        for topic in &self.topics {
            let mut w = out.writer();
            w.uuid(topic.topic_id);
            w.length(topic.partitions.len(), true, "array")?;
            for partition in &topic.partitions {
                write_partition(&mut out, partition, version)?;
            }
            out.writer().u8(0);
        }
        let mut w = out.writer();
        w.array(&self.node_endpoints, version, true)?;
        w.u8(0);
        out.finish()
    }
}

fn write_partition(
    out: &mut SegmentWriter,
    partition: &ShareFetchedPartition,
    version: i16,
) -> Result<(), EncodeError> {
    let data = &partition.data;
    let mut w = out.writer();
    w.i32(data.partition_index);
    w.i16(data.error_code);
    w.nullable_string(data.error_message.as_deref(), true, true, "ErrorMessage")?;
    w.i16(data.acknowledge_error_code);
    let message = data.acknowledge_error_message.as_deref();
    w.nullable_string(message, true, true, "AcknowledgeErrorMessage")?;
    data.current_leader.write(&mut w, version, true)?;
    out.bytes(std::iter::once(&data.records).chain(&partition.records), true)?;
    let mut w = out.writer();
    w.array(&data.acquired_records, version, true)?;
    w.unknown_tagged_fields(&data.unknown_tagged_fields)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Reader;
    use crate::messages::share_fetch_response::{
        AcquiredRecords, LeaderIdAndEpoch, ShareFetchableTopicResponse,
    };
    use bytes::BytesMut;

    #[test]
    fn the_bytes_are_those_of_the_message() {
        let data = PartitionData {
            partition_index: 3,
            error_code: 1,
            error_message: Some("no".to_owned()),
            acknowledge_error_code: 2,
            acknowledge_error_message: Some("neither".to_owned()),
            current_leader: LeaderIdAndEpoch {
                leader_id: 4,
                leader_epoch: 5,
                ..Default::default()
            },
            acquired_records: vec![AcquiredRecords {
                first_offset: 6,
                last_offset: 7,
                delivery_count: 8,
                ..Default::default()
            }],
            ..PartitionData::default()
        };
        let topic_id = Uuid::from_bytes([9; 16]);
        let records = vec![Bytes::from_static(b"ab"), Bytes::from_static(b"cde")];
        let partition = ShareFetchedPartition { data: data.clone(), records };
        let node_endpoints = vec![NodeEndpoint {
            node_id: 13,
            host: "host".to_owned(),
            port: 14,
            rack: None,
            ..NodeEndpoint::default()
        }];
        let encoder = ShareFetchResponseEncoder {
            error_code: 10,
            error_message: Some("all".to_owned()),
            acquisition_lock_timeout_ms: 11,
            topics: vec![ShareFetchedTopic { topic_id, partitions: vec![partition] }],
            node_endpoints: node_endpoints.clone(),
        };
        let data = PartitionData { records: Bytes::from_static(b"abcde"), ..data };
        let message = ShareFetchResponse {
            error_code: 10,
            error_message: Some("all".to_owned()),
            acquisition_lock_timeout_ms: 11,
            responses: vec![ShareFetchableTopicResponse {
                topic_id,
                partitions: vec![data],
                ..Default::default()
            }],
            node_endpoints,
            ..ShareFetchResponse::default()
        };
        for version in 1..=2 {
            let frame = encoder.encode(version, 12).unwrap().concat();
            let mut expected = BytesMut::new();
            let key = ShareFetchResponse::KEY;
            frame::encode_response(&mut expected, key, version, 12, &message).unwrap();
            assert_eq!(frame, expected);
            let body = &frame[frame::LENGTH_SIZE + 5..];
            assert_eq!(
                ShareFetchResponse::decode(&mut Reader::new(body), version),
                Ok(message.clone())
            );
        }
        assert!(encoder.encode(0, 12).is_err());
    }
}
