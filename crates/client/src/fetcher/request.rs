//! Fetch on the wire.

use std::sync::Arc;

use bytes::Bytes;
use moldau_protocol::Uuid;
use moldau_protocol::messages::fetch_request::{FetchPartition, FetchTopic, ForgottenTopic};
use moldau_protocol::messages::{FetchRequest, FetchResponse};
use moldau_records::iter_batches;

use super::aborted::Aborted;
use super::positions::Wanted;
use super::session::SessionRequest;
use super::{FetcherOptions, Isolation};
use crate::metadata::TopicRef;

/// The request for one step of a session.
pub(super) fn build(options: &FetcherOptions, session: &SessionRequest) -> FetchRequest {
    FetchRequest {
        max_wait_ms: i32::try_from(options.max_wait.as_millis()).unwrap_or(i32::MAX),
        min_bytes: options.min_bytes,
        max_bytes: options.max_bytes,
        isolation_level: match options.isolation {
            Isolation::ReadUncommitted => 0,
            Isolation::ReadCommitted => 1,
        },
        session_id: session.id,
        session_epoch: session.epoch,
        topics: by_topic(&session.fetch)
            .into_iter()
            .map(|(topic, partitions)| FetchTopic {
                topic: topic.name.to_string(),
                topic_id: topic.id,
                partitions: partitions.iter().map(|wanted| partition(options, wanted)).collect(),
                ..Default::default()
            })
            .collect(),
        forgotten_topics_data: by_topic(&session.forget)
            .into_iter()
            .map(|(topic, partitions)| ForgottenTopic {
                topic: topic.name.to_string(),
                topic_id: topic.id,
                partitions: partitions.iter().map(|wanted| wanted.partition).collect(),
                ..Default::default()
            })
            .collect(),
        ..Default::default()
    }
}

fn partition(options: &FetcherOptions, wanted: &Wanted) -> FetchPartition {
    FetchPartition {
        partition: wanted.partition,
        current_leader_epoch: wanted.leader_epoch,
        fetch_offset: wanted.position,
        partition_max_bytes: options.partition_bytes_max,
        ..Default::default()
    }
}

/// The partitions of each topic.
fn by_topic(wanted: &[Wanted]) -> Vec<(&TopicRef, Vec<&Wanted>)> {
    let mut sorted: Vec<&Wanted> = wanted.iter().collect();
    sorted.sort_unstable_by(|a, b| (&a.topic.name, a.partition).cmp(&(&b.topic.name, b.partition)));
    let topics = sorted.chunk_by(|a, b| a.topic.name == b.topic.name);
    topics.filter_map(|topic| Some((&topic.first()?.topic, topic.to_vec()))).collect()
}

/// One partition of an answer.
pub(super) struct Part {
    pub(super) topic: Arc<str>,
    pub(super) topic_id: Uuid,
    pub(super) partition: i32,
    pub(super) error_code: i16,
    pub(super) high_watermark: i64,
    pub(super) log_start_offset: i64,
    pub(super) records: Bytes,
    pub(super) aborted: Aborted,
}

/// The partitions of an answer; their records share its memory.
pub(super) fn parts(answer: FetchResponse) -> impl Iterator<Item = Part> {
    answer.responses.into_iter().flat_map(|topic| {
        let name: Arc<str> = topic.topic.into();
        topic.partitions.into_iter().map(move |partition| Part {
            topic: name.clone(),
            topic_id: topic.topic_id,
            partition: partition.partition_index,
            error_code: partition.error_code,
            high_watermark: partition.high_watermark,
            log_start_offset: partition.log_start_offset,
            records: partition.records.unwrap_or_default(),
            aborted: Aborted::of(partition.aborted_transactions.unwrap_or_default()),
        })
    })
}

/// Cuts off a batch that did not fit the answer; the whole batches and the offset after them.
pub(super) fn whole_batches(
    records: &Bytes,
) -> Result<(Bytes, Option<i64>), moldau_records::Error> {
    let mut whole = 0;
    let mut next = None;
    for batch in iter_batches(records) {
        match batch {
            Ok(batch) => {
                whole += batch.bytes().len();
                next = Some(batch.next_offset());
            }
            Err(moldau_records::Error::Truncated { .. }) => break,
            // Those before it come first.
            Err(_) if whole > 0 => break,
            Err(error) => return Err(error),
        }
    }
    Ok((records.slice(..whole), next))
}
