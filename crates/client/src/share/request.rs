//! ShareFetch and ShareAcknowledge on the wire, and what is in their answers.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use moldau_protocol::messages::share_acknowledge_request::{
    AcknowledgePartition, AcknowledgeTopic, AcknowledgementBatch as Reported,
};
use moldau_protocol::messages::share_fetch_request::{
    AcknowledgementBatch, FetchPartition, FetchTopic, ForgottenTopic,
};
use moldau_protocol::messages::share_fetch_response::PartitionData;
use moldau_protocol::messages::{
    ShareAcknowledgeRequest, ShareAcknowledgeResponse, ShareFetchRequest, ShareFetchResponse,
};
use moldau_protocol::{ErrorCode, Uuid};
use moldau_records::{Decompressor, iter_batches};

use super::session::{Contents, Place, Run};
use super::{Acquired, ShareOptions};
use crate::group::millis;
use crate::{Error, Result};

/// Who asks.
#[derive(Clone, Debug)]
pub(super) struct Sender {
    pub(super) group: String,
    pub(super) member: String,
}

/// What an answer says of one partition.
#[derive(Debug)]
pub(super) struct Answered {
    pub(super) place: Place,
    /// Why nothing was fetched.
    pub(super) error: Option<Error>,
    /// Why what was said of its records counts for nothing.
    pub(super) refusal: Option<Error>,
    pub(super) bytes: Bytes,
    pub(super) acquired: Vec<Acquired>,
}

impl Sender {
    pub(super) fn fetch(&self, contents: Contents, options: &ShareOptions) -> ShareFetchRequest {
        let Contents { epoch, added, forgotten, mut said, .. } = contents;
        let places: BTreeSet<Place> = added.into_iter().chain(said.keys().copied()).collect();
        let batch = |Run { first, last, kind }: Run| AcknowledgementBatch {
            first_offset: first,
            last_offset: last,
            acknowledge_types: vec![kind],
            ..Default::default()
        };
        let partition = |place: Place| FetchPartition {
            partition_index: place.1,
            acknowledgement_batches: said
                .remove(&place)
                .unwrap_or_default()
                .into_iter()
                .map(batch)
                .collect(),
            ..Default::default()
        };
        let topic =
            |(topic_id, partitions)| FetchTopic { topic_id, partitions, ..Default::default() };
        let topics = by_topic(places, partition).into_iter().map(topic).collect();
        let forgotten = by_topic(forgotten, |(_, partition)| partition).into_iter();
        let forgotten_topic =
            |(topic_id, partitions)| ForgottenTopic { topic_id, partitions, ..Default::default() };
        ShareFetchRequest {
            group_id: Some(self.group.clone()),
            member_id: Some(self.member.clone()),
            share_session_epoch: epoch,
            max_wait_ms: millis(options.max_wait),
            min_bytes: options.min_bytes,
            max_bytes: options.max_bytes,
            max_records: options.max_records,
            batch_size: options.max_records,
            topics,
            forgotten_topics_data: forgotten.map(forgotten_topic).collect(),
            ..Default::default()
        }
    }

    pub(super) fn report(&self, contents: Contents) -> ShareAcknowledgeRequest {
        let Contents { epoch, mut said, renews, .. } = contents;
        let batch = |Run { first, last, kind }: Run| Reported {
            first_offset: first,
            last_offset: last,
            acknowledge_types: vec![kind],
            ..Default::default()
        };
        let places: BTreeSet<Place> = said.keys().copied().collect();
        let partition = |place: Place| AcknowledgePartition {
            partition_index: place.1,
            acknowledgement_batches: said
                .remove(&place)
                .unwrap_or_default()
                .into_iter()
                .map(batch)
                .collect(),
            ..Default::default()
        };
        let topic = |(topic_id, partitions)| AcknowledgeTopic {
            topic_id,
            partitions,
            ..Default::default()
        };
        ShareAcknowledgeRequest {
            group_id: Some(self.group.clone()),
            member_id: Some(self.member.clone()),
            share_session_epoch: epoch,
            is_renew_ack: renews,
            topics: by_topic(places, partition).into_iter().map(topic).collect(),
            ..Default::default()
        }
    }
}

