//! Produce on the wire. Batches are segments of their own, so that they are not copied.

use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use moldau_protocol::messages::produce_response::PartitionProduceResponse;
use moldau_protocol::messages::{ProduceRequest, ProduceResponse};
use moldau_protocol::{ApiKey, EncodeError, ErrorCode, Message, Uuid, Writer};

use super::ProducerOptions;
use super::plan::{Adding, Appended, Outbound};
use crate::connection::Connection;
use crate::wire;
use crate::{Error, Result};

/// First version that names topics by id (KIP-516).
const TOPIC_IDS_FROM: i16 = 13;

/// Last version whose partitions are added to a transaction beforehand (KIP-890).
pub(super) const ADDED_BEFOREHAND_MAX: i16 = 11;

/// An encoded request.
pub(super) struct Produce {
    pub(super) version: i16,
    pub(super) correlation_id: i32,
    pub(super) segments: Vec<Bytes>,
}

/// A request for `connection` with `batches`, of each partition at most one.
pub(super) fn encode(
    connection: &Connection,
    options: &ProducerOptions,
    adding: Adding,
    batches: &[Outbound],
) -> Result<Produce> {
    let mut version = connection.version_of::<ProduceRequest>()?;
    if batches.iter().any(|batch| batch.topic.id.is_zero()) {
        version = version.min(TOPIC_IDS_FROM - 1);
    }
    match adding {
        _ if options.transactional_id.is_none() => {}
        Adding::Beforehand => version = version.min(ADDED_BEFOREHAND_MAX),
        Adding::Implicit if version > ADDED_BEFOREHAND_MAX => {}
        // The broker would not add the partitions.
        Adding::Implicit => {
            let address = connection.address().clone();
            return Err(Error::UnsupportedApi { address, api: ApiKey::Produce });
        }
    }
    let correlation_id = connection.correlation_id();
    let header = (version, correlation_id, connection.client_id());
    let segments = encode_segments(header, options, batches)
        .map_err(|source| Error::Encode { api: ApiKey::Produce, source: Arc::new(source) })?;
    Ok(Produce { version, correlation_id, segments })
}

fn encode_segments(
    (version, correlation_id, client_id): (i16, i32, &str),
    options: &ProducerOptions,
    batches: &[Outbound],
) -> std::result::Result<Vec<Bytes>, EncodeError> {
    let flexible = version >= ProduceRequest::FLEXIBLE_FROM;
    let topics = by_topic(batches);
    let mut out = BytesMut::new();
    let mut cuts = Vec::with_capacity(batches.len());
    let mut batch_bytes = 0;
    wire::begin_request(&mut out, ApiKey::Produce, version, correlation_id, client_id)?;
    let mut writer = Writer::new(&mut out);
    let transactional_id = options.transactional_id.as_deref();
    writer.nullable_string(transactional_id, flexible, true, "TransactionalId")?;
    writer.i16(options.acks.wire());
    writer.i32(i32::try_from(options.request_timeout.as_millis()).unwrap_or(i32::MAX));
    writer.length(topics.len(), flexible, "array")?;
    for (topic, partitions) in &topics {
        if version >= TOPIC_IDS_FROM {
            writer.uuid(topic.topic.id);
        } else {
            writer.string(&topic.topic.name, flexible)?;
        }
        writer.length(partitions.len(), flexible, "array")?;
        for batch in partitions {
            writer.i32(batch.index);
            writer.length(batch.bytes.len(), flexible, "bytes")?;
            cuts.push((writer.len(), batch.bytes.clone()));
            batch_bytes += batch.bytes.len();
            if flexible {
                writer.unknown_tagged_fields(&[])?;
            }
        }
        if flexible {
            writer.unknown_tagged_fields(&[])?;
        }
    }
    if flexible {
        writer.unknown_tagged_fields(&[])?;
    }
    wire::finish_request(&mut out, batch_bytes)?;
    Ok(interleave(&out.freeze(), cuts))
}

/// Puts each batch behind the part of `out` that ends at its cut.
fn interleave(out: &Bytes, cuts: Vec<(usize, Bytes)>) -> Vec<Bytes> {
    let mut segments = Vec::with_capacity(2 * cuts.len() + 1);
    let mut from = 0;
    for (cut, batch) in cuts {
        segments.push(out.slice(from..cut));
        segments.push(batch);
        from = cut;
    }
    segments.push(out.slice(from..));
    segments
}

