//! Metadata responses whose partitions are encoded apart from their topics, so that answers of many
//! megabytes can be made in steps and share their bytes.
//!
//! A response, versions 0-13:
//!
//! ```text
//! throttle_time_ms int32 (from 3)
//! brokers: array of node_id int32 | host string | port int32 | rack nullable string (from 1)
//! cluster_id nullable string (from 2) | controller_id int32 (from 1)
//! topics: array of
//!     error_code int16 | name string, nullable from 12 | topic_id uuid (from 10)
//!     is_internal bool (from 1)
//!     partitions: array of
//!         error_code int16 | index int32 | leader_id int32 | leader_epoch int32 (from 7)
//!         replica_nodes, isr_nodes: array of int32 | offline_replicas: array of int32 (from 5)
//!     topic_authorized_operations int32 (from 8)
//! cluster_authorized_operations int32 (8 to 10) | error_code int16 (from 13)
//! ```
//! Brokers, topics, partitions and the whole end with tagged fields from version 9 on.

use std::ops::Range;

use bytes::{Bytes, BytesMut};

use crate::error::EncodeError;
use crate::frame;
use crate::message::{Message, Response};
use crate::messages::MetadataResponse;
use crate::messages::metadata_response::{MetadataResponseBroker, MetadataResponsePartition};
use crate::segments::SegmentWriter;
use crate::uuid::Uuid;
use crate::writer::{ToWire, Writer};

/// Operations that were not asked for, in Kafka's number.
const OPERATIONS_NOT_ASKED_FOR: i32 = i32::MIN;

/// Where the index of an encoded partition lies, in every version.
const INDEX: Range<usize> = 2..6;

/// A Metadata response to send.
#[derive(Clone, Debug, Default)]
pub struct MetadataResponseEncoder {
    /// The brokers of the cluster.
    pub brokers: Vec<MetadataResponseBroker>,
    /// The id of the cluster, sent from version 2 on.
    pub cluster_id: Option<String>,
    /// The broker to ask for changes, sent from version 1 on.
    pub controller_id: i32,
    /// What is said of each topic.
    pub topics: Vec<DescribedTopic>,
    /// What the client may do to the cluster, a bit for each operation (KIP-430), sent in versions
    /// 8 to 10; `None` if it did not ask.
    pub authorized_operations: Option<i32>,
}

/// What is said of one topic.
#[derive(Clone, Debug, Default)]
pub struct DescribedTopic {
    /// An error, or 0.
    pub error_code: i16,
    /// The topic's name; only versions from 12 on can do without.
    pub name: Option<String>,
    /// The topic's id, sent from version 10 on.
    pub topic_id: Uuid,
    /// Number of partitions in the pieces.
    pub partitions_count: usize,
    /// The encoded partitions, one piece after the other; see [`encode_partitions`].
    pub partitions: Vec<Bytes>,
    /// What the client may do to the topic, a bit for each operation (KIP-430), sent from version 8
    /// on; `None` if it did not ask.
    pub authorized_operations: Option<i32>,
}

/// Partitions of these indexes, each as `template` but for its index, as they stand in a response
/// of `version`.
///
/// # Errors
/// The version does not exist or cannot express the template.
pub fn encode_partitions(
    indexes: Range<i32>,
    template: &MetadataResponsePartition,
    version: i16,
) -> Result<Bytes, EncodeError> {
    check_version(version)?;
    let mut one = BytesMut::new();
    template.write(&mut Writer::new(&mut one), version, is_flexible(version))?;
    let mut out = BytesMut::with_capacity(one.len().saturating_mul(indexes.len()));
    for index in indexes {
        one[INDEX].copy_from_slice(&index.to_be_bytes());
        out.extend_from_slice(&one);
    }
    Ok(out.freeze())
}

impl MetadataResponseEncoder {
    /// The whole frame, header and length included.
    ///
    /// # Errors
    /// The version does not exist or cannot express the response, or the frame is too long.
    pub fn encode(&self, version: i16, correlation_id: i32) -> Result<Vec<Bytes>, EncodeError> {
        check_version(version)?;
        let f = is_flexible(version);
        let mut out = SegmentWriter::new(0);
        frame::write_response_header(out.buffer(), MetadataResponse::KEY, version, correlation_id);
        let mut w = out.writer();
        if version >= 3 {
            w.i32(0);
        }
        w.array(&self.brokers, version, f)?;
        if version >= 2 {
            w.nullable_string(self.cluster_id.as_deref(), f, true, "ClusterId")?;
        }
        if version >= 1 {
            w.i32(self.controller_id);
        }
        w.length(self.topics.len(), f, "array")?;
        for topic in &self.topics {
            topic.write(&mut out, version, f)?;
        }
        let mut w = out.writer();
        if (8..=10).contains(&version) {
            w.i32(self.authorized_operations.unwrap_or(OPERATIONS_NOT_ASKED_FOR));
        }
        if version >= 13 {
            w.i16(0);
        }
        if f {
            w.u8(0);
        }
        out.finish()
    }
}