/// # Errors
/// The request as a whole was refused.
pub(super) fn fetched(answer: ShareFetchResponse) -> Result<Vec<Answered>> {
    Error::check(answer.error_code, "ShareFetch", answer.error_message.as_deref())?;
    let topics = answer.responses.into_iter();
    let partitions = topics.flat_map(|topic| {
        let id = topic.topic_id;
        topic.partitions.into_iter().map(move |partition| of_partition(id, partition))
    });
    Ok(partitions.collect())
}

fn of_partition(topic_id: Uuid, partition: PartitionData) -> Answered {
    let check = |code, message: &Option<String>| {
        Error::check(code, "ShareFetch of a partition", message.as_deref()).err()
    };
    let acquired = partition.acquired_records.iter().map(|acquired| Acquired {
        first_offset: acquired.first_offset,
        last_offset: acquired.last_offset,
        delivery_count: acquired.delivery_count,
    });
    Answered {
        place: (topic_id, partition.partition_index),
        error: check(partition.error_code, &partition.error_message),
        refusal: check(partition.acknowledge_error_code, &partition.acknowledge_error_message),
        acquired: acquired.collect(),
        bytes: partition.records,
    }
}

/// # Errors
/// The request as a whole was refused.
pub(super) fn reported(answer: ShareAcknowledgeResponse) -> Result<Vec<Answered>> {
    Error::check(answer.error_code, "ShareAcknowledge", answer.error_message.as_deref())?;
    let mut partitions = Vec::new();
    for topic in answer.responses {
        for partition in topic.partitions {
            let message = partition.error_message.as_deref();
            let what = "ShareAcknowledge of a partition";
            partitions.push(Answered {
                place: (topic.topic_id, partition.partition_index),
                error: None,
                refusal: Error::check(partition.error_code, what, message).err(),
                bytes: Bytes::new(),
                acquired: Vec::new(),
            });
        }
    }
    Ok(partitions)
}

/// The offsets among those acquired that have a record, as ranges in order, and those that have
/// none: they were compacted away, or mark the end of a transaction.
///
/// # Errors
/// A batch is damaged or too large, or the ranges are no answer of a broker.
pub(super) fn with_records(
    bytes: &Bytes,
    acquired: &[Acquired],
    bytes_max: usize,
) -> Result<(Vec<Acquired>, Vec<i64>)> {
    let mut present = Vec::new();
    for batch in iter_batches(bytes) {
        let batch = batch?;
        if batch.is_control() {
            continue;
        }
        if batch.check_count().is_ok() {
            present.push((batch.base_offset(), batch.last_offset()));
            continue;
        }
        for record in batch.records(&mut Decompressor::default(), bytes_max)? {
            let offset = record?.offset();
            present.push((offset, offset));
        }
    }
    let (mut kept, mut gaps) = (Vec::new(), Vec::new());
    for range in acquired {
        let count = range.last_offset.saturating_sub(range.first_offset);
        if !(0..ACQUIRED_MAX).contains(&count) {
            let what = "acquired records of an answer";
            return Err(Error::broker(ErrorCode::UnknownServerError, what, None));
        }
        let mut next = range.first_offset;
        for (first, last) in &present {
            let (first, last) = ((*first).max(next), (*last).min(range.last_offset));
            if first > last {
                continue;
            }
            gaps.extend(next..first);
            kept.push(Acquired { first_offset: first, last_offset: last, ..*range });
            next = last.saturating_add(1);
        }
        gaps.extend(next..=range.last_offset);
    }
    Ok((kept, gaps))
}

fn by_topic<T>(places: BTreeSet<Place>, mut of: impl FnMut(Place) -> T) -> BTreeMap<Uuid, Vec<T>> {
    let mut topics: BTreeMap<Uuid, Vec<T>> = BTreeMap::new();
    for place in places {
        topics.entry(place.0).or_default().push(of(place));
    }
    topics
}

/// Offsets of one acquired range: more than any broker locks of a partition at a time.
const ACQUIRED_MAX: i64 = 1_000_000;