/// The batches of each topic, in order of their first.
fn by_topic(batches: &[Outbound]) -> Vec<(&Outbound, Vec<&Outbound>)> {
    let mut sorted: Vec<&Outbound> = batches.iter().collect();
    sorted.sort_by(|a, b| a.topic.name.cmp(&b.topic.name));
    sorted
        .chunk_by(|a, b| a.topic.name == b.topic.name)
        .filter_map(|topic| Some((*topic.first()?, topic.to_vec())))
        .collect()
}

/// A decoded answer.
pub(super) struct Answer {
    /// How long the broker holds the client for a quota.
    pub(super) throttled: Duration,
    partitions: Vec<(String, Uuid, PartitionProduceResponse)>,
}

pub(super) fn decode(frame: &Bytes, version: i16, address: &Arc<str>) -> Result<Answer> {
    let answer: ProduceResponse = wire::decode_answer(frame, ApiKey::Produce, version, address)?;
    let mut partitions = Vec::new();
    for topic in answer.responses {
        for partition in topic.partition_responses {
            partitions.push((topic.name.clone(), topic.topic_id, partition));
        }
    }
    let throttled = u64::try_from(answer.throttle_time_ms).unwrap_or(0);
    Ok(Answer { throttled: Duration::from_millis(throttled), partitions })
}

impl Answer {
    /// The outcome of each batch, in the order of `batches`.
    pub(super) fn outcomes(&self, batches: &[Outbound]) -> Vec<Result<Appended>> {
        let key = |name: &str, id: Uuid, index: i32| {
            // Up to version 12 the id is zero, from 13 on the name is empty.
            if name.is_empty() {
                (None, id, index)
            } else {
                (Some(name.to_owned()), Uuid::ZERO, index)
            }
        };
        let by_key: std::collections::HashMap<_, _> = self
            .partitions
            .iter()
            .map(|(name, id, partition)| (key(name, *id, partition.index), partition))
            .collect();
        let outcome = |batch: &Outbound| {
            let by_name = (Some(batch.topic.name.to_string()), Uuid::ZERO, batch.index);
            let by_id = (None, batch.topic.id, batch.index);
            let what = || format!("produce to {}-{}", batch.topic.name, batch.index);
            let Some(partition) = by_key.get(&by_id).or_else(|| by_key.get(&by_name)) else {
                return Err(Error::broker(ErrorCode::UnknownServerError, &what(), None));
            };
            if partition.error_code != 0 {
                let message = partition.error_message.as_deref();
                Error::check(partition.error_code, &what(), message)?;
            }
            Ok(Appended {
                base_offset: (partition.base_offset >= 0).then_some(partition.base_offset),
                log_append_time_ms: (partition.log_append_time_ms >= 0)
                    .then_some(partition.log_append_time_ms),
            })
        };
        batches.iter().map(outcome).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::TopicRef;
    use moldau_protocol::Request;

    fn outbound(topic: &str, index: i32, bytes: &'static [u8]) -> Outbound {
        let topic = TopicRef { name: topic.into(), id: Uuid::from_bytes([7; 16]) };
        Outbound { partition: 0, serial: 0, topic, index, bytes: Bytes::from_static(bytes) }
    }

    #[test]
    fn vectored_request_is_what_the_generated_decoder_reads() {
        let batches =
            [outbound("b", 0, b"one"), outbound("a", 5, b"three"), outbound("b", 9, b"2")];
        let transactional_id = Some("mine".to_owned());
        let options = ProducerOptions { transactional_id, ..ProducerOptions::default() };
        for version in ProduceRequest::VERSIONS.iter() {
            let segments = encode_segments((version, 77, "me"), &options, &batches).unwrap();
            let whole = Bytes::from(segments.concat());
            let length = i32::from_be_bytes(*whole.first_chunk().unwrap());
            assert_eq!(usize::try_from(length).unwrap(), whole.len() - 4);
            let header = ProduceRequest::KEY.request_header_version(version);
            let header_bytes = 8 + 4 + usize::from(header >= 2);
            let body = whole.slice(4 + header_bytes..);
            let request = ProduceRequest::from_bytes(&body, version).unwrap();
            assert_eq!((request.acks, request.timeout_ms), (-1, 30_000));
            assert_eq!(request.transactional_id.as_deref(), Some("mine"));
            let read: Vec<(i32, Bytes)> = request
                .topic_data
                .iter()
                .flat_map(|topic| &topic.partition_data)
                .map(|partition| (partition.index, partition.records.clone().unwrap()))
                .collect();
            let sent = [(5, "three"), (0, "one"), (9, "2")].map(|(i, b)| (i, Bytes::from(b)));
            assert_eq!(read, sent);
        }
    }
}