impl DescribedTopic {
    fn write(&self, out: &mut SegmentWriter, version: i16, f: bool) -> Result<(), EncodeError> {
        let mut w = out.writer();
        w.i16(self.error_code);
        w.nullable_string(self.name.as_deref(), f, version >= 12, "Name")?;
        if version >= 10 {
            w.uuid(self.topic_id);
        }
        if version >= 1 {
            w.bool(false);
        }
        w.length(self.partitions_count, f, "array")?;
        out.pieces(self.partitions.iter());
        let mut w = out.writer();
        if version >= 8 {
            w.i32(self.authorized_operations.unwrap_or(OPERATIONS_NOT_ASKED_FOR));
        }
        if f {
            w.u8(0);
        }
        Ok(())
    }
}

fn check_version(version: i16) -> Result<(), EncodeError> {
    match MetadataResponse::VERSIONS.contains(version) {
        true => Ok(()),
        false => Err(EncodeError::UnsupportedVersion { message: MetadataResponse::NAME, version }),
    }
}

fn is_flexible(version: i16) -> bool {
    version >= MetadataResponse::FLEXIBLE_FROM
}

#[cfg(test)]
mod tests {
    use std::ops::RangeBounds;

    use super::*;
    use crate::messages::metadata_response::MetadataResponseTopic;

    const TOPIC_OPERATIONS: i32 = 264;
    const CLUSTER_OPERATIONS: i32 = 256;

    fn template() -> MetadataResponsePartition {
        MetadataResponsePartition {
            leader_id: 7,
            leader_epoch: 3,
            replica_nodes: vec![7, 8],
            isr_nodes: vec![7],
            ..MetadataResponsePartition::default()
        }
    }

    fn broker() -> MetadataResponseBroker {
        MetadataResponseBroker {
            node_id: 7,
            host: "host".to_owned(),
            port: 9092,
            ..MetadataResponseBroker::default()
        }
    }

    /// The generated encoder's frame of a topic with these partitions.
    fn generated(name: &str, partitions: Range<i32>, version: i16) -> BytesMut {
        let partitions = partitions
            .map(|partition_index| MetadataResponsePartition { partition_index, ..template() });
        let response = MetadataResponse {
            brokers: vec![broker()],
            cluster_id: Some("cluster".to_owned()),
            controller_id: 7,
            topics: vec![MetadataResponseTopic {
                name: Some(name.to_owned()),
                topic_id: Uuid::from_bytes([5; 16]),
                partitions: partitions.collect(),
                topic_authorized_operations: operations(8.., version, TOPIC_OPERATIONS),
                ..MetadataResponseTopic::default()
            }],
            cluster_authorized_operations: operations(8..=10, version, CLUSTER_OPERATIONS),
            ..MetadataResponse::default()
        };
        let mut out = BytesMut::new();
        frame::encode_response(&mut out, MetadataResponse::KEY, version, 11, &response).unwrap();
        out
    }

    /// What a version says that has a place for operations.
    fn operations(versions: impl RangeBounds<i16>, version: i16, told: i32) -> i32 {
        if versions.contains(&version) { told } else { OPERATIONS_NOT_ASKED_FOR }
    }

    fn pieced(name: &str, pieces: &[Range<i32>], version: i16) -> Vec<Bytes> {
        let encode = |piece: &Range<i32>| encode_partitions(piece.clone(), &template(), version);
        let response = MetadataResponseEncoder {
            brokers: vec![broker()],
            cluster_id: Some("cluster".to_owned()),
            controller_id: 7,
            topics: vec![DescribedTopic {
                name: Some(name.to_owned()),
                topic_id: Uuid::from_bytes([5; 16]),
                partitions_count: pieces.iter().map(ExactSizeIterator::len).sum(),
                partitions: pieces.iter().map(|piece| encode(piece).unwrap()).collect(),
                authorized_operations: Some(TOPIC_OPERATIONS),
                ..DescribedTopic::default()
            }],
            authorized_operations: Some(CLUSTER_OPERATIONS),
        };
        response.encode(version, 11).unwrap()
    }

    #[test]
    fn the_bytes_are_those_of_the_generated_encoder_in_every_version() {
        for version in MetadataResponse::VERSIONS.iter() {
            let pieces = pieced("orders", &[0..1, 1..1000, 1000..1003], version);
            assert_eq!(pieces.concat(), generated("orders", 0..1003, version), "{version}");
        }
    }

    #[test]
    fn a_large_piece_is_not_copied_and_a_small_one_is_no_segment() {
        let version = MetadataResponse::VERSIONS.max;
        assert_eq!(pieced("orders", &[0..1, 1..3], version).len(), 1);
        assert_eq!(pieced("orders", &[0..1, 1..3000], version).len(), 3);
    }

    #[test]
    fn a_version_that_does_not_exist_is_refused() {
        assert!(encode_partitions(0..1, &template(), 14).is_err());
        assert!(MetadataResponseEncoder::default().encode(14, 0).is_err());
        let unnamed = DescribedTopic { name: None, ..DescribedTopic::default() };
        let response =
            MetadataResponseEncoder { topics: vec![unnamed], ..MetadataResponseEncoder::default() };
        assert!(response.encode(11, 0).is_err());
        assert!(response.encode(12, 0).is_ok());
    }
}
