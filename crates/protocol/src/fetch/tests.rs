//! The view and the encoder agree with the generated messages.

use bytes::{Bytes, BytesMut};

use super::*;
use crate::error::{DecodeError, EncodeError};
use crate::frame;
use crate::message::Message;
use crate::messages::fetch_response::{FetchableTopicResponse, NodeEndpoint, PartitionData};
use crate::messages::{ApiKey, FetchResponse};
use crate::random::{Generator, Random};
use crate::uuid::Uuid;

/// Random responses tried for each version.
const RESPONSES: u64 = 50;

fn random_responses() -> impl Iterator<Item = (i16, FetchResponse)> {
    FetchResponse::VERSIONS.iter().flat_map(|version| {
        (0..RESPONSES).map(move |seed| {
            let flexible = version >= FetchResponse::FLEXIBLE_FROM;
            (version, FetchResponse::random(&mut Generator::new(seed), version, flexible))
        })
    })
}

fn owned_from(view: &FetchResponseView<'_>) -> Result<FetchResponse, DecodeError> {
    let mut response = FetchResponse {
        throttle_time_ms: view.throttle_time_ms,
        error_code: view.error_code,
        session_id: view.session_id,
        node_endpoints: view.node_endpoints.clone(),
        ..FetchResponse::default()
    };
    for topic in view.topics() {
        let topic = topic?;
        let mut owned = FetchableTopicResponse {
            topic: topic.name.unwrap_or_default().to_owned(),
            topic_id: topic.id.unwrap_or(Uuid::ZERO),
            ..FetchableTopicResponse::default()
        };
        for partition in topic.partitions() {
            let partition = partition?;
            owned.partitions.push(PartitionData {
                partition_index: partition.index,
                error_code: partition.error_code,
                high_watermark: partition.high_watermark,
                last_stable_offset: partition.last_stable_offset,
                log_start_offset: partition.log_start_offset,
                aborted_transactions: partition.aborted_transactions,
                preferred_read_replica: partition.preferred_read_replica,
                records: partition.records.map(Bytes::copy_from_slice),
                diverging_epoch: partition.diverging_epoch,
                current_leader: partition.current_leader,
                ..PartitionData::default()
            });
        }
        response.responses.push(owned);
    }
    Ok(response)
}

/// Drops what neither the view shows nor the encoder writes.
fn plain(mut response: FetchResponse) -> FetchResponse {
    response.unknown_tagged_fields.clear();
    for topic in &mut response.responses {
        topic.unknown_tagged_fields.clear();
        for partition in &mut topic.partitions {
            partition.unknown_tagged_fields.clear();
            partition.snapshot_id = Default::default();
        }
    }
    response
}

#[test]
fn view_shows_what_the_generated_decoder_reads() {
    for (version, response) in random_responses() {
        let body = response.to_bytes(version).expect("valid");
        let view = FetchResponseView::parse(&body, version).expect("valid");
        assert_eq!(owned_from(&view), Ok(plain(response)), "version {version}");
    }
}

#[test]
fn view_refuses_every_truncation() {
    for (version, response) in random_responses() {
        let body = response.to_bytes(version).expect("valid");
        for len in 0..body.len() {
            let view = FetchResponseView::parse(&body[..len], version);
            assert!(view.is_err(), "version {version} cut at {len}");
        }
    }
}

#[test]
fn encoder_writes_what_the_generated_encoder_writes() {
    for (version, mut response) in random_responses() {
        response.unknown_tagged_fields.clear();
        let mut encoder = FetchResponseEncoder {
            throttle_time_ms: response.throttle_time_ms,
            error_code: response.error_code,
            session_id: response.session_id,
            topics: Vec::new(),
            node_endpoints: response.node_endpoints.clone(),
        };
        for topic in &mut response.responses {
            topic.unknown_tagged_fields.clear();
            let mut partitions = Vec::new();
            for partition in &mut topic.partitions {
                let records = partition.records.get_or_insert_default();
                let (first, second) = records.split_at(records.len() / 3);
                let records = vec![records.slice_ref(first), records.slice_ref(second)];
                let data = PartitionData { records: None, ..partition.clone() };
                partitions.push(FetchedPartition { data, records });
            }
            let (name, topic_id) = (topic.topic.clone(), topic.topic_id);
            encoder.topics.push(FetchedTopic { name, topic_id, partitions });
        }
        let segments = encoder.encode(version, 9).expect("valid");
        let mut whole = BytesMut::new();
        frame::encode_response(&mut whole, ApiKey::Fetch, version, 9, &response).expect("valid");
        assert_eq!(segments.concat(), whole, "version {version}");
    }
}

#[test]
fn encoder_does_not_copy_records() {
    let records = Bytes::from(vec![7; 1000]);
    let partition = FetchedPartition { records: vec![records.clone()], ..Default::default() };
    let topic = FetchedTopic { partitions: vec![partition], ..Default::default() };
    let encoder = FetchResponseEncoder { topics: vec![topic], ..Default::default() };
    let segments = encoder.encode(13, 1).expect("valid");
    assert!(segments.iter().any(|segment| segment.as_ptr() == records.as_ptr()));
}

#[test]
fn encoder_refuses_what_the_version_does_not_have() {
    let endpoints = vec![NodeEndpoint::default()];
    let encoder = FetchResponseEncoder { node_endpoints: endpoints, ..Default::default() };
    assert!(matches!(encoder.encode(15, 1), Err(EncodeError::Absent { version: 15, .. })));
    assert!(encoder.encode(16, 1).is_ok());
}
