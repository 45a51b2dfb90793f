//! The view and the encoder agree with the generated messages.

use bytes::{Bytes, BytesMut};

use super::*;
use crate::error::DecodeError;
use crate::frame::{self, LENGTH_SIZE, RequestHeader};
use crate::message::Message;
use crate::messages::ProduceRequest;
use crate::messages::produce_request::{PartitionProduceData, TopicProduceData};
use crate::random::{Generator, Random};
use crate::uuid::Uuid;

/// Random requests tried for each version.
const REQUESTS: u64 = 50;

fn random_requests() -> impl Iterator<Item = (i16, ProduceRequest)> {
    ProduceRequest::VERSIONS.iter().flat_map(|version| {
        (0..REQUESTS).map(move |seed| {
            let flexible = version >= ProduceRequest::FLEXIBLE_FROM;
            (version, ProduceRequest::random(&mut Generator::new(seed), version, flexible))
        })
    })
}

fn owned_from(view: &ProduceRequestView<'_>) -> Result<ProduceRequest, DecodeError> {
    let mut request = ProduceRequest {
        transactional_id: view.transactional_id().map(str::to_owned),
        acks: view.acks(),
        timeout_ms: view.timeout_ms(),
        ..ProduceRequest::default()
    };
    for topic in view.topics() {
        let topic = topic?;
        let mut data = TopicProduceData {
            name: topic.name.unwrap_or_default().to_owned(),
            topic_id: topic.id.unwrap_or(Uuid::ZERO),
            ..TopicProduceData::default()
        };
        for partition in topic.partitions() {
            let partition = partition?;
            data.partition_data.push(PartitionProduceData {
                index: partition.index,
                records: partition.records.map(Bytes::copy_from_slice),
                ..PartitionProduceData::default()
            });
        }
        request.topic_data.push(data);
    }
    Ok(request)
}

/// The view does not show unknown tagged fields, and the encoder writes none.
fn without_unknown_tags(mut request: ProduceRequest) -> ProduceRequest {
    request.unknown_tagged_fields.clear();
    for topic in &mut request.topic_data {
        topic.unknown_tagged_fields.clear();
        for partition in &mut topic.partition_data {
            partition.unknown_tagged_fields.clear();
        }
    }
    request
}

#[test]
fn view_shows_what_the_generated_decoder_reads() {
    for (version, request) in random_requests() {
        let body = request.to_bytes(version).expect("valid");
        let view = ProduceRequestView::parse(&body, version).expect("valid");
        assert_eq!(view.check(), Ok(()));
        assert_eq!(owned_from(&view), Ok(without_unknown_tags(request)), "version {version}");
    }
}

#[test]
fn view_refuses_every_truncation() {
    for (version, request) in random_requests() {
        let body = request.to_bytes(version).expect("valid");
        for len in 0..body.len() {
            let checked =
                ProduceRequestView::parse(&body[..len], version).and_then(|view| view.check());
            assert!(checked.is_err(), "version {version} cut at {len}");
        }
    }
}

#[test]
fn encoder_writes_what_the_generated_encoder_writes() {
    for (version, request) in random_requests() {
        let mut request = without_unknown_tags(request);
        let mut encoder = ProduceRequestEncoder {
            transactional_id: request.transactional_id.clone(),
            acks: request.acks,
            timeout_ms: request.timeout_ms,
            topics: Vec::new(),
        };
        for topic in &mut request.topic_data {
            let mut partitions = Vec::new();
            for partition in &mut topic.partition_data {
                let records = partition.records.get_or_insert_default();
                let (first, second) = records.split_at(records.len() / 3);
                let records = vec![records.slice_ref(first), records.slice_ref(second)];
                partitions.push(PartitionBatches { index: partition.index, records });
            }
            let (name, topic_id) = (topic.name.clone(), topic.topic_id);
            encoder.topics.push(TopicBatches { name, topic_id, partitions });
        }
        let segments = encoder.encode(version, 9, Some("writer")).expect("valid");
        let mut whole = BytesMut::new();
        frame::encode_request(&mut whole, version, 9, Some("writer"), &request).expect("valid");
        assert_eq!(segments.concat(), whole, "version {version}");
        assert!(RequestHeader::parse(&whole[LENGTH_SIZE..]).is_ok());
    }
}

#[test]
fn encoder_does_not_copy_records() {
    let records = Bytes::from(vec![7; 1000]);
    let partition = PartitionBatches { index: 0, records: vec![records.clone()] };
    let topic = TopicBatches { partitions: vec![partition], ..TopicBatches::default() };
    let encoder = ProduceRequestEncoder { topics: vec![topic], ..Default::default() };
    let segments = encoder.encode(12, 1, None).expect("valid");
    assert!(segments.iter().any(|segment| segment.as_ptr() == records.as_ptr()));
}

#[test]
fn the_throttle_time_of_a_response_is_raised() {
    use crate::messages::produce_response::TopicProduceResponse;
    use crate::{ApiKey, messages::ProduceResponse};
    for version in [3, 8, 9, 13] {
        let name = if version < 13 { "orders".to_owned() } else { String::new() };
        let topic = TopicProduceResponse { name, ..TopicProduceResponse::default() };
        let response = ProduceResponse { responses: vec![topic], ..ProduceResponse::default() };
        let mut out = BytesMut::new();
        frame::encode_response(&mut out, ApiKey::Produce, version, 1, &response).unwrap();
        raise_throttle_time(&mut out, version, 70);
        let (_, body) = frame::parse_response(&out[4..], ApiKey::Produce, version).unwrap();
        let read = ProduceResponse::decode(&mut crate::Reader::new(body), version).unwrap();
        assert_eq!(read, ProduceResponse { throttle_time_ms: 70, ..response });
    }
}
